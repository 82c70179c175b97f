"""Functions of the package that are not operations: conversion, questions, settings."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from . import _C
from ._C import Size, Tensor
from ._interop import from_numpy
from ._printing import set_printoptions
from .storage import TypedStorage

__all__ = ["from_numpy", "set_printoptions"]

# ---------------------------------------------------------------- data


def as_tensor(data: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The data as a tensor, without a copy where that is possible."""
    made = _C._from_data(data, dtype, False)
    return made if device is None else made.to(device)


def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool | None = None
) -> Tensor:
    """The object as a tensor: shared where possible, copied when `copy` is True, never copied when it is False.

    Bytes and other buffers without shape are read as elements of `dtype`.

    Raises:
        ValueError: copy=False, and the object, dtype or device needs a copy.

    Example::

        >>> import rushlight
        >>> rushlight.asarray([1, 2])
        tensor([1, 2])
    """
    plain = isinstance(obj, (bytes, bytearray, memoryview)) or type(obj).__name__ == "array"
    if plain:
        made = frombuffer(obj, dtype=dtype or _C.get_default_dtype())
        if copy or (copy is None and isinstance(obj, bytes)):
            made = made.clone()
    else:
        shared = isinstance(obj, Tensor) or any(
            hasattr(obj, name) for name in ("__dlpack__", "__array_interface__", "__array__")
        )
        if copy is False and not shared:
            raise ValueError("asarray: can't alias arbitrary sequence into a tensor; copy=False needs memory to share")
        made = _C._from_data(obj, None if copy is False else dtype, bool(copy))
        if copy is False and dtype is not None and made.dtype != dtype:
            raise ValueError(f"asarray: can't alias tensor with dtype {made.dtype} into dtype {dtype}; copy=False")
    if device is not None and made.device.type != _C.device(device).type:
        if copy is False:
            raise ValueError(f"asarray: can't alias tensor on {made.device} into device {device}; copy=False")
        made = made.to(device)
    if requires_grad is True and not made.requires_grad:
        made = made.detach().requires_grad_()
    return made


def scalar_tensor(
    s: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A 0-dim tensor of the default dtype."""
    return _C.tensor(s, dtype=dtype or _C.get_default_dtype(), device=device, requires_grad=requires_grad)


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A one-dimensional tensor over a buffer's bytes.

    Args:
        buffer: an object with the buffer protocol.
        dtype: of the elements.
        count: how many; -1 for all there are.
        offset: bytes to skip at the start.

    Raises:
        ValueError: sizes do not fit the buffer.
    """
    view = memoryview(buffer).cast("B")
    size = dtype.itemsize
    if view.nbytes == 0 or count == 0:
        raise ValueError(f"both buffer length ({view.nbytes}) and count ({count}) must not be 0")
    if not 0 <= offset < view.nbytes:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({view.nbytes} bytes) - 1"
        )
    if count < 0:
        if (view.nbytes - offset) % size:
            raise ValueError(
                f"buffer length ({view.nbytes - offset} bytes) after offset ({offset} bytes) must be a multiple "
                f"of element size ({size})"
            )
        count = (view.nbytes - offset) // size
    if offset + count * size > view.nbytes:
        raise ValueError(
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must not be greater "
            f"than actual buffer length ({view.nbytes} bytes)"
        )
    storage = _C.UntypedStorage._from_buffer(view[offset : offset + count * size])
    made = _C._from_storage(storage, dtype, 0, (count,), (1,))
    return made.requires_grad_() if requires_grad else made


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of an object with __dlpack__, or of a DLPack capsule."""
    from ._dlpack import from_dlpack as take

    return take(ext_tensor, device, copy)


def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule over the tensor's memory."""
    return tensor.__dlpack__()


def from_file(
    filename: Any,
    shared: bool | None = None,
    size: int | None = 0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A vector over the first `size` elements of a file.

    With ``shared=True`` changes go into the file, which is made or grown where needed; otherwise they stay in memory.

    Raises:
        RuntimeError: the file is smaller, and not shared.
    """
    from .storage import _mapped

    kind = dtype or _C.get_default_dtype()
    count = int(size or 0)
    storage = _mapped(filename, bool(shared), count * kind.itemsize)
    made = _C._from_storage(storage, kind, 0, (count,), (1,))
    return made.requires_grad_() if requires_grad else made


def empty_permuted(
    size: Any,
    physical_layout: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """An uninitialised tensor whose dimensions lie in memory in the order `physical_layout`, the outermost first.

    Raises:
        RuntimeError: the order is no permutation of the dimensions.
    """
    order = list(physical_layout)
    if sorted(order) != list(range(len(size))):
        raise RuntimeError(
            f"empty_permuted: physical_layout; expected a permutation of {list(range(len(size)))}, got {order}"
        )
    strides, step = [0] * len(order), 1
    for d in reversed(order):
        strides[d] = step
        step *= max(int(size[d]), 1)
    return _package().empty_strided(size, strides, dtype=dtype, device=device, requires_grad=requires_grad)


def detach(input: Tensor) -> Tensor:
    """The same memory, cut off from the graph."""
    return input.detach()


def detach_(input: Tensor) -> Tensor:
    """The tensor itself, cut off from the graph."""
    return input.detach_()


def cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: tuple[Any, ...] | list[Any] = ()
) -> Any:
    """true_fn(*operands) if pred is true, else false_fn(*operands)."""
    return (true_fn if bool(pred) else false_fn)(*operands)


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> Any:
    """The values after body_fn(*values) again and again, from carried_inputs on, while cond_fn(*values) is true."""
    values = tuple(carried_inputs)
    while bool(cond_fn(*values)):
        result = body_fn(*values)
        values = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        if len(values) != len(carried_inputs):
            raise RuntimeError(
                f"while_loop: body_fn must return as many values as it takes; expected {len(carried_inputs)}, got "
                f"{len(values)}"
            )
    return values


# ---------------------------------------------------------------- questions


def is_tensor(obj: Any) -> bool:
    """Whether the object is a Tensor."""
    return isinstance(obj, Tensor)


def is_storage(obj: Any) -> bool:
    """Whether the object is a storage."""
    return isinstance(obj, (_C.UntypedStorage, TypedStorage))


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a real floating point type."""
    return input.is_floating_point()


def is_complex(input: Tensor) -> bool:
    """Whether the dtype is complex."""
    return input.is_complex()


def is_signed(input: Tensor) -> bool:
    """Whether the dtype holds negative numbers."""
    return input.is_signed()


def is_conj(input: Tensor) -> bool:
    """False: conjugation is never lazy."""
    return input.is_conj()


def is_neg(input: Tensor) -> bool:
    """False: negation is never lazy."""
    return input.is_neg()


def get_device(input: Tensor) -> int:
    """-1 on the CPU."""
    return input.get_device()


def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made in inference mode."""
    return input.is_inference()


def is_nonzero(input: Tensor) -> bool:
    """Whether the single element differs from zero."""
    if input.numel() != 1:
        raise RuntimeError(
            f"Boolean value of Tensor with {'no values' if input.numel() == 0 else 'more than one value'} is ambiguous"
        )
    return bool(input)


def numel(input: Tensor) -> int:
    """The number of elements."""
    return input.numel()


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all |input - other| <= atol + rtol * |other|."""
    return bool(_package().isclose(input, other, rtol, atol, equal_nan).all().item())


def is_grad_enabled() -> bool:
    """Whether operations are recorded in this thread."""
    return bool(_C._is_grad_enabled())


def is_inference_mode_enabled() -> bool:
    """Whether this thread is in inference mode."""
    return bool(_C._is_inference_mode_enabled())


def typename(obj: Any) -> str:
    """The name of a tensor's type, or of any object's class."""
    if isinstance(obj, Tensor):
        return type_name(obj.dtype)
    kind = obj if isinstance(obj, type) else type(obj)
    return kind.__qualname__ if kind.__module__ in ("builtins", "") else f"{kind.__module__}.{kind.__qualname__}"


_TYPE_NAMES = {
    "FloatTensor": _C.float32,
    "DoubleTensor": _C.float64,
    "HalfTensor": _C.float16,
    "BFloat16Tensor": _C.bfloat16,
    "LongTensor": _C.int64,
    "IntTensor": _C.int32,
    "ShortTensor": _C.int16,
    "CharTensor": _C.int8,
    "ByteTensor": _C.uint8,
    "BoolTensor": _C.bool,
    "ComplexHalfTensor": _C.complex32,
    "ComplexFloatTensor": _C.complex64,
    "ComplexDoubleTensor": _C.complex128,
}
_NAMES_OF_TYPES = {dtype: name for name, dtype in _TYPE_NAMES.items()}


def type_name(dtype: Any) -> str:
    """'rushlight.FloatTensor' for float32."""
    return f"rushlight.{_NAMES_OF_TYPES[dtype]}"


def dtype_of_type_name(value: Any) -> Any:
    """The dtype a type name, legacy type or dtype means."""
    if isinstance(value, _C.dtype):
        return value
    name = value if isinstance(value, str) else getattr(value, "__name__", str(value))
    found = _TYPE_NAMES.get(name.rpartition(".")[2])
    if found is None:
        raise ValueError(f"invalid type: '{value}'")
    return found


class _LegacyMeta(type):
    dtype: Any
    is_cuda = False
    is_sparse = False

    @property
    def layout(cls) -> Any:
        return _C.strided

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype == cls.dtype

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if set(kwargs) - {"device"}:
            raise TypeError(f"{cls.__name__}(): expected no keyword but device, got {sorted(kwargs)}")
        from ._tensor import make

        return make(Tensor, args, cls.dtype, **kwargs)


def __getattr__(name: str) -> Any:
    if name in _TYPE_NAMES:
        made = _LegacyMeta(name, (), {"dtype": _TYPE_NAMES[name], "__module__": "rushlight"})
        globals()[name] = made
        return made
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# ---------------------------------------------------------------- shapes


def _package() -> Any:
    import rushlight

    return rushlight


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that tensors of these shapes broadcast to.

    Raises:
        RuntimeError: the shapes do not fit.
    """
    sizes = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    n = max((len(s) for s in sizes), default=0)
    out = [1] * n
    for s in sizes:
        for i, v in enumerate(s, n - len(s)):
            if v < 0:
                raise RuntimeError(f"Trying to create tensor with negative dimension ({v}): ({v})")
            if v != 1:
                if out[i] not in (1, v):
                    raise RuntimeError(
                        "Shape mismatch: objects cannot be broadcast to a single shape; got "
                        + ", ".join(str(tuple(x)) for x in sizes)
                    )
                out[i] = v
    return Size(out)


def _at_least(n: int, tensors: Any) -> Any:
    def grow(t: Tensor) -> Tensor:
        if n == 3 and t.dim() == 2:
            return t.unsqueeze(-1)
        if t.dim() == 0:
            return t.reshape([1] * n)
        if n >= 2 and t.dim() == 1:
            t = t.unsqueeze(0)
            return t.unsqueeze(-1) if n == 3 else t
        return t

    name = f"atleast_{n}d"
    if len(tensors) == 1 and not isinstance(tensors[0], (list, tuple)):
        return grow(_tensors_only(name, tensors)[0])
    return tuple(map(grow, _tensors_only(name, tensors[0] if len(tensors) == 1 else tensors)))


def _tensors_only(name: str, tensors: Any) -> Any:
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            raise TypeError(f"{name}(): expected Tensor as element {i} in argument 0, but got {type(t).__name__}")
    return tensors


def atleast_1d(*tensors: Any) -> Any:
    """Tensors with at least one dimension."""
    return _at_least(1, tensors)


def atleast_2d(*tensors: Any) -> Any:
    """Tensors with at least two dimensions."""
    return _at_least(2, tensors)


def atleast_3d(*tensors: Any) -> Any:
    """Tensors with at least three dimensions."""
    return _at_least(3, tensors)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinate grids of vectors: 'ij' in the vectors' order, 'xy' with the first two exchanged."""
    items = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    if not items:
        raise ValueError("meshgrid expects a non-empty TensorList")
    for t in _tensors_only("meshgrid", items):
        if t.dim() > 1:
            raise RuntimeError(
                f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got shape {tuple(t.shape)}"
            )
        if t.dtype != items[0].dtype:
            raise RuntimeError("torch.meshgrid expects all tensors to have the same dtype")
    swap = indexing == "xy" and len(items) >= 2
    if swap:
        items[0], items[1] = items[1], items[0]
    shape = [t.numel() for t in items]
    grids = []
    for i, t in enumerate(items):
        view = [1] * len(items)
        view[i] = shape[i]
        grids.append(t.reshape(view).expand(shape))
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of the vectors' elements, one per row."""
    for t in _tensors_only("cartesian_prod", tensors):
        if t.dim() != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {tuple(t.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return _package().stack([g.reshape(-1) for g in meshgrid(*tensors)], 1)


def block_diag(*tensors: Tensor) -> Tensor:
    """Matrices along the diagonal of one."""
    if not tensors:
        return _package().empty(1, 0)
    for i, t in enumerate(_tensors_only("block_diag", tensors)):
        if t.dim() > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {t.dim()} dimensions"
            )
    matrices = [atleast_2d(t) for t in tensors]
    dtype = functools.reduce(_C.promote_types, [m.dtype for m in matrices])
    width = sum(m.size(1) for m in matrices)
    rows, at = [], 0
    for m in matrices:
        m = m.to(dtype)
        left = m.new_zeros((m.size(0), at))
        right = m.new_zeros((m.size(0), width - at - m.size(1)))
        rows.append(_package().cat([left, m, right], 1))
        at += m.size(1)
    return _package().cat(rows, 0)


def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """The product of matrices in the cheapest order; linalg.multi_dot is the newer name."""
    from .linalg import multi_dot  # type: ignore[attr-defined]

    for m in _tensors_only("chain_matmul", matrices):
        if m.dim() != 2:
            raise RuntimeError(f"chain_matmul(): expected 2D tensors, got shape {list(m.shape)}")
    if len(matrices) == 1:
        return matrices[0].clone() if out is None else out.resize_(matrices[0].shape).copy_(matrices[0])
    result: Tensor = multi_dot(matrices) if out is None else multi_dot(matrices, out=out)
    return result


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Sums of products over pairs of dimensions: the last `dims` of a with the first of b, or two lists of dims."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        first, second = list(range(a.dim() - dims, a.dim())), list(range(dims))
    else:
        first, second = ([d] if isinstance(d, int) else list(d) for d in dims)
    if len(first) != len(second):
        raise RuntimeError("both dimension lists should have same length")
    first, second = [d % max(a.dim(), 1) for d in first], [d % max(b.dim(), 1) for d in second]
    for x, y in zip(first, second, strict=True):
        if a.size(x) != b.size(y):
            if 1 not in (a.size(x), b.size(y)):
                raise RuntimeError(
                    f"contracted dimensions need to match, but first has size {a.size(x)} in dim {x} and second "
                    f"has size {b.size(y)} in dim {y}"
                )
            if a.size(x) == 1:
                b = b.sum(y, True)
            else:
                a = a.sum(x, True)
    keep_a, keep_b = [d for d in range(a.dim()) if d not in first], [d for d in range(b.dim()) if d not in second]
    inner = math.prod(a.size(d) for d in first)
    left = a.permute(keep_a + first).reshape(-1 if inner else math.prod(a.size(d) for d in keep_a), inner)
    right = b.permute(second + keep_b).reshape(inner, -1 if inner else math.prod(b.size(d) for d in keep_b))
    result = left.mm(right).reshape([a.size(d) for d in keep_a] + [b.size(d) for d in keep_b])
    return result if out is None else out.copy_(result)


# ---------------------------------------------------------------- random state


def manual_seed(seed: int) -> Any:
    """Seeds the default generator; returns it."""
    return _C.default_generator.manual_seed(int(seed))


def seed() -> int:
    """Seeds the default generator from the operating system; returns the seed."""
    return int(_C.default_generator.seed())


def initial_seed() -> int:
    """The seed the default generator started from."""
    return int(_C.default_generator.initial_seed())


def get_rng_state() -> Tensor:
    """The default generator's state, 5056 bytes that PyTorch can read."""
    return _C.default_generator.get_state()


def thread_safe_generator() -> None:
    """The generator of a data loader's worker thread: None, since workers seed the default one."""
    return


def set_rng_state(new_state: Tensor) -> None:
    """Puts the default generator into a state from get_rng_state."""
    _C.default_generator.set_state(new_state)


# ---------------------------------------------------------------- settings


def get_default_device() -> Any:
    """Where factories put tensors."""
    return _C._get_default_device()


def set_default_device(device: Any) -> None:
    """Where factories put tensors from now on; None for the CPU."""
    _C._swap_default_device(_C.device(device or "cpu"))


def set_default_tensor_type(t: Any) -> None:
    """The default dtype, by the name of a tensor type."""
    _C.set_default_dtype(dtype_of_type_name(t))


class _Limits:
    """What finfo and iinfo share."""

    def __init__(self, dtype: Any, fields: Sequence[str]) -> None:
        self.dtype = str(dtype).rpartition(".")[2]
        self.bits = dtype.itemsize * (4 if dtype.is_complex else 8)
        self._fields = fields

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.dtype == getattr(other, "dtype", None)

    def __hash__(self) -> int:
        return hash((type(self), self.dtype))

    def __repr__(self) -> str:
        values = ", ".join(
            f"{f}={getattr(self, f):g}" if isinstance(getattr(self, f), float) else f"{f}={getattr(self, f)}"
            for f in self._fields
        )
        return f"{type(self).__name__}({values}, dtype={self.dtype})"


class finfo(_Limits):
    """Limits of a floating point dtype: bits, eps, max, min, tiny (smallest_normal), resolution."""

    def __init__(self, dtype: Any = None) -> None:
        dtype = dtype or _C.get_default_dtype()
        if not isinstance(dtype, _C.dtype) or not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{dtype}'")
        super().__init__(dtype.to_real(), ("resolution", "min", "max", "eps", "smallest_normal", "tiny"))
        digits, low, high = {
            _C.float16: (11, -14, 15),
            _C.bfloat16: (8, -126, 127),
            _C.float32: (24, -126, 127),
            _C.float64: (53, -1022, 1023),
        }[dtype.to_real()]
        self.eps = 2.0 ** (1 - digits)
        self.max = (2.0 - self.eps) * 2.0**high
        self.min = -self.max
        self.smallest_normal = self.tiny = 2.0**low
        self.resolution = 10.0 ** -int((digits - 1) * math.log10(2))


class iinfo(_Limits):
    """Limits of an integer dtype: bits, max, min."""

    def __init__(self, dtype: Any) -> None:
        if not isinstance(dtype, _C.dtype) or dtype.is_floating_point or dtype.is_complex or dtype == _C.bool:
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{dtype}'")
        super().__init__(dtype, ("min", "max"))
        self.max = 2 ** (self.bits - (1 if dtype.is_signed else 0)) - 1
        self.min = -(2 ** (self.bits - 1)) if dtype.is_signed else 0


# ---------------------------------------------------------------- errors


class AcceleratorError(RuntimeError):
    """What an accelerator reports."""

    error_code = 0


class OutOfMemoryError(RuntimeError):
    """An accelerator's memory is used up."""


# ---------------------------------------------------------------- numbers that a trace could leave open


def sym_int(a: Any) -> int:
    """int(a)."""
    return int(a)


def sym_float(a: Any) -> float:
    """float(a)."""
    return float(a)


def sym_not(a: Any) -> bool:
    """not a."""
    return not a


def sym_max(a: Any, b: Any) -> Any:
    """max(a, b), a float if one of them is."""
    greater = max(a, b)
    return float(greater) if isinstance(a, float) or isinstance(b, float) else greater


def sym_min(a: Any, b: Any) -> Any:
    """min(a, b), a float if one of them is."""
    less = min(a, b)
    return float(less) if isinstance(a, float) or isinstance(b, float) else less


def sym_sqrt(a: Any) -> float:
    """The square root."""
    return math.sqrt(a)


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """t if b else f."""
    return t if b else f


def sym_sum(args: Any) -> Any:
    """sum(args)."""
    return sum(args)
