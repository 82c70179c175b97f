// QR factors of matrices that are not small: panels by LAPACK's recursive ?geqrt, whose reflectors are multiplied to
// I - V T V^H, and what follows a panel by products of matrices, a block of columns at a time on all threads (R.
// Schreiber and C. Van Loan, "A storage-efficient WY representation for products of Householder transformations",
// 1989). How a matrix is cut depends on its size alone, so the number of threads never changes a result.
#pragma once

#include "cpu/lapack_large.h"

namespace rl {

constexpr int kReflectors = 48;        // of a panel
constexpr int kLargeReflections = 96;  // smallest size that pays for the cutting

inline constinit Routine g_geqrt("sgeqrt_", "dgeqrt_", "cgeqrt_", "zgeqrt_");

// The reflectors of an m x n matrix: V, one panel after the other, each of rows [first, m) in column-major order with
// zeros above its diagonal of ones, and T.
template <class T>
class Reflections {
 public:
  Reflections(int m, int n) : m_(m), n_(n), k_(std::min(m, n)), v_(int64_t{m} * k_), t_(int64_t{kReflectors} * k_) {}
  bool ok() const { return v_ && t_; }
  static rl_status find() {
    RL_TRY(g_geqrt.find<T>());
    return find_large<T>();
  }

  // R in the upper triangle of a, the reflectors below it as ?geqrf leaves them. `factors` gets theirs, unless null.
  rl_status factor(T* a, int leading, T* factors) {
    const Scratch<T> space(int64_t{kReflectors} * kReflectors);
    if (!space) return RL_MEMORY_ERROR;
    for (int first = 0; first < k_; first += kReflectors) {
      const int width = std::min(kReflectors, k_ - first), rows = m_ - first, t_leading = kReflectors;
      T *const panel = a + int64_t{first} * leading + first, *const t = t_of(first), *const v = v_of(first);
      int status = 0;
      g_geqrt.call<T>(&rows, &width, &width, panel, &leading, t, &t_leading, space.get(), &status);
      for (int j = 0; j < width; ++j) {
        if (factors) factors[first + j] = t[j * kReflectors + j];
        std::fill(t + j * kReflectors + j + 1, t + j * kReflectors + width, T(0));
        T* const column = v + int64_t{j} * rows;
        std::fill_n(column, j, T(0));
        column[j] = T(1);
        std::copy(panel + int64_t{j} * leading + j + 1, panel + int64_t{j} * leading + rows, column + j + 1);
      }
      const int after = first + width;
      if (after == n_) continue;
      RL_TRY(parallel_for(n_ - after, block_columns(n_), [&](int64_t begin, int64_t end) {
        const Scratch<T> own(2 * kReflectors * (end - begin));
        if (!own) return RL_MEMORY_ERROR;
        apply(first, true, a + (after + begin) * leading + first, leading, static_cast<int>(end - begin), own.get());
        return RL_OK;
      }));
    }
    return RL_OK;
  }

  // x = Q^H x, of m rows
  rl_status multiply_adjoint(T* x, int leading, int columns) const {
    const Scratch<T> own(2 * kReflectors * int64_t{columns});
    if (!own) return RL_MEMORY_ERROR;
    for (int first = 0; first < k_; first += kReflectors) apply(first, true, x + first, leading, columns, own.get());
    return RL_OK;
  }

  // The first `columns` columns of Q
  rl_status expand(T* q, int leading, int columns) const {
    return parallel_for(columns, block_columns(columns), [&](int64_t begin, int64_t end) {
      const Scratch<T> own(2 * kReflectors * (end - begin));
      if (!own) return RL_MEMORY_ERROR;
      for (int64_t j = begin; j < end; ++j) {
        std::fill_n(q + j * leading, m_, T(0));
        q[j * leading + j] = T(1);
      }
      for (int first = (k_ - 1) / kReflectors * kReflectors; first >= 0; first -= kReflectors) {
        // Columns before `first` are still zero in these rows.
        const int64_t from = std::max<int64_t>(begin, first);
        if (from < end)
          apply(first, false, q + from * leading + first, leading, static_cast<int>(end - from), own.get());
      }
      return RL_OK;
    });
  }

 private:
  T* v_of(int first) const {  // panels of m, m - kReflectors, ... rows
    const int64_t before = first / kReflectors;
    return v_.get() + kReflectors * (before * m_ - kReflectors * (before * (before - 1) / 2));
  }
  T* t_of(int first) const { return t_.get() + int64_t{kReflectors} * first; }

  // x -= V T V^H x or V T^H V^H x, rows from `first` on
  void apply(int first, bool adjoint, T* x, int leading, int columns, T* space) const {
    const int rows = m_ - first, width = std::min(kReflectors, k_ - first), t_leading = kReflectors;
    const T one(1), zero(0), minus(-1);
    const T *const v = v_of(first), *const t = t_of(first);
    T *const w = space, *const tw = space + int64_t{kReflectors} * columns;
    const char* const turned = is_complex_v<T> ? "C" : "T";
    g_large_gemm.call<T>(turned, "N", &width, &columns, &rows, &one, v, &rows, x, &leading, &zero, w, &t_leading);
    g_large_gemm.call<T>(adjoint ? turned : "N", "N", &width, &columns, &width, &one, t, &t_leading, w, &t_leading,
                         &zero, tw, &t_leading);
    g_large_gemm.call<T>("N", "N", &rows, &columns, &width, &minus, v, &rows, tw, &t_leading, &one, x, &leading);
  }

  int m_, n_, k_;
  Scratch<T> v_, t_;
};

}  // namespace rl
