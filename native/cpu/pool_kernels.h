// Pooling kernels: one call per plane, a channel of an image. Spatial dimensions are right-aligned: a two-dimensional
// plane has sizes [1, height, width].
#pragma once

#include <cstdint>

#include "cpu/isa.h"
#include "rushlight.h"

namespace rl {

struct PoolShape {
  int64_t in[3], out[3];
  int64_t in_stride[3], out_stride[3], index_stride[3];  // in elements
  int64_t kernel[3], stride[3], padding[3], dilation[3];
  bool count_include_pad;
  int64_t divisor;  // 0: the number of elements
  int64_t in_elements() const { return in[0] * in[1] * in[2]; }
};

// One function per dtype; null where the dtype is not supported.
struct PoolTable {
  // indices may be null.
  void (*max_pool[RL_DTYPE_COUNT])(const PoolShape& shape, const void* in, void* out, int64_t* indices);
  void (*adaptive_max_pool[RL_DTYPE_COUNT])(const PoolShape& shape, const void* in, void* out, int64_t* indices);
  void (*avg_pool[RL_DTYPE_COUNT])(const PoolShape& shape, const void* in, void* out);
  void (*adaptive_avg_pool[RL_DTYPE_COUNT])(const PoolShape& shape, const void* in, void* out);
  // Backward: in is grad_out, laid out as shape.out; out is grad_input. `plane` holds in_elements() compute values.
  // max_pool_backward gives the first index out of range through *bad, and whether there is one.
  bool (*max_pool_backward[RL_DTYPE_COUNT])(const PoolShape& shape, const void* in, const int64_t* indices, void* out,
                                            void* plane, int64_t* bad);
  void (*avg_pool_backward[RL_DTYPE_COUNT])(const PoolShape& shape, const void* in, void* out, void* plane);
  void (*adaptive_avg_pool_backward[RL_DTYPE_COUNT])(const PoolShape& shape, const void* in, void* out, void* plane);
};
RL_ISA_DECLARE(PoolTable, pool_table)

}  // namespace rl
