// The engine: runs in the calling thread, without recursion, by sequence number. All state of a run lives in a table of
// that run; a node carries only a hint of its place there, which is checked. So runs that are nested, or that
// interleave in several threads over a shared graph, cannot disturb each other.
#include "engine.h"

#include "../tensor/profiler.h"
#include "anomaly.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace rl {

namespace {

struct Slot {
  Node* node;
  int32_t dependencies;
  bool needed;     // runs
  bool captured;   // its incoming gradients are asked for
  Tensor* grad;    // of a node with one output
  Tensor** grads;  // of a node with several
};

struct Capture {
  uint32_t slot, index;
  size_t input;
};

struct Run {
  uint64_t id = 0;
  Run* outer = nullptr;  // the backward in whose course this one was started
  bool selective = false;
  std::vector<Py> at_end;  // callbacks
  Py notes;                // dict: what hooks remember for the time of this backward
  std::vector<Slot> slots;
  std::vector<Node*> stack, heap;
  std::vector<Capture> captures;
  std::vector<TensorRef> captured;                  // gradients of `inputs`
  std::vector<TensorRef> received;                  // tensors whose .grad got a graph
  std::unordered_map<const Node*, uint32_t> index;  // made when a hint failed, or there is none
  GradientTraces traces;                            // of anomaly mode

  Slot& find(Node* n) {
    uint32_t s = n->slot;
    if (RL_LIKELY(s < slots.size() && slots[s].node == n)) return slots[s];
    return find_slow(n);
  }
  [[gnu::noinline]] Slot& find_slow(const Node* n) {
    make_index();
    return slots[index.at(n)];
  }
  // `n` may be the address of a node that is gone.
  const Slot* find_or_null(const Node* n) {
    make_index();
    auto found = index.find(n);
    return found == index.end() ? nullptr : &slots[found->second];
  }
  void make_index() {
    if (index.empty())
      for (uint32_t i = 0; i < slots.size(); i++) index.emplace(slots[i].node, i);
  }
  void clear() {
    for (Slot& s : slots) {
      if (s.grad) release(s.grad);
      if (s.grads) {
        for (uint32_t i = 0; i < s.node->output_count; i++)
          if (s.grads[i]) release(s.grads[i]);
        PyMem_Free(s.grads);
      }
    }
    slots.clear();
    stack.clear();
    heap.clear();
    captures.clear();
    captured.clear();
    received.clear();
    index.clear();
    if (RL_UNLIKELY(!traces.empty())) traces.clear();
    if (RL_UNLIKELY(!at_end.empty())) at_end.clear();
    if (RL_UNLIKELY(notes.get() != nullptr)) notes = Py();
  }
};

// Runs are reused, with the memory of their tables.
std::vector<std::unique_ptr<Run>> idle_runs;
thread_local Run* current = nullptr;
uint64_t run_counter = 0;

struct RunOwner {
  std::unique_ptr<Run> run;
  RunOwner() {
    if (idle_runs.empty()) {
      run = std::make_unique<Run>();
    } else {
      run = std::move(idle_runs.back());
      idle_runs.pop_back();
    }
    run->id = ++run_counter;
    run->outer = current;
    current = run.get();
  }
  ~RunOwner() {
    current = run->outer;
    run->clear();
    if (idle_runs.size() < 8 && run->slots.capacity() < 65536) idle_runs.push_back(std::move(run));
  }
};

inline bool earlier(const Node* a, const Node* b) { return a->sequence < b->sequence; }

inline void add_slot(Run& run, Node* n, int32_t dependencies) {
  n->slot = static_cast<uint32_t>(run.slots.size());
  run.slots.push_back({n, dependencies, true, false, nullptr, nullptr});
  run.stack.push_back(n);
}

// Finds every node that can be reached and counts how many edges lead to it. Never enters Python.
void discover(Run& run, const Edge* roots, size_t count) {
  auto known = [&](Node* n) { return n->slot < run.slots.size() && run.slots[n->slot].node == n; };
  for (size_t i = 0; i < count; i++)
    if (!known(roots[i].node)) add_slot(run, roots[i].node, 0);
  while (!run.stack.empty()) {
    Node* n = run.stack.back();
    run.stack.pop_back();
    for (uint32_t i = 0; i < n->edge_count; i++) {
      Node* next = n->edges[i].node;
      if (!next) continue;
      if (known(next))
        run.slots[next->slot].dependencies++;
      else
        add_slot(run, next, 1);
    }
  }
}

// With `inputs`, only nodes on a way to one of them run.
void select(Run& run, const std::vector<Edge>& inputs, bool accumulate) {
  for (Slot& s : run.slots) s.needed = false;
  for (size_t i = 0; i < inputs.size(); i++) {
    if (!inputs[i].node) continue;
    const Slot* s = run.find_or_null(inputs[i].node);
    if (!s) continue;
    auto position = static_cast<uint32_t>(s - run.slots.data());
    if (accumulate) {
      run.slots[position].needed = true;
    } else {
      run.slots[position].captured = true;
      run.captures.push_back({position, inputs[i].index, i});
    }
  }
  std::vector<Node*> order;
  for (Slot& s : run.slots) order.push_back(s.node);
  // A node is younger than the nodes its edges lead to; leaves (the highest sequence number) have no edges.
  std::sort(order.begin(), order.end(), earlier);
  for (Node* n : order) {
    bool wanted = false;
    for (uint32_t i = 0; i < n->edge_count && !wanted; i++) {
      if (!n->edges[i].node) continue;
      const Slot& next = run.find(n->edges[i].node);
      wanted = next.needed || next.captured;
    }
    if (wanted) run.find(n).needed = true;
  }
}

// Nobody else can see this tensor's memory.
inline bool exclusive(Tensor* t) {
  return Py_REFCNT(t->object()) == 1 && t->storage->references.load(std::memory_order_relaxed) == 1 && !t->base &&
         !t->storage->deleter && !t->is_wrapped() && Py_IS_TYPE(t->object(), &TensorType);
}

void add_inplace(Tensor* to, Tensor* grad) {
  static const Op& op = find_op("add");
  union Arguments {
    Value items[kMaxArgs];
    Arguments() {}
  } args;
  args.items[0] = Value::of(to);
  args.items[1] = Value::of(grad);
  for (int i = 2; i < op.argument_count; i++) args.items[i] = op.arguments[i].default_value;
  Value result;
  Tensor* out[] = {to};
  run_op(op, args.items, &result, out, true);
  release(result.tensor);
}

void accumulate(Tensor*& place, TensorRef grad, bool create_graph) {
  if (RL_LIKELY(!place)) {
    place = grad.take();
    return;
  }
  if (!create_graph && place->contiguous && place->dtype() == grad->dtype() && exclusive(place) &&
      same_shape(place, grad.get())) {
    add_inplace(place, grad.get());
    return;
  }
  if (!create_graph && grad->contiguous && place->dtype() == grad->dtype() && exclusive(grad.get()) &&
      same_shape(place, grad.get())) {
    add_inplace(grad.get(), place);
    release(std::exchange(place, grad.take()));
    return;
  }
  Tensor* sum = add_gradients(place, grad.get()).take();
  release(std::exchange(place, sum));
}

// Memory laid out as PyTorch wants it for a gradient: like the parameter when that is dense, else row-major.
inline bool layout_fits(const Tensor* grad, const Tensor* leaf) {
  if (RL_LIKELY(leaf->contiguous)) return grad->contiguous;
  if (!is_dense_non_overlapping(leaf)) return grad->contiguous;
  for (int i = 0; i < leaf->ndim(); i++)
    if (leaf->size(i) != 1 && leaf->stride(i) != grad->stride(i)) return false;
  return true;
}

void store_gradient(Run& run, Tensor* leaf, TensorRef grad, bool create_graph) {
  if (!leaf->grad) {
    if (!layout_fits(grad.get(), leaf) || !exclusive(grad.get())) grad = clone_gradient(grad.get(), leaf);
    grad->inference = false;
    leaf->grad = grad.take();
  } else {
    RL_CHECK(same_shape(leaf->grad, grad.get()), Runtime,
             "backward: the .grad of a leaf has the wrong shape; expected %s, got %s", shape_text(grad.get()).c_str(),
             shape_text(leaf->grad).c_str());
    if (!create_graph) {
      add_inplace(leaf->grad, grad.get());
    } else {
      Tensor* sum = add_gradients(leaf->grad, grad.get()).take();
      if (Tensor* old = std::exchange(leaf->grad, sum)) release(old);
    }
  }
  if (RL_UNLIKELY(leaf->grad->grad_fn != nullptr)) run.received.push_back(TensorRef::share(leaf));
}

// ---------------------------------------------------------------- .grad with a graph must not keep its tensor alive

// A copy of a saved tensor that does not hold the tensor itself, nor its base, but leads to the same place in the
// graph.
TensorRef unlinked_copy(Tensor* t) {
  TensorRef copy = shallow_copy(t);
  if (Node* n = grad_fn_of(t)) {
    set_grad_fn(copy.get(), n, t->output_index);
  } else if (t->requires_grad) {
    NodeRef n = NodeRef::own(accumulator_of(t));
    set_grad_fn(copy.get(), n.get(), 0);
  }
  return copy;
}

// With create_graph, t.grad leads through its graph back to t: a cycle that only the garbage collector could free. The
// graph's own references to t become weak ones here. What is lost: once nobody else holds t, a backward no longer
// accumulates into it.
void break_cycles(std::vector<TensorRef>& received) {
  std::unordered_set<Tensor*> targets;
  for (auto& t : received) targets.insert(t.get());
  std::unordered_set<Node*> seen;
  std::vector<Node*> stack;
  auto push = [&](Node* n) {
    if (n && seen.insert(n).second) stack.push_back(n);
  };
  for (auto& t : received)
    if (t->grad) push(t->grad->grad_fn);
  while (!stack.empty()) {
    Node* n = stack.back();
    stack.pop_back();
    for (uint32_t i = 0; i < n->edge_count; i++) push(n->edges[i].node);
    if (n->kind == NodeKind::CopySlices) push(n->slices->function);
    if (n->kind == NodeKind::Accumulate) {
      if (n->leaf && !n->weak_leaf && targets.count(n->leaf)) {
        n->weak_leaf = true;
        release(n->leaf);  // `received` still holds it
      }
      continue;
    }
    auto loosen = [&](Tensor*& t) {
      if (!t || !(targets.count(t) || (t->base && targets.count(t->base)))) return;
      Tensor* copy = unlinked_copy(t).take();
      release(std::exchange(t, copy));
    };
    for (uint32_t i = 0; i < n->saved_count; i++) {
      Value& v = n->saved[i].value;
      if (v.tag == Tag::Tensor)
        loosen(v.tensor);
      else if (v.tag == Tag::TensorList)
        for (uint32_t k = 0; k < v.size; k++) loosen(v.tensors[k]);
    }
  }
}

// ---------------------------------------------------------------- one node

// The incoming gradients of a node, taken out of its slot.
struct Incoming {
  Tensor* one = nullptr;
  Tensor** many = nullptr;
  uint32_t count;
  Incoming(Slot& s) : count(s.node->output_count) {
    one = std::exchange(s.grad, nullptr);
    many = std::exchange(s.grads, nullptr);
    if (!many && count > 1) {
      many = static_cast<Tensor**>(PyMem_Calloc(count, sizeof(Tensor*)));
      if (!many) throw std::bad_alloc();
    }
  }
  ~Incoming() {
    clear();
    if (many) PyMem_Free(many);
  }
  Tensor** data() { return many ? many : &one; }
  void clear() {
    for (uint32_t i = 0; i < count; i++)
      if (Tensor* t = std::exchange(data()[i], nullptr)) release(t);
  }
  bool any() {
    for (uint32_t i = 0; i < count; i++)
      if (data()[i]) return true;
    return false;
  }
};

// Outgoing gradients and which of them are wanted; on the stack for ordinary nodes.
struct Outgoing {
  static constexpr uint32_t kSmall = 8;
  Tensor* small[kSmall];
  bool small_needed[kSmall];
  Tensor** results = small;
  bool* needed = small_needed;
  uint32_t count;
  explicit Outgoing(uint32_t n) : count(n) {
    if (RL_UNLIKELY(n > kSmall)) {
      results = new Tensor*[n];
      needed = new bool[n];
    }
    for (uint32_t i = 0; i < n; i++) results[i] = nullptr;
  }
  ~Outgoing() {
    for (uint32_t i = 0; i < count; i++)
      if (results[i]) release(results[i]);
    if (results != small) {
      delete[] results;
      delete[] needed;
    }
  }
};

[[gnu::noinline]] void run_node_tensor_hooks(Run& run, Node* n, Incoming& in) {
  if (n->kind == NodeKind::Accumulate) {
    if (n->leaf && n->leaf->meta && n->leaf->meta->hooks) run_tensor_hooks(n->leaf->meta->hooks, in.one);
    return;
  }
  // A hook may register others: the list is read by position.
  for (size_t i = 0; n->extras && i < n->extras->tensor_hooks.size(); i++) {
    uint32_t index = n->extras->tensor_hooks[i].index;
    Py hooks = Py::share(n->extras->tensor_hooks[i].hooks);
    if (index < in.count) run_tensor_hooks(hooks.get(), in.data()[index]);  // None where there is no gradient
  }
  for (size_t i = 0; n->extras && i < n->extras->retained.size(); i++) {
    auto [index, tensor] = n->extras->retained[i];
    if (index >= in.count || !in.data()[index]) continue;
    TensorRef keep = TensorRef::share(tensor);
    TensorRef grad = TensorRef::share(in.data()[index]);
    if (!tensor->grad) {
      tensor->grad = clone_gradient(grad.get(), nullptr).take();
    } else {
      Tensor* sum = add_gradients(tensor->grad, grad.get()).take();
      if (Tensor* old = std::exchange(tensor->grad, sum)) release(old);
    }
    if (tensor->grad->grad_fn) run.received.push_back(keep);
  }
}

inline bool has_tensor_hooks(const Node* n) {
  return n->extras || (n->kind == NodeKind::Accumulate && n->leaf && n->leaf->meta && n->leaf->meta->hooks);
}

void accumulate_node(Run& run, Node* n, Incoming& in, bool create_graph) {
  if (RL_UNLIKELY(n->extras && n->extras->pre_hooks)) run_pre_hooks(n->extras->pre_hooks, in.data(), 1);
  Tensor* leaf = n->leaf;
  if (!leaf) return;
  TensorRef keep = TensorRef::share(leaf);
  bool post = n->extras && n->extras->post_hooks;
  TensorRef seen = post ? TensorRef::share(in.one) : TensorRef();
  if (RL_LIKELY(in.one != nullptr))
    store_gradient(run, leaf, TensorRef::own(std::exchange(in.one, nullptr)), create_graph);
  if (RL_UNLIKELY(leaf->meta && leaf->meta->post_accumulate))
    run_post_accumulate_hooks(leaf->meta->post_accumulate, leaf);
  if (RL_UNLIKELY(post)) {
    Tensor* grad = seen.get();
    run_post_hooks(n->extras->post_hooks, nullptr, 0, &grad, 1);
  }
}

// Adds the forward line to an error that a derivative raised.
[[noreturn]] void rethrow_with_line(Node* n, const Error& e) {
  if (e.message.find(" was recorded at ") != std::string::npos) throw e;
  std::string line = line_text(n);
  throw Error{e.kind, e.message + line};
}

// What a derivative of ours refuses in Python gets the line, too.
[[gnu::noinline]] void add_line_to_refusal(Node* n) {
  if (n->kind != NodeKind::Operation || !PyErr_ExceptionMatches(PyExc_NotImplementedError)) return;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  std::string line = line_text(n);
  if (PyObject* text = value ? PyObject_Str(value) : nullptr) {
    PyErr_Format(type, "%U%s", text, line.c_str());
    Py_DECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
  } else {
    PyErr_Restore(type, value, trace);
  }
}

// The same as apply_node, in anomaly mode.
[[gnu::noinline]] void run_watched(Run& run, Node* n, Incoming& in, Outgoing& out) {
  try {
    Evaluating mark(n);
    if (in.any() || n->kind == NodeKind::Function) apply_node(n, in.data(), out.results, out.needed);
    if (anomaly.check_nan) anomaly_check(run.traces, n, in.data(), in.count, out.results, out.count);
  } catch (...) {
    anomaly_warn(n);
    throw;
  }
}

void run_node(Run& run, Node* n, const BackwardOptions& options, bool selective) {
  Slot& slot = run.find(n);
  const bool needed = slot.needed, captured = slot.captured;
  Incoming in(slot);
  if (RL_UNLIKELY(has_tensor_hooks(n))) run_node_tensor_hooks(run, n, in);
  if (RL_UNLIKELY(captured)) {
    auto position = static_cast<uint32_t>(&run.find(n) - run.slots.data());
    for (Capture& c : run.captures)
      if (c.slot == position && c.index < in.count && in.data()[c.index]) {
        run.captured.resize(std::max(run.captured.size(), c.input + 1));
        run.captured[c.input] = TensorRef::share(in.data()[c.index]);
      }
  }
  if (!needed) return;
  ProfiledNode event(n);
  if (n->kind == NodeKind::Accumulate) {
    if (options.accumulate) accumulate_node(run, n, in, options.create_graph);
    return;
  }
  Outgoing out(n->edge_count);
  for (uint32_t i = 0; i < n->edge_count; i++) {
    Node* next = n->edges[i].node;
    out.needed[i] = next != nullptr;
    if (RL_UNLIKELY(selective) && next) {
      const Slot& s = run.find(next);
      out.needed[i] = s.needed || s.captured;
    }
  }
  if (RL_UNLIKELY(n->extras && n->extras->pre_hooks)) run_pre_hooks(n->extras->pre_hooks, in.data(), in.count);
  try {
    if (RL_UNLIKELY(anomaly.enabled))
      run_watched(run, n, in, out);
    else if (in.any() || n->kind == NodeKind::Function)
      apply_node(n, in.data(), out.results, out.needed);
  } catch (const Error& e) {
    rethrow_with_line(n, e);
  } catch (const PythonError&) {
    add_line_to_refusal(n);
    throw;
  }
  if (!options.keep_graph) node_free_saved(n);
  if (RL_UNLIKELY(n->extras && n->extras->post_hooks)) {
    for (uint32_t i = 0; i < n->edge_count; i++)  // hooks see gradients of the shape and dtype of the inputs
      if (out.results[i] && n->edges[i].node) {
        TensorRef grad = TensorRef::own(std::exchange(out.results[i], nullptr));
        out.results[i] = fit_gradient(std::move(grad), n->edges[i].node->outputs[n->edges[i].index], n, i).take();
      }
    run_post_hooks(n->extras->post_hooks, out.results, out.count, in.data(), in.count);
  }
  in.clear();  // so that a gradient that was passed on is seen to have no other owner

  for (uint32_t i = 0; i < n->edge_count; i++) {
    const Edge& edge = n->edges[i];
    if (!edge.node) continue;
    if (Tensor* g = std::exchange(out.results[i], nullptr)) {
      TensorRef grad = TensorRef::own(g);
      if (out.needed[i]) {
        grad = fit_gradient(std::move(grad), edge.node->outputs[edge.index], n, i);
        Slot& next = run.find(edge.node);
        if (RL_LIKELY(edge.node->output_count <= 1)) {
          accumulate(next.grad, std::move(grad), options.create_graph);
        } else {
          if (!next.grads) {
            next.grads = static_cast<Tensor**>(PyMem_Calloc(edge.node->output_count, sizeof(Tensor*)));
            if (!next.grads) throw std::bad_alloc();
          }
          accumulate(next.grads[edge.index], std::move(grad), options.create_graph);
        }
      }
    }
    Slot& next = run.find(edge.node);
    if (--next.dependencies == 0 && (next.needed || next.captured)) {
      run.heap.push_back(edge.node);
      std::push_heap(run.heap.begin(), run.heap.end(), earlier);
    }
  }
}

}  // namespace

void apply_node(Node* n, Tensor* const* grads, Tensor** results, const bool* needed) {
  switch (n->kind) {
    case NodeKind::Operation:
      apply_operation(n, grads, results, needed);
      return;
    case NodeKind::CopySlices:
    case NodeKind::AsStrided:
      apply_slices(n, grads, results, needed);
      return;
    case NodeKind::Function:
      apply_function(n, grads, results);
      return;
    case NodeKind::Overwrite:
      if (needed[0] && grads[0]) results[0] = zeros_for(n->edges[0].node->outputs[n->edges[0].index]).take();
      return;
    case NodeKind::Error: {
      const char* message = n->extras && n->extras->name ? PyUnicode_AsUTF8(n->extras->name) : nullptr;
      throw_error(ErrorKind::Runtime, "%s", message ? message : "this result has no derivative");
    }
    case NodeKind::Accumulate:
      return;
  }
}

uint64_t current_run_id() { return current ? current->id : 0; }

bool current_run_is_selective() { return current && current->selective; }

PyObject* notes_of_run() {
  if (!current) return nullptr;
  if (!current->notes.get()) current->notes = Py(need(PyDict_New()));
  return current->notes.get();
}

bool at_end_of_run(PyObject* callable) {
  if (!current) return false;
  current->at_end.push_back(Py::share(callable));
  return true;
}

bool current_run_reaches(const Node* n, uint64_t sequence) {
  const Slot* s = current ? current->find_or_null(n) : nullptr;
  return s && s->node->sequence == sequence && (s->needed || s->captured);
}

std::vector<TensorRef> run_backward(const Edge* roots, TensorRef* grads, size_t root_count,
                                    const std::vector<Edge>* inputs, const BackwardOptions& options) {
  RunOwner owner;
  Run& run = *owner.run;
  GradGuard mode(options.create_graph);
  run.selective = inputs != nullptr;
  discover(run, roots, root_count);
  if (inputs) select(run, *inputs, options.accumulate);
  for (size_t i = 0; i < root_count; i++) {
    const Edge& root = roots[i];
    TensorRef grad = fit_gradient(std::move(grads[i]), root.node->outputs[root.index], root.node, root.index);
    Slot& slot = run.find(root.node);
    if (root.node->output_count > 1) {
      if (!slot.grads) {
        slot.grads = static_cast<Tensor**>(PyMem_Calloc(root.node->output_count, sizeof(Tensor*)));
        if (!slot.grads) throw std::bad_alloc();
      }
      accumulate(slot.grads[root.index], std::move(grad), options.create_graph);
    } else {
      accumulate(slot.grad, std::move(grad), options.create_graph);
    }
  }
  for (size_t i = 0; i < root_count; i++) {
    Node* n = roots[i].node;
    bool first = true;
    for (size_t k = 0; k < i; k++) first &= roots[k].node != n;
    Slot& slot = run.find(n);
    if (first && slot.dependencies == 0 && (slot.needed || slot.captured)) {
      run.heap.push_back(n);
      std::push_heap(run.heap.begin(), run.heap.end(), earlier);
    }
  }
  for (uint32_t count = 1; !run.heap.empty(); count++) {
    if (RL_UNLIKELY(count % 256 == 0) && PyErr_CheckSignals() < 0) throw PythonError();
    std::pop_heap(run.heap.begin(), run.heap.end(), earlier);
    Node* n = run.heap.back();
    run.heap.pop_back();
    run_node(run, n, options, inputs != nullptr);
  }
  std::vector<TensorRef> results;
  if (inputs && !options.accumulate) {
    results = std::move(run.captured);
    results.resize(inputs->size());
  }
  if (RL_UNLIKELY(!run.received.empty())) break_cycles(run.received);
  for (size_t i = 0; i < run.at_end.size(); i++) {  // one may add another
    Py callback = Py::share(run.at_end[i].get());
    Py(need(PyObject_CallNoArgs(callback.get())));
  }
  return results;
}

TensorRef implicit_gradient(Tensor* root) {
  if (RL_UNLIKELY(root->numel != 1)) {
    Node* n = grad_fn_of(root);
    std::string line = n ? line_text(n) : "";
    throw_error(ErrorKind::Runtime,
                "grad can be implicitly created only for scalar outputs; expected a tensor with one element, got shape "
                "%s; reduce "
                "it (loss.sum(), loss.mean()) or pass its gradient%s",
                shape_text(root).c_str(), line.c_str());
  }
  if (RL_UNLIKELY(!is_float(root->dtype()))) {
    Node* n = grad_fn_of(root);
    std::string line = n ? line_text(n) : "";
    throw_error(ErrorKind::Runtime, "grad can be implicitly created only for real scalar outputs but got %s%s",
                dtype_name(root->dtype()), line.c_str());
  }
  Device device = root->is_wrapped() ? Device::CPU : root->device();
  TensorRef one = empty(root->dtype(), root->ndim(), root->shape(), device);
  if (root->dtype() == RL_FLOAT32 && device == Device::CPU)
    *one->as<float>() = 1;
  else
    fill_value(one.get(), Value::of(1.0));
  return one;
}

void check_root_gradient(Tensor* root, const Tensor* grad, size_t index) {
  RL_CHECK(same_shape(root, grad), Runtime,
           "Mismatch in shape: grad_output[%zu] has a shape of %s and output[%zu] has a shape of %s.", index,
           shape_text(grad).c_str(), index, shape_text(root).c_str());
  RL_CHECK(is_complex(root->dtype()) == is_complex(grad->dtype()), Runtime,
           "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
           "grad_output[%zu] has a dtype of %s and output[%zu] has a dtype of %s.",
           index, dtype_name(grad->dtype()), index, dtype_name(root->dtype()));
}

}  // namespace rl
