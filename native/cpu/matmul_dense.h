#pragma once

#include "cpu/isa.h"

namespace rl {

// out = alpha * a b + beta * add; add is null or may be out itself. Any strides, but out overlaps neither a nor b.
template <class T>
struct DenseProduct {
  int64_t m, n, k;
  const T *a, *b, *add;
  T* out;
  int64_t a_row, a_column, b_row, b_column, add_row, add_column, out_row, out_column;
  T alpha, beta;
};

// Products on one thread. Every element of out is the sum of its terms in order, in parts whose lengths follow from k
// alone: where a product is cut into blocks of out changes no bits.
struct MatmulDenseTable {
  // Null where this instruction set has no kernel. block_bytes: how much of b to keep packed in the second-level cache.
  rl_status (*float32)(const DenseProduct<float>& p, int64_t block_bytes);
  rl_status (*float64)(const DenseProduct<double>& p, int64_t block_bytes);
  int64_t rows, row_bytes;  // of the kernel's tile
};
RL_ISA_DECLARE(MatmulDenseTable, matmul_dense_table)

// On all threads, where there is a kernel.
bool dense_products();
rl_status dense_product(const DenseProduct<float>& p);
rl_status dense_product(const DenseProduct<double>& p);

}  // namespace rl
