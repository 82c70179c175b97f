// What kernels use where vector code does not hold, and functions that are computed one element at a time anyway: both
// call the C library or branch.
#pragma once

#include <cmath>

#include "cpu/vec_special.h"

namespace rl {
namespace {
namespace m {

// ---- remainders of doubles. A fused product leaves an exact remainder while the quotient is a whole number below
// 2^53, one too large at most. Without fused products there is no vector code.
RL_INLINE bool fmod_in_range(double a, double b) { return kFuses & (fabs(a) < 0x1p52 * fabs(b)) & (fabs(b) < kInf); }
RL_INLINE bool remainder_in_range(double a, double b) { return fmod_in_range(a, b); }
RL_INLINE bool floor_divide_in_range(double a, double b) { return fmod_in_range(a, b); }
struct Division {
  double quotient, rest;
};
// a = quotient b + rest, rounded towards zero
RL_INLINE Division divide(double a, double b) {
  const double near = trunc(a / b), left = fma(-near, b, a);
  const bool over = ((left < 0.0) != (a < 0.0)) & (left != 0.0);
  return {over ? near - copysign(1.0, near) : near, over ? left + copysign(b, a) : left};
}
RL_INLINE double fmod(double a, double b) { return copysign(divide(a, b).rest, a); }
template <class T>
RL_INLINE T exact_remainder(T a, T b) {
  const T rest = static_cast<T>(__builtin_fmod(static_cast<double>(a), static_cast<double>(b)));
  return rest != T(0) && (rest < T(0)) != (b < T(0)) ? rest + b : rest;
}
// The whole number below a / b, exactly, before it is rounded to the type.
template <class T>
RL_INLINE T exact_floor_divide(T a, T b) {
  if (b == T(0)) return a / b;
  const T rest = static_cast<T>(__builtin_fmod(static_cast<double>(a), static_cast<double>(b)));
  T quotient = (a - rest) / b;
  if (rest != T(0) && (rest < T(0)) != (b < T(0))) quotient -= T(1);
  if (quotient == T(0)) return copysign(T(0), a / b);
  const T whole = floor(quotient);
  return quotient - whole > T(0.5) ? whole + T(1) : whole;
}
RL_INLINE double remainder(double a, double b) {
  const double rest = divide(a, b).rest, moved = (rest < 0.0) != (b < 0.0) ? rest + b : rest;
  return rest == 0.0 ? copysign(0.0, a) : moved;
}
RL_INLINE double floor_divide(double a, double b) {
  const auto [quotient, rest] = divide(a, b);
  const double result = (rest != 0.0) & ((rest < 0.0) != (b < 0.0)) ? quotient - 1.0 : quotient;
  return result == 0.0 ? copysign(0.0, a / b) : result;
}

// ---- gamma functions

inline __attribute__((noinline)) double log_gamma(double x) {
#if defined(__GLIBC__)
  int sign;
  return ::lgamma_r(x, &sign);  // lgamma itself writes a global variable
#else
  return ::lgamma(x);
#endif
}
RL_INLINE double lgamma(double x) { return log_gamma(x); }

// The derivative of lgamma: by recurrence up to 10, then Stirling's series.
inline __attribute__((noinline)) double digamma_of(double x) {
  if (x == 0.0) return copysign(kInf, -x);
  double result = 0.0;
  if (x < 0.0) {
    const double whole = trunc(x);
    if (x == whole) return kNan;
    result = -kPi / ::tan(kPi * (x - whole));  // reflection
    x = 1.0 - x;
  }
  for (; x < 10.0; x += 1.0) result -= 1.0 / x;
  const double z = 1.0 / (x * x);
  const double series = polynomial(z, 1.0 / 12, -691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252, -1.0 / 120, 1.0 / 12);
  return result + ::log(x) - 0.5 / x - (x < 1e17 ? z * series : 0.0);
}
RL_INLINE double digamma(double x) { return digamma_of(x); }
RL_INLINE float digamma(float x) { return static_cast<float>(digamma_of(x)); }

// The derivative of digamma.
inline __attribute__((noinline)) double trigamma_of(double x) {
  double sign = 1.0, result = 0.0;
  if (x < 0.5) {
    const double s = kPi / ::sin(kPi * x);
    sign = -1.0;
    result = -s * s;
    x = 1.0 - x;
  }
  for (; x < 10.0; x += 1.0) result += 1.0 / (x * x);
  const double z = 1.0 / (x * x);
  const double series = polynomial(z, -691.0 / 2730, 5.0 / 66, -1.0 / 30, 1.0 / 42, -1.0 / 30, 1.0 / 6);
  return sign * (result + 1.0 / x + 0.5 * z + z / x * series);
}

// Hurwitz' zeta, the sum of (k + q)^-x over k >= 0, for x > 1: nine terms, the rest by Euler and Maclaurin.
inline __attribute__((noinline)) double zeta_of(double x, double q) {
  if (x == 1.0) return kInf;
  if (x < 1.0 || x != x || q != q) return kNan;
  if (q <= 0.0) {
    if (q == floor(q)) return kInf;
    if (x != floor(x)) return kNan;  // a power of a negative number
  }
  double sum = 0.0;
  for (; q < 10.0; q += 1.0) {
    const double term = ::pow(q, -x);
    sum += term;
    if (q > 1.0 && term < 1e-17 * sum) return sum;
  }
  // Bernoulli numbers B(2j) / (2j)!
  constexpr double kFactors[] = {1.0 / 12,
                                 -1.0 / 720,
                                 1.0 / 30240,
                                 -1.0 / 1209600,
                                 1.0 / 47900160,
                                 -691.0 / 1307674368e3,
                                 1.0 / 74724249600.0,
                                 -3617.0 / 10670622842880e3,
                                 43867.0 / 5109094217170944e3};
  const double last = ::pow(q, -x);
  sum += last * q / (x - 1.0) + 0.5 * last;
  double power = last / q, rising = x;
  for (int j = 0; j < 9; ++j) {
    const double term = kFactors[j] * rising * power;
    sum += term;
    if (fabs(term) < 1e-17 * fabs(sum)) break;
    rising *= (x + 2 * j + 1) * (x + 2 * j + 2);
    power /= q * q;
  }
  return sum;
}
RL_INLINE double zeta(double x, double q) { return zeta_of(x, q); }
RL_INLINE float zeta(float x, float q) { return static_cast<float>(zeta_of(x, q)); }

// Derivatives of digamma: order 0 is digamma itself.
inline __attribute__((noinline)) double polygamma_of(double order, double x) {
  if (order == 0.0) return digamma_of(x);
  if (order == 1.0) return trigamma_of(x);
  const double factorial = ::tgamma(order + 1.0);
  return (::fmod(order, 2.0) == 0.0 ? -factorial : factorial) * zeta_of(order + 1.0, x);
}
RL_INLINE double polygamma(double order, double x) { return polygamma_of(order, x); }
RL_INLINE float polygamma(float order, float x) { return static_cast<float>(polygamma_of(order, x)); }

// ---- neighbours

// The bits of floats of one sign count upwards with their magnitude.
template <class T>
  requires std::is_floating_point_v<T>
RL_INLINE T nextafter(T a, T b) {
  const auto bits = bits_of(a);
  using U = std::remove_const_t<decltype(bits)>;
  const T step = from_bits(static_cast<U>((a < b) == (a > T(0)) ? bits + 1 : bits - 1));
  const T moved = a == T(0) ? copysign(from_bits(U(1)), b) : step;
  const T result = a == b ? b : moved;
  return (a != a) | (b != b) ? a + b : result;
}

}  // namespace m

// The same functions for all arguments: those of m where they hold everywhere.
namespace exact {
using namespace m;

// Within the range of the vector code these are the vector code, so that no value depends on its neighbours.
template <class T>
RL_INLINE T sin(T x) {
  return sin_in_range(x) ? m::sin(x) : static_cast<T>(__builtin_sin(static_cast<double>(x)));
}
template <class T>
RL_INLINE T cos(T x) {
  return cos_in_range(x) ? m::cos(x) : static_cast<T>(__builtin_cos(static_cast<double>(x)));
}
template <class T>
RL_INLINE T tan(T x) {
  return tan_in_range(x) ? m::tan(x) : static_cast<T>(__builtin_tan(static_cast<double>(x)));
}
template <class T>
RL_INLINE T fmod(T a, T b) {
  return static_cast<T>(__builtin_fmod(static_cast<double>(a), static_cast<double>(b)));
}
template <class T>
RL_INLINE T remainder(T a, T b) {
  return exact_remainder(a, b);
}
template <class T>
RL_INLINE T floor_divide(T a, T b) {
  return exact_floor_divide(a, b);
}

}  // namespace exact
}  // namespace
}  // namespace rl
