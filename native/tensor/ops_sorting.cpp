// Sorting and selecting along a dimension.
#include <cmath>

#include "op.h"
#include "ops.h"
#include "rushlight/sort.h"

namespace rl {

namespace {

using ll = long long;

void refuse_complex(const char* op, const Tensor* t) {
  RL_CHECK(!is_complex(t->dtype()), Runtime, "%s(): input tensor must be of non-complex type, got %s", op,
           dtype_name(t->dtype()));
}

void sort(Call& call, int64_t dim_argument, bool descending, bool with_indices = true) {
  Tensor* t = call.tensor(0);
  refuse_complex("sort", t);
  int dim = wrap_dim(dim_argument, t->ndim());
  Dims shape(t->ndim(), t->shape());
  Tensor* values = call.result(0, t->dtype(), shape);
  Tensor* indices = with_indices ? call.result(1, RL_INT64, shape) : nullptr;
  if (values->is_meta()) return;
  GilRelease gil(t->numel >= 16384);
  check(rl_sort(&t->desc, dim, descending, &values->desc, indices ? &indices->desc : nullptr));
}

// kthvalue, median, nanmedian and mode along a dim.
void select(Call& call, rl_select_kind kind, int64_t k, int64_t dim_argument, bool keepdim) {
  Tensor* t = call.tensor(0);
  refuse_complex(call.op.title(), t);
  int dim = wrap_dim(dim_argument, t->ndim());
  RL_CHECK(t->ndim() == 0 || t->size(dim) > 0, Index,
           "%s(): Expected reduction dim %d to have non-zero size; the input has shape %s", call.op.title(), dim,
           shape_text(t).c_str());
  if (kind == RL_SELECT_KTH)
    RL_CHECK(k >= 1 && k <= (t->ndim() ? t->size(dim) : 1), Runtime,
             "kthvalue(): selected number k out of range for dimension %d", dim);
  Dims shape, kept_shape, strides;
  for (int i = 0; i < t->ndim(); i++) {
    kept_shape.push(i == dim ? 1 : t->size(i));
    if (i != dim || keepdim) shape.push(i == dim ? 1 : t->size(i));
  }
  Tensor* values = call.result(0, t->dtype(), shape);
  Tensor* indices = call.result(1, RL_INT64, shape);
  if (values->is_meta()) return;
  auto kept = [&](const Tensor* out, Dims& steps) {
    int at = 0;
    for (int i = 0; i < t->ndim(); i++) {
      steps.push(i == dim ? 0 : out->stride(at));
      if (i != dim || keepdim) at++;
    }
    rl_tensor d = out->desc;
    d.ndim = t->ndim();
    d.shape = kept_shape.v;
    d.strides = steps.v;
    return d;
  };
  Dims vs, is;
  rl_tensor v = kept(values, vs), i = kept(indices, is);
  GilRelease gil(t->numel >= 16384);
  check(rl_select(&t->desc, dim, kind, k, &v, &i));
}

}  // namespace

RL_OP(sort) { sort(call, call.integer(1), call.flag(2)); }
RL_OP(sort_stable) { sort(call, call.integer(2), call.flag(3)); }
RL_OP(_sorted) { sort(call, call.integer(1), false, false); }
RL_OP(topk) {
  Tensor* t = call.tensor(0);
  refuse_complex("topk", t);
  int dim = wrap_dim(call.integer(2), t->ndim());
  int64_t k = call.integer(1), n = t->ndim() ? t->size(dim) : 1;
  RL_CHECK(k >= 0 && k <= n, Runtime, "selected index k out of range: topk of k = %lld along dimension %d of size %lld",
           static_cast<ll>(k), dim, static_cast<ll>(n));
  Dims shape(t->ndim(), t->shape());
  if (t->ndim()) shape[dim] = k;
  Tensor* values = call.result(0, t->dtype(), shape);
  Tensor* indices = call.result(1, RL_INT64, shape);
  if (values->is_meta() || values->numel == 0) return;
  if (!t->ndim()) {  // there is one number to choose, for k = 0 too, as in PyTorch
    copy_into(values, t);
    fill_value(indices, Value::of(0));
    return;
  }
  GilRelease gil(t->numel >= 16384);
  check(rl_topk(&t->desc, dim, k, call.flag(3), &values->desc, &indices->desc));
}
RL_OP(kthvalue) { select(call, RL_SELECT_KTH, call.integer(1), call.integer(2), call.flag(3)); }
namespace {

// The lower median of all elements; without elements NaN, or what that is as an integer.
void median(Call& call, rl_select_kind kind) {
  Tensor* t = call.tensor(0);
  RL_CHECK(t->dtype() != RL_BOOL && !is_complex(t->dtype()), NotImplemented, "%s: not implemented for %s", call.op.name,
           dtype_name(t->dtype()));
  Tensor* out = call.result(0, t->dtype(), Dims{});
  if (out->is_meta()) return;
  if (t->numel == 0) {
    // integers: the lowest of int32 and int64, 0 of the others
    double none = t->dtype() == RL_INT64 ? -9223372036854775808.0 : t->dtype() == RL_INT32 ? -2147483648.0 : 0;
    return fill_value(out, Value::of(is_float(t->dtype()) ? std::nan("") : none));
  }
  TensorRef dense = contiguous(t);
  int64_t n = t->numel, one = 1, index;
  rl_tensor row = dense->desc, value = out->desc, at{};
  row.ndim = value.ndim = at.ndim = 1;
  row.shape = &n;
  row.strides = value.shape = value.strides = at.shape = at.strides = &one;
  at.data = &index;
  at.dtype = RL_INT64;
  GilRelease gil(n >= 16384);
  check(rl_select(&row, 0, kind, 0, &value, &at));
}

}  // namespace

RL_OP(median) { median(call, RL_SELECT_MEDIAN); }
RL_OP(nanmedian) { median(call, RL_SELECT_NANMEDIAN); }
RL_OP(median_dim) { select(call, RL_SELECT_MEDIAN, 0, call.integer(1), call.flag(2)); }
RL_OP(nanmedian_dim) { select(call, RL_SELECT_NANMEDIAN, 0, call.integer(1), call.flag(2)); }
RL_OP(mode) { select(call, RL_SELECT_MODE, 0, call.integer(1), call.flag(2)); }

}  // namespace rl
