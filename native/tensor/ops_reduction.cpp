// Reductions: dimensions, shapes and dtypes; the kernels take outputs with the reduced dimensions kept.
#include <cmath>

#include "op.h"
#include "ops.h"
#include "rushlight/reduce.h"

namespace rl {

namespace {

using ll = long long;
using Kernel = rl_status (*)(const rl_tensor*, const rl_tensor*);

struct Plan {
  uint64_t mask = 0;  // reduced dims
  Dims shape;         // of the result
  int64_t count = 1;  // elements reduced into one
};

uint64_t dim_mask(const Value& dims, int ndim) {
  RL_CHECK(ndim <= 64, Runtime, "only tensors with up to 64 dims are supported, got %d", ndim);
  uint64_t all = ndim == 0 ? 0 : ndim == 64 ? ~uint64_t{0} : (uint64_t{1} << ndim) - 1;
  if (dims.is_none() || (dims.tag == Tag::IntList && dims.size == 0)) return all;
  if (dims.tag == Tag::Int)
    return ndim ? uint64_t{1} << wrap_dim(dims.integer, ndim) : (wrap_dim(dims.integer, ndim), 0);
  uint64_t mask = 0;
  for (uint32_t i = 0; i < dims.size; i++) {
    int d = wrap_dim(dims.ints[i], ndim);
    RL_CHECK(!(mask >> d & 1), Runtime, "dim %d appears multiple times in the list of dims", d);
    mask |= uint64_t{1} << d;
  }
  return ndim ? mask : 0;
}

Plan plan(const Tensor* t, const Value& dims, bool keepdim) {
  Plan p;
  p.mask = dim_mask(dims, t->ndim());
  for (int i = 0; i < t->ndim(); i++) {
    bool reduced = p.mask >> i & 1;
    if (reduced) p.count *= t->size(i);
    if (!reduced)
      p.shape.push(t->size(i));
    else if (keepdim)
      p.shape.push(1);
  }
  return p;
}

// The output as the kernels want it: with the input's dims, size 1 where reduced.
struct Kept {
  rl_tensor desc;
  Dims shape, strides;
  Kept(const Tensor* out, const Tensor* in, const Plan& p, bool keepdim) : desc(out->desc) {
    int at = 0;
    for (int i = 0; i < in->ndim(); i++) {
      bool reduced = p.mask >> i & 1;
      shape.push(reduced ? 1 : in->size(i));
      strides.push(reduced ? 0 : out->stride(at));
      if (!reduced || keepdim) at++;
    }
    desc.ndim = in->ndim();
    desc.shape = shape.v;
    desc.strides = strides.v;
  }
};

void run(Call& call, int output, Kernel kernel, Tensor* in, const Value& dims, bool keepdim, DType dtype) {
  Plan p = plan(in, dims, keepdim);
  Tensor* out = call.result(output, dtype, p.shape);
  if (out->is_meta()) return;
  Kept kept(out, in, p, keepdim);
  GilRelease gil(in->numel >= 65536);
  check(kernel(&in->desc, &kept.desc));
}

void refuse_empty(const char* op, const Tensor* t, const Value& dims) {
  if (t->numel) return;
  RL_CHECK(!dims.is_none() && !(dims.tag == Tag::IntList && dims.size == 0), Runtime,
           "%s(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
           "'dim' argument.",
           op);
  uint64_t mask = dim_mask(dims, t->ndim());
  for (int i = 0; i < t->ndim(); i++)
    RL_CHECK(!(mask >> i & 1) || t->size(i) != 0, Index,
             "%s(): Expected reduction dim %d to have non-zero size; the input has shape %s", op, i,
             shape_text(t).c_str());
}

void refuse_complex(const char* op, const Tensor* t) {
  RL_CHECK(!is_complex(t->dtype()), NotImplemented, "%s(): not supported for complex tensors, got %s", op,
           dtype_name(t->dtype()));
}

DType sum_dtype(const Call& call, const Tensor* t, int at) {
  if (!call[at].is_none()) return call[at].dtype;
  if (call.out && call.out[0]) return call.out[0]->dtype();
  return is_integral_or_bool(t->dtype()) ? RL_INT64 : t->dtype();
}

// Whether a kernel with this output reads elements as their conversion to its dtype would be, without a copy.
bool reads_as(DType from, DType wanted) {
  if (is_integral_or_bool(from) && is_integral(wanted)) return true;  // modulo a power of 2, now or later
  return !is_complex(from) && (wanted == RL_FLOAT32 || wanted == RL_FLOAT64);
}

// Reads the input in the dtype the result asks for, when that changes the sum (a bool result of floats, say).
TensorRef as_dtype(Tensor* t, DType wanted, bool given) {
  return given && wanted != t->dtype() && !reads_as(t->dtype(), wanted) ? cast(t, wanted) : TensorRef::share(t);
}

void sum_like(Call& call, Kernel kernel, const Value& dims, bool keepdim, int dtype_at) {
  Tensor* t = call.tensor(0);
  DType dtype = sum_dtype(call, t, dtype_at);
  RL_CHECK(call.op.name[0] != 'n' || !is_complex(dtype), Runtime, "nansum does not support complex inputs");
  TensorRef in = as_dtype(t, dtype, !call[dtype_at].is_none());
  run(call, 0, kernel, in.get(), dims, keepdim, dtype);
}

}  // namespace

RL_OP(sum) { sum_like(call, rl_sum, Value::none(), false, 1); }
RL_OP(sum_dim) { sum_like(call, rl_sum, call[1], call.flag(2), 3); }
RL_OP(nansum) { sum_like(call, rl_nansum, call[1], call.flag(2), 3); }
RL_OP(prod) { sum_like(call, rl_prod, Value::none(), false, 1); }
RL_OP(prod_dim) { sum_like(call, rl_prod, call[1], call.flag(2), 3); }

namespace {

void mean(Call& call, const Value& dims, bool keepdim, int dtype_at) {
  Tensor* t = call.tensor(0);
  DType dtype = call[dtype_at].is_none() ? t->dtype() : call[dtype_at].dtype;
  RL_CHECK(is_differentiable(dtype), Runtime,
           "mean(): could not infer output dtype. %s must be either a floating point or complex dtype. Got: %s",
           call[dtype_at].is_none() ? "Input dtype" : "Optional dtype", dtype_title(dtype));
  if (call[dtype_at].is_none() && call.out && call.out[0] &&
      promote(dtype, call.out[0]->dtype()) == call.out[0]->dtype())
    dtype = call.out[0]->dtype();  // a wider out= takes the mean as it is before it is rounded
  TensorRef in = as_dtype(t, dtype, !call[dtype_at].is_none());
  run(call, 0, rl_mean, in.get(), dims, keepdim, dtype);
}

}  // namespace

RL_OP(mean) { mean(call, Value::none(), false, 1); }
RL_OP(mean_dim) { mean(call, call[1], call.flag(2), 3); }

// ---------------------------------------------------------------- extremes

RL_OP(amax) {
  refuse_complex("amax", call.tensor(0));
  refuse_empty("amax", call.tensor(0), call[1]);
  run(call, 0, rl_amax, call.tensor(0), call[1], call.flag(2), call.tensor(0)->dtype());
}
RL_OP(amin) {
  refuse_complex("amin", call.tensor(0));
  refuse_empty("amin", call.tensor(0), call[1]);
  run(call, 0, rl_amin, call.tensor(0), call[1], call.flag(2), call.tensor(0)->dtype());
}

namespace {

void extreme_of_all(Call& call, Kernel kernel) {
  Tensor* t = call.tensor(0);
  refuse_complex(call.op.title(), t);
  RL_CHECK(t->numel > 0, Runtime,
           "%s(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
           "'dim' argument.",
           call.op.title());
  run(call, 0, kernel, t, Value::none(), false, t->dtype());
}

void extreme_with_indices(Call& call, rl_status (*kernel)(const rl_tensor*, const rl_tensor*, const rl_tensor*)) {
  Tensor* t = call.tensor(0);
  refuse_complex(call.op.title(), t);
  bool keepdim = call.flag(2);
  Plan p = plan(t, call[1], keepdim);
  refuse_empty(call.op.title(), t, call[1]);
  Tensor* values = call.result(0, t->dtype(), p.shape);
  Tensor* indices = call.result(1, RL_INT64, p.shape);
  if (values->is_meta()) return;
  Kept v(values, t, p, keepdim), i(indices, t, p, keepdim);
  GilRelease gil(t->numel >= 65536);
  check(kernel(&t->desc, &v.desc, &i.desc));
}

void arg_extreme(Call& call, Kernel kernel) {
  Tensor* t = call.tensor(0);
  refuse_complex(call.op.title(), t);
  RL_CHECK(t->dtype() != RL_BOOL, NotImplemented, "\"%s\" not implemented for 'Bool'", call.op.title());
  if (call[1].is_none()) {
    RL_CHECK(t->numel > 0, Index,
             "%s(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
             "'dim' argument.",
             call.op.title());
  } else {
    refuse_empty(call.op.title(), t, call[1]);
  }
  run(call, 0, kernel, t, call[1], call.flag(2), RL_INT64);
}

}  // namespace

RL_OP(max) { extreme_of_all(call, rl_amax); }
RL_OP(min) { extreme_of_all(call, rl_amin); }
RL_OP(max_dim) { extreme_with_indices(call, rl_max_with_indices); }
RL_OP(min_dim) { extreme_with_indices(call, rl_min_with_indices); }
RL_OP(argmax) { arg_extreme(call, rl_argmax); }
RL_OP(argmin) { arg_extreme(call, rl_argmin); }
RL_OP(aminmax) {
  Tensor* t = call.tensor(0);
  refuse_complex("aminmax", t);
  bool keepdim = call.flag(2);
  if (call[1].is_none()) {
    RL_CHECK(t->numel > 0, Runtime,
             "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.");
  } else {
    refuse_empty("aminmax", t, call[1]);
  }
  for (int i = 0; i < 2; i++)
    RL_CHECK(!call.out || !call.out[i] || call.out[i]->dtype() == t->dtype(), Runtime,
             "aminmax: dtype of out; expected %s, got %s", dtype_name(t->dtype()), dtype_name(call.out[i]->dtype()));
  Plan p = plan(t, call[1], keepdim);
  Tensor* low = call.result(0, t->dtype(), p.shape);
  Tensor* high = call.result(1, t->dtype(), p.shape);
  if (low->is_meta()) return;
  Kept l(low, t, p, keepdim), h(high, t, p, keepdim);
  GilRelease gil(t->numel >= 65536);
  check(rl_aminmax(&t->desc, &l.desc, &h.desc));
}

// ---------------------------------------------------------------- truth

namespace {

void truth(Call& call, Kernel kernel, const Value& dims, bool keepdim) {
  Tensor* t = call.tensor(0);
  run(call, 0, kernel, t, dims, keepdim, t->dtype() == RL_UINT8 ? RL_UINT8 : RL_BOOL);
}

}  // namespace

RL_OP(any) { truth(call, rl_any, Value::none(), false); }
RL_OP(any_dim) { truth(call, rl_any, call[1], call.flag(2)); }
RL_OP(any_dims) { truth(call, rl_any, call[1], call.flag(2)); }
RL_OP(all) { truth(call, rl_all, Value::none(), false); }
RL_OP(all_dim) { truth(call, rl_all, call[1], call.flag(2)); }
RL_OP(all_dims) { truth(call, rl_all, call[1], call.flag(2)); }
RL_OP(count_nonzero) { run(call, 0, rl_count_nonzero, call.tensor(0), call[1], false, RL_INT64); }

// ---------------------------------------------------------------- moments

namespace {

using Moment = rl_status (*)(const rl_tensor*, double, const rl_tensor*);
using Moments = rl_status (*)(const rl_tensor*, double, const rl_tensor*, const rl_tensor*);

void float_only(const char* op, const Tensor* t) {
  RL_CHECK(is_differentiable(t->dtype()), Runtime, "%s only support floating point and complex dtypes, got %s", op,
           dtype_name(t->dtype()));
}

void moment(Call& call, Moment kernel, const Value& dims, double correction, bool keepdim) {
  Tensor* t = call.tensor(0);
  float_only(call.op.title(), t);
  Plan p = plan(t, dims, keepdim);
  Tensor* out = call.result(0, real_dtype(t->dtype()), p.shape);
  if (out->is_meta()) return;
  Kept kept(out, t, p, keepdim);
  GilRelease gil(t->numel >= 65536);
  check(kernel(&t->desc, correction, &kept.desc));
}

void moments(Call& call, Moments kernel, const Value& dims, double correction, bool keepdim) {
  Tensor* t = call.tensor(0);
  float_only(call.op.title(), t);
  Plan p = plan(t, dims, keepdim);
  Tensor* out = call.result(0, real_dtype(t->dtype()), p.shape);
  Tensor* mean = call.result(1, t->dtype(), p.shape);
  if (out->is_meta()) return;
  Kept a(out, t, p, keepdim), b(mean, t, p, keepdim);
  GilRelease gil(t->numel >= 65536);
  check(kernel(&t->desc, correction, &a.desc, &b.desc));
}

double correction_of(const Value& v) { return v.is_none() ? 1 : v.as_double(); }

}  // namespace

RL_OP(var) { moment(call, rl_var, Value::none(), call.flag(1) ? 1 : 0, false); }
RL_OP(var_dim) { moment(call, rl_var, call[1], call.flag(2) ? 1 : 0, call.flag(3)); }
RL_OP(var_correction) { moment(call, rl_var, call[1], correction_of(call[2]), call.flag(3)); }
RL_OP(std) { moment(call, rl_std, Value::none(), call.flag(1) ? 1 : 0, false); }
RL_OP(std_dim) { moment(call, rl_std, call[1], call.flag(2) ? 1 : 0, call.flag(3)); }
RL_OP(std_correction) { moment(call, rl_std, call[1], correction_of(call[2]), call.flag(3)); }
RL_OP(var_mean) { moments(call, rl_var_mean, Value::none(), call.flag(1) ? 1 : 0, false); }
RL_OP(var_mean_dim) { moments(call, rl_var_mean, call[1], call.flag(2) ? 1 : 0, call.flag(3)); }
RL_OP(var_mean_correction) { moments(call, rl_var_mean, call[1], correction_of(call[2]), call.flag(3)); }
RL_OP(std_mean) { moments(call, rl_std_mean, Value::none(), call.flag(1) ? 1 : 0, false); }
RL_OP(std_mean_dim) { moments(call, rl_std_mean, call[1], call.flag(2) ? 1 : 0, call.flag(3)); }
RL_OP(std_mean_correction) { moments(call, rl_std_mean, call[1], correction_of(call[2]), call.flag(3)); }

namespace {

// log(sum(exp(x - m))) + m, where m is the greatest real part, or 0 where that is not finite.
TensorRef complex_logsumexp(Tensor* t, const Value& dims, bool keepdim) {
  auto run = [](const Op& op, std::initializer_list<Value> args) { return rl::call(op, args); };
  TensorRef parts = run(ops::view_as_real, {Value::of(t)});
  TensorRef real = run(ops::select, {Value::of(parts), Value::of(-1), Value::of(0)});
  TensorRef most = run(ops::amax, {Value::of(real), dims, Value::of(true)});
  TensorRef finite = run(ops::isfinite, {Value::of(most)});
  TensorRef zero = empty(most->dtype(), 0, nullptr);
  fill_value(zero.get(), Value::of(0));
  TensorRef shift = run(ops::where, {Value::of(finite), Value::of(most), Value::of(zero)});
  TensorRef terms = run(ops::exp, {Value::of(run(ops::sub, {Value::of(t), Value::of(shift)}))});
  TensorRef sum = run(ops::log, {Value::of(run(ops::sum_dim, {Value::of(terms), dims, Value::of(keepdim)}))});
  if (!keepdim) {
    Dims shape(sum->ndim(), sum->shape());
    shift = run(ops::reshape, {Value::of(shift), Value::of(shape)});
  }
  return run(ops::add, {Value::of(sum), Value::of(shift)});
}

}  // namespace

RL_OP(logsumexp) {
  Tensor* t = call.tensor(0);
  if (is_complex(t->dtype())) {
    if (t->numel && !t->is_meta()) return call.set(0, complex_logsumexp(t, call[1], call.flag(2)));
    Plan p = plan(t, call[1], call.flag(2));
    return fill_value(call.result(0, t->dtype(), p.shape), Value::of(-INFINITY));
  }
  DType dtype = to_float_dtype(t->dtype());
  run(call, 0, rl_logsumexp, t, call[1], call.flag(2), dtype);
}

RL_OP(_vector_norm) {
  Tensor* t = call.tensor(0);
  double p = call.real(1);
  bool keepdim = call.flag(3);
  Plan plan_ = plan(t, call[2], keepdim);
  Tensor* out = call.result(0, real_dtype(t->dtype()), plan_.shape);
  if (out->is_meta()) return;
  Kept kept(out, t, plan_, keepdim);
  GilRelease gil(t->numel >= 65536);
  check(rl_norm(&t->desc, p, &kept.desc));
}

// ---------------------------------------------------------------- for derivatives

// A reduced gradient back at the input's shape, without copying.
RL_OP(_expand_reduced) {
  Tensor* g = call.tensor(0);
  Dims shape = call[1].dims();
  uint64_t mask = dim_mask(call[2], shape.n);
  bool keepdim = call.flag(3);
  Dims strides;
  int at = 0;
  for (int i = 0; i < shape.n; i++) {
    bool reduced = mask >> i & 1;
    strides.push(reduced ? 0 : g->stride(at));
    if (!reduced || keepdim) at++;
  }
  call.set(0, make_view(g, shape, strides));
}
// How many elements one result was made of, as a 0-dim factor: grad / n for means.
RL_OP(_mean_backward) {
  Dims shape = call[1].dims();
  uint64_t mask = dim_mask(call[2], shape.n);
  int64_t n = 1;
  for (int i = 0; i < shape.n; i++)
    if (mask >> i & 1) n *= shape[i];
  TensorRef wide = rl::call(ops::_expand_reduced, {call[0], call[1], call[2], call[3]});
  call.set(0, rl::call(ops::div, {Value::of(wide), Value::of(static_cast<double>(n))}));
}

}  // namespace rl
