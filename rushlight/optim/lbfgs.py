"""L-BFGS (Nocedal 1980)."""

from __future__ import annotations

import rushlight
from rushlight import Tensor

from .optimizer import Optimizer, check_lr, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["LBFGS"]


def _cubic_minimum(x1: Any, f1: Any, g1: Any, x2: Any, f2: Any, g2: Any, bounds: Any = None) -> Any:
    """The minimum of the cubic through two points with their slopes, within bounds (the points by default)."""
    low, high = bounds if bounds is not None else ((x1, x2) if x1 <= x2 else (x2, x1))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if square < 0:
        return (low + high) / 2.0
    d2 = float(square) ** 0.5
    if x1 <= x2:
        best = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        best = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(best, low), high)


def _strong_wolfe(
    evaluate: Any,
    t: Any,
    d: Any,
    f: Any,
    g: Any,
    slope: Any,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
    max_evaluations: int = 25,
) -> tuple[Any, Any, Any, int]:
    """A step length that meets the strong Wolfe conditions: bracket one, then zoom in (Nocedal and Wright 2006, 3.5).

    ``evaluate(t)`` gives loss and flat gradient at the point t * d away. Returns loss, gradient, t and evaluations.
    """
    largest = d.abs().max()
    g = g.clone()
    f_new, g_new = evaluate(t)
    evaluations = 1
    slope_new = g_new.dot(d)
    # previous point of the search: where it starts
    t_prev, f_prev, g_prev, slope_prev = 0, f, g, slope
    done = False
    # points as [t, loss, gradient, slope]
    bracket: list[list[Any]] = []
    iterations = 0
    while iterations < max_evaluations:
        if f_new > (f + c1 * t * slope) or (iterations > 1 and f_new >= f_prev):
            bracket = [[t_prev, f_prev, g_prev, slope_prev], [t, f_new, g_new.clone(), slope_new]]
            break
        if abs(slope_new) <= -c2 * slope:
            bracket = [[t, f_new, g_new, slope_new]]
            done = True
            break
        if slope_new >= 0:
            bracket = [[t_prev, f_prev, g_prev, slope_prev], [t, f_new, g_new.clone(), slope_new]]
            break
        # still downhill: go further
        nearest, furthest = t + 0.01 * (t - t_prev), t * 10
        here = t
        t = _cubic_minimum(t_prev, f_prev, slope_prev, t, f_new, slope_new, bounds=(nearest, furthest))
        t_prev, f_prev, g_prev, slope_prev = here, f_new, g_new.clone(), slope_new
        f_new, g_new = evaluate(t)
        evaluations += 1
        slope_new = g_new.dot(d)
        iterations += 1
    if iterations == max_evaluations:
        bracket = [[0, f, g, slope], [t, f_new, g_new, slope_new]]
    stalled = False
    low, high = (0, 1) if bracket[0][1] <= bracket[-1][1] else (1, 0)
    while not done and iterations < max_evaluations:
        if abs(bracket[1][0] - bracket[0][0]) * largest < tolerance_change:
            break
        (t0, f0, _, s0), (t1, f1, _, s1) = bracket
        t = _cubic_minimum(t0, f0, s0, t1, f1, s1)
        # a point near the border twice in a row, or on it, is moved inwards
        left, right = min(t0, t1), max(t0, t1)
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:
            if stalled or t >= right or t <= left:
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                stalled = False
            else:
                stalled = True
        else:
            stalled = False
        f_new, g_new = evaluate(t)
        evaluations += 1
        slope_new = g_new.dot(d)
        iterations += 1
        if f_new > (f + c1 * t * slope) or f_new >= bracket[low][1]:
            bracket[high] = [t, f_new, g_new.clone(), slope_new]
            low, high = (0, 1) if bracket[0][1] <= bracket[1][1] else (1, 0)
        else:
            if abs(slope_new) <= -c2 * slope:
                done = True
            elif slope_new * (bracket[high][0] - bracket[low][0]) >= 0:
                bracket[high] = list(bracket[low])
            bracket[low] = [t, f_new, g_new.clone(), slope_new]
    best = bracket[low] if len(bracket) > 1 else bracket[0]
    return best[1], best[2], best[0], evaluations


class LBFGS(Optimizer):
    """L-BFGS (Nocedal 1980): quasi-Newton steps from the last ``history_size`` changes of the gradient.

    One group of parameters only, and step needs a closure, which is called several times.

    Args:
        lr: factor of the steps.
        max_iter, max_eval: iterations and evaluations of the closure per step (max_eval is max_iter * 5 / 4 by
            default).
        tolerance_grad, tolerance_change: stop when the largest gradient, or the change, is below.
        line_search_fn: None or "strong_wolfe".
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_lr("LBFGS", lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError(f"LBFGS: expected one group of parameters, got {len(self.param_groups)}")
        self._params = self.param_groups[0]["params"]

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_params": self._params}

    def _flat_gradient(self) -> Tensor:
        parts = []
        for p in self._params:
            grad = p.new_zeros(p.numel()) if p.grad is None else p.grad.reshape(-1)
            parts.append(rushlight.view_as_real(grad).reshape(-1) if grad.is_complex() else grad)
        return rushlight.cat(parts, 0)

    def _move(self, size: Any, direction: Tensor) -> None:
        offset = 0
        for p in self._params:
            target = rushlight.view_as_real(p) if p.is_complex() else p
            n = target.numel()
            target.add_(direction[offset : offset + n].view_as(target), alpha=value_of(size))
            offset += n

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Up to max_iter iterations.

        The closure clears gradients, computes the loss, runs backward and returns the loss.
        """
        if closure is None:
            raise TypeError("LBFGS.step: expected a closure that computes the loss again, got None")
        with rushlight.no_grad():
            return self._step(closure)

    def _step(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        lr = group["lr"]  # a tensor stays one
        max_iter, max_eval = group["max_iter"], group["max_eval"]
        tolerance_grad, tolerance_change = group["tolerance_grad"], group["tolerance_change"]
        line_search, history = group["line_search_fn"], group["history_size"]
        # all state hangs on the first parameter
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        def loss_again() -> Any:
            with rushlight.enable_grad():
                return closure()

        first_loss = loss_again()
        loss = float(first_loss)
        evaluations = 1
        state["func_evals"] += 1
        gradient = self._flat_gradient()
        if bool(gradient.abs().max() <= tolerance_grad):
            return first_loss
        d, t = state.get("d"), state.get("t")
        old_dirs, old_stps, ro = state.get("old_dirs"), state.get("old_stps"), state.get("ro")
        scale = state.get("H_diag")
        previous_gradient, previous_loss = state.get("prev_flat_grad"), state.get("prev_loss")
        iterations = 0
        while iterations < max_iter:
            iterations += 1
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                d = gradient.neg()
                old_dirs, old_stps, ro, scale = [], [], [], 1
            else:
                y = gradient.sub(previous_gradient)
                s = d.mul(t)
                ys = y.dot(s)
                # a change without curvature is not remembered
                if ys > 1e-10:
                    if len(old_dirs) == history:
                        old_dirs.pop(0)
                        old_stps.pop(0)
                        ro.pop(0)
                    old_dirs.append(y)
                    old_stps.append(s)
                    ro.append(1.0 / ys)
                    scale = ys / y.dot(y)
                d = self._direction(gradient, old_dirs, old_stps, ro, scale, state, history)
            if previous_gradient is None:
                previous_gradient = gradient.clone()
            else:
                previous_gradient.copy_(gradient)
            previous_loss = loss
            t = min(1.0, 1.0 / gradient.abs().sum()) * lr if state["n_iter"] == 1 else lr
            slope = gradient.dot(d)
            if slope > -tolerance_change:
                break
            used = 0
            if line_search is not None:
                if line_search != "strong_wolfe":
                    raise RuntimeError(f"LBFGS: line_search_fn; expected None or 'strong_wolfe', got {line_search!r}")
                start = [p.clone() for p in self._params]

                def evaluate(size: Any, direction: Any = d, at: Any = start) -> tuple[float, Any]:
                    self._move(size, direction)
                    value = float(loss_again())
                    g = self._flat_gradient()
                    for p, old in zip(self._params, at, strict=False):
                        p.copy_(old)
                    return value, g

                loss, gradient, t, used = _strong_wolfe(evaluate, t, d, loss, gradient, slope)
                self._move(t, d)
                small = bool(gradient.abs().max() <= tolerance_grad)
            else:
                self._move(t, d)
                small = False
                if iterations != max_iter:
                    loss = float(loss_again())
                    gradient = self._flat_gradient()
                    small = bool(gradient.abs().max() <= tolerance_grad)
                    used = 1
            evaluations += used
            state["func_evals"] += used
            if iterations == max_iter or evaluations >= max_eval or small:
                break
            if d.mul(t).abs().max() <= tolerance_change or abs(loss - previous_loss) < tolerance_change:
                break
        state["d"], state["t"] = d, t
        state["old_dirs"], state["old_stps"], state["ro"] = old_dirs, old_stps, ro
        state["H_diag"] = scale
        state["prev_flat_grad"], state["prev_loss"] = previous_gradient, previous_loss
        return first_loss

    def _direction(
        self, gradient: Tensor, old_dirs: Any, old_stps: Any, ro: Any, scale: Any, state: dict[str, Any], history: int
    ) -> Tensor:
        """-H gradient by the two loops over the remembered changes."""
        if "al" not in state:
            state["al"] = [None] * history
        al = state["al"]
        q = gradient.neg()
        for i in range(len(old_dirs) - 1, -1, -1):
            al[i] = old_stps[i].dot(q) * ro[i]
            q.add_(old_dirs[i], alpha=value_of(-al[i]))
        r = rushlight.mul(q, scale)
        for i in range(len(old_dirs)):
            b = old_dirs[i].dot(r) * ro[i]
            r.add_(old_stps[i], alpha=value_of(al[i] - b))
        return r
