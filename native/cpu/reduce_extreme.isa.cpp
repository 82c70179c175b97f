// Extremes, alone, in pairs and with their indices. See reduce_kernels.h for the contract.
#include "cpu/reduce_extreme.h"

namespace rl {
namespace {

template <class T>
struct MinMax {
  static constexpr int kWords = 2;
  using Low = Extreme<T, Least, Plain>;
  using High = Extreme<T, Greatest, Plain>;
  static void run(double* state, int64_t pitch, const void* x, int64_t n, int64_t index, double parameter) {
    constexpr int64_t kBlock = 2048;  // read twice while it is in the first cache
    Low::run(state, pitch, x, n < kBlock ? n : kBlock, index, parameter);
    High::run(state + pitch, pitch, x, n < kBlock ? n : kBlock, index, parameter);
    for (int64_t i = kBlock; i < n; i += kBlock) {
      const T* block = static_cast<const T*>(x) + i;
      const int64_t size = n - i < kBlock ? n - i : kBlock;
      double part;
      Low::run(&part, 1, block, size, index, parameter);
      Low::merge(state, &part, 1, 1, 1, 0, 0);
      High::run(&part, 1, block, size, index, parameter);
      High::merge(state + pitch, &part, 1, 1, 1, 0, 0);
    }
  }
  static void rows(double* state, int64_t pitch, const void* x, int64_t stride, int64_t rows, int64_t n,
                   double parameter) {
    Low::rows(state, pitch, x, stride, rows, n, parameter);
    High::rows(state + pitch, pitch, x, stride, rows, n, parameter);
  }
  static void columns(double* state, int64_t pitch, const void* x, int64_t stride, int64_t rows, int64_t columns,
                      int64_t index, int64_t step, double parameter) {
    Low::columns(state, pitch, x, stride, rows, columns, index, step, parameter);
    High::columns(state + pitch, pitch, x, stride, rows, columns, index, step, parameter);
  }
  static void merge(double* into, const double* from, int64_t pitch_into, int64_t pitch_from, int64_t count, double a,
                    double b) {
    Low::merge(into, from, pitch_into, pitch_from, count, a, b);
    High::merge(into + pitch_into, from + pitch_from, pitch_into, pitch_from, count, a, b);
  }
};

// ---- extremes with the index of the first of equals; the first NaN beats all.

template <class T, class Order>
struct ArgExtreme {
  static constexpr int kWords = 2;
  // Position of the first element that is `value` (or NaN, where value is).
  static int64_t find(const T* x, int64_t n, T value) {
    constexpr int64_t kGroup = 64;
    const bool nan = value != value;
    for (int64_t i = 0; i < n; i += kGroup) {
      const int64_t end = n - i < kGroup ? n : i + kGroup;
      if (end - i == kGroup) {
        Index<T> hit = 0;
        for (int64_t k = 0; k < kGroup; ++k) hit |= nan ? x[i + k] != x[i + k] : x[i + k] == value;
        if (!hit) continue;
      }
      for (int64_t k = i; k < end; ++k) {
        if (nan ? x[k] != x[k] : x[k] == value) return k;
      }
    }
    return 0;
  }
  static void run(double* state, int64_t pitch, const void* data, int64_t n, int64_t index, double) {
    constexpr int64_t kBlock = 512;
    const T* x = static_cast<const T*>(data);
    T best = Order::template neutral<T>();
    int64_t block = 0;
    for (int64_t i = 0; i < n; i += kBlock) {
      const T value = Extreme<T, Order, Plain>::of_run(x + i, n - i < kBlock ? n - i : kBlock);
      if (Order::beats(value, best) || value != value) {
        best = value;
        block = i;
        if (value != value) break;
      }
    }
    *words<T>(state) = best;
    indices(state)[pitch] = index + block + find(x + block, n - block < kBlock ? n - block : kBlock, best);
  }
  using V = Vector<T>;
  using I = Vector<Index<T>>;
  struct Lanes {
    V best;
    I at;
  };
  // Of two lanes from anywhere in a row: the first of equals wins.
  static RL_INLINE Lanes better(Lanes a, Lanes b) {
    const I wins = (I)(Order::beats(b.best, a.best)) | ((I)(b.best != b.best) & (I)(a.best == a.best));
    const I same = (I)(a.best == b.best) | ((I)(a.best != a.best) & (I)(b.best != b.best));
    const I take = wins | (same & (I)(b.at < a.at));
    return {take ? b.best : a.best, take ? b.at : a.at};
  }
  static RL_INLINE Lanes of_row(const T* row, int64_t n) {
    I places = {};
    for (int k = 0; k < kWidth<T>; ++k) places[k] = k;
    const auto part = [&](int64_t i) {
      return n - i >= kWidth<T> ? load(row + i)
                                : load_part(row + i, static_cast<int>(n - i), Order::template neutral<T>());
    };
    Lanes lanes = {part(0), places};
    for (int64_t i = kWidth<T>; i < n; i += kWidth<T>) {
      places += kWidth<T>;
      const V x = part(i);
      const I take = (I)(Order::beats(x, lanes.best)) | ((I)(x != x) & (I)(lanes.best == lanes.best));
      lanes.best = take ? x : lanes.best;
      lanes.at = take ? places : lanes.at;
    }
    return lanes;
  }
  template <int Half>
  static RL_INLINE void fold_level(Lanes* v) {
#pragma GCC unroll 8
    for (int k = 0; k < Half; ++k) {
      const Lanes a = v[2 * k], b = v[2 * k + 1];
      v[k] = better({pick_blocks<T, Half, 0>(a.best, b.best), pick_blocks<Index<T>, Half, 0>(a.at, b.at)},
                    {pick_blocks<T, Half, 1>(a.best, b.best), pick_blocks<Index<T>, Half, 1>(a.at, b.at)});
    }
  }
  static void rows(double* state, int64_t pitch, const void* data, int64_t stride, int64_t rows, int64_t n, double) {
    constexpr int64_t kLongRow = 256;  // from which the whole blocks of `run` are faster
    const T* x = static_cast<const T*>(data);
    if (n >= kLongRow) {
      for (int64_t r = 0; r < rows; ++r) run(state + r, pitch, x + r * stride, n, 0, 0);
      return;
    }
    constexpr int w = kWidth<T>;
    for (int64_t r = 0; r < rows; r += w) {
      const int count = rows - r < w ? static_cast<int>(rows - r) : w;
      Lanes v[w];
      for (int i = 0; i < w; ++i) v[i] = of_row(x + (r + (i < count ? i : 0)) * stride, n);
      if constexpr (w >= 16) fold_level<8>(v);
      if constexpr (w >= 8) fold_level<4>(v);
      if constexpr (w >= 4) fold_level<2>(v);
      fold_level<1>(v);
      for (int i = 0; i < count; ++i) {
        words<T>(state)[r + i] = static_cast<Word<T>>(v[0].best[i]);
        indices(state)[pitch + r + i] = v[0].at[i];
      }
    }
  }
  static void columns(double* state, int64_t pitch, const void* x, int64_t stride, int64_t rows, int64_t columns,
                      int64_t index, int64_t step, double) {
    T best[kReduceStrip];
    Index<T> at[kReduceStrip];
    const T* first = static_cast<const T*>(x);
    for (int64_t j = 0; j < columns; ++j) {
      best[j] = first[j];
      at[j] = 0;
    }
    for (int64_t r = 1; r < rows; ++r) {
      const T* __restrict row = first + r * stride;
      for (int64_t j = 0; j < columns; ++j) {
        const T value = row[j], old = best[j];
        const bool better = (Order::beats(value, old)) | ((value != value) & (old == old));
        best[j] = better ? value : old;
        at[j] = better ? static_cast<Index<T>>(r) : at[j];
      }
    }
    for (int64_t j = 0; j < columns; ++j) {
      words<T>(state)[j] = best[j];
      indices(state)[pitch + j] = index + step * at[j];
    }
  }
  static void merge(double* into, const double* from, int64_t pitch_into, int64_t pitch_from, int64_t count, double,
                    double) {
    for (int64_t j = 0; j < count; ++j) {
      const Word<T> a = words<T>(into)[j], b = words<T>(from)[j];
      const int64_t at_a = indices(into)[pitch_into + j], at_b = indices(from)[pitch_from + j];
      const bool same = (a == b) | ((a != a) & (b != b));
      if (same ? at_b < at_a : (Order::beats(b, a)) | ((b != b) & (a == a))) {
        words<T>(into)[j] = b;
        indices(into)[pitch_into + j] = at_b;
      }
    }
  }
};

template <class T>
constexpr void fill_table(ReduceTable& t, int tile) {
  t.kernels[kReduceMax][tile] = with_rows<Extreme<T, Greatest, Plain>>();
  t.kernels[kReduceMin][tile] = with_rows<Extreme<T, Least, Plain>>();
  t.kernels[kReduceMinMax][tile] = with_rows<MinMax<T>>();
  if constexpr (sizeof(T) > 1) {
    t.kernels[kReduceArgMax][tile] = with_rows<ArgExtreme<T, Greatest>>();
    t.kernels[kReduceArgMin][tile] = with_rows<ArgExtreme<T, Least>>();
  }
  if constexpr (!std::is_integral_v<T>) {
    t.kernels[kReduceAbsMax][tile] = with_rows<Extreme<T, Greatest, Magnitude>>();
    t.kernels[kReduceAbsMin][tile] = with_rows<Extreme<T, Least, Magnitude>>();
  }
}

constexpr ReduceTable make_table() {
  ReduceTable t{};
  fill_table<uint8_t>(t, kTileUint8);
  fill_table<int32_t>(t, kTileInt32);
  fill_table<int64_t>(t, kTileInt64);
  fill_table<float>(t, kTileFloat);
  fill_table<double>(t, kTileDouble);
  return t;
}

constexpr ReduceTable table = make_table();

}  // namespace

const ReduceTable& RL_ISA_SYMBOL(reduce_extreme_table)() { return table; }

}  // namespace rl
