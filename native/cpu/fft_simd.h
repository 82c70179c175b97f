// Vectors of numbers of several transforms: their order changed in registers, and the butterflies of the passes. Only
// for files compiled once per instruction set.
#pragma once

#include <utility>

#include "cpu/fft_plan.h"
#include "cpu/reduce_simd.h"

namespace rl {
namespace {

template <class T>
RL_INLINE Vector<T> load_some(const T* p, int64_t count) {
  Vector<T> v = {};
  std::memcpy(&v, p, static_cast<size_t>(count) * sizeof(T));
  return v;
}

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

// rows[i][j] <-> rows[j][i], by exchanging ever larger blocks
template <class T, int kHalf = 1>
RL_INLINE void transpose(Vector<T>* rows) {
  constexpr int w = kWidth<T>;
  if constexpr (kHalf < w) {
    const auto low = lanes_of<T>([](int j) constexpr { return (j & kHalf) ? w + j - kHalf : j; });
    const auto high = lanes_of<T>([](int j) constexpr { return (j & kHalf) ? w + j : j + kHalf; });
#pragma GCC unroll 16
    for (int i = 0; i < w; ++i) {
      if (i & kHalf) continue;
      const Vector<T> a = rows[i], b = rows[i + kHalf];
      rows[i] = __builtin_shuffle(a, b, low);
      rows[i + kHalf] = __builtin_shuffle(a, b, high);
    }
    transpose<T, 2 * kHalf>(rows);
  }
}
template <class T>
RL_INLINE void split_pairs(Vector<T> a, Vector<T> b, Vector<T>* even, Vector<T>* odd) {
  *even = __builtin_shuffle(a, b, lanes_of<T>([](int j) constexpr { return 2 * j; }));
  *odd = __builtin_shuffle(a, b, lanes_of<T>([](int j) constexpr { return 2 * j + 1; }));
}
template <class T>
RL_INLINE void join_pairs(Vector<T> even, Vector<T> odd, Vector<T>* a, Vector<T>* b) {
  constexpr int w = kWidth<T>;
  *a = __builtin_shuffle(even, odd, lanes_of<T>([](int j) constexpr { return j / 2 + (j & 1) * w; }));
  *b = __builtin_shuffle(even, odd, lanes_of<T>([](int j) constexpr { return w / 2 + j / 2 + (j & 1) * w; }));
}

// ---- butterflies

template <class T>
struct Pair {
  Vector<T> re, im;
};
template <class T>
RL_INLINE Pair<T> operator+(Pair<T> a, Pair<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
RL_INLINE Pair<T> operator-(Pair<T> a, Pair<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T>
RL_INLINE Pair<T> times(Pair<T> a, T re, T im) {
  return {a.re * re - a.im * im, a.re * im + a.im * re};
}
template <class T>
RL_INLINE Pair<T> times(Pair<T> a, Pair<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class T>
RL_INLINE Pair<T> times_minus_i(Pair<T> a) {
  return {a.im, -a.re};
}

template <class T>
RL_INLINE void butterfly4(Pair<T>& a, Pair<T>& b, Pair<T>& c, Pair<T>& d) {
  const Pair<T> s = a + c, t = a - c, u = b + d, v = times_minus_i(b - d);
  a = s + u;
  b = t + v;
  c = s - u;
  d = t - v;
}

// kRadix values to their transform; roots: cos and sin of 2 pi j / kRadix.
template <class T, int kRadix>
RL_INLINE void butterfly(Pair<T>* a, const T* roots) {
  if constexpr (kRadix == 2) {
    const Pair<T> t = a[0];
    a[0] = t + a[1];
    a[1] = t - a[1];
  } else if constexpr (kRadix == 3) {
    constexpr T sine = static_cast<T>(0.86602540378443864676);
    const Pair<T> sum = a[1] + a[2], d = a[1] - a[2];
    const Pair<T> middle = {a[0].re - sum.re * T(0.5), a[0].im - sum.im * T(0.5)};
    const Vector<T> re = d.im * sine, im = d.re * sine;
    a[0] = a[0] + sum;
    a[1] = {middle.re + re, middle.im - im};
    a[2] = {middle.re - re, middle.im + im};
  } else if constexpr (kRadix == 4) {
    butterfly4(a[0], a[1], a[2], a[3]);
  } else if constexpr (kRadix == 16) {
    constexpr T r = static_cast<T>(0.70710678118654752440);
    constexpr T c = static_cast<T>(0.92387953251128675613), s = static_cast<T>(0.38268343236508977173);
    butterfly4(a[0], a[4], a[8], a[12]);
    butterfly4(a[1], a[5], a[9], a[13]);
    butterfly4(a[2], a[6], a[10], a[14]);
    butterfly4(a[3], a[7], a[11], a[15]);
    a[5] = times(a[5], c, -s);
    a[6] = {(a[6].re + a[6].im) * r, (a[6].im - a[6].re) * r};
    a[7] = times(a[7], s, -c);
    a[9] = {(a[9].re + a[9].im) * r, (a[9].im - a[9].re) * r};
    a[10] = times_minus_i(a[10]);
    a[11] = {(a[11].im - a[11].re) * r, (a[11].re + a[11].im) * -r};
    a[13] = times(a[13], s, -c);
    a[14] = {(a[14].im - a[14].re) * r, (a[14].re + a[14].im) * -r};
    a[15] = times(a[15], -c, s);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) butterfly4(a[4 * j], a[4 * j + 1], a[4 * j + 2], a[4 * j + 3]);
    // The result k stands at 4 (k % 4) + k / 4.
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
#pragma GCC unroll 4
      for (int j = i + 1; j < 4; ++j) {
        const Pair<T> t = a[4 * i + j];
        a[4 * i + j] = a[4 * j + i];
        a[4 * j + i] = t;
      }
    }
  } else if constexpr (kRadix == 8) {
    constexpr T r = static_cast<T>(0.70710678118654752440);
    butterfly4(a[0], a[2], a[4], a[6]);
    butterfly4(a[1], a[3], a[5], a[7]);
    const Pair<T> b1 = {(a[3].re + a[3].im) * r, (a[3].im - a[3].re) * r};
    const Pair<T> b2 = times_minus_i(a[5]);
    const Pair<T> b3 = {(a[7].im - a[7].re) * r, (a[7].re + a[7].im) * -r};
    const Pair<T> e0 = a[0], e1 = a[2], e2 = a[4], e3 = a[6], b0 = a[1];
    a[0] = e0 + b0;
    a[1] = e1 + b1;
    a[2] = e2 + b2;
    a[3] = e3 + b3;
    a[4] = e0 - b0;
    a[5] = e1 - b1;
    a[6] = e2 - b2;
    a[7] = e3 - b3;
  } else {
    constexpr int half = kRadix / 2;
    Pair<T> sum[half + 1], difference[half + 1], total = a[0];
#pragma GCC unroll 8
    for (int j = 1; j <= half; ++j) {
      sum[j] = a[j] + a[kRadix - j];
      difference[j] = a[j] - a[kRadix - j];
      total = total + sum[j];
    }
#pragma GCC unroll 8
    for (int k = 1; k <= half; ++k) {
      Pair<T> u = a[0], v = {};
#pragma GCC unroll 8
      for (int j = 1; j <= half; ++j) {
        const T c = roots[j * k % kRadix], s = roots[kRadix + j * k % kRadix];
        u.re += sum[j].re * c;
        u.im += sum[j].im * c;
        v.re += difference[j].re * s;
        v.im += difference[j].im * s;
      }
      a[k] = {u.re + v.im, u.im - v.re};
      a[kRadix - k] = {u.re - v.im, u.im + v.re};
    }
    a[0] = total;
  }
}

// The same for a radix that is not known at compile time.
template <class T>
void butterfly_of(int radix, Pair<T>* a, const T* roots) {
  const int half = radix / 2;
  Pair<T> sum[kFftLargestPrime / 2 + 1], difference[kFftLargestPrime / 2 + 1], total = a[0];
  for (int j = 1; j <= half; ++j) {
    sum[j] = a[j] + a[radix - j];
    difference[j] = a[j] - a[radix - j];
    total = total + sum[j];
  }
  for (int k = 1; k <= half; ++k) {
    Pair<T> u = a[0], v = {};
    int at = 0;
    for (int j = 1; j <= half; ++j) {
      at += k;
      if (at >= radix) at -= radix;
      const T c = roots[at], s = roots[radix + at];
      u.re += sum[j].re * c;
      u.im += sum[j].im * c;
      v.re += difference[j].re * s;
      v.im += difference[j].im * s;
    }
    a[k] = {u.re + v.im, u.im - v.re};
    a[radix - k] = {u.re - v.im, u.im + v.re};
  }
  a[0] = total;
}

}  // namespace
}  // namespace rl
