// DLPack: tensors shared with other libraries through capsules, both ways.
#include <memory>

#include "../autograd/autograd.h"
#include "python.h"

namespace rl {
namespace {

// ---------------------------------------------------------------- the memory layout that DLPack fixes

struct DLDevice {
  int32_t type, index;
};
struct DLType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; nullptr: row-major
  uint64_t byte_offset;
};
struct Plain {  // capsules named "dltensor"
  DLTensor tensor;
  void* context;
  void (*deleter)(Plain*);
  static constexpr const char *kName = "dltensor", *kUsed = "used_dltensor";
};
struct Versioned {  // since version 1.0: capsules named "dltensor_versioned"
  uint32_t major, minor;
  void* context;
  void (*deleter)(Versioned*);
  uint64_t flags;
  DLTensor tensor;
  static constexpr const char *kName = "dltensor_versioned", *kUsed = "used_dltensor_versioned";
};
constexpr int32_t kCPU = 1;
constexpr uint64_t kReadOnly = 1, kIsCopied = 2;
enum Code : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBFloat = 4, kComplex = 5, kBool = 6 };

constexpr DLType kTypes[RL_DTYPE_COUNT] = {{kBool, 8, 1},    {kUInt, 8, 1},   {kInt, 8, 1},      {kInt, 16, 1},
                                           {kInt, 32, 1},    {kInt, 64, 1},   {kFloat, 16, 1},   {kBFloat, 16, 1},
                                           {kFloat, 32, 1},  {kFloat, 64, 1}, {kComplex, 64, 1}, {kComplex, 128, 1},
                                           {kComplex, 32, 1}};
static_assert(RL_BOOL == 0 && RL_UINT8 == 1 && RL_INT64 == 5 && RL_FLOAT16 == 6 && RL_BFLOAT16 == 7 &&
              RL_FLOAT64 == 9 && RL_COMPLEX64 == 10 && RL_COMPLEX128 == 11 && RL_COMPLEX32 == 12);

// ---------------------------------------------------------------- export

template <class Managed>
struct Export {
  Managed managed;
  Storage* storage;
  int64_t geometry[2 * kMaxDims];
};

// The consumer may be done on any thread, with or without the GIL.
template <class Managed>
void delete_export(Managed* managed) {
  if (!Py_IsInitialized()) return;  // after the interpreter's end the memory goes with the process
  PyGILState_STATE state = PyGILState_Ensure();
  auto* e = static_cast<Export<Managed>*>(managed->context);
  release(e->storage);
  delete e;
  PyGILState_Release(state);
}

// A capsule that nobody consumed still owns its tensor.
template <class Managed>
void delete_capsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, Managed::kName)) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, Managed::kName));
  if (managed->deleter) managed->deleter(managed);
}

template <class Managed>
PyObject* export_capsule(const Tensor* t, uint64_t flags) {
  auto e = std::make_unique<Export<Managed>>();
  if constexpr (std::is_same_v<Managed, Versioned>) {
    e->managed.major = 1;
    e->managed.minor = 0;
    e->managed.flags = flags;
  } else {
    RL_CHECK(!(flags & kReadOnly), Buffer,
             "__dlpack__: the tensor is over read-only memory, which only a versioned capsule can say; pass "
             "max_version=(1, 0), or clone() it first");
  }
  int64_t *shape = e->geometry, *strides = e->geometry + kMaxDims;
  for (int i = 0; i < t->ndim(); i++) {
    shape[i] = t->size(i);
    strides[i] = t->size(i) < 2 ? 1 : t->stride(i);  // a stride without meaning may be out of other libraries' range
  }
  e->managed.tensor = {t->data(), {kCPU, 0}, t->ndim(), kTypes[t->dtype()], shape, strides, 0};
  e->managed.context = e.get();
  e->managed.deleter = delete_export<Managed>;
  e->storage = t->storage;
  PyObject* capsule = PyCapsule_New(&e->managed, Managed::kName, delete_capsule<Managed>);
  if (!capsule) throw PythonError();
  retain(t->storage);
  e.release();
  return capsule;
}

// _to_dlpack(tensor, versioned, copy)
PyObject* py_to_dlpack(PyObject*, PyObject* args) {
  PyObject* object;
  int versioned, copy;
  if (!PyArg_ParseTuple(args, "Opp", &object, &versioned, &copy)) return nullptr;
  return guarded([&]() -> PyObject* {
    RL_CHECK(is_tensor(object), Type, "__dlpack__: expected Tensor, got %s", Py_TYPE(object)->tp_name);
    TensorRef t = TensorRef::share(tensor_of(object));
    RL_CHECK(!needs_grad(t.get()), Buffer,
             "__dlpack__: can't export a tensor that requires grad (shape %s); use tensor.detach() first",
             shape_text(t.get()).c_str());
    RL_CHECK(!t->is_meta(), Buffer, "__dlpack__: a meta tensor has no data to export; expected a tensor on the CPU");
    RL_CHECK(!t->lazy() || copy, Buffer,
             "__dlpack__: can't export a tensor with the %s bit set; use resolve_%s() first",
             t->lazy() & kConjugated ? "conjugate" : "negative", t->lazy() & kConjugated ? "conj" : "neg");
    uint64_t flags = t->storage->read_only ? kReadOnly : 0;
    if (copy) {
      TensorRef fresh = empty_preserve(t.get(), t->dtype());
      copy_into(fresh.get(), t.get());
      t = fresh;
      flags = kIsCopied;
    }
    t->storage->resizable = false;  // the consumer keeps its address
    return versioned ? export_capsule<Versioned>(t.get(), flags) : export_capsule<Plain>(t.get(), flags);
  });
}

// ---------------------------------------------------------------- import

template <class Managed>
void release_import(Storage* s) {
  auto* managed = static_cast<Managed*>(s->context);
  if (managed->deleter) managed->deleter(managed);
  rl_deallocate(s);
}

DType dtype_from(DLType type) {
  for (int d = 0; d < RL_DTYPE_COUNT; d++)
    if (kTypes[d].code == type.code && kTypes[d].bits == type.bits && type.lanes == 1) return static_cast<DType>(d);
  throw_error(
      ErrorKind::Buffer,
      "from_dlpack: there is no dtype for elements of type code %d with %d bits and %d lanes; the supported "
      "types are bool, uint8, int8 to int64, float16, bfloat16, float32, float64, complex32, complex64 and complex128",
      type.code, type.bits, type.lanes);
}

// Until the capsule is renamed it owns its tensor, so that everything may fail before.
template <class Managed>
TensorRef import_capsule(PyObject* capsule) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, Managed::kName));
  if (!managed) throw PythonError();
  bool read_only = false;
  if constexpr (std::is_same_v<Managed, Versioned>) {
    RL_CHECK(managed->major == 1, Buffer, "from_dlpack: expected a capsule of DLPack version 1, got version %u.%u",
             managed->major, managed->minor);
    read_only = managed->flags & kReadOnly;
  }
  const DLTensor& from = managed->tensor;
  RL_CHECK(from.device.type == kCPU, Buffer,
           "from_dlpack: expected a tensor on the CPU (device type 1), got device type %d, index %d", from.device.type,
           from.device.index);
  RL_CHECK(from.ndim >= 0 && from.ndim <= kMaxDims, Buffer, "from_dlpack: expected at most %d dimensions, got %d",
           kMaxDims, from.ndim);
  DType dtype = dtype_from(from.dtype);
  RL_CHECK(from.ndim == 0 || from.shape, Buffer, "from_dlpack: the capsule has %d dimensions but no shape", from.ndim);
  Dims shape(0, nullptr), strides(0, nullptr);
  for (int i = 0; i < from.ndim; i++) {
    RL_CHECK(from.shape[i] >= 0, Buffer, "from_dlpack: sizes must not be negative, got %s",
             shape_text(from.ndim, from.shape).c_str());
    shape.push(from.shape[i]);
  }
  int64_t numel = count_elements(shape.n, shape.v), size = itemsize(dtype);
  strides.n = shape.n;
  contiguous_strides(shape.n, shape.v, strides.v);
  int64_t low = 0, high = 0, reach, bytes;
  for (int i = 0; i < shape.n; i++) {
    if (shape[i] > 1 && from.strides) strides[i] = from.strides[i];
    if (numel == 0) continue;
    int64_t& end = strides[i] < 0 ? low : high;
    RL_CHECK(!__builtin_mul_overflow(shape[i] - 1, strides[i], &reach) &&
                 !__builtin_mul_overflow(reach, size, &bytes) && !__builtin_add_overflow(end, bytes, &end),
             Buffer, "from_dlpack: sizes %s with strides %s overflow", shape_text(shape.n, shape.v).c_str(),
             shape_text(strides.n, strides.v).c_str());
  }
  RL_CHECK(!__builtin_sub_overflow(high, low, &bytes) && !__builtin_add_overflow(bytes, size, &bytes), Buffer,
           "from_dlpack: sizes %s with strides %s overflow", shape_text(shape.n, shape.v).c_str(),
           shape_text(strides.n, strides.v).c_str());
  if (numel == 0) bytes = 0;
  RL_CHECK(from.data || numel == 0, Buffer, "from_dlpack: the capsule has sizes %s but no memory",
           shape_text(shape.n, shape.v).c_str());
  char* first = from.data ? static_cast<char*>(from.data) + from.byte_offset : nullptr;
  RL_CHECK(numel == 0 || reinterpret_cast<uintptr_t>(first) % static_cast<uintptr_t>(itemsize(real_dtype(dtype))) == 0,
           Buffer, "from_dlpack: the memory is not aligned to %s elements; copy the array first", dtype_name(dtype));
  Ref<Storage> storage = Ref<Storage>::own(
      storage_borrow(first + low, static_cast<size_t>(bytes), release_import<Managed>, managed, read_only));
  // From here on the storage frees it.
  if (PyCapsule_SetName(capsule, Managed::kUsed) < 0) throw PythonError();
  return over_storage(storage.get(), dtype, shape.n, shape.v, strides.v, first);
}

// _from_dlpack(capsule)
PyObject* py_from_dlpack(PyObject*, PyObject* capsule) {
  return guarded([&]() -> PyObject* {
    RL_CHECK(PyCapsule_CheckExact(capsule), Type, "from_dlpack: expected a DLPack capsule, got %s",
             Py_TYPE(capsule)->tp_name);
    if (PyCapsule_IsValid(capsule, Versioned::kName)) return import_capsule<Versioned>(capsule).take()->object();
    if (PyCapsule_IsValid(capsule, Plain::kName)) return import_capsule<Plain>(capsule).take()->object();
    const char* name = PyCapsule_GetName(capsule);
    if (!name) PyErr_Clear();
    RL_CHECK(
        !name || (std::strcmp(name, Plain::kUsed) && std::strcmp(name, Versioned::kUsed)), Runtime,
        "from_dlpack: the capsule was consumed before (it is named '%s'); a capsule makes one tensor, get a new one "
        "from __dlpack__()",
        name);
    throw_error(ErrorKind::Runtime,
                "from_dlpack: expected a capsule named 'dltensor' or 'dltensor_versioned', got one named '%s'",
                name ? name : "");
  });
}

PyMethodDef methods[] = {{"_to_dlpack", py_to_dlpack, METH_VARARGS, nullptr},
                         {"_from_dlpack", py_from_dlpack, METH_O, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool dlpack_init(PyObject* module) { return PyModule_AddFunctions(module, methods) == 0; }

}  // namespace rl
