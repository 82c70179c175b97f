"""Writes the C++ tables that the records in rushlight/ops imply.

    python tools/generate.py --out DIR     write them (only files whose text changed)
    python tools/generate.py --out DIR --list     print their paths, one per line, after the part

The generator knows families and kinds, never the name of an operation.
"""

from __future__ import annotations

import argparse
import importlib
import pathlib
import sys
import types
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent

KINDS = {
    "Tensor": "Tensor",
    "Tensor|Scalar": "TensorOrScalar",
    "Tensor[]": "TensorList",
    "Tensor?[]": "TensorList",
    "Scalar": "Scalar",
    "int": "Int",
    "float": "Float",
    "bool": "Bool",
    "str": "Str",
    "ScalarType": "DType",
    "Device": "Device",
    "Generator": "Generator",
    "Layout": "Layout",
    "MemoryFormat": "MemoryFormat",
    "float[]": "FloatList",
    "Any": "Object",
    "Any[]": "Object",
}
KEYWORDS = set("and or not xor float double int bool long short char register new delete switch default static".split())


def load_records() -> dict[str, Any]:
    """Imports the record modules without importing the package, whose extension is not built yet."""
    package = types.ModuleType("rushlight")
    package.__path__ = [str(ROOT / "rushlight")]
    sys.modules["rushlight"] = package
    ops = importlib.import_module("rushlight.ops")
    for module in ops.MODULES:
        if (ROOT / "rushlight" / "ops" / f"{module}.py").exists():
            importlib.import_module(f"rushlight.ops.{module}")
    table: dict[str, Any] = importlib.import_module("rushlight.ops._record").TABLE
    return table


def quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def default_value(kind: str, text: str | None, name: str) -> tuple[str, str]:
    """A C++ Value expression for a default, and the declaration of a list it points to."""
    if text is None or text == "None":
        return "Value::none()", ""
    if text in ("True", "False"):
        return f"Value::of({text.lower()})", ""
    if text.startswith("["):
        items = [t for t in text[1:-1].replace(" ", "").split(",") if t]
        if not items:
            return "Value::of_ints(nullptr, 0)", ""
        return f"Value::of_ints({name}, {len(items)})", f"const int64_t {name}[] = {{{', '.join(items)}}};"
    if text.startswith(("'", '"')):
        return f"Value::of_text({quote(text[1:-1])})", ""
    if kind in ("Float",) or any(c in text for c in ".e") or "inf" in text:
        number = {"inf": "INFINITY", "-inf": "-INFINITY"}.get(text, text)
        return f"Value::of(static_cast<double>({number}))", ""
    return f"Value::of(int64_t{{{text}}})", ""


def argument_row(op: Any, arg: Any, lines: list[str]) -> str:
    """One initialiser of an Argument."""
    kind, size = arg.type, 0
    if kind.startswith("int["):
        size = int(kind[4:-1] or 0)
        kind = "IntList"
    else:
        size = -1 if kind == "Any[]" else 0
        kind = KINDS[kind]
    value, declaration = default_value(kind, arg.default, f"default_{op.symbol}_{arg.name}")
    if declaration:
        lines.append(declaration)
    has_default = arg.default is not None
    optional = arg.optional or arg.type == "Tensor?[]"
    flags = f"{str(optional).lower()}, {str(has_default).lower()}"
    return f"{{{quote(arg.name)}, Kind::{kind}, {flags}, {size}, {value}, nullptr}}"


def flags_of(op: Any) -> str:
    flags = {
        "kView": bool(op.view),
        "kMultiView": op.view == "multi",
        "kDifferentiable": any(f is not None for f in op.derivative.values()),
        "kComposite": op.kind == "composite" or (op.kind == "native" and op.options.get("composite", False)),
        "kPython": op.kind == "composite",
        "kHasOut": op.out and not op.writes_self,
        "kHasInplace": op.inplace,
        "kInplaceOnly": op.writes_self,
        "kElementwise": op.kind == "elementwise" or op.options.get("elementwise", False),
        "kRandom": op.random,
        "kNamedResult": len(op.results) > 1 and all(n for _, n in op.results),
        "kListResult": op.results[0][0] == "Tensor[]",
        "kPrivate": op.name.startswith("_"),
        "kRefuseRuntime": op.options.get("refusal") == "RuntimeError",
        "kScalarResult": op.results[0][0] not in ("Tensor", "Tensor[]"),
    }
    return " | ".join(k for k, v in flags.items() if v) or "0"


def derivative_inputs(op: Any) -> set[str]:
    return {n.strip() for key, f in op.derivative.items() if f is not None for n in key.split(",")}


def write_table(table: dict[str, Any]) -> tuple[str, str]:
    """op_table.inc and ops.h."""
    ops = list(table.values())
    lines: list[str] = ["namespace rl {"]
    rows: list[str] = []
    symbols = {op.implementation or op.symbol for op in ops if op.kind in ("native", "fused")}
    symbols |= {op.symbol for op in ops if op.options.get("checked")}
    lines += [f"void op_{symbol}(Call&);" for symbol in sorted(symbols)]
    lines += ["void run_elementwise(Call&);", "void run_python(Call&);", "namespace {"]
    for index, op in enumerate(ops):
        args = [argument_row(op, a, lines) for a in op.arguments]
        body = ",\n  ".join(args) or '{"", Kind::Object, false, false, 0, Value::none(), nullptr}'
        lines.append(f"constinit Argument args_{op.symbol}[] = {{\n  {body}}};")
        names = [n for _, n in op.results]
        if all(names):
            lines.append(f"const char* const results_{op.symbol}[] = {{{', '.join(map(quote, names))}}};")
        family = "nullptr"
        if op.kind == "elementwise":
            lines.append(elementwise_row(op))
            family = f"&family_{op.symbol}"
            run = f"op_{op.symbol}" if op.options.get("checked") else "run_elementwise"
        elif op.kind == "composite":
            run = "run_python"
        else:
            run = f"op_{op.implementation or op.symbol}"
            if "dtype" in op.options:
                lines.append(f"constexpr DType family_{op.symbol} = RL_{op.options['dtype'].upper()};")
                family = f"&family_{op.symbol}"
        positional = sum(not a.keyword_only for a in op.arguments)
        tensors = sum(1 << i for i, a in enumerate(op.arguments) if a.type.startswith("Tensor"))
        wanted = derivative_inputs(op)
        unknown = wanted - {a.name for a in op.arguments}
        if unknown:
            raise ValueError(f"{op.full_name}: derivative for unknown inputs {sorted(unknown)}")
        differentiable = sum(1 << i for i, a in enumerate(op.arguments) if a.name in wanted)
        skip = set(op.options.get("not_differentiable", ()))
        order = op.order.split()
        if set(order) - {a.name for a in op.arguments}:
            raise ValueError(f"{op.full_name}: order of unknown arguments {order}")
        ordering = sum(1 << i for i, a in enumerate(op.arguments) if a.name in order)
        results = sum(1 << i for i, (t, n) in enumerate(op.results) if n not in skip)
        rows.append(
            f"  {{{quote(op.name)}, {quote(op.overload)}, {quote(op.schema)}, args_{op.symbol}, {len(op.arguments)}, "
            f"{positional}, {len(op.results)}, {flags_of(op)}, {run}, {family}, "
            f"{'results_' + op.symbol if all(names) else 'nullptr'}, {tensors}u, {differentiable}u, {results}u, "
            f"{ordering}u, "
            f"{quote(op.module)}, {index}, nullptr}},"
        )
    lines.append("}  // namespace")
    lines.append("constinit const Op op_table[] = {")
    lines += rows
    lines.append("};")
    lines.append(f"const int op_table_size = {len(ops)};")
    lines += write_groups(ops)
    lines.append("}  // namespace rl")
    header = ["#pragma once", '#include "tensor/op.h"', "namespace rl::ops {"]
    for index, op in enumerate(ops):
        name = op.symbol + ("_op" if op.symbol in KEYWORDS else "")
        header.append(f"inline const Op& {name} = op_table[{index}];")
    header.append("}  // namespace rl::ops")
    return "\n".join(lines) + "\n", "\n".join(header) + "\n"


def elementwise_row(op: Any) -> str:
    inputs = [i for i, a in enumerate(op.arguments) if a.type in ("Tensor", "Tensor|Scalar", "Scalar")]
    padded = ", ".join(str(i) for i in (inputs + [0] * 4)[:4])
    compute = {"promote": 0, "float": 1, "tensor": 2, "number": 3}[op.options["compute"]]
    result = {"same": 0, "bool": 1, "real": 2}[op.options["result"]]
    with_default = [i for i in inputs if op.arguments[i].type == "Scalar" and op.arguments[i].default is not None]
    fewer = len(inputs) - len(with_default)
    default = f"RL_EW_{op.symbol}__default" if with_default else "kNoKernel"
    names = [op.arguments[i].name for i in inputs]
    operands = [op.arguments[i].type != "Scalar" or op.arguments[i].name == "alpha" for i in inputs]
    rounded = 0 if op.name.startswith("_") else sum(1 << k for k, is_operand in enumerate(operands) if is_operand)
    wide = sum(1 << k for k, name in enumerate(names) if name in op.options.get("wide", ()))
    factors = op.options.get("weights", "").split()
    weights = sum(1 << k for k, name in enumerate(names) if name in factors)
    return (
        f"constexpr ElementwiseFamily family_{op.symbol} = {{RL_EW_{op.symbol}, {type_mask(op.options['types'])}u, "
        f"{compute}, {result}, {len(inputs)}, {{{padded}}}, {default}, {fewer}, {rounded}, {wide}, {weights}}};"
    )


def type_mask(types: str) -> int:
    groups = {"bool": [0], "int": [1, 2, 3, 4, 5], "float": [8, 9], "wide": [6, 8, 9], "complex": [10, 11]}
    names = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128 complex32".split()
    mask = 0
    for word in types.split():
        for index in groups.get(word) or [names.index(word)]:
            mask |= 1 << index
    return mask


def write_groups(ops: list[Any]) -> list[str]:
    """Overload sets, and the names under which Python finds them."""
    groups: dict[str, list[int]] = {}
    for index, op in enumerate(ops):
        groups.setdefault(op.name, []).append(index)
    position = {name: i for i, name in enumerate(groups)}
    lines = ["namespace {"]
    lines += [
        f"const uint16_t group_{name}[] = {{{', '.join(map(str, members))}}};" for name, members in groups.items()
    ]
    lines += ["}", "const OpGroup op_groups[] = {"]
    lines += [f"  {{{quote(name)}, group_{name}, {len(members)}}}," for name, members in groups.items()]
    lines += ["};", f"const int op_group_count = {len(groups)};"]
    functions: dict[tuple[str, str, bool], int] = {}
    methods: dict[tuple[str, bool], int] = {}
    for op in ops:
        for path in op.public:
            namespace, _, name = path.rpartition(".")
            if namespace == "Tensor":
                methods[name, False] = position[op.name]
                if op.inplace:
                    methods[name + "_", True] = position[op.name]
                continue
            if op.inplace and name.endswith("_"):  # only the twin
                functions[namespace, name, True] = position[op.name]
                continue
            functions[namespace, name, False] = position[op.name]
            if op.inplace:
                functions[namespace, name + "_", True] = position[op.name]
        if op.method:
            methods[op.name, False] = position[op.name]
            if op.inplace:
                methods[op.name + "_", True] = position[op.name]
    lines.append("const PublicFunction public_functions[] = {")
    lines += [f"  {{{quote(s)}, {quote(n)}, {g}, {str(i).lower()}}}," for (s, n, i), g in sorted(functions.items())]
    lines += ["};", f"const int public_function_count = {len(functions)};", "const PublicMethod public_methods[] = {"]
    lines += [f"  {{{quote(n)}, {g}, {str(i).lower()}}}," for (n, i), g in sorted(methods.items())]
    lines += ["};", f"const int public_method_count = {len(methods)};"]
    return lines


def outputs(table: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """File name -> (target, text)."""
    op_table, header = write_table(table)
    files = {"op_table.inc": ("extension", op_table), "ops.h": ("extension", header)}
    sys.path.insert(0, str(ROOT / "tools"))
    for name, text in importlib.import_module("generate_elementwise").generate(table).items():
        files[name] = ("library", text)
    for name, text in importlib.import_module("generate_stub").generate(table).items():
        files[name] = ("package", text)
    return files


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=pathlib.Path, help="folder for the generated files")
    parser.add_argument("--list", action="store_true", help="print the paths instead of writing")
    options = parser.parse_args()
    files = outputs(load_records())
    for name, (target, text) in files.items():
        path = options.out / name
        if options.list:
            print(target, path)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    main()
