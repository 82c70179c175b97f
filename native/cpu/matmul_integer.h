#pragma once

#include "cpu/isa.h"

namespace rl {

struct MatmulIntegerTable {
  // line[j] = sum over l of a[l * a_stride] * b[l * b_row + j], wrapping; n columns, k terms. By dtype, uint8 to int64.
  void (*sum[RL_INT64 + 1])(const void* a, int64_t a_stride, const void* b, int64_t b_row, void* line, int64_t n,
                            int64_t k);
};
RL_ISA_DECLARE(MatmulIntegerTable, matmul_integer_table)

}  // namespace rl
