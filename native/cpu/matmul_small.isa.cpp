// Products of matrices so small that a BLAS spends its time on preparations.
//
// b is copied first. Sums add in order and nothing is fused: the bits are those of PyTorch's (MKL's) products of this
// size.
#include "cpu/matmul_small.h"

#include "core/dtype.h"

namespace rl {
namespace {

// 32 bytes of T.
template <class T>
struct Vector {
  static constexpr int64_t kLanes = 32 / sizeof(T);
  typedef T Type __attribute__((vector_size(32)));
};

// Rows [i, i + kRows) of the product with columns [j, j + lanes), which are b's at `columns`, one row of b each `step`.
template <class T, int kRows>
void real_tile(const SmallProduct& p, const T* columns, int64_t step, int64_t i, int64_t j) {
  using Lanes = typename Vector<T>::Type;
  Lanes sum[kRows] = {};
  const T* const a = static_cast<const T*>(p.a) + i * p.a_row;
  for (int64_t l = 0; l < p.k; ++l) {
    Lanes b;
    __builtin_memcpy(&b, columns + l * step, sizeof b);
    for (int r = 0; r < kRows; ++r) sum[r] += b * a[r * p.a_row + l * p.a_column];
  }
  const int64_t width = p.n - j < Vector<T>::kLanes ? p.n - j : Vector<T>::kLanes;
  const T alpha = static_cast<T>(p.alpha_re), beta = static_cast<T>(p.beta_re);
  for (int r = 0; r < kRows; ++r) {
    T* const out = static_cast<T*>(p.out) + (i + r) * p.out_row + j * p.out_column;
    if (!p.add && alpha == 1) {
      if (width == Vector<T>::kLanes && p.out_column == 1) {
        __builtin_memcpy(out, &sum[r], sizeof sum[r]);
      } else {
        for (int64_t c = 0; c < width; ++c) out[c * p.out_column] = sum[r][c];
      }
      continue;
    }
    const T* const add = p.add ? static_cast<const T*>(p.add) + (i + r) * p.add_row + j * p.add_column : nullptr;
    for (int64_t c = 0; c < width; ++c) {
      T value = alpha * sum[r][c];
      if (add) value = beta * add[c * p.add_column] + value;
      out[c * p.out_column] = value;
    }
  }
}

template <class T>
void real_product(const SmallProduct& p) {
  constexpr int64_t kLanes = Vector<T>::kLanes;
  alignas(64) T b[kSmallElements];
  const int64_t step = (p.n + kLanes - 1) / kLanes * kLanes;
  const T* const from = static_cast<const T*>(p.b);
  for (int64_t l = 0; l < p.k; ++l) {
    T* const row = b + l * step;
    if (p.b_column == 1) {
      for (int64_t j = 0; j < p.n; ++j) row[j] = from[l * p.b_row + j];
    } else {
      for (int64_t j = 0; j < p.n; ++j) row[j] = from[l * p.b_row + j * p.b_column];
    }
    for (int64_t j = p.n; j < step; ++j) row[j] = 0;
  }
  for (int64_t j = 0; j < p.n; j += kLanes) {
    int64_t i = 0;
    for (; i + 4 <= p.m; i += 4) real_tile<T, 4>(p, b + j, step, i, j);
    for (; i < p.m; ++i) real_tile<T, 1>(p, b + j, step, i, j);
  }
}

template <class T, int kRows>
void complex_tile(const SmallProduct& p, const T* re, const T* im, int64_t step, int64_t i, int64_t j) {
  typedef T Lanes __attribute__((vector_size(8 * sizeof(T))));
  Lanes sum_re[kRows] = {}, sum_im[kRows] = {};
  const complex<T>* const a = static_cast<const complex<T>*>(p.a) + i * p.a_row;
  for (int64_t l = 0; l < p.k; ++l) {
    Lanes b_re, b_im;
    __builtin_memcpy(&b_re, re + l * step, sizeof b_re);
    __builtin_memcpy(&b_im, im + l * step, sizeof b_im);
    for (int r = 0; r < kRows; ++r) {
      const complex<T> x = a[r * p.a_row + l * p.a_column];
      sum_re[r] += b_re * x.re - b_im * x.im;
      sum_im[r] += b_im * x.re + b_re * x.im;
    }
  }
  const int64_t width = p.n - j < 8 ? p.n - j : 8;
  const complex<T> alpha(static_cast<T>(p.alpha_re), static_cast<T>(p.alpha_im));
  const complex<T> beta(static_cast<T>(p.beta_re), static_cast<T>(p.beta_im));
  const bool plain = p.alpha_re == 1 && p.alpha_im == 0;
  for (int r = 0; r < kRows; ++r) {
    complex<T>* const out = static_cast<complex<T>*>(p.out) + (i + r) * p.out_row + j * p.out_column;
    const complex<T>* const add =
        p.add ? static_cast<const complex<T>*>(p.add) + (i + r) * p.add_row + j * p.add_column : nullptr;
    for (int64_t c = 0; c < width; ++c) {
      complex<T> value(sum_re[r][c], sum_im[r][c]);
      if (!plain) value = alpha * value;
      if (add) value = beta * add[c * p.add_column] + value;
      out[c * p.out_column] = value;
    }
  }
}

template <class T>
void complex_product(const SmallProduct& p) {
  alignas(64) T re[kSmallElements];
  alignas(64) T im[kSmallElements];
  const int64_t step = (p.n + 7) & ~int64_t{7};
  const complex<T>* const from = static_cast<const complex<T>*>(p.b);
  for (int64_t l = 0; l < p.k; ++l) {
    for (int64_t j = 0; j < step; ++j) {
      const complex<T> x = j < p.n ? from[l * p.b_row + j * p.b_column] : complex<T>(0);
      re[l * step + j] = x.re;
      im[l * step + j] = x.im;
    }
  }
  for (int64_t j = 0; j < p.n; j += 8) {
    int64_t i = 0;
    for (; i + 2 <= p.m; i += 2) complex_tile<T, 2>(p, re + j, im + j, step, i, j);
    for (; i < p.m; ++i) complex_tile<T, 1>(p, re + j, im + j, step, i, j);
  }
}

constexpr MatmulSmallTable table = {real_product<float>, real_product<double>, complex_product<float>,
                                    complex_product<double>};

}  // namespace

const MatmulSmallTable& RL_ISA_SYMBOL(matmul_small_table)() { return table; }

}  // namespace rl
