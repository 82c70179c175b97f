// Inner loops of softmax, compiled once per instruction set. Arrays are of float or double.
#pragma once

#include "cpu/isa.h"

namespace rl {

struct SoftmaxLoops {
  // `count` rows of n elements, one after another.
  void (*rows)(const void* x, void* y, int64_t count, int64_t n, bool log);
  // At most kSoftmaxStrip neighbouring columns of n rows, `stride` apart.
  void (*columns)(const void* x, void* y, int64_t columns, int64_t n, int64_t stride, bool log);
  void (*rows_backward)(const void* grad, const void* y, void* grad_in, int64_t count, int64_t n, bool log);
  void (*columns_backward)(const void* grad, const void* y, void* grad_in, int64_t columns, int64_t n, int64_t stride,
                           bool log);
};

constexpr int64_t kSoftmaxStrip = 256;

struct SoftmaxTable {
  SoftmaxLoops single, wide;
};

RL_ISA_DECLARE(SoftmaxTable, softmax_table)

}  // namespace rl
