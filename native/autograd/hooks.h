// Registration of hooks.
#pragma once
#include "node.h"

namespace rl {

// Puts a hook into a dict, which is made when it is null; returns a RemovableHandle (new reference).
PyObject* add_hook(PyObject*& dict, PyObject* hook);
// Where the hooks of a tensor live: in its node, or for a leaf in its own state.
PyObject*& tensor_hooks_of(Tensor* t);

}  // namespace rl
