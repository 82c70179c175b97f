"""Anomaly mode."""

# ruff: noqa: PT012

import warnings

import pytest


@pytest.fixture(autouse=True)
def off_again(torch):
    yield
    torch.autograd.set_detect_anomaly(False)


def nan_backward(torch):
    x = torch.tensor([-1.0, 4.0], requires_grad=True)
    x.sqrt().sum().backward()


def test_nan_raises_and_warns(torch):
    with (
        torch.autograd.set_detect_anomaly(True),
        pytest.warns(UserWarning, match=r"(?s)Error detected in SqrtBackward0.*in nan_backward"),
        pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th output"),
    ):
        nan_backward(torch)


def test_the_mode_announces_itself(torch):
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        mode = torch.autograd.detect_anomaly()
    assert not torch.is_anomaly_enabled()
    with mode:
        assert torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()
    assert not torch.is_anomaly_enabled()


def test_switch(torch):
    torch.autograd.set_detect_anomaly(True, check_nan=False)
    assert torch.is_anomaly_enabled() and not torch.is_anomaly_check_nan_enabled()
    with torch.autograd.set_detect_anomaly(False):
        assert not torch.is_anomaly_enabled()
    assert torch.is_anomaly_enabled()
    torch.set_anomaly_enabled(False)
    assert not torch.is_anomaly_enabled()


def test_nan_is_not_looked_for_unless_asked(torch):
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        nan_backward(torch)
    nan_backward(torch)


def test_errors_of_user_functions_warn_with_the_forward_stack(torch):
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            raise RuntimeError("expected")

    with (
        torch.autograd.set_detect_anomaly(True),
        pytest.warns(UserWarning, match="(?s)BadBackward.*Bad.apply"),
        pytest.raises(RuntimeError, match="expected"),
    ):
        Bad.apply(torch.ones(2, requires_grad=True)).sum().backward()


def test_no_stack_is_known_of_what_was_recorded_before(torch):
    x = torch.tensor([-1.0], requires_grad=True)
    y = x.sqrt().sum()
    with (
        torch.autograd.set_detect_anomaly(True),
        pytest.warns(UserWarning, match="(?i)no .*forward"),
        pytest.raises(RuntimeError, match="nan"),
    ):
        y.backward()


def test_second_backward_names_what_induced_it(torch):
    x = torch.zeros(1, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True), warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        y = x.pow(1.5)
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        with pytest.raises(RuntimeError, match="nan"):
            (h,) = torch.autograd.grad(g.sum(), x, create_graph=True)
            torch.autograd.grad(h.sum() * 0, x)
    texts = [str(w.message) for w in seen]
    assert any("Error detected" in t for t in texts) and any("induced" in t for t in texts)


def test_metadata_keeps_the_stack(torch):
    with torch.autograd.set_detect_anomaly(True):
        y = torch.ones(1, requires_grad=True) * 2
    assert "y = torch.ones(1" in "".join(y.grad_fn.metadata["traceback_"])


def test_when_warnings_are_errors_the_failure_is_raised(rl):
    with warnings.catch_warnings(), rl.autograd.set_detect_anomaly(True), pytest.raises(RuntimeError, match="nan"):
        warnings.simplefilter("error")
        nan_backward(rl)


def test_infinite_gradients_are_traced_to_their_maker(rl):
    x = rl.zeros(2, requires_grad=True)
    with warnings.catch_warnings(), rl.autograd.set_detect_anomaly(True), pytest.raises(RuntimeError) as error:
        warnings.simplefilter("ignore")
        x.pow(2).sum().sqrt().backward()
    assert "PowBackward0' returned nan" in str(error.value) and "which SqrtBackward0 made" in str(error.value)


def test_the_first_nan_of_forward_is_named_wherever_it_is_found(rl):
    x = rl.tensor([-1.0, 2.0], requires_grad=True)
    with warnings.catch_warnings(), rl.autograd.set_detect_anomaly(True), pytest.raises(RuntimeError) as error:
        warnings.simplefilter("ignore")
        y = x.log()  # the culprit
        ((y * 3).exp() - 1).pow(2).sum().backward()
    assert "log was the first operation to make a NaN: 1" in str(error.value) and "# the culprit" in str(error.value)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_dtypes(rl, dtype):
    x = rl.tensor([0.0, 1.0], dtype=getattr(rl, dtype), requires_grad=True)
    with warnings.catch_warnings(), rl.autograd.set_detect_anomaly(True), pytest.raises(RuntimeError, match="1 of 2"):
        warnings.simplefilter("ignore")
        (x.reciprocal() * rl.tensor([0.0, 1.0], dtype=x.dtype)).abs().sum().backward()


def test_training_steps_pass(rl):
    nn = rl.nn
    net = nn.Sequential(
        nn.Conv1d(3, 4, 3, padding=1), nn.BatchNorm1d(4), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.GRU(6, 5), Last()
    )
    layer = nn.TransformerEncoderLayer(8, 2, 16)
    optimizer = rl.optim.Adam([*net.parameters(), *layer.parameters()])
    with rl.autograd.set_detect_anomaly(True):
        for _ in range(2):
            optimizer.zero_grad()
            (net(rl.randn(2, 3, 6)).sum() + layer(rl.randn(3, 2, 8)).pow(2).sum()).backward()
            optimizer.step()


def Last():
    import rushlight

    class Last(rushlight.nn.Module):
        def forward(self, x):
            return x[0]

    return Last()


def test_a_write_under_no_grad_is_counted_as_ever(rl):
    x = rl.ones(2, requires_grad=True)
    with warnings.catch_warnings(), rl.autograd.set_detect_anomaly(True):
        warnings.simplefilter("ignore")
        y = x.exp()
        with rl.no_grad():
            y.zero_()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()
