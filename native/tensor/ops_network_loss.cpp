// Losses. The functionals choose between one pass over the operands and a composition for their rarer forms.
#include "../autograd/autograd.h"
#include "network.h"
#include "ops.h"
#include "rushlight/loss.h"

namespace rl {

namespace {

using ll = long long;

rl_tensor* desc_of(Tensor* t) { return t ? &t->desc : nullptr; }
rl_loss_reduction kernel_reduction(int64_t r) {
  return r == kReduceMean ? RL_LOSS_MEAN : r == kReduceSum ? RL_LOSS_SUM : RL_LOSS_NONE;
}
bool tracked(Tensor* t) { return t && (t->is_wrapped() || (thread_state.grad_mode && needs_grad(t))); }
Dims shape_of(const Tensor* t) { return Dims(t->ndim(), t->shape()); }

// ---------------------------------------------------------------- classes

int class_dim(const Tensor* input) { return input->ndim() == 1 ? 0 : 1; }

// A target of one element in one dimension stands for a 0-dim one next to an input of one dimension.
struct Target {
  rl_tensor desc;
  Target(const Tensor* input, const Tensor* target) : desc(target->desc) {
    if (input->ndim() == 1) desc.ndim = 0;
  }
};

void check_classes(const char* op, const Tensor* input, const Tensor* target, const Tensor* weight) {
  RL_CHECK(input->ndim() >= 1, Value, "%s: Expected 1 or more dimensions, got an input of shape []", op);
  if (input->ndim() == 1) {
    RL_CHECK(target->ndim() <= 1 && target->numel == 1, Value,
             "%s: For 1D input, 1D target must have 1 element, but got target of shape %s", op,
             shape_text(target).c_str());
  } else {
    RL_CHECK(target->ndim() > 0 && target->size(0) == input->size(0), Value,
             "%s: Expected input batch_size (%lld) to match target batch_size, got shape %s", op,
             static_cast<ll>(input->size(0)), shape_text(target).c_str());
  }
  RL_CHECK(target->dtype() == RL_INT64 || target->dtype() == RL_UINT8, Runtime,
           "%s: expected scalar type Long or Byte for the target but found %s", op, dtype_title(target->dtype()));
  if (input->ndim() > 1) {
    bool fits = target->ndim() == input->ndim() - 1;
    for (int i = 1; fits && i < target->ndim(); i++) fits = target->size(i) == input->size(i + 1);
    RL_CHECK(fits, Runtime, "%s: expected target of the input's shape without dimension 1, got input %s and target %s",
             op, shape_text(input).c_str(), shape_text(target).c_str());
  }
  int64_t classes = input->size(class_dim(input));
  RL_CHECK(!weight || (weight->ndim() == 1 && weight->numel == classes), Runtime,
           "%s: weight tensor should be defined either for all %lld classes or no classes but got weight tensor of "
           "shape: %s",
           op, static_cast<ll>(classes), weight ? shape_text(weight).c_str() : "");
  RL_CHECK(is_float(input->dtype()), NotImplemented, "\"%s\" not implemented for '%s'", op,
           dtype_title(input->dtype()));
  RL_CHECK(!weight || weight->dtype() == input->dtype(), Runtime, "%s: expected scalar type %s for weight but found %s",
           op, dtype_title(input->dtype()), weight ? dtype_title(weight->dtype()) : "");
}

Dims loss_shape(const Tensor* input, const Tensor* target, int64_t reduction) {
  return reduction == kReduceNone && input->ndim() > 1 ? shape_of(target) : Dims{};
}

DType wide(DType d) { return d == RL_FLOAT64 ? RL_FLOAT64 : RL_FLOAT32; }

// An index error of the kernel is a target out of range.
void check_targets(rl_status status) {
  if (RL_UNLIKELY(status == RL_INDEX_ERROR)) throw_error(ErrorKind::Index, "%s", rl_last_error());
  check(status);
}

}  // namespace

// input, target, weight, size_average, ignore_index, reduce, reduction
RL_OP(_nn_nll_loss) {
  if (RL_UNLIKELY(!call[3].is_none() || !call[5].is_none())) return call_functional(call, "_loss", "nll_loss");
  int64_t reduction = reduction_of(call[6], "nll_loss");
  Tensor *input = call.tensor(0), *target = call.tensor(1), *weight = call.tensor_or_null(2);
  check_classes("nll_loss", input, target, weight);
  Value args[] = {Value::of(input), Value::of(target), Value::of(weight), call[4], Value::of(reduction)};
  Value results[kMaxResults];
  run_op(ops::_nll_loss, args, results);
  release(results[1].tensor);
  call.set(0, TensorRef::own(results[0].tensor));
}
// input, target, weight, ignore_index, reduction -> loss, total_weight
RL_OP(_nll_loss) {
  Tensor *input = call.tensor(0), *target = call.tensor(1);
  int64_t reduction = call.integer(4);
  Tensor* out = call.result(0, input->dtype(), loss_shape(input, target, reduction));
  Tensor* total = call.result(1, wide(input->dtype()), Dims{});
  if (out->is_meta()) return;
  Target classes(input, target);
  GilRelease gil(target->numel >= kGilWork);
  check_targets(rl_nll_loss(&input->desc, &classes.desc, desc_of(call.tensor_or_null(2)), call.integer(3),
                            kernel_reduction(reduction), &out->desc, &total->desc));
}
// grad, size, target, weight, ignore_index, reduction, total_weight
RL_OP(_nll_loss_backward) {
  Tensor *grad = call.tensor(0), *target = call.tensor(2);
  Tensor* out = call.result(0, grad->dtype(), call[1].dims());
  if (out->is_meta()) return;
  Target classes(out, target);
  GilRelease gil(out->numel >= kGilWork);
  check_targets(rl_nll_loss_backward(&grad->desc, &classes.desc, desc_of(call.tensor_or_null(3)), call.integer(4),
                                     kernel_reduction(call.integer(5)), &call.tensor(6)->desc, &out->desc));
}

// input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing
RL_OP(_nn_cross_entropy) {
  Tensor *input = call.tensor(0), *target = call.tensor(1), *weight = call.tensor_or_null(2);
  double smoothing = call.real(7);
  // Probabilities have the shape of the input.
  if (RL_UNLIKELY(!call[3].is_none() || !call[5].is_none() || same_shape(input, target)))
    return call_functional(call, "_loss", "cross_entropy");
  int64_t reduction = reduction_of(call[6], "cross_entropy");
  RL_CHECK(smoothing >= 0 && smoothing <= 1, Runtime,
           "cross_entropy: label_smoothing must be between 0.0 and 1.0. Got: %g", smoothing);
  check_classes("cross_entropy", input, target, weight);
  Value args[] = {Value::of(input), Value::of(target),    Value::of(weight),
                  call[4],          Value::of(smoothing), Value::of(reduction)};
  Value results[kMaxResults];
  run_op(ops::_cross_entropy, args, results);
  release(results[1].tensor);
  release(results[2].tensor);
  call.set(0, TensorRef::own(results[0].tensor));
}
// input, target, weight, ignore_index, label_smoothing, reduction -> loss, total_weight, log_sum
RL_OP(_cross_entropy) {
  Tensor *input = call.tensor(0), *target = call.tensor(1);
  int64_t reduction = call.integer(5);
  Tensor* out = call.result(0, input->dtype(), loss_shape(input, target, reduction));
  Tensor* total = call.result(1, wide(input->dtype()), Dims{});
  Target classes(input, target);
  Tensor* log_sum = call.result(2, wide(input->dtype()), Dims(classes.desc.ndim, target->shape()));
  if (out->is_meta()) return;
  GilRelease gil(input->numel >= kGilWork);
  check_targets(rl_cross_entropy(&input->desc, &classes.desc, desc_of(call.tensor_or_null(2)), call.integer(3),
                                 call.real(4), kernel_reduction(reduction), &out->desc, &total->desc, &log_sum->desc));
}
// grad, input, log_sum, target, weight, ignore_index, label_smoothing, reduction, total_weight
RL_OP(_cross_entropy_backward) {
  Tensor *grad = call.tensor(0), *input = call.tensor(1), *target = call.tensor(3);
  Tensor* out = call.result(0, input->dtype(), shape_of(input));
  if (out->is_meta()) return;
  Target classes(input, target);
  GilRelease gil(input->numel >= kGilWork);
  check_targets(rl_cross_entropy_backward(&grad->desc, &input->desc, &call.tensor(2)->desc, &classes.desc,
                                          desc_of(call.tensor_or_null(4)), call.integer(5), call.real(6),
                                          kernel_reduction(call.integer(7)), &call.tensor(8)->desc, &out->desc));
}

// ---------------------------------------------------------------- term by term

namespace {

// Whether one pass over operands of one shape and dtype does it.
bool plain(const Tensor* a, const Tensor* b) {
  return a->dtype() == b->dtype() && is_float(a->dtype()) && same_shape(a, b);
}

void pointwise(Call& call, rl_loss_kind kind, double p, Tensor* input, Tensor* target, Tensor* weight,
               Tensor* pos_weight, int64_t reduction) {
  Value args[] = {Value::of(static_cast<int64_t>(kind)),
                  Value::of(p),
                  Value::of(input),
                  Value::of(target),
                  Value::of(weight),
                  Value::of(pos_weight),
                  Value::of(reduction)};
  Value results[1];
  run_op(ops::_pointwise_loss, args, results);
  call.set(0, TensorRef::own(results[0].tensor));
}

}  // namespace

// input, target, size_average, reduce, reduction, weight
RL_OP(_nn_mse_loss) {
  Tensor *input = call.tensor(0), *target = call.tensor(1);
  const char* name = call.op.title();
  if (RL_UNLIKELY(!call[2].is_none() || !call[3].is_none() || !call[5].is_none() || !plain(input, target)))
    return call_functional(call, "_loss", name);
  pointwise(call, *name == 'm' ? RL_LOSS_MSE : RL_LOSS_L1, 0, input, target, nullptr, nullptr,
            reduction_of(call[4], name));
}
// input, target, size_average, reduce, reduction, beta
RL_OP(_nn_smooth_l1_loss) {
  Tensor *input = call.tensor(0), *target = call.tensor(1);
  if (RL_UNLIKELY(!call[2].is_none() || !call[3].is_none() || !(call.real(5) > 0) || !plain(input, target)))
    return call_functional(call, "_loss", "smooth_l1_loss");
  pointwise(call, RL_LOSS_SMOOTH_L1, call.real(5), input, target, nullptr, nullptr,
            reduction_of(call[4], "smooth_l1_loss"));
}
// input, target, reduction, delta, weight
RL_OP(_nn_huber_loss) {
  Tensor *input = call.tensor(0), *target = call.tensor(1);
  if (RL_UNLIKELY(!(call.real(3) > 0) || !call[4].is_none() || !plain(input, target)))
    return call_functional(call, "_loss", "huber_loss");
  pointwise(call, RL_LOSS_HUBER, call.real(3), input, target, nullptr, nullptr, reduction_of(call[2], "huber_loss"));
}
// input, target, weight, size_average, reduce, reduction, pos_weight
RL_OP(_nn_binary_cross_entropy_with_logits) {
  Tensor *input = call.tensor(0), *target = call.tensor(1), *weight = call.tensor_or_null(2),
         *pos = call.tensor_or_null(6);
  // 16-bit floats are rounded between the steps of the composite, as in PyTorch.
  if (RL_UNLIKELY(!call[3].is_none() || !call[4].is_none() || weight || pos || tracked(target) ||
                  !plain(input, target) || itemsize(input->dtype()) == 2))
    return call_functional(call, "_loss", "binary_cross_entropy_with_logits");
  pointwise(call, RL_LOSS_BCE_LOGITS, 0, input, target, nullptr, nullptr,
            reduction_of(call[5], "binary_cross_entropy_with_logits"));
}

// kind, p, input, target, weight, pos_weight, reduction
RL_OP(_pointwise_loss) {
  Tensor *input = call.tensor(2), *target = call.tensor(3);
  int64_t reduction = call.integer(6);
  Tensor* out = call.result(0, input->dtype(), reduction == kReduceNone ? shape_of(input) : Dims{});
  if (out->is_meta()) return;
  GilRelease gil(input->numel >= kGilWork);
  check(rl_pointwise_loss(static_cast<rl_loss_kind>(call.integer(0)), call.real(1), &input->desc, &target->desc,
                          desc_of(call.tensor_or_null(4)), desc_of(call.tensor_or_null(5)), kernel_reduction(reduction),
                          &out->desc));
}
// kind, p, grad, input, target, weight, pos_weight, reduction
RL_OP(_pointwise_loss_backward) {
  Tensor *grad = call.tensor(2), *input = call.tensor(3), *target = call.tensor(4);
  Tensor* out = call.result(0, input->dtype(), shape_of(input));
  if (out->is_meta()) return;
  GilRelease gil(input->numel >= kGilWork);
  check(rl_pointwise_loss_backward(static_cast<rl_loss_kind>(call.integer(0)), call.real(1), &grad->desc, &input->desc,
                                   &target->desc, desc_of(call.tensor_or_null(5)), desc_of(call.tensor_or_null(6)),
                                   kernel_reduction(call.integer(7)), &out->desc));
}

}  // namespace rl
