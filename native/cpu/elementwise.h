// Elementwise kernels inside the library: the tables behind rl_elementwise.
#pragma once

#include <cstdint>

#include "cpu/isa.h"

namespace rl {

// One contiguous loop over n elements. Bit k of `scalars`: input k is one element, not n; only sets of inputs announced
// by elementwise_scalar_sets. Returns 0, or kDivisionByZero when an integer was divided by zero (nothing is written
// then).
using ElementwiseKernel = int (*)(void* const* out, const void* const* in, int64_t n, unsigned scalars);
constexpr int kDivisionByZero = 1;

constexpr int kMaxElementwiseInputs = 8;
constexpr int kMaxElementwiseOutputs = 4;

// dtype of an operand inside the kernel, relative to the compute dtype.
enum class OperandKind : uint8_t { kValue, kBool, kReal };

struct ElementwiseInfo {
  const char* name;
  uint8_t n_in, n_out;
  OperandKind in[kMaxElementwiseInputs];
  OperandKind out[kMaxElementwiseOutputs];
};

// The tables are filled in when the library is loaded. A kernel is nullptr when the operation has none for the dtype.
extern const int elementwise_op_count;
extern const ElementwiseInfo elementwise_info[];
extern ElementwiseKernel elementwise_kernels[][RL_DTYPE_COUNT];
// Bit m is set when the kernel has a loop for the set m of single-element inputs.
extern uint8_t elementwise_scalar_sets[][RL_DTYPE_COUNT];
// The operation x^y, and the operation that computes x^exponent for the exponents of squares and roots, or -1.
extern const int elementwise_pow;
int elementwise_power(double exponent);

// Kernels of one generated file, in its order; elementwise_table.inc says which operation and dtype each is.
struct ElementwiseGroup {
  const ElementwiseKernel* kernels;
};

// Moving runs of elements. Tables by element size are indexed by its logarithm (1, 2, 4, 8, 16 bytes); strides are
// bytes.
struct MoveTable {
  void (*convert[RL_DTYPE_COUNT][RL_DTYPE_COUNT])(void* to, const void* from, int64_t n);  // [to][from]
  void (*gather[5])(void* to, const void* from, int64_t stride, int64_t n);
  void (*scatter[5])(void* to, int64_t stride, const void* from, int64_t n);
  void (*fill[5])(void* to, const void* element, int64_t n);
  // to[row * to_stride + column * size] = from[row * size + column * from_stride]
  void (*transpose[5])(void* to, int64_t to_stride, const void* from, int64_t from_stride, int64_t rows,
                       int64_t columns);
};
RL_ISA_DECLARE(MoveTable, move_table)

}  // namespace rl
