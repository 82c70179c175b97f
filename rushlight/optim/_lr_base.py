"""LRScheduler, the base class of the learning rate schedules."""

from __future__ import annotations

import warnings
import weakref

from rushlight import Tensor

from .optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def set_setting(group: dict[str, Any], key: str, value: Any) -> None:
    """Sets a group's setting; one that is a tensor keeps its identity."""
    if isinstance(group[key], Tensor):
        group[key].fill_(value.item() if isinstance(value, Tensor) else value)
    else:
        group[key] = value


def _watch_first_step(optimizer: Any) -> None:
    """Notes the first call of ``optimizer.step``, then gets out of the way."""
    if getattr(optimizer, "_opt_called", False) or "_lr_watched" in optimizer.__dict__:
        return
    reference = weakref.ref(optimizer)
    own = optimizer.__dict__.get("step")
    plain = type(optimizer).step

    def step(*args: Any, **kwargs: Any) -> Any:
        opt: Any = reference()
        opt._opt_called = True
        if opt.__dict__.get("step") is step:
            if own is None:
                del opt.__dict__["step"]
            else:
                opt.__dict__["step"] = own
        return plain(opt, *args, **kwargs) if own is None else own(*args, **kwargs)

    step._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.__dict__["_lr_watched"] = True
    optimizer.__dict__["step"] = step


class LRScheduler:
    """Base class of the schedules: sets the learning rates of an optimizer's groups, epoch by epoch.

    Args:
        optimizer: whose groups are changed; their "initial_lr" is kept beside "lr".
        last_epoch: -1 to start, or the epoch after which to go on (groups must have "initial_lr" then).

    A subclass defines ``get_lr``, the rates of ``last_epoch``. Call ``step`` after ``optimizer.step``.
    Raises TypeError for something that is no optimizer, KeyError when "initial_lr" is missing.
    """

    _get_lr_called_within_step: bool = False
    _is_initial: bool = False
    base_lrs: list[Any]
    last_epoch: int
    _step_count: int
    _last_lr: list[Any]

    def __init__(self, optimizer: Any, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(self).__name__}: optimizer; expected an Optimizer, got {type(optimizer).__name__}")
        self.optimizer = optimizer
        if last_epoch == -1:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", _copy(group["lr"]))
        else:
            for i, group in enumerate(optimizer.param_groups):
                if "initial_lr" not in group:
                    raise KeyError(
                        f"{type(self).__name__}: group {i} without 'initial_lr'; expected it when last_epoch is "
                        f"{last_epoch}"
                    )
        self.base_lrs = [_copy(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        _watch_first_step(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back what :meth:`state_dict` returned."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """The rates set last, one per group."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The rates of ``last_epoch``, one per group."""
        raise NotImplementedError(f"{type(self).__name__}.get_lr: not defined; expected it in the class")

    def step(self, epoch: int | None = None) -> None:
        """Goes on by one epoch and sets the rates. ``epoch`` (deprecated) jumps to an epoch."""
        if self._step_count == 1 and not getattr(self.optimizer, "_opt_called", False):
            warnings.warn(
                f"{type(self).__name__}.step was called before optimizer.step, which skips the first rate; "
                "expected optimizer.step first",
                stacklevel=2,
            )
        self._step_count += 1
        if epoch is not None:
            _warn_epoch()
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", None)
                values = self.get_lr() if closed is None else closed()
        finally:
            self._get_lr_called_within_step = False
        for group, lr in zip(self.optimizer.param_groups, values, strict=False):
            set_setting(group, "lr", lr)
        self._last_lr = [_copy(group["lr"]) for group in self.optimizer.param_groups]

    def _warn_get_lr(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                f"{type(self).__name__}.get_lr is called by step; use get_last_lr for the rates in use", stacklevel=3
            )

    def _lrs(self) -> list[Any]:
        return [_copy(group["lr"]) for group in self.optimizer.param_groups]


def _warn_epoch() -> None:
    warnings.warn("step(epoch) is deprecated; call step() once per epoch", stacklevel=3)
