// Scans: running sums, products and extremes, behind rushlight/scan.h.
#include "rushlight/scan.h"

#include <algorithm>
#include <cmath>
#include <cstring>

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

rl_status check(const char* name, const rl_tensor* in, int* dim, const rl_tensor* out) {
  RL_TRY(wrap_dim(name, in, dim));
  return check_same_shape(name, "the output", in, out);
}

rl_status open(const rl_tensor* in, const rl_tensor* out, DenseInput* x, DenseOutput* y, int dtype) {
  RL_TRY(x->open(in, dtype));
  return y->open(out, dtype);
}

// Scans that convert their operands go through slabs: some elements of every line at a time, converted into a buffer
// whose first row holds where the lines had got to. The conversion of a long line whole would take 16 bytes an element.
constexpr int64_t kSlab = 1 << 17;  // elements of a slab

bool converts(const rl_tensor* in, const rl_tensor* out, int dtype) {
  return (in->dtype != dtype || out->dtype != dtype) && count_elements(in) > kSlab;
}

// Rows of [outer, rows, inner] in a buffer of the working dtype, and the last of them for the next slab.
class Slab {
 public:
  Slab(const rl_tensor* t, int dim, const AroundDim& around, int64_t rows, int dtype)
      : around_(around),
        dim_(dim),
        size_(dtype_size(dtype)),
        buffer_(rows * around.outer * around.inner * size_),
        last_(around.outer * around.inner * size_),
        desc_(*t) {
    desc_.dtype = static_cast<uint8_t>(dtype);
  }
  bool ok() const { return buffer_ && last_; }
  char* data() { return buffer_.get(); }
  char* last() { return last_.get(); }

  // Takes up `rows` rows, the first `head` of which (0 or 1) are what the slab before ended with.
  void open(int64_t rows, int64_t head) {
    rows_ = rows;
    int64_t stride = 1;
    for (int d = desc_.ndim - 1; d >= 0; --d) {
      shape_[d] = d == dim_ ? rows : desc_.shape[d];
      strides_[d] = stride;
      stride *= shape_[d];
    }
    if (head > 0) move_rows(0, [](char* row, char* last, size_t bytes) { std::memcpy(row, last, bytes); });
  }
  rl_status load(const rl_tensor* from, int64_t head) {
    rl_tensor to = rows_from(head);
    return rl_copy(from, &to);
  }
  rl_status store(rl_tensor* to, int64_t head) {
    const rl_tensor from = rows_from(head);
    move_rows(rows_ - 1, [](char* row, char* last, size_t bytes) { std::memcpy(last, row, bytes); });
    return rl_copy(&from, to);
  }

 private:
  template <class Move>
  void move_rows(int64_t row, Move move) {
    const int64_t bytes = around_.inner * size_;
    for (int64_t o = 0; o < around_.outer; ++o)
      move(data() + (o * rows_ + row) * bytes, last() + o * bytes, static_cast<size_t>(bytes));
  }
  rl_tensor rows_from(int64_t head) {
    for (int d = 0; d < desc_.ndim; ++d) part_[d] = d == dim_ ? rows_ - head : shape_[d];
    rl_tensor part = desc_;
    part.data = data() + head * around_.inner * size_;
    part.shape = part_;
    part.strides = strides_;
    return part;
  }

  AroundDim around_;
  int dim_;
  int64_t size_, rows_ = 0;
  Scratch<char> buffer_, last_;
  rl_tensor desc_;
  int64_t shape_[RL_MAX_DIMS], strides_[RL_MAX_DIMS], part_[RL_MAX_DIMS];
};

// Calls step(start, rows, head) for slabs that cover n rows; a slab has room for rows + head.
template <class Step>
rl_status for_slabs(const AroundDim& around, int64_t room, Step step) {
  for (int64_t start = 0; start < around.n;) {
    const int64_t head = start > 0 ? 1 : 0, rows = std::min(around.n - start, room - head);
    RL_TRY(step(start, rows, head));
    start += rows;
  }
  return RL_OK;
}

int64_t slab_rows(const AroundDim& around) {
  return std::min(around.n, std::max<int64_t>(16, kSlab / std::max<int64_t>(1, around.outer * around.inner)));
}

rl_status run_slabs(const rl_tensor* in, int dim, const rl_tensor* out, int dtype, ScanLoop loop) {
  const AroundDim around(in, dim);
  const int64_t room = slab_rows(around), size = dtype_size(dtype);
  Slab slab(in, dim, around, room, dtype);
  if (!slab.ok()) return RL_MEMORY_ERROR;
  return for_slabs(around, room, [&](int64_t start, int64_t rows, int64_t head) {
    const Narrowed from(in, dim, start, rows);
    Narrowed to(out, dim, start, rows);
    slab.open(rows + head, head);
    RL_TRY(slab.load(&from.desc, head));
    AroundDim part = around;
    part.n = rows + head;
    for_lines(part, [&](int64_t first, int64_t lines, int64_t line_step, int64_t step) {
      char* at = slab.data() + first * size;
      loop(at, at, lines, part.n, line_step, step);
    });
    return slab.store(&to.desc, head);
  });
}

rl_status run(const char* name, const rl_tensor* in, int dim, const rl_tensor* out, const ScanLoop* loops) {
  RL_TRY(refuse_complex32(name, out->dtype));
  if (!is_valid_dtype(in->dtype) || !is_valid_dtype(out->dtype) ||
      (is_complex_dtype(in->dtype) && !is_complex_dtype(out->dtype))) {
    return fail(RL_TYPE_ERROR, "%s: the output dtype does not hold the result; expected a dtype for %s, got %s", name,
                dtype_text(in->dtype), dtype_text(out->dtype));
  }
  const int dtype = working_dtype(out->dtype);
  const ScanLoop loop = loops[scan_type(dtype)];
  RL_TRY(check(name, in, &dim, out));
  if (converts(in, out, dtype)) return run_slabs(in, dim, out, dtype, loop);
  DenseInput x;
  DenseOutput y;
  RL_TRY(open(in, out, &x, &y, dtype));
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
  const int dtype = in->dtype;
  RL_TRY(check(name, in, &dim, values));
  RL_TRY(check_same_shape(name, "indices", in, indices));
  DenseInput x;
  DenseOutput y, at;
  RL_TRY(open(in, values, &x, &y, dtype));
  RL_TRY(at.open(indices, RL_INT64));
  const AroundDim around(in, dim);
  if (around.n > 0) {
    const ScanIndexLoop loop = loops[dtype];
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
  RL_TRY(check("logcumsumexp", in, &dim, out));
  RL_TRY(open(in, out, &x, &y, dtype));
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
