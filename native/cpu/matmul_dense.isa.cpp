// Products of float32 and float64 matrices, after K. Goto and R. van de Geijn, "Anatomy of high-performance matrix
// multiplication" (ACM TOMS 34, 2008) and F. Van Zee and R. van de Geijn, "BLIS" (ACM TOMS 41, 2015).
//
// The kernel keeps a tile of out in registers and runs along the terms: a line of b in vectors times one number of a
// after another. b is packed in panels as wide as a tile, which stay in the second-level cache; the rows of a that a
// tile needs lie in the first-level cache while all panels pass. a is read where it is unless its strides are bad.
#include "cpu/matmul_dense.h"

#include <algorithm>
#include <utility>

#include "core/dtype.h"
#include "core/memory.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#define RL_VECTOR_BYTES 64
#define RL_TILE_ROWS 14
#endif

namespace rl {
namespace {

#if defined(RL_VECTOR_BYTES)

constexpr int kMostRows = RL_TILE_ROWS;
constexpr int kAhead = 12;            // lines of b fetched ahead of their use: longer than the second-level cache takes
constexpr int64_t kTermBytes = 1536;  // of a row of a, at most: kMostRows of them take half the first-level cache

template <class T>
struct Lanes {
  typedef T Type __attribute__((vector_size(RL_VECTOR_BYTES)));
  static constexpr int kCount = RL_VECTOR_BYTES / sizeof(T);
};
template <class T>
using Vec = typename Lanes<T>::Type;
template <class T>
constexpr int kLanes = Lanes<T>::kCount;
template <class T>
constexpr int kWidth = 2 * kLanes<T>;  // columns of a tile

template <class T>
RL_INLINE Vec<T> load(const T* from) {
  Vec<T> x;
  __builtin_memcpy(&x, from, sizeof x);
  return x;
}
template <class T>
RL_INLINE void store(T* to, Vec<T> x) {
  __builtin_memcpy(to, &x, sizeof x);
}

RL_INLINE Vec<float> splat(float x) { return (Vec<float>)_mm512_set1_ps(x); }
RL_INLINE Vec<double> splat(double x) { return (Vec<double>)_mm512_set1_pd(x); }

// The first `count` lanes, at most all of them; the others are 0, or not written.
RL_INLINE unsigned lane_mask(int64_t count) { return count >= 16 ? 0xffffu : (1u << count) - 1; }
RL_INLINE Vec<float> load_some(const float* from, int64_t count) {
  return (Vec<float>)_mm512_maskz_loadu_ps(static_cast<__mmask16>(lane_mask(count)), from);
}
RL_INLINE Vec<double> load_some(const double* from, int64_t count) {
  return (Vec<double>)_mm512_maskz_loadu_pd(static_cast<__mmask8>(lane_mask(count)), from);
}
RL_INLINE void store_some(float* to, Vec<float> x, int64_t count) {
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>(lane_mask(count)), (__m512)x);
}
RL_INLINE void store_some(double* to, Vec<double> x, int64_t count) {
  _mm512_mask_storeu_pd(to, static_cast<__mmask8>(lane_mask(count)), (__m512d)x);
}

RL_INLINE int64_t ceil_divide(int64_t size, int64_t by) { return (size + by - 1) / by; }

// ---- the kernel

// Tile (c, c_row) = or += the sum over `terms` of kRows numbers of a times kVectors vectors of b. The numbers of a lie
// a_step apart from row to row and follow each other along the terms (kAlong), or the other way round.
template <class T, int kRows, int kVectors, bool kAlong>
void multiply(int64_t terms, const T* a, int64_t a_step, const T* b, int64_t b_row, T* c, int64_t c_row, bool more) {
  constexpr int kL = kLanes<T>;
  Vec<T> sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      sum[r][v] = Vec<T>{};
      __builtin_prefetch(c + r * c_row + v * kL, 1);
    }
  }
  // Three rows an address reaches: one register for each would be too many.
  constexpr int kBases = kAlong ? (kRows + 2) / 3 : 1;
  const T* base[kBases];
#pragma GCC unroll 16
  for (int i = 0; i < kBases; ++i) base[i] = a + 3 * i * a_step;
#pragma GCC unroll 4
  for (int64_t l = 0; l < terms; ++l) {
    Vec<T> x[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      x[v] = load(b + v * kL);
      __builtin_prefetch(b + kAhead * b_row + v * kL);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      Vec<T> y = splat(kAlong ? base[r / 3][r % 3 * a_step] : base[0][r]);
      __asm__("" : "+v"(y));  // one broadcast for all vectors, not a load in each
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[r][v] += x[v] * y;
    }
    b += b_row;
#pragma GCC unroll 16
    for (int i = 0; i < kBases; ++i) base[i] += kAlong ? 1 : a_step;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      T* const to = c + r * c_row + v * kL;
      store(to, more ? load(to) + sum[r][v] : sum[r][v]);
    }
  }
}

template <class T>
using Multiply = void (*)(int64_t, const T*, int64_t, const T*, int64_t, T*, int64_t, bool);

template <class T, int kVectors, bool kAlong, int... kRow>
constexpr Multiply<T> pick(int rows, std::integer_sequence<int, kRow...>) {
  constexpr Multiply<T> all[] = {multiply<T, kRow + 1, kVectors, kAlong>...};
  return all[rows - 1];
}

template <class T>
Multiply<T> multiply_of(int rows, int vectors, bool along) {
  constexpr std::make_integer_sequence<int, kMostRows> all{};
  if (along) return vectors == 1 ? pick<T, 1, true>(rows, all) : pick<T, 2, true>(rows, all);
  return vectors == 1 ? pick<T, 1, false>(rows, all) : pick<T, 2, false>(rows, all);
}

// ---- packing

template <class T, int... kLane>
RL_INLINE Vec<T> zip_low(Vec<T> x, Vec<T> y, std::integer_sequence<int, kLane...>) {
  return __builtin_shufflevector(x, y, (kLane / 2 + kLane % 2 * kLanes<T>)...);
}
template <class T, int... kLane>
RL_INLINE Vec<T> zip_high(Vec<T> x, Vec<T> y, std::integer_sequence<int, kLane...>) {
  return __builtin_shufflevector(x, y, (kLanes<T> / 2 + kLane / 2 + kLane % 2 * kLanes<T>)...);
}

// As many vectors as lanes, transposed.
template <class T>
RL_INLINE void transpose(Vec<T> (&x)[kLanes<T>]) {
  constexpr int kL = kLanes<T>;
  constexpr std::make_integer_sequence<int, kL> lanes{};
#pragma GCC unroll 4
  for (int step = 1; step < kL; step *= 2) {
    Vec<T> y[kL];
#pragma GCC unroll 8
    for (int i = 0; i < kL / 2; ++i) {
      y[2 * i] = zip_low<T>(x[i], x[i + kL / 2], lanes);
      y[2 * i + 1] = zip_high<T>(x[i], x[i + kL / 2], lanes);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kL; ++i) x[i] = y[i];
  }
}

// `count` columns of b in one panel, kWidth (or, if they fit, kLanes) wide, what is outside being 0.
template <class T>
void pack_across(const T* b, int64_t column, int64_t terms, int64_t count, int64_t width, T* to) {
  constexpr int kL = kLanes<T>;
  for (int64_t l = 0; l < terms; l += kL) {
    const int64_t length = std::min<int64_t>(kL, terms - l);
    for (int64_t j = 0; j < width; j += kL) {
      Vec<T> x[kL];
      if (length == kL && count - j >= kL) {
#pragma GCC unroll 16
        for (int i = 0; i < kL; ++i) x[i] = load(b + (j + i) * column + l);
      } else {
#pragma GCC unroll 16
        for (int i = 0; i < kL; ++i) {
          x[i] = j + i < count ? load_some(b + (j + i) * column + l, length) : Vec<T>{};
        }
      }
      transpose<T>(x);
      if (length == kL) {
#pragma GCC unroll 16
        for (int i = 0; i < kL; ++i) store(to + (l + i) * width + j, x[i]);
      } else {
        for (int i = 0; i < length; ++i) store(to + (l + i) * width + j, x[i]);
      }
    }
  }
}

// Terms [first, first + terms) of b's columns [j, j + columns), one panel after another.
template <class T>
void pack_b(const DenseProduct<T>& p, int64_t first, int64_t terms, int64_t j, int64_t columns, T* to) {
  constexpr int kL = kLanes<T>;
  const T* const b = p.b + first * p.b_row + j * p.b_column;
  if (p.b_column == 1) {
    const int64_t whole = columns / kWidth<T>;
    // Some lines at a time: one after the other in b, and in every panel.
    constexpr int64_t kLines = 4;
    for (int64_t l = 0; l < terms; l += kLines) {
      const int64_t lines = std::min(kLines, terms - l);
      for (int64_t panel = 0; panel < whole; ++panel) {
        const T* const from = b + l * p.b_row + panel * kWidth<T>;
        T* const line = to + (panel * terms + l) * kWidth<T>;
        for (int64_t i = 0; i < lines; ++i) {
          store(line + i * kWidth<T>, load(from + i * p.b_row));
          store(line + i * kWidth<T> + kL, load(from + i * p.b_row + kL));
        }
      }
    }
    const int64_t rest = columns - whole * kWidth<T>;
    if (rest == 0) return;
    T* line = to + whole * terms * kWidth<T>;
    const T* from = b + whole * kWidth<T>;
    for (int64_t l = 0; l < terms; ++l, from += p.b_row) {
      store(line, load_some(from, rest));
      line += kL;
      if (rest > kL) {
        store(line, load_some(from + kL, rest - kL));
        line += kL;
      }
    }
    return;
  }
  for (int64_t c = 0; c < columns; c += kWidth<T>) {
    const int64_t count = std::min<int64_t>(kWidth<T>, columns - c), width = count > kL ? kWidth<T> : kL;
    if (p.b_row == 1) {
      pack_across(b + c * p.b_column, p.b_column, terms, count, width, to);
    } else {
      for (int64_t l = 0; l < terms; ++l) {
        for (int64_t i = 0; i < width; ++i)
          to[l * width + i] = i < count ? b[l * p.b_row + (c + i) * p.b_column] : T(0);
      }
    }
    to += terms * width;
  }
}

// Rows of a, one after the other along the terms (step apart), or the terms one after the other along the rows.
template <class T>
void pack_a(const T* a, int64_t row, int64_t column, int64_t rows, int64_t terms, bool along, T* to, int64_t step) {
  constexpr int kL = kLanes<T>;
  if (along && column == 1) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t l = 0; l < terms; l += kL) store(to + r * step + l, load_some(a + r * row + l, terms - l));
    }
  } else if (!along && row == 1) {
    for (int64_t l = 0; l < terms; ++l) {
      for (int64_t r = 0; r < rows; r += kL) store(to + l * step + r, load_some(a + l * column + r, rows - r));
    }
  } else {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t l = 0; l < terms; ++l) to[along ? r * step + l : l * step + r] = a[r * row + l * column];
    }
  }
}

// Asks for one of `slices` parts of the rows that the next tile reads.
template <class T>
void prefetch_a(const T* a, int64_t row, int64_t column, int64_t rows, int64_t terms, int64_t slice, int64_t slices) {
  constexpr int64_t kLine = 64 / sizeof(T);
  if (column == 1) {
    const int64_t lines = terms / kLine + 1, end = rows * lines * (slice + 1) / slices;
    for (int64_t at = rows * lines * slice / slices; at < end; ++at)
      __builtin_prefetch(a + at / lines * row + at % lines * kLine, 0, 2);
  } else if (row == 1) {
    for (int64_t l = terms * slice / slices; l < terms * (slice + 1) / slices; ++l) {
      __builtin_prefetch(a + l * column, 0, 2);
      __builtin_prefetch(a + l * column + rows - 1, 0, 2);
    }
  }
}

// ---- edges, factors, the added matrix

// Writes the sums of a tile (kWidth apart) to rows x columns of out at (i, j).
template <class T>
void finish(const DenseProduct<T>& p, const T* sums, int64_t i, int64_t rows, int64_t j, int64_t columns, bool more) {
  const T* const add = more ? p.out : p.add;
  const int64_t add_row = more ? p.out_row : p.add_row, add_column = more ? p.out_column : p.add_column;
  const T beta = more ? T(1) : p.beta;
  const bool dense = p.out_column == 1 && (!add || add_column == 1);
  for (int64_t r = 0; r < rows; ++r) {
    const T* const from = sums + r * kWidth<T>;
    T* const to = p.out + (i + r) * p.out_row + j * p.out_column;
    const T* const plus = add ? add + (i + r) * add_row + j * add_column : nullptr;
    if (dense) {
      for (int64_t c = 0; c < columns; c += kLanes<T>) {
        Vec<T> value = load(from + c) * p.alpha;
        if (plus) value += load_some(plus + c, columns - c) * beta;
        store_some(to + c, value, columns - c);
      }
    } else {
      for (int64_t c = 0; c < columns; ++c) {
        T value = from[c] * p.alpha;
        if (plus) value += plus[c * add_column] * beta;
        to[c * p.out_column] = value;
      }
    }
  }
}

// ---- the product

// The rows of a tile, in a or packed.
template <class T>
struct Rows {
  const T* data;
  int64_t step;
};

template <class T>
rl_status product(const DenseProduct<T>& p, int64_t block_bytes) {
  constexpr int kL = kLanes<T>;
  constexpr int64_t kMostTerms = kTermBytes / sizeof(T);
  // Parts of even length: what they are decides the bits.
  const int64_t parts = ceil_divide(p.k, kMostTerms);
  const int64_t part = std::min(p.k, ceil_divide(ceil_divide(p.k, parts), kL) * kL);
  // As even are the rows of the tiles: one of few rows would wait for its sums.
  const int64_t row_tiles = ceil_divide(p.m, kMostRows);
  const int64_t tile_rows = ceil_divide(p.m, row_tiles), shorter = tile_rows * row_tiles - p.m;

  const int64_t most_columns = std::max<int64_t>(1, block_bytes / (part * static_cast<int64_t>(sizeof(T)) * kWidth<T>));
  const int64_t panels = ceil_divide(p.n, kWidth<T>);
  const int64_t block = ceil_divide(panels, ceil_divide(panels, most_columns)) * kWidth<T>;

  const bool along = p.a_column == 1 || p.a_row != 1;
  const bool copy_a = (p.a_column != 1 && p.a_row != 1) ||
                      (p.n > 2 * kWidth<T> && (along ? p.a_row : p.a_column) * sizeof(T) % 1024 == 0);
  // An odd number of lines: rows an even number apart would share sets of the cache.
  const int64_t a_step = along ? (ceil_divide(part, kL) | 1) * kL : ceil_divide(kMostRows, kL) * kL;
  const bool copy_b = !(p.b_column == 1 && p.n % kL == 0 && p.m <= kMostRows);

  const Scratch<T> a_rows(copy_a ? (along ? kMostRows * a_step : part * a_step) : 0);
  const Scratch<T> b_panels(copy_b ? std::min(block, panels * kWidth<T>) * part : 0);
  if (!a_rows || !b_panels) return RL_MEMORY_ERROR;
  alignas(64) T sums[kMostRows * kWidth<T>];

  for (int64_t j = 0; j < p.n; j += block) {
    const int64_t columns = std::min(block, p.n - j);
    for (int64_t l = 0; l < p.k; l += part) {
      const int64_t terms = std::min(part, p.k - l);
      const bool more = l > 0, plain = p.alpha == 1 && (more || !p.add) && p.out_column == 1;
      if (copy_b) pack_b(p, l, terms, j, columns, b_panels.get());
      int64_t i = 0;
      for (int64_t tile = 0; tile < row_tiles; ++tile) {
        const int64_t rows = tile_rows - (tile < shorter);
        Rows<T> a = {p.a + i * p.a_row + l * p.a_column, along ? p.a_row : p.a_column};
        if (copy_a) {
          pack_a(a.data, p.a_row, p.a_column, rows, terms, along, a_rows.get(), a_step);
          a = {a_rows.get(), a_step};
        }
        const auto wide = multiply_of<T>(static_cast<int>(rows), 2, along);
        for (int64_t c = 0; c < columns; c += kWidth<T>) {
          if (tile + 1 < row_tiles && columns > 2 * kWidth<T>) {
            prefetch_a(p.a + (i + rows) * p.a_row + l * p.a_column, p.a_row, p.a_column, tile_rows, terms,
                       c / kWidth<T>, ceil_divide(columns, kWidth<T>));
          }
          const int64_t count = std::min<int64_t>(kWidth<T>, columns - c);
          const bool narrow = count <= kL;
          const auto run = narrow ? multiply_of<T>(static_cast<int>(rows), 1, along) : wide;
          const T* const b = copy_b ? b_panels.get() + c * terms : p.b + l * p.b_row + j + c;
          const int64_t b_row = copy_b ? (narrow ? kL : kWidth<T>) : p.b_row;
          if (plain && (count == kWidth<T> || count == kL)) {
            run(terms, a.data, a.step, b, b_row, p.out + i * p.out_row + j + c, p.out_row, more);
          } else {
            run(terms, a.data, a.step, b, b_row, sums, kWidth<T>, false);
            finish(p, sums, i, rows, j + c, count, more);
          }
        }
        i += rows;
      }
    }
  }
  return RL_OK;
}

constexpr MatmulDenseTable table = {product<float>, product<double>, kMostRows, 2 * RL_VECTOR_BYTES};

#else

constexpr MatmulDenseTable table = {nullptr, nullptr, 0, 0};

#endif

}  // namespace

const MatmulDenseTable& RL_ISA_SYMBOL(matmul_dense_table)() { return table; }

}  // namespace rl
