"""Functionals beside PyTorch's where their options matter, and how names are found."""

from __future__ import annotations

import importlib
import itertools
import pathlib
import subprocess
import sys
import warnings

import pytest

torch = pytest.importorskip("torch")

from twins import assert_same, gradients, rl, tensors, to_rushlight  # noqa: E402

F, G = torch.nn.functional, rl.nn.functional
D = torch.float64


def rand(*shape, low=-2.0, high=2.0, dtype=D):
    gen = torch.Generator().manual_seed(sum(shape) + len(shape))
    return (torch.rand(shape, generator=gen, dtype=D) * (high - low) + low).to(dtype).requires_grad_()


def filled(grads, leaves):
    # no gradient and one of zeros say the same
    return [leaf.detach() * 0 if g is None else g for g, leaf in zip(grads, leaves, strict=True)]


def both(name, *args, seed=5, grad=True, tolerance=None, **kwargs):
    """Calls a functional on both sides and compares results and gradients."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(seed)
        want = getattr(F, name)(*args, **kwargs)
        rl.manual_seed(seed)
        mine, mine_kwargs = to_rushlight(list(args)), to_rushlight(kwargs)
        got = getattr(G, name)(*mine, **mine_kwargs)
    where = f"{name}{[tuple(a.shape) if isinstance(a, torch.Tensor) else a for a in args]}{kwargs}"
    assert_same(got, want, where, tolerance=tolerance)
    leaves = [t for t in tensors([list(args), kwargs], torch.Tensor) if t.requires_grad]
    own = [t for t in tensors([mine, mine_kwargs], rl.Tensor) if t.requires_grad]
    if grad and leaves and any(t.requires_grad for t in tensors(want, torch.Tensor)):
        assert_same(
            filled(gradients(got, own, rl, rl.Tensor), own),
            filled(gradients(want, leaves, torch, torch.Tensor), leaves),
            where + " gradients",
            tolerance=tolerance or 1e-8,
        )


REDUCTIONS = ("none", "mean", "sum")


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_losses_of_two_tensors(reduction):
    a, b = rand(3, 4), rand(3, 4, low=-1.0)
    for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
        both(name, a, b, reduction=reduction)
        both(name, a, rand(4), reduction=reduction)
    both("soft_margin_loss", a, b.detach(), reduction=reduction)
    w = rand(3, 4, low=0.1)
    for name in ("mse_loss", "l1_loss", "huber_loss"):
        both(name, a, b, reduction=reduction, weight=w)
    both("smooth_l1_loss", a, b, reduction=reduction, beta=0.0)
    p, t = rand(3, 4, low=0.05, high=0.95), rand(3, 4, low=0.0, high=1.0)
    both("binary_cross_entropy", p, t, reduction=reduction, weight=w.detach())
    both("binary_cross_entropy_with_logits", a, t, reduction=reduction, weight=w.detach(), pos_weight=w.detach())
    for red in {reduction, "batchmean"}:
        both("kl_div", a, t, reduction=red)
        both("kl_div", a, b, reduction=red, log_target=True)
    for log_input, full in itertools.product((True, False), (True, False)):
        both(
            "poisson_nll_loss", rand(3, 4, low=0.1), rand(3, 4, low=0.1, high=5.0), log_input, full, reduction=reduction
        )
    for var in (0.5, rand(3, 4, low=0.1), rand(3, 1, low=0.1), rand(3, low=0.1), rand(3, 4, low=0.0, high=1e-9)):
        both("gaussian_nll_loss", a, b, var, full=True, reduction=reduction)


def test_older_reduction_flags():
    a, b = rand(3), rand(3, low=-1.0)
    for size_average, reduce in itertools.product((None, True, False), (None, True, False)):
        both("mse_loss", a, b, size_average, reduce)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy(reduction, smoothing, weighted):
    w = rand(4, low=0.2).detach() if weighted else None
    for shape in ((5, 4), (5, 4, 3), (2, 4, 3, 2), (4,), (0, 4)):
        logits = rand(*shape)
        target_shape = shape[:1] + shape[2:] if len(shape) > 1 else ()
        target = torch.randint(0, 4, target_shape)
        for ignore in (-100, 1):
            both(
                "cross_entropy", logits, target, w, reduction=reduction, label_smoothing=smoothing, ignore_index=ignore
            )
            if not smoothing:
                both("nll_loss", logits, target, w, reduction=reduction, ignore_index=ignore)
        both(
            "cross_entropy", logits, rand(*shape, low=0.0, high=1.0), w, reduction=reduction, label_smoothing=smoothing
        )
    both("cross_entropy", rand(3, 4), torch.full((3,), -100), w, reduction=reduction, grad=False)
    # an infinity at an ignored position must not reach the loss
    logits = torch.tensor([[0.0, 0, 0, -float("inf")], [1, 2, 3, 4]], dtype=D)
    both("nll_loss", logits, torch.tensor([3, 1]), w, ignore_index=3, reduction=reduction)
    both("cross_entropy", rand(3, 4, dtype=torch.bfloat16), torch.tensor([0, 1, 2]), tolerance=3e-2)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_margin_losses(reduction):
    y = torch.tensor([1.0, -1, 1, -1, 1], dtype=D)
    both("hinge_embedding_loss", rand(5), y, margin=0.7, reduction=reduction)
    both("margin_ranking_loss", rand(5), rand(5, low=-1.0), y, 0.2, reduction=reduction)
    both("cosine_embedding_loss", rand(5, 3), rand(5, 3, low=-1.0), y, 0.1, reduction=reduction)
    both("cosine_embedding_loss", rand(3), rand(3, low=-1.0), torch.tensor(-1.0, dtype=D), 0.1, reduction=reduction)
    t = torch.tensor([0, 3, 2, 2, 1])
    for p in (1, 2):
        both("multi_margin_loss", rand(5, 4), t, p, 0.5, rand(4, low=0.1).detach(), reduction=reduction)
    both("multi_margin_loss", rand(4), torch.tensor(2), reduction=reduction)
    both("multilabel_margin_loss", rand(2, 4), torch.tensor([[3, 0, -1, 1], [-1, 0, 1, 2]]), reduction=reduction)
    both("multilabel_margin_loss", rand(4), torch.tensor([3, 0, -1, 1]), reduction=reduction)
    both(
        "multilabel_soft_margin_loss", rand(3, 4), rand(3, 4, low=0.0, high=1.0), rand(4, low=0.1), reduction=reduction
    )
    for swap, p in itertools.product((False, True), (1.0, 2.0)):
        both(
            "triplet_margin_loss",
            rand(5, 3),
            rand(5, 3, low=-1.0),
            rand(5, 3, low=0.0),
            p=p,
            swap=swap,
            reduction=reduction,
        )
    logs = rand(8, 3, 5).detach().log_softmax(2).requires_grad_()
    targets = torch.tensor([[1, 2, 2, 4], [3, 3, 1, 0], [2, 0, 0, 0]])
    lengths = torch.tensor([8, 7, 4]), torch.tensor([4, 3, 1])
    both("ctc_loss", logs, targets, *lengths, reduction=reduction)
    flat = torch.tensor([1, 2, 2, 4, 3, 3, 1, 2])
    both("ctc_loss", logs, flat, (8, 7, 4), (4, 3, 1), reduction=reduction)
    both("ctc_loss", logs, targets, (3, 3, 4), (4, 3, 0), reduction=reduction, zero_infinity=True)
    both("ctc_loss", logs, targets, (3, 3, 4), (4, 3, 0), reduction=reduction, grad=False)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular", "constant"])
def test_pad(mode):
    for widths, shape in (
        ((1, 2), (2, 5)),
        ((3, 0), (1, 2, 4)),
        ((1, 2, 2, 1), (2, 4, 5)),
        ((0, 2, 2, 0), (2, 3, 4, 5)),
        ((1, 1, 2, 0, 1, 2), (2, 3, 4, 4)),
        ((-1, 2, 1, -1), (2, 3, 5, 5)),
        ((0, 0), (2, 5)),
    ):
        both("pad", rand(*shape), widths, mode=mode)


def test_constant_pad_of_any_dimension_and_dtype():
    both("pad", rand(2, 3, 4), (1, 1, 0, 0, 2, -1), value=1.5)
    both("pad", torch.arange(6).reshape(2, 3), (1, 0, 0, 1), value=7)
    both("pad", torch.ones(2, dtype=torch.bool), (1, 1))
    both("pad", torch.ones(2, dtype=torch.complex128), (1, 1), value=2.0)
    both("pad", torch.ones(0, 2), (1, 1, 1, 1))


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear", "bicubic", "area"])
def test_interpolate(mode):
    for dims in (1, 2, 3):
        if mode == "bicubic" and dims != 2:
            continue
        name = {1: "linear", 2: "bilinear", 3: "trilinear"}[dims] if mode == "linear" else mode
        data = rand(2, 3, *(5, 4, 3)[:dims])
        aligned = (None, True, False) if mode in ("linear", "bicubic") else (None,)
        for align in aligned:
            for kwargs in (
                {"size": (7, 9, 2)[:dims]},
                {"size": (3, 1, 1)[:dims]},
                {"scale_factor": 1.7},
                {"scale_factor": 0.6},
                {"scale_factor": (2.0, 0.5, 1.3)[:dims], "recompute_scale_factor": True},
                {"size": tuple(data.shape[2:])},
            ):
                both("interpolate", data, mode=name, align_corners=align, **kwargs)
    if mode == "bicubic":
        for name, scale in itertools.product(("bilinear", "bicubic"), (0.4, 1.5)):
            both("interpolate", rand(2, 3, 8, 9), scale_factor=scale, mode=name, antialias=True, tolerance=1e-8)


@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample(align, padding):
    for mode in ("bilinear", "nearest", "bicubic"):
        both("grid_sample", rand(2, 3, 4, 5), rand(2, 6, 3, 2, low=-1.6, high=1.6), mode, padding, align)
        if mode != "bicubic":
            both("grid_sample", rand(2, 3, 4, 5, 3), rand(2, 6, 3, 2, 3, low=-1.6, high=1.6), mode, padding, align)
    both("affine_grid", rand(2, 2, 3), (2, 3, 4, 5), align)
    both("affine_grid", rand(2, 3, 4), (2, 3, 4, 1, 2), align)


def test_windows():
    for kw in ({}, {"padding": 1}, {"stride": 2, "dilation": 2}, {"padding": (1, 0), "stride": (1, 2)}):
        both("unfold", rand(2, 3, 6, 7), (2, 3), **kw)
    both("unfold", rand(3, 6, 7), 2)
    both("fold", rand(2, 12, 12), (4, 5), (2, 2))
    both("fold", rand(12, 6), (4, 5), 2, padding=0, dilation=1, stride=(2, 1) if False else (1, 2))


def test_attention():
    q, k, v = rand(2, 3, 4, 8), rand(2, 3, 5, 8), rand(2, 3, 5, 6)
    both("scaled_dot_product_attention", q, k, v)
    both("scaled_dot_product_attention", q, k, v, is_causal=True)
    both("scaled_dot_product_attention", q, k, v, scale=0.3)
    both("scaled_dot_product_attention", q, k, v, rand(4, 5))
    both("scaled_dot_product_attention", q, k, v, rand(4, 5).detach() > 0)
    both("scaled_dot_product_attention", rand(2, 6, 4, 8), rand(2, 3, 5, 8), rand(2, 3, 5, 8), enable_gqa=True)


def test_norms_and_distances():
    data = rand(3, 4, 5)
    for p, dim in itertools.product((1, 2, 3.5, float("inf")), (0, 1, -1, (0, 2))):
        both("normalize", data, p, dim)
    both("cosine_similarity", data, rand(1, 4, 5), dim=-1)
    both("cosine_similarity", torch.zeros(2, 3, dtype=D), rand(2, 3), grad=False)
    both("pairwise_distance", data, rand(4, 5), p=1.0, keepdim=True)
    both("local_response_norm", data, 2)
    both("group_norm", data, 2, rand(4), rand(4, low=-1.0))
    both("layer_norm", data, (4, 5), rand(4, 5), rand(4, 5, low=-1.0))
    both("rms_norm", data, (5,), rand(5))
    for dtype, tol in ((torch.float16, 3e-3), (torch.bfloat16, 3e-2)):
        both("layer_norm", rand(3, 4, dtype=dtype), (4,), tolerance=tol)
        both("rms_norm", rand(3, 4, dtype=dtype), (4,), tolerance=tol)


def test_random_functionals_draw_the_same():
    for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"):
        shape = {"dropout1d": (3, 4, 5), "dropout3d": (2, 3, 4, 5, 2)}.get(name, (3, 4, 5, 2))
        both(name, rand(*shape, dtype=torch.float32), 0.3, True)
        both(name, rand(*shape), 0.0, True)
        both(name, rand(*shape), 1.0, True)
        both(name, rand(*shape), 0.5, False)
    both("dropout3d", rand(3, 4, 5, 2), 0.4)
    both("rrelu", rand(3, 4), training=True)
    both("gumbel_softmax", rand(3, 4), tau=0.7)
    both("gumbel_softmax", rand(3, 4), hard=True)
    both("fractional_max_pool2d", rand(2, 3, 7, 8), 2, output_ratio=(0.5, 0.6), return_indices=True)
    both("fractional_max_pool3d", rand(3, 7, 8, 6), (2, 3, 2), output_size=(3, 2, 3))
    both("one_hot", torch.tensor([[0, 2], [1, 1]]), grad=False)
    both("one_hot", torch.tensor([0, 2]), 5, grad=False)


def test_in_place_forms():
    for name, args in (("relu", ()), ("elu", (0.5,)), ("leaky_relu", (0.2,)), ("hardtanh", (-1.0, 0.5)), ("silu", ())):
        data = rand(3, 4).detach()
        mine = to_rushlight(data)
        want = getattr(F, name)(data, *args, inplace=True)
        got = getattr(G, name)(mine, *args, inplace=True)
        assert got is mine
        assert_same(mine, want)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda f, t: f.dropout(t.ones(2), 1.5), ValueError),
        (lambda f, t: f.dropout1d(t.ones(2)), RuntimeError),
        (lambda f, t: f.mse_loss(t.ones(2), t.ones(3)), RuntimeError),
        (lambda f, t: f.mse_loss(t.ones(2), t.ones(2), reduction="max"), ValueError),
        (lambda f, t: f.smooth_l1_loss(t.ones(2), t.ones(2), beta=-1.0), RuntimeError),
        (lambda f, t: f.huber_loss(t.ones(2), t.ones(2), delta=0.0), RuntimeError),
        (lambda f, t: f.pad(t.ones(2), (1,)), RuntimeError),
        (lambda f, t: f.pad(t.ones(2), (1, 1, 1, 1)), RuntimeError),
        (lambda f, t: f.pad(t.ones(2), (-3, 0)), RuntimeError),
        (lambda f, t: f.pad(t.ones(2, 3), (1, 1), mode="mirror"), NotImplementedError),
        (lambda f, t: f.pad(t.ones(2), (1, 1), mode="reflect"), NotImplementedError),
        (lambda f, t: f.interpolate(t.ones(1, 1, 4)), ValueError),
        (lambda f, t: f.interpolate(t.ones(1, 1, 4), size=3, scale_factor=2), ValueError),
        (lambda f, t: f.interpolate(t.ones(1, 1, 4), size=(3, 3)), ValueError),
        (lambda f, t: f.interpolate(t.ones(1, 1, 4), size=3, align_corners=True), ValueError),
        (lambda f, t: f.interpolate(t.ones(1, 1, 4), size=3, mode="cubic"), NotImplementedError),
        (lambda f, t: f.grid_sample(t.ones(1, 1, 2, 2), t.ones(1, 2, 2, 2), mode="linear"), ValueError),
        (lambda f, t: f.one_hot(t.tensor([3]), 2), RuntimeError),
        (lambda f, t: f.one_hot(t.tensor([-1])), RuntimeError),
        (lambda f, t: f.one_hot(t.tensor([0.5])), RuntimeError),
        (lambda f, t: f.glu(t.ones(3)), RuntimeError),
        (lambda f, t: f.normalize(t.ones(3), dim=4), IndexError),
        (lambda f, t: f.embedding_bag(t.tensor([1]), t.ones(3, 2)), ValueError),
        (lambda f, t: f.embedding_bag(t.tensor([1]), t.ones(3, 2), t.tensor([1])), RuntimeError),
        (lambda f, t: f.local_response_norm(t.ones(2, 2), 2), ValueError),
        (lambda f, t: f.unfold(t.ones(1, 1, 2, 2), 3), RuntimeError),
        (lambda f, t: f.ctc_loss(t.ones(2, 1, 3), t.tensor([[1]]), (3,), (1,)), RuntimeError),
        (lambda f, t: f.layer_norm(t.ones(2, 3), (4,)), RuntimeError),
        (lambda f, t: f.batch_norm(t.ones(2, 3), None, None), RuntimeError),
        (lambda f, t: f.no_such_name, AttributeError),
    ],
)
@pytest.mark.parametrize("side", ["rushlight", "torch"])
@pytest.mark.filterwarnings("ignore")
def test_bad_input(call, error, side):
    args = (F, torch) if side == "torch" else (G, rl)
    with pytest.raises(error):
        call(*args)


# ---------------------------------------------------------------- names and imports


@pytest.mark.parametrize("package", ["nn.functional", "nn.modules", "nn.utils"])
def test_lazy_names_are_those_of_the_files(package):
    module = importlib.import_module("rushlight." + package)
    for file, names in module._FILES.items():
        loaded = importlib.import_module(f"rushlight.{package}.{file}")
        listed = set(names.split())
        assert listed <= set(loaded.__all__), file
        if package == "nn.utils":
            # helper classes stay in their files
            continue
        assert listed == set(loaded.__all__), file
    files = {f.stem for f in pathlib.Path(module.__file__).parent.glob("*.py")}
    unlisted = files - set(module._FILES) - {"__init__"}
    assert unlisted <= {
        "_base",
        "_hooks",
        "_ops",
        "_state",
        "lazy",
        "module",
        "utils",
        *getattr(module, "_SUBMODULES", ()),
    }


def test_every_public_name_can_be_had():
    for module in (rl.nn, rl.nn.functional, rl.nn.modules, rl.nn.utils, rl.optim, rl.utils.data):
        for name in module.__all__:
            assert getattr(module, name) is not None, name
            assert name in dir(module)
        with pytest.raises(AttributeError):
            module.no_such_name


def test_functionals_of_pytorch_are_there():
    missing = [
        n
        for n, f in vars(F).items()
        if callable(f)
        and not isinstance(f, type)
        and not n.startswith("_")
        and getattr(f, "__module__", "") in ("torch.nn.functional", "torch._C._nn")
        if not hasattr(G, n)
    ]
    # products of scaled low-precision formats are out of scope
    assert set(missing) <= {"assert_int_or_pair", "grouped_mm", "scaled_grouped_mm", "scaled_mm"}


def test_hot_functionals_are_the_operations_themselves():
    if rl.Tensor is torch.Tensor:
        pytest.skip("needs the extension")
    plain = type(G.linear)
    assert plain.__module__ != "builtins"
    for name in ("linear", "conv2d"):
        assert type(getattr(G, name)) is plain


def test_multilabel_soft_margin_loss_takes_the_classes_of_the_input():
    for shapes in (((2, 3), (4, 2, 3)), ((2, 3), (3,)), ((3,), (2, 3)), ((4,), (4, 4))):
        input, target = (torch.rand(shape) for shape in shapes)
        for reduction in ("none", "mean"):
            theirs = torch.nn.functional.multilabel_soft_margin_loss(input, target, reduction=reduction)
            ours = rl.nn.functional.multilabel_soft_margin_loss(
                to_rushlight(input), to_rushlight(target), reduction=reduction
            )
            assert_same(ours, theirs)


def test_import_is_light():
    code = (
        "import sys, rushlight, rushlight.nn, rushlight.optim\n"
        "heavy = {'numpy', 'inspect', 'dataclasses', 'typing', 'rushlight.autograd.gradcheck', "
        "'rushlight.nn.modules.rnn',\n"
        "         'rushlight.nn.modules.transformer', 'rushlight.optim.lr_scheduler', 'rushlight.optim.adam'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    if rl.Tensor is torch.Tensor:
        pytest.skip("needs the extension")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
