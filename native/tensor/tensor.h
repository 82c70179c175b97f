// The Tensor object: a CPython type whose struct holds the tensor itself (descriptor, storage, autograd state).
// Everything here expects the GIL to be held; kernels may run without it, since they see only descriptors.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <atomic>
#include <complex>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "rushlight.h"

#define RL_LIKELY(x) __builtin_expect(!!(x), 1)
#define RL_UNLIKELY(x) __builtin_expect(!!(x), 0)

namespace rl {

// ---------------------------------------------------------------- errors

enum class ErrorKind : uint8_t {
  Runtime,
  Type,
  Value,
  Index,
  Memory,
  NotImplemented,
  ZeroDivision,
  Attribute,
  Buffer,
  Overflow
};

// A user's mistake, turned into the Python exception of that kind at the border.
struct Error {
  ErrorKind kind;
  std::string message;
};
// A Python exception is already set; unwind to the border.
struct PythonError {};

[[noreturn]] void throw_error(ErrorKind kind, const char* format, ...) __attribute__((format(printf, 2, 3)));
// Throws when a kernel call failed, with the library's message prefixed by the operation in progress.
void check_status(rl_status status);
inline void check(rl_status status) {
  if (RL_UNLIKELY(status != RL_OK)) check_status(status);
}
#define RL_CHECK(condition, kind, ...)                                                    \
  do {                                                                                    \
    if (RL_UNLIKELY(!(condition))) ::rl::throw_error(::rl::ErrorKind::kind, __VA_ARGS__); \
  } while (0)
// Sets the Python exception for the C++ exception in flight; call in catch (...). Returns nullptr.
PyObject* raise_current();

// ---------------------------------------------------------------- dtypes and devices

using DType = rl_dtype;
// Wrapped: no memory of its own, like Meta; what it stands for is in its Wrapped record (native/autograd/transform.h).
enum class Device : uint8_t { CPU = 0, Meta = 1, Wrapped = 3 };

// How a tensor differs from what is in its memory, for tensors that are conjugated or negated when they are read. The
// bits lie in the descriptor's byte after the device, so that run_op sees both at once; kernels know nothing of them.
enum Lazy : uint8_t { kConjugated = 1, kNegated = 2 };

inline bool is_float(DType d) { return d >= RL_FLOAT16 && d <= RL_FLOAT64; }
inline bool is_complex(DType d) { return d >= RL_COMPLEX64; }
inline bool is_integral(DType d) { return d >= RL_UINT8 && d <= RL_INT64; }  // without bool
inline bool is_integral_or_bool(DType d) { return d <= RL_INT64; }
inline bool is_differentiable(DType d) { return d >= RL_FLOAT16; }
inline bool is_signed(DType d) { return d != RL_BOOL && d != RL_UINT8; }
inline int64_t itemsize(DType d) {
  constexpr uint8_t size[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 4};
  return size[d];
}
const char* dtype_name(DType d);   // "float32"
const char* dtype_title(DType d);  // "Float", as in PyTorch's messages
const char* device_name(uint8_t device);
DType promote(DType a, DType b);      // of two tensors of the same category
bool can_cast(DType from, DType to);  // PyTorch's can_cast: complex->real, float->int and non-bool->bool are refused
inline DType real_dtype(DType d) {
  return d == RL_COMPLEX64 ? RL_FLOAT32 : d == RL_COMPLEX128 ? RL_FLOAT64 : d == RL_COMPLEX32 ? RL_FLOAT16 : d;
}
inline DType complex_dtype(DType d) {
  return real_dtype(d) == RL_FLOAT64 ? RL_COMPLEX128 : real_dtype(d) == RL_FLOAT16 ? RL_COMPLEX32 : RL_COMPLEX64;
}
extern DType default_dtype;  // set_default_dtype
// The dtype float operations compute integer input in.
inline DType to_float_dtype(DType d) { return is_integral_or_bool(d) ? default_dtype : d; }

// ---------------------------------------------------------------- storage

// Reference counted memory. Small and ordinary blocks have their data right behind this header (one allocation).
struct alignas(64) Storage {
  std::atomic<int64_t> references;
  uint32_t version;  // counts in-place writes through any tensor that shares this storage
  uint8_t device;
  bool resizable;
  bool read_only;  // memory of somebody else that may not be written
  bool shared_memory;
  void* data;
  size_t nbytes;
  void (*deleter)(Storage*);  // frees data and the header; nullptr for the ordinary kind
  void* context;              // for the deleter
  PyObject* python;           // borrowed: the UntypedStorage object over this storage, if any
};
Storage* storage_new(size_t nbytes, Device device = Device::CPU);  // data not initialised; throws on failure
Storage* storage_borrow(void* data, size_t nbytes, void (*deleter)(Storage*), void* context, bool read_only = false);
Storage* storage_alias(Storage* storage);  // same memory, a version counter of its own (Tensor.data)
// Moves to larger memory where needed; all tensors over it follow.
void storage_resize(Storage* storage, size_t nbytes);
void storage_share(Storage* storage);  // moves to memory that processes forked from now on share
bool storage_is_shared(const Storage* storage);
void storage_free(Storage* storage);
inline void retain(Storage* s) { s->references.fetch_add(1, std::memory_order_relaxed); }
inline void release(Storage* s) {
  if (s->references.load(std::memory_order_acquire) == 1 || s->references.fetch_sub(1, std::memory_order_acq_rel) == 1)
    storage_free(s);
}

// ---------------------------------------------------------------- tensor

struct Node;          // native/autograd/node.h
struct AutogradMeta;  // hooks and other rare state, native/autograd/node.h
constexpr int kInlineDims = 5;
// Tensors may have more dimensions than kernels take (RL_MAX_DIMS), so that they can be made and refused like
// PyTorch's.
constexpr int kMaxDims = 96;

// How a view came to be; decides which in-place writes autograd can follow.
enum class Creation : uint8_t { Default = 0, MultiOutput, NoGrad, CustomFunction, Inference };

struct Tensor {
  PyObject_HEAD PyObject* dict;
  PyObject* weak_references;
  rl_tensor desc;  // data, shape, strides, ndim, dtype, device
  Storage* storage;
  int64_t numel;
  bool contiguous;     // row-major without gaps (always true for numel < 2 along the dims of size 1 rule)
  bool requires_grad;  // this is a leaf that requires grad, or grad_fn is set
  bool inference;
  bool retains_grad;
  bool saved;  // a node may have saved it, or a view of it
  Creation creation;
  uint32_t output_index;  // which output of grad_fn this is
  uint32_t view_version;  // storage version that grad_fn of a view was made for
  uint32_t owned_dims;    // capacity of a heap block for shape and strides, 0 when inline
  Node* grad_fn;          // owned
  Tensor* grad;           // owned
  Tensor* base;           // owned; the tensor this is a view of (never itself a view)
  AutogradMeta* meta;     // owned
  int64_t inline_dims[2 * kInlineDims];

  int ndim() const { return desc.ndim; }
  DType dtype() const { return static_cast<DType>(desc.dtype); }
  Device device() const { return static_cast<Device>(desc.device); }
  bool is_meta() const { return desc.device & static_cast<uint8_t>(Device::Meta); }  // no data to touch
  bool is_wrapped() const { return desc.device == static_cast<uint8_t>(Device::Wrapped); }
  uint8_t lazy() const { return desc.reserved[0]; }  // of Lazy
  void set_lazy(int bits) { desc.reserved[0] = static_cast<uint8_t>(bits); }
  // What an operation cannot overlook: the device, and above it the lazy bits.
  uint32_t marks() const { return desc.device | static_cast<uint32_t>(desc.reserved[0]) << 8; }
  int64_t size(int d) const { return desc.shape[d]; }
  int64_t stride(int d) const { return desc.strides[d]; }
  const int64_t* shape() const { return desc.shape; }
  const int64_t* strides() const { return desc.strides; }
  char* data() const { return static_cast<char*>(desc.data); }
  template <class T>
  T* as() const {
    return static_cast<T*>(desc.data);
  }
  int64_t offset() const { return (data() - static_cast<char*>(storage->data)) / itemsize(dtype()); }
  uint32_t version() const { return storage->version; }
  PyObject* object() { return reinterpret_cast<PyObject*>(this); }
};
extern PyTypeObject TensorType;
Tensor* tensor_of_type(PyTypeObject* type, const Tensor* from);  // a new object of a subclass over from's storage
void tensor_dealloc(PyObject* object);
int tensor_traverse(PyObject* object, visitproc visit, void* arg);
int tensor_clear(PyObject* object);

inline void retain(Tensor* t) { Py_INCREF(reinterpret_cast<PyObject*>(t)); }
inline void release(Tensor* t) { Py_DECREF(reinterpret_cast<PyObject*>(t)); }

// Owning reference.
template <class T>
class Ref {
 public:
  Ref() = default;
  static Ref own(T* p) {
    Ref r;
    r.p_ = p;
    return r;
  }  // takes over a reference
  static Ref share(T* p) {
    if (p) retain(p);
    return own(p);
  }  // adds one
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Ref(const Ref& o) : p_(o.p_) {
    if (p_) retain(p_);
  }
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() {
    if (p_) release(p_);
  }
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  T* take() { return std::exchange(p_, nullptr); }
  void reset() { Ref().swap(*this); }
  void swap(Ref& o) { std::swap(p_, o.p_); }

 private:
  T* p_ = nullptr;
};
using TensorRef = Ref<Tensor>;

// Shapes on the way to a tensor. Lives on the stack; holds up to kMaxDims.
struct Dims {
  int n = 0;
  int64_t v[kMaxDims];
  Dims() {}
  Dims(int count, const int64_t* from) : n(count) {
    if (count) std::memcpy(v, from, sizeof(int64_t) * static_cast<size_t>(count));
  }
  Dims(std::initializer_list<int64_t> list) {
    for (int64_t x : list) v[n++] = x;
  }
  void push(int64_t x);
  int64_t& operator[](int i) { return v[i]; }
  int64_t operator[](int i) const { return v[i]; }
};

int64_t count_elements(int ndim,
                       const int64_t* shape);  // throws RuntimeError when the product overflows, or for a negative size
std::string shape_text(int ndim, const int64_t* shape);  // "[2, 3]"
inline std::string shape_text(const Tensor* t) { return shape_text(t->ndim(), t->shape()); }

// Fresh row-major memory, not initialised. The result is owned by the caller.
TensorRef empty(DType dtype, int ndim, const int64_t* shape, Device device = Device::CPU);
inline TensorRef empty(DType dtype, const Dims& d, Device device = Device::CPU) {
  return empty(dtype, d.n, d.v, device);
}
inline TensorRef empty_like(const Tensor* t) { return empty(t->dtype(), t->ndim(), t->shape(), t->device()); }
TensorRef empty_strided(DType dtype, int ndim, const int64_t* shape, const int64_t* strides, Device device);
// Fresh memory laid out like `t` (its dim order is kept when it is dense, as PyTorch's preserve_format).
TensorRef empty_preserve(const Tensor* t, DType dtype);
// A tensor over existing storage; `data` is the address of the first element. No autograd link, no base.
TensorRef over_storage(Storage* storage, DType dtype, int ndim, const int64_t* shape, const int64_t* strides,
                       char* data);
// A view of `t`: shares its storage, keeps its base. `data` is the address of the first element.
TensorRef make_view(Tensor* t, int ndim, const int64_t* shape, const int64_t* strides, char* data);
inline TensorRef make_view(Tensor* t, const Dims& shape, const Dims& strides, int64_t offset_elements = 0) {
  return make_view(t, shape.n, shape.v, strides.v, t->data() + offset_elements * itemsize(t->dtype()));
}
TensorRef view_dtype(Tensor* t, DType dtype, const Dims& shape, const Dims& strides,
                     char* data);  // make_view with another dtype
// Same storage and geometry, no autograd state, not a view (Tensor.detach).
// A wrapped tensor's copy stands for the same.
TensorRef shallow_copy(const Tensor* t);
void set_geometry(Tensor* t, int ndim, const int64_t* shape, const int64_t* strides);  // also numel and contiguous
void bump_version(Tensor* t);

bool is_contiguous(int ndim, const int64_t* shape, const int64_t* strides);
void contiguous_strides(int ndim, const int64_t* shape, int64_t* strides);
bool is_dense_non_overlapping(const Tensor* t);
bool has_internal_overlap(const Tensor* t);  // some element may be reached by two indices (stride 0 and the like)
bool may_share_memory(const Tensor* a, const Tensor* b);  // their byte ranges within one storage intersect
inline bool same_shape(const Tensor* a, const Tensor* b) {
  if (a->ndim() != b->ndim()) return false;
  for (int i = 0; i < a->ndim(); i++)
    if (a->size(i) != b->size(i)) return false;
  return true;
}
// Wraps a negative dim; IndexError as PyTorch's when out of range (a 0-dim tensor accepts -1 and 0).
int wrap_dim(int64_t dim, int ndim);

}  // namespace rl
