// Softmax along a dimension, behind rushlight/softmax.h.
#include "rushlight/softmax.h"

#include "core/parallel.h"
#include "cpu/reduce_dense.h"
#include "cpu/softmax_kernels.h"

namespace rl {
namespace {

constexpr int64_t kBlock = 16384;  // elements of one task

// rows(first element, count) or columns(first element, count) in tasks that cover [outer, n, inner].
template <class Rows, class Columns>
void for_runs(const AroundDim& around, Rows rows, Columns columns) {
  const int64_t n = around.n;
  if (around.outer * n * around.inner == 0) return;
  if (around.inner == 1) {
    parallel_for(around.outer, n < kBlock ? kBlock / n : 1,
                 [&](int64_t begin, int64_t end) { rows(begin * n, end - begin); });
    return;
  }
  // Narrow enough for the three passes over a strip to stay in the second cache.
  int64_t width = 65536 / n;
  width = width < 64 ? 64 : width > kSoftmaxStrip ? kSoftmaxStrip : width / 64 * 64;
  if (width > around.inner) width = around.inner;
  const int64_t strips = (around.inner + width - 1) / width;
  const int64_t block = n * width < kBlock ? kBlock / (n * width) : 1;
  parallel_for(around.outer * strips, block, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t start = task % strips * width, rest = around.inner - start;
      columns(task / strips * n * around.inner + start, rest < width ? rest : width);
    }
  });
}

rl_status check(const char* name, const rl_tensor* in, const rl_tensor* out, int* dim) {
  RL_TRY(wrap_dim(name, in, dim));
  RL_TRY(check_same_shape(name, "the result", in, out));
  if (!is_valid_dtype(in->dtype) || is_complex_dtype(in->dtype)) {
    return fail(RL_TYPE_ERROR, "%s: the dtype is not supported; expected a real dtype, got %s", name,
                dtype_text(in->dtype));
  }
  if (!is_float_dtype(out->dtype)) {
    return fail(RL_TYPE_ERROR, "%s: the result has the wrong dtype; expected floating point, got %s", name,
                dtype_text(out->dtype));
  }
  return RL_OK;
}

const SoftmaxLoops& loops_for(int dtype) { return dtype == RL_FLOAT64 ? softmax_table().wide : softmax_table().single; }

rl_status forward_dense(const rl_tensor* in, int dim, const rl_tensor* out, int dtype, bool log) {
  DenseInput x;
  DenseOutput y;
  RL_TRY(x.open(in, dtype));
  RL_TRY(y.open(out, dtype));
  const SoftmaxLoops& loops = loops_for(dtype);
  const int64_t size = dtype_size(dtype);
  const AroundDim around(in, dim);
  for_runs(
      around,
      [&](int64_t first, int64_t count) {
        loops.rows(x.data<char>() + first * size, y.data<char>() + first * size, count, around.n, log);
      },
      [&](int64_t first, int64_t count) {
        loops.columns(x.data<char>() + first * size, y.data<char>() + first * size, count, around.n, around.inner, log);
      });
  return y.close();
}

rl_status forward(const char* name, const rl_tensor* in, int dim, const rl_tensor* out, bool log) {
  RL_TRY(check(name, in, out, &dim));
  const int dtype = working_float(out->dtype);
  return in_pieces({in, out}, dim, dtype, [&](const rl_tensor* const(&piece)[2]) {
    return forward_dense(piece[0], dim, piece[1], dtype, log);
  });
}

rl_status backward_dense(const rl_tensor* grad, const rl_tensor* result, int dim, const rl_tensor* grad_in, int dtype,
                         bool log) {
  DenseInput g, y;
  DenseOutput out;
  RL_TRY(g.open(grad, dtype));
  RL_TRY(y.open(result, dtype));
  RL_TRY(out.open(grad_in, dtype));
  const SoftmaxLoops& loops = loops_for(dtype);
  const int64_t size = dtype_size(dtype);
  const AroundDim around(grad, dim);
  for_runs(
      around,
      [&](int64_t first, int64_t count) {
        loops.rows_backward(g.data<char>() + first * size, y.data<char>() + first * size,
                            out.data<char>() + first * size, count, around.n, log);
      },
      [&](int64_t first, int64_t count) {
        loops.columns_backward(g.data<char>() + first * size, y.data<char>() + first * size,
                               out.data<char>() + first * size, count, around.n, around.inner, log);
      });
  return out.close();
}

rl_status backward(const char* name, const rl_tensor* grad, const rl_tensor* result, int dim, const rl_tensor* grad_in,
                   bool log) {
  RL_TRY(check(name, grad, grad_in, &dim));
  RL_TRY(check(name, result, grad_in, &dim));
  const int dtype = working_float(result->dtype > grad->dtype ? result->dtype : grad->dtype);
  return in_pieces({grad, result, grad_in}, dim, dtype, [&](const rl_tensor* const(&piece)[3]) {
    return backward_dense(piece[0], piece[1], dim, piece[2], dtype, log);
  });
}

}  // namespace
}  // namespace rl

rl_status rl_softmax(const rl_tensor* in, int dim, const rl_tensor* out) {
  return rl::forward("softmax", in, dim, out, false);
}

rl_status rl_log_softmax(const rl_tensor* in, int dim, const rl_tensor* out) {
  return rl::forward("log_softmax", in, dim, out, true);
}

rl_status rl_softmax_backward(const rl_tensor* grad, const rl_tensor* result, int dim, const rl_tensor* grad_in) {
  return rl::backward("softmax_backward", grad, result, dim, grad_in, false);
}

rl_status rl_log_softmax_backward(const rl_tensor* grad, const rl_tensor* result, int dim, const rl_tensor* grad_in) {
  return rl::backward("log_softmax_backward", grad, result, dim, grad_in, true);
}
