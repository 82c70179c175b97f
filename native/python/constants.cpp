// dtype, layout, memory_format, device and Size objects.
#include "python.h"

#include <structmember.h>

namespace rl {

namespace {

struct NamedConstant {
  const char* name;
  const char* alias;
};
const NamedConstant dtype_names[] = {{"bool", nullptr},     {"uint8", nullptr},      {"int8", nullptr},
                                     {"int16", "short"},    {"int32", "int"},        {"int64", "long"},
                                     {"float16", "half"},   {"bfloat16", nullptr},   {"float32", "float"},
                                     {"float64", "double"}, {"complex64", "cfloat"}, {"complex128", "cdouble"},
                                     {"complex32", "chalf"}};
// Tensors are strided; the other layouts are there to be compared with.
const char* const layout_names[] = {"strided",    "sparse_coo", "sparse_csr", "sparse_csc",
                                    "sparse_bsr", "sparse_bsc", "jagged",     "_mkldnn"};
const char* const format_names[] = {"contiguous_format", "preserve_format", "channels_last", "channels_last_3d"};

int value_of(PyObject* self) { return reinterpret_cast<ConstantObject*>(self)->value; }
const char* name_of(PyObject* self) {
  int v = value_of(self);
  if (Py_TYPE(self) == &DTypeType) return dtype_names[v].name;
  return Py_TYPE(self) == &LayoutType ? layout_names[v] : format_names[v];
}
PyObject* constant_repr(PyObject* self) { return PyUnicode_FromFormat("rushlight.%s", name_of(self)); }
// Pickled and copied by name: the same object comes back.
PyObject* constant_reduce(PyObject* self, PyObject*) { return PyUnicode_FromString(name_of(self)); }

PyMethodDef constant_methods[] = {{"__reduce__", constant_reduce, METH_NOARGS, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};

PyObject* dtype_itemsize(PyObject* s, void*) { return PyLong_FromLongLong(itemsize(dtype_of(s))); }
PyObject* dtype_is_float(PyObject* s, void*) { return PyBool_FromLong(is_float(dtype_of(s))); }
PyObject* dtype_is_complex(PyObject* s, void*) { return PyBool_FromLong(is_complex(dtype_of(s))); }
PyObject* dtype_is_signed(PyObject* s, void*) { return PyBool_FromLong(is_signed(dtype_of(s))); }
PyObject* dtype_to_real(PyObject* s, PyObject*) { return dtype_object(real_dtype(dtype_of(s))); }
PyObject* dtype_to_complex(PyObject* s, PyObject*) { return dtype_object(complex_dtype(dtype_of(s))); }
PyObject* dtype_abbr(PyObject* self, void*) {
  static const char* const names[] = {"b8",   "u8",  "i8",  "i16", "i32",  "i64", "f16",
                                      "bf16", "f32", "f64", "c64", "c128", "c32"};
  return PyUnicode_FromString(names[dtype_of(self)]);
}
PyGetSetDef dtype_getset[] = {
    {"abbr", dtype_abbr, nullptr, "A short name, such as f32.", nullptr},
    {"itemsize", dtype_itemsize, nullptr, "Bytes of one element.", nullptr},
    {"is_floating_point", dtype_is_float, nullptr, "True for the real floating point types.", nullptr},
    {"is_complex", dtype_is_complex, nullptr, "True for the complex types.", nullptr},
    {"is_signed", dtype_is_signed, nullptr, "True when negative values can be held.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef dtype_methods[] = {{"__reduce__", constant_reduce, METH_NOARGS, nullptr},
                               {"to_real", dtype_to_real, METH_NOARGS, "The real type of a complex one."},
                               {"to_complex", dtype_to_complex, METH_NOARGS, "The complex type over a real one."},
                               {nullptr, nullptr, 0, nullptr}};

PyTypeObject constant_type(const char* name, const char* doc, PyMethodDef* methods, PyGetSetDef* getset) {
  PyTypeObject t = blank_type();
  t.tp_name = name;
  t.tp_basicsize = sizeof(ConstantObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  t.tp_doc = doc;
  t.tp_repr = constant_repr;
  t.tp_methods = methods;
  t.tp_getset = getset;
  return t;
}

}  // namespace

PyTypeObject DTypeType =
    constant_type("rushlight.dtype", "The type of a tensor's elements.", dtype_methods, dtype_getset);
PyTypeObject LayoutType =
    constant_type("rushlight.layout", "How a tensor is laid out; only strided exists.", constant_methods, nullptr);
PyTypeObject MemoryFormatType =
    constant_type("rushlight.memory_format", "An order of the dimensions in memory.", constant_methods, nullptr);
ConstantObject dtype_objects[RL_DTYPE_COUNT];

// ---------------------------------------------------------------- device

namespace {

PyObject* device_repr(PyObject* self) {
  auto* d = reinterpret_cast<DeviceObject*>(self);
  if (d->index >= 0)
    return PyUnicode_FromFormat("device(type='%s', index=%d)", device_name(static_cast<uint8_t>(d->device)), d->index);
  return PyUnicode_FromFormat("device(type='%s')", device_name(static_cast<uint8_t>(d->device)));
}
PyObject* device_str(PyObject* self) {
  auto* d = reinterpret_cast<DeviceObject*>(self);
  if (d->index >= 0) return PyUnicode_FromFormat("%s:%d", device_name(static_cast<uint8_t>(d->device)), d->index);
  return PyUnicode_FromString(device_name(static_cast<uint8_t>(d->device)));
}
Py_hash_t device_hash(PyObject* self) {
  auto* d = reinterpret_cast<DeviceObject*>(self);
  return static_cast<Py_hash_t>(d->device) * 1000 + d->index + 7;
}
PyObject* device_compare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(a) != &DeviceType || Py_TYPE(b) != &DeviceType || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  auto *x = reinterpret_cast<DeviceObject*>(a), *y = reinterpret_cast<DeviceObject*>(b);
  bool same = x->device == y->device && x->index == y->index;
  return PyBool_FromLong(same == (op == Py_EQ));
}
PyObject* device_type(PyObject* self, void*) {
  return PyUnicode_FromString(device_name(static_cast<uint8_t>(reinterpret_cast<DeviceObject*>(self)->device)));
}
PyObject* device_index(PyObject* self, void*) {
  int i = reinterpret_cast<DeviceObject*>(self)->index;
  if (i < 0) Py_RETURN_NONE;
  return PyLong_FromLong(i);
}
PyObject* device_reduce(PyObject* self, PyObject*) { return Py_BuildValue("O(N)", &DeviceType, device_str(self)); }
PyObject* new_device(Device device, int index) {
  DeviceObject* d = PyObject_New(DeviceObject, &DeviceType);
  if (!d) return nullptr;
  d->device = device;
  d->index = index;
  return reinterpret_cast<PyObject*>(d);
}
std::pair<Device, int> parse_device(const char* text) {
  std::string name(text);
  int index = -1;
  size_t colon = name.find(':');
  if (colon != std::string::npos) {
    std::string digits = name.substr(colon + 1);
    RL_CHECK(!digits.empty() && digits.find_first_not_of("0123456789") == std::string::npos && digits.size() < 4,
             Runtime, "Invalid device string: '%s'", text);
    index = std::stoi(digits);
    name.resize(colon);
  }
  if (name == "cpu") return {Device::CPU, index};
  if (name == "meta") return {Device::Meta, index};
  for (const char* known : {"cuda", "mps", "xpu", "hip", "xla", "lazy"})
    RL_CHECK(name != known, Runtime, "device '%s' is not available in this build; available: cpu, meta", text);
  throw_error(ErrorKind::Runtime, "Expected one of cpu, meta device type at start of device string: %s", text);
}
PyObject* device_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  static const char* keys[] = {"type", "index", nullptr};
  PyObject* type;
  PyObject* index = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O", const_cast<char**>(keys), &type, &index)) return nullptr;
  return guarded([&]() -> PyObject* {
    if (Py_TYPE(type) == &DeviceType) return Py_NewRef(type);
    if (!PyUnicode_Check(type)) {
      throw_error(ErrorKind::Type, "device(): argument 'type' must be str, not %s", Py_TYPE(type)->tp_name);
    }
    auto [device, at] = parse_device(PyUnicode_AsUTF8(type));
    if (index != Py_None) {
      RL_CHECK(at < 0, Runtime, "device(): the type '%s' already has an index", PyUnicode_AsUTF8(type));
      at = static_cast<int>(PyLong_AsLong(index));
      if (PyErr_Occurred()) return nullptr;
      RL_CHECK(at >= 0, Runtime, "device(): the index must not be negative, got %d", at);
    }
    return new_device(device, at);
  });
}
// `with device:` makes it the default of factories.
PyObject* device_enter(PyObject* self, PyObject*) {
  PyObject* module = PyImport_ImportModule("rushlight._device");
  if (!module) return nullptr;
  PyObject* r = PyObject_CallMethod(module, "_enter", "O", self);
  Py_DECREF(module);
  if (!r) return nullptr;
  Py_DECREF(r);
  return Py_NewRef(self);
}
PyObject* device_exit(PyObject* self, PyObject*) {
  PyObject* module = PyImport_ImportModule("rushlight._device");
  if (!module) return nullptr;
  PyObject* r = PyObject_CallMethod(module, "_exit", "O", self);
  Py_DECREF(module);
  return r;
}
PyMethodDef device_methods[] = {{"__reduce__", device_reduce, METH_NOARGS, nullptr},
                                {"__enter__", device_enter, METH_NOARGS, nullptr},
                                {"__exit__", device_exit, METH_VARARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};
PyGetSetDef device_getset[] = {{"type", device_type, nullptr, "'cpu' or 'meta'.", nullptr},
                               {"index", device_index, nullptr, "Number among devices of the type, or None.", nullptr},
                               {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyTypeObject make_device_type() {
  PyTypeObject t = blank_type();
  t.tp_name = "rushlight.device";
  t.tp_basicsize = sizeof(DeviceObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  t.tp_doc = "Where a tensor lives: device('cpu'), device('meta') (shapes only).";
  t.tp_repr = device_repr;
  t.tp_str = device_str;
  t.tp_hash = device_hash;
  t.tp_richcompare = device_compare;
  t.tp_methods = device_methods;
  t.tp_getset = device_getset;
  t.tp_new = device_new;
  return t;
}

}  // namespace

PyTypeObject DeviceType = make_device_type();

PyObject* device_object(Device device) {
  static PyObject* known[2] = {new_device(Device::CPU, -1), new_device(Device::Meta, -1)};
  return Py_XNewRef(known[static_cast<int>(device)]);
}

Device device_from_object(PyObject* o) {
  if (Py_TYPE(o) == &DeviceType) return reinterpret_cast<DeviceObject*>(o)->device;
  if (PyUnicode_Check(o)) return parse_device(PyUnicode_AsUTF8(o)).first;
  if (PyLong_Check(o))
    throw_error(ErrorKind::Runtime, "device %ld: no accelerator is available in this build; available: cpu, meta",
                PyLong_AsLong(o));
  throw_error(ErrorKind::Type, "expected a device, got %s", Py_TYPE(o)->tp_name);
}

// ---------------------------------------------------------------- Size

PyTypeObject* SizeType;

PyObject* size_object(int ndim, const int64_t* shape) {
  PyObject* t = SizeType->tp_alloc(SizeType, ndim);
  if (!t) return nullptr;
  for (int i = 0; i < ndim; i++) {
    PyObject* n = PyLong_FromLongLong(shape[i]);
    if (!n) {
      Py_DECREF(t);
      return nullptr;
    }
    PyTuple_SET_ITEM(t, i, n);
  }
  return t;
}

namespace {

PyObject* as_size(PyObject* tuple) {  // takes over a plain tuple
  if (!tuple || !PyTuple_CheckExact(tuple)) return tuple;
  Py_ssize_t n = PyTuple_GET_SIZE(tuple);
  PyObject* t = SizeType->tp_alloc(SizeType, n);
  for (Py_ssize_t i = 0; t && i < n; i++) PyTuple_SET_ITEM(t, i, Py_NewRef(PyTuple_GET_ITEM(tuple, i)));
  Py_DECREF(tuple);
  return t;
}

PyObject* size_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject* plain = PyTuple_Type.tp_new(&PyTuple_Type, args, kwargs);
  if (!plain) return nullptr;
  Py_ssize_t n = PyTuple_GET_SIZE(plain);
  PyObject* t = type->tp_alloc(type, n);
  for (Py_ssize_t i = 0; t && i < n; i++) {
    PyObject* item = PyNumber_Index(PyTuple_GET_ITEM(plain, i));
    if (!item) {
      PyErr_Format(PyExc_TypeError, "rushlight.Size() takes an iterable of 'int' (item %zd is '%s')", i,
                   Py_TYPE(PyTuple_GET_ITEM(plain, i))->tp_name);
      Py_CLEAR(t);
      break;
    }
    PyTuple_SET_ITEM(t, i, item);
  }
  Py_DECREF(plain);
  return t;
}
PyObject* size_repr(PyObject* self) {
  std::string s = "rushlight.Size([";
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); i++) {
    if (i) s += ", ";
    PyObject* item = PyObject_Repr(PyTuple_GET_ITEM(self, i));
    if (!item) return nullptr;
    s += PyUnicode_AsUTF8(item);
    Py_DECREF(item);
  }
  return PyUnicode_FromString((s + "])").c_str());
}
PyObject* size_numel(PyObject* self, PyObject*) {
  PyObject* n = PyLong_FromLong(1);
  for (Py_ssize_t i = 0; n && i < PyTuple_GET_SIZE(self); i++) {
    PyObject* m = PyNumber_Multiply(n, PyTuple_GET_ITEM(self, i));
    Py_DECREF(n);
    n = m;
  }
  return n;
}
// A list, say, is left to tuple's own concatenation, which refuses it.
PyObject* size_concat(PyObject* a, PyObject* b) { return as_size(PyTuple_Type.tp_as_sequence->sq_concat(a, b)); }
PyObject* size_add(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(b) || !PyTuple_Check(a)) Py_RETURN_NOTIMPLEMENTED;
  return size_concat(a, b);
}
PyObject* size_repeat(PyObject* a, Py_ssize_t n) {
  PyObject* r = PyTuple_Type.tp_as_sequence->sq_repeat(a, n);
  if (r == a) return r;
  return as_size(r);
}
PyObject* size_subscript(PyObject* self, PyObject* key) {
  PyObject* r = PyTuple_Type.tp_as_mapping->mp_subscript(self, key);
  return PySlice_Check(key) ? as_size(r) : r;
}
PyObject* size_reduce(PyObject* self, PyObject*) {
  PyObject* plain = PySequence_Tuple(self);
  PyObject* list = PySequence_List(self);
  Py_XDECREF(plain);
  return Py_BuildValue("O(N)", SizeType, list ? PyList_AsTuple(list) : nullptr);
}
PyMethodDef size_methods[] = {{"numel", size_numel, METH_NOARGS, "The product of the sizes."},
                              {"__reduce__", size_reduce, METH_NOARGS, nullptr},
                              {nullptr, nullptr, 0, nullptr}};
PyType_Slot size_slots[] = {{Py_tp_new, reinterpret_cast<void*>(size_new)},
                            {Py_tp_repr, reinterpret_cast<void*>(size_repr)},
                            {Py_tp_methods, size_methods},
                            {Py_sq_concat, reinterpret_cast<void*>(size_concat)},
                            {Py_nb_add, reinterpret_cast<void*>(size_add)},
                            {Py_sq_repeat, reinterpret_cast<void*>(size_repeat)},
                            {Py_mp_subscript, reinterpret_cast<void*>(size_subscript)},
                            {Py_tp_doc, const_cast<char*>("The shape of a tensor: a tuple of ints.")},
                            {0, nullptr}};
PyType_Spec size_spec = {"rushlight.Size", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, size_slots};

bool add_constants(PyObject* module, PyTypeObject* type, const char* const* names, int count) {
  for (int i = 0; i < count; i++) {
    ConstantObject* o = PyObject_New(ConstantObject, type);
    if (!o) return false;
    o->value = i;
    if (PyModule_AddObject(module, names[i], reinterpret_cast<PyObject*>(o)) < 0) return false;
  }
  return true;
}

}  // namespace

bool constants_init(PyObject* module) {
  if (PyType_Ready(&DTypeType) < 0 || PyType_Ready(&LayoutType) < 0 || PyType_Ready(&MemoryFormatType) < 0 ||
      PyType_Ready(&DeviceType) < 0)
    return false;
  PyObject* bases = PyTuple_Pack(1, &PyTuple_Type);
  SizeType = reinterpret_cast<PyTypeObject*>(PyType_FromSpecWithBases(&size_spec, bases));
  Py_XDECREF(bases);
  if (!SizeType) return false;
  for (int i = 0; i < RL_DTYPE_COUNT; i++) {
    PyObject_Init(reinterpret_cast<PyObject*>(&dtype_objects[i]), &DTypeType);
    dtype_objects[i].value = i;
    PyObject* o = reinterpret_cast<PyObject*>(&dtype_objects[i]);
    Py_INCREF(o);
    if (PyModule_AddObject(module, dtype_names[i].name, o) < 0) return false;
    if (dtype_names[i].alias && PyModule_AddObject(module, dtype_names[i].alias, Py_NewRef(o)) < 0) return false;
  }
  const std::pair<const char*, PyTypeObject*> types[] = {{"dtype", &DTypeType},
                                                         {"layout", &LayoutType},
                                                         {"memory_format", &MemoryFormatType},
                                                         {"device", &DeviceType},
                                                         {"Size", SizeType}};
  for (auto [name, type] : types)
    if (PyModule_AddObject(module, name, Py_NewRef(reinterpret_cast<PyObject*>(type))) < 0) return false;
  return add_constants(module, &LayoutType, layout_names, 8) &&
         add_constants(module, &MemoryFormatType, format_names, 4);
}

}  // namespace rl
