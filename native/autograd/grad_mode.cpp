// no_grad, enable_grad, set_grad_enabled, inference_mode: context managers that are also decorators, in C because small
// inference steps spend their time on them.
#include "python_api.h"

namespace rl {

namespace {

enum class Switch : uint8_t { NoGrad, EnableGrad, SetGrad, Inference };

struct SwitchObject {
  PyObject ob_base;
  Switch kind;
  bool mode;
  uint32_t depth;
  uint64_t grad_history, inference_history;  // one bit for each entry: the same object may be entered again
  bool previous;                             // SetGrad acts when it is made
};

SwitchObject* self_of(PyObject* o) { return reinterpret_cast<SwitchObject*>(o); }

void apply(const SwitchObject* s) {
  switch (s->kind) {
    case Switch::NoGrad:
      thread_state.grad_mode = false;
      break;
    case Switch::EnableGrad:
      thread_state.grad_mode = true;
      break;
    case Switch::SetGrad:
      thread_state.grad_mode = s->mode;
      break;
    case Switch::Inference:
      thread_state.inference_mode = s->mode;
      thread_state.grad_mode = !s->mode;
      break;
  }
}

PyObject* enter(PyObject* self, PyObject*) {
  SwitchObject* s = self_of(self);
  if (s->depth >= 64) {
    PyErr_SetString(PyExc_RuntimeError, "a grad mode object was entered more than 64 times without leaving");
    return nullptr;
  }
  bool before = thread_state.grad_mode;
  if (s->kind == Switch::SetGrad && s->depth == 0) before = s->previous;
  s->grad_history = s->grad_history << 1 | before;
  s->inference_history = s->inference_history << 1 | thread_state.inference_mode;
  s->depth++;
  apply(s);
  Py_RETURN_NONE;
}

PyObject* leave(PyObject* self, PyObject* const*, Py_ssize_t) {
  SwitchObject* s = self_of(self);
  if (!s->depth) {
    PyErr_SetString(PyExc_RuntimeError, "a grad mode object was left without being entered");
    return nullptr;
  }
  thread_state.grad_mode = s->grad_history & 1;
  if (s->kind == Switch::Inference) thread_state.inference_mode = s->inference_history & 1;
  s->grad_history >>= 1;
  s->inference_history >>= 1;
  s->depth--;
  Py_RETURN_FALSE;
}

PyObject* decorate(PyObject* self, PyObject* function) {
  return guarded([&]() -> PyObject* {
    static PyObject* decorator = nullptr;
    if (!decorator) {
      Py module(need(PyImport_ImportModule("rushlight.autograd.grad_mode")));
      decorator = need(PyObject_GetAttrString(module.get(), "_decorate"));
    }
    SwitchObject* s = self_of(self);
    if (s->kind == Switch::SetGrad && !s->depth) thread_state.grad_mode = s->previous;
    return need(PyObject_CallFunctionObjArgs(decorator, self, function, nullptr));
  });
}

PyObject* call(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* function;
  if ((kwargs && PyDict_GET_SIZE(kwargs)) || !PyArg_UnpackTuple(args, "__call__", 1, 1, &function)) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a grad mode object takes the function to decorate");
    return nullptr;
  }
  return decorate(self, function);
}

// A fresh object of the same kind and mode, for each call of a decorated function.
PyObject* clone(PyObject* self, PyObject*) {
  SwitchObject* s = self_of(self);
  auto* c = reinterpret_cast<SwitchObject*>(Py_TYPE(self)->tp_alloc(Py_TYPE(self), 0));
  if (!c) return nullptr;
  c->kind = s->kind;
  c->mode = s->mode;
  c->previous = thread_state.grad_mode;
  return reinterpret_cast<PyObject*>(c);
}

PyObject* make(PyTypeObject* type, Switch kind, PyObject* args, PyObject* kwargs) {
  static const char* function_keys[] = {"orig_func", nullptr};
  static const char* mode_keys[] = {"mode", nullptr};
  PyObject* argument = nullptr;
  bool takes_mode = kind == Switch::SetGrad || kind == Switch::Inference;
  if (PyTuple_GET_SIZE(args) || kwargs) {
    const char* format = kind == Switch::SetGrad ? "O" : "|O";
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, format, const_cast<char**>(takes_mode ? mode_keys : function_keys),
                                     &argument))
      return nullptr;
  } else if (kind == Switch::SetGrad) {
    PyErr_SetString(PyExc_TypeError, "set_grad_enabled() missing 1 required positional argument: 'mode'");
    return nullptr;
  }
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  SwitchObject* s = self_of(self);
  s->kind = kind;
  s->mode = true;
  s->previous = thread_state.grad_mode;
  PyObject* function = nullptr;
  if (argument) {
    if (kind == Switch::SetGrad || (kind == Switch::Inference && !PyCallable_Check(argument))) {
      if (!PyBool_Check(argument)) {
        PyErr_Format(PyExc_TypeError, "%s(): argument 'mode' must be bool, not %s", type->tp_name,
                     Py_TYPE(argument)->tp_name);
        Py_DECREF(self);
        return nullptr;
      }
      s->mode = argument == Py_True;
    } else if (argument != Py_None) {
      function = argument;
    }
  }
  if (kind == Switch::SetGrad) apply(s);
  if (!function) return self;
  if (!PyCallable_Check(function)) {
    PyErr_Format(PyExc_TypeError, "%s(): expected a function to decorate, got %s", type->tp_name,
                 Py_TYPE(function)->tp_name);
    Py_DECREF(self);
    return nullptr;
  }
  PyObject* decorated = decorate(self, function);
  Py_DECREF(self);
  return decorated;
}

PyObject* make_no_grad(PyTypeObject* t, PyObject* a, PyObject* k) { return make(t, Switch::NoGrad, a, k); }
PyObject* make_enable_grad(PyTypeObject* t, PyObject* a, PyObject* k) { return make(t, Switch::EnableGrad, a, k); }
PyObject* make_set_grad(PyTypeObject* t, PyObject* a, PyObject* k) { return make(t, Switch::SetGrad, a, k); }
PyObject* make_inference(PyTypeObject* t, PyObject* a, PyObject* k) { return make(t, Switch::Inference, a, k); }

PyObject* switch_repr(PyObject* self) {
  SwitchObject* s = self_of(self);
  if (s->kind == Switch::SetGrad) return PyUnicode_FromFormat("set_grad_enabled(mode=%s)", s->mode ? "True" : "False");
  if (s->kind == Switch::Inference) return PyUnicode_FromFormat("inference_mode(mode=%s)", s->mode ? "True" : "False");
  return PyUnicode_FromString(s->kind == Switch::NoGrad ? "no_grad()" : "enable_grad()");
}

PyMethodDef switch_methods[] = {
    {"__enter__", enter, METH_NOARGS, nullptr},
    {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(leave)), METH_FASTCALL, nullptr},
    {"clone", clone, METH_NOARGS, "A fresh object of the same kind."},
    {nullptr, nullptr, 0, nullptr}};

void switch_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
}

PyTypeObject make_type(const char* name, newfunc make_new, const char* doc) {
  PyTypeObject type{};
  Py_SET_REFCNT(&type, 1);
  type.tp_name = name;
  type.tp_basicsize = sizeof(SwitchObject);
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  type.tp_dealloc = switch_dealloc;
  type.tp_repr = switch_repr;
  type.tp_call = call;
  type.tp_methods = switch_methods;
  type.tp_new = make_new;
  type.tp_doc = doc;
  return type;
}

PyTypeObject types[] = {
    make_type("rushlight.autograd.grad_mode.no_grad", make_no_grad,
              "Switches recording off for the current thread: a context manager and a decorator.\n\n"
              "Example::\n\n    >>> x = rushlight.ones(1, requires_grad=True)\n    >>> with rushlight.no_grad():\n    "
              "...     (x * 2).requires_grad\n    False"),
    make_type("rushlight.autograd.grad_mode.enable_grad", make_enable_grad,
              "Switches recording on for the current thread: a context manager and a decorator."),
    make_type("rushlight.autograd.grad_mode.set_grad_enabled", make_set_grad,
              "Switches recording on or off: a function that acts at once, a context manager and a decorator."),
    make_type(
        "rushlight.autograd.grad_mode.inference_mode", make_inference,
        "Like no_grad, and tensors made inside can never be part of a graph: a context manager and a decorator.")};

PyObject* is_grad_enabled(PyObject*, PyObject*) { return PyBool_FromLong(thread_state.grad_mode); }
PyObject* is_inference_mode_enabled(PyObject*, PyObject*) { return PyBool_FromLong(thread_state.inference_mode); }
PyObject* set_grad_enabled(PyObject*, PyObject* mode) {
  int on = PyObject_IsTrue(mode);
  if (on < 0) return nullptr;
  thread_state.grad_mode = on;
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS, "True when operations are recorded in this thread."},
    {"is_inference_mode_enabled", is_inference_mode_enabled, METH_NOARGS, "True inside inference_mode in this thread."},
    {"_is_grad_enabled", is_grad_enabled, METH_NOARGS, "The same as is_grad_enabled."},
    {"_is_inference_mode_enabled", is_inference_mode_enabled, METH_NOARGS, "The same as is_inference_mode_enabled."},
    {"_set_grad_enabled", set_grad_enabled, METH_O, "Switches recording on or off in this thread."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool grad_mode_init(PyObject* module) {
  for (PyTypeObject& type : types) {
    if (PyType_Ready(&type) < 0) return false;
    Py_INCREF(&type);
    if (PyModule_AddObject(module, std::strrchr(type.tp_name, '.') + 1, reinterpret_cast<PyObject*>(&type)) < 0)
      return false;
  }
  return PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace rl
