"""Learning rate schedules: the rates of PyTorch's, state and errors."""

from __future__ import annotations

import importlib
import warnings

import pytest

torch = pytest.importorskip("torch")
rl = importlib.import_module("rushlight")

SIDES = pytest.mark.parametrize("side", [torch, rl], ids=["torch", "rushlight"])


def optimizer_of(side, groups=2, name="SGD"):
    params = [side.nn.Parameter(side.ones(1)) for _ in range(groups)]
    kwargs = {"momentum": 0.9} if name == "SGD" else {}
    return getattr(side.optim, name)(
        [{"params": [p], "lr": 0.1 * (i + 1)} for i, p in enumerate(params)], lr=0.1, **kwargs
    )


CASES = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, lambda e: 0.9**e),
    "LambdaLR list": lambda s, o: s.LambdaLR(o, [lambda e: 1 / (e + 1), lambda e: 0.5**e]),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda e: 0.9 + 0.01 * e),
    "StepLR": lambda s, o: s.StepLR(o, 3, 0.5),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [2, 5, 5, 9], 0.3),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.5, 4),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.1, 0.8, 6),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.9),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 7, 2.0),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 5, 0.01),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.001),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.01, 0.2, 3, 2),
    "CyclicLR triangular2": lambda s, o: s.CyclicLR(o, 0.01, [0.2, 0.3], 3, mode="triangular2", cycle_momentum=False),
    "CyclicLR exp_range": lambda s, o: s.CyclicLR(o, 0.01, 0.2, 3, mode="exp_range", gamma=0.9),
    "CyclicLR scale_fn": lambda s, o: s.CyclicLR(o, 0.01, 0.2, 3, scale_fn=lambda x: 0.5**x, scale_mode="iterations"),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, 0.5, total_steps=20),
    "OneCycleLR linear": lambda s, o: s.OneCycleLR(
        o, [0.5, 0.3], epochs=4, steps_per_epoch=5, anneal_strategy="linear"
    ),
    "OneCycleLR three": lambda s, o: s.OneCycleLR(o, 0.5, total_steps=20, three_phase=True, pct_start=0.2),
    "SequentialLR": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.2, total_iters=4), s.CosineAnnealingLR(o, 8), s.StepLR(o, 2, 0.5)], [4, 9]
    ),
    "nested SequentialLR": lambda s, o: s.SequentialLR(
        o, [s.SequentialLR(o, [s.ConstantLR(o), s.ExponentialLR(o, 0.9)], [3]), s.StepLR(o, 2)], [6]
    ),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 4), s.ExponentialLR(o, 0.9)]),
}


def run(side, make, count=15, name="SGD"):
    optimizer = optimizer_of(side, name=name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a nested sequence makes its first step twice
        schedule = make(side.optim.lr_scheduler, optimizer)
    seen = []
    for _ in range(count):
        momentum = [g.get("momentum", g.get("betas")) for g in optimizer.param_groups]
        seen.append(
            [[float(g["lr"]) for g in optimizer.param_groups], momentum, [float(v) for v in schedule.get_last_lr()]]
        )
        optimizer.step()
        schedule.step()
    return seen, schedule, optimizer


@pytest.mark.parametrize("name", CASES)
def test_same_rates(name):
    want, reference, _ = run(torch, CASES[name])
    got, schedule, _ = run(rl, CASES[name])
    for g, w in zip(got, want, strict=True):
        assert g[0] == pytest.approx(w[0], rel=1e-12)
        assert g[1] == pytest.approx(w[1], rel=1e-12)
        assert g[2] == pytest.approx(w[2], rel=1e-12)
    assert set(schedule.state_dict()) == set(reference.state_dict())


@pytest.mark.parametrize("name", ["CyclicLR", "OneCycleLR"])
def test_momentum_of_adam(name):
    want, _, _ = run(torch, CASES[name], name="Adam")
    got, _, _ = run(rl, CASES[name], name="Adam")
    for g, w in zip(got, want, strict=True):
        assert g[0] == pytest.approx(w[0], rel=1e-12)
        assert [list(b) for b in g[1]] == [pytest.approx(list(b), rel=1e-12) for b in w[1]]


@pytest.mark.parametrize("name", CASES)
def test_resuming_equals_going_on(name):
    straight, _, _ = run(rl, CASES[name], 12)
    _, schedule, optimizer = run(rl, CASES[name], 5)
    saved, groups = schedule.state_dict(), [dict(g) for g in optimizer.state_dict()["param_groups"]]
    other = optimizer_of(rl)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        resumed = CASES[name](rl.optim.lr_scheduler, other)
    other.load_state_dict({"state": {}, "param_groups": groups})
    resumed.load_state_dict(saved)
    rates = []
    for _ in range(7):
        rates.append([float(g["lr"]) for g in other.param_groups])
        other.step()
        resumed.step()
    assert rates == [r[0] for r in straight[5:]]


METRICS = [1.0, 0.9, 0.8, 0.8, 0.8, 0.8, 0.8, 0.7, 0.71, 0.72, 0.73, 0.74, 0.6, 0.6, 0.6, 0.6, 0.6]


@pytest.mark.parametrize(
    "kwargs",
    [
        {"patience": 2},
        {
            "mode": "max",
            "patience": 1,
            "threshold": 0.05,
            "threshold_mode": "abs",
            "cooldown": 2,
            "min_lr": [0.01, 0.02],
        },
        {"patience": 0, "factor": 0.5, "threshold_mode": "abs"},
    ],
)
def test_plateau(kwargs):
    out = []
    for side in (torch, rl):
        optimizer = optimizer_of(side)
        schedule = side.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **kwargs)
        rates = []
        for m in METRICS:
            schedule.step(side.tensor(m) if m < 0.7 else m)
            rates.append([float(g["lr"]) for g in optimizer.param_groups])
        out.append((rates, sorted(schedule.state_dict()), schedule.get_last_lr()))
    assert out[0] == out[1]


def test_swa():
    out = []
    for side in (torch, rl):
        optimizer = optimizer_of(side)
        schedule = side.optim.swa_utils.SWALR(optimizer, [0.05, 0.01], anneal_epochs=4)
        rates = []
        for _ in range(8):
            optimizer.step()
            schedule.step()
            rates.append([float(g["lr"]) for g in optimizer.param_groups])
        out.append(rates)
    assert out[1] == [pytest.approx(r) for r in out[0]]


@SIDES
def test_averaged_model(side):
    swa = side.optim.swa_utils
    m = side.nn.Sequential(side.nn.Linear(2, 2), side.nn.BatchNorm1d(2))
    average = swa.AveragedModel(m)
    ema = swa.AveragedModel(m, multi_avg_fn=swa.get_ema_multi_avg_fn(0.5), use_buffers=True)
    with side.no_grad():
        for value in (1.0, 2.0, 6.0):
            m[0].weight.fill_(value)
            average.update_parameters(m)
            ema.update_parameters(m)
    assert average.module[0].weight.tolist() == [[3, 3], [3, 3]]
    assert ema.module[0].weight.tolist() == [[3.75] * 2] * 2
    assert average.n_averaged.item() == 3
    assert tuple(average(side.ones(3, 2)).shape) == (3, 2)
    assert "n_averaged" in average.state_dict()
    data = [side.arange(6.0).reshape(3, 2), side.ones(3, 2)]
    swa.update_bn(data, average)
    assert average.module[1].num_batches_tracked.item() == 2
    assert average.module[1].momentum == 0.1


@SIDES
def test_tensor_rates_keep_their_identity(side):
    p = side.nn.Parameter(side.ones(1))
    lr = side.tensor(0.4)
    optimizer = side.optim.SGD([p], lr=lr)
    schedule = side.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    optimizer.step()
    schedule.step()
    assert optimizer.param_groups[0]["lr"] is lr
    assert lr.item() == pytest.approx(0.2)


@SIDES
def test_order_of_steps(side):
    optimizer = optimizer_of(side)
    schedule = side.optim.lr_scheduler.StepLR(optimizer, 1)
    with pytest.warns(UserWarning, match=r"optimizer.step"):
        schedule.step()
    optimizer = optimizer_of(side)
    schedule = side.optim.lr_scheduler.StepLR(optimizer, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.step()
        schedule.step()
    with pytest.warns(UserWarning, match="get_last_lr"):
        schedule.get_lr()
    with pytest.warns(UserWarning, match="deprecat"):
        schedule.step(3)


def test_a_schedule_costs_the_optimizer_nothing():
    optimizer = optimizer_of(rl)
    rl.optim.lr_scheduler.StepLR(optimizer, 1)
    optimizer.step()
    assert "step" not in optimizer.__dict__


def test_starting_later():
    for name, make in (
        ("StepLR", lambda s, o: s.StepLR(o, 3, 0.5, last_epoch=4)),
        ("CosineAnnealingLR", lambda s, o: s.CosineAnnealingLR(o, 5, last_epoch=4)),
        ("ExponentialLR", lambda s, o: s.ExponentialLR(o, 0.9, last_epoch=4)),
        ("LinearLR", lambda s, o: s.LinearLR(o, 0.1, total_iters=8, last_epoch=4)),
        ("MultiplicativeLR", lambda s, o: s.MultiplicativeLR(o, lambda e: 0.9, last_epoch=4)),
        ("PolynomialLR", lambda s, o: s.PolynomialLR(o, 9, last_epoch=4)),
        ("ConstantLR", lambda s, o: s.ConstantLR(o, 0.5, 6, last_epoch=4)),
        ("MultiStepLR", lambda s, o: s.MultiStepLR(o, [2, 5, 7], last_epoch=4)),
    ):
        out = []
        for side in (torch, rl):
            optimizer = optimizer_of(side)
            for g in optimizer.param_groups:
                g["initial_lr"] = 1.0
            schedule = make(side.optim.lr_scheduler, optimizer)
            rates = []
            for _ in range(6):
                rates.append([float(g["lr"]) for g in optimizer.param_groups])
                optimizer.step()
                schedule.step()
            out.append(rates)
        assert out[1] == [pytest.approx(r, rel=1e-12) for r in out[0]], name


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda s, o: s.StepLR(3, 1), (TypeError, AttributeError)),
        (lambda s, o: s.StepLR(o, 1, last_epoch=3), KeyError),
        (lambda s, o: s.LambdaLR(o, [lambda e: 1]), ValueError),
        (lambda s, o: s.ConstantLR(o, 2.0), ValueError),
        (lambda s, o: s.LinearLR(o, 0.0), ValueError),
        (lambda s, o: s.LinearLR(o, 0.5, 1.5), ValueError),
        (lambda s, o: s.SequentialLR(o, [s.StepLR(o, 1)], [3]), ValueError),
        (lambda s, o: s.SequentialLR(o, [], []), ValueError),
        (lambda s, o: s.ChainedScheduler([]), ValueError),
        (lambda s, o: s.ReduceLROnPlateau(o, factor=1.0), ValueError),
        (lambda s, o: s.ReduceLROnPlateau(o, mode="least"), ValueError),
        (lambda s, o: s.ReduceLROnPlateau(o, threshold_mode="any"), ValueError),
        (lambda s, o: s.ReduceLROnPlateau(o, min_lr=[0.1]), ValueError),
        (lambda s, o: s.CyclicLR(o, 0.1, 0.2, mode="square"), ValueError),
        (lambda s, o: s.CyclicLR(o, [0.1], 0.2), ValueError),
        (lambda s, o: s.CosineAnnealingWarmRestarts(o, 0), ValueError),
        (lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 0), ValueError),
        (lambda s, o: s.OneCycleLR(o, 0.1), ValueError),
        (lambda s, o: s.OneCycleLR(o, 0.1, total_steps=0), ValueError),
        (lambda s, o: s.OneCycleLR(o, 0.1, total_steps=5, pct_start=2.0), ValueError),
        (lambda s, o: s.OneCycleLR(o, 0.1, total_steps=5, anneal_strategy="step"), ValueError),
    ],
)
@SIDES
def test_bad_settings(side, make, error):
    with pytest.raises(error):
        make(side.optim.lr_scheduler, optimizer_of(side))


@SIDES
def test_too_many_steps(side):
    optimizer = optimizer_of(side)
    schedule = side.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=2)

    def run():
        for _ in range(4):
            optimizer.step()
            schedule.step()

    with pytest.raises(ValueError):
        run()
