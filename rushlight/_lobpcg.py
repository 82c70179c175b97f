"""Some eigenpairs of large symmetric matrices, from products with the matrix alone."""

from __future__ import annotations

from typing import Any

from ._C import Tensor

__all__ = ["lobpcg"]


class Worker:
    """The state of an iteration, as a tracker sees it.

    ``E`` and ``X`` are the eigenpairs so far, ``R`` the residuals; ``ivars`` holds ``istep`` and ``converged_count``,
    ``fvars`` the norms, ``tvars`` the relative residuals, ``bvars`` whether the iteration was stopped by force.
    """

    def __init__(self, A: Any, B: Any, X: Any, iK: Any, options: dict[str, Any]) -> None:
        self.A, self.B, self.X, self.iK = A, B, X, iK
        self.iparams = {key: options[key] for key in ("m", "n", "k", "niter")}
        self.fparams = {"tol": options["tol"]}
        self.bparams = {"largest": options["largest"]}
        self.method = options["method"]
        self.E: Any = None
        self.R: Any = None
        self.S: Any = None
        self.ivars: dict[str, int] = {"istep": 0, "converged_count": 0}
        self.fvars: dict[str, float] = {}
        self.bvars: dict[str, bool] = {"force_stop": False}
        self.tvars: dict[str, Any] = {}

    def _apply(self, matrix: Any, x: Any) -> Any:
        return x if matrix is None else matrix @ x

    def _orthonormal(self, s: Any) -> Any:
        """A B-orthonormal basis of the columns' span; directions that vanish are dropped.

        A. Stathopoulos and K. Wu, "A block orthogonalization procedure with constant synchronization requirements"
        (2002): the eigenvectors of the scaled Gram matrix, twice against rounding.
        """
        import rushlight

        for _ in range(2):
            gram = s.mT @ self._apply(self.B, s)
            scale = gram.diagonal().clamp_min(rushlight.finfo(s.dtype).tiny).rsqrt()
            values, vectors = rushlight.linalg.eigh(gram * scale * scale.unsqueeze(-1))
            kept = values > values[-1] * rushlight.finfo(s.dtype).eps * values.shape[0]
            s = s @ (vectors * scale.unsqueeze(-1))[:, kept] * values[kept].rsqrt()
        return s

    def _ritz(self, s: Any) -> tuple[Any, Any]:
        """Ritz values and coordinates in an orthonormal basis, the wanted ones first."""
        import rushlight

        values, vectors = rushlight.linalg.eigh(s.mT @ self._apply(self.A, s))
        if self.bparams["largest"]:
            values, vectors = values.flip(0), vectors.flip(1)
        return values, vectors

    def _residuals(self, norms: tuple[float, float]) -> None:
        self.R = self._apply(self.A, self.X) - self._apply(self.B, self.X) * self.E
        size = self.X.norm(2, 0) * (norms[0] + self.E.abs() * norms[1])
        self.tvars["rerr"] = self.R.norm(2, 0) / size
        converged = (self.tvars["rerr"] < self.fparams["tol"]).tolist()
        self.ivars["converged_count"] = converged.index(False) if False in converged else len(converged)

    def run(self, tracker: Any) -> None:
        """A. Knyazev, "Toward the optimal preconditioned eigensolver: locally optimal block preconditioned conjugate
        gradient method" (2001), with the orthonormal bases of J. Duersch et al., "A robust and efficient implementation
        of LOBPCG" (2018).
        """
        import rushlight

        n, k = self.iparams["n"], self.iparams["k"]
        probe = self._apply(self.A, self.X).norm().item() / max(self.X.norm().item(), 1e-300)
        b_size = self._apply(self.B, self.X).norm().item() / max(self.X.norm().item(), 1e-300)
        self.fvars = {"A_norm": probe, "B_norm": b_size}
        basis = self._orthonormal(self.X)
        self.E, coordinates = self._ritz(basis)
        self.X, p = basis @ coordinates, None
        while True:
            self.E, self.X = self.E[:n], self.X[:, :n]
            self._residuals((probe, b_size))
            if tracker is not None:
                tracker(self)
            step = self.ivars["istep"]
            if self.bvars["force_stop"] or self.ivars["converged_count"] >= k or 0 <= self.iparams["niter"] <= step:
                return
            w = self._apply(self.iK, self.R)
            others = w if p is None else rushlight.cat([w, p], 1)
            # The new directions are made orthogonal to X first, so that X itself is kept to full precision.
            for _ in range(2):
                others = others - self.X @ (self._apply(self.B, self.X).mT @ others)
            others = self._orthonormal(others)
            self.S = rushlight.cat([self.X, others], 1)
            self.E, coordinates = self._ritz(self.S)
            coordinates = coordinates[:, :n]
            p = others @ coordinates[self.X.shape[1] :]
            self.X = self.S @ coordinates
            self.ivars["istep"] = step + 1


def _solve(A: Any, B: Any, X: Any, iK: Any, options: dict[str, Any], tracker: Any) -> tuple[Any, Any]:
    worker = Worker(A, B, X, iK, options)
    worker.run(tracker)
    k = options["k"]
    return worker.E[:k], worker.X[:, :k]


def _attach(A: Any, values: Any, vectors: Any) -> tuple[Any, Any]:
    """The results as differentiable functions of A: exact to first order at the solution, by one step of perturbation
    theory around it.
    """
    import rushlight

    symmetric = (A + A.mT) * 0.5
    with rushlight.no_grad():
        spectrum, basis = rushlight.linalg.eigh(symmetric)
        gaps = values.unsqueeze(-2) - spectrum.unsqueeze(-1)
        near = gaps.abs() <= spectrum.abs().amax() * 1e3 * rushlight.finfo(A.dtype).eps + gaps.abs().amin(-2, True)
        inverse = rushlight.where(near, 0.0, gaps.reciprocal())
    product = symmetric @ vectors
    values_now = (vectors * product).sum(-2)
    shift = basis @ (inverse * (basis.mT @ product))
    return values_now, vectors + shift - shift.detach()


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: Any = None,
    ortho_fparams: Any = None,
    ortho_bparams: Any = None,
) -> tuple[Tensor, Tensor]:
    """The k largest (or smallest) eigenvalues of a symmetric A, or of A x = lambda B x, and their eigenvectors.

    Shapes: A, B and the preconditioner iK (*, m, m), the first guess X (*, m, n) -> (*, k) and (*, m, k). The
    iteration ends after niter steps (-1: no limit, 1000 unless given) or when k residuals are below tol. ``tracker`` is
    called with the iteration's state at each step. ``method`` is 'ortho' or 'basic'; both run the same, robust
    iteration, and the parameters of orthogonalisation are not needed.

    Raises:
        ValueError: m is less than 3 n, or the method is unknown.
        RuntimeError: gradients are asked for with B.

    Example::

        >>> import rushlight
        >>> values, vectors = rushlight.lobpcg(rushlight.diag(rushlight.arange(1.0, 13.0)), k=2)
        >>> [round(v, 3) for v in values.tolist()]
        [12.0, 11.0]
    """
    import rushlight

    if A.dim() < 2 or A.shape[-1] != A.shape[-2]:
        raise ValueError(f"lobpcg: A must be square; got shape {list(A.shape)}")
    if not A.is_floating_point() or A.dtype not in (rushlight.float32, rushlight.float64):
        raise RuntimeError(f"lobpcg: A; expected float32 or float64, got {A.dtype}")
    if method not in (None, "ortho", "basic"):
        raise ValueError(f"lobpcg: method; expected 'ortho' or 'basic', got {method!r}")
    m = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if X is None else X.shape[-1]) if n is None else n
    if m < 3 * n:
        raise ValueError(f"lobpcg: expected at least 3 n rows of A; got {m} rows and n = {n}")
    options = {
        "m": m,
        "n": n,
        "k": k,
        "niter": 1000 if niter is None else niter,
        "tol": rushlight.finfo(A.dtype).eps ** 0.5 if tol is None else tol,
        "largest": True if largest is None else largest,
        "method": "ortho" if method is None else method,
    }
    recording = rushlight.is_grad_enabled() and (A.requires_grad or (B is not None and B.requires_grad))
    if recording and B is not None:
        raise RuntimeError("lobpcg: gradients are for B=None; expected B without them, got a matrix B")
    batch = A.shape[:-2]
    count = 1
    for size in batch:
        count *= size
    start = rushlight.randn((*batch, m, n), dtype=A.dtype, device=A.device) if X is None else X
    with rushlight.no_grad():
        a, b, first, preconditioner = (
            None if t is None else t.detach().reshape(count, *t.shape[-2:]).unbind(0) for t in (A, B, start, iK)
        )
        pairs = []
        for i in range(count):
            given = [None if t is None else t[i] for t in (a, b, first, preconditioner)]
            pairs.append(_solve(given[0], given[1], given[2], given[3], options, tracker))
        values = rushlight.stack([v for v, _ in pairs]).reshape(*batch, k)
        vectors = rushlight.stack([v for _, v in pairs]).reshape(*batch, m, k)
    if recording:
        return _attach(A, values, vectors)
    return values, vectors
