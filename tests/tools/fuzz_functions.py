"""Calls public functions with odd arguments in PyTorch and in Rushlight, and compares what comes of it.

    python tests/tools/fuzz_functions.py --seed 0 --calls 30 --functions '^(linalg\\.)?(norm|cumsum)$'

A call is a sample of PyTorch's operator database, or random arguments by the operation's schema, with some arguments
made odd: another dtype, layout or shape, 0-dim, empty, expanded, requiring grad, dimensions that do not exist, a bool
for a number, an argument too few, an out= that overlaps. It is drawn from seed and function name alone. Both
implementations get tensors of the same bytes and strides. Printed are the calls whose outcomes differ, by kind:

    value     both return, but not the same (shape, dtype, elements; arguments written to count as returned)
    refuses   only Rushlight raises
    accepts   only PyTorch raises
    type      both raise, exceptions of different classes
    crash     the process died
"""

from __future__ import annotations

import argparse
import collections
import math
import os
import pickle
import random
import re
import signal
import sys
import traceback
import warnings
import zlib

import numpy as np
import torch

import rushlight

SPACES = ("", "Tensor", "linalg", "fft", "special", "nn.functional")
SECONDS = 60  # for the calls of one function

# Not functions of their arguments alone, or by design another thing (docs/differences.md).
OUTSIDE = re.compile(
    r"^(Tensor\.)?(empty|empty_like|new_empty|empty_strided|new_empty_strided|empty_permuted|resize_|resize_as_|resize|"
    r"is_shared|share_memory_|data_ptr|untyped_storage|storage|typed_storage|set_|register_.*|retain_grad|backward|"
    r"as_subclass|module_load|get_.*|set_.*|seed|initial_seed|manual_seed|save|load|compile|(un)?pin_memory|pin_memory|"
    r"is_pinned|cuda|xpu|from_file|storage_offset|storage_type|type|typename|has_names|names|rename_?|refine_names|align_.*|"
    r"init_num_threads|nonzero_static|__.*|_.*|apply_|map_|map2_|abs_dynamic|vmap|cond|while_loop|.*_compile.*|"
    r"is_.*_enabled|is_.*_available|are_.*|prepare_.*|use_.*|.*deterministic.*|chalf|sparse.*|quantize.*|.*sym_.*|"
    r"frombuffer|from_numpy|utils|dlpack|to_dlpack|from_dlpack|asarray|unravel_index|Generator|.*Storage|.*Tensor)$"
)
# name: reason. Differences that docs/differences.md describes.
ACCEPTED = {
    "histc": "counts of 16-bit floats are exact",
}


# ---------------------------------------------------------------- arguments


class Draw:
    """Random arguments from one seed."""

    SHAPES = ((3,), (2, 3), (3, 3), (), (0,), (1,), (2, 3, 4), (2, 0, 3), (1, 2, 4, 5), (4, 1), (2, 3, 3))
    DTYPES = ("float32", "float64", "int64", "bool", "complex64", "bfloat16", "uint8", "int32", "float16")

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.shape = self.random.choice(self.SHAPES)
        self.dtype = self.random.choice(self.DTYPES[: self.random.choice((1, 3, len(self.DTYPES)))])

    def tensor(self, shape=None, dtype=None):
        r = self.random
        shape = shape if shape is not None else (self.shape if r.random() < 0.75 else r.choice(self.SHAPES))
        dtype = getattr(torch, dtype or (self.dtype if r.random() < 0.85 else r.choice(self.DTYPES)))
        g = torch.Generator().manual_seed(r.randrange(1 << 30))
        if dtype == torch.bool:
            return torch.randint(0, 2, shape, generator=g).bool()
        if not (dtype.is_floating_point or dtype.is_complex):
            return torch.randint(0 if dtype == torch.uint8 else -3, 5, shape, generator=g).to(dtype)
        return (torch.randn(shape, generator=g, dtype=torch.cdouble if dtype.is_complex else torch.double) * 2).to(
            dtype
        )

    def integer(self):
        return self.random.choice((0, 1, -1, 2, -2, 3, 5, -7))

    def by_kind(self, kind, optional, default):
        """An argument for a type of a schema."""
        r = self.random
        if default is not None and r.random() < 0.6:
            return ...
        if optional and r.random() < 0.3:
            return None
        if kind == "Tensor":
            return self.tensor()
        if kind == "Tensor|Scalar":
            return self.tensor() if r.random() < 0.6 else r.choice((2, 0.5, -1, True, 0))
        if kind in ("Scalar", "float"):
            return r.choice((0.5, 2, -1.5, 0, 1))
        if kind == "int":
            return self.integer()
        if kind == "bool":
            return r.random() < 0.5
        if kind.startswith("int["):
            n = int(kind[4:-1] or 0)
            if n == 1 and r.random() < 0.5:
                return self.integer()
            return [abs(self.integer()) if n > 1 else self.integer() for _ in range(n if n > 1 else r.randrange(4))]
        if kind.startswith("Tensor"):
            return [self.tensor() for _ in range(r.randrange(1, 4))]
        if kind == "ScalarType":
            return getattr(torch, r.choice(self.DTYPES))
        return ...

    # ------------------------------------------------------------ oddities

    def odd_tensor(self, t):
        r = self.random
        kind = r.randrange(11)
        if kind == 0 and t.dim():
            return torch.stack([t, t], -1)[..., 0]  # gaps
        if kind == 1 and t.dim() > 1:
            return t.transpose(0, -1).contiguous().transpose(0, -1)
        if kind == 2:
            return t[:1].expand(t.shape) if t.dim() and t.shape[0] else t
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
        if kind == 8 and t.numel():
            t = t.detach().clone()
            t[tuple(map(r.randrange, t.shape))] = (
                r.choice((math.nan, math.inf, -math.inf)) if t.is_floating_point() else 0
            )
            return t
        if kind == 9:
            return t.unsqueeze(r.randrange(t.dim() + 1))
        if kind == 10 and t.dim():
            return t.select(0, 0) if t.shape[0] else t
        return t.clone()

    def odd(self, value):
        r = self.random
        if isinstance(value, torch.Tensor):
            return self.odd_tensor(value) if r.random() < 0.93 else r.choice((1, 2.5, None, [1.0]))
        if isinstance(value, bool):
            return r.choice((not value, 1, None))
        if isinstance(value, int):
            return r.choice((value, self.integer(), value + 1, -value, True, 1.0, 100, -100, None))
        if isinstance(value, float):
            return r.choice((0, -value, 1, math.inf, math.nan, True, value * 2))
        if isinstance(value, (list, tuple)) and value and r.random() < 0.8:
            at = r.randrange(len(value))
            changed = [self.odd(v) if i == at else v for i, v in enumerate(value)]
            return type(value)(changed) if type(value) in (list, tuple) else changed
        if isinstance(value, (list, tuple)):
            return (lambda options: options[r.randrange(3)])(
                [[], list(value) + list(value)[-1:], value[0] if value else 1]
            )
        return value


def schemas():
    """Public name -> the arguments of its overloads, from the records."""
    import rushlight.ops  # noqa: F401
    from rushlight.ops._record import TABLE

    found = collections.defaultdict(list)
    for record in TABLE.values():
        for public in record.public:
            found[public].append(record.arguments)
            if record.inplace:
                found["Tensor." + public + "_"].append(record.arguments)
        if record.method:
            found["Tensor." + record.name].append(record.arguments)
        if record.writes_self:
            found["Tensor." + record.name].append(record.arguments)
    return found


def samples(name):
    """Sample inputs of PyTorch's database for a public name, as (args, kwargs)."""
    short = name.removeprefix("Tensor.")
    infos = DATABASE.get(short, ()) or (DATABASE.get(short[:-1], ()) if short.endswith("_") else ())
    for info in infos:
        for dtype in (torch.float32, torch.int64, torch.bfloat16):
            if dtype not in info.dtypes:
                continue
            try:
                for s in list(info.sample_inputs("cpu", dtype, requires_grad=False))[:24]:
                    yield (s.input, *s.args), dict(s.kwargs)
            except Exception:  # a sample of the database that cannot be made
                continue


def database():
    from torch.testing._internal.common_methods_invocations import op_db

    found = collections.defaultdict(list)
    for info in op_db:
        for name in (info.name, *(alias.name for alias in info.aliases)):
            found[name].append(info)
    return found


DATABASE: dict[str, list] = {}
SCHEMAS: dict[str, list] = {}


def calls(name, seed, count):
    """The calls of one function: (args, kwargs) in PyTorch's tensors."""
    known = list(samples(name))
    for number in range(count):
        draw = Draw(zlib.crc32(f"{name} {seed} {number}".encode()))
        r = draw.random
        kinds = SCHEMAS.get(name, ())
        if known and (not kinds or r.random() < 0.6):
            args, kwargs = r.choice(known)
        elif kinds:
            args, kwargs = [], {}
            keywords = False
            for a in r.choice(kinds):
                value = draw.by_kind(a.type, a.optional, a.default)
                if value is ...:
                    keywords = True
                elif a.keyword_only or keywords:
                    kwargs[a.name] = value
                else:
                    args.append(value)
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
        what = r.random()
        if what < 0.04 and len(args) > 1:
            args.pop()
        elif what < 0.1 and args and isinstance(args[0], torch.Tensor) and not name.startswith("Tensor."):
            kwargs["out"] = args[0] if r.random() < 0.5 else draw.tensor((0,))
        yield args, kwargs


# ---------------------------------------------------------------- both sides


class Other:
    """PyTorch's values as Rushlight's: tensors of the same bytes and strides; what shares memory still does."""

    def __init__(self):
        self.storages = {}

    def __call__(self, value):
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
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
    return isinstance(value, (int, float, complex, str, type(None), torch.dtype, torch.device, slice, type(...)))


def clone(value, shared):
    """A copy of arguments in which what was the same tensor still is."""
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


def plain(value, library):
    """A result as something to compare: arrays with dtype names, numbers, strings."""
    if isinstance(value, library.Tensor):
        t = value.detach()
        dtype = str(t.dtype).rpartition(".")[2]
        if dtype == "bfloat16":
            t = t.float()
        if library is torch:
            t = t.resolve_conj().resolve_neg() if t.layout == torch.strided else t.to_dense()
        return ("tensor", dtype, np.array(t.numpy()) if not t.is_meta else None, tuple(t.shape), value.requires_grad)
    if isinstance(value, (list, tuple)):
        return ("list", [plain(v, library) for v in value])
    if isinstance(value, dict):
        return ("dict", {k: plain(v, library) for k, v in value.items()})
    if isinstance(value, (bool, int, float, complex, str, type(None))):
        return ("value", value)
    return ("other", str(value).replace("rushlight", "torch"))


def outcome(library, name, args, kwargs):
    function = library
    for part in name.split("."):
        function = getattr(function, part)
    library.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = plain(function(*args, **kwargs), library)
        except Exception as error:
            kind = next(k for k in type(error).__mro__ if k.__module__ == "builtins")
            return ("raise", kind.__name__, str(error).splitlines()[0][:160] if str(error) else "")
    return ("return", result, plain(args, library), plain(list(kwargs.values()), library))


TOLERANCES = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-4, "complex64": 2e-4}


def difference(a, b):
    """How two plain values differ, or an empty string."""
    if a[0] != b[0]:
        return f"{a[0]} and {b[0]}"
    if a[0] == "list":
        if len(a[1]) != len(b[1]):
            return f"{len(a[1])} and {len(b[1])} results"
        return next((d for d in map(difference, a[1], b[1]) if d), "")
    if a[0] == "dict":
        return "" if a[1].keys() == b[1].keys() else "keys"
    if a[0] == "tensor":
        if a[3] != b[3]:
            return f"shapes {list(a[3])} and {list(b[3])}"
        if a[1] != b[1]:
            return f"dtypes {a[1]} and {b[1]}"
        if a[4] != b[4]:
            return f"requires_grad {a[4]} and {b[4]}"
        if a[2] is None or b[2] is None or not a[2].size:
            return ""
        x, y = a[2], b[2]
        if x.dtype.kind in "biu":
            same = np.array_equal(x, y)
        else:
            t = TOLERANCES.get(a[1], 1e-7)
            finite = np.abs(x[np.isfinite(x)])
            with np.errstate(all="ignore"):
                same = np.allclose(
                    x, y, rtol=t, atol=t * max(1e-3, float(finite.max()) if finite.size else 0), equal_nan=True
                )
        return "" if same else f"elements {x.ravel()[:4].tolist()} and {y.ravel()[:4].tolist()}"
    if a[0] == "value" and isinstance(a[1], (float, complex)) and isinstance(b[1], (float, complex)):
        return "" if np.isclose(a[1], b[1], rtol=1e-4, atol=1e-5, equal_nan=True) else f"{a[1]} and {b[1]}"
    return "" if a[1] == b[1] and type(a[1]) is type(b[1]) else f"{a[1]!r} and {b[1]!r}"


def text(value):
    if isinstance(value, torch.Tensor):
        t = value
        layout = "" if t.is_contiguous() else f" strides {list(t.stride())}"
        few = f"={t.tolist()}" if 0 < t.numel() <= 4 else ""
        return f"{str(t.dtype)[6:]}{list(t.shape)}{layout}{' grad' if t.requires_grad else ''}{few}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(text, value)) + "]"
    return str(value).removeprefix("torch.")


def compare(name, args, kwargs):
    """(kind, what, call) of a call whose outcomes differ, else None."""
    if not (usable(args) and usable(kwargs)):
        return None
    other = Other()
    mine = other(args), other(kwargs)
    shared: dict = {}
    theirs = clone(args, shared), clone(kwargs, shared)
    call = f"{name}({', '.join([*map(text, args), *(f'{k}={text(v)}' for k, v in kwargs.items())])})"
    a = outcome(torch, name, *theirs)
    b = outcome(rushlight, name, *mine)
    if a[0] == "raise" and b[0] == "raise":
        same = a[1] == b[1] or {a[1], b[1]} == {"RuntimeError", "NotImplementedError"}
        return None if same else ("type", f"{a[1]} ({a[2]}) and {b[1]} ({b[2]})", call)
    if a[0] == "raise":
        return "accepts", f"{a[1]} ({a[2]})", call
    if b[0] == "raise":
        return "refuses", f"{b[1]} ({b[2]})", call
    for part, where in zip(range(1, 4), ("", "argument: ", "keyword: "), strict=True):
        d = difference(a[part], b[part])
        if d:
            return "value", where + d, call
    return None


def public_names(pattern):
    for space in SPACES:
        owner = torch
        mine = rushlight
        for part in filter(None, space.split(".")):
            owner, mine = getattr(owner, part), getattr(mine, part)
        for name in sorted(dir(owner)):
            full = f"{space}.{name}" if space else name
            value = getattr(owner, name, None)
            if OUTSIDE.match(full) or not callable(value) or isinstance(value, type) or not hasattr(mine, name):
                continue
            if re.search(pattern, full):
                yield full


def run_function(name, seed, count):
    """All differences of one function, in a process of its own."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        signal.alarm(SECONDS)  # ends the process, wherever it is
        try:
            with os.fdopen(write, "wb", buffering=0) as out:
                for args, kwargs in calls(name, seed, count):
                    here = f"{name}({', '.join(map(text, args))}, {kwargs.keys()})"
                    out.write(pickle.dumps(("at", here, "")))
                    found = compare(name, args, kwargs)
                    if found:
                        out.write(pickle.dumps(found))
                out.write(pickle.dumps(("end", "", "")))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(write)
    found, last, ended = [], "", False
    with os.fdopen(read, "rb") as source:
        while not ended:
            try:
                item = pickle.load(source)
            except EOFError:
                break
            if item[0] == "at":
                last = item[1]
            elif item[0] == "end":
                ended = True
            else:
                found.append(item)
    _, status = os.waitpid(child, 0)
    if not ended:
        how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"
        found.append(("crash", how, last))
    return found


def prepare():
    torch.set_num_threads(1)
    rushlight.set_num_threads(1)
    DATABASE.update(database())
    SCHEMAS.update(schemas())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--calls", type=int, default=20, help="calls of each function")
    parser.add_argument("--functions", default="", help="a regular expression on names like linalg.norm, Tensor.add_")
    parser.add_argument("--kinds", default="value refuses accepts type crash")
    options = parser.parse_args()
    prepare()
    totals: collections.Counter = collections.Counter()
    for name in public_names(options.functions):
        for kind, what, call in run_function(name, options.seed, options.calls):
            if name.removeprefix("Tensor.") in ACCEPTED or kind not in options.kinds.split():
                continue
            totals[kind] += 1
            print(f"{kind:8}{call}\n        {what}", flush=True)
        totals["functions"] += 1
    print(dict(totals))
    return 1 if totals.total() > totals["functions"] else 0


if __name__ == "__main__":
    sys.exit(main())
