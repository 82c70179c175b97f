// Anomaly mode: what a debugging run checks besides, and remembers for its errors. Everything here is behind
// `anomaly.enabled`, which is off in ordinary runs.
#pragma once
#include <unordered_map>

#include "node.h"

namespace rl {

struct AnomalyMode {
  bool enabled = false;
  bool check_nan = true;
};
extern AnomalyMode anomaly;

// What was seen of the gradients that one node was given and gave, in one backward.
struct GradientTrace {
  std::vector<Node*> senders;  // the nodes its gradient came from
  bool made_zero = false, made_infinite = false;
};
using GradientTraces = std::unordered_map<Node*, GradientTrace>;

// While a node is being evaluated: nodes recorded meanwhile (create_graph) know which one induced them.
class Evaluating {
 public:
  explicit Evaluating(Node* n);
  ~Evaluating();
  Evaluating(const Evaluating&) = delete;
  Evaluating& operator=(const Evaluating&) = delete;

 private:
  Node* before_;
};

void anomaly_recorded(Node* n);  // a node was made: keeps the stack of Python calls
void anomaly_results(Node* n, const Op& op, const Value* args, const Value* results, bool inplace);
// Checksums of saved memory: a write that no version counter saw is found when the value is used.
void anomaly_saved(Node* n, uint32_t slot, Tensor* const* tensors, uint32_t count);
void anomaly_verify(Node* n, uint32_t slot, Tensor* const* tensors, uint32_t count);
// Throws when a gradient that a node computed holds a NaN.
void anomaly_check(GradientTraces& traces, Node* n, Tensor* const* grads, uint32_t grad_count, Tensor* const* results,
                   uint32_t result_count);
// A node failed: the warning with the stack of its forward call. Keeps a Python exception that is set.
void anomaly_warn(Node* n);

}  // namespace rl
