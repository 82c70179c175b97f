// Loops over rows of elements that profit from wide vectors.
#pragma once

#include "cpu/isa.h"

namespace rl {

struct RowTable {
  // x[i] += y[i] for the dtype: integers wrap, bool is or, 16-bit floats are rounded after each sum. No overlap.
  void (*add[RL_DTYPE_COUNT])(void* x, const void* y, int64_t n);
  // out[j] = sum over i, in order, of the j-th element of the row at base + offsets[i] (bytes).
  void (*sum_float)(const char* base, const int64_t* offsets, int64_t n, int64_t size, float* out);
  void (*sum_double)(const char* base, const int64_t* offsets, int64_t n, int64_t size, double* out);
};
RL_ISA_DECLARE(RowTable, row_table)

}  // namespace rl
