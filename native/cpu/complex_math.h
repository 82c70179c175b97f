// Functions of complex numbers for the elementwise kernels.
//
// Those with branch cuts come from the C library, whose complex functions follow C's Annex G: the sign of a zero
// chooses the side of a cut. complex64 is computed in complex128 and rounded once.
#pragma once

#include "cpu/elementwise_math.h"

namespace rl {
namespace {
namespace m {

#define RL_COMPLEX_LIBRARY(name, function)                                \
  inline __attribute__((noinline)) complex128 wide_##name(complex128 z) { \
    _Complex double value;                                                \
    __real__ value = z.re;                                                \
    __imag__ value = z.im;                                                \
    value = function(value);                                              \
    return {__real__ value, __imag__ value};                              \
  }                                                                       \
  template <class T>                                                      \
  RL_INLINE complex<T> name(complex<T> z) {                               \
    return complex<T>(wide_##name(complex128(z)));                        \
  }
RL_COMPLEX_LIBRARY(exp, __builtin_cexp)
RL_COMPLEX_LIBRARY(log, __builtin_clog)
RL_COMPLEX_LIBRARY(sqrt, __builtin_csqrt)
RL_COMPLEX_LIBRARY(sin, __builtin_csin)
RL_COMPLEX_LIBRARY(cos, __builtin_ccos)
RL_COMPLEX_LIBRARY(tan, __builtin_ctan)
RL_COMPLEX_LIBRARY(asin, __builtin_casin)
RL_COMPLEX_LIBRARY(acos, __builtin_cacos)
RL_COMPLEX_LIBRARY(atan, __builtin_catan)
RL_COMPLEX_LIBRARY(sinh, __builtin_csinh)
RL_COMPLEX_LIBRARY(cosh, __builtin_ccosh)
RL_COMPLEX_LIBRARY(tanh, __builtin_ctanh)
RL_COMPLEX_LIBRARY(asinh, __builtin_casinh)
RL_COMPLEX_LIBRARY(acosh, __builtin_cacosh)
RL_COMPLEX_LIBRARY(atanh, __builtin_catanh)
#undef RL_COMPLEX_LIBRARY

template <class T>
RL_INLINE T abs(complex<T> z) {
  return m::hypot(z.re, z.im);
}
template <class T>
RL_INLINE T angle(complex<T> z) {
  return m::atan2(z.im, z.re);
}
template <class T>
RL_INLINE complex<T> conj(complex<T> z) {
  return {z.re, -z.im};
}
template <class T>
RL_INLINE T real(complex<T> z) {
  return z.re;
}
template <class T>
RL_INLINE T imag(complex<T> z) {
  return z.im;
}
template <class T>
RL_INLINE complex<T> sgn(complex<T> z) {
  const T magnitude = m::abs(z);
  return magnitude == T(0) ? complex<T>(T(0), T(0)) : complex<T>(z.re / magnitude, z.im / magnitude);
}
template <class T>
RL_INLINE complex<T> sign(complex<T> z) {
  return m::sgn(z);
}
// Division by zero gives the infinities of division by a positive real zero.
template <class T>
RL_INLINE complex<T> div(complex<T> a, complex<T> b) {
  if (b.re == T(0) && b.im == T(0)) return {a.re / m::fabs(b.re), a.im / m::fabs(b.im)};
  return a / b;
}
template <class T>
RL_INLINE complex<T> reciprocal(complex<T> z) {
  return m::div(complex<T>(T(1), T(0)), z);
}
template <class T>
RL_INLINE complex<T> rsqrt(complex<T> z) {
  return m::reciprocal(m::sqrt(z));
}
template <class T>
RL_INLINE complex<T> sigmoid(complex<T> z) {
  const complex<T> one(T(1), T(0));
  return one / (one + m::exp(-z));
}
template <class T>
RL_INLINE complex<T> exp2(complex<T> z) {
  return complex<T>(wide_exp(complex128(z.re * kLn2, z.im * kLn2)));
}
template <class T>
RL_INLINE complex<T> expm1(complex<T> z) {
  const double x = z.re, y = z.im;
  if (y == 0.0) return {static_cast<T>(__builtin_expm1(x)), z.im};
  const double s = __builtin_sin(0.5 * y);
  return {static_cast<T>(__builtin_expm1(x) * __builtin_cos(y) - 2.0 * s * s),
          static_cast<T>(__builtin_exp(x) * __builtin_sin(y))};
}
template <class T>
RL_INLINE complex<T> log2(complex<T> z) {
  const complex128 w = wide_log(complex128(z));
  return {static_cast<T>(w.re * kLog2E), static_cast<T>(w.im * kLog2E)};
}
template <class T>
RL_INLINE complex<T> log10(complex<T> z) {
  constexpr double kLog10E = 0x1.bcb7b1526e50ep-2;
  const complex128 w = wide_log(complex128(z));
  return {static_cast<T>(w.re * kLog10E), static_cast<T>(w.im * kLog10E)};
}
template <class T>
RL_INLINE complex<T> log1p(complex<T> z) {
  const double x = z.re, y = z.im;
  if (x == 0.0 && y == 0.0) return z;  // zeros keep their signs
  // |1 + z|^2 - 1, without cancellation near 0
  const double d = x * (2.0 + x) + y * y;
  if (!(d < 0.5 && d > -0.5)) return complex<T>(wide_log(complex128(1.0 + x, y)));
  return {static_cast<T>(0.5 * __builtin_log1p(d)), static_cast<T>(__builtin_atan2(y, 1.0 + x))};
}
inline __attribute__((noinline)) complex128 wide_pow(complex128 base, complex128 exponent) {
  if (exponent.re == 0.0 && exponent.im == 0.0) return {1.0, 0.0};
  if (base.re == 0.0 && base.im == 0.0 && exponent.im == 0.0 && exponent.re > 0.0) return {0.0, 0.0};
  _Complex double b, e;
  __real__ b = base.re;
  __imag__ b = base.im;
  __real__ e = exponent.re;
  __imag__ e = exponent.im;
  b = __builtin_cpow(b, e);
  return {__real__ b, __imag__ b};
}
template <class T>
RL_INLINE complex<T> pow(complex<T> base, complex<T> exponent) {
  return complex<T>(wide_pow(complex128(base), complex128(exponent)));
}

template <class T>
RL_INLINE bool isnan(complex<T> z) {
  return (z.re != z.re) | (z.im != z.im);
}
template <class T>
RL_INLINE bool isinf(complex<T> z) {
  return m::isinf(z.re) | m::isinf(z.im);
}
template <class T>
RL_INLINE bool isfinite(complex<T> z) {
  return m::isfinite(z.re) & m::isfinite(z.im);
}

// Sums with a real number, as expressions of |z| have them.
template <class T>
RL_INLINE complex<T> add(complex<T> a, T b) {
  return {a.re + b, a.im};
}
template <class T>
RL_INLINE complex<T> add(T a, complex<T> b) {
  return {a + b.re, b.im};
}
template <class T>
RL_INLINE complex<T> sub(complex<T> a, T b) {
  return {a.re - b, a.im};
}
template <class T>
RL_INLINE complex<T> sub(T a, complex<T> b) {
  return {a - b.re, -b.im};
}

}  // namespace m
}  // namespace
}  // namespace rl
