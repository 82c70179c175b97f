// Loops of the Fourier transforms. A vector holds one number of several transforms ("lanes"), so that the passes of the
// algorithm are plain arithmetic on vectors; numbers are brought into that order and back by transposing blocks in
// registers. An inverse transform is a forward one with real and imaginary parts exchanged on the way in and out.
#include "cpu/fft_passes.h"

namespace rl {
namespace {

// ---- into lanes and back

// `count` numbers of every line, contiguous in it, to work[number][line]; `flip` is 1 to exchange parts.
template <class T>
RL_INLINE void load_lines(const FftGroup& g, int64_t count, int flip, Vector<T>* work) {
  constexpr int w = kWidth<T>;
  const T* in = static_cast<const T*>(g.in);
  for (int64_t c = 0; c < count; c += w) {
    Vector<T> rows[w];
    const int64_t some = count - c;
    if (g.lines == w && some >= w) {
#pragma GCC unroll 16
      for (int l = 0; l < w; ++l) rows[l] = load(in + g.in_at[l] + c);
    } else if (g.lines == w) {
#pragma GCC unroll 16
      for (int l = 0; l < w; ++l) rows[l] = load_part(in + g.in_at[l] + c, static_cast<int>(some), T(0));
    } else {
      for (int l = 0; l < w; ++l)
        rows[l] = l < g.lines ? load_some(in + g.in_at[l] + c, some < w ? some : w) : Vector<T>{};
    }
    transpose<T>(rows);
#pragma GCC unroll 16
    for (int j = 0; j < w; ++j) work[(c + j) ^ flip] = rows[j];
  }
}

// A vector of each of the lines of `count` numbers, from number c on
template <class T>
RL_INLINE void store_chunk(const FftGroup& g, int64_t count, int64_t c, int flip, const Vector<T>* work) {
  constexpr int w = kWidth<T>;
  T* out = static_cast<T*>(g.out);
  const T scale = static_cast<T>(g.scale);
  const int64_t some = count - c;
  Vector<T> rows[w];
#pragma GCC unroll 16
  for (int j = 0; j < w; ++j) rows[j] = work[(c + j) ^ flip] * scale;
  transpose<T>(rows);
  if (g.lines == w && some >= w) {
#pragma GCC unroll 16
    for (int l = 0; l < w; ++l) store(out + g.out_at[l] + c, rows[l]);
    return;
  }
  if (g.lines == w && some == w / 2) {
#pragma GCC unroll 16
    for (int l = 0; l < w; ++l) std::memcpy(out + g.out_at[l] + c, &rows[l], sizeof(Vector<T>) / 2);
    return;
  }
  // Whole vectors where what follows is this line or the next ones of the group
  const int64_t end = g.out_dense ? g.lines * count - w : -1;
#pragma GCC unroll 16
  for (int l = 0; l < w; ++l) {
    if (l >= g.lines) break;
    if (l * count + c <= end)
      store(out + g.out_at[l] + c, rows[l]);
    else
      std::memcpy(out + g.out_at[l] + c, &rows[l], static_cast<size_t>(some < w ? some : w) * sizeof(T));
  }
}

template <class T>
RL_INLINE void store_lines(const FftGroup& g, int64_t count, int flip, const Vector<T>* work) {
  constexpr int w = kWidth<T>;
  const int64_t whole = count / w * w;
  // The ends of lines first: where nothing is between lines, whole vectors there spoil the starts of the next ones.
  if (whole < count) store_chunk<T>(g, count, whole, flip, work);
  for (int64_t c = 0; c < whole; c += w) store_chunk<T>(g, count, c, flip, work);
}

// Whether a full vector of lines begins at numbers `step` apart.
template <class T>
bool neighbours(const int64_t* at, int lines, int64_t step) {
  if (lines != kWidth<T>) return false;
  for (int l = 1; l < lines; ++l)
    if (at[l] != at[0] + step * l) return false;
  return true;
}

template <class T>
void load_group(const FftGroup& g, int64_t n, bool flip, Vector<T>* work) {
  const T* in = static_cast<const T*>(g.in);
  if (g.in_step == 2) return load_lines<T>(g, 2 * n, flip, work);
  if (neighbours<T>(g.in_at, g.lines, 2)) {
    const T* p = in + g.in_at[0];
    for (int64_t k = 0; k < n; ++k, p += g.in_step)
      split_pairs<T>(load(p), load(p + kWidth<T>), &work[2 * k + flip], &work[2 * k + !flip]);
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
    work[2 * k + !flip] = im;
  }
}

template <class T>
void store_group(const FftGroup& g, int64_t n, bool flip, const Vector<T>* work) {
  T* out = static_cast<T*>(g.out);
  const T scale = static_cast<T>(g.scale);
  if (g.out_step == 2) return store_lines<T>(g, 2 * n, flip, work);
  if (neighbours<T>(g.out_at, g.lines, 2)) {
    T* p = out + g.out_at[0];
    for (int64_t k = 0; k < n; ++k, p += g.out_step) {
      Vector<T> a, b;
      join_pairs<T>(work[2 * k + flip] * scale, work[2 * k + !flip] * scale, &a, &b);
      store(p, a);
      store(p + kWidth<T>, b);
    }
    return;
  }
  for (int64_t k = 0; k < n; ++k) {
    const Vector<T> re = work[2 * k + flip] * scale, im = work[2 * k + !flip] * scale;
    for (int l = 0; l < g.lines; ++l) {
      T* p = out + g.out_at[l] + k * g.out_step;
      p[0] = re[l];
      p[1] = im[l];
    }
  }
}

// `count` real numbers of every line
template <class T>
void load_numbers(const FftGroup& g, int64_t count, Vector<T>* work) {
  const T* in = static_cast<const T*>(g.in);
  if (g.in_step == 1) return load_lines<T>(g, count, 0, work);
  if (neighbours<T>(g.in_at, g.lines, 1)) {
    for (int64_t k = 0; k < count; ++k) work[k] = load(in + g.in_at[0] + k * g.in_step);
    return;
  }
  for (int64_t k = 0; k < count; ++k) {
    Vector<T> v = {};
    for (int l = 0; l < g.lines; ++l) v[l] = in[g.in_at[l] + k * g.in_step];
    work[k] = v;
  }
}

template <class T>
void store_numbers(const FftGroup& g, int64_t count, int flip, const Vector<T>* work) {
  T* out = static_cast<T*>(g.out);
  const T scale = static_cast<T>(g.scale);
  if (g.out_step == 1) return store_lines<T>(g, count, flip, work);
  const bool together = neighbours<T>(g.out_at, g.lines, 1);
  for (int64_t k = 0; k < count; ++k) {
    const Vector<T> v = work[k ^ flip] * scale;
    if (together) {
      store(out + g.out_at[0] + k * g.out_step, v);
    } else {
      for (int l = 0; l < g.lines; ++l) out[g.out_at[l] + k * g.out_step] = v[l];
    }
  }
}

// The two buffers of a transform of n elements in `work`
template <class T>
struct Buffers {
  Vector<T>*a, *b;
  Buffers(void* work, int64_t n) : a(static_cast<Vector<T>*>(work)), b(a + 2 * n + kWidth<T>) {}
};

// A full vector of contiguous lines of kSize elements, in registers from start to end
template <class T, int kSize>
RL_INLINE void short_lines(const FftGroup& g) {
  constexpr int w = kWidth<T>, chunks = 2 * kSize / w;
  const T* in = static_cast<const T*>(g.in);
  T* out = static_cast<T*>(g.out);
  const T scale = static_cast<T>(g.scale);
  const bool flip = g.inverse;
  Pair<T> a[kSize], y[kSize];
#pragma GCC unroll 4
  for (int c = 0; c < chunks; ++c) {
    Vector<T> rows[w];
#pragma GCC unroll 16
    for (int l = 0; l < w; ++l) rows[l] = load(in + g.in_at[l] + c * w);
    transpose<T>(rows);
#pragma GCC unroll 8
    for (int j = 0; j < w / 2; ++j) a[c * w / 2 + j] = {rows[2 * j], rows[2 * j + 1]};
  }
  if (flip) {
#pragma GCC unroll 16
    for (int k = 0; k < kSize; ++k) a[k] = {a[k].im, a[k].re};
  }
  butterfly<T, kSize>([&](int k) __attribute__((always_inline)) { return a[k]; },
                      [&](int k, Pair<T> v) __attribute__((always_inline)) { y[k] = v; }, nullptr);
  if (flip) {
#pragma GCC unroll 16
    for (int k = 0; k < kSize; ++k) y[k] = {y[k].im, y[k].re};
  }
#pragma GCC unroll 4
  for (int c = 0; c < chunks; ++c) {
    Vector<T> rows[w];
#pragma GCC unroll 8
    for (int j = 0; j < w / 2; ++j) {
      rows[2 * j] = y[c * w / 2 + j].re * scale;
      rows[2 * j + 1] = y[c * w / 2 + j].im * scale;
    }
    transpose<T>(rows);
#pragma GCC unroll 16
    for (int l = 0; l < w; ++l) store(out + g.out_at[l] + c * w, rows[l]);
  }
}

template <class T>
void lanes(const FftPlan& plan, const FftGroup& g, void* work) {
  constexpr int w = kWidth<T>;
  const bool flip = g.inverse;
  if (g.in_step == 2 && g.out_step == 2 && g.lines == w) {
    if constexpr (w >= 4 && w <= 16) {
      if (plan.n == w) return short_lines<T, w>(g);
    }
    if constexpr (w >= 8) {
      if (plan.n == w / 2) return short_lines<T, w / 2>(g);
    }
  }
  const Buffers<T> buffers(work, plan.n);
  Vector<T>*a = buffers.a, *b = buffers.b;
  if (g.in_step != 2 && neighbours<T>(g.in_at, g.lines, 2) && g.out_step != 2 && neighbours<T>(g.out_at, g.lines, 2)) {
    const FromColumns<T> from{static_cast<const T*>(g.in) + g.in_at[0], g.in_step, flip};
    const ToColumns<T> to{static_cast<T*>(g.out) + g.out_at[0], g.out_step, flip, static_cast<T>(g.scale)};
    if constexpr (kFused)
      if (plan.lanes.count == 1 && run_common<T>(plan.lanes.passes[0], from, to)) return;
    const int done = run_first<T>(plan.lanes, from, a);
    return run_last<T>(plan.lanes, done, a, b, to);
  }
  load_group<T>(g, plan.n, flip, a);
  store_group<T>(g, plan.n, flip, run_lanes<T>(plan.lanes, a, b));
}

// z[n] of real signals of 2 n numbers, which is real, behind lines whose other numbers are written elsewhere
template <class T>
RL_INLINE void store_last(const FftGroup& g, int64_t n, Vector<T> value) {
  T* out = static_cast<T*>(g.out);
  const Vector<T> last = value * static_cast<T>(g.scale);
  T numbers[kWidth<T>];
  store(numbers, last);
#pragma GCC unroll 16
  for (int l = 0; l < kWidth<T>; ++l) {
    if (l >= g.lines) break;
    out[g.out_at[l] + 2 * n] = numbers[l];
    out[g.out_at[l] + 2 * n + 1] = 0;
  }
}

// Of n complex numbers that are pairs of 2 n real ones, z is the transform. With a = z[k], b = conj(z[n - k]), that of
// the even ones is (a + b) / 2, of the odd ones (a - b) / 2i. The transforms of the real ones
// take its place, but for the last number, which is returned.
template <class T>
RL_INLINE Vector<T> split_lanes(int64_t n, Vector<T>* z, const T* w) {
  const Vector<T> first = z[0], second = z[1];
  z[0] = first + second;
  z[1] = Vector<T>{};
#pragma GCC unroll 4
  for (int64_t k = 1; 2 * k <= n; ++k) {
    const Pair<T> a = {z[2 * k], z[2 * k + 1]}, b = {z[2 * (n - k)], -z[2 * (n - k) + 1]};
    const Pair<T> even = {(a.re + b.re) * T(0.5), (a.im + b.im) * T(0.5)};
    const Pair<T> odd = times(Pair<T>{(a.im - b.im) * T(0.5), (b.re - a.re) * T(0.5)}, w[2 * k], w[2 * k + 1]);
    z[2 * k] = even.re + odd.re;
    z[2 * k + 1] = even.im + odd.im;
    z[2 * (n - k)] = even.re - odd.re;
    z[2 * (n - k) + 1] = odd.im - even.im;
  }
  return first - second;
}

// A full vector of contiguous lines of 2 kSize real numbers, in registers from start to end
template <class T, int kSize>
RL_INLINE void short_real_lines(const FftPlan& plan, const FftGroup& g) {
  constexpr int w = kWidth<T>, chunks = 2 * kSize / w;
  const T* in = static_cast<const T*>(g.in);
  T* out = static_cast<T*>(g.out);
  const T scale = static_cast<T>(g.scale);
  Vector<T> x[2 * kSize], z[2 * kSize];
#pragma GCC unroll 4
  for (int c = 0; c < chunks; ++c) {
#pragma GCC unroll 16
    for (int l = 0; l < w; ++l) x[c * w + l] = load(in + g.in_at[l] + c * w);
    transpose<T>(x + c * w);
  }
  butterfly<T, kSize>([&](int k) __attribute__((always_inline)) { return Pair<T>{x[2 * k], x[2 * k + 1]}; },
                      [&](int k, Pair<T> v) __attribute__((always_inline)) {
                        z[2 * k] = v.re;
                        z[2 * k + 1] = v.im;
                      },
                      nullptr);
  const Vector<T> last = split_lanes<T>(kSize, z, static_cast<const T*>(plan.halves));
#pragma GCC unroll 4
  for (int c = 0; c < chunks; ++c) {
#pragma GCC unroll 16
    for (int j = 0; j < w; ++j) z[c * w + j] *= scale;
    transpose<T>(z + c * w);
#pragma GCC unroll 16
    for (int l = 0; l < w; ++l) store(out + g.out_at[l] + c * w, z[c * w + l]);
  }
  store_last<T>(g, kSize, last);
}

template <class T>
void lanes_real(const FftPlan& plan, const FftGroup& g, void* work) {
  const int64_t n = plan.n;
  const Buffers<T> buffers(work, n + 1);
  if (g.odd) {
    load_numbers<T>(g, n, buffers.b);
    for (int64_t k = 0; k < n; ++k) ToBuffer<T>{}.write(buffers.a + 2 * k, {buffers.b[k], Vector<T>{}});
    return store_group<T>(g, n / 2 + 1, false, run_lanes<T>(plan.lanes, buffers.a, buffers.b));
  }
  if (g.in_step == 1 && g.out_step == 2 && g.lines == kWidth<T>) {
    if constexpr (kWidth<T> == 8 || kWidth<T> == 16)
      if (n == 8) return short_real_lines<T, 8>(plan, g);
    if constexpr (kWidth<T> == 4 || kWidth<T> == 8)
      if (n == 4) return short_real_lines<T, 4>(plan, g);
  }
  load_numbers<T>(g, 2 * n, buffers.a);
  Vector<T>* z = run_lanes<T>(plan.lanes, buffers.a, buffers.b);
  const Vector<T> last = split_lanes<T>(n, z, static_cast<const T*>(plan.halves));
  if (g.out_step == 2) {
    store_lines<T>(g, 2 * n, 0, z);
    return store_last<T>(g, n, last);
  }
  z[2 * n] = last;
  z[2 * n + 1] = Vector<T>{};
  store_group<T>(g, n + 1, false, z);
}

template <class T>
void lanes_to_real(const FftPlan& plan, const FftGroup& g, void* work) {
  const int64_t n = plan.n;
  const Buffers<T> buffers(work, n + 1);
  Vector<T>* x = buffers.a;
  if (g.odd) {
    load_group<T>(g, n / 2 + 1, true, x);
    x[0] = Vector<T>{};
    for (int64_t k = 1; 2 * k < n; ++k) {
      x[2 * (n - k)] = -x[2 * k];
      x[2 * (n - k) + 1] = x[2 * k + 1];
    }
    x = run_lanes<T>(plan.lanes, x, buffers.b);
    for (int64_t k = 0; k < n; ++k) x[k] = x[2 * k + 1];
    return store_numbers<T>(g, n, 0, x);
  }
  const T* w = static_cast<const T*>(plan.halves);
  load_group<T>(g, n + 1, false, x);
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
  store_numbers<T>(g, 2 * n, 1, run_lanes<T>(plan.lanes, x, buffers.b));
}

// ---- contiguous lines, one or a few at a time: the matrix [w][m] of a line has its columns in lanes, then its rows

// The first pass of lanes that hold elements p, p + 1, ... of the m in a row of the matrix, and the factors after it:
// w elements of each lane, to out[lane][part].
template <class T, class Read>
RL_INLINE void turn(Read read, const T* factors, Vector<T>* out) {
  constexpr int w = kWidth<T>;
  Vector<T> re[w], im[w];
  butterfly<T, w>(
      read,
      [&](int k, Pair<T> v) __attribute__((always_inline)) {
        const T* f = factors + 2 * w * (k - 1);
        const Pair<T> r = k > 0 ? times(v, Pair<T>{load(f), load(f + w)}) : v;
        // Rows and columns both in folded order
        re[unfolded<T>(k)] = r.re;
        im[unfolded<T>(k)] = r.im;
      },
      nullptr);
  transpose<T>(re);
  transpose<T>(im);
#pragma GCC unroll 16
  for (int k = 0; k < w; ++k) {
    out[2 * folded<T>(k)] = re[k];
    out[2 * folded<T>(k) + 1] = im[k];
  }
}

// A vector of kPieces pieces of memory, `step` numbers apart
template <class T, int kPieces, int... kLanes>
RL_INLINE auto load_pieces(const T* p, int64_t step, std::integer_sequence<int, kLanes...>) {
  typedef T Piece __attribute__((vector_size(kVectorBytes / kPieces)));
  if constexpr (kPieces == 1) {
    return load(p);
  } else {
    constexpr int half = static_cast<int>(sizeof...(kLanes));
    typedef T Half __attribute__((vector_size(kVectorBytes / 2)));
    Half h[2];
    if constexpr (kPieces == 2) {
      std::memcpy(&h[0], p, sizeof(Piece));
      std::memcpy(&h[1], p + step, sizeof(Piece));
    } else {
      Piece q[4];
      for (int i = 0; i < 4; ++i) std::memcpy(&q[i], p + i * step, sizeof(Piece));
      h[0] = __builtin_shufflevector(q[0], q[1], kLanes...);
      h[1] = __builtin_shufflevector(q[2], q[3], kLanes...);
    }
    static_assert(half == kWidth<T> / 2);
    return __builtin_shufflevector(h[0], h[1], kLanes..., (kLanes + half)...);
  }
}

// Lanes of w / m lines, m <= w / 2
template <class T, int kParts>
RL_INLINE void turn_together(const FftPlan& plan, const T* in, int64_t stride, bool flip, Vector<T>* out) {
  constexpr int w = kWidth<T>, m = w / kParts;
  constexpr int pieces = kParts / 2;  // of a vector
  turn<T>(
      [&](int k) __attribute__((always_inline)) {
        const T* p = in + 2 * m * k;
        const auto half = std::make_integer_sequence<int, w / 2>{};
        const Vector<T> x = load_pieces<T, pieces>(p, stride, half);
        const Vector<T> y = load_pieces<T, pieces>(p + pieces * stride, stride, half);
        Pair<T> v;
        if (flip)
          split_folded<T>(x, y, &v.im, &v.re);
        else
          split_folded<T>(x, y, &v.re, &v.im);
        return v;
      },
      static_cast<const T*>(plan.turns), out);
}

// Lanes of one line
template <class T>
void turn_line(const FftPlan& plan, const T* in, bool flip, Vector<T>* out) {
  constexpr int w = kWidth<T>;
  const int64_t m = plan.m;
  const T* factors = static_cast<const T*>(plan.turns);
  int64_t p = 0;
  for (; p + w <= m; p += w, factors += 2 * w * (w - 1)) {
    const T* x = in + 2 * p;
    turn<T>([&](int k) __attribute__((always_inline)) { return load_complex<T>(x + 2 * m * k, flip); }, factors,
            out + 2 * p);
  }
  if (p == m) return;
  // What follows is in the line too, but for the last numbers.
  T end[2 * w] = {};
  std::memcpy(end, in + 2 * (p + m * (w - 1)), static_cast<size_t>(m - p) * 2 * sizeof(T));
  const T* x = in + 2 * p;
  turn<T>([&](int k) __attribute__((always_inline)) { return load_complex<T>(k < w - 1 ? x + 2 * m * k : end, flip); },
          factors, out + 2 * p);
}

template <class T>
RL_INLINE Vector<T> reversed(Vector<T> a, Vector<T> b) {
  // Folded: b's first number, then a's from the last to the second
  return __builtin_shuffle(a, b, lanes_of<T>([](int j) constexpr {
                             const int from = kWidth<T> - folded<T>(j);
                             return from == kWidth<T> ? from + unfolded<T>(0) : unfolded<T>(from);
                           }));
}

// The transform of 2 n real numbers from z, that of n complex ones in m vectors (and room for one more)
template <class T>
void split_line(const FftPlan& plan, Vector<T>* z, T scale, T* out) {
  constexpr int w = kWidth<T>;
  const int64_t n = plan.n, m = plan.m;
  const T half = scale * T(0.5);
  const T* f = static_cast<const T*>(plan.halves_in_lanes);
  z[2 * m] = z[0];
  z[2 * m + 1] = z[1];
  const T last = (z[0][0] - z[1][0]) * scale;
  for (int64_t i = 0; i < m; ++i, f += 2 * w) {
    const Vector<T>*x = z + 2 * i, *y = z + 2 * (m - 1 - i);
    const Pair<T> a = {x[0] * half, x[1] * half};
    const Pair<T> b = {reversed<T>(y[0], y[2]) * half, reversed<T>(y[1], y[3]) * half};
    const Pair<T> odd = times(Pair<T>{a.im + b.im, b.re - a.re}, Pair<T>{load(f), load(f + w)});
    store_complex<T>(out + 2 * w * i, {a.re + b.re + odd.re, a.im - b.im + odd.im}, false);
  }
  out[1] = 0;
  out[2 * n] = last;
  out[2 * n + 1] = 0;
}

// n complex numbers whose transform gives 2 n real ones, from the n + 1 that are not mirror images
template <class T>
void join_line(const FftPlan& plan, const T* in, T* out) {
  constexpr int w = kWidth<T>;
  const int64_t n = plan.n, m = plan.m;
  const T* f = static_cast<const T*>(plan.halves_in_lanes);
  for (int64_t i = 0; i < m; ++i, f += 2 * w) {
    const Pair<T> a = load_complex<T>(in + 2 * w * i, false);
    const T* q = in + 2 * (n - w * i - w + 1);
    const Vector<T> x = load(q), y = load(q + w);
    const Pair<T> b = {
        __builtin_shuffle(x, y, lanes_of<T>([](int j) constexpr { return 2 * (kWidth<T> - 1 - folded<T>(j)); })),
        __builtin_shuffle(x, y, lanes_of<T>([](int j) constexpr { return 2 * (kWidth<T> - 1 - folded<T>(j)) + 1; }))};
    const Pair<T> odd = times(Pair<T>{a.re - b.re, a.im + b.im}, Pair<T>{load(f), -load(f + w)});
    store_complex<T>(out + 2 * w * i, {a.re + b.re - odd.im, a.im - b.im + odd.re}, false);
  }
  out[0] = in[0] + in[2 * n];  // imaginary parts of the first and the last number are not looked at
  out[1] = in[0] - in[2 * n];
}

// The numbers that the first pass reads: those of the input, or of z, where half a transform is made whole and where
// lines that are not there are read.
template <class T>
RL_INLINE const T* first_numbers(const FftPlan& plan, const FftLines& g, int64_t line, int64_t some, bool whole, T* z) {
  const T* in = static_cast<const T*>(g.in) + line * g.in_step;
  if (whole && g.kind != FftLines::kToReal) return in;
  const int64_t size = 2 * plan.n;
  for (int64_t i = 0; i < some; ++i) {
    if (g.kind == FftLines::kToReal)
      join_line<T>(plan, in + i * g.in_step, z + i * size);
    else
      std::memcpy(z + i * size, in + i * g.in_step, static_cast<size_t>(size) * sizeof(T));
  }
  return z;
}

template <class T, int kParts>
void lines_together(const FftPlan& plan, const FftLines& g, Vector<T>* a, T* z) {
  constexpr int m = kWidth<T> / kParts;
  const T scale = static_cast<T>(g.scale);
  const bool flip = g.inverse;
  Vector<T>* const spectrum = reinterpret_cast<Vector<T>*>(z);
  for (int64_t l = 0; l < g.count; l += kParts) {
    const int64_t some = g.count - l < kParts ? g.count - l : kParts;
    const T* in = first_numbers<T>(plan, g, l, some, some == kParts, z);
    turn_together<T, kParts>(plan, in, in == z ? 2 * plan.n : g.in_step, flip, a);
    for (int64_t i = 0; i < some; ++i) {
      T* out = static_cast<T*>(g.out) + (l + i) * g.out_step;
      const Vector<T>* x = a + 2 * m * i;
      const auto read = [&](int k) __attribute__((always_inline)) { return Pair<T>{x[2 * k], x[2 * k + 1]}; };
      if (g.kind == FftLines::kReal) {
        butterfly<T, m>(
            read, [&](int k, Pair<T> v) __attribute__((always_inline)) { ToBuffer<T>{}.write(spectrum + 2 * k, v); },
            nullptr);
        split_line<T>(plan, spectrum, scale, out);
      } else {
        const ToLine<T> to{out, flip, scale};
        butterfly<T, m>(
            read, [&](int k, Pair<T> v) __attribute__((always_inline)) { to.write(to.place(k), v); }, nullptr);
      }
    }
  }
}

template <class T>
void lines(const FftPlan& plan, const FftLines& g, void* work) {
  constexpr int w = kWidth<T>;
  const int64_t m = plan.m, room = 2 * ((m > w ? m : w) + w);
  Vector<T>*a = static_cast<Vector<T>*>(work), *b = a + room;
  T* z = reinterpret_cast<T*>(b + room);
  if (plan.together == 2) return lines_together<T, 2>(plan, g, a, z);
  if constexpr (w >= 8)
    if (plan.together == 4) return lines_together<T, 4>(plan, g, a, z);
  if constexpr (w >= 16)
    if (plan.together == 8) return lines_together<T, 8>(plan, g, a, z);
  const T scale = static_cast<T>(g.scale);
  Vector<T>* const spectrum = reinterpret_cast<Vector<T>*>(z);
  for (int64_t l = 0; l < g.count; ++l) {
    turn_line<T>(plan, first_numbers<T>(plan, g, l, 1, true, z), g.inverse, a);
    T* out = static_cast<T*>(g.out) + l * g.out_step;
    if (g.kind == FftLines::kReal) {
      run_last<T>(plan.rest, 0, a, b, ToBuffer<T>{spectrum});
      split_line<T>(plan, spectrum, scale, out);
    } else {
      run_last<T>(plan.rest, 0, a, b, ToLine<T>{out, g.inverse, scale});
    }
  }
}

// ---- a single line, in two steps

template <class T>
void columns(const FftPlan& plan, const void* in_data, bool inverse, void* middle_data, int64_t block, void* work) {
  constexpr int w = kWidth<T>;
  const int64_t n1 = plan.n1, n2 = plan.n2, start = block * w;
  const int lines = static_cast<int>(n2 - start < w ? n2 - start : w);
  const Buffers<T> buffers(work, n1);
  Vector<T>*a = buffers.a, *b = buffers.b;
  int done = 0;
  if (lines == w) {
    done = run_first<T>(plan.first, FromColumns<T>{static_cast<const T*>(in_data) + 2 * start, 2 * n2, inverse}, a);
  } else {
    for (int64_t k = 0; k < n1; ++k) {
      const T* p = static_cast<const T*>(in_data) + 2 * (k * n2 + start);
      Vector<T> re = {}, im = {};
      for (int j = 0; j < w; ++j) {
        if (folded<T>(j) >= lines) continue;
        re[j] = p[2 * folded<T>(j) + inverse];
        im[j] = p[2 * folded<T>(j) + !inverse];
      }
      a[2 * k] = re;
      a[2 * k + 1] = im;
    }
  }
  Vector<T>* middle = static_cast<Vector<T>*>(middle_data) + 2 * block * ((n1 + w - 1) / w * w);
  run_last<T>(plan.first, done, a, b,
              ToMiddle<T>{middle, static_cast<const T*>(plan.lane_factors),
                          static_cast<const T*>(plan.block_factors) + 2 * block * n1});
}

template <class T>
void rows(const FftPlan& plan, const void* middle_data, bool inverse, double scale, void* out_data, int64_t group,
          void* work) {
  constexpr int w = kWidth<T>;
  const int64_t n1 = plan.n1, n2 = plan.n2, start = group * w, padded = (n1 + w - 1) / w * w;
  const Vector<T>* middle = static_cast<const Vector<T>*>(middle_data);
  const Buffers<T> buffers(work, n2);
  const int lines = static_cast<int>(n1 - start < w ? n1 - start : w);
  const bool full = lines == w;  // and then lanes are in folded order
  for (int64_t b = 0; b < plan.blocks; ++b) {
    const Vector<T>* x = middle + 2 * (b * padded + start);
    const int64_t columns = n2 - b * w < w ? n2 - b * w : w;
    for (int part = 0; part < 2; ++part) {
      Vector<T> block[w];
#pragma GCC unroll 16
      for (int l = 0; l < w; ++l) block[l] = x[2 * (full ? folded<T>(l) : l) + part];
      transpose<T>(block);
      Vector<T>* y = buffers.a + 2 * b * w + part;
#pragma GCC unroll 16
      for (int j = 0; j < w; ++j)
        if (columns == w || folded<T>(j) < columns) y[2 * folded<T>(j)] = block[j];
    }
  }
  if (full) {
    T* out = static_cast<T*>(out_data) + 2 * start;
    return run_last<T>(plan.second, 0, buffers.a, buffers.b, ToColumns<T>{out, 2 * n1, inverse, static_cast<T>(scale)});
  }
  const Vector<T>* x = run_lanes<T>(plan.second, buffers.a, buffers.b);
  int64_t at[w];
  for (int l = 0; l < w; ++l) at[l] = 2 * (start + l);
  store_group<T>({nullptr, out_data, nullptr, at, 0, 2 * n1, lines, inverse, false, false, scale}, n2, inverse, x);
}

// ---- whole lines of interleaved numbers

template <class T>
void multiply(const void* a_data, const void* b_data, void* out_data, int64_t n, double scale, bool swap_in,
              bool swap_out) {
  constexpr int w = kWidth<T>;
  const T *a = static_cast<const T*>(a_data), *b = static_cast<const T*>(b_data);
  T* out = static_cast<T*>(out_data);
  const T s = static_cast<T>(scale);
  int64_t i = 0;
  for (; i + w <= n; i += w) {
    const Pair<T> r = times(load_complex<T>(a + 2 * i, swap_in), load_complex<T>(b + 2 * i, false));
    store_complex<T>(out + 2 * i, {r.re * s, r.im * s}, swap_out);
  }
  for (; i < n; ++i) {
    const T re = a[2 * i + swap_in], im = a[2 * i + !swap_in], c = b[2 * i], d = b[2 * i + 1];
    const T x = (re * c - im * d) * s, y = (re * d + im * c) * s;
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
constexpr FftLoops kLoops = {kWidth<T>,  lanes<T>, lanes_real<T>, lanes_to_real<T>, lines<T>,
                             columns<T>, rows<T>,  multiply<T>,   split<T>,         join<T>};

constexpr FftTable table = {kLoops<float>, kLoops<double>};

}  // namespace

const FftTable& RL_ISA_SYMBOL(fft_table)() { return table; }

}  // namespace rl
