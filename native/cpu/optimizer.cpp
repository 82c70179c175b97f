// Optimizer steps over many tensors, behind rushlight/optimizer.h.
#include "rushlight/optimizer.h"

#include <cmath>
#include <initializer_list>

#include "core/memory.h"
#include "core/parallel.h"
#include "cpu/optimizer_kernels.h"
#include "cpu/reduce_dense.h"
#include "rushlight/reduce.h"

namespace rl {
namespace {

constexpr int64_t kTile = 1024;          // elements converted at a time
constexpr int64_t kBlock = 16384;        // elements of one task
constexpr int64_t kSerialBelow = 65536;  // elements of all tensors for which threads do not pay

// Whether the elements of a tensor fill a block of memory without gaps or overlaps.
bool is_dense(const rl_tensor* t) {
  if (is_row_major(t)) return true;
  int order[RL_MAX_DIMS], count = 0;
  for (int d = 0; d < t->ndim; ++d) {
    if (t->shape[d] == 1) continue;
    int at = count++;
    for (; at > 0 && t->strides[order[at - 1]] > t->strides[d]; --at) order[at] = order[at - 1];
    order[at] = d;
  }
  int64_t expected = 1;
  for (int k = 0; k < count; ++k) {
    if (t->strides[order[k]] != expected) return false;
    expected *= t->shape[order[k]];
  }
  return true;
}

bool lies_alike(const rl_tensor* a, const rl_tensor* b) {
  if (is_row_major(a) && is_row_major(b)) return true;
  for (int d = 0; d < a->ndim; ++d) {
    if (a->shape[d] != 1 && a->strides[d] != b->strides[d]) return false;
  }
  return true;
}

void load_tile(float* to, const char* from, int dtype, int64_t first, int64_t n) {
  if (dtype == RL_FLOAT16)
    to_float(reinterpret_cast<const half*>(from) + first, to, n);
  else if (dtype == RL_BFLOAT16)
    to_float(reinterpret_cast<const bfloat16*>(from) + first, to, n);
  else
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(reinterpret_cast<const double*>(from)[first + i]);
}
void load_tile(double* to, const char* from, int dtype, int64_t first, int64_t n) {
  float narrow[kTile];
  const float* values = reinterpret_cast<const float*>(from) + first;
  if (dtype != RL_FLOAT32) {
    load_tile(narrow, from, dtype, first, n);
    values = narrow;
  }
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<double>(values[i]);
}
void store_tile(const float* from, char* to, int dtype, int64_t first, int64_t n) {
  if (dtype == RL_FLOAT16) {
    for (int64_t i = 0; i < n; ++i) reinterpret_cast<half*>(to)[first + i] = half(from[i]);
  } else if (dtype == RL_BFLOAT16) {
    for (int64_t i = 0; i < n; ++i) reinterpret_cast<bfloat16*>(to)[first + i] = bfloat16(from[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) reinterpret_cast<double*>(to)[first + i] = static_cast<double>(from[i]);
  }
}
void store_tile(const double* from, char* to, int dtype, int64_t first, int64_t n) {
  if (dtype == RL_FLOAT32) {
    for (int64_t i = 0; i < n; ++i) reinterpret_cast<float*>(to)[first + i] = static_cast<float>(from[i]);
    return;
  }
  float narrow[kTile];
  for (int64_t i = 0; i < n; ++i) narrow[i] = static_cast<float>(from[i]);
  store_tile(narrow, to, dtype, first, n);
}

// One parameter with its gradient and state, as arrays.
struct Update {
  char* data[kOptimizerArrays];
  uint8_t dtype[kOptimizerArrays];  // floating
  bool wide;                        // works in double
  int64_t count;
  double constants[kOptimizerConstants];
};

template <class T>
void run_range(const Update& u, int arrays, void (*const* rules)(T* const*, int64_t, const double*), int rule,
               int64_t begin, int64_t end) {
  constexpr int working = sizeof(T) == 8 ? RL_FLOAT64 : RL_FLOAT32;
  bool direct = true;
  for (int k = 0; k < arrays; ++k) direct &= u.dtype[k] == working;
  T* at[kOptimizerArrays];
  if (direct) {
    for (int k = 0; k < arrays; ++k) at[k] = reinterpret_cast<T*>(u.data[k]) + begin;
    rules[rule](at, end - begin, u.constants);
    return;
  }
  T tiles[kOptimizerArrays][kTile];
  for (int64_t first = begin; first < end; first += kTile) {
    const int64_t n = end - first < kTile ? end - first : kTile;
    for (int k = 0; k < arrays; ++k) {
      const bool same = u.dtype[k] == working;
      at[k] = same ? reinterpret_cast<T*>(u.data[k]) + first : tiles[k];
      if (!same) load_tile(tiles[k], u.data[k], u.dtype[k], first, n);
    }
    rules[rule](at, n, u.constants);
    for (int k = 0; k < arrays; ++k) {
      if (k != 1 && u.dtype[k] != working) store_tile(tiles[k], u.data[k], u.dtype[k], first, n);
    }
  }
}

void run_update(const Update& u, int arrays, int rule, int64_t begin, int64_t end) {
  if (u.wide)
    run_range<double>(u, arrays, optimizer_table().wide, rule, begin, end);
  else
    run_range<float>(u, arrays, optimizer_table().single, rule, begin, end);
}

// A step: adds parameters one by one, then runs them all.
class Step {
 public:
  Step(const char* name, OptimizerRule rule, int arrays, int64_t count)
      : name_(name), rule_(rule), arrays_(arrays), updates_(count) {}
  explicit operator bool() const { return static_cast<bool>(updates_); }

  // tensors: parameter, gradient, states. An operand that lies differently in memory goes through a copy at once.
  rl_status add(const rl_tensor* const* tensors, const double* constants) {
    const rl_tensor* const p = tensors[0];
    bool alike = is_dense(p);
    const bool complex = is_complex_dtype(p->dtype);
    for (int k = 0; k < arrays_; ++k) {
      const rl_tensor* const t = tensors[k];
      if (complex ? t->dtype != p->dtype : !is_float_dtype(t->dtype)) {
        return fail(RL_TYPE_ERROR, "%s: a tensor has the wrong dtype; expected %s, got %s", name_,
                    complex ? dtype_text(p->dtype) : "floating point", dtype_text(t->dtype));
      }
      RL_TRY(check_same_shape(name_, "a gradient or state", p, t));
      alike = alike && (k == 0 || lies_alike(p, t));
    }
    Update u;
    u.count = count_elements(p) * (complex ? 2 : 1);
    u.wide = p->dtype == RL_FLOAT64 || p->dtype == RL_COMPLEX128;
    std::memcpy(u.constants, constants, sizeof u.constants);
    for (int k = 0; k < arrays_; ++k) {
      u.data[k] = static_cast<char*>(tensors[k]->data);
      u.dtype[k] = complex ? static_cast<uint8_t>(real_dtype(p->dtype)) : tensors[k]->dtype;
    }
    if (alike) {
      updates_[size_++] = u;
      total_ += u.count;
      return RL_OK;
    }
    DenseOutput copies[kOptimizerArrays];
    for (int k = 0; k < arrays_; ++k) {
      RL_TRY(copies[k].open(tensors[k], tensors[k]->dtype, true));
      u.data[k] = copies[k].data<char>();
    }
    parallel_for(u.count, kBlock, [&](int64_t begin, int64_t end) { run_update(u, arrays_, rule_, begin, end); });
    for (int k = 0; k < arrays_; ++k) {
      if (k != 1) RL_TRY(copies[k].close());
    }
    return RL_OK;
  }

  rl_status run() {
    if (total_ < kSerialBelow) {
      for (int64_t i = 0; i < size_; ++i) run_update(updates_[i], arrays_, rule_, 0, updates_[i].count);
      return RL_OK;
    }
    // Blocks of all tensors, numbered through; starts[i] is the first of tensor i.
    Scratch<int64_t> starts(size_ + 1);
    if (!starts) return RL_MEMORY_ERROR;
    starts[0] = 0;
    for (int64_t i = 0; i < size_; ++i) starts[i + 1] = starts[i] + (updates_[i].count + kBlock - 1) / kBlock;
    parallel_for(starts[size_], 2, [&](int64_t begin, int64_t end) {
      int64_t low = 0, high = size_;
      while (high - low > 1) (starts[(low + high) / 2] <= begin ? low : high) = (low + high) / 2;
      for (int64_t block = begin; block < end; ++block) {
        while (block >= starts[low + 1]) ++low;
        const int64_t first = (block - starts[low]) * kBlock, last = first + kBlock;
        run_update(updates_[low], arrays_, rule_, first, last < updates_[low].count ? last : updates_[low].count);
      }
    });
    return RL_OK;
  }

 private:
  const char* name_;
  OptimizerRule rule_;
  int arrays_;
  int64_t size_ = 0, total_ = 0;
  Scratch<Update> updates_;
};

// One-element tensors that hold a number.
rl_status read_number(const char* name, const rl_tensor* t, double* value) {
  if (!is_float_dtype(t->dtype) || count_elements(t) != 1) {
    return fail(RL_VALUE_ERROR, "%s: a step count is no number; expected one floating point element, got %s %s", name,
                dtype_text(t->dtype), shape_text(t));
  }
  switch (t->dtype) {
    case RL_FLOAT32:
      *value = static_cast<double>(*static_cast<const float*>(t->data));
      break;
    case RL_FLOAT64:
      *value = *static_cast<const double*>(t->data);
      break;
    case RL_FLOAT16:
      *value = static_cast<double>(static_cast<float>(*static_cast<const half*>(t->data)));
      break;
    default:
      *value = static_cast<double>(static_cast<float>(*static_cast<const bfloat16*>(t->data)));
      break;
  }
  return RL_OK;
}

void write_number(const rl_tensor* t, double value) {
  switch (t->dtype) {
    case RL_FLOAT32:
      *static_cast<float*>(t->data) = static_cast<float>(value);
      break;
    case RL_FLOAT64:
      *static_cast<double*>(t->data) = value;
      break;
    case RL_FLOAT16:
      *static_cast<half*>(t->data) = half(static_cast<float>(value));
      break;
    default:
      *static_cast<bfloat16*>(t->data) = bfloat16(static_cast<float>(value));
      break;
  }
}

// Runs a rule for all parameters that have a gradient. states: arrays after the gradient. fill(i, step, constants) sets
// the constants of parameter i in its step number `step` (0 without `steps`). Counts are raised once nothing can fail
// any more.
template <class Fill>
rl_status run_step(const char* name, OptimizerRule rule, int64_t count, rl_tensors params, rl_tensors grads,
                   const rl_tensors* states, int state_count, rl_tensors steps, Fill fill) {
  Step all(name, rule, 2 + state_count, count);
  if (!all) return RL_MEMORY_ERROR;
  for (int64_t i = 0; i < count; ++i) {
    if (grads[i] == nullptr) continue;
    double step = 0, constants[kOptimizerConstants] = {};
    if (steps != nullptr) RL_TRY(read_number(name, steps[i], &step));
    RL_TRY(fill(i, step + 1, constants));
    const rl_tensor* tensors[kOptimizerArrays] = {params[i], grads[i]};
    for (int k = 0; k < state_count; ++k) tensors[2 + k] = states[k][i];
    RL_TRY(all.add(tensors, constants));
  }
  for (int64_t i = 0; steps != nullptr && i < count; ++i) {
    double step;
    if (grads[i] != nullptr && read_number(name, steps[i], &step) == RL_OK) write_number(steps[i], step + 1);
  }
  return all.run();
}

void set(double* constants, std::initializer_list<double> values) {
  for (double value : values) *constants++ = value;
}

double sign_of(int maximize) { return maximize ? -1 : 1; }

}  // namespace
}  // namespace rl

using rl::run_step;
using rl::set;
using rl::sign_of;

rl_status rl_sgd_step(int64_t count, rl_tensors params, rl_tensors grads, rl_tensors momentum_buffers, double lr,
                      double momentum, double dampening, double weight_decay, int nesterov, int maximize) {
  const bool with_momentum = momentum != 0;
  if (with_momentum && momentum_buffers == nullptr) {
    return rl::fail(RL_VALUE_ERROR, "sgd_step: momentum needs its buffers; expected an array, got NULL");
  }
  return run_step("sgd_step", with_momentum ? rl::kRuleMomentum : rl::kRuleSgd, count, params, grads, &momentum_buffers,
                  with_momentum ? 1 : 0, nullptr, [&](int64_t, double, double* c) {
                    set(c, {lr, weight_decay, sign_of(maximize), momentum, 1 - dampening, nesterov ? 1.0 : 0.0});
                    return RL_OK;
                  });
}

rl_status rl_adam_step(int64_t count, rl_tensors params, rl_tensors grads, rl_tensors exp_avgs, rl_tensors exp_avg_sqs,
                       rl_tensors max_exp_avg_sqs, rl_tensors steps, double lr, double beta1, double beta2, double eps,
                       double weight_decay, int maximize, int decoupled) {
  const bool amsgrad = max_exp_avg_sqs != nullptr;
  const rl_tensors states[3] = {exp_avgs, exp_avg_sqs, max_exp_avg_sqs};
  return run_step("adam_step", amsgrad ? rl::kRuleAmsgrad : rl::kRuleAdam, count, params, grads, states,
                  amsgrad ? 3 : 2, steps, [&](int64_t, double step, double* c) {
                    const double correction1 = 1 - std::pow(beta1, step), correction2 = 1 - std::pow(beta2, step);
                    set(c, {lr / correction1, decoupled ? 0 : weight_decay, sign_of(maximize), 1 - beta1, beta2,
                            1 - beta2, std::sqrt(correction2), eps, decoupled ? 1 - lr * weight_decay : 1});
                    return RL_OK;
                  });
}

rl_status rl_adagrad_step(int64_t count, rl_tensors params, rl_tensors grads, rl_tensors sums, rl_tensors steps,
                          double lr, double lr_decay, double weight_decay, double eps, int maximize) {
  return run_step("adagrad_step", rl::kRuleAdagrad, count, params, grads, &sums, 1, steps,
                  [&](int64_t, double step, double* c) {
                    set(c, {lr / (1 + (step - 1) * lr_decay), weight_decay, sign_of(maximize), eps});
                    return RL_OK;
                  });
}

rl_status rl_rmsprop_step(int64_t count, rl_tensors params, rl_tensors grads, rl_tensors square_avgs,
                          rl_tensors grad_avgs, rl_tensors momentum_buffers, rl_tensors steps, double lr, double alpha,
                          double eps, double weight_decay, double momentum, int maximize) {
  const bool centered = grad_avgs != nullptr, with_momentum = momentum > 0;
  if (with_momentum && momentum_buffers == nullptr) {
    return rl::fail(RL_VALUE_ERROR, "rmsprop_step: momentum needs its buffers; expected an array, got NULL");
  }
  const rl_tensors states[3] = {square_avgs, centered ? grad_avgs : momentum_buffers, momentum_buffers};
  const rl::OptimizerRule rule = centered ? (with_momentum ? rl::kRuleRmspropBoth : rl::kRuleRmspropCentered)
                                          : (with_momentum ? rl::kRuleRmspropMomentum : rl::kRuleRmsprop);
  return run_step("rmsprop_step", rule, count, params, grads, states, 1 + centered + with_momentum, steps,
                  [&](int64_t, double, double* c) {
                    set(c, {lr, weight_decay, sign_of(maximize), alpha, 1 - alpha, eps, momentum});
                    return RL_OK;
                  });
}

rl_status rl_adadelta_step(int64_t count, rl_tensors params, rl_tensors grads, rl_tensors square_avgs,
                           rl_tensors acc_deltas, rl_tensors steps, double lr, double rho, double eps,
                           double weight_decay, int maximize) {
  const rl_tensors states[2] = {square_avgs, acc_deltas};
  return run_step("adadelta_step", rl::kRuleAdadelta, count, params, grads, states, 2, steps,
                  [&](int64_t, double, double* c) {
                    set(c, {lr, weight_decay, sign_of(maximize), rho, 1 - rho, eps});
                    return RL_OK;
                  });
}

rl_status rl_adamax_step(int64_t count, rl_tensors params, rl_tensors grads, rl_tensors exp_avgs, rl_tensors exp_infs,
                         rl_tensors steps, double lr, double beta1, double beta2, double eps, double weight_decay,
                         int maximize) {
  const rl_tensors states[2] = {exp_avgs, exp_infs};
  return run_step("adamax_step", rl::kRuleAdamax, count, params, grads, states, 2, steps,
                  [&](int64_t, double step, double* c) {
                    set(c, {lr / (1 - std::pow(beta1, step)), weight_decay, sign_of(maximize), 1 - beta1, beta2, eps});
                    return RL_OK;
                  });
}

rl_status rl_nadam_step(int64_t count, rl_tensors params, rl_tensors grads, rl_tensors exp_avgs, rl_tensors exp_avg_sqs,
                        rl_tensors mu_products, rl_tensors steps, double lr, double beta1, double beta2, double eps,
                        double weight_decay, double momentum_decay, int maximize, int decoupled) {
  const rl_tensors states[2] = {exp_avgs, exp_avg_sqs};
  return run_step("nadam_step", rl::kRuleNadam, count, params, grads, states, 2, steps,
                  [&](int64_t i, double step, double* c) -> rl_status {
                    double product;
                    RL_TRY(rl::read_number("nadam_step", mu_products[i], &product));
                    const double mu = beta1 * (1 - 0.5 * std::pow(0.96, step * momentum_decay));
                    const double next = beta1 * (1 - 0.5 * std::pow(0.96, (step + 1) * momentum_decay));
                    // In the precision of the tensor that keeps it, as its own multiplication would.
                    rl::write_number(mu_products[i],
                                     mu_products[i]->dtype == RL_FLOAT32
                                         ? static_cast<double>(static_cast<float>(product) * static_cast<float>(mu))
                                         : product * mu);
                    RL_TRY(rl::read_number("nadam_step", mu_products[i], &product));
                    set(c, {lr * (1 - mu) / (1 - product), decoupled ? 0 : weight_decay, sign_of(maximize), 1 - beta1,
                            beta2, 1 - beta2, 1 - std::pow(beta2, step), eps, decoupled ? 1 - lr * weight_decay : 1,
                            lr * next / (1 - product * next)});
                    return RL_OK;
                  });
}

rl_status rl_radam_step(int64_t count, rl_tensors params, rl_tensors grads, rl_tensors exp_avgs, rl_tensors exp_avg_sqs,
                        rl_tensors steps, double lr, double beta1, double beta2, double eps, double weight_decay,
                        int maximize, int decoupled) {
  const rl_tensors states[2] = {exp_avgs, exp_avg_sqs};
  return run_step("radam_step", rl::kRuleRadam, count, params, grads, states, 2, steps,
                  [&](int64_t, double step, double* c) {
                    const double power = std::pow(beta2, step), correction2 = 1 - power;
                    const double rho_limit = 2 / (1 - beta2) - 1, rho = rho_limit - 2 * step * power / correction2;
                    double rate = lr, adaptive = 0;
                    if (rho > 5) {  // the variance of the adaptive step is tractable
                      rate *= std::sqrt((rho - 4) * (rho - 2) * rho_limit / ((rho_limit - 4) * (rho_limit - 2) * rho));
                      adaptive = std::sqrt(correction2);
                    }
                    set(c, {rate, decoupled ? 0 : weight_decay, sign_of(maximize), 1 - beta1, beta2, 1 - beta2,
                            adaptive, eps, decoupled ? 1 - lr * weight_decay : 1, 1 - std::pow(beta1, step)});
                    return RL_OK;
                  });
}

rl_status rl_total_norm(int64_t count, rl_tensors tensors, double p, double* norm) {
  rl::Scratch<double> norms(count > 0 ? count : 1);
  if (!norms) return RL_MEMORY_ERROR;
  int64_t used = 0, ones[RL_MAX_DIMS];
  for (int64_t& one : ones) one = 1;
  for (int64_t i = 0; i < count; ++i) {
    if (tensors[i] == nullptr) continue;
    if (p < 0 && rl::count_elements(tensors[i]) == 0) continue;
    const rl_tensor out = {&norms[used], ones, ones, tensors[i]->ndim, RL_FLOAT64, 0, {0, 0}};
    RL_TRY(rl_norm(tensors[i], p, &out));
    ++used;
  }
  if (p == 0) {  // the norm counts: counts add up
    *norm = 0;
    for (int64_t i = 0; i < used; ++i) *norm += norms[i];
    return RL_OK;
  }
  if (used == 0) {
    *norm = 0;
    return RL_OK;
  }
  const rl_tensor all = {norms.get(), &used, ones, 1, RL_FLOAT64, 0, {0, 0}};
  const rl_tensor out = {norm, ones, ones, 1, RL_FLOAT64, 0, {0, 0}};
  return rl_norm(&all, p, &out);
}

rl_status rl_scale_tensors(int64_t count, rl_tensors tensors, double factor) {
  rl::Step all("scale_tensors", rl::kRuleScale, 1, count);
  if (!all) return RL_MEMORY_ERROR;
  const double constants[rl::kOptimizerConstants] = {factor};
  for (int64_t i = 0; i < count; ++i) {
    if (tensors[i] != nullptr) RL_TRY(all.add(tensors + i, constants));
  }
  return all.run();
}

rl_status rl_zero_tensors(int64_t count, rl_tensors tensors) {
  static constexpr uint8_t zero = 0;
  const rl_tensor value = {const_cast<uint8_t*>(&zero), nullptr, nullptr, 0, RL_UINT8, 0, {0, 0}};
  for (int64_t i = 0; i < count; ++i) {
    if (tensors[i] == nullptr) continue;
    if (rl::is_dense(tensors[i])) {
      char* const data = static_cast<char*>(tensors[i]->data);
      rl::parallel_for(
          rl::count_elements(tensors[i]) * rl::dtype_size(tensors[i]->dtype), int64_t{1} << 20,
          [&](int64_t begin, int64_t end) { std::memset(data + begin, 0, static_cast<size_t>(end - begin)); });
    } else {
      rl_tensor to = *tensors[i];
      RL_TRY(rl_fill(&to, &value));
    }
  }
  return RL_OK;
}

rl_status rl_clip_grad_norm(int64_t count, rl_tensors grads, double max_norm, double p, double* norm) {
  double total;
  RL_TRY(rl_total_norm(count, grads, p, &total));
  if (norm != nullptr) *norm = total;
  const double factor = max_norm / (total + 1e-6);
  // A NaN norm makes every gradient NaN, as does PyTorch.
  return factor >= 1 ? RL_OK : rl_scale_tensors(count, grads, factor);
}
