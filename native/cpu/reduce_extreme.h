// Extremes of a run, of many runs and of columns, and what the kernels of the reductions share: words of a state, maps
// of an element. Only for files compiled once per instruction set: everything here has internal linkage.
#pragma once

#include "cpu/reduce_simd.h"

#include <limits>
#include <type_traits>

#include "cpu/reduce_kernels.h"

namespace rl {
namespace {

template <>
struct IndexOf<int32_t> {
  using type = int32_t;
};

typedef int64_t __attribute__((may_alias)) StateInt64;

// The word type of a tile type, and a state's words as that type.
template <class T, bool integral = std::is_integral_v<T>>
struct WordOf {
  using type = double;
};
template <class T>
struct WordOf<T, true> {
  using type = StateInt64;
};
template <class T>
using Word = typename WordOf<T>::type;
template <class T>
RL_INLINE Word<T>* words(double* state) {
  return reinterpret_cast<Word<T>*>(state);
}
template <class T>
RL_INLINE const Word<T>* words(const double* state) {
  return reinterpret_cast<const Word<T>*>(state);
}
RL_INLINE StateInt64* indices(double* state) { return reinterpret_cast<StateInt64*>(state); }
RL_INLINE const StateInt64* indices(const double* state) { return reinterpret_cast<const StateInt64*>(state); }

template <class T>
constexpr T kInfinity = static_cast<T>(__builtin_inf());
template <class T>
RL_INLINE T lowest() {
  if constexpr (std::is_integral_v<T>)
    return std::numeric_limits<T>::min();
  else
    return -kInfinity<T>;
}
template <class T>
RL_INLINE T highest() {
  if constexpr (std::is_integral_v<T>)
    return std::numeric_limits<T>::max();
  else
    return kInfinity<T>;
}

// ---- what is done to an element before it is reduced

struct Plain {
  template <class V>
  static RL_INLINE V map(V x) {
    return x;
  }
};
struct SkipNan {  // NaN counts as 0
  template <class V>
  static RL_INLINE V map(V x) {
    return x == x ? x : V{};
  }
};
struct Square {
  template <class V>
  static RL_INLINE V map(V x) {
    return x * x;
  }
};
struct Magnitude {
  template <class V>
  static RL_INLINE V map(V x) {
    return x < V{} ? -x : x;
  }
};

// ---- extremes. NaN wins.

struct Greatest {
  template <class T>
  static RL_INLINE T neutral() {
    return lowest<T>();
  }
  template <class V>
  static RL_INLINE auto beats(V x, V best) {
    return x > best;
  }
};
struct Least {
  template <class T>
  static RL_INLINE T neutral() {
    return highest<T>();
  }
  template <class V>
  static RL_INLINE auto beats(V x, V best) {
    return x < best;
  }
};

// A NaN in either stays: a NaN accumulator is beaten by nothing but another NaN.
template <class Order, class V>
RL_INLINE V extreme(V best, V x) {
  return (Order::beats(x, best)) | (x != x) ? x : best;
}

template <class T, class Order, class Map>
struct Extreme {
  static constexpr int kWords = 1;
  // For greatest magnitudes the padding must not be -inf, whose magnitude is inf.
  static RL_INLINE T padding() {
    return std::is_same_v<Map, Magnitude> && std::is_same_v<Order, Greatest> ? T(0) : Order::template neutral<T>();
  }
  static RL_INLINE T of_run(const T* x, int64_t n) {
    if constexpr (sizeof(T) == 1) {
      T best = x[0];
      for (int64_t i = 1; i < n; ++i) best = Order::beats(x[i], best) ? x[i] : best;
      return best;
    } else {
      return of_vectors(x, n);
    }
  }
  static RL_INLINE T of_vectors(const T* x, int64_t n) {
    using V = Vector<T>;
    V lanes[kAccumulators];
    for (V& lane : lanes) lane = splat(Order::template neutral<T>());
    accumulate(lanes, x, n, padding(), [](V a, V v) { return extreme<Order>(a, Map::map(v)); });
    return fold<T>(lanes, [](V a, V b) { return extreme<Order>(a, b); });
  }
  static void run(double* state, int64_t, const void* x, int64_t n, int64_t, double) {
    *words<T>(state) = of_run(static_cast<const T*>(x), n);
  }
  static void rows(double* state, int64_t, const void* x, int64_t stride, int64_t rows, int64_t n, double) {
    const T* data = static_cast<const T*>(x);
    if constexpr (sizeof(T) == 1) {
      rows_of_bytes(state, data, stride, rows, n);
    } else {
      using V = Vector<T>;
      accumulate_rows<T>(
          data, stride, rows, n, Order::template neutral<T>(), padding(),
          [](V a, V v) { return extreme<Order>(a, Map::map(v)); }, [](V a, V b) { return extreme<Order>(a, b); },
          [&](int64_t r, const T* best, int count) {
            for (int i = 0; i < count; ++i) words<T>(state)[r + i] = static_cast<Word<T>>(best[i]);
          });
    }
  }
  // Short rows of bytes are widened, so that their folds can be shared.
  static void rows_of_bytes(double* state, const T* x, int64_t stride, int64_t rows, int64_t n) {
    constexpr int64_t kWidened = 128;  // elements from which a row is worth a loop of its own
    if (n >= kWidened) {
      for (int64_t r = 0; r < rows; ++r) words<T>(state)[r] = of_run(x + r * stride, n);
      return;
    }
    int32_t wide[16 * kWidened];
    const int64_t batch = 16 * kWidened / n;
    for (int64_t r = 0; r < rows; r += batch) {
      const int64_t size = rows - r < batch ? rows - r : batch;
      if (stride == n) {
        for (int64_t k = 0; k < size * n; ++k) wide[k] = x[r * n + k];
      } else {
        for (int64_t i = 0; i < size; ++i) {
          for (int64_t k = 0; k < n; ++k) wide[i * n + k] = x[(r + i) * stride + k];
        }
      }
      Extreme<int32_t, Order, Map>::rows(state + r, 0, wide, n, size, n, 0);
    }
  }
  static void columns(double* state, int64_t, const void* x, int64_t stride, int64_t rows, int64_t columns, int64_t,
                      int64_t, double) {
    T best[kReduceStrip];
    for (int64_t j = 0; j < columns; ++j) best[j] = Order::template neutral<T>();
    for (int64_t r = 0; r < rows; ++r) {
      const T* __restrict row = static_cast<const T*>(x) + r * stride;
      for (int64_t j = 0; j < columns; ++j) best[j] = extreme<Order>(best[j], Map::map(row[j]));
    }
    for (int64_t j = 0; j < columns; ++j) words<T>(state)[j] = best[j];
  }
  static void merge(double* into, const double* from, int64_t, int64_t, int64_t count, double, double) {
    for (int64_t j = 0; j < count; ++j) {
      const Word<T> a = words<T>(into)[j], b = words<T>(from)[j];
      words<T>(into)[j] = (Order::beats(b, a)) | (b != b) ? b : a;
    }
  }
};

template <class Kernel>
constexpr ReduceKernel make() {
  return {Kernel::kWords, Kernel::run, nullptr, Kernel::columns, {}, Kernel::merge};
}
template <class Kernel>
constexpr ReduceKernel with_rows() {
  return {Kernel::kWords, Kernel::run, Kernel::rows, Kernel::columns, {}, Kernel::merge};
}

}  // namespace
}  // namespace rl
