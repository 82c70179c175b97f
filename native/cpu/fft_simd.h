// Vectors of numbers of several transforms: their order changed in registers, and the butterflies of the passes. Only
// for files compiled once per instruction set.
#pragma once

#include "cpu/fft_plan.h"
#include "cpu/transpose_simd.h"

namespace rl {
namespace {

template <class T>
RL_INLINE Vector<T> load_some(const T* p, int64_t count) {
  Vector<T> v = {};
  std::memcpy(&v, p, static_cast<size_t>(count) * sizeof(T));
  return v;
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

// The same within groups alone, which is cheaper: lane j then belongs to number folded(j) of the 2 w / 2 in memory.
template <class T>
RL_INLINE constexpr int folded(int j) {
  constexpr int half = kGroup<T> / 2;
  const int g = j / kGroup<T>, r = j % kGroup<T>;
  return r < half ? g * half + r : kWidth<T> / 2 + g * half + r - half;
}
template <class T>
RL_INLINE constexpr int unfolded(int number) {
  constexpr int half = kGroup<T> / 2, middle = kWidth<T> / 2;
  const int n = number % middle;
  return n / half * kGroup<T> + n % half + (number < middle ? 0 : half);
}
template <class T>
RL_INLINE void split_folded(Vector<T> a, Vector<T> b, Vector<T>* even, Vector<T>* odd) {
  *even = __builtin_shuffle(a, b, lanes_of<T>([](int j) constexpr {
                              constexpr int n = kGroup<T>, half = n / 2;
                              return j / n * n + j % half * 2 + (j % n >= half ? kWidth<T> : 0);
                            }));
  *odd = __builtin_shuffle(a, b, lanes_of<T>([](int j) constexpr {
                             constexpr int n = kGroup<T>, half = n / 2;
                             return j / n * n + j % half * 2 + 1 + (j % n >= half ? kWidth<T> : 0);
                           }));
}
template <class T>
RL_INLINE void join_folded(Vector<T> even, Vector<T> odd, Vector<T>* a, Vector<T>* b) {
  *a = interleave<T, 1, false>(even, odd);
  *b = interleave<T, 1, true>(even, odd);
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

// kRadix values that read(k) gives to their transform, to write(k, value); few of them are in registers at once.
// roots: cos and sin of 2 pi j / kRadix.
template <class T, int kRadix, class Read, class Write>
RL_INLINE void butterfly(Read read, Write write, const T* roots) {
  Pair<T> a[kRadix];
  if constexpr (kRadix == 8) {
    constexpr T r = static_cast<T>(0.70710678118654752440);
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
#pragma GCC unroll 4
      for (int k = 0; k < 8; k += 2) a[j + k] = read(j + k);
      butterfly4(a[j], a[j + 2], a[j + 4], a[j + 6]);
    }
    a[3] = {(a[3].re + a[3].im) * r, (a[3].im - a[3].re) * r};
    a[5] = times_minus_i(a[5]);
    a[7] = {(a[7].im - a[7].re) * r, (a[7].re + a[7].im) * -r};
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      write(k, a[2 * k] + a[2 * k + 1]);
      write(k + 4, a[2 * k] - a[2 * k + 1]);
    }
  } else if constexpr (kRadix == 16) {
    constexpr T r = static_cast<T>(0.70710678118654752440);
    constexpr T c = static_cast<T>(0.92387953251128675613), s = static_cast<T>(0.38268343236508977173);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
#pragma GCC unroll 4
      for (int k = 0; k < 16; k += 4) a[j + k] = read(j + k);
      butterfly4(a[j], a[j + 4], a[j + 8], a[j + 12]);
    }
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
    for (int k = 0; k < 4; ++k) {
      butterfly4(a[4 * k], a[4 * k + 1], a[4 * k + 2], a[4 * k + 3]);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) write(k + 4 * j, a[4 * k + j]);
    }
  } else {
#pragma GCC unroll 16
    for (int k = 0; k < kRadix; ++k) a[k] = read(k);
    if constexpr (kRadix == 2) {
      write(0, a[0] + a[1]);
      write(1, a[0] - a[1]);
    } else if constexpr (kRadix == 3) {
      constexpr T sine = static_cast<T>(0.86602540378443864676);
      const Pair<T> sum = a[1] + a[2], d = a[1] - a[2];
      const Pair<T> middle = {a[0].re - sum.re * T(0.5), a[0].im - sum.im * T(0.5)};
      const Vector<T> re = d.im * sine, im = d.re * sine;
      write(0, a[0] + sum);
      write(1, Pair<T>{middle.re + re, middle.im - im});
      write(2, Pair<T>{middle.re - re, middle.im + im});
    } else if constexpr (kRadix == 4) {
      butterfly4(a[0], a[1], a[2], a[3]);
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) write(k, a[k]);
    } else {
      constexpr int half = kRadix / 2;
      Pair<T> sum[half + 1], difference[half + 1], total = a[0];
#pragma GCC unroll 8
      for (int j = 1; j <= half; ++j) {
        sum[j] = a[j] + a[kRadix - j];
        difference[j] = a[j] - a[kRadix - j];
        total = total + sum[j];
      }
      write(0, total);
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
        write(k, Pair<T>{u.re + v.im, u.im - v.re});
        write(kRadix - k, Pair<T>{u.re - v.im, u.im + v.re});
      }
    }
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
