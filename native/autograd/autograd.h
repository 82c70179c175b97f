// What the layers below and beside the tape may call. The rest of the tape is private to native/autograd.
#pragma once
#include "../tensor/op.h"

namespace rl {

struct Node;

// The output index of a view made under no_grad, which requires grad while its base does, but is nowhere in the graph.
constexpr uint32_t kThroughBase = UINT32_MAX;

// The link of a tensor to the graph, brought up to date first for views whose base was written in place.
Node* grad_fn_of(Tensor* t);   // borrowed; nullptr for leaves
bool refresh_view(Tensor* t);  // slow path of needs_grad: true when t now requires grad
inline bool needs_grad(Tensor* t) {
  if (RL_UNLIKELY(t->base != nullptr && t->view_version != t->storage->version)) return refresh_view(t);
  return t->requires_grad && (RL_LIKELY(t->output_index != kThroughBase) || t->grad_fn || t->base->requires_grad);
}

// Bit i is set when argument i (or any tensor of a list argument) is differentiable for `op` and requires grad.
uint32_t arguments_needing_grad(const Op& op, const Value* args);

// Recording, around the implementation: the node is made before it runs (so that an in-place write finds the old inputs
// saved), and tied to the results after. `begin` returns an owned node.
Node* record_begin(const Op& op, const Value* args, uint32_t mask, bool inplace);
void record_end(Node* node, const Op& op, const Value* args, Value* results, bool inplace);
void node_release(Node* node);

// Refuses in-place writes that autograd forbids (leaves that require grad, views of such, multi-output views ...).
// Called before an in-place operation when grad mode is on; `will_record` tells that a differentiable input requires
// grad.
void check_inplace(Tensor* self, const Op& op, bool will_record);

// After an in-place operation without a derivative (fill_, normal_, eq_ ...) in grad mode: the gradient of the old
// value is zero.
void record_overwrite(Tensor* self, const Op& op);

// In grad mode, after a change of `self` that no derivative describes: a backward that comes here raises the message.
void record_refusal(Tensor* self, Tensor* source, const char* message);

// `self` goes on from where `from` is in the graph: it has just become the same view of the same memory (transpose_
// ...).
void adopt_history(Tensor* self, Tensor* from);

// Called for each result of a view operation, recording or not: sets creation and view_version.
void mark_view(Tensor* view, bool multi_output);
// Makes a tensor of a view whose base nobody else sees.
void unmark_view(Tensor* view);

// Wrapped tensors (vmap, forward mode; transform.cpp). An operation that has one among its arguments, or draws random
// numbers inside vmap, runs through run_transformed in place of its implementation.
bool wants_transform(const Op& op, const Value* args);
// Whether a view was made before the tensor it is of became a dual number: it stands for part of that one by now.
bool follows(const Tensor* view);
void run_transformed(Call& call);
// Asks thread_state.source for the results: selective checkpointing keeps some and brings them back.
void run_from_source(Call& call);
void copy_wrapped(Tensor* to, const Tensor* from);  // `to` stands for the same as `from`
uint8_t lazy_bits(const Tensor* t);                 // of Lazy; a wrapped tensor's are those of what it stands for
// The tensor itself, or the value that a wrapped tensor of forward mode stands for; vmap's have no single value: `what`
// refuses.
Tensor* plain_value(Tensor* t, const char* what);

// Tensor object life cycle: the autograd state of a tensor.
void autograd_clear(Tensor* t);  // drops grad_fn, grad, base, meta
int autograd_traverse(Tensor* t, visitproc visit, void* arg);

// Python surface of the tape, added to the module and the Tensor type by native/python.
int autograd_module_init(PyObject* module);    // Node types, Engine functions, grad mode switches
extern PyGetSetDef autograd_tensor_getset[];   // grad, grad_fn, requires_grad, is_leaf, output_nr, retains_grad, _base,
                                               // ...; ends with {}
extern PyMethodDef autograd_tensor_methods[];  // backward, register_hook, retain_grad, requires_grad_, detach, detach_,
                                               // ...; ends with {}

}  // namespace rl
