// Recording: a node for an operation whose inputs require gradients, and the values it keeps for backward.
#include "anomaly.h"
#include "derivative.h"

namespace rl {

namespace {
constexpr uint32_t kOldValue = UINT32_MAX;  // Saved::output_index of the value before an in-place write
}

Node* grad_fn_of(Tensor* t) {
  if (RL_UNLIKELY(t->base != nullptr && t->view_version != t->storage->version)) refresh_view(t);
  return t->grad_fn;
}

uint32_t arguments_needing_grad(const Op& op, const Value* args) {
  uint32_t mask = 0;
  for (uint32_t m = op.differentiable_mask; m; m &= m - 1) {
    int i = __builtin_ctz(m);
    const Value& v = args[i];
    if (v.tag == Tag::Tensor) {
      if (needs_grad(v.tensor)) mask |= 1u << i;
    } else if (v.tag == Tag::TensorList) {
      for (uint32_t k = 0; k < v.size; k++)
        if (v.tensors[k] && needs_grad(v.tensors[k])) {
          mask |= 1u << i;
          break;
        }
    }
  }
  return mask;
}

// ---------------------------------------------------------------- saving

namespace {

[[gnu::noinline]] [[noreturn]] void refuse_inference() {
  throw_error(
      ErrorKind::Runtime,
      "Inference tensors cannot be saved for backward. Make a clone of the tensor outside inference_mode to use it "
      "in computation that autograd records, or use no_grad instead of inference_mode");
}

void mark_saved(Tensor* t) { (t->base ? t->base : t)->saved = true; }

int64_t* ints_for(Node* n, uint32_t count) {
  if (RL_LIKELY(n->arena_used + count <= kArena)) {
    int64_t* p = n->arena + n->arena_used;
    n->arena_used = static_cast<uint8_t>(n->arena_used + count);
    return p;
  }
  auto* p = static_cast<int64_t*>(PyMem_Malloc(sizeof(int64_t) * (count + 1)));
  if (!p) throw std::bad_alloc();
  return p;
}

void save_ints(Node* n, Value& v, const int64_t* ints, uint32_t count) {
  int64_t* p = ints_for(n, count);
  for (uint32_t i = 0; i < count; i++) p[i] = ints[i];
  v = Value::of_ints(p, static_cast<int>(count));
}

void save_value(Node* n, Saved& s, const Value& v) {
  s.is_output = s.packed = s.freed = false;
  s.version = 0;
  switch (v.tag) {
    case Tag::Tensor:
      save_tensor(n, s, v.tensor, false, 0);
      break;
    case Tag::IntList:
      save_ints(n, s.value, v.ints, v.size);
      break;
    case Tag::DoubleList: {
      auto* p = static_cast<double*>(PyMem_Malloc(sizeof(double) * (v.size + 1)));
      if (!p) throw std::bad_alloc();
      if (v.size) std::memcpy(p, v.doubles, sizeof(double) * v.size);
      s.value = v;
      s.value.doubles = p;
      break;
    }
    case Tag::TensorList: {
      auto** p = static_cast<Tensor**>(PyMem_Malloc(sizeof(Tensor*) * (v.size + 1)));
      if (!p) throw std::bad_alloc();
      s.value = Value::of_tensors(p, v.size);
      for (uint32_t i = 0; i < v.size; i++) {
        p[i] = v.tensors[i];
        if (!p[i]) continue;
        retain(p[i]);
        mark_saved(p[i]);
        s.version += p[i]->version();
      }
      for (uint32_t i = 0; i < v.size; i++)
        if (p[i] && p[i]->inference && p[i]->grad_fn == nullptr && !thread_state.inference_mode) refuse_inference();
      if (RL_UNLIKELY(anomaly.enabled)) anomaly_saved(n, static_cast<uint32_t>(&s - n->saved), p, v.size);
      break;
    }
    case Tag::Object:
      Py_INCREF(v.object);
      s.value = v;
      break;
    default:
      s.value = v;
  }
}

void save_shapes(Saved& s, const Value& list) {
  s.is_output = s.packed = s.freed = false;
  s.version = 0;
  Py shapes(need(PyTuple_New(static_cast<Py_ssize_t>(list.size))));
  for (uint32_t i = 0; i < list.size; i++) {
    Value shape = list.tensors[i] ? Value::of_ints(list.tensors[i]->shape(), list.tensors[i]->ndim()) : Value::none();
    PyTuple_SET_ITEM(shapes.get(), static_cast<Py_ssize_t>(i), need(value_to_python(shape)));
  }
  s.value = Value::of_object(shapes.take());
}

void save_source(Node* n, Saved& s, const Source& source, const Value* args) {
  const Value& v = args[source.index];
  s.is_output = s.packed = s.freed = false;
  s.version = 0;
  switch (source.kind) {
    case SourceKind::Argument:
      save_value(n, s, v);
      break;
    case SourceKind::Shape:
      if (v.tag == Tag::Tensor)
        save_ints(n, s.value, v.tensor->shape(), static_cast<uint32_t>(v.tensor->ndim()));
      else if (v.is_none())
        s.value = Value::none();
      else
        s.value = Value::of_ints(n->arena, 0);  // a number has the shape ()
      break;
    case SourceKind::Shapes:
      save_shapes(s, v);
      break;
    case SourceKind::Strides:
      if (v.tag == Tag::Tensor)
        save_ints(n, s.value, v.tensor->strides(), static_cast<uint32_t>(v.tensor->ndim()));
      else
        s.value = Value::none();
      break;
    case SourceKind::Offset:
      s.value = v.tag == Tag::Tensor ? Value::of(v.tensor->offset()) : Value::none();
      break;
    case SourceKind::DType:
      if (v.tag == Tag::Tensor)
        s.value = Value::of(v.tensor->dtype());
      else if (v.tag == Tag::TensorList && v.size)
        s.value = Value::of(v.tensors[0]->dtype());
      else
        s.value = Value::none();
      break;
    default:
      s.value = Value::none();
  }
}

// The tensor as it is before the operation writes into it.
[[gnu::noinline]] void save_before_write(Node* n, Saved& s, Tensor* t, const Tensor* self) {
  if (t == self) {
    bool wrapped = t->is_wrapped();
    GradGuard off(wrapped);
    TensorRef old = wrapped ? clone_gradient(shallow_copy(t).get(), nullptr) : empty_preserve(t, t->dtype());
    if (!t->is_meta()) copy_into(old.get(), t);
    s.value = Value::of(old.take());
    s.version = 0;
    s.packed = s.freed = s.linked = false;
    s.is_output = true;  // the copy stands for the old value, whose link is the node's first edge
    s.output_index = kOldValue;
    return;
  }
  save_tensor(n, s, t, false, 0);
}

}  // namespace

void save_tensor(Node* n, Saved& s, Tensor* t, bool is_output, uint32_t output_index) {
  if (RL_UNLIKELY(t->inference) && !is_output && !thread_state.inference_mode) refuse_inference();
  if (RL_UNLIKELY(saved_hooks_depth > 0)) {
    pack_saved(s, t, is_output, output_index);
    return;
  }
  s.is_output = is_output;
  s.packed = s.freed = false;
  s.linked = !is_output && t->grad_fn != nullptr;
  s.output_index = output_index;
  s.version = t->version();
  if (RL_UNLIKELY(anomaly.enabled)) anomaly_saved(n, static_cast<uint32_t>(&s - n->saved), &t, 1);
  if (is_output) {
    s.value = Value::of(shallow_copy(t).take());
  } else {
    retain(t);
    mark_saved(t);
    s.value = Value::of(t);
  }
}

// ---------------------------------------------------------------- reading back

namespace {

[[gnu::noinline]] [[noreturn]] void throw_modified(Node* n, const Tensor* t, uint32_t saved, uint32_t now) {
  std::string line = line_text(n) + writer_text(t, saved);
  throw_error(
      ErrorKind::Runtime,
      "one of the variables needed for gradient computation has been modified by an inplace operation: a %s tensor of "
      "shape %s, saved by %s, is at version %u; expected version %u instead.%s\n"
      "  Hint: use the out-of-place form of the operation that wrote into it (x = x.mul(2), not x.mul_(2)), or write "
      "into a clone().",
      dtype_name(t->dtype()), shape_text(t).c_str(), node_name(n).c_str(), now, saved, line.c_str());
}

[[gnu::noinline]] [[noreturn]] void throw_detached(Node* n, const Tensor* t) {
  std::string line = line_text(n);
  throw_error(
      ErrorKind::Runtime,
      "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_(): a %s tensor of shape "
      "%s, saved by %s, is not the result it was.%s\n  Hint: use the out-of-place detach().",
      dtype_name(t->dtype()), shape_text(t).c_str(), node_name(n).c_str(), line.c_str());
}

}  // namespace

void throw_released(Node* n) {
  std::string line = line_text(n);
  throw_error(
      ErrorKind::Runtime,
      "Trying to backward through the graph a second time (or to read saved tensors after they were freed). The values "
      "that %s saved were freed by the first backward() or autograd.grad(); pass retain_graph=True to the first if you "
      "need the graph again.%s",
      node_name(n).c_str(), line.c_str());
}

Node* saved_link(Node* n, uint32_t& index) {
  if (index == kOldValue) {
    index = n->edges[0].index;
    return n->op->differentiable_mask & 1 ? n->edges[0].node : nullptr;
  }
  return index < n->output_count && !n->outputs[index].differentiable ? nullptr : n;
}

Value unpack_saved(Node* n, const Saved& s, TensorRef& held) {
  if (s.value.tag != Tag::Tensor) {
    if (RL_UNLIKELY(s.freed)) throw_released(n);
    if (RL_UNLIKELY(s.packed)) {
      held = unpack_packed(n, s);
      return Value::of(held.get());
    }
    if (RL_UNLIKELY(s.value.tag == Tag::TensorList)) {
      uint32_t now = 0;
      for (uint32_t i = 0; i < s.value.size; i++)
        if (s.value.tensors[i]) now += s.value.tensors[i]->version();
      if (now != s.version) {
        for (uint32_t i = 0; i < s.value.size; i++)
          if (s.value.tensors[i]) throw_modified(n, s.value.tensors[i], s.version, now);
      }
      if (RL_UNLIKELY(anomaly.enabled))
        anomaly_verify(n, static_cast<uint32_t>(&s - n->saved), s.value.tensors, s.value.size);
    }
    return s.value;
  }
  Tensor* t = s.value.tensor;
  if (RL_UNLIKELY(t->version() != s.version)) throw_modified(n, t, s.version, t->version());
  if (RL_UNLIKELY(anomaly.enabled)) anomaly_verify(n, static_cast<uint32_t>(&s - n->saved), &t, 1);
  // (A Function of the user is refused only where a second derivative would miss the tensor's part.)
  if (RL_UNLIKELY(s.linked && t->grad_fn == nullptr) && (n->kind != NodeKind::Function || thread_state.grad_mode))
    throw_detached(n, t);
  if (!s.is_output || !thread_state.grad_mode) return s.value;
  // A result (or an old value) gets its link back, so that its use is differentiated too.
  uint32_t index = s.output_index;
  Node* source = saved_link(n, index);
  if (!source) return s.value;
  NodeRef view;
  if (RL_UNLIKELY(source == n && n->owner != nullptr)) {  // what was written is now seen through the base
    view = view_of_base(n->owner);
    source = view.get();
    index = 0;
  }
  held = shallow_copy(t);
  set_grad_fn(held.get(), source, index);
  return Value::of(held.get());
}

// ---------------------------------------------------------------- nodes of operations

Node* record_begin(const Op& op, const Value* args, uint32_t mask, bool inplace) {
  const Derivative& d = derivative_of(op);
  uint32_t save = 0;
  for (uint32_t m = mask; m; m &= m - 1) {
    const Value& v = args[__builtin_ctz(m)];
    if (RL_UNLIKELY(v.tag == Tag::Tensor && v.tensor->output_index == kThroughBase && !v.tensor->grad_fn)) continue;
    int f = d.formula_of[__builtin_ctz(m)];
    if (f >= 0) save |= d.formulas[static_cast<size_t>(f)].save_mask;
  }
  uint32_t edges = static_cast<uint32_t>(__builtin_popcount(op.differentiable_mask));
  if (RL_UNLIKELY(d.has_lists)) {
    edges = 0;
    for (uint32_t m = op.differentiable_mask; m; m &= m - 1) {
      const Value& v = args[__builtin_ctz(m)];
      edges += op.arguments[__builtin_ctz(m)].kind == Kind::TensorList ? v.size : 1;
    }
  }
  NodeRef node = node_new(NodeKind::Operation, d.node_type, edges, static_cast<uint32_t>(__builtin_popcount(save)),
                          op.result_count);
  Node* n = node.get();
  n->op = &op;
  n->save_mask = save;
  capture_line(n);

  if (RL_UNLIKELY(d.has_lists)) {  // the lengths of the list arguments come first in the arena
    for (uint32_t m = op.differentiable_mask; m; m &= m - 1) {
      const Value& v = args[__builtin_ctz(m)];
      if (op.arguments[__builtin_ctz(m)].kind == Kind::TensorList) n->arena[n->arena_used++] = v.size;
    }
  }
  for (uint32_t m = op.differentiable_mask; m; m &= m - 1) {
    int i = __builtin_ctz(m);
    const Value& v = args[i];
    if (RL_LIKELY(v.tag == Tag::Tensor)) {
      n->edges[n->edge_count] = mask >> i & 1 ? gradient_edge(v.tensor) : Edge{nullptr, 0};
      n->edge_count++;
    } else if (op.arguments[i].kind == Kind::TensorList) {
      for (uint32_t k = 0; k < v.size; k++) {
        n->edges[n->edge_count] = v.tensors[k] && mask >> i & 1 ? gradient_edge(v.tensors[k]) : Edge{nullptr, 0};
        n->edge_count++;
      }
    } else {
      n->edges[n->edge_count++] = Edge{nullptr, 0};
    }
  }

  Tensor* self = inplace ? args[0].tensor : nullptr;
  for (uint32_t m = save; m; m &= m - 1) {
    const Source& source = d.saved[static_cast<size_t>(__builtin_ctz(m))];
    Saved& s = n->saved[n->saved_count];
    if (source.kind == SourceKind::Result) {
      s.value = Value::none();  // record_end
      s.packed = s.freed = false;
      s.is_output = true;
    } else if (RL_UNLIKELY(inplace) && source.kind == SourceKind::Argument && args[source.index].tag == Tag::Tensor &&
               args[source.index].tensor == self) {
      if (source.index == 0) {
        save_before_write(n, s, self, self);
      } else {
        // x.mul_(x): the other operand is gone after the write. It is kept without its own link, or x would keep itself
        // alive through its node; backward finds the version changed.
        s.value = Value::of(shallow_copy(self).take());
        s.version = self->version();
        s.is_output = s.packed = s.freed = s.linked = false;
      }
    } else {
      save_source(n, s, source, args);
    }
    n->saved_count++;
  }
  if (RL_UNLIKELY(inplace && write_watcher != nullptr))  // an operand that was just saved may share the memory
    Py(need(PyObject_CallOneArg(write_watcher, self->object())));
  return node.take();
}

namespace {

// Ties one result to the node.
inline void link_result(Node* n, Tensor* t, uint32_t index) {
  set_output_info(n, index, t);
  if (RL_UNLIKELY(!is_differentiable(t->dtype()))) {
    n->outputs[index].differentiable = false;
    return;
  }
  Node* old = t->grad_fn;
  if (RL_UNLIKELY(old != nullptr || t->retains_grad)) {
    set_grad_fn(t, n, index);
    return;
  }
  retain(n);
  t->grad_fn = n;
  t->output_index = index;
  t->requires_grad = true;
}

void no_result(Node* n, uint32_t index) {
  OutputInfo& o = n->outputs[index];
  o.dtype = RL_FLOAT32;
  o.device = 0;
  o.differentiable = o.is_tensor = false;
  o.ndim = 0;
}

// A list result (split, unbind): each element is an output.
[[gnu::noinline]] void link_list(Node* n, const Value& list) {
  if (n->outputs != &n->inline_output) PyMem_Free(n->outputs);
  n->outputs = static_cast<OutputInfo*>(PyMem_Malloc(sizeof(OutputInfo) * (list.size + 1)));
  if (!n->outputs) throw std::bad_alloc();
  for (uint32_t i = 0; i < list.size; i++) {
    link_result(n, list.tensors[i], i);
    n->output_count = i + 1;
  }
}

}  // namespace

void record_end(Node* n, const Op& op, const Value* args, Value* results, bool inplace) {
  NodeRef owner = NodeRef::own(n);
  if (RL_UNLIKELY(anomaly.enabled)) anomaly_results(n, op, args, results, inplace);
  const int self_edge = op.differentiable_mask & 1 ? 0 : -1;
  if (RL_LIKELY(op.result_count == 1)) {
    if (RL_LIKELY(results[0].tag == Tag::Tensor)) {
      if (RL_UNLIKELY(inplace)) {
        Tensor* self = results[0].tensor;
        set_output_info(n, 0, self);
        n->output_count = 1;
        rebase_history(self, n, self_edge);
      } else {
        link_result(n, results[0].tensor, 0);
        n->output_count = 1;
      }
    } else if (results[0].tag == Tag::TensorList) {
      link_list(n, results[0]);
    }
  } else {
    for (uint32_t i = 0; i < op.result_count; i++) {
      if (results[i].tag != Tag::Tensor)
        no_result(n, i);
      else if (inplace && i == 0) {
        set_output_info(n, 0, results[0].tensor);
        rebase_history(results[0].tensor, n, self_edge);
      } else if (op.result_mask >> i & 1)
        link_result(n, results[i].tensor, i);
      else {
        set_output_info(n, i, results[i].tensor);
        n->outputs[i].differentiable = false;
      }
      n->output_count = i + 1;
    }
  }
  const auto& sources = derivative_of(op).saved;
  uint32_t k = 0;
  for (uint32_t m = n->save_mask; m; m &= m - 1, k++) {
    const Source& source = sources[static_cast<size_t>(__builtin_ctz(m))];
    if (source.kind != SourceKind::Result) continue;
    const Value& r = results[source.index];
    if (r.tag == Tag::Tensor) save_tensor(n, n->saved[k], r.tensor, true, source.index);
  }
}

}  // namespace rl
