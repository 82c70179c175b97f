// The two Python types over an overload set (a function, and a method descriptor of Tensor), and what a call of one
// does: parse, overrides, run, results.
#include "../autograd/autograd.h"
#include "python.h"

#include <structmember.h>

namespace rl {

namespace {

struct OpObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  const OpGroup* group;
  bool inplace;
  bool method;
  PyObject* name;
  PyObject* module;
};

std::vector<PyTypeObject*> return_types;  // named tuple types by op index, made at first use

// Every field on a line of its own.
PyObject* named_repr(PyObject* self) {
  PyObject* fields = PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(self)), "__match_args__");
  PyObject* text = PyUnicode_FromFormat("%s(", Py_TYPE(self)->tp_name);
  for (Py_ssize_t i = 0; fields && text && i < PyTuple_GET_SIZE(fields); i++) {
    PyObject* longer = PyUnicode_FromFormat("%U%s\n%U=%R", text, i ? "," : "", PyTuple_GET_ITEM(fields, i),
                                            PyStructSequence_GET_ITEM(self, i));
    Py_DECREF(text);
    text = longer;
  }
  PyObject* whole = text ? PyUnicode_FromFormat("%U)", text) : nullptr;
  Py_XDECREF(text);
  Py_XDECREF(fields);
  return whole;
}

PyTypeObject* return_type(const Op& op) {
  if (RL_UNLIKELY(return_types.empty())) return_types.resize(static_cast<size_t>(op_table_size));
  PyTypeObject*& type = return_types[static_cast<size_t>(op.index)];
  if (type) return type;
  auto* fields = new PyStructSequence_Field[static_cast<size_t>(op.result_count) + 1];
  for (int i = 0; i < op.result_count; i++) fields[i] = {op.result_names[i], nullptr};
  fields[op.result_count] = {nullptr, nullptr};
  auto* name = new std::string(std::string("rushlight.return_types.") + op.title());
  PyStructSequence_Desc desc = {name->c_str(), nullptr, fields, op.result_count};
  type = PyStructSequence_NewType(&desc);
  if (!type) throw PythonError();
  type->tp_repr = named_repr;
  PyType_Modified(type);
  return type;
}

}  // namespace

PyObject* value_to_python(const Value& v) {
  switch (v.tag) {
    case Tag::None:
      Py_RETURN_NONE;
    case Tag::Tensor:
      return Py_NewRef(v.tensor->object());
    case Tag::Int:
      return PyLong_FromLongLong(v.integer);
    case Tag::Double:
    case Tag::BigInt:
      return PyFloat_FromDouble(v.real);
    case Tag::Bool:
      return PyBool_FromLong(v.integer != 0);
    case Tag::Complex:
      return PyComplex_FromDoubles(v.complex.re, v.complex.im);
    case Tag::DType:
      return dtype_object(v.dtype);
    case Tag::Object:
      return Py_NewRef(v.object);
    case Tag::Text:
      return PyUnicode_FromString(v.text);
    case Tag::IntList: {
      PyObject* t = PyTuple_New(v.size);
      for (uint32_t i = 0; t && i < v.size; i++) PyTuple_SET_ITEM(t, i, PyLong_FromLongLong(v.ints[i]));
      return t;
    }
    case Tag::DoubleList: {
      PyObject* t = PyTuple_New(v.size);
      for (uint32_t i = 0; t && i < v.size; i++) PyTuple_SET_ITEM(t, i, PyFloat_FromDouble(v.doubles[i]));
      return t;
    }
    case Tag::TensorList: {
      PyObject* t = PyTuple_New(v.size);
      for (uint32_t i = 0; t && i < v.size; i++)
        PyTuple_SET_ITEM(t, i, Py_NewRef(v.tensors[i] ? v.tensors[i]->object() : Py_None));
      return t;
    }
  }
  Py_RETURN_NONE;
}

void release_results(Value* results, int count);

PyObject* result_to_python(const Op& op, Value* results) {
  if (RL_LIKELY(op.result_count == 1)) {
    if (RL_LIKELY(results[0].tag == Tag::Tensor)) return results[0].tensor->object();
    PyObject* o = value_to_python(results[0]);
    release_results(results, 1);
    return o;
  }
  bool named = op.flags & kNamedResult;
  PyObject* tuple = named ? PyStructSequence_New(return_type(op)) : PyTuple_New(op.result_count);
  if (!tuple) {
    release_results(results, op.result_count);
    throw PythonError();
  }
  for (int i = 0; i < op.result_count; i++) {
    PyObject* o = results[i].tag == Tag::Tensor ? results[i].tensor->object() : value_to_python(results[i]);
    if (results[i].tag != Tag::Tensor) release_results(results + i, 1);
    if (named)
      PyStructSequence_SET_ITEM(tuple, i, o);
    else
      PyTuple_SET_ITEM(tuple, i, o);
  }
  return tuple;
}

// ---------------------------------------------------------------- bodies in Python

namespace {

std::vector<PyObject*> python_bodies;  // by op index, filled at first use

PyObject* body_of(const Op& op) {
  if (RL_UNLIKELY(python_bodies.empty())) python_bodies.resize(static_cast<size_t>(op_table_size));
  PyObject*& body = python_bodies[static_cast<size_t>(op.index)];
  if (RL_LIKELY(body != nullptr)) return body;
  PyObject* module = PyImport_ImportModule("rushlight.ops._lookup");
  if (!module) throw PythonError();
  body = PyObject_CallMethod(module, "body", "sss", op.module, op.name, op.overload);
  Py_DECREF(module);
  if (!body) throw PythonError();
  return body;
}

}  // namespace

void run_python(Call& call) {
  const Op& op = call.op;
  PyObject* body = body_of(op);
  PyObject* stack[kMaxArgs + 1];
  PyObject** args = stack + 1;
  int n = 0;
  PyObject* result = nullptr;
  for (; n < op.argument_count; n++) {
    args[n] = value_to_python(call.args[n]);
    if (!args[n]) break;
  }
  if (n == op.argument_count)
    result = PyObject_Vectorcall(body, args, static_cast<size_t>(n) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
  for (int i = 0; i < n; i++) Py_DECREF(args[i]);
  if (!result) throw PythonError();
  if (op.result_count == 1) {
    if (is_tensor(result))
      call.set(0, TensorRef::own(tensor_of(result)));
    else
      call.results[0] = Value::of_object(result);
    return;
  }
  if (!PyTuple_Check(result) || PyTuple_GET_SIZE(result) != op.result_count) {
    Py_DECREF(result);
    throw_error(ErrorKind::Runtime, "%s: the body must return %d results", op.title(), op.result_count);
  }
  for (int i = 0; i < op.result_count; i++) {
    PyObject* item = PyTuple_GET_ITEM(result, i);
    if (is_tensor(item))
      call.set(i, TensorRef::share(tensor_of(item)));
    else
      call.results[i] = Value::of_object(Py_NewRef(item));
  }
  Py_DECREF(result);
}

// ---------------------------------------------------------------- overrides

PyObject* call_override(PyObject* callable, PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  static PyObject* handler = nullptr;  // rushlight.overrides._dispatch(func, args, kwargs)
  if (!handler) {
    PyObject* module = PyImport_ImportModule("rushlight.overrides");
    if (!module) return nullptr;
    handler = PyObject_GetAttrString(module, "_dispatch");
    Py_DECREF(module);
    if (!handler) return nullptr;
  }
  Py_ssize_t offset = self ? 1 : 0;
  PyObject* tuple = PyTuple_New(count + offset);
  PyObject* kwargs = PyDict_New();
  if (!tuple || !kwargs) {
    Py_XDECREF(tuple);
    Py_XDECREF(kwargs);
    return nullptr;
  }
  if (self) PyTuple_SET_ITEM(tuple, 0, Py_NewRef(self));
  for (Py_ssize_t i = 0; i < count; i++) PyTuple_SET_ITEM(tuple, i + offset, Py_NewRef(args[i]));
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++)
    PyDict_SetItem(kwargs, PyTuple_GET_ITEM(names, i), args[count + i]);
  PyObject* result = PyObject_CallFunctionObjArgs(handler, callable, tuple, kwargs, nullptr);
  Py_DECREF(tuple);
  Py_DECREF(kwargs);
  return result;
}

// ---------------------------------------------------------------- calls

namespace {

[[gnu::noinline]] PyObject* no_match(const OpGroup& group, bool inplace, const std::string& problem) {
  std::string name = std::string(op_table[group.members[0]].title()) + (inplace ? "_" : "");
  auto schema = [&](int i) {
    const Op& op = op_table[group.members[i]];
    return op.schema + (op.title() - op.name);  // the schema begins with the name
  };
  if (group.count == 1) {
    PyErr_Format(PyExc_TypeError, "%s(): %s; expected %s", name.c_str(), problem.c_str(), schema(0));
    return nullptr;
  }
  std::string text = name + "(): the arguments fit none of its signatures:";
  for (int i = 0; i < group.count; i++) {
    text += "\n  * ";
    text += schema(i);
  }
  text += "\n  the last was refused because: " + problem;
  PyErr_SetString(PyExc_TypeError, text.c_str());
  return nullptr;
}

inline PyObject* run_parsed(const Op& op, Frame& f, bool inplace) {
  Value results[kMaxResults];
  if (RL_UNLIKELY(inplace)) {
    Tensor* self = f.values[0].is_tensor() ? f.values[0].tensor : nullptr;
    RL_CHECK(self, Type, "%s_(): the first argument must be a tensor", op.title());
    Tensor* out[kMaxResults] = {self};
    run_op(op, f.values, results, out, true);
  } else {
    run_op(op, f.values, results, f.has_out ? f.out : nullptr, false);
  }
  return result_to_python(op, results);
}

}  // namespace

PyObject* call_group(const OpGroup& group, bool inplace, PyObject* callable, PyObject* self, PyObject* const* args,
                     Py_ssize_t count, PyObject* names) {
  try {
    Frame f;
    std::string problem;
    for (int i = 0;; i++) {
      const Op& op = op_table[group.members[i]];
      bool last = i + 1 == group.count;
      if (RL_LIKELY(parse(op, self, args, count, names, inplace, f, last ? &problem : nullptr))) {
        if (RL_UNLIKELY((f.override_seen || thread_state.mode_depth) && !thread_state.overrides_disabled))
          return call_override(callable, self, args, count, names);
        if (op.flags & kInplaceOnly) return run_parsed(op, f, false);
        return run_parsed(op, f, inplace);
      }
      if (f.override_seen && !thread_state.overrides_disabled) return call_override(callable, self, args, count, names);
      if (last) break;
      f.reset();
    }
    return no_match(group, inplace, problem);
  } catch (...) {
    return raise_current();
  }
}

namespace {

PyObject* function_call(PyObject* self, PyObject* const* args, size_t nargs, PyObject* names) {
  auto* o = reinterpret_cast<OpObject*>(self);
  return call_group(*o->group, o->inplace, self, nullptr, args, PyVectorcall_NARGS(nargs), names);
}

PyObject* method_call(PyObject* callable, PyObject* const* args, size_t nargs, PyObject* names) {
  auto* o = reinterpret_cast<OpObject*>(callable);
  Py_ssize_t n = PyVectorcall_NARGS(nargs);
  if (n < 1) {
    PyErr_Format(PyExc_TypeError, "unbound method Tensor.%U() needs an argument", o->name);
    return nullptr;
  }
  return call_group(*o->group, o->inplace, callable, args[0], args + 1, n - 1, names);
}

void op_dealloc(PyObject* self) {
  auto* o = reinterpret_cast<OpObject*>(self);
  Py_XDECREF(o->name);
  Py_XDECREF(o->module);
  Py_TYPE(self)->tp_free(self);
}

PyObject* op_repr(PyObject* self) {
  auto* o = reinterpret_cast<OpObject*>(self);
  return o->method ? PyUnicode_FromFormat("<method '%U' of 'rushlight.Tensor' objects>", o->name)
                   : PyUnicode_FromFormat("<built-in function %U>", o->name);
}

PyObject* op_doc(PyObject* self, void*) {
  auto* o = reinterpret_cast<OpObject*>(self);
  PyObject* module = PyImport_ImportModule("rushlight.ops._lookup");
  if (!module) return nullptr;
  PyObject* doc = PyObject_CallMethod(module, "docstring", "s", o->group->name);
  Py_DECREF(module);
  return doc;
}

PyObject* op_name(PyObject* self, void*) { return Py_NewRef(reinterpret_cast<OpObject*>(self)->name); }
PyObject* op_module(PyObject* self, void*) { return Py_NewRef(reinterpret_cast<OpObject*>(self)->module); }
PyObject* op_schemas(PyObject* self, void*) {
  const OpGroup& g = *reinterpret_cast<OpObject*>(self)->group;
  PyObject* t = PyTuple_New(g.count);
  for (int i = 0; t && i < g.count; i++) PyTuple_SET_ITEM(t, i, PyUnicode_FromString(op_table[g.members[i]].schema));
  return t;
}
PyObject* op_signature(PyObject* self, void*) {
  auto* o = reinterpret_cast<OpObject*>(self);
  PyObject* module = PyImport_ImportModule("rushlight.ops._lookup");
  if (!module) return nullptr;
  PyObject* r = PyObject_CallMethod(module, "signature", "ss", op_table[o->group->members[0]].schema,
                                    o->method ? "method" : "function");
  Py_DECREF(module);
  return r;
}
PyObject* op_qualname(PyObject* self, void*) {
  auto* o = reinterpret_cast<OpObject*>(self);
  return o->method ? PyUnicode_FromFormat("Tensor.%U", o->name) : Py_NewRef(o->name);
}

PyGetSetDef op_getset[] = {{"__doc__", op_doc, nullptr, nullptr, nullptr},
                           {"__name__", op_name, nullptr, nullptr, nullptr},
                           {"__qualname__", op_qualname, nullptr, nullptr, nullptr},
                           {"__module__", op_module, nullptr, nullptr, nullptr},
                           {"__signature__", op_signature, nullptr, nullptr, nullptr},
                           {"schemas", op_schemas, nullptr, nullptr, nullptr},
                           {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyObject* method_get(PyObject* self, PyObject* instance, PyObject*) {
  if (!instance || instance == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, instance);
}

// Pickled by reference: pickle looks the name up in its module.
PyObject* op_reduce(PyObject* self, PyObject*) {
  auto* o = reinterpret_cast<OpObject*>(self);
  if (!o->method) return Py_NewRef(o->name);
  PyObject* builtins = PyImport_ImportModule("builtins");
  PyObject* getattr = builtins ? PyObject_GetAttrString(builtins, "getattr") : nullptr;
  Py_XDECREF(builtins);
  return getattr ? Py_BuildValue("N(OO)", getattr, &TensorType, o->name) : nullptr;
}
PyMethodDef op_methods[] = {{"__reduce__", op_reduce, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};

PyTypeObject make_type(const char* name, descrgetfunc get, unsigned long flags) {
  PyTypeObject type = blank_type();
  type.tp_name = name;
  type.tp_basicsize = sizeof(OpObject);
  type.tp_vectorcall_offset = offsetof(OpObject, vectorcall);
  type.tp_call = PyVectorcall_Call;
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | flags;
  type.tp_dealloc = op_dealloc;
  type.tp_repr = op_repr;
  type.tp_getset = op_getset;
  type.tp_methods = op_methods;
  type.tp_descr_get = get;
  return type;
}
PyTypeObject FunctionType = make_type("rushlight.Operation", nullptr, 0);
PyTypeObject MethodType = make_type("rushlight.OperationMethod", method_get, Py_TPFLAGS_METHOD_DESCRIPTOR);

PyObject* new_op_object(bool method, const OpGroup* group, bool inplace, const char* name, const char* module) {
  OpObject* o = PyObject_New(OpObject, method ? &MethodType : &FunctionType);
  if (!o) return nullptr;
  o->vectorcall = method ? method_call : function_call;
  o->group = group;
  o->inplace = inplace;
  o->method = method;
  o->name = PyUnicode_InternFromString(name);
  o->module = PyUnicode_FromFormat(*module ? "rushlight.%s" : "rushlight%s", module);
  return reinterpret_cast<PyObject*>(o);
}

// operations(module_path) -> {name: function}: what belongs into rushlight.<module_path>
PyObject* py_operations(PyObject*, PyObject* path) {
  const char* module = PyUnicode_AsUTF8(path);
  if (!module) return nullptr;
  PyObject* dict = PyDict_New();
  if (!dict) return nullptr;
  for (int i = 0; i < public_function_count; i++) {
    const PublicFunction& f = public_functions[i];
    if (std::strcmp(f.module, module)) continue;
    PyObject* o = new_op_object(false, &op_groups[f.group], f.inplace, f.name, f.module);
    if (!o || PyDict_SetItemString(dict, f.name, o) < 0) {
      Py_XDECREF(o);
      Py_DECREF(dict);
      return nullptr;
    }
    Py_DECREF(o);
  }
  return dict;
}

// private_operation(name) -> function, for any group, public or not
PyObject* py_private_operation(PyObject*, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) return nullptr;
  const OpGroup* group = find_group(text);
  if (group) return new_op_object(false, group, false, text, "_C");
  std::string base(text);
  if (base.size() > 1 && base.back() == '_') {
    base.pop_back();
    group = find_group(base.c_str());
    if (group && op_table[group->members[0]].flags & kHasInplace) return new_op_object(false, group, true, text, "_C");
  }
  PyErr_Format(PyExc_AttributeError, "module 'rushlight' has no attribute '%s'", text);
  return nullptr;
}

// _return_type(name) -> the named tuple type of an operation's results
PyObject* py_return_type(PyObject*, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) return nullptr;
  const OpGroup* group = find_group(text);
  for (int i = 0; group && i < group->count; i++) {
    const Op& op = op_table[group->members[i]];
    if (op.flags & kNamedResult)
      return guarded([&]() { return Py_NewRef(reinterpret_cast<PyObject*>(return_type(op))); });
  }
  PyErr_Format(PyExc_AttributeError, "module 'rushlight.return_types' has no attribute '%s'", text);
  return nullptr;
}

PyMethodDef module_methods[] = {{"_return_type", py_return_type, METH_O, nullptr},
                                {"operations", py_operations, METH_O, nullptr},
                                {"private_operation", py_private_operation, METH_O, nullptr},
                                {nullptr, nullptr, 0, nullptr}};

}  // namespace

const OpGroup* find_group(const char* name) {
  for (int i = 0; i < op_group_count; i++)
    if (!std::strcmp(op_groups[i].name, name)) return &op_groups[i];
  return nullptr;
}

PyObject* method_object(const char* name) { return PyDict_GetItemString(TensorType.tp_dict, name); }

bool functions_init(PyObject* module) {
  str_torch_function = PyUnicode_InternFromString("__torch_function__");
  if (PyType_Ready(&FunctionType) < 0 || PyType_Ready(&MethodType) < 0) return false;
  for (int i = 0; i < public_method_count; i++) {
    const PublicMethod& m = public_methods[i];
    PyObject* o = new_op_object(true, &op_groups[m.group], m.inplace, m.name, "");
    if (!o) return false;
    if (PyDict_GetItemString(TensorType.tp_dict, m.name) == nullptr &&
        PyDict_SetItemString(TensorType.tp_dict, m.name, o) < 0)
      return false;
    Py_DECREF(o);
  }
  PyType_Modified(&TensorType);
  Py_INCREF(&FunctionType);
  return PyModule_AddObject(module, "Operation", reinterpret_cast<PyObject*>(&FunctionType)) == 0 &&
         PyModule_AddFunctions(module, module_methods) == 0;
}

}  // namespace rl
