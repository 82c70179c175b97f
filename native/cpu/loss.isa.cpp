// Inner loops of the losses. See loss_kernels.h for the contract.
#include "cpu/reduce_math.h"

#include "cpu/loss_kernels.h"
#include "cpu/vec_math.h"
#include "cpu/vec_math_double.h"

namespace rl {
namespace {

constexpr int64_t kBlock = 512;

RL_INLINE float log_of(float x) { return m::log(x); }
RL_INLINE double log_of(double x) { return m::log(x); }
RL_INLINE float log1p_of(float x) { return m::log1p(x); }
RL_INLINE double log1p_of(double x) { return m::log1p(x); }

// sigmoid without overflow
template <class T>
RL_INLINE T sigmoid(T x) {
  return T(1) / (T(1) + fast_exp(-x));
}

template <class T>
RL_INLINE T sign(T d) {
  return d > 0 ? T(1) : d < 0 ? T(-1) : d;  // NaN and zeros stay
}
template <class T>
RL_INLINE T absolute(T d) {
  return d < 0 ? -d : d;
}

// A kind gives a term and its derivative with respect to the input. Exact ones are cheap enough to add up in double
// from float32 elements, so that nothing overflows on the way to a mean.
struct Squared {
  static constexpr bool kExact = true;
  template <class T>
  static RL_INLINE T term(T x, T t, T, T) {
    return (x - t) * (x - t);
  }
  template <class T>
  static RL_INLINE T derivative(T x, T t, T, T) {
    return 2 * (x - t);
  }
};
struct Absolute {
  static constexpr bool kExact = true;
  template <class T>
  static RL_INLINE T term(T x, T t, T, T) {
    return absolute(x - t);
  }
  template <class T>
  static RL_INLINE T derivative(T x, T t, T, T) {
    return sign(x - t);
  }
};
struct SmoothL1 {
  static constexpr bool kExact = true;
  template <class T>
  static RL_INLINE T term(T x, T t, T, T p) {
    const T d = absolute(x - t);
    return d < p ? T(0.5) * d * d / p : d - T(0.5) * p;
  }
  template <class T>
  static RL_INLINE T derivative(T x, T t, T, T p) {
    const T d = x - t;
    return absolute(d) < p ? d / p : sign(d);
  }
};
struct Huber {
  static constexpr bool kExact = true;
  template <class T>
  static RL_INLINE T term(T x, T t, T, T p) {
    const T d = absolute(x - t);
    return d <= p ? T(0.5) * d * d : p * (d - T(0.5) * p);
  }
  template <class T>
  static RL_INLINE T derivative(T x, T t, T, T p) {
    const T d = x - t;
    return absolute(d) <= p ? d : p * sign(d);
  }
};
struct CrossEntropy {
  static constexpr bool kExact = false;
  template <class T>
  static RL_INLINE T limited(T x) {
    return x < T(-100) ? T(-100) : x;
  }
  template <class T>
  static RL_INLINE T term(T x, T t, T, T) {
    return (t - 1) * limited(log1p_of(-x)) - t * limited(log_of(x));
  }
  template <class T>
  static RL_INLINE T derivative(T x, T t, T, T) {
    const T spread = (1 - x) * x;
    return (x - t) / (spread < T(1e-12) ? T(1e-12) : spread);
  }
};
struct LogitCrossEntropy {
  static constexpr bool kExact = false;
  template <class T>
  static RL_INLINE T term(T x, T t, T pos, T) {
    const T softplus = log1p_of(fast_exp(-absolute(x))) + (x < 0 ? -x : T(0));  // log(1 + exp(-x))
    return (1 - t) * x + ((pos - 1) * t + 1) * softplus;
  }
  template <class T>
  static RL_INLINE T derivative(T x, T t, T pos, T) {
    const T positive = pos * t;
    return (positive + 1 - t) * sigmoid(x) - positive;
  }
};
struct Divergence {
  static constexpr bool kExact = false;
  template <class T>
  static RL_INLINE T term(T x, T t, T, T) {
    return t == 0 ? T(0) * x : t * (log_of(t) - x);
  }
  template <class T>
  static RL_INLINE T derivative(T, T t, T, T) {
    return -t;
  }
};
struct LogDivergence {
  static constexpr bool kExact = false;
  template <class T>
  static RL_INLINE T term(T x, T t, T, T) {
    return fast_exp(t) * (t - x);
  }
  template <class T>
  static RL_INLINE T derivative(T, T t, T, T) {
    return -fast_exp(t);
  }
};
struct SoftMargin {
  static constexpr bool kExact = false;
  template <class T>
  static RL_INLINE T term(T x, T t, T, T) {
    const T z = t * x;
    return log1p_of(fast_exp(-absolute(z))) + (z < 0 ? -z : T(0));
  }
  template <class T>
  static RL_INLINE T derivative(T x, T t, T, T) {
    return -t * sigmoid(-t * x);
  }
};

// y = f(term), element by element, in A; kKind::term or ::derivative by `kDerivative`.
template <class T, class A, class Kind, bool kDerivative, class Out, class F>
RL_INLINE void each(const LossOperands& operands, int64_t start, int64_t n, A p, Out* __restrict out, F f) {
  const T* __restrict x = static_cast<const T*>(operands.in) + start;
  const T* __restrict t = static_cast<const T*>(operands.target) + start;
  const T* __restrict w = operands.weight ? static_cast<const T*>(operands.weight) + start : nullptr;
  const T* __restrict pos = operands.pos_weight ? static_cast<const T*>(operands.pos_weight) + start : nullptr;
  const auto value = [&](int64_t i, A positive) {
    const A a = static_cast<A>(x[i]), b = static_cast<A>(t[i]);
    if constexpr (kDerivative)
      return Kind::derivative(a, b, positive, p);
    else
      return Kind::term(a, b, positive, p);
  };
  if (w == nullptr && pos == nullptr) {
    for (int64_t i = 0; i < n; ++i) out[i] = f(i, value(i, A(1)));
  } else if (pos == nullptr) {
    for (int64_t i = 0; i < n; ++i) out[i] = f(i, value(i, A(1)) * static_cast<A>(w[i]));
  } else if (w == nullptr) {
    for (int64_t i = 0; i < n; ++i) out[i] = f(i, value(i, static_cast<A>(pos[i])));
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = f(i, value(i, static_cast<A>(pos[i])) * static_cast<A>(w[i]));
  }
}

template <class T, class Kind>
double sum(const LossOperands& operands, int64_t n, double p) {
  using A = std::conditional_t<Kind::kExact, double, T>;
  double total = 0;
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t size = n - i < kBlock ? n - i : kBlock;
    A terms[kBlock];
    each<T, A, Kind, false>(operands, i, size, static_cast<A>(p), terms, [](int64_t, A v) { return v; });
    Vector<double> lanes[kAccumulators] = {};
    accumulate_wide(lanes, terms, size, 0.0, [](Vector<double> a, Vector<double> v) { return a + v; });
    total += fold<double>(lanes, [](Vector<double> a, Vector<double> b) { return a + b; });
  }
  return total;
}

template <class T, class Kind>
void map(const LossOperands& operands, void* out, int64_t n, double p) {
  each<T, T, Kind, false>(operands, 0, n, static_cast<T>(p), static_cast<T*>(out), [](int64_t, T v) { return v; });
}

template <class T, class Kind>
void gradient(const LossOperands& operands, const void* grad, void* out, int64_t n, double p, double scale) {
  const T s = static_cast<T>(scale);
  const T* __restrict g = static_cast<const T*>(grad);
  if (g == nullptr) {
    each<T, T, Kind, true>(operands, 0, n, static_cast<T>(p), static_cast<T*>(out),
                           [=](int64_t, T v) { return v * s; });
  } else {
    each<T, T, Kind, true>(operands, 0, n, static_cast<T>(p), static_cast<T*>(out),
                           [=](int64_t i, T v) { return v * s * g[i]; });
  }
}

template <class T>
void probabilities(const void* x_data, void* out_data, int64_t n, double log_sum, double scale) {
  const T* x = static_cast<const T*>(x_data);
  T* out = static_cast<T*>(out_data);
  const T offset = static_cast<T>(log_sum), s = static_cast<T>(scale);
  for_vectors<T>(n, [&](int64_t i, int lanes) {
    store_lanes(out + i, lanes, vector_exp(load_lanes(x + i, lanes, T(0)) - offset) * s);
  });
}

template <class T>
void probability_columns(const void* x_data, void* out_data, int64_t rows, int64_t columns, int64_t stride,
                         const double* log_sum, const double* scale) {
  for (int64_t start = 0; start < columns; start += kBlock) {
    const int64_t count = columns - start < kBlock ? columns - start : kBlock;
    T offset[kBlock], s[kBlock];
    for (int64_t j = 0; j < count; ++j) {
      offset[j] = static_cast<T>(log_sum[start + j]);
      s[j] = static_cast<T>(scale[start + j]);
    }
    for (int64_t r = 0; r < rows; ++r) {
      const T* x = static_cast<const T*>(x_data) + r * stride + start;
      T* out = static_cast<T*>(out_data) + r * stride + start;
      for_vectors<T>(count, [&](int64_t j, int lanes) {
        store_lanes(out + j, lanes,
                    vector_exp(load_lanes(x + j, lanes, T(0)) - load_lanes(offset + j, lanes, T(0))) *
                        load_lanes(s + j, lanes, T(0)));
      });
    }
  }
}

template <class T, class Kind>
constexpr LossTerms kTerms = {sum<T, Kind>, map<T, Kind>, gradient<T, Kind>};

// In the order of rl_loss_kind.
template <class T>
constexpr LossLoops kLoops = {
    {kTerms<T, Squared>, kTerms<T, Absolute>, kTerms<T, SmoothL1>, kTerms<T, Huber>, kTerms<T, CrossEntropy>,
     kTerms<T, LogitCrossEntropy>, kTerms<T, Divergence>, kTerms<T, LogDivergence>, kTerms<T, SoftMargin>},
    probabilities<T>,
    probability_columns<T>};

constexpr LossTable table = {kLoops<float>, kLoops<double>};

}  // namespace

const LossTable& RL_ISA_SYMBOL(loss_table)() { return table; }

}  // namespace rl
