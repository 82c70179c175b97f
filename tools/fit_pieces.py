"""Fits the tables of native/cpu/vec_tables.h: polynomials on sixteen intervals, by interpolation at Chebyshev's nodes.

python tools/fit_pieces.py > native/cpu/vec_tables.h

Needs mpmath. Interpolation at the nodes of T_n is within a small factor of the best polynomial (J. C. Mason and
D. C. Handscomb, Chebyshev Polynomials, 2003, chapter 6); the degree leaves room for it.
"""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp

mp.mp.dps = 60


Interval = tuple[mp.mpf, mp.mpf]  # its lower end and its width


def equal(width: str) -> list[Interval]:
    """Sixteen intervals of one width, from 0 on."""
    return [(k * mp.mpf(width), mp.mpf(width)) for k in range(16)]


def octaves(start: int) -> list[Interval]:
    """Four intervals for each doubling of x + start, from x = 0 on."""
    bases = [start * mp.mpf(2) ** (k // 4) for k in range(16)]
    return [(base * (1 + mp.mpf(k % 4) / 4) - start, base / 4) for k, base in enumerate(bases)]


def erfcx(x: mp.mpf) -> mp.mpf:
    return mp.exp(x * x) * mp.erfc(x)


def erfinv_factor(w: mp.mpf) -> mp.mpf:
    """erfinv(y) / y as a function of w = -log(1 - y^2); even across w = 0 by its series."""
    if abs(w) < mp.mpf(10) ** -20:
        return mp.sqrt(mp.pi) / 2
    y = mp.sqrt(-mp.expm1(-w))
    # -log of erfc is nearly quadratic, so Newton's method on it converges from anywhere near.
    target, x = -mp.exp(-w) / (1 + y), mp.sqrt(w) * mp.mpf("0.8") + mp.mpf("0.05")
    for _ in range(100):
        value = mp.erfc(x)
        step = (mp.log(value) - mp.log(-target)) * value / (2 / mp.sqrt(mp.pi) * mp.exp(-x * x))
        x += step
        if abs(step) < mp.mpf(10) ** -50:
            break
    return x / y


def fit(f: Callable[[mp.mpf], mp.mpf], low: mp.mpf, width: mp.mpf, terms: int) -> list[mp.mpf]:
    """Coefficients of powers of x - low, lowest first. The first is f(low), so that a zero there stays one."""
    n = terms - 1
    nodes = [(1 + mp.cos(mp.pi * (2 * j + 1) / (2 * n))) / 2 for j in range(n)]
    matrix = mp.matrix(n, n)
    for j, node in enumerate(nodes):
        for k in range(n):
            matrix[j, k] = node**k
    start = f(low)
    solution = mp.lu_solve(matrix, mp.matrix([(f(low + width * node) - start) / node for node in nodes]))
    return [start, *(solution[k] / width ** (k + 1) for k in range(n))]


#: name, function, intervals, terms, type
TABLES = [
    ("kErfPieces", mp.erf, equal("0.375"), 14, "double"),
    ("kErfcxPieces", erfcx, octaves(2), 15, "double"),
    ("kErfinvPieces", erfinv_factor, octaves(4), 15, "double"),
    ("kErfinvFarPieces", lambda w: erfinv_factor(w + 44), octaves(64), 15, "double"),
    ("kFloatErfPieces", mp.erf, equal("0.25"), 7, "float"),
    ("kFloatErfcxPieces", erfcx, octaves(2), 8, "float"),
    ("kFloatErfinvPieces", erfinv_factor, octaves(4), 8, "float"),
]


def main() -> None:
    print(
        "// Polynomials on sixteen intervals, fitted by tools/fit_pieces.py. A row holds the coefficients of one power"
        "\n// of x - (lower end), by interval; the highest power comes first.\n#pragma once\n"
        "\nnamespace rl {\nnamespace {\nnamespace m {\n\n// clang-format off"
    )
    for name, function, intervals, terms, kind in TABLES:
        pieces = [fit(function, low, width, terms) for low, width in intervals]
        if name == "kFloatErfPieces":  # of erf(x) - (x - low), whose slope at 0 is near 0
            pieces = [[start, slope - 1, *others] for start, slope, *others in pieces]
        print(f"alignas(64) [[maybe_unused]] constexpr {kind} {name}[{terms}][16] = {{")
        for k in reversed(range(terms)):
            digits, suffix = (10, "f") if kind == "float" else (17, "")
            row = [mp.nstr(piece[k], digits, min_fixed=0, max_fixed=0) + suffix for piece in pieces]
            print("    {" + ", ".join(row) + "},")
        print("};")
    print("// clang-format on\n\n}  // namespace m\n}  // namespace\n}  // namespace rl")


if __name__ == "__main__":
    main()
