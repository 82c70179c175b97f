// Factors of many small real matrices at once: a vector holds one element of several matrices.
#pragma once

#include <cstdint>

#include "cpu/isa.h"

namespace rl {

constexpr int kLanesMatrix = 16;  // the largest one
constexpr int kMostMatrixLanes = 16;

// As many matrices as a vector has numbers; strides in elements.
template <class T>
struct LanesGroup {
  int n;
  const T* in[kMostMatrixLanes];
  T* out[kMostMatrixLanes];
  int64_t in_row, in_column, out_row, out_column;
  int32_t* info[kMostMatrixLanes];
  int32_t* pivots[kMostMatrixLanes];
  int64_t pivot_stride;
  bool upper;
  // Right sides and solutions of `columns` columns
  int columns;
  const T* b[kMostMatrixLanes];
  T* x[kMostMatrixLanes];
  int64_t b_row, b_column, x_row, x_column;
};

template <class T>
struct LanesLoops {
  int width;
  // P L U as LAPACK's ?getf2 finds it; `work` has room for width * (n * (n + columns) + 4 * width) numbers
  void (*lu)(const LanesGroup<T>& group, T* work);
  // That, and what solves with it
  void (*solve)(const LanesGroup<T>& group, T* work);
  // The inverse, in x
  void (*inverse)(const LanesGroup<T>& group, T* work);
  // From such factors in `in` and their pivots
  void (*lu_solve)(const LanesGroup<T>& group, T* work);
  // x = T^-1 x for `columns` columns, n numbers each and x_step apart, of a triangle whose rows are contiguous
  void (*substitute)(int n, const T* a, int64_t a_step, bool upper, bool unit, T* x, int64_t x_step, int columns);
  // The Cholesky factor, the other triangle zero. Of a matrix that is not positive-definite only `info` is right.
  void (*cholesky)(const LanesGroup<T>& group, T* work);
};

struct LanesTable {
  LanesLoops<float> single;
  LanesLoops<double> wide;
};
RL_ISA_DECLARE(LanesTable, lanes_table)

template <class T>
const LanesLoops<T>& lanes_loops() {
  if constexpr (sizeof(T) == 4)
    return lanes_table().single;
  else
    return lanes_table().wide;
}

}  // namespace rl
