// Factors of large matrices on all threads: LAPACK's routines on panels, and products of blocks of columns between
// them. How a matrix is cut depends on its size alone, so the number of threads never changes a result.
#pragma once

#include "cpu/lapack.h"

namespace rl {

extern Routine g_large_getrf, g_large_laswp, g_large_trsm, g_large_gemm, g_large_trmm, g_large_trtri;

template <class T>
static inline rl_status find_large() {
  for (Routine* const routine :
       {&g_large_getrf, &g_large_laswp, &g_large_trsm, &g_large_gemm, &g_large_trmm, &g_large_trtri})
    RL_TRY(routine->find<T>());
  return RL_OK;
}

constexpr int kLargeMatrix = 160;  // smallest of a matrix's sizes that pays for the cutting

// Columns of a block: four blocks, but not so narrow that products lose to their packing.
static inline int64_t block_columns(int64_t n) { return std::max<int64_t>(48, ((n + 3) / 4 + 15) & ~int64_t{15}); }

// Exchanges rows as pivots first + 1 .. last say, in columns [0, n).
template <class T>
static inline void exchange_rows(T* a, int n, int leading, int first, int last, const int* pivots) {
  const int from = first + 1, step = 1;
  if (n > 0 && last > first) g_large_laswp.call<T>(&n, a, &leading, &from, &last, pivots, &step);
}

// X = A^-1 X for the lower triangle with ones on its diagonal, or the upper one: products between triangles that are
// small enough for what a triangular solve is slower at.
template <class T>
void solve_by_halves(bool lower, int n, int width, const T* a, int leading, T* x, int x_leading) {
  constexpr int kTriangle = 32;
  const T one(1), minus(-1);
  if (n <= kTriangle) {
    if (n > 0)
      g_large_trsm.call<T>("L", lower ? "L" : "U", "N", lower ? "U" : "N", &n, &width, &one, a, &leading, x,
                           &x_leading);
    return;
  }
  const int top = (n / 2 + 15) & ~15, bottom = n - top;
  const T* const corner = a + int64_t{top} * leading + top;
  if (lower) {
    solve_by_halves(lower, top, width, a, leading, x, x_leading);
    g_large_gemm.call<T>("N", "N", &bottom, &width, &top, &minus, a + top, &leading, x, &x_leading, &one, x + top,
                         &x_leading);
    solve_by_halves(lower, bottom, width, corner, leading, x + top, x_leading);
  } else {
    solve_by_halves(lower, bottom, width, corner, leading, x + top, x_leading);
    g_large_gemm.call<T>("N", "N", &top, &width, &bottom, &minus, a + int64_t{top} * leading, &leading, x + top,
                         &x_leading, &one, x, &x_leading);
    solve_by_halves(lower, top, width, a, leading, x, x_leading);
  }
}

// The inverse of an upper triangle, in place, by halves: those of its diagonal blocks, and -A^-1 B D^-1 between them.
// Returns LAPACK's info.
template <class T>
int invert_upper_by_halves(int n, T* a, int leading) {
  int status = 0;
  if (n <= 32) {
    if (n > 0) g_large_trtri.call<T>("U", "N", &n, a, &leading, &status);
    return status;
  }
  const int top = (n / 2 + 15) & ~15, bottom = n - top;
  T *const between = a + int64_t{top} * leading, *const corner = between + top;
  status = invert_upper_by_halves(top, a, leading);
  if (status != 0) return status;
  status = invert_upper_by_halves(bottom, corner, leading);
  if (status != 0) return status + top;
  const T one(1), minus(-1);
  parallel_for(bottom, block_columns(bottom), [&](int64_t begin, int64_t end) {
    const int width = static_cast<int>(end - begin);
    g_large_trmm.call<T>("L", "U", "N", "N", &top, &width, &minus, a, &leading, between + begin * leading, &leading);
  });
  parallel_for(top, block_columns(top), [&](int64_t begin, int64_t end) {
    const int height = static_cast<int>(end - begin);
    g_large_trmm.call<T>("R", "U", "N", "N", &height, &bottom, &one, corner, &leading, between + begin, &leading);
  });
  return 0;
}

// A = P L U by halves: the left columns, their part in the right ones, what remains of those (S. Toledo, "Locality of
// reference in LU decomposition with partial pivoting", 1997). Returns LAPACK's info.
template <class T>
int factor_by_halves(int m, int n, T* a, int leading, int* pivots) {
  constexpr int kPanel = 64;
  const int k = std::min(m, n);
  if (k <= kPanel) {
    int status = 0;
    if (k > 0) g_large_getrf.call<T>(&m, &n, a, &leading, pivots, &status);
    return status;
  }
  const int left = (k / 2 + 15) & ~15, right = n - left, below = m - left;
  const int status = factor_by_halves(m, left, a, leading, pivots);
  T* const others = a + int64_t{left} * leading;
  const T one(1), minus(-1);
  parallel_for(right, block_columns(right), [&](int64_t begin, int64_t end) {
    const int width = static_cast<int>(end - begin);
    T* const block = others + begin * leading;
    exchange_rows(block, width, leading, 0, left, pivots);
    solve_by_halves(true, left, width, a, leading, block, leading);
    if (below > 0)
      g_large_gemm.call<T>("N", "N", &below, &width, &left, &minus, a + left, &leading, block, &leading, &one,
                           block + left, &leading);
  });
  const int rest = factor_by_halves(below, right, others + left, leading, pivots + left);
  const int more = std::min(below, right);
  // Exchanges count from the first row of what they are of.
  parallel_for(left, block_columns(left), [&](int64_t begin, int64_t end) {
    exchange_rows(a + begin * leading + left, static_cast<int>(end - begin), leading, 0, more, pivots + left);
  });
  for (int i = 0; i < more; ++i) pivots[left + i] += left;
  return status != 0 || rest == 0 ? status : rest + left;
}

// The inverse from such factors of an n x n matrix, by blocks of columns: those of L^-1, which are zero above the
// block, then of U^-1 L^-1, which go where the exchanges of rows put them.
template <class T>
rl_status inverse_of_factors(int n, const T* lu, int leading, const int* pivots, T* out, const MatrixShape& to) {
  const Scratch<int64_t> places(n);
  if (!places) return RL_MEMORY_ERROR;
  for (int64_t i = 0; i < n; ++i) places[i] = i;
  for (int64_t i = 0; i < n; ++i) std::swap(places[i], places[pivots[i] - 1]);
  return parallel_for(n, block_columns(n), [&](int64_t begin, int64_t end) -> rl_status {
    const int width = static_cast<int>(end - begin), rows = static_cast<int>(n - begin);
    const Scratch<T> block(int64_t{n} * width);
    if (!block) return RL_MEMORY_ERROR;
    std::fill_n(block.get(), int64_t{n} * width, T(0));
    for (int64_t j = 0; j < width; ++j) block[j * n + begin + j] = T(1);
    solve_by_halves(true, rows, width, lu + begin * leading + begin, leading, block.get() + begin, n);
    solve_by_halves(false, n, width, lu, leading, block.get(), n);
    for (int64_t i0 = 0; i0 < n; i0 += 64) {  // so that lines of either layout stay in the cache
      for (int64_t j = 0; j < width; ++j) {
        T* const column = out + places[begin + j] * to.column_stride;
        for (int64_t i = i0; i < std::min<int64_t>(i0 + 64, n); ++i) column[i * to.row_stride] = block[j * n + i];
      }
    }
    return RL_OK;
  });
}

}  // namespace rl
