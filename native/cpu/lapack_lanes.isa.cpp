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

template <class T>
Places load_matrices(const LanesGroup<T>& g, Vector<T>* a) {
  constexpr int w = kWidth<T>;
  const int n = g.n, count = n * n;
  const bool rows = g.in_column == 1 && g.in_row == n, columns = g.in_row == 1 && g.in_column == n;
  if (!rows && !columns) {
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) {
        Vector<T> v;
        for (int l = 0; l < w; ++l) v[l] = g.in[l][i * g.in_row + j * g.in_column];
        a[i * n + j] = v;
      }
    return {n, 1};
  }
  for (int c = 0; c < count; c += w) {
    Vector<T> block[w];
    if (c + w <= count) {
#pragma GCC unroll 16
      for (int l = 0; l < w; ++l) block[l] = load(g.in[l] + c);
    } else {
      for (int l = 0; l < w; ++l) block[l] = load_part(g.in[l] + c, count - c, T(0));
    }
    transpose<T>(block);
#pragma GCC unroll 16
    for (int k = 0; k < w; ++k) a[c + k] = block[k];
  }
  return rows ? Places{n, 1} : Places{1, n};
}

template <class T>
void store_matrices(const LanesGroup<T>& g, Places at, const Vector<T>* a) {
  constexpr int w = kWidth<T>;
  const int n = g.n, count = n * n;
  const bool rows = g.out_column == 1 && g.out_row == n, columns = g.out_row == 1 && g.out_column == n;
  if (!rows && !columns) {
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j)
        for (int l = 0; l < w; ++l) g.out[l][i * g.out_row + j * g.out_column] = a[at(i, j)][l];
    return;
  }
  const bool same = rows ? at.column == 1 : at.row == 1;
  for (int c = 0; c < count; c += w) {
    Vector<T> block[w];
    if (same) {
#pragma GCC unroll 16
      for (int k = 0; k < w; ++k) block[k] = a[c + k];
    } else {
      for (int k = 0; k < w && c + k < count; ++k) {
        const int first = (c + k) / n, second = (c + k) % n;
        block[k] = rows ? a[at(first, second)] : a[at(second, first)];
      }
    }
    transpose<T>(block);
    const int some = count - c;
    for (int l = 0; l < w; ++l) {
      if (some >= w)
        store(g.out[l] + c, block[l]);
      else
        std::memcpy(g.out[l] + c, &block[l], static_cast<size_t>(some) * sizeof(T));
    }
  }
}

template <class T>
void lu(const LanesGroup<T>& g, T* work) {
  constexpr int w = kWidth<T>;
  const int n = g.n;
  Vector<T>* const a = reinterpret_cast<Vector<T>*>(work);
  const Places at = load_matrices<T>(g, a);
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
    for (int l = 0; l < w; ++l) g.pivots[l][j * g.pivot_stride] = static_cast<int32_t>(where[l]) + 1;
    for (int i = j + 1; i < n; ++i) {
      const auto here = where == i;
      for (int k = 0; k < n; ++k) {
        const Vector<T> top = a[at(j, k)], low = a[at(i, k)];
        a[at(j, k)] = here ? low : top;
        a[at(i, k)] = here ? top : low;
      }
    }
    const Vector<T> pivot = a[at(j, j)];
    const auto zero = pivot == T(0);
    info = zero & (info == 0) ? Whole<T>{} + (j + 1) : info;
    for (int i = j + 1; i < n; ++i) {
      const Vector<T> x = a[at(i, j)], quotient = x / pivot;
      a[at(i, j)] = zero ? x : quotient;
      const Vector<T> factor = zero ? Vector<T>{} : quotient;
      for (int k = j + 1; k < n; ++k) a[at(i, k)] -= factor * a[at(j, k)];
    }
  }
  for (int l = 0; l < w; ++l) *g.info[l] = static_cast<int32_t>(info[l]);
  store_matrices<T>(g, at, a);
}

RL_INLINE float root(float x) { return std::sqrt(x); }
RL_INLINE double root(double x) { return std::sqrt(x); }

template <class T>
void cholesky(const LanesGroup<T>& g, T* work) {
  constexpr int w = kWidth<T>;
  const int n = g.n;
  Vector<T>* const a = reinterpret_cast<Vector<T>*>(work);
  Places at = load_matrices<T>(g, a);
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
  store_matrices<T>(g, stored, a);
}

constexpr LanesTable table = {{kWidth<float>, lu<float>, cholesky<float>},
                              {kWidth<double>, lu<double>, cholesky<double>}};

}  // namespace

const LanesTable& RL_ISA_SYMBOL(lanes_table)() { return table; }

}  // namespace rl
