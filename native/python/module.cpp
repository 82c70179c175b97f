// The extension module rushlight._C.
#include "../autograd/autograd.h"
#include "python.h"

namespace rl {
bool dlpack_init(PyObject* module);  // dlpack.cpp: _to_dlpack, _from_dlpack
}

namespace {

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "rushlight._C",
                          "The native part of rushlight.",
                          -1,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

extern "C" __attribute__((visibility("default"))) PyObject* PyInit__C() {
  PyObject* module = PyModule_Create(&definition);
  if (!module) return nullptr;
  if (rl::constants_init(module) && rl::storage_init(module) && rl::tensor_type_init(module) &&
      rl::functions_init(module) && rl::data_init(module) && rl::generator_init(module) &&
      rl::module_base_init(module) && rl::optimizer_init(module) && rl::dlpack_init(module) &&
      rl::autograd_module_init(module) == 0)
    return module;
  Py_DECREF(module);
  return nullptr;
}
