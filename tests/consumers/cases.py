"""One program of consumers' calls, run with tensors and with NumPy arrays; see tests/test_array_api_consumers.py."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import rushlight

Case = Callable[[Callable[[Any], Any]], Any]


def arrays(result: Any) -> Iterator[Any]:
    """The arrays and numbers in a result, in order: of tuples, lists, dicts and result objects."""
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (tuple, list)):
        for part in result:
            yield from arrays(part)
    elif hasattr(result, "statistic"):
        yield from arrays((result.statistic, result.pvalue))
    elif result is not None:
        yield result


def compare(name: str, case: Case, tolerance: float, up_to_sign: bool) -> list[str]:
    """What is wrong with a case: an exception, no tensor where NumPy gives an array, other shapes or values."""
    expected = [*arrays(case(lambda values: np.array(values)))]
    try:
        found = [*arrays(case(lambda values: rushlight.from_numpy(np.array(values))))]
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return [f"{name}: {type(error).__name__}: {error} ({where.filename}:{where.lineno})"]
    if len(found) != len(expected):
        return [f"{name}: {len(found)} results, NumPy gives {len(expected)}"]
    wrong = []
    for mine, numpys in zip(found, expected, strict=True):
        if isinstance(mine, np.ndarray) and isinstance(numpys, np.ndarray):
            wrong.append(f"{name}: a NumPy array in place of a tensor")
        want = np.asarray(numpys)
        have = mine.resolve_conj().numpy() if isinstance(mine, rushlight.Tensor) else np.asarray(mine)
        if up_to_sign:
            have, want = np.abs(have), np.abs(want)
        if have.shape != want.shape or not np.allclose(have, want, rtol=tolerance, atol=1e-8, equal_nan=True):
            wrong.append(f"{name}: {have!r}, NumPy gives {want!r}")
    return wrong


def run(cases: dict[str, Case], tolerance: float = 1e-6, up_to_sign: frozenset[str] = frozenset()) -> None:
    """Runs all cases and exits with what is wrong."""
    wrong = [line for name, case in cases.items() for line in compare(name, case, tolerance, name in up_to_sign)]
    print(f"{len(cases)} cases, {len(wrong)} wrong")
    sys.exit("\n".join(wrong) or 0)
