// Life of nodes: allocation from a free list, release without recursion, garbage collection; links between tensors and
// nodes.
#include "node.h"

#include <new>

namespace rl {

namespace {

constexpr int kFreeNodes = 512;
Node* free_nodes[kFreeNodes];
int free_node_count = 0;
uint64_t sequence_counter = 0;

// Nodes whose reference count fell to zero while another was being taken apart. A chain of any length is released in
// this loop, not by recursion.
std::vector<Node*> dying;
bool draining = false;

template <class T>
T* allocate(size_t count) {
  auto* p = static_cast<T*>(PyMem_Malloc(sizeof(T) * count));
  if (!p) throw std::bad_alloc();
  return p;
}

inline bool in_arena(const Node* n, const int64_t* p) { return p >= n->arena && p < n->arena + kArena; }

void drop_value(Node* n, Value& v) {
  switch (v.tag) {
    case Tag::Tensor:
      release(v.tensor);
      break;
    case Tag::IntList:
      if (!in_arena(n, v.ints)) PyMem_Free(const_cast<int64_t*>(v.ints));
      break;
    case Tag::DoubleList:
      PyMem_Free(const_cast<double*>(v.doubles));
      break;
    case Tag::TensorList:
      for (uint32_t i = 0; i < v.size; i++)
        if (v.tensors[i]) release(v.tensors[i]);
      PyMem_Free(v.tensors);
      break;
    case Tag::Object:
      Py_DECREF(v.object);
      break;
    default:
      break;
  }
  v = Value::none();
}

void drop_extras(Node* n) {
  NodeExtras* x = std::exchange(n->extras, nullptr);
  if (!x) return;
  for (auto& r : x->retained) r.tensor->retains_grad = false;
  for (auto& h : x->tensor_hooks) Py_DECREF(h.hooks);
  Py_XDECREF(x->pre_hooks);
  Py_XDECREF(x->post_hooks);
  Py_XDECREF(x->metadata);
  Py_XDECREF(x->name);
  delete x;
}

void forget_leaf(Node* n) {
  Tensor* leaf = std::exchange(n->leaf, nullptr);
  if (!leaf) return;
  if (leaf->meta && leaf->meta->accumulator == n) leaf->meta->accumulator = nullptr;
  if (!n->weak_leaf) release(leaf);
}

void drop_function_state(FunctionNode* f) {
  Py_CLEAR(f->dict);
  Py_CLEAR(f->to_save);
  Py_CLEAR(f->saved_for_forward);
  Py_CLEAR(f->non_differentiable);
  Py_CLEAR(f->dirty);
  Py_CLEAR(f->needs_input_grad);
  Py_CLEAR(f->tensor_inputs);
}

// Everything the node refers to.
void drop_contents(Node* n) {
  uint32_t saved = std::exchange(n->saved_count, 0);
  for (uint32_t i = 0; i < saved; i++) drop_value(n, n->saved[i].value);
  if (n->kind == NodeKind::AsStrided && n->edge_count) {
    Node* base = n->edges[0].node;
    if (base && base->kind == NodeKind::CopySlices && base->slices && base->slices->seen == n)
      base->slices->seen = nullptr;
  }
  uint32_t edges = std::exchange(n->edge_count, 0);
  for (uint32_t i = 0; i < edges; i++)
    if (n->edges[i].node) release(n->edges[i].node);
  drop_extras(n);
  if (n->kind == NodeKind::Accumulate) {
    forget_leaf(n);
  } else if (n->slices && (n->kind == NodeKind::CopySlices || n->kind == NodeKind::AsStrided)) {
    SlicesPayload* s = std::exchange(n->slices, nullptr);
    if (s->function) {
      if (s->function->owner == n) s->function->owner = nullptr;
      release(s->function);
    }
    delete s;
  } else if (n->kind == NodeKind::Function) {
    drop_function_state(reinterpret_cast<FunctionNode*>(n));
  }
}

void free_node(Node* n) {
  drop_contents(n);
  for (uint32_t i = 0; i < n->output_count; i++)
    if (n->outputs[i].ndim > kInlineDims) PyMem_Free(n->outputs[i].heap_shape);
  if (n->edges != n->inline_edges) PyMem_Free(n->edges);
  if (n->saved != n->inline_saved) PyMem_Free(n->saved);
  if (n->outputs != &n->inline_output) PyMem_Free(n->outputs);
  Py_CLEAR(n->code);
  if (n->kind == NodeKind::Function) {
    PyObject_GC_Del(n);  // the Python subclass's own dealloc has dropped the reference to the type, or will
    return;
  }
  PyTypeObject* type = Py_TYPE(n);
  if (free_node_count < kFreeNodes) {
    free_nodes[free_node_count++] = n;
  } else {
    PyObject_GC_Del(n);
  }
  if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) Py_DECREF(type);
}

}  // namespace

uint64_t next_sequence() { return ++sequence_counter; }

void node_init(Node* n, NodeKind kind, uint32_t edges, uint32_t saved, uint32_t outputs) {
  n->kind = kind;
  n->released = n->weak_leaf = false;
  n->arena_used = 0;
  n->output_count = 0;
  n->edge_count = n->saved_count = 0;
  n->slot = 0;
  n->save_mask = 0;
  n->instruction = 0;
  n->sequence = ++sequence_counter;
  n->op = nullptr;
  n->payload = nullptr;
  n->code = nullptr;
  n->extras = nullptr;
  n->edges = RL_LIKELY(edges <= kInlineEdges) ? n->inline_edges : allocate<Edge>(edges);
  n->saved = RL_LIKELY(saved <= kInlineSaved) ? n->inline_saved : allocate<Saved>(saved);
  n->outputs = RL_LIKELY(outputs <= 1) ? &n->inline_output : allocate<OutputInfo>(outputs);
}

NodeRef node_new(NodeKind kind, PyTypeObject* type, uint32_t edges, uint32_t saved, uint32_t outputs) {
  Node* n;
  if (RL_LIKELY(free_node_count > 0)) {
    n = free_nodes[--free_node_count];
    PyObject_Init(n->object(), type);  // also takes the reference to a heap type
  } else {
    n = PyObject_GC_New(Node, type);
    if (!n) throw PythonError();
  }
  node_init(n, kind, edges, saved, outputs);
  PyObject_GC_Track(n->object());
  return NodeRef::own(n);
}

void node_free_saved(Node* n) {
  n->released = true;
  for (uint32_t i = 0; i < n->saved_count; i++) {
    Saved& s = n->saved[i];
    if (s.value.tag != Tag::Tensor && s.value.tag != Tag::TensorList && !s.packed) continue;
    s.freed = true;
    Value v = std::exchange(s.value, Value::none());
    drop_value(n, v);
  }
  if (n->kind == NodeKind::CopySlices && n->slices) node_free_saved(n->slices->function);
}

void node_release(Node* n) { release(n); }

void node_dealloc(PyObject* object) {
  PyObject_GC_UnTrack(object);
  auto* n = reinterpret_cast<Node*>(object);
  if (n->kind == NodeKind::Function) {
    auto* f = reinterpret_cast<FunctionNode*>(n);
    if (f->weak_references) PyObject_ClearWeakRefs(object);
  }
  if (draining) {
    dying.push_back(n);
    return;
  }
  draining = true;
  free_node(n);
  while (!dying.empty()) {
    Node* next = dying.back();
    dying.pop_back();
    free_node(next);
  }
  draining = false;
}

int node_traverse(PyObject* object, visitproc visit, void* arg) {
  auto* n = reinterpret_cast<Node*>(object);
  if (Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE) Py_VISIT(Py_TYPE(object));
  for (uint32_t i = 0; i < n->edge_count; i++) Py_VISIT(reinterpret_cast<PyObject*>(n->edges[i].node));
  for (uint32_t i = 0; i < n->saved_count; i++) {
    const Value& v = n->saved[i].value;
    if (v.tag == Tag::Tensor) {
      Py_VISIT(v.tensor->object());
    } else if (v.tag == Tag::TensorList) {
      for (uint32_t k = 0; k < v.size; k++)
        if (v.tensors[k]) Py_VISIT(v.tensors[k]->object());
    } else if (v.tag == Tag::Object) {
      Py_VISIT(v.object);
    }
  }
  if (NodeExtras* x = n->extras) {
    for (auto& h : x->tensor_hooks) Py_VISIT(h.hooks);
    Py_VISIT(x->pre_hooks);
    Py_VISIT(x->post_hooks);
    Py_VISIT(x->metadata);
  }
  if (n->kind == NodeKind::Accumulate) {
    if (!n->weak_leaf && n->leaf) Py_VISIT(n->leaf->object());
  } else if (n->kind == NodeKind::CopySlices) {
    if (n->slices) Py_VISIT(reinterpret_cast<PyObject*>(n->slices->function));
  } else if (n->kind == NodeKind::Function) {
    auto* f = reinterpret_cast<FunctionNode*>(n);
    Py_VISIT(f->dict);
    Py_VISIT(f->to_save);
    Py_VISIT(f->saved_for_forward);
    Py_VISIT(f->non_differentiable);
    Py_VISIT(f->dirty);
    Py_VISIT(f->needs_input_grad);
    Py_VISIT(f->tensor_inputs);
  }
  return 0;
}

int node_clear(PyObject* object) {
  auto* n = reinterpret_cast<Node*>(object);
  n->released = true;
  drop_contents(n);
  return 0;
}

void set_shape(OutputInfo& o, int ndim, const int64_t* from) {
  o.ndim = ndim;
  int64_t* shape = o.inline_shape;
  if (RL_UNLIKELY(ndim > kInlineDims)) shape = o.heap_shape = allocate<int64_t>(static_cast<size_t>(ndim));
  for (int i = 0; i < ndim; i++) shape[i] = from[i];
}

void set_output_info(Node* n, uint32_t index, const Tensor* t) {
  OutputInfo& o = n->outputs[index];
  o.dtype = t->desc.dtype;
  o.device = t->desc.device;
  o.differentiable = o.is_tensor = true;
  set_shape(o, t->ndim(), t->shape());
}

NodeExtras& extras_of(Node* n) {
  if (!n->extras) n->extras = new NodeExtras;
  return *n->extras;
}

// ---------------------------------------------------------------- tensors

AutogradMeta* meta_of(Tensor* t) {
  if (!t->meta) t->meta = new AutogradMeta;
  return t->meta;
}

static inline bool same_info(const OutputInfo& o, const Tensor* t) {
  if (o.dtype != t->desc.dtype || o.ndim != t->ndim()) return false;
  const int64_t* shape = o.shape();
  for (int i = 0; i < o.ndim; i++)
    if (shape[i] != t->size(i)) return false;
  return true;
}

Node* accumulator_of(Tensor* leaf) {
  AutogradMeta* meta = meta_of(leaf);
  if (Node* n = meta->accumulator) {
    if (RL_LIKELY(same_info(n->outputs[0], leaf))) {
      retain(n);
      return n;
    }
    if (n->weak_leaf) {  // nobody would tell it that the leaf dies
      n->weak_leaf = false;
      retain(leaf);
    }
    // .data was exchanged for a tensor of another shape or dtype: older graphs keep the old node.
    meta->accumulator = nullptr;
  }
  NodeRef n = node_new(NodeKind::Accumulate, &AccumulateType, 0, 0, 1);
  n->sequence = UINT64_MAX;  // a gradient is stored as soon as it is complete
  retain(leaf);
  n->leaf = leaf;
  set_output_info(n.get(), 0, leaf);
  n->output_count = 1;
  meta->accumulator = n.get();
  return n.take();
}

Edge gradient_edge(Tensor* t) {
  if (Node* n = grad_fn_of(t)) {
    retain(n);
    return {n, t->output_index};
  }
  if (!t->requires_grad || t->output_index == kThroughBase) return {nullptr, 0};
  return {accumulator_of(t), 0};
}

void retain_grad_on(Node* node, uint32_t index, Tensor* t) { extras_of(node).retained.push_back({index, t}); }

void retain_grad_off(Node* node, Tensor* t) {
  if (!node->extras) return;
  auto& list = node->extras->retained;
  for (size_t i = 0; i < list.size(); i++)
    if (list[i].tensor == t) {
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
}

void set_grad_fn(Tensor* t, Node* node, uint32_t index) {
  Node* old = t->grad_fn;
  retain(node);
  if (RL_UNLIKELY(t->retains_grad)) {
    if (old) retain_grad_off(old, t);
    retain_grad_on(node, index, t);
  }
  t->grad_fn = node;
  t->output_index = index;
  t->requires_grad = true;
  if (old) release(old);
}

void autograd_clear(Tensor* t) {
  if (Node* n = std::exchange(t->grad_fn, nullptr)) {
    if (RL_UNLIKELY(t->retains_grad)) retain_grad_off(n, t);
    release(n);
  }
  t->retains_grad = false;
  if (Tensor* g = std::exchange(t->grad, nullptr)) release(g);
  if (Tensor* b = std::exchange(t->base, nullptr)) release(b);
  if (AutogradMeta* m = std::exchange(t->meta, nullptr)) {
    if (m->accumulator && m->accumulator->leaf == t) {
      Node* accumulator = m->accumulator;
      accumulator->leaf = nullptr;
      if (!accumulator->weak_leaf) release(t);
    }
    Py_XDECREF(m->hooks);
    Py_XDECREF(m->post_accumulate);
    delete m->wrapped;
    delete m;
  }
}

int autograd_traverse(Tensor* t, visitproc visit, void* arg) {
  Py_VISIT(reinterpret_cast<PyObject*>(t->grad_fn));
  if (t->grad) Py_VISIT(t->grad->object());
  if (t->base) Py_VISIT(t->base->object());
  if (AutogradMeta* m = t->meta) {
    Py_VISIT(m->hooks);
    Py_VISIT(m->post_accumulate);
    if (m->wrapped) {
      Py_VISIT(reinterpret_cast<PyObject*>(m->wrapped->value.get()));
      Py_VISIT(reinterpret_cast<PyObject*>(m->wrapped->tangent.get()));
    }
  }
  return 0;
}

}  // namespace rl
