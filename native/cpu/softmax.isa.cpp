// Inner loops of softmax. See softmax_kernels.h for the contract.
#include "cpu/reduce_math.h"

#include "cpu/softmax_kernels.h"

namespace rl {
namespace {

template <class T>
constexpr T kLowest = static_cast<T>(-__builtin_inf());
constexpr int64_t kBlock = 2048;  // elements that add up in T before their sum is added in double

template <class V>
RL_INLINE V larger(V a, V b) {  // NaN wins
  return (b > a) | (b != b) ? b : a;
}
template <class V>
RL_INLINE V plus(V a, V b) {
  return a + b;
}

template <class T>
RL_INLINE T largest(const T* x, int64_t n) {
  Vector<T> lanes[kAccumulators];
  for (Vector<T>& lane : lanes) lane = splat(kLowest<T>);
  accumulate(lanes, x, n, kLowest<T>, [](Vector<T> a, Vector<T> v) { return larger(a, v); });
  return fold<T>(lanes, [](Vector<T> a, Vector<T> b) { return larger(a, b); });
}

// Sum over a run of f(first, lanes), whose unused lanes are 0.
template <class T, class F>
RL_INLINE double sum_of(int64_t n, F f) {
  double total = 0;
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t end = n - i < kBlock ? n : i + kBlock;
    Vector<T> lanes[4] = {};
    int64_t k = i;
    for (; k + 4 * kWidth<T> <= end; k += 4 * kWidth<T>) {
#pragma GCC unroll 4
      for (int a = 0; a < 4; ++a) lanes[a] += f(k + a * kWidth<T>, kWidth<T>);
    }
    for (; k < end; k += kWidth<T>) lanes[0] += f(k, end - k < kWidth<T> ? static_cast<int>(end - k) : kWidth<T>);
    total += static_cast<double>(
        fold_vector<T>((lanes[0] + lanes[2]) + (lanes[1] + lanes[3]), [](Vector<T> a, Vector<T> b) { return a + b; }));
  }
  return total;
}

template <class T>
void rows(const void* x_data, void* y_data, int64_t count, int64_t n, bool log) {
  using V = Vector<T>;
  const T* x = static_cast<const T*>(x_data);
  T* y = static_cast<T*>(y_data);
  for (int64_t row = 0; row < count; ++row, x += n, y += n) {
    if (n <= kWidth<T>) {  // one vector holds the row
      const int lanes = static_cast<int>(n);
      const V v = load_lanes(x, lanes, kLowest<T>);
      const T best = fold_vector<T>(v, [](V a, V b) { return larger(a, b); });
      const V shifted = v - best;
      const V exps = vector_exp(shifted);
      const T sum = fold_vector<T>(exps, [](V a, V b) { return a + b; });
      store_lanes(y, lanes,
                  log ? shifted - static_cast<T>(__builtin_log(static_cast<double>(sum))) : exps * (T(1) / sum));
      continue;
    }
    const T best = largest(x, n);
    if (log) {
      const double sum =
          sum_of<T>(n, [&](int64_t i, int lanes) { return vector_exp(load_lanes(x + i, lanes, kLowest<T>) - best); });
      const T offset = static_cast<T>(__builtin_log(sum));
      for_vectors<T>(n, [&](int64_t i, int lanes) {
        store_lanes(y + i, lanes, (load_lanes(x + i, lanes, T(0)) - best) - offset);
      });
    } else {
      const double sum = sum_of<T>(n, [&](int64_t i, int lanes) {
        const V exps = vector_exp(load_lanes(x + i, lanes, kLowest<T>) - best);
        store_lanes(y + i, lanes, exps);
        return exps;
      });
      const T scale = static_cast<T>(1 / sum);
      for_vectors<T>(n,
                     [&](int64_t i, int lanes) { store_lanes(y + i, lanes, load_lanes(y + i, lanes, T(0)) * scale); });
    }
  }
}

template <class T>
void columns(const void* x_data, void* y_data, int64_t count, int64_t n, int64_t stride, bool log) {
  const T* x = static_cast<const T*>(x_data);
  T* y = static_cast<T*>(y_data);
  T best[kSoftmaxStrip];
  double sums[kSoftmaxStrip];
  for (int64_t j = 0; j < count; ++j) {
    best[j] = kLowest<T>;
    sums[j] = 0;
  }
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t j = 0; j < count; ++j) {
      const T v = x[r * stride + j];
      best[j] = (v > best[j]) | (v != v) ? v : best[j];
    }
  }
  T* store_exps = log ? nullptr : y;
  for (int64_t r = 0; r < n; ++r) {
    T exps[kSoftmaxStrip];
    T* to = store_exps != nullptr ? store_exps + r * stride : exps;
    for_vectors<T>(count, [&](int64_t j, int lanes) {
      store_lanes(to + j, lanes,
                  vector_exp(load_lanes(x + r * stride + j, lanes, T(0)) - load_lanes(best + j, lanes, T(0))));
    });
    for (int64_t j = 0; j < count; ++j) sums[j] += static_cast<double>(to[j]);
  }
  T last[kSoftmaxStrip];
  for (int64_t j = 0; j < count; ++j) last[j] = static_cast<T>(log ? __builtin_log(sums[j]) : 1 / sums[j]);
  for (int64_t r = 0; r < n; ++r) {
    if (log) {
      for (int64_t j = 0; j < count; ++j) y[r * stride + j] = (x[r * stride + j] - best[j]) - last[j];
    } else {
      for (int64_t j = 0; j < count; ++j) y[r * stride + j] *= last[j];
    }
  }
}

// softmax: (grad - sum(grad y)) y; its logarithm: grad - exp(y) sum(grad)
template <class T>
void rows_backward(const void* grad_data, const void* y_data, void* out_data, int64_t count, int64_t n, bool log) {
  const T *grad = static_cast<const T*>(grad_data), *y = static_cast<const T*>(y_data);
  T* out = static_cast<T*>(out_data);
  for (int64_t row = 0; row < count; ++row, grad += n, y += n, out += n) {
    if (log) {
      const T sum =
          static_cast<T>(sum_of<T>(n, [&](int64_t i, int lanes) { return load_lanes(grad + i, lanes, T(0)); }));
      for_vectors<T>(n, [&](int64_t i, int lanes) {
        store_lanes(out + i, lanes,
                    load_lanes(grad + i, lanes, T(0)) - vector_exp(load_lanes(y + i, lanes, T(0))) * sum);
      });
    } else {
      const T sum = static_cast<T>(sum_of<T>(
          n, [&](int64_t i, int lanes) { return load_lanes(grad + i, lanes, T(0)) * load_lanes(y + i, lanes, T(0)); }));
      for_vectors<T>(n, [&](int64_t i, int lanes) {
        store_lanes(out + i, lanes, (load_lanes(grad + i, lanes, T(0)) - sum) * load_lanes(y + i, lanes, T(0)));
      });
    }
  }
}

template <class T>
void columns_backward(const void* grad_data, const void* y_data, void* out_data, int64_t count, int64_t n,
                      int64_t stride, bool log) {
  const T *grad = static_cast<const T*>(grad_data), *y = static_cast<const T*>(y_data);
  T* out = static_cast<T*>(out_data);
  double sums[kSoftmaxStrip];
  for (int64_t j = 0; j < count; ++j) sums[j] = 0;
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t j = 0; j < count; ++j) {
      const double g = static_cast<double>(grad[r * stride + j]);
      sums[j] += log ? g : g * static_cast<double>(y[r * stride + j]);
    }
  }
  T total[kSoftmaxStrip];
  for (int64_t j = 0; j < count; ++j) total[j] = static_cast<T>(sums[j]);
  for (int64_t r = 0; r < n; ++r) {
    const int64_t at = r * stride;
    for_vectors<T>(count, [&](int64_t j, int lanes) {
      const Vector<T> g = load_lanes(grad + at + j, lanes, T(0)), v = load_lanes(y + at + j, lanes, T(0));
      const Vector<T> sum = load_lanes(total + j, lanes, T(0));
      store_lanes(out + at + j, lanes, log ? g - vector_exp(v) * sum : (g - sum) * v);
    });
  }
}

constexpr SoftmaxTable table = {
    {rows<float>, columns<float>, rows_backward<float>, columns_backward<float>},
    {rows<double>, columns<double>, rows_backward<double>, columns_backward<double>},
};

}  // namespace

const SoftmaxTable& RL_ISA_SYMBOL(softmax_table)() { return table; }

}  // namespace rl
