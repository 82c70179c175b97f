// Distances of one row to a block of rows: one sum a lane, so that the terms add in order.
#include "cpu/distance_kernels.h"

#include <cmath>

namespace rl {
namespace {

constexpr int64_t kBlock = kDistanceBlock;

template <class T, class Term>
void sum_terms(const T* x, int64_t step, const T* b, int64_t n, T* sum, Term term) {
  for (int64_t j = 0; j < kBlock; ++j) sum[j] = T(0);
  for (int64_t k = 0; k < n; ++k) {
    const T value = x[k * step];
    const T* const row = b + k * kBlock;
    for (int64_t j = 0; j < kBlock; ++j) term(sum[j], std::abs(value - row[j]));
  }
}

template <class T>
void distances(const T* x, int64_t step, const T* b, int64_t n, double p, T* out) {
  alignas(64) T sum[kBlock];
  if (p == 1) {
    sum_terms(x, step, b, n, sum, [](T& s, T d) { s += d; });
  } else if (p == 2) {
    sum_terms(x, step, b, n, sum, [](T& s, T d) { s += d * d; });
    for (int64_t j = 0; j < kBlock; ++j) sum[j] = std::sqrt(sum[j]);
  } else if (p == 0) {
    sum_terms(x, step, b, n, sum, [](T& s, T d) { s += d == T(0) ? T(0) : T(1); });
  } else if (std::isinf(p)) {
    sum_terms(x, step, b, n, sum, [](T& s, T d) { s = d > s || d != d ? d : s; });
  } else {
    const T power = static_cast<T>(p), root = T(1) / power;
    sum_terms(x, step, b, n, sum, [power](T& s, T d) { s += std::pow(d, power); });
    for (int64_t j = 0; j < kBlock; ++j) sum[j] = std::pow(sum[j], root);
  }
  for (int64_t j = 0; j < kBlock; ++j) out[j] = sum[j];
}

constexpr DistanceTable table = {distances<float>, distances<double>};

}  // namespace

const DistanceTable& RL_ISA_SYMBOL(distance_table)() { return table; }

}  // namespace rl
