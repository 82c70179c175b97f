// The graph of a computation: nodes, edges, saved values. Private to native/autograd.
#pragma once
#include <memory>

#include "../python/python.h"
#include "autograd.h"

namespace rl {

struct Derivative;

// What a node computes in backward.
enum class NodeKind : uint8_t {
  Operation,   // the formulas of an operation record
  Accumulate,  // adds to the grad of a leaf
  Function,    // backward of a Python autograd.Function
  CopySlices,  // an in-place write to a view, seen from the base
  AsStrided,   // a view, seen from its base after an in-place write
  Overwrite,   // an in-place write without a derivative: zeros
  Error,       // raises: a result that has no derivative
};

struct Edge {
  Node* node;      // owned; nullptr where no gradient is wanted
  uint32_t index;  // which output of that node's forward operation
};

// A value kept for backward. Lists and tensors are owned (int lists may lie in the node's arena).
struct Saved {
  Value value;
  uint32_t version;  // of the storage when saved
  bool is_output;    // a shallow copy of a result; gets its link to the node back when unpacked
  bool packed;       // went through saved_tensors_hooks
  bool freed;        // was a tensor, dropped after a backward that did not retain the graph
  bool linked;       // a tensor that had a grad_fn when saved
  uint32_t output_index;
};

// What is known of an output of the forward operation, that is, of an incoming gradient.
struct OutputInfo {
  uint8_t dtype, device;
  bool differentiable;
  bool is_tensor;
  int32_t ndim;
  union {
    int64_t inline_shape[kInlineDims];
    int64_t* heap_shape;
  };
  const int64_t* shape() const { return ndim > kInlineDims ? heap_shape : inline_shape; }
};

// Hooks and other rare state of a node.
struct NodeExtras {
  struct TensorHooks {
    uint32_t index;
    PyObject* hooks;  // dict: id -> callable(grad)
  };
  struct Retained {
    uint32_t index;
    Tensor* tensor;  // borrowed: the tensor takes itself out when it dies
  };
  std::vector<TensorHooks> tensor_hooks;
  std::vector<Retained> retained;
  PyObject* pre_hooks = nullptr;   // dict: id -> callable(grad_outputs)
  PyObject* post_hooks = nullptr;  // dict: id -> callable(grad_inputs, grad_outputs)
  PyObject* metadata = nullptr;    // dict
  PyObject* name = nullptr;        // of an Error node: the message
  // Of anomaly mode:
  int64_t nan_results = 0;  // NaNs in the results of a forward operation whose inputs had none
  std::vector<std::pair<uint32_t, uint64_t>> checksums;  // of saved values, by position
};

// A place in a storage: base and view of an in-place write.
struct Geometry {
  Dims shape, strides;
  int64_t offset;  // in elements, from the start of the storage
  uint8_t lazy;    // of Lazy
};

struct SlicesPayload {
  Geometry base, view;
  DType base_dtype, view_dtype;
  Node* function;  // owned; CopySlices: the node of the write itself
  Node* seen;      // CopySlices: borrowed, the node of the written view after the write, while somebody uses it
  int self_edge;   // CopySlices: the edge of `function` that is the written tensor, or -1
};

constexpr int kInlineEdges = 4;
constexpr int kInlineSaved = 6;
constexpr int kArena = 10;

struct Node {
  PyObject ob_base;
  NodeKind kind;
  bool released;   // saved values are gone
  bool weak_leaf;  // Accumulate: `leaf` is borrowed
  uint8_t arena_used;
  uint32_t output_count;  // outputs of the forward operation
  uint32_t edge_count;
  uint32_t saved_count;
  uint32_t slot;         // a hint: where a running backward keeps its state for this node
  uint32_t save_mask;    // which sources of the derivative are saved
  uint32_t instruction;  // of the forward line within `code`, in bytes
  uint64_t sequence;
  const Op* op;
  union {
    void* payload;
    Tensor* leaf;           // Accumulate
    SlicesPayload* slices;  // CopySlices, AsStrided
    Node* owner;            // Operation, Function: borrowed, the CopySlices that this write to a view belongs to
  };
  PyObject* code;  // owned: the code object that ran the forward operation
  NodeExtras* extras;
  Edge* edges;
  Saved* saved;
  OutputInfo* outputs;
  Edge inline_edges[kInlineEdges];
  Saved inline_saved[kInlineSaved];
  OutputInfo inline_output;
  int64_t arena[kArena];

  PyObject* object() { return reinterpret_cast<PyObject*>(this); }
};

// A node of autograd.Function: a Python class derives from it, its instance is the `ctx` of forward and backward.
struct FunctionNode {
  Node node;
  PyObject* dict;
  PyObject* weak_references;
  PyObject* to_save;  // what save_for_backward got, until forward is over
  PyObject* saved_for_forward;
  PyObject* non_differentiable;
  PyObject* dirty;
  PyObject* needs_input_grad;  // tuple
  PyObject* tensor_inputs;     // tuple of bools: which arguments of forward were tensors
  bool materialize_grads;
};

inline void retain(Node* n) { Py_INCREF(reinterpret_cast<PyObject*>(n)); }
inline void release(Node* n) { Py_DECREF(reinterpret_cast<PyObject*>(n)); }
using NodeRef = Ref<Node>;

// What a tensor stands for inside vmap (a batch, along the first dimension of `value`) or in forward mode (a value and
// its tangent). Its own shape is that of one example, and its own autograd state that of this level alone.
struct Wrapped {
  uint64_t level;
  bool dual;
  bool copied;  // `value` is no view of what this tensor is a view of: it may not be written
  TensorRef value;
  TensorRef tangent;
};

// Rare state of a tensor.
struct AutogradMeta {
  Wrapped* wrapped = nullptr;
  Node* accumulator = nullptr;  // borrowed: a leaf's AccumulateGrad, while somebody uses it
  PyObject* hooks = nullptr;    // a leaf's tensor hooks
  PyObject* post_accumulate = nullptr;
};
AutogradMeta* meta_of(Tensor* t);  // made when missing

extern PyTypeObject NodeType;
extern PyTypeObject AccumulateType;
extern PyTypeObject CopySlicesType;
extern PyTypeObject AsStridedType;
extern PyTypeObject ErrorNodeType;
extern PyTypeObject FunctionNodeType;
inline bool is_node(PyObject* o) { return PyObject_TypeCheck(o, &NodeType); }

// A fresh node with room for so many edges, saved values and outputs; counts are zero, no forward line.
NodeRef node_new(NodeKind kind, PyTypeObject* type, uint32_t edges, uint32_t saved, uint32_t outputs);
void node_init(Node* n, NodeKind kind, uint32_t edges, uint32_t saved, uint32_t outputs);
void node_dealloc(PyObject* object);
int node_traverse(PyObject* object, visitproc visit, void* arg);
int node_clear(PyObject* object);
void node_free_saved(Node* n);  // after backward: drops the saved tensors; using them again is an error
uint64_t next_sequence();

void set_shape(OutputInfo& o, int ndim, const int64_t* shape);
void set_output_info(Node* n, uint32_t index, const Tensor* t);
NodeExtras& extras_of(Node* n);

// The edge that a gradient for `t` travels along: owned node, or nullptr.
Edge gradient_edge(Tensor* t);
Node* accumulator_of(Tensor* leaf);  // new reference
// Makes `t` output `index` of `node` (takes a new reference); hooks that follow the tensor move along.
void set_grad_fn(Tensor* t, Node* node, uint32_t index);
// retain_grad of a tensor that has a grad_fn, in the list of that node.
void retain_grad_on(Node* node, uint32_t index, Tensor* t);
void retain_grad_off(Node* node, Tensor* t);

// Saving and reading back (record.cpp).
void save_tensor(Node* n, Saved& slot, Tensor* t, bool is_output, uint32_t output_index);
// Where a saved result, or old value, of this number stands in the graph: nullptr and an output number for nowhere.
Node* saved_link(Node* n, uint32_t& index);
// The saved value ready for use. A tensor is kept alive in `held` when it is not the saved object itself.
Value unpack_saved(Node* n, const Saved& slot, TensorRef& held);
[[noreturn]] void throw_released(Node* n);
extern PyObject* write_watcher;  // called with the tensor before each in-place write, or nullptr (saved_hooks.cpp)
extern thread_local int saved_hooks_depth __attribute__((tls_model("initial-exec")));  // saved_hooks.cpp
void pack_saved(Saved& slot, Tensor* t, bool is_output, uint32_t output_index);
// The same for what is saved already; RuntimeError when it has hooks, or was freed or written.
void pack_later(Node* n, Saved& slot, PyObject* pack, PyObject* unpack);
TensorRef unpack_packed(Node* n, const Saved& slot);

// The forward line (source_line.cpp).
void capture_line(Node* n);
PyObject* capture_stack();  // [(file, line, function)] outside the package, innermost first; nullptr on error
void remember_write(const Tensor* t, const Op& op);  // an in-place write is about to happen here
// "\n  it was overwritten by mul_ at file:12, in f", or "" when that is not known (any more).
std::string writer_text(const Tensor* t, uint32_t version);
// "  forward: file.py:12, in f", or "" when unknown; for error messages, starts with a newline.
std::string line_text(Node* n);
bool line_of(Node* n, std::string& file, int& line, std::string& function);
std::string node_name(Node* n);  // "MulBackward0"

// In-place writes and views (views.cpp).
NodeRef view_of_base(Node* copy_slices);  // the written view, as a node over its base after the write
// Refuses, before anything has changed, a view that an autograd.Function wrote and that cannot be followed.
void check_dirty_view(Tensor* self, const char* name);
// `self`, just written by `node`, continues from it. `self_edge`: the edge of `node` that stands for the old value.
void rebase_history(Tensor* self, Node* node, int self_edge);
// Before `root` gets `node` as its history: a node that this leads to and that saved `root`, or a view of it, would
// keep it and be kept by it. It gets a copy, which a backward refuses as well, since it is older than the write. What
// `root` was since the last write only younger nodes can have saved.
void loosen_saved(Tensor* root, Node* node);
void apply_slices(Node* n, Tensor* const* grads, Tensor** results, const bool* needed);

TensorRef detach_wrapped(Tensor* t);  // detached at every level (transform.cpp)

// Linear helpers on gradients, differentiable when grad mode is on (gradients.cpp). Each returns an owned tensor.
TensorRef sum_to_shape(Tensor* grad, int ndim, const int64_t* shape);
TensorRef add_gradients(Tensor* a, Tensor* b);
TensorRef clone_gradient(Tensor* grad, const Tensor* layout);
TensorRef convert_gradient(Tensor* grad, DType dtype);
TensorRef zeros_for(const OutputInfo& info);
// The gradient in the form the edge's target wants: its shape, dtype. Consumes and returns a reference.
TensorRef fit_gradient(TensorRef grad, const OutputInfo& info, Node* from, uint32_t edge);

// Evaluates an operation node (derivative.cpp): fills results[edge_count] with owned tensors or nullptr.
void apply_operation(Node* n, Tensor* const* grads, Tensor** results, const bool* needed);
void apply_function(Node* n, Tensor* const* grads, Tensor** results);  // function.cpp

// Backward of one node, whatever its kind.
void apply_node(Node* n, Tensor* const* grads, Tensor** results, const bool* needed);
// Results of an operation run with run_op (native/tensor/op.cpp).
void release_results(Value* results, int count);

// A Python reference that is dropped at the end of the scope.
class Py {
 public:
  Py() = default;
  explicit Py(PyObject* owned) : p_(owned) {}
  Py(Py&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Py& operator=(Py&& o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  Py(const Py&) = delete;
  Py& operator=(const Py&) = delete;
  ~Py() { Py_XDECREF(p_); }
  static Py share(PyObject* o) {
    Py_XINCREF(o);
    return Py(o);
  }
  PyObject* get() const { return p_; }
  PyObject* take() { return std::exchange(p_, nullptr); }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  PyObject* p_ = nullptr;
};
inline Tensor* as_tensor(PyObject* o) {  // borrowed; nullptr when it is none
  return PyObject_TypeCheck(o, &TensorType) ? reinterpret_cast<Tensor*>(o) : nullptr;
}
inline PyObject* tensor_or_none(Tensor* t) { return t ? t->object() : Py_None; }  // borrowed
// Throws PythonError when the call failed.
inline PyObject* need(PyObject* o) {
  if (RL_UNLIKELY(!o)) throw PythonError();
  return o;
}

}  // namespace rl
