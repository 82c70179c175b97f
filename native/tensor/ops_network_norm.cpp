// Normalisation: over batches, layers, groups of channels, and by the root mean square.
#include "../autograd/autograd.h"
#include "network.h"
#include "ops.h"
#include "rushlight/norm.h"

namespace rl {

namespace {

using ll = long long;

rl_tensor* desc_of(Tensor* t) { return t ? &t->desc : nullptr; }

// Saved statistics of half precision inputs are float32.
DType statistics_dtype(DType d) { return d == RL_FLOAT64 ? RL_FLOAT64 : RL_FLOAT32; }

void float_only(const char* op, const Tensor* t) {
  RL_CHECK(is_float(t->dtype()), NotImplemented, "\"%s\" not implemented for '%s'", op, dtype_title(t->dtype()));
}

// Whether an operation must be run as such: for the tape, or for tensors that kernels cannot read.
bool any_needs_grad(std::initializer_list<Tensor*> tensors) {
  for (Tensor* t : tensors)
    if (t && (t->is_wrapped() || t->lazy())) return true;
  if (!thread_state.grad_mode) return false;
  for (Tensor* t : tensors)
    if (t && needs_grad(t)) return true;
  return false;
}

// Runs an operation of several results and keeps the first.
TensorRef first_result(const Op& op, const Value* args) {
  Value results[kMaxResults];
  run_op(op, args, results);
  for (int i = 1; i < op.result_count; i++)
    if (results[i].is_tensor()) release(results[i].tensor);
  return TensorRef::own(results[0].tensor);
}

Dims shape_of(const Tensor* t) { return Dims(t->ndim(), t->shape()); }

// Result i when it is wanted, otherwise None.
Tensor* gradient(Call& call, int i, const Value& needs, const Tensor* like, DType dtype) {
  if (!like || !wanted(needs, i)) return nullptr;
  return call.result(i, dtype, shape_of(like));
}

// ---- batches

void check_channels(const char* what, const Tensor* t, int64_t channels) {
  RL_CHECK(!t || t->numel == channels, Runtime, "batch_norm: %s should contain %lld elements not %lld", what,
           static_cast<ll>(channels), t ? static_cast<ll>(t->numel) : 0);
  RL_CHECK(!t || t->ndim() == 1, Runtime, "batch_norm: %s should be 1-dimensional, got shape %s", what,
           t ? shape_text(t).c_str() : "");
}

struct BatchNorm {
  Tensor *input, *mean, *var, *weight, *bias;
  bool training;
  double momentum, eps;

  void check() const {
    RL_CHECK(input->ndim() >= 2, Runtime,
             "batch_norm: expected an input of at least 2 dimensions (N, C, ...), got shape %s",
             shape_text(input).c_str());
    int64_t channels = input->size(1);
    RL_CHECK(training || (mean && var), Runtime,
             "batch_norm: Expected running_mean and running_var to be defined in evaluation mode, got None");
    RL_CHECK((mean != nullptr) == (var != nullptr), Runtime,
             "batch_norm: expected both running_mean and running_var or neither");
    check_channels("running_mean", mean, channels);
    check_channels("running_var", var, channels);
    check_channels("weight", weight, channels);
    check_channels("bias", bias, channels);
    float_only("batch_norm", input);
  }
  TensorRef run() const {
    if (!training) {
      Value args[] = {Value::of(input),  Value::of(mean), Value::of(var),
                      Value::of(weight), Value::of(bias), Value::of(eps)};
      Value result[1];
      run_op(ops::_batch_norm_eval, args, result);
      return TensorRef::own(result[0].tensor);
    }
    Value args[] = {Value::of(input), Value::of(mean),     Value::of(var), Value::of(weight),
                    Value::of(bias),  Value::of(momentum), Value::of(eps)};
    return first_result(ops::_batch_norm_train, args);
  }
};

}  // namespace

// input, running_mean, running_var, weight, bias, training, momentum, eps
RL_OP(_nn_batch_norm) {
  BatchNorm b{call.tensor(0),         call.tensor_or_null(1), call.tensor_or_null(2), call.tensor_or_null(3),
              call.tensor_or_null(4), call.flag(5),           call.real(6),           call.real(7)};
  if (b.training && b.input->ndim() >= 2) {
    int64_t count = b.input->size(0);
    for (int i = 2; i < b.input->ndim(); i++) count *= b.input->size(i);
    RL_CHECK(count != 1, Value, "batch_norm: Expected more than 1 value per channel when training, got input size %s",
             shape_text(b.input).c_str());
  }
  if (RL_UNLIKELY(b.input->numel == 0 && b.input->ndim() == 1))
    return call.set(0, rl::call(ops::clone, {Value::of(b.input)}));
  b.check();
  call.set(0, b.run());
}
// input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled
RL_OP(batch_norm) {
  BatchNorm b{call.tensor(0),         call.tensor_or_null(3), call.tensor_or_null(4), call.tensor_or_null(1),
              call.tensor_or_null(2), call.flag(5),           call.real(6),           call.real(7)};
  b.check();
  call.set(0, b.run());
}
// input, weight, bias, running_mean, running_var, training, momentum, eps
RL_OP(native_batch_norm) {
  BatchNorm b{call.tensor(0),         call.tensor_or_null(3), call.tensor_or_null(4), call.tensor_or_null(1),
              call.tensor_or_null(2), call.flag(5),           call.real(6),           call.real(7)};
  b.check();
  if (b.training) {
    auto all =
        call_many(ops::_batch_norm_train, {Value::of(b.input), Value::of(b.mean), Value::of(b.var), Value::of(b.weight),
                                           Value::of(b.bias), Value::of(b.momentum), Value::of(b.eps)});
    DType dtype = b.weight ? b.weight->dtype() : b.input->dtype();
    call.set(0, std::move(all[0]));
    for (int i = 1; i < 3; i++) call.set(i, cast(all[static_cast<size_t>(i)].get(), dtype));
    return;
  }
  call.set(0, b.run());
  DType dtype = b.weight ? b.weight->dtype() : b.input->dtype();
  for (int i = 1; i < 3; i++) call.set(i, empty(dtype, Dims{0}, b.input->device()));
}

// input, running_mean, running_var, weight, bias, momentum, eps -> out, mean, rstd
RL_OP(_batch_norm_train) {
  Tensor *x = call.tensor(0), *mean = call.tensor_or_null(1), *var = call.tensor_or_null(2);
  Tensor* out = call.result_like(0, x->dtype(), shape_of(x), x);
  DType dtype = statistics_dtype(x->dtype());
  Tensor* save_mean = call.result(1, dtype, Dims{x->size(1)});
  Tensor* save_rstd = call.result(2, dtype, Dims{x->size(1)});
  if (mean) bump_version(mean);
  if (var) bump_version(var);
  if (out->is_meta()) return;
  GilRelease gil(x->numel >= kGilWork);
  // An empty batch says nothing about the statistics.
  if (x->numel == 0) mean = var = nullptr;
  check(rl_batch_norm(&x->desc, desc_of(call.tensor_or_null(3)), desc_of(call.tensor_or_null(4)), desc_of(mean),
                      desc_of(var), 1, call.real(5), call.real(6), &out->desc, &save_mean->desc, &save_rstd->desc));
}
// input, running_mean, running_var, weight, bias, eps
RL_OP(_batch_norm_eval) {
  Tensor* x = call.tensor(0);
  Tensor* out = call.result_like(0, x->dtype(), shape_of(x), x);
  if (out->is_meta()) return;
  GilRelease gil(x->numel >= kGilWork);
  check(rl_batch_norm(&x->desc, desc_of(call.tensor_or_null(3)), desc_of(call.tensor_or_null(4)),
                      desc_of(call.tensor(1)), desc_of(call.tensor(2)), 0, 0, call.real(5), &out->desc, nullptr,
                      nullptr));
}
// grad, input, weight, mean, spread (1 / std while training, else the running variance), training, eps, needs
RL_OP(_batch_norm_backward) {
  Tensor *grad = call.tensor(0), *x = call.tensor(1), *weight = call.tensor_or_null(2), *mean = call.tensor(3),
         *spread = call.tensor(4);
  bool training = call.flag(5);
  const Value& needs = call[7];
  Tensor* to_input = gradient(call, 0, needs, x, x->dtype());
  DType dtype = weight ? weight->dtype() : x->dtype();
  Tensor* to_weight = gradient(call, 1, needs, mean, dtype);
  Tensor* to_bias = gradient(call, 2, needs, mean, dtype);
  if (x->is_meta()) return;
  GilRelease gil(x->numel >= kGilWork);
  check(rl_batch_norm_backward(&grad->desc, &x->desc, desc_of(weight), training ? nullptr : &mean->desc,
                               training ? nullptr : &spread->desc, training ? &mean->desc : nullptr,
                               training ? &spread->desc : nullptr, training, call.real(6), desc_of(to_input),
                               desc_of(to_weight), desc_of(to_bias)));
}

// ---------------------------------------------------------------- layers and root mean squares

namespace {

// Checks the sizes; returns how many dimensions are normalised.
int check_trailing(const char* op, const Tensor* x, const Value& normalized, const Tensor* weight, const Tensor* bias) {
  Dims shape = normalized.dims();
  RL_CHECK(shape.n >= 1, Runtime,
           "%s: Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
           "normalized_shape = []",
           op);
  auto fits = [&](const Tensor* t, int from) {
    return !std::memcmp(t->shape() + from, shape.v, sizeof(int64_t) * static_cast<size_t>(shape.n));
  };
  for (const Tensor* t : {weight, bias})
    RL_CHECK(
        !t || (t->ndim() == shape.n && fits(t, 0)), Runtime,
        "%s: Expected %s to be of same shape as normalized_shape, but got %s of shape %s and normalized_shape = %s", op,
        t == weight ? "weight" : "bias", t == weight ? "weight" : "bias", t ? shape_text(t).c_str() : "",
        shape_text(shape.n, shape.v).c_str());
  RL_CHECK(x->ndim() >= shape.n && fits(x, x->ndim() - shape.n), Runtime,
           "%s: Given normalized_shape=%s, expected input with shape ending in it, but got input of size %s", op,
           shape_text(shape.n, shape.v).c_str(), shape_text(x).c_str());
  return shape.n;
}

Dims rows_shape(const Tensor* x, int dims) {
  Dims s(x->ndim() - dims, x->shape());
  for (int i = 0; i < dims; i++) s.push(1);
  return s;
}

void same_dtype(const char* op, const Tensor* x, std::initializer_list<const Tensor*> others) {
  for (const Tensor* t : others)
    RL_CHECK(!t || t->dtype() == x->dtype() || (t->dtype() == RL_FLOAT32 && itemsize(x->dtype()) == 2), Runtime,
             "%s: expected the parameters in the input's dtype, got input %s and parameter %s", op,
             dtype_name(x->dtype()), t ? dtype_name(t->dtype()) : "");
}

void layer_norm(Call& call, double eps) {
  Tensor *x = call.tensor(0), *weight = call.tensor_or_null(2), *bias = call.tensor_or_null(3);
  int dims = check_trailing("layer_norm", x, call[1], weight, bias);
  float_only("layer_norm", x);
  same_dtype("layer_norm", x, {weight, bias});
  if (any_needs_grad({x, weight, bias})) {
    Value args[] = {Value::of(x), Value::of(static_cast<int64_t>(dims)), Value::of(weight), Value::of(bias),
                    Value::of(eps)};
    return call.set(0, first_result(ops::_layer_norm, args));
  }
  Tensor* out = call.result(0, x->dtype(), shape_of(x));
  if (out->is_meta()) return;
  GilRelease gil(x->numel >= kGilWork);
  check(rl_layer_norm(&x->desc, dims, desc_of(weight), desc_of(bias), eps, &out->desc, nullptr, nullptr));
}

}  // namespace

// input, normalized_shape, weight, bias, eps (, cudnn_enable)
RL_OP(layer_norm) { layer_norm(call, call.real(4)); }
RL_OP(native_layer_norm) {
  Tensor *x = call.tensor(0), *weight = call.tensor_or_null(2), *bias = call.tensor_or_null(3);
  int dims = check_trailing("native_layer_norm", x, call[1], weight, bias);
  float_only("native_layer_norm", x);
  auto all = call_many(ops::_layer_norm, {Value::of(x), Value::of(static_cast<int64_t>(dims)), Value::of(weight),
                                          Value::of(bias), call[4]});
  DType dtype = weight ? weight->dtype() : x->dtype();
  call.set(0, std::move(all[0]));
  for (int i = 1; i < 3; i++) call.set(i, cast(all[static_cast<size_t>(i)].get(), dtype));
}
// input, dims, weight, bias, eps -> out, mean, rstd
RL_OP(_layer_norm) {
  Tensor* x = call.tensor(0);
  int dims = static_cast<int>(call.integer(1));
  Tensor* out = call.result(0, x->dtype(), shape_of(x));
  Dims rows = rows_shape(x, dims);
  Tensor* mean = call.result(1, statistics_dtype(x->dtype()), rows);
  Tensor* rstd = call.result(2, statistics_dtype(x->dtype()), rows);
  if (out->is_meta()) return;
  GilRelease gil(x->numel >= kGilWork);
  check(rl_layer_norm(&x->desc, dims, desc_of(call.tensor_or_null(2)), desc_of(call.tensor_or_null(3)), call.real(4),
                      &out->desc, &mean->desc, &rstd->desc));
}
// grad, input, dims, weight, bias, mean, rstd, eps, needs
RL_OP(_layer_norm_backward) {
  Tensor *grad = call.tensor(0), *x = call.tensor(1), *weight = call.tensor_or_null(3), *bias = call.tensor_or_null(4);
  const Value& needs = call[8];
  Tensor* to_input = gradient(call, 0, needs, x, x->dtype());
  Tensor* to_weight = gradient(call, 1, needs, weight, weight ? weight->dtype() : x->dtype());
  Tensor* to_bias = gradient(call, 2, needs, bias, bias ? bias->dtype() : x->dtype());
  if (x->is_meta()) return;
  GilRelease gil(x->numel >= kGilWork);
  check(rl_layer_norm_backward(&grad->desc, &x->desc, static_cast<int>(call.integer(2)), &call.tensor(5)->desc,
                               &call.tensor(6)->desc, desc_of(weight), desc_of(to_input), desc_of(to_weight),
                               desc_of(to_bias)));
}

// input, normalized_shape, weight, eps
RL_OP(rms_norm) {
  Tensor *x = call.tensor(0), *weight = call.tensor_or_null(2);
  int dims = check_trailing("rms_norm", x, call[1], weight, nullptr);
  if (is_complex(x->dtype())) return call_functional(call, "_norm", "rms_norm");
  float_only("rms_norm", x);
  DType compute = statistics_dtype(x->dtype());
  double eps =
      call[3].is_none() ? (compute == RL_FLOAT64 ? 2.220446049250313e-16 : 1.1920928955078125e-07) : call.real(3);
  if (any_needs_grad({x, weight})) {
    Value args[] = {Value::of(x), Value::of(static_cast<int64_t>(dims)), Value::of(weight), Value::of(eps)};
    return call.set(0, first_result(ops::_rms_norm, args));
  }
  Tensor* out = call.result(0, x->dtype(), shape_of(x));
  if (out->is_meta()) return;
  GilRelease gil(x->numel >= kGilWork);
  check(rl_rms_norm(&x->desc, dims, desc_of(weight), eps, &out->desc, nullptr));
}
// input, dims, weight, eps -> out, rstd
RL_OP(_rms_norm) {
  Tensor* x = call.tensor(0);
  int dims = static_cast<int>(call.integer(1));
  Tensor* out = call.result(0, x->dtype(), shape_of(x));
  Tensor* rstd = call.result(1, statistics_dtype(x->dtype()), rows_shape(x, dims));
  if (out->is_meta()) return;
  GilRelease gil(x->numel >= kGilWork);
  check(rl_rms_norm(&x->desc, dims, desc_of(call.tensor_or_null(2)), call.real(3), &out->desc, &rstd->desc));
}
// grad, input, dims, weight, rstd, eps, needs
RL_OP(_rms_norm_backward) {
  Tensor *grad = call.tensor(0), *x = call.tensor(1), *weight = call.tensor_or_null(3);
  Tensor* to_input = gradient(call, 0, call[6], x, x->dtype());
  Tensor* to_weight = gradient(call, 1, call[6], weight, weight ? weight->dtype() : x->dtype());
  if (x->is_meta()) return;
  GilRelease gil(x->numel >= kGilWork);
  check(rl_rms_norm_backward(&grad->desc, &x->desc, static_cast<int>(call.integer(2)), &call.tensor(4)->desc,
                             desc_of(weight), desc_of(to_input), desc_of(to_weight)));
}

// ---------------------------------------------------------------- groups of channels

// input, num_groups, weight, bias, eps (, cudnn_enabled)
RL_OP(group_norm) {
  Tensor *x = call.tensor(0), *weight = call.tensor_or_null(2), *bias = call.tensor_or_null(3);
  int64_t groups = call.integer(1);
  RL_CHECK(x->ndim() >= 2, Runtime, "group_norm: Expected at least 2 dimensions for input tensor but received %d",
           x->ndim());
  RL_CHECK(groups > 0, Runtime, "group_norm: Expected num groups to be greater than 0, got %lld",
           static_cast<ll>(groups));
  int64_t channels = x->size(1);
  if (!std::strncmp(call.op.name, "_nn_", 4)) {
    int64_t count = x->size(0) * channels / groups;
    for (int i = 2; i < x->ndim(); i++) count *= x->size(i);
    RL_CHECK(count != 1, Value,
             "group_norm: Expected more than 1 value per channel when training, got input size %s and %lld groups",
             shape_text(x).c_str(), static_cast<ll>(groups));
  }
  RL_CHECK(channels % groups == 0, Runtime,
           "group_norm: Expected number of channels in input to be divisible by num_groups, but got input of shape %s "
           "and num_groups=%lld",
           shape_text(x).c_str(), static_cast<ll>(groups));
  for (Tensor* t : {weight, bias})
    RL_CHECK(!t || (t->ndim() == 1 && t->numel == channels), Runtime,
             "group_norm: Expected %s to be a vector of size equal to the number of channels in input, but got %s of "
             "shape %s and input of shape %s",
             t == weight ? "weight" : "bias", t == weight ? "weight" : "bias", t ? shape_text(t).c_str() : "",
             shape_text(x).c_str());
  float_only("group_norm", x);
  same_dtype("group_norm", x, {weight, bias});
  if (any_needs_grad({x, weight, bias})) {
    Value args[] = {Value::of(x), Value::of(groups), Value::of(weight), Value::of(bias), call[4]};
    return call.set(0, first_result(ops::_group_norm, args));
  }
  Tensor* out = call.result(0, x->dtype(), shape_of(x));
  if (out->is_meta()) return;
  GilRelease gil(x->numel >= kGilWork);
  check(rl_group_norm(&x->desc, groups, desc_of(weight), desc_of(bias), call.real(4), &out->desc, nullptr, nullptr));
}
// input, groups, weight, bias, eps -> out, mean, rstd
RL_OP(_group_norm) {
  Tensor* x = call.tensor(0);
  int64_t groups = call.integer(1);
  Tensor* out = call.result(0, x->dtype(), shape_of(x));
  Dims rows{x->size(0), groups};
  Tensor* mean = call.result(1, statistics_dtype(x->dtype()), rows);
  Tensor* rstd = call.result(2, statistics_dtype(x->dtype()), rows);
  if (out->is_meta()) return;
  GilRelease gil(x->numel >= kGilWork);
  check(rl_group_norm(&x->desc, groups, desc_of(call.tensor_or_null(2)), desc_of(call.tensor_or_null(3)), call.real(4),
                      &out->desc, &mean->desc, &rstd->desc));
}
// grad, input, groups, weight, bias, mean, rstd, eps, needs
RL_OP(_group_norm_backward) {
  Tensor *grad = call.tensor(0), *x = call.tensor(1), *weight = call.tensor_or_null(3), *bias = call.tensor_or_null(4);
  const Value& needs = call[8];
  Tensor* to_input = gradient(call, 0, needs, x, x->dtype());
  Tensor* to_weight = gradient(call, 1, needs, weight, weight ? weight->dtype() : x->dtype());
  Tensor* to_bias = gradient(call, 2, needs, bias, bias ? bias->dtype() : x->dtype());
  if (x->is_meta()) return;
  GilRelease gil(x->numel >= kGilWork);
  check(rl_group_norm_backward(&grad->desc, &x->desc, call.integer(2), &call.tensor(5)->desc, &call.tensor(6)->desc,
                               desc_of(weight), desc_of(to_input), desc_of(to_weight), desc_of(to_bias)));
}

}  // namespace rl
