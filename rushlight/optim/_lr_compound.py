"""Schedules with cycles, phases or feedback, and schedules made of others."""

from __future__ import annotations

import math
import types
import warnings
from bisect import bisect_right

from rushlight import Tensor

from ._lr_base import LRScheduler, _copy, _warn_epoch, set_setting
from .optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


def _per_group(op: str, name: str, value: Any, optimizer: Any) -> list[Any]:
    """One value per group: a list of the right length, or a number repeated."""
    groups = len(optimizer.param_groups)
    if isinstance(value, (list, tuple)):
        if len(value) != groups:
            raise ValueError(f"{op}: {name}; expected one number or {groups} (groups), got {len(value)}")
        return list(value)
    return [value] * groups


class SequentialLR(LRScheduler):
    """Schedules one after another, changing at the ``milestones``.

    Raises ValueError when a schedule belongs to another optimizer or the counts do not fit.
    """

    def __init__(
        self, optimizer: Any, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        name = type(self).__name__
        if len(schedulers) < 1:
            raise ValueError(f"{name}: schedulers; expected at least one, got none")
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{name}: schedulers[{i}]; expected a schedule, got {type(scheduler).__name__}")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name}: schedulers[{i}]; ReduceLROnPlateau needs a metric and cannot be part of a sequence"
                )
            if optimizer != scheduler.optimizer:
                raise ValueError(f"{name}: schedulers[{i}]; expected a schedule of the given optimizer")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"{name}: milestones; expected {len(schedulers) - 1} for {len(schedulers)} schedules, got "
                f"{len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # every schedule has made its first step already: only that of the first one counts
        for group in optimizer.param_groups:
            set_setting(group, "lr", group["initial_lr"])
        self.recursive_undo()
        self._schedulers[0]._initial_step()
        self._last_lr = schedulers[0].get_last_lr()

    def recursive_undo(self, sched: Any = None) -> None:
        """Takes back the first step of all schedules, nested ones included."""
        inner = self if sched is None else sched
        if hasattr(inner, "_schedulers"):
            for s in inner._schedulers:
                self.recursive_undo(s)
        elif hasattr(inner, "last_epoch"):
            inner.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """Goes on by one epoch."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                scheduler.step(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, with the states of the schedules."""
        return _compound_state(self)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back what :meth:`state_dict` returned."""
        _load_compound_state(self, state_dict)


def _compound_state(compound: Any) -> dict[str, Any]:
    state = {k: v for k, v in compound.__dict__.items() if k not in ("optimizer", "_schedulers")}
    state["_schedulers"] = [s.state_dict() for s in compound._schedulers]
    return state


def _load_compound_state(compound: Any, state_dict: dict[str, Any]) -> None:
    compound.__dict__.update({k: v for k, v in state_dict.items() if k != "_schedulers"})
    for scheduler, state in zip(compound._schedulers, state_dict["_schedulers"], strict=False):
        scheduler.load_state_dict(state)


class ChainedScheduler(LRScheduler):
    """Schedules that all act in every epoch, one on the result of the other."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Any = None) -> None:
        name = type(self).__name__
        if len(schedulers) < 1:
            raise ValueError(f"{name}: schedulers; expected at least one, got none")
        optimizer = optimizer or schedulers[0].optimizer
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{name}: schedulers[{i}]; expected a schedule, got {type(scheduler).__name__}")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name}: schedulers[{i}]; ReduceLROnPlateau needs a metric and cannot be part of a chain"
                )
            if optimizer != scheduler.optimizer:
                raise ValueError(f"{name}: schedulers[{i}]; expected a schedule of the same optimizer as the others")
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = [_copy(group["lr"]) for group in optimizer.param_groups]

    def step(self) -> None:  # type: ignore[override]
        """Goes on by one epoch."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = [_copy(group["lr"]) for group in self._schedulers[-1].optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, with the states of the schedules."""
        return _compound_state(self)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back what :meth:`state_dict` returned."""
        _load_compound_state(self, state_dict)


class ReduceLROnPlateau(LRScheduler):
    """lr = lr * factor when a metric has not become better for ``patience`` epochs.

    Args:
        mode: "min" or "max", what is better.
        factor: below 1, otherwise ValueError.
        threshold, threshold_mode: by how much better, "rel" (a share) or "abs".
        cooldown: epochs to wait after a reduction.
        min_lr: the least rate, one or one per group.
        eps: smaller changes are not made.
    """

    def __init__(
        self,
        optimizer: Any,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:
        name = type(self).__name__
        if factor >= 1.0:
            raise ValueError(f"{name}: factor; expected a number below 1, got {factor}")
        self.factor = factor
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{name}: optimizer; expected an Optimizer, got {type(optimizer).__name__}")
        self.optimizer = optimizer
        self.default_min_lr: Any = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs = _per_group(name, "min_lr", min_lr, optimizer)
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = self._lrs()
        self._init_is_better(mode=mode, threshold=threshold, threshold_mode=threshold_mode)
        self._reset()

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def _init_is_better(self, mode: str, threshold: float, threshold_mode: str) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"{type(self).__name__}: unknown mode; expected 'min' or 'max', got {mode!r}")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(
                f"{type(self).__name__}: unknown threshold_mode; expected 'rel' or 'abs', got {threshold_mode!r}"
            )
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Goes on by one epoch with its metric."""
        current = float(metrics)
        if epoch is None:
            epoch = self.last_epoch + 1
        else:
            _warn_epoch()
        self.last_epoch = epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(epoch)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._lrs()

    def _reduce_lr(self, epoch: int) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"{type(self).__name__}: min_lr; expected one number for each of the {len(groups)} groups, got "
                    f"{len(self.min_lrs)} (groups were added)"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=False):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                set_setting(group, "lr", new)

    @property
    def in_cooldown(self) -> bool:
        """Whether a reduction is so recent that bad epochs do not count yet."""
        return self.cooldown_counter > 0

    def _is_better(self, a: float, best: float) -> bool:
        if self.threshold_mode == "rel":
            limit = best * (1.0 - self.threshold if self.mode == "min" else 1.0 + self.threshold)
        else:
            limit = best - self.threshold if self.mode == "min" else best + self.threshold
        return a < limit if self.mode == "min" else a > limit

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back what :meth:`state_dict` returned."""
        self.__dict__.update(state_dict)
        self._init_is_better(mode=self.mode, threshold=self.threshold, threshold_mode=self.threshold_mode)


class _MomentumCycle(LRScheduler):
    """What CyclicLR and OneCycleLR share: momentum (or beta1 of Adam) that moves against the rate."""

    def _find_momentum(self) -> None:
        defaults = self.optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise ValueError(
                f"{type(self).__name__}: cycle_momentum; expected an optimizer with momentum or betas, got "
                f"{type(self.optimizer).__name__}"
            )
        self.use_beta1 = "betas" in defaults

    def _set_momentum(self, group: dict[str, Any], momentum: Any) -> None:
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum

    def _get_momentum(self, group: dict[str, Any]) -> Any:
        return group["betas"][0] if self.use_beta1 else group["momentum"]


class CyclicLR(_MomentumCycle):
    """Rates that go up and down between two bounds (Smith 2015), batch by batch.

    Args:
        base_lr, max_lr: the bounds, one or one per group.
        step_size_up, step_size_down: batches per half of a cycle.
        mode: "triangular", "triangular2" (half the height each cycle) or "exp_range" (height * gamma^batch).
        scale_fn, scale_mode: a height of the user's own, of the "cycle" or the "iterations".
        cycle_momentum, base_momentum, max_momentum: momentum moves the other way.
    """

    def __init__(
        self,
        optimizer: Any,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[Any], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        name = type(self).__name__
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{name}: optimizer; expected an Optimizer, got {type(optimizer).__name__}")
        self.optimizer = optimizer
        base_lrs = _per_group(name, "base_lr", base_lr, optimizer)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=False):
                set_setting(group, "lr", lr)
        self.max_lrs = _per_group(name, "max_lr", max_lr, optimizer)
        up = float(step_size_up)
        down = float(step_size_down) if step_size_down is not None else up
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(
                f"{name}: unknown mode; expected 'triangular', 'triangular2', 'exp_range' or a scale_fn, got {mode!r}"
            )
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        self._init_scale_fn()
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._find_momentum()
            self.base_momentums = _per_group(name, "base_momentum", base_momentum, optimizer)
            self.max_momentums = _per_group(name, "max_momentum", max_momentum, optimizer)
            if last_epoch == -1:
                for high, low, group in zip(
                    self.max_momentums, self.base_momentums, optimizer.param_groups, strict=False
                ):
                    self._set_momentum(group, high)
                    group["max_momentum"] = high
                    group["base_momentum"] = low
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def _init_scale_fn(self) -> None:
        if self._scale_fn_custom is None:
            self.scale_mode = "iterations" if self.mode == "exp_range" else "cycle"

    def scale_fn(self, x: Any) -> float:
        """The height of the cycle."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        if self.mode == "triangular2":
            return float(1 / (2.0 ** (x - 1)))
        return float(self.gamma**x)

    def get_lr(self) -> list[Any]:
        self._warn_get_lr()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        lrs = [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=False)]
        if self.cycle_momentum:
            for low, high, group in zip(
                self.base_momentums, self.max_momentums, self.optimizer.param_groups, strict=False
            ):
                self._set_momentum(group, high - (high - low) * height * scale)
        return lrs

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer; of a callable object its attributes, of a function nothing."""
        state = super().state_dict()
        fn = state.pop("_scale_fn_custom")
        state["_scale_fn_custom"] = None if fn is None or isinstance(fn, types.FunctionType) else fn.__dict__.copy()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back what :meth:`state_dict` returned."""
        state = dict(state_dict)
        attributes = state.pop("_scale_fn_custom")
        super().load_state_dict(state)
        if attributes is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(attributes)
        self._init_scale_fn()


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine annealing that starts again after T_0 epochs, then after T_0 * T_mult, and so on (Loshchilov and Hutter
    2016)."""

    def __init__(self, optimizer: Any, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        name = type(self).__name__
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"{name}: T_0; expected a positive int, got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"{name}: T_mult; expected an int of at least 1, got {T_mult}")
        if not isinstance(eta_min, (float, int, Tensor)):
            raise ValueError(f"{name}: eta_min; expected a number, got {type(eta_min).__name__}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: Any = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_get_lr()
        wave = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * wave for base in self.base_lrs]

    def step(self, epoch: Any = None) -> None:
        """Goes on by one epoch, or to an epoch, which may be a fraction (batch by batch)."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur = self.T_cur % self.T_i
                self.T_i *= self.T_mult
        else:
            if epoch < 0:
                raise ValueError(f"{type(self).__name__}: epoch; expected a number of at least 0, got {epoch}")
            if epoch < self.T_0:
                self.T_i, self.T_cur = self.T_0, epoch
            elif self.T_mult == 1:
                self.T_i, self.T_cur = self.T_0, epoch % self.T_0
            else:
                # number of complete cycles, from the sum of a geometric series
                n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
                self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
                self.T_i = self.T_0 * self.T_mult**n
        self.last_epoch = math.floor(epoch)
        self._get_lr_called_within_step = True
        try:
            for group, lr in zip(self.optimizer.param_groups, self.get_lr(), strict=False):
                set_setting(group, "lr", lr)
        finally:
            self._get_lr_called_within_step = False
        self._last_lr = self._lrs()


class OneCycleLR(_MomentumCycle):
    """One rise to ``max_lr`` and one long fall far below the start (Smith and Topin 2017), batch by batch.

    Args:
        max_lr: one or one per group.
        total_steps, or epochs and steps_per_epoch: the length.
        pct_start: share of the rise.
        anneal_strategy: "cos" or "linear".
        cycle_momentum, base_momentum, max_momentum: momentum moves the other way.
        div_factor, final_div_factor: max_lr / first rate, and first rate / last rate.
        three_phase: the fall to the start and the one below it are two phases.

    ValueError for settings that do not fit, or a step beyond the length.
    """

    def __init__(
        self,
        optimizer: Any,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        name = type(self).__name__
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{name}: optimizer; expected an Optimizer, got {type(optimizer).__name__}")
        self.optimizer = optimizer
        if total_steps is not None:
            if total_steps <= 0 or not isinstance(total_steps, int):
                raise ValueError(f"{name}: total_steps; expected a positive int, got {total_steps}")
            self.total_steps = total_steps
        elif epochs is not None and steps_per_epoch is not None:
            for what, value in (("epochs", epochs), ("steps_per_epoch", steps_per_epoch)):
                if not isinstance(value, int) or value <= 0:
                    raise ValueError(f"{name}: {what}; expected a positive int, got {value}")
            self.total_steps = epochs * steps_per_epoch
        else:
            raise ValueError(f"{name}: expected total_steps, or epochs and steps_per_epoch, got neither")
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"{name}: pct_start; expected a float in [0, 1], got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"{name}: unknown anneal_strategy; expected 'cos' or 'linear', got {anneal_strategy!r}")

        def phase(end: float, lr: tuple[str, str], momentum: tuple[str, str]) -> dict[str, Any]:
            return {
                "end_step": end,
                "start_lr": lr[0],
                "end_lr": lr[1],
                "start_momentum": momentum[0],
                "end_momentum": momentum[1],
            }

        rise = phase(
            float(pct_start * self.total_steps) - 1, ("initial_lr", "max_lr"), ("max_momentum", "base_momentum")
        )
        if three_phase:
            middle = float(2 * pct_start * self.total_steps) - 2
            self._schedule_phases = [
                rise,
                phase(middle, ("max_lr", "initial_lr"), ("base_momentum", "max_momentum")),
                phase(self.total_steps - 1, ("initial_lr", "min_lr"), ("max_momentum", "max_momentum")),
            ]
        else:
            self._schedule_phases = [
                rise,
                phase(self.total_steps - 1, ("max_lr", "min_lr"), ("base_momentum", "max_momentum")),
            ]
        self._anneal_func_type = anneal_strategy
        max_lrs = _per_group(name, "max_lr", max_lr, optimizer)
        if last_epoch == -1:
            for group, high in zip(optimizer.param_groups, max_lrs, strict=False):
                group["initial_lr"] = high / div_factor
                group["max_lr"] = high
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._find_momentum()
            highs = _per_group(name, "max_momentum", max_momentum, optimizer)
            lows = _per_group(name, "base_momentum", base_momentum, optimizer)
            if last_epoch == -1:
                for high, low, group in zip(highs, lows, optimizer.param_groups, strict=False):
                    self._set_momentum(group, high)
                    group["max_momentum"] = high
                    group["base_momentum"] = low
        super().__init__(optimizer, last_epoch)

    def _anneal(self, start: Any, end: Any, share: float) -> Any:
        if self._anneal_func_type == "cos":
            return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)
        return (end - start) * share + start

    def get_lr(self) -> list[Any]:
        self._warn_get_lr()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"{type(self).__name__}: expected at most {self.total_steps} steps, got {step}")
        lrs = []
        for group in self.optimizer.param_groups:
            start: float = 0
            lr = momentum = None
            for i, phase in enumerate(self._schedule_phases):
                end = phase["end_step"]
                if step <= end or i == len(self._schedule_phases) - 1:
                    share = (step - start) / (end - start)
                    lr = self._anneal(group[phase["start_lr"]], group[phase["end_lr"]], share)
                    if self.cycle_momentum:
                        momentum = self._anneal(group[phase["start_momentum"]], group[phase["end_momentum"]], share)
                    break
                start = end
            lrs.append(lr)
            if self.cycle_momentum:
                self._set_momentum(group, momentum)
        return lrs
