#pragma once

#include "core/dtype.h"

namespace rl {

// out = alpha * a b + beta * add, summed in float32 and rounded once; add is null or may be out itself. Any strides.
struct Bf16Product {
  int64_t m, n, k;
  const bfloat16 *a, *b, *add;
  bfloat16* out;
  int64_t a_row, a_column, b_row, b_column, add_row, add_column, out_row, out_column;
  float alpha, beta;
};

// Whether this machine multiplies bfloat16 numbers itself (AMX or AVX-512 BF16).
bool bf16_products();
// out overlaps neither a nor b.
rl_status bf16_product(const Bf16Product& p);

}  // namespace rl
