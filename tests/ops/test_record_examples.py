"""The examples in the documentation of records and of public functions run and show what they say."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil

import pytest

import rushlight
from rushlight.ops._documentation import is_public, lacking
from rushlight.ops._lookup import all_records
from rushlight.ops._record import Operation, parse_schema

PUBLIC = sorted({r.name for r in all_records().values() if is_public(r)})
RECORDS = {name: r.doc for name, r in all_records().items() if ">>>" in r.doc}
MODULES = sorted(
    m.name
    for m in pkgutil.walk_packages(rushlight.__path__, "rushlight.")
    if not m.name.startswith("rushlight.ops.") and "._C" not in m.name
)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def run(text, name, names):
    examples = doctest.DocTestParser().get_doctest(inspect.cleandoc(text), dict(names), name, None, 0)
    runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    said: list[str] = []
    runner.run(examples, out=said.append)
    assert not said, "".join(said)
    return len(examples.examples)


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_examples_of_a_record(name):
    assert run(RECORDS[name], name, {"rushlight": rushlight, "rl": rushlight, "torch": rushlight})


@pytest.mark.parametrize("name", PUBLIC)
def test_documentation_of_an_operation(name):
    assert not lacking([r for r in all_records().values() if r.name == name])


def test_documentation_that_lacks_something_is_found():
    schema = "f(Tensor self) -> Tensor"
    whole = "The double.\n\nout = 2 * self.\n\nShapes: any.\n\n>>> 2 + 2\n4"
    for doc, missing in {
        whole: [],
        whole.replace("double.", "double"): ["sentence"],
        whole.replace("out = 2 * self.", "Twice."): ["formula"],
        whole.replace("Shapes", "Sizes"): ["shapes"],
        whole.replace("\n4", ""): ["example with a result"],
    }.items():
        record = Operation("f", "", *[schema, *parse_schema(schema)[2:]], kind="native", module="loss", doc=doc)
        assert lacking([record]) == missing


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module(name):
    module = importlib.import_module(name)
    owners = [module] + [v for v in vars(module).values() if getattr(v, "__module__", None) == name]
    owners += [m for v in owners if inspect.isclass(v) for m in vars(v).values() if inspect.isfunction(m)]
    for owner in owners:
        text = inspect.getdoc(owner) or ""
        if ">>>" in text:
            names = {"rushlight": rushlight, "torch": rushlight, **vars(module)}
            run(text, f"{name}.{getattr(owner, '__qualname__', name)}", names)
