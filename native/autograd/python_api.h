// Parts of the Python surface of the tape, put together by autograd_module_init.
#pragma once
#include "node.h"

namespace rl {

bool node_types_init(PyObject* module);
bool grad_mode_init(PyObject* module);
bool function_init(PyObject* module);
bool saved_hooks_init(PyObject* module);
bool engine_init(PyObject* module);
bool anomaly_init(PyObject* module);
bool profiler_init(PyObject* module);
bool transform_init(PyObject* module);

}  // namespace rl
