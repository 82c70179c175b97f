// UntypedStorage: the memory behind tensors as a Python object.
#include "python.h"

#include <structmember.h>

namespace rl {

namespace {

struct StorageObject {
  PyObject_HEAD Storage* storage;
  PyObject* weak_references;
};

Storage* storage_of(PyObject* o) { return reinterpret_cast<StorageObject*>(o)->storage; }

void storage_dealloc(PyObject* self) {
  auto* o = reinterpret_cast<StorageObject*>(self);
  if (o->weak_references) PyObject_ClearWeakRefs(self);
  if (o->storage) {
    if (o->storage->python == self) o->storage->python = nullptr;
    release(o->storage);
  }
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyTypeObject* StorageType;

PyObject* wrap(Storage* s) {  // takes over a reference
  auto* o = reinterpret_cast<StorageObject*>(StorageType->tp_alloc(StorageType, 0));
  if (!o) {
    release(s);
    return nullptr;
  }
  o->storage = s;
  s->python = reinterpret_cast<PyObject*>(o);
  return reinterpret_cast<PyObject*>(o);
}

PyObject* storage_make(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  static const char* keys[] = {"size", "device", nullptr};
  PyObject* size = nullptr;
  PyObject* device = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO", const_cast<char**>(keys), &size, &device)) return nullptr;
  return guarded([&]() -> PyObject* {
    int64_t n = 0;
    if (size && PySequence_Check(size)) {  // the bytes themselves
      PyObject* bytes = PyObject_CallOneArg(reinterpret_cast<PyObject*>(&PyByteArray_Type), size);
      if (!bytes) throw PythonError();
      Storage* s = storage_new(static_cast<size_t>(PyByteArray_GET_SIZE(bytes)));
      std::memcpy(s->data, PyByteArray_AS_STRING(bytes), s->nbytes);
      Py_DECREF(bytes);
      return wrap(s);
    }
    if (size) RL_CHECK(int_from(size, n), Type, "UntypedStorage(): size must be int, not %s", Py_TYPE(size)->tp_name);
    RL_CHECK(n >= 0, Runtime, "UntypedStorage(): size must not be negative, got %lld", static_cast<long long>(n));
    return wrap(storage_new(static_cast<size_t>(n), device == Py_None ? Device::CPU : device_from_object(device)));
  });
}

void release_view(Storage* s) {
  auto* view = static_cast<Py_buffer*>(s->context);
  PyBuffer_Release(view);
  PyMem_Free(view);
  rl_deallocate(s);
}

// UntypedStorage._from_buffer(bytes-like): over that memory, without a copy; read-only memory stays so.
PyObject* from_buffer(PyObject*, PyObject* source) {
  return guarded([&]() -> PyObject* {
    auto* view = static_cast<Py_buffer*>(PyMem_Malloc(sizeof(Py_buffer)));
    if (!view) throw std::bad_alloc();
    bool read_only = false;
    if (PyObject_GetBuffer(source, view, PyBUF_WRITABLE) < 0) {
      PyErr_Clear();
      read_only = true;
      if (PyObject_GetBuffer(source, view, PyBUF_SIMPLE) < 0) {
        PyMem_Free(view);
        throw PythonError();
      }
    }
    return wrap(storage_borrow(view->buf, static_cast<size_t>(view->len), release_view, view, read_only));
  });
}

PyObject* py_nbytes(PyObject* self, PyObject*) { return PyLong_FromSize_t(storage_of(self)->nbytes); }
PyObject* py_data_ptr(PyObject* self, PyObject*) {
  Storage* s = storage_of(self);
  return PyLong_FromUnsignedLongLong(
      s->device == static_cast<uint8_t>(Device::Meta) ? 0 : reinterpret_cast<uintptr_t>(s->data));
}
PyObject* py_resize(PyObject* self, PyObject* size) {
  return guarded([&]() -> PyObject* {
    int64_t n;
    RL_CHECK(int_from(size, n), Type, "resize_(): size must be int, not %s", Py_TYPE(size)->tp_name);
    RL_CHECK(n >= 0, Runtime, "resize_(): size must not be negative, got %lld", static_cast<long long>(n));
    storage_resize(storage_of(self), static_cast<size_t>(n));
    return Py_NewRef(self);
  });
}
PyObject* py_resizable(PyObject* self, PyObject*) { return PyBool_FromLong(storage_of(self)->resizable); }
PyObject* py_is_shared(PyObject* self, PyObject*) { return PyBool_FromLong(storage_is_shared(storage_of(self))); }
PyObject* py_share(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    storage_share(storage_of(self));
    return Py_NewRef(self);
  });
}
PyObject* py_clone(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Storage* s = storage_of(self);
    Storage* copy = storage_new(s->nbytes, static_cast<Device>(s->device));
    if (s->device == 0 && s->nbytes) std::memcpy(copy->data, s->data, s->nbytes);
    return wrap(copy);
  });
}
PyObject* py_copy(PyObject* self, PyObject* other) {
  return guarded([&]() -> PyObject* {
    RL_CHECK(Py_TYPE(other) == StorageType, Type, "copy_(): expected UntypedStorage, got %s", Py_TYPE(other)->tp_name);
    Storage *s = storage_of(self), *o = storage_of(other);
    RL_CHECK(s->nbytes == o->nbytes, Runtime, "copy_(): the sizes differ; expected %zu bytes, got %zu", s->nbytes,
             o->nbytes);
    if (s->nbytes) std::memmove(s->data, o->data, s->nbytes);
    s->version++;
    return Py_NewRef(self);
  });
}
PyObject* py_fill(PyObject* self, PyObject* value) {
  return guarded([&]() -> PyObject* {
    int64_t v;
    RL_CHECK(int_from(value, v) && v >= 0 && v < 256, Type, "fill_(): expected a byte");
    std::memset(storage_of(self)->data, static_cast<int>(v), storage_of(self)->nbytes);
    storage_of(self)->version++;
    return Py_NewRef(self);
  });
}
// What is not about speed is Python: rushlight/storage.py puts its methods on the type when one is first asked for.
PyObject* attribute(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  static bool extended = false;
  if (found || extended || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyObject *kind, *value, *trace;
  PyErr_Fetch(&kind, &value, &trace);
  extended = true;
  PyObject* module = PyImport_ImportModule("rushlight.storage");
  Py_XDECREF(kind);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  if (!module) return nullptr;
  Py_DECREF(module);
  return PyObject_GenericGetAttr(self, name);
}
PyObject* get_device(PyObject* self, void*) { return device_object(static_cast<Device>(storage_of(self)->device)); }
Py_ssize_t length(PyObject* self) { return static_cast<Py_ssize_t>(storage_of(self)->nbytes); }
PyObject* item(PyObject* self, Py_ssize_t i) {
  Storage* s = storage_of(self);
  if (i < 0 || static_cast<size_t>(i) >= s->nbytes) {
    PyErr_Format(PyExc_IndexError, "UntypedStorage index %zd is out of range for %zu bytes", i, s->nbytes);
    return nullptr;
  }
  return PyLong_FromLong(static_cast<unsigned char*>(s->data)[i]);
}
PyObject* representation(PyObject* self) {
  return PyUnicode_FromFormat("<rushlight.UntypedStorage of %zu bytes on %s>", storage_of(self)->nbytes,
                              device_name(storage_of(self)->device));
}
PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(b) != StorageType || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((storage_of(a) == storage_of(b)) == (op == Py_EQ));
}
Py_hash_t hash(PyObject* self) { return hash_pointer(storage_of(self)); }

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  Storage* s = storage_of(self);
  if (s->device != 0) {
    PyErr_SetString(PyExc_BufferError, "UntypedStorage: memory of a meta tensor cannot be read");
    return -1;
  }
  s->resizable = false;  // the consumer keeps its address
  return PyBuffer_FillInfo(view, self, s->data, static_cast<Py_ssize_t>(s->nbytes), s->read_only, flags);
}

PyMethodDef methods[] = {
    {"nbytes", py_nbytes, METH_NOARGS, "Size in bytes."},
    {"size", py_nbytes, METH_NOARGS, "Size in bytes."},
    {"data_ptr", py_data_ptr, METH_NOARGS, "Address of the first byte."},
    {"resize_", py_resize, METH_O, "Changes the size; what fits is kept."},
    {"resizable", py_resizable, METH_NOARGS, "Whether resize_ works."},
    {"is_shared", py_is_shared, METH_NOARGS, "Whether it lies in memory shared between processes."},
    {"share_memory_", py_share, METH_NOARGS, "Moves into memory shared with processes forked from now on."},
    {"clone", py_clone, METH_NOARGS, "A copy."},
    {"copy_", py_copy, METH_O, "Takes the bytes of another storage of the same size."},
    {"fill_", py_fill, METH_O, "Sets every byte."},
    {"_from_buffer", from_buffer, METH_O | METH_STATIC, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef getset[] = {{"device", get_device, nullptr, "Where the memory is.", nullptr},
                        {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(StorageObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(storage_make)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(storage_dealloc)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, getset},
                       {Py_tp_members, members},
                       {Py_tp_getattro, reinterpret_cast<void*>(attribute)},
                       {Py_sq_length, reinterpret_cast<void*>(length)},
                       {Py_sq_item, reinterpret_cast<void*>(item)},
                       {Py_tp_repr, reinterpret_cast<void*>(representation)},
                       {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
                       {Py_tp_hash, reinterpret_cast<void*>(hash)},
                       {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                       {0, nullptr}};
PyType_Spec spec = {"rushlight.UntypedStorage", sizeof(StorageObject), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

PyObject* storage_object(Storage* s) {
  if (s->python) return Py_NewRef(s->python);
  retain(s);
  return wrap(s);
}

// Tensor.set_'s storage argument.
Storage* storage_from_object(PyObject* o) { return Py_TYPE(o) == StorageType ? storage_of(o) : nullptr; }

bool storage_init(PyObject* module) {
  StorageType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return StorageType &&
         PyModule_AddObject(module, "UntypedStorage", Py_NewRef(reinterpret_cast<PyObject*>(StorageType))) == 0;
}

}  // namespace rl
