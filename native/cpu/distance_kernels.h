#pragma once

#include "cpu/isa.h"

namespace rl {

constexpr int64_t kDistanceBlock = 32;  // rows of b at a time

// out[j] for j < kDistanceBlock: the distance of x (n numbers, `step` apart) to column j of b, whose rows are
// kDistanceBlock long.
struct DistanceTable {
  void (*float32)(const float* x, int64_t step, const float* b, int64_t n, double p, float* out);
  void (*float64)(const double* x, int64_t step, const double* b, int64_t n, double p, double* out);
};
RL_ISA_DECLARE(DistanceTable, distance_table)

}  // namespace rl
