// The register tile of the convolution kernels: M rows of sums by V vectors of columns. For files compiled once per
// instruction set.
#pragma once

#include "core/dtype.h"
#include "cpu/conv_vector.h"

namespace rl {
namespace {

// Tiles read up to this many elements behind the last column they are asked for.
template <class T>
constexpr int64_t kTileSlack = 8 * kLanes<T>;

// result[m][j] (+)= sum over k of weights[k][m] * buffer[offsets[k] + j]
template <class T>
struct Terms {
  int64_t count;
  const T* weights;  // [count][M]
  const T* buffer;
  const int64_t* offsets;
  const T* bias;  // of the first row, or null for zeros
  bool first;     // start from bias, else from what the result holds
};

// Only `rest` columns of the last vector are wanted; the result has no room for more. Full tiles pass kLanes.
template <class T, int M, int V>
void tile(const Terms<T>& terms, int64_t position, int64_t rest, T* result, int64_t result_row) {
  constexpr int64_t L = kLanes<T>;
  Vector<T> sum[M][V];
  if (terms.first) {
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) {
      const Vector<T> start = splat<T>(terms.bias ? terms.bias[m] : T(0));
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) sum[m][v] = start;
    }
  } else {
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) {
#pragma GCC unroll 16
      for (int v = 0; v < V - 1; ++v) sum[m][v] = load(result + m * result_row + v * L);
      sum[m][V - 1] = load_first(result + m * result_row + (V - 1) * L, rest);
    }
  }
  const T* weight = terms.weights;
  const T* const base = terms.buffer + position;
  for (int64_t k = 0; k < terms.count; ++k, weight += M) {
    const T* const row = base + terms.offsets[k];
    Vector<T> x[V];
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) x[v] = load(row + v * L);
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) {
      const Vector<T> w = splat<T>(weight[m]);
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) sum[m][v] += w * x[v];
    }
  }
#pragma GCC unroll 16
  for (int m = 0; m < M; ++m) {
#pragma GCC unroll 16
    for (int v = 0; v < V - 1; ++v) store(result + m * result_row + v * L, sum[m][v]);
    store_first(result + m * result_row + (V - 1) * L, sum[m][V - 1], rest);
  }
}

// Columns [position, position + columns), in tiles of V vectors, then a narrower one.
template <class T, int M, int V>
void tiles(const Terms<T>& terms, int64_t position, int64_t columns, T* result, int64_t result_row) {
  constexpr int64_t L = kLanes<T>, width = V * L;
  while (columns >= width) {
    tile<T, M, V>(terms, position, L, result, result_row);
    position += width;
    result += width;
    columns -= width;
  }
  if (columns <= 0) return;
  if constexpr (V > 1) {
    constexpr int narrower = V == 3 ? 2 : V / 2;
    if (columns <= narrower * L) {
      tiles<T, M, narrower>(terms, position, columns, result, result_row);
      return;
    }
    // Between the widths, a tile would do more than it must: the narrower ones in turn.
    if constexpr (V > 3) {
      tile<T, M, narrower>(terms, position, L, result, result_row);
      tiles<T, M, narrower>(terms, position + narrower * L, columns - narrower * L, result + narrower * L, result_row);
      return;
    }
  }
  tile<T, M, V>(terms, position, columns - (V - 1) * L, result, result_row);
}

// Vectors that a tile of M rows has.
template <int M>
inline constexpr int kTileVectors = M == kPanel          ? kPanelVectors
                                    : M == 4             ? 6
                                    : kVectorBytes == 64 ? 8
                                                         : 4;

// Rows of a tile when `left` remain.
RL_INLINE int64_t panel_rows(int64_t left) {
  int64_t rows = kPanel;
  while (rows > left) rows /= 2;
  return rows;
}

template <class T>
void panel(int64_t rows, const Terms<T>& terms, int64_t position, int64_t columns, T* result, int64_t result_row) {
  switch (rows) {
    case 8:
      if constexpr (kPanel >= 8) tiles<T, 8, kTileVectors<8>>(terms, position, columns, result, result_row);
      break;
    case 4:
      tiles<T, 4, kTileVectors<4>>(terms, position, columns, result, result_row);
      break;
    case 2:
      tiles<T, 2, kTileVectors<2>>(terms, position, columns, result, result_row);
      break;
    default:
      tiles<T, 1, kTileVectors<1>>(terms, position, columns, result, result_row);
  }
}

}  // namespace
}  // namespace rl
