// autograd.Function: a node whose backward is Python. The node is the `ctx` that forward and backward get.
#include "engine.h"
#include "hooks.h"
#include "python_api.h"

namespace rl {

namespace {

FunctionNode* function_of(PyObject* o) { return reinterpret_cast<FunctionNode*>(o); }

template <class T>
T* grow(T* inline_block, size_t inline_count, size_t count) {
  if (count <= inline_count) return inline_block;
  auto* p = static_cast<T*>(PyMem_Malloc(sizeof(T) * count));
  if (!p) throw std::bad_alloc();
  return p;
}

std::string class_name(PyObject* cls) { return reinterpret_cast<PyTypeObject*>(cls)->tp_name; }

// ---------------------------------------------------------------- the type

PyObject* function_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  FunctionNode* f = function_of(self);
  node_init(&f->node, NodeKind::Function, 0, 0, 0);
  f->materialize_grads = true;
  return self;
}

PyObject* get_saved_tensors(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    Node* n = reinterpret_cast<Node*>(self);
    Py tuple(need(PyTuple_New(n->saved_count)));
    for (uint32_t i = 0; i < n->saved_count; i++) {
      TensorRef held;
      Value v = unpack_saved(n, n->saved[i], held);
      PyTuple_SET_ITEM(tuple.get(), i, need(value_to_python(v)));
    }
    return tuple.take();
  });
}

PyObject* get_raw_saved_tensors(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    Node* n = reinterpret_cast<Node*>(self);
    Py module(need(PyImport_ImportModule("rushlight.autograd.graph")));
    Py tuple(need(PyTuple_New(n->saved_count)));
    for (uint32_t i = 0; i < n->saved_count; i++)
      PyTuple_SET_ITEM(tuple.get(), i, need(PyObject_CallMethod(module.get(), "_saved_tensor", "OI", self, i)));
    return tuple.take();
  });
}

template <PyObject* FunctionNode::* Field>
PyObject* get_field(PyObject* self, void*) {
  PyObject* o = function_of(self)->*Field;
  return Py_NewRef(o ? o : Py_None);
}
template <PyObject* FunctionNode::* Field>
int set_field(PyObject* self, PyObject* value, void*) {
  PyObject* fresh = value && value != Py_None ? Py_NewRef(value) : nullptr;
  Py_XDECREF(std::exchange(function_of(self)->*Field, fresh));
  return 0;
}
PyObject* get_materialize(PyObject* self, void*) { return PyBool_FromLong(function_of(self)->materialize_grads); }
int set_materialize(PyObject* self, PyObject* value, void*) {
  if (!value || !PyBool_Check(value)) {
    PyErr_SetString(PyExc_RuntimeError, "set_materialize_grads: expected a bool");
    return -1;
  }
  function_of(self)->materialize_grads = value == Py_True;
  return 0;
}

PyGetSetDef function_getset[] = {
    {"saved_tensors", get_saved_tensors, nullptr, "What save_for_backward got.", nullptr},
    {"_raw_saved_tensors", get_raw_saved_tensors, nullptr, "The same as SavedTensor objects.", nullptr},
    {"saved_variables", get_saved_tensors, nullptr, "The same as saved_tensors.", nullptr},
    {"to_save", get_field<&FunctionNode::to_save>, set_field<&FunctionNode::to_save>, nullptr, nullptr},
    {"saved_for_forward", get_field<&FunctionNode::saved_for_forward>, set_field<&FunctionNode::saved_for_forward>,
     nullptr, nullptr},
    {"non_differentiable", get_field<&FunctionNode::non_differentiable>, set_field<&FunctionNode::non_differentiable>,
     nullptr, nullptr},
    {"dirty_tensors", get_field<&FunctionNode::dirty>, set_field<&FunctionNode::dirty>, nullptr, nullptr},
    {"needs_input_grad", get_field<&FunctionNode::needs_input_grad>, set_field<&FunctionNode::needs_input_grad>,
     "A tuple of bools: which inputs of forward need a gradient.", nullptr},
    {"materialize_grads", get_materialize, set_materialize, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyTypeObject make_type() {
  PyTypeObject type{};
  Py_SET_REFCNT(&type, 1);
  type.tp_name = "rushlight._C._FunctionBase";
  type.tp_basicsize = sizeof(FunctionNode);
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE;
  type.tp_dealloc = node_dealloc;
  type.tp_traverse = node_traverse;
  type.tp_clear = node_clear;
  type.tp_base = &NodeType;
  type.tp_getset = function_getset;
  type.tp_new = function_new;
  type.tp_dictoffset = offsetof(FunctionNode, dict);
  type.tp_weaklistoffset = offsetof(FunctionNode, weak_references);
  type.tp_doc = "The part of autograd.Function that is a node.";
  return type;
}

// ---------------------------------------------------------------- forward

// True when `tuple` (a tuple of tensors, or nullptr) has this very tensor.
bool contains(PyObject* tuple, const Tensor* t) {
  for (Py_ssize_t i = 0; tuple && i < PyTuple_GET_SIZE(tuple); i++)
    if (PyTuple_GET_ITEM(tuple, i) == const_cast<Tensor*>(t)->object()) return true;
  return false;
}

void check_tensor_tuple(PyObject* tuple, const char* what) {
  if (!tuple) return;
  RL_CHECK(PyTuple_Check(tuple), Type, "%s: expected tensors, got %s", what, Py_TYPE(tuple)->tp_name);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
    RL_CHECK(as_tensor(PyTuple_GET_ITEM(tuple, i)), Type,
             "%s only accepts variable arguments, but argument %zd is of type %s", what, i,
             Py_TYPE(PyTuple_GET_ITEM(tuple, i))->tp_name);
}

// An alias of the tensor that can have a node of its own.
TensorRef alias_of(Tensor* t) {
  TensorRef v = make_view(t, t->ndim(), t->shape(), t->strides(), t->data());
  v->creation = Creation::CustomFunction;
  v->view_version = t->storage->version;
  copy_wrapped(v.get(), t);
  return v;
}

void unknown_output(Node* n, uint32_t i) {
  OutputInfo& o = n->outputs[i];
  o.dtype = RL_FLOAT32;
  o.device = 0;
  o.differentiable = o.is_tensor = false;
  o.ndim = 0;
}

// One output of forward: tied to the node, detached, or replaced by an alias. Returns the object that apply() gives
// back.
Py finish_output(FunctionNode* f, PyObject* item, uint32_t i, bool recording, PyObject* args) {
  Node* n = &f->node;
  Tensor* t = as_tensor(item);
  if (!t) {
    unknown_output(n, i);
    n->output_count = i + 1;
    return Py::share(item);
  }
  bool is_input = contains(args, t);
  bool dirty = contains(f->dirty, t);
  bool differentiable = recording && is_differentiable(t->dtype()) && !contains(f->non_differentiable, t);
  set_output_info(n, i, t);
  n->outputs[i].differentiable = differentiable;
  n->output_count = i + 1;
  if (!differentiable) {
    if (is_input && !dirty) return Py(shallow_copy(t).take()->object());
    if (t->requires_grad && !is_input) {
      if (t->base) return Py(shallow_copy(t).take()->object());
      autograd_clear(t);
      t->requires_grad = false;
    }
    return Py::share(item);
  }
  if (dirty) {
    RL_CHECK(is_input, Runtime, "mark_dirty: output %u was marked but is not an input of forward", i);
    RL_CHECK(!needs_grad(t) || grad_fn_of(t), Runtime,
             "a leaf Variable that requires grad has been used in an in-place operation. (%s, shape %s)",
             node_name(n).c_str(), shape_text(t).c_str());
    if (t->base) {
      check_dirty_view(t, node_name(n).c_str());
      int edge = 0, self_edge = -1;
      for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(args); k++) {
        if (!as_tensor(PyTuple_GET_ITEM(args, k))) continue;
        if (PyTuple_GET_ITEM(args, k) == item) self_edge = edge;
        edge++;
      }
      RL_CHECK(i == 0, Runtime, "%s: a view that is modified in place must be the first output of forward",
               node_name(n).c_str());
      rebase_history(t, n, self_edge);
    } else {
      if (t->saved) loosen_saved(t, n);
      set_grad_fn(t, n, i);
    }
    return Py::share(item);
  }
  if (is_input) {
    TensorRef alias = alias_of(t);
    set_grad_fn(alias.get(), n, i);
    return Py(alias.take()->object());
  }
  if (t->base) {
    t->creation = Creation::CustomFunction;
    t->view_version = t->storage->version;
  }
  set_grad_fn(t, n, i);
  return Py::share(item);
}

void save_for_backward(FunctionNode* f, PyObject* outputs) {
  PyObject* list = f->to_save;
  if (!list) return;
  Node* n = &f->node;
  RL_CHECK(PyTuple_Check(list), Type, "save_for_backward: expected tensors, got %s", Py_TYPE(list)->tp_name);
  Py_ssize_t count = PyTuple_GET_SIZE(list);
  n->saved = grow(n->inline_saved, kInlineSaved, static_cast<size_t>(count));
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject* o = PyTuple_GET_ITEM(list, i);
    Saved& s = n->saved[i];
    if (o == Py_None) {
      s = Saved{Value::none(), 0, false, false, false, false, 0};
    } else {
      Tensor* t = as_tensor(o);
      RL_CHECK(t, Type, "save_for_backward can only save variables, but argument %zd is of type %s", i,
               Py_TYPE(o)->tp_name);
      bool is_output = t->grad_fn == n && contains(outputs, t);
      save_tensor(n, s, t, is_output, t->output_index);
    }
    n->saved_count++;
  }
  Py_CLEAR(f->to_save);
}

// _function_apply(cls, base_setup_context, args) runs forward and ties its outputs to a new node.
PyObject* function_apply(PyObject*, PyObject* const* argv, Py_ssize_t argc) {
  return guarded([&]() -> PyObject* {
    RL_CHECK(argc == 3 && PyTuple_Check(argv[2]), Type, "_function_apply(cls, base_setup_context, args)");
    PyObject *cls = argv[0], *args = argv[2];
    Py node_class(need(PyObject_GetAttrString(cls, "_backward_cls")));
    Py ctx(need(PyObject_CallNoArgs(node_class.get())));
    RL_CHECK(PyObject_TypeCheck(ctx.get(), &FunctionNodeType), Type, "%s: _backward_cls is no node type",
             class_name(cls).c_str());
    FunctionNode* f = function_of(ctx.get());
    Node* n = &f->node;
    capture_line(n);

    Py_ssize_t count = PyTuple_GET_SIZE(args);
    size_t tensors = 0;
    for (Py_ssize_t i = 0; i < count; i++) tensors += as_tensor(PyTuple_GET_ITEM(args, i)) != nullptr;
    n->edges = grow(n->inline_edges, kInlineEdges, tensors);
    bool any = false;
    Py needs(need(PyTuple_New(count)));
    for (Py_ssize_t i = 0; i < count; i++) {
      Tensor* t = as_tensor(PyTuple_GET_ITEM(args, i));
      bool needed = t && needs_grad(t);
      any |= needed;
      PyTuple_SET_ITEM(needs.get(), i, PyBool_FromLong(needed));
    }
    bool recording = any && thread_state.grad_mode;
    for (Py_ssize_t i = 0; i < count; i++)
      if (Tensor* t = as_tensor(PyTuple_GET_ITEM(args, i))) {
        n->edges[n->edge_count] = recording ? gradient_edge(t) : Edge{nullptr, 0};
        n->edge_count++;
      }
    n->sequence = next_sequence();  // younger than the nodes that were just made for stale views
    Py is_tensor_arg(need(PyTuple_New(count)));
    for (Py_ssize_t i = 0; i < count; i++)
      PyTuple_SET_ITEM(is_tensor_arg.get(), i, PyBool_FromLong(as_tensor(PyTuple_GET_ITEM(args, i)) != nullptr));
    Py_XSETREF(f->needs_input_grad, needs.take());
    Py_XSETREF(f->tensor_inputs, is_tensor_arg.take());

    Py result;
    {
      GradGuard off(false);
      Py forward(need(PyObject_GetAttrString(cls, "forward")));
      Py setup(need(PyObject_GetAttrString(cls, "setup_context")));
      if (setup.get() != argv[1]) {
        result = Py(need(PyObject_Call(forward.get(), args, nullptr)));
        Py(need(PyObject_CallFunctionObjArgs(setup.get(), ctx.get(), args, result.get(), nullptr)));
      } else {
        Py with_ctx(need(PyTuple_New(count + 1)));
        PyTuple_SET_ITEM(with_ctx.get(), 0, Py_NewRef(ctx.get()));
        for (Py_ssize_t i = 0; i < count; i++)
          PyTuple_SET_ITEM(with_ctx.get(), i + 1, Py_NewRef(PyTuple_GET_ITEM(args, i)));
        result = Py(need(PyObject_Call(forward.get(), with_ctx.get(), nullptr)));
      }
    }

    check_tensor_tuple(f->dirty, "mark_dirty");
    check_tensor_tuple(f->non_differentiable, "mark_non_differentiable");
    bool single = !PyTuple_Check(result.get());
    Py outputs(single ? need(PyTuple_Pack(1, result.get())) : Py_NewRef(result.get()));
    auto output_count = static_cast<uint32_t>(PyTuple_GET_SIZE(outputs.get()));
    for (Py_ssize_t i = 0; f->dirty && i < PyTuple_GET_SIZE(f->dirty); i++) {
      Tensor* t = as_tensor(PyTuple_GET_ITEM(f->dirty, i));
      RL_CHECK(contains(args, t), Runtime, "mark_dirty only accepts input tensors, but argument %zd isn't one (%s)", i,
               class_name(cls).c_str());
      RL_CHECK(contains(outputs.get(), t), Runtime,
               "%s: Some elements marked as dirty during the forward method were not returned as output. The inputs "
               "that are modified "
               "inplace must all be outputs of the Function.",
               class_name(cls).c_str());
      bump_version(t);
    }
    n->outputs = grow(&n->inline_output, 1, output_count);
    Py finished(need(PyTuple_New(output_count)));
    for (uint32_t i = 0; i < output_count; i++)
      PyTuple_SET_ITEM(finished.get(), i,
                       finish_output(f, PyTuple_GET_ITEM(outputs.get(), i), i, recording, args).take());
    if (recording) save_for_backward(f, finished.get());
    Py_CLEAR(f->to_save);
    Py_CLEAR(f->dirty);
    Py_CLEAR(f->non_differentiable);
    if (!single) return finished.take();
    return Py_NewRef(PyTuple_GET_ITEM(finished.get(), 0));
  });
}

// _delayed_error(message, tensors) -> tensors of the same values whose differentiation raises.
PyObject* delayed_error(PyObject*, PyObject* args) {
  PyObject *message, *tensors;
  if (!PyArg_ParseTuple(args, "UO!:_delayed_error", &message, &PyTuple_Type, &tensors)) return nullptr;
  return guarded([&]() -> PyObject* {
    Py_ssize_t count = PyTuple_GET_SIZE(tensors);
    NodeRef n =
        node_new(NodeKind::Error, &ErrorNodeType, static_cast<uint32_t>(count), 0, static_cast<uint32_t>(count));
    capture_line(n.get());
    extras_of(n.get()).name = Py_NewRef(message);
    Py result(need(PyTuple_New(count)));
    for (Py_ssize_t i = 0; i < count; i++) {
      PyObject* o = PyTuple_GET_ITEM(tensors, i);
      Tensor* t = as_tensor(o);
      if (t) needs_grad(t);
      n->sequence = next_sequence();
      n->edges[i] = t ? gradient_edge(t) : Edge{nullptr, 0};
      n->edge_count++;
      auto index = static_cast<uint32_t>(i);
      if (!t || !is_differentiable(t->dtype())) {
        unknown_output(n.get(), index);
        n->output_count = index + 1;
        PyTuple_SET_ITEM(result.get(), i, Py_NewRef(o));
        continue;
      }
      set_output_info(n.get(), index, t);
      n->output_count = index + 1;
      TensorRef copy = shallow_copy(t);
      set_grad_fn(copy.get(), n.get(), index);
      PyTuple_SET_ITEM(result.get(), i, copy.take()->object());
    }
    return result.take();
  });
}

PyMethodDef functions[] = {
    {"_function_apply", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function_apply)), METH_FASTCALL, nullptr},
    {"_delayed_error", delayed_error, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyTypeObject FunctionNodeType = make_type();

// ---------------------------------------------------------------- backward

void apply_function(Node* n, Tensor* const* grads, Tensor** results) {
  auto* f = reinterpret_cast<FunctionNode*>(n);
  for (uint32_t i = 0; i < n->saved_count; i++)
    if (n->saved[i].freed) throw_released(n);
  Py args(need(PyTuple_New(n->output_count)));
  for (uint32_t i = 0; i < n->output_count; i++) {
    PyObject* o = tensor_or_none(grads[i]);
    TensorRef zeros;
    if (!grads[i] && f->materialize_grads && n->outputs[i].is_tensor) {
      zeros = zeros_for(n->outputs[i]);
      o = zeros->object();
    }
    PyTuple_SET_ITEM(args.get(), i, Py_NewRef(o));
  }
  Py backward(need(PyObject_GetAttrString(n->object(), "apply")));
  Py result(need(PyObject_Call(backward.get(), args.get(), nullptr)));
  Py tuple(PyTuple_Check(result.get()) ? Py_NewRef(result.get()) : need(PyTuple_Pack(1, result.get())));
  Py_ssize_t got = PyTuple_GET_SIZE(tuple.get());
  Py_ssize_t expected = PyTuple_GET_SIZE(f->tensor_inputs);
  for (Py_ssize_t i = expected; i < got; i++)
    RL_CHECK(PyTuple_GET_ITEM(tuple.get(), i) == Py_None, Runtime,
             "function %s returned an incorrect number of gradients (expected %zd, got %zd)", node_name(n).c_str(),
             expected, got);
  RL_CHECK(got >= expected, Runtime, "function %s returned an incorrect number of gradients (expected %zd, got %zd)",
           node_name(n).c_str(), expected, got);
  uint32_t edge = 0;
  for (Py_ssize_t i = 0; i < expected; i++) {
    PyObject* o = PyTuple_GET_ITEM(tuple.get(), i);
    bool tensor_input = PyTuple_GET_ITEM(f->tensor_inputs, i) == Py_True;
    if (!tensor_input) {
      RL_CHECK(o == Py_None, Runtime,
               "function %s returned a gradient different than None at position %zd, but the corresponding forward "
               "input was not a "
               "Variable",
               node_name(n).c_str(), i + 1);
      continue;
    }
    uint32_t e = edge++;
    if (o == Py_None) continue;
    Tensor* t = as_tensor(o);
    RL_CHECK(t, Runtime, "function %s: expected Variable or None (got %s) as the gradient at position %zd",
             node_name(n).c_str(), Py_TYPE(o)->tp_name, i + 1);
    retain(t);
    results[e] = t;  // what this run does not need is for hooks of the node alone
  }
}

bool function_init(PyObject* module) {
  if (PyType_Ready(&FunctionNodeType) < 0) return false;
  Py_INCREF(&FunctionNodeType);
  return PyModule_AddObject(module, "_FunctionBase", reinterpret_cast<PyObject*>(&FunctionNodeType)) == 0 &&
         PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace rl
