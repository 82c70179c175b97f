// rl_distances.
#include <algorithm>
#include <cmath>

#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "cpu/distance_kernels.h"
#include "rushlight/distance.h"

namespace rl {
namespace {

template <class T>
T* matrix_at(const rl_tensor* t, int64_t index) {
  int64_t offset = 0;
  for (int d = t->ndim - 3; d >= 0; --d) {
    offset += index % t->shape[d] * t->strides[d];
    index /= t->shape[d];
  }
  return static_cast<T*>(t->data) + offset;
}

// The p-norm of n differences whose powers' sum is out of range: taken from differences over the greatest.
template <class T>
T scaled_distance(const T* x, int64_t x_step, const T* y, int64_t y_step, int64_t n, double p) {
  T greatest = T(0);
  for (int64_t k = 0; k < n; ++k) {
    const T d = std::abs(x[k * x_step] - y[k * y_step]);
    if (!std::isfinite(d)) return d;
    greatest = std::max(greatest, d);
  }
  T sum = T(0);
  for (int64_t k = 0; k < n; ++k)
    sum += std::pow(std::abs(x[k * x_step] - y[k * y_step]) / greatest, static_cast<T>(p));
  return greatest * std::pow(sum, T(1) / static_cast<T>(p));
}

template <class T>
rl_status distances(const rl_tensor* a, const rl_tensor* b, double p, rl_tensor* out) {
  const int nd = out->ndim;
  const int64_t rows = out->shape[nd - 2], columns = out->shape[nd - 1], n = a->shape[nd - 1];
  const int64_t a_row = a->strides[nd - 2], a_step = a->strides[nd - 1];
  const int64_t b_row = b->strides[nd - 2], b_step = b->strides[nd - 1];
  const int64_t out_row = out->strides[nd - 2], out_step = out->strides[nd - 1];
  int64_t batches = 1;
  for (int d = 0; d < nd - 2; ++d) batches *= out->shape[d];
  const int64_t blocks = (columns + kDistanceBlock - 1) / kDistanceBlock;
  const auto run = [] {
    if constexpr (std::is_same_v<T, float>)
      return distance_table().float32;
    else
      return distance_table().float64;
  }();
  const int64_t work = rows * std::max<int64_t>(1, n) * kDistanceBlock * (p == 0 || p == 1 || p == 2 ? 1 : 16);
  return parallel_for(batches * blocks, std::max<int64_t>(1, 400'000 / (work + 1)),
                      [&](int64_t begin, int64_t end) -> rl_status {
                        const Scratch<T> block(n * kDistanceBlock);
                        if (!block) return RL_MEMORY_ERROR;
                        T line[kDistanceBlock];
                        for (int64_t unit = begin; unit < end; ++unit) {
                          const int64_t first = unit % blocks * kDistanceBlock;
                          const int64_t count = std::min(kDistanceBlock, columns - first);
                          const T* const x = matrix_at<T>(a, unit / blocks);
                          const T* const y = matrix_at<T>(b, unit / blocks) + first * b_row;
                          T* const to = matrix_at<T>(out, unit / blocks) + first * out_step;
                          for (int64_t k = 0; k < n; ++k) {
                            for (int64_t j = 0; j < kDistanceBlock; ++j)
                              block[k * kDistanceBlock + j] = j < count ? y[j * b_row + k * b_step] : T(0);
                          }
                          for (int64_t i = 0; i < rows; ++i) {
                            run(x + i * a_row, a_step, block.get(), n, p, line);
                            for (int64_t j = 0; j < count; ++j) {
                              if (std::isinf(line[j]))
                                line[j] = scaled_distance(x + i * a_row, a_step, block.get() + j, kDistanceBlock, n, p);
                            }
                            for (int64_t j = 0; j < count; ++j) to[i * out_row + j * out_step] = line[j];
                          }
                        }
                        return RL_OK;
                      });
}

}  // namespace
}  // namespace rl

rl_status rl_distances(const rl_tensor* a, const rl_tensor* b, double p, rl_tensor* out) {
  using namespace rl;
  const int nd = out->ndim;
  if (nd < 2 || a->ndim != nd || b->ndim != nd || a->shape[nd - 1] != b->shape[nd - 1] ||
      out->shape[nd - 2] != a->shape[nd - 2] || out->shape[nd - 1] != b->shape[nd - 2])
    return fail(RL_VALUE_ERROR, "distances: expected [..., r, n], [..., s, n] and [..., r, s], got %s, %s and %s",
                shape_text(a), shape_text(b), shape_text(out));
  if (!(p >= 0)) return fail(RL_VALUE_ERROR, "distances: p; expected a number of at least 0, got %g", p);
  if (a->dtype != out->dtype || b->dtype != out->dtype)
    return fail(RL_TYPE_ERROR, "distances: the dtypes differ; expected one for all, got %s, %s and %s for the output",
                dtype_text(a->dtype), dtype_text(b->dtype), dtype_text(out->dtype));
  if (out->dtype == RL_FLOAT32) return distances<float>(a, b, p, out);
  if (out->dtype == RL_FLOAT64) return distances<double>(a, b, p, out);
  return fail(RL_TYPE_ERROR, "distances: expected float32 or float64, got %s", dtype_text(out->dtype));
}
