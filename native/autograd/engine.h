// Running a graph backwards.
#pragma once
#include "node.h"

namespace rl {

struct BackwardOptions {
  bool keep_graph = false;
  bool create_graph = false;
  // With `inputs`: add to the .grad of these alone (backward(inputs=)), instead of returning their gradients (grad()).
  bool accumulate = true;
};

// Gradients of the roots flow back to the leaves. Without `inputs` every reachable leaf accumulates. The result has one
// entry for each input when `accumulate` is off: its gradient, or nothing when it was not reached. The caller keeps the
// nodes of roots and inputs alive, which keeps the graph alive while it runs; `grads` are taken.
std::vector<TensorRef> run_backward(const Edge* roots, TensorRef* grads, size_t count, const std::vector<Edge>* inputs,
                                    const BackwardOptions& options);

// The number of the innermost backward that runs in this thread, 0 outside; whether it will compute the gradients of a
// node, which is named by its address and number since it may be gone.
uint64_t current_run_id();
bool current_run_reaches(const Node* n, uint64_t sequence);
// Whether the innermost backward only computes some gradients (grad(), or backward with inputs).
bool current_run_is_selective();
// A dict that lives as long as the innermost backward (borrowed); nullptr outside one.
PyObject* notes_of_run();
// Calls a Python function without arguments at the end of the innermost backward; false outside one.
bool at_end_of_run(PyObject* callable);

// The gradient of a root when the caller gives none: ones. Throws unless the root is a real scalar.
TensorRef implicit_gradient(Tensor* root);
// Checks a gradient that the caller gives for `root`.
void check_root_gradient(Tensor* root, const Tensor* grad, size_t index);

// Hooks (hooks.cpp). Each may replace entries; they are owned by the array.
void run_tensor_hooks(PyObject* hooks, Tensor*& grad);
void run_pre_hooks(PyObject* hooks, Tensor** grads, uint32_t count);
void run_post_hooks(PyObject* hooks, Tensor** results, uint32_t result_count, Tensor* const* grads,
                    uint32_t grad_count);
void run_post_accumulate_hooks(PyObject* hooks, Tensor* leaf);

}  // namespace rl
