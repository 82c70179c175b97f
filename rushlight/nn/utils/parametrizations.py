"""Ready parametrizations: orthogonal weights, spectral and weight normalisation."""

from __future__ import annotations

import rushlight
from rushlight import Tensor

from .. import functional as F
from ..modules.module import Module
from . import parametrize
from .weight_norm import norm_except_dim, weight_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _tensor(op: str, module: Module, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"{op}: {type(module).__name__} has no parameter or buffer '{name}'; expected the name of one")
    return weight


def _is_orthogonal(q: Tensor) -> bool:
    n, k = q.size(-2), q.size(-1)
    identity = rushlight.eye(k, dtype=q.dtype, device=q.device)
    eps = 10.0 * n * rushlight.finfo(q.dtype).eps
    return bool(rushlight.allclose(q.mH @ q, identity, atol=eps))


def _make_orthogonal(a: Tensor) -> Tensor:
    """The Q of a QR decomposition, with the signs of R's diagonal moved into it."""
    x, tau = rushlight.geqrf(a)
    q = rushlight.linalg.householder_product(x, tau)
    q *= x.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)
    return q


class _Orthogonal(Module):
    """Maps any matrix to a (semi) orthogonal one.

    ``householder`` multiplies reflections given by the lower triangle; the other maps take the skew-symmetric part
    and its matrix exponential or Cayley transform. With a base (trivialization) the map starts from the given weight.
    """

    base: Tensor

    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("orthogonal: the householder map is for real matrices; expected 'matrix_exp' or 'cayley'")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Tensor) -> Tensor:
        n, k = x.size(-2), x.size(-1)
        transposed = n < k
        if transposed:
            x = x.mT
            n, k = k, n
        if self.orthogonal_map in ("matrix_exp", "cayley"):
            x = x.tril()
            if n != k:
                # a square matrix, so that there is a skew-symmetric one
                x = rushlight.cat([x, x.new_zeros((n, n - k)).expand(*x.shape[:-2], -1, -1)], dim=-1)
            skew = x - x.mH
            if self.orthogonal_map == "matrix_exp":
                q = rushlight.matrix_exp(skew)
            else:
                identity = rushlight.eye(n, dtype=skew.dtype, device=skew.device)
                q = rushlight.linalg.solve(identity.add(skew, alpha=-0.5), identity.add(skew, alpha=0.5))
            if n != k:
                q = q[..., :k]
        else:
            a = x.tril(diagonal=-1)
            tau = 2.0 / (1.0 + (a * a).sum(dim=-2))
            q = rushlight.linalg.householder_product(a, tau)
            # the sign of the last column makes all of the group reachable
            q = q * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if transposed else q

    def right_inverse(self, q: Tensor) -> Tensor:
        if q.shape != self.shape:
            raise ValueError(f"orthogonal: value; expected shape {list(self.shape)}, got {list(q.shape)}")
        full = q
        n, k = q.size(-2), q.size(-1)
        transposed = n < k
        if transposed:
            q = q.mT
            n, k = k, n
        if not hasattr(self, "base"):
            if self.orthogonal_map in ("cayley", "matrix_exp"):
                raise NotImplementedError(
                    "orthogonal: assignment with matrix_exp or cayley needs use_trivialization=True"
                )
            a, tau = rushlight.geqrf(q)
            # the diagonal of R becomes the signs
            a.diagonal(dim1=-2, dim2=-1).sign_()
            a.diagonal(dim1=-2, dim2=-1)[tau == 0.0] *= -1
            return a.mT if transposed else a
        if n == k:
            q = _make_orthogonal(q) if not _is_orthogonal(q) else q.clone()
        else:
            # columns that complete the basis
            more = rushlight.randn(*((*q.size()[:-2], n, n - k)), dtype=q.dtype, device=q.device)
            q = _make_orthogonal(rushlight.cat([q, more], dim=-1))
        self.base = q
        start = rushlight.zeros_like(full)
        # every map takes this to the identity
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Keeps a weight (semi) orthogonal; returns the module.

    Args:
        orthogonal_map: "matrix_exp", "cayley" or "householder"; by default the first for square or complex matrices
            and the last otherwise.
        use_trivialization: relative to the initial weight (Lezcano-Casado 2019), which allows assignment.

    ValueError for a weight of fewer than 2 dimensions.
    """
    weight = _tensor("orthogonal", module, name)
    if weight.dim() < 2:
        raise ValueError(f"orthogonal: '{name}'; expected at least 2 dimensions, got {weight.dim()}")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1) or weight.is_complex()
        orthogonal_map = "matrix_exp" if square else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            f"orthogonal: unknown map; expected 'matrix_exp', 'cayley' or 'householder', got {orthogonal_map!r}"
        )
    entry = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, entry, unsafe=True)


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_from(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Splits a weight into magnitude (``original0``) and direction (``original1``) (Salimans and Kingma 2016).

    ``dim`` keeps one magnitude per slice along it; None has a single one. Returns the module.
    """
    _tensor("weight_norm", module, name)
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def from_old(
        state_dict: Any, prefix: str, metadata: Any, strict: bool, missing: Any, unexpected: Any, errors: Any
    ) -> None:
        # states of the hook-based form
        g, v = f"{prefix}{name}_g", f"{prefix}{name}_v"
        if g in state_dict and v in state_dict:
            state_dict[f"{prefix}parametrizations.{name}.original0"] = state_dict.pop(g)
            state_dict[f"{prefix}parametrizations.{name}.original1"] = state_dict.pop(v)

    module._register_load_state_dict_pre_hook(from_old)
    return module


class _SpectralNorm(Module):
    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.dim()
        if dim >= ndim or dim < -ndim:
            raise IndexError(f"spectral_norm: dim; expected {-ndim} to {ndim - 1}, got {dim}")
        if n_power_iterations <= 0:
            raise ValueError(f"spectral_norm: n_power_iterations; expected a positive int, got {n_power_iterations}")
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._matrix(weight)
            h, w = matrix.size()
            u = matrix.new_empty(h).normal_(0, 1)
            v = matrix.new_empty(w).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            # enough for a good estimate before the first forward
            self._power_method(matrix, 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        if self.dim != 0:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.flatten(1)

    def _power_method(self, matrix: Tensor, iterations: int) -> None:
        with rushlight.no_grad():
            for _ in range(iterations):
                self._u.copy_(F.normalize(rushlight.mv(matrix, self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(rushlight.mv(matrix.t().conj(), self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.dim() == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # backward must see these values, whatever the next forward does to the buffers
        u, v = self._u.clone(), self._v.clone()
        return weight / rushlight.vdot(u, rushlight.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divides a weight by its largest singular value, estimated by power iteration (Miyato et al. 2018); returns the
    module.

    ``dim`` is the dimension of the outputs: 1 for transposed convolutions, 0 otherwise.
    """
    weight = _tensor("spectral_norm", module, name)
    if dim is None:
        from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d

        dim = 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0
    return parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
