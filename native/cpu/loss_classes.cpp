// Losses over classes: negative log-likelihood and cross-entropy, behind rushlight/loss.h.
#include <cmath>

#include "core/memory.h"
#include "core/parallel.h"
#include "cpu/loss_kernels.h"
#include "cpu/reduce_dense.h"
#include "cpu/reduce_kernels.h"

namespace rl {
namespace {

constexpr int64_t kBlock = 4096;          // targets of one task
constexpr int64_t kTaskElements = 16384;  // elements of one task over classes

// [N, C, S]: samples, classes, positions.
struct Classes {
  int64_t samples, classes, positions;
  int64_t targets() const { return samples * positions; }
};

// What the functions share: shapes, the targets as int64 and the weights as doubles.
struct ClassLoss {
  const char* name;
  Classes size;
  DenseInput target, weight;
  int64_t ignore_index;
  rl_loss_reduction reduction;

  rl_status open(const char* loss, const rl_tensor* in, const rl_tensor* target_tensor, const rl_tensor* weight_tensor,
                 int64_t ignored, rl_loss_reduction how) {
    name = loss;
    ignore_index = ignored;
    reduction = how;
    if (how < RL_LOSS_NONE || how > RL_LOSS_SUM) {
      return fail(RL_VALUE_ERROR, "%s: the reduction is unknown; expected 0, 1 or 2, got %d", name,
                  static_cast<int>(how));
    }
    if (!is_float_dtype(in->dtype)) {
      return fail(RL_TYPE_ERROR, "%s: the input has the wrong dtype; expected floating point, got %s", name,
                  dtype_text(in->dtype));
    }
    if (target_tensor->dtype != RL_INT64 && target_tensor->dtype != RL_UINT8) {
      return fail(RL_TYPE_ERROR, "%s: the target has the wrong dtype; expected int64 or uint8, got %s", name,
                  dtype_text(target_tensor->dtype));
    }
    if (in->ndim < 1) {
      return fail(RL_VALUE_ERROR, "%s: the input has no dimension of classes; expected [C] or [N, C, ...], got %s",
                  name, shape_text(in));
    }
    const int class_dim = in->ndim == 1 ? 0 : 1;
    size = {class_dim == 0 ? 1 : in->shape[0], in->shape[class_dim], 1};
    for (int d = 2; d < in->ndim; ++d) size.positions *= in->shape[d];
    bool fits = target_tensor->ndim == in->ndim - 1;
    for (int d = 0; fits && d < target_tensor->ndim; ++d)
      fits = target_tensor->shape[d] == in->shape[d < class_dim ? d : d + 1];
    if (!fits) {
      return fail(RL_VALUE_ERROR,
                  "%s: the target has the wrong shape; expected that of the input without its classes, of %s, got %s",
                  name, shape_text(in), shape_text(target_tensor));
    }
    if (weight_tensor != nullptr && (weight_tensor->ndim != 1 || weight_tensor->shape[0] != size.classes)) {
      return fail(RL_VALUE_ERROR, "%s: weight has the wrong shape; expected one for each of %lld classes, got %s", name,
                  static_cast<long long>(size.classes), shape_text(weight_tensor));
    }
    RL_TRY(target.open(target_tensor, RL_INT64));
    RL_TRY(weight.open(weight_tensor, RL_FLOAT64));
    // Looked through first, so that nothing is written when a target is wrong.
    const int64_t* const t = target.data<int64_t>();
    for (int64_t i = 0; i < size.targets(); ++i) {
      if (t[i] != ignore_index && (t[i] < 0 || t[i] >= size.classes)) {
        return fail(RL_INDEX_ERROR,
                    "%s: target is out of range; expected 0 to %lld (or ignore_index %lld), got %lld at position %lld",
                    name, static_cast<long long>(size.classes - 1), static_cast<long long>(ignore_index),
                    static_cast<long long>(t[i]), static_cast<long long>(i));
      }
    }
    return RL_OK;
  }

  double weight_of(int64_t c) const { return weight.data<double>() == nullptr ? 1 : weight.data<double>()[c]; }

  rl_status check_result(const rl_tensor* result, const rl_tensor* target_tensor) const {
    if (!is_float_dtype(result->dtype)) {
      return fail(RL_TYPE_ERROR, "%s: the result has the wrong dtype; expected floating point, got %s", name,
                  dtype_text(result->dtype));
    }
    if (reduction == RL_LOSS_NONE) return check_same_shape(name, "the result", target_tensor, result);
    if (count_elements(result) == 1) return RL_OK;
    return fail(RL_VALUE_ERROR, "%s: the result has the wrong shape; expected one element, got %s", name,
                shape_text(result));
  }
};

rl_status set_scalar(const rl_tensor* t, double value) {
  if (t == nullptr) return RL_OK;
  DenseOutput out;
  RL_TRY(out.open(t, RL_FLOAT64));
  *out.data<double>() = value;
  return out.close();
}

rl_status get_scalar(const rl_tensor* t, double* value) {
  DenseInput in;
  RL_TRY(in.open(t, RL_FLOAT64));
  *value = *in.data<double>();
  return RL_OK;
}

// Element `index` of an array of a floating dtype.
double element(const void* data, int dtype, int64_t index) {
  switch (dtype) {
    case RL_FLOAT16:
      return static_cast<double>(static_cast<float>(static_cast<const half*>(data)[index]));
    case RL_BFLOAT16:
      return static_cast<double>(static_cast<float>(static_cast<const bfloat16*>(data)[index]));
    case RL_FLOAT32:
      return static_cast<double>(static_cast<const float*>(data)[index]);
    default:
      return static_cast<const double*>(data)[index];
  }
}

// Where [n, 0, s] of a tensor lies, in elements.
struct Places {
  const rl_tensor* t;
  int64_t class_stride, positions;
  explicit Places(const rl_tensor* tensor, int64_t count)
      : t(tensor), class_stride(tensor->strides[tensor->ndim == 1 ? 0 : 1]), positions(count) {}
  int64_t operator()(int64_t i) const {
    if (t->ndim == 1) return 0;
    int64_t rest = i % positions, offset = i / positions * t->strides[0];
    for (int d = t->ndim - 1; d >= 2; --d) {
      offset += rest % t->shape[d] * t->strides[d];
      rest /= t->shape[d];
    }
    return offset;
  }
};

// Joins terms given per target into the result: term(i, c) is the loss of target i of class c, unweighted sums
// included.
template <class Term>
rl_status join(const ClassLoss& loss, const rl_tensor* out, const rl_tensor* total_weight, Term term) {
  const int64_t count = loss.size.targets(), blocks = (count + kBlock - 1) / kBlock;
  const int64_t* const t = loss.target.data<int64_t>();
  Scratch<double> parts(blocks * 2);
  if (!parts) return RL_MEMORY_ERROR;
  DenseOutput y;
  const int dtype = working_float(out->dtype);
  if (loss.reduction == RL_LOSS_NONE) RL_TRY(y.open(out, dtype));
  parallel_for(count, kBlock, [&](int64_t begin, int64_t end) {
    double sum = 0, weights = 0;
    for (int64_t i = begin; i < end; ++i) {
      const bool counts = t[i] != loss.ignore_index;
      const double value = counts ? term(i, t[i]) : 0;
      if (counts) weights += loss.weight_of(t[i]);
      sum += value;
      if (loss.reduction != RL_LOSS_NONE) continue;
      if (dtype == RL_FLOAT64)
        y.data<double>()[i] = value;
      else
        y.data<float>()[i] = static_cast<float>(value);
    }
    parts[begin / kBlock * 2] = sum;
    parts[begin / kBlock * 2 + 1] = weights;
  });
  if (loss.reduction == RL_LOSS_NONE) {
    RL_TRY(set_scalar(total_weight, 0));
    return y.close();
  }
  double sum = 0, weights = 0;
  for (int64_t b = 0; b < blocks; ++b) {
    sum += parts[2 * b];
    weights += parts[2 * b + 1];
  }
  RL_TRY(set_scalar(total_weight, weights));
  return set_scalar(out, loss.reduction == RL_LOSS_MEAN ? sum / weights : sum);
}

// The factor that target i's gradient starts from.
struct IncomingGradient {
  DenseInput each;
  double common = 1;
  rl_status open(const ClassLoss& loss, const rl_tensor* grad, const rl_tensor* target, const rl_tensor* total_weight) {
    RL_TRY(loss.check_result(grad, target));
    if (loss.reduction == RL_LOSS_NONE) return each.open(grad, RL_FLOAT64);
    RL_TRY(get_scalar(grad, &common));
    if (loss.reduction == RL_LOSS_MEAN) {
      if (total_weight == nullptr)
        return fail(RL_VALUE_ERROR, "%s: the mean's gradient needs total_weight; got NULL", loss.name);
      double weights;
      RL_TRY(get_scalar(total_weight, &weights));
      common /= weights;
    }
    return RL_OK;
  }
  double of(int64_t i) const { return each.data<double>() == nullptr ? common : each.data<double>()[i]; }
};

rl_status check_gradient(const ClassLoss& loss, const rl_tensor* in, const rl_tensor* grad_in) {
  if (!is_float_dtype(grad_in->dtype)) {
    return fail(RL_TYPE_ERROR, "%s: the gradient has the wrong dtype; expected floating point, got %s", loss.name,
                dtype_text(grad_in->dtype));
  }
  return check_same_shape(loss.name, "the input's gradient", in, grad_in);
}

template <class T>
void scatter_targets(const ClassLoss& loss, const IncomingGradient& incoming, T* out) {
  const Classes& s = loss.size;
  const int64_t* const t = loss.target.data<int64_t>();
  parallel_for(s.targets(), kBlock, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (t[i] == loss.ignore_index) continue;
      const int64_t at = (i / s.positions * s.classes + t[i]) * s.positions + i % s.positions;
      out[at] = static_cast<T>(-loss.weight_of(t[i]) * incoming.of(i));
    }
  });
}

// ---- cross-entropy over dense logits

// Tasks over samples and strips of positions: body(first target, count, first element).
template <class Body>
void for_strips(const Classes& s, Body body) {
  if (s.targets() * s.classes == 0) return;
  if (s.positions == 1) {
    parallel_for(s.samples, s.classes < kTaskElements ? kTaskElements / s.classes : 1,
                 [&](int64_t begin, int64_t end) { body(begin, end - begin, begin * s.classes); });
    return;
  }
  const int64_t strips = (s.positions + kReduceStrip - 1) / kReduceStrip;
  parallel_for(s.samples * strips, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t sample = task / strips, start = task % strips * kReduceStrip, rest = s.positions - start;
      body(sample * s.positions + start, rest < kReduceStrip ? rest : kReduceStrip,
           sample * s.classes * s.positions + start);
    }
  });
}

// log(sum(exp)) over the classes of every target, and with smoothing the weighted sum of the logits.
void log_sums(const ClassLoss& loss, int dtype, const char* x, double* out, double* weighted) {
  const Classes& s = loss.size;
  const int64_t size = dtype_size(dtype);
  const ReduceKernel& kernel = reduce_table().kernels[kReduceLogSumExp][dtype == RL_FLOAT64 ? kTileDouble : kTileFloat];
  for_strips(s, [&](int64_t target, int64_t count, int64_t first) {
    const char* from = x + first * size;
    const auto finish = [&](double best, double sum, int64_t i) {
      out[target + i] = std::fabs(best) < HUGE_VAL ? best + std::log(sum) : best;
    };
    if (s.positions == 1) {
      for (int64_t i = 0; i < count; ++i) {
        double state[2];
        kernel.run(state, 1, from + i * s.classes * size, s.classes, 0, 0);
        finish(state[0], state[1], i);
      }
    } else {
      double state[2 * kReduceStrip];
      kernel.columns(state, kReduceStrip, from, s.positions, s.classes, count, 0, 1, 0);
      for (int64_t i = 0; i < count; ++i) finish(state[i], state[kReduceStrip + i], i);
    }
    if (weighted == nullptr) return;
    const int64_t step = s.positions == 1 ? s.classes : 1;
    for (int64_t i = 0; i < count; ++i) weighted[target + i] = 0;
    for (int64_t c = 0; c < s.classes; ++c) {
      const double w = loss.weight_of(c);
      for (int64_t i = 0; i < count; ++i) weighted[target + i] += w * element(from, dtype, i * step + c * s.positions);
    }
  });
}

double sum_of_weights(const ClassLoss& loss) {
  double sum = 0;
  for (int64_t c = 0; c < loss.size.classes; ++c) sum += loss.weight_of(c);
  return sum;
}

template <class T>
void cross_entropy_gradient(const ClassLoss& loss, const LossLoops& loops, const IncomingGradient& incoming,
                            double smoothing, const T* x, const double* log_sum, T* out) {
  const Classes& s = loss.size;
  const int64_t* const t = loss.target.data<int64_t>();
  const double classes = static_cast<double>(s.classes), all = smoothing > 0 ? sum_of_weights(loss) : 0;
  const double share = smoothing / classes;
  for_strips(s, [&](int64_t target, int64_t count, int64_t first) {
    double scale[kReduceStrip];
    const auto scale_of = [&](int64_t i) {
      return t[i] == loss.ignore_index ? 0 : incoming.of(i) * ((1 - smoothing) * loss.weight_of(t[i]) + share * all);
    };
    // What falls on the target's class, and with smoothing on every class.
    const auto subtract = [&](int64_t i, T* row, int64_t step) {
      if (t[i] == loss.ignore_index) {
        for (int64_t c = 0; c < s.classes; ++c) row[c * step] = T(0);
        return;
      }
      const double g = incoming.of(i);
      row[t[i] * step] -= static_cast<T>(g * (1 - smoothing) * loss.weight_of(t[i]));
      if (smoothing > 0) {
        for (int64_t c = 0; c < s.classes; ++c) row[c * step] -= static_cast<T>(g * share * loss.weight_of(c));
      }
    };
    if (s.positions == 1) {
      for (int64_t i = 0; i < count; ++i) {
        T* row = out + first + i * s.classes;
        loops.probabilities(x + first + i * s.classes, row, s.classes, log_sum[target + i], scale_of(target + i));
        subtract(target + i, row, 1);
      }
      return;
    }
    for (int64_t i = 0; i < count; ++i) scale[i] = scale_of(target + i);
    loops.probability_columns(x + first, out + first, s.classes, count, s.positions, log_sum + target, scale);
    for (int64_t i = 0; i < count; ++i) subtract(target + i, out + first + i, s.positions);
  });
}

}  // namespace
}  // namespace rl

rl_status rl_nll_loss(const rl_tensor* in, const rl_tensor* target, const rl_tensor* weight, int64_t ignore_index,
                      rl_loss_reduction reduction, const rl_tensor* out, const rl_tensor* total_weight) {
  using namespace rl;
  ClassLoss loss;
  RL_TRY(loss.open("nll_loss", in, target, weight, ignore_index, reduction));
  RL_TRY(loss.check_result(out, target));
  const Places place(in, loss.size.positions);
  return join(loss, out, total_weight, [&](int64_t i, int64_t c) {
    return -loss.weight_of(c) * element(in->data, in->dtype, place(i) + c * place.class_stride);
  });
}

rl_status rl_nll_loss_backward(const rl_tensor* grad, const rl_tensor* target, const rl_tensor* weight,
                               int64_t ignore_index, rl_loss_reduction reduction, const rl_tensor* total_weight,
                               const rl_tensor* grad_in) {
  using namespace rl;
  ClassLoss loss;
  RL_TRY(loss.open("nll_loss_backward", grad_in, target, weight, ignore_index, reduction));
  IncomingGradient incoming;
  RL_TRY(incoming.open(loss, grad, target, total_weight));
  const int dtype = working_float(grad_in->dtype);
  DenseOutput y;
  RL_TRY(y.open(grad_in, dtype));
  const int64_t bytes = count_elements(grad_in) * dtype_size(dtype);
  parallel_for(bytes, int64_t{1} << 20, [&](int64_t begin, int64_t end) {
    std::memset(y.data<char>() + begin, 0, static_cast<size_t>(end - begin));
  });
  if (dtype == RL_FLOAT64)
    scatter_targets(loss, incoming, y.data<double>());
  else
    scatter_targets(loss, incoming, y.data<float>());
  return y.close();
}

rl_status rl_cross_entropy(const rl_tensor* in, const rl_tensor* target, const rl_tensor* weight, int64_t ignore_index,
                           double label_smoothing, rl_loss_reduction reduction, const rl_tensor* out,
                           const rl_tensor* total_weight, const rl_tensor* log_sum) {
  using namespace rl;
  ClassLoss loss;
  RL_TRY(loss.open("cross_entropy", in, target, weight, ignore_index, reduction));
  RL_TRY(loss.check_result(out, target));
  const int64_t count = loss.size.targets();
  if (log_sum != nullptr && (!is_float_dtype(log_sum->dtype) || count_elements(log_sum) != count)) {
    return fail(
        RL_VALUE_ERROR,
        "cross_entropy: log_sum has the wrong shape or dtype; expected a float for each target of %s, got %s %s",
        shape_text(target), dtype_text(log_sum->dtype), shape_text(log_sum));
  }
  const int dtype = working_float(in->dtype);
  DenseInput x;
  RL_TRY(x.open(in, dtype));
  const bool smooth = label_smoothing > 0;
  Scratch<double> sums(count * (smooth ? 2 : 1));
  if (!sums) return RL_MEMORY_ERROR;
  log_sums(loss, dtype, x.data<char>(), sums.get(), smooth ? sums.get() + count : nullptr);
  if (log_sum != nullptr) {
    DenseOutput saved;
    const int saved_dtype = working_float(log_sum->dtype);
    RL_TRY(saved.open(log_sum, saved_dtype));
    for (int64_t i = 0; i < count; ++i) {
      if (saved_dtype == RL_FLOAT64)
        saved.data<double>()[i] = sums[i];
      else
        saved.data<float>()[i] = static_cast<float>(sums[i]);
    }
    RL_TRY(saved.close());
  }
  const Classes& s = loss.size;
  const double all = smooth ? sum_of_weights(loss) : 0, share = label_smoothing / static_cast<double>(s.classes);
  return join(loss, out, total_weight, [&](int64_t i, int64_t c) {
    const int64_t at = (i / s.positions * s.classes + c) * s.positions + i % s.positions;
    const double likely = loss.weight_of(c) * (sums[i] - element(x.data<void>(), dtype, at));
    return smooth ? (1 - label_smoothing) * likely + share * (all * sums[i] - sums[count + i]) : likely;
  });
}

rl_status rl_cross_entropy_backward(const rl_tensor* grad, const rl_tensor* in, const rl_tensor* log_sum,
                                    const rl_tensor* target, const rl_tensor* weight, int64_t ignore_index,
                                    double label_smoothing, rl_loss_reduction reduction, const rl_tensor* total_weight,
                                    const rl_tensor* grad_in) {
  using namespace rl;
  ClassLoss loss;
  RL_TRY(loss.open("cross_entropy_backward", in, target, weight, ignore_index, reduction));
  RL_TRY(check_gradient(loss, in, grad_in));
  RL_TRY(check_same_shape(loss.name, "log_sum", target, log_sum));
  IncomingGradient incoming;
  RL_TRY(incoming.open(loss, grad, target, total_weight));
  const int dtype = working_float(in->dtype);
  DenseInput x, sums;
  DenseOutput y;
  RL_TRY(x.open(in, dtype));
  RL_TRY(sums.open(log_sum, RL_FLOAT64));
  RL_TRY(y.open(grad_in, dtype));
  if (dtype == RL_FLOAT64) {
    cross_entropy_gradient(loss, loss_table().wide, incoming, label_smoothing, x.data<double>(), sums.data<double>(),
                           y.data<double>());
  } else {
    cross_entropy_gradient(loss, loss_table().single, incoming, label_smoothing, x.data<float>(), sums.data<double>(),
                           y.data<float>());
  }
  return y.close();
}
