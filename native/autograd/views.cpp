// Views and in-place writes: PyTorch's rules for which writes autograd can follow, and the nodes that follow them.
#include <unordered_set>
#include <vector>

#include "derivative.h"

namespace rl {

namespace {

Geometry geometry_of(const Tensor* t) {
  return {Dims(t->ndim(), t->shape()), Dims(t->ndim(), t->strides()), t->offset(), t->lazy()};
}

std::string inplace_name(const Op& op) {
  std::string name = op.title();
  return name.back() == '_' ? name : name + "_";
}

// Refuses what cannot be followed through this view. `indirect`: the base or another view of it was written, not the
// view.
[[gnu::noinline]] [[noreturn]] void refuse_creation(const Tensor* view, const char* op, bool indirect) {
  const char* what = indirect ? "its base or another view of its base has been modified in place with grad mode enabled"
                              : "is being modified in place with grad mode enabled";
  switch (view->creation) {
    case Creation::NoGrad:
    case Creation::Inference: {
      const char* mode = view->creation == Creation::NoGrad ? "no_grad" : "inference";
      throw_error(
          ErrorKind::Runtime,
          "%s: a view was created in %s mode and %s. It is unclear whether the write should be recorded: put both the "
          "view and the write inside the %s block, or both outside (shape of the view %s)",
          op, mode, what, mode, shape_text(view).c_str());
    }
    case Creation::MultiOutput: {
      std::string name = view->grad_fn ? node_name(view->grad_fn) : "a function";
      throw_error(
          ErrorKind::Runtime,
          "%s: Output %d of %s is a view and %s. It comes from a function that returns multiple views, whose outputs "
          "may not be modified inplace. Use an out-of-place operation instead (shape of the view %s)",
          op, static_cast<int>(view->output_index), name.c_str(), indirect ? what : "is being modified inplace",
          shape_text(view).c_str());
    }
    default: {
      std::string name = view->grad_fn ? node_name(view->grad_fn) : "a custom Function";
      throw_error(
          ErrorKind::Runtime,
          "%s: Output %d of %s is a view and %s. It was created inside a custom Function (or an input was returned as "
          "is), whose backward would be bypassed. Clone the output of the custom Function instead",
          op, static_cast<int>(view->output_index), name.c_str(), indirect ? what : "is being modified inplace");
    }
  }
}

}  // namespace

void mark_view(Tensor* view, bool multi_output) {
  if (!view->base) return;
  view->view_version = view->storage->version;
  if (!thread_state.grad_mode) {
    view->creation = thread_state.inference_mode ? Creation::Inference : Creation::NoGrad;
    // As in PyTorch, a view made under no_grad has no history but still counts as requiring grad through its base.
    if (!view->inference && is_differentiable(view->dtype()) && needs_grad(view->base) && !view->grad_fn) {
      view->requires_grad = true;
      view->output_index = kThroughBase;
    }
  } else if (multi_output) {
    view->creation = Creation::MultiOutput;
  }
}

void unmark_view(Tensor* view) {
  needs_grad(view);  // writes to the base since then belong to its history
  if (view->output_index == kThroughBase) return;
  view->creation = Creation::Default;
  release(std::exchange(view->base, nullptr));
}

bool refresh_view(Tensor* t) {
  Tensor* base = t->base;
  uint32_t now = t->storage->version;
  // Once its base is detached and written, a view with a history is as constant as the base: its node leads nowhere.
  if ((!base->requires_grad && !t->grad_fn) || !is_differentiable(t->dtype())) {
    if (!t->grad_fn) t->view_version = now;
    return t->requires_grad;
  }
  if (t->creation != Creation::Default) refuse_creation(t, "autograd", true);
  NodeRef n = node_new(NodeKind::AsStrided, &AsStridedType, 1, 0, 1);
  capture_line(n.get());
  n->slices = new SlicesPayload{geometry_of(base), geometry_of(t), base->dtype(), t->dtype(), nullptr, nullptr, -1};
  n->edges[0] = gradient_edge(base);
  n->edge_count = 1;
  set_output_info(n.get(), 0, t);
  n->output_count = 1;
  set_grad_fn(t, n.get(), 0);
  t->view_version = now;
  return true;
}

NodeRef view_of_base(Node* copy_slices) {
  SlicesPayload& s = *copy_slices->slices;
  if (s.seen) return NodeRef::share(s.seen);
  NodeRef n = node_new(NodeKind::AsStrided, &AsStridedType, 1, 0, 1);
  n->slices = new SlicesPayload{s.base, s.view, s.base_dtype, s.view_dtype, nullptr, nullptr, -1};
  retain(copy_slices);
  n->edges[0] = {copy_slices, 0};
  n->edge_count = 1;
  s.seen = n.get();
  OutputInfo& o = n->outputs[0];
  o.dtype = static_cast<uint8_t>(s.view_dtype);
  o.device = copy_slices->outputs[0].device;
  o.differentiable = o.is_tensor = true;
  set_shape(o, s.view.shape.n, s.view.shape.v);
  n->output_count = 1;
  return n;
}

void check_inplace(Tensor* self, const Op& op, bool will_record) {
  RL_CHECK(!self->inference || thread_state.inference_mode, Runtime,
           "%s: Inplace update to inference tensor outside InferenceMode is not allowed. Make a clone of the tensor to "
           "get a "
           "normal one before the update (shape %s)",
           inplace_name(op).c_str(), shape_text(self).c_str());
  remember_write(self, op);
  if (RL_UNLIKELY(write_watcher != nullptr)) Py(need(PyObject_CallOneArg(write_watcher, self->object())));
  if (!thread_state.grad_mode) return;
  if (!will_record && !self->requires_grad) return;
  if (self->base) {
    if (self->creation != Creation::Default) refuse_creation(self, inplace_name(op).c_str(), false);
    Tensor* base = self->base;
    // (A leaf may itself be a view, of memory that does not require grad.)
    RL_CHECK(base->grad_fn || !needs_grad(self), Runtime,
             "a view of a leaf Variable that requires grad is being used in an in-place operation. (%s on a view of "
             "shape %s of "
             "a leaf of shape %s; use no_grad() around it, or clone() the leaf first)",
             inplace_name(op).c_str(), shape_text(self).c_str(), shape_text(base).c_str());
  }
  RL_CHECK(!needs_grad(self) || self->grad_fn, Runtime,
           "a leaf Variable that requires grad is being used in an in-place operation. (%s on a leaf of shape %s; use "
           "no_grad() "
           "around it, or clone() the leaf first)",
           inplace_name(op).c_str(), shape_text(self).c_str());
}

void check_dirty_view(Tensor* self, const char* name) {
  if (self->creation != Creation::Default) refuse_creation(self, name, false);
  RL_CHECK(
      self->base->grad_fn || !needs_grad(self), Runtime,
      "a view of a leaf Variable that requires grad has been used in an in-place operation. (%s on a view of shape "
      "%s of a leaf of shape %s)",
      name, shape_text(self).c_str(), shape_text(self->base).c_str());
}

void loosen_saved(Tensor* root, Node* fn) {
  const uint64_t last = root->grad_fn ? root->grad_fn->sequence : 0;
  std::unordered_set<Node*> seen;
  std::vector<Node*> stack;
  auto push = [&](Node* n) {
    if (n && n->kind != NodeKind::Accumulate && n->sequence > last && seen.insert(n).second) stack.push_back(n);
  };
  auto loosen = [&](Tensor*& t) {
    if (!t || (t != root && t->base != root)) return;
    TensorRef copy = shallow_copy(t);
    if (t->grad_fn) set_grad_fn(copy.get(), t->grad_fn, t->output_index);
    release(std::exchange(t, copy.take()));
  };
  push(fn);
  while (!stack.empty()) {
    Node* n = stack.back();
    stack.pop_back();
    for (uint32_t i = 0; i < n->edge_count; i++) push(n->edges[i].node);
    if (n->kind == NodeKind::CopySlices) push(n->slices->function);
    for (uint32_t i = 0; i < n->saved_count; i++) {
      Value& v = n->saved[i].value;
      if (v.tag == Tag::Tensor)
        loosen(v.tensor);
      else if (v.tag == Tag::TensorList)
        for (uint32_t k = 0; k < v.size; k++) loosen(v.tensors[k]);
    }
  }
}

void rebase_history(Tensor* self, Node* fn, int self_edge) {
  Tensor* base = self->base;
  Tensor* root = base ? base : self;
  if (RL_UNLIKELY(root->saved)) loosen_saved(root, fn);
  if (!base) {
    set_grad_fn(self, fn, 0);
    return;
  }
  uint32_t others = fn->edge_count - (self_edge >= 0 ? 1 : 0);
  NodeRef n = node_new(NodeKind::CopySlices, &CopySlicesType, 1 + others, 0, 1);
  capture_line(n.get());
  retain(fn);
  n->slices =
      new SlicesPayload{geometry_of(base), geometry_of(self), base->dtype(), self->dtype(), fn, nullptr, self_edge};
  fn->owner = n.get();
  n->edges[0] = gradient_edge(base);
  n->edge_count = 1;
  for (uint32_t i = 0; i < fn->edge_count; i++) {
    if (static_cast<int>(i) == self_edge) continue;
    Edge e = fn->edges[i];
    if (e.node) retain(e.node);
    n->edges[n->edge_count++] = e;
  }
  set_output_info(n.get(), 0, base);
  n->output_count = 1;
  set_grad_fn(base, n.get(), 0);
  self->view_version = self->storage->version - 1;  // stale: its node is made from the base's
  refresh_view(self);
  n->slices->seen = self->grad_fn;
}

void adopt_history(Tensor* self, Tensor* from) {
  if (!grad_fn_of(from)) return;
  set_grad_fn(self, from->grad_fn, from->output_index);
  self->view_version = self->storage->version;
}

void record_overwrite(Tensor* self, const Op& op) {
  if (!needs_grad(self) || !is_differentiable(self->dtype())) return;
  NodeRef n = node_new(NodeKind::Overwrite, node_type_named(backward_name(op)), 1, 0, 1);
  capture_line(n.get());
  n->edges[0] = gradient_edge(self);
  n->edge_count = 1;
  set_output_info(n.get(), 0, self);
  n->output_count = 1;
  rebase_history(self, n.get(), 0);
}

void record_refusal(Tensor* self, Tensor* source, const char* message) {
  if (!needs_grad(self) && !(source && needs_grad(source))) return;
  NodeRef n = node_new(NodeKind::Error, &ErrorNodeType, 2, 0, 1);
  capture_line(n.get());
  extras_of(n.get()).name = need(PyUnicode_FromString(message));
  n->edges[0] = gradient_edge(self);
  n->edges[1] = source ? gradient_edge(source) : Edge{nullptr, 0};
  n->edge_count = 2;
  set_output_info(n.get(), 0, self);
  n->output_count = 1;
  rebase_history(self, n.get(), 0);
}

// ---------------------------------------------------------------- backward

namespace {

// The gradient of a tensor's numbers from that of its memory, and back: both are the same.
TensorRef through(uint8_t lazy, Tensor* grad) {
  static const Op &conj = find_op("conj"), &neg = find_op("neg");
  TensorRef g = TensorRef::share(grad);
  if (lazy & kConjugated) g = call(conj, {Value::of(g)});
  if (lazy & kNegated) g = call(neg, {Value::of(g)});
  return g;
}

TensorRef gather(Tensor* grad, const Geometry& base, const Geometry& view, DType dtype) {
  static const Op& op = find_op("_geometry_gather");
  TensorRef slice = call(
      op, {Value::of(through(base.lazy, grad)), Value::of(base.shape), Value::of(base.strides), Value::of(base.offset),
           Value::of(view.shape), Value::of(view.strides), Value::of(view.offset), Value::of(dtype)});
  return through(view.lazy, slice.get());
}

TensorRef scatter(Tensor* grad, const Geometry& base, const Geometry& view, DType dtype) {
  static const Op& op = find_op("_geometry_scatter");
  TensorRef whole = call(
      op, {Value::of(through(view.lazy, grad)), Value::of(base.shape), Value::of(base.strides), Value::of(base.offset),
           Value::of(view.shape), Value::of(view.strides), Value::of(view.offset), Value::of(dtype)});
  return through(base.lazy, whole.get());
}

TensorRef replace(Tensor* grad, Tensor* source, const Geometry& base, const Geometry& view, DType dtype) {
  static const Op& op = find_op("_geometry_replace");
  TensorRef part = source ? through(view.lazy, source) : TensorRef();
  TensorRef whole = call(op, {Value::of(through(base.lazy, grad)), Value::of(part), Value::of(base.shape),
                              Value::of(base.strides), Value::of(base.offset), Value::of(view.shape),
                              Value::of(view.strides), Value::of(view.offset), Value::of(dtype)});
  return through(base.lazy, whole.get());
}

}  // namespace

void apply_slices(Node* n, Tensor* const* grads, Tensor** results, const bool* needed) {
  Tensor* grad = grads[0];
  if (!grad) return;
  const SlicesPayload& s = *n->slices;
  if (n->kind == NodeKind::AsStrided) {
    if (needed[0]) results[0] = scatter(grad, s.base, s.view, s.base_dtype).take();
    return;
  }
  Node* fn = s.function;
  TensorRef slice = gather(grad, s.base, s.view, s.view_dtype);
  std::unique_ptr<bool[]> wanted(new bool[fn->edge_count + 1]);
  std::unique_ptr<Tensor*[]> parts(new Tensor*[fn->edge_count + 1]());
  uint32_t edge = 1;
  for (uint32_t i = 0; i < fn->edge_count; i++)
    wanted[i] = static_cast<int>(i) == s.self_edge ? needed[0] : needed[edge++];
  Tensor* incoming[kMaxResults] = {slice.get()};
  struct Cleanup {
    Tensor** parts;
    uint32_t count;
    ~Cleanup() {
      for (uint32_t i = 0; i < count; i++)
        if (parts[i]) release(parts[i]);
    }
  } cleanup{parts.get(), fn->edge_count};
  apply_node(fn, incoming, parts.get(), wanted.get());
  edge = 1;
  for (uint32_t i = 0; i < fn->edge_count; i++)
    if (static_cast<int>(i) != s.self_edge) results[edge++] = std::exchange(parts[i], nullptr);
  if (needed[0]) {
    TensorRef source;
    if (s.self_edge >= 0 && parts[s.self_edge])
      source = fit_gradient(TensorRef::own(std::exchange(parts[s.self_edge], nullptr)), fn->outputs[0], fn, 0);
    results[0] = replace(grad, source.get(), s.base, s.view, s.view_dtype).take();
  }
}

}  // namespace rl
