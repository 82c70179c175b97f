// Inner loops of the scans. See scan_kernels.h for the contract.
#include "cpu/scan_kernels.h"

#include "core/dtype.h"

namespace rl {
namespace {

constexpr int64_t kStrip = 256;  // lines of one pass

// float32 adds up in double.
template <class T>
struct RunningType {
  using type = T;
};
template <>
struct RunningType<float> {
  using type = double;
};
template <>
struct RunningType<complex64> {
  using type = complex128;
};

struct Plus {
  template <class A>
  static RL_INLINE A start() {
    return A(0);
  }
  template <class A>
  static RL_INLINE A step(A a, A x) {
    if constexpr (std::is_same_v<A, int64_t>)
      return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(x));
    else
      return a + x;
  }
};
struct Times {
  template <class A>
  static RL_INLINE A start() {
    return A(1);
  }
  template <class A>
  static RL_INLINE A step(A a, A x) {
    if constexpr (std::is_same_v<A, int64_t>)
      return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(x));
    else
      return a * x;
  }
};

// Lines side by side in memory: `Lines` of them, or `lines` when Lines is 0.
template <class T, class Op, int Lines>
RL_INLINE void scan_columns(const T* in, T* out, int64_t lines, int64_t n, int64_t step) {
  using A = typename RunningType<T>::type;
  const int64_t count = Lines > 0 ? Lines : lines;
  A running[Lines > 0 ? Lines : kStrip];
  for (int64_t j = 0; j < count; ++j) running[j] = Op::template start<A>();
  for (int64_t r = 0; r < n; ++r) {
    const T* x = in + r * step;
    T* y = out + r * step;
#pragma GCC ivdep
    for (int64_t j = 0; j < count; ++j) {
      running[j] = Op::step(running[j], static_cast<A>(x[j]));
      y[j] = static_cast<T>(running[j]);
    }
  }
}

// One line whose elements are `step` apart. Sums go four elements at a time, so that only one addition in four waits
// for the one before; products do not, since their parts could leave the range that the whole stays in.
template <class T, class Op>
RL_INLINE void scan_line(const T* x, T* y, int64_t n, int64_t step) {
  using A = typename RunningType<T>::type;
  A running = Op::template start<A>();
  int64_t r = 0;
  if constexpr (std::is_same_v<Op, Plus>) {
    for (; r + 4 <= n; r += 4) {
      const T* from = x + r * step;
      T* to = y + r * step;
      const A a = static_cast<A>(from[0]);
      const A b = Op::step(a, static_cast<A>(from[step]));
      const A c = Op::step(b, static_cast<A>(from[2 * step]));
      const A d = Op::step(c, static_cast<A>(from[3 * step]));
      to[0] = static_cast<T>(Op::step(running, a));
      to[step] = static_cast<T>(Op::step(running, b));
      to[2 * step] = static_cast<T>(Op::step(running, c));
      running = Op::step(running, d);
      to[3 * step] = static_cast<T>(running);
    }
  }
  for (; r < n; ++r) {
    running = Op::step(running, static_cast<A>(x[r * step]));
    y[r * step] = static_cast<T>(running);
  }
}

template <class T, class Op>
void scan(const void* in_data, void* out_data, int64_t lines, int64_t n, int64_t line_step, int64_t step) {
  const T* in = static_cast<const T*>(in_data);
  T* out = static_cast<T*>(out_data);
  int64_t j = 0;
  if (line_step == 1 && lines > 1) {
    for (; j + 64 <= lines; j += 64) scan_columns<T, Op, 64>(in + j, out + j, 64, n, step);
    if (j < lines) scan_columns<T, Op, 0>(in + j, out + j, lines - j, n, step);
    return;
  }
  for (; j < lines; ++j) {
    if (step == 1)
      scan_line<T, Op>(in + j * line_step, out + j * line_step, n, 1);
    else
      scan_line<T, Op>(in + j * line_step, out + j * line_step, n, step);
  }
}

struct Above {
  template <class T>
  static RL_INLINE bool replaces(T x, T best) {
    return x >= best;
  }
};
struct Below {
  template <class T>
  static RL_INLINE bool replaces(T x, T best) {
    return x <= best;
  }
};

template <class T, class Order>
void scan_extreme(const void* in_data, void* values_data, int64_t* indices, int64_t lines, int64_t n, int64_t line_step,
                  int64_t step) {
  T* values = static_cast<T*>(values_data);
  for (int64_t start = 0; start < lines; start += kStrip) {
    const int64_t count = lines - start < kStrip ? lines - start : kStrip;
    const T* x = static_cast<const T*>(in_data) + start * line_step;
    T best[kStrip];
    int64_t at[kStrip];
    for (int64_t j = 0; j < count; ++j) {
      best[j] = x[j * line_step];
      at[j] = 0;
    }
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t j = 0; j < count; ++j) {
        const int64_t place = (start + j) * line_step + r * step;
        const T value = static_cast<const T*>(in_data)[place];
        // A NaN is replaced by a later NaN only.
        const bool replaces = (value != value) | Order::replaces(value, best[j]);
        best[j] = replaces ? value : best[j];
        at[j] = replaces ? r : at[j];
        values[place] = best[j];
        indices[place] = at[j];
      }
    }
  }
}

constexpr ScanTable table = {
    {scan<int64_t, Plus>, scan<float, Plus>, scan<double, Plus>, scan<complex64, Plus>, scan<complex128, Plus>},
    {scan<int64_t, Times>, scan<float, Times>, scan<double, Times>, scan<complex64, Times>, scan<complex128, Times>},
    {scan_extreme<int64_t, Above>, scan_extreme<float, Above>, scan_extreme<double, Above>},
    {scan_extreme<int64_t, Below>, scan_extreme<float, Below>, scan_extreme<double, Below>},
};

}  // namespace

const ScanTable& RL_ISA_SYMBOL(scan_table)() { return table; }

}  // namespace rl
