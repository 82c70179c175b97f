// How an elementwise operation walks through its operands: one iteration space, dimensions sorted and merged.
#pragma once

#include "core/dtype.h"
#include "core/error.h"
#include "cpu/elementwise.h"

namespace rl {

constexpr int kMaxOperands = kMaxElementwiseInputs + kMaxElementwiseOutputs;

// One operand over the iteration space. Dimension 0 is the innermost; strides are bytes, 0 where it is broadcast.
struct Operand {
  char* data;
  uint8_t dtype, kernel_dtype;  // in memory, and where the kernel reads or writes it
  uint8_t size_log2;            // of an element in memory
  int64_t size, kernel_size;
  int64_t strides[RL_MAX_DIMS];
};

struct Plan {
  int n_out, n_in, ndim;
  int64_t total;
  int64_t sizes[RL_MAX_DIMS];
  Operand operands[kMaxOperands];  // outputs, then inputs

  int n_operands() const { return n_out + n_in; }
};

// Fills in the space and the operands' strides. The kernel dtypes are the caller's to set beforehand.
rl_status make_plan(const char* name, Plan& plan, int n_out, rl_tensor* const* out, int n_in,
                    const rl_tensor* const* in);

}  // namespace rl
