// Tensors from Python data and back: numbers, nested sequences, buffers.
#include <cmath>

#include "../autograd/autograd.h"
#include "ops.h"
#include "python.h"

namespace rl {

// ---------------------------------------------------------------- elements

PyObject* element_to_python(DType dtype, const void* p) {
  switch (dtype) {
    case RL_BOOL:
      return PyBool_FromLong(*static_cast<const uint8_t*>(p) != 0);
    case RL_UINT8:
      return PyLong_FromLong(*static_cast<const uint8_t*>(p));
    case RL_INT8:
      return PyLong_FromLong(*static_cast<const int8_t*>(p));
    case RL_INT16:
      return PyLong_FromLong(*static_cast<const int16_t*>(p));
    case RL_INT32:
      return PyLong_FromLong(*static_cast<const int32_t*>(p));
    case RL_INT64:
      return PyLong_FromLongLong(*static_cast<const int64_t*>(p));
    case RL_FLOAT32:
      return PyFloat_FromDouble(static_cast<double>(*static_cast<const float*>(p)));
    case RL_FLOAT64:
      return PyFloat_FromDouble(*static_cast<const double*>(p));
    case RL_COMPLEX32: {
      float c[2];
      rl_tensor from = {const_cast<void*>(p), nullptr, nullptr, 0, RL_COMPLEX32, 0, {0, 0}};
      rl_tensor to = {c, nullptr, nullptr, 0, RL_COMPLEX64, 0, {0, 0}};
      check(rl_copy(&from, &to));
      return PyComplex_FromDoubles(static_cast<double>(c[0]), static_cast<double>(c[1]));
    }
    case RL_COMPLEX64: {
      auto* c = static_cast<const float*>(p);
      return PyComplex_FromDoubles(static_cast<double>(c[0]), static_cast<double>(c[1]));
    }
    case RL_COMPLEX128: {
      auto* c = static_cast<const double*>(p);
      return PyComplex_FromDoubles(c[0], c[1]);
    }
    default: {
      float f;
      rl_tensor from = {const_cast<void*>(p), nullptr, nullptr, 0, static_cast<uint8_t>(dtype), 0, {0, 0}};
      rl_tensor to = {&f, nullptr, nullptr, 0, RL_FLOAT32, 0, {0, 0}};
      check(rl_copy(&from, &to));
      return PyFloat_FromDouble(static_cast<double>(f));
    }
  }
}

PyObject* item_of(const Tensor* self) {
  const Tensor* t = plain_value(const_cast<Tensor*>(self), ".item()");
  RL_CHECK(!t->is_meta(), Runtime, "Tensor.item() cannot be called on meta tensors");
  RL_CHECK(t->numel == 1, Runtime, "a Tensor with %lld elements cannot be converted to Scalar",
           static_cast<long long>(t->numel));
  TensorRef plain = resolved(const_cast<Tensor*>(t));
  return element_to_python(plain->dtype(), plain->data());
}

namespace {

PyObject* list_of(const Tensor* t, int dim, const char* p) {
  if (dim == t->ndim()) return element_to_python(t->dtype(), p);
  PyObject* list = PyList_New(t->size(dim));
  if (!list) return nullptr;
  int64_t step = t->stride(dim) * itemsize(t->dtype());
  for (int64_t i = 0; i < t->size(dim); i++) {
    PyObject* item = list_of(t, dim + 1, p + i * step);
    if (!item) {
      Py_DECREF(list);
      return nullptr;
    }
    PyList_SET_ITEM(list, i, item);
  }
  return list;
}

PyObject* py_tolist(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Tensor* t = plain_value(tensor_of(self), ".tolist()");
    RL_CHECK(!t->is_meta(), Runtime, "Tensor.tolist(): a meta tensor has no data");
    TensorRef plain = resolved(t);
    return list_of(plain.get(), 0, plain->data());
  });
}
PyObject* py_item(PyObject* self, PyObject*) {
  if (RL_UNLIKELY((classify(self) & kHasOverride || thread_state.mode_depth) && !thread_state.overrides_disabled))
    if (PyObject* f = method_object("item")) return call_override(f, nullptr, &self, 1, nullptr);
  return guarded([&] { return item_of(tensor_of(self)); });
}

// ---------------------------------------------------------------- buffers

// The dtype of a buffer's elements; false when there is none here.
bool dtype_of_format(const Py_buffer& b, DType& d) {
  const char* f = b.format ? b.format : "B";
  if (*f == '@' || *f == '=' || *f == '<')
    f++;
  else if (*f == '>' || *f == '!') {
    if (b.itemsize > 1) return false;
    f++;
  }
  if (*f == 'Z') {
    if (f[1] == 'f' && b.itemsize == 8) return d = RL_COMPLEX64, true;
    if (f[1] == 'd' && b.itemsize == 16) return d = RL_COMPLEX128, true;
    return false;
  }
  if (f[0] == 0 || f[1] != 0) return false;
  switch (*f) {
    case '?':
      d = RL_BOOL;
      return true;
    case 'B':
    case 'c':
      d = RL_UINT8;
      return true;
    case 'b':
      d = RL_INT8;
      return true;
    case 'e':
      d = RL_FLOAT16;
      return true;
    case 'f':
      d = RL_FLOAT32;
      return true;
    case 'd':
      d = RL_FLOAT64;
      return true;
    case 'h':
      d = RL_INT16;
      return true;
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      d = b.itemsize == 4 ? RL_INT32 : RL_INT64;
      return b.itemsize == 4 || b.itemsize == 8;
    default:
      return false;
  }
}

void release_buffer(Storage* s) {
  auto* view = static_cast<Py_buffer*>(s->context);
  // Storages may die on any thread that holds the GIL; kernels never release one.
  PyBuffer_Release(view);
  PyMem_Free(view);
  rl_deallocate(s);
}

// A tensor over the memory of a buffer exporter.
TensorRef tensor_over_buffer(PyObject* object, bool writable, const char* what) {
  auto* view = static_cast<Py_buffer*>(PyMem_Malloc(sizeof(Py_buffer)));
  if (!view) throw std::bad_alloc();
  bool read_only = false;
  if (PyObject_GetBuffer(object, view, PyBUF_STRIDED | PyBUF_FORMAT | PyBUF_WRITABLE) < 0) {
    PyErr_Clear();
    if (PyObject_GetBuffer(object, view, PyBUF_STRIDED_RO | PyBUF_FORMAT) < 0) {
      PyMem_Free(view);
      throw PythonError();
    }
    read_only = true;
  }
  struct Guard {
    Py_buffer* view;
    ~Guard() {
      if (!view) return;
      PyBuffer_Release(view);
      PyMem_Free(view);
    }
  } guard{view};
  DType dtype;
  RL_CHECK(dtype_of_format(*view, dtype), Type,
           "%s: can't convert elements of type '%s' (%zd bytes each); the supported types are: float64, float32, "
           "float16, complex64, "
           "complex128, int64, int32, int16, int8, uint8, and bool",
           what, view->format ? view->format : "?", view->itemsize);
  Dims shape, strides;
  int64_t low = 0, high = 0;
  for (int i = 0; i < view->ndim; i++) {
    int64_t bytes = view->strides ? view->strides[i] : 0, n = view->shape[i];
    if (n <= 1) bytes = view->itemsize;
    RL_CHECK(bytes % view->itemsize == 0, Value, "%s: strides of %lld bytes are no multiple of the element size %zd",
             what, static_cast<long long>(bytes), view->itemsize);
    shape.push(n);
    strides.push(bytes / view->itemsize);
    if (n > 1) (bytes < 0 ? low : high) += (n - 1) * bytes;
  }
  (void)writable;
  Storage* s = storage_borrow(static_cast<char*>(view->buf) + low,
                              static_cast<size_t>(high - low + (view->len ? view->itemsize : 0)), release_buffer, view,
                              read_only);
  guard.view = nullptr;
  TensorRef t = over_storage(s, dtype, shape.n, shape.v, strides.v, static_cast<char*>(s->data) - low);
  release(s);
  return t;
}

PyObject* py_over_buffer(PyObject*, PyObject* object) {
  return guarded([&] { return tensor_over_buffer(object, false, "from_numpy").take()->object(); });
}

// ---------------------------------------------------------------- nested sequences

struct Builder {
  Dims shape;
  int dtype;  // wanted, or -1: found from the elements
  bool found_any = false;
  DType found = RL_BOOL;

  static bool sequence(PyObject* o) {
    if (PyList_Check(o) || PyTuple_Check(o)) return true;
    return PySequence_Check(o) && !PyUnicode_Check(o) && !PyBytes_Check(o) && !PyDict_Check(o) && !is_tensor(o) &&
           !is_array(o);
  }
  void see(DType d) {
    found = found_any ? promote(found, d) : d;
    found_any = true;
  }
  // First walk: shape from the first elements, dtype from all.
  void measure(PyObject* o, int depth) {
    RL_CHECK(depth < kMaxDims, Value, "tensor(): too many dimensions; sequences may be nested %d deep", kMaxDims);
    if (is_tensor(o)) {
      RL_CHECK(tensor_of(o)->numel == 1, Value,
               "only one element tensors can be converted to Python scalars; got shape %s (stack joins tensors)",
               shape_text(tensor_of(o)).c_str());
      close(depth);
      see(tensor_of(o)->dtype());
      return;
    }
    Value v;
    if (scalar_from(o, v, true)) {
      close(depth);
      if (PyObject_CheckBuffer(o) && !PyFloat_Check(o)) {  // a NumPy scalar keeps its own dtype
        Py_buffer b;
        DType d;
        if (PyObject_GetBuffer(o, &b, PyBUF_FORMAT) == 0) {
          bool ok = dtype_of_format(b, d);
          PyBuffer_Release(&b);
          if (ok) return see(d);
        } else {
          PyErr_Clear();
        }
      }
      return see(v.tag == Tag::Bool                          ? RL_BOOL
                 : v.tag == Tag::Int || v.tag == Tag::BigInt ? RL_INT64
                 : v.tag == Tag::Double                      ? default_dtype
                                                             : complex_dtype(default_dtype));
    }
    if (is_array(o)) {
      TensorRef t = tensor_over_buffer(o, false, "tensor()");
      for (int i = 0; i < t->ndim(); i++) extend(depth + i, t->size(i));
      close(depth + t->ndim());
      return see(t->dtype());
    }
    if (!sequence(o)) {
      if (PyUnicode_Check(o))
        throw_error(ErrorKind::Type, "tensor(): can't make a tensor from a string ('%s')", PyUnicode_AsUTF8(o));
      if (PyBytes_Check(o)) throw_error(ErrorKind::Type, "tensor(): can't make a tensor from bytes; use frombuffer");
      throw_error(ErrorKind::Runtime, "Could not infer dtype of %s", Py_TYPE(o)->tp_name);
    }
    PyObject* fast = PySequence_Fast(o, "tensor(): not a sequence");
    if (!fast) throw PythonError();
    Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
    try {
      extend(depth, n);
      if (n == 0) close(depth + 1);
      for (Py_ssize_t i = 0; i < n; i++) {
        PyObject* item = PySequence_Fast_GET_ITEM(fast, i);
        if (RL_LIKELY(PyFloat_CheckExact(item))) {
          close(depth + 1);
          see(default_dtype);
        } else {
          measure(item, depth + 1);
        }
      }
    } catch (...) {
      Py_DECREF(fast);
      throw;
    }
    Py_DECREF(fast);
  }
  int final_dims = -1;
  void extend(int depth, int64_t n) {
    RL_CHECK(final_dims < 0 || depth < final_dims, Type,
             "tensor(): not a number at depth %d, where other elements are numbers", depth);
    if (depth == shape.n) {
      shape.push(n);
      return;
    }
    RL_CHECK(shape[depth] == n, Value, "expected sequence of length %lld at dim %d (got %lld)",
             static_cast<long long>(shape[depth]), depth, static_cast<long long>(n));
  }
  void close(int depth) {
    if (final_dims < 0) {
      final_dims = depth;
      return;
    }
    RL_CHECK(final_dims == depth, Type,
             "tensor(): the elements are nested unequally deep; expected numbers at depth %d, got one at %d",
             final_dims, depth);
  }
  // Second walk: store.
  char* at;
  int64_t size;
  DType target;
  void put(PyObject* o, const Value& v) {
    RL_CHECK(v.tag != Tag::BigInt || std::isfinite(v.real) || target == RL_BOOL, Overflow,
             "tensor(): an integer is too large to convert to %s", dtype_name(target));
    switch (target) {
      case RL_FLOAT32:
        if (RL_UNLIKELY(v.tag == Tag::Complex)) goto general;
        *reinterpret_cast<float*>(at) = static_cast<float>(v.as_double());
        break;
      case RL_FLOAT64:
        if (RL_UNLIKELY(v.tag == Tag::Complex)) goto general;
        *reinterpret_cast<double*>(at) = v.as_double();
        break;
      case RL_INT64:
        if (v.tag == Tag::Double || v.tag == Tag::Complex || v.tag == Tag::BigInt) goto general;
        *reinterpret_cast<int64_t*>(at) = v.as_int();
        break;
      default:
      general:
        {
          RL_CHECK(v.tag != Tag::Complex || is_complex(target) || target == RL_BOOL, Type,
                   "tensor(): a complex number has no value of type %s: %s", dtype_name(target), text_of(o).c_str());
          RL_CHECK(!is_integral(target) || v.tag != Tag::BigInt, Value,
                   "tensor(): Overflow when unpacking long: %s does not fit into %s", text_of(o).c_str(),
                   dtype_name(target));
          RL_CHECK(!is_integral(target) || fits(v, target), Runtime,
                   "tensor(): value cannot be converted to type %s without overflow: %s", dtype_name(target),
                   text_of(o).c_str());
          ScalarTensor s(v.tag == Tag::BigInt ? Value::of(v.real) : v);
          rl_tensor to = {at, nullptr, nullptr, 0, static_cast<uint8_t>(target), 0, {0, 0}};
          check(rl_copy(&s.desc, &to));
        }
    }
    at += size;
  }
  static std::string text_of(PyObject* o) {
    PyObject* r = PyObject_Repr(o);
    std::string s = r ? PyUnicode_AsUTF8(r) : "?";
    Py_XDECREF(r);
    return s;
  }
  void copy_tensor(Tensor* t) {
    int64_t strides[kMaxDims];
    contiguous_strides(t->ndim(), t->shape(), strides);
    rl_tensor to = {at, t->shape(), strides, t->ndim(), static_cast<uint8_t>(target), 0, {0, 0}};
    check(rl_copy(&t->desc, &to));
    at += t->numel * size;
  }
  void store(PyObject* o, int depth) {
    Value v;
    if (depth == final_dims) {
      if (is_tensor(o)) return copy_tensor(tensor_of(o));
      if (!scalar_from(o, v, true)) return copy_tensor(tensor_over_buffer(o, false, "tensor()").get());
      return put(o, v);
    }
    if (is_tensor(o)) return copy_tensor(tensor_of(o));
    if (is_array(o)) return copy_tensor(tensor_over_buffer(o, false, "tensor()").get());
    PyObject* fast = PySequence_Fast(o, "tensor(): not a sequence");
    if (!fast) throw PythonError();
    try {
      Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
      RL_CHECK(n == shape[depth], Runtime, "tensor(): a sequence changed its length while it was read");
      for (Py_ssize_t i = 0; i < n; i++) store(PySequence_Fast_GET_ITEM(fast, i), depth + 1);
    } catch (...) {
      Py_DECREF(fast);
      throw;
    }
    Py_DECREF(fast);
  }
};

Dims dims_from(PyObject* tuple, const char* what) {
  Dims d;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
    int64_t n;
    RL_CHECK(int_from(PyTuple_GET_ITEM(tuple, i), n, ErrorKind::Type), Type, "%s: sizes must be ints, got %s", what,
             Py_TYPE(PyTuple_GET_ITEM(tuple, i))->tp_name);
    d.push(n);
  }
  return d;
}

// A tensor over a storage, with the geometry checked against its size.
TensorRef over_checked(Storage* s, DType dtype, int64_t offset, PyObject* size, PyObject* stride) {
  Dims shape = dims_from(size, "set_"), strides = dims_from(stride, "set_");
  RL_CHECK(shape.n == strides.n, Runtime, "set_: mismatch in length of strides and shape: %d and %d", strides.n,
           shape.n);
  RL_CHECK(offset >= 0, Runtime, "set_: Tensor: invalid storage offset %lld", static_cast<long long>(offset));
  int64_t n = count_elements(shape.n, shape.v), last = offset;
  for (int i = 0; i < shape.n && n > 0; i++) {
    int64_t step;
    RL_CHECK(strides[i] >= 0, Runtime, "set_: strides must not be negative, got %s",
             shape_text(strides.n, strides.v).c_str());
    RL_CHECK(!__builtin_mul_overflow(shape[i] - 1, strides[i], &step) && !__builtin_add_overflow(last, step, &last),
             Runtime, "set_: sizes and strides overflow");
  }
  RL_CHECK(n == 0 || static_cast<uint64_t>(last) < s->nbytes / static_cast<uint64_t>(itemsize(dtype)), Runtime,
           "set_: sizes %s, strides %s and offset %lld of %s need element %lld; the storage has %zu bytes",
           shape_text(shape.n, shape.v).c_str(), shape_text(strides.n, strides.v).c_str(),
           static_cast<long long>(offset), dtype_name(dtype), static_cast<long long>(last), s->nbytes);
  return over_storage(s, dtype, shape.n, shape.v, strides.v, static_cast<char*>(s->data) + offset * itemsize(dtype));
}

void take_over(Tensor* t, const Tensor* from) {
  retain(from->storage);
  release(t->storage);
  t->storage = from->storage;
  t->desc.data = from->desc.data;
  t->desc.dtype = from->desc.dtype;
  t->desc.device = from->desc.device;
  set_geometry(t, from->ndim(), from->shape(), from->strides());
  bump_version(t);
}

// The tensor goes on over the other's memory. Its gradient cannot be followed through that: a backward raises.
void set_over(Tensor* t, Tensor* from, Tensor* source) {
  constexpr const char* kMessage =
      "set_: the derivative for set_ is not implemented; copy_() the values, or use no_grad()";
  bool record = thread_state.grad_mode && is_differentiable(t->dtype());
  if (record && t->base) record_refusal(t, source, kMessage);  // while it still is the view that the base knows
  take_over(t, from);
  if (t->base) t->view_version = t->storage->version;
  if (record && !t->base) record_refusal(t, source, kMessage);
}

// set_(): empty; set_(tensor); set_(storage[, offset, size, stride])
PyObject* py_set(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* keys[] = {"source", "storage_offset", "size", "stride", nullptr};
  PyObject *source = Py_None, *size = Py_None, *stride = Py_None;
  long long offset = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OLOO", const_cast<char**>(keys), &source, &offset, &size, &stride))
    return nullptr;
  return guarded([&]() -> PyObject* {
    Tensor* t = tensor_of(self);
    RL_CHECK(!t->requires_grad || !thread_state.grad_mode || t->grad_fn, Runtime,
             "a leaf Variable that requires grad is being used in an in-place operation: set_ (shape %s)",
             shape_text(t).c_str());
    if (source == Py_None) {
      int64_t zero = 0;
      set_over(t, empty(t->dtype(), 1, &zero, t->device()).get(), nullptr);
      return Py_NewRef(self);
    }
    if (is_tensor(source)) {
      Tensor* from = tensor_of(source);
      RL_CHECK(from->dtype() == t->dtype(), Runtime, "set_: Could not set tensor of type %s to a tensor of type %s",
               dtype_name(from->dtype()), dtype_name(t->dtype()));
      if (size == Py_None) {
        set_over(t, from, from);
        return Py_NewRef(self);
      }
    }
    Storage* s = is_tensor(source) ? tensor_of(source)->storage : storage_from_object(source);
    if (!s) {
      PyObject* untyped = PyObject_CallMethod(source, "untyped", nullptr);
      if (!untyped) throw PythonError();
      s = storage_from_object(untyped);
      Py_DECREF(untyped);
      RL_CHECK(s, Type, "set_: expected a tensor or a storage, got %s", Py_TYPE(source)->tp_name);
    }
    PyObject *sizes, *strides;
    if (size == Py_None) {
      sizes = Py_BuildValue("(n)", static_cast<Py_ssize_t>(s->nbytes / static_cast<size_t>(itemsize(t->dtype()))));
    } else {
      sizes = PyLong_Check(size) ? PyTuple_Pack(1, size) : PySequence_Tuple(size);
    }
    if (!sizes) throw PythonError();
    TensorRef made;
    try {
      if (stride == Py_None) {
        Dims shape = dims_from(sizes, "set_"), steps(shape.n, shape.v);
        contiguous_strides(shape.n, shape.v, steps.v);
        strides = value_to_python(Value::of(steps));
      } else {
        strides = PySequence_Tuple(stride);
      }
      if (!strides) throw PythonError();
    } catch (...) {
      Py_DECREF(sizes);
      throw;
    }
    try {
      made = over_checked(s, t->dtype(), offset, sizes, strides);
    } catch (...) {
      Py_DECREF(sizes);
      Py_DECREF(strides);
      throw;
    }
    Py_DECREF(sizes);
    Py_DECREF(strides);
    set_over(t, made.get(), is_tensor(source) ? tensor_of(source) : nullptr);
    return Py_NewRef(self);
  });
}

// resize_(sizes...): keeps what fits; new elements are not initialised
PyObject* py_resize(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&]() -> PyObject* {
    Tensor* t = tensor_of(self);
    RL_CHECK(!t->requires_grad, Runtime, "cannot resize variables that require grad");
    int64_t format = 0;
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++) {
      const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, i));
      RL_CHECK(name && !std::strcmp(name, "memory_format"), Type,
               "resize_: expected no keyword but memory_format, got '%s'", name ? name : "");
      if (args[n + i] == Py_None) continue;
      RL_CHECK(Py_TYPE(args[n + i]) == &MemoryFormatType, Type,
               "resize_: memory_format; expected a memory_format, got %s", Py_TYPE(args[n + i])->tp_name);
      format = reinterpret_cast<ConstantObject*>(args[n + i])->value;
      RL_CHECK(format != 1, Runtime, "resize_: memory_format; preserve_format says nothing about a new shape");
    }
    PyObject* sizes = nullptr;
    if (n == 1 && !PyLong_Check(args[0])) {
      sizes = PySequence_Tuple(args[0]);
    } else {
      sizes = PyTuple_New(n);
      for (Py_ssize_t i = 0; sizes && i < n; i++) PyTuple_SET_ITEM(sizes, i, Py_NewRef(args[i]));
    }
    if (!sizes) throw PythonError();
    Dims shape;
    try {
      shape = dims_from(sizes, "resize_");
    } catch (...) {
      Py_DECREF(sizes);
      throw;
    }
    Py_DECREF(sizes);
    int64_t count = count_elements(shape.n, shape.v), bytes;
    RL_CHECK(!__builtin_mul_overflow(count, itemsize(t->dtype()), &bytes), Runtime, "resize_: the size %s overflows",
             shape_text(shape.n, shape.v).c_str());
    TensorRef plain = empty(t->dtype(), shape.n, shape.v, Device::Meta);
    TensorRef layout = empty_in_format(plain.get(), t->dtype(), format, Device::Meta);
    size_t offset = static_cast<size_t>(t->data() - static_cast<char*>(t->storage->data));
    if (count && offset + static_cast<size_t>(bytes) > t->storage->nbytes) {
      storage_resize(t->storage, offset + static_cast<size_t>(bytes));
      t->desc.data = static_cast<char*>(t->storage->data) + offset;
    }
    set_geometry(t, shape.n, shape.v, layout->strides());
    return Py_NewRef(self);
  });
}

bool has_attribute(PyObject* o, const char* name) {
  int r = PyObject_HasAttrString(reinterpret_cast<PyObject*>(Py_TYPE(o)), name);
  return r > 0;
}

}  // namespace

// Other objects with a buffer (bytearray, array.array, memoryview) are sequences of numbers.
bool is_array(PyObject* o) {
  return PyObject_CheckBuffer(o) &&
         PyObject_HasAttrString(reinterpret_cast<PyObject*>(Py_TYPE(o)), "__array_interface__");
}

TensorRef tensor_from_data(PyObject* data, int dtype, bool copy) {
  TensorRef source;
  if (is_tensor(data)) {
    source = TensorRef::share(tensor_of(data));
  } else if (!PyList_Check(data) && !PyTuple_Check(data) && !PyFloat_Check(data) && !PyLong_Check(data)) {
    if (is_array(data)) {
      source = tensor_over_buffer(data, false, "tensor()");
      if (source->storage->read_only) copy = true;
    } else if (has_attribute(data, "__dlpack__") || has_attribute(data, "__array__") ||
               has_attribute(data, "__array_interface__")) {
      PyObject* module = PyImport_ImportModule("rushlight._interop");
      PyObject* r = module ? PyObject_CallMethod(module, "import_array", "O", data) : nullptr;
      Py_XDECREF(module);
      if (!r) throw PythonError();
      source = TensorRef::own(tensor_of(r));
    }
  }
  if (source) {
    DType target = dtype < 0 ? source->dtype() : static_cast<DType>(dtype);
    if (!copy && target == source->dtype()) return source;
    TensorRef t = empty(target, source->ndim(), source->shape(), source->device());
    if (!t->is_meta()) copy_into(t.get(), source.get());
    return t;
  }
  Builder b;
  b.dtype = dtype;
  b.measure(data, 0);
  b.target = dtype >= 0 ? static_cast<DType>(dtype) : b.found_any ? b.found : default_dtype;
  b.size = itemsize(b.target);
  TensorRef t = empty(b.target, b.shape.n, b.shape.v);
  b.at = t->data();
  if (t->numel) b.store(data, 0);
  return t;
}

// ---------------------------------------------------------------- module functions

namespace {

// The dtype that is asked for, -1 for None.
int dtype_or_none(PyObject* o, const char* function) {
  DType dtype;
  if (o == Py_None) return -1;
  RL_CHECK(dtype_from(o, dtype), Type, "%s(): argument 'dtype' must be rushlight.dtype, not %s", function,
           Py_TYPE(o)->tp_name);
  return dtype;
}

// tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False)
PyObject* py_tensor(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* keys[] = {"data", "dtype", "device", "requires_grad", "pin_memory", nullptr};
  PyObject *data, *dtype = Py_None, *device = Py_None;
  int requires_grad = 0, pin = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OOpp", const_cast<char**>(keys), &data, &dtype, &device,
                                   &requires_grad, &pin))
    return nullptr;
  return guarded([&]() -> PyObject* {
    TensorRef t = tensor_from_data(data, dtype_or_none(dtype, "tensor"), true);
    if (device != Py_None && device_from_object(device) != t->device()) {
      RL_CHECK(device_from_object(device) == Device::Meta, Runtime, "tensor(): a meta tensor has no data to copy");
      t = empty(t->dtype(), t->ndim(), t->shape(), Device::Meta);
    }
    if (requires_grad) {
      RL_CHECK(is_differentiable(t->dtype()), Runtime,
               "Only Tensors of floating point and complex dtype can require gradients, got %s",
               dtype_name(t->dtype()));
      t->requires_grad = true;
    }
    return t.take()->object();
  });
}

PyObject* py_from_data(PyObject*, PyObject* args) {
  PyObject *data, *dtype;
  int copy;
  if (!PyArg_ParseTuple(args, "OOp", &data, &dtype, &copy)) return nullptr;
  return guarded([&] { return tensor_from_data(data, dtype_or_none(dtype, "as_tensor"), copy).take()->object(); });
}

PyObject* py_set_default_dtype(PyObject*, PyObject* o) {
  if (!is_dtype(o) || !is_float(dtype_of(o))) {
    PyErr_Format(PyExc_TypeError,
                 "set_default_dtype(): only floating-point types are supported as the default type, got %R", o);
    return nullptr;
  }
  default_dtype = dtype_of(o);
  Py_RETURN_NONE;
}
PyObject* py_get_default_dtype(PyObject*, PyObject*) { return dtype_object(default_dtype); }

PyObject* py_promote_types(PyObject*, PyObject* args) {
  PyObject *a, *b;
  if (!PyArg_ParseTuple(args, "O!O!", &DTypeType, &a, &DTypeType, &b)) return nullptr;
  return dtype_object(promote(dtype_of(a), dtype_of(b)));
}
PyObject* py_can_cast(PyObject*, PyObject* args) {
  PyObject *a, *b;
  if (!PyArg_ParseTuple(args, "O!O!", &DTypeType, &a, &DTypeType, &b)) return nullptr;
  return PyBool_FromLong(can_cast(dtype_of(a), dtype_of(b)));
}
PyObject* py_result_type(PyObject*, PyObject* args) {
  PyObject *a, *b;
  if (!PyArg_ParseTuple(args, "OO", &a, &b)) return nullptr;
  return guarded([&]() -> PyObject* {
    Value v[2];
    PyObject* objects[2] = {a, b};
    for (int i = 0; i < 2; i++) {
      if (is_tensor(objects[i]))
        v[i] = Value::of(tensor_of(objects[i]));
      else
        RL_CHECK(scalar_from(objects[i], v[i]), Type, "result_type(): argument %d must be a Tensor or a number, not %s",
                 i + 1, Py_TYPE(objects[i])->tp_name);
    }
    return dtype_object(result_type(v, 2));
  });
}
PyObject* py_set_num_threads(PyObject*, PyObject* o) {
  long n = PyLong_AsLong(o);
  if (PyErr_Occurred()) return nullptr;
  if (n < 1) {
    PyErr_Format(PyExc_RuntimeError, "set_num_threads expects a positive integer, got %ld", n);
    return nullptr;
  }
  if (rl_set_num_threads(static_cast<int>(n)) != RL_OK) {
    PyErr_SetString(PyExc_RuntimeError, rl_last_error());
    return nullptr;
  }
  Py_RETURN_NONE;
}
PyObject* py_get_num_threads(PyObject*, PyObject*) { return PyLong_FromLong(rl_get_num_threads()); }
PyObject* py_cpu_level(PyObject*, PyObject*) { return PyUnicode_FromString(rl_cpu_level()); }
PyObject* py_memory_stats(PyObject*, PyObject*) {
  rl_memory_stats s;
  rl_memory_get_stats(&s);
  return Py_BuildValue("{s:L,s:L,s:L,s:L,s:L,s:L,s:L}", "allocated_bytes", s.allocated_bytes, "allocated_blocks",
                       s.allocated_blocks, "peak_allocated_bytes", s.peak_allocated_bytes, "reserved_bytes",
                       s.reserved_bytes, "cached_blocks", s.cached_blocks, "allocations", s.allocations, "cache_hits",
                       s.cache_hits);
}
PyObject* py_empty_cache(PyObject*, PyObject*) {
  rl_memory_empty_cache();
  Py_RETURN_NONE;
}
PyObject* py_reset_peak(PyObject*, PyObject*) {
  rl_memory_reset_peak();
  Py_RETURN_NONE;
}
PyObject* py_set_memory_limit(PyObject*, PyObject* o) {
  long long n = PyLong_AsLongLong(o);
  if (PyErr_Occurred()) return nullptr;
  rl_memory_set_limit(n);
  Py_RETURN_NONE;
}
PyObject* py_set_parameter_type(PyObject*, PyObject* type) {
  parameter_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(type));
  Py_RETURN_NONE;
}
PyObject* py_set_disabled(PyObject*, PyObject* f) {
  Py_XSETREF(disabled_torch_function, Py_NewRef(f));
  Py_RETURN_NONE;
}
PyObject* py_swap_overrides_disabled(PyObject*, PyObject* on) {
  bool old = thread_state.overrides_disabled;
  thread_state.overrides_disabled = on == Py_True;
  return PyBool_FromLong(old);
}
PyObject* py_add_mode_depth(PyObject*, PyObject* by) {
  thread_state.mode_depth += static_cast<int>(PyLong_AsLong(by));
  return PyLong_FromLong(thread_state.mode_depth);
}
PyObject* py_set_mode_depth(PyObject*, PyObject* to) {
  int old = thread_state.mode_depth;
  thread_state.mode_depth = static_cast<int>(PyLong_AsLong(to));
  return PyLong_FromLong(old);
}

// _from_storage(storage, dtype, offset, size, stride): a tensor over a storage; the geometry must lie within it
PyObject* py_from_storage(PyObject*, PyObject* args) {
  PyObject *storage, *dtype, *size, *stride;
  long long offset;
  if (!PyArg_ParseTuple(args, "OO!LO!O!", &storage, &DTypeType, &dtype, &offset, &PyTuple_Type, &size, &PyTuple_Type,
                        &stride))
    return nullptr;
  return guarded([&]() -> PyObject* {
    Storage* s = storage_from_object(storage);
    RL_CHECK(s, Type, "_from_storage: expected UntypedStorage, got %s", Py_TYPE(storage)->tp_name);
    return over_checked(s, dtype_of(dtype), offset, size, stride).take()->object();
  });
}
PyObject* py_set_flush_denormal(PyObject*, PyObject* on) {
#if defined(__SSE__)
  constexpr unsigned kFlush = 0x8040;  // results and operands
  unsigned control = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(on == Py_True ? control | kFlush : control & ~kFlush);
  Py_RETURN_TRUE;
#else
  (void)on;
  Py_RETURN_FALSE;
#endif
}
// _lend(tensor) -> (address, read-only): for an array of another library, whose address must stay right
PyObject* py_lend(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    RL_CHECK(is_tensor(o), Type, "_lend: expected Tensor, got %s", Py_TYPE(o)->tp_name);
    Tensor* t = tensor_of(o);
    t->storage->resizable = false;
    return Py_BuildValue("KO", static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(t->data())),
                         t->storage->read_only ? Py_True : Py_False);
  });
}
PyObject* py_swap_default_device(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Device old = default_device;
    default_device = device_from_object(o);
    return device_object(old);
  });
}
// _become(self, view): self takes over a view's geometry and its place in the graph (squeeze_, transpose_ ...)
PyObject* py_become(PyObject*, PyObject* args) {
  PyObject *object, *view;
  if (!PyArg_ParseTuple(args, "OO", &object, &view)) return nullptr;
  return guarded([&]() -> PyObject* {
    Tensor *self = tensor_of(object), *from = tensor_of(view);
    bool recorded = thread_state.grad_mode && needs_grad(self);
    check_inplace(self, ops::alias, recorded);
    self->desc.data = from->desc.data;
    set_geometry(self, from->ndim(), from->shape(), from->strides());
    if (recorded) adopt_history(self, from);
    return Py_NewRef(object);
  });
}
PyObject* py_get_default_device(PyObject*, PyObject*) { return device_object(default_device); }
// _empty(size, dtype, device): for the legacy constructor
PyObject* py_empty(PyObject*, PyObject* args) {
  PyObject *size, *dtype, *device;
  if (!PyArg_ParseTuple(args, "O!O!O", &PyTuple_Type, &size, &DTypeType, &dtype, &device)) return nullptr;
  return guarded([&]() -> PyObject* {
    Dims d = dims_from(size, "Tensor()");
    return empty(dtype_of(dtype), d, device == Py_None ? default_device : device_from_object(device)).take()->object();
  });
}

}  // namespace

PyMethodDef data_methods[] = {
    {"_become", py_become, METH_VARARGS, nullptr},
    {"_from_storage", py_from_storage, METH_VARARGS, nullptr},
    {"_set_flush_denormal", py_set_flush_denormal, METH_O, nullptr},
    {"_lend", py_lend, METH_O, nullptr},
    {"_swap_default_device", py_swap_default_device, METH_O, nullptr},
    {"_get_default_device", py_get_default_device, METH_NOARGS, nullptr},
    {"_empty", py_empty, METH_VARARGS, nullptr},
    {"tensor", as_method(py_tensor), METH_VARARGS | METH_KEYWORDS,
     "tensor(data, *, dtype=None, device=None, requires_grad=False): a new tensor with a copy of the data."},
    {"_over_buffer", py_over_buffer, METH_O, nullptr},
    {"_from_data", py_from_data, METH_VARARGS, nullptr},
    {"set_default_dtype", py_set_default_dtype, METH_O, "The floating point dtype of tensors made from Python floats."},
    {"get_default_dtype", py_get_default_dtype, METH_NOARGS,
     "The floating point dtype of tensors made from Python floats."},
    {"promote_types", py_promote_types, METH_VARARGS, "The smallest dtype that both convert to."},
    {"can_cast", py_can_cast, METH_VARARGS, "Whether the first dtype converts to the second by PyTorch's rules."},
    {"result_type", py_result_type, METH_VARARGS, "The dtype an arithmetic operation on these two would have."},
    {"set_num_threads", py_set_num_threads, METH_O, "At most this many threads run one operation."},
    {"get_num_threads", py_get_num_threads, METH_NOARGS, "How many threads may run one operation."},
    {"_cpu_level", py_cpu_level, METH_NOARGS, nullptr},
    {"_memory_stats", py_memory_stats, METH_NOARGS, nullptr},
    {"_memory_empty_cache", py_empty_cache, METH_NOARGS, nullptr},
    {"_memory_reset_peak", py_reset_peak, METH_NOARGS, nullptr},
    {"_memory_set_limit", py_set_memory_limit, METH_O, nullptr},
    {"_set_parameter_type", py_set_parameter_type, METH_O, nullptr},
    {"_set_disabled_torch_function", py_set_disabled, METH_O, nullptr},
    {"_swap_overrides_disabled", py_swap_overrides_disabled, METH_O, nullptr},
    {"_add_mode_depth", py_add_mode_depth, METH_O, nullptr},
    {"_set_mode_depth", py_set_mode_depth, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef exchange_methods[] = {
    {RL_METHOD("tolist", py_tolist), METH_NOARGS, "The elements as nested lists of Python numbers."},
    {RL_METHOD("item", py_item), METH_NOARGS, "The only element as a Python number."},
    {RL_METHOD("set_", py_set), METH_VARARGS | METH_KEYWORDS,
     "Makes the tensor show other memory: of a tensor, or of a storage with offset, size and stride."},
    {RL_METHOD("resize_", py_resize), METH_FASTCALL | METH_KEYWORDS, "Changes the shape in place; what fits is kept."},
    {nullptr, nullptr, 0, nullptr}};

bool data_init(PyObject* module) {
  return PyModule_AddFunctions(module, data_methods) == 0 &&
         PyModule_AddObject(module, "inf", PyFloat_FromDouble(HUGE_VAL)) == 0 &&
         PyModule_AddObject(module, "nan", PyFloat_FromDouble(NAN)) == 0;
}

}  // namespace rl
