// Inner loops of the reductions. See reduce_kernels.h for the contract.
#include "cpu/reduce_extreme.h"
#include "cpu/reduce_math.h"

namespace rl {
namespace {

// The exact error of hi + x goes to lo, so that many blocks add up without loss.
RL_INLINE void two_sum(double& hi, double& lo, double x) {
  const double sum = hi + x;
  const double back = sum - hi;
  lo += (hi - (sum - back)) + (x - back);
  hi = sum;
}

// ---- sums. float32 adds in float32 over short blocks, whose sums add up in double; a block whose float32 sum
// overflows is added again in double. float64 blocks add up in twice the precision.

constexpr int64_t kSumBlock = 2048;  // elements of a run
constexpr int64_t kSumRows = 64;     // rows of a matrix

template <class Map>
double sum_run_wide(const float* x, int64_t n) {
  Vector<double> lanes[kAccumulators] = {};
  accumulate_wide(lanes, x, n, 0.0, [](Vector<double> a, Vector<double> v) { return a + Map::map(v); });
  return fold<double>(lanes, [](Vector<double> a, Vector<double> b) { return a + b; });
}

// Whether a block's float32 sum can stand: finite, and for squares far from underflow.
template <class Map>
RL_INLINE bool sum_stands(float sum) {
  if constexpr (std::is_same_v<Map, Square>)
    return sum > 1e-20f && sum < 1e38f;
  else
    return sum > -kInfinity<float> && sum < kInfinity<float>;
}

template <class Map>
void sum_run(double* state, int64_t, const float* x, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; i += kSumBlock) {
    const int64_t size = n - i < kSumBlock ? n - i : kSumBlock;
    Vector<float> lanes[kAccumulators] = {};
    accumulate(lanes, x + i, size, 0.0f, [](Vector<float> a, Vector<float> v) { return a + Map::map(v); });
    const float sum = fold<float>(lanes, [](Vector<float> a, Vector<float> b) { return a + b; });
    total += __builtin_expect(sum_stands<Map>(sum), 1) ? static_cast<double>(sum) : sum_run_wide<Map>(x + i, size);
  }
  state[0] = total;
}

template <class Map>
void sum_run(double* state, int64_t pitch, const double* x, int64_t n) {
  double hi = 0, lo = 0;
  for (int64_t i = 0; i < n; i += kSumBlock) {
    const int64_t size = n - i < kSumBlock ? n - i : kSumBlock;
    Vector<double> lanes[kAccumulators] = {};
    accumulate(lanes, x + i, size, 0.0, [](Vector<double> a, Vector<double> v) { return a + Map::map(v); });
    two_sum(hi, lo, fold<double>(lanes, [](Vector<double> a, Vector<double> b) { return a + b; }));
  }
  state[0] = hi;
  state[pitch] = lo;
}

template <class Map>
void sum_run(double* state, int64_t, const int64_t* x, int64_t n) {
  uint64_t total = 0;
  for (int64_t i = 0; i < n; ++i) total += static_cast<uint64_t>(Map::map(x[i]));
  *indices(state) = static_cast<int64_t>(total);
}

template <class Map, class A, class T>
RL_INLINE void add_rows(A* __restrict sums, const T* __restrict x, int64_t stride, int64_t rows, int64_t columns) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const T *a = x + r * stride, *b = a + stride, *c = b + stride, *d = c + stride;
    for (int64_t j = 0; j < columns; ++j) {
      sums[j] += (Map::map(convert<A>(a[j])) + Map::map(convert<A>(b[j]))) +
                 (Map::map(convert<A>(c[j])) + Map::map(convert<A>(d[j])));
    }
  }
  for (; r < rows; ++r) {
    const T* a = x + r * stride;
    for (int64_t j = 0; j < columns; ++j) sums[j] += Map::map(convert<A>(a[j]));
  }
}

#if defined(__F16C__)
// float16 has an instruction of its own, which the loop above is not compiled to.
RL_INLINE Vector<float> load_half(const half* p) {
#if defined(__AVX512F__)
  return (Vector<float>)_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#else
  return (Vector<float>)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#endif
}

template <class Map>
RL_INLINE void add_rows(float* __restrict sums, const half* __restrict x, int64_t stride, int64_t rows,
                        int64_t columns) {
  constexpr int w = kWidth<float>;
  const int64_t whole = columns - columns % w;
  const auto read = [](const half* p) { return Map::map(load_half(p)); };
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const half *a = x + r * stride, *b = a + stride, *c = b + stride, *d = c + stride;
    for (int64_t j = 0; j < whole; j += w)
      store(sums + j, load(sums + j) + ((read(a + j) + read(b + j)) + (read(c + j) + read(d + j))));
  }
  for (; r < rows; ++r) {
    for (int64_t j = 0; j < whole; j += w) store(sums + j, load(sums + j) + read(x + r * stride + j));
  }
  if (whole < columns) add_rows<Map, float, half>(sums + whole, x + whole, stride, rows, columns - whole);
}
#endif

template <class Map, class T>
void sum_columns_as_float(double* __restrict state, const T* x, int64_t stride, int64_t rows, int64_t columns) {
  for (int64_t j = 0; j < columns; ++j) state[j] = 0;
  for (int64_t r = 0; r < rows; r += kSumRows) {
    const int64_t size = rows - r < kSumRows ? rows - r : kSumRows;
    float sums[kReduceStrip] = {};
    add_rows<Map>(sums, x + r * stride, stride, size, columns);
    int32_t bad = 0;
    for (int64_t j = 0; j < columns; ++j) bad |= !sum_stands<Map>(sums[j]);
    if (__builtin_expect(bad, 0)) {
      double wide[kReduceStrip] = {};
      add_rows<Map>(wide, x + r * stride, stride, size, columns);
      for (int64_t j = 0; j < columns; ++j)
        state[j] += sum_stands<Map>(sums[j]) ? static_cast<double>(sums[j]) : wide[j];
    } else {
      for (int64_t j = 0; j < columns; ++j) state[j] += static_cast<double>(sums[j]);
    }
  }
}

template <class Map>
void sum_columns(double* state, int64_t, const float* x, int64_t stride, int64_t rows, int64_t columns) {
  sum_columns_as_float<Map>(state, x, stride, rows, columns);
}

template <class Map>
void sum_columns(double* __restrict state, int64_t pitch, const double* x, int64_t stride, int64_t rows,
                 int64_t columns) {
  double* __restrict low = state + pitch;
  for (int64_t j = 0; j < columns; ++j) state[j] = low[j] = 0;
  for (int64_t r = 0; r < rows; r += kSumRows) {
    const int64_t size = rows - r < kSumRows ? rows - r : kSumRows;
    double sums[kReduceStrip] = {};
    add_rows<Map>(sums, x + r * stride, stride, size, columns);
    for (int64_t j = 0; j < columns; ++j) two_sum(state[j], low[j], sums[j]);
  }
}

template <class Map>
void sum_columns(double* state, int64_t, const int64_t* x, int64_t stride, int64_t rows, int64_t columns) {
  uint64_t sums[kReduceStrip] = {};
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < columns; ++j) sums[j] += static_cast<uint64_t>(Map::map(x[r * stride + j]));
  }
  for (int64_t j = 0; j < columns; ++j) indices(state)[j] = static_cast<int64_t>(sums[j]);
}

template <class T, class Map>
struct Sum {
  static constexpr int kWords = std::is_same_v<T, double> ? 2 : 1;
  static void run(double* state, int64_t pitch, const void* x, int64_t n, int64_t, double) {
    sum_run<Map>(state, pitch, static_cast<const T*>(x), n);
  }
  static void rows(double* state, int64_t pitch, const void* x, int64_t stride, int64_t rows, int64_t n, double) {
    using U = std::conditional_t<std::is_same_v<T, int64_t>, uint64_t, T>;  // integers wrap around
    const U* data = static_cast<const U*>(x);
    accumulate_rows<U>(
        data, stride, rows, n, U(0), U(0), [](Vector<U> a, Vector<U> v) { return a + Map::map(v); },
        [](Vector<U> a, Vector<U> b) { return a + b; },
        [&](int64_t r, const U* sums, int count) {
          if constexpr (std::is_same_v<T, int64_t>) {
            for (int i = 0; i < count; ++i) indices(state)[r + i] = static_cast<int64_t>(sums[i]);
          } else {
            for (int i = 0; i < count; ++i) {
              state[r + i] = 0.0 + static_cast<double>(sums[i]);
              if constexpr (kWords == 2) {
                state[pitch + r + i] = 0;
              } else if (__builtin_expect(!sum_stands<Map>(sums[i]), 0)) {
                state[r + i] = 0.0 + sum_run_wide<Map>(data + (r + i) * stride, n);
              }
            }
          }
        });
  }
  static void columns(double* state, int64_t pitch, const void* x, int64_t stride, int64_t rows, int64_t columns,
                      int64_t, int64_t, double) {
    sum_columns<Map>(state, pitch, static_cast<const T*>(x), stride, rows, columns);
  }
  template <class Narrow>
  static void columns_narrow(double* state, int64_t, const void* x, int64_t stride, int64_t rows, int64_t columns,
                             int64_t, int64_t, double) {
    sum_columns_as_float<Map>(state, static_cast<const Narrow*>(x), stride, rows, columns);
  }
  static void merge(double* into, const double* from, int64_t pitch_into, int64_t pitch_from, int64_t count, double,
                    double) {
    if constexpr (std::is_same_v<T, int64_t>) {
      for (int64_t j = 0; j < count; ++j) {
        indices(into)[j] =
            static_cast<int64_t>(static_cast<uint64_t>(indices(into)[j]) + static_cast<uint64_t>(indices(from)[j]));
      }
    } else {
      for (int64_t j = 0; j < count; ++j) {
        if constexpr (kWords == 2) {
          into[j + pitch_into] += from[j + pitch_from];
          two_sum(into[j], into[j + pitch_into], from[j]);
        } else {
          into[j] += from[j];
        }
      }
    }
  }
};

// accumulate_rows with elements read as doubles.
template <class T, class Step, class Combine, class Body>
RL_INLINE void accumulate_rows_wide(const T* x, int64_t stride, int64_t rows, int64_t n, double neutral, Step step,
                                    Combine combine, Body body) {
  constexpr int w = kWidth<double>;
  for (int64_t r = 0; r < rows; r += w) {
    const int count = rows - r < w ? static_cast<int>(rows - r) : w;
    Vector<double> results[w];
    for (int i = 0; i < w; ++i) {
      Vector<double> lanes[kAccumulators];
      for (Vector<double>& lane : lanes) lane = splat(neutral);
      if (i < count) accumulate_wide(lanes, x + (r + i) * stride, n, neutral, step);
#pragma GCC unroll 8
      for (int half = kAccumulators / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
        for (int k = 0; k < half; ++k) lanes[k] = combine(lanes[k], lanes[k + half]);
      }
      results[i] = lanes[0];
    }
    double values[w];
    store(values, fold_rows<double>(results, combine));
    body(r, values, count);
  }
}

// ---- reductions whose float32 form works in double: a step on vectors of doubles, one word.

struct Multiply {
  static RL_INLINE double neutral() { return 1; }
  template <class V>
  static RL_INLINE V step(V a, V x, double) {
    return a * x;
  }
  template <class V>
  static RL_INLINE V combine(V a, V b) {
    return a * b;
  }
};
// Sum of |x|^p: the common small powers by multiplication.
struct AddPower {
  static RL_INLINE double neutral() { return 0; }
  template <class V>
  static RL_INLINE V step(V a, V x, double p) {
    V m = x < V{} ? -x : x;
    if (p == 3) return a + m * m * m;
    if (p == 4) return a + (m * m) * (m * m);
    if constexpr (std::is_same_v<V, double>) {
      return a + __builtin_pow(m, p);
    } else {
      for (int i = 0; i < kWidth<double>; ++i) m[i] = __builtin_pow(m[i], p);
      return a + m;
    }
  }
  template <class V>
  static RL_INLINE V combine(V a, V b) {
    return a + b;
  }
};

template <class T, class Op>
struct Wide {
  static constexpr int kWords = 1;
  static void run(double* state, int64_t, const void* x, int64_t n, int64_t, double parameter) {
    using V = Vector<double>;
    V lanes[kAccumulators];
    for (V& lane : lanes) lane = splat(Op::neutral());
    accumulate_wide(lanes, static_cast<const T*>(x), n, Op::neutral(),
                    [=](V a, V v) { return Op::step(a, v, parameter); });
    state[0] = fold<double>(lanes, [](V a, V b) { return Op::combine(a, b); });
  }
  static void rows(double* state, int64_t, const void* x, int64_t stride, int64_t rows, int64_t n, double parameter) {
    using V = Vector<double>;
    accumulate_rows_wide(
        static_cast<const T*>(x), stride, rows, n, Op::neutral(), [=](V a, V v) { return Op::step(a, v, parameter); },
        [](V a, V b) { return Op::combine(a, b); },
        [&](int64_t r, const double* values, int count) {
          for (int i = 0; i < count; ++i) state[r + i] = values[i];
        });
  }
  static void columns(double* __restrict state, int64_t, const void* x, int64_t stride, int64_t rows, int64_t columns,
                      int64_t, int64_t, double parameter) {
    for (int64_t j = 0; j < columns; ++j) state[j] = Op::neutral();
    for (int64_t r = 0; r < rows; ++r) {
      const T* __restrict row = static_cast<const T*>(x) + r * stride;
      for (int64_t j = 0; j < columns; ++j) state[j] = Op::step(state[j], static_cast<double>(row[j]), parameter);
    }
  }
  static void merge(double* into, const double* from, int64_t, int64_t, int64_t count, double, double) {
    for (int64_t j = 0; j < count; ++j) into[j] = Op::combine(into[j], from[j]);
  }
};

struct IntegerProd {
  static constexpr int kWords = 1;
  static void run(double* state, int64_t, const void* x, int64_t n, int64_t, double) {
    uint64_t product = 1;
    for (int64_t i = 0; i < n; ++i) product *= static_cast<const uint64_t*>(x)[i];
    *indices(state) = static_cast<int64_t>(product);
  }
  static void rows(double* state, int64_t, const void* x, int64_t stride, int64_t rows, int64_t n, double) {
    using V = Vector<uint64_t>;
    const auto multiply = [](V a, V b) { return a * b; };
    accumulate_rows<uint64_t>(static_cast<const uint64_t*>(x), stride, rows, n, 1, 1, multiply, multiply,
                              [&](int64_t r, const uint64_t* products, int count) {
                                for (int i = 0; i < count; ++i)
                                  indices(state)[r + i] = static_cast<int64_t>(products[i]);
                              });
  }
  static void columns(double* state, int64_t, const void* x, int64_t stride, int64_t rows, int64_t columns, int64_t,
                      int64_t, double) {
    uint64_t products[kReduceStrip];
    for (int64_t j = 0; j < columns; ++j) products[j] = 1;
    for (int64_t r = 0; r < rows; ++r) {
      const uint64_t* row = static_cast<const uint64_t*>(x) + r * stride;
      for (int64_t j = 0; j < columns; ++j) products[j] *= row[j];
    }
    for (int64_t j = 0; j < columns; ++j) indices(state)[j] = static_cast<int64_t>(products[j]);
  }
  static void merge(double* into, const double* from, int64_t, int64_t, int64_t count, double, double) {
    for (int64_t j = 0; j < count; ++j) {
      indices(into)[j] =
          static_cast<int64_t>(static_cast<uint64_t>(indices(into)[j]) * static_cast<uint64_t>(indices(from)[j]));
    }
  }
};

// ---- elements that differ from 0
struct Count {
  static constexpr int kWords = 1;
  static void run(double* state, int64_t, const void* x, int64_t n, int64_t, double) {
    int64_t total = 0;
    for (int64_t i = 0; i < n; i += 128) {  // few enough for a byte to hold the count of each lane
      const uint8_t* block = static_cast<const uint8_t*>(x) + i;
      const int64_t size = n - i < 128 ? n - i : 128;
      uint8_t part = 0;
      for (int64_t k = 0; k < size; ++k) part = static_cast<uint8_t>(part + (block[k] != 0));
      total += part;
    }
    *indices(state) = total;
  }
  static void columns(double* state, int64_t, const void* x, int64_t stride, int64_t rows, int64_t columns, int64_t,
                      int64_t, double) {
    for (int64_t j = 0; j < columns; ++j) indices(state)[j] = 0;
    for (int64_t r = 0; r < rows; r += 255) {
      const int64_t size = rows - r < 255 ? rows - r : 255;
      uint8_t parts[kReduceStrip] = {};
      for (int64_t i = 0; i < size; ++i) {
        const uint8_t* __restrict row = static_cast<const uint8_t*>(x) + (r + i) * stride;
        for (int64_t j = 0; j < columns; ++j) parts[j] = static_cast<uint8_t>(parts[j] + (row[j] != 0));
      }
      for (int64_t j = 0; j < columns; ++j) indices(state)[j] += parts[j];
    }
  }
  static void merge(double* into, const double* from, int64_t, int64_t, int64_t count, double, double) {
    for (int64_t j = 0; j < count; ++j) indices(into)[j] += indices(from)[j];
  }
};

// ---- variance: deviations from the block's first element, so that equal values give exactly 0 and no digits cancel;
// blocks are joined by Chan, Golub and LeVeque's formula. Means stay split into pivot and offset: their differences
// count.
template <class T>
struct Variance {
  static constexpr int kWords = 3;
  static constexpr int64_t kBlock = 4096;
  static RL_INLINE void block(double* state, int64_t pitch, const T* x, int64_t n) {
    using V = Vector<double>;
    const double pivot = static_cast<double>(x[0]);
    const V shift = splat(pivot);
    V sums[kAccumulators] = {}, squares[kAccumulators] = {};
    const auto add = [](V a, V b) { return a + b; };
    if constexpr (std::is_same_v<T, float>) {
      accumulate_pair(sums, squares, x, n, pivot, shift);
      const double sum = fold<double>(sums, add), square = fold<double>(squares, add);
      const double mean = sum / static_cast<double>(n);
      state[0] = pivot;
      state[pitch] = mean;
      state[2 * pitch] = square - sum * mean;
    } else {
      // A float64 block is read twice, so that an outlier as the pivot costs no digits either.
      accumulate_wide(sums, x, n, pivot, [=](V a, V v) { return a + (v - shift); });
      const double mean = pivot + fold<double>(sums, add) / static_cast<double>(n);
      const V center = splat(mean);
      V deviations[kAccumulators] = {};
      accumulate_pair(deviations, squares, x, n, mean, center);
      const double deviation = fold<double>(deviations, add), offset = deviation / static_cast<double>(n);
      state[0] = mean;
      state[pitch] = offset;
      state[2 * pitch] = fold<double>(squares, add) - deviation * offset;
    }
    if (state[2 * pitch] < 0) state[2 * pitch] = 0;
  }
  // Sums of (x - shift) and (x - shift)^2; elements equal to `neutral`, the shift, add nothing.
  static RL_INLINE void accumulate_pair(Vector<double>* sums, Vector<double>* squares, const T* x, int64_t n,
                                        double neutral, Vector<double> shift) {
    int64_t i = 0;
    for (; i < n; i += kLanes<double>) {
      const bool whole = i + kLanes<double> <= n;
#pragma GCC unroll 16
      for (int k = 0; k < kAccumulators; ++k) {
        const int64_t at = i + k * kWidth<double>;
        if (!whole && at >= n) break;
        const Vector<double> v = (whole || at + kWidth<double> <= n)
                                     ? load_wide(x + at)
                                     : load_wide_part(x + at, static_cast<int>(n - at), neutral);
        const Vector<double> d = v - shift;
        sums[k] += d;
        squares[k] += d * d;
      }
    }
  }
  static void run(double* state, int64_t pitch, const void* data, int64_t n, int64_t, double) {
    const T* x = static_cast<const T*>(data);
    block(state, pitch, x, n < kBlock ? n : kBlock);
    for (int64_t i = kBlock; i < n; i += kBlock) {
      const int64_t size = n - i < kBlock ? n - i : kBlock;
      double part[kWords];
      block(part, 1, x + i, size);
      merge(state, part, pitch, 1, 1, static_cast<double>(i), static_cast<double>(size));
    }
  }
  static void columns(double* __restrict state, int64_t pitch, const void* data, int64_t stride, int64_t rows,
                      int64_t columns, int64_t, int64_t, double) {
    const T* x = static_cast<const T*>(data);
    double sums[kReduceStrip] = {}, squares[kReduceStrip] = {}, pivots[kReduceStrip];
    for (int64_t j = 0; j < columns; ++j) pivots[j] = static_cast<double>(x[j]);
    for (int64_t r = 1; r < rows; ++r) {
      const T* __restrict row = x + r * stride;
      for (int64_t j = 0; j < columns; ++j) {
        const double d = static_cast<double>(row[j]) - pivots[j];
        sums[j] += d;
        squares[j] += d * d;
      }
    }
    const double n = static_cast<double>(rows);
    for (int64_t j = 0; j < columns; ++j) {
      const double offset = sums[j] / n, deviation = squares[j] - sums[j] * offset;
      state[j] = pivots[j];
      state[pitch + j] = offset;
      state[2 * pitch + j] = deviation < 0 ? 0 : deviation;
    }
  }
  static void merge(double* into, const double* from, int64_t pitch_into, int64_t pitch_from, int64_t count,
                    double into_size, double from_size) {
    const double share = from_size / (into_size + from_size);
    for (int64_t j = 0; j < count; ++j) {
      const double delta = (from[j] - into[j]) + (from[pitch_from + j] - into[pitch_into + j]);
      into[2 * pitch_into + j] += from[2 * pitch_from + j] + delta * delta * (into_size * share);
      into[pitch_into + j] += delta * share;
    }
  }
};

// ---- log of a sum of exponentials, relative to the largest element
template <class T>
struct LogSumExp {
  static constexpr int kWords = 2;
  static constexpr int64_t kBlock = 1024;
  // The shift must be finite, or inf - inf would turn an all -inf run into NaN.
  template <class U>
  static RL_INLINE U finite_or_zero(U value) {
    return value > -kInfinity<U> && value < kInfinity<U> ? value : U(0);
  }
  static void run(double* state, int64_t pitch, const void* data, int64_t n, int64_t, double) {
    const T* x = static_cast<const T*>(data);
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t size = n - i < kBlock ? n - i : kBlock;
      const T best = Extreme<T, Greatest, Plain>::of_run(x + i, size);
      const T shift = finite_or_zero(best);
      T exps[kBlock];
      for_vectors<T>(size, [&](int64_t k, int lanes) {
        store_lanes(exps + k, lanes, vector_exp(load_lanes(x + i + k, lanes, T(0)) - shift));
      });
      Vector<double> lanes[kAccumulators] = {};
      accumulate_wide(lanes, exps, size, 0.0, [](Vector<double> a, Vector<double> v) { return a + v; });
      const double part[2] = {static_cast<double>(best),
                              fold<double>(lanes, [](Vector<double> a, Vector<double> b) { return a + b; })};
      if (i == 0) {
        state[0] = part[0];
        state[pitch] = part[1];
      } else {
        merge(state, part, pitch, 1, 1, 0, 0);
      }
    }
  }
  static void columns(double* __restrict state, int64_t pitch, const void* data, int64_t stride, int64_t rows,
                      int64_t columns, int64_t, int64_t, double) {
    const T* x = static_cast<const T*>(data);
    T shift[kReduceStrip];
    Extreme<T, Greatest, Plain>::columns(state, pitch, data, stride, rows, columns, 0, 0, 0);
    double* __restrict sums = state + pitch;
    for (int64_t j = 0; j < columns; ++j) {
      shift[j] = finite_or_zero(static_cast<T>(state[j]));
      sums[j] = 0;
    }
    for (int64_t r = 0; r < rows; ++r) {
      const T* __restrict row = x + r * stride;
      for (int64_t j = 0; j < columns; ++j) sums[j] += static_cast<double>(fast_exp(row[j] - shift[j]));
    }
  }
  static void merge(double* into, const double* from, int64_t pitch_into, int64_t pitch_from, int64_t count, double,
                    double) {
    for (int64_t j = 0; j < count; ++j) {
      const double a = into[j], b = from[j];
      const double best = (b > a) | (b != b) ? b : a, shift = finite_or_zero(best);
      into[pitch_into + j] = into[pitch_into + j] * fast_exp(finite_or_zero(a) - shift) +
                             from[pitch_from + j] * fast_exp(finite_or_zero(b) - shift);
      into[j] = best;
    }
  }
};

// ---- products of complex numbers, in double
struct ComplexProd {
  static constexpr int kWords = 2;
  static RL_INLINE void multiply(double& re, double& im, double x, double y) {
    const double r = re * x - im * y;
    im = re * y + im * x;
    re = r;
  }
  static void run(double* state, int64_t pitch, const void* data, int64_t n, int64_t, double) {
    const double* x = static_cast<const double*>(data);
    double re = x[0], im = x[1];
    for (int64_t i = 1; i < n; ++i) multiply(re, im, x[2 * i], x[2 * i + 1]);
    state[0] = re;
    state[pitch] = im;
  }
  static void columns(double* state, int64_t pitch, const void* data, int64_t stride, int64_t rows, int64_t columns,
                      int64_t, int64_t, double) {
    const double* x = static_cast<const double*>(data);
    for (int64_t j = 0; j < columns; ++j) {
      state[j] = x[2 * j];
      state[pitch + j] = x[2 * j + 1];
      for (int64_t r = 1; r < rows; ++r) {
        const double* element = x + 2 * (r * stride + j);
        multiply(state[j], state[pitch + j], element[0], element[1]);
      }
    }
  }
  static void merge(double* into, const double* from, int64_t pitch_into, int64_t pitch_from, int64_t count, double,
                    double) {
    for (int64_t j = 0; j < count; ++j) multiply(into[j], into[pitch_into + j], from[j], from[pitch_from + j]);
  }
};

template <class Kernel>
constexpr ReduceKernel with_narrow() {
  return {Kernel::kWords,
          Kernel::run,
          Kernel::rows,
          Kernel::columns,
          {Kernel::template columns_narrow<half>, Kernel::template columns_narrow<bfloat16>},
          Kernel::merge};
}

constexpr ReduceTable make_table() {
  ReduceTable t{};
  t.kernels[kReduceSum][kTileInt64] = with_rows<Sum<int64_t, Plain>>();
  t.kernels[kReduceSum][kTileFloat] = with_narrow<Sum<float, Plain>>();
  t.kernels[kReduceSum][kTileDouble] = with_rows<Sum<double, Plain>>();
  t.kernels[kReduceNanSum][kTileInt64] = t.kernels[kReduceSum][kTileInt64];
  t.kernels[kReduceNanSum][kTileFloat] = with_narrow<Sum<float, SkipNan>>();
  t.kernels[kReduceNanSum][kTileDouble] = with_rows<Sum<double, SkipNan>>();
  t.kernels[kReduceProd][kTileInt64] = with_rows<IntegerProd>();
  t.kernels[kReduceProd][kTileFloat] = with_rows<Wide<float, Multiply>>();
  t.kernels[kReduceProd][kTileDouble] = with_rows<Wide<double, Multiply>>();
  t.kernels[kReduceCount][kTileByte] = make<Count>();
  t.kernels[kReduceVar][kTileFloat] = make<Variance<float>>();
  t.kernels[kReduceVar][kTileDouble] = make<Variance<double>>();
  t.kernels[kReduceSumSquares][kTileInt64] = with_rows<Sum<int64_t, Square>>();
  t.kernels[kReduceSumSquares][kTileFloat] = with_narrow<Sum<float, Square>>();
  t.kernels[kReduceSumSquares][kTileDouble] = with_rows<Sum<double, Square>>();
  t.kernels[kReduceAbsSum][kTileFloat] = with_narrow<Sum<float, Magnitude>>();
  t.kernels[kReduceAbsSum][kTileDouble] = with_rows<Sum<double, Magnitude>>();
  t.kernels[kReduceAbsPow][kTileFloat] = with_rows<Wide<float, AddPower>>();
  t.kernels[kReduceAbsPow][kTileDouble] = with_rows<Wide<double, AddPower>>();
  t.kernels[kReduceLogSumExp][kTileFloat] = make<LogSumExp<float>>();
  t.kernels[kReduceLogSumExp][kTileDouble] = make<LogSumExp<double>>();
  t.kernels[kReduceComplexProd][kTileDouble] = make<ComplexProd>();
  return t;
}

constexpr ReduceTable table = make_table();

}  // namespace

const ReduceTable& RL_ISA_SYMBOL(reduce_table)() { return table; }

}  // namespace rl
