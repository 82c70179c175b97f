// Layer, root-mean-square and group normalisation, behind rushlight/norm.h.
#include "rushlight/norm.h"

#include "cpu/norm_common.h"

namespace rl {
namespace {

constexpr int64_t kNormPiece = 1 << 20;        // elements that are copied at a time
constexpr int64_t kMostPartials = 64;          // blocks of rows with sums of their own for the parameters' gradients
constexpr int64_t kPartialElements = 4194304;  // and most elements of all these sums

// in as [rows, n]
struct Rows {
  int64_t rows = 1, n = 1;
};

rl_status split(const char* name, const rl_tensor* in, int dims, Rows* r) {
  RL_TRY(check_norm_dtype(name, in));
  if (dims < 1 || dims > in->ndim) {
    return fail(RL_VALUE_ERROR, "%s: the number of normalised dimensions is wrong; expected 1 to %d, got %d", name,
                in->ndim, dims);
  }
  for (int d = 0; d < in->ndim; ++d) (d < in->ndim - dims ? r->rows : r->n) *= in->shape[d];
  return RL_OK;
}

rl_status forward(const char* name, const rl_tensor* in, int dims, const rl_tensor* weight, const rl_tensor* bias,
                  double eps, const rl_tensor* out, const rl_tensor* mean, const rl_tensor* rstd, bool center) {
  Rows r;
  RL_TRY(split(name, in, dims, &r));
  RL_TRY(check_same_shape(name, "the output", in, out));
  RL_TRY(check_norm_count(name, "weight", weight, r.n));
  RL_TRY(check_norm_count(name, "bias", bias, r.n));
  RL_TRY(check_norm_count(name, "mean", mean, r.rows));
  RL_TRY(check_norm_count(name, "rstd", rstd, r.rows));
  const int dtype = working_float(in->dtype);
  const int64_t size = dtype_size(dtype);
  DenseInput w, b;
  DenseOutput means, rstds;
  RL_TRY(w.open(weight, dtype));
  RL_TRY(b.open(bias, dtype));
  RL_TRY(means.open(mean, dtype));
  RL_TRY(rstds.open(rstd, dtype));
  const NormLoops& loops = norm_loops(dtype);
  const WorkingArray save_mean(means.data<void>(), dtype), save_rstd(rstds.data<void>(), dtype);
  // Rows from the `first` on.
  const auto run = [&](const rl_tensor* from, const rl_tensor* to, int64_t first, int64_t rows) -> rl_status {
    DenseInput x;
    DenseOutput y;
    RL_TRY(x.open(from, dtype));
    RL_TRY(y.open(to, dtype));
    parallel_for(rows, r.n < kNormBlock ? kNormBlock / (r.n > 0 ? r.n : 1) : 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const char* row = x.data<char>() + i * r.n * size;
        double m, s;
        loops.statistics(row, r.n, center, eps, &m, &s);
        loops.normalize(row, y.data<char>() + i * r.n * size, r.n, m, s, w.data<void>(), b.data<void>(),
                        moderate(m, s, dtype));
        save_mean.set(first + i, m);
        save_rstd.set(first + i, s);
      }
    });
    return y.close();
  };
  // Copies in the working dtype are made of some rows at a time.
  int along = 0;
  while (along < in->ndim - dims && in->shape[along] == 1) ++along;
  const bool dense = in->dtype == dtype && out->dtype == dtype && is_row_major(in) && is_row_major(out);
  if (dense || along == in->ndim - dims || r.rows * r.n <= kNormPiece) {
    RL_TRY(run(in, out, 0, r.rows));
  } else {
    const int64_t count = in->shape[along], rows = r.rows / count;
    const int64_t step = std::max<int64_t>(1, kNormPiece / (rows * r.n));
    for (int64_t start = 0; start < count; start += step) {
      const int64_t here = std::min(step, count - start);
      const Narrowed from(in, along, start, here), to(out, along, start, here);
      RL_TRY(run(&from.desc, &to.desc, start * rows, here * rows));
    }
  }
  RL_TRY(means.close());
  return rstds.close();
}

// Sums over all rows for the parameters, kept apart for fixed blocks of rows.
template <class T>
class ParameterSums {
 public:
  ParameterSums(const Rows& r, bool weight, bool bias)
      : n_(r.n),
        weight_(weight),
        bias_(bias),
        blocks_(block_count(r)),
        rows_((r.rows + blocks_ - 1) / blocks_),
        sums_(weight || bias ? blocks_ * 2 * n_ : 0) {}
  explicit operator bool() const { return static_cast<bool>(sums_); }
  int64_t blocks() const { return blocks_; }
  int64_t block_rows() const { return rows_; }
  double* weight(int64_t block) const { return weight_ ? sums_.get() + block * 2 * n_ : nullptr; }
  double* bias(int64_t block) const { return bias_ ? sums_.get() + block * 2 * n_ + n_ : nullptr; }

  void finish(T* grad_weight, T* grad_bias, int64_t used) const {
    parallel_for(n_, 2048, [&](int64_t begin, int64_t end) {
      for (int k = 0; k < 2; ++k) {
        T* const to = k == 0 ? grad_weight : grad_bias;
        if (to == nullptr) continue;
        for (int64_t j = begin; j < end; ++j) {
          double sum = 0;
          for (int64_t b = 0; b < used; ++b) sum += sums_[b * 2 * n_ + k * n_ + j];
          to[j] = static_cast<T>(sum);
        }
      }
    });
  }

 private:
  static int64_t block_count(const Rows& r) {
    int64_t blocks = r.rows * r.n / kNormBlock;
    if (blocks > kMostPartials) blocks = kMostPartials;
    if (r.n > 0 && blocks > kPartialElements / r.n) blocks = kPartialElements / r.n;
    if (blocks > r.rows) blocks = r.rows;
    return blocks < 1 ? 1 : blocks;
  }
  int64_t n_;
  bool weight_, bias_;
  int64_t blocks_, rows_;
  Scratch<double> sums_;
};

template <class T>
rl_status backward_rows(const Rows& r, int dtype, const T* grad, const T* x, const WorkingArray& means,
                        const WorkingArray& rstds, const T* w, bool center, T* grad_in, T* grad_weight, T* grad_bias) {
  const NormLoops& loops = norm_loops(dtype);
  const int64_t n = r.n;
  const ParameterSums<T> sums(r, grad_weight != nullptr, grad_bias != nullptr);
  if (!sums) return RL_MEMORY_ERROR;
  const int64_t used = r.rows == 0 ? 0 : (r.rows + sums.block_rows() - 1) / sums.block_rows();
  const rl_status status = parallel_for(used, 1, [&](int64_t first_block, int64_t end_block) -> rl_status {
    Scratch<T> parts(2 * n);
    if (!parts) return RL_MEMORY_ERROR;
    T* const dw = grad_weight != nullptr ? parts.get() : nullptr;
    T* const db = grad_bias != nullptr ? parts.get() + n : nullptr;
    for (int64_t block = first_block; block < end_block; ++block) {
      double *const weight_sum = sums.weight(block), *const bias_sum = sums.bias(block);
      if (weight_sum != nullptr) std::memset(weight_sum, 0, static_cast<size_t>(n) * 8);
      if (bias_sum != nullptr) std::memset(bias_sum, 0, static_cast<size_t>(n) * 8);
      const int64_t begin = block * sums.block_rows();
      const int64_t end = begin + sums.block_rows() < r.rows ? begin + sums.block_rows() : r.rows;
      for (int64_t start = begin; start < end; start += kNormRows) {
        const int64_t stop = start + kNormRows < end ? start + kNormRows : end;
        std::memset(parts.get(), 0, static_cast<size_t>(2 * n) * sizeof(T));
        for (int64_t i = start; i < stop; ++i) {
          const double mean = center ? means.get(i, 0) : 0, rstd = rstds.get(i, 1);
          const bool safe = moderate(mean, rstd, dtype);
          const T *g = grad + i * n, *row = x + i * n;
          if (grad_in != nullptr) {
            double sum, sum_x;
            loops.gradient_sums(g, row, w, n, mean, safe, &sum, &sum_x);
            const double count = static_cast<double>(n);
            const double b = -(sum_x * rstd) * rstd * rstd / count, c = center ? -rstd * sum / count : 0;
            if (safe && w != nullptr && dw != nullptr && db != nullptr) {
              loops.combine_parameters(g, row, w, grad_in + i * n, n, mean, rstd, b, c, dw, db);
              continue;
            }
            loops.combine(g, row, w, grad_in + i * n, n, mean, rstd, b, c, safe);
          }
          loops.parameter_sums(g, row, n, mean, rstd, dw, db, safe);
        }
        if (weight_sum != nullptr) {
          for (int64_t j = 0; j < n; ++j) weight_sum[j] += static_cast<double>(dw[j]);
        }
        if (bias_sum != nullptr) {
          for (int64_t j = 0; j < n; ++j) bias_sum[j] += static_cast<double>(db[j]);
        }
      }
    }
    return RL_OK;
  });
  RL_TRY(status);
  sums.finish(grad_weight, grad_bias, used);
  return RL_OK;
}

rl_status backward(const char* name, const rl_tensor* grad, const rl_tensor* in, int dims, const rl_tensor* mean,
                   const rl_tensor* rstd, const rl_tensor* weight, const rl_tensor* grad_in,
                   const rl_tensor* grad_weight, const rl_tensor* grad_bias, bool center) {
  Rows r;
  RL_TRY(split(name, in, dims, &r));
  RL_TRY(check_norm_dtype(name, grad));
  RL_TRY(check_same_shape(name, "the gradient", in, grad));
  RL_TRY(check_same_shape(name, "the input's gradient", in, grad_in));
  if (center) RL_TRY(check_norm_count(name, "mean", mean, r.rows));
  RL_TRY(check_norm_count(name, "rstd", rstd, r.rows));
  RL_TRY(check_norm_count(name, "weight", weight, r.n));
  RL_TRY(check_norm_count(name, "weight's gradient", grad_weight, r.n));
  RL_TRY(check_norm_count(name, "bias' gradient", grad_bias, r.n));
  const int dtype = working_float(in->dtype);
  DenseInput g, x, w, means, rstds;
  DenseOutput dx, dw, db;
  RL_TRY(g.open(grad, dtype));
  RL_TRY(x.open(in, dtype));
  RL_TRY(w.open(weight, dtype));
  RL_TRY(means.open(mean, dtype));
  RL_TRY(rstds.open(rstd, dtype));
  RL_TRY(dx.open(grad_in, dtype));
  RL_TRY(dw.open(grad_weight, dtype));
  RL_TRY(db.open(grad_bias, dtype));
  const WorkingArray m(means.data<void>(), dtype), s(rstds.data<void>(), dtype);
  if (dtype == RL_FLOAT64) {
    RL_TRY(backward_rows<double>(r, dtype, g.data<double>(), x.data<double>(), m, s, w.data<double>(), center,
                                 dx.data<double>(), dw.data<double>(), db.data<double>()));
  } else {
    RL_TRY(backward_rows<float>(r, dtype, g.data<float>(), x.data<float>(), m, s, w.data<float>(), center,
                                dx.data<float>(), dw.data<float>(), db.data<float>()));
  }
  RL_TRY(dx.close());
  RL_TRY(dw.close());
  return db.close();
}

// ---- groups of channels

struct Groups {
  int64_t samples, channels, positions, groups, per_group;
};

rl_status split_groups(const char* name, const rl_tensor* in, int64_t groups, Groups* s) {
  RL_TRY(check_norm_dtype(name, in));
  if (in->ndim < 2) {
    return fail(RL_VALUE_ERROR, "%s: the input has too few dimensions; expected [N, C, ...], got %s", name,
                shape_text(in));
  }
  if (groups < 1 || in->shape[1] % groups != 0) {
    return fail(RL_VALUE_ERROR,
                "%s: the channels do not divide into the groups; expected a multiple of %lld, got %lld channels", name,
                static_cast<long long>(groups), static_cast<long long>(in->shape[1]));
  }
  *s = {in->shape[0], in->shape[1], 1, groups, in->shape[1] / groups};
  for (int d = 2; d < in->ndim; ++d) s->positions *= in->shape[d];
  return RL_OK;
}

int64_t group_block(const Groups& s) {
  const int64_t elements = s.per_group * s.positions;
  return elements < kNormBlock ? kNormBlock / (elements > 0 ? elements : 1) : 1;
}

}  // namespace
}  // namespace rl

rl_status rl_layer_norm(const rl_tensor* in, int dims, const rl_tensor* weight, const rl_tensor* bias, double eps,
                        const rl_tensor* out, const rl_tensor* mean, const rl_tensor* rstd) {
  return rl::forward("layer_norm", in, dims, weight, bias, eps, out, mean, rstd, true);
}

rl_status rl_layer_norm_backward(const rl_tensor* grad, const rl_tensor* in, int dims, const rl_tensor* mean,
                                 const rl_tensor* rstd, const rl_tensor* weight, const rl_tensor* grad_in,
                                 const rl_tensor* grad_weight, const rl_tensor* grad_bias) {
  return rl::backward("layer_norm_backward", grad, in, dims, mean, rstd, weight, grad_in, grad_weight, grad_bias, true);
}

rl_status rl_rms_norm(const rl_tensor* in, int dims, const rl_tensor* weight, double eps, const rl_tensor* out,
                      const rl_tensor* rstd) {
  return rl::forward("rms_norm", in, dims, weight, nullptr, eps, out, nullptr, rstd, false);
}

rl_status rl_rms_norm_backward(const rl_tensor* grad, const rl_tensor* in, int dims, const rl_tensor* rstd,
                               const rl_tensor* weight, const rl_tensor* grad_in, const rl_tensor* grad_weight) {
  return rl::backward("rms_norm_backward", grad, in, dims, nullptr, rstd, weight, grad_in, grad_weight, nullptr, false);
}

rl_status rl_group_norm(const rl_tensor* in, int64_t groups, const rl_tensor* weight, const rl_tensor* bias, double eps,
                        const rl_tensor* out, const rl_tensor* mean, const rl_tensor* rstd) {
  using namespace rl;
  constexpr const char* name = "group_norm";
  Groups s;
  RL_TRY(split_groups(name, in, groups, &s));
  RL_TRY(check_same_shape(name, "the output", in, out));
  RL_TRY(check_norm_count(name, "weight", weight, s.channels));
  RL_TRY(check_norm_count(name, "bias", bias, s.channels));
  RL_TRY(check_norm_count(name, "mean", mean, s.samples * groups));
  RL_TRY(check_norm_count(name, "rstd", rstd, s.samples * groups));
  const int dtype = working_float(in->dtype);
  const int64_t size = dtype_size(dtype), n = s.per_group * s.positions;
  DenseInput x, w, b;
  DenseOutput y, means, rstds;
  RL_TRY(x.open(in, dtype));
  RL_TRY(w.open(weight, dtype));
  RL_TRY(b.open(bias, dtype));
  RL_TRY(y.open(out, dtype));
  RL_TRY(means.open(mean, dtype));
  RL_TRY(rstds.open(rstd, dtype));
  const NormLoops& loops = norm_loops(dtype);
  const WorkingArray save_mean(means.data<void>(), dtype), save_rstd(rstds.data<void>(), dtype);
  const WorkingArray weights(w.data<void>(), dtype), biases(b.data<void>(), dtype);
  parallel_for(s.samples * groups, group_block(s), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const char* from = x.data<char>() + i * n * size;
      char* to = y.data<char>() + i * n * size;
      const int64_t channel = i % groups * s.per_group;
      double m, r;
      loops.statistics(from, n, true, eps, &m, &r);
      const bool safe = moderate(m, r, dtype);
      if (s.positions == 1) {
        loops.normalize(from, to, n, m, r, offset_by(w.data<char>(), channel * size),
                        offset_by(b.data<char>(), channel * size), safe);
      } else {
        for (int64_t c = 0; c < s.per_group; ++c) {
          loops.affine(from + c * s.positions * size, to + c * s.positions * size, s.positions, m,
                       r * weights.get(channel + c, 1), biases.get(channel + c, 0), safe);
        }
      }
      save_mean.set(i, m);
      save_rstd.set(i, r);
    }
  });
  RL_TRY(y.close());
  RL_TRY(means.close());
  return rstds.close();
}

rl_status rl_group_norm_backward(const rl_tensor* grad, const rl_tensor* in, int64_t groups, const rl_tensor* mean,
                                 const rl_tensor* rstd, const rl_tensor* weight, const rl_tensor* grad_in,
                                 const rl_tensor* grad_weight, const rl_tensor* grad_bias) {
  using namespace rl;
  constexpr const char* name = "group_norm_backward";
  Groups s;
  RL_TRY(split_groups(name, in, groups, &s));
  RL_TRY(check_norm_dtype(name, grad));
  RL_TRY(check_same_shape(name, "the gradient", in, grad));
  RL_TRY(check_same_shape(name, "the input's gradient", in, grad_in));
  RL_TRY(check_norm_count(name, "weight", weight, s.channels));
  RL_TRY(check_norm_count(name, "mean", mean, s.samples * groups));
  RL_TRY(check_norm_count(name, "rstd", rstd, s.samples * groups));
  RL_TRY(check_norm_count(name, "weight's gradient", grad_weight, s.channels));
  RL_TRY(check_norm_count(name, "bias' gradient", grad_bias, s.channels));
  const int dtype = working_float(in->dtype);
  const int64_t size = dtype_size(dtype), n = s.per_group * s.positions, row = s.positions * size;
  DenseInput g, x, w, means, rstds;
  DenseOutput dx, dw, db;
  RL_TRY(g.open(grad, dtype));
  RL_TRY(x.open(in, dtype));
  RL_TRY(w.open(weight, dtype));
  RL_TRY(means.open(mean, dtype));
  RL_TRY(rstds.open(rstd, dtype));
  RL_TRY(dx.open(grad_in, dtype));
  RL_TRY(dw.open(grad_weight, dtype));
  RL_TRY(db.open(grad_bias, dtype));
  const NormLoops& loops = norm_loops(dtype);
  const WorkingArray m(means.data<void>(), dtype), r(rstds.data<void>(), dtype), weights(w.data<void>(), dtype);
  // Per sample and channel: sums of grad, and of grad times the normalised input.
  Scratch<double> sums(2 * s.samples * s.channels);
  if (!sums) return RL_MEMORY_ERROR;
  double* const sums_x = sums.get() + s.samples * s.channels;
  parallel_for(s.samples * groups, group_block(s), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double mu = m.get(i, 0), rs = r.get(i, 1);
      const bool safe = moderate(mu, rs, dtype);
      const int64_t channel = i % groups * s.per_group;
      double total = 0, total_x = 0;
      for (int64_t c = 0; c < s.per_group; ++c) {
        const int64_t at = i * s.per_group + c;
        double sum, sum_x;
        loops.gradient_sums(g.data<char>() + at * row, x.data<char>() + at * row, nullptr, s.positions, mu, safe, &sum,
                            &sum_x);
        sums[at] = sum;
        sums_x[at] = sum_x * rs;
        total += sum * weights.get(channel + c, 1);
        total_x += sums_x[at] * weights.get(channel + c, 1);
      }
      if (dx.data<void>() == nullptr) continue;
      const double count = static_cast<double>(n);
      for (int64_t c = 0; c < s.per_group; ++c) {
        const int64_t at = i * s.per_group + c;
        loops.combine(g.data<char>() + at * row, x.data<char>() + at * row, nullptr, dx.data<char>() + at * row,
                      s.positions, mu, rs * weights.get(channel + c, 1), -total_x * rs * rs / count,
                      -rs * total / count, safe);
      }
    }
  });
  const WorkingArray to_weight(dw.data<void>(), dtype), to_bias(db.data<void>(), dtype);
  for (int64_t c = 0; c < s.channels; ++c) {
    double sum = 0, sum_x = 0;
    for (int64_t i = 0; i < s.samples; ++i) {
      sum += sums[i * s.channels + c];
      sum_x += sums_x[i * s.channels + c];
    }
    to_weight.set(c, sum_x);
    to_bias.set(c, sum);
  }
  RL_TRY(dx.close());
  RL_TRY(dw.close());
  return db.close();
}
