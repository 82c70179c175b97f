// Shared by the files of the Python border.
#pragma once
#include "../tensor/op.h"

#include <algorithm>
#include <vector>

#include "rushlight/elementwise.h"

namespace rl {

// A method of any calling convention for a PyMethodDef.
template <class F>
PyCFunction as_method(F* f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}
inline PyTypeObject blank_type() {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
  PyTypeObject type = {PyVarObject_HEAD_INIT(nullptr, 0)};
#pragma GCC diagnostic pop
  return type;
}
inline Py_hash_t hash_pointer(const void* p) {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_HashPointer(p);
#else
  return _Py_HashPointer(p);
#endif
}

// ---------------------------------------------------------------- constants: dtype, layout, memory format, device

struct ConstantObject {  // dtype, layout, memory_format
  PyObject_HEAD int value;
};
struct DeviceObject {
  PyObject_HEAD Device device;
  int index;  // -1 when not given
};
extern PyTypeObject DTypeType, LayoutType, MemoryFormatType, DeviceType;
extern PyTypeObject* SizeType;
extern ConstantObject dtype_objects[RL_DTYPE_COUNT];
inline PyObject* dtype_object(DType d) { return Py_NewRef(reinterpret_cast<PyObject*>(&dtype_objects[d])); }
inline bool is_dtype(PyObject* o) { return Py_TYPE(o) == &DTypeType; }
inline DType dtype_of(PyObject* o) { return static_cast<DType>(reinterpret_cast<ConstantObject*>(o)->value); }
enum MemoryFormat { kContiguousFormat = 0, kPreserveFormat = 1, kChannelsLast = 2, kChannelsLast3d = 3 };
PyObject* device_object(Device device);
Device device_from_object(PyObject* o);  // device, str or int; throws
PyObject* size_object(int ndim, const int64_t* shape);
bool constants_init(PyObject* module);

// ---------------------------------------------------------------- classification of arguments

enum : int { kNotTensor = 0, kIsTensor = 1, kHasOverride = 2 };
extern PyTypeObject* parameter_type;       // rushlight.nn.Parameter, once known: as plain as Tensor itself
extern PyObject* str_torch_function;       // "__torch_function__"
extern PyObject* disabled_torch_function;  // Tensor subclasses with this as __torch_function__ have no override
int classify_slow(PyTypeObject* type);
inline int classify(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (RL_LIKELY(type == &TensorType || type == parameter_type)) return kIsTensor;
  return classify_slow(type);
}
inline bool is_tensor(PyObject* o) { return classify(o) & kIsTensor; }
inline Tensor* tensor_of(PyObject* o) { return reinterpret_cast<Tensor*>(o); }

// ---------------------------------------------------------------- parsing

// The converted arguments of one call, with room for their lists.
struct Frame {
  static constexpr int kInlineInts = 64, kInlineTensors = 16;
  union {
    Value values[kMaxArgs];
  };
  union {
    int64_t ints[kInlineInts];
  };
  Tensor* tensors[kInlineTensors];
  int int_count = 0, tensor_count = 0;
  Tensor* out[kMaxResults];
  bool has_out = false;
  bool override_seen = false;
  std::vector<void*>* heap = nullptr;  // longer lists
  std::vector<PyObject*>* owned = nullptr;
  Frame() {}
  ~Frame() {
    if (RL_UNLIKELY(heap || owned)) clear();
  }
  int64_t* more_ints(size_t n);
  Tensor** more_tensors(size_t n);
  double* more_doubles(size_t n);
  void keep(PyObject* o);  // takes over a reference until the call is over
  void reset() {
    int_count = tensor_count = 0;
    has_out = override_seen = false;
  }

 private:
  void clear();
};

// Converts a Python number. False (without an exception) when it is none.
// `any_size`: an integer beyond 64 bits becomes a BigInt; otherwise it is an OverflowError.
bool scalar_from(PyObject* o, Value& v, bool any_size = false);
bool dtype_from(PyObject* o, DType& dtype);  // a dtype, or Python's float, bool, int or complex
bool int_from(PyObject* o, int64_t& v, ErrorKind too_large = ErrorKind::Value);

// Converts the arguments by one schema. False with `problem` (a message) when they do not fit.
bool parse(const Op& op, PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names, bool inplace,
           Frame& frame, std::string* problem);

// Argument i of an operation, from an object that value_to_python made of it: frame.values[i].
void convert_again(const Op& op, int i, PyObject* object, Frame& frame);

// ---------------------------------------------------------------- results

PyObject* result_to_python(const Op& op, Value* results);  // takes over the results
PyObject* value_to_python(const Value& v);                 // new reference; the value keeps its own

// ---------------------------------------------------------------- functions over operations

PyObject* call_group(const OpGroup& group, bool inplace, PyObject* callable, PyObject* self, PyObject* const* args,
                     Py_ssize_t count, PyObject* names);
PyObject* call_override(PyObject* callable, PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names);
PyObject* method_object(const char* name);  // borrowed: the descriptor of Tensor under that name
bool functions_init(PyObject* module);

// Whether what is asked of this tensor goes to a mode or to the __torch_function__ of its class first.
inline bool overridden(PyObject* tensor) {
  return RL_UNLIKELY(thread_state.mode_depth || classify(tensor) & kHasOverride) && !thread_state.overrides_disabled;
}

// The name of a method as a template argument.
template <size_t N>
struct MethodName {
  char text[N];
  constexpr MethodName(const char (&name)[N]) { std::copy_n(name, N, text); }
};

// A plain method of Tensor behind the test for overrides, for a PyMethodDef: {RL_METHOD("dim", py_dim), METH_NOARGS,
// ...}.
template <MethodName name, auto F>
struct Method;
template <MethodName name, PyObject* (*F)(PyObject*, PyObject*)>
struct Method<name, F> {
  static PyObject* run(PyObject* self, PyObject* argument) {
    if (RL_LIKELY(!overridden(self))) return F(self, argument);
    PyObject* stack[2] = {self, argument};
    return call_override(method_object(name.text), nullptr, stack, argument ? 2 : 1, nullptr);
  }
};
template <MethodName name, PyObject* (*F)(PyObject*, PyObject* const*, Py_ssize_t)>
struct Method<name, F> {
  static PyObject* run(PyObject* self, PyObject* const* args, Py_ssize_t n) {
    if (RL_LIKELY(!overridden(self))) return F(self, args, n);
    return call_override(method_object(name.text), self, args, n, nullptr);
  }
};
template <MethodName name, PyObject* (*F)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*)>
struct Method<name, F> {
  static PyObject* run(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    if (RL_LIKELY(!overridden(self))) return F(self, args, n, names);
    return call_override(method_object(name.text), self, args, n, names);
  }
};
template <MethodName name, PyObject* (*F)(PyObject*, PyObject*, PyObject*)>
struct Method<name, F> {
  static PyObject* run(PyObject* self, PyObject* args, PyObject* kwargs) {
    if (RL_LIKELY(!overridden(self))) return F(self, args, kwargs);
    std::vector<PyObject*> stack(1, self);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) stack.push_back(PyTuple_GET_ITEM(args, i));
    auto positional = static_cast<Py_ssize_t>(stack.size());
    PyObject* names = PyTuple_New(kwargs ? PyDict_GET_SIZE(kwargs) : 0);
    if (!names) return nullptr;
    PyObject *key, *value;
    for (Py_ssize_t at = 0, i = 0; kwargs && PyDict_Next(kwargs, &at, &key, &value); i++) {
      PyTuple_SET_ITEM(names, i, Py_NewRef(key));
      stack.push_back(value);
    }
    PyObject* result = call_override(method_object(name.text), nullptr, stack.data(), positional, names);
    Py_DECREF(names);
    return result;
  }
};
#define RL_METHOD(name, function) name, as_method(Method<name, function>::run)
const OpGroup* find_group(const char* name);

// ---------------------------------------------------------------- data

TensorRef tensor_from_data(PyObject* data, int dtype_or_minus_one, bool copy);  // rushlight.tensor / as_tensor
bool is_array(PyObject* o);                                                     // a NumPy array or number
PyObject* item_of(const Tensor* t);                                             // numel must be 1
PyObject* element_to_python(DType dtype, const void* p);
PyObject* tensor_subscript(PyObject* self, PyObject* index);
int tensor_assign(PyObject* self, PyObject* index, PyObject* value);
extern PyMethodDef data_methods[];      // of the module: tensor, from_numpy, frombuffer, from_dlpack ...
extern PyMethodDef exchange_methods[];  // of Tensor: numpy, tolist, item, __array__, __dlpack__ ...
bool data_init(PyObject* module);
bool generator_init(PyObject* module);
bool module_base_init(PyObject* module);  // _ModuleBase, the base of nn.Module
bool optimizer_init(PyObject* module);    // steps of optimizers over lists of tensors
bool tensor_type_init(PyObject* module);
bool storage_init(PyObject* module);
PyObject* storage_object(Storage* storage);  // new reference
Storage* storage_from_object(PyObject* o);   // borrowed; nullptr when it is no UntypedStorage

// Runs f, which returns a new reference, and turns C++ exceptions into Python's.
template <class F>
PyObject* guarded(F f) noexcept {
  try {
    return f();
  } catch (...) {
    return raise_current();
  }
}

}  // namespace rl
