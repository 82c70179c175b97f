"""Transformations of functions: gradients, batches, forward mode, Jacobians; all compose.

They work on plain functions of tensors: ``vmap(grad(loss), in_dims=(None, 0, 0))(params, x, y)`` has the gradient of
each example.
"""

from __future__ import annotations

from ._functional import functional_call, functionalize, linearize, stack_module_state
from ._grad import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp
from ._vmap import vmap

__all__ = [
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]
