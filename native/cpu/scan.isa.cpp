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

// What elements are compared as.
template <class T>
using Compared = std::conditional_t<is_reduced_float_v<T>, float, T>;

// The greatest so far of a line and where it stood.
template <class T>
struct Record {
  T value;
  Compared<T> key;
  int64_t at;
  template <class Order>
  RL_INLINE void meet(T x, int64_t place) {
    const Compared<T> k = static_cast<Compared<T>>(x);
    // A NaN is replaced by a later NaN only.
    const bool replaces = (k != k) | Order::replaces(k, key);
    value = replaces ? x : value;
    key = replaces ? k : key;
    at = replaces ? place : at;
  }
};

// Lines that are each dense, a few side by side, so that one need not wait for another's comparisons.
template <class T, class Order, int Lines>
RL_INLINE void scan_extreme_rows(const T* in, T* values, int64_t* indices, int64_t n, int64_t line_step) {
  Record<T> records[Lines];
  for (int l = 0; l < Lines; ++l) {
    const T first = in[l * line_step];
    records[l] = {first, static_cast<Compared<T>>(first), 0};
  }
  for (int64_t r = 0; r < n; ++r) {
#pragma GCC unroll 8
    for (int l = 0; l < Lines; ++l) {
      const int64_t place = l * line_step + r;
      records[l].template meet<Order>(in[place], r);
      values[place] = records[l].value;
      indices[place] = records[l].at;
    }
  }
}

template <class T, class Order>
void scan_extreme(const void* in_data, void* values_data, int64_t* indices, int64_t lines, int64_t n, int64_t line_step,
                  int64_t step) {
  const T* in = static_cast<const T*>(in_data);
  T* values = static_cast<T*>(values_data);
  if (step == 1) {
    int64_t j = 0;
    for (; j + 4 <= lines; j += 4) {
      const int64_t first = j * line_step;
      scan_extreme_rows<T, Order, 4>(in + first, values + first, indices + first, n, line_step);
    }
    for (; j < lines; ++j) {
      const int64_t first = j * line_step;
      scan_extreme_rows<T, Order, 1>(in + first, values + first, indices + first, n, line_step);
    }
    return;
  }
  for (int64_t start = 0; start < lines; start += kStrip) {
    const int64_t count = lines - start < kStrip ? lines - start : kStrip;
    T best[kStrip];
    Compared<T> key[kStrip];
    int64_t at[kStrip];
    for (int64_t j = 0; j < count; ++j) {
      best[j] = in[(start + j) * line_step];
      key[j] = static_cast<Compared<T>>(best[j]);
      at[j] = 0;
    }
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t j = 0; j < count; ++j) {
        const int64_t place = (start + j) * line_step + r * step;
        Record<T> record = {best[j], key[j], at[j]};
        record.template meet<Order>(in[place], r);
        best[j] = values[place] = record.value;
        key[j] = record.key;
        at[j] = indices[place] = record.at;
      }
    }
  }
}

constexpr ScanTable table = {
    {scan<int64_t, Plus>, scan<float, Plus>, scan<double, Plus>, scan<complex64, Plus>, scan<complex128, Plus>},
    {scan<int64_t, Times>, scan<float, Times>, scan<double, Times>, scan<complex64, Times>, scan<complex128, Times>},
    {scan_extreme<uint8_t, Above>, scan_extreme<uint8_t, Above>, scan_extreme<int8_t, Above>,
     scan_extreme<int16_t, Above>, scan_extreme<int32_t, Above>, scan_extreme<int64_t, Above>,
     scan_extreme<half, Above>, scan_extreme<bfloat16, Above>, scan_extreme<float, Above>, scan_extreme<double, Above>},
    {scan_extreme<uint8_t, Below>, scan_extreme<uint8_t, Below>, scan_extreme<int8_t, Below>,
     scan_extreme<int16_t, Below>, scan_extreme<int32_t, Below>, scan_extreme<int64_t, Below>,
     scan_extreme<half, Below>, scan_extreme<bfloat16, Below>, scan_extreme<float, Below>, scan_extreme<double, Below>},
};

}  // namespace

const ScanTable& RL_ISA_SYMBOL(scan_table)() { return table; }

}  // namespace rl
