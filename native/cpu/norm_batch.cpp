// Batch normalisation, behind rushlight/norm.h.
#include <cmath>

#include "cpu/norm_common.h"
#include "rushlight/norm.h"
#include "rushlight/reduce.h"

namespace rl {
namespace {

constexpr int64_t kChunk = 32768;  // elements of one channel whose sums stay apart

// [N, C, S] row-major, or [N * S, C] when `columns`.
struct Layout {
  int64_t samples, channels, positions;
  bool columns;
  int64_t rows() const { return samples * positions; }
};

// Channels next to each other in memory, everything else row-major around them.
bool is_channels_last(const rl_tensor* t) {
  if (t->ndim < 3) return false;
  int64_t expected = t->shape[1];
  if (t->shape[1] != 1 && t->strides[1] != 1) return false;
  for (int k = t->ndim - 1; k >= 1; --k) {
    const int d = k == 1 ? 0 : k;
    if (t->shape[d] != 1 && t->strides[d] != expected) return false;
    expected *= t->shape[d];
  }
  return true;
}

// An operand in the layout: in place where it lies so, else copied.
class Operand {
 public:
  rl_status open(const rl_tensor* t, int dtype, const Layout& layout, bool read) {
    if (t == nullptr) return RL_OK;
    if (t->dtype == dtype && (layout.columns && t->ndim > 2 ? is_channels_last(t) : is_row_major(t))) {
      data_ = static_cast<char*>(t->data);
      return RL_OK;
    }
    tensor_ = t;
    block_ = rl_allocate(static_cast<size_t>(count_elements(t) * dtype_size(dtype)));
    if (block_ == nullptr) return RL_MEMORY_ERROR;
    data_ = static_cast<char*>(block_);
    desc_ = *t;
    desc_.data = block_;
    desc_.dtype = static_cast<uint8_t>(dtype);
    desc_.strides = strides_;
    int64_t stride = layout.columns && t->ndim > 2 ? t->shape[1] : 1;
    for (int d = t->ndim - 1; d >= 0; --d) {
      if (layout.columns && t->ndim > 2 && d == 1) {
        strides_[d] = 1;
        continue;
      }
      strides_[d] = stride;
      stride *= t->shape[d];
    }
    return read ? rl_copy(t, &desc_) : RL_OK;
  }
  ~Operand() { rl_deallocate(block_); }
  rl_status close() {
    if (block_ == nullptr) return RL_OK;
    rl_tensor to = *tensor_;
    return rl_copy(&desc_, &to);
  }
  char* data() const { return data_; }

 private:
  char* data_ = nullptr;
  void* block_ = nullptr;
  const rl_tensor* tensor_ = nullptr;
  rl_tensor desc_{};
  int64_t strides_[RL_MAX_DIMS];
};

rl_status check_input(const char* name, const rl_tensor* in, Layout* layout) {
  RL_TRY(check_norm_dtype(name, in));
  if (in->ndim < 2) {
    return fail(RL_VALUE_ERROR, "%s: the input has too few dimensions; expected [N, C, ...], got %s", name,
                shape_text(in));
  }
  *layout = {in->shape[0], in->shape[1], 1, false};
  for (int d = 2; d < in->ndim; ++d) layout->positions *= in->shape[d];
  layout->columns = layout->positions == 1 || (!is_row_major(in) && is_channels_last(in));
  return RL_OK;
}

// Mean and variance of every channel, in double.
rl_status batch_statistics(const rl_tensor* in, double* mean, double* var) {
  int64_t shape[RL_MAX_DIMS], strides[RL_MAX_DIMS];
  for (int d = 0; d < in->ndim; ++d) {
    shape[d] = d == 1 ? in->shape[1] : 1;
    strides[d] = 1;
  }
  const rl_tensor mean_desc = {mean, shape, strides, in->ndim, RL_FLOAT64, 0, {0, 0}};
  rl_tensor var_desc = mean_desc;
  var_desc.data = var;
  return rl_var_mean(in, 0, &var_desc, &mean_desc);
}

// Calls rows(first element, n, channel) or columns(first row, rows) over everything, in parallel.
template <class Rows, class Columns>
void for_all(const Layout& l, Rows rows, Columns columns) {
  if (l.rows() * l.channels == 0) return;
  if (l.columns) {
    parallel_for(l.rows(), l.channels < kNormBlock ? kNormBlock / l.channels : 1,
                 [&](int64_t begin, int64_t end) { columns(begin, end - begin); });
    return;
  }
  parallel_for(l.samples * l.channels, l.positions < kNormBlock ? kNormBlock / l.positions : 1,
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) rows(i * l.positions, l.positions, i % l.channels);
               });
}

}  // namespace
}  // namespace rl

rl_status rl_batch_norm(const rl_tensor* in, const rl_tensor* weight, const rl_tensor* bias,
                        const rl_tensor* running_mean, const rl_tensor* running_var, int training, double momentum,
                        double eps, const rl_tensor* out, const rl_tensor* save_mean, const rl_tensor* save_rstd) {
  using namespace rl;
  constexpr const char* name = "batch_norm";
  Layout l;
  RL_TRY(check_input(name, in, &l));
  RL_TRY(check_same_shape(name, "the output", in, out));
  RL_TRY(check_norm_count(name, "weight", weight, l.channels));
  RL_TRY(check_norm_count(name, "bias", bias, l.channels));
  RL_TRY(check_norm_count(name, "running_mean", running_mean, l.channels));
  RL_TRY(check_norm_count(name, "running_var", running_var, l.channels));
  if (!training && (running_mean == nullptr || running_var == nullptr)) {
    return fail(RL_VALUE_ERROR,
                "batch_norm: evaluation needs running statistics; expected running_mean and running_var, got NULL");
  }
  const int dtype = working_float(in->dtype);
  const int64_t size = dtype_size(dtype), channels = l.channels;
  // Per channel: mean, variance (then scale), shift; and the statistics to save.
  Scratch<double> table(4 * channels);
  if (!table) return RL_MEMORY_ERROR;
  double *const mean = table.get(), *const var = mean + channels, *const shift = var + channels,
                *const rstd = shift + channels;
  DenseInput w, b;
  RL_TRY(w.open(weight, dtype));
  RL_TRY(b.open(bias, dtype));
  if (training) {
    RL_TRY(check_norm_count(name, "save_mean", save_mean, channels));
    RL_TRY(check_norm_count(name, "save_rstd", save_rstd, channels));
    RL_TRY(batch_statistics(in, mean, var));
    const double n = static_cast<double>(l.rows());
    const auto move = [&](const rl_tensor* running, const double* batch, double factor) -> rl_status {
      if (running == nullptr) return RL_OK;
      DenseOutput values;
      RL_TRY(values.open(running, RL_FLOAT64, true));
      double* const v = values.data<double>();
      if (running->dtype == RL_BFLOAT16 && in->dtype == RL_BFLOAT16) {  // in steps of that dtype, as PyTorch has it
        const auto round = [](double x) {
          return static_cast<double>(bfloat16_bits_to_float(float_to_bfloat16_bits(static_cast<float>(x))));
        };
        const double part = round(momentum), rest = round(1 - part);
        for (int64_t c = 0; c < channels; ++c) v[c] = round(part * round(batch[c] * factor)) + round(rest * v[c]);
        return values.close();
      }
      for (int64_t c = 0; c < channels; ++c) v[c] = (1 - momentum) * v[c] + momentum * (batch[c] * factor);
      return values.close();
    };
    RL_TRY(move(running_mean, mean, 1));
    RL_TRY(move(running_var, var, n / (n - 1)));
  } else {
    DenseInput running;
    RL_TRY(running.open(running_mean, RL_FLOAT64));
    std::memcpy(mean, running.data<double>(), static_cast<size_t>(channels) * 8);
    DenseInput spread;
    RL_TRY(spread.open(running_var, RL_FLOAT64));
    std::memcpy(var, spread.data<double>(), static_cast<size_t>(channels) * 8);
  }
  const WorkingArray weights(w.data<void>(), dtype), biases(b.data<void>(), dtype);
  bool safe = true;
  for (int64_t c = 0; c < channels; ++c) {
    rstd[c] = 1 / std::sqrt(var[c] + eps);
    safe &= moderate(mean[c], rstd[c], dtype);
    var[c] = rstd[c] * weights.get(c, 1);
    shift[c] = biases.get(c, 0);
  }
  if (training) {
    DenseOutput means, rstds;
    RL_TRY(means.open(save_mean, dtype));
    RL_TRY(rstds.open(save_rstd, dtype));
    const WorkingArray to_mean(means.data<void>(), dtype), to_rstd(rstds.data<void>(), dtype);
    for (int64_t c = 0; c < channels; ++c) {
      to_mean.set(c, mean[c]);
      to_rstd.set(c, rstd[c]);
    }
    RL_TRY(means.close());
    RL_TRY(rstds.close());
  }
  Operand x, y;
  RL_TRY(x.open(in, dtype, l, true));
  RL_TRY(y.open(out, dtype, l, false));
  const NormLoops& loops = norm_loops(dtype);
  for_all(
      l,
      [&](int64_t first, int64_t n, int64_t c) {
        loops.affine(x.data() + first * size, y.data() + first * size, n, mean[c], var[c], shift[c], safe);
      },
      [&](int64_t first, int64_t rows) {
        loops.affine_columns(x.data() + first * channels * size, y.data() + first * channels * size, rows, channels,
                             mean, var, shift, safe);
      });
  return y.close();
}

rl_status rl_batch_norm_backward(const rl_tensor* grad, const rl_tensor* in, const rl_tensor* weight,
                                 const rl_tensor* running_mean, const rl_tensor* running_var,
                                 const rl_tensor* save_mean, const rl_tensor* save_rstd, int training, double eps,
                                 const rl_tensor* grad_in, const rl_tensor* grad_weight, const rl_tensor* grad_bias) {
  using namespace rl;
  constexpr const char* name = "batch_norm_backward";
  Layout l;
  RL_TRY(check_input(name, in, &l));
  RL_TRY(check_norm_dtype(name, grad));
  RL_TRY(check_same_shape(name, "the gradient", in, grad));
  RL_TRY(check_same_shape(name, "the input's gradient", in, grad_in));
  const rl_tensor *const from_mean = training ? save_mean : running_mean, *const from_spread =
                                                                              training ? save_rstd : running_var;
  if (from_mean == nullptr || from_spread == nullptr) {
    return fail(RL_VALUE_ERROR, "%s: the statistics of the forward are missing; expected %s, got NULL", name,
                training ? "save_mean and save_rstd" : "running_mean and running_var");
  }
  RL_TRY(check_norm_count(name, "weight", weight, l.channels));
  RL_TRY(check_norm_count(name, training ? "save_mean" : "running_mean", from_mean, l.channels));
  RL_TRY(check_norm_count(name, training ? "save_rstd" : "running_var", from_spread, l.channels));
  RL_TRY(check_norm_count(name, "weight's gradient", grad_weight, l.channels));
  RL_TRY(check_norm_count(name, "bias' gradient", grad_bias, l.channels));
  const int dtype = working_float(in->dtype);
  const int64_t size = dtype_size(dtype), channels = l.channels;
  DenseInput w, means, spreads;
  RL_TRY(w.open(weight, dtype));
  RL_TRY(means.open(from_mean, RL_FLOAT64));
  RL_TRY(spreads.open(from_spread, RL_FLOAT64));
  Operand g, x, dx;
  RL_TRY(g.open(grad, dtype, l, true));
  RL_TRY(x.open(in, dtype, l, true));
  RL_TRY(dx.open(grad_in, dtype, l, false));
  const double* const mean = means.data<double>();
  const NormLoops& loops = norm_loops(dtype);

  // Samples (or rows) go in chunks of fixed size, whose sums are joined in order.
  const int64_t unit = l.columns ? channels : l.positions;
  const int64_t items = l.columns ? l.rows() : l.samples;
  const int64_t per_chunk = unit < kChunk ? kChunk / (unit > 0 ? unit : 1) : 1;
  const int64_t chunks = (items + per_chunk - 1) / per_chunk;
  Scratch<double> table(channels * (2 * chunks + 6));
  if (!table) return RL_MEMORY_ERROR;
  double *const rstd = table.get(), *const a = rstd + channels, *const b = a + channels, *const c0 = b + channels;
  double *const sum = c0 + channels, *const sum_x = sum + channels, *const parts = sum_x + channels;
  bool safe = true;
  for (int64_t c = 0; c < channels; ++c) {
    const double spread = spreads.data<double>()[c];
    rstd[c] = training ? spread : 1 / std::sqrt(spread + eps);
    safe &= moderate(mean[c], rstd[c], dtype);
    sum[c] = sum_x[c] = 0;
  }
  if (l.columns) {
    parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t first = k * per_chunk, rows = first + per_chunk < items ? per_chunk : items - first;
        loops.gradient_sums_columns(g.data() + first * channels * size, x.data() + first * channels * size, rows,
                                    channels, mean, safe, parts + 2 * k * channels, parts + (2 * k + 1) * channels);
      }
    });
  } else {
    const int64_t tasks = per_chunk * l.positions < kNormBlock ? kNormBlock / (per_chunk * l.positions + 1) + 1 : 1;
    parallel_for(chunks * channels, tasks, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t k = task / channels, c = task % channels;
        const int64_t first = k * per_chunk, last = first + per_chunk < items ? first + per_chunk : items;
        double total = 0, total_x = 0;
        for (int64_t i = first; i < last; ++i) {
          const int64_t at = (i * channels + c) * l.positions * size;
          double part, part_x;
          loops.gradient_sums(g.data() + at, x.data() + at, nullptr, l.positions, mean[c], safe, &part, &part_x);
          total += part;
          total_x += part_x;
        }
        parts[2 * k * channels + c] = total;
        parts[(2 * k + 1) * channels + c] = total_x;
      }
    });
  }
  for (int64_t k = 0; k < chunks; ++k) {
    for (int64_t c = 0; c < channels; ++c) {
      sum[c] += parts[2 * k * channels + c];
      sum_x[c] += parts[(2 * k + 1) * channels + c];
    }
  }
  DenseOutput dw, db;
  RL_TRY(dw.open(grad_weight, dtype));
  RL_TRY(db.open(grad_bias, dtype));
  const WorkingArray weights(w.data<void>(), dtype), to_weight(dw.data<void>(), dtype), to_bias(db.data<void>(), dtype);
  const double n = static_cast<double>(l.rows());
  for (int64_t c = 0; c < channels; ++c) {
    to_weight.set(c, sum_x[c] * rstd[c]);
    to_bias.set(c, sum[c]);
    a[c] = rstd[c] * weights.get(c, 1);
    b[c] = training ? -a[c] * rstd[c] * (rstd[c] * sum_x[c]) / n : 0;
    c0[c] = training ? -a[c] * sum[c] / n : 0;
  }
  RL_TRY(dw.close());
  RL_TRY(db.close());
  if (grad_in == nullptr) return RL_OK;
  for_all(
      l,
      [&](int64_t first, int64_t count, int64_t c) {
        loops.combine(g.data() + first * size, x.data() + first * size, nullptr, dx.data() + first * size, count,
                      mean[c], a[c], b[c], c0[c], safe);
      },
      [&](int64_t first, int64_t rows) {
        const int64_t at = first * channels * size;
        loops.combine_columns(g.data() + at, x.data() + at, dx.data() + at, rows, channels, mean, a, b, c0, safe);
      });
  return dx.close();
}
