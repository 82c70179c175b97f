// Python arguments to Values by a schema.
#include "python.h"

namespace rl {

// ---------------------------------------------------------------- frames

int64_t* Frame::more_ints(size_t n) {
  if (int_count + static_cast<int64_t>(n) <= kInlineInts) {
    int64_t* p = ints + int_count;
    int_count += static_cast<int>(n);
    return p;
  }
  void* p = PyMem_Malloc(sizeof(int64_t) * (n + 1));
  if (!p) throw std::bad_alloc();
  if (!heap) heap = new std::vector<void*>();
  heap->push_back(p);
  return static_cast<int64_t*>(p);
}

double* Frame::more_doubles(size_t n) { return reinterpret_cast<double*>(more_ints(n)); }

Tensor** Frame::more_tensors(size_t n) {
  if (tensor_count + static_cast<int64_t>(n) <= kInlineTensors) {
    Tensor** p = tensors + tensor_count;
    tensor_count += static_cast<int>(n);
    return p;
  }
  return reinterpret_cast<Tensor**>(more_ints(n + kInlineInts));
}

void Frame::keep(PyObject* o) {
  if (!owned) owned = new std::vector<PyObject*>();
  owned->push_back(o);
}

void Frame::clear() {
  if (heap)
    for (void* p : *heap) PyMem_Free(p);
  if (owned)
    for (PyObject* o : *owned) Py_DECREF(o);
  delete heap;
  delete owned;
}

// ---------------------------------------------------------------- classification

PyTypeObject* parameter_type = nullptr;
PyObject* str_torch_function = nullptr;
PyObject* disabled_torch_function = nullptr;

int classify_slow(PyTypeObject* type) {
  // Keyed by type and its version tag, which changes when the class or a base is modified.
  struct Entry {
    PyTypeObject* type;
    unsigned version;
    int kind;
  };
  static Entry cache[64];
  if (type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type || type == &PyTuple_Type ||
      type == &PyList_Type || type == Py_TYPE(Py_None) || type == &PyUnicode_Type)
    return kNotTensor;
  Entry& e = cache[(reinterpret_cast<uintptr_t>(type) >> 4) & 63];
  if (e.type == type && e.version && e.version == type->tp_version_tag) return e.kind;
  int kind = PyType_IsSubtype(type, &TensorType) ? kIsTensor : kNotTensor;
  PyObject* found = nullptr;
  if (str_torch_function) {
    found = PyObject_GetAttr(reinterpret_cast<PyObject*>(type), str_torch_function);
    if (!found) PyErr_Clear();
  }
  if (found && found != disabled_torch_function) kind |= kHasOverride;
  Py_XDECREF(found);
  e = {type, type->tp_version_tag, kind};
  return kind;
}

// ---------------------------------------------------------------- numbers

namespace {

bool is_numpy_number(PyTypeObject* type) {
  for (PyTypeObject* t = type; t; t = t->tp_base)
    if (!std::strncmp(t->tp_name, "numpy.", 6))
      return !std::strcmp(t->tp_name, "numpy.generic") || is_numpy_number(t->tp_base ? t->tp_base : &PyBaseObject_Type);
  return false;
}

[[noreturn]] void overflow_error(ErrorKind kind) {
  throw_error(kind, "Overflow when unpacking long: the number does not fit into 64 bits");
}

}  // namespace

bool int_from(PyObject* o, int64_t& v, ErrorKind too_large) {
  if (RL_LIKELY(PyLong_Check(o))) {
    int overflow;
    v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (RL_UNLIKELY(overflow)) overflow_error(too_large);
    return true;
  }
  if (PyFloat_Check(o) || PyUnicode_Check(o) || !PyIndex_Check(o)) return false;
  PyObject* i = PyNumber_Index(o);
  if (!i) {
    PyErr_Clear();
    return false;
  }
  int overflow;
  v = PyLong_AsLongLongAndOverflow(i, &overflow);
  Py_DECREF(i);
  if (overflow) overflow_error(too_large);
  return true;
}

bool dtype_from(PyObject* o, DType& dtype) {
  if (is_dtype(o))
    dtype = dtype_of(o);
  else if (o == reinterpret_cast<PyObject*>(&PyFloat_Type))
    dtype = RL_FLOAT64;
  else if (o == reinterpret_cast<PyObject*>(&PyBool_Type))
    dtype = RL_BOOL;
  else if (o == reinterpret_cast<PyObject*>(&PyLong_Type))
    dtype = RL_INT64;
  else if (o == reinterpret_cast<PyObject*>(&PyComplex_Type))
    dtype = RL_COMPLEX128;
  else
    return false;
  return true;
}

bool scalar_from(PyObject* o, Value& v, bool any_size) {
  if (PyFloat_Check(o)) {
    v = Value::of(PyFloat_AS_DOUBLE(o));
    return true;
  }
  if (PyBool_Check(o)) {
    v = Value::of(o == Py_True);
    return true;
  }
  if (PyLong_Check(o)) {
    int overflow;
    int64_t i = PyLong_AsLongLongAndOverflow(o, &overflow);
    v = Value::of(i);
    if (RL_UNLIKELY(overflow)) {
      if (!any_size)
        throw_error(ErrorKind::Overflow, "Overflow when unpacking long: the number does not fit into 64 bits");
      double x = PyLong_AsDouble(o);
      if (PyErr_Occurred()) PyErr_Clear(), x = overflow > 0 ? HUGE_VAL : -HUGE_VAL;
      v = Value::of(x);
      v.tag = Tag::BigInt;
    }
    return true;
  }
  if (PyComplex_Check(o)) {
    v = Value::of(std::complex<double>(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o)));
    return true;
  }
  if (classify(o) & kIsTensor) return false;
  if (!is_numpy_number(Py_TYPE(o))) return false;
  // numpy scalars that are not Python numbers: bool_, integers, float16/32, complex64
  const char* name = std::strrchr(Py_TYPE(o)->tp_name, '.');
  name = name ? name + 1 : Py_TYPE(o)->tp_name;
  if (!std::strncmp(name, "bool", 4)) {
    v = Value::of(PyObject_IsTrue(o) == 1);
    return true;
  }
  if (PyIndex_Check(o)) {
    PyObject* index = PyNumber_Index(o);
    if (!index) throw PythonError();
    bool ok = scalar_from(index, v, any_size);
    Py_DECREF(index);
    return ok;
  }
  if (!std::strncmp(name, "complex", 7) || !std::strncmp(name, "clongdouble", 11)) {
    Py_complex c = PyComplex_AsCComplex(o);
    if (PyErr_Occurred()) throw PythonError();
    v = Value::of(std::complex<double>(c.real, c.imag));
    return true;
  }
  PyNumberMethods* number = Py_TYPE(o)->tp_as_number;
  if (!number || !number->nb_float || !std::strncmp(name, "str", 3)) return false;
  PyObject* f = PyNumber_Float(o);
  if (!f) {
    PyErr_Clear();
    return false;
  }
  v = Value::of(PyFloat_AS_DOUBLE(f));
  Py_DECREF(f);
  return true;
}

// ---------------------------------------------------------------- one argument

namespace {

// A 0-dim tensor where a number is wanted.
bool number_from_tensor(PyObject* o, Value& v) {
  if (!(classify(o) & kIsTensor)) return false;
  Tensor* t = tensor_of(o);
  if (t->numel != 1 || t->ndim() != 0 || t->is_meta()) return false;
  PyObject* item = item_of(t);
  if (!item) throw PythonError();
  bool ok = scalar_from(item, v);
  Py_DECREF(item);
  return ok;
}

// A tuple or list of integers. A bool may follow, but not lead, as in PyTorch: (True, 2) may be meant as another
// overload.
bool int_list(PyObject* o, Frame& f, Value& v) {
  PyObject** items;
  Py_ssize_t n;
  if (PyTuple_Check(o)) {
    n = PyTuple_GET_SIZE(o);
    items = &PyTuple_GET_ITEM(o, 0);
  } else if (PyList_Check(o)) {
    n = PyList_GET_SIZE(o);
    items = reinterpret_cast<PyListObject*>(o)->ob_item;
  } else {
    return false;
  }
  int64_t* p = f.more_ints(static_cast<size_t>(n));
  for (Py_ssize_t i = 0; i < n; i++)
    if ((i == 0 && PyBool_Check(items[i])) || !int_from(items[i], p[i], ErrorKind::Type)) return false;
  v = Value::of_ints(p, static_cast<int>(n));
  return true;
}

bool double_list(PyObject* o, Frame& f, Value& v) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) return false;
  Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  double* p = f.more_doubles(static_cast<size_t>(n));
  for (Py_ssize_t i = 0; i < n; i++) {
    Value x;
    if (!scalar_from(PySequence_Fast_GET_ITEM(o, i), x) || x.tag == Tag::Complex) return false;
    p[i] = x.as_double();
  }
  v.tag = Tag::DoubleList;
  v.size = static_cast<uint32_t>(n);
  v.doubles = p;
  return true;
}

bool tensor_list(PyObject* o, bool none_allowed, Frame& f, Value& v) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) return false;
  Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  Tensor** p = f.more_tensors(static_cast<size_t>(n));
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject* item = PySequence_Fast_GET_ITEM(o, i);
    int kind = classify(item);
    if (RL_UNLIKELY(kind & kHasOverride)) f.override_seen = true;
    if (kind & kIsTensor)
      p[i] = tensor_of(item);
    else if (item == Py_None && none_allowed)
      p[i] = nullptr;
    else if (kind & kHasOverride)
      p[i] = nullptr;
    else
      return false;
  }
  v = Value::of_tensors(p, static_cast<size_t>(n));
  return true;
}

inline bool convert(const Op& op, const Argument& a, PyObject* o, Frame& f, Value& v) {
  if (RL_LIKELY(a.kind <= Kind::TensorOrScalar)) {
    int kind = classify(o);
    if (RL_UNLIKELY(kind & kHasOverride)) f.override_seen = true;
    if (RL_LIKELY(kind & kIsTensor)) {
      v.tag = Tag::Tensor;
      v.tensor = tensor_of(o);
      return true;
    }
    if (kind & kHasOverride) {
      v = Value::none();
      return true;
    }
    if (o == Py_None) {
      v = Value::none();
      return a.optional;
    }
    return a.kind == Kind::TensorOrScalar && scalar_from(o, v, compares(op));
  }
  if (o == Py_None) {
    v = Value::none();
    return a.optional || a.kind == Kind::Object;
  }
  switch (a.kind) {
    case Kind::Scalar:
      return scalar_from(o, v) || number_from_tensor(o, v);
    case Kind::Int: {
      if (PyBool_Check(o)) return false;
      int64_t i;
      if (!int_from(o, i)) return false;
      v = Value::of(i);
      return true;
    }
    case Kind::Float:
      if (!scalar_from(o, v, true) && !number_from_tensor(o, v)) return false;
      if (v.tag == Tag::Complex) return false;
      RL_CHECK(v.tag != Tag::BigInt || std::isfinite(v.real), Overflow,
               "%s: argument '%s': the integer is too large for a float", op.title(), a.name);
      v = Value::of(v.as_double());
      return true;
    case Kind::Bool:
      if (PyBool_Check(o)) {
        v = Value::of(o == Py_True);
        return true;
      }
      if (!std::strncmp(Py_TYPE(o)->tp_name, "numpy.bool", 10)) {
        v = Value::of(PyObject_IsTrue(o) == 1);
        return true;
      }
      return false;
    case Kind::IntList: {
      if (int_list(o, f, v)) return true;
      if (!a.list_size || PyBool_Check(o)) return false;
      int64_t i;
      if (!int_from(o, i)) return false;
      int n = a.list_size;
      int64_t* p = f.more_ints(static_cast<size_t>(n));
      for (int k = 0; k < n; k++) p[k] = i;
      v = Value::of_ints(p, n);
      return true;
    }
    case Kind::FloatList:
      return double_list(o, f, v);
    case Kind::TensorList:
      return tensor_list(o, a.optional, f, v);
    case Kind::DType: {
      DType dtype;
      if (!dtype_from(o, dtype)) return false;
      v = Value::of(dtype);
      return true;
    }
    case Kind::Device:
      if (Py_TYPE(o) != &DeviceType && !PyUnicode_Check(o) && !PyLong_Check(o)) return false;
      v = Value::of(static_cast<int64_t>(device_from_object(o)));
      return true;
    case Kind::Layout:
      if (Py_TYPE(o) != &LayoutType) return false;
      v = Value::of(static_cast<int64_t>(reinterpret_cast<ConstantObject*>(o)->value));
      RL_CHECK(v.integer == 0, Runtime, "%s: layout; expected rushlight.strided, the only one there is, got another",
               op.title());
      return true;
    case Kind::MemoryFormat:
      if (Py_TYPE(o) != &MemoryFormatType) return false;
      v = Value::of(static_cast<int64_t>(reinterpret_cast<ConstantObject*>(o)->value));
      return true;
    case Kind::Str:
      if (!PyUnicode_Check(o)) return false;
      v = Value::of_object(o);
      return true;
    default:
      v = Value::of_object(o);
      return true;
  }
}

const char* kind_text(const Argument& a) {
  switch (a.kind) {
    case Kind::Tensor:
      return "Tensor";
    case Kind::TensorOrScalar:
      return "Tensor or Number";
    case Kind::TensorList:
      return "tuple of Tensors";
    case Kind::Scalar:
      return "Number";
    case Kind::Int:
      return "int";
    case Kind::Float:
      return "float";
    case Kind::Bool:
      return "bool";
    case Kind::IntList:
      return "tuple of ints";
    case Kind::FloatList:
      return "tuple of floats";
    case Kind::Str:
      return "str";
    case Kind::DType:
      return "rushlight.dtype";
    case Kind::Device:
      return "rushlight.device";
    case Kind::Generator:
      return "rushlight.Generator";
    case Kind::Layout:
      return "rushlight.layout";
    case Kind::MemoryFormat:
      return "rushlight.memory_format";
    case Kind::Object:
      return "object";
  }
  return "object";
}

// Public name of an argument: `self` of a function is `input`, as in PyTorch.
const char* public_name(const Argument& a) { return std::strcmp(a.name, "self") ? a.name : "input"; }

// NumPy's spellings, which PyTorch takes too.
const char* canonical_name(const char* name) {
  if (!std::strcmp(name, "axis")) return "dim";
  if (!std::strcmp(name, "keepdims")) return "keepdim";
  if (!std::strcmp(name, "x")) return "self";
  if (!std::strcmp(name, "a") || !std::strcmp(name, "x1")) return "self";
  if (!std::strcmp(name, "x2")) return "other";
  if (!std::strcmp(name, "input")) return "self";
  return nullptr;
}

int find_argument(const Op& op, PyObject* name) {
  for (int i = 0; i < op.argument_count; i++)
    if (op.arguments[i].interned == name) return i;
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) throw PythonError();
  for (int pass = 0; pass < 2; pass++) {
    for (int i = 0; i < op.argument_count; i++) {
      if (std::strcmp(op.arguments[i].name, text)) continue;
      if (pass == 0 && PyUnicode_CHECK_INTERNED(name) && !op.arguments[i].interned)
        op.arguments[i].interned = Py_NewRef(name);
      return i;
    }
    text = canonical_name(text);
    if (!text) return -1;
  }
  return -1;
}

[[gnu::noinline]] bool wrong_type(const Op& op, int i, PyObject* got, std::string* problem) {
  if (problem) {
    const Argument& a = op.arguments[i];
    *problem = std::string("argument '") + public_name(a) + "' (position " + std::to_string(i + 1) + ") must be " +
               kind_text(a) + ", not " + Py_TYPE(got)->tp_name;
  }
  return false;
}

[[gnu::noinline]] bool parse_out(const Op& op, PyObject* o, Frame& f, std::string* problem) {
  if (o == Py_None) return true;
  for (int i = 0; i < op.result_count; i++) f.out[i] = nullptr;
  f.has_out = true;
  auto take = [&](int i, PyObject* item) {
    int kind = classify(item);
    if (kind & kHasOverride) f.override_seen = true;
    if (!(kind & kIsTensor)) {
      if (problem) *problem = std::string("argument 'out' must be Tensor, not ") + Py_TYPE(item)->tp_name;
      return false;
    }
    f.out[i] = tensor_of(item);
    return true;
  };
  if (op.result_count == 1) return take(0, o);
  if ((!PyTuple_Check(o) && !PyList_Check(o)) || PySequence_Fast_GET_SIZE(o) != op.result_count) {
    if (problem) *problem = "argument 'out' must be a tuple of " + std::to_string(op.result_count) + " Tensors";
    return false;
  }
  for (int i = 0; i < op.result_count; i++)
    if (!take(i, PySequence_Fast_GET_ITEM(o, i))) return false;
  return true;
}

}  // namespace

void convert_again(const Op& op, int i, PyObject* object, Frame& frame) {
  const Argument& a = op.arguments[i];
  Value& v = frame.values[i];
  bool constant = a.kind == Kind::Layout || a.kind == Kind::MemoryFormat;
  if (constant && PyLong_Check(object))
    v = Value::of(static_cast<int64_t>(PyLong_AsLongLong(object)));
  else if (a.kind == Kind::Tensor && !is_tensor(object) && scalar_from(object, v))  // operations in C++ pass numbers
    return;
  else
    RL_CHECK(convert(op, a, object, frame, v), Type, "%s: argument '%s'; expected %s, got %s", op.name, a.name,
             kind_text(a), Py_TYPE(object)->tp_name);
}

// The objects that an argument of type Any[] takes, as a tuple.
bool rest_of(PyObject* const* objects, Py_ssize_t n, Frame& f, Value& v) {
  PyObject* tuple = PyTuple_New(std::max<Py_ssize_t>(n, 0));
  if (!tuple) return false;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyTuple_SET_ITEM(tuple, i, Py_NewRef(objects[i]));
    if (classify(objects[i]) & kHasOverride) f.override_seen = true;
  }
  f.keep(tuple);
  v.tag = Tag::Object;
  v.object = tuple;
  return true;
}

bool parse(const Op& op, PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names, bool inplace,
           Frame& f, std::string* problem) {
  uint32_t seen = 0;
  int at = 0;
  if (self) {
    if (RL_UNLIKELY(!convert(op, op.arguments[0], self, f, f.values[0]))) return wrong_type(op, 0, self, problem);
    seen = 1;
    at = 1;
  }
  Py_ssize_t positional = count;
  if (RL_UNLIKELY(at + count > op.positional_count || (count >= 1 && at + count == op.positional_count))) {
    // Varargs: the only positional parameter takes all ints, as in x.view(2, 3) and zeros(2, 3); reshape(x, 2, 3) is no
    // such call. A last list of tensors takes the remaining ones.
    int last = op.positional_count - 1;
    bool varargs = last == (self ? 1 : 0) && op.arguments[last].kind == Kind::IntList &&
                   op.arguments[last].list_size == 0 && count - (last - at) >= 1 && !PyTuple_Check(args[last - at]) &&
                   !PyList_Check(args[last - at]) && args[last - at] != Py_None;
    bool rest = last >= at && op.arguments[last].list_size < 0;
    bool tensor_varargs = !varargs && last >= at && op.arguments[last].kind == Kind::TensorList &&
                          count - (last - at) >= 1 && classify(args[last - at]) != kNotTensor;
    if (rest) {
      if (!rest_of(args + (last - at), count - (last - at), f, f.values[last])) throw PythonError();
      seen |= 1u << last;
      positional = last - at;
    } else if (varargs || tensor_varargs) {
      auto n = static_cast<size_t>(count - (last - at));
      if (varargs) {
        int64_t* p = f.more_ints(n);
        for (size_t i = 0; i < n; i++)
          if ((i == 0 && PyBool_Check(args[last - at])) ||
              !int_from(args[last - at + static_cast<Py_ssize_t>(i)], p[i], ErrorKind::Type))
            return wrong_type(op, last, args[last - at + static_cast<Py_ssize_t>(i)], problem);
        f.values[last] = Value::of_ints(p, static_cast<int>(n));
      } else {
        Tensor** p = f.more_tensors(n);
        for (size_t i = 0; i < n; i++) {
          PyObject* o = args[last - at + static_cast<Py_ssize_t>(i)];
          int kind = classify(o);
          if (kind & kHasOverride) f.override_seen = true;
          if (kind == kNotTensor) return wrong_type(op, last, o, problem);
          p[i] = kind & kIsTensor ? tensor_of(o) : nullptr;
        }
        f.values[last] = Value::of_tensors(p, n);
      }
      seen |= 1u << last;
      positional = last - at;
    } else if (at + count > op.positional_count) {
      if (problem)
        *problem = "takes " + std::to_string(op.positional_count - at) + " positional arguments but " +
                   std::to_string(count) + " were given";
      return false;
    }
  }
  for (Py_ssize_t i = 0; i < positional; i++, at++)
    if (RL_UNLIKELY(!convert(op, op.arguments[at], args[i], f, f.values[at])))
      return wrong_type(op, at, args[i], problem);
  seen |= (at >= 32 ? ~0u : (1u << at) - 1);

  if (RL_UNLIKELY(names != nullptr)) {
    Py_ssize_t n = PyTuple_GET_SIZE(names);
    for (Py_ssize_t j = 0; j < n; j++) {
      PyObject* name = PyTuple_GET_ITEM(names, j);
      int i = find_argument(op, name);
      if (i < 0) {
        if ((op.flags & kHasOut) && !inplace && PyUnicode_CompareWithASCIIString(name, "out") == 0) {
          if (!parse_out(op, args[count + j], f, problem)) return false;
          continue;
        }
        if (problem) *problem = std::string("got an unexpected keyword argument '") + PyUnicode_AsUTF8(name) + "'";
        return false;
      }
      if (seen >> i & 1) {
        if (problem) *problem = std::string("got multiple values for argument '") + PyUnicode_AsUTF8(name) + "'";
        return false;
      }
      if (!convert(op, op.arguments[i], args[count + j], f, f.values[i]))
        return wrong_type(op, i, args[count + j], problem);
      seen |= 1u << i;
    }
  }
  uint32_t all = (1u << op.argument_count) - 1;
  for (uint32_t m = all & ~seen; m; m &= m - 1) {
    int i = __builtin_ctz(m);
    if (RL_UNLIKELY(!op.arguments[i].has_default)) {
      if (problem)
        *problem = std::string("missing required argument '") + public_name(op.arguments[i]) + "' (position " +
                   std::to_string(i + 1) + ")";
      return false;
    }
    f.values[i] = op.arguments[i].default_value;
  }
  return true;
}

}  // namespace rl
