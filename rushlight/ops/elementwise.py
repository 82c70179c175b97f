"""Elementwise operations: a scalar expression each, from which kernels, fused derivatives and traces come."""

from __future__ import annotations

from ._expression import exp, maximum, where
from ._record import elementwise

elementwise("add(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor", lambda self, other, alpha: self + other * alpha, types="bool int float complex")
elementwise("sub(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor", lambda self, other, alpha: self - other * alpha, types="int float complex")
elementwise("mul(Tensor self, Tensor|Scalar other) -> Tensor", lambda self, other: self * other, types="bool int float complex")
elementwise("div(Tensor self, Tensor|Scalar other) -> Tensor", lambda self, other: self / other, types="float complex", compute="float")
elementwise("neg(Tensor self) -> Tensor", lambda self: -self, types="int float complex")
elementwise("exp(Tensor self) -> Tensor", lambda self: exp(self), types="float32", compute="float")
elementwise("maximum(Tensor self, Tensor other) -> Tensor", lambda self, other: maximum(self, other), types="bool int float")
elementwise("where(Tensor condition, Tensor self, Tensor other) -> Tensor", lambda condition, self, other: where(condition, self, other), types="bool int float complex")
elementwise("lt(Tensor self, Tensor other) -> Tensor", lambda self, other: self < other, types="bool int float", result="bool")
elementwise("floor_divide(Tensor self, Tensor other) -> Tensor", lambda self, other: self // other, types="int")
