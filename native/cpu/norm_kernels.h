// Inner loops of the normalisation layers, compiled once per instruction set. Arrays are of float or double (T).
//
// `safe` tells that the statistics are moderate, so that arithmetic in T stays in range; otherwise loops work in
// double.
#pragma once

#include "cpu/isa.h"

namespace rl {

constexpr int64_t kNormRows = 64;  // rows whose sums add up in T before they go to double

struct NormLoops {
  // Mean (0 unless `center`) and 1 / sqrt(variance + eps) of n elements.
  void (*statistics)(const void* x, int64_t n, bool center, double eps, double* mean, double* rstd);
  // y = (x - mean) * rstd * w + b, with an element of w and b (each may be null) per element.
  void (*normalize)(const void* x, void* y, int64_t n, double mean, double rstd, const void* w, const void* b,
                    bool safe);
  // y = (x - mean) * scale + shift with constants.
  void (*affine)(const void* x, void* y, int64_t n, double mean, double scale, double shift, bool safe);
  // The same with an element of each per column, for `rows` rows of n.
  void (*affine_columns)(const void* x, void* y, int64_t rows, int64_t n, const double* mean, const double* scale,
                         const double* shift, bool safe);
  // Sums over n elements of g and g * (x - mean), g being grad, or grad * w where w is not null.
  void (*gradient_sums)(const void* grad, const void* x, const void* w, int64_t n, double mean, bool safe, double* sum,
                        double* sum_x);
  // The same per column of `rows` rows of n.
  void (*gradient_sums_columns)(const void* grad, const void* x, int64_t rows, int64_t n, const double* mean, bool safe,
                                double* sum, double* sum_x);
  // out = a * g + b * (x - mean) + c, g as above.
  void (*combine)(const void* grad, const void* x, const void* w, void* out, int64_t n, double mean, double a, double b,
                  double c, bool safe);
  void (*combine_columns)(const void* grad, const void* x, void* out, int64_t rows, int64_t n, const double* mean,
                          const double* a, const double* b, const double* c, bool safe);
  // The same, where safe, with what one row adds to the parameters' sums on the way (dw and db, of T): grad * (x -
  // mean) * rstd and grad.
  void (*combine_parameters)(const void* grad, const void* x, const void* w, void* out, int64_t n, double mean,
                             double rstd, double b, double c, void* dw, void* db);
  // One row's part of the parameters' sums alone; dw and db may be null.
  void (*parameter_sums)(const void* grad, const void* x, int64_t n, double mean, double rstd, void* dw, void* db,
                         bool safe);
};

struct NormTable {
  NormLoops single, wide;
};

RL_ISA_DECLARE(NormTable, norm_table)

}  // namespace rl
