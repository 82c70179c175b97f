// Inner loops of the optimizers. See optimizer_kernels.h for the contract.
#include "cpu/reduce_math.h"

#include "cpu/optimizer_kernels.h"

namespace rl {
namespace {

template <class T>
RL_INLINE T root(T x) {
  if constexpr (sizeof(T) == 4)
    return __builtin_sqrtf(x);
  else
    return __builtin_sqrt(x);
}

// Products that are added at once use multiply_add where PyTorch's kernels do, so that the numbers are the same to the
// bit.

// a + weight * (b - a), from the nearer end.
template <class T>
RL_INLINE T lerp(T a, T b, T weight, bool near) {
  const T d = b - a;
  return near ? multiply_add(weight, d, a) : multiply_add(weight - T(1), d, b);
}

template <class T>
RL_INLINE T larger(T a, T b) {  // NaN wins
  return (b > a) | (b != b) ? b : a;
}

template <class T>
RL_INLINE T magnitude(T x) {
  return x < 0 ? -x : x;
}

// The gradient with its sign and, where asked, the weight decay added.
template <class T, bool kDecay>
RL_INLINE T gradient(T g, T p, T decay, T sign) {
  return kDecay ? multiply_add(decay, p, sign * g) : sign * g;
}

// body(decay) with a compile-time flag that tells whether the weight decays through the gradient.
template <class Body>
RL_INLINE void with_decay(bool decays, Body body) {
  if (decays)
    body(std::true_type{});
  else
    body(std::false_type{});
}

#define RL_ARRAYS                       \
  T* __restrict p = arrays[0];          \
  const T* __restrict grad = arrays[1]; \
  const T rate = static_cast<T>(c[0]), decay = static_cast<T>(c[1]), sign = static_cast<T>(c[2])

template <class T>
void sgd(T* const* arrays, int64_t n, const double* c) {
  RL_ARRAYS;
  with_decay(decay != 0, [&](auto decays) {
    for (int64_t i = 0; i < n; ++i)
      p[i] = multiply_add(-rate, gradient<T, decltype(decays)::value>(grad[i], p[i], decay, sign), p[i]);
  });
}

template <class T>
void momentum(T* const* arrays, int64_t n, const double* c) {
  RL_ARRAYS;
  T* __restrict buffer = arrays[2];
  const T factor = static_cast<T>(c[3]), rest = static_cast<T>(c[4]);
  with_decay(decay != 0, [&](auto decays) {
    if (c[5] != 0) {
      for (int64_t i = 0; i < n; ++i) {
        const T g = gradient<T, decltype(decays)::value>(grad[i], p[i], decay, sign);
        const T b = multiply_add(rest, g, buffer[i] * factor);
        buffer[i] = b;
        p[i] = multiply_add(-rate, multiply_add(factor, b, g), p[i]);
      }
    } else {
      for (int64_t i = 0; i < n; ++i) {
        const T b =
            multiply_add(rest, gradient<T, decltype(decays)::value>(grad[i], p[i], decay, sign), buffer[i] * factor);
        buffer[i] = b;
        p[i] = multiply_add(-rate, b, p[i]);
      }
    }
  });
}

template <class T, bool kAmsgrad>
void adam(T* const* arrays, int64_t n, const double* c) {
  RL_ARRAYS;
  T* __restrict mean = arrays[2];
  T* __restrict square = arrays[3];
  T* __restrict largest = kAmsgrad ? arrays[4] : nullptr;
  const T weight = static_cast<T>(c[3]), beta2 = static_cast<T>(c[4]), rest2 = static_cast<T>(c[5]);
  const T correction = static_cast<T>(c[6]), eps = static_cast<T>(c[7]), shrink = static_cast<T>(c[8]);
  const bool near = c[3] < 0.5;
  const auto run = [&](auto decays, auto is_near) {
    for (int64_t i = 0; i < n; ++i) {
      const T old = p[i] * shrink;
      const T g = gradient<T, decltype(decays)::value>(grad[i], old, decay, sign);
      const T m = lerp(mean[i], g, weight, decltype(is_near)::value);
      T v = multiply_add(rest2 * g, g, square[i] * beta2);
      mean[i] = m;
      square[i] = v;
      if constexpr (kAmsgrad) {
        v = larger(largest[i], v);
        largest[i] = v;
      }
      p[i] = old - rate * m / (root(v) / correction + eps);
    }
  };
  with_decay(decay != 0, [&](auto decays) {
    if (near)
      run(decays, std::true_type{});
    else
      run(decays, std::false_type{});
  });
}

template <class T>
void adagrad(T* const* arrays, int64_t n, const double* c) {
  RL_ARRAYS;
  T* __restrict sum = arrays[2];
  const T eps = static_cast<T>(c[3]);
  with_decay(decay != 0, [&](auto decays) {
    for (int64_t i = 0; i < n; ++i) {
      const T g = gradient<T, decltype(decays)::value>(grad[i], p[i], decay, sign);
      const T s = multiply_add(g, g, sum[i]);
      sum[i] = s;
      p[i] = p[i] - rate * g / (root(s) + eps);
    }
  });
}

template <class T, bool kCentered, bool kMomentum>
void rmsprop(T* const* arrays, int64_t n, const double* c) {
  RL_ARRAYS;
  T* __restrict square = arrays[2];
  T* __restrict average = kCentered ? arrays[3] : nullptr;
  T* __restrict buffer = kMomentum ? arrays[kCentered ? 4 : 3] : nullptr;
  const T alpha = static_cast<T>(c[3]), rest = static_cast<T>(c[4]), eps = static_cast<T>(c[5]),
          factor = static_cast<T>(c[6]);
  const bool near = c[4] < 0.5;
  with_decay(decay != 0, [&](auto decays) {
    for (int64_t i = 0; i < n; ++i) {
      const T g = gradient<T, decltype(decays)::value>(grad[i], p[i], decay, sign);
      T v = multiply_add(rest * g, g, square[i] * alpha);
      square[i] = v;
      if constexpr (kCentered) {
        const T a = lerp(average[i], g, rest, near);
        average[i] = a;
        v = multiply_add(-a, a, v);
      }
      const T spread = root(v) + eps;
      if constexpr (kMomentum) {
        const T b = buffer[i] * factor + g / spread;
        buffer[i] = b;
        p[i] = multiply_add(-rate, b, p[i]);
      } else {
        p[i] = p[i] - rate * g / spread;
      }
    }
  });
}

template <class T>
void adadelta(T* const* arrays, int64_t n, const double* c) {
  RL_ARRAYS;
  T* __restrict square = arrays[2];
  T* __restrict accumulated = arrays[3];
  const T rho = static_cast<T>(c[3]), rest = static_cast<T>(c[4]), eps = static_cast<T>(c[5]);
  with_decay(decay != 0, [&](auto decays) {
    for (int64_t i = 0; i < n; ++i) {
      const T g = gradient<T, decltype(decays)::value>(grad[i], p[i], decay, sign);
      const T v = multiply_add(rest * g, g, square[i] * rho);
      const T delta = root(accumulated[i] + eps) / root(v + eps) * g;
      square[i] = v;
      accumulated[i] = multiply_add(rest * delta, delta, accumulated[i] * rho);
      p[i] = multiply_add(-rate, delta, p[i]);
    }
  });
}

template <class T>
void adamax(T* const* arrays, int64_t n, const double* c) {
  RL_ARRAYS;
  T* __restrict mean = arrays[2];
  T* __restrict infinity = arrays[3];
  const T weight = static_cast<T>(c[3]), beta2 = static_cast<T>(c[4]), eps = static_cast<T>(c[5]);
  const bool near = c[3] < 0.5;
  with_decay(decay != 0, [&](auto decays) {
    for (int64_t i = 0; i < n; ++i) {
      const T g = gradient<T, decltype(decays)::value>(grad[i], p[i], decay, sign);
      const T m = lerp(mean[i], g, weight, near), u = larger(infinity[i] * beta2, magnitude(g) + eps);
      mean[i] = m;
      infinity[i] = u;
      p[i] = p[i] - rate * m / u;
    }
  });
}

template <class T>
void nadam(T* const* arrays, int64_t n, const double* c) {
  RL_ARRAYS;
  T* __restrict mean = arrays[2];
  T* __restrict square = arrays[3];
  const T weight = static_cast<T>(c[3]), beta2 = static_cast<T>(c[4]), rest2 = static_cast<T>(c[5]);
  const T correction = static_cast<T>(c[6]), eps = static_cast<T>(c[7]), shrink = static_cast<T>(c[8]);
  const T average_rate = static_cast<T>(c[9]);
  const bool near = c[3] < 0.5;
  with_decay(decay != 0, [&](auto decays) {
    for (int64_t i = 0; i < n; ++i) {
      const T old = p[i] * shrink;
      const T g = gradient<T, decltype(decays)::value>(grad[i], old, decay, sign);
      const T m = lerp(mean[i], g, weight, near), v = multiply_add(rest2 * g, g, square[i] * beta2);
      mean[i] = m;
      square[i] = v;
      const T spread = root(v / correction) + eps;
      p[i] = (old - rate * g / spread) - average_rate * m / spread;
    }
  });
}

template <class T>
void radam(T* const* arrays, int64_t n, const double* c) {
  RL_ARRAYS;
  T* __restrict mean = arrays[2];
  T* __restrict square = arrays[3];
  const T weight = static_cast<T>(c[3]), beta2 = static_cast<T>(c[4]), rest2 = static_cast<T>(c[5]);
  const T adaptive = static_cast<T>(c[6]), eps = static_cast<T>(c[7]), shrink = static_cast<T>(c[8]);
  const T correction = static_cast<T>(c[9]);
  const bool near = c[3] < 0.5;
  with_decay(decay != 0, [&](auto decays) {
    for (int64_t i = 0; i < n; ++i) {
      const T old = p[i] * shrink;
      const T g = gradient<T, decltype(decays)::value>(grad[i], old, decay, sign);
      const T m = lerp(mean[i], g, weight, near), v = multiply_add(rest2 * g, g, square[i] * beta2);
      mean[i] = m;
      square[i] = v;
      const T scale = adaptive != 0 ? adaptive / (root(v) + eps) : T(1);
      p[i] = old - m / correction * rate * scale;
    }
  });
}

template <class T>
void scale(T* const* arrays, int64_t n, const double* c) {
  T* __restrict p = arrays[0];
  const T factor = static_cast<T>(c[0]);
  for (int64_t i = 0; i < n; ++i) p[i] *= factor;
}

#undef RL_ARRAYS

#define RL_RULES(T)          \
  {sgd<T>,                   \
   momentum<T>,              \
   adam<T, false>,           \
   adam<T, true>,            \
   adagrad<T>,               \
   rmsprop<T, false, false>, \
   rmsprop<T, false, true>,  \
   rmsprop<T, true, false>,  \
   rmsprop<T, true, true>,   \
   adadelta<T>,              \
   adamax<T>,                \
   nadam<T>,                 \
   radam<T>,                 \
   scale<T>}

constexpr OptimizerTable table = {RL_RULES(float), RL_RULES(double)};

#undef RL_RULES

}  // namespace

const OptimizerTable& RL_ISA_SYMBOL(optimizer_table)() { return table; }

}  // namespace rl
