"""Elementwise rounding, parts of numbers, comparisons, logic and choice."""

from __future__ import annotations

from typing import Any

from ._expression import FUNCTIONS, conj, copysign, heaviside, maximum, minimum, nextafter, where
from ._fused import fuse_derivatives
from ._record import TABLE, composite, elementwise, native, refused, rl
from .elementwise import ALL, REAL, _conj, _function, _names, _zeros

# ---------------------------------------------------------------- rounding and parts

for _name, _doc, _formula, _shown in (
    ("floor", "The greatest whole number that is not above self.", "max {n: n <= self}", "-3.,  2., -1.,  2."),
    ("ceil", "The least whole number that is not below self.", "min {n: n >= self}", "-2.,  3., -0.,  2."),
    ("trunc", "The number without its fraction.", "sign(self) * floor(|self|)", "-2.,  2., -0.,  2."),
    (
        "round",
        "The nearest whole number; halves go to the even one.",
        "floor(self + 1/2), or even",
        "-2.,  2., -0.,  2.",
    ),
):
    _function(
        _name,
        _zeros,
        f"{_doc} Integers stay.\n\n>>> torch.{_name}(torch.tensor([-2.5, 2.5, -0.5, 2.0]))\ntensor([{_shown}])",
        formula=f"out = {_formula}",
        types="int float",
        compute="promote",
        aliases={"trunc": "fix"}.get(_name, ""),
    )
_function(
    "frac",
    lambda grad: grad,
    """The fraction of a number, with its sign.

    >>> torch.frac(torch.tensor([2.75, -2.75]))
    tensor([ 0.7500, -0.7500])""",
    types="float",
    compute="promote",
    formula="out = self - trunc(self)",
)


@composite(
    "special_round(Tensor self, *, int decimals=0) -> Tensor",
    public="special.round",
    method=False,
    out=True,
    formula="out = round(self * 10^decimals) / 10^decimals",
)
def _special_round(self: Any, decimals: int = 0) -> Any:
    """The nearest number with that many decimals, halves to the even one; floating point only
    (NotImplementedError).

    Shapes: self of any shape; the result has the same.

    >>> torch.special.round(torch.tensor([0.5, 1.5, 2.75]))
    tensor([0., 2., 3.])
    """
    if not self.is_floating_point():
        raise NotImplementedError(f'"round" not implemented for {self.dtype}; expected a floating-point dtype')
    return self.round(decimals=decimals)


@composite(
    "round.decimals(Tensor self, *, int decimals) -> Tensor",
    inplace=True,
    out=True,
    formula="out = round(self * 10^decimals) / 10^decimals",
)
def _round_decimals(self: Any, decimals: int) -> Any:
    """The nearest number with that many decimals; with negative decimals the nearest ten, hundred, ...

    >>> torch.round(torch.tensor([1234.5678]), decimals=-2)
    tensor([1200.])
    """
    if decimals == 0:
        return self.round()
    scale = 10.0 ** abs(decimals)
    if self.dtype in (rl.float16, rl.bfloat16):
        return self.float().round(decimals=decimals).to(self.dtype)
    if decimals < 0:
        return (self / scale).round() * scale
    scaled = self * scale
    return rl.where(scaled.isinf(), self.detach(), scaled.round() / scale)  # what overflows is a whole number


elementwise(
    "copysign(Tensor self, Tensor|Scalar other) -> Tensor",
    lambda self, other: copysign(self, other),
    types="float",
    compute="float",
    inplace=True,
    derivative={
        "self": lambda grad, self, result: rl.where(self == 0, 0, grad * (result / self)),
        "other": _zeros,
    },
    formula="out = |self| if other >= +0 else -|self|",
    doc="""The absolute value of self with the sign of other, which zeros have too.

    >>> torch.copysign(torch.tensor([1.0, -2.0, 3.0]), torch.tensor([-0.0, 0.0, -5.0]))
    tensor([-1.,  2., -3.])""",
)
elementwise(
    "nextafter(Tensor self, Tensor other) -> Tensor",
    lambda self, other: nextafter(self, other),
    types="float",
    inplace=True,
    derivative={
        "self": lambda grad, self, other: rl.where(self == other, 0, grad),
        "other": lambda grad: _zeros(grad),
    },
    formula="out = the nearest number to self between self and other",
    doc="""The next number of the dtype from self in the direction of other.

    >>> torch.nextafter(torch.tensor(1.0), torch.tensor(2.0)) - 1 == torch.finfo(torch.float32).eps
    tensor(True)""",
)
elementwise(
    "heaviside(Tensor self, Tensor values) -> Tensor",
    lambda self, values: heaviside(self, values),
    types=REAL,
    inplace=True,
    derivative=refused("heaviside", "self", "values"),
    formula="out = 0 if self < 0, 1 if self > 0, values if self = 0",
    doc="""The step function: 0 below 0, 1 above, and values at 0.

    RuntimeError unless both have one dtype. Without derivative.

    >>> torch.heaviside(torch.tensor([-1.5, 0.0, 2.0]), torch.tensor(0.5))
    tensor([0.0000, 0.5000, 1.0000])""",
    options={"checked": True, "fuse": False},
)
_function(
    "_conj_physical",
    lambda grad: _conj(grad),
    "The complex conjugate.",
    expression=lambda self: conj(self),
    types=ALL,
    compute="promote",
)
native(
    "conj_physical(Tensor self) -> Tensor",
    options={"composite": True},
    inplace=True,
    formula="out = Re(self) - Im(self) i",
    doc="""The complex conjugate, in memory of its own; the tensor itself when it is real.

    Shapes: self of any shape; the result has the same.

    >>> torch.conj_physical(torch.tensor([1 + 2j, 3]))
    tensor([1.-2.j, 3.-0.j])""",
)
_function(
    "angle",
    lambda grad, self: (
        rl.where(self == 0, 0, self * grad * 1j / (self.abs() * self.abs())) if self.is_complex() else _zeros(grad)
    ),
    """The angle of a complex number from the real axis, in radians within [-pi, pi]; of real numbers pi below
    0, else 0.

    >>> torch.angle(torch.tensor([1j, 1 + 1j, -1]))
    tensor([1.5708, 0.7854, 3.1416])""",
    result="real",
    inplace=False,
    options={"fuse": False},
    formula="out = atan2(Im(self), Re(self))",
)

# ---------------------------------------------------------------- comparisons and logic

for _name, _aliases, _types, _relation, _shown in (
    ("eq", "", ALL, "equal to", "False,  True, False"),
    ("ne", "not_equal", ALL, "different from", " True, False,  True"),
    ("lt", "less", REAL, "less than", " True, False, False"),
    ("le", "less_equal", REAL, "less than or equal to", " True,  True, False"),
    ("gt", "greater", REAL, "greater than", "False, False, False"),
    ("ge", "greater_equal", REAL, "greater than or equal to", "False,  True, False"),
):
    _sign = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}[_name]
    elementwise(
        f"{_name}(Tensor self, Tensor|Scalar other) -> Tensor",
        lambda self, other, _f=FUNCTIONS[_name]: _f(self, other),
        types=_types,
        result="bool",
        inplace=True,
        public=_names(_name, _aliases),
        formula=f"out = (self {_sign} other)",
        doc=f"""Whether self is {_relation} other, element by element; also the operator {_sign}. NaN equals nothing.

        >>> torch.{_name}(torch.tensor([1.0, 2.0, float("nan")]), 2)
        tensor([{_shown}])""",
    )
for _name, _which, _shown, _bits in (
    ("and", "both numbers are", "False, False,  True", "tensor([4, 8])"),
    ("or", "one of two numbers is", "False,  True,  True", "tensor([ 7, 12])"),
    ("xor", "exactly one of two numbers is", "False,  True, False", "tensor([3, 4])"),
):
    elementwise(
        f"logical_{_name}(Tensor self, Tensor other) -> Tensor",
        lambda self, other, _f=FUNCTIONS[f"logical_{_name}"]: _f(self, other),
        types="bool int float complex",
        result="bool",
        inplace=True,
        formula=f"out = (self != 0) {_name} (other != 0)",
        doc=f"""Whether {_which} different from 0.

        >>> torch.logical_{_name}(torch.tensor([0, 0, 2]), torch.tensor([0, 1, 1]))
        tensor([{_shown}])""",
    )
    elementwise(
        f"bitwise_{_name}(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
        lambda self, other, _f=FUNCTIONS[f"bitwise_{_name}"]: _f(self, other),
        types="bool int",
        inplace=True,
        formula=f"out = self {_name} other, in every bit",
        doc=f"""The bits of two whole numbers combined by {_name}.

        >>> torch.bitwise_{_name}(torch.tensor([0b101, 0b1100]), torch.tensor([0b110, 0b1000]))
        {_bits}""",
    )
_function(
    "logical_not",
    None,
    """Whether a number is 0.

    >>> torch.logical_not(torch.tensor([0.0, 0.5, -2.0]))
    tensor([ True, False, False])""",
    types="bool int float complex",
    compute="promote",
    result="bool",
    formula="out = (self = 0)",
)
_function(
    "bitwise_not",
    None,
    """All bits inverted, of bool the negation.

    >>> torch.bitwise_not(torch.tensor([0, 5, -1]))
    tensor([-1, -6,  0])""",
    types="bool int",
    compute="promote",
    formula="out = -self - 1",
)
for _name, _doc, _formula, _shown in (
    ("left", "The bits of a whole number moved up; zeros come in.", "self * 2^other", " 28, -28"),
    ("right", "The bits of a whole number moved down; the sign comes in.", "floor(self / 2^other)", " 1, -2"),
):
    elementwise(
        f"bitwise_{_name}_shift(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
        lambda self, other, _f=FUNCTIONS[f"bitwise_{_name}_shift"]: _f(self, other),
        types="int",
        inplace=True,
        formula=f"out = {_formula}",
        doc=f"{_doc}\n\n>>> torch.bitwise_{_name}_shift(torch.tensor([7, -7]), 2)\ntensor([{_shown}])",
    )
for _name, _types, _doc, _formula, _shown in (
    ("isnan", ALL, "is NaN; of complex numbers, in one of its parts", "self != self", " True, False, False, False"),
    (
        "isinf",
        ALL,
        "is infinite; of complex numbers, in one of its parts",
        "|self| = inf",
        "False,  True,  True, False",
    ),
    ("isfinite", ALL, "is neither infinite nor NaN", "|self| < inf", "False, False, False,  True"),
    ("isposinf", REAL, "is positive infinity", "self = inf", "False,  True, False, False"),
    ("isneginf", REAL, "is negative infinity", "self = -inf", "False, False,  True, False"),
    ("signbit", REAL, "has a minus sign, as -0.0 has", "copysign(1, self) < 0", "False, False,  True,  True"),
):
    _function(
        _name,
        None,
        f"""Whether a number {_doc}.

        >>> torch.{_name}(torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0]))
        tensor([{_shown}])""",
        formula=f"out = ({_formula})",
        types=_types,
        compute="promote",
        result="bool",
        inplace=False,
    )

# ---------------------------------------------------------------- choice

elementwise(
    "where(Tensor condition, Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    lambda condition, self, other: where(condition, self, other),
    types=ALL,
    method=False,
    derivative={
        "self": lambda grad, condition: rl.where(condition, grad, 0),
        "other": lambda grad, condition: rl.where(condition, 0, grad),
    },
    options={"checked": True, "fuse": False},
    formula="out = self if condition else other",
    doc="""self where the condition holds, other elsewhere. The gradient goes to the one that was taken.

    The condition is bool (or uint8); self and other have their promoted dtype in the result.

    >>> x = torch.tensor([-1.0, 2.0])
    >>> torch.where(x > 0, x, 0.0)
    tensor([0., 2.])""",
)
composite(
    "_where_method(Tensor self, Tensor condition, Tensor|Scalar other) -> Tensor",
    public="Tensor.where",
    method=False,
    formula="out = self if condition else other",
    doc="""self where the condition holds, other elsewhere.

    Shapes: condition, self and other broadcast; the result has their common shape.

    >>> torch.tensor([1, 2, 3]).where(torch.tensor([True, False, True]), 0)
    tensor([1, 0, 3])""",
)(lambda self, condition, other: rl.where(condition, self, other))
composite(
    "where.condition(Tensor condition) -> Any",
    method=False,
    doc="""The indices of the elements that are not 0, as nonzero with as_tuple=True gives them: one vector for
    each dimension.

    >>> torch.where(torch.tensor([[0, 1], [1, 0]]))
    (tensor([0, 1]), tensor([1, 0]))""",
)(lambda condition: rl.nonzero(condition, as_tuple=True))


for _name, _wins, _loses in (("maximum", "gt", "lt"), ("minimum", "lt", "gt")):
    elementwise(
        f"{_name}(Tensor self, Tensor other) -> Tensor",
        lambda self, other, _f=FUNCTIONS[_name]: _f(self, other),
        types=REAL,
        derivative={
            "self": lambda grad, self, other, _loses=_loses: rl.where(
                getattr(self, _loses)(other), 0, rl.where(self == other, grad * 0.5, grad)
            ),
            "other": lambda grad, self, other, _wins=_wins: rl.where(
                getattr(self, _wins)(other), 0, rl.where(self == other, grad * 0.5, grad)
            ),
        },
        formula=f"out = {_name[:3]}(self, other)",
        doc=f"""The {"larger" if _wins == "gt" else "smaller"} of two numbers; NaN when one is NaN.

        Equal numbers share the gradient.

        >>> torch.{_name}(torch.tensor([1.0, 4.0, float("nan")]), torch.tensor([2.0, 3.0, 5.0]))
        tensor([{"2., 4." if _wins == "gt" else "1., 3."}, nan])""",
    )
for _name, _compare in (("fmax", "ge"), ("fmin", "le")):
    elementwise(
        f"{_name}(Tensor self, Tensor other) -> Tensor",
        lambda self, other, _f=FUNCTIONS[_name]: _f(self, other),
        types=REAL,
        derivative={
            "self": lambda grad, self, other, _c=_compare: rl.where(
                getattr(self, _c)(other).logical_or(other.isnan()), grad, 0
            ),
            "other": lambda grad, self, other, _c=_compare: rl.where(
                getattr(self, _c)(other).logical_or(other.isnan()), 0, grad
            ),
        },
        formula=f"out = {_name[1:]}(self, other)",
        doc=f"""The {"larger" if _name == "fmax" else "smaller"} of two numbers, and the other when one is NaN.

        >>> torch.{_name}(torch.tensor([1.0, 4.0, float("nan")]), torch.tensor([2.0, 3.0, 5.0]))
        tensor([{"2., 4." if _name == "fmax" else "1., 3."}, 5.])""",
    )
# Limits: NaN in self stays, and a NaN limit gives NaN.
elementwise(
    "clamp_min(Tensor self, Tensor|Scalar min) -> Tensor",
    lambda self, min: maximum(self, min),
    types=REAL,
    inplace=True,
    derivative={
        "self": lambda grad, self, min: rl.where(self >= min, grad, 0),
        "min": lambda grad, self, min: rl.where(self < min, grad, 0),
    },
    formula="out = max(self, min)",
    doc="""Numbers below min become min.

    >>> torch.clamp_min(torch.tensor([-1.0, 2.0]), 0)
    tensor([0., 2.])""",
)
elementwise(
    "clamp_max(Tensor self, Tensor|Scalar max) -> Tensor",
    lambda self, max: minimum(self, max),
    types=REAL,
    inplace=True,
    derivative={
        "self": lambda grad, self, max: rl.where(self <= max, grad, 0),
        "max": lambda grad, self, max: rl.where(self > max, grad, 0),
    },
    formula="out = min(self, max)",
    doc="""Numbers above max become max.

    >>> torch.clamp_max(torch.tensor([-1.0, 2.0]), 0)
    tensor([-1.,  0.])""",
)
elementwise(
    "_clamp(Tensor self, Tensor|Scalar min, Tensor|Scalar max) -> Tensor",
    lambda self, min, max: minimum(maximum(self, min), max),
    types="int float",
    inplace=True,
    derivative={
        "self": lambda grad, self, min, max: rl.where(rl.logical_and(self >= min, self <= max), grad, 0),
        "min": lambda grad, self, min, max: rl.where(rl.logical_and(self < min, min < max), grad, 0),
        "max": lambda grad, self, min, max: rl.where(rl.logical_or(self > max, max < min), grad, 0),
    },
    doc="self limited to [min, max]; max where min > max.",
)
native(
    "clamp(Tensor self, Tensor|Scalar? min=None, Tensor|Scalar? max=None) -> Tensor",
    options={"composite": True},
    inplace=True,
    public=_names("clamp", "clip"),
    formula="out = min(max(self, min), max)",
    doc="""Numbers limited to [min, max]; either limit may be missing. Where min > max the result is max; NaN
    stays.

    RuntimeError when both limits are missing.

    Shapes: self and limits that are tensors broadcast; the result has their common shape.

    >>> torch.clamp(torch.tensor([-2, 0, 5]), min=-1, max=3)
    tensor([-1,  0,  3])""",
)
for _name, _doc, _formula, _shown in (
    ("gcd", "The greatest common divisor; not negative.", "max {d: d divides self and other}", "6, 1, 5"),
    ("lcm", "The least common multiple; not negative.", "|self * other| / gcd(self, other)", "36, 35,  0"),
):
    elementwise(
        f"{_name}(Tensor self, Tensor other) -> Tensor",
        lambda self, other, _f=FUNCTIONS[_name]: _f(self, other),
        types="int",
        inplace=True,
        formula=f"out = {_formula}",
        doc=f"{_doc}\n\n>>> torch.{_name}(torch.tensor([12, 5, 0]), torch.tensor([18, 7, 5]))\ntensor([{_shown}])",
    )


elementwise(
    "_nan_to_num(Tensor self, Scalar nan, Scalar posinf, Scalar neginf) -> Tensor",
    lambda self, nan, posinf, neginf: where(
        FUNCTIONS["isnan"](self),
        nan,
        where(FUNCTIONS["isposinf"](self), posinf, where(FUNCTIONS["isneginf"](self), neginf, self)),
    ),
    types="float",
    method=False,
    derivative={"self": lambda grad, self: rl.where(self.isfinite(), grad, 0)},
    doc="Numbers in place of NaN and the infinities, all of them given.",
)


@composite(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
    inplace=True,
    out=True,
    formula="out = self if |self| < inf, else its replacement",
)
def _nan_to_num(self: Any, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Any:
    """Numbers in place of NaN and the infinities: nan (0 by default), posinf and neginf (the dtype's largest
    and smallest).

    Shapes: self of any shape; the result has the same.

    >>> torch.nan_to_num(torch.tensor([float("nan"), float("-inf"), 1.0]), neginf=-9.0)
    tensor([ 0., -9.,  1.])
    """
    if not self.dtype.is_floating_point:
        return self.clone()
    limits = rl.finfo(self.dtype)
    return rl._nan_to_num(
        self,
        0.0 if nan is None else nan,
        limits.max if posinf is None else posinf,
        limits.min if neginf is None else neginf,
    )


fuse_derivatives(TABLE)
