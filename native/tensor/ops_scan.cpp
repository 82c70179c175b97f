// Running sums and products along a dimension, and operations that move whole blocks.
#include "op.h"
#include "ops.h"
#include "rushlight/cat.h"
#include "rushlight/scan.h"

namespace rl {

namespace {

using ll = long long;
using Scan = rl_status (*)(const rl_tensor*, int, const rl_tensor*);
using ScanWithIndices = rl_status (*)(const rl_tensor*, int, const rl_tensor*, const rl_tensor*);

// A tensor of at least one dim over the same memory, for kernels that want one.
struct AtLeastOne {
  rl_tensor desc;
  int64_t one = 1;
  explicit AtLeastOne(const Tensor* t) : desc(t->desc) {
    if (t->ndim()) return;
    desc.ndim = 1;
    desc.shape = desc.strides = &one;
  }
};

void scan(Call& call, Scan kernel, int dtype_at, bool integers_widen) {
  Tensor* t = call.tensor(0);
  int dim = wrap_dim(call.integer(1), t->ndim());
  DType dtype = dtype_at && !call[dtype_at].is_none() ? call[dtype_at].dtype
                : integers_widen && call.out && call.out[0] && can_cast(t->dtype(), call.out[0]->dtype())
                    ? call.out[0]->dtype()
                : integers_widen && is_integral_or_bool(t->dtype()) ? RL_INT64
                                                                    : t->dtype();
  // Integers wrap the same way before and after they are added or multiplied, and the kernel widens them by pieces.
  const bool widened = is_integral_or_bool(t->dtype()) && is_integral(dtype) && !t->lazy() && !t->is_wrapped();
  TensorRef in = widened ? TensorRef::share(t) : cast(t, dtype);
  Tensor* out = call.result(0, dtype, Dims(t->ndim(), t->shape()));
  if (out->is_meta() || out->numel == 0) return;
  AtLeastOne i(in.get()), o(out);
  GilRelease gil(t->numel >= 65536);
  check(kernel(&i.desc, dim, &o.desc));
}

void scan_with_indices(Call& call, ScanWithIndices kernel) {
  Tensor* t = call.tensor(0);
  RL_CHECK(!is_complex(t->dtype()), NotImplemented, "\"%s_cpu\" not implemented for '%s'", call.op.title(),
           dtype_title(t->dtype()));
  int dim = wrap_dim(call.integer(1), t->ndim());
  Dims shape(t->ndim(), t->shape());
  Tensor* values = call.result(0, t->dtype(), shape);
  Tensor* indices = call.result(1, RL_INT64, shape);
  if (values->is_meta() || values->numel == 0) return;
  AtLeastOne i(t), v(values), x(indices);
  GilRelease gil(t->numel >= 65536);
  check(kernel(&i.desc, dim, &v.desc, &x.desc));
}

}  // namespace

RL_OP(cumsum) { scan(call, rl_cumsum, 2, true); }
RL_OP(cumprod) { scan(call, rl_cumprod, 2, true); }
RL_OP(logcumsumexp) {
  const DType dtype = call.tensor(0)->dtype();
  RL_CHECK(is_float(dtype) || is_complex(dtype), NotImplemented, "\"logcumsumexp_out_cpu\" not implemented for '%s'",
           dtype_title(dtype));
  scan(call, rl_logcumsumexp, 0, false);
}
RL_OP(cummax) { scan_with_indices(call, rl_cummax); }
RL_OP(cummin) { scan_with_indices(call, rl_cummin); }

RL_OP(flip) {
  Tensor* t = call.tensor(0);
  int32_t dims[RL_MAX_DIMS];
  uint64_t seen = 0;
  int n = 0;
  for (uint32_t i = 0; i < call[1].size; i++) {
    int d = wrap_dim(call[1].ints[i], t->ndim());
    RL_CHECK(!(seen >> d & 1), Runtime, "dim %d appears multiple times in the list of dims", d);
    seen |= uint64_t{1} << d;
    if (t->ndim()) dims[n++] = d;
  }
  Tensor* out = call.result(0, t->dtype(), Dims(t->ndim(), t->shape()));
  if (out->is_meta() || out->numel == 0) return;
  if (n == 0) return copy_into(out, t);
  GilRelease gil(t->numel >= 65536);
  check(rl_flip(&t->desc, n, dims, &out->desc));
}

RL_OP(roll) {
  Tensor* t = call.tensor(0);
  const Value &shifts = call[1], &axes = call[2];
  RL_CHECK(shifts.size > 0, Runtime, "roll: shifts; expected at least one number, got none");
  RL_CHECK(axes.size == shifts.size || (axes.size == 0 && shifts.size == 1), Runtime,
           "roll: expected as many dims as shifts, got %u and %u", axes.size, shifts.size);
  Tensor* out = call.result(0, t->dtype(), Dims(t->ndim(), t->shape()));
  int32_t dims[RL_MAX_DIMS];
  int64_t steps[RL_MAX_DIMS];
  int n = 0;
  for (uint32_t i = 0; i < axes.size; i++) {
    RL_CHECK(t->ndim() > 0, Index, "roll: dims; expected none for a tensor without dimensions, got %lld",
             static_cast<ll>(axes.ints[i]));
    int d = wrap_dim(axes.ints[i], t->ndim());
    int at = 0;
    while (at < n && dims[at] != d) at++;
    if (at == n) {
      dims[n] = d;
      steps[n++] = 0;
    }
    int64_t size = std::max<int64_t>(t->size(d), 1);
    steps[at] = (steps[at] + shifts.ints[i] % size) % size;
  }
  if (out->is_meta() || out->numel == 0) return;
  if (t->ndim() == 0) return copy_into(out, t);
  GilRelease gil(t->numel >= 65536);
  if (axes.size == 0) {
    // One row of all elements. The output is row-major, so that its row is a view; the input may need a copy.
    TensorRef dense = contiguous(t);
    int64_t size = t->numel, one = 1;
    rl_tensor from = dense->desc, to = out->desc;
    from.ndim = to.ndim = 1;
    from.shape = to.shape = &size;
    from.strides = to.strides = &one;
    int32_t first = 0;
    int64_t step = shifts.ints[0] % size;
    check(rl_roll(&from, 1, &step, &first, &to));
    return;
  }
  check(rl_roll(&t->desc, n, steps, dims, &out->desc));
}

namespace {

void triangle(Call& call, int upper) {
  Tensor* t = call.tensor(0);
  RL_CHECK(t->ndim() >= 2, Runtime, "%s: input tensor must have at least 2 dimensions, got shape %s", call.op.title(),
           shape_text(t).c_str());
  Tensor* out = call.result(0, t->dtype(), Dims(t->ndim(), t->shape()));
  if (out->is_meta() || out->numel == 0) return;
  GilRelease gil(t->numel >= 65536);
  check(rl_triangle(&t->desc, call.integer(1), upper, &out->desc));
}

}  // namespace

RL_OP(tril) { triangle(call, 0); }
RL_OP(triu) { triangle(call, 1); }

RL_OP(repeat) {
  Tensor* t = call.tensor(0);
  Dims times = call[1].dims(), shape;
  RL_CHECK(times.n >= t->ndim(), Runtime,
           "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor; got %d and %d",
           times.n, t->ndim());
  for (int i = 0; i < times.n; i++) {
    RL_CHECK(times[i] >= 0, Runtime, "Trying to create tensor with negative dimension %lld: repeats %s",
             static_cast<ll>(times[i]), shape_text(times.n, times.v).c_str());
    int d = i - (times.n - t->ndim());
    int64_t n;
    RL_CHECK(!__builtin_mul_overflow(d < 0 ? 1 : t->size(d), times[i], &n), Runtime, "repeat: the size overflows");
    shape.push(n);
  }
  Tensor* out = call.result(0, t->dtype(), shape);
  if (out->is_meta() || out->numel == 0) return;
  GilRelease gil(out->numel >= 65536);
  check(rl_tile(&t->desc, &out->desc));
}

}  // namespace rl
