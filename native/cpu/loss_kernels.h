// Inner loops of the losses, compiled once per instruction set. Arrays are of float or double (T).
#pragma once

#include "cpu/isa.h"
#include "rushlight/loss.h"

namespace rl {

// Arrays of n elements; weight and pos_weight may be null.
struct LossOperands {
  const void *in, *target, *weight, *pos_weight;
};

struct LossTerms {
  double (*sum)(const LossOperands& operands, int64_t n, double p);
  void (*map)(const LossOperands& operands, void* out, int64_t n, double p);
  // out = scale * derivative, times grad (of T) where it is not null
  void (*gradient)(const LossOperands& operands, const void* grad, void* out, int64_t n, double p, double scale);
};

struct LossLoops {
  LossTerms terms[RL_LOSS_KIND_COUNT];
  // out = exp(x - log_sum) * scale
  void (*probabilities)(const void* x, void* out, int64_t n, double log_sum, double scale);
  // The same down columns: rows `stride` apart, an element of log_sum and scale per column.
  void (*probability_columns)(const void* x, void* out, int64_t rows, int64_t columns, int64_t stride,
                              const double* log_sum, const double* scale);
};

struct LossTable {
  LossLoops single, wide;
};

RL_ISA_DECLARE(LossTable, loss_table)

}  // namespace rl
