"""Adafactor (Shazeer and Stern 2018)."""

from __future__ import annotations

import rushlight
from rushlight import Tensor

from .adam import upgrade_steps
from .optimizer import Optimizer, check_at_least_zero, check_lr, new_step, value_of, zeros_like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Adafactor"]


class Adafactor(Optimizer):
    """Adafactor (Shazeer and Stern 2018): second moments of matrices are kept as one row and one column.

    Args:
        lr: the largest relative step.
        beta2_decay: the share of the new moment at step t is t^beta2_decay.
        eps: the least second moment (machine epsilon of the dtype by default), and the least scale of a parameter.
        d: updates with a larger root mean square are scaled down to it.
        weight_decay: shrinks parameters by lr * weight_decay.
        foreach, maximize: as in :class:`Adam`.
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_lr("Adafactor", lr)
        if not beta2_decay <= 0.0:
            raise ValueError(f"Adafactor: beta2_decay; expected a number of at most 0, got {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ValueError(f"Adafactor: eps[0]; expected None or a number of at least 0, got {eps[0]}")
        if not eps[1] >= 0.0:
            raise ValueError(f"Adafactor: eps[1]; expected a number of at least 0, got {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Adafactor: d; expected a number of at least 1, got {d}")
        check_at_least_zero("Adafactor", weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("foreach", None)
            upgrade_steps(self, group)

    def _update(self, p: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        if p.is_complex():
            raise RuntimeError(f"Adafactor: parameter of dtype {p.dtype}; expected a real one")
        if not state:
            state["step"] = new_step()
            if grad.dim() > 1:
                rows = list(grad.shape)
                cols = list(grad.shape)
                rows[-1], cols[-2] = 1, 1
                state["row_var"] = grad.new_zeros(rows)
                state["col_var"] = grad.new_zeros(cols)
            else:
                state["variance"] = zeros_like(grad)
        norm = rushlight.linalg.vector_norm
        lr = value_of(group["lr"])
        eps1, eps2 = group["eps"]
        if eps1 is None:
            eps1 = rushlight.finfo(p.dtype).eps
        state["step"] += 1
        step = state["step"].item()
        share = step ** group["beta2_decay"]
        scale = max(eps2, norm(p).item() / (p.numel() ** 0.5)) * min(lr, 1 / (step**0.5))
        if group["weight_decay"] != 0:
            p.mul_(1 - lr * group["weight_decay"])
        if grad.dim() > 1:
            rows, cols = state["row_var"], state["col_var"]
            rows.lerp_(norm(grad, 2, -1, True).square_().div_(grad.size(-1)), share)
            cols.lerp_(norm(grad, 2, -2, True).square_().div_(grad.size(-2)), share)
            variance = (rows @ cols).div_(rows.mean(dim=-2, keepdim=True).clamp_(min=eps1))
        else:
            state["variance"].lerp_(grad * grad, share)
            variance = state["variance"].clone()
        update = variance.clamp_(min=eps1 * eps1).rsqrt_().mul_(grad)
        length = max(1.0, norm(update).item() / ((update.numel() ** 0.5) * group["d"]))
        p.add_(update, alpha=-scale / length)
