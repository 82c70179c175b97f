// LU and Cholesky factors of small matrices, one in each lane of the vectors.
#include "cpu/lapack_lanes.h"

#include <cmath>

#include "cpu/transpose_simd.h"

namespace rl {
namespace {

template <class T>
using Whole = typename Indices<T>::type;

// Where element (i, j) is among the vectors: in the order of the input's memory.
struct Places {
  int row, column;
  RL_INLINE int operator()(int i, int j) const { return i * row + j * column; }
};

// Numbers of rows x columns matrices in all lanes
template <class T>
Places load_matrices(const T* const* in, int rows, int columns, int64_t row_step, int64_t column_step, Vector<T>* a) {
  constexpr int w = kWidth<T>;
  const int count = rows * columns;
  const bool by_rows = column_step == 1 && row_step == columns, by_columns = row_step == 1 && column_step == rows;
  if (!by_rows && !by_columns) {
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) {
        T numbers[w];
        for (int l = 0; l < w; ++l) numbers[l] = in[l][i * row_step + j * column_step];
        a[i * columns + j] = load(numbers);
      }
    return {columns, 1};
  }
  for (int c = 0; c < count; c += w) {
    Vector<T> block[w];
    if (c + w <= count) {
#pragma GCC unroll 16
      for (int l = 0; l < w; ++l) block[l] = load(in[l] + c);
    } else {
      for (int l = 0; l < w; ++l) block[l] = load_part(in[l] + c, count - c, T(0));
    }
    transpose<T>(block);
#pragma GCC unroll 16
    for (int k = 0; k < w; ++k) a[c + k] = block[k];
  }
  return by_rows ? Places{columns, 1} : Places{1, rows};
}

template <class T>
void store_matrices(T* const* out, int rows, int columns, int64_t row_step, int64_t column_step, Places at,
                    const Vector<T>* a) {
  constexpr int w = kWidth<T>;
  const int count = rows * columns;
  const bool by_rows = column_step == 1 && row_step == columns, by_columns = row_step == 1 && column_step == rows;
  if (!by_rows && !by_columns) {
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) {
        T numbers[w];
        store(numbers, a[at(i, j)]);
        for (int l = 0; l < w; ++l) out[l][i * row_step + j * column_step] = numbers[l];
      }
    return;
  }
  const bool same = by_rows ? at.column == 1 && at.row == columns : at.row == 1 && at.column == rows;
  for (int c = 0; c < count; c += w) {
    Vector<T> block[w];
    if (same) {
#pragma GCC unroll 16
      for (int k = 0; k < w; ++k) block[k] = a[c + k];
    } else {
      for (int k = 0; k < w && c + k < count; ++k)
        block[k] = by_rows ? a[at((c + k) / columns, (c + k) % columns)] : a[at((c + k) % rows, (c + k) / rows)];
    }
    transpose<T>(block);
    const int some = count - c;
    for (int l = 0; l < w; ++l) {
      if (some >= w)
        store(out[l] + c, block[l]);
      else
        std::memcpy(out[l] + c, &block[l], static_cast<size_t>(some) * sizeof(T));
    }
  }
}

// L U with partial pivoting of what is in a, and L^-1 P b of the `columns` columns in b.
template <class T>
RL_INLINE void factor(const LanesGroup<T>& g, Vector<T>* a, Places at, Vector<T>* b, Places b_at, int columns) {
  constexpr int w = kWidth<T>;
  const int n = g.n;
  Whole<T> info = {};
  for (int j = 0; j < n; ++j) {
    Vector<T> best = a[at(j, j)];
    best = best < T(0) ? -best : best;
    Whole<T> where = Whole<T>{} + j;
    for (int i = j + 1; i < n; ++i) {
      const Vector<T> x = a[at(i, j)], size = x < T(0) ? -x : x;
      const auto greater = size > best;
      best = greater ? size : best;
      where = greater ? Whole<T>{} + i : where;
    }
    if (g.pivots[0])
      for (int l = 0; l < w; ++l) g.pivots[l][j * g.pivot_stride] = static_cast<int32_t>(where[l]) + 1;
    for (int i = j + 1; i < n; ++i) {
      const auto here = where == i;
      for (int k = 0; k < n; ++k) {
        const Vector<T> top = a[at(j, k)], low = a[at(i, k)];
        a[at(j, k)] = here ? low : top;
        a[at(i, k)] = here ? top : low;
      }
      for (int k = 0; k < columns; ++k) {
        const Vector<T> top = b[b_at(j, k)], low = b[b_at(i, k)];
        b[b_at(j, k)] = here ? low : top;
        b[b_at(i, k)] = here ? top : low;
      }
    }
    const Vector<T> pivot = a[at(j, j)];
    const auto zero = pivot == T(0);
    info = zero & (info == 0) ? Whole<T>{} + (j + 1) : info;
    for (int i = j + 1; i < n; ++i) {
      const Vector<T> x = a[at(i, j)], quotient = x / pivot;
      const Vector<T> left = zero ? x : quotient;
      a[at(i, j)] = left;
      const Vector<T> factor = zero ? Vector<T>{} : quotient;
      for (int k = j + 1; k < n; ++k) a[at(i, k)] -= factor * a[at(j, k)];
      for (int k = 0; k < columns; ++k) b[b_at(i, k)] -= left * b[b_at(j, k)];
    }
  }
  for (int l = 0; l < w; ++l) *g.info[l] = static_cast<int32_t>(info[l]);
}

// b = U^-1 b
template <class T>
RL_INLINE void substitute(int n, int columns, const Vector<T>* a, Places at, Vector<T>* b, Places b_at) {
  for (int j = n - 1; j >= 0; --j) {
    const Vector<T> pivot = a[at(j, j)];
    for (int k = 0; k < columns; ++k) {
      const Vector<T> x = b[b_at(j, k)] / pivot;
      b[b_at(j, k)] = x;
      for (int i = 0; i < j; ++i) b[b_at(i, k)] -= a[at(i, j)] * x;
    }
  }
}

template <class T>
void lu(const LanesGroup<T>& g, T* work) {
  const int n = g.n;
  Vector<T>* const a = reinterpret_cast<Vector<T>*>(work);
  const Places at = load_matrices<T>(g.in, n, n, g.in_row, g.in_column, a);
  factor<T>(g, a, at, nullptr, at, 0);
  store_matrices<T>(g.out, n, n, g.out_row, g.out_column, at, a);
}

template <class T>
void solve(const LanesGroup<T>& g, T* work) {
  const int n = g.n;
  Vector<T>*const a = reinterpret_cast<Vector<T>*>(work), *const b = a + n * n + kWidth<T>;
  const Places at = load_matrices<T>(g.in, n, n, g.in_row, g.in_column, a);
  const Places b_at = load_matrices<T>(g.b, n, g.columns, g.b_row, g.b_column, b);
  factor<T>(g, a, at, b, b_at, g.columns);
  substitute<T>(n, g.columns, a, at, b, b_at);
  store_matrices<T>(g.out, n, n, g.out_row, g.out_column, at, a);
  store_matrices<T>(g.x, n, g.columns, g.x_row, g.x_column, b_at, b);
}

template <class T>
void inverse(const LanesGroup<T>& g, T* work) {
  const int n = g.n;
  Vector<T>*const a = reinterpret_cast<Vector<T>*>(work), *const b = a + n * n + kWidth<T>;
  const Places at = load_matrices<T>(g.in, n, n, g.in_row, g.in_column, a);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) b[at(i, j)] = Vector<T>{} + T(i == j ? 1 : 0);
  factor<T>(g, a, at, b, at, n);
  substitute<T>(n, n, a, at, b, at);
  store_matrices<T>(g.x, n, n, g.x_row, g.x_column, at, b);
}

template <class T>
void lu_solve(const LanesGroup<T>& g, T* work) {
  constexpr int w = kWidth<T>;
  const int n = g.n;
  Vector<T>*const a = reinterpret_cast<Vector<T>*>(work), *const b = a + n * n + w;
  const Places at = load_matrices<T>(g.in, n, n, g.in_row, g.in_column, a);
  const Places b_at = {g.columns, 1};
  int rows[w][kLanesMatrix];
  for (int l = 0; l < w; ++l) {
    for (int i = 0; i < n; ++i) rows[l][i] = i;
    for (int i = 0; i < n; ++i) std::swap(rows[l][i], rows[l][g.pivots[l][i * g.pivot_stride] - 1]);
  }
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < g.columns; ++k) {
      T numbers[w];
      for (int l = 0; l < w; ++l) numbers[l] = g.b[l][rows[l][i] * g.b_row + k * g.b_column];
      b[b_at(i, k)] = load(numbers);
    }
  for (int j = 0; j < n; ++j)
    for (int i = j + 1; i < n; ++i) {
      const Vector<T> left = a[at(i, j)];
      for (int k = 0; k < g.columns; ++k) b[b_at(i, k)] -= left * b[b_at(j, k)];
    }
  substitute<T>(n, g.columns, a, at, b, b_at);
  store_matrices<T>(g.x, n, g.columns, g.x_row, g.x_column, b_at, b);
}

RL_INLINE float root(float x) { return std::sqrt(x); }
RL_INLINE double root(double x) { return std::sqrt(x); }

template <class T>
void cholesky(const LanesGroup<T>& g, T* work) {
  constexpr int w = kWidth<T>;
  const int n = g.n;
  Vector<T>* const a = reinterpret_cast<Vector<T>*>(work);
  Places at = load_matrices<T>(g.in, n, n, g.in_row, g.in_column, a);
  const Places stored = at;
  if (g.upper) std::swap(at.row, at.column);  // the lower factor of what the upper triangle says, turned
  Whole<T> info = {};
  for (int j = 0; j < n; ++j) {
    Vector<T> d = a[at(j, j)];
    for (int k = 0; k < j; ++k) d -= a[at(j, k)] * a[at(j, k)];
    const auto bad = ~(d > T(0));
    info = bad & (info == 0) ? Whole<T>{} + (j + 1) : info;
    Vector<T> size;
    for (int l = 0; l < w; ++l) size[l] = root(d[l]);
    a[at(j, j)] = size;
    for (int i = j + 1; i < n; ++i) {
      Vector<T> x = a[at(i, j)];
      for (int k = 0; k < j; ++k) x -= a[at(i, k)] * a[at(j, k)];
      a[at(i, j)] = x / size;
      a[at(j, i)] = Vector<T>{};
    }
  }
  for (int l = 0; l < w; ++l) *g.info[l] = static_cast<int32_t>(info[l]);
  store_matrices<T>(g.out, n, n, g.out_row, g.out_column, stored, a);
}

// ---- few right sides of a large triangle: rows of it times the numbers that are known

template <class T, int kColumns>
void substitute_rows(int n, const T* a, int64_t a_step, bool upper, bool unit, T* x, int64_t x_step) {
  constexpr int w = kWidth<T>;
  for (int k = 0; k < n; ++k) {
    const int i = upper ? n - 1 - k : k, from = upper ? i + 1 : 0, to = upper ? n : i;
    const T* row = a + i * a_step;
    Vector<T> sums[kColumns] = {};
    int j = from;
    for (; j + w <= to; j += w) {
      const Vector<T> v = load(row + j);
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) sums[c] += v * load(x + c * x_step + j);
    }
    if (j < to) {
      const Vector<T> v = load_part(row + j, to - j, T(0));
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) sums[c] += v * load_part(x + c * x_step + j, to - j, T(0));
    }
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) {
      T parts[w];
      store(parts, sums[c]);
#pragma GCC unroll 4
      for (int half = w / 2; half > 0; half /= 2)
        for (int l = 0; l < half; ++l) parts[l] += parts[l + half];
      T& known = x[c * x_step + i];
      known -= parts[0];
      if (!unit) known /= row[i];
    }
  }
}

template <class T>
void substitute_large(int n, const T* a, int64_t a_step, bool upper, bool unit, T* x, int64_t x_step, int columns) {
  int c = 0;
  for (; c + 4 <= columns; c += 4) substitute_rows<T, 4>(n, a, a_step, upper, unit, x + c * x_step, x_step);
  for (; c + 2 <= columns; c += 2) substitute_rows<T, 2>(n, a, a_step, upper, unit, x + c * x_step, x_step);
  if (c < columns) substitute_rows<T, 1>(n, a, a_step, upper, unit, x + c * x_step, x_step);
}

template <class T>
constexpr LanesLoops<T> kLoops = {kWidth<T>,           lu<T>,      solve<T>, inverse<T>, lu_solve<T>,
                                  substitute_large<T>, cholesky<T>};

constexpr LanesTable table = {kLoops<float>, kLoops<double>};

}  // namespace

const LanesTable& RL_ISA_SYMBOL(lanes_table)() { return table; }

}  // namespace rl
