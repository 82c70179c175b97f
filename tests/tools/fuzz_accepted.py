"""Differences that the fuzz does not report, each with its reason. One place: nothing else is left out."""

from __future__ import annotations

import re

# (function, kind, what, call, reason): regular expressions that must be found in the name, the kind, what differs and
# the text of the call.
RULES: tuple[tuple[str, str, str, str, str], ...] = (
    # ---- described in docs/differences.md
    ("histc$", "value", "", "", "counts of 16-bit floats are exact"),
    (
        "",
        "value",
        r"nan.* and .*inf|nan.* and \[-?[01]\.",
        r"special\.|(bessel|i0|i1|sign|sgn)",
        "limits at infinity; sign of NaN",
    ),
    (r"\.(byte|char|short|int|long|to|type_as)$", "value", "", "", "a float that an integer dtype cannot hold"),
    ("matrix_exp$", "value", "", "float16", "matrix_exp of 16-bit floats is exact"),
    ("", "value", "^shapes", r"dim=\[\]|, \[\]", "reductions with dim=() reduce everything"),
    (
        "",
        "accepts",
        "Found dtype|Expected out tensor to have dtype|expected scalar_type|does not match input dtype|"
        "does not support non-boolean outputs|some elements of the input tensor and the written-to tensor|"
        "Expected out tensor|same dtype",
        "out=",
        "every function computes into any out= its result can be cast to",
    ),
    (
        "",
        "accepts|type",
        r"unexpected keyword argument 'out'|invalid combination of arguments.*out=",
        "out=",
        "every function that makes one tensor takes out=",
    ),
    (
        "(svd|qr|eig|eigh|pinv|cond|matrix_rank|lstsq|slogdet|det|norm)$",
        "value|refuses|accepts",
        r"nan|inf|non-finite|full rank",
        "",
        "decompositions of matrices that are not finite are refused",
    ),
    ("(zero|fill)_?$", "refuses", "refers to a single memory location", "", "no write into an expanded tensor"),
    ("", "refuses|type", "out= has the wrong shape", "out=", "only an empty out= is resized"),
    ("cosine_similarity$|norm$|dist$|std|var", "value", r"^elements \[-?(0\.0|inf|nan)", "", "no overflow on the way"),
    (
        "(less|greater|equal|eq|ne|lt|le|gt|ge)(_equal)?_?$",
        "value",
        "True|False",
        r"\d{4,}|-\d+",
        "comparisons with integers beyond the dtype are right",
    ),
    # ---- says nothing
    ("argsort$|topk$|kthvalue$|median$|mode$|sort$", "value", r"elements \[\d", "", "ties may come in any order"),
    ("(svd|eig|eigh|qr|lobpcg|lowrank)$", "value", "elements", "", "vectors are determined up to a factor"),
    # ---- two mistakes in one call: which is found first differs
    (
        "",
        "type",
        r"^(IndexError|RuntimeError|ValueError|NotImplementedError) .* and "
        r"(IndexError|RuntimeError|ValueError|NotImplementedError) ",
        "",
        "another of several mistakes is found first",
    ),
    (
        "",
        "type",
        "^AttributeError .* and (TypeError|ValueError) ",
        "",
        "PyTorch's Python functions ask a wrong argument for an attribute",
    ),
    # ---- open
    (
        "cholesky$",
        "refuses",
        "square matrices|at least 2 dimensions|expected floating",
        r"\[0|0\]| 0,",
        "empty tensors are checked as others are",
    ),
    ("(movedim|moveaxis)$", "accepts", "invalid combination", r"\[", "open: an int beside a list is a list of one"),
    ("", "value", "^requires_grad True and False", "", "open: results without a derivative do not require grad"),
    ("", "accepts", "pin_memory", "", "memory counts as pinned without an accelerator"),
)


def accepted(name: str, kind: str, what: str, call: str) -> str:
    """The reason why a difference is not reported, or an empty string."""
    for function, kinds, text, where, reason in RULES:
        found = re.search(function, name) and re.search(kinds, kind) if kinds else re.search(function, name)
        if found and re.search(text, what) and re.search(where, call):
            return reason
    return ""
