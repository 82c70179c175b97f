"""Random calls of public functions, drawn from a seed: the arguments, odd ones among them, for both libraries."""

from __future__ import annotations

import collections
import importlib
import inspect
import math
import random
import zlib

import numpy as np
import torch

import rushlight
import rushlight.ops


class Draw:
    """Random arguments from one seed."""

    SHAPES = (
        (3,),
        (2, 3),
        (3, 3),
        (),
        (0,),
        (1,),
        (2, 3, 4),
        (2, 0, 3),
        (1, 2, 4, 5),
        (4, 1),
        (2, 3, 3),
        (17,),
        (2, 33),
    )
    DTYPES = ("float32", "float64", "int64", "bool", "complex64", "bfloat16", "uint8", "int32", "float16")
    NUMBERS = (0.5, 2, -1.5, 0, 1, True, -0.0, 1e-3, 7, math.nan, math.inf, -math.inf, 1 + 2j, 300, -1, 2**31, 1e30)
    SIZES = (2**31, 2**62, 2**63 - 1, -(2**63), 2**16)

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.shape = self.random.choice(self.SHAPES)
        self.dtype = self.random.choice(self.DTYPES[: self.random.choice((1, 3, len(self.DTYPES)))])
        self.plain = self.random.random() < 0.5  # no odd layouts, no odd elements

    def tensor(self, shape=None, dtype=None):
        r = self.random
        shape = shape if shape is not None else (self.shape if r.random() < 0.75 else r.choice(self.SHAPES))
        name = dtype or (self.dtype if r.random() < 0.85 else r.choice(self.DTYPES))
        t = self.elements(shape, getattr(torch, name))
        if self.plain:
            return t
        if r.random() < 0.25:
            t = self.odd_elements(t)
        return self.odd_layout(t) if r.random() < 0.4 else t

    def elements(self, shape, dtype):
        r = self.random
        g = torch.Generator().manual_seed(r.randrange(1 << 30))
        if dtype == torch.bool:
            return torch.randint(0, 2, shape, generator=g).bool()
        if not (dtype.is_floating_point or dtype.is_complex):
            return torch.randint(0 if dtype == torch.uint8 else -3, 5, shape, generator=g).to(dtype)
        wide = torch.cdouble if dtype.is_complex else torch.double
        return (torch.randn(shape, generator=g, dtype=wide) * 2).to(dtype)

    def odd_elements(self, t):
        """With a few elements at the ends of the dtype."""
        r = self.random
        t = t.detach().clone()
        if t.is_floating_point() or t.is_complex():
            info = torch.finfo(t.dtype)
            odd = (math.nan, math.inf, -math.inf, -0.0, 0.0, info.max, info.min, info.tiny, info.tiny / 4, 1.0, -1.0)
        elif t.dtype == torch.bool:
            return t
        else:
            info = torch.iinfo(t.dtype)
            odd = (info.max, info.min, 0, 1)
        for _ in range(r.choice((1, 1, 3)) if t.numel() else 0):
            t[tuple(map(r.randrange, t.shape))] = r.choice(odd)
        return t

    def odd_layout(self, t):
        """The same shape and dtype over another layout."""
        r = self.random
        kind = r.randrange(6)
        if kind == 0 and t.dim():
            return torch.stack([t, t], -1)[..., 0]  # gaps
        if kind == 1 and t.dim() > 1:
            return t.transpose(0, -1).contiguous().transpose(0, -1)
        if kind == 2 and t.dim() and t.shape[0]:
            return t[:1].expand(t.shape)  # elements that share memory
        if kind == 3:
            return torch.cat([t.reshape(-1)[:1], t.reshape(-1)])[min(1, t.numel()) :].view(t.shape)  # an offset
        if kind == 4 and t.dim() == 4:
            return t.contiguous(memory_format=torch.channels_last)
        if kind == 5 and t.dim() > 1 and t.shape[-1] > 0:
            wide = torch.cat([t, t], -1)
            return wide.narrow(-1, 0, t.shape[-1])  # rows further apart
        return t

    def integer(self):
        return self.random.choice((0, 1, -1, 2, -2, 3, 5, -7))

    def by_kind(self, kind, optional, default):
        """An argument for a type of a schema; ... for the default."""
        r = self.random
        if default is not None and r.random() < 0.6:
            return ...
        if optional and r.random() < 0.3:
            return None
        if kind == "Tensor":
            return self.tensor()
        if kind == "Tensor|Scalar":
            return self.tensor() if r.random() < 0.6 else r.choice((2, 0.5, -1, True, 0, *self.NUMBERS))
        if kind in ("Scalar", "float"):
            return r.choice((0.5, 2, -1.5, 0, 1) if r.random() < 0.6 else self.NUMBERS)
        if kind == "int":
            return self.integer()
        if kind == "bool":
            return r.random() < 0.5
        if kind.startswith("int["):
            n = int(kind[4:-1] or 0)
            if n == 1 and r.random() < 0.5:
                return self.integer()
            return [abs(self.integer()) if n > 1 else self.integer() for _ in range(n if n > 1 else r.randrange(4))]
        if kind.startswith("float["):
            return [r.choice((0.5, 2.0, 1.5)) for _ in range(int(kind[6:-1] or 2))]
        if kind.startswith("Tensor"):
            return [self.tensor() for _ in range(r.randrange(1, 4))]
        if kind == "ScalarType":
            return getattr(torch, r.choice(self.DTYPES))
        if kind == "MemoryFormat":
            return r.choice((torch.contiguous_format, torch.preserve_format, torch.channels_last))
        if kind == "str":
            return r.choice(("mean", "sum", "none", "ij", "reflect", "linear", "fro", "bad"))
        return ...

    def by_default(self, default):
        """An argument for a parameter of a Python function, by its default."""
        if default is inspect.Parameter.empty:
            return self.tensor() if self.random.random() < 0.7 else self.integer()
        kinds = ((bool, "bool"), (int, "int"), (float, "float"), (str, "str"), (tuple, "int[]"))
        kind = next((k for t, k in kinds if isinstance(default, t)), None)
        return ... if kind is None else self.by_kind(kind, False, default)

    # ------------------------------------------------------------ oddities

    def odd_tensor(self, t):
        r = self.random
        kind = r.randrange(11)
        if kind == 3:
            return self.tensor(dtype=str(t.dtype)[6:])
        if kind == 4:
            return t.to(getattr(torch, r.choice(self.DTYPES)))
        if kind == 5:
            return t.new_zeros(())
        if kind == 6:
            return t.new_zeros((0,) * t.dim() if t.dim() else (0,))
        if kind == 7 and (t.is_floating_point() or t.is_complex()):
            return t.detach().clone().requires_grad_()
        if kind == 8:
            return self.odd_elements(t)
        if kind == 9:
            return t.unsqueeze(r.randrange(t.dim() + 1))
        if kind == 10 and t.dim():
            return t.select(0, 0) if t.shape[0] else t
        return self.odd_layout(t)

    def odd(self, value):
        r = self.random
        if isinstance(value, torch.Tensor):
            return self.odd_tensor(value) if r.random() < 0.93 else r.choice((1, 2.5, None, [1.0], "x", (1, 2)))
        if isinstance(value, bool):
            return r.choice((not value, 1, None))
        if isinstance(value, int):
            if r.random() < 0.1:
                return r.choice(self.SIZES)
            return r.choice((value, self.integer(), value + 1, -value, True, 1.0, 100, -100, None, "x", [value]))
        if isinstance(value, float):
            return r.choice((0, -value, 1, math.inf, math.nan, True, value * 2, 1j, 1e300, "x", None))
        if isinstance(value, (list, tuple)) and value and r.random() < 0.8:
            at = r.randrange(len(value))
            changed = [self.odd(v) if i == at else v for i, v in enumerate(value)]
            return type(value)(changed) if type(value) in (list, tuple) else changed
        if isinstance(value, (list, tuple)):
            return r.choice(([], list(value) + list(value)[-1:], value[0] if value else 1))
        if isinstance(value, torch.dtype):
            return getattr(torch, r.choice(self.DTYPES))
        return value

    def out(self, args, results):
        """Something to give as out=."""
        r = self.random
        first = args[0]
        choices = (
            first,  # the input itself
            torch.empty(0, dtype=first.dtype),
            self.tensor((0,)),
            self.tensor(),
            first.detach().clone(),
            first[:1].expand(first.shape) if first.dim() and first.shape[0] else first,
            first.detach().clone().requires_grad_() if first.is_floating_point() else first,
            first.flatten()[:-1] if first.is_contiguous() and first.numel() > 1 else first,  # overlaps
        )
        made = [r.choice(choices) for _ in range(results)]
        return made[0] if results == 1 else tuple(made)


# ---------------------------------------------------------------- calls


def schemas():
    """Public name -> the records of its overloads."""
    from rushlight.ops._record import TABLE

    for module in rushlight.ops.MODULES:
        importlib.import_module("rushlight.ops." + module)
    found = collections.defaultdict(list)
    for record in TABLE.values():
        for public in record.public:
            found[public].append(record)
            if record.inplace:
                found[public + "_"].append(record)
        if record.method:
            found["Tensor." + record.name].append(record)
            if record.inplace:
                found["Tensor." + record.name + "_"].append(record)
    return found


def database():
    from torch.testing._internal.common_methods_invocations import op_db

    found = collections.defaultdict(list)
    for info in op_db:
        for name in (info.name, *(alias.name for alias in info.aliases)):
            found[name].append(info)
    return found


DATABASE: dict[str, list] = {}
SCHEMAS: dict[str, list] = {}


def samples(name):
    """Sample inputs of PyTorch's database for a public name, as (args, kwargs)."""
    short = name.removeprefix("Tensor.")
    infos = DATABASE.get(short, ()) or (DATABASE.get(short[:-1], ()) if short.endswith("_") else ())
    for info in infos:
        for dtype in (torch.float32, torch.int64, torch.bfloat16, torch.complex64):
            if dtype not in info.dtypes:
                continue
            try:
                for s in list(info.sample_inputs("cpu", dtype, requires_grad=False))[:24]:
                    yield (s.input, *s.args), dict(s.kwargs)
            except Exception:  # a sample of the database that cannot be made
                continue


def parameters(name):
    """The parameters of PyTorch's function, where it is written in Python."""
    function = torch
    for part in name.split("."):
        function = getattr(function, part)
    try:
        return [
            p
            for p in inspect.signature(function).parameters.values()
            if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        ]
    except (TypeError, ValueError):
        return []


def _by_schema(draw, record, method):
    """Arguments by a record; now and then those after one given by name, too."""
    args, kwargs = [], {}
    named_from = draw.random.choice((1, 1, 2)) if draw.random.random() < 0.15 else 99
    keywords = False
    for at, a in enumerate(record.arguments):
        value = draw.by_kind(a.type, a.optional, a.default)
        keywords = keywords or value is ... or a.keyword_only or at >= named_from
        if value is ...:
            continue
        if keywords and (at or not method):
            kwargs["input" if a.name == "self" else a.name] = value
        else:
            args.append(value)
    return args, kwargs


def _by_signature(draw, found):
    args, kwargs = [], {}
    keywords = False
    for p in found:
        value = draw.by_default(p.default)
        keywords = keywords or value is ... or p.kind is p.KEYWORD_ONLY
        if value is ...:
            continue
        if keywords:
            kwargs[p.name] = value
        else:
            args.append(value)
    return args, kwargs


def calls(name, seed, count, start=0):
    """The calls of one function from number `start` on: (args, kwargs) in PyTorch's tensors."""
    known = list(samples(name))
    records = SCHEMAS.get(name, ())
    signature = [] if records or known else parameters(name)
    for number in range(start, count):
        draw = Draw(zlib.crc32(f"{name} {seed} {number}".encode()))
        r = draw.random
        if known and (not records or r.random() < 0.5):
            args, kwargs = r.choice(known)
        elif records:
            args, kwargs = _by_schema(draw, r.choice(records), name.startswith("Tensor."))
        elif signature:
            args, kwargs = _by_signature(draw, signature)
        else:
            args, kwargs = [draw.tensor() for _ in range(r.randrange(1, 3))], {}
        args, kwargs = list(args), dict(kwargs)
        for _ in range(r.choice((0, 1, 1, 2))):
            if kwargs and (not args or r.random() < 0.3):
                key = r.choice(sorted(kwargs))
                kwargs[key] = draw.odd(kwargs[key])
            elif args:
                at = r.randrange(len(args))
                args[at] = draw.odd(args[at])
        if name.startswith("Tensor.") and args and not isinstance(args[0], torch.Tensor):
            args[0] = draw.tensor()  # a method of something else is not ours
        what = r.random()
        if what < 0.04 and len(args) > 1:
            args.pop()
        elif what < 0.16 and args and isinstance(args[0], torch.Tensor) and not name.startswith("Tensor."):
            results = len(records[0].results) if records else 1
            if not records or any(record.out for record in records):
                kwargs["out"] = draw.out(args, results)
        yield args, kwargs


# ---------------------------------------------------------------- both sides


class Other:
    """PyTorch's values as Rushlight's: tensors of the same bytes and strides; what shares memory still does."""

    def __init__(self):
        self.storages = {}
        self.made = {}  # by id: a tensor given twice is one tensor

    def __call__(self, value):
        if isinstance(value, torch.Tensor):
            if id(value) not in self.made:
                self.made[id(value)] = self.tensor(value)
            return self.made[id(value)]
        if isinstance(value, torch.Size):
            return rushlight.Size(value)
        if isinstance(value, (list, tuple)):
            items = [self(v) for v in value]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if isinstance(value, dict):
            return {k: self(v) for k, v in value.items()}
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return getattr(rushlight, str(value).removeprefix("torch."))
        if isinstance(value, torch.device):
            return rushlight.device(str(value))
        return value

    def tensor(self, t):
        base = t.detach()
        key = base.untyped_storage().data_ptr(), base.dtype
        whole = self.storages.get(key)
        if whole is None or not base.numel():
            items = base.untyped_storage().nbytes() // base.element_size()
            flat = base.as_strided((items,), (1,), 0).resolve_conj()
            bits = flat.view(torch.int16) if t.dtype == torch.bfloat16 else flat
            whole = rushlight.from_numpy(bits.numpy()).clone()
            whole = whole.view(rushlight.bfloat16) if t.dtype == torch.bfloat16 else whole
            self.storages[key] = whole
        made = whole.as_strided(tuple(base.shape), tuple(base.stride()), base.storage_offset()).detach()
        return made.requires_grad_() if t.requires_grad else made


def usable(value):
    """Whether both libraries can hold the value."""
    if isinstance(value, torch.Tensor):
        return (
            value.layout == torch.strided
            and not value.is_conj()
            and not value.is_neg()
            and (str(value.dtype)[6:] in (*Draw.DTYPES, "complex128", "int8", "int16"))
        )
    if isinstance(value, (list, tuple)):
        return all(usable(v) for v in value)
    if isinstance(value, dict):
        return all(usable(v) for v in value.values())
    known = (int, float, complex, str, type(None), torch.dtype, torch.device, torch.memory_format, slice, type(...))
    return isinstance(value, (*known, np.generic))


def clone(value, shared):
    """A copy of arguments in which what was the same tensor still is, and what shared memory still does."""
    if isinstance(value, torch.Tensor):
        if id(value) not in shared:
            base = value.detach()
            key = ("storage", base.untyped_storage().data_ptr(), base.dtype)
            if key not in shared:
                items = base.untyped_storage().nbytes() // base.element_size()
                shared[key] = base.as_strided((items,), (1,), 0).clone()
            made = shared[key].as_strided(base.shape, base.stride(), base.storage_offset()).detach()
            shared[id(value)] = made.requires_grad_() if value.requires_grad else made
        return shared[id(value)]
    if isinstance(value, (list, tuple)):
        items = [clone(v, shared) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {k: clone(v, shared) for k, v in value.items()}
    return value
