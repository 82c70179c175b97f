"""Saving and loading the state of a module: state_dict and load_state_dict."""

from __future__ import annotations

import itertools
import warnings
from collections import OrderedDict, namedtuple

from rushlight import Tensor

from ..parameter import Parameter, is_lazy
from ._hooks import HooksMixin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_EXTRA_STATE_KEY = "_extra_state"


class _IncompatibleKeys(namedtuple("_IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class StateMixin(HooksMixin):
    """The part of Module that saves and loads its state."""

    __slots__ = ()

    def get_extra_state(self) -> Any:
        """What state_dict keeps beside tensors; define it together with :meth:`set_extra_state`."""
        raise RuntimeError(
            f"get_extra_state: {type(self).__name__} does not define it; expected a module that overrides "
            "get_extra_state and set_extra_state"
        )

    def set_extra_state(self, state: Any) -> None:
        """Takes back what :meth:`get_extra_state` returned."""
        raise RuntimeError(
            f"set_extra_state: {type(self).__name__} does not define it, but the state_dict holds extra state for it; "
            "expected a module that overrides get_extra_state and set_extra_state"
        )

    def state_dict(self: Any, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """All parameters and persistent buffers of the module and its submodules by their dotted names.

        Args:
            destination: the dict to fill. Default: a new OrderedDict.
            prefix: put before every name.
            keep_vars: return the parameters themselves instead of detached tensors over the same memory.

        Example::

            >>> import rushlight
            >>> list(rushlight.nn.Linear(2, 3).state_dict())
            ['weight', 'bias']
        """
        if args:
            warnings.warn(
                "state_dict: positional arguments are deprecated; pass destination, prefix and keep_vars by name",
                FutureWarning,
                stacklevel=2,
            )
            if destination is None:
                destination = args[0]
            if len(args) > 1 and prefix == "":
                prefix = args[1]
            if len(args) > 2 and keep_vars is False:
                keep_vars = args[2]
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            replaced = hook(self, destination, prefix, local_metadata)
            if replaced is None:
                continue
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict: a post-hook returned a value; expected None (change the dict in place)")
            destination = replaced
        return destination

    def _save_to_state_dict(self: Any, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        for name, buf in self._buffers.items():
            if buf is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buf if keep_vars else buf.detach()
        if type(self).get_extra_state is not StateMixin.get_extra_state:
            destination[prefix + _EXTRA_STATE_KEY] = self.get_extra_state()

    def load_state_dict(self: Any, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Copies parameters and buffers from a state_dict into the module and its submodules.

        Args:
            state_dict: names and tensors, as from :meth:`state_dict`.
            strict: raise when a name is missing or unknown.
            assign: take the tensors themselves instead of copying their values; dtype and device then come from the
                state_dict. Parameters shared between modules stay shared.

        Returns a named tuple ``(missing_keys, unexpected_keys)``. Raises TypeError when state_dict is no mapping and
        RuntimeError that lists everything that does not fit.
        """
        if not hasattr(state_dict, "items") or not hasattr(state_dict, "keys"):
            raise TypeError(
                f"load_state_dict: state_dict of the wrong type; expected a mapping, got {type(state_dict).__name__}"
            )
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        state = OrderedDict(state_dict)
        if metadata is not None:
            state._metadata = metadata  # type: ignore[attr-defined]
        shared = _shared_members(self) if assign else []

        def load(module: Any, local: Any, prefix: str) -> None:
            local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                local_metadata["assign_to_params_buffers"] = True
            module._load_from_state_dict(local, prefix, local_metadata, True, missing, unexpected, errors)
            for name, child in module._modules.items():
                if child is not None:
                    child_prefix = prefix + name + "."
                    load(child, {k: v for k, v in local.items() if k.startswith(child_prefix)}, child_prefix)
            keys = _IncompatibleKeys(missing, unexpected)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, keys) is not None:
                    raise RuntimeError(
                        "load_state_dict: a post-hook returned a value; expected None (change incompatible_keys in "
                        "place)"
                    )

        load(self, state, "")
        if assign:
            _share_again(self, shared, state)
            if metadata is not None:
                for local_metadata in metadata.values():
                    local_metadata.pop("assign_to_params_buffers", None)
        if strict:
            if unexpected:
                errors.insert(0, "unexpected keys: " + ", ".join(f'"{k}"' for k in unexpected))
            if missing:
                errors.insert(0, "missing keys: " + ", ".join(f'"{k}"' for k in missing))
        if errors:
            raise RuntimeError(
                f"load_state_dict: the state_dict does not fit {type(self).__name__}:\n\t" + "\n\t".join(errors)
            )
        return _IncompatibleKeys(missing, unexpected)

    def _load_from_state_dict(
        self: Any,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        persistent = ((k, v) for k, v in self._buffers.items() if k not in self._non_persistent_buffers_set)
        local = {k: v for k, v in itertools.chain(self._parameters.items(), persistent) if v is not None}
        for name, param in local.items():
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            value = state_dict[key]
            if not isinstance(value, Tensor):
                error_msgs.append(f'"{key}": value of the wrong type; expected a Tensor, got {type(value).__name__}')
                continue
            lazy = is_lazy(param)
            # a scalar used to be saved as a tensor of one element
            if not lazy and param.dim() == 0 and value.dim() == 1 and value.numel() == 1:
                value = value[0]
            if not lazy and value.shape != param.shape:
                error_msgs.append(
                    f'size mismatch for "{key}": expected {list(param.shape)} (the model), got {list(value.shape)} '
                    "(the state_dict)"
                )
                continue
            if not lazy and not assign and param.device.type == "meta" and value.device.type != "meta":
                warnings.warn(
                    f'load_state_dict: "{key}" is on the meta device, so copying values into it does nothing; '
                    "pass assign=True to take the tensors of the state_dict instead",
                    stacklevel=2,
                )
            try:
                _load_value(self, name, param, value, assign)
            except Exception as error:
                error_msgs.append(
                    f'"{key}": copying failed; expected {_summary(param)} (the model), got {_summary(value)} '
                    f"(the state_dict): {error}"
                )
        extra_key = prefix + _EXTRA_STATE_KEY
        if type(self).set_extra_state is not StateMixin.set_extra_state:
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra_key:
                    first, dot, _ = key[len(prefix) :].partition(".")
                    if (first not in self._modules) if dot else (first not in local):
                        unexpected_keys.append(key)


def _load_value(module: Any, name: str, param: Any, value: Any, assign: bool) -> None:
    from rushlight import no_grad

    with no_grad():
        if assign:
            if isinstance(param, Parameter):
                if not isinstance(value, Parameter):
                    value = Parameter(value, requires_grad=param.requires_grad)
                else:
                    value.requires_grad_(param.requires_grad)
            setattr(module, name, value)
        else:
            param.copy_(value)


def _summary(t: Any) -> str:
    shape = "unknown shape" if is_lazy(t) else list(t.shape)
    return f"{shape} {t.dtype} on {t.device}"


def _shared_members(root: Any) -> list[list[tuple[Any, str, str]]]:
    """Groups of places (module, attribute, full name) that hold one and the same parameter or buffer."""
    places: dict[int, list[tuple[Any, str, str]]] = {}
    for prefix, module in root.named_modules():
        for members in (module._parameters, module._buffers):
            for name, value in members.items():
                if value is not None:
                    places.setdefault(id(value), []).append((module, name, f"{prefix}.{name}" if prefix else name))
    return [group for group in places.values() if len(group) > 1]


def _share_again(root: Any, shared: list[list[tuple[Any, str, str]]], state: Any) -> None:
    # as with copying, the name that comes last in the model decides
    for group in shared:
        loaded = [(module, name) for module, name, full in group if full in state]
        if loaded:
            owner, attribute = loaded[-1]
            value = getattr(owner, attribute)
            for module, name, _ in group:
                setattr(module, name, value)
