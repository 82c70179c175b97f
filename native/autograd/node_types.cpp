// The Python types of nodes.
#include <map>

#include "derivative.h"
#include "hooks.h"
#include "python_api.h"

namespace rl {

namespace {

Node* node_of(PyObject* o) { return reinterpret_cast<Node*>(o); }

std::string short_name(PyTypeObject* type) {
  const char* dot = std::strrchr(type->tp_name, '.');
  return dot ? dot + 1 : type->tp_name;
}

// PyTorch's names of these two have a namespace, and programs look for them.
PyObject* get_name(PyObject* self, PyObject*) {
  Node* n = node_of(self);
  bool built_in = n->kind == NodeKind::Accumulate || n->kind == NodeKind::CopySlices;
  return PyUnicode_FromString(((built_in ? "torch::autograd::" : "") + node_name(n)).c_str());
}

PyObject* node_repr(PyObject* self) {
  return PyUnicode_FromFormat("<%s object at %p>", node_name(node_of(self)).c_str(), self);
}

PyObject* get_next_functions(PyObject* self, void*) {
  Node* n = node_of(self);
  PyObject* tuple = PyTuple_New(n->edge_count);
  for (uint32_t i = 0; tuple && i < n->edge_count; i++) {
    Node* next = n->edges[i].node;
    PyObject* pair = Py_BuildValue("(OI)", next ? next->object() : Py_None, next ? n->edges[i].index : 0u);
    if (!pair)
      Py_CLEAR(tuple);
    else
      PyTuple_SET_ITEM(tuple, i, pair);
  }
  return tuple;
}

PyObject* get_metadata(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    NodeExtras& x = extras_of(node_of(self));
    if (!x.metadata) x.metadata = need(PyDict_New());
    return Py_NewRef(x.metadata);
  });
}

PyObject* get_requires_grad(PyObject*, void*) { Py_RETURN_TRUE; }

PyObject* get_input_metadata(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    static PyObject* type = nullptr;
    if (!type) {
      Py module(need(PyImport_ImportModule("rushlight.autograd.graph")));
      type = need(PyObject_GetAttrString(module.get(), "_InputMetadata"));
    }
    Node* n = node_of(self);
    Py list(need(PyList_New(0)));
    for (uint32_t i = 0; i < n->output_count; i++) {
      const OutputInfo& o = n->outputs[i];
      Py shape(need(size_object(o.ndim, o.shape())));
      Py dtype(dtype_object(static_cast<DType>(o.dtype)));
      Py device(need(device_object(static_cast<Device>(o.device))));
      Py item(need(PyObject_CallFunctionObjArgs(type, shape.get(), dtype.get(), device.get(), nullptr)));
      if (PyList_Append(list.get(), item.get()) < 0) throw PythonError();
    }
    return need(PyList_AsTuple(list.get()));
  });
}

PyObject* sequence_number(PyObject* self, PyObject*) { return PyLong_FromUnsignedLongLong(node_of(self)->sequence); }

PyObject* register_hook(PyObject* self, PyObject* hook) {
  return guarded([&] { return add_hook(extras_of(node_of(self)).post_hooks, hook); });
}
PyObject* register_prehook(PyObject* self, PyObject* hook) {
  return guarded([&] { return add_hook(extras_of(node_of(self)).pre_hooks, hook); });
}

// node(*gradients) -> the gradient that each edge gets, or None; no hooks run.
PyObject* call_node(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    Node* n = node_of(self);
    RL_CHECK(!kwargs || !PyDict_GET_SIZE(kwargs), Type, "%s takes no keyword arguments", node_name(n).c_str());
    RL_CHECK(PyTuple_GET_SIZE(args) == n->output_count, Type, "%s: expected %u gradients, got %zd",
             node_name(n).c_str(), n->output_count, PyTuple_GET_SIZE(args));
    std::vector<Tensor*> grads;
    for (uint32_t i = 0; i < n->output_count; i++) {
      PyObject* o = PyTuple_GET_ITEM(args, i);
      RL_CHECK(o == Py_None || PyObject_TypeCheck(o, &TensorType), Type, "%s: expected tensors or None, got %s",
               node_name(n).c_str(), Py_TYPE(o)->tp_name);
      grads.push_back(o == Py_None ? nullptr : reinterpret_cast<Tensor*>(o));
    }
    std::vector<Tensor*> results(n->edge_count);
    std::unique_ptr<bool[]> needed(new bool[n->edge_count + 1]);
    for (uint32_t i = 0; i < n->edge_count; i++) needed[i] = n->edges[i].node != nullptr;
    if (n->kind == NodeKind::Accumulate) {
      RL_CHECK(n->leaf && grads[0], Runtime, "AccumulateGrad: expected a gradient, and a leaf that is alive");
      TensorRef sum = n->leaf->grad ? add_gradients(n->leaf->grad, grads[0]) : clone_gradient(grads[0], n->leaf);
      if (Tensor* old = std::exchange(n->leaf->grad, sum.take())) release(old);
      return PyTuple_New(0);
    }
    apply_node(n, grads.data(), results.data(), needed.get());
    Py tuple(need(PyTuple_New(n->edge_count)));
    for (uint32_t i = 0; i < n->edge_count; i++)
      PyTuple_SET_ITEM(tuple.get(), i, results[i] ? results[i]->object() : Py_NewRef(Py_None));
    return n->edge_count == 1 ? Py_NewRef(PyTuple_GET_ITEM(tuple.get(), 0)) : tuple.take();
  });
}

// forward_line() -> (file, line, function) or None
PyObject* forward_line(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    std::string file, function;
    int line = 0;
    if (!line_of(node_of(self), file, line, function)) Py_RETURN_NONE;
    return Py_BuildValue("(sis)", file.c_str(), line, function.c_str());
  });
}

Saved& slot_of(Node* n, Py_ssize_t position) {
  RL_CHECK(position >= 0 && position < n->saved_count, Index, "%s saved %u values, asked for number %zd",
           node_name(n).c_str(), n->saved_count, position);
  return n->saved[position];
}

// rushlight.autograd.graph.SavedTensor(node, position)
PyObject* raw_saved(Node* n, Py_ssize_t position) {
  static PyObject* type = nullptr;
  if (!type) {
    Py module(need(PyImport_ImportModule("rushlight.autograd.graph")));
    type = need(PyObject_GetAttrString(module.get(), "_saved_tensor"));
  }
  return need(PyObject_CallFunction(type, "On", n->object(), position));
}

// _saved_unpack(position), _saved_packed(position) -> (packed value, unpack hook), _saved_hooks(position, pack, unpack)
PyObject* saved_unpack(PyObject* self, PyObject* position) {
  return guarded([&]() -> PyObject* {
    Node* n = node_of(self);
    GradGuard on(true);
    TensorRef held;
    return need(value_to_python(unpack_saved(n, slot_of(n, PyLong_AsSsize_t(position)), held)));
  });
}
PyObject* saved_packed(PyObject* self, PyObject* position) {
  return guarded([&]() -> PyObject* {
    const Saved& s = slot_of(node_of(self), PyLong_AsSsize_t(position));
    if (!s.packed || s.freed) return need(Py_BuildValue("(NO)", need(value_to_python(s.value)), Py_None));
    return need(Py_BuildValue("(OO)", PyTuple_GET_ITEM(s.value.object, 0), PyTuple_GET_ITEM(s.value.object, 1)));
  });
}
PyObject* saved_hooks(PyObject* self, PyObject* args) {
  Py_ssize_t position;
  PyObject *pack, *unpack;
  if (!PyArg_ParseTuple(args, "nOO:register_hooks", &position, &pack, &unpack)) return nullptr;
  return guarded([&]() -> PyObject* {
    pack_later(node_of(self), slot_of(node_of(self), position), pack, unpack);
    Py_RETURN_NONE;
  });
}

// _saved_<name>: what the node keeps for backward. `raw`: as a SavedTensor, if it is a tensor.
PyObject* saved_attribute(Node* n, const char* name, bool raw) {
  if (n->kind != NodeKind::Operation) return nullptr;
  const Op& op = *n->op;
  const Derivative& d = derivative_of(op);
  uint32_t k = 0;
  for (uint32_t m = n->save_mask; m; m &= m - 1, k++) {
    const Source& s = d.saved[static_cast<size_t>(__builtin_ctz(m))];
    const char* label =
        s.kind == SourceKind::Result
            ? (op.result_names && op.result_names[s.index] && *op.result_names[s.index] ? op.result_names[s.index]
                                                                                        : "result")
            : op.arguments[s.index].name;
    std::string full = label;
    if (s.kind == SourceKind::Shape)
      full += "_sym_sizes";
    else if (s.kind == SourceKind::DType)
      full += "_scalar_type";
    else if (s.kind == SourceKind::Strides)
      full += "_sym_strides";
    else if (s.kind == SourceKind::Offset)
      full += "_storage_offset";
    else if (s.kind == SourceKind::Shapes)
      full += "_sizes";
    if (full != name) continue;
    if (raw) {
      bool tensor = s.kind == SourceKind::Argument ? op.tensor_mask >> s.index & 1 : s.kind == SourceKind::Result;
      return tensor && n->saved[k].value.tag != Tag::TensorList ? raw_saved(n, k) : nullptr;
    }
    GradGuard on(true);
    TensorRef held;
    Value v = unpack_saved(n, n->saved[k], held);
    return need(value_to_python(v));
  }
  return nullptr;
}

PyObject* node_getattro(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  const char* text = PyUnicode_AsUTF8(name);
  bool raw = text && !std::strncmp(text, "_raw_saved_", 11);
  if (!raw && (!text || std::strncmp(text, "_saved_", 7))) return nullptr;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  found = guarded([&] { return saved_attribute(node_of(self), text + (raw ? 11 : 7), raw); });
  if (found || PyErr_Occurred()) {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return found;
  }
  PyErr_Restore(type, value, trace);
  return nullptr;
}

PyObject* node_dir(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Py list(need(PyObject_Dir(reinterpret_cast<PyObject*>(Py_TYPE(self)))));
    Node* n = node_of(self);
    if (n->kind == NodeKind::Operation) {
      const Derivative& d = derivative_of(*n->op);
      for (uint32_t m = n->save_mask; m; m &= m - 1) {
        const Source& s = d.saved[static_cast<size_t>(__builtin_ctz(m))];
        if (s.kind != SourceKind::Argument && s.kind != SourceKind::Result) continue;
        for (const char* prefix : {"_saved_", "_raw_saved_"}) {
          std::string name = prefix;
          name += s.kind == SourceKind::Argument ? n->op->arguments[s.index].name : "result";
          Py text(need(PyUnicode_FromString(name.c_str())));
          if (PyList_Append(list.get(), text.get()) < 0) throw PythonError();
        }
      }
    }
    return list.take();
  });
}

PyMethodDef node_methods[] = {
    {"name", get_name, METH_NOARGS, "The name of the node's type."},
    {"register_hook", register_hook, METH_O, "Calls hook(grad_inputs, grad_outputs) after the node; returns a handle."},
    {"register_prehook", register_prehook, METH_O, "Calls hook(grad_outputs) before the node; returns a handle."},
    {"forward_line", forward_line, METH_NOARGS, "(file, line, function) of the line that recorded the node, or None."},
    {"_sequence_nr", sequence_number, METH_NOARGS, "Nodes with higher numbers run first."},
    {"_saved_unpack", saved_unpack, METH_O, nullptr},
    {"_saved_packed", saved_packed, METH_O, nullptr},
    {"_saved_hooks", saved_hooks, METH_VARARGS, nullptr},
    {"__dir__", node_dir, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef node_getset[] = {
    {"next_functions", get_next_functions, nullptr, "A tuple of (node or None, output number), one for each input.",
     nullptr},
    {"metadata", get_metadata, nullptr, "A dict for the user.", nullptr},
    {"requires_grad", get_requires_grad, nullptr, "True.", nullptr},
    {"_input_metadata", get_input_metadata, nullptr, "Shape, dtype and device of the incoming gradients.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyObject* get_variable(PyObject* self, void*) {
  Node* n = node_of(self);
  return Py_NewRef(tensor_or_none(n->kind == NodeKind::Accumulate ? n->leaf : nullptr));
}
PyGetSetDef accumulate_getset[] = {{"variable", get_variable, nullptr, "The leaf whose grad this adds to.", nullptr},
                                   {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyTypeObject make_type(const char* name, PyTypeObject* base) {
  PyTypeObject type{};
  Py_SET_REFCNT(&type, 1);
  type.tp_name = name;
  type.tp_basicsize = sizeof(Node);
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  type.tp_dealloc = node_dealloc;
  type.tp_traverse = node_traverse;
  type.tp_clear = node_clear;
  type.tp_repr = node_repr;
  type.tp_getattro = node_getattro;
  type.tp_base = base;
  if (!base) {
    type.tp_flags |= Py_TPFLAGS_BASETYPE;
    type.tp_methods = node_methods;
    type.tp_call = call_node;
    type.tp_getset = node_getset;
    type.tp_doc = "A step of the backward graph.";
  }
  return type;
}

}  // namespace

PyTypeObject NodeType = make_type("rushlight.autograd.graph.Node", nullptr);
PyTypeObject AccumulateType = make_type("rushlight.autograd.graph.AccumulateGrad", &NodeType);
PyTypeObject CopySlicesType = make_type("rushlight.autograd.graph.CopySlices", &NodeType);
PyTypeObject AsStridedType = make_type("rushlight.autograd.graph.AsStridedBackward0", &NodeType);
PyTypeObject ErrorNodeType = make_type("rushlight.autograd.graph.NotImplemented", &NodeType);

std::string node_name(Node* n) { return short_name(Py_TYPE(n)); }

PyTypeObject* node_type_named(const std::string& name) {
  static std::map<std::string, PyTypeObject*> types;
  PyTypeObject*& type = types[name];
  if (type) return type;
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(node_dealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(node_traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(node_clear)},
                         {0, nullptr}};
  auto* full = new std::string("rushlight.autograd.graph." + name);  // the type refers to it for good
  PyType_Spec spec = {full->c_str(), sizeof(Node), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  Py bases(need(PyTuple_Pack(1, reinterpret_cast<PyObject*>(&NodeType))));
  type = reinterpret_cast<PyTypeObject*>(need(PyType_FromSpecWithBases(&spec, bases.get())));
  return type;
}

bool node_types_init(PyObject* module) {
  AccumulateType.tp_getset = accumulate_getset;
  for (PyTypeObject* type : {&NodeType, &AccumulateType, &CopySlicesType, &AsStridedType, &ErrorNodeType}) {
    if (PyType_Ready(type) < 0) return false;
    Py_INCREF(type);
    if (PyModule_AddObject(module, short_name(type).c_str(), reinterpret_cast<PyObject*>(type)) < 0) return false;
  }
  return true;
}

}  // namespace rl
