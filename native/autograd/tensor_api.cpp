// The attributes and methods of Tensor that belong to the tape.
#include "derivative.h"
#include "engine.h"
#include "hooks.h"
#include "python_api.h"

namespace rl {

namespace {

// ---------------------------------------------------------------- attributes

PyObject* get_grad(PyObject* self, void*) {
  Tensor* t = tensor_of(self);
  if (RL_UNLIKELY(!t->grad && t->grad_fn && !t->retains_grad) &&
      PyErr_WarnEx(PyExc_UserWarning,
                   "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Backward does not "
                   "fill it in; call "
                   ".retain_grad() on the tensor first if you want it",
                   1) < 0)
    return nullptr;
  return Py_NewRef(tensor_or_none(t->grad));
}

void assign_grad(Tensor* t, PyObject* value) {
  Tensor* grad = nullptr;
  if (value && value != Py_None) {
    grad = as_tensor(value);
    RL_CHECK(grad, Type, "assigned grad expected to be a Tensor or None but got grad of type %s",
             Py_TYPE(value)->tp_name);
    RL_CHECK(grad != t, Runtime, "can't assign Variable as its own grad");
    RL_CHECK(grad->dtype() == t->dtype(), Runtime,
             "attempting to assign a gradient with dtype '%s' to a tensor with dtype '%s'. The gradient must have the "
             "tensor's dtype",
             dtype_name(grad->dtype()), dtype_name(t->dtype()));
    RL_CHECK(grad->device() == t->device(), Runtime,
             "attempting to assign a gradient on device '%s' to a tensor on device '%s'. Please ensure that the "
             "gradient and the "
             "tensor are on the same device",
             device_name(grad->desc.device), device_name(t->desc.device));
    RL_CHECK(same_shape(grad, t), Runtime,
             "attempting to assign a gradient of size '%s' to a tensor of size '%s'. Please ensure that the gradient "
             "and the "
             "tensor are the same size",
             shape_text(grad).c_str(), shape_text(t).c_str());
    retain(grad);
  }
  if (Tensor* old = std::exchange(t->grad, grad)) release(old);
}

template <class F>
int guarded_set(F f) noexcept {
  try {
    f();
    return 0;
  } catch (...) {
    raise_current();
    return -1;
  }
}

int set_grad(PyObject* self, PyObject* value, void*) {
  return guarded_set([&] { assign_grad(tensor_of(self), value); });
}

PyObject* get_grad_fn(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    Node* n = grad_fn_of(tensor_of(self));
    return Py_NewRef(n ? n->object() : Py_None);
  });
}

int set_grad_fn_attribute(PyObject*, PyObject*, void*) {
  PyErr_SetString(PyExc_AttributeError, "attribute 'grad_fn' of 'Tensor' objects is not writable");
  return -1;
}

PyObject* get_requires_grad(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    Tensor* t = tensor_of(self);
    if (t->base && t->creation != Creation::Default) {  // a view that cannot be followed may be asked, but not used
      bool own = t->requires_grad && (t->grad_fn || t->output_index != kThroughBase);
      return PyBool_FromLong(own || (t->base->requires_grad && is_differentiable(t->dtype())));
    }
    return PyBool_FromLong(needs_grad(t));
  });
}

void switch_requires_grad(Tensor* t, bool on) {
  if (on) {
    RL_CHECK(is_differentiable(t->dtype()), Runtime,
             "only Tensors of floating point and complex dtype can require gradients, got %s", dtype_name(t->dtype()));
    RL_CHECK(!t->inference || thread_state.inference_mode, Runtime,
             "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  }
  t->requires_grad = on;
  if (!t->grad_fn) t->output_index = 0;
}

int set_requires_grad(PyObject* self, PyObject* value, void*) {
  return guarded_set([&] {
    RL_CHECK(value && PyBool_Check(value), Runtime, "requires_grad must be a bool, got %s",
             value ? Py_TYPE(value)->tp_name : "del");
    Tensor* t = tensor_of(self);
    bool on = value == Py_True;
    RL_CHECK(!grad_fn_of(t), Runtime, "you can only change requires_grad flags of leaf variables.%s",
             on ? ""
                : " If you want to use a computed variable in a subgraph that doesn't require differentiation use "
                  "var_no_grad "
                  "= var.detach().");
    switch_requires_grad(t, on);
  });
}

PyObject* get_is_leaf(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    Tensor* t = tensor_of(self);
    // A view that cannot be followed may be asked, but not used.
    if (t->base && t->creation != Creation::Default) return PyBool_FromLong(!t->grad_fn);
    return PyBool_FromLong(!grad_fn_of(t));
  });
}
PyObject* get_output_nr(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    Tensor* t = tensor_of(self);
    return PyLong_FromUnsignedLong(grad_fn_of(t) ? t->output_index : 0);
  });
}
PyObject* get_retains_grad(PyObject* self, void*) { return PyBool_FromLong(tensor_of(self)->retains_grad); }
PyObject* get_base(PyObject* self, void*) { return Py_NewRef(tensor_or_none(tensor_of(self)->base)); }
PyObject* get_backward_hooks(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    Tensor* t = tensor_of(self);
    if (Node* n = grad_fn_of(t)) {
      if (n->extras)
        for (auto& h : n->extras->tensor_hooks)
          if (h.index == t->output_index) return Py_NewRef(h.hooks);
      Py_RETURN_NONE;
    }
    return Py_NewRef(t->meta && t->meta->hooks ? t->meta->hooks : Py_None);
  });
}
// Hooks as one dict, as they come out of a pickle or go over to a copy.
int set_backward_hooks(PyObject* self, PyObject* value, void*) {
  return guarded_set([&] {
    Tensor* t = tensor_of(self);
    if (!value || value == Py_None) {
      if (t->meta) Py_CLEAR(t->meta->hooks);
      return;
    }
    RL_CHECK(PyDict_Check(value), Type, "_backward_hooks must be a dict or None, got %s", Py_TYPE(value)->tp_name);
    if (!t->requires_grad) {
      RL_CHECK(PyDict_Size(value) == 0, Runtime, "cannot register a hook on a tensor that doesn't require gradient");
      return;
    }
    PyObject*& place = tensor_hooks_of(t);
    Py_INCREF(value);
    Py_XDECREF(std::exchange(place, value));
  });
}

// ---------------------------------------------------------------- methods

// True when a subclass or a mode wants to see the call; `result` is then what it made of it.
inline bool overridden(const char* name, PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names,
                       PyObject*& result) {
  if (RL_LIKELY(!(classify(self) & kHasOverride) && !thread_state.mode_depth) || thread_state.overrides_disabled)
    return false;
  PyObject* callable = method_object(name);
  if (!callable) return false;
  result = call_override(callable, self, args, count, names);
  return true;
}

PyObject* requires_grad_method(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  PyObject* result;
  if (overridden("requires_grad_", self, args, count, names, result)) return result;
  return guarded([&]() -> PyObject* {
    Py_ssize_t keywords = names ? PyTuple_GET_SIZE(names) : 0;
    RL_CHECK(count + keywords <= 1 &&
                 (!keywords || !PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "requires_grad")),
             Type, "requires_grad_() takes one argument, 'requires_grad'");
    int on = count + keywords ? PyObject_IsTrue(args[0]) : 1;
    if (on < 0) throw PythonError();
    Tensor* t = tensor_of(self);
    bool leaf = !grad_fn_of(t);
    RL_CHECK(leaf || on, Runtime,
             "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
             "subgraph that "
             "doesn't require differentiation use var_no_grad = var.detach().");
    if (leaf) switch_requires_grad(t, on);
    return Py_NewRef(self);
  });
}

PyObject* retain_grad(PyObject* self, PyObject*) {
  PyObject* result;
  if (overridden("retain_grad", self, nullptr, 0, nullptr, result)) return result;
  return guarded([&]() -> PyObject* {
    Tensor* t = tensor_of(self);
    RL_CHECK(needs_grad(t), Runtime, "can't retain_grad on Tensor that has requires_grad=False");
    Node* n = grad_fn_of(t);
    if (n && !t->retains_grad) {
      t->retains_grad = true;
      retain_grad_on(n, t->output_index, t);
    }
    Py_RETURN_NONE;
  });
}

PyObject* register_hook(PyObject* self, PyObject* hook) {
  PyObject* result;
  if (overridden("register_hook", self, &hook, 1, nullptr, result)) return result;
  return guarded([&]() -> PyObject* {
    Tensor* t = tensor_of(self);
    RL_CHECK(needs_grad(t), Runtime, "cannot register a hook on a tensor that doesn't require gradient");
    return add_hook(tensor_hooks_of(t), hook);
  });
}

PyObject* register_post_accumulate_grad_hook(PyObject* self, PyObject* hook) {
  PyObject* result;
  if (overridden("register_post_accumulate_grad_hook", self, &hook, 1, nullptr, result)) return result;
  return guarded([&]() -> PyObject* {
    Tensor* t = tensor_of(self);
    RL_CHECK(needs_grad(t), Runtime, "cannot register a hook on a tensor that doesn't require gradient");
    RL_CHECK(!grad_fn_of(t), Runtime, "post accumulate grad hooks cannot be registered on non-leaf tensors");
    return add_hook(meta_of(t)->post_accumulate, hook);
  });
}

PyObject* detach(PyObject* self, PyObject*) {
  PyObject* result;
  if (overridden("detach", self, nullptr, 0, nullptr, result)) return result;
  return guarded([&]() -> PyObject* {
    Tensor* t = tensor_of(self);
    return (RL_UNLIKELY(t->is_wrapped()) ? detach_wrapped(t) : shallow_copy(t)).take()->object();
  });
}

PyObject* detach_inplace(PyObject* self, PyObject*) {
  PyObject* result;
  if (overridden("detach_", self, nullptr, 0, nullptr, result)) return result;
  return guarded([&]() -> PyObject* {
    Tensor* t = tensor_of(self);
    RL_CHECK(!t->base, Runtime, "Can't detach views in-place. Use detach() instead (shape %s)", shape_text(t).c_str());
    if (Node* n = std::exchange(t->grad_fn, nullptr)) {
      if (t->retains_grad) retain_grad_off(n, t);
      t->retains_grad = false;
      release(n);
    }
    t->output_index = 0;
    t->requires_grad = false;
    return Py_NewRef(self);
  });
}

PyObject* is_view(PyObject* self, PyObject*) { return PyBool_FromLong(tensor_of(self)->base != nullptr); }

bool truth(PyObject* o, bool otherwise) {
  if (!o || o == Py_None) return otherwise;
  int v = PyObject_IsTrue(o);
  if (v < 0) throw PythonError();
  return v;
}

// The edges of backward(inputs=): leaves accumulate, other tensors keep their grad.
std::vector<Edge> accumulation_targets(PyObject* inputs) {
  std::vector<Edge> edges;
  auto add = [&](PyObject* o) {
    Tensor* t = as_tensor(o);
    RL_CHECK(t, Type, "backward: inputs must be tensors or a sequence of tensors, got %s", Py_TYPE(o)->tp_name);
    RL_CHECK(needs_grad(t), Runtime,
             "One of the differentiated Tensors given as 'inputs' to backward does not require grad (shape %s)",
             shape_text(t).c_str());
    if (grad_fn_of(t)) Py(need(retain_grad(o, nullptr)));
    edges.push_back(gradient_edge(t));
  };
  if (as_tensor(inputs)) {
    add(inputs);
    return edges;
  }
  Py list(need(PySequence_Fast(inputs, "backward: inputs must be tensors or a sequence of tensors")));
  RL_CHECK(PySequence_Fast_GET_SIZE(list.get()) > 0, Runtime, "`inputs` argument to `backward()` cannot be empty.");
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); i++) add(PySequence_Fast_GET_ITEM(list.get(), i));
  return edges;
}

struct EdgeList {
  std::vector<Edge> edges;
  EdgeList() = default;
  EdgeList(const EdgeList&) = delete;
  EdgeList& operator=(const EdgeList&) = delete;
  ~EdgeList() {
    for (Edge& e : edges)
      if (e.node) release(e.node);
  }
};

void add_root(EdgeList& roots, std::vector<TensorRef>& grads, PyObject* root, PyObject* grad, size_t index) {
  Tensor* t = as_tensor(root);
  if (!t) {  // autograd.graph.GradientEdge: (node, output_nr)
    RL_CHECK(PyTuple_Check(root) && PyTuple_GET_SIZE(root) >= 2 && is_node(PyTuple_GET_ITEM(root, 0)), Type,
             "element %zu of tensors to differentiate must be a Tensor or a GradientEdge, got %s", index,
             Py_TYPE(root)->tp_name);
    auto* n = reinterpret_cast<Node*>(PyTuple_GET_ITEM(root, 0));
    long output = PyLong_AsLong(PyTuple_GET_ITEM(root, 1));
    if (output == -1 && PyErr_Occurred()) throw PythonError();
    RL_CHECK(output >= 0 && static_cast<uint32_t>(output) < n->output_count, Index,
             "GradientEdge: the node %s has %u outputs, got %ld", node_name(n).c_str(), n->output_count, output);
    Tensor* g = as_tensor(grad);
    RL_CHECK(g, Runtime, "a GradientEdge needs a gradient of its own");
    retain(n);
    roots.edges.push_back({n, static_cast<uint32_t>(output)});
    grads.push_back(TensorRef::share(g));
    return;
  }
  RL_CHECK(needs_grad(t), Runtime, "element %zu of tensors does not require grad and does not have a grad_fn", index);
  TensorRef g;
  if (!grad || grad == Py_None) {
    g = implicit_gradient(t);
  } else {
    Tensor* given = as_tensor(grad);
    RL_CHECK(given, Type, "gradients can be either Tensors or None, but got %s", Py_TYPE(grad)->tp_name);
    check_root_gradient(t, given, index);
    g = TensorRef::share(given);
  }
  Edge edge = gradient_edge(t);
  RL_CHECK(edge.node, Runtime, "element %zu of tensors does not require grad and does not have a grad_fn", index);
  roots.edges.push_back(edge);
  grads.push_back(std::move(g));
}

PyObject* backward(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  static const char* const keys[] = {"gradient", "retain_graph", "create_graph", "inputs"};
  PyObject* result;
  if (overridden("backward", self, args, count, names, result)) return result;
  return guarded([&]() -> PyObject* {
    PyObject* values[4] = {};
    RL_CHECK(count <= 4, Type, "backward() takes at most 4 arguments, got %zd", count);
    for (Py_ssize_t i = 0; i < count; i++) values[i] = args[i];
    for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); k++) {
      int i = 0;
      while (i < 4 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, k), keys[i])) i++;
      RL_CHECK(i < 4, Type, "backward() got an unexpected keyword argument '%s'",
               PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, k)));
      RL_CHECK(!values[i], Type, "backward() got multiple values for argument '%s'", keys[i]);
      values[i] = args[count + k];
    }
    BackwardOptions options;
    options.create_graph = truth(values[2], false);
    options.keep_graph = truth(values[1], options.create_graph);
    bool selective = values[3] && values[3] != Py_None;
    Tensor* self_tensor = tensor_of(self);
    if (RL_LIKELY(!selective && !(values[0] && values[0] != Py_None) && needs_grad(self_tensor))) {
      TensorRef grad = implicit_gradient(self_tensor);
      Edge root = gradient_edge(self_tensor);
      NodeRef owner = NodeRef::own(root.node);
      RL_CHECK(root.node, Runtime, "element 0 of tensors does not require grad and does not have a grad_fn");
      run_backward(&root, &grad, 1, nullptr, options);
      Py_RETURN_NONE;
    }
    EdgeList roots, inputs;
    std::vector<TensorRef> grads;
    if (selective) inputs.edges = accumulation_targets(values[3]);
    add_root(roots, grads, self, values[0], 0);
    run_backward(roots.edges.data(), grads.data(), grads.size(), selective ? &inputs.edges : nullptr, options);
    Py_RETURN_NONE;
  });
}

// _run_backward(tensors, grad_tensors, keep_graph, create_graph, inputs, accumulate, allow_unused) -> tuple of grads.
// `tensors` and `grad_tensors` are tuples of the same length; `inputs` is a tuple, or None for every leaf.
PyObject* run_backward_function(PyObject*, PyObject* args) {
  PyObject *tensors, *grad_tensors, *inputs;
  int keep, create, accumulate, allow_unused;
  if (!PyArg_ParseTuple(args, "O!O!ppOpp:_run_backward", &PyTuple_Type, &tensors, &PyTuple_Type, &grad_tensors, &keep,
                        &create, &inputs, &accumulate, &allow_unused))
    return nullptr;
  return guarded([&]() -> PyObject* {
    Py_ssize_t count = PyTuple_GET_SIZE(tensors);
    RL_CHECK(PyTuple_GET_SIZE(grad_tensors) == count, Runtime, "got %zd tensors and %zd gradients", count,
             PyTuple_GET_SIZE(grad_tensors));
    BackwardOptions options;
    options.create_graph = create;
    options.keep_graph = keep;
    options.accumulate = accumulate;
    EdgeList roots, targets;
    std::vector<TensorRef> grads;
    bool selective = inputs != Py_None;
    Py list;
    if (selective && accumulate) {
      targets.edges = accumulation_targets(inputs);
    } else if (selective) {
      list = Py(need(PySequence_Fast(inputs, "grad: inputs must be a sequence of tensors")));
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); i++) {
        PyObject* o = PySequence_Fast_GET_ITEM(list.get(), i);
        if (Tensor* t = as_tensor(o)) {
          RL_CHECK(needs_grad(t), Runtime, "One of the differentiated Tensors does not require grad");
          // A leaf that nothing uses has no accumulator: it cannot have been reached.
          if (!grad_fn_of(t) && !(t->meta && t->meta->accumulator)) {
            bool is_root = false;
            for (Py_ssize_t k = 0; k < count; k++) is_root |= PyTuple_GET_ITEM(tensors, k) == o;
            if (!is_root) {
              targets.edges.push_back({nullptr, 0});
              continue;
            }
          }
          targets.edges.push_back(gradient_edge(t));
        } else {
          RL_CHECK(PyTuple_Check(o) && PyTuple_GET_SIZE(o) >= 2 && is_node(PyTuple_GET_ITEM(o, 0)), Type,
                   "all inputs have to be Tensors or GradientEdges, but got %s", Py_TYPE(o)->tp_name);
          auto* n = reinterpret_cast<Node*>(PyTuple_GET_ITEM(o, 0));
          retain(n);
          targets.edges.push_back({n, static_cast<uint32_t>(PyLong_AsUnsignedLong(PyTuple_GET_ITEM(o, 1)))});
        }
      }
    }
    for (Py_ssize_t i = 0; i < count; i++)
      add_root(roots, grads, PyTuple_GET_ITEM(tensors, i), PyTuple_GET_ITEM(grad_tensors, i), static_cast<size_t>(i));
    std::vector<TensorRef> results =
        run_backward(roots.edges.data(), grads.data(), grads.size(), selective ? &targets.edges : nullptr, options);
    Py tuple(need(PyTuple_New(static_cast<Py_ssize_t>(results.size()))));
    for (size_t i = 0; i < results.size(); i++) {
      RL_CHECK(results[i] || allow_unused, Runtime,
               "The differentiated Tensor at index %zu appears to not have been used in the graph. Set "
               "allow_unused=True if this is "
               "the desired behavior.",
               i);
      PyObject* o = results[i] ? results[i].take()->object() : Py_NewRef(Py_None);
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), o);
    }
    return tuple.take();
  });
}

// _gradient_edge(tensor) -> (node, output number)
PyObject* gradient_edge_function(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Tensor* t = as_tensor(o);
    RL_CHECK(t, Type, "get_gradient_edge: expected a Tensor, got %s", Py_TYPE(o)->tp_name);
    RL_CHECK(needs_grad(t), Runtime,
             "It is not possible to get the gradient edge of a Tensor that does not require gradients");
    EdgeList owner;
    owner.edges.push_back(gradient_edge(t));
    RL_CHECK(owner.edges[0].node, Runtime,
             "get_gradient_edge: a view made without recording has no place in the graph (shape %s); ask its base",
             shape_text(t).c_str());
    return Py_BuildValue("(OI)", owner.edges[0].node->object(), owner.edges[0].index);
  });
}

// _overloads(name) -> [(index, schema, number of results, takes numbers for tensors)] of each operation of that name
PyObject* overloads(PyObject*, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) return nullptr;
  return guarded([&]() -> PyObject* {
    Py list(need(PyList_New(0)));
    for (int i = 0; i < op_table_size; i++) {
      if (std::strcmp(op_table[i].name, text)) continue;
      Py item(need(Py_BuildValue("(isiO)", i, op_table[i].schema, static_cast<int>(op_table[i].result_count),
                                 op_table[i].family ? Py_True : Py_False)));
      if (PyList_Append(list.get(), item.get()) < 0) throw PythonError();
    }
    return list.take();
  });
}

PyObject* current_run(PyObject*, PyObject*) { return PyLong_FromUnsignedLongLong(current_run_id()); }
PyObject* run_is_selective(PyObject*, PyObject*) { return PyBool_FromLong(current_run_is_selective()); }
PyObject* run_notes(PyObject*, PyObject*) {
  return guarded([]() -> PyObject* {
    PyObject* notes = notes_of_run();
    RL_CHECK(notes, Runtime, "_run_notes: expected to be called within a backward");
    return Py_NewRef(notes);
  });
}
PyObject* at_end(PyObject*, PyObject* callable) { return PyBool_FromLong(at_end_of_run(callable)); }
// _node_name(tensor) -> (address, number) of the node that its gradient goes to, which it does not keep; None where the
// node of a leaf is not made yet
PyObject* node_name_function(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Tensor* t = as_tensor(o);
    RL_CHECK(t, Type, "_node_name: expected a Tensor, got %s", Py_TYPE(o)->tp_name);
    Node* n = grad_fn_of(t);
    if (!n && t->meta) n = t->meta->accumulator;
    if (!n) Py_RETURN_NONE;
    return Py_BuildValue("(KK)", static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(n)),
                         static_cast<unsigned long long>(n->sequence));
  });
}

// _will_run(name) -> bool: whether the innermost backward computes the gradients of the node of that name
PyObject* will_run(PyObject*, PyObject* name) {
  unsigned long long address, sequence;
  if (!PyArg_ParseTuple(name, "KK:_will_run", &address, &sequence)) return nullptr;
  return PyBool_FromLong(current_run_reaches(reinterpret_cast<const Node*>(address), sequence));
}

PyObject* formulas(PyObject*, PyObject* args) {
  const char *name, *overload = "";
  if (!PyArg_ParseTuple(args, "s|s:_formulas", &name, &overload)) return nullptr;
  return guarded([&] { return formula_state(find_op(name, overload)); });
}

PyMethodDef functions[] = {{"_formulas", formulas, METH_VARARGS, nullptr},
                           {"_current_run", current_run, METH_NOARGS, nullptr},
                           {"_will_run", will_run, METH_O, nullptr},
                           {"_run_notes", run_notes, METH_NOARGS, nullptr},
                           {"_node_name", node_name_function, METH_O, nullptr},
                           {"_run_is_selective", run_is_selective, METH_NOARGS, nullptr},
                           {"_at_end_of_run", at_end, METH_O, nullptr},
                           {"_run_backward", run_backward_function, METH_VARARGS, nullptr},
                           {"_gradient_edge", gradient_edge_function, METH_O, nullptr},
                           {"_overloads", overloads, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

template <class F>
PyCFunction method(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f));
}

}  // namespace

PyGetSetDef autograd_tensor_getset[] = {
    {"grad", get_grad, set_grad, "The gradient, after a backward: a tensor of the same shape, or None.", nullptr},
    {"grad_fn", get_grad_fn, set_grad_fn_attribute, "The node that made this tensor, or None for a leaf.", nullptr},
    {"requires_grad", get_requires_grad, set_requires_grad, "True when operations on it are recorded.", nullptr},
    {"is_leaf", get_is_leaf, nullptr, "True when no recorded operation made it.", nullptr},
    {"output_nr", get_output_nr, nullptr, "Which output of grad_fn it is.", nullptr},
    {"retains_grad", get_retains_grad, nullptr, "True after retain_grad() on a tensor that is not a leaf.", nullptr},
    {"_base", get_base, nullptr, "The tensor whose view this is, or None.", nullptr},
    {"_backward_hooks", get_backward_hooks, set_backward_hooks, "The dict of its hooks, or None.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMethodDef autograd_tensor_methods[] = {
    {RL_METHOD("backward", backward), METH_FASTCALL | METH_KEYWORDS,
     "backward(gradient=None, retain_graph=None, create_graph=False, inputs=None)\n\n"
     "Adds the gradients of this tensor to the grad of the leaves. A scalar needs no `gradient`.\n\n"
     "Example::\n\n    >>> x = rushlight.ones(3, requires_grad=True)\n    >>> (x * x).sum().backward()\n    >>> "
     "x.grad\n"
     "    tensor([2., 2., 2.])"},
    {RL_METHOD("register_hook", register_hook), METH_O,
     "Calls hook(grad) when the gradient of this tensor is known; a tensor that it returns replaces the gradient. "
     "Returns a handle "
     "whose remove() takes the hook away."},
    {RL_METHOD("register_post_accumulate_grad_hook", register_post_accumulate_grad_hook), METH_O,
     "Calls hook(param) after the grad of this leaf was added to. Returns a handle."},
    {RL_METHOD("retain_grad", retain_grad), METH_NOARGS,
     "Keeps the gradient of a tensor that is not a leaf in its grad."},
    {RL_METHOD("requires_grad_", requires_grad_method), METH_FASTCALL | METH_KEYWORDS,
     "requires_grad_(requires_grad=True)\n\nSwitches recording of operations on this leaf; returns it."},
    {RL_METHOD("detach", detach), METH_NOARGS, "The same memory as a tensor that does not require grad."},
    {RL_METHOD("detach_", detach_inplace), METH_NOARGS,
     "Makes this tensor a leaf that does not require grad; returns it."},
    {RL_METHOD("_is_view", is_view), METH_NOARGS, "True for a view of another tensor."},
    {nullptr, nullptr, 0, nullptr}};

bool engine_init(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

int autograd_module_init(PyObject* module) {
  return node_types_init(module) && grad_mode_init(module) && function_init(module) && saved_hooks_init(module) &&
                 engine_init(module) && anomaly_init(module) && profiler_init(module) && transform_init(module)
             ? 0
             : -1;
}

}  // namespace rl
