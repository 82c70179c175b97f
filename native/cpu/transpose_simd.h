// Blocks of vectors transposed in registers. Only for files compiled once per instruction set.
#pragma once

#include <utility>

#include "cpu/reduce_simd.h"

namespace rl {
namespace {

template <class T>
struct Indices;
template <>
struct Indices<float> {
  typedef int32_t type __attribute__((vector_size(kVectorBytes)));
};
template <>
struct Indices<double> {
  typedef int64_t type __attribute__((vector_size(kVectorBytes)));
};

// A vector of lanes f(0), f(1), ... known at compile time
template <class T, class F, int... kLanes>
RL_INLINE typename Indices<T>::type lanes_of(F f, std::integer_sequence<int, kLanes...>) {
  return typename Indices<T>::type{f(kLanes)...};
}
template <class T, class F>
RL_INLINE typename Indices<T>::type lanes_of(F f) {
  return lanes_of<T>(f, std::make_integer_sequence<int, kWidth<T>>{});
}

// Groups of 16 bytes, within which shuffles are cheapest
template <class T>
constexpr int kGroup = 16 / static_cast<int>(sizeof(T));

// Within groups: runs of kRun numbers of a and b in turn, those of the first halves or of the second ones
template <class T, int kRun, bool kSecond>
RL_INLINE Vector<T> interleave(Vector<T> a, Vector<T> b) {
  return __builtin_shuffle(a, b, lanes_of<T>([](int j) constexpr {
                             const int g = j / kGroup<T>, r = j % kGroup<T>;
                             const int run = r / kRun, half = kSecond ? kGroup<T> / 2 : 0;
                             return g * kGroup<T> + half + run / 2 * kRun + r % kRun + (run & 1) * kWidth<T>;
                           }));
}
// Every second group of a, then of b
template <class T, bool kSecond>
RL_INLINE Vector<T> alternate(Vector<T> a, Vector<T> b) {
  return __builtin_shuffle(a, b, lanes_of<T>([](int j) constexpr {
                             const int g = 2 * (j / kGroup<T>)+(kSecond ? 1 : 0);
                             return g * kGroup<T> + j % kGroup<T>;
                           }));
}

// rows[i][j] <-> rows[j][i]: within groups, then the groups themselves
template <class T>
RL_INLINE void transpose(Vector<T>* rows) {
  constexpr int w = kWidth<T>, groups = w / kGroup<T>;
#pragma GCC unroll 16
  for (int i = 0; i < w; i += kGroup<T>) {
    Vector<T>* r = rows + i;
    if constexpr (kGroup<T> == 4) {
      const Vector<T> a = interleave<T, 1, false>(r[0], r[1]), b = interleave<T, 1, true>(r[0], r[1]);
      const Vector<T> c = interleave<T, 1, false>(r[2], r[3]), d = interleave<T, 1, true>(r[2], r[3]);
      r[0] = interleave<T, 2, false>(a, c);
      r[1] = interleave<T, 2, true>(a, c);
      r[2] = interleave<T, 2, false>(b, d);
      r[3] = interleave<T, 2, true>(b, d);
    } else {
      const Vector<T> a = r[0];
      r[0] = interleave<T, 1, false>(a, r[1]);
      r[1] = interleave<T, 1, true>(a, r[1]);
    }
  }
  if constexpr (groups == 2) {
#pragma GCC unroll 16
    for (int j = 0; j < kGroup<T>; ++j) {
      const Vector<T> a = rows[j], b = rows[j + kGroup<T>];
      rows[j] = alternate<T, false>(a, b);
      rows[j + kGroup<T>] = alternate<T, true>(a, b);
    }
  }
  if constexpr (groups == 4) {
    constexpr int g = kGroup<T>;
#pragma GCC unroll 16
    for (int j = 0; j < g; ++j) {
      const Vector<T> a = alternate<T, false>(rows[j], rows[j + g]), b = alternate<T, true>(rows[j], rows[j + g]);
      const Vector<T> c = alternate<T, false>(rows[j + 2 * g], rows[j + 3 * g]);
      const Vector<T> d = alternate<T, true>(rows[j + 2 * g], rows[j + 3 * g]);
      rows[j] = alternate<T, false>(a, c);
      rows[j + g] = alternate<T, false>(b, d);
      rows[j + 2 * g] = alternate<T, true>(a, c);
      rows[j + 3 * g] = alternate<T, true>(b, d);
    }
  }
}

}  // namespace
}  // namespace rl
