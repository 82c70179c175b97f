// Elementary functions of float as straight-line code, which the compiler turns into vector code.
//
// No function branches, calls the C library, or uses fused multiply-add, so every instruction set gives the same bits.
// Functions of float compute in double (`wide` functions, exact to about 2^-33), so that the final rounding leaves 0.51
// ulp. Infinities, NaN, signed zeros and subnormal numbers are as in C's Annex F. Polynomials were fitted at Chebyshev
// nodes.
//
// Conditions are written so that NaN takes the "false" side into arithmetic that keeps it; a chain like
// x != x ? x : x < a ? a : b makes GCC compute everything once per case.
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
RL_INLINE bool sign_of_bits(float x) { return (bits_of(x) >> 31) != 0; }
RL_INLINE bool sign_of_bits(double x) { return (bits_of(x) >> 63) != 0; }
RL_INLINE float copysign(float x, float y) { return __builtin_copysignf(x, y); }
RL_INLINE double copysign(double x, double y) { return __builtin_copysign(x, y); }

constexpr double kInf = __builtin_inf();
constexpr double kNan = __builtin_nan("");
constexpr double kLog2E = 0x1.71547652b82fep+0;
constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr double kPi = 0x1.921fb54442d18p+1;

// Adding this to a number of moderate size rounds it to a whole number, held in the low bits of the sum.
constexpr double kRounder = 0x1.8p52;

// 2^n for a whole n (given as n + kRounder), -1022 <= n <= 1023.
RL_INLINE double power_of_two(double n_plus_rounder) { return from_bits((bits_of(n_plus_rounder) + 1023) << 52); }

// A polynomial, highest coefficient first. Its even and odd halves are independent, which halves the waiting for
// results. c[0] x^n + c[kStep] x^(n-1) + ...
template <int kTerms, int kStep, class T>
RL_INLINE T horner(T x, const T* c) {
  if constexpr (kTerms == 1) {
    return c[0];
  } else {
    return horner<kTerms - 1, kStep>(x, c) * x + c[(kTerms - 1) * kStep];
  }
}
template <class T, class... Coefficients>
RL_INLINE T polynomial(T x, Coefficients... coefficients) {
  constexpr int n = sizeof...(Coefficients);
  const T c[n] = {static_cast<T>(coefficients)...};
  if constexpr (n < 6) {
    return horner<n, 1>(x, c);
  } else {
    // The last coefficient is of x^0, so the terms with its parity are the even ones.
    const T z = x * x;
    const T with_last = horner<(n + 1) / 2, 2>(z, c + (n + 1) % 2);
    const T others = horner<n / 2, 2>(z, c + n % 2);
    return others * x + with_last;
  }
}

// NaN passes.
RL_INLINE double limit(double x, double low, double high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}

// x with the sign bit flipped where the low bit of `flip` is set.
RL_INLINE double flip_sign(double x, uint64_t flip) { return from_bits(bits_of(x) ^ (flip << 63)); }

// ---- exponentials

// 2^x for -1000 < x < 1000.
RL_INLINE double wide_exp2(double x) {
  const double whole = x + kRounder;
  const double f = x - (whole - kRounder);
  const double p =
      polynomial(f, 1.5303700731783077e-05, 0.00015469729240646436, 0.0013333478473621615, 0.009618025613235139,
                 0.055504109063259144, 0.24022651213498714, 0.6931471805568324, 0.9999999999595617);
  return p * power_of_two(whole);
}
RL_INLINE double wide_exp(double x) { return wide_exp2(limit(x * kLog2E, -400.0, 400.0)); }
// e^x - 1, with a relative error also near 0.
RL_INLINE double wide_expm1(double x) {
  const double t = limit(x * kLog2E, -400.0, 400.0);
  const double whole = t + kRounder;
  const double f = t - (whole - kRounder);
  const double p =
      f * polynomial(f, 1.3250806932033709e-06, 1.5303702753124403e-05, 0.00015403475182110488, 0.001333347846730514,
                     0.009618129135239455, 0.055504109063306516, 0.24022650695888498, 0.6931471805568319);
  const double scale = power_of_two(whole);
  return p * scale + (scale - 1.0);
}

// These few are worth code in float, twice as fast: errors below 1 ulp.
constexpr float kFloatRounder = 0x1.8p23f;
RL_INLINE float power_of_two(float n_plus_rounder) { return from_bits((bits_of(n_plus_rounder) + 127) << 23); }
RL_INLINE float limit(float x, float low, float high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}
// p * 2^n in two steps, so that neither factor leaves the exponent's range and subnormal results are rounded once.
RL_INLINE float scale(float p, float n) {
  const float half = 0.5f * n + kFloatRounder;
  return p * power_of_two(half) * power_of_two((n - (half - kFloatRounder)) + kFloatRounder);
}
// e^r for |r| <= ln 2 / 2
RL_INLINE float exp_kernel(float r) {
  const float q =
      polynomial(r, 0.0013926250831497611f, 0.008363232883682618f, 0.04166655421298415f, 0.16666576666119928f, 0.5f);
  return 1.0f + (r + r * r * q);
}
RL_INLINE float exp(float x) {
  const float t = limit(x, -104.0f, 89.0f);
  const float n = (t * 0x1.715476p+0f + kFloatRounder) - kFloatRounder;
  // ln 2 in two parts, the first for exact products
  return scale(exp_kernel((t - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f), n);
}
RL_INLINE float exp2(float x) {
  const float t = limit(x, -151.0f, 129.0f);
  const float n = (t + kFloatRounder) - kFloatRounder;
  const float f = t - n;
  const float q = polynomial(f, 0.0001545336197353356f, 0.0013391093247266345f, 0.009618082183394121f,
                             0.05550356682386405f, 0.24022650761348438f, 0.693147188116349f);
  return scale(1.0f + f * q, n);
}
RL_INLINE float sigmoid(float x) {
  // One factor does: where the power of two leaves the range of normal numbers, the result is 1 or below 2^-126, for
  // which it becomes 0.
  const float t = limit(-x, -87.0f, 89.0f);
  const float whole = t * 0x1.715476p+0f + kFloatRounder, n = whole - kFloatRounder;
  return 1.0f / (1.0f + exp_kernel((t - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f) * power_of_two(whole));
}
RL_INLINE float expm1(float x) {
  const float result = static_cast<float>(wide_expm1(x));
  return x == 0.0f ? x : result;  // -0
}
RL_INLINE float tanh(float x) {
  const double t = wide_expm1(2.0 * fabs(static_cast<double>(x)));
  // Large t makes the quotient 1 - tiny; infinity does not occur within the limits of wide_expm1.
  return copysign(static_cast<float>(t / (t + 2.0)), x);
}
RL_INLINE float sinh(float x) {
  const double t = wide_expm1(fabs(static_cast<double>(x)));
  return copysign(static_cast<float>(0.5 * (t + t / (t + 1.0))), x);
}
RL_INLINE float cosh(float x) {
  const double t = wide_exp(fabs(static_cast<double>(x)));
  return static_cast<float>(0.5 * (t + 1.0 / t));
}

// ---- logarithms

// log2 of a positive normal number.
RL_INLINE double wide_log2_normal(double x) {
  // The exponent is taken so that the rest lies within [sqrt(1/2), sqrt(2)).
  const uint64_t bits = bits_of(x);
  const uint64_t exponent = (bits + (0x3ff0000000000000 - 0x3fe6a09e667f3bcd)) >> 52;
  const double m = from_bits(bits - (exponent << 52) + 0x3ff0000000000000);
  const double n = from_bits(exponent | 0x4330000000000000) - (0x1p52 + 1023.0);
  const double f = m - 1.0;
  const double s = f / (m + 1.0);
  return n + s * polynomial(s * s, 0.2828958197350036, 0.3199060890608902, 0.41220924041505896, 0.5770779425099981,
                            0.9617966941127383, 2.8853900817778504);
}
// Of any double that is not subnormal (a float is not, here): -inf at 0, NaN below.
RL_INLINE double wide_log2(double x) {
  double result = wide_log2_normal(x);
  result = x < kInf ? result : x;  // infinity and NaN
  const double at_most_zero = x == 0.0 ? -kInf : kNan;
  return x <= 0.0 ? at_most_zero : result;
}
RL_INLINE float log(float x) { return static_cast<float>(wide_log2(x) * kLn2); }
RL_INLINE float log2(float x) { return static_cast<float>(wide_log2(x)); }
RL_INLINE float log10(float x) { return static_cast<float>(wide_log2(x) * 0x1.34413509f79ffp-2); }
// log(1 + x) for |x| up to 2^128, exact to 2^-33 relatively.
RL_INLINE double wide_log1p(double x) {
  const double u = 1.0 + x;
  const double lost = x - (u - 1.0);  // of x in u; what is lost of 1 does not matter
  const double result = wide_log2(u) * kLn2 + lost / u;
  return (u > 0.0) & (u < kInf) ? result : wide_log2(u);
}
RL_INLINE float log1p(float x) {
  const float result = static_cast<float>(wide_log1p(x));
  return x == 0.0f ? x : result;  // -0
}

// ---- powers

RL_INLINE float pow(float base, float exponent) {
  const double y = exponent, magnitude = fabs(static_cast<double>(base));
  const double p = wide_exp2(limit(y * wide_log2(magnitude), -400.0, 400.0));
  const double half = 0.5 * y;
  const bool whole = trunc(y) == y;  // infinity too
  const bool odd = whole & (trunc(half) != half);
  float result = static_cast<float>(p);
  // A negative base: whole exponents only. -0 has a sign, too.
  const bool negative = sign_of_bits(base);
  result = negative & odd ? -result : result;
  result = negative & !whole & (magnitude > 0.0) & (magnitude < kInf) ? static_cast<float>(kNan) : result;
  const bool one = (y == 0.0) | (base == 1.0f) | ((base == -1.0f) & (fabs(y) == kInf));
  return one ? 1.0f : result;
}
RL_INLINE float rsqrt(float x) { return 1.0f / sqrt(x); }
RL_INLINE float hypot(float x, float y) {
  const double a = x, b = y;
  const float result = static_cast<float>(sqrt(a * a + b * b));
  return (fabs(a) == kInf) | (fabs(b) == kInf) ? static_cast<float>(kInf) : result;
}

// ---- trigonometric functions. Arguments beyond kTrigLimit need more bits of pi: see exact_math.h.

constexpr double kTrigLimit = 1.0e6;

struct Reduced {
  double r;           // x - quadrant * pi / 2, within [-pi/4, pi/4]
  uint64_t quadrant;  // its two low bits count
};
RL_INLINE Reduced wide_reduce(double x) {
  const double n = x * 0x1.45f306dc9c883p-1 + kRounder;
  const double k = n - kRounder;
  // pi / 2 in two parts, the first short enough for exact products
  return {(x - k * 0x1.921fb544p+0) - k * 0x1.0b4611a626331p-34, bits_of(n)};
}
RL_INLINE double wide_sin_kernel(double r, double z) {
  return r * polynomial(z, 2.717341870116158e-06, -0.00019839201800436314, 0.008333328781097757, -0.16666666631577168,
                        0.9999999999956709);
}
RL_INLINE double wide_cos_kernel(double z) {
  return polynomial(z, -2.717339169572195e-07, 2.4798928225823623e-05, -0.00138888803912356, 0.0416666665438622,
                    -0.4999999999935079, 0.9999999999999444);
}
RL_INLINE double wide_sin_of(Reduced a) {
  const double z = a.r * a.r, s = wide_sin_kernel(a.r, z), c = wide_cos_kernel(z);
  return flip_sign(a.quadrant & 1 ? c : s, a.quadrant >> 1);
}
RL_INLINE float sin(float x) { return static_cast<float>(wide_sin_of(wide_reduce(x))); }
RL_INLINE float cos(float x) {
  Reduced a = wide_reduce(x);
  a.quadrant += 1;
  return static_cast<float>(wide_sin_of(a));
}
RL_INLINE float tan(float x) {
  const Reduced a = wide_reduce(x);
  const double z = a.r * a.r, s = wide_sin_kernel(a.r, z), c = wide_cos_kernel(z);
  const bool odd = a.quadrant & 1;
  return static_cast<float>((odd ? c : s) / flip_sign(odd ? s : c, odd));
}
RL_INLINE bool sin_in_range(float x) { return fabs(x) < static_cast<float>(kTrigLimit); }
RL_INLINE bool cos_in_range(float x) { return sin_in_range(x); }
RL_INLINE bool tan_in_range(float x) { return sin_in_range(x); }

// ---- inverse trigonometric functions

// atan for 0 <= x <= 1
RL_INLINE double wide_atan_kernel(double x) {
  return x * polynomial(x * x, -0.0006633954571104787, 0.00473248419342192, -0.015828322749149415, 0.033826218952786875,
                        -0.05395668057137172, 0.07228278345377252, -0.08974171958363882, 0.11091922963683302,
                        -0.14283813255743194, 0.19999901102171555, -0.3333333129088999, 0.9999999999293037);
}
RL_INLINE float atan(float x) {
  const double a = fabs(static_cast<double>(x));
  const bool large = a > 1.0;
  const double p = wide_atan_kernel(large ? 1.0 / a : a);
  return copysign(static_cast<float>(large ? 0.5 * kPi - p : p), x);
}
RL_INLINE float atan2(float y, float x) {
  const double a = fabs(static_cast<double>(x)), b = fabs(static_cast<double>(y));
  const bool steep = b > a;
  const double low = steep ? a : b, high = steep ? b : a;
  double ratio = low / high;
  ratio = high == 0.0 ? 0.0 : ratio;
  ratio = low == kInf ? 1.0 : ratio;
  const double p = wide_atan_kernel(ratio);
  const double first = steep ? 0.5 * kPi - p : p;
  const float result = copysign(static_cast<float>(sign_of_bits(x) ? kPi - first : first), y);
  return (x != x) | (y != y) ? x + y : result;
}
// asin(s) for 0 <= s <= 1/2, z = s * s
RL_INLINE double wide_asin_kernel(double s, double z) {
  return s * polynomial(z, 0.03476246242227901, 0.00738965262637267, 0.024654446783243526, 0.03010195032607909,
                        0.04466118325586939, 0.07499941745425001, 0.16666667366429844, 0.9999999999863043);
}
RL_INLINE float asin(float x) {
  const double a = fabs(static_cast<double>(x));
  const bool large = a > 0.5;
  const double z = large ? 0.5 - 0.5 * a : a * a;
  const double p = wide_asin_kernel(large ? sqrt(z) : a, z);
  return copysign(static_cast<float>(large ? 0.5 * kPi - 2.0 * p : p), x);
}
RL_INLINE float acos(float x) {
  const double a = fabs(static_cast<double>(x));
  const bool large = a > 0.5;
  const double z = large ? 0.5 - 0.5 * a : a * a;
  const double p = wide_asin_kernel(large ? sqrt(z) : a, z);
  const double of_small = 0.5 * kPi - copysign(p, static_cast<double>(x));
  const double of_large = x < 0.0f ? kPi - 2.0 * p : 2.0 * p;
  return static_cast<float>(large ? of_large : of_small);
}

// ---- inverse hyperbolic functions

RL_INLINE float asinh(float x) {
  const double a = fabs(static_cast<double>(x));
  // a * a overflows nowhere: a float's square is a double.
  const float result = static_cast<float>(wide_log1p(a + a * a / (1.0 + sqrt(1.0 + a * a))));
  return copysign(a < kInf ? result : static_cast<float>(a), x);
}
RL_INLINE float acosh(float x) {
  const double t = static_cast<double>(x) - 1.0;
  const float result = static_cast<float>(wide_log1p(t + sqrt(t * (t + 2.0))));
  return x < 1.0f ? static_cast<float>(kNan) : result;
}
RL_INLINE float atanh(float x) {
  const double a = fabs(static_cast<double>(x));
  return copysign(static_cast<float>(0.5 * wide_log1p(2.0 * a / (1.0 - a))), x);
}

// ---- error functions

RL_INLINE float erf(float x) {
  // 1 - erf(a) = exp(-a q(a)); at 4 erf is 1 in float.
  const double magnitude = fabs(static_cast<double>(x));
  const double a = magnitude > 4.0 ? 4.0 : magnitude;
  const double q =
      polynomial(a, -1.1923429513101198e-09, 3.295584450570757e-08, -3.939218116838479e-07, 2.571126447362633e-06,
                 -8.77418349944581e-06, 2.3534533424433116e-06, 0.0001330990747458661, -0.0007121787671415627,
                 0.0017889654838691954, -0.00025474256461825945, -0.019115010916874037, 0.10277052420397793,
                 0.6366198998802358, 1.1283791657900535);
  return copysign(static_cast<float>(-wide_expm1(-a * q)), x);
}
// The normal distribution function, exact to 2^-23 absolutely. erf(a) / a is a quotient of polynomials of a^2; at 3.92
// erf is 1 in float.
RL_INLINE float ndtr(float x) {
  const float a = limit(x * 0x1.6a09e6p-1f, -3.92f, 3.92f), z = a * a;
  const float top = polynomial(z, 2.042116363128163e-06f, 0.0002847946489901039f, 0.0037789050204563713f,
                               0.05278810000586896f, 0.19076707989311736f, 1.128379145489889f);
  const float bottom = polynomial(z, 3.800487537936325e-05f, 0.0011650460701559168f, 0.014996018820693319f,
                                  0.11425062473390805f, 0.5023956453732327f, 1.0f);
  const float result = limit(0.5f + 0.5f * (a * top / bottom), 0.0f, 1.0f);
  return x < -5.54f ? 0.0f : result;
}
RL_INLINE float erfc(float x) {
  // (1 + 2a) exp(a^2) erfc(a) is smooth in (a - 4) / (a + 4).
  const double magnitude = fabs(static_cast<double>(x));
  const double a = magnitude > 11.0 ? 11.0 : magnitude;
  const double u = (a - 4.0) / (a + 4.0);
  const double p = polynomial(u, 4.7034321303271164e-05, 0.00025267875875701284, -0.00016046639566089666,
                              -0.0007910891543092096, 0.005001112811121542, -0.01619811648692306, 0.03717385535509108,
                              -0.0663292826763076, 0.09373228842962668, -0.10103918304561683, 0.06809707425869506,
                              0.015379655719079567, -0.13962111707173736, 1.23299511860917);
  const double c = wide_exp(-a * a) * p / (1.0 + 2.0 * a);
  return static_cast<float>(x < 0.0f ? 2.0 - c : c);
}
RL_INLINE float erfinv(float x) {
  const double y = x;
  const double w = -kLn2 * wide_log2((1.0 - y) * (1.0 + y));
  const double s = sqrt(w);
  const double near = polynomial(w, -1.4854908961637763e-11, 5.573429080392599e-10, -8.492242901606758e-09,
                                 6.113155542491016e-08, -1.2203597397129162e-07, -9.491590892039423e-07,
                                 2.1790884142241462e-06, 4.6103491260809155e-05, -0.00012741227568066718,
                                 -0.0023354996777537208, 0.011549462396345868, 0.23201365296109508, 0.8862269256960965);
  const double far = polynomial(s, -3.351652924003114e-05, 0.0011723816732949273, -0.018352840416523176,
                                0.16907929716309858, -1.013119647488858, 4.113189677264795, -11.405272993121454,
                                21.162929833299508, -24.794863706861292, 17.0865975406998, -4.246211935752201);
  const float result = static_cast<float>(y * (w > 6.0 ? far : near));
  return fabs(x) == 1.0f ? copysign(static_cast<float>(kInf), x) : result;
}

// ---- remainders. Exact in double while the quotient has fewer than 28 bits; see exact_math.h for the others.

RL_INLINE bool fmod_in_range(float a, float b) {
  return (fabs(static_cast<double>(a)) < 0x1p28 * fabs(static_cast<double>(b))) & (fabs(b) < static_cast<float>(kInf));
}
RL_INLINE bool remainder_in_range(float a, float b) { return fmod_in_range(a, b); }
RL_INLINE bool floor_divide_in_range(float a, float b) { return fmod_in_range(a, b); }
RL_INLINE float fmod(float a, float b) {
  const double x = a, y = b;
  return copysign(static_cast<float>(x - trunc(x / y) * y), a);
}
RL_INLINE float remainder(float a, float b) {
  const double x = a, y = b;
  const double rest = x - trunc(x / y) * y;
  const double moved = (rest < 0.0) != (y < 0.0) ? rest + y : rest;
  return rest == 0.0 ? copysign(0.0f, a) : static_cast<float>(moved);
}
RL_INLINE float floor_divide(float a, float b) {
  const double x = a, y = b;
  const double quotient = trunc(x / y);
  const double rest = x - quotient * y;
  const double result = (rest != 0.0) & ((rest < 0.0) != (y < 0.0)) ? quotient - 1.0 : quotient;
  return result == 0.0 ? copysign(0.0f, a / b) : static_cast<float>(result);
}

}  // namespace m
}  // namespace
}  // namespace rl
