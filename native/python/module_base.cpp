// _ModuleBase: what nn.Module inherits for speed. Attribute access finds parameters, submodules and buffers without a
// Python frame, and a call without hooks goes straight to forward. The contract is spelled out in
// rushlight/nn/modules/_base.py.
#include "python.h"

#include <structmember.h>

namespace rl {

namespace {

struct ModuleObject {
  PyObject_HEAD PyObject* dict;
  PyObject* weak_references;
  // A field that is neither dict nor weak references makes this type the layout base of every subclass, also of
  // class Net(Mixin, Module): only then does `dict` above stay where this file reads it.
  void* layout;
};

PyTypeObject* BaseType;
PyObject *str_parameters, *str_buffers, *str_modules, *str_forward, *str_call_with_hooks, *str_explain;
PyObject* instance_hooks[4];
PyObject* global_hooks[4];

PyObject* dict_of(PyObject* self) {
  auto* m = reinterpret_cast<ModuleObject*>(self);
  if (!m->dict) m->dict = PyDict_New();
  return m->dict;
}

// A member by name from one of the three dicts; borrowed, no exception.
inline PyObject* member(PyObject* dict, PyObject* kind, PyObject* name) {
  PyObject* members = PyDict_GetItemWithError(dict, kind);
  return members && PyDict_Check(members) ? PyDict_GetItemWithError(members, name) : nullptr;
}

PyObject* find_member(PyObject* self, PyObject* name) {
  PyObject* dict = reinterpret_cast<ModuleObject*>(self)->dict;
  if (!dict) return nullptr;
  PyObject* found = member(dict, str_parameters, name);
  if (!found && !PyErr_Occurred()) found = member(dict, str_modules, name);
  if (!found && !PyErr_Occurred()) found = member(dict, str_buffers, name);
  return found;
}

PyObject* get_attribute(PyObject* self, PyObject* name) {
  // A name with a leading underscore is mostly an ordinary attribute: members are its second place to look.
  bool members_first = PyUnicode_Check(name) && PyUnicode_GET_LENGTH(name) > 0 && PyUnicode_READ_CHAR(name, 0) != '_';
  if (members_first) {
    if (PyObject* found = find_member(self, name)) return Py_NewRef(found);
    if (PyErr_Occurred()) return nullptr;
  }
  PyObject* value = PyObject_GenericGetAttr(self, name);
  if (value || members_first || !PyErr_ExceptionMatches(PyExc_AttributeError)) return value;
  PyObject *type, *error, *trace;
  PyErr_Fetch(&type, &error, &trace);
  PyObject* found = find_member(self, name);
  if (found || PyErr_Occurred()) {
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(trace);
    return Py_XNewRef(found);
  }
  PyErr_Restore(type, error, trace);
  return nullptr;
}

bool any_hooks(PyObject* self) {
  for (PyObject* hooks : global_hooks)
    if (hooks && PyDict_GET_SIZE(hooks)) return true;
  PyObject* dict = dict_of(self);
  for (PyObject* name : instance_hooks) {
    PyObject* hooks = dict ? PyDict_GetItemWithError(dict, name) : nullptr;
    if (hooks && PyDict_Check(hooks) && PyDict_GET_SIZE(hooks)) return true;
  }
  return false;
}

[[gnu::noinline]] void explain(PyObject* self, PyObject* args, PyObject* kwargs) {
  if (!PyErr_ExceptionMatches(PyExc_RuntimeError) && !PyErr_ExceptionMatches(PyExc_TypeError) &&
      !PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_IndexError))
    return;
  PyObject *type, *error, *trace;
  PyErr_Fetch(&type, &error, &trace);
  PyErr_NormalizeException(&type, &error, &trace);
  if (trace) PyException_SetTraceback(error, trace);
  PyObject* empty = kwargs ? Py_NewRef(kwargs) : PyDict_New();
  PyObject* r = empty ? PyObject_CallMethodObjArgs(self, str_explain, error, args, empty, nullptr) : nullptr;
  if (!r) PyErr_Clear();  // the explanation may fail; the error itself counts
  Py_XDECREF(r);
  Py_XDECREF(empty);
  PyErr_Restore(type, error, trace);
}

// The plain function that is `forward` of a class, borrowed, or nullptr when it is something else. Remembered by class
// and version tag, which changes when the class or a base is modified.
PyObject* forward_function(PyTypeObject* type) {
  struct Entry {
    PyTypeObject* type;
    unsigned version;
    PyObject* function;
  };
  static Entry cache[256];
#if PY_VERSION_HEX < 0x030D0000
  if (!PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG)) return nullptr;
#endif
  unsigned version = type->tp_version_tag;
  if (!version) return nullptr;
  Entry& e = cache[(reinterpret_cast<uintptr_t>(type) >> 5) & 255];
  if (RL_LIKELY(e.type == type && e.version == version)) return e.function;
  PyObject* found = nullptr;
  for (Py_ssize_t i = 0; !found && i < PyTuple_GET_SIZE(type->tp_mro); i++) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
    found = base->tp_dict ? PyDict_GetItemWithError(base->tp_dict, str_forward) : nullptr;
    if (!found && PyErr_Occurred()) PyErr_Clear();
  }
  e = {type, version, found && PyFunction_Check(found) ? found : nullptr};
  return e.function;
}

PyObject* call(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* name = str_forward;
  bool hooks = any_hooks(self);
  if (hooks) name = str_call_with_hooks;
  Py_ssize_t n = PyTuple_GET_SIZE(args);
  PyObject* result;
  if (RL_LIKELY(!kwargs && n <= 6)) {
    PyObject* stack[8];
    stack[1] = self;
    for (Py_ssize_t i = 0; i < n; i++) stack[i + 2] = PyTuple_GET_ITEM(args, i);
    size_t count = static_cast<size_t>(n + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET;
    PyObject* function = hooks ? nullptr : forward_function(Py_TYPE(self));
    // the ordinary case needs no bound method; an instance may have a forward of its own, though
    if (RL_LIKELY(function && !PyDict_GetItemWithError(dict_of(self), str_forward) && !PyErr_Occurred())) {
      result = PyObject_Vectorcall(function, stack + 1, count, nullptr);
    } else {
      result = PyObject_VectorcallMethod(name, stack + 1, count, nullptr);
    }
  } else {
    PyObject* method = PyObject_GetAttr(self, name);
    if (!method) return nullptr;
    result = PyObject_Call(method, args, kwargs);
    Py_DECREF(method);
  }
  if (RL_UNLIKELY(!result && !hooks)) explain(self, args, kwargs);
  return result;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(reinterpret_cast<ModuleObject*>(self)->dict);
  Py_VISIT(Py_TYPE(self));
  return 0;
}
int clear(PyObject* self) {
  Py_CLEAR(reinterpret_cast<ModuleObject*>(self)->dict);
  return 0;
}
void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  auto* m = reinterpret_cast<ModuleObject*>(self);
  if (m->weak_references) PyObject_ClearWeakRefs(self);
  Py_CLEAR(m->dict);
  type->tp_free(self);
  Py_DECREF(type);
}

PyGetSetDef getset[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                        {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef members[] = {{"__dictoffset__", T_PYSSIZET, offsetof(ModuleObject, dict), READONLY, nullptr},
                         {"__weaklistoffset__", T_PYSSIZET, offsetof(ModuleObject, weak_references), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_getattro, reinterpret_cast<void*>(get_attribute)},
                       {Py_tp_call, reinterpret_cast<void*>(call)},
                       {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                       {Py_tp_getset, getset},
                       {Py_tp_members, members},
                       {0, nullptr}};
PyType_Spec spec = {"rushlight._C._ModuleBase", sizeof(ModuleObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};

PyObject* set_hook_dicts(PyObject*, PyObject* dicts) {
  if (!PyTuple_Check(dicts) || PyTuple_GET_SIZE(dicts) != 4) {
    PyErr_SetString(PyExc_TypeError, "_set_module_hook_dicts: expected a tuple of four dicts");
    return nullptr;
  }
  for (int i = 0; i < 4; i++) Py_XSETREF(global_hooks[i], Py_NewRef(PyTuple_GET_ITEM(dicts, i)));
  Py_RETURN_NONE;
}
PyMethodDef functions[] = {{"_set_module_hook_dicts", set_hook_dicts, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool module_base_init(PyObject* module) {
  str_parameters = PyUnicode_InternFromString("_parameters");
  str_buffers = PyUnicode_InternFromString("_buffers");
  str_modules = PyUnicode_InternFromString("_modules");
  str_forward = PyUnicode_InternFromString("forward");
  str_call_with_hooks = PyUnicode_InternFromString("_call_with_hooks");
  str_explain = PyUnicode_InternFromString("_explain_failure");
  const char* names[] = {"_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"};
  for (int i = 0; i < 4; i++) instance_hooks[i] = PyUnicode_InternFromString(names[i]);
  BaseType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return BaseType && PyModule_AddObject(module, "_ModuleBase", Py_NewRef(reinterpret_cast<PyObject*>(BaseType))) == 0 &&
         PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace rl
