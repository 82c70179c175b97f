"""Averages of models over training (Izmailov et al. 2018), and the schedule that goes with them."""

from __future__ import annotations

import copy
import itertools
import math

import rushlight
from rushlight import Tensor
from rushlight.nn.modules.batchnorm import _BatchNorm
from rushlight.nn.modules.module import Module

from ._lr_base import LRScheduler
from ._lr_compound import _per_group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

__all__ = [
    "SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn",
    "update_bn",
]  # fmt: skip


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"get_ema: decay; expected a number in [0, 1], got {decay}")


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """The update of an exponential moving average, for lists of tensors."""
    _check_decay(decay)

    def update(averages: Any, values: Any, count: Any) -> None:
        with rushlight.no_grad():
            for average, value in zip(averages, values, strict=False):
                if average.is_floating_point() or average.is_complex():
                    average.lerp_(value, 1 - decay)
                else:
                    average.copy_(average * decay + value * (1 - decay))

    return update


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """The update of an equal average, for lists of tensors."""

    def update(averages: Any, values: Any, count: Any) -> None:
        with rushlight.no_grad():
            n = float(count)
            for average, value in zip(averages, values, strict=False):
                if average.is_floating_point() or average.is_complex():
                    average.lerp_(value, 1 / (n + 1))
                else:
                    average.add_(((value - average) / (n + 1)).to(average.dtype))

    return update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Tensor]:
    """The update of an exponential moving average, for one tensor."""
    _check_decay(decay)

    def update(average: Tensor, value: Tensor, count: Any) -> Tensor:
        with rushlight.no_grad():
            return decay * average + (1 - decay) * value

    return update


def get_swa_avg_fn() -> Callable[..., Tensor]:
    """The update of an equal average, for one tensor."""

    def update(average: Tensor, value: Tensor, count: Any) -> Tensor:
        with rushlight.no_grad():
            return average + (value - average) / (count + 1)

    return update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of that model's over time.

    Args:
        model: the model; it is copied.
        device: of the copy.
        avg_fn: average, value and count to the new average; an equal average by default.
        multi_avg_fn: the same in place on lists of tensors.
        use_buffers: average buffers as well; otherwise they are copied.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[..., Tensor] | None = None,
        multi_avg_fn: Callable[..., None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("AveragedModel: expected only one of avg_fn and multi_avg_fn, got both")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", rushlight.tensor(0, dtype=rushlight.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def _members(self, model: Any) -> list[Any]:
        if self.use_buffers:
            return list(itertools.chain(model.parameters(), model.buffers()))
        return list(model.parameters())

    def update_parameters(self, model: Module) -> None:
        """Takes the model's present parameters into the average."""
        averages = [a.detach() for a in self._members(self.module)]
        values = [v.detach().to(a.device) for a, v in zip(averages, self._members(model), strict=False)]
        if self.n_averaged == 0:
            for a, v in zip(averages, values, strict=False):
                a.copy_(v)
        elif self.avg_fn is not None:
            for a, v in zip(averages, values, strict=False):
                a.copy_(self.avg_fn(a, v, self.n_averaged.to(a.device)))
        else:
            (self.multi_avg_fn or get_swa_multi_avg_fn())(averages, values, self.n_averaged)
        if not self.use_buffers:
            for a, v in zip(self.module.buffers(), model.buffers(), strict=False):
                a.detach().copy_(v.detach().to(a.device))
        self.n_averaged += 1


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Computes the running statistics of all batch normalisations anew, from one pass over the data.

    ``loader`` gives inputs, or tuples whose first element is the input.
    """
    momenta = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    training = model.training
    model.train()
    for module in momenta:
        module.momentum = None
    with rushlight.no_grad():
        for batch in loader:
            x = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(x if device is None else x.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(training)


class SWALR(LRScheduler):
    """Moves every rate to ``swa_lr`` in ``anneal_epochs`` epochs and keeps it there.

    Args:
        swa_lr: one or one per group.
        anneal_strategy: "cos" or "linear".
    """

    def __init__(
        self,
        optimizer: Any,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for group, lr in zip(optimizer.param_groups, _per_group("SWALR", "swa_lr", swa_lr, optimizer), strict=False):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"SWALR: unknown anneal_strategy; expected 'cos' or 'linear', got {anneal_strategy!r}")
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"SWALR: anneal_epochs; expected an int of at least 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, t: float) -> float:
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def get_lr(self) -> list[Any]:
        self._warn_get_lr()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before = self._share(max(0, min(1, (step - 1) / max(1, self.anneal_epochs))))
        now = self._share(max(0, min(1, step / max(1, self.anneal_epochs))))
        lrs = []
        for group in self.optimizer.param_groups:
            # the rate of the start, from the one before
            goal, lr = group["swa_lr"], group["lr"]
            start = goal if before == 1 else (lr - before * goal) / (1 - before)
            lrs.append(goal * now + start * (1 - now))
        return lrs
