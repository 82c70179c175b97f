// Scans: running sums, products and extremes, behind rushlight/scan.h.
#include "rushlight/scan.h"

#include <cmath>

#include "core/memory.h"
#include "core/parallel.h"
#include "cpu/reduce_dense.h"
#include "cpu/scan_kernels.h"

namespace rl {
namespace {

constexpr int64_t kBlock = 32768;  // elements of one task
constexpr int64_t kStrip = 256;    // neighbouring lines of one task

// The dtype a scan with this result works in.
int working_dtype(int dtype) {
  if (dtype <= RL_INT64) return RL_INT64;
  return is_complex_dtype(dtype) ? dtype : working_float(dtype);
}

ScanType scan_type(int dtype) {
  switch (dtype) {
    case RL_INT64:
      return kScanInt64;
    case RL_FLOAT32:
      return kScanFloat;
    case RL_FLOAT64:
      return kScanDouble;
    case RL_COMPLEX64:
      return kScanComplex64;
    default:
      return kScanComplex128;
  }
}

// Calls body(first element, lines, line_step, step) for tasks that cover all lines of [outer, n, inner].
template <class Body>
void for_lines(const AroundDim& around, Body body) {
  if (around.outer * around.n * around.inner == 0) return;
  const int64_t n = around.n;
  if (around.inner == 1) {
    const int64_t lines = kBlock / n < 8 ? 8 : kBlock / n;
    parallel_for(around.outer, lines,
                 [&](int64_t begin, int64_t end) { body(begin * around.n, end - begin, around.n, int64_t{1}); });
    return;
  }
  const int64_t strips = (around.inner + kStrip - 1) / kStrip, width = around.inner < kStrip ? around.inner : kStrip;
  const int64_t tasks = kBlock / (n * width) < 1 ? 1 : kBlock / (n * width);
  parallel_for(around.outer * strips, tasks, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t start = task % strips * kStrip, rest = around.inner - start;
      body(task / strips * around.n * around.inner + start, rest < kStrip ? rest : kStrip, int64_t{1}, around.inner);
    }
  });
}

rl_status open(const char* name, const rl_tensor* in, int* dim, const rl_tensor* out, DenseInput* x, DenseOutput* y,
               int dtype) {
  RL_TRY(wrap_dim(name, in, dim));
  RL_TRY(check_same_shape(name, "the output", in, out));
  RL_TRY(x->open(in, dtype));
  return y->open(out, dtype);
}

rl_status run(const char* name, const rl_tensor* in, int dim, const rl_tensor* out, const ScanLoop* loops) {
  RL_TRY(refuse_complex32(name, out->dtype));
  if (!is_valid_dtype(in->dtype) || !is_valid_dtype(out->dtype) ||
      (is_complex_dtype(in->dtype) && !is_complex_dtype(out->dtype))) {
    return fail(RL_TYPE_ERROR, "%s: the output dtype does not hold the result; expected a dtype for %s, got %s", name,
                dtype_text(in->dtype), dtype_text(out->dtype));
  }
  const int dtype = working_dtype(out->dtype);
  DenseInput x;
  DenseOutput y;
  RL_TRY(open(name, in, &dim, out, &x, &y, dtype));
  const ScanLoop loop = loops[scan_type(dtype)];
  const int64_t size = dtype_size(dtype);
  for_lines(AroundDim(in, dim), [&](int64_t first, int64_t lines, int64_t n_step, int64_t step) {
    loop(x.data<char>() + first * size, y.data<char>() + first * size, lines, AroundDim(in, dim).n, n_step, step);
  });
  return y.close();
}

rl_status run_extreme(const char* name, const rl_tensor* in, int dim, const rl_tensor* values, const rl_tensor* indices,
                      const ScanIndexLoop* loops) {
  if (!is_valid_dtype(in->dtype) || is_complex_dtype(in->dtype)) {
    return fail(RL_TYPE_ERROR, "%s: the dtype is not supported; expected a real dtype, got %s", name,
                dtype_text(in->dtype));
  }
  if (indices->dtype != RL_INT64) {
    return fail(RL_TYPE_ERROR, "%s: indices have the wrong dtype; expected int64, got %s", name,
                dtype_text(indices->dtype));
  }
  const int dtype = working_dtype(in->dtype);
  DenseInput x;
  DenseOutput y, at;
  RL_TRY(open(name, in, &dim, values, &x, &y, dtype));
  RL_TRY(check_same_shape(name, "indices", in, indices));
  RL_TRY(at.open(indices, RL_INT64));
  const AroundDim around(in, dim);
  if (around.n > 0) {
    const ScanIndexLoop loop = loops[scan_type(dtype)];
    const int64_t size = dtype_size(dtype);
    for_lines(around, [&](int64_t first, int64_t lines, int64_t n_step, int64_t step) {
      loop(x.data<char>() + first * size, y.data<char>() + first * size, at.data<int64_t>() + first, lines, around.n,
           n_step, step);
    });
  }
  RL_TRY(y.close());
  return at.close();
}

// log(exp(a) + exp(b)) without overflow.
double log_add_exp(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  const double high = a > b ? a : b, low = a > b ? b : a;
  if (high == low && std::isinf(high)) return high;
  return high + std::log1p(std::exp(low - high));
}

// log(1 + z) for |z| <= 1, without losing digits near 0.
complex128 log1p(complex128 z) {
  return {0.5 * std::log1p(z.re * (2 + z.re) + z.im * z.im), std::atan2(z.im, 1 + z.re)};
}

complex128 log_add_exp(complex128 a, complex128 b) {
  if (std::isnan(a.re) || std::isnan(a.im) || std::isnan(b.re) || std::isnan(b.im)) {
    const double nan = std::nan("");
    return {nan, nan};
  }
  const bool swap = b.re > a.re;
  const complex128 high = swap ? b : a, low = swap ? a : b;
  if (std::isinf(low.re) && low.re < 0) return high;  // adds nothing
  if (std::isinf(high.re)) {
    if (low.re == high.re) {  // two infinities: the direction of their sum
      return {high.re, std::atan2(std::sin(high.im) + std::sin(low.im), std::cos(high.im) + std::cos(low.im))};
    }
    return high;
  }
  const double scale = std::exp(low.re - high.re), angle = low.im - high.im;
  complex128 sum = log1p(complex128(scale * std::cos(angle), scale * std::sin(angle)));
  sum.re += high.re;
  sum.im += high.im;
  return sum;
}

template <class T, class A>
void log_sum_lines(const T* in, T* out, int64_t lines, int64_t n, int64_t line_step, int64_t step) {
  for (int64_t j = 0; j < lines; ++j) {
    const T* x = in + j * line_step;
    T* y = out + j * line_step;
    A running = static_cast<A>(x[0]);
    y[0] = x[0];
    for (int64_t r = 1; r < n; ++r) {
      running = log_add_exp(running, static_cast<A>(x[r * step]));
      y[r * step] = static_cast<T>(running);
    }
  }
}

template <class T, class A>
rl_status run_log_sum(const rl_tensor* in, int dim, const rl_tensor* out, int dtype) {
  DenseInput x;
  DenseOutput y;
  RL_TRY(open("logcumsumexp", in, &dim, out, &x, &y, dtype));
  const AroundDim around(in, dim);
  if (around.n > 0) {
    for_lines(around, [&](int64_t first, int64_t lines, int64_t line_step, int64_t step) {
      log_sum_lines<T, A>(x.data<T>() + first, y.data<T>() + first, lines, around.n, line_step, step);
    });
  }
  return y.close();
}

}  // namespace
}  // namespace rl

rl_status rl_cumsum(const rl_tensor* in, int dim, const rl_tensor* out) {
  return rl::run("cumsum", in, dim, out, rl::scan_table().sum);
}

rl_status rl_cumprod(const rl_tensor* in, int dim, const rl_tensor* out) {
  return rl::run("cumprod", in, dim, out, rl::scan_table().product);
}

rl_status rl_cummax(const rl_tensor* in, int dim, const rl_tensor* values, const rl_tensor* indices) {
  return rl::run_extreme("cummax", in, dim, values, indices, rl::scan_table().max);
}

rl_status rl_cummin(const rl_tensor* in, int dim, const rl_tensor* values, const rl_tensor* indices) {
  return rl::run_extreme("cummin", in, dim, values, indices, rl::scan_table().min);
}

rl_status rl_logcumsumexp(const rl_tensor* in, int dim, const rl_tensor* out) {
  RL_TRY(rl::refuse_complex32("logcumsumexp", out->dtype));
  if (!rl::is_float_dtype(out->dtype) && !rl::is_complex_dtype(out->dtype)) {
    return rl::fail(RL_TYPE_ERROR,
                    "logcumsumexp: the output has the wrong dtype; expected a floating point or complex dtype, got %s",
                    rl::dtype_text(out->dtype));
  }
  switch (rl::working_dtype(out->dtype)) {
    case RL_FLOAT32:
      return rl::run_log_sum<float, double>(in, dim, out, RL_FLOAT32);
    case RL_FLOAT64:
      return rl::run_log_sum<double, double>(in, dim, out, RL_FLOAT64);
    case RL_COMPLEX64:
      return rl::run_log_sum<rl::complex64, rl::complex128>(in, dim, out, RL_COMPLEX64);
    default:
      return rl::run_log_sum<rl::complex128, rl::complex128>(in, dim, out, RL_COMPLEX128);
  }
}
