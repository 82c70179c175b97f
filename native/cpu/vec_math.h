// Elementary functions of float and double as straight-line code, which the compiler turns into vector code.
//
// No function branches, calls the C library, or uses fused multiply-add, so every instruction set gives the same bits.
// Functions of float compute in double, where a short polynomial leaves 0.501 ulp after the final rounding; functions of
// double stay within 2 ulp. Infinities, NaN, signed zeros and subnormal numbers are as in C's Annex F.
#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace rl {
namespace {
namespace m {

RL_INLINE uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }
RL_INLINE uint64_t bits_of(double x) { return __builtin_bit_cast(uint64_t, x); }
RL_INLINE float from_bits(uint32_t x) { return __builtin_bit_cast(float, x); }
RL_INLINE double from_bits(uint64_t x) { return __builtin_bit_cast(double, x); }

RL_INLINE float fabs(float x) { return __builtin_fabsf(x); }
RL_INLINE double fabs(double x) { return __builtin_fabs(x); }
RL_INLINE float sqrt(float x) { return __builtin_sqrtf(x); }
RL_INLINE double sqrt(double x) { return __builtin_sqrt(x); }
RL_INLINE float floor(float x) { return __builtin_floorf(x); }
RL_INLINE double floor(double x) { return __builtin_floor(x); }
RL_INLINE float ceil(float x) { return __builtin_ceilf(x); }
RL_INLINE double ceil(double x) { return __builtin_ceil(x); }
RL_INLINE float trunc(float x) { return __builtin_truncf(x); }
RL_INLINE double trunc(double x) { return __builtin_trunc(x); }
RL_INLINE float round(float x) { return __builtin_rintf(x); }  // halves go to even
RL_INLINE double round(double x) { return __builtin_rint(x); }
RL_INLINE float frac(float x) { return x - trunc(x); }
RL_INLINE double frac(double x) { return x - trunc(x); }
RL_INLINE bool sign_of_bits(float x) { return (bits_of(x) >> 31) != 0; }
RL_INLINE bool sign_of_bits(double x) { return (bits_of(x) >> 63) != 0; }
RL_INLINE float copysign(float x, float y) { return __builtin_copysignf(x, y); }
RL_INLINE double copysign(double x, double y) { return __builtin_copysign(x, y); }

// Adding this to a number of moderate size rounds it to a whole number, held in the low bits of the sum.
constexpr double kRounder = 0x1.8p52;

// 2^n for a whole n (as sum with kRounder), -1022 <= n <= 1023.
RL_INLINE double power_of_two(double n_plus_rounder) { return from_bits((bits_of(n_plus_rounder) + 1023) << 52); }

constexpr double kInf = __builtin_inf();
constexpr double kNan = __builtin_nan("");
constexpr double kLog2E = 0x1.71547652b82fep+0;

// Horner's rule, highest coefficient first.
RL_INLINE double polynomial(double, double c) { return c; }
template <class... Rest>
RL_INLINE double polynomial(double x, double c, double next, Rest... rest) {
  return polynomial(x, c * x + next, rest...);
}

// ---- functions of float, computed in double: `wide` ones take and give doubles that hold floats

// 2^x to about 2^-34, for -1000 < x < 1000.
RL_INLINE double wide_exp2(double x) {
  const double whole = x + kRounder;
  const double f = x - (whole - kRounder);
  const double p = polynomial(f, 1.5303700731783077e-05, 0.00015469729240646436, 0.0013333478473621615, 0.009618025613235139,
                              0.055504109063259144, 0.24022651213498714, 0.6931471805568324, 0.9999999999595617);
  return p * power_of_two(whole);
}
// Written so that NaN passes.
RL_INLINE double limit(double x, double low, double high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}
RL_INLINE float exp(float x) { return static_cast<float>(wide_exp2(limit(x * kLog2E, -200.0, 200.0))); }

}  // namespace m
}  // namespace
}  // namespace rl
