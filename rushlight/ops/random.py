"""Random numbers, bit for bit those of PyTorch's CPU generator."""

from __future__ import annotations

from typing import Any

from ._record import composite, native, rl

_OPTIONS = (
    "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool requires_grad=False"
)
_LIKE = f"*, {_OPTIONS}, MemoryFormat? memory_format=None"
_G = "Generator? generator=None"

native(f"rand(int[] size, *, {_G}, {_OPTIONS}) -> Tensor", method=False, random=True, doc="Uniform numbers in [0, 1).")
native(
    f"randn(int[] size, *, {_G}, {_OPTIONS}) -> Tensor",
    method=False,
    random=True,
    doc="Normal numbers of mean 0 and variance 1.",
)
native(
    f"rand_like(Tensor self, {_LIKE}) -> Tensor",
    method=False,
    out=False,
    random=True,
    doc="Uniform numbers in the input's shape and dtype.",
)
native(
    f"randn_like(Tensor self, {_LIKE}) -> Tensor",
    method=False,
    out=False,
    random=True,
    doc="Normal numbers in the input's shape and dtype.",
)
native(
    f"randint(int high, int[] size, *, {_G}, {_OPTIONS}) -> Tensor",
    method=False,
    random=True,
    implementation="randint",
    doc="Integers in [0, high).",
)
native(
    f"randint.low(int low, int high, int[] size, *, {_G}, {_OPTIONS}) -> Tensor",
    method=False,
    random=True,
    doc="Integers in [low, high).",
)
native(
    f"randint_like(Tensor self, int high, {_LIKE}) -> Tensor",
    method=False,
    out=False,
    random=True,
    doc="Integers in [0, high).",
)
native(
    f"randint_like.low(Tensor self, int low, int high, {_LIKE}) -> Tensor",
    method=False,
    out=False,
    random=True,
    doc="Integers in [low, high).",
)
native(
    f"randperm(int n, *, {_G}, {_OPTIONS}) -> Tensor", method=False, random=True, doc="A random order of 0 to n - 1."
)

_FILL: Any = {"self": lambda grad: rl.zeros_like(grad)}


def _fill(schema: str, doc: str, **fields: Any) -> None:
    native(schema, public="", writes_self=True, random=True, derivative=_FILL, doc=doc, **fields)


_fill(f"uniform_(Tensor self, float from=0, float to=1, *, {_G}) -> Tensor", "Uniform numbers in [from, to).")
_fill(f"normal_(Tensor self, float mean=0, float std=1, *, {_G}) -> Tensor", "Normal numbers.")
_fill(f"log_normal_(Tensor self, float mean=1, float std=2, *, {_G}) -> Tensor", "Exponentials of normal numbers.")
_fill(f"exponential_(Tensor self, float lambd=1, *, {_G}) -> Tensor", "Exponential numbers of rate lambd.")
_fill(f"cauchy_(Tensor self, float median=0, float sigma=1, *, {_G}) -> Tensor", "Cauchy numbers.")
_fill(
    f"geometric_(Tensor self, float p, *, {_G}) -> Tensor", "How many trials of probability p until the first success."
)
_fill(f"random_(Tensor self, *, {_G}) -> Tensor", "Integers over the dtype's range.")
_fill(f"random_.to(Tensor self, int to, *, {_G}) -> Tensor", "Integers in [0, to).")
_fill(f"random_.from(Tensor self, int from, int? to, *, {_G}) -> Tensor", "Integers in [from, to).")
_fill(f"bernoulli_.float(Tensor self, float p=0.5, *, {_G}) -> Tensor", "1 with probability p, else 0.")
_fill(f"bernoulli_.Tensor(Tensor self, Tensor p, *, {_G}) -> Tensor", "1 with the element's probability, else 0.")

native(
    f"bernoulli(Tensor self, *, {_G}) -> Tensor",
    random=True,
    derivative={"self": lambda grad: rl.zeros_like(grad)},
    doc="1 with the probability that the element is, else 0.",
)
native(
    f"bernoulli.p(Tensor self, float p, *, {_G}) -> Tensor",
    random=True,
    derivative={"self": lambda grad: rl.zeros_like(grad)},
    doc="1 with probability p, else 0, in the input's shape.",
)
native(
    f"poisson(Tensor self, {_G}) -> Tensor",
    method=False,
    out=False,
    random=True,
    derivative={"self": lambda grad: rl.zeros_like(grad)},
    doc="Poisson numbers whose rates are the elements.",
)
native(
    f"binomial(Tensor count, Tensor prob, {_G}) -> Tensor",
    out=False,
    method=False,
    random=True,
    doc="Binomial numbers.",
)
native(
    f"multinomial(Tensor self, int num_samples, bool replacement=False, *, {_G}) -> Tensor",
    batch="loop",
    random=True,
    doc="Indices drawn with the elements of the last dimension as weights.",
)
native(
    f"_standard_gamma(Tensor self, {_G}) -> Tensor",
    random=True,
    out=False,
    doc="Gamma numbers of the given shapes and scale 1.",
)
native(
    "_dropout_mask(Tensor self, float p) -> Tensor",
    random=True,
    out=False,
    doc="The factors of dropout: 0 with probability p, else 1 / (1 - p).",
)

native(
    f"normal.tensor_float(Tensor mean, float std=1, *, {_G}) -> Tensor",
    method=False,
    random=True,
    derivative={"mean": lambda grad, mean_shape: grad.new_zeros(mean_shape)},
    implementation="normal",
    doc="Normal numbers, one per mean.",
)
native(
    f"normal.float_tensor(float mean, Tensor std, *, {_G}) -> Tensor",
    method=False,
    random=True,
    derivative={"std": lambda grad, std_shape: grad.new_zeros(std_shape)},
    implementation="normal",
    doc="Normal numbers, one per standard deviation.",
)
native(
    f"normal.tensors(Tensor mean, Tensor std, *, {_G}) -> Tensor",
    method=False,
    random=True,
    derivative={
        "mean": lambda grad, mean_shape: grad.new_zeros(mean_shape),
        "std": lambda grad, std_shape: grad.new_zeros(std_shape),
    },
    implementation="normal",
    doc="Normal numbers of given means and standard deviations.",
)
native(
    f"normal.size(float mean, float std, int[] size, *, {_G}, {_OPTIONS}) -> Tensor",
    method=False,
    random=True,
    doc="Normal numbers in a new tensor.",
)


@composite("dropout(Tensor input, float p=0.5, bool train=True) -> Tensor", method=False)
def dropout(input: Any, p: float, train: bool) -> Any:
    """Zeroes elements with probability p and scales the others by 1 / (1 - p), when training."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")
    if p == 0 or not train or input.numel() == 0:
        return input
    if p == 1:
        return input * rl.zeros_like(input)
    return input * rl._dropout_mask(input.detach(), p)


@composite("dropout_(Tensor input, float p=0.5, bool train=True) -> Tensor", method=False)
def dropout_(input: Any, p: float, train: bool) -> Any:
    """dropout in place."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")
    if p == 0 or not train or input.numel() == 0:
        return input
    if p == 1:
        return input.mul_(rl.zeros_like(input))
    return input.mul_(rl._dropout_mask(input.detach(), p))
