// Vectors for the reduction and normalisation kernels. Only for files compiled once per instruction set: everything
// here has internal linkage.
//
// A block of kLaneBytes (256) is the unit of accumulation on every instruction set: element i of a run always lands in
// lane i % lanes, and lanes are folded by halves, so that all levels give the same bits.
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // of GCC's own AVX-512 header, which must come after this
#endif

#include <cstdint>
#include <cstring>

#include "core/dtype.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rl {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
constexpr int kLaneBytes = 256;

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kVectorBytes)));
};
template <class T>
using Vector = typename VectorOf<T>::type;
template <class T>
constexpr int kWidth = kVectorBytes / static_cast<int>(sizeof(T));
// Accumulators of one run, and its lanes.
constexpr int kAccumulators = kLaneBytes / kVectorBytes;
template <class T>
constexpr int kLanes = kLaneBytes / static_cast<int>(sizeof(T));

// Integers as wide as T: masks and indices beside vectors of T.
template <class T>
struct IndexOf {
  using type = int64_t;
};
template <>
struct IndexOf<float> {
  using type = int32_t;
};
template <class T>
using Index = typename IndexOf<T>::type;

template <class T>
RL_INLINE Vector<T> splat(T value) {
  Vector<T> v = {};
  return v + value;
}
// Adding 0 turns -0 into +0, which matters to nobody but a fill with -0; splat is never used for that.

template <class T>
RL_INLINE Vector<T> load(const T* p) {
  Vector<T> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

template <class T>
RL_INLINE void store(T* p, Vector<T> v) {
  std::memcpy(p, &v, sizeof v);
}

// The first n (0 < n < width) elements of p, the rest `fill`.
template <class T>
RL_INLINE Vector<T> load_part(const T* p, int n, T fill) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    return (Vector<T>)_mm512_mask_loadu_ps((__m512)splat(fill), static_cast<__mmask16>((1u << n) - 1), p);
  } else {
    return (Vector<T>)_mm512_mask_loadu_pd((__m512d)splat(fill), static_cast<__mmask8>((1u << n) - 1), p);
  }
#else
  T buffer[kWidth<T>];
  for (int i = 0; i < kWidth<T>; ++i) buffer[i] = i < n ? p[i] : fill;
  return load(buffer);
#endif
}

template <class T>
RL_INLINE void store_part(T* p, int n, Vector<T> v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), (__m512)v);
  else
    _mm512_mask_storeu_pd(p, static_cast<__mmask8>((1u << n) - 1), (__m512d)v);
#else
  T buffer[kWidth<T>];
  store(buffer, v);
  for (int i = 0; i < kWidth<T>; ++i) {
    if (i < n) p[i] = buffer[i];
  }
#endif
}

// body(first, lanes) for each vector of a run; lanes is the width but for the last.
template <class T, class Body>
RL_INLINE void for_vectors(int64_t n, Body body) {
  int64_t i = 0;
  for (; i + kWidth<T> <= n; i += kWidth<T>) body(i, kWidth<T>);
  if (i < n) body(i, static_cast<int>(n - i));
}
template <class T>
RL_INLINE Vector<T> load_lanes(const T* p, int lanes, T fill) {
  return lanes == kWidth<T> ? load(p) : load_part(p, lanes, fill);
}
template <class T>
RL_INLINE void store_lanes(T* p, int lanes, Vector<T> v) {
  if (lanes == kWidth<T>)
    store(p, v);
  else
    store_part(p, lanes, v);
}

// kWidth<double> elements as doubles.
RL_INLINE Vector<double> load_wide(const double* p) { return load(p); }
RL_INLINE Vector<double> load_wide(const float* p) {
  typedef float Half __attribute__((vector_size(kVectorBytes / 2)));
  Half v;
  std::memcpy(&v, p, sizeof v);
  return __builtin_convertvector(v, Vector<double>);
}
RL_INLINE Vector<double> load_wide_part(const double* p, int n, double fill) { return load_part(p, n, fill); }
RL_INLINE Vector<double> load_wide_part(const float* p, int n, double fill) {
#if defined(__AVX512F__)
  const __mmask8 mask = static_cast<__mmask8>((1u << n) - 1);
  return (Vector<double>)_mm512_mask_cvtps_pd((__m512d)splat(fill), mask, _mm256_maskz_loadu_ps(mask, p));
#else
  double buffer[kWidth<double>];
  for (int i = 0; i < kWidth<double>; ++i) buffer[i] = i < n ? static_cast<double>(p[i]) : fill;
  return load(buffer);
#endif
}

// Lane i of the result is lane (i + Half) % width. Masks are literals, so that they become constants.
template <class T, int Half>
RL_INLINE Vector<T> rotate(Vector<T> v) {
  using Mask = Vector<Index<T>>;
  constexpr int w = kWidth<T>;
  if constexpr (w == 2) {
    return __builtin_shuffle(v, Mask{1, 0});
  } else if constexpr (w == 4) {
    return __builtin_shuffle(v, Mask{Half % w, (1 + Half) % w, (2 + Half) % w, (3 + Half) % w});
  } else if constexpr (w == 8) {
    return __builtin_shuffle(v, Mask{Half % w, (1 + Half) % w, (2 + Half) % w, (3 + Half) % w, (4 + Half) % w,
                                     (5 + Half) % w, (6 + Half) % w, (7 + Half) % w});
  } else {
    static_assert(w == 16);
    return __builtin_shuffle(
        v, Mask{Half % w, (1 + Half) % w, (2 + Half) % w, (3 + Half) % w, (4 + Half) % w, (5 + Half) % w,
                (6 + Half) % w, (7 + Half) % w, (8 + Half) % w, (9 + Half) % w, (10 + Half) % w, (11 + Half) % w,
                (12 + Half) % w, (13 + Half) % w, (14 + Half) % w, (15 + Half) % w});
  }
}

// One value from the lanes of a vector, by halves, with `combine` of two vectors.
template <class T, class Combine>
RL_INLINE T fold_vector(Vector<T> v, Combine combine) {
  if constexpr (kWidth<T> >= 16) v = combine(v, rotate<T, 8>(v));
  if constexpr (kWidth<T> >= 8) v = combine(v, rotate<T, 4>(v));
  if constexpr (kWidth<T> >= 4) v = combine(v, rotate<T, 2>(v));
  v = combine(v, rotate<T, 1>(v));
  return v[0];
}

template <class T, class Combine>
RL_INLINE T fold(Vector<T>* accumulators, Combine combine) {
#pragma GCC unroll 8
  for (int half = kAccumulators / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
    for (int k = 0; k < half; ++k) accumulators[k] = combine(accumulators[k], accumulators[k + half]);
  }
  return fold_vector<T>(accumulators[0], combine);
}

// The lanes of a result of fold_rows: blocks of Half lanes of a and then of b, the first (Upper 0) or the second (Upper
// 1) block of each pair of blocks.
template <class T, int Half, int Upper>
RL_INLINE Vector<T> pick_blocks(Vector<T> a, Vector<T> b) {
  constexpr int w = kWidth<T>;
  const auto lane = [](int i) {
    const int block = i / Half, pairs = w / (2 * Half);
    return (block < pairs ? 0 : w) + (block % pairs) * 2 * Half + Upper * Half + i % Half;
  };
  using Mask = Vector<Index<T>>;
  if constexpr (w == 2) {
    return __builtin_shuffle(a, b, Mask{lane(0), lane(1)});
  } else if constexpr (w == 4) {
    return __builtin_shuffle(a, b, Mask{lane(0), lane(1), lane(2), lane(3)});
  } else if constexpr (w == 8) {
    return __builtin_shuffle(a, b, Mask{lane(0), lane(1), lane(2), lane(3), lane(4), lane(5), lane(6), lane(7)});
  } else {
    static_assert(w == 16);
    return __builtin_shuffle(a, b,
                             Mask{lane(0), lane(1), lane(2), lane(3), lane(4), lane(5), lane(6), lane(7), lane(8),
                                  lane(9), lane(10), lane(11), lane(12), lane(13), lane(14), lane(15)});
  }
}

template <class T, int Half, class Combine>
RL_INLINE void fold_level(Vector<T>* v, Combine combine) {
#pragma GCC unroll 8
  for (int k = 0; k < Half; ++k)
    v[k] = combine(pick_blocks<T, Half, 0>(v[2 * k], v[2 * k + 1]), pick_blocks<T, Half, 1>(v[2 * k], v[2 * k + 1]));
}

// As many vectors as one has lanes: lane i of the result is what fold_vector makes of v[i], with the same bits.
template <class T, class Combine>
RL_INLINE Vector<T> fold_rows(Vector<T>* v, Combine combine) {
  if constexpr (kWidth<T> >= 16) fold_level<T, 8>(v, combine);
  if constexpr (kWidth<T> >= 8) fold_level<T, 4>(v, combine);
  if constexpr (kWidth<T> >= 4) fold_level<T, 2>(v, combine);
  fold_level<T, 1>(v, combine);
  return v[0];
}

// step(accumulator, vector) over a run of n elements read as T; `neutral` pads the tail.
template <class T, class Step>
RL_INLINE void accumulate(Vector<T>* accumulators, const T* x, int64_t n, T neutral, Step step) {
  int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) {
#pragma GCC unroll 16
    for (int k = 0; k < kAccumulators; ++k) accumulators[k] = step(accumulators[k], load(x + i + k * kWidth<T>));
  }
  const int rest = static_cast<int>(n - i);
  if (rest == 0) return;
  const int full = rest / kWidth<T>, part = rest % kWidth<T>;
#pragma GCC unroll 16
  for (int k = 0; k < kAccumulators; ++k) {
    if (k < full)
      accumulators[k] = step(accumulators[k], load(x + i + k * kWidth<T>));
    else if (k == full && part != 0)
      accumulators[k] = step(accumulators[k], load_part(x + i + k * kWidth<T>, part, neutral));
  }
}

// body(row, values, count): what accumulate and fold make of `rows` runs of n elements, in groups.
template <class T, class Step, class Combine, class Body>
RL_INLINE void accumulate_rows(const T* x, int64_t stride, int64_t rows, int64_t n, T start, T neutral, Step step,
                               Combine combine, Body body) {
  for (int64_t r = 0; r < rows; r += kWidth<T>) {
    const int count = rows - r < kWidth<T> ? static_cast<int>(rows - r) : kWidth<T>;
    Vector<T> sums[kWidth<T>];
    for (int i = 0; i < count; ++i) {
      const T* row = x + (r + i) * stride;
      if (n <= kWidth<T>) {  // the other accumulators would stay as they are
        const Vector<T> first = n == kWidth<T> ? load(row) : load_part(row, static_cast<int>(n), neutral);
        sums[i] = combine(step(splat(start), first), splat(start));
        continue;
      }
      Vector<T> lanes[kAccumulators];
      for (Vector<T>& lane : lanes) lane = splat(start);
      accumulate(lanes, row, n, neutral, step);
#pragma GCC unroll 8
      for (int half = kAccumulators / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
        for (int k = 0; k < half; ++k) lanes[k] = combine(lanes[k], lanes[k + half]);
      }
      sums[i] = lanes[0];
    }
    for (int i = count; i < kWidth<T>; ++i) sums[i] = splat(start);
    T values[kWidth<T>];
    store(values, fold_rows<T>(sums, combine));
    body(r, values, count);
  }
}

// The same as accumulate with elements read as doubles.
template <class T, class Step>
RL_INLINE void accumulate_wide(Vector<double>* accumulators, const T* x, int64_t n, double neutral, Step step) {
  int64_t i = 0;
  for (; i + kLanes<double> <= n; i += kLanes<double>) {
#pragma GCC unroll 16
    for (int k = 0; k < kAccumulators; ++k) {
      accumulators[k] = step(accumulators[k], load_wide(x + i + k * kWidth<double>));
    }
  }
  const int rest = static_cast<int>(n - i);
  if (rest == 0) return;
  const int full = rest / kWidth<double>, part = rest % kWidth<double>;
#pragma GCC unroll 16
  for (int k = 0; k < kAccumulators; ++k) {
    const T* at = x + i + k * kWidth<double>;
    if (k < full)
      accumulators[k] = step(accumulators[k], load_wide(at));
    else if (k == full && part != 0)
      accumulators[k] = step(accumulators[k], load_wide_part(at, part, neutral));
  }
}

}  // namespace
}  // namespace rl
