"""Writes the elementwise kernels that the records imply: loops per compute dtype, their tables, and C wrappers.

``generate(table)`` returns texts by file name:

* ``elementwise_<group>.isa.cpp``: kernels, compiled once per instruction set;
* ``elementwise_complex.inc``: kernels of complex numbers, compiled once;
* ``elementwise_table.inc``: names, operand kinds and the place of every kernel;
* ``elementwise_ids.h``: the numbers of the operations, ``RL_EW_<symbol>``;
* ``elementwise_ops.h``: the C interface, one function per operation.
"""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent


def _expressions() -> Any:
    """The module rushlight.ops._expression, without importing the package (which is not built yet)."""
    name = "rushlight.ops._expression"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / "rushlight" / "ops" / "_expression.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "complex32",
]
GROUPS_OF_TYPES = {
    "int": ["uint8", "int8", "int16", "int32", "int64"],
    "float": ["float32", "float64"],
    "wide": ["float32", "float64"],  # and operands of 16-bit floats are refused
    "complex": ["complex64", "complex128"],
    "complex32": [],  # operands of it, computed in complex64
}
CPP = {
    "bool": "bool",
    "uint8": "uint8_t",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "float32": "float",
    "float64": "double",
    "complex64": "complex64",
    "complex128": "complex128",
}
REAL = {"complex64": "float32", "complex128": "float64"}
ISA_GROUPS = ("integer", "arithmetic", "transcendental")

#: Compute dtypes whose kernels may have loops for single elements (kTakesScalars in the generated files).
WITH_SCALARS = ("int32", "int64", "float32", "float64")
#: Functions whose kernels report a zero divisor of integers.
DIVISIONS = frozenset({"floor_divide", "trunc_divide", "remainder", "fmod"})
#: Functions whose vector code holds for a part of the floats: outside it (m::<name>_in_range) the kernel uses `exact`.
PARTIAL = frozenset({"sin", "cos", "tan", "sinc", "fmod", "remainder", "floor_divide"})
#: Functions of floats that are plain arithmetic; the others make a kernel one of the transcendental group.
PLAIN = frozenset(
    [
        "add",
        "sub",
        "mul",
        "div",
        "neg",
        "positive",
        "abs",
        "sign",
        "sgn",
        "square",
        "reciprocal",
        "relu",
        "where",
        "maximum",
        "minimum",
        "fmax",
        "fmin",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "logical_and",
        "logical_or",
        "logical_xor",
        "logical_not",
        "isnan",
        "isinf",
        "isfinite",
        "isposinf",
        "isneginf",
        "signbit",
        "floor",
        "ceil",
        "round",
        "trunc",
        "frac",
        "copysign",
        "conj",
        "real",
        "imag",
        "angle",
        "to_bool",
        "sqrt",
        "rsqrt",
        "heaviside",
        "deg2rad",
        "rad2deg",
    ]
)


@dataclass
class Kernel:
    """What is needed of a record to write its loops."""

    symbol: str
    inputs: list[str]
    kinds: list[str]  # "value" or "bool", per input
    result_kinds: list[str]  # "value", "bool" or "real"
    results: tuple[Any, ...]
    dtypes: list[str]

    @property
    def scalars(self) -> list[int]:
        """Sets of inputs (bit masks) that may be single elements, for which there are loops of their own.

        Reading a single element again and again from a filled tile costs a third of the speed of an addition.
        """
        names = {node.name for node in _expressions().topological(self.results)} - {"input", "constant"}
        if not names <= PLAIN:
            return []
        return {2: [1, 2], 3: [2, 4, 6]}.get(len(self.inputs), [])


def dtypes_of(types: str) -> list[str]:
    """Compute dtypes named by a record, in dtype order."""
    wanted = {dtype for word in types.split() for dtype in GROUPS_OF_TYPES.get(word, [word])}
    unknown = wanted - set(CPP)
    if unknown:
        raise ValueError(f"no compute dtypes: {sorted(unknown)}")
    return [dtype for dtype in DTYPES if dtype in wanted]


def read_kernel(op: Any) -> Kernel:
    """Traces the expression of a record."""
    expressions = _expressions()
    inputs = [a.name for a in op.arguments if a.type in ("Tensor", "Tensor|Scalar", "Scalar")]
    results = expressions.trace(op.expression, inputs)
    used = expressions.inputs_of(*results)
    missing = [name for name in used if name not in inputs]
    if missing:
        raise ValueError(f"{op.full_name}: the expression uses {missing}, which are no inputs")
    users: dict[str, set[str]] = {name: set() for name in inputs}
    for node in expressions.topological(results):
        for position, argument in enumerate(node.arguments):
            if argument.name == "input":
                users[argument.value].add("condition" if node.name == "where" and position == 0 else node.name)
    # An input that only decides is read as bool, which is what to_bool means; a cast to bool itself is of no dtype.
    conditions = {"to_bool", "condition"}
    roots = {id(result) for result in results}
    kinds = []
    for name in inputs:
        decides = bool(users[name]) and users[name] <= conditions and id(expressions.variable(name)) not in roots
        kinds.append("bool" if decides and len(inputs) > 1 else "value")
    result_kind = {"same": "value", "bool": "bool", "real": "real"}[op.options["result"]]
    return Kernel(op.symbol, inputs, kinds, [result_kind] * len(results), results, dtypes_of(op.options["types"]))


def default_kernel(op: Any, kernel: Kernel) -> Kernel | None:
    """The same with numbers at their defaults (alpha=1), as nearly every call has them: ``<symbol>__default``."""
    expressions = _expressions()
    defaults = {
        a.name: int(a.default) if a.default.lstrip("-").isdigit() else float(a.default)
        for a in op.arguments
        if a.type == "Scalar" and a.default not in (None, "None", "True", "False")
    }
    if not defaults:
        return None
    results = tuple(expressions.substitute(result, defaults) for result in kernel.results)
    kept = [i for i, name in enumerate(kernel.inputs) if name not in defaults]
    inputs, kinds = [kernel.inputs[i] for i in kept], [kernel.kinds[i] for i in kept]
    return Kernel(kernel.symbol + "__default", inputs, kinds, kernel.result_kinds, results, kernel.dtypes)


def group_of(kernel: Kernel, dtype: str) -> str:
    """The file in which a kernel is compiled."""
    if dtype in REAL:
        return "complex"
    if dtype not in ("float32", "float64"):
        return "integer"
    names = {node.name for node in _expressions().topological(kernel.results)} - {"input", "constant"}
    return "arithmetic" if names <= PLAIN else "transcendental"


def operand_type(kind: str, dtype: str) -> str:
    """C++ type of an operand inside the kernel."""
    if kind == "bool":
        return "bool"
    return CPP[REAL.get(dtype, dtype) if kind == "real" else dtype]


class LoopWriter:
    """Writes one kernel template per record, for a policy of functions."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.names = {name: f"x{i}" for i, name in enumerate(kernel.inputs)}
        nodes = _expressions().topological(kernel.results)
        integers = set(GROUPS_OF_TYPES["int"]) & set(kernel.dtypes)
        self.divisors = [node for node in nodes if node.name in DIVISIONS and integers]
        floats = {"float32", "float64"} & set(kernel.dtypes)
        self.partial = [node for node in nodes if node.name in PARTIAL and floats]

    def read(self, i: int, element: str) -> str:
        """The value of an element of input i. GCC does not vectorise a condition loaded as bool."""
        return f"{element} != 0" if self.kernel.kinds[i] == "bool" else element

    def loop(self, prefix: str, indent: str, bounds: str, scalars: int = 0) -> list[str]:
        """The loop that computes the results. Bit k of `scalars`: input k is a single element."""
        printer = _expressions().CppPrinter(prefix)
        statements, texts = printer.print(self.kernel.results, self.names)
        used = set(_expressions().inputs_of(*self.kernel.results))
        elements = [
            (i, self.names[name], scalars >> i & 1) for i, name in enumerate(self.kernel.inputs) if name in used
        ]
        lines = [f"{indent}const auto {name} = {self.read(i, f'*in{i}')};" for i, name, single in elements if single]
        lines += ["#pragma GCC ivdep", f"{indent}for ({bounds}) {{"]
        lines += [
            f"{indent}  const auto {name} = {self.read(i, f'in{i}[i]')};" for i, name, single in elements if not single
        ]
        lines += [f"{indent}  {statement}" for statement in statements]
        for k, (text, node) in enumerate(zip(texts, self.kernel.results, strict=True)):
            kind = self.kernel.result_kinds[k]
            if kind == "bool" and not node.is_mask:
                text = f"m::to_bool({text})"
            elif kind != "bool" and node.is_mask:
                text = f"T({text})"
            lines.append(f"{indent}  out{k}[i] = {text};")
        lines.append(f"{indent}}}")
        return lines

    def check(self, nodes: list[Any], call: str, indent: str, bounds: str, flag: str) -> list[str]:
        """A loop that ORs a predicate of some nodes' operands into a flag."""
        printer = _expressions().CppPrinter("m::")
        lines = [f"{indent}for ({bounds}) {{"]
        operands = [node.arguments[-1:] if call == "zero_divisor" else node.arguments for node in nodes]
        flat = [operand for group in operands for operand in group]
        statements, texts = printer.print(flat, self.names)
        used = set(_expressions().inputs_of(*flat))
        lines += [
            f"{indent}  const auto {self.names[name]} = {self.read(i, f'in{i}[i]')};"
            for i, name in enumerate(self.kernel.inputs)
            if name in used
        ]
        lines += [f"{indent}  {statement}" for statement in statements]
        for node, group in zip(nodes, operands, strict=True):
            arguments = ", ".join(texts[: len(group)])
            texts = texts[len(group) :]
            predicate = (
                f"m::zero_divisor({arguments})" if call == "zero_divisor" else f"!m::{node.name}_in_range({arguments})"
            )
            lines.append(f"{indent}  {flag} |= {predicate};")
        lines.append(f"{indent}}}")
        return lines

    def write(self) -> list[str]:
        """The kernel template."""
        kernel = self.kernel
        lines = [
            "template <class T>",
            f"int {kernel.symbol}(void* const* out, const void* const* in, int64_t n,",
            f"    {'[[maybe_unused]] ':>{len(kernel.symbol) + 17}}unsigned scalars) {{",
            "  using R [[maybe_unused]] = real_type<T>;",
        ]
        types = {"value": "T", "bool": "bool", "real": "R"}
        read_types = {"value": "T", "bool": "uint8_t"}
        for k, kind in enumerate(kernel.result_kinds):
            lines.append(f"  auto* const out{k} = static_cast<{types[kind]}*>(out[{k}]);")
        used = set(_expressions().inputs_of(*kernel.results))
        for i, (name, kind) in enumerate(zip(kernel.inputs, kernel.kinds, strict=True)):
            if name in used:
                lines.append(f"  const auto* const in{i} = static_cast<const {read_types[kind]}*>(in[{i}]);")
        if not used:
            lines.append("  static_cast<void>(in);")
        whole = "int64_t i = 0; i < n; ++i"
        if self.divisors:
            # Before the loop that writes: the output may be the divisor itself.
            lines += ["  if constexpr (m::Integer<T>) {", "    int zero = 0;"]
            lines += self.check(self.divisors, "zero_divisor", "    ", whole, "zero")
            lines += ["    if (zero) return kDivisionByZero;", "  }"]
        if self.partial:
            part = "int64_t i = start; i < stop; ++i"
            lines += ["  if constexpr (m::Float<T>) {"]
            lines += ["    for (int64_t start = 0; start < n; start += kRangeBlock) {"]
            lines += ["      const int64_t stop = n - start < kRangeBlock ? n : start + kRangeBlock;"]
            lines += ["      int outside = 0;"]
            lines += self.check(self.partial, "in_range", "      ", part, "outside")
            lines += ["      if (!outside) {", *self.loop("m::", "        ", part)]
            lines += ["      } else {", *self.loop("exact::", "        ", part), "      }"]
            lines += ["    }", "    return 0;", "  } else {"]
            lines += self.loop("m::", "    ", whole)
            lines += ["    return 0;", "  }", "}"]
        else:
            if kernel.scalars:
                lines += ["  if constexpr (kTakesScalars<T>) {"]
                for mask in kernel.scalars:
                    lines += [
                        f"    if (scalars == {mask}) {{",
                        *self.loop("m::", "      ", whole, mask),
                        "      return 0;",
                        "    }",
                    ]
                lines += ["  }"]
            lines += self.vectors()
            lines += self.loop("m::", "  ", whole)
            lines += ["  return 0;", "}"]
        return lines

    def vectors(self) -> list[str]:
        """A loop over vectors, for the types whose vectors the functions take."""
        kernel = self.kernel
        nodes = _expressions().topological(kernel.results)
        functions = {node.name for node in nodes} - {"input", "mul"}
        values = {*kernel.kinds, *kernel.result_kinds} == {"value"} and len(kernel.results) == 1
        if not values or not functions or functions & PLAIN or "constant" in functions:
            return []
        statements, texts = _expressions().CppPrinter("m::").print(kernel.results, self.names)
        if statements:
            return []
        operands = list(self.names.values())
        parameters = ", ".join(f"Vector<T> {name}" for name in operands)
        loads = ", ".join(f"load_lanes(in{name[1:]} + i, lanes, T(1))" for name in operands)
        return [
            "  if constexpr (m::Float<T>) {",
            f"    if constexpr (requires({parameters}) {{ {texts[0]}; }}) {{",
            f"      const auto function = []({parameters}) {{ return {texts[0]}; }};",
            "      for_vectors<T>(n, [&](int64_t i, int lanes) {",
            f"        store_lanes(out0 + i, lanes, function({loads}));",
            "      });",
            "      return 0;",
            "    }",
            "  }",
        ]


def write_group(group: str, kernels: list[tuple[Kernel, list[str]]]) -> tuple[str, list[tuple[str, str]]]:
    """A file of kernels, and the (symbol, dtype) of each in table order."""
    lines = ["// Written by tools/generate_elementwise.py from the operation records."]
    if group in ("integer", "arithmetic"):
        # These loops wait for memory, which 256-bit accesses keep busier (measured on Zen 4: 1.1 ms against 1.4 ms for
        # the sum of 4M floats).
        lines += ["#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)"]
        lines += ['#pragma GCC target("prefer-vector-width=256")', "#endif"]
    if group in ("arithmetic", "transcendental"):
        # Threaded jumps turn two conditions on one value into a tangle of masks (a tenth more instructions).
        lines += ["#if defined(__GNUC__) && !defined(__clang__)", '#pragma GCC optimize("no-thread-jumps")', "#endif"]
    if group != "complex":
        lines += ['#include "cpu/elementwise_math.h"', '#include "cpu/elementwise.h"', ""]
    lines += ["namespace rl {", "namespace {", "[[maybe_unused]] constexpr int64_t kRangeBlock = 512;"]
    lines += ["template <class T>", "constexpr bool kTakesScalars = !is_complex_v<T> && sizeof(T) >= 4;", ""]
    places: list[tuple[str, str]] = []
    entries: list[str] = []
    for kernel, dtypes in kernels:
        lines += [*LoopWriter(kernel).write(), ""]
        for dtype in dtypes:
            places.append((kernel.symbol, dtype))
            entries.append(f"    {kernel.symbol}<{CPP[dtype]}>,")
    lines += ["const ElementwiseKernel kernels[] = {", *(entries or ["    nullptr,"]), "};"]
    lines += ["const ElementwiseGroup group = {kernels};", "}  // namespace", ""]
    if group == "complex":
        lines += ["const ElementwiseGroup& elementwise_complex() { return group; }"]
    else:
        lines += [f"const ElementwiseGroup& RL_ISA_SYMBOL(elementwise_{group})() {{ return group; }}"]
    lines += ["}  // namespace rl", ""]
    return "\n".join(lines), places


KINDS = {"value": "OperandKind::kValue", "bool": "OperandKind::kBool", "real": "OperandKind::kReal"}


def write_table(kernels: list[Kernel], places: Mapping[str, list[tuple[str, str]]]) -> str:
    """Names, operands, and which kernel of which file belongs to which operation and dtype."""
    lines = [
        "// Written by tools/generate_elementwise.py from the operation records.",
        "extern const ElementwiseInfo elementwise_info[RL_EW_COUNT] = {",
    ]
    for kernel in kernels:
        inputs = ", ".join(KINDS[kind] for kind in kernel.kinds)
        outputs = ", ".join(KINDS[kind] for kind in kernel.result_kinds)
        lines.append(
            f'    {{"{kernel.symbol}", {len(kernel.inputs)}, {len(kernel.results)}, {{{inputs}}}, {{{outputs}}}}},'
        )
    lines += [
        "};",
        "namespace {",
        "struct Place {",
        "  uint16_t op;",
        "  uint8_t dtype;",
        "  uint8_t scalars;  // bit m: a loop for the set m of inputs",
        "};",
    ]
    sets = {kernel.symbol: sum(1 << mask for mask in kernel.scalars) for kernel in kernels}
    numbers = {kernel.symbol: i for i, kernel in enumerate(kernels)}
    for group in (*ISA_GROUPS, "complex"):
        cells = [
            f"{{{numbers[symbol]}, {DTYPES.index(dtype)}, {sets[symbol] if dtype in WITH_SCALARS else 0}}}"
            for symbol, dtype in places.get(group, [])
        ]
        rows = [", ".join(cells[i : i + 12]) + "," for i in range(0, len(cells), 12)]
        lines.append(f"constexpr int kCount_{group} = {len(cells)};")
        lines += [f"constexpr Place kPlaces_{group}[] = {{", *(f"    {row}" for row in rows or ["{0, 0, 0}"]), "};"]
    lines.append("}  // namespace")
    return "\n".join(lines) + "\n"


def write_ids(kernels: list[Kernel]) -> str:
    """The numbers of the operations."""
    lines = [
        "/* Written by tools/generate_elementwise.py from the operation records. */",
        "#ifndef RUSHLIGHT_ELEMENTWISE_IDS_H",
    ]
    lines += ["#define RUSHLIGHT_ELEMENTWISE_IDS_H", "", "enum rl_elementwise_op {"]
    lines += [f"  RL_EW_{kernel.symbol} = {i}," for i, kernel in enumerate(kernels)]
    lines += [f"  RL_EW_COUNT = {len(kernels)}", "};", "", "#endif", ""]
    return "\n".join(lines)


def write_c_interface(kernels: list[Kernel], records: Mapping[str, Any]) -> tuple[str, str]:
    """Header and definitions of rl_<symbol>(inputs..., outputs...)."""
    header = [
        "/* Written by tools/generate_elementwise.py from the operation records.",
        " *",
        " * One function per elementwise operation. The compute dtype is the promoted dtype of the inputs, by the",
        " * rules of PyTorch (0-dim inputs count less). The output has the broadcast shape and any dtype. */",
        "#ifndef RUSHLIGHT_ELEMENTWISE_OPS_H",
        "#define RUSHLIGHT_ELEMENTWISE_OPS_H",
        "",
        '#include "rushlight/elementwise.h"',
        "",
    ]
    header += ["#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    source: list[str] = ["// Written by tools/generate_elementwise.py from the operation records.", ""]
    for kernel in kernels:
        if kernel.symbol not in records:
            continue
        record = records[kernel.symbol]
        outputs = ["out"] if len(kernel.results) == 1 else [f"out{k}" for k in range(len(kernel.results))]
        names = [name if name not in ("and", "or", "not", "xor") else name + "_" for name in kernel.inputs]
        parameters = ", ".join(
            [*(f"const rl_tensor* {name}" for name in names), *(f"rl_tensor* {name}" for name in outputs)]
        )
        signature = f"rl_status rl_{kernel.symbol.lstrip('_')}({parameters})"
        if record.doc:
            header.append(f"/* {record.doc.strip().splitlines()[0]} */")
        header.append(f"RL_API {signature};")
        floats = "true" if record.options["compute"] == "float" else "false"
        operands = f"{{{', '.join(names)}}}, {{{', '.join(outputs)}}}"
        source.append(f"{signature} {{ return rl::by_promotion(RL_EW_{kernel.symbol}, {floats}, {operands}); }}")
    header += ["", "#ifdef __cplusplus", "}", "#endif", "#endif", ""]
    return "\n".join(header), "\n".join(source) + "\n"


def generate(table: Mapping[str, Any]) -> dict[str, str]:
    """Texts by file name, from the records by full name."""
    records = {op.symbol: op for op in table.values() if op.kind == "elementwise"}
    kernels: list[Kernel] = []
    for op in records.values():
        kernels.append(read_kernel(op))
        usual = default_kernel(op, kernels[-1])
        if usual is not None:
            kernels.append(usual)
    files: dict[str, str] = {}
    places: dict[str, list[tuple[str, str]]] = {}
    for group in (*ISA_GROUPS, "complex"):
        members = [(kernel, [d for d in kernel.dtypes if group_of(kernel, d) == group]) for kernel in kernels]
        text, places[group] = write_group(group, [(kernel, dtypes) for kernel, dtypes in members if dtypes])
        files[f"elementwise_{group}.isa.cpp" if group != "complex" else "elementwise_complex.inc"] = text
    files["elementwise_table.inc"] = write_table(kernels, places)
    files["elementwise_ids.h"] = write_ids(kernels)
    files["elementwise_ops.h"], files["elementwise_ops.inc"] = write_c_interface(kernels, records)
    return files
