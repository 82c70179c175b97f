// Pooling kernels. Windows are walked element by element in the outer loops and output columns in the inner one, which
// is then vector code; each output still sees its window's elements in order.
#include "core/dtype.h"
#include "cpu/conv_vector.h"
#include "cpu/pool_kernels.h"

namespace rl {
namespace {

constexpr int64_t kColumns = 256;  // outputs of a row worked on at a time

int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

// Output columns [lo, hi) of n whose element, at start + j * step, lies in [0, size).
struct Columns {
  int64_t lo, hi;
};

Columns columns_inside(int64_t n, int64_t start, int64_t step, int64_t size) {
  const int64_t lo = start >= 0 ? 0 : least((step - 1 - start) / step, n);
  const int64_t hi = start >= size ? 0 : least((size - 1 - start) / step + 1, n);
  return {lo, most(lo, hi)};
}

// For a piece of a row of outputs: the columns that each window position along the row reaches. Worked out again only
// when the piece changes.
struct ColumnTable {
  static constexpr int64_t kKnown = 16;
  const PoolShape& p;
  int64_t first = -1, n = 0;
  Columns known[kKnown];
  Columns inner;  // whose window lies inside the input

  explicit ColumnTable(const PoolShape& shape) : p(shape) {}
  int64_t move_to(int64_t column) {
    if (column == first) return n;
    first = column;
    n = least(kColumns, p.out[2] - first);
    for (int64_t k = 0; k < least(p.kernel[2], kKnown); ++k) known[k] = find(k);
    inner = p.in[2] < p.kernel[2] ? Columns{0, 0} : columns_inside(n, start(0), p.stride[2], p.in[2] - p.kernel[2] + 1);
    return n;
  }
  int64_t start(int64_t k) const { return first * p.stride[2] - p.padding[2] + k * p.dilation[2]; }
  Columns find(int64_t k) const { return columns_inside(n, start(k), p.stride[2], p.in[2]); }
  Columns operator[](int64_t k) const { return k < kKnown ? known[k] : find(k); }
};

// ---- max pooling

// Takes columns [lo, hi) of one window element into the running maxima. I holds positions, `unset` before the first.
template <class C, class S, class I>
RL_INLINE void take_larger(C* __restrict best, I* __restrict position, I unset, const S* row, int64_t stride,
                           Columns columns, I here) {
  const auto loop = [&](int64_t step) __attribute__((always_inline)) {
    for (int64_t j = columns.lo; j < columns.hi; ++j) {
      const C value = convert<C>(row[j * step]);
      const bool larger = (position[j] == unset) | (value > best[j]) | (value != value);
      best[j] = larger ? value : best[j];
      position[j] = larger ? here : position[j];
    }
  };
  if (stride == 1) {
    loop(1);
  } else if (stride == 2) {
    loop(2);
  } else {
    loop(stride);
  }
}

template <class S, class I>
void max_pool_rows(const PoolShape& p, const S* in, S* out, int64_t* indices) {
  using C = compute_type<S>;
  constexpr I kUnset = sizeof(I) == 4 ? static_cast<I>(INT32_MIN) : static_cast<I>(INT64_MIN);
  C best[kColumns];
  I position[kColumns];
  ColumnTable columns(p);
  for (int64_t y0 = 0; y0 < p.out[0]; ++y0) {
    for (int64_t y1 = 0; y1 < p.out[1]; ++y1) {
      for (int64_t first = 0; first < p.out[2]; first += kColumns) {
        const int64_t n = columns.move_to(first);
        for (int64_t j = 0; j < n; ++j) position[j] = kUnset;
        for (int64_t j = 0; j < n; ++j) best[j] = C(0);
        for (int64_t k0 = 0; k0 < p.kernel[0]; ++k0) {
          const int64_t x0 = y0 * p.stride[0] - p.padding[0] + k0 * p.dilation[0];
          if (x0 < 0 || x0 >= p.in[0]) continue;
          for (int64_t k1 = 0; k1 < p.kernel[1]; ++k1) {
            const int64_t x1 = y1 * p.stride[1] - p.padding[1] + k1 * p.dilation[1];
            if (x1 < 0 || x1 >= p.in[1]) continue;
            for (int64_t k2 = 0; k2 < p.kernel[2]; ++k2) {
              const int64_t start = columns.start(k2);
              take_larger<C, S, I>(
                  best, position, kUnset, in + x0 * p.in_stride[0] + x1 * p.in_stride[1] + start * p.in_stride[2],
                  p.stride[2] * p.in_stride[2], columns[k2], static_cast<I>((x0 * p.in[1] + x1) * p.in[2] + start));
            }
          }
        }
        S* const to = out + y0 * p.out_stride[0] + y1 * p.out_stride[1] + first * p.out_stride[2];
        if (p.out_stride[2] == 1) {
          for (int64_t j = 0; j < n; ++j) to[j] = convert<S>(best[j]);
        } else {
          for (int64_t j = 0; j < n; ++j) to[j * p.out_stride[2]] = convert<S>(best[j]);
        }
        if (!indices) continue;
        int64_t* const index = indices + y0 * p.index_stride[0] + y1 * p.index_stride[1] + first * p.index_stride[2];
        for (int64_t j = 0; j < n; ++j)
          index[j * p.index_stride[2]] = static_cast<int64_t>(position[j]) + j * p.stride[2];
      }
    }
  }
}

// Short rows. Their elements are first laid out by remainder modulo the stride, between values that never win, so that
// whole vectors can be taken whatever the row's length.
constexpr int64_t kShort = 16;      // most outputs in a row
constexpr int64_t kMostPhases = 4;  // most stride
constexpr int64_t kShortBytes = 65536;

template <class S>
struct ShortType {
  using type = std::conditional_t<std::is_integral_v<S> && sizeof(S) <= 4, int32_t, compute_type<S>>;
};

template <class C>
constexpr C kLowest =
    std::is_integral_v<C> ? static_cast<C>(sizeof(C) == 4 ? INT32_MIN : INT64_MIN) : -static_cast<C>(__builtin_inf());

struct Range {
  int64_t begin, end;  // positions in the input along one dimension, `dilation` apart
};

Range window_range(const PoolShape& p, int d, int64_t y) {
  const int64_t start = y * p.stride[d] - p.padding[d];
  const int64_t step = p.dilation[d];
  return {start >= 0 ? start : start + (step - 1 - start) / step * step,
          least(start + (p.kernel[d] - 1) * step + 1, p.in[d])};
}

// Vectors to a row, and elements of a laid out row; 0 when this way is not to be taken.
template <class C>
int64_t short_width(const PoolShape& p) {
  constexpr int64_t L = kLanes<C>;
  if (p.out[2] > kShort || p.stride[2] > kMostPhases) return 0;
  const int64_t shift = (p.kernel[2] - 1) * p.dilation[2] / p.stride[2];
  const int64_t width = shift + (p.out[2] + L - 1) / L * L;
  const int64_t rows = p.in[0] * p.in[1];
  if (shift > kShort || rows * p.stride[2] * width * static_cast<int64_t>(sizeof(C)) > kShortBytes) return 0;
  return width;
}

template <class S>
void max_pool_short(const PoolShape& p, const S* in, S* out, int64_t* indices, int64_t width) {
  using C = typename ShortType<S>::type;
  using I = std::conditional_t<sizeof(C) == 4, int32_t, int64_t>;
  constexpr int64_t L = kLanes<C>;
  alignas(64) C rows[kShortBytes / sizeof(C)];
  const int64_t phases = p.stride[2];
  const int64_t row_width = phases * width;
  C* row = rows;
  for (int64_t x0 = 0; x0 < p.in[0]; ++x0) {
    for (int64_t x1 = 0; x1 < p.in[1]; ++x1, row += row_width) {
      const S* const from = in + x0 * p.in_stride[0] + x1 * p.in_stride[1];
      for (int64_t i = 0; i < row_width; ++i) row[i] = kLowest<C>;
      // Element x is number (x + padding) / stride of phase (x + padding) % stride.
      int64_t phase = p.padding[2] % phases;
      C* to = row + p.padding[2] / phases;
      for (int64_t x = 0; x < p.in[2] && to < row + width; ++x) {
        to[phase * width] = convert<C>(from[x * p.in_stride[2]]);
        if (++phase == phases) {
          phase = 0;
          ++to;
        }
      }
    }
  }
  alignas(64) I lanes[kShort + 64];
  alignas(64) I begins[kShort + 64] = {};  // position of each column's first element
  alignas(64) C best_lanes[kShort + 64];
  for (int64_t j = 0; j < kShort; ++j) lanes[j] = static_cast<I>(j * p.stride[2]);
  for (int64_t j = 0; j < p.out[2]; ++j) begins[j] = static_cast<I>(window_range(p, 2, j).begin);
  for (int64_t y0 = 0; y0 < p.out[0]; ++y0) {
    const Range r0 = window_range(p, 0, y0);
    for (int64_t y1 = 0; y1 < p.out[1]; ++y1) {
      const Range r1 = window_range(p, 1, y1);
      const I base = static_cast<I>((r0.begin * p.in[1] + r1.begin) * p.in[2]);
      alignas(64) I found[kShort + 64];
      for (int64_t j = 0; j < p.out[2]; j += L) {
        Vector<C> best = splat<C>(kLowest<C>);
        Vector<I> position = load(begins + j) + base;
        const Vector<I> lane = load(lanes + j);
        for (int64_t x0 = r0.begin; x0 < r0.end; x0 += p.dilation[0]) {
          for (int64_t x1 = r1.begin; x1 < r1.end; x1 += p.dilation[1]) {
            const C* const line = rows + (x0 * p.in[1] + x1) * row_width + j;
            const int64_t at = (x0 * p.in[1] + x1) * p.in[2] - p.padding[2];
            int64_t phase = 0, shift = 0;
            for (int64_t k = 0; k < p.kernel[2]; ++k) {
              const Vector<C> value = load(line + phase * width + shift);
              const Vector<I> here = lane + static_cast<I>(at + k * p.dilation[2]);
              const auto larger = (value > best) | (value != value);
              best = larger ? value : best;
              position = larger ? here : position;
              for (phase += p.dilation[2]; phase >= phases; phase -= phases) ++shift;
            }
          }
        }
        store(best_lanes + j, best);
        store(found + j, position);
      }
      S* const to = out + y0 * p.out_stride[0] + y1 * p.out_stride[1];
      for (int64_t j = 0; j < p.out[2]; ++j) to[j * p.out_stride[2]] = convert<S>(best_lanes[j]);
      if (!indices) continue;
      int64_t* const index = indices + y0 * p.index_stride[0] + y1 * p.index_stride[1];
      for (int64_t j = 0; j < p.out[2]; ++j) index[j * p.index_stride[2]] = found[j];
    }
  }
}

template <class S>
void max_pool(const PoolShape& p, const void* in, void* out, int64_t* indices) {
  if (const int64_t width = short_width<typename ShortType<S>::type>(p)) {
    max_pool_short<S>(p, static_cast<const S*>(in), static_cast<S*>(out), indices, width);
    return;
  }
  // Positions may start at minus the padding, and window positions beyond the input are never kept.
  if (p.in_elements() < INT32_MAX / 2 && p.padding[2] < INT32_MAX / 2) {
    max_pool_rows<S, int32_t>(p, static_cast<const S*>(in), static_cast<S*>(out), indices);
  } else {
    max_pool_rows<S, int64_t>(p, static_cast<const S*>(in), static_cast<S*>(out), indices);
  }
}

// ---- windows of adaptive pooling

struct Window {
  int64_t begin, end;
};

Window adaptive_window(int64_t y, int64_t in, int64_t out) { return {y * in / out, ((y + 1) * in + out - 1) / out}; }

template <class Body>
RL_INLINE void for_outputs(const PoolShape& p, Body body) {
  if (p.out[0] * p.out[1] * p.out[2] == 1) {
    body(int64_t{0}, int64_t{0}, int64_t{0}, Window{0, p.in[0]}, Window{0, p.in[1]}, Window{0, p.in[2]});
    return;
  }
  for (int64_t y0 = 0; y0 < p.out[0]; ++y0) {
    const Window w0 = adaptive_window(y0, p.in[0], p.out[0]);
    for (int64_t y1 = 0; y1 < p.out[1]; ++y1) {
      const Window w1 = adaptive_window(y1, p.in[1], p.out[1]);
      for (int64_t y2 = 0; y2 < p.out[2]; ++y2) body(y0, y1, y2, w0, w1, adaptive_window(y2, p.in[2], p.out[2]));
    }
  }
}

template <class S>
void adaptive_max_pool(const PoolShape& p, const void* in_data, void* out_data, int64_t* indices) {
  using C = compute_type<S>;
  const S* const in = static_cast<const S*>(in_data);
  S* const out = static_cast<S*>(out_data);
  for_outputs(p, [&](int64_t y0, int64_t y1, int64_t y2, Window w0, Window w1, Window w2) {
    const S* const corner = in + w0.begin * p.in_stride[0] + w1.begin * p.in_stride[1] + w2.begin * p.in_stride[2];
    S kept = *corner;
    C best = convert<C>(kept);
    int64_t position = (w0.begin * p.in[1] + w1.begin) * p.in[2] + w2.begin;
    for (int64_t x0 = w0.begin; x0 < w0.end; ++x0) {
      for (int64_t x1 = w1.begin; x1 < w1.end; ++x1) {
        const S* const row = in + x0 * p.in_stride[0] + x1 * p.in_stride[1];
        for (int64_t x2 = w2.begin; x2 < w2.end; ++x2) {
          const S element = row[x2 * p.in_stride[2]];
          const C value = convert<C>(element);
          if (!(value > best) && value == value) continue;
          best = value;
          kept = element;
          position = (x0 * p.in[1] + x1) * p.in[2] + x2;
        }
      }
    }
    out[y0 * p.out_stride[0] + y1 * p.out_stride[1] + y2 * p.out_stride[2]] = kept;
    if (indices) indices[y0 * p.index_stride[0] + y1 * p.index_stride[1] + y2 * p.index_stride[2]] = position;
  });
}

// ---- average pooling

// Elements that output y's window counts: with the padding, or only those inside.
int64_t window_count(int64_t y, int64_t in, int64_t kernel, int64_t stride, int64_t padding, bool with_padding) {
  const int64_t begin = y * stride - padding;
  const int64_t end = least(begin + kernel, in + padding);
  if (with_padding) return end - begin;
  return most(least(end, in) - most(begin, 0), 0);
}

template <class C>
C divisor_of(const PoolShape& p, int64_t y0, int64_t y1, int64_t y2) {
  if (p.divisor != 0) return static_cast<C>(p.divisor);
  const bool pad = p.count_include_pad;
  return static_cast<C>(window_count(y0, p.in[0], p.kernel[0], p.stride[0], p.padding[0], pad) *
                        window_count(y1, p.in[1], p.kernel[1], p.stride[1], p.padding[1], pad) *
                        window_count(y2, p.in[2], p.kernel[2], p.stride[2], p.padding[2], pad));
}

// Divides sums by their windows' counts.
template <class C>
void divide_row(const PoolShape& p, int64_t y0, int64_t y1, int64_t first, int64_t n, Columns inner, C* values) {
  int64_t j = 0;
  const auto edge = [&](int64_t end) {
    for (; j < end; ++j) {
      const C divisor = divisor_of<C>(p, y0, y1, first + j);
      values[j] = divisor == C(0) ? C(0) : static_cast<C>(values[j] / divisor);
    }
  };
  if (inner.lo < inner.hi) {
    edge(inner.lo);
    const C divisor = divisor_of<C>(p, y0, y1, first + inner.lo);
    if (divisor != C(0)) {
      for (; j < inner.hi; ++j) values[j] = static_cast<C>(values[j] / divisor);
    }
  }
  edge(n);
}

// A sum of finite elements may overflow although their mean does not. It is then added up again from elements times
// kDown.
template <class C>
constexpr C kDown = static_cast<C>(1.0 / (uint64_t{1} << 63));

template <bool Scaled, class C, class S>
RL_INLINE C element(S x) {
  if constexpr (Scaled) return convert<C>(x) * kDown<C>;
  return convert<C>(x);
}

template <class C>
bool all_finite(const C* values, int64_t n) {
  C rest = C(0);
  for (int64_t j = 0; j < n; ++j) rest += values[j] - values[j];  // NaN once there was an infinite one
  return rest == C(0);
}

// Sums of the windows of the outputs [first, first + n) of a row.
template <bool Scaled, class C, class S>
void window_sums(const PoolShape& p, const S* in, const ColumnTable& columns, int64_t y0, int64_t y1, int64_t n,
                 C* sum) {
  for (int64_t j = 0; j < n; ++j) sum[j] = C(0);
  for (int64_t k0 = 0; k0 < p.kernel[0]; ++k0) {
    const int64_t x0 = y0 * p.stride[0] - p.padding[0] + k0;
    if (x0 < 0 || x0 >= p.in[0]) continue;
    for (int64_t k1 = 0; k1 < p.kernel[1]; ++k1) {
      const int64_t x1 = y1 * p.stride[1] - p.padding[1] + k1;
      if (x1 < 0 || x1 >= p.in[1]) continue;
      for (int64_t k2 = 0; k2 < p.kernel[2]; ++k2) {
        const int64_t start = columns.start(k2);
        const Columns here = columns[k2];
        const S* const row = in + x0 * p.in_stride[0] + x1 * p.in_stride[1] + start * p.in_stride[2];
        const int64_t step = p.stride[2] * p.in_stride[2];
        const auto loop = [&](int64_t by) __attribute__((always_inline)) {
          for (int64_t j = here.lo; j < here.hi; ++j) sum[j] += element<Scaled, C>(row[j * by]);
        };
        if (step == 1) {
          loop(1);
        } else if (step == 2) {
          loop(2);
        } else {
          loop(step);
        }
      }
    }
  }
}

template <class S>
void avg_pool(const PoolShape& p, const void* in_data, void* out_data) {
  using C = compute_type<S>;
  const S* const in = static_cast<const S*>(in_data);
  S* const out = static_cast<S*>(out_data);
  C mean[kColumns];
  ColumnTable columns(p);
  for (int64_t y0 = 0; y0 < p.out[0]; ++y0) {
    for (int64_t y1 = 0; y1 < p.out[1]; ++y1) {
      for (int64_t first = 0; first < p.out[2]; first += kColumns) {
        const int64_t n = columns.move_to(first);
        window_sums<false>(p, in, columns, y0, y1, n, mean);
        divide_row(p, y0, y1, first, n, columns.inner, mean);
        if constexpr (!std::is_integral_v<C>) {
          if (!all_finite(mean, n)) [[unlikely]] {
            C again[kColumns];
            window_sums<true>(p, in, columns, y0, y1, n, again);
            divide_row(p, y0, y1, first, n, columns.inner, again);
            for (int64_t j = 0; j < n; ++j)
              if (!all_finite(mean + j, 1)) mean[j] = again[j] / kDown<C>;
          }
        }
        S* const to = out + y0 * p.out_stride[0] + y1 * p.out_stride[1] + first * p.out_stride[2];
        for (int64_t j = 0; j < n; ++j) to[j * p.out_stride[2]] = convert<S>(mean[j]);
      }
    }
  }
}

template <bool Scaled, class C, class S>
C sum_run(const S* from, int64_t stride, int64_t n) {
  // Several sums side by side: one would wait for each addition.
  constexpr int64_t kLanes = 16;
  C total = C(0);
  int64_t i = 0;
  if (n >= kLanes) {
    C lanes[kLanes] = {};
    for (; i + kLanes <= n; i += kLanes) {
      for (int64_t l = 0; l < kLanes; ++l) lanes[l] += element<Scaled, C>(from[(i + l) * stride]);
    }
    for (int64_t l = 0; l < kLanes; ++l) total += lanes[l];
  }
  for (; i < n; ++i) total += element<Scaled, C>(from[i * stride]);
  return total;
}

template <bool Scaled, class C, class S>
C window_mean(const PoolShape& p, const S* in, Window w0, Window w1, Window w2) {
  C sum = C(0);
  const int64_t width = w2.end - w2.begin;
  if (p.in_stride[2] == 1 && p.in_stride[1] == width && p.in[2] == width) {
    // Whole rows: one run.
    for (int64_t x0 = w0.begin; x0 < w0.end; ++x0)
      sum += sum_run<Scaled, C>(in + x0 * p.in_stride[0] + w1.begin * p.in_stride[1], 1, (w1.end - w1.begin) * width);
  } else {
    for (int64_t x0 = w0.begin; x0 < w0.end; ++x0) {
      for (int64_t x1 = w1.begin; x1 < w1.end; ++x1)
        sum += sum_run<Scaled, C>(in + x0 * p.in_stride[0] + x1 * p.in_stride[1] + w2.begin * p.in_stride[2],
                                  p.in_stride[2], width);
    }
  }
  return sum / static_cast<C>(w0.end - w0.begin) / static_cast<C>(w1.end - w1.begin) / static_cast<C>(width);
}

template <class S>
void adaptive_avg_pool(const PoolShape& p, const void* in_data, void* out_data) {
  using C = compute_type<S>;
  const S* const in = static_cast<const S*>(in_data);
  S* const out = static_cast<S*>(out_data);
  for_outputs(p, [&](int64_t y0, int64_t y1, int64_t y2, Window w0, Window w1, Window w2) {
    C mean = window_mean<false, C>(p, in, w0, w1, w2);
    if (!all_finite(&mean, 1)) [[unlikely]]
      mean = window_mean<true, C>(p, in, w0, w1, w2) / kDown<C>;
    out[y0 * p.out_stride[0] + y1 * p.out_stride[1] + y2 * p.out_stride[2]] = convert<S>(mean);
  });
}

// ---- backward: gradients are added up in a plane of compute type, then written

template <class C, class S>
void write_plane(const PoolShape& p, const C* plane, S* out) {
  for (int64_t x0 = 0; x0 < p.in[0]; ++x0) {
    for (int64_t x1 = 0; x1 < p.in[1]; ++x1, plane += p.in[2]) {
      S* const row = out + x0 * p.in_stride[0] + x1 * p.in_stride[1];
      if (p.in_stride[2] == 1) {
        for (int64_t x2 = 0; x2 < p.in[2]; ++x2) row[x2] = convert<S>(plane[x2]);
      } else {
        for (int64_t x2 = 0; x2 < p.in[2]; ++x2) row[x2 * p.in_stride[2]] = convert<S>(plane[x2]);
      }
    }
  }
}

// Where a plane's gradient is added up: in the output itself if that is a plane of compute type, else in `plane`.
template <class S>
compute_type<S>* sums_of(const PoolShape& p, void* out, void* plane) {
  if constexpr (std::is_same_v<S, compute_type<S>>) {
    if (p.in_stride[2] == 1 && p.in_stride[1] == p.in[2] && (p.in[0] == 1 || p.in_stride[0] == p.in[1] * p.in[2]))
      return static_cast<S*>(out);
  }
  return static_cast<compute_type<S>*>(plane);
}

template <class C>
void clear_plane(const PoolShape& p, C* plane) {
  const int64_t n = p.in_elements();
  for (int64_t i = 0; i < n; ++i) plane[i] = C(0);
}

template <class S>
bool max_pool_backward(const PoolShape& p, const void* in_data, const int64_t* indices, void* out, void* plane_data,
                       int64_t* bad) {
  using C = compute_type<S>;
  const S* const in = static_cast<const S*>(in_data);
  C* const plane = sums_of<S>(p, out, plane_data);
  clear_plane(p, plane);
  const uint64_t n = static_cast<uint64_t>(p.in_elements());
  for (int64_t y0 = 0; y0 < p.out[0]; ++y0) {
    for (int64_t y1 = 0; y1 < p.out[1]; ++y1) {
      const S* const row = in + y0 * p.out_stride[0] + y1 * p.out_stride[1];
      const int64_t* const index = indices + y0 * p.index_stride[0] + y1 * p.index_stride[1];
      for (int64_t y2 = 0; y2 < p.out[2]; ++y2) {
        const int64_t at = index[y2 * p.index_stride[2]];
        if (static_cast<uint64_t>(at) >= n) [[unlikely]] {
          *bad = at;
          return true;
        }
        plane[at] += convert<C>(row[y2 * p.out_stride[2]]);
      }
    }
  }
  if (static_cast<void*>(plane) != out) write_plane(p, plane, static_cast<S*>(out));
  return false;
}

template <class S>
void avg_pool_backward(const PoolShape& p, const void* in_data, void* out, void* plane_data) {
  using C = compute_type<S>;
  const S* const in = static_cast<const S*>(in_data);
  C* const plane = sums_of<S>(p, out, plane_data);
  clear_plane(p, plane);
  C share[kColumns];
  ColumnTable columns(p);
  for (int64_t y0 = 0; y0 < p.out[0]; ++y0) {
    for (int64_t y1 = 0; y1 < p.out[1]; ++y1) {
      for (int64_t first = 0; first < p.out[2]; first += kColumns) {
        const int64_t n = columns.move_to(first);
        const S* const from = in + y0 * p.out_stride[0] + y1 * p.out_stride[1] + first * p.out_stride[2];
        for (int64_t j = 0; j < n; ++j) share[j] = convert<C>(from[j * p.out_stride[2]]);
        divide_row(p, y0, y1, first, n, columns.inner, share);
        for (int64_t k0 = 0; k0 < p.kernel[0]; ++k0) {
          const int64_t x0 = y0 * p.stride[0] - p.padding[0] + k0;
          if (x0 < 0 || x0 >= p.in[0]) continue;
          for (int64_t k1 = 0; k1 < p.kernel[1]; ++k1) {
            const int64_t x1 = y1 * p.stride[1] - p.padding[1] + k1;
            if (x1 < 0 || x1 >= p.in[1]) continue;
            // Backwards, so that an element gets its outputs' shares in the order of the outputs.
            for (int64_t k2 = p.kernel[2] - 1; k2 >= 0; --k2) {
              const int64_t start = columns.start(k2);
              const Columns here = columns[k2];
              C* const row = plane + (x0 * p.in[1] + x1) * p.in[2] + start;
              if (p.stride[2] == 1) {
                for (int64_t j = here.lo; j < here.hi; ++j) row[j] += share[j];
              } else {
                for (int64_t j = here.lo; j < here.hi; ++j) row[j * p.stride[2]] += share[j];
              }
            }
          }
        }
      }
    }
  }
  if (static_cast<void*>(plane) != out) write_plane(p, plane, static_cast<S*>(out));
}

template <class S>
void adaptive_avg_pool_backward(const PoolShape& p, const void* in_data, void* out, void* plane_data) {
  using C = compute_type<S>;
  const S* const in = static_cast<const S*>(in_data);
  C* const plane = sums_of<S>(p, out, plane_data);
  clear_plane(p, plane);
  for_outputs(p, [&](int64_t y0, int64_t y1, int64_t y2, Window w0, Window w1, Window w2) {
    const C share = convert<C>(in[y0 * p.out_stride[0] + y1 * p.out_stride[1] + y2 * p.out_stride[2]]) /
                    static_cast<C>(w0.end - w0.begin) / static_cast<C>(w1.end - w1.begin) /
                    static_cast<C>(w2.end - w2.begin);
    for (int64_t x0 = w0.begin; x0 < w0.end; ++x0) {
      for (int64_t x1 = w1.begin; x1 < w1.end; ++x1) {
        C* const row = plane + (x0 * p.in[1] + x1) * p.in[2];
        for (int64_t x2 = w2.begin; x2 < w2.end; ++x2) row[x2] += share;
      }
    }
  });
  if (static_cast<void*>(plane) != out) write_plane(p, plane, static_cast<S*>(out));
}

// ---- tables, in the order of rl_dtype

#define RL_FOR_FLOATS(function) function<half>, function<bfloat16>, function<float>, function<double>
#define RL_FOR_INTEGERS(function) \
  function<uint8_t>, function<int8_t>, function<int16_t>, function<int32_t>, function<int64_t>
#define RL_NO_INTEGERS nullptr, nullptr, nullptr, nullptr, nullptr

constexpr PoolTable table = {
    {nullptr, RL_FOR_INTEGERS(max_pool), RL_FOR_FLOATS(max_pool), nullptr, nullptr},
    {nullptr, RL_FOR_INTEGERS(adaptive_max_pool), RL_FOR_FLOATS(adaptive_max_pool), nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr, avg_pool<int64_t>, RL_FOR_FLOATS(avg_pool), nullptr, nullptr},
    {nullptr, RL_NO_INTEGERS, RL_FOR_FLOATS(adaptive_avg_pool), nullptr, nullptr},
    {nullptr, RL_NO_INTEGERS, RL_FOR_FLOATS(max_pool_backward), nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr, avg_pool_backward<int64_t>, RL_FOR_FLOATS(avg_pool_backward), nullptr,
     nullptr},
    {nullptr, RL_NO_INTEGERS, RL_FOR_FLOATS(adaptive_avg_pool_backward), nullptr, nullptr},
};

}  // namespace

const PoolTable& RL_ISA_SYMBOL(pool_table)() { return table; }

}  // namespace rl
