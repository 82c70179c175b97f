// Distributions whose numbers take a varying count of draws, or a parameter per element: Poisson, binomial, gamma,
// classes by weight, and the random slopes of rrelu. The arithmetic follows PyTorch's step by step, types included,
// because a rejection decided otherwise would shift every later number.
#include <cmath>
#include <limits>

#include "cpu/random_fill.h"

namespace rl::rng {
namespace {

constexpr int64_t kNotInt64 = std::numeric_limits<int64_t>::min();

inline int64_t to_int64(double value) {
  return value >= -0x1p63 && value < 0x1p63 ? static_cast<int64_t>(value) : kNotInt64;
}

// std::lgamma writes the global `signgam`, which threads must not share.
inline double log_gamma(double x) {
#if defined(__GLIBC__) || defined(__APPLE__)
  int sign;
  return ::lgamma_r(x, &sign);
#else
  return std::lgamma(x);
#endif
}

// Rates above this have numbers that int64 does not hold.
constexpr double kLargestRate = 0x1p62;

// Transformed rejection (W. Hoermann, 1993) for rates from 10 on, products of uniform numbers below.
int64_t sample_poisson(rl_generator& g, double rate) {
  if (rate >= 10) {
    const double root = std::sqrt(rate);
    const double log_rate = std::log(rate);
    const double b = 0.931 + 2.53 * root;
    const double a = -0.059 + 0.02483 * b;
    const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    const double v_bound = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
      const double u = g.uniform() - 0.5;
      const double v = g.uniform();
      const double us = 0.5 - std::fabs(u);
      const int64_t k = to_int64(std::floor((2 * a / us + b) * u + rate + 0.43));
      if (us >= 0.07 && v <= v_bound) return k;
      if (k < 0 || (us < 0.013 && v > us)) continue;
      const double kd = static_cast<double>(k);
      if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <=
          -rate + kd * log_rate - log_gamma(kd + 1))
        return k;
    }
  }
  if (rate == 0) return 0;
  const double bound = std::exp(-rate);
  int64_t count = 0;
  double product = 1.0;
  for (;;) {
    product *= g.uniform();
    if (!(product > bound)) return count;
    ++count;
  }
}

// ---- binomial numbers

// What Stirling's formula leaves of log(k!).
double stirling_tail(double k) {
  static constexpr double kTail[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
                                     0.0166446911898211,  0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
                                     0.00925546218271273, 0.00833056343336287};
  if (k < 10) return kTail[static_cast<int>(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// Counts geometric waiting times: for small count * prob.
template <class T>
T binomial_by_waiting(rl_generator& g, T count, T prob) {
  const double log_miss = std::log1p(-prob);
  double waited = 0;
  T successes = 0;
  for (;;) {
    waited += std::ceil(std::log(g.uniform()) / log_miss);
    if (waited > count) return successes;
    successes += 1;
  }
}

// Transformed rejection with squeeze (W. Hoermann, "The generation of binomial random variates", 1993): prob <= 1/2 and
// count * prob >= 10.
template <class T>
T binomial_by_rejection(rl_generator& g, T count, T prob) {
  const double deviation = std::sqrt(count * prob * (1 - prob));
  const double b = 1.15 + 2.53 * deviation;
  const double a = -0.0873 + 0.0248 * b + 0.01 * prob;
  const double c = count * prob + 0.5;
  const double v_bound = 0.92 - 4.2 / b;
  const double odds = prob / (1 - prob);
  const double alpha = (2.83 + 5.1 / b) * deviation;
  const double mode = std::floor((count + 1) * prob);
  for (;;) {
    const double u = g.uniform() - 0.5;
    double v = g.uniform();
    const double us = 0.5 - std::fabs(u);
    const T k = static_cast<T>(std::floor((2 * a / us + b) * u + c));
    if (k < 0 || k > count) continue;
    if (us >= 0.07 && v <= v_bound) return k;
    v = std::log(v * alpha / (a / (us * us) + b));
    const double bound = (mode + 0.5) * std::log((mode + 1) / (odds * (count - mode + 1))) +
                         (count + 1) * std::log((count - mode + 1) / (count - k + 1)) +
                         (k + 0.5) * std::log(odds * (count - k + 1) / (k + 1)) + stirling_tail(mode) +
                         stirling_tail(count - mode) - stirling_tail(k) - stirling_tail(count - k);
    if (v <= bound) return k;
  }
}

template <class T>
T sample_binomial(rl_generator& g, T count, T prob) {
  // Without a finite count the searches would not end.
  if (!(count < std::numeric_limits<T>::infinity())) return count * prob;
  if (count <= 0 || prob <= 0) return 0;
  if (prob >= 1) return count;
  if (!(prob > 0)) return std::numeric_limits<T>::quiet_NaN();
  const auto few = [&](T p) {
    return count * p >= 10 ? binomial_by_rejection<T>(g, count, p) : binomial_by_waiting<T>(g, count, p);
  };
  if (prob <= 0.5) return few(prob);
  return count - few(static_cast<T>(1.0 - prob));
}

// ---- gamma numbers (G. Marsaglia and W. W. Tsang, 2000). The constants are floats even in float64.

double standard_normal(rl_generator& g) {
  if (g.has_double_normal) {
    g.has_double_normal = false;
    return g.double_normal;
  }
  double z = 0;
  draw_normals(g, &z, 1);
  return z;
}

template <class T>
T sample_gamma(rl_generator& g, T alpha) {
  double scale = 1;
  if (alpha < 1) {
    if (alpha == 0) return 0;
    scale *= std::pow(1 - g.uniform(), static_cast<double>(1.0f / alpha));
    alpha += 1;
  }
  const double d = alpha - 1.0f / 3.0f;
  const double c = 1.0f / std::sqrt(9.0f * d);
  for (;;) {
    double x, y;
    do {
      x = standard_normal(g);
      y = 1.0f + c * x;
    } while (y <= 0);
    const double cube = y * y * y;
    const double u = 1 - g.uniform();
    const double square = x * x;
    if (u < 1.0f - 0.0331f * square * square) return static_cast<T>(scale * d * cube);
    if (std::log(u) < 0.5f * square + d * (1.0f - cube + std::log(cube))) return static_cast<T>(scale * d * cube);
  }
}

// ---- classes by weight

template <class T>
rl_status multinomial(rl_generator& g, const rl_tensor& weights, const rl_tensor& out) {
  using Sum = compute_type<T>;
  const bool rows_given = weights.ndim == 2;
  const int64_t rows = rows_given ? weights.shape[0] : 1;
  const int64_t classes = weights.shape[weights.ndim - 1];
  const int64_t samples = out.shape[out.ndim - 1];
  const int64_t row_step = rows_given ? weights.strides[0] : 0;
  const int64_t class_step = weights.strides[weights.ndim - 1];
  Scratch<Sum> cumulative(classes);
  if (!cumulative.ok()) return RL_MEMORY_ERROR;
  for (int64_t row = 0; row < rows; ++row) {
    const T* const in = static_cast<const T*>(weights.data) + row * row_step;
    Sum sum = 0;
    for (int64_t i = 0; i < classes; ++i) {
      const Sum weight = static_cast<Sum>(in[i * class_step]);
      if (!(weight >= 0 && weight <= std::numeric_limits<Sum>::max()))
        return fail(RL_RUNTIME_ERROR,
                    "multinomial: weight %lld of row %lld is no weight; expected a finite number >= 0, got %g",
                    static_cast<long long>(i), static_cast<long long>(row), static_cast<double>(weight));
      sum += weight;
      cumulative[i] = sum;
    }
    if (!(sum > 0))
      return fail(RL_RUNTIME_ERROR, "multinomial: the weights of row %lld sum to %g; expected a sum above 0",
                  static_cast<long long>(row), static_cast<double>(sum));
    for (int64_t i = 0; i < classes; ++i) cumulative[i] /= sum;
    cumulative[classes - 1] = 1;  // rounding may have left it below
    int64_t* const to = static_cast<int64_t*>(out.data) + (rows_given ? row * out.strides[0] : 0);
    for (int64_t j = 0; j < samples; ++j) {
      const double u = g.uniform();
      const Sum* const found = std::lower_bound(cumulative.get(), cumulative.get() + classes, u,
                                                [](Sum share, double sought) { return share < sought; });
      to[j * out.strides[out.ndim - 1]] = found - cumulative.get();
    }
  }
  return RL_OK;
}

// ---- random slopes

template <class T>
void rrelu(rl_generator& g, double lower, double upper, const rl_tensor& input, const rl_tensor& noise,
           const rl_tensor& out) {
  using Compute = compute_type<T>;
  // The bounds are rounded to the type of the arithmetic, the numbers between them drawn as doubles.
  const double low = static_cast<Compute>(lower);
  const double range = static_cast<Compute>(upper) - low;
  Box<3> box;
  box.data[0] = static_cast<char*>(input.data);
  box.data[1] = static_cast<char*>(noise.data);
  box.data[2] = static_cast<char*>(out.data);
  constexpr int64_t kItem = sizeof(T);
  for (int d = 0; d < out.ndim; ++d)
    box.push(out.shape[d], {input.strides[d] * kItem, noise.strides[d] * kItem, out.strides[d] * kItem});
  box.finish();
  const int64_t (&steps)[3] = box.steps();
  walk(box, [&](char* const* at, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const T value = *reinterpret_cast<const T*>(at[0] + i * steps[0]);
      T factor(Compute(1));
      T result = value;
      if (static_cast<Compute>(value) <= 0) {
        const Compute slope = static_cast<Compute>(g.uniform() * range + low);
        factor = T(slope);
        result = T(static_cast<Compute>(value) * slope);
      }
      *reinterpret_cast<T*>(at[1] + i * steps[1]) = factor;
      *reinterpret_cast<T*>(at[2] + i * steps[2]) = result;
    }
  });
}

}  // namespace
}  // namespace rl::rng

extern "C" {

rl_status rl_random_poisson(rl_generator* generator, const rl_tensor* rate, const rl_tensor* out) {
  RL_GUARD_BEGIN
  RL_TRY(rl::rng::check_output("poisson", out));
  if (!rl::is_float_dtype(out->dtype))
    return rl::rng::dtype_failure("poisson", "float16, bfloat16, float32 or float64", out->dtype);
  RL_TRY(rl::rng::check_operand("poisson", "rate", rate, out));
  RL_TRY(rl::rng::check_dtype_is("poisson", "rate", rate, out->dtype));
  rl::Box<2> box;
  rl::rng::drawing_order<2>({out, rate}, box);
  const int64_t (&steps)[2] = box.steps();
  rl::rng::LockedGenerator g(generator);
  bool valid = true;
  double offender = 0;
  RL_DISPATCH_FLOAT(out->dtype, T, rl::walk(box, [&](char* const* at, int64_t n) {
                      for (int64_t i = 0; valid && i < n; ++i) {
                        const double value = static_cast<double>(
                            static_cast<rl::compute_type<T>>(*reinterpret_cast<const T*>(at[1] + i * steps[1])));
                        valid = value >= 0 && value <= rl::rng::kLargestRate;
                        if (!valid) {
                          offender = value;
                          return;
                        }
                        const int64_t count = rl::rng::sample_poisson(*g, value);
                        *reinterpret_cast<T*>(at[0] + i * steps[0]) = T(static_cast<rl::compute_type<T>>(count));
                      }
                    }));
  if (valid) return RL_OK;
  return rl::fail(RL_RUNTIME_ERROR, "poisson: a rate is out of range; expected 0 <= rate <= 2^62, got %g", offender);
  RL_GUARD_END
}

rl_status rl_random_binomial(rl_generator* generator, const rl_tensor* count, const rl_tensor* prob,
                             const rl_tensor* out) {
  RL_GUARD_BEGIN
  RL_TRY(rl::rng::check_output("binomial", out));
  if (out->dtype != RL_FLOAT32 && out->dtype != RL_FLOAT64)
    return rl::rng::dtype_failure("binomial", "float32 or float64", out->dtype);
  RL_TRY(rl::rng::check_operand("binomial", "count", count, out));
  RL_TRY(rl::rng::check_operand("binomial", "prob", prob, out));
  RL_TRY(rl::rng::check_dtype_is("binomial", "count", count, out->dtype));
  RL_TRY(rl::rng::check_dtype_is("binomial", "prob", prob, out->dtype));
  rl::Box<3> box;
  rl::rng::drawing_order<3>({out, count, prob}, box);
  const int64_t (&steps)[3] = box.steps();
  rl::rng::LockedGenerator g(generator);
  const auto run = [&]<class T>(T) {
    rl::walk(box, [&](char* const* at, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        *reinterpret_cast<T*>(at[0] + i * steps[0]) = rl::rng::sample_binomial<T>(
            *g, *reinterpret_cast<const T*>(at[1] + i * steps[1]), *reinterpret_cast<const T*>(at[2] + i * steps[2]));
      }
    });
  };
  if (out->dtype == RL_FLOAT32) {
    run(float{});
  } else {
    run(double{});
  }
  return RL_OK;
  RL_GUARD_END
}

rl_status rl_random_standard_gamma(rl_generator* generator, const rl_tensor* alpha, const rl_tensor* out) {
  RL_GUARD_BEGIN
  RL_TRY(rl::rng::check_output("_standard_gamma", out));
  if (out->dtype != RL_FLOAT32 && out->dtype != RL_FLOAT64)
    return rl::rng::dtype_failure("_standard_gamma", "float32 or float64", out->dtype);
  RL_TRY(rl::rng::check_operand("_standard_gamma", "alpha", alpha, out));
  RL_TRY(rl::rng::check_dtype_is("_standard_gamma", "alpha", alpha, out->dtype));
  rl::Box<2> box;
  rl::rng::drawing_order<2>({out, alpha}, box);
  const int64_t (&steps)[2] = box.steps();
  rl::rng::LockedGenerator g(generator);
  const auto run = [&]<class T>(T smallest) {
    rl::walk(box, [&](char* const* at, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        const T sample = rl::rng::sample_gamma<T>(*g, *reinterpret_cast<const T*>(at[1] + i * steps[1]));
        // A sample that underflowed to zero would have no logarithm; a NaN becomes the smallest number too.
        *reinterpret_cast<T*>(at[0] + i * steps[0]) = sample > smallest ? sample : smallest;
      }
    });
  };
  if (out->dtype == RL_FLOAT32) {
    run(std::numeric_limits<float>::min());
  } else {
    run(std::numeric_limits<double>::min());
  }
  return RL_OK;
  RL_GUARD_END
}

rl_status rl_random_multinomial(rl_generator* generator, const rl_tensor* weights, const rl_tensor* out) {
  RL_GUARD_BEGIN
  RL_TRY(rl::rng::check_output("multinomial", out));
  if (out->dtype != RL_INT64) return rl::rng::dtype_failure("multinomial", "an out of int64", out->dtype);
  if (!weights || !rl::is_float_dtype(weights->dtype))
    return rl::rng::dtype_failure("multinomial", "weights of float16, bfloat16, float32 or float64",
                                  weights ? weights->dtype : -1);
  if (weights->ndim < 1 || weights->ndim > 2 || out->ndim != weights->ndim ||
      (weights->ndim == 2 && out->shape[0] != weights->shape[0]))
    return rl::fail(
        RL_VALUE_ERROR,
        "multinomial: the shapes do not fit; expected weights [classes] with out [samples], or weights [rows, "
        "classes] with out [rows, samples], got %s with %s",
        rl::shape_text(weights), rl::shape_text(out));
  if (rl::element_count(*out) == 0) return RL_OK;
  if (weights->shape[weights->ndim - 1] == 0)
    return rl::fail(RL_RUNTIME_ERROR,
                    "multinomial: there is no class to sample; expected at least one, got weights of shape %s",
                    rl::shape_text(weights));
  rl::rng::LockedGenerator g(generator);
  RL_DISPATCH_FLOAT(weights->dtype, T, return rl::rng::multinomial<T>(*g, *weights, *out));
  return RL_OK;
  RL_GUARD_END
}

rl_status rl_random_rrelu(rl_generator* generator, double lower, double upper, const rl_tensor* input,
                          const rl_tensor* noise, const rl_tensor* out) {
  RL_GUARD_BEGIN
  RL_TRY(rl::rng::check_output("rrelu", out));
  if (!rl::is_float_dtype(out->dtype))
    return rl::rng::dtype_failure("rrelu", "float16, bfloat16, float32 or float64", out->dtype);
  RL_TRY(rl::rng::check_output("rrelu", noise));
  RL_TRY(rl::rng::check_operand("rrelu", "input", input, out));
  RL_TRY(rl::rng::check_dtype_is("rrelu", "input", input, out->dtype));
  RL_TRY(rl::rng::check_dtype_is("rrelu", "noise", noise, out->dtype));
  if (!rl::same_shape(*input, *out) || !rl::same_shape(*noise, *out))
    return rl::fail(RL_VALUE_ERROR, "rrelu: the shapes differ; expected one shape, got input %s, noise %s and out %s",
                    rl::shape_text(input), rl::shape_text(noise), rl::shape_text(out));
  if (!(lower <= upper && upper - lower <= std::numeric_limits<double>::max()))
    return rl::fail(RL_RUNTIME_ERROR,
                    "rrelu: no range of slopes; expected finite lower <= upper, got lower=%g and upper=%g", lower,
                    upper);
  rl::rng::LockedGenerator g(generator);
  RL_DISPATCH_FLOAT(out->dtype, T, rl::rng::rrelu<T>(*g, lower, upper, *input, *noise, *out));
  return RL_OK;
  RL_GUARD_END
}

}  // extern "C"
