#include "tensor.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <new>

#include "../autograd/autograd.h"

namespace rl {

// ---------------------------------------------------------------- errors

void throw_error(ErrorKind kind, const char* format, ...) {
  va_list list;
  va_start(list, format);
  va_list again;
  va_copy(again, list);
  int n = std::vsnprintf(nullptr, 0, format, list);
  va_end(list);
  std::string text(static_cast<size_t>(n > 0 ? n : 0), '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  throw Error{kind, std::move(text)};
}

void check_status(rl_status status) {
  switch (status) {
    case RL_OK:
      return;
    case RL_VALUE_ERROR:
      throw Error{ErrorKind::Value, rl_last_error()};
    case RL_TYPE_ERROR:
      throw Error{ErrorKind::NotImplemented, rl_last_error()};
    case RL_INDEX_ERROR:
      throw Error{ErrorKind::Index, rl_last_error()};
    case RL_MEMORY_ERROR:
      throw Error{ErrorKind::Runtime, rl_last_error()};
    case RL_RUNTIME_ERROR:
      break;
  }
  throw Error{ErrorKind::Runtime, rl_last_error()};
}

PyObject* raise_current() {
  try {
    throw;
  } catch (const PythonError&) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "an error was signalled without an exception");
  } catch (const Error& e) {
    PyObject* type = PyExc_RuntimeError;
    switch (e.kind) {
      case ErrorKind::Runtime:
        break;
      case ErrorKind::Type:
        type = PyExc_TypeError;
        break;
      case ErrorKind::Value:
        type = PyExc_ValueError;
        break;
      case ErrorKind::Index:
        type = PyExc_IndexError;
        break;
      case ErrorKind::Memory:
        type = PyExc_MemoryError;
        break;
      case ErrorKind::NotImplemented:
        type = PyExc_NotImplementedError;
        break;
      case ErrorKind::ZeroDivision:
        type = PyExc_ZeroDivisionError;
        break;
      case ErrorKind::Attribute:
        type = PyExc_AttributeError;
        break;
      case ErrorKind::Buffer:
        type = PyExc_BufferError;
        break;
      case ErrorKind::Overflow:
        type = PyExc_OverflowError;
        break;
    }
    PyErr_SetString(type, e.message.c_str());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return nullptr;
}

// ---------------------------------------------------------------- dtypes

DType default_dtype = RL_FLOAT32;

const char* dtype_name(DType d) { return rl_dtype_name(d); }

const char* dtype_title(DType d) {
  static const char* const titles[] = {"Bool",         "Byte",          "Char",       "Short", "Int",
                                       "Long",         "Half",          "BFloat16",   "Float", "Double",
                                       "ComplexFloat", "ComplexDouble", "ComplexHalf"};
  return d < RL_DTYPE_COUNT ? titles[d] : "Undefined";
}

const char* device_name(uint8_t device) { return device == static_cast<uint8_t>(Device::Meta) ? "meta" : "cpu"; }

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (is_complex(a) || is_complex(b)) return complex_dtype(promote(real_dtype(a), real_dtype(b)));
  if (a > b) std::swap(a, b);  // b is the later in the order of the enum
  if (a == RL_BOOL) return b;
  if (b <= RL_INT64) {
    if (a == RL_UINT8) return b == RL_INT8 ? RL_INT16 : b;
    return b;
  }
  if (a <= RL_INT64) return b;  // integer with float
  if (a == RL_FLOAT16 && b == RL_BFLOAT16) return RL_FLOAT32;
  return b;
}

bool can_cast(DType from, DType to) {
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_float(from) && is_integral_or_bool(to)) return false;
  if (from != RL_BOOL && to == RL_BOOL) return false;
  return true;
}

// ---------------------------------------------------------------- storage

namespace {

constexpr size_t kHeader = sizeof(Storage);
static_assert(kHeader == 64, "the header keeps the data behind it aligned to 64 bytes");

void init_storage(Storage* s, void* data, size_t nbytes) {
  new (&s->references) std::atomic<int64_t>(1);
  s->version = 0;
  s->device = 0;
  s->resizable = true;
  s->read_only = false;
  s->shared_memory = false;
  s->data = data;
  s->nbytes = nbytes;
  s->deleter = nullptr;
  s->context = nullptr;
  s->python = nullptr;
}

Storage* allocate_header() {
  auto* s = static_cast<Storage*>(rl_allocate(kHeader));
  if (!s) throw_error(ErrorKind::Runtime, "%s", rl_last_error());
  return s;
}

inline bool inline_data(const Storage* s) { return s->data == reinterpret_cast<const char*>(s) + kHeader; }

// A place that is never read or written: offsets of meta tensors are computed from it.
char* const kMetaBase = reinterpret_cast<char*>(uintptr_t{1} << 40);

}  // namespace

Storage* storage_new(size_t nbytes, Device device) {
  if (RL_UNLIKELY(device != Device::CPU)) {
    Storage* s = allocate_header();
    init_storage(s, kMetaBase, nbytes);
    s->device = static_cast<uint8_t>(device);
    s->deleter = [](Storage* dying) { rl_deallocate(dying); };
    return s;
  }
  RL_CHECK(nbytes <= SIZE_MAX / 4, Runtime, "out of memory: %zu bytes asked for", nbytes);
  auto* s = static_cast<Storage*>(rl_allocate(kHeader + nbytes));
  if (RL_UNLIKELY(!s)) throw_error(ErrorKind::Runtime, "%s", rl_last_error());
  init_storage(s, reinterpret_cast<char*>(s) + kHeader, nbytes);
  return s;
}

Storage* storage_borrow(void* data, size_t nbytes, void (*deleter)(Storage*), void* context, bool read_only) {
  Storage* s = allocate_header();
  init_storage(s, data, nbytes);
  s->resizable = false;
  s->read_only = read_only;
  s->deleter = deleter;
  s->context = context;
  return s;
}

namespace {

void release_alias(Storage* dying) {
  release(static_cast<Storage*>(dying->context));
  rl_deallocate(dying);
}

Storage* root_of(Storage* s) {
  while (s->deleter == release_alias) s = static_cast<Storage*>(s->context);
  return s;
}

// Tensors hold the address of their first element. When a storage moves, which is rare, those over it are looked for
// among the objects that the garbage collector knows.
void move_storage(Storage* s, void* fresh, size_t nbytes) {
  char *from = static_cast<char*>(s->data), *to = static_cast<char*>(fresh);
  if (s->references.load(std::memory_order_relaxed) > 1) {
    PyObject* gc = PyImport_ImportModule("gc");
    PyObject* objects = gc ? PyObject_CallMethod(gc, "get_objects", nullptr) : nullptr;
    Py_XDECREF(gc);
    if (!objects) throw PythonError();
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(objects); i++) {
      PyObject* o = PyList_GET_ITEM(objects, i);
      if (!PyObject_TypeCheck(o, &TensorType)) continue;
      auto* t = reinterpret_cast<Tensor*>(o);
      if (!t->storage || root_of(t->storage) != s) continue;
      t->desc.data = to + (t->data() - from);
      for (Storage* alias = t->storage; alias != s; alias = static_cast<Storage*>(alias->context)) {
        alias->data = to;
        alias->nbytes = nbytes;
      }
    }
    Py_DECREF(objects);
  }
  s->data = fresh;
  s->nbytes = nbytes;
}

}  // namespace

Storage* storage_alias(Storage* storage) {
  retain(storage);
  Storage* s = storage_borrow(storage->data, storage->nbytes, release_alias, storage, storage->read_only);
  s->device = storage->device;
  return s;
}

void storage_resize(Storage* s, size_t nbytes) {
  if (s->device) {
    s->nbytes = nbytes;
    return;
  }
  RL_CHECK(s->resizable, Runtime, "Trying to resize storage that is not resizable");
  if (nbytes <= s->nbytes) {  // the memory stays, since tensors may still show all of it
    s->nbytes = nbytes;
    return;
  }
  void* fresh = rl_allocate(nbytes);
  if (!fresh) throw_error(ErrorKind::Runtime, "%s", rl_last_error());
  void* old = inline_data(s) ? nullptr : s->data;
  if (s->data) std::memcpy(fresh, s->data, s->nbytes);
  move_storage(s, fresh, nbytes);
  rl_deallocate(old);
}

namespace {
struct Former {
  size_t mapped;
  void* block;
  Storage* lender;
};
}  // namespace

void storage_share(Storage* shown) {
  Storage* s = root_of(shown);
  if (!s->shared_memory && s->device != static_cast<uint8_t>(Device::Meta) && s->nbytes) {
    void* fresh = ::mmap(nullptr, s->nbytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    RL_CHECK(fresh != MAP_FAILED, Runtime, "share_memory_: no shared memory of %zu bytes: %s", s->nbytes,
             std::strerror(errno));
    std::memcpy(fresh, s->data, s->nbytes);
    // Arrays of other libraries may still show the former memory: it lives as long as the storage.
    auto* former = new Former{s->nbytes, nullptr, nullptr};
    if (s->deleter)
      former->lender = storage_borrow(s->data, s->nbytes, s->deleter, s->context);
    else if (!inline_data(s))
      former->block = s->data;
    move_storage(s, fresh, s->nbytes);
    s->context = former;
    s->deleter = [](Storage* dying) {
      auto* held = static_cast<Former*>(dying->context);
      ::munmap(dying->data, held->mapped);
      rl_deallocate(held->block);
      if (held->lender) release(held->lender);
      delete held;
      rl_deallocate(dying);
    };
    s->read_only = false;
  }
  s->shared_memory = true;
  s->resizable = false;
}

bool storage_is_shared(const Storage* s) { return root_of(const_cast<Storage*>(s))->shared_memory; }

void storage_free(Storage* s) {
  if (s->deleter) {
    s->deleter(s);
    return;
  }
  if (RL_UNLIKELY(!inline_data(s))) rl_deallocate(s->data);
  rl_deallocate(s);
}

// ---------------------------------------------------------------- geometry

void Dims::push(int64_t x) {
  RL_CHECK(n < kMaxDims, Runtime, "tensors have at most %d dimensions", kMaxDims);
  v[n++] = x;
}

int64_t count_elements(int ndim, const int64_t* shape) {
  int64_t n = 1;
  bool zero = false, overflow = false;
  for (int i = 0; i < ndim; i++) {
    RL_CHECK(shape[i] >= 0, Runtime, "Trying to create tensor with negative dimension %lld: %s",
             static_cast<long long>(shape[i]), shape_text(ndim, shape).c_str());
    zero |= shape[i] == 0;
    overflow |= !zero && __builtin_mul_overflow(n, shape[i], &n);
  }
  if (zero) return 0;
  RL_CHECK(!overflow, Runtime, "numel: integer multiplication overflow: a tensor of shape %s has too many elements",
           shape_text(ndim, shape).c_str());
  return n;
}

std::string shape_text(int ndim, const int64_t* shape) {
  std::string s = "[";
  for (int i = 0; i < ndim; i++) {
    if (i) s += ", ";
    s += std::to_string(shape[i]);
  }
  return s + "]";
}

bool is_contiguous(int ndim, const int64_t* shape, const int64_t* strides) {
  int64_t expected = 1;
  for (int i = ndim - 1; i >= 0; i--) {
    if (shape[i] == 1) continue;
    if (shape[i] == 0) return true;
    if (strides[i] != expected) {
      for (int j = i - 1; j >= 0; j--)
        if (shape[j] == 0) return true;
      return false;
    }
    expected *= shape[i];
  }
  return true;
}

void contiguous_strides(int ndim, const int64_t* shape, int64_t* strides) {
  int64_t s = 1;
  for (int i = ndim - 1; i >= 0; i--) {
    strides[i] = s;
    s *= shape[i] > 1 ? shape[i] : 1;
  }
}

namespace {

// Dim numbers sorted by stride, outermost first (stable for equal strides).
int sorted_dims(const Tensor* t, int* order) {
  int n = 0;
  for (int i = 0; i < t->ndim(); i++)
    if (t->size(i) != 1) order[n++] = i;
  for (int i = 1; i < n; i++)
    for (int j = i; j > 0 && t->stride(order[j - 1]) < t->stride(order[j]); j--) std::swap(order[j - 1], order[j]);
  return n;
}

}  // namespace

bool is_dense_non_overlapping(const Tensor* t) {
  if (t->contiguous) return true;
  int order[kMaxDims];
  int n = sorted_dims(t, order);
  int64_t expected = 1;
  for (int i = n - 1; i >= 0; i--) {
    if (t->stride(order[i]) != expected) return false;
    expected *= t->size(order[i]);
  }
  return true;
}

bool has_internal_overlap(const Tensor* t) {
  if (t->contiguous || t->numel <= 1) return false;
  for (int i = 0; i < t->ndim(); i++)
    if (t->size(i) > 1 && t->stride(i) == 0) return true;
  return false;
}

bool may_share_memory(const Tensor* a, const Tensor* b) {
  if (a->numel == 0 || b->numel == 0 || a->is_meta() || b->is_meta()) return false;
  auto range = [](const Tensor* t, const char*& low, const char*& high) {
    low = high = t->data();
    int64_t size = itemsize(t->dtype());
    for (int i = 0; i < t->ndim(); i++) (t->stride(i) < 0 ? low : high) += (t->size(i) - 1) * t->stride(i) * size;
    high += size;
  };
  const char *al, *ah, *bl, *bh;
  range(a, al, ah);
  range(b, bl, bh);
  return al < bh && bl < ah;
}

int wrap_dim(int64_t dim, int ndim) {
  int64_t limit = ndim > 0 ? ndim : 1;
  RL_CHECK(dim >= -limit && dim < limit, Index,
           "Dimension out of range (expected to be in range of [%lld, %lld], but got %lld)",
           static_cast<long long>(-limit), static_cast<long long>(limit - 1), static_cast<long long>(dim));
  return static_cast<int>(dim < 0 ? dim + limit : dim);
}

// ---------------------------------------------------------------- tensors

namespace {

// Dead tensors, kept with their Python header: making one costs a few nanoseconds.
constexpr int kFreeTensors = 256;
Tensor* free_tensors[kFreeTensors];
int free_tensor_count = 0;

Tensor* allocate_tensor() {
  Tensor* t;
  if (RL_LIKELY(free_tensor_count > 0)) {
    t = free_tensors[--free_tensor_count];
    Py_SET_REFCNT(reinterpret_cast<PyObject*>(t), 1);
  } else {
    t = PyObject_GC_New(Tensor, &TensorType);
    if (!t) throw PythonError();
  }
  return t;
}

inline void set_dims(Tensor* t, int ndim, const int64_t* shape, const int64_t* strides) {
  int64_t* block = t->inline_dims;
  if (RL_UNLIKELY(ndim > kInlineDims)) {
    RL_CHECK(ndim <= kMaxDims, Runtime, "tensors have at most %d dimensions, got %d", kMaxDims, ndim);
    block = static_cast<int64_t*>(PyMem_Malloc(sizeof(int64_t) * 2 * static_cast<size_t>(ndim)));
    if (!block) throw std::bad_alloc();
    t->owned_dims = static_cast<uint32_t>(ndim);
  }
  for (int i = 0; i < ndim; i++) {
    block[i] = shape[i];
    block[ndim + i] = strides[i];
  }
  t->desc.ndim = ndim;
  t->desc.shape = block;
  t->desc.strides = block + ndim;
}

// A tensor without geometry yet; takes over a reference to the storage.
Tensor* bare_tensor(Storage* storage, DType dtype, char* data) {
  Tensor* t = allocate_tensor();
  t->dict = nullptr;
  t->weak_references = nullptr;
  t->storage = storage;
  t->desc.data = data;
  t->desc.dtype = static_cast<uint8_t>(dtype);
  t->desc.device = storage->device;
  t->desc.reserved[0] = 0;
  t->requires_grad = false;
  t->inference = false;
  t->retains_grad = false;
  t->saved = false;
  t->creation = Creation::Default;
  t->output_index = 0;
  t->view_version = 0;
  t->owned_dims = 0;
  t->grad_fn = nullptr;
  t->grad = nullptr;
  t->base = nullptr;
  t->meta = nullptr;
  return t;
}

}  // namespace

TensorRef empty(DType dtype, int ndim, const int64_t* shape, Device device) {
  int64_t n = 1;
  if (RL_LIKELY(ndim <= kInlineDims)) {
    for (int i = 0; i < ndim; i++) {
      if (RL_UNLIKELY(shape[i] < 0 || shape[i] > (int64_t{1} << 31) || n > (int64_t{1} << 31))) {
        n = count_elements(ndim, shape);
        break;
      }
      n *= shape[i];
    }
  } else {
    n = count_elements(ndim, shape);
  }
  int64_t bytes;
  RL_CHECK(!__builtin_mul_overflow(n, itemsize(dtype), &bytes), Runtime,
           "Storage size calculation overflowed with sizes=%s and dtype %s", shape_text(ndim, shape).c_str(),
           dtype_name(dtype));
  Storage* storage = storage_new(static_cast<size_t>(bytes), device);
  Tensor* t = bare_tensor(storage, dtype, static_cast<char*>(storage->data));
  int64_t strides[kMaxDims];
  if (ndim <= kMaxDims) contiguous_strides(ndim, shape, strides);
  t->numel = n;
  t->contiguous = true;
  t->inference = thread_state.inference_mode;
  set_dims(t, ndim, shape, strides);
  PyObject_GC_Track(t->object());
  return TensorRef::own(t);
}

TensorRef empty_strided(DType dtype, int ndim, const int64_t* shape, const int64_t* strides, Device device) {
  int64_t n = count_elements(ndim, shape);
  int64_t extent = n > 0 ? 1 : 0;
  for (int i = 0; i < ndim && n > 0; i++) {
    RL_CHECK(strides[i] >= 0, Runtime, "empty_strided: strides must not be negative, got %s",
             shape_text(ndim, strides).c_str());
    int64_t step;
    RL_CHECK(!__builtin_mul_overflow(shape[i] - 1, strides[i], &step) && !__builtin_add_overflow(extent, step, &extent),
             Runtime, "Storage size calculation overflowed with sizes=%s and strides=%s",
             shape_text(ndim, shape).c_str(), shape_text(ndim, strides).c_str());
  }
  int64_t bytes;
  RL_CHECK(!__builtin_mul_overflow(extent, itemsize(dtype), &bytes), Runtime,
           "Storage size calculation overflowed with sizes=%s and strides=%s", shape_text(ndim, shape).c_str(),
           shape_text(ndim, strides).c_str());
  Storage* storage = storage_new(static_cast<size_t>(bytes), device);
  TensorRef t = over_storage(storage, dtype, ndim, shape, strides, static_cast<char*>(storage->data));
  release(storage);
  return t;
}

TensorRef empty_preserve(const Tensor* t, DType dtype) {
  if (t->contiguous) {
    // Dims of size 1 may have any stride, and keep it.
    int64_t expected = 1;
    bool usual = true;
    for (int i = t->ndim() - 1; i >= 0; expected *= std::max<int64_t>(t->size(i), 1), i--)
      usual = usual && t->stride(i) == expected;
    if (usual) return empty(dtype, t->ndim(), t->shape(), t->device());
  }
  if (is_dense_non_overlapping(t)) return empty_strided(dtype, t->ndim(), t->shape(), t->strides(), t->device());
  // Keep the order of the dims, as PyTorch does for strided inputs that are not dense.
  int order[kMaxDims];
  const int n = t->ndim();
  for (int i = 0; i < n; i++) {
    if (t->size(i) > 1 && t->stride(i) == 0) return empty(dtype, n, t->shape(), t->device());
    order[i] = i;
  }
  std::stable_sort(order, order + n, [&](int a, int b) { return t->stride(a) > t->stride(b); });
  int64_t strides[kMaxDims], step = 1;
  for (int i = n - 1; i >= 0; i--) {
    strides[order[i]] = step;
    step *= t->size(order[i]);
  }
  return empty_strided(dtype, n, t->shape(), strides, t->device());
}

TensorRef over_storage(Storage* storage, DType dtype, int ndim, const int64_t* shape, const int64_t* strides,
                       char* data) {
  retain(storage);
  Tensor* t = bare_tensor(storage, dtype, data);
  t->numel = 1;
  for (int i = 0; i < ndim; i++) t->numel *= shape[i];
  t->contiguous = is_contiguous(ndim, shape, strides);
  t->inference = thread_state.inference_mode;
  set_dims(t, ndim, shape, strides);
  PyObject_GC_Track(t->object());
  return TensorRef::own(t);
}

TensorRef view_dtype(Tensor* self, DType dtype, const Dims& shape, const Dims& strides, char* data) {
  TensorRef t = over_storage(self->storage, dtype, shape.n, shape.v, strides.v, data);
  t->set_lazy(self->lazy());
  t->inference = self->inference;
  Tensor* base = self->base ? self->base : self;
  retain(base);
  t->base = base;
  t->creation = self->creation;
  t->view_version = self->storage->version;
  return t;
}

TensorRef make_view(Tensor* self, int ndim, const int64_t* shape, const int64_t* strides, char* data) {
  TensorRef t = over_storage(self->storage, self->dtype(), ndim, shape, strides, data);
  t->set_lazy(self->lazy());
  t->inference = self->inference;
  Tensor* base = self->base ? self->base : self;
  retain(base);
  t->base = base;
  t->creation = self->creation;
  t->view_version = self->storage->version;
  return t;
}

TensorRef shallow_copy(const Tensor* self) {
  TensorRef t = over_storage(self->storage, self->dtype(), self->ndim(), self->shape(), self->strides(), self->data());
  t->set_lazy(self->lazy());
  t->inference = self->inference;
  if (RL_UNLIKELY(self->is_wrapped())) copy_wrapped(t.get(), self);
  return t;
}

void set_geometry(Tensor* t, int ndim, const int64_t* shape, const int64_t* strides) {
  // The arrays may be the tensor's own: copy before the block is replaced.
  Dims new_shape(ndim, shape), new_strides(ndim, strides);
  int64_t* old = t->owned_dims ? const_cast<int64_t*>(t->desc.shape) : nullptr;
  t->owned_dims = 0;
  set_dims(t, ndim, new_shape.v, new_strides.v);
  if (old) PyMem_Free(old);
  t->numel = count_elements(ndim, new_shape.v);
  t->contiguous = is_contiguous(ndim, new_shape.v, new_strides.v);
}

void bump_version(Tensor* t) { t->storage->version++; }

// ---------------------------------------------------------------- life cycle of the Python object

void tensor_dealloc(PyObject* object) {
  auto* t = reinterpret_cast<Tensor*>(object);
  PyTypeObject* type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  if (RL_UNLIKELY(t->weak_references != nullptr)) PyObject_ClearWeakRefs(object);
  Py_CLEAR(t->dict);
  if (t->grad_fn || t->grad || t->base || t->meta) autograd_clear(t);
  if (t->storage) release(t->storage);
  if (RL_UNLIKELY(t->owned_dims)) PyMem_Free(const_cast<int64_t*>(t->desc.shape));
  if (RL_LIKELY(type == &TensorType) && free_tensor_count < kFreeTensors) {
    free_tensors[free_tensor_count++] = t;
    return;
  }
  type->tp_free(object);  // a Python subclass's own dealloc, which calls this one, drops the reference to the type
}

// A tensor of a Python subclass that takes over `from`'s storage and geometry. Used by Tensor.__new__ and as_subclass.
Tensor* tensor_of_type(PyTypeObject* type, const Tensor* from) {
  PyObject* object = type->tp_alloc(type, 0);  // zeroed and tracked
  if (!object) throw PythonError();
  auto* t = reinterpret_cast<Tensor*>(object);
  retain(from->storage);
  t->storage = from->storage;
  t->desc.data = from->desc.data;
  t->desc.dtype = from->desc.dtype;
  t->desc.device = from->desc.device;
  t->set_lazy(from->lazy());
  t->numel = from->numel;
  t->contiguous = from->contiguous;
  t->inference = from->inference;
  set_dims(t, from->ndim(), from->shape(), from->strides());
  return t;
}

int tensor_traverse(PyObject* object, visitproc visit, void* arg) {
  auto* t = reinterpret_cast<Tensor*>(object);
  Py_VISIT(t->dict);
  return autograd_traverse(t, visit, arg);
}

int tensor_clear(PyObject* object) {
  auto* t = reinterpret_cast<Tensor*>(object);
  Py_CLEAR(t->dict);
  autograd_clear(t);
  return 0;
}

}  // namespace rl
