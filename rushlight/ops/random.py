"""Random numbers, bit for bit those of PyTorch's CPU generator."""

from __future__ import annotations

from typing import Any

from ._record import composite, native, rl

_OPTIONS = (
    "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool requires_grad=False"
)
_LIKE = f"*, {_OPTIONS}, MemoryFormat? memory_format=None"
_G = "Generator? generator=None"

native(
    f"rand(int[] size, *, {_G}, {_OPTIONS}) -> Tensor",
    method=False,
    random=True,
    doc="""A new tensor of uniformly distributed numbers in [0, 1), drawn from the default generator or the one
    given.

    Shapes: size. The dtype is the default float dtype unless one is given.

    >>> torch.rand(2, 3).shape
    rushlight.Size([2, 3])
    >>> first = torch.rand(3, generator=torch.Generator().manual_seed(1))
    >>> bool((first == torch.rand(3, generator=torch.Generator().manual_seed(1))).all())
    True""",
)
native(
    f"randn(int[] size, *, {_G}, {_OPTIONS}) -> Tensor",
    method=False,
    random=True,
    doc="""A new tensor of numbers from the standard normal distribution: mean 0, variance 1. Complex numbers have
    variance 1, shared by their parts.

    Shapes: size. The dtype is the default float dtype unless one is given.

    >>> x = torch.randn(10000, generator=torch.Generator().manual_seed(1))
    >>> x.mean().abs().item() < 0.05, abs(x.std().item() - 1) < 0.05
    (True, True)""",
)
native(
    f"rand_like(Tensor self, {_LIKE}) -> Tensor",
    method=False,
    out=False,
    random=True,
    doc="""Uniformly distributed numbers in [0, 1), in a new tensor like another one.

    Shapes: the shape of self, and its dtype and device unless others are given.

    >>> torch.rand_like(torch.zeros(2, 3)).shape
    rushlight.Size([2, 3])""",
)
native(
    f"randn_like(Tensor self, {_LIKE}) -> Tensor",
    method=False,
    out=False,
    random=True,
    doc="""Numbers from the standard normal distribution, in a new tensor like another one.

    Shapes: the shape of self, and its dtype and device unless others are given.

    >>> torch.randn_like(torch.zeros(2, 3, dtype=torch.float64)).dtype
    rushlight.float64""",
)
native(
    f"randint(int high, int[] size, *, {_G}, {_OPTIONS}) -> Tensor",
    method=False,
    random=True,
    implementation="randint",
    doc="""A new tensor of whole numbers, all of [low, high) equally likely; low is 0 where it is not given.

    RuntimeError when low is not below high.

    Shapes: size. The dtype is int64 unless one is given.

    >>> torch.randint(5, 6, (2, 3))
    tensor([[5, 5, 5],
            [5, 5, 5]])""",
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
    doc="""Whole numbers, all of [low, high) equally likely, in a new tensor like another one; low is 0 where it is
    not given.

    Shapes: the shape of self, and its dtype and device unless others are given.

    >>> torch.randint_like(torch.zeros(3), 5, 6)
    tensor([5., 5., 5.])""",
)
native(
    f"randint_like.low(Tensor self, int low, int high, {_LIKE}) -> Tensor",
    method=False,
    out=False,
    random=True,
    doc="Integers in [low, high).",
)
native(
    f"randperm(int n, *, {_G}, {_OPTIONS}) -> Tensor",
    method=False,
    random=True,
    doc="""A random permutation of the numbers from 0 to n - 1.

    Shapes: (n). The dtype is int64 unless one is given.

    >>> torch.randperm(5).sort().values
    tensor([0, 1, 2, 3, 4])""",
)

_FILL: Any = {"self": lambda grad: rl.zeros_like(grad)}


def _fill(schema: str, doc: str, **fields: Any) -> None:
    native(schema, public="", writes_self=True, random=True, derivative=_FILL, doc=doc, **fields)


_fill(
    f"uniform_(Tensor self, float from=0, float to=1, *, {_G}) -> Tensor",
    """Fills self with uniformly distributed numbers in [from, to).

    Shapes: self of any shape; the result is self, of a floating-point or complex dtype.

    >>> x = torch.empty(1000).uniform_(2, 3)
    >>> bool(((x >= 2) & (x < 3)).all())
    True""",
)
_fill(
    f"normal_(Tensor self, float mean=0, float std=1, *, {_G}) -> Tensor",
    """Fills self with numbers from a normal distribution of the mean and standard deviation given.

    RuntimeError for a negative std.

    Shapes: self of any shape; the result is self, of a floating-point or complex dtype.

    >>> x = torch.empty(10000).normal_(5, 0.1, generator=torch.Generator().manual_seed(1))
    >>> abs(x.mean().item() - 5) < 0.01
    True""",
)
_fill(
    f"log_normal_(Tensor self, float mean=1, float std=2, *, {_G}) -> Tensor",
    """Fills self with numbers whose logarithms are normally distributed, with the mean and standard deviation
    given.

    RuntimeError unless std is positive.

    Shapes: self of any shape; the result is self, of a floating-point dtype.

    >>> bool((torch.empty(1000).log_normal_() > 0).all())
    True""",
)
_fill(
    f"exponential_(Tensor self, float lambd=1, *, {_G}) -> Tensor",
    """Fills self with numbers from the exponential distribution of rate lambd, whose density is lambd
    e^(-lambd x).

    RuntimeError unless lambd is positive.

    Shapes: self of any shape; the result is self, of a floating-point dtype.

    >>> x = torch.empty(10000).exponential_(2, generator=torch.Generator().manual_seed(1))
    >>> abs(x.mean().item() - 0.5) < 0.05
    True""",
)
_fill(
    f"cauchy_(Tensor self, float median=0, float sigma=1, *, {_G}) -> Tensor",
    """Fills self with numbers from the Cauchy distribution, which has a median and a width sigma, but no mean.

    RuntimeError unless sigma is positive.

    Shapes: self of any shape; the result is self, of a floating-point dtype.

    >>> x = torch.empty(10000).cauchy_(3, generator=torch.Generator().manual_seed(1))
    >>> abs(x.median().item() - 3) < 0.1
    True""",
)
_fill(
    f"geometric_(Tensor self, float p, *, {_G}) -> Tensor",
    """Fills self with the number of trials until the first success, each of which succeeds with probability p:
    1, 2, ...

    RuntimeError unless p is between 0 and 1.

    Shapes: self of any shape; the result is self.

    >>> x = torch.empty(10000).geometric_(0.25, generator=torch.Generator().manual_seed(1))
    >>> abs(x.mean().item() - 4) < 0.2
    True""",
)
_fill(
    f"random_(Tensor self, *, {_G}) -> Tensor",
    """Fills self with whole numbers, all of [from, to) equally likely; without limits, all that are not
    negative and the dtype holds exactly.

    Shapes: self of any shape; the result is self.

    >>> torch.empty(3).random_(7, 8)
    tensor([7., 7., 7.])""",
)
_fill(f"random_.to(Tensor self, int to, *, {_G}) -> Tensor", "Integers in [0, to).")
_fill(f"random_.from(Tensor self, int from, int? to, *, {_G}) -> Tensor", "Integers in [from, to).")
_fill(
    f"bernoulli_.float(Tensor self, float p=0.5, *, {_G}) -> Tensor",
    """Fills self with 1 with probability p, given once or for each element by a tensor that broadcasts to
    self, else with 0.

    RuntimeError unless p is between 0 and 1.

    Shapes: self of any shape; the result is self.

    >>> torch.empty(3).bernoulli_(torch.tensor([0.0, 1.0, 1.0]))
    tensor([0., 1., 1.])""",
)
_fill(f"bernoulli_.Tensor(Tensor self, Tensor p, *, {_G}) -> Tensor", "1 with the element's probability, else 0.")

native(
    f"bernoulli(Tensor self, *, {_G}) -> Tensor",
    random=True,
    derivative={"self": lambda grad: rl.zeros_like(grad)},
    doc="""1 with the probability that each element is, else 0; with p, the same probability for all.

    RuntimeError unless probabilities are between 0 and 1.

    Shapes: self of any shape; the result has the same, and the same dtype.

    >>> torch.bernoulli(torch.tensor([0.0, 1.0, 1.0]))
    tensor([0., 1., 1.])""",
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
    doc="""Numbers from Poisson distributions whose rates are the elements.

    RuntimeError for a negative rate.

    Shapes: self of any shape; the result has the same, and the same floating-point dtype.

    >>> x = torch.poisson(torch.full((10000,), 4.0), torch.Generator().manual_seed(1))
    >>> abs(x.mean().item() - 4) < 0.1
    True""",
)
native(
    f"binomial(Tensor count, Tensor prob, {_G}) -> Tensor",
    out=False,
    method=False,
    random=True,
    doc="""How many of count trials succeed, each with probability prob.

    Shapes: count and prob broadcast; the result has their common shape and their floating-point dtype.

    >>> torch.binomial(torch.tensor([5.0, 5.0]), torch.tensor([0.0, 1.0]))
    tensor([0., 5.])""",
)
native(
    f"multinomial(Tensor self, int num_samples, bool replacement=False, *, {_G}) -> Tensor",
    batch="loop",
    random=True,
    doc="""Indices drawn with the elements of the last dimension as weights, which need not sum to 1.

    Without replacement no index is drawn twice, so that num_samples must not exceed the number of weights above 0.
    RuntimeError for weights that are negative, infinite, NaN or all 0.

    Shapes: self (C) or (N, C); the result (num_samples) or (N, num_samples), int64.

    >>> torch.multinomial(torch.tensor([0.0, 3.0, 0.0]), 4, replacement=True)
    tensor([1, 1, 1, 1])""",
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
    doc="""Numbers from normal distributions, whose means and standard deviations are numbers or tensors.

    RuntimeError for a negative standard deviation.

    Shapes: mean and std broadcast; the result has their common shape, or size where both are numbers.

    >>> torch.normal(torch.tensor([1.0, 100.0]), 0.0)
    tensor([  1., 100.])
    >>> torch.normal(0.0, 1.0, (2, 3)).shape
    rushlight.Size([2, 3])""",
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
    """Zeroes each element with probability p while training, and scales the others by 1 / (1 - p), which keeps
    the mean (Srivastava et al., 2014).

    RuntimeError for p outside [0, 1].

    Shapes: input of any shape; the result has the same. When not training it is input.

    >>> torch.dropout(torch.ones(1000), 0.5, True).unique()
    tensor([0., 2.])
    """
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")
    if p == 0 or not train or input.numel() == 0:
        return input
    if p == 1:
        return input * rl.zeros_like(input)
    return input * rl._dropout_mask(input.detach(), p)


@composite("dropout_(Tensor input, float p=0.5, bool train=True) -> Tensor", method=False)
def dropout_(input: Any, p: float, train: bool) -> Any:
    """dropout that writes into its input.

    RuntimeError for p outside [0, 1].

    Shapes: input of any shape; the result is input.

    >>> torch.dropout_(torch.ones(3), 1.0, True)
    tensor([0., 0., 0.])
    """
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")
    if p == 0 or not train or input.numel() == 0:
        return input
    if p == 1:
        return input.mul_(rl.zeros_like(input))
    return input.mul_(rl._dropout_mask(input.detach(), p))
