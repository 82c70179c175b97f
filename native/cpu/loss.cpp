// Losses whose terms are computed element by element, behind rushlight/loss.h.
#include "rushlight/loss.h"

#include "core/memory.h"
#include "core/parallel.h"
#include "cpu/loss_kernels.h"
#include "cpu/reduce_dense.h"

namespace rl {
namespace {

constexpr int64_t kBlock = 16384;  // elements of one task

constexpr const char* kNames[RL_LOSS_KIND_COUNT] = {
    "mse_loss", "l1_loss", "smooth_l1_loss",  "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "kl_div",   "kl_div",  "soft_margin_loss"};

rl_status check_operand(const char* name, const char* what, const rl_tensor* in, const rl_tensor* t) {
  if (t == nullptr) return RL_OK;
  if (!is_float_dtype(t->dtype)) {
    return fail(RL_TYPE_ERROR, "%s: %s has the wrong dtype; expected floating point, got %s", name, what,
                dtype_text(t->dtype));
  }
  return check_same_shape(name, what, in, t);
}

// The operands as arrays of one working dtype.
struct Operands {
  DenseInput in, target, weight, pos_weight;
  int dtype;
  int64_t count;
  const LossTerms* terms;
  const char* name;

  rl_status open(rl_loss_kind kind, const rl_tensor* in_tensor, const rl_tensor* target_tensor,
                 const rl_tensor* weight_tensor, const rl_tensor* pos_weight_tensor) {
    if (kind < 0 || kind >= RL_LOSS_KIND_COUNT) {
      return fail(RL_VALUE_ERROR, "loss: the kind is unknown; expected 0 to %d, got %d", RL_LOSS_KIND_COUNT - 1,
                  static_cast<int>(kind));
    }
    name = kNames[kind];
    RL_TRY(check_operand(name, "the input", in_tensor, in_tensor));
    RL_TRY(check_operand(name, "the target", in_tensor, target_tensor));
    RL_TRY(check_operand(name, "weight", in_tensor, weight_tensor));
    RL_TRY(check_operand(name, "pos_weight", in_tensor, pos_weight_tensor));
    dtype = in_tensor->dtype == RL_FLOAT64 || target_tensor->dtype == RL_FLOAT64 ? RL_FLOAT64 : RL_FLOAT32;
    RL_TRY(in.open(in_tensor, dtype));
    RL_TRY(target.open(target_tensor, dtype));
    RL_TRY(weight.open(weight_tensor, dtype));
    RL_TRY(pos_weight.open(pos_weight_tensor, dtype));
    count = count_elements(in_tensor);
    terms = &(dtype == RL_FLOAT64 ? loss_table().wide : loss_table().single).terms[kind];
    return RL_OK;
  }

  LossOperands at(int64_t first) const {
    const int64_t offset = first * dtype_size(dtype);
    const auto shift = [&](const DenseInput& t) -> const void* {
      return t.data<char>() == nullptr ? nullptr : t.data<char>() + offset;
    };
    return {shift(in), shift(target), shift(weight), shift(pos_weight)};
  }
};

rl_status check_reduction(const char* name, rl_loss_reduction reduction) {
  if (reduction >= RL_LOSS_NONE && reduction <= RL_LOSS_SUM) return RL_OK;
  return fail(RL_VALUE_ERROR, "%s: the reduction is unknown; expected 0, 1 or 2, got %d", name,
              static_cast<int>(reduction));
}

// A result, or its gradient: one element, or with the input's shape where nothing is reduced.
rl_status check_result(const char* name, const rl_tensor* in, rl_loss_reduction reduction, const rl_tensor* out) {
  RL_TRY(check_reduction(name, reduction));
  if (!is_float_dtype(out->dtype)) {
    return fail(RL_TYPE_ERROR, "%s: the result has the wrong dtype; expected floating point, got %s", name,
                dtype_text(out->dtype));
  }
  if (reduction == RL_LOSS_NONE) return check_same_shape(name, "the result", in, out);
  if (count_elements(out) == 1) return RL_OK;
  return fail(RL_VALUE_ERROR, "%s: the result has the wrong shape; expected one element, got %s", name,
              shape_text(out));
}

}  // namespace
}  // namespace rl

rl_status rl_pointwise_loss(rl_loss_kind kind, double p, const rl_tensor* in, const rl_tensor* target,
                            const rl_tensor* weight, const rl_tensor* pos_weight, rl_loss_reduction reduction,
                            const rl_tensor* out) {
  using namespace rl;
  Operands x;
  RL_TRY(x.open(kind, in, target, weight, pos_weight));
  RL_TRY(check_result(x.name, in, reduction, out));
  if (reduction == RL_LOSS_NONE) {
    DenseOutput y;
    RL_TRY(y.open(out, x.dtype));
    const int64_t size = dtype_size(x.dtype);
    parallel_for(x.count, kBlock, [&](int64_t begin, int64_t end) {
      x.terms->map(x.at(begin), y.data<char>() + begin * size, end - begin, p);
    });
    return y.close();
  }
  double total = 0;
  if (x.count <= kBlock) {
    total = x.terms->sum(x.at(0), x.count, p);
  } else {
    Scratch<double> parts((x.count + kBlock - 1) / kBlock);
    if (!parts) return RL_MEMORY_ERROR;
    parallel_for(x.count, kBlock, [&](int64_t begin, int64_t end) {
      parts[begin / kBlock] = x.terms->sum(x.at(begin), end - begin, p);
    });
    for (int64_t i = 0; i * kBlock < x.count; ++i) total += parts[i];
  }
  if (reduction == RL_LOSS_MEAN) total /= static_cast<double>(x.count);
  DenseOutput y;
  RL_TRY(y.open(out, RL_FLOAT64));
  *y.data<double>() = total;
  return y.close();
}

rl_status rl_pointwise_loss_backward(rl_loss_kind kind, double p, const rl_tensor* grad, const rl_tensor* in,
                                     const rl_tensor* target, const rl_tensor* weight, const rl_tensor* pos_weight,
                                     rl_loss_reduction reduction, const rl_tensor* grad_in) {
  using namespace rl;
  Operands x;
  RL_TRY(x.open(kind, in, target, weight, pos_weight));
  RL_TRY(check_result(x.name, in, reduction, grad));
  RL_TRY(check_operand(x.name, "the input's gradient", in, grad_in));
  double scale = 1;
  DenseInput g;
  if (reduction == RL_LOSS_NONE) {
    RL_TRY(g.open(grad, x.dtype));
  } else {
    DenseInput one;
    RL_TRY(one.open(grad, RL_FLOAT64));
    scale = *one.data<double>();
    if (reduction == RL_LOSS_MEAN) scale /= static_cast<double>(x.count);
  }
  DenseOutput y;
  RL_TRY(y.open(grad_in, x.dtype));
  const int64_t size = dtype_size(x.dtype);
  parallel_for(x.count, kBlock, [&](int64_t begin, int64_t end) {
    x.terms->gradient(x.at(begin), reduction == RL_LOSS_NONE ? g.data<char>() + begin * size : nullptr,
                      y.data<char>() + begin * size, end - begin, p, scale);
  });
  return y.close();
}
