"""Calls public functions with odd arguments in PyTorch and in Rushlight, and compares what comes of it.

    python tests/tools/fuzz_functions.py --seed 0 --calls 30 --functions '^(linalg\\.)?(norm|cumsum)$'

A call is a sample of PyTorch's operator database, or random arguments by the operation's schema, with some arguments
made odd: see fuzz_arguments.py. It is drawn from seed and function name alone. Both implementations get tensors of the
same bytes and strides. Printed are the calls whose outcomes differ, by kind:

    value     both return, but not the same (shape, dtype, elements; arguments written to count as returned)
    layout    the same but for the strides
    alias     the same, but one shares memory with an argument and the other does not
    refuses   only Rushlight raises
    accepts   only PyTorch raises
    type      both raise, exceptions of different classes
    crash     the process died, or a call took longer than SECONDS

Differences that docs/differences.md describes, and those that say nothing, are in fuzz_accepted.py.
"""

from __future__ import annotations

import argparse
import collections
import os
import pickle
import re
import resource
import signal
import sys
import traceback
import warnings
import zlib
from pathlib import Path

import numpy as np
import torch

import rushlight

sys.path.insert(0, str(Path(__file__).parent))
from fuzz_accepted import accepted
from fuzz_arguments import DATABASE, SCHEMAS, Other, calls, clone, database, schemas, usable

SPACES = (
    "",
    "Tensor",
    "linalg",
    "fft",
    "special",
    "nn.functional",
    "nn.init",
    "nn.utils",
    "nn.utils.rnn",
    "masked",
    "signal.windows",
)
SECONDS = 20  # for a call in both
MEMORY = 6 << 30  # bytes a process may ask for beyond what it has at the start

# Not functions of their arguments alone, or by design another thing (docs/differences.md).
OUTSIDE = re.compile(
    r"^(Tensor\.)?(empty|empty_like|new_empty|empty_strided|new_empty_strided|empty_permuted|resize_|resize_as_|resize|"
    r"is_shared|share_memory_|(const_|mutable_)?data_ptr|untyped_storage|storage|typed_storage|set_|register_.*|retain_grad|"
    r"as_subclass|module_load|get_.*|set_.*|seed|initial_seed|manual_seed|save|load|compile|(un)?pin_memory|pin_memory|"
    r"is_pinned|cuda|xpu|from_file|storage_offset|storage_type|type|typename|has_names|names|rename_?|refine_names|align_.*|"
    r"init_num_threads|nonzero_static|__.*|_.*|apply_|map_|map2_|abs_dynamic|vmap|cond|while_loop|.*_compile.*|"
    r"is_.*_enabled|is_.*_available|are_.*|prepare_.*|use_.*|.*deterministic.*|chalf|sparse.*|quantize.*|.*sym_.*|"
    r"frombuffer|from_numpy|utils|dlpack|to_dlpack|from_dlpack|asarray|unravel_index|Generator|.*Storage|.*Tensor|backward|"
    r"nn\.utils\..*(fuse|skip_init|stateless|convert|weight_norm|spectral_norm).*|grad|storage_nbytes)$"
)


def plain(value, library):
    """A result as something to compare: arrays with dtype names, numbers, strings."""
    if isinstance(value, library.Tensor):
        t = value.detach()
        dtype = str(t.dtype).rpartition(".")[2]
        if dtype == "bfloat16":
            t = t.float()
        t = t.resolve_conj().resolve_neg() if t.layout == library.strided else t.to_dense()
        array = np.array(t.numpy()) if not t.is_meta else None
        return ("tensor", dtype, array, tuple(t.shape), value.requires_grad, tuple(value.stride()))
    if isinstance(value, (list, tuple)):
        return ("list", [plain(v, library) for v in value])
    if isinstance(value, dict):
        return ("dict", {k: plain(v, library) for k, v in value.items()})
    if isinstance(value, (bool, int, float, complex, str, type(None))):
        return ("value", value)
    return ("other", str(value).replace("rushlight", "torch"))


def tensors(value, library):
    """All tensors in a value."""
    if isinstance(value, library.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [t for item in items for t in tensors(item, library)]


def shared_with(value, given, library):
    """For every tensor of a result, the numbers of the arguments whose memory it shares."""
    where = [t.untyped_storage().data_ptr() if t.numel() else 0 for t in tensors(given, library)]
    places = [t.untyped_storage().data_ptr() if t.numel() else 0 for t in tensors(value, library)]
    return [[i for i, place in enumerate(where) if place and place == p] for p in places]


def outcome(library, name, args, kwargs):
    function = library
    for part in name.split("."):
        function = getattr(function, part)
    library.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if callable(function):
                made = function(*args, **kwargs)
            else:  # a property of Tensor
                made = function.__get__(args[0])
            result = plain(made, library)
        except Exception as error:
            kind = next(k for k in type(error).__mro__ if k.__module__ == "builtins")
            return ("raise", kind.__name__, str(error).splitlines()[0][:160] if str(error) else "")
        return (
            "return",
            result,
            plain(args, library),
            plain(list(kwargs.values()), library),
            shared_with(made, (args, kwargs), library),
        )


TOLERANCES = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-4, "complex64": 2e-4}


def difference(a, b, tolerance=0.0):
    """How two plain values differ, or an empty string."""
    if a[0] != b[0]:
        return f"{a[0]} and {b[0]}"
    if a[0] == "list":
        if len(a[1]) != len(b[1]):
            return f"{len(a[1])} and {len(b[1])} results"
        return next((d for d in (difference(x, y, tolerance) for x, y in zip(a[1], b[1], strict=True)) if d), "")
    if a[0] == "dict":
        if a[1].keys() != b[1].keys():
            return "keys"
        return next((d for d in (difference(a[1][k], b[1][k], tolerance) for k in a[1]) if d), "")
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
            same = x == y
        else:
            t = max(tolerance, TOLERANCES.get(a[1], 1e-7))
            finite = np.abs(x[np.isfinite(x)])
            with np.errstate(all="ignore"):
                scale = t * max(1e-3, float(finite.max()) if finite.size else 0)
                same = np.isclose(x, y, rtol=t, atol=scale if np.isfinite(scale) else 0.0, equal_nan=True)
        few = [values[~same][:4].tolist() for values in (x, y)]
        return "" if same.all() else f"elements {few[0]} and {few[1]}"
    if a[0] == "value" and isinstance(a[1], (float, complex)) and isinstance(b[1], (float, complex)):
        return "" if np.isclose(a[1], b[1], rtol=1e-4, atol=1e-5, equal_nan=True) else f"{a[1]} and {b[1]}"
    return "" if a[1] == b[1] and type(a[1]) is type(b[1]) else f"{a[1]!r} and {b[1]!r}"


def strides_differ(a, b):
    """Where two results alike lie differently in memory: of dimensions that have more than one element."""
    if a[0] == "list":
        return next((d for d in map(strides_differ, a[1], b[1]) if d), "")
    if a[0] != "tensor" or a[2] is None or not a[2].size:
        return ""
    mine, theirs = ([s for s, n in zip(v[5], v[3], strict=True) if n > 1] for v in (b, a))
    return "" if mine == theirs else f"strides {list(a[5])} and {list(b[5])}"


def text(value):
    if isinstance(value, torch.Tensor):
        t = value
        layout = "" if t.is_contiguous() else f" strides {list(t.stride())}"
        few = f"={t.tolist()}" if 0 < t.numel() <= 4 else ""
        return f"{str(t.dtype)[6:]}{list(t.shape)}{layout}{' grad' if t.requires_grad else ''}{few}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(text, value)) + "]"
    return str(value).removeprefix("torch.")


def compare(name, args, kwargs, at=lambda side: None):
    """(kind, what, call) of a call whose outcomes differ, else None. `at` is told whose turn it is."""
    if not (usable(args) and usable(kwargs)):
        return None
    other = Other()
    mine = other(args), other(kwargs)
    shared: dict = {}
    theirs = clone(args, shared), clone(kwargs, shared)
    call = f"{name}({', '.join([*map(text, args), *(f'{k}={text(v)}' for k, v in kwargs.items())])})"
    at("torch")
    a = outcome(torch, name, *theirs)
    at("rushlight")
    b = outcome(rushlight, name, *mine)
    at("")
    if a[0] == "raise" and b[0] == "raise":
        same = a[1] == b[1] or {a[1], b[1]} == {"RuntimeError", "NotImplementedError"}
        return None if same else ("type", f"{a[1]} ({a[2]}) and {b[1]} ({b[2]})", call)
    if a[0] == "raise":
        return "accepts", f"{a[1]} ({a[2]})", call
    if b[0] == "raise":
        return "refuses", f"{b[1]} ({b[2]})", call
    dtypes = [str(t.dtype)[6:] for t in tensors((args, kwargs), torch)]
    tolerance = max((TOLERANCES.get(dtype, 0.0) for dtype in dtypes), default=0.0)
    for part, where in zip(range(1, 4), ("", "argument: ", "keyword: "), strict=True):
        d = difference(a[part], b[part], tolerance)
        if d:
            return "value", where + d, call
    d = strides_differ(a[1], b[1])
    if d:
        return "layout", d, call
    if a[4] != b[4]:
        return "alias", f"memory shared with arguments {a[4]} and {b[4]}", call
    return None


def public_names(pattern):
    for space in SPACES:
        owner = torch
        mine = rushlight
        for part in filter(None, space.split(".")):
            owner, mine = getattr(owner, part), getattr(mine, part)
        for name in sorted(n for n in dir(owner) if not n.startswith("_")):
            full = f"{space}.{name}" if space else name
            value = getattr(owner, name, None)
            known = callable(value) or (space == "Tensor" and hasattr(value, "__get__"))
            if OUTSIDE.match(full) or not known or isinstance(value, type) or not hasattr(mine, name):
                continue
            if getattr(value, "__module__", None) in ("typing", "functools", "contextlib", "warnings"):
                continue
            if re.search(pattern, full):
                yield full


def _child(out, name, seed, count, start):
    """All calls from `start` on; writes what it finds, and where it is, so that its death tells what killed it."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
    for number, (args, kwargs) in enumerate(calls(name, seed, count, start), start):
        signal.alarm(SECONDS)  # ends the process, wherever it is
        here = f"{name}({', '.join([*map(text, args), *(f'{k}={text(v)}' for k, v in kwargs.items())])})"
        found = compare(name, args, kwargs, lambda side, n=number, h=here: out.write(pickle.dumps(("at", n, side, h))))
        out.write(pickle.dumps(("done", number, "", "")))
        if found:
            out.write(pickle.dumps(found))
    out.write(pickle.dumps(("end",)))


def run_function(name, seed, count, start=0):
    """All differences of one function, in a process of its own, and another one after each crash."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            with os.fdopen(write, "wb", buffering=0) as out:
                _child(out, name, seed, count, start)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(write)
    found, last, ended = [], (start, "", ""), False
    with os.fdopen(read, "rb") as source:
        while not ended:
            try:
                item = pickle.load(source)
            except EOFError:
                break
            if item[0] in ("at", "done"):
                last = item[1:]
            elif item[0] == "end":
                ended = True
            else:
                found.append(item)
    _, status = os.waitpid(child, 0)
    if not ended:
        how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"
        number, side, call = last
        if side != "torch":  # what kills PyTorch says nothing about us
            found.append(("crash", f"{how} in {side or 'the comparison'}", call or name))
        if number + 1 < count and call:
            found += run_function(name, seed, count, number + 1)
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
    parser.add_argument("--every", type=int, default=1, help="only each n-th of these functions, by the seed")
    parser.add_argument("--kinds", default="value layout alias refuses accepts type crash")
    parser.add_argument("--all", action="store_true", help="those of fuzz_accepted.py, too")
    options = parser.parse_args()
    prepare()
    totals: collections.Counter = collections.Counter()
    for name in public_names(options.functions):
        # By the name alone, so that a new function does not change which of the others are called.
        if zlib.crc32(f"{options.seed} {name}".encode()) % options.every:
            continue
        totals["calls"] += options.calls
        for kind, what, call in run_function(name, options.seed, options.calls):
            if kind not in options.kinds.split() or (not options.all and accepted(name, kind, what, call)):
                continue
            totals[kind] += 1
            print(f"{kind:8}{call}\n        {what}", flush=True)
        totals["functions"] += 1
    print(dict(totals))
    return 1 if totals.keys() - {"functions", "calls"} else 0


if __name__ == "__main__":
    sys.exit(main())
