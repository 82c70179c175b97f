// Random operations: arguments and shapes around the kernels of rushlight/random.h.
#include <cmath>

#include "op.h"
#include "ops.h"
#include "random_generator.h"

namespace rl {

namespace {

using ll = long long;

// generator, dtype, layout, device, pin_memory, requires_grad from argument `at` on.
TensorRef make(Call& call, int at, const Dims& shape, DType fallback) {
  DType dtype = call[at].is_none() ? (call.out && call.out[0] ? call.out[0]->dtype() : fallback) : call[at].dtype;
  Device device = call[at + 2].is_none() ? default_device : static_cast<Device>(call[at + 2].integer);
  count_elements(shape.n, shape.v);
  Tensor* t;
  if (call.out && call.out[0]) {
    t = call.result(0, dtype, shape);
  } else {
    TensorRef fresh = empty(dtype, shape, device);
    t = fresh.get();
    call.results[0] = Value::of(fresh.take());
  }
  if (call[at + 4].as_bool()) {
    RL_CHECK(is_differentiable(dtype), Runtime,
             "Only Tensors of floating point and complex dtype can require gradients, got %s", dtype_name(dtype));
    t->requires_grad = true;
  }
  return TensorRef::share(t);
}

TensorRef make_like(Call& call, int at) {
  Tensor* self = call.tensor(0);
  DType dtype = call[at].is_none() ? self->dtype() : call[at].dtype;
  Device device = call[at + 2].is_none() ? self->device() : static_cast<Device>(call[at + 2].integer);
  TensorRef t = empty_in_format(self, dtype, call.integer_or(at + 5, 1), device);
  if (call[at + 4].as_bool()) {
    RL_CHECK(is_differentiable(dtype), Runtime,
             "Only Tensors of floating point and complex dtype can require gradients, got %s", dtype_name(dtype));
    t->requires_grad = true;
  }
  call.set(0, t);
  return t;
}

void float_dtype(const char* op, DType dtype) {
  RL_CHECK(is_differentiable(dtype), NotImplemented, "\"%s\" not implemented for '%s'", op, dtype_title(dtype));
}

void check_range(int64_t low, int64_t high) {
  RL_CHECK(low < high, Runtime, "random_ expects 'from' to be less than 'to', but got from=%lld >= to=%lld",
           static_cast<ll>(low), static_cast<ll>(high));
}

}  // namespace

RL_OP(rand) {
  TensorRef t = make(call, 2, call[0].dims(), default_dtype);
  float_dtype("rand", t->dtype());
  RL_KERNEL(t, rl_random_uniform(generator_of(call[1]), 0, 1, &t->desc));
}
RL_OP(randn) {
  TensorRef t = make(call, 2, call[0].dims(), default_dtype);
  float_dtype("randn", t->dtype());
  RL_KERNEL(t, rl_random_normal(generator_of(call[1]), 0, 1, &t->desc));
}
RL_OP(rand_like) {
  TensorRef t = make_like(call, 1);
  float_dtype("rand_like", t->dtype());
  RL_KERNEL(t, rl_random_uniform(nullptr, 0, 1, &t->desc));
}
RL_OP(randn_like) {
  TensorRef t = make_like(call, 1);
  float_dtype("randn_like", t->dtype());
  RL_KERNEL(t, rl_random_normal(nullptr, 0, 1, &t->desc));
}
RL_OP(randint) {
  check_range(0, call.integer(0));
  TensorRef t = make(call, 3, call[1].dims(), RL_INT64);
  RL_KERNEL(t, rl_random_integers_between(generator_of(call[2]), 0, call.integer(0), &t->desc));
}
RL_OP(randint_low) {
  check_range(call.integer(0), call.integer(1));
  TensorRef t = make(call, 4, call[2].dims(), RL_INT64);
  RL_KERNEL(t, rl_random_integers_between(generator_of(call[3]), call.integer(0), call.integer(1), &t->desc));
}
RL_OP(randint_like) {
  check_range(0, call.integer(1));
  TensorRef t = make_like(call, 2);
  RL_KERNEL(t, rl_random_integers_between(nullptr, 0, call.integer(1), &t->desc));
}
RL_OP(randint_like_low) {
  check_range(call.integer(1), call.integer(2));
  TensorRef t = make_like(call, 3);
  RL_KERNEL(t, rl_random_integers_between(nullptr, call.integer(1), call.integer(2), &t->desc));
}
RL_OP(randperm) {
  int64_t n = call.integer(0);
  RL_CHECK(n >= 0, Runtime, "randperm: n must be non-negative, got %lld", static_cast<ll>(n));
  TensorRef t = make(call, 2, Dims{n}, RL_INT64);
  RL_KERNEL(t, rl_random_permutation(generator_of(call[1]), &t->desc));
}

// ---------------------------------------------------------------- filling

RL_OP(uniform_) {
  double from = call.real(1), to = call.real(2);
  RL_CHECK(from <= to, Runtime, "uniform_ expects to return a [from, to) range, but found from=%g > to=%g", from, to);
  RL_KERNEL(call.tensor(0), rl_random_uniform(generator_of(call[3]), from, to, &call.tensor(0)->desc));
}
RL_OP(normal_) {
  RL_CHECK(call.real(2) >= 0, Runtime, "normal expects std >= 0.0, but found std %g", call.real(2));
  RL_KERNEL(call.tensor(0), rl_random_normal(generator_of(call[3]), call.real(1), call.real(2), &call.tensor(0)->desc));
}
RL_OP(log_normal_) {
  RL_CHECK(call.real(2) > 0, Runtime, "log_normal_ expects std > 0.0, but found std=%g", call.real(2));
  RL_KERNEL(call.tensor(0),
            rl_random_log_normal(generator_of(call[3]), call.real(1), call.real(2), &call.tensor(0)->desc));
}
RL_OP(exponential_) {
  RL_CHECK(call.real(1) > 0, Runtime, "exponential_ expects lambda > 0.0, but found lambda=%g", call.real(1));
  RL_KERNEL(call.tensor(0), rl_random_exponential(generator_of(call[2]), call.real(1), &call.tensor(0)->desc));
}
RL_OP(cauchy_) {
  RL_CHECK(call.real(2) > 0, Runtime, "cauchy_ expects sigma > 0.0, but found sigma=%g", call.real(2));
  RL_KERNEL(call.tensor(0), rl_random_cauchy(generator_of(call[3]), call.real(1), call.real(2), &call.tensor(0)->desc));
}
RL_OP(geometric_) {
  RL_CHECK(call.real(1) > 0 && call.real(1) < 1, Runtime, "geometric_ expects p to be in (0, 1), but got p=%g",
           call.real(1));
  RL_KERNEL(call.tensor(0), rl_random_geometric(generator_of(call[2]), call.real(1), &call.tensor(0)->desc));
}
RL_OP(random_) { RL_KERNEL(call.tensor(0), rl_random_integers(generator_of(call[1]), &call.tensor(0)->desc)); }
RL_OP(random__to) {
  check_range(0, call.integer(1));
  RL_KERNEL(call.tensor(0),
            rl_random_integers_between(generator_of(call[2]), 0, call.integer(1), &call.tensor(0)->desc));
}
RL_OP(random__from) {
  if (call[2].is_none()) {
    RL_KERNEL(call.tensor(0), rl_random_integers_from(generator_of(call[3]), call.integer(1), &call.tensor(0)->desc));
    return;
  }
  check_range(call.integer(1), call.integer(2));
  RL_KERNEL(call.tensor(0),
            rl_random_integers_between(generator_of(call[3]), call.integer(1), call.integer(2), &call.tensor(0)->desc));
}
RL_OP(bernoulli__float) {
  double p = call.real(1);
  RL_CHECK(p >= 0 && p <= 1, Runtime, "bernoulli_ expects p to be in [0, 1], but got p=%g", p);
  RL_KERNEL(call.tensor(0), rl_random_bernoulli(generator_of(call[2]), p, &call.tensor(0)->desc));
}
RL_OP(bernoulli__Tensor) {
  RL_KERNEL(call.tensor(0),
            rl_random_bernoulli_tensor(generator_of(call[2]), &call.tensor(1)->desc, &call.tensor(0)->desc));
}
RL_OP(bernoulli) {
  Tensor* p = call.tensor(0);
  float_dtype("bernoulli_tensor_cpu_p_", p->dtype());
  Tensor* out = call.result(0, p->dtype(), Dims(p->ndim(), p->shape()));
  RL_KERNEL(out, rl_random_bernoulli_tensor(generator_of(call[1]), &p->desc, &out->desc));
}
RL_OP(bernoulli_p) {
  Tensor* self = call.tensor(0);
  double p = call.real(1);
  RL_CHECK(p >= 0 && p <= 1, Runtime, "bernoulli expects p to be in [0, 1], but got p=%g", p);
  Tensor* out = call.result(0, self->dtype(), Dims(self->ndim(), self->shape()));
  RL_KERNEL(out, rl_random_bernoulli(generator_of(call[2]), p, &out->desc));
}
RL_OP(poisson) {
  Tensor* rate = call.tensor(0);
  float_dtype("poisson_cpu", rate->dtype());
  Tensor* out = call.result(0, rate->dtype(), Dims(rate->ndim(), rate->shape()));
  RL_KERNEL(out, rl_random_poisson(generator_of(call[1]), &rate->desc, &out->desc));
}
RL_OP(binomial) {
  Tensor *count = call.tensor(0), *prob = call.tensor(1);
  const Tensor* both[2] = {count, prob};
  Dims shape = broadcast_shapes(both, 2, "binomial");
  RL_CHECK(count->dtype() == prob->dtype(), Value, "Binomial expects tensors of one dtype, got %s and %s",
           dtype_name(count->dtype()), dtype_name(prob->dtype()));
  Tensor* out = call.result(0, count->dtype(), shape);
  RL_KERNEL(out, rl_random_binomial(generator_of(call[2]), &count->desc, &prob->desc, &out->desc));
}
RL_OP(_standard_gamma) {
  Tensor* alpha = call.tensor(0);
  Tensor* out = call.result(0, alpha->dtype(), Dims(alpha->ndim(), alpha->shape()));
  RL_KERNEL(out, rl_random_standard_gamma(generator_of(call[1]), &alpha->desc, &out->desc));
}
RL_OP(_dropout_mask) {
  Tensor* self = call.tensor(0);
  TensorRef t = empty_preserve(self, self->dtype());
  RL_KERNEL(t, rl_random_dropout_mask(nullptr, call.real(1), &t->desc));
  call.set(0, std::move(t));
}

// normal(mean, std): standard normal numbers, scaled and moved by the given tensors or numbers.
RL_OP(normal) {
  Tensor *mean = call.tensor_or_null(0), *std = call.tensor_or_null(1);
  RL_CHECK(!std || !is_complex(std->dtype()), Runtime, "normal expects standard deviation to be non-complex");
  if (std && !std->is_meta()) {
    TensorRef low = std->numel ? rl::call(ops::min, {Value::of(std)}) : TensorRef();
    if (low) {
      TensorRef wide = cast(low.get(), RL_FLOAT64);
      RL_CHECK(*wide->as<double>() >= 0, Runtime, "normal expects all elements of std >= 0.0");
    }
  } else if (!std) {
    RL_CHECK(call.real(1) >= 0, Runtime, "normal expects std >= 0.0, but found std %g", call.real(1));
  }
  const Tensor* both[2];
  int n = 0;
  if (mean) both[n++] = mean;
  if (std) both[n++] = std;
  Dims shape = broadcast_shapes(both, n, "normal");
  DType dtype = n == 2 ? promote(mean->dtype(), std->dtype()) : both[0]->dtype();
  Tensor* out = call.result(0, dtype, shape);
  if (out->is_meta()) return;
  check(rl_random_normal(generator_of(call[2]), 0, std ? 1 : call.real(1), &out->desc));
  GradGuard off(false);
  if (std) call_inplace(ops::mul, {Value::of(out), Value::of(std)});
  if (mean)
    call_inplace(ops::add, {Value::of(out), Value::of(mean), Value::of(1)});
  else if (call.real(0) != 0)
    call_inplace(ops::add, {Value::of(out), Value::of(call.real(0)), Value::of(1)});
}
RL_OP(normal_size) {
  RL_CHECK(call.real(1) >= 0, Runtime, "normal expects std >= 0.0, but found std %g", call.real(1));
  TensorRef t = make(call, 4, call[2].dims(), default_dtype);
  RL_KERNEL(t, rl_random_normal(generator_of(call[3]), call.real(0), call.real(1), &t->desc));
}

RL_OP(multinomial) {
  Tensor* w = call.tensor(0);
  RL_CHECK(!call.out || !call.out[0] || call.out[0]->dtype() == RL_INT64, Runtime,
           "multinomial: dtype of out; expected int64, got %s", dtype_name(call.out[0]->dtype()));
  int64_t n = call.integer(1);
  bool replacement = call.flag(2);
  RL_CHECK(w->ndim() == 1 || w->ndim() == 2, Runtime, "prob_dist must be 1 or 2 dim, got %d", w->ndim());
  RL_CHECK(is_float(w->dtype()), Runtime, "multinomial only supports floating-point dtypes for input, got: %s",
           dtype_name(w->dtype()));
  RL_CHECK(n > 0, Runtime, "cannot sample n_sample <= 0 samples, got %lld", static_cast<ll>(n));
  int64_t classes = w->size(w->ndim() - 1);
  RL_CHECK(replacement || n <= classes, Runtime,
           "cannot sample n_sample > prob_dist.size(-1) samples without replacement (%lld > %lld)", static_cast<ll>(n),
           static_cast<ll>(classes));
  RL_CHECK(classes <= (int64_t{1} << 24), Runtime, "number of categories cannot exceed 2^24");
  Dims shape(w->ndim() - 1, w->shape());
  shape.push(n);
  Tensor* out = call.result(0, RL_INT64, shape);
  if (out->is_meta() || out->numel == 0) return;
  GradGuard off(false);
  if (replacement && n != 1) {
    check(rl_random_multinomial(generator_of(call[3]), &w->desc, &out->desc));
    return;
  }
  // Without replacement: the largest of weight / exponential number.
  TensorRef bad = rl::call(ops::all, {Value::of(rl::call(ops::isfinite, {Value::of(w)}))});
  TensorRef low = rl::call(ops::min, {Value::of(w)}), low64 = cast(low.get(), RL_FLOAT64);
  RL_CHECK(*bad->as<uint8_t>() && *low64->as<double>() >= 0, Runtime,
           "probability tensor contains either `inf`, `nan` or element < 0");
  TensorRef total = rl::call(ops::sum_dim, {Value::of(w), Value::of(Dims{-1})});
  TensorRef positive = rl::call(ops::count_nonzero, {Value::of(w), Value::of(Dims{-1})});
  TensorRef least = rl::call(ops::min, {Value::of(positive)});
  RL_CHECK(*least->as<int64_t>() > 0, Runtime, "invalid multinomial distribution (sum of probabilities <= 0)");
  RL_CHECK(*least->as<int64_t>() >= n, Runtime,
           "multinomial: cannot draw %lld samples without replacement from %lld classes of non-zero weight",
           static_cast<ll>(n), static_cast<ll>(*least->as<int64_t>()));
  TensorRef q = empty_preserve(w, w->dtype());
  check(rl_random_exponential(generator_of(call[3]), 1, &q->desc));
  TensorRef ratio = rl::call(ops::div, {Value::of(w), Value::of(q)});
  TensorRef chosen;
  if (n == 1)
    chosen = rl::call(ops::argmax, {Value::of(ratio), Value::of(-1), Value::of(true)});
  else
    chosen = std::move(call_many(ops::topk, {Value::of(ratio), Value::of(n)})[1]);
  copy_into(out, chosen.get());
}

}  // namespace rl
