// Inner loops of the scans. See scan_kernels.h for the contract.
#include "cpu/scan_kernels.h"

#include "core/dtype.h"

namespace rl {
namespace {

constexpr int64_t kStrip = 256;     // lines side by side in memory, one vector operation after another
constexpr int64_t kInterleave = 8;  // lines far apart, whose chains of additions overlap

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

// `Lines` lines at once, or `lines` of them when Lines is 0.
template <class T, class Op, int Lines>
RL_INLINE void scan_lines(const T* in, T* out, int64_t lines, int64_t n, int64_t line_step, int64_t step) {
  using A = typename RunningType<T>::type;
  const int64_t count = Lines > 0 ? Lines : lines;
  A running[Lines > 0 ? Lines : kStrip];
  for (int64_t j = 0; j < count; ++j) running[j] = Op::template start<A>();
  for (int64_t r = 0; r < n; ++r) {
    const T* x = in + r * step;
    T* y = out + r * step;
#pragma GCC ivdep
    for (int64_t j = 0; j < count; ++j) {
      running[j] = Op::step(running[j], static_cast<A>(x[j * line_step]));
      y[j * line_step] = static_cast<T>(running[j]);
    }
  }
}

template <class T, class Op>
void scan(const void* in_data, void* out_data, int64_t lines, int64_t n, int64_t line_step, int64_t step) {
  const T* in = static_cast<const T*>(in_data);
  T* out = static_cast<T*>(out_data);
  int64_t j = 0;
  if (line_step == 1) {
    for (; j + 64 <= lines; j += 64) scan_lines<T, Op, 64>(in + j, out + j, 64, n, 1, step);
    if (j < lines) scan_lines<T, Op, 0>(in + j, out + j, lines - j, n, 1, step);
    return;
  }
  for (; j + kInterleave <= lines; j += kInterleave) {
    scan_lines<T, Op, kInterleave>(in + j * line_step, out + j * line_step, kInterleave, n, line_step, step);
  }
  for (; j < lines; ++j) scan_lines<T, Op, 1>(in + j * line_step, out + j * line_step, 1, n, line_step, step);
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
