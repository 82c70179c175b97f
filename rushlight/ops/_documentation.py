"""The documentation of an operation, as its records give it: what ``help`` and the reference pages show.

A record's ``doc`` (or the docstring of its body) holds, in this order: one sentence, further paragraphs, a paragraph
``Shapes:``, and an example of doctest lines. The field ``formula`` holds a formula that stands better alone. What the
family of elementwise operations says of shapes and dtypes is written here.
"""

from __future__ import annotations

import doctest
import inspect
import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

from ._record import Operation

FORMULAS = frozenset(
    "reduction scan matrix linalg spectra norms network pooling normalization loss masked statistics calculus fft "
    "signal special special_functions functions".split()
)
"""Modules whose operations all compute numbers: there a formula is demanded, as of every elementwise record."""

_KINDS = {"bool": "bool", "int": "integers", "float": "floating point", "wide": "floating point", "complex": "complex"}


@dataclass
class Documentation:
    """The parts of a record's documentation; those not given are empty."""

    paragraphs: list[str]
    formula: str
    shapes: list[str]
    example: str


def documentation(operation: Operation) -> Documentation:
    """Takes the doc of a record apart, and adds what its family says."""
    text, mark, rest = inspect.cleandoc(operation.doc).partition(">>>")
    indent = len(text) - len(text.rstrip(" "))
    example = textwrap.dedent(" " * indent + mark + rest).strip()
    parts = [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip().rstrip(":") not in ("", "Example")]
    shapes = [part for part in parts if part.startswith("Shapes:")]
    if operation.kind == "elementwise":
        shapes = [*(shapes or [_shapes_of_family(operation)]), _dtypes_of_family(operation)]
    return Documentation([part for part in parts if part not in shapes], operation.formula, shapes, example)


def _shapes_of_family(operation: Operation) -> str:
    tensors = [a.name for a in operation.arguments if a.type.startswith("Tensor")]
    if len(tensors) == 1:
        return f"Shapes: {tensors[0]} of any shape; the result has the same."
    return f"Shapes: {', '.join(tensors[:-1])} and {tensors[-1]} broadcast; the result has their common shape."


def _dtypes_of_family(operation: Operation) -> str:
    words = operation.options["types"].split()
    kinds = [shown for word, shown in _KINDS.items() if any(w.startswith(word) for w in words)]
    text = "Dtypes: " + ", ".join(dict.fromkeys(kinds))
    if operation.options["compute"] == "float":
        text += "; integers and bool become the default float dtype"
    if operation.options["compute"] == "number":
        text += "; bool becomes int64"
    return text + {
        "same": ".",
        "bool": "; the result is bool.",
        "real": "; of complex numbers the result is real.",
    }.get(operation.options["result"], ".")


def is_public(operation: Operation) -> bool:
    """Whether users can call it by a name."""
    return bool(operation.public) or (operation.method and not re.match(r"_[^_]", operation.name))


def overloads(operations: Iterable[Operation]) -> list[list[Operation]]:
    """The records of one name, those without a doc together with the one above; private ones only when all are."""
    operations = list(operations)
    groups: list[list[Operation]] = []
    for operation in [o for o in operations if is_public(o)] or operations:
        if operation.doc or not groups:
            groups.append([operation])
        else:
            groups[-1].append(operation)
    return groups


def signature_line(operation: Operation) -> str:
    """The schema under the name that users write."""
    names = sorted(operation.public, key=lambda name: (name.startswith("Tensor."), name != operation.name))
    name = (*names, operation.name)[0].removeprefix("Tensor.")
    return name + operation.schema[operation.schema.index("(") :]


def facts(group: list[Operation]) -> str:
    """What the records of a shared documentation say besides: what is differentiable, views, in-place twins, out=."""
    said = []
    differentiable = dict.fromkeys(
        n.strip() for o in group for key, formula in o.derivative.items() if formula for n in key.split(",")
    )
    if differentiable:
        said.append(f"Differentiable with respect to {', '.join(differentiable)}.")
    if any(o.view for o in group):
        said.append("The result shows the memory of the input where that is possible.")
    if any(o.inplace for o in group):
        said.append(f"In place: {group[0].name}_.")
    if any(o.out and not o.writes_self for o in group) and not group[0].name.startswith("_"):
        said.append("out= takes what the result is written to.")
    return " ".join(said)


def _filled(paragraph: str) -> str:
    """Broken anew when a line is long: text put together from parts has lines of any length."""
    if max(map(len, paragraph.split("\n"))) <= 120:
        return paragraph
    return textwrap.fill(" ".join(paragraph.split()), 120, break_long_words=False, break_on_hyphens=False)


def docstring(operations: Iterable[Operation]) -> str:
    """What ``help`` shows of the records of one name."""
    blocks = []
    for group in overloads(operations):
        blocks.append("\n".join(map(signature_line, group)))
        doc = documentation(group[0])
        blocks += map(_filled, doc.paragraphs[:1])
        if doc.formula:
            blocks.append(textwrap.indent(doc.formula, "    "))
        blocks += map(_filled, doc.paragraphs[1:])
        if doc.shapes:
            blocks.append("\n".join(map(_filled, doc.shapes)))
        if said := facts(group):
            blocks.append(_filled(said))
        if doc.example:
            blocks.append(doc.example)
    return "\n\n".join(blocks)


def lacking(operations: Iterable[Operation]) -> list[str]:
    """What the documentation of the public operation with these records lacks: a sentence, a formula, ..."""
    groups = [group[0] for group in overloads(operations)]
    docs = [documentation(operation) for operation in groups]
    sentence = docs[0].paragraphs[0] if docs[0].paragraphs else ""
    needs_formula = any(o.kind == "elementwise" or o.module in FORMULAS for o in groups)
    formula = any(doc.formula or " = " in "\n".join(doc.paragraphs) for doc in docs)
    examples = [e for doc in docs for e in doctest.DocTestParser().get_examples(doc.example)]
    found = {
        "sentence": sentence.endswith((".", ":")) and " " in sentence,
        "formula": formula or not needs_formula,
        "shapes": any(doc.shapes for doc in docs),
        "example with a result": any(example.want for example in examples),
    }
    return [part for part, there in found.items() if not there]
