// The Tensor type: attributes, operators, protocols.
#include "../autograd/autograd.h"
#include "ops.h"
#include "python.h"

namespace rl {

namespace {

// ---------------------------------------------------------------- attributes

PyObject* get_shape(PyObject* self, void*) {
  Tensor* t = tensor_of(self);
  return size_object(t->ndim(), t->shape());
}
PyObject* get_dtype(PyObject* self, void*) { return dtype_object(tensor_of(self)->dtype()); }
PyObject* get_device(PyObject* self, void*) {
  Tensor* t = tensor_of(self);
  return device_object(t->is_wrapped() ? Device::CPU : t->device());
}
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromLong(tensor_of(self)->ndim()); }
PyObject* get_itemsize(PyObject* self, void*) { return PyLong_FromLongLong(itemsize(tensor_of(self)->dtype())); }
PyObject* get_nbytes(PyObject* self, void*) {
  return PyLong_FromLongLong(tensor_of(self)->numel * itemsize(tensor_of(self)->dtype()));
}
PyObject* get_version(PyObject* self, void*) { return PyLong_FromUnsignedLong(tensor_of(self)->version()); }
PyObject* get_layout(PyObject*, void*) {
  static PyObject* strided = nullptr;
  if (!strided) {
    PyObject* module = PyImport_ImportModule("rushlight._C");
    if (!module) return nullptr;
    strided = PyObject_GetAttrString(module, "strided");
    Py_DECREF(module);
  }
  return Py_XNewRef(strided);
}
PyObject* get_false(PyObject*, void*) { Py_RETURN_FALSE; }
PyObject* get_none(PyObject*, void*) { Py_RETURN_NONE; }
PyObject* get_priority(PyObject*, void*) { return PyLong_FromLong(1000); }
PyObject* get_is_cpu(PyObject* self, void*) { return PyBool_FromLong(tensor_of(self)->device() == Device::CPU); }
PyObject* get_is_meta(PyObject* self, void*) { return PyBool_FromLong(tensor_of(self)->device() == Device::Meta); }

PyObject* transpose_all(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    Dims dims;
    for (int i = tensor_of(self)->ndim() - 1; i >= 0; i--) dims.push(i);
    return call(ops::permute, {Value::of(tensor_of(self)), Value::of(dims)}).take()->object();
  });
}
PyObject* transpose_last(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    RL_CHECK(tensor_of(self)->ndim() >= 2 || tensor_of(self)->ndim() == 0, Runtime,
             "mT: expected a tensor of at least 2 dimensions, got shape %s", shape_text(tensor_of(self)).c_str());
    if (tensor_of(self)->ndim() == 0) return Py_NewRef(self);
    return call(ops::transpose, {Value::of(tensor_of(self)), Value::of(-2), Value::of(-1)}).take()->object();
  });
}
PyObject* adjoint_last(PyObject* self, void*) {
  return guarded([&]() -> PyObject* { return call(ops::adjoint, {Value::of(tensor_of(self))}).take()->object(); });
}
PyObject* adjoint_matrix(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    Tensor* t = tensor_of(self);
    RL_CHECK(t->ndim() == 2 || t->ndim() == 0, Runtime,
             "H: expected a matrix, got shape %s; mH is for batches of matrices", shape_text(t).c_str());
    return call(ops::adjoint, {Value::of(t)}).take()->object();
  });
}
TensorRef part(Tensor* t, int which) {
  if (!is_complex(t->dtype())) {
    RL_CHECK(which == 0, Runtime, "imag: expected a tensor of complex dtype, got %s", dtype_name(t->dtype()));
    return TensorRef::share(t);
  }
  const bool conjugated = lazy_bits(t) & kConjugated;
  TensorRef plain = conjugated ? call(ops::conj, {Value::of(t)}) : TensorRef::share(t);
  TensorRef pairs = call(ops::view_as_real, {Value::of(plain)});
  TensorRef part = call(ops::select, {Value::of(pairs), Value::of(-1), Value::of(which)});
  return conjugated && which ? call(ops::_neg_view, {Value::of(part)}) : part;
}
template <int Which>
PyObject* get_part(PyObject* self, void*) {
  return guarded([&]() -> PyObject* { return part(tensor_of(self), Which).take()->object(); });
}
template <int Which>
int set_part(PyObject* self, PyObject* value, void*) {
  try {
    RL_CHECK(value, Type, "the parts of a tensor cannot be deleted");
    TensorRef to = part(tensor_of(self), Which);
    PyObject* done = is_tensor(value) ? PyObject_CallMethod(to->object(), "copy_", "O", value)
                                      : PyObject_CallMethod(to->object(), "fill_", "O", value);
    if (!done) throw PythonError();
    Py_DECREF(done);
    return 0;
  } catch (...) {
    raise_current();
    return -1;
  }
}
PyObject* get_data(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    Tensor* t = tensor_of(self);
    Storage* alias = storage_alias(t->storage);
    TensorRef r = over_storage(alias, t->dtype(), t->ndim(), t->shape(), t->strides(), t->data());
    r->set_lazy(t->lazy());
    release(alias);
    return r.take()->object();
  });
}
int set_data(PyObject* self, PyObject* value, void*) {
  if (!value || !is_tensor(value)) {
    PyErr_Format(PyExc_TypeError, "Tensor.data: expected a Tensor, got %s", value ? Py_TYPE(value)->tp_name : "del");
    return -1;
  }
  try {
    Tensor *t = tensor_of(self), *source = tensor_of(value);
    RL_CHECK(!t->requires_grad || is_differentiable(source->dtype()), Runtime,
             "data set to a tensor that requires gradients must be floating point or complex dtype, got %s",
             dtype_name(source->dtype()));
    retain(source->storage);
    release(t->storage);
    t->storage = source->storage;
    t->desc.data = source->desc.data;
    t->desc.dtype = source->desc.dtype;
    t->desc.device = source->desc.device;
    t->set_lazy(source->lazy());
    set_geometry(t, source->ndim(), source->shape(), source->strides());
    return 0;
  } catch (...) {
    raise_current();
    return -1;
  }
}

PyGetSetDef dict_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, "Attributes set from Python.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyGetSetDef tensor_getset[] = {
    {"shape", get_shape, nullptr, "The sizes of the dimensions, a Size.", nullptr},
    {"dtype", get_dtype, nullptr, "The type of the elements.", nullptr},
    {"device", get_device, nullptr, "Where the data is.", nullptr},
    {"layout", get_layout, nullptr, "rushlight.strided.", nullptr},
    {"ndim", get_ndim, nullptr, "The number of dimensions.", nullptr},
    {"itemsize", get_itemsize, nullptr, "Bytes of one element.", nullptr},
    {"nbytes", get_nbytes, nullptr, "Bytes of all elements.", nullptr},
    {"data", get_data, set_data, "The same memory without autograd's knowledge.", nullptr},
    {"_version", get_version, nullptr, "How many in-place writes its memory has seen.", nullptr},
    {"T", transpose_all, nullptr, "All dimensions reversed.", nullptr},
    {"real", get_part<0>, set_part<0>, "The real part, a view.", nullptr},
    {"imag", get_part<1>, set_part<1>, "The imaginary part, a view.", nullptr},
    {"mT", transpose_last, nullptr, "The last two dimensions exchanged.", nullptr},
    {"mH", adjoint_last, nullptr, "The last two dimensions exchanged, and conjugated.", nullptr},
    {"H", adjoint_matrix, nullptr, "The conjugate transpose of a matrix.", nullptr},
    {"is_cpu", get_is_cpu, nullptr, "True on the CPU.", nullptr},
    {"is_meta", get_is_meta, nullptr, "True for a tensor without data.", nullptr},
    {"is_cuda", get_false, nullptr, "True on a CUDA device.", nullptr},
    {"is_sparse", get_false, nullptr, "False: tensors are strided.", nullptr},
    {"is_sparse_csr", get_false, nullptr, "False: tensors are strided.", nullptr},
    {"is_quantized", get_false, nullptr, "False: there are no quantized tensors.", nullptr},
    {"is_mkldnn", get_false, nullptr, "False.", nullptr},
    {"is_mps", get_false, nullptr, "False.", nullptr},
    {"is_xpu", get_false, nullptr, "False.", nullptr},
    {"is_nested", get_false, nullptr, "False.", nullptr},
    {"is_xla", get_false, nullptr, "False.", nullptr},
    {"is_ipu", get_false, nullptr, "False.", nullptr},
    {"is_maia", get_false, nullptr, "False.", nullptr},
    {"is_mtia", get_false, nullptr, "False.", nullptr},
    {"is_vulkan", get_false, nullptr, "False.", nullptr},
    {"volatile", get_false, nullptr, "False: no_grad does what it did.", nullptr},
    {"name", get_none, nullptr, "None: tensors have no names.", nullptr},
    {"grad_dtype", get_dtype, nullptr, "The dtype that gradients have.", nullptr},
    {"__array_priority__", get_priority, nullptr, "NumPy's arrays leave operators with a tensor to the tensor.",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

// What Tensor gets for an entry of the tables: the same behind the test for overrides, which are asked for the
// attribute's __get__ or __set__.
PyObject* override_attribute(const PyGetSetDef* entry, const char* method, PyObject* self, PyObject* value) {
  PyObject* callable = PyObject_GetAttrString(method_object(entry->name), method);
  if (!callable) return nullptr;
  PyObject* stack[2] = {self, value};
  PyObject* result = call_override(callable, nullptr, stack, value ? 2 : 1, nullptr);
  Py_DECREF(callable);
  return result;
}
PyObject* get_attribute(PyObject* self, void* closure) {
  const auto* entry = static_cast<const PyGetSetDef*>(closure);
  if (RL_LIKELY(!overridden(self))) return entry->get(self, entry->closure);
  return override_attribute(entry, "__get__", self, nullptr);
}
int set_attribute(PyObject* self, PyObject* value, void* closure) {
  const auto* entry = static_cast<const PyGetSetDef*>(closure);
  if (RL_LIKELY(!overridden(self) || !value)) return entry->set(self, value, entry->closure);
  PyObject* done = override_attribute(entry, "__set__", self, value);
  Py_XDECREF(done);
  return done ? 0 : -1;
}
bool add_attributes(PyGetSetDef* table) {
  for (PyGetSetDef* entry = table; entry->name; entry++) {
    auto* seen = new PyGetSetDef{entry->name, get_attribute, entry->set ? set_attribute : nullptr, entry->doc, entry};
    PyObject* o = PyDescr_NewGetSet(&TensorType, seen);  // which keeps the entry for the life of the process
    if (!o || PyDict_SetItemString(TensorType.tp_dict, entry->name, o) < 0) return false;
    Py_DECREF(o);
  }
  return true;
}

// ---------------------------------------------------------------- plain methods

PyObject* py_size(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  Tensor* t = tensor_of(self);
  PyObject* dim = n > 0 ? args[0] : nullptr;
  if (names && PyTuple_GET_SIZE(names)) {
    if (n || PyTuple_GET_SIZE(names) != 1 || PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "dim")) {
      PyErr_SetString(PyExc_TypeError, "size() takes one argument, 'dim'");
      return nullptr;
    }
    dim = args[0];
  }
  if (!dim || dim == Py_None) return size_object(t->ndim(), t->shape());
  return guarded([&]() -> PyObject* {
    int64_t d;
    RL_CHECK(!PyBool_Check(dim) && int_from(dim, d), Type, "size(): argument 'dim' must be int, not %s",
             Py_TYPE(dim)->tp_name);
    RL_CHECK(t->ndim() > 0, Index, "Dimension specified as %lld but tensor has no dimensions",
             static_cast<long long>(d));
    return PyLong_FromLongLong(t->size(wrap_dim(d, t->ndim())));
  });
}
PyObject* py_stride(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  Tensor* t = tensor_of(self);
  return guarded([&]() -> PyObject* {
    if (n == 1) {
      int64_t d;
      RL_CHECK(int_from(args[0], d), Type, "stride(): argument 'dim' must be int, not %s", Py_TYPE(args[0])->tp_name);
      return PyLong_FromLongLong(t->stride(wrap_dim(d, t->ndim())));
    }
    return value_to_python(Value::of_ints(t->strides(), t->ndim()));
  });
}
PyObject* py_dim(PyObject* self, PyObject*) { return PyLong_FromLong(tensor_of(self)->ndim()); }
PyObject* py_numel(PyObject* self, PyObject*) { return PyLong_FromLongLong(tensor_of(self)->numel); }
PyObject* py_element_size(PyObject* self, PyObject*) { return PyLong_FromLongLong(itemsize(tensor_of(self)->dtype())); }
PyObject* py_data_ptr(PyObject* self, PyObject*) {
  Tensor* t = tensor_of(self);
  return PyLong_FromUnsignedLongLong(t->is_meta() || t->numel == 0 ? 0 : reinterpret_cast<uintptr_t>(t->data()));
}
PyObject* py_storage_offset(PyObject* self, PyObject*) { return PyLong_FromLongLong(tensor_of(self)->offset()); }
PyObject* py_get_device(PyObject* self, PyObject*) { return PyLong_FromLong(tensor_of(self)->is_meta() ? -1 : -1); }
PyObject* py_is_contiguous(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* keys[] = {"memory_format", nullptr};
  PyObject* format = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O!", const_cast<char**>(keys), &MemoryFormatType, &format))
    return nullptr;
  Tensor* t = tensor_of(self);
  int f = format ? reinterpret_cast<ConstantObject*>(format)->value : kContiguousFormat;
  if (f == kContiguousFormat || f == kPreserveFormat) return PyBool_FromLong(t->contiguous);
  int spatial = f == kChannelsLast ? 2 : 3;
  if (t->ndim() != spatial + 2) Py_RETURN_FALSE;
  int64_t expected = 1;
  auto matches = [&](int d) {
    bool ok = t->size(d) == 1 || t->stride(d) == expected;
    expected *= t->size(d);
    return ok;
  };
  if (!matches(1)) Py_RETURN_FALSE;
  for (int d = spatial + 1; d >= 2; d--)
    if (!matches(d)) Py_RETURN_FALSE;
  return PyBool_FromLong(matches(0));
}
PyObject* py_untyped_storage(PyObject* self, PyObject*) { return storage_object(tensor_of(self)->storage); }
PyObject* py_is_floating_point(PyObject* self, PyObject*) {
  return PyBool_FromLong(is_float(tensor_of(self)->dtype()));
}
PyObject* py_is_complex(PyObject* self, PyObject*) { return PyBool_FromLong(is_complex(tensor_of(self)->dtype())); }
PyObject* py_is_signed(PyObject* self, PyObject*) { return PyBool_FromLong(is_signed(tensor_of(self)->dtype())); }
PyObject* py_is_inference(PyObject* self, PyObject*) { return PyBool_FromLong(tensor_of(self)->inference); }
PyObject* py_is_shared(PyObject* self, PyObject*) {
  return PyBool_FromLong(storage_is_shared(tensor_of(self)->storage));
}
template <int Bit>
PyObject* py_is_lazy(PyObject* self, PyObject*) {
  return PyBool_FromLong(lazy_bits(tensor_of(self)) & Bit);
}
PyObject* py_false_method(PyObject*, PyObject*) { Py_RETURN_FALSE; }
PyObject* py_is_set_to(PyObject* self, PyObject* other) {
  if (!is_tensor(other)) {
    PyErr_Format(PyExc_TypeError, "is_set_to(): argument must be Tensor, not %s", Py_TYPE(other)->tp_name);
    return nullptr;
  }
  Tensor *a = tensor_of(self), *b = tensor_of(other);
  bool same = a->storage == b->storage && a->desc.data == b->desc.data && same_shape(a, b);
  for (int i = 0; same && i < a->ndim(); i++) same = a->stride(i) == b->stride(i);
  return PyBool_FromLong(same);
}

PyObject* py_make_subclass(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* keys[] = {"cls", "data", "require_grad", nullptr};
  PyTypeObject* cls;
  PyObject* data;
  int require = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O|p", const_cast<char**>(keys), &PyType_Type, &cls, &data,
                                   &require))
    return nullptr;
  return guarded([&]() -> PyObject* {
    RL_CHECK(is_tensor(data), Type, "_make_subclass(): data must be a Tensor, not %s", Py_TYPE(data)->tp_name);
    RL_CHECK(PyType_IsSubtype(cls, &TensorType), Type, "_make_subclass(): %s is not a subclass of Tensor",
             cls->tp_name);
    Tensor* t = tensor_of_type(cls, tensor_of(data));
    TensorRef guard = TensorRef::own(t);
    RL_CHECK(!require || is_differentiable(t->dtype()), Runtime,
             "Only Tensors of floating point and complex dtype can require gradients, got %s", dtype_name(t->dtype()));
    t->requires_grad = require;
    return guard.take()->object();
  });
}

// as_subclass keeps the link to the graph: the new object is an alias of this one.
PyObject* py_as_subclass(PyObject* self, PyObject* cls) {
  return guarded([&]() -> PyObject* {
    RL_CHECK(PyType_Check(cls) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), &TensorType), Type,
             "as_subclass(): expected a subclass of Tensor, got %s",
             PyType_Check(cls) ? reinterpret_cast<PyTypeObject*>(cls)->tp_name : Py_TYPE(cls)->tp_name);
    auto* type = reinterpret_cast<PyTypeObject*>(cls);
    if (Py_TYPE(self) == type) return Py_NewRef(self);
    TensorRef alias = call(ops::alias, {Value::of(tensor_of(self))});
    if (type == &TensorType) return alias.take()->object();
    Tensor* t = tensor_of_type(type, alias.get());
    t->requires_grad = alias->requires_grad;
    t->grad_fn = std::exchange(alias->grad_fn, nullptr);
    t->output_index = alias->output_index;
    t->base = std::exchange(alias->base, nullptr);
    t->view_version = alias->view_version;
    t->creation = alias->creation;
    return t->object();
  });
}

PyMethodDef tensor_methods[] = {
    {RL_METHOD("size", py_size), METH_FASTCALL | METH_KEYWORDS, "The shape, or the size of one dimension."},
    {RL_METHOD("stride", py_stride), METH_FASTCALL, "The strides in elements, or that of one dimension."},
    {RL_METHOD("dim", py_dim), METH_NOARGS, "The number of dimensions."},
    {RL_METHOD("ndimension", py_dim), METH_NOARGS, "The number of dimensions."},
    {RL_METHOD("numel", py_numel), METH_NOARGS, "The number of elements."},
    {RL_METHOD("nelement", py_numel), METH_NOARGS, "The number of elements."},
    {RL_METHOD("element_size", py_element_size), METH_NOARGS, "Bytes of one element."},
    {RL_METHOD("data_ptr", py_data_ptr), METH_NOARGS, "The address of the first element."},
    {RL_METHOD("storage_offset", py_storage_offset), METH_NOARGS,
     "Elements between the start of the storage and the first element."},
    {RL_METHOD("get_device", py_get_device), METH_NOARGS, "-1 on the CPU."},
    {RL_METHOD("is_contiguous", py_is_contiguous), METH_VARARGS | METH_KEYWORDS, "True when row-major without gaps."},
    {RL_METHOD("untyped_storage", py_untyped_storage), METH_NOARGS, "The memory behind the tensor."},
    {RL_METHOD("is_floating_point", py_is_floating_point), METH_NOARGS, "True for real floating point elements."},
    {RL_METHOD("is_complex", py_is_complex), METH_NOARGS, "True for complex elements."},
    {RL_METHOD("is_signed", py_is_signed), METH_NOARGS, "True when the dtype holds negative numbers."},
    {RL_METHOD("is_inference", py_is_inference), METH_NOARGS, "True when made in inference mode."},
    {RL_METHOD("is_conj", py_is_lazy<kConjugated>), METH_NOARGS,
     "True when the numbers are the conjugates of those in memory."},
    {RL_METHOD("is_neg", py_is_lazy<kNegated>), METH_NOARGS,
     "True when the numbers are the negatives of those in memory."},
    {RL_METHOD("is_shared", py_is_shared), METH_NOARGS, "True when the memory is shared between processes."},
    {RL_METHOD("is_pinned", py_false_method), METH_NOARGS, "True for page-locked memory."},
    {RL_METHOD("is_set_to", py_is_set_to), METH_O, "True when both have the same memory, shape and strides."},
    {"_make_subclass", as_method(py_make_subclass), METH_VARARGS | METH_KEYWORDS | METH_STATIC, nullptr},
    {"as_subclass", py_as_subclass, METH_O, "The same tensor as an object of another class."},
    {nullptr, nullptr, 0, nullptr}};

// ---------------------------------------------------------------- operators

// A NumPy array beside a tensor counts as a tensor over its memory.
bool from_array(PyObject* o, TensorRef& made, Value& v) {
  if (std::strcmp(Py_TYPE(o)->tp_name, "numpy.ndarray")) return false;
  made = tensor_from_data(o, -1, false);
  v = Value::of(made);
  return true;
}

// An operator's override. Operands that it does not take are left to the other operand's operator, as those of a plain
// tensor are; `x == None` is False for every class.
PyObject* override_operator(PyObject* callable, PyObject* const* operands, int count) {
  PyObject* result = call_override(callable, nullptr, operands, count, nullptr);
  if (RL_LIKELY(result) || !PyErr_ExceptionMatches(PyExc_TypeError)) return result;
  PyErr_Clear();
  Py_RETURN_NOTIMPLEMENTED;
}

// A binary operator: tensors and numbers go straight to the operation, anything else through its overrides or back to
// Python.
template <bool kReflectable = true>
PyObject* binary(const Op& op, PyObject* a, PyObject* b, const char* method, const char* reflected) {
  int ka = classify(a), kb = classify(b);
  if (RL_UNLIKELY((ka | kb) & kHasOverride || thread_state.mode_depth)) {
    if (!thread_state.overrides_disabled) {
      PyObject* stack[2] = {a, b};
      bool left = ka & kIsTensor;
      PyObject* callable = method_object(left ? method : reflected);
      if (!left) std::swap(stack[0], stack[1]);
      if (callable) return override_operator(callable, stack, 2);
    }
  }
  return guarded([&]() -> PyObject* {
    Value args[kMaxArgs];
    TensorRef arrays[2];
    auto put = [&op](int kind, PyObject* o, Value& v, TensorRef& made) {
      if (RL_LIKELY(kind & kIsTensor)) {
        v.tag = Tag::Tensor;
        v.tensor = tensor_of(o);
        return true;
      }
      return scalar_from(o, v, compares(op)) || from_array(o, made, v);
    };
    if (!put(ka, a, args[0], arrays[0]) || !put(kb, b, args[1], arrays[1])) Py_RETURN_NOTIMPLEMENTED;
    for (int i = 2; i < op.argument_count; i++) args[i] = op.arguments[i].default_value;
    Value results[kMaxResults];
    run_op(op, args, results);
    return result_to_python(op, results);
  });
}

PyObject* inplace(const Op& op, PyObject* a, PyObject* b, const char* method) {
  int ka = classify(a), kb = classify(b);
  if (RL_UNLIKELY(((ka | kb) & kHasOverride || thread_state.mode_depth) && !thread_state.overrides_disabled)) {
    PyObject* stack[2] = {a, b};
    if (PyObject* callable = method_object(method)) return call_override(callable, nullptr, stack, 2, nullptr);
  }
  return guarded([&]() -> PyObject* {
    Value args[kMaxArgs];
    TensorRef array;
    args[0] = Value::of(tensor_of(a));
    if (kb & kIsTensor)
      args[1] = Value::of(tensor_of(b));
    else if (!scalar_from(b, args[1]) && !from_array(b, array, args[1]))
      Py_RETURN_NOTIMPLEMENTED;
    for (int i = 2; i < op.argument_count; i++) args[i] = op.arguments[i].default_value;
    Value results[kMaxResults];
    Tensor* out[kMaxResults] = {tensor_of(a)};
    run_op(op, args, results, out, true);
    return result_to_python(op, results);
  });
}

#define RL_BINARY(slot, op, method, reflected) \
  PyObject* slot(PyObject* a, PyObject* b) { return binary(ops::op, a, b, method, reflected); }
#define RL_INPLACE(slot, op, method) \
  PyObject* slot(PyObject* a, PyObject* b) { return inplace(ops::op, a, b, method); }
RL_BINARY(slot_add, add, "add", "add")
RL_BINARY(slot_sub, sub, "sub", "__rsub__")
RL_BINARY(slot_mul, mul, "mul", "mul")
RL_BINARY(slot_div, div, "div", "__rdiv__")
RL_BINARY(slot_floor_div, floor_divide, "__floordiv__", "__rfloordiv__")
RL_BINARY(slot_remainder, remainder, "remainder", "__rmod__")
RL_BINARY(slot_matmul, matmul, "matmul", "__rmatmul__")
RL_BINARY(slot_and, bitwise_and, "__and__", "bitwise_and")
RL_BINARY(slot_or, bitwise_or, "__or__", "bitwise_or")
RL_BINARY(slot_xor, bitwise_xor, "__xor__", "bitwise_xor")
RL_BINARY(slot_lshift, bitwise_left_shift, "__lshift__", "__rlshift__")
RL_BINARY(slot_rshift, bitwise_right_shift, "__rshift__", "__rrshift__")
PyObject* slot_pow(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) {
    PyErr_SetString(PyExc_TypeError, "pow() of tensors takes two arguments, got a modulus too");
    return nullptr;
  }
  return binary(ops::pow, a, b, "__pow__", "__rpow__");
}
RL_INPLACE(slot_iadd, add, "add_")
RL_INPLACE(slot_isub, sub, "sub_")
RL_INPLACE(slot_imul, mul, "mul_")
RL_INPLACE(slot_idiv, div, "div_")
RL_INPLACE(slot_ifloor_div, floor_divide, "floor_divide_")
RL_INPLACE(slot_iremainder, remainder, "remainder_")
RL_INPLACE(slot_iand, bitwise_and, "__iand__")
RL_INPLACE(slot_ior, bitwise_or, "__ior__")
RL_INPLACE(slot_ixor, bitwise_xor, "__ixor__")
RL_INPLACE(slot_ilshift, bitwise_left_shift, "__ilshift__")
RL_INPLACE(slot_irshift, bitwise_right_shift, "__irshift__")
PyObject* slot_ipow(PyObject* a, PyObject* b, PyObject*) { return inplace(ops::pow, a, b, "__ipow__"); }

PyObject* unary(const Op& op, PyObject* a, const char* method) {
  if (RL_UNLIKELY((classify(a) & kHasOverride || thread_state.mode_depth) && !thread_state.overrides_disabled))
    if (PyObject* callable = method_object(method)) return call_override(callable, nullptr, &a, 1, nullptr);
  return guarded([&]() -> PyObject* { return call(op, {Value::of(tensor_of(a))}).take()->object(); });
}
PyObject* slot_neg(PyObject* a) { return unary(ops::neg, a, "neg"); }
PyObject* slot_pos(PyObject* a) {
  if (overridden(a)) return call_override(method_object("positive"), nullptr, &a, 1, nullptr);
  return tensor_of(a)->dtype() == RL_BOOL ? unary(ops::positive, a, "positive") : Py_NewRef(a);
}
PyObject* slot_abs(PyObject* a) { return unary(ops::abs, a, "abs"); }
PyObject* slot_invert(PyObject* a) {
  if (!overridden(a) && !is_integral_or_bool(tensor_of(a)->dtype())) {
    PyErr_Format(PyExc_TypeError, "~: expected an integer or bool tensor, got %s", dtype_name(tensor_of(a)->dtype()));
    return nullptr;
  }
  return unary(ops::bitwise_not, a, "__invert__");
}

PyObject* the_item(PyObject* self, const char* what) {
  Tensor* t = tensor_of(self);
  return guarded([&]() -> PyObject* {
    RL_CHECK(t->numel == 1, Runtime, "a Tensor with %lld elements cannot be converted to %s",
             static_cast<long long>(t->numel), what);
    return item_of(t);
  });
}
PyObject* override_slot(PyObject* self, const char* method) {
  return call_override(method_object(method), nullptr, &self, 1, nullptr);
}
int slot_bool(PyObject* self) {
  Tensor* t = tensor_of(self);
  if (overridden(self)) {
    PyObject* answer = override_slot(self, "__bool__");
    int r = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return r;
  }
  if (t->numel != 1) {
    PyErr_Format(PyExc_RuntimeError, "Boolean value of Tensor with %s is ambiguous",
                 t->numel == 0 ? "no values" : "more than one value");
    return -1;
  }
  PyObject* item = the_item(self, "bool");
  if (!item) return -1;
  int r = PyObject_IsTrue(item);
  Py_DECREF(item);
  return r;
}
// The item as a real number, for float() and int().
PyObject* real_item(PyObject* self, PyObject* (*convert)(PyObject*)) {
  PyObject* item = the_item(self, "Scalar");
  if (item && PyComplex_Check(item)) {
    const Py_complex value = PyComplex_AsCComplex(item);
    Py_DECREF(item);
    if (value.imag != 0) {
      PyErr_SetString(PyExc_RuntimeError,
                      "value cannot be converted to type double without overflow: the tensor is complex");
      return nullptr;
    }
    item = PyFloat_FromDouble(value.real);
  }
  if (!item) return nullptr;
  PyObject* r = convert(item);
  Py_DECREF(item);
  return r;
}
PyObject* slot_float(PyObject* self) {
  return overridden(self) ? override_slot(self, "__float__") : real_item(self, PyNumber_Float);
}
PyObject* slot_int(PyObject* self) {
  return overridden(self) ? override_slot(self, "__int__") : real_item(self, PyNumber_Long);
}
PyObject* slot_index(PyObject* self) {
  if (overridden(self)) return override_slot(self, "__index__");
  Tensor* t = tensor_of(self);
  if (!is_integral_or_bool(t->dtype()) || t->numel != 1) {
    PyErr_SetString(PyExc_TypeError, "only integer tensors of a single element can be converted to an index");
    return nullptr;
  }
  PyObject* item = the_item(self, "index");
  if (!item) return nullptr;
  PyObject* r = PyNumber_Long(item);
  Py_DECREF(item);
  return r;
}
PyObject* py_complex_method(PyObject* self, PyObject*) {
  PyObject* item = the_item(self, "Scalar");
  if (!item) return nullptr;
  Py_complex c = PyComplex_AsCComplex(item);
  Py_DECREF(item);
  return PyErr_Occurred() ? nullptr : PyComplex_FromCComplex(c);
}

PyObject* slot_compare(PyObject* a, PyObject* b, int which) {
  static const char* const names[] = {"lt", "le", "eq", "ne", "gt", "ge"};
  static const char* const mirrored[] = {"gt", "ge", "eq", "ne", "lt", "le"};
  const Op* op = nullptr;
  switch (which) {
    case Py_LT:
      op = &ops::lt;
      break;
    case Py_LE:
      op = &ops::le;
      break;
    case Py_EQ:
      op = &ops::eq;
      break;
    case Py_NE:
      op = &ops::ne;
      break;
    case Py_GT:
      op = &ops::gt;
      break;
    default:
      op = &ops::ge;
      break;
  }
  const bool subclass = which == Py_EQ && (is_tensor(b) || classify(a) & kHasOverride);  // which ask for __eq__
  return binary(*op, a, b, subclass ? "__eq__" : names[which], mirrored[which]);
}

Py_ssize_t slot_length(PyObject* self) {
  if (overridden(self)) {
    PyObject* answer = override_slot(self, "__len__");
    Py_ssize_t r = answer ? PyNumber_AsSsize_t(answer, PyExc_OverflowError) : -1;
    Py_XDECREF(answer);
    return r;
  }
  Tensor* t = tensor_of(self);
  if (t->ndim() == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
  }
  return static_cast<Py_ssize_t>(t->size(0));
}

// id(), as PyTorch has it.
Py_hash_t slot_hash(PyObject* self) { return static_cast<Py_hash_t>(reinterpret_cast<intptr_t>(self)); }

// repr, format and the rest of what is not about speed is Python: rushlight/_tensor.py
PyObject* python_helper(const char* function, PyObject* self, PyObject* argument = nullptr) {
  PyObject* module = PyImport_ImportModule("rushlight._tensor");
  if (!module) return nullptr;
  PyObject* f = PyObject_GetAttrString(module, function);
  Py_DECREF(module);
  if (!f) return nullptr;
  PyObject* r = argument ? PyObject_CallFunctionObjArgs(f, self, argument, nullptr) : PyObject_CallOneArg(f, self);
  Py_DECREF(f);
  return r;
}
PyObject* slot_repr(PyObject* self) {
  if (overridden(self)) return override_slot(self, "__repr__");
  return python_helper("_repr", self);
}
PyObject* py_format(PyObject* self, PyObject* spec) { return python_helper("_format", self, spec); }
PyObject* slot_iter(PyObject* self) { return python_helper("_iter", self); }  // through unbind
PyObject* py_reduce_ex(PyObject* self, PyObject* protocol) { return python_helper("_reduce_ex", self, protocol); }
PyObject* py_deepcopy(PyObject* self, PyObject* memo) { return python_helper("_deepcopy", self, memo); }
PyObject* py_reversed(PyObject* self, PyObject*) { return python_helper("_reversed", self); }
int slot_contains(PyObject* self, PyObject* element) {
  PyObject* stack[2] = {self, element};
  PyObject* r = overridden(self) ? call_override(method_object("__contains__"), nullptr, stack, 2, nullptr)
                                 : python_helper("_contains", self, element);
  if (!r) return -1;
  int v = PyObject_IsTrue(r);
  Py_DECREF(r);
  return v;
}

PyObject* py_torch_function(PyObject* cls, PyObject* args, PyObject* kwargs) {
  PyObject* module = PyImport_ImportModule("rushlight.overrides");
  if (!module) return nullptr;
  PyObject* f = PyObject_GetAttrString(module, "_default_torch_function");
  Py_DECREF(module);
  if (!f) return nullptr;
  Py_ssize_t n = PyTuple_GET_SIZE(args);
  PyObject* all = PyTuple_New(n + 1);
  PyTuple_SET_ITEM(all, 0, Py_NewRef(cls));
  for (Py_ssize_t i = 0; i < n; i++) PyTuple_SET_ITEM(all, i + 1, Py_NewRef(PyTuple_GET_ITEM(args, i)));
  PyObject* r = PyObject_Call(f, all, kwargs);
  Py_DECREF(all);
  Py_DECREF(f);
  return r;
}

PyObject* py_new(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* module = PyImport_ImportModule("rushlight._tensor");
  PyObject* f = module ? PyObject_GetAttrString(module, "new") : nullptr;
  Py_XDECREF(module);
  PyObject* first = f ? PyTuple_Pack(1, self) : nullptr;
  PyObject* all = first ? PySequence_Concat(first, args) : nullptr;
  PyObject* r = all ? PyObject_Call(f, all, kwargs) : nullptr;
  Py_XDECREF(all);
  Py_XDECREF(first);
  Py_XDECREF(f);
  return r;
}

PyMethodDef protocol_methods[] = {
    {"new", as_method(py_new), METH_VARARGS | METH_KEYWORDS, "The legacy constructor in this tensor's dtype."},
    {RL_METHOD("__format__", py_format), METH_O, nullptr},
    {RL_METHOD("__reduce_ex__", py_reduce_ex), METH_O, nullptr},
    {RL_METHOD("__deepcopy__", py_deepcopy), METH_O, nullptr},
    {RL_METHOD("__reversed__", py_reversed), METH_NOARGS, nullptr},
    {RL_METHOD("__complex__", py_complex_method), METH_NOARGS, nullptr},
    {"__torch_function__", as_method(py_torch_function), METH_VARARGS | METH_KEYWORDS | METH_CLASS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyNumberMethods number_methods = [] {
  PyNumberMethods n = {};
  n.nb_add = slot_add;
  n.nb_subtract = slot_sub;
  n.nb_multiply = slot_mul;
  n.nb_true_divide = slot_div;
  n.nb_floor_divide = slot_floor_div;
  n.nb_remainder = slot_remainder;
  n.nb_matrix_multiply = slot_matmul;
  n.nb_power = slot_pow;
  n.nb_and = slot_and;
  n.nb_or = slot_or;
  n.nb_xor = slot_xor;
  n.nb_lshift = slot_lshift;
  n.nb_rshift = slot_rshift;
  n.nb_inplace_add = slot_iadd;
  n.nb_inplace_subtract = slot_isub;
  n.nb_inplace_multiply = slot_imul;
  n.nb_inplace_true_divide = slot_idiv;
  n.nb_inplace_floor_divide = slot_ifloor_div;
  n.nb_inplace_remainder = slot_iremainder;
  n.nb_inplace_power = slot_ipow;
  n.nb_inplace_and = slot_iand;
  n.nb_inplace_or = slot_ior;
  n.nb_inplace_xor = slot_ixor;
  n.nb_inplace_lshift = slot_ilshift;
  n.nb_inplace_rshift = slot_irshift;
  n.nb_negative = slot_neg;
  n.nb_positive = slot_pos;
  n.nb_absolute = slot_abs;
  n.nb_invert = slot_invert;
  n.nb_bool = slot_bool;
  n.nb_float = slot_float;
  n.nb_int = slot_int;
  n.nb_index = slot_index;
  return n;
}();

PyMappingMethods mapping_methods = {slot_length, tensor_subscript, tensor_assign};
PySequenceMethods sequence_methods = [] {
  PySequenceMethods s = {};
  s.sq_length = slot_length;
  s.sq_contains = slot_contains;
  return s;
}();

// Tensor(...): the legacy constructor, in Python.
PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject* module = PyImport_ImportModule("rushlight._tensor");
  if (!module) return nullptr;
  PyObject* f = PyObject_GetAttrString(module, "_new");
  Py_DECREF(module);
  if (!f) return nullptr;
  Py_ssize_t n = PyTuple_GET_SIZE(args);
  PyObject* all = PyTuple_New(n + 1);
  PyTuple_SET_ITEM(all, 0, Py_NewRef(reinterpret_cast<PyObject*>(type)));
  for (Py_ssize_t i = 0; i < n; i++) PyTuple_SET_ITEM(all, i + 1, Py_NewRef(PyTuple_GET_ITEM(args, i)));
  PyObject* r = PyObject_Call(f, all, kwargs);
  Py_DECREF(all);
  Py_DECREF(f);
  return r;
}
int tensor_init(PyObject*, PyObject*, PyObject*) { return 0; }

PyTypeObject make_tensor_type() {
  PyTypeObject t = blank_type();
  t.tp_name = "rushlight.Tensor";
  t.tp_basicsize = sizeof(Tensor);
  t.tp_dictoffset = offsetof(Tensor, dict);
  t.tp_weaklistoffset = offsetof(Tensor, weak_references);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  t.tp_doc = "An n-dimensional array of one dtype that autograd can follow.";
  t.tp_dealloc = tensor_dealloc;
  t.tp_traverse = tensor_traverse;
  t.tp_clear = tensor_clear;
  t.tp_as_number = &number_methods;
  t.tp_as_mapping = &mapping_methods;
  t.tp_as_sequence = &sequence_methods;
  t.tp_richcompare = slot_compare;
  t.tp_hash = slot_hash;
  t.tp_repr = slot_repr;
  t.tp_iter = slot_iter;
  t.tp_getset = dict_getset;
  t.tp_methods = tensor_methods;
  t.tp_new = tensor_new;
  t.tp_init = tensor_init;
  t.tp_free = PyObject_GC_Del;
  return t;
}

bool add_all(PyMethodDef* methods) {
  for (PyMethodDef* m = methods; m->ml_name; m++) {
    PyObject* o = m->ml_flags & METH_CLASS ? PyDescr_NewClassMethod(&TensorType, m) : PyDescr_NewMethod(&TensorType, m);
    if (!o || PyDict_SetItemString(TensorType.tp_dict, m->ml_name, o) < 0) return false;
    Py_DECREF(o);
  }
  return true;
}

}  // namespace

PyTypeObject TensorType = make_tensor_type();

bool tensor_type_init(PyObject* module) {
  if (PyType_Ready(&TensorType) < 0) return false;
  if (!add_all(protocol_methods) || !add_all(exchange_methods) || !add_all(autograd_tensor_methods)) return false;
  if (!add_attributes(tensor_getset) || !add_attributes(autograd_tensor_getset)) return false;
  PyType_Modified(&TensorType);
  return PyModule_AddObject(module, "Tensor", Py_NewRef(reinterpret_cast<PyObject*>(&TensorType))) == 0;
}

}  // namespace rl
