// What the normalisation layers share.
#pragma once

#include "core/memory.h"
#include "core/parallel.h"
#include "cpu/norm_kernels.h"
#include "cpu/reduce_dense.h"

namespace rl {

constexpr int64_t kNormBlock = 16384;  // elements of one task

inline const NormLoops& norm_loops(int dtype) { return dtype == RL_FLOAT64 ? norm_table().wide : norm_table().single; }

// Whether arithmetic in the working dtype stays in range with these statistics, gradients (with rstd^3) included.
inline bool moderate(double mean, double rstd, int dtype) {
  const double limit = dtype == RL_FLOAT64 ? 1e90 : 1e9;
  return mean > -limit && mean < limit && rstd > 1 / limit && rstd < limit;
}

// Reads and writes an array of the working dtype as doubles. Null data reads as `missing`, and drops what is written.
struct WorkingArray {
  void* data;
  bool wide;
  WorkingArray(const void* d, int dtype) : data(const_cast<void*>(d)), wide(dtype == RL_FLOAT64) {}
  double get(int64_t i, double missing) const {
    if (data == nullptr) return missing;
    return wide ? static_cast<const double*>(data)[i] : static_cast<double>(static_cast<const float*>(data)[i]);
  }
  void set(int64_t i, double value) const {
    if (data == nullptr) return;
    if (wide)
      static_cast<double*>(data)[i] = value;
    else
      static_cast<float*>(data)[i] = static_cast<float>(value);
  }
};

inline rl_status check_norm_dtype(const char* name, const rl_tensor* t) {
  if (t == nullptr || is_float_dtype(t->dtype)) return RL_OK;
  return fail(RL_TYPE_ERROR, "%s: the dtype is not supported; expected floating point, got %s", name,
              dtype_text(t->dtype));
}

inline rl_status check_norm_count(const char* name, const char* what, const rl_tensor* t, int64_t count) {
  if (t == nullptr) return RL_OK;
  RL_TRY(check_norm_dtype(name, t));
  if (count_elements(t) == count) return RL_OK;
  return fail(RL_VALUE_ERROR, "%s: %s has the wrong size; expected %lld elements, got shape %s", name, what,
              static_cast<long long>(count), shape_text(t));
}

inline const char* offset_by(const char* data, int64_t bytes) { return data == nullptr ? nullptr : data + bytes; }

}  // namespace rl
