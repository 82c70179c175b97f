#pragma once

#include "cpu/isa.h"

namespace rl {

// One product of small matrices, with any strides; out overlaps neither a nor b. add is null or may be out itself.
struct SmallProduct {
  int64_t m, n, k;
  const void *a, *b, *add;
  void* out;
  int64_t a_row, a_column, b_row, b_column, add_row, add_column, out_row, out_column;
  double alpha_re, alpha_im, beta_re, beta_im;
};

// Most elements of b, with its columns filled up to a multiple of 8.
constexpr int64_t kSmallElements = 1024;

struct MatmulSmallTable {
  void (*float32)(const SmallProduct& p);
  void (*float64)(const SmallProduct& p);
  void (*complex64)(const SmallProduct& p);
  void (*complex128)(const SmallProduct& p);
};
RL_ISA_DECLARE(MatmulSmallTable, matmul_small_table)

}  // namespace rl
