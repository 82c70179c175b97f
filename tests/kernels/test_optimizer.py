"""Optimizer steps and gradient clipping against PyTorch."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("torch")

from kernel_ctypes import Descriptor, KernelError, call, ctypes, describe, torch, with_threads

torch.set_num_threads(1)

SHAPES = [(), (3,), (4, 5), (2, 3, 4), (0, 3), (30, 50)]


class Slots:
    """Parameters and gradients for PyTorch and for us, with named state of ours."""

    def __init__(self, dtype, names, start=0.0, layout=None):
        torch.manual_seed(0)
        arrange = layout or (lambda t: t)
        self.theirs = [torch.nn.Parameter(torch.randn(s, dtype=dtype)) for s in SHAPES]
        self.ours = [arrange(p.detach().clone()) for p in self.theirs]
        self.state = {n: [arrange(torch.full_like(p, start)) for p in self.ours] for n in names}
        self.steps = [torch.zeros(()) for _ in SHAPES]
        self.arrange = arrange

    def gradients(self, seed):
        generator = torch.Generator().manual_seed(seed)
        grads = [torch.randn(p.shape, generator=generator, dtype=torch.float64).to(p.dtype) for p in self.theirs]
        for p, g in zip(self.theirs, grads, strict=True):
            p.grad = g.clone()
        self.theirs[2].grad = None
        ours: list[torch.Tensor | None] = [self.arrange(g.clone()) for g in grads]
        ours[2] = None
        return ours

    def check(self, optimizer, keys, tolerance):
        for i, (a, b) in enumerate(zip(self.ours, self.theirs, strict=True)):
            torch.testing.assert_close(a, b.detach().to(a.dtype), **tolerance)
            if i == 2 or b not in optimizer.state:
                continue
            for ours, key in keys.items():
                mine = self.state[ours][i]
                torch.testing.assert_close(mine, optimizer.state[b][key].to(mine.dtype), **tolerance)
            if "step" in optimizer.state[b]:
                assert self.steps[i].item() == optimizer.state[b]["step"].item()


def arrays(tensors):
    """An array of descriptor pointers, NULL for None."""
    items = [None if t is None else describe(t) for t in tensors]
    array = (ctypes.POINTER(Descriptor) * len(items))(*[None if i is None else ctypes.pointer(i) for i in items])
    array.kept = items
    return array


def step(name, *args):
    call(name, len(SHAPES), *[arrays(a) if isinstance(a, list) else a for a in args])


TOLERANCE = {
    torch.float32: {"rtol": 1e-6, "atol": 2e-6},
    torch.float64: {"rtol": 1e-14, "atol": 1e-15},
    torch.bfloat16: {"rtol": 8e-3, "atol": 1e-6},
    torch.float16: {"rtol": 1e-3, "atol": 1e-6},
    torch.complex64: {"rtol": 1e-5, "atol": 1e-6},
}
DTYPES = list(TOLERANCE)
LAYOUTS = {
    "dense": None,
    "transposed": lambda t: t.t().contiguous().t() if t.dim() == 2 else t,
    "spaced": lambda t: torch.stack([t, t], -1)[..., 0],
}


def compare(dtype, names, optimizer_type, options, ours, keys, layout=None, steps=7, start=0.0):
    slots = Slots(dtype, names, start, layout)
    narrow = dtype in (torch.float16, torch.bfloat16)
    if narrow:  # our steps are those of float32, rounded once at the end
        slots.theirs = [torch.nn.Parameter(p.detach().float()) for p in slots.theirs]
    optimizer = optimizer_type(slots.theirs, foreach=False, **options)
    for i in range(steps):
        grads = slots.gradients(i)
        if narrow:
            for p, g in zip(slots.theirs, grads, strict=True):
                p.grad = None if g is None else g.to(dtype).float()
            grads = [None if g is None else g.to(dtype) for g in grads]
        optimizer.step()
        ours(slots, grads, i)
        slots.check(optimizer, keys, TOLERANCE[dtype])
        for k, p in enumerate(slots.theirs if narrow else []):
            p.data.copy_(slots.ours[k])
            for name, key in keys.items():
                if p in optimizer.state:
                    optimizer.state[p][key].copy_(slots.state[name][k])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize(
    "momentum, dampening, nesterov", [(0.0, 0.0, False), (0.9, 0.0, False), (0.9, 0.0, True), (0.8, 0.3, False)]
)
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_sgd(momentum, dampening, nesterov, weight_decay, maximize, dtype):
    def ours(s, grads, i):
        buffers = s.state["momentum"] if momentum else None
        step(
            "sgd_step", s.ours, grads, buffers, 0.1, momentum, dampening if i else 0.0, weight_decay, nesterov, maximize
        )

    options = {
        "lr": 0.1,
        "momentum": momentum,
        "dampening": dampening,
        "weight_decay": weight_decay,
        "nesterov": nesterov,
        "maximize": maximize,
    }
    keys = {"momentum": "momentum_buffer"} if momentum else {}
    for layout in LAYOUTS.values() if weight_decay else [None]:
        compare(dtype, ["momentum"], torch.optim.SGD, options, ours, keys, layout)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW])
@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize(
    "weight_decay, maximize, betas", [(0.0, False, (0.9, 0.999)), (0.1, True, (0.9, 0.999)), (0.1, False, (0.3, 0.5))]
)
def test_adam(kind, amsgrad, weight_decay, maximize, betas, dtype):
    if dtype == torch.float16:
        eps = 1e-4
    else:
        eps = 1e-8

    def ours(s, grads, i):
        largest = s.state["largest"] if amsgrad else None
        step(
            "adam_step",
            s.ours,
            grads,
            s.state["mean"],
            s.state["square"],
            largest,
            s.steps,
            1e-2,
            *betas,
            eps,
            weight_decay,
            maximize,
            kind is torch.optim.AdamW,
        )

    keys = {"mean": "exp_avg", "square": "exp_avg_sq", **({"largest": "max_exp_avg_sq"} if amsgrad else {})}
    options = {
        "lr": 1e-2,
        "betas": betas,
        "eps": eps,
        "weight_decay": weight_decay,
        "maximize": maximize,
        "amsgrad": amsgrad,
    }
    for layout in LAYOUTS.values() if maximize else [None]:
        compare(dtype, ["mean", "square", "largest"], kind, options, ours, keys, layout)


REAL = [torch.float32, torch.float64]


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("weight_decay, maximize", [(0.0, False), (0.1, True)])
class TestOthers:
    def test_adagrad(self, weight_decay, maximize, dtype):
        def ours(s, grads, i):
            step("adagrad_step", s.ours, grads, s.state["sum"], s.steps, 0.1, 0.01, weight_decay, 1e-10, maximize)

        options = {
            "lr": 0.1,
            "lr_decay": 0.01,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "initial_accumulator_value": 0.2,
        }
        compare(dtype, ["sum"], torch.optim.Adagrad, options, ours, {"sum": "sum"}, start=0.2)

    @pytest.mark.parametrize("momentum", [0.0, 0.9])
    @pytest.mark.parametrize("centered", [False, True])
    def test_rmsprop(self, centered, momentum, weight_decay, maximize, dtype):
        def ours(s, grads, i):
            step(
                "rmsprop_step",
                s.ours,
                grads,
                s.state["square"],
                s.state["average"] if centered else None,
                s.state["buffer"] if momentum else None,
                s.steps,
                0.01,
                0.9,
                1e-8,
                weight_decay,
                momentum,
                maximize,
            )

        keys = {
            "square": "square_avg",
            **({"average": "grad_avg"} if centered else {}),
            **({"buffer": "momentum_buffer"} if momentum else {}),
        }
        options = {
            "lr": 0.01,
            "alpha": 0.9,
            "momentum": momentum,
            "centered": centered,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        compare(dtype, ["square", "average", "buffer"], torch.optim.RMSprop, options, ours, keys)

    def test_adadelta(self, weight_decay, maximize, dtype):
        def ours(s, grads, i):
            step(
                "adadelta_step",
                s.ours,
                grads,
                s.state["square"],
                s.state["delta"],
                s.steps,
                1.0,
                0.9,
                1e-6,
                weight_decay,
                maximize,
            )

        options = {"weight_decay": weight_decay, "maximize": maximize}
        compare(
            dtype,
            ["square", "delta"],
            torch.optim.Adadelta,
            options,
            ours,
            {"square": "square_avg", "delta": "acc_delta"},
        )

    def test_adamax(self, weight_decay, maximize, dtype):
        def ours(s, grads, i):
            step(
                "adamax_step",
                s.ours,
                grads,
                s.state["mean"],
                s.state["infinity"],
                s.steps,
                2e-3,
                0.9,
                0.999,
                1e-8,
                weight_decay,
                maximize,
            )

        options = {"weight_decay": weight_decay, "maximize": maximize}
        compare(
            dtype, ["mean", "infinity"], torch.optim.Adamax, options, ours, {"mean": "exp_avg", "infinity": "exp_inf"}
        )

    @pytest.mark.parametrize("decoupled", [False, True])
    def test_nadam(self, decoupled, weight_decay, maximize, dtype):
        products = [torch.ones(()) for _ in SHAPES]

        def ours(s, grads, i):
            step(
                "nadam_step",
                s.ours,
                grads,
                s.state["mean"],
                s.state["square"],
                products,
                s.steps,
                2e-3,
                0.9,
                0.999,
                1e-8,
                weight_decay,
                4e-3,
                maximize,
                decoupled,
            )

        options = {"weight_decay": weight_decay, "maximize": maximize, "decoupled_weight_decay": decoupled}
        compare(
            dtype, ["mean", "square"], torch.optim.NAdam, options, ours, {"mean": "exp_avg", "square": "exp_avg_sq"}
        )

    @pytest.mark.parametrize("decoupled", [False, True])
    def test_radam(self, decoupled, weight_decay, maximize, dtype):
        def ours(s, grads, i):
            step(
                "radam_step",
                s.ours,
                grads,
                s.state["mean"],
                s.state["square"],
                s.steps,
                1e-3,
                0.9,
                0.999,
                1e-8,
                weight_decay,
                maximize,
                decoupled,
            )

        options = {"weight_decay": weight_decay, "maximize": maximize, "decoupled_weight_decay": decoupled}
        compare(
            dtype, ["mean", "square"], torch.optim.RAdam, options, ours, {"mean": "exp_avg", "square": "exp_avg_sq"}
        )


def total_norm(tensors, p):
    out = ctypes.c_double(-1)
    call("total_norm", len(tensors), arrays(tensors), p, ctypes.byref(out))
    return out.value


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.complex64])
def test_clipping(dtype):
    torch.manual_seed(3)
    for p in (1.0, 2.0, 3.0, math.inf):
        for max_norm in (0.5, 1e4):
            # PyTorch has no infinity norm with an empty tensor among them
            params = [torch.nn.Parameter(torch.zeros(s, dtype=dtype)) for s in SHAPES if 0 not in s or p < math.inf]
            for q in params:
                q.grad = torch.randn_like(q)
            grads = [torch.stack([q.grad, q.grad], -1)[..., 0] for q in params]
            expected = torch.nn.utils.clip_grad_norm_(params, max_norm, p).item()
            norm = ctypes.c_double()
            call("clip_grad_norm", len(grads), arrays(grads), max_norm, p, ctypes.byref(norm))
            assert norm.value == pytest.approx(expected, rel=1e-2 if dtype == torch.bfloat16 else 1e-5)
            for g, q in zip(grads, params, strict=True):
                torch.testing.assert_close(g, q.grad, rtol=2e-2 if dtype == torch.bfloat16 else 1e-5, atol=1e-6)


def test_norms_do_not_overflow():
    assert total_norm([torch.tensor([3e30]), None, torch.tensor([4e30, 0])], 2.0) == pytest.approx(5e30, rel=1e-6)
    wide = [torch.tensor([3e300], dtype=torch.float64), torch.tensor([4e300], dtype=torch.float64)]
    assert total_norm(wide, 2.0) == pytest.approx(5e300)
    assert total_norm([], 2.0) == 0
    assert math.isnan(total_norm([torch.tensor([math.nan])], 2.0))
    grads = [torch.tensor([3e30]), torch.tensor([4e30])]
    call("clip_grad_norm", 2, arrays(grads), 1.0, 2.0, None)
    torch.testing.assert_close(torch.cat(grads), torch.tensor([0.6, 0.8]))


def test_zero_and_scale():
    tensors = [
        torch.randn(3, 4),
        torch.randn(5, 6).t(),
        torch.randn(8)[::2],
        torch.ones(3, dtype=torch.int64),
        torch.zeros(0),
    ]
    call("zero_tensors", len(tensors), arrays(tensors))
    assert all((t == 0).all() for t in tensors)
    t = torch.ones(4)
    call("scale_tensors", 2, arrays([None, t]), 0.25)
    assert t.tolist() == [0.25] * 4


def test_bits_do_not_depend_on_threads():
    def run():
        torch.manual_seed(0)
        params = [torch.randn(n) for n in (5, 100000, 300, 70000, 1)]
        grads = [torch.randn(p.shape) for p in params]
        state = [[torch.zeros_like(p) for p in params] for _ in range(2)]
        steps = [torch.zeros(()) for _ in params]
        for _ in range(3):
            call(
                "adam_step",
                5,
                *map(arrays, (params, grads, *state)),
                None,
                arrays(steps),
                1e-3,
                0.9,
                0.999,
                1e-8,
                0.1,
                False,
                True,
            )
        norm = ctypes.c_double()
        call("clip_grad_norm", 5, arrays(grads), 1.0, 2.0, ctypes.byref(norm))
        return [*params, *grads, torch.tensor(norm.value, dtype=torch.float64)]

    first, *others = [with_threads(n, run) for n in (1, 2, 4)]
    for other in others:
        for a, b in zip(first, other, strict=True):
            assert torch.equal(a, b)


def test_refuses():
    p, g = torch.zeros(3), torch.zeros(3)
    for args, kind, text in (
        (([p], [torch.zeros(4)], None, 0.1, 0.0, 0.0, 0.0, False, False), ValueError, r"expected \[3\], got \[4\]"),
        (([p.long()], [g], None, 0.1, 0.0, 0.0, 0.0, False, False), TypeError, "expected floating point, got int64"),
        (
            ([p.to(torch.complex64)], [g], None, 0.1, 0.0, 0.0, 0.0, False, False),
            TypeError,
            "expected complex64, got float32",
        ),
        (([p], [g], None, 0.1, 0.9, 0.0, 0.0, False, False), ValueError, "momentum needs its buffers"),
    ):
        with pytest.raises(KernelError, match=text) as error:
            call("sgd_step", 1, *[arrays(a) if isinstance(a, list) else a for a in args])
        assert error.value.kind is kind
    steps = [torch.zeros(())]
    with pytest.raises(KernelError, match=r"got \[4\]"):
        call(
            "adam_step",
            1,
            arrays([p]),
            arrays([g]),
            arrays([torch.zeros(4)]),
            arrays([g]),
            None,
            arrays(steps),
            0.1,
            0.9,
            0.99,
            1e-8,
            0.0,
            False,
            False,
        )
    assert steps[0].item() == 0 and (p == 0).all()
