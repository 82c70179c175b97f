"""einsum: sums of products by index letters, contracted pairwise with batched matrix products."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

_ELLIPSIS = "."


@functools.lru_cache(maxsize=256)
def _parse(equation: str, dims: tuple[int, ...]) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """Labels of the operands' and the result's dimensions; broadcast ones are ".0", ".1", ... from the right.

    `dims` are the operands' numbers of dimensions.
    """
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(dims):
        kind = "more" if len(dims) > len(terms) else "fewer"
        raise RuntimeError(
            f"einsum(): {kind} operands were provided than specified in the equation '{equation}': expected "
            f"{len(terms)}, got {len(dims)}"
        )
    labels: list[list[str]] = []
    widest = 0
    for i, (term, ndim) in enumerate(zip(terms, dims, strict=True)):
        if term.count("...") > 1:
            raise RuntimeError(f"einsum(): found '.' for operand {i} for which an ellipsis was already found")
        head, dots, tail = term.partition("...")
        for c in head + tail:
            if not (c.isalpha() and c.isascii()):
                raise RuntimeError(
                    f"einsum(): invalid subscript given at index {i} in the equation string, subscripts must be "
                    f"in [a-zA-Z], got {c!r}"
                )
        named = len(head) + len(tail)
        extra = ndim - named
        if (extra != 0 and not dots) or extra < 0:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({named}) "
                f"{'is more than' if extra < 0 else 'does not match'} the number of "
                f"dimensions ({ndim}) for operand {i}{'' if dots else ' and no ellipsis was given'}"
            )
        widest = max(widest, extra if dots else 0)
        labels.append([*head, *(f"{_ELLIPSIS}{k}" for k in range(extra - 1, -1, -1) if dots), *tail])
    broadcast = [f"{_ELLIPSIS}{k}" for k in range(widest - 1, -1, -1)]
    if arrow:
        head, dots, tail = right.partition("...")
        for c in head + tail:
            if not (c.isalpha() and c.isascii()):
                raise RuntimeError(f"einsum(): invalid subscript {c!r} in the output, subscripts must be in [a-zA-Z]")
            if (head + tail).count(c) > 1:
                raise RuntimeError(f"einsum(): output subscript {c} appears more than once in the output")
            if not any(c in term for term in labels):
                raise RuntimeError(
                    f"einsum(): output subscript {c} does not appear in the equation for any input operand"
                )
        output = [*head, *(broadcast if dots else []), *tail]
    else:
        counts: dict[str, int] = {}
        for term in labels:  # type: ignore[assignment]
            for label in term:
                if not label.startswith(_ELLIPSIS):
                    counts[label] = counts.get(label, 0) + 1
        output = broadcast + sorted(label for label, n in counts.items() if n == 1)
    return tuple(map(tuple, labels)), tuple(output)


def _single(operand: Any, labels: list[str], i: int) -> tuple[Any, list[str]]:
    """A repeated label within one operand becomes a diagonal."""
    if len(set(labels)) == len(labels):
        return operand, labels
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            a = labels.index(label)
            b = labels.index(label, a + 1)
            if operand.size(a) != operand.size(b):
                raise RuntimeError(
                    f"einsum(): subscript {label} is repeated for operand {i} but the sizes don't match, "
                    f"{operand.size(b)} != {operand.size(a)}"
                )
            operand = operand.diagonal(0, a, b)
            labels = [x for j, x in enumerate(labels) if j not in (a, b)] + [label]
    return operand, labels


def _aligned(operand: Any, labels: list[str], order: list[str]) -> Any:
    """The operand with its dimensions in this order, size 1 where it lacks one."""
    present = [x for x in order if x in labels]
    operand = operand.permute([labels.index(x) for x in present])
    for d, x in enumerate(order):
        if x not in labels:
            operand = operand.unsqueeze(d)
    return operand


def _pair(a: Any, la: list[str], b: Any, lb: list[str], keep: set[str]) -> tuple[Any, list[str]]:
    """Contracts two operands over the labels that nothing else needs."""
    shared = [x for x in la if x in lb]
    # a size of 1 broadcasts, so it cannot take part in a matrix product as it is
    stretched = {x for x in shared if a.size(la.index(x)) != b.size(lb.index(x))}
    contracted = [x for x in shared if x not in keep and x not in stretched]
    for x in [x for x in shared if x in stretched and x not in keep]:
        # the side of size 1 leaves the sum to the other side
        if a.size(la.index(x)) == 1:
            b, lb = b.sum(lb.index(x)), [y for y in lb if y != x]
            a, la = a.squeeze(la.index(x)), [y for y in la if y != x]
        else:
            a, la = a.sum(la.index(x)), [y for y in la if y != x]
            b, lb = b.squeeze(lb.index(x)), [y for y in lb if y != x]
    batch = [x for x in la if x in lb and x not in contracted]
    for x in [x for x in la if x not in lb and x not in keep]:
        a, la = a.sum(la.index(x)), [y for y in la if y != x]
    for x in [x for x in lb if x not in la and x not in keep]:
        b, lb = b.sum(lb.index(x)), [y for y in lb if y != x]
    only_a = [x for x in la if x not in lb]
    only_b = [x for x in lb if x not in la]
    result = batch + only_a + only_b
    if not contracted:
        return _aligned(a, la, result) * _aligned(b, lb, result), result
    a = a.permute([la.index(x) for x in batch + only_a + contracted])
    b = b.permute([lb.index(x) for x in batch + contracted + only_b])
    n, k, m = len(batch), len(contracted), len(only_a)
    rows, inner, columns = a.shape[n : n + m], a.shape[n + m :], b.shape[n + k :]
    if not batch and not only_a and not only_b and a.dtype == b.dtype:
        return a.reshape(-1).dot(b.reshape(-1)), result
    # Batch dimensions stay as they are: matmul broadcasts them and reads any strides.
    if m != 1 or k != 1:
        a = a.reshape([*a.shape[:n], math.prod(rows), math.prod(inner)])
    if k != 1 or len(only_b) != 1:
        b = b.reshape([*b.shape[:n], math.prod(inner), math.prod(columns)])
    product = a.matmul(b)
    return product if m == 1 and len(only_b) == 1 else product.reshape([*product.shape[:n], *rows, *columns]), result


def einsum(equation: str, operands: list[Any]) -> Any:
    """Evaluates an equation from left to right."""
    if not operands:
        raise RuntimeError("einsum(): must provide at least one operand")
    labels, output = _parse(equation, tuple(operand.dim() for operand in operands))
    sizes: dict[str, int] = {}
    items = []
    for i, (operand, subscripts) in enumerate(zip(operands, labels, strict=True)):
        operand, term = _single(operand, [*subscripts], i)
        for d, x in enumerate(term):
            n = operand.size(d)
            if sizes.get(x, 1) == 1:
                sizes[x] = n
            elif n not in (1, sizes[x]):
                raise RuntimeError(
                    f"einsum(): subscript {x} has size {n} for operand {i} which does not broadcast with "
                    f"previously seen size {sizes[x]}"
                )
        items.append((operand, term))
    result, term = items[0]
    for i in range(1, len(items)):
        needed = set(output).union(*(t for _, t in items[i + 1 :]))
        result, term = _pair(result, term, *items[i], needed)
    for x in [x for x in term if x not in output]:
        result, term = result.sum(term.index(x)), [y for y in term if y != x]
    if len(items) > 1 and term == [*output]:
        return result
    return result.permute([term.index(x) for x in output])


def _letters(sublist: Any) -> str:
    """The subscripts of a list of numbers: 0 to 25 are capitals, 26 to 51 small letters."""
    text = ""
    for x in sublist:
        if x is Ellipsis:
            text += "..."
            continue
        number = operator.index(x)
        if not 0 <= number < 52:
            raise ValueError(f"einsum(): subscript in subscript list; expected a number in [0, 52), got {number}")
        text += chr((ord("A") if number < 26 else ord("a") - 26) + number)
    return text


def from_sublists(*arguments: Any) -> tuple[str, list[Any]]:
    """The equation and the operands of ``einsum(a, [0, 1], b, [1, 2], [0, 2])``."""
    if len(arguments) < 2:
        raise ValueError("einsum(): expected an equation and its operands, or operands with a list of subscripts each")
    result = "->" + _letters(arguments[-1]) if len(arguments) % 2 else ""
    pairs = arguments[: len(arguments) // 2 * 2]
    return ",".join(map(_letters, pairs[1::2])) + result, list(pairs[::2])
