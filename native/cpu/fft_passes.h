// Passes of Stockham's algorithm over vectors that hold one number of several transforms: what the first one reads and
// the last one writes may be memory of another order. Only for files compiled once per instruction set.
#pragma once

#include <type_traits>

#include "cpu/fft_simd.h"

namespace rl {
namespace {

// ---- where a pass reads and writes: element i of the transforms, in all lanes. A place is that of an element, and
// unit(k) is the way from one to the k-th next.

template <class T>
struct FromBuffer {
  const Vector<T>* x;
  RL_INLINE const Vector<T>* place(int64_t i) const { return x + 2 * i; }
  RL_INLINE int64_t unit(int64_t k) const { return 2 * k; }
  RL_INLINE Pair<T> read(const Vector<T>* p) const { return {p[0], p[1]}; }
};
template <class T>
struct ToBuffer {
  Vector<T>* y;
  RL_INLINE Vector<T>* place(int64_t i) const { return y + 2 * i; }
  RL_INLINE int64_t unit(int64_t k) const { return 2 * k; }
  RL_INLINE void write(Vector<T>* p, Pair<T> v) const {
    p[0] = v.re;
    p[1] = v.im;
  }
};

// Complex numbers at p, those of all lanes side by side, in folded order; parts change places when `flip` is set.
template <class T>
RL_INLINE Pair<T> load_complex(const T* p, bool flip) {
  const Vector<T> a = load(p), b = load(p + kWidth<T>);
  Pair<T> v;
  if (flip)
    split_folded<T>(a, b, &v.im, &v.re);
  else
    split_folded<T>(a, b, &v.re, &v.im);
  return v;
}
template <class T>
RL_INLINE void store_complex(T* p, Pair<T> v, bool flip) {
  Vector<T> a, b;
  if (flip)
    join_folded<T>(v.im, v.re, &a, &b);
  else
    join_folded<T>(v.re, v.im, &a, &b);
  store(p, a);
  store(p + kWidth<T>, b);
}

// Lanes that are neighbours in memory, in folded order
template <class T>
struct FromColumns {
  const T* p;
  int64_t step;
  bool flip;
  RL_INLINE const T* place(int64_t i) const { return p + i * step; }
  RL_INLINE int64_t unit(int64_t k) const { return k * step; }
  RL_INLINE Pair<T> read(const T* at) const { return load_complex<T>(at, flip); }
};
template <class T>
struct ToColumns {
  T* p;
  int64_t step;
  bool flip;
  T scale;
  RL_INLINE T* place(int64_t i) const { return p + i * step; }
  RL_INLINE int64_t unit(int64_t k) const { return k * step; }
  RL_INLINE void write(T* at, Pair<T> v) const { store_complex<T>(at, {v.re * scale, v.im * scale}, flip); }
};
// A line whose vectors follow one another
template <class T>
struct ToLine {
  T* p;
  bool flip;
  T scale;
  RL_INLINE T* place(int64_t i) const { return p + 2 * kWidth<T> * i; }
  RL_INLINE int64_t unit(int64_t k) const { return 2 * kWidth<T> * k; }
  RL_INLINE void write(T* at, Pair<T> v) const { store_complex<T>(at, {v.re * scale, v.im * scale}, flip); }
};
// Columns [element][lane] that are the next ones of a single line, multiplied by the factors between its two steps
template <class T>
struct ToMiddle {
  Vector<T>* y;
  const T *lane_factors, *block_factors;
  RL_INLINE int64_t place(int64_t i) const { return i; }
  RL_INLINE int64_t unit(int64_t k) const { return k; }
  RL_INLINE void write(int64_t i, Pair<T> v) const {
    constexpr int w = kWidth<T>;
    const Pair<T> lane = {load(lane_factors + 2 * w * i), load(lane_factors + 2 * w * i + w)};
    const Pair<T> r = times(v, times(lane, block_factors[2 * i], block_factors[2 * i + 1]));
    y[2 * i] = r.re;
    y[2 * i + 1] = r.im;
  }
};

// ---- one pass

template <class T, int kRadix, bool kTwiddled, class In, class Out>
RL_INLINE void pass_block(In in, Out out, int64_t from, int64_t to, int64_t m, int64_t s, const T* w, const T* roots) {
  const int64_t in_step = in.unit(s * m), out_step = out.unit(s);
  for (int64_t q = 0; q < s; ++q) {
    const auto x = in.place(from + q);
    const auto y = out.place(to + q);
    butterfly<T, kRadix>([&](int k) __attribute__((always_inline)) { return in.read(x + k * in_step); },
                         [&](int k, Pair<T> v) __attribute__((always_inline)) {
                           out.write(y + k * out_step, kTwiddled && k > 0 ? times(v, w[2 * k - 2], w[2 * k - 1]) : v);
                         },
                         roots);
  }
}

template <class T, int kRadix, class In, class Out>
void run_pass(const FftPass& pass, In in, Out out) {
  const T *w = static_cast<const T*>(pass.twiddles), *roots = static_cast<const T*>(pass.roots);
  const int64_t m = pass.m, s = pass.s;
  if constexpr (!std::is_same_v<Out, ToBuffer<T>>) {  // the last pass, and often the only one
    if (s == 1)
      pass_block<T, kRadix, false>(in, out, 0, 0, 1, 1, w, roots);
    else
      pass_block<T, kRadix, false>(in, out, 0, 0, 1, s, w, roots);
    return;
  }
  pass_block<T, kRadix, false>(in, out, 0, 0, m, s, w, roots);
  for (int64_t p = 1; p < m; ++p)
    pass_block<T, kRadix, true>(in, out, s * p, s * kRadix * p, m, s, w + 2 * (kRadix - 1) * p, roots);
}

template <class T>
void run_pass_of(const FftPass& pass, const Vector<T>* x, Vector<T>* y) {
  const T *w = static_cast<const T*>(pass.twiddles), *roots = static_cast<const T*>(pass.roots);
  const int64_t m = pass.m, s = pass.s;
  const int radix = pass.radix;
  for (int64_t p = 0; p < m; ++p) {
    for (int64_t q = 0; q < s; ++q) {
      Pair<T> a[kFftLargestPrime];
      for (int k = 0; k < radix; ++k) a[k] = {x[2 * (q + s * (p + m * k))], x[2 * (q + s * (p + m * k)) + 1]};
      butterfly_of<T>(radix, a, roots);
      for (int k = 0; k < radix; ++k) {
        const T* t = w + 2 * ((radix - 1) * p + k - 1);
        const Pair<T> b = k > 0 ? times(a[k], t[0], t[1]) : a[k];
        y[2 * (q + s * (radix * p + k))] = b.re;
        y[2 * (q + s * (radix * p + k)) + 1] = b.im;
      }
    }
  }
}

// A pass of a common radix; false of another one.
template <class T, class In, class Out>
RL_INLINE bool run_common(const FftPass& pass, In in, Out out) {
  switch (pass.radix) {
    case 2:
      run_pass<T, 2>(pass, in, out);
      return true;
    case 3:
      run_pass<T, 3>(pass, in, out);
      return true;
    case 4:
      run_pass<T, 4>(pass, in, out);
      return true;
    case 5:
      run_pass<T, 5>(pass, in, out);
      return true;
    case 7:
      run_pass<T, 7>(pass, in, out);
      return true;
    case 8:
      run_pass<T, 8>(pass, in, out);
      return true;
    case 16:
      run_pass<T, 16>(pass, in, out);
      return true;
    default:
      return false;
  }
}

template <class T>
void run_between(const FftPass& pass, const Vector<T>* x, Vector<T>* y) {
  const FromBuffer<T> in{x};
  const ToBuffer<T> out{y};
  if (run_common<T>(pass, in, out)) return;
  switch (pass.radix) {
    case 11:
      run_pass<T, 11>(pass, in, out);
      break;
    case 13:
      run_pass<T, 13>(pass, in, out);
      break;
    default:
      run_pass_of<T>(pass, x, y);
  }
}

// ---- whole transforms

// Passes [first, last) of what is in a, with b as second buffer; returns the one that holds the result.
template <class T>
Vector<T>* run_passes(const FftLanePlan& plan, int first, int last, Vector<T>* a, Vector<T>* b) {
  for (int i = first; i < last; ++i) {
    run_between<T>(plan.passes[i], a, b);
    Vector<T>* const t = a;
    a = b;
    b = t;
  }
  return a;
}

// Transforms what is in a, with b as second buffer; returns the one that holds the result.
template <class T>
Vector<T>* run_lanes(const FftLanePlan& plan, Vector<T>* a, Vector<T>* b) {
  return run_passes<T>(plan, 0, plan.count, a, b);
}

// Vectors of 16 bytes, which few machines are left with, take the passes between buffers alone: less code.
constexpr bool kFused = kVectorBytes > 16;

// The first pass of what `in` reads, into a; returns how many passes are done.
template <class T, class In>
int run_first(const FftLanePlan& plan, In in, Vector<T>* a) {
  if constexpr (kFused)
    if (plan.count > 0 && run_common<T>(plan.passes[0], in, ToBuffer<T>{a})) return 1;
  const ToBuffer<T> out{a};
  for (int64_t i = 0; i < plan.n; ++i) out.write(out.place(i), in.read(in.place(i)));
  return 0;
}

// Passes from `first` on of what is in a, the last one written by `out`.
template <class T, class Out>
void run_last(const FftLanePlan& plan, int first, Vector<T>* a, Vector<T>* b, Out out) {
  const int last = plan.count - 1;
  if (first <= last) {
    const Vector<T>* x = run_passes<T>(plan, first, last, a, b);
    if constexpr (kFused || std::is_same_v<Out, ToBuffer<T>>)
      if (run_common<T>(plan.passes[last], FromBuffer<T>{x}, out)) return;
    Vector<T>* y = x == a ? b : a;
    run_between<T>(plan.passes[last], x, y);
    a = y;
  }
  const FromBuffer<T> in{a};
  for (int64_t i = 0; i < plan.n; ++i) out.write(out.place(i), in.read(in.place(i)));
}

}  // namespace
}  // namespace rl
