// Wrapped tensors: what a tensor stands for inside vmap and forward mode, and the one place where operations on such
// tensors leave for their rules (rushlight/func/_rules.py). docs/design/0007-transforms.md tells the whole.
#include <unordered_set>

#include "python_api.h"

namespace rl {

namespace {

Wrapped* wrapped_of(const Tensor* t) { return t->is_wrapped() && t->meta ? t->meta->wrapped : nullptr; }

PyObject* handler() {
  static PyObject* function = nullptr;
  if (!function) {
    Py module(need(PyImport_ImportModule("rushlight.func._rules")));
    function = need(PyObject_GetAttrString(module.get(), "run"));
  }
  return function;
}

// A wrapped tensor without a record, of this shape.
TensorRef hollow(DType dtype, int ndim, const int64_t* shape) { return empty(dtype, ndim, shape, Device::Wrapped); }

void put_record(Tensor* t, Wrapped* w) {
  AutogradMeta* meta = meta_of(t);
  delete std::exchange(meta->wrapped, w);
}

// One argument as Python sees it; constants as their objects, so that parsing them again gives the same value.
PyObject* argument_to_python(const Argument& a, const Value& v) {
  if (a.kind == Kind::Device && v.tag == Tag::Int) return device_object(static_cast<Device>(v.integer));
  return value_to_python(v);
}

// Result number i of the call: `made` by the rule, put into the view that the implementation made, if there is one.
void take_result(Call& call, int i, Tensor* view, PyObject* made) {
  Tensor* t = as_tensor(made);
  if (!t) {
    call.results[i] = made == Py_None ? Value::none() : Value::of_object(Py_NewRef(made));
    return;
  }
  Wrapped* w = wrapped_of(t);
  if (view && w && view != t) {
    put_record(view, new Wrapped(*w));
    return;
  }
  if (view) release(view);
  retain(t);
  call.results[i] = Value::of(t);
}

void take_list(Call& call, Value& list, PyObject* made) {
  Py items(need(PySequence_Fast(made, "the rule of an operation with a list of results must return a list")));
  Py_ssize_t count = PySequence_Fast_GET_SIZE(items.get());
  if (list.tag == Tag::TensorList && list.size == static_cast<uint32_t>(count)) {
    for (Py_ssize_t k = 0; k < count; k++) {
      Tensor* t = as_tensor(PySequence_Fast_GET_ITEM(items.get(), k));
      Wrapped* w = t ? wrapped_of(t) : nullptr;
      RL_CHECK(t, Type, "%s: the rule must return tensors", call.op.name);
      if (w) {
        put_record(list.tensors[k], new Wrapped(*w));
      } else {
        release(std::exchange(list.tensors[k], t));
        retain(t);
      }
    }
    return;
  }
  std::vector<TensorRef> tensors;
  for (Py_ssize_t k = 0; k < count; k++) {
    Tensor* t = as_tensor(PySequence_Fast_GET_ITEM(items.get(), k));
    RL_CHECK(t, Type, "%s: the rule must return tensors", call.op.name);
    tensors.push_back(TensorRef::share(t));
  }
  call.set_list(0, std::move(tensors));
}

// The implementation made of other operations has done it all.
bool complete(const Value& v) {
  if (v.tag == Tag::Tensor) return !v.tensor->is_wrapped() || wrapped_of(v.tensor);
  if (v.tag != Tag::TensorList) return true;
  for (uint32_t i = 0; i < v.size; i++)
    if (!complete(Value::of(v.tensors[i]))) return false;
  return true;
}

}  // namespace

uint8_t lazy_bits(const Tensor* t) {
  while (const Wrapped* w = wrapped_of(t)) t = w->value.get();
  return t->lazy();
}

bool follows(const Tensor* view) {
  if (!view->base->is_wrapped() || !is_differentiable(view->dtype())) return false;
  const Wrapped *base = wrapped_of(view->base), *own = wrapped_of(view);
  return base && base->dual && (!view->is_wrapped() || (own && own->level < base->level));
}

bool wants_transform(const Op& op, const Value* args) {
  if ((op.flags & kRandom) && thread_state.vmap_depth) return true;
  for (uint32_t m = op.tensor_mask; m; m &= m - 1) {
    const Value& v = args[__builtin_ctz(m)];
    if (v.tag == Tag::Tensor) {
      if (v.tensor->is_wrapped() || (v.tensor->base && follows(v.tensor))) return true;
    } else if (v.tag == Tag::TensorList) {
      for (uint32_t i = 0; i < v.size; i++)
        if (v.tensors[i] && (v.tensors[i]->is_wrapped() || (v.tensors[i]->base && follows(v.tensors[i])))) return true;
    }
  }
  return false;
}

namespace {

// handler(index, module, name, overload, inplace, arguments)
PyObject* ask(PyObject* handler, const Call& call, bool inplace) {
  const Op& op = call.op;
  Py args(need(PyTuple_New(op.argument_count)));
  for (int i = 0; i < op.argument_count; i++)
    PyTuple_SET_ITEM(args.get(), i, need(argument_to_python(op.arguments[i], call.args[i])));
  return need(PyObject_CallFunction(handler, "isssOO", op.index, op.module, op.name, op.overload,
                                    inplace ? Py_True : Py_False, args.get()));
}

void take_results(Call& call, PyObject* made) {
  const Op& op = call.op;
  bool view = op.flags & kView;
  if (op.flags & kListResult) return take_list(call, call.results[0], made);
  if (op.result_count == 1) return take_result(call, 0, view ? call.results[0].tensor : nullptr, made);
  RL_CHECK(PyTuple_Check(made) && PyTuple_GET_SIZE(made) == op.result_count, Type,
           "%s: the rule must return %d results", op.name, op.result_count);
  for (int i = 0; i < op.result_count; i++)
    take_result(call, i, view ? call.results[i].tensor : nullptr, PyTuple_GET_ITEM(made, i));
}

}  // namespace

void run_from_source(Call& call) {
  Py source(Py_NewRef(thread_state.source));
  Py made(ask(source.get(), call, false));
  take_results(call, made.get());
}

void run_transformed(Call& call) {
  const Op& op = call.op;
  if (call.out && !call.inplace)
    throw_error(ErrorKind::Runtime, "%s(): out= is not supported inside vmap and forward mode; got an out= tensor",
                op.name);
  bool view = op.flags & kView;
  if (view) {
    op.run(call);  // shapes, strides and the base of the result
    bool done = true;
    for (int i = 0; i < op.result_count; i++) done &= complete(call.results[i]);
    if (done) return;
  }
  bool inplace = call.inplace || op.flags & kInplaceOnly;
  Py made(ask(handler(), call, inplace));
  if (inplace) {
    if (call.inplace) {
      retain(call.args[0].tensor);
      call.results[0] = Value::of(call.args[0].tensor);
    }
    return;
  }
  take_results(call, made.get());
}

void copy_wrapped(Tensor* to, const Tensor* from) {
  if (Wrapped* w = wrapped_of(from)) put_record(to, new Wrapped(*w));
}

Tensor* plain_value(Tensor* t, const char* what) {
  while (RL_UNLIKELY(t->is_wrapped())) {
    Wrapped* w = wrapped_of(t);
    RL_CHECK(w && w->dual, Runtime,
             "vmap: It looks like you're calling %s on a Tensor. We don't support vmap over calling %s on a Tensor: it "
             "has one value for each example of the batch, shape %s each. Try to rewrite what you're doing to not use "
             "%s, or move it out of the function that is vmapped",
             what, what, shape_text(t).c_str(), what);
    t = w->value.get();
  }
  return t;
}

TensorRef detach_wrapped(Tensor* t) {
  Wrapped* w = wrapped_of(t);
  if (!w) return shallow_copy(t);
  TensorRef value = w->value->is_wrapped() ? detach_wrapped(w->value.get()) : shallow_copy(w->value.get());
  if (w->dual) return value;
  TensorRef copy = shallow_copy(t);
  copy->meta->wrapped->value = value;
  return copy;
}

namespace {

Tensor* tensor_argument(PyObject* o, const char* what) {
  Tensor* t = as_tensor(o);
  RL_CHECK(t, Type, "%s: expected a tensor, got %s", what, Py_TYPE(o)->tp_name);
  return t;
}

// _wrap(value, level, tangent=None, copied=False) -> a tensor that stands for value: with a tangent in forward mode,
// without one for a batch along the first dimension.
PyObject* py_wrap(PyObject*, PyObject* args) {
  PyObject *value, *tangent = Py_None;
  unsigned long long level;
  int copied = 0;
  if (!PyArg_ParseTuple(args, "OK|Op:_wrap", &value, &level, &tangent, &copied)) return nullptr;
  return guarded([&]() -> PyObject* {
    Tensor* v = tensor_argument(value, "_wrap");
    bool dual = tangent != Py_None;
    RL_CHECK(dual || v->ndim() > 0, Runtime, "_wrap: a batch has at least one dimension");
    int skip = dual ? 0 : 1;
    TensorRef t = dual ? empty_strided(v->dtype(), v->ndim(), v->shape(), v->strides(), Device::Wrapped)
                       : hollow(v->dtype(), v->ndim() - skip, v->shape() + skip);
    TensorRef direction = dual ? TensorRef::share(tensor_argument(tangent, "_wrap")) : TensorRef();
    put_record(t.get(), new Wrapped{level, dual, copied != 0, TensorRef::share(v), direction});
    return t.take()->object();
  });
}

// _unwrap(t) -> (level, value, tangent or None, copied), or None for a tensor that is not wrapped.
PyObject* py_unwrap(PyObject*, PyObject* o) {
  Tensor* t = as_tensor(o);
  if (t && t->base && follows(t)) {
    PyObject* module = PyImport_ImportModule("rushlight.func._forward");
    PyObject* done = module ? PyObject_CallMethod(module, "follow", "O", o) : nullptr;
    Py_XDECREF(module);
    if (!done) return nullptr;
    Py_DECREF(done);
  }
  Wrapped* w = t ? wrapped_of(t) : nullptr;
  if (!w) Py_RETURN_NONE;
  return Py_BuildValue("KOOO", static_cast<unsigned long long>(w->level), w->value->object(),
                       tensor_or_none(w->tangent.get()), w->copied ? Py_True : Py_False);
}

// _set_dual(t, level, tangent, value=None): a tangent for t, in place. A tensor that had none at this level becomes
// wrapped: what it was lives on as its value. With a value, the same view of its base's value, it stays a view.
PyObject* py_set_dual(PyObject*, PyObject* args) {
  PyObject *object, *tangent, *seen = Py_None;
  unsigned long long level;
  if (!PyArg_ParseTuple(args, "OKO|O:_set_dual", &object, &level, &tangent, &seen)) return nullptr;
  return guarded([&]() -> PyObject* {
    Tensor* t = tensor_argument(object, "_set_dual");
    TensorRef direction = TensorRef::share(tensor_argument(tangent, "_set_dual"));
    Wrapped* w = wrapped_of(t);
    if (w && w->level == level) {
      w->tangent = direction;
      Py_RETURN_NONE;
    }
    TensorRef base = TensorRef::share(seen == Py_None ? nullptr : t->base);
    TensorRef value = base ? TensorRef::share(tensor_argument(seen, "_set_dual")) : shallow_copy(t);
    if (t->requires_grad && !base) {
      RL_CHECK(t->grad_fn, Runtime,
               "a leaf Variable that requires grad is being used in an in-place operation (shape %s)",
               shape_text(t).c_str());
      set_grad_fn(value.get(), grad_fn_of(t), t->output_index);
    }
    Dims shape(t->ndim(), t->shape()), strides(t->ndim(), t->strides());
    // A tape within this level goes on from where it was; one outside of it goes on from the value.
    NodeRef history = NodeRef::share(base ? nullptr : t->grad_fn);
    uint32_t output = t->output_index;
    autograd_clear(t);
    t->requires_grad = false;
    TensorRef fresh;
    if (base) {
      const Tensor* whole = wrapped_of(base.get())->value.get();
      int64_t ahead = value->offset() * itemsize(value->dtype()) - whole->offset() * itemsize(whole->dtype());
      fresh = over_storage(base->storage, t->dtype(), shape.n, shape.v, strides.v,
                           static_cast<char*>(base->desc.data) + ahead);
    } else {
      fresh = empty_strided(t->dtype(), shape.n, shape.v, strides.v, Device::Wrapped);
    }
    std::swap(t->storage, fresh->storage);
    t->desc.data = fresh->desc.data;
    t->desc.device = static_cast<uint8_t>(Device::Wrapped);
    t->set_lazy(0);  // the value keeps the bits
    set_geometry(t, shape.n, shape.v, strides.v);
    put_record(t, new Wrapped{level, true, false, value, direction});
    if (history) set_grad_fn(t, history.get(), output);
    if (base) {
      t->base = base.take();
      t->view_version = t->storage->version;
    }
    Py_RETURN_NONE;
  });
}

// _set_base(view, base): the tensor that a view is of, where the one it was of stands for this one no longer.
PyObject* py_set_base(PyObject*, PyObject* args) {
  PyObject *object, *base;
  if (!PyArg_ParseTuple(args, "OO:_set_base", &object, &base)) return nullptr;
  return guarded([&]() -> PyObject* {
    Tensor* t = tensor_argument(object, "_set_base");
    release(std::exchange(t->base, TensorRef::share(tensor_argument(base, "_set_base")).take()));
    Py_RETURN_NONE;
  });
}

// _run_operation(index, inplace, args): runs an operation on arguments in the order of its schema.
PyObject* py_run_operation(PyObject*, PyObject* arguments) {
  int index, inplace;
  PyObject* tuple;
  if (!PyArg_ParseTuple(arguments, "ipO!:_run_operation", &index, &inplace, &PyTuple_Type, &tuple)) return nullptr;
  return guarded([&]() -> PyObject* {
    RL_CHECK(index >= 0 && index < op_table_size, Index, "_run_operation: no operation has the number %d", index);
    const Op& op = op_table[index];
    RL_CHECK(PyTuple_GET_SIZE(tuple) == op.argument_count, Type, "%s: expected %d arguments, got %zd", op.name,
             op.argument_count, PyTuple_GET_SIZE(tuple));
    Frame frame;
    for (int i = 0; i < op.argument_count; i++) convert_again(op, i, PyTuple_GET_ITEM(tuple, i), frame);
    Value results[kMaxResults];
    bool own_write = op.flags & kInplaceOnly;
    if (inplace && !own_write) {
      Tensor* out[kMaxResults] = {frame.values[0].tensor};
      run_op(op, frame.values, results, out, true);
    } else {
      run_op(op, frame.values, results);
    }
    return result_to_python(op, results);
  });
}

// _set_source(handler or None) -> the one before: asked in this thread for the results of operations that make new
// tensors, as handler(index, module, name, overload, False, arguments). It runs the operation, or knows better.
PyObject* py_set_source(PyObject*, PyObject* handler) {
  PyObject* before = std::exchange(thread_state.source, handler == Py_None ? nullptr : Py_NewRef(handler));
  if (!before) Py_RETURN_NONE;
  return before;
}

// _add_vmap_depth(by): how many vmaps are in progress in this thread.
PyObject* py_add_vmap_depth(PyObject*, PyObject* by) {
  long n = PyLong_AsLong(by);
  if (n == -1 && PyErr_Occurred()) return nullptr;
  thread_state.vmap_depth += static_cast<int>(n);
  return PyLong_FromLong(thread_state.vmap_depth);
}

// _new_leaf(t): the same tensor at this level's start of a graph; what it stands for keeps its own links.
PyObject* py_new_leaf(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* { return shallow_copy(tensor_argument(o, "_new_leaf")).take()->object(); });
}

// _leads_beyond(tensors, leaves): whether the graph of some of the tensors ends in a leaf that is not among `leaves`.
PyObject* py_leads_beyond(PyObject*, PyObject* args) {
  PyObject *tensors, *leaves;
  if (!PyArg_ParseTuple(args, "O!O!:_leads_beyond", &PyTuple_Type, &tensors, &PyTuple_Type, &leaves)) return nullptr;
  return guarded([&]() -> PyObject* {
    std::vector<const Tensor*> own;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(leaves); i++)
      own.push_back(tensor_argument(PyTuple_GET_ITEM(leaves, i), "_leads_beyond"));
    auto foreign = [&](const Tensor* leaf) {
      for (const Tensor* t : own)
        if (t == leaf) return false;
      return leaf != nullptr;
    };
    std::vector<Node*> stack;
    std::unordered_set<Node*> seen;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tensors); i++) {
      Tensor* t = as_tensor(PyTuple_GET_ITEM(tensors, i));
      if (!t || !needs_grad(t)) continue;
      if (Node* n = grad_fn_of(t))
        stack.push_back(n);
      else if (foreign(t))
        Py_RETURN_TRUE;
    }
    while (!stack.empty()) {
      Node* n = stack.back();
      stack.pop_back();
      if (!seen.insert(n).second) continue;
      if (n->kind == NodeKind::Accumulate) {
        if (foreign(n->leaf)) Py_RETURN_TRUE;
        continue;
      }
      for (uint32_t i = 0; i < n->edge_count; i++)
        if (n->edges[i].node) stack.push_back(n->edges[i].node);
    }
    Py_RETURN_FALSE;
  });
}

PyMethodDef functions[] = {{"_wrap", py_wrap, METH_VARARGS, nullptr},
                           {"_unwrap", py_unwrap, METH_O, nullptr},
                           {"_set_dual", py_set_dual, METH_VARARGS, nullptr},
                           {"_set_base", py_set_base, METH_VARARGS, nullptr},
                           {"_run_operation", py_run_operation, METH_VARARGS, nullptr},
                           {"_set_source", py_set_source, METH_O, nullptr},
                           {"_add_vmap_depth", py_add_vmap_depth, METH_O, nullptr},
                           {"_new_leaf", py_new_leaf, METH_O, nullptr},
                           {"_leads_beyond", py_leads_beyond, METH_VARARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool transform_init(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace rl
