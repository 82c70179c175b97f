// Loops of the Fourier transforms. A vector holds one number of several transforms ("lanes"), so that the passes of the
// algorithm are plain arithmetic on vectors; numbers are brought into that order and back by transposing blocks in
// registers. An inverse transform is a forward one with real and imaginary parts exchanged on the way in and out.
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

template <class T, int kRadix, bool kTwiddled>
RL_INLINE void pass_block(const Vector<T>* x, Vector<T>* y, int64_t m, int64_t s, const T* w, const T* roots) {
  for (int64_t q = 0; q < s; ++q) {
    Pair<T> a[kRadix];
#pragma GCC unroll 16
    for (int k = 0; k < kRadix; ++k) a[k] = {x[2 * (q + s * m * k)], x[2 * (q + s * m * k) + 1]};
    butterfly<T, kRadix>(a, roots);
#pragma GCC unroll 16
    for (int k = 0; k < kRadix; ++k) {
      Pair<T> b = a[k];
      if (kTwiddled && k > 0) b = times(b, w[2 * k - 2], w[2 * k - 1]);
      y[2 * (q + s * k)] = b.re;
      y[2 * (q + s * k) + 1] = b.im;
    }
  }
}

template <class T, int kRadix>
void run_pass(const FftPass& pass, const Vector<T>* x, Vector<T>* y) {
  const T *w = static_cast<const T*>(pass.twiddles), *roots = static_cast<const T*>(pass.roots);
  const int64_t m = pass.m, s = pass.s;
  pass_block<T, kRadix, false>(x, y, m, s, w, roots);
  for (int64_t p = 1; p < m; ++p) {
    pass_block<T, kRadix, true>(x + 2 * s * p, y + 2 * s * kRadix * p, m, s, w + 2 * (kRadix - 1) * p, roots);
  }
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

// Transforms what is in a, with b as second buffer; returns the one that holds the result.
template <class T>
Vector<T>* run_lanes(const FftLanePlan& plan, Vector<T>* a, Vector<T>* b) {
  for (int i = 0; i < plan.count; ++i) {
    const FftPass& pass = plan.passes[i];
    switch (pass.radix) {
      case 2:
        run_pass<T, 2>(pass, a, b);
        break;
      case 3:
        run_pass<T, 3>(pass, a, b);
        break;
      case 4:
        run_pass<T, 4>(pass, a, b);
        break;
      case 5:
        run_pass<T, 5>(pass, a, b);
        break;
      case 7:
        run_pass<T, 7>(pass, a, b);
        break;
      case 8:
        run_pass<T, 8>(pass, a, b);
        break;
      case 11:
        run_pass<T, 11>(pass, a, b);
        break;
      case 13:
        run_pass<T, 13>(pass, a, b);
        break;
      default:
        run_pass_of<T>(pass, a, b);
    }
    Vector<T>* const t = a;
    a = b;
    b = t;
  }
  return a;
}

// ---- into lanes and back

// Whether lines of `count` numbers follow one another without gaps.
RL_INLINE bool are_dense(const int64_t* at, int lines, int64_t count) {
  for (int l = 1; l < lines; ++l)
    if (at[l] != at[0] + l * count) return false;
  return true;
}

// `count` numbers of every line, contiguous in it, to work[number][line]; `flip` is 1 to exchange parts.
template <class T>
RL_INLINE void load_lines(const FftGroup& g, int64_t count, int flip, Vector<T>* work) {
  constexpr int w = kWidth<T>;
  const T* in = static_cast<const T*>(g.in);
  // A vector may reach past its line while it ends before the last one does: what is there is read and not used.
  const int64_t end = g.in_at[g.lines - 1] + count;
  for (int64_t c = 0; c < count; c += w) {
    Vector<T> rows[w];
    const int64_t some = count - c;
    if (some >= w && g.lines == w) {
#pragma GCC unroll 16
      for (int l = 0; l < w; ++l) rows[l] = load(in + g.in_at[l] + c);
    } else {
      for (int l = 0; l < w; ++l) {
        if (l >= g.lines)
          rows[l] = Vector<T>{};
        else if (g.in_at[l] + c + w <= end)
          rows[l] = load(in + g.in_at[l] + c);
        else
          rows[l] = load_some(in + g.in_at[l] + c, some < w ? some : w);
      }
    }
    transpose<T>(rows);
#pragma GCC unroll 16
    for (int j = 0; j < w; ++j) work[(c + j) ^ flip] = rows[j];
  }
}

// One vector of each line, from number c on. Where lines are dense a vector that is too long spoils the start of the
// next ones, which are written after it.
template <class T>
RL_INLINE void store_chunk(const FftGroup& g, int64_t count, int64_t c, int flip, bool dense, const Vector<T>* work) {
  constexpr int w = kWidth<T>;
  T* out = static_cast<T*>(g.out);
  const T scale = static_cast<T>(g.scale);
  const int64_t some = count - c;
  Vector<T> rows[w];
#pragma GCC unroll 16
  for (int j = 0; j < w; ++j) rows[j] = work[(c + j) ^ flip] * scale;
  transpose<T>(rows);
  if (some >= w && g.lines == w) {
#pragma GCC unroll 16
    for (int l = 0; l < w; ++l) store(out + g.out_at[l] + c, rows[l]);
    return;
  }
  for (int l = 0; l < w && l < g.lines; ++l) {
    if (dense && l * count + c + w <= g.lines * count)
      store(out + g.out_at[l] + c, rows[l]);
    else
      std::memcpy(out + g.out_at[l] + c, &rows[l], static_cast<size_t>(some < w ? some : w) * sizeof(T));
  }
}

template <class T>
RL_INLINE void store_lines(const FftGroup& g, int64_t count, int flip, const Vector<T>* work) {
  constexpr int w = kWidth<T>;
  const bool dense = are_dense(g.out_at, g.lines, count);
  const int64_t whole = count / w * w;
  // The ends of lines first: they spoil starts of the next.
  if (whole < count) store_chunk<T>(g, count, whole, flip, dense, work);
  for (int64_t c = 0; c < whole; c += w) store_chunk<T>(g, count, c, flip, dense, work);
}

template <class T>
bool neighbours(const int64_t* at, int lines) {
  if (lines != kWidth<T>) return false;
  for (int l = 1; l < lines; ++l)
    if (at[l] != at[0] + 2 * l) return false;
  return true;
}

template <class T>
void load_group(const FftGroup& g, int64_t n, Vector<T>* work) {
  constexpr int w = kWidth<T>;
  const int flip = g.inverse;
  const T* in = static_cast<const T*>(g.in);
  if (g.in_step == 2) return load_lines<T>(g, 2 * n, flip, work);
  if (neighbours<T>(g.in_at, g.lines)) {
    for (int64_t k = 0; k < n; ++k) {
      const T* p = in + g.in_at[0] + k * g.in_step;
      Vector<T> re, im;
      split_pairs<T>(load(p), load(p + w), &re, &im);
      work[2 * k + flip] = re;
      work[2 * k + 1 - flip] = im;
    }
    return;
  }
  for (int64_t k = 0; k < n; ++k) {
    Vector<T> re = {}, im = {};
    for (int l = 0; l < g.lines; ++l) {
      const T* p = in + g.in_at[l] + k * g.in_step;
      re[l] = p[0];
      im[l] = p[1];
    }
    work[2 * k + flip] = re;
    work[2 * k + 1 - flip] = im;
  }
}

template <class T>
void store_group(const FftGroup& g, int64_t n, const Vector<T>* work) {
  constexpr int w = kWidth<T>;
  const int flip = g.inverse;
  T* out = static_cast<T*>(g.out);
  const T scale = static_cast<T>(g.scale);
  if (g.out_step == 2) return store_lines<T>(g, 2 * n, flip, work);
  const bool together = neighbours<T>(g.out_at, g.lines);
  for (int64_t k = 0; k < n; ++k) {
    const Vector<T> re = work[2 * k + flip] * scale, im = work[2 * k + 1 - flip] * scale;
    if (together) {
      T* p = out + g.out_at[0] + k * g.out_step;
      Vector<T> a, b;
      join_pairs<T>(re, im, &a, &b);
      store(p, a);
      store(p + w, b);
    } else {
      for (int l = 0; l < g.lines; ++l) {
        T* p = out + g.out_at[l] + k * g.out_step;
        p[0] = re[l];
        p[1] = im[l];
      }
    }
  }
}

// The two buffers of a transform of n elements in `work`
template <class T>
struct Buffers {
  Vector<T>*a, *b;
  Buffers(void* work, int64_t n) : a(static_cast<Vector<T>*>(work)), b(a + 2 * n + kWidth<T>) {}
};

template <class T>
void lanes(const FftPlan& plan, const FftGroup& g, void* work) {
  const Buffers<T> buffers(work, plan.n);
  load_group<T>(g, plan.n, buffers.a);
  store_group<T>(g, plan.n, run_lanes<T>(plan.lanes, buffers.a, buffers.b));
}

// z = transform of n complex numbers that are pairs of 2 n real ones. With a = z[k], b = conj(z[n - k]), the transform
// of the even ones is (a + b) / 2, of the odd ones (a - b) / 2i.
template <class T>
void lanes_real(const FftPlan& plan, const FftGroup& g, void* work) {
  const int64_t n = plan.n;
  const Buffers<T> buffers(work, n + 1);
  const T* w = static_cast<const T*>(plan.halves);
  load_lines<T>(g, 2 * n, 0, buffers.a);
  Vector<T>* z = run_lanes<T>(plan.lanes, buffers.a, buffers.b);
  const Vector<T> first = z[0], second = z[1];
  z[0] = first + second;
  z[1] = Vector<T>{};
  z[2 * n] = first - second;
  z[2 * n + 1] = Vector<T>{};
  for (int64_t k = 1; 2 * k <= n; ++k) {
    const Pair<T> a = {z[2 * k], z[2 * k + 1]}, b = {z[2 * (n - k)], -z[2 * (n - k) + 1]};
    const Pair<T> even = {(a.re + b.re) * T(0.5), (a.im + b.im) * T(0.5)};
    const Pair<T> odd = times(Pair<T>{(a.im - b.im) * T(0.5), (b.re - a.re) * T(0.5)}, w[2 * k], w[2 * k + 1]);
    z[2 * k] = even.re + odd.re;
    z[2 * k + 1] = even.im + odd.im;
    z[2 * (n - k)] = even.re - odd.re;
    z[2 * (n - k) + 1] = odd.im - even.im;
  }
  store_lines<T>(g, 2 * n + 2, 0, z);
}

template <class T>
void lanes_to_real(const FftPlan& plan, const FftGroup& g, void* work) {
  const int64_t n = plan.n;
  const Buffers<T> buffers(work, n + 1);
  const T* w = static_cast<const T*>(plan.halves);
  Vector<T>* x = buffers.a;
  load_lines<T>(g, 2 * n + 2, 0, x);
  const Vector<T> first = x[0], last = x[2 * n];
  x[1] = first + last;  // parts change places, for an inverse transform
  x[0] = first - last;
  for (int64_t k = 1; 2 * k <= n; ++k) {
    const Pair<T> a = {x[2 * k], x[2 * k + 1]}, b = {x[2 * (n - k)], -x[2 * (n - k) + 1]};
    const Pair<T> even = a + b, odd = times(a - b, w[2 * k], -w[2 * k + 1]);
    x[2 * k + 1] = even.re - odd.im;
    x[2 * k] = even.im + odd.re;
    x[2 * (n - k) + 1] = even.re + odd.im;
    x[2 * (n - k)] = odd.re - even.im;
  }
  store_lines<T>(g, 2 * n, 1, run_lanes<T>(plan.lanes, x, buffers.b));
}

// ---- a single line, in two steps

template <class T>
void columns(const FftPlan& plan, const void* in_data, bool inverse, void* middle_data, int64_t block, void* work) {
  constexpr int w = kWidth<T>;
  const int64_t n1 = plan.n1, n2 = plan.n2, start = block * w;
  const int lines = static_cast<int>(n2 - start < w ? n2 - start : w);
  int64_t at[w];
  for (int l = 0; l < w; ++l) at[l] = 2 * (start + l);
  const Buffers<T> buffers(work, n1);
  load_group<T>({in_data, nullptr, at, nullptr, 2 * n2, 0, lines, inverse, 1.0}, n1, buffers.a);
  const Vector<T>* x = run_lanes<T>(plan.first, buffers.a, buffers.b);
  Vector<T>* middle = static_cast<Vector<T>*>(middle_data) + 2 * block * ((n1 + w - 1) / w * w);
  const T* block_factors = static_cast<const T*>(plan.block_factors) + 2 * block * n1;
  const T* lane_factors = static_cast<const T*>(plan.lane_factors);
  if (block == 0) {
    for (int64_t k = 0; k < n1; ++k) {
      const Vector<T> re = load(lane_factors + 2 * w * k), im = load(lane_factors + 2 * w * k + w);
      middle[2 * k] = x[2 * k] * re - x[2 * k + 1] * im;
      middle[2 * k + 1] = x[2 * k] * im + x[2 * k + 1] * re;
    }
    return;
  }
  for (int64_t k = 0; k < n1; ++k) {
    const Pair<T> lane = {load(lane_factors + 2 * w * k), load(lane_factors + 2 * w * k + w)};
    const Pair<T> f = times(lane, block_factors[2 * k], block_factors[2 * k + 1]);
    middle[2 * k] = x[2 * k] * f.re - x[2 * k + 1] * f.im;
    middle[2 * k + 1] = x[2 * k] * f.im + x[2 * k + 1] * f.re;
  }
}

template <class T>
void rows(const FftPlan& plan, const void* middle_data, bool inverse, double scale, void* out_data, int64_t group,
          void* work) {
  constexpr int w = kWidth<T>;
  const int64_t n1 = plan.n1, n2 = plan.n2, start = group * w, padded = (n1 + w - 1) / w * w;
  const Vector<T>* middle = static_cast<const Vector<T>*>(middle_data);
  const Buffers<T> buffers(work, n2);
  for (int64_t b = 0; b < plan.blocks; ++b) {
    const Vector<T>* x = middle + 2 * (b * padded + start);
    const int64_t columns = n2 - b * w < w ? n2 - b * w : w;
    for (int part = 0; part < 2; ++part) {
      Vector<T> block[w];
#pragma GCC unroll 16
      for (int l = 0; l < w; ++l) block[l] = x[2 * l + part];
      transpose<T>(block);
      if (columns == w) {
#pragma GCC unroll 16
        for (int j = 0; j < w; ++j) buffers.a[2 * (b * w + j) + part] = block[j];
      } else {
        for (int64_t j = 0; j < columns; ++j) buffers.a[2 * (b * w + j) + part] = block[j];
      }
    }
  }
  const Vector<T>* x = run_lanes<T>(plan.second, buffers.a, buffers.b);
  int64_t at[w];
  for (int l = 0; l < w; ++l) at[l] = 2 * (start + l);
  const int lines = static_cast<int>(n1 - start < w ? n1 - start : w);
  store_group<T>({nullptr, out_data, nullptr, at, 0, 2 * n1, lines, inverse, scale}, n2, x);
}

// ---- whole lines of interleaved numbers

template <class T>
void multiply(const void* a_data, const void* b_data, void* out_data, int64_t n, double scale, bool swap_in,
              bool swap_out) {
  const T *a = static_cast<const T*>(a_data), *b = static_cast<const T*>(b_data);
  T* out = static_cast<T*>(out_data);
  const T s = static_cast<T>(scale);
  for (int64_t i = 0; i < n; ++i) {
    const T re = a[2 * i + swap_in], im = a[2 * i + !swap_in], c = b[2 * i] * s, d = b[2 * i + 1] * s;
    const T x = re * c - im * d, y = re * d + im * c;
    out[2 * i + swap_out] = x;
    out[2 * i + !swap_out] = y;
  }
}

template <class T>
void split(const FftPlan& plan, void* line) {
  const int64_t n = plan.n;
  T* z = static_cast<T*>(line);
  const T* w = static_cast<const T*>(plan.halves);
  const T first = z[0], second = z[1];
  z[0] = first + second;
  z[1] = 0;
  z[2 * n] = first - second;
  z[2 * n + 1] = 0;
  for (int64_t k = 1; 2 * k <= n; ++k) {
    const T a = z[2 * k], b = z[2 * k + 1], c = z[2 * (n - k)], d = -z[2 * (n - k) + 1];
    const T even_re = (a + c) * T(0.5), even_im = (b + d) * T(0.5), re = (b - d) * T(0.5), im = (c - a) * T(0.5);
    const T odd_re = re * w[2 * k] - im * w[2 * k + 1], odd_im = re * w[2 * k + 1] + im * w[2 * k];
    z[2 * k] = even_re + odd_re;
    z[2 * k + 1] = even_im + odd_im;
    z[2 * (n - k)] = even_re - odd_re;
    z[2 * (n - k) + 1] = odd_im - even_im;
  }
}

template <class T>
void join(const FftPlan& plan, const void* in, void* out) {
  const int64_t n = plan.n;
  const T* x = static_cast<const T*>(in);
  T* z = static_cast<T*>(out);
  const T* w = static_cast<const T*>(plan.halves);
  z[0] = x[0] + x[2 * n];
  z[1] = x[0] - x[2 * n];
  for (int64_t k = 1; 2 * k <= n; ++k) {
    const T a = x[2 * k], b = x[2 * k + 1], c = x[2 * (n - k)], d = -x[2 * (n - k) + 1];
    const T even_re = a + c, even_im = b + d, re = a - c, im = b - d;
    const T odd_re = re * w[2 * k] + im * w[2 * k + 1], odd_im = im * w[2 * k] - re * w[2 * k + 1];
    z[2 * k] = even_re - odd_im;
    z[2 * k + 1] = even_im + odd_re;
    z[2 * (n - k)] = even_re + odd_im;
    z[2 * (n - k) + 1] = odd_re - even_im;
  }
}

template <class T>
constexpr FftLoops kLoops = {kWidth<T>, lanes<T>,    lanes_real<T>, lanes_to_real<T>, columns<T>,
                             rows<T>,   multiply<T>, split<T>,      join<T>};

constexpr FftTable table = {kLoops<float>, kLoops<double>};

}  // namespace

const FftTable& RL_ISA_SYMBOL(fft_table)() { return table; }

}  // namespace rl
