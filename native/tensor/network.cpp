// Arguments of neural network operations.
#include "network.h"

#include "../python/python.h"

namespace rl {

using ll = long long;

const char* text_of(const Value& v) {
  if (v.tag == Tag::Text) return v.text;
  const char* s = PyUnicode_AsUTF8(v.object);
  if (!s) throw PythonError();
  return s;
}

Spatial spatial_of(const Value& v, int n, const char* op, const char* what) {
  Spatial s;
  if (v.tag == Tag::IntList) {
    if (RL_LIKELY(static_cast<int>(v.size) == n)) {
      for (int i = 0; i < n; i++) s[i] = v.ints[i];
      return s;
    }
    // A number given for an int[3] comes as three.
    bool equal = v.size > 0;
    for (uint32_t i = 1; i < v.size; i++) equal &= v.ints[i] == v.ints[0];
    RL_CHECK(v.size == 1 || (equal && static_cast<int>(v.size) > n && v.size == kMaxSpatial), Runtime,
             "%s: expected %s to be a single integer value or a list of %d values to match the spatial dimensions, but "
             "got %s=%s",
             op, what, n, what, shape_text(static_cast<int>(v.size), v.ints).c_str());
    for (int i = 0; i < n; i++) s[i] = v.ints[0];
    return s;
  }
  for (int i = 0; i < n; i++) s[i] = v.as_int();
  return s;
}

Batched::Batched(const Tensor* t, int ndim) : desc(t->desc) {
  int extra = ndim - t->ndim();
  if (extra) shape[0] = strides[0] = 1;
  for (int i = 0; i < t->ndim() && i + extra < kMaxSpatial + 2; i++) {
    shape[i + extra] = t->size(i);
    strides[i + extra] = t->stride(i);
  }
  desc.ndim = ndim;
  desc.shape = shape;
  desc.strides = strides;
}

bool wanted(const Value& needs, int i) {
  if (needs.tag != Tag::Object || !PyTuple_Check(needs.object) || i >= PyTuple_GET_SIZE(needs.object)) return true;
  return PyTuple_GET_ITEM(needs.object, i) == Py_True;
}

int64_t reduction_of(const Value& v, const char* op) {
  const char* s = text_of(v);
  if (!std::strcmp(s, "mean")) return kReduceMean;
  if (!std::strcmp(s, "sum")) return kReduceSum;
  if (!std::strcmp(s, "none")) return kReduceNone;
  throw_error(ErrorKind::Value, "%s: unknown reduction; expected 'none', 'mean' or 'sum', got '%s'", op, s);
}

void call_functional(Call& call, const char* file, const char* name) {
  std::string path = std::string("rushlight.nn.functional.") + file;
  PyObject* module = PyImport_ImportModule(path.c_str());
  PyObject* function = module ? PyObject_GetAttrString(module, name) : nullptr;
  PyObject* args = function ? PyTuple_New(0) : nullptr;
  PyObject* kwargs = args ? PyDict_New() : nullptr;
  for (int i = 0; kwargs && i < call.op.argument_count; i++) {
    const char* key = call.op.arguments[i].name;
    PyObject* value = value_to_python(call.args[i]);
    if (!value || PyDict_SetItemString(kwargs, std::strcmp(key, "self") ? key : "input", value) < 0) Py_CLEAR(kwargs);
    Py_XDECREF(value);
  }
  PyObject* result = kwargs ? PyObject_Call(function, args, kwargs) : nullptr;
  Py_XDECREF(module);
  Py_XDECREF(function);
  Py_XDECREF(args);
  Py_XDECREF(kwargs);
  if (!result) throw PythonError();
  if (!is_tensor(result)) {
    Py_DECREF(result);
    throw_error(ErrorKind::Type, "%s: expected a tensor as the result", name);
  }
  call.set(0, TensorRef::own(tensor_of(result)));
}

}  // namespace rl
