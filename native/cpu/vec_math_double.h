// Elementary functions of double as straight-line code: see vec_math.h. Errors stay within 2 ulp (erfc: 4).
#pragma once

#include "cpu/vec_math.h"

namespace rl {
namespace {
namespace m {

// ln 2 and pi / 2 in parts of at most 33 bits, whose products with small whole numbers are exact, and a rest.
constexpr double kLn2High = 0x1.62e42fefp-1, kLn2Low = 0x1.473de6af278edp-34;
constexpr double kHalfPi1 = 0x1.921fb544p+0, kHalfPi2 = 0x1.0b4611a6p-34, kHalfPi3 = 0x1.3198a2ep-69;
constexpr double kHalfPi4 = 0x1.b839a252049c1p-104;
constexpr double kHalfPi = 0x1.921fb54442d18p+0, kHalfPiRest = 0x1.1a62633145c07p-54;

// ---- exponentials

// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2
RL_INLINE double exp_kernel(double r) {
  return polynomial(r, 2.0914686968086876e-09, 2.5105217004720745e-08, 2.75572736431103e-07, 2.7557255400206422e-06,
                    2.4801587325547743e-05, 0.00019841269874820627, 0.0013888888888883748, 0.008333333333326136,
                    0.04166666666666667, 0.1666666666666667, 0.5);
}
// p * 2^n in two steps, so that neither factor leaves the exponent's range and subnormal results are rounded once.
RL_INLINE double scale(double p, double n) {
  const double half = 0.5 * n + kRounder;
  return p * power_of_two(half) * power_of_two((n - (half - kRounder)) + kRounder);
}
RL_INLINE double exp(double x) {
  const double t = limit(x, -746.0, 710.0);
  const double n = (t * kLog2E + kRounder) - kRounder;
  const double r = (t - n * kLn2High) - n * kLn2Low;
  return scale(1.0 + (r + r * r * exp_kernel(r)), n);
}
RL_INLINE double exp2(double x) {
  const double t = limit(x, -1080.0, 1025.0);
  const double n = (t + kRounder) - kRounder;
  const double f = t - n;
  const double q =
      polynomial(f, 2.5725082444272935e-11, 4.454960975460706e-10, 7.0548999554389264e-09, 1.0178062443959398e-07,
                 1.3215486802905462e-06, 1.5252733829839213e-05, 0.0001540353039337591, 0.0013333558146416933,
                 0.009618129107628479, 0.0555041086648216, 0.24022650695910072);
  return scale(1.0 + (f * kLn2 + f * f * q), n);
}
RL_INLINE double expm1(double x) {
  const double t = limit(x, -60.0, 710.0);
  const double n = (t * kLog2E + kRounder) - kRounder;
  const double high = t - n * kLn2High, low = n * kLn2Low;
  const double r = high - low, lost = (high - r) - low;
  const double p = r + (r * r * exp_kernel(r) + lost);
  const double half_scale = power_of_two((n - 1.0) + kRounder);
  const double result = 2.0 * (half_scale * p + (half_scale - 0.5));
  return fabs(x) < 0x1p-54 ? x : result;
}
RL_INLINE double sigmoid(double x) {
  const double e = exp(-fabs(x));
  return (x < 0.0 ? e : 1.0) / (1.0 + e);
}
RL_INLINE double tanh(double x) {
  const double t = expm1(limit(2.0 * fabs(x), 0.0, 60.0));
  return copysign(t / (t + 2.0), x);
}
RL_INLINE double sinh(double x) {
  const double a = fabs(x);
  const double t = expm1(limit(a, 0.0, 700.0));
  const double near = 0.5 * (t + t / (t + 1.0));
  const double root = exp(0.5 * a);  // e^a overflows before e^a / 2 does
  return copysign(a > 700.0 ? 0.5 * root * root : near, x);
}
RL_INLINE double cosh(double x) {
  const double a = fabs(x);
  const double t = exp(limit(a, 0.0, 700.0));
  const double root = exp(0.5 * a);
  return a > 700.0 ? 0.5 * root * root : 0.5 * t + 0.5 / t;
}

// ---- logarithms

// x = 2^n (1 + f) with 1 + f within [sqrt(1/2), sqrt(2)), for a positive finite x.
struct Split {
  double n, f;
};
RL_INLINE Split split_exponent(double x) {
  const bool subnormal = x < 0x1p-1022;
  const uint64_t bits = bits_of(subnormal ? x * 0x1p54 : x);
  const uint64_t exponent = (bits + (0x3ff0000000000000 - 0x3fe6a09e667f3bcd)) >> 52;
  const double whole = from_bits(exponent | 0x4330000000000000) - (subnormal ? 0x1p52 + 1077.0 : 0x1p52 + 1023.0);
  return {whole, from_bits(bits - (exponent << 52) + 0x3ff0000000000000) - 1.0};
}
// log(1 + f) = f - f^2/2 + s (f^2/2 + log_kernel(s^2)), s = f / (2 + f)
RL_INLINE double log_kernel(double z) {
  return z * polynomial(z, 0.13087330476603717, 0.1326870577297007, 0.15386242218879392, 0.1818179559386321,
                        0.22222222392147034, 0.285714285708017, 0.4000000000000088, 0.6666666666666666);
}
// Replaces the result where x is not positive and finite.
RL_INLINE double log_special(double x, double result) {
  result = x < kInf ? result : x;
  const double at_most_zero = x == 0.0 ? -kInf : kNan;
  return x <= 0.0 ? at_most_zero : result;
}
RL_INLINE double log_with_rest(double x, double rest) {
  const Split a = split_exponent(x);
  const double s = a.f / (2.0 + a.f), half = 0.5 * a.f * a.f;
  return a.n * kLn2High - ((half - (s * (half + log_kernel(s * s)) + (a.n * kLn2Low + rest))) - a.f);
}
RL_INLINE double log(double x) { return log_special(x, log_with_rest(x, 0.0)); }
RL_INLINE double log1p(double x) {
  const double u = 1.0 + x, back = u - 1.0;
  const double lost = (1.0 - (u - back)) + (x - back);
  const double result = log_special(u, log_with_rest(u, lost / u));
  return fabs(x) < 0x1p-54 ? x : result;
}
// log(1 + f) as high + low, high with 32 bits to spare for an exact product
struct HighLow {
  double high, low;
};
RL_INLINE HighLow log_in_parts(double f) {
  const double s = f / (2.0 + f), half = 0.5 * f * f;
  const double high = from_bits(bits_of(f - half) & 0xffffffff00000000);
  return {high, ((f - high) - half) + s * (half + log_kernel(s * s))};
}
RL_INLINE double log2(double x) {
  constexpr double kHigh = 0x1.71547p+0, kLow = 0x1.94ae0bf85ddf4p-22;  // 1 / ln 2
  const Split a = split_exponent(x);
  const HighLow l = log_in_parts(a.f);
  const double high = l.high * kHigh, low = (l.low + l.high) * kLow + l.low * kHigh;
  const double sum = a.n + high;
  return log_special(x, (low + ((a.n - sum) + high)) + sum);
}
RL_INLINE double log10(double x) {
  constexpr double kHigh = 0x1.bcb7bp-2, kLow = 0x1.526e50e32a6abp-26;           // 1 / ln 10
  constexpr double kTwoHigh = 0x1.34413509p-2, kTwoLow = 0x1.ef3fde623e256p-35;  // log10 2
  const Split a = split_exponent(x);
  const HighLow l = log_in_parts(a.f);
  const double high = l.high * kHigh, n = a.n * kTwoHigh;
  const double low = a.n * kTwoLow + ((l.low + l.high) * kLow + l.low * kHigh);
  const double sum = n + high;
  return log_special(x, (low + ((n - sum) + high)) + sum);
}

// ---- roots

RL_INLINE double rsqrt(double x) { return 1.0 / sqrt(x); }
RL_INLINE double hypot(double x, double y) {
  const double a = fabs(x), b = fabs(y);
  const double high = a > b ? a : b, low = a > b ? b : a;
  const double ratio = low / high;
  double result = high * sqrt(1.0 + ratio * ratio);
  result = high == 0.0 ? low : result;
  result = (x != x) | (y != y) ? x + y : result;
  return (a == kInf) | (b == kInf) ? kInf : result;
}

// ---- trigonometric functions

struct ReducedParts {
  double r, rest;     // x - quadrant * pi / 2 = r + rest, r within [-pi/4, pi/4]
  uint64_t quadrant;  // its two low bits count
};
// a - b = difference + rest exactly
RL_INLINE void subtract(double a, double b, double& difference, double& rest) {
  difference = a - b;
  const double back = difference - a;
  rest = (a - (difference - back)) - (b + back);
}
RL_INLINE ReducedParts reduce(double x) {
  const double n = x * 0x1.45f306dc9c883p-1 + kRounder;
  const double k = n - kRounder;
  double r1, rest1, r2, rest2;
  subtract(x - k * kHalfPi1, k * kHalfPi2, r1, rest1);  // the first difference is exact
  subtract(r1, k * kHalfPi3, r2, rest2);
  const double low = (rest1 + rest2) - k * kHalfPi4;
  const double r = r2 + low;
  return {r, (r2 - r) + low, bits_of(n)};
}
RL_INLINE double sin_kernel(double r, double rest, double z) {
  const double p = polynomial(z, 1.5918115263265974e-10, -2.505113165023518e-08, 2.7557316101617874e-06,
                              -0.00019841269836756774, 0.008333333333330948, -0.16666666666666666);
  return r + (r * z * p + rest * (1.0 - 0.5 * z));
}
RL_INLINE double cos_kernel(double r, double rest, double z) {
  const double p = polynomial(z, -1.1382623647474604e-11, 2.087614614655861e-09, -2.7557317271145144e-07,
                              2.480158729876456e-05, -0.0013888888888887398, 0.041666666666666664);
  const double half = 0.5 * z, high = 1.0 - half;
  return high + (((1.0 - high) - half) + (z * z * p - r * rest));
}
RL_INLINE double sin_of(ReducedParts a) {
  const double z = a.r * a.r, s = sin_kernel(a.r, a.rest, z), c = cos_kernel(a.r, a.rest, z);
  return flip_sign(a.quadrant & 1 ? c : s, a.quadrant >> 1);
}
RL_INLINE double sin(double x) {
  const double result = sin_of(reduce(x));
  return x == 0.0 ? x : result;  // -0
}
RL_INLINE double cos(double x) {
  ReducedParts a = reduce(x);
  a.quadrant += 1;
  return sin_of(a);
}
RL_INLINE double tan(double x) {
  const ReducedParts a = reduce(x);
  const double z = a.r * a.r, s = sin_kernel(a.r, a.rest, z), c = cos_kernel(a.r, a.rest, z);
  const bool odd = a.quadrant & 1;
  const double result = (odd ? c : s) / flip_sign(odd ? s : c, odd);
  return x == 0.0 ? x : result;
}
RL_INLINE bool sin_in_range(double x) { return fabs(x) < kTrigLimit; }
RL_INLINE bool cos_in_range(double x) { return sin_in_range(x); }
RL_INLINE bool tan_in_range(double x) { return sin_in_range(x); }

// ---- inverse trigonometric functions

// (atan(t) - t) / t^3 for |t| <= tan(pi / 8), z = t * t
RL_INLINE double atan_kernel(double z) {
  return polynomial(z, -0.0191659065063043, 0.03922268882347632, -0.050851391487066376, 0.05858089538610203,
                    -0.06664504610032648, 0.0769218270524632, -0.09090904557214267, 0.11111111014741562,
                    -0.1428571428466014, 0.1999999999999549, -0.3333333333333333);
}
// atan(low / high) for low, high >= 0
RL_INLINE double atan_of_ratio(double low, double high) {
  // Rotated by pi/4 or pi/2 where the ratio is large.
  const bool above = low > 0.41421356237309503 * high, far = low > 2.414213562373095 * high;
  const double top = far ? -high : above ? low - high : low;
  const double bottom = far ? low : above ? low + high : high;
  const double base = far ? kHalfPi : above ? 0.5 * kHalfPi : 0.0;
  const double rest = far ? kHalfPiRest : above ? 0.5 * kHalfPiRest : 0.0;
  const double t = top / bottom, z = t * t;
  return base + (t + (t * z * atan_kernel(z) + rest));
}
RL_INLINE double atan(double x) {
  const double a = fabs(x);
  const double result = atan_of_ratio(a, 1.0);
  return copysign(a > 0x1p60 ? kHalfPi : result, x);
}
RL_INLINE double atan2(double y, double x) {
  double a = fabs(x), b = fabs(y);
  const bool both = (a == kInf) & (b == kInf), none = (a == 0.0) & (b == 0.0);
  a = both | none ? 1.0 : a;
  b = both ? 1.0 : b;
  // Scaled, so that a sum of the two stays finite and a quotient stays normal.
  const bool huge = (a > 0x1p1000) | (b > 0x1p1000);
  const double p = atan_of_ratio(huge ? b * 0x1p-100 : b, huge ? a * 0x1p-100 : a);
  const double first = b == kInf ? kHalfPi : p;
  const double result = copysign(sign_of_bits(x) ? (kPi - (first - 2.0 * kHalfPiRest)) : first, y);
  return (x != x) | (y != y) ? x + y : result;
}
// (asin(s) - s) / s^3 for 0 <= s <= 1/2, z = s * s
RL_INLINE double asin_kernel(double z) {
  return polynomial(z, 0.02877844261259304, -0.014881409392818066, 0.017419357964884856, 0.00545087818772055,
                    0.010324318288744113, 0.011478952690257387, 0.013971235301124539, 0.017352391265909227,
                    0.022372173002005596, 0.030381944137085216, 0.04464285714637338, 0.07499999999998425,
                    0.16666666666666669);
}
RL_INLINE double asin(double x) {
  const double a = fabs(x);
  const bool large = a > 0.5;
  const double z = large ? 0.5 - 0.5 * a : a * a;
  const double s = large ? sqrt(z) : a;
  const double p = s * z * asin_kernel(z);
  const double of_large = kHalfPi - (2.0 * s - (kHalfPiRest - 2.0 * p));
  return copysign(large ? of_large : s + p, x);
}
RL_INLINE double acos(double x) {
  const double a = fabs(x);
  const bool large = a > 0.5;
  const double z = large ? 0.5 - 0.5 * a : a * a;
  const double s = large ? sqrt(z) : x;
  const double p = s * z * asin_kernel(z);
  const double of_large = x < 0.0 ? 2.0 * kHalfPi - 2.0 * (s + (p - kHalfPiRest)) : 2.0 * (s + p);
  return large ? of_large : kHalfPi - (s + (p - kHalfPiRest));
}

// ---- inverse hyperbolic functions

RL_INLINE double asinh(double x) {
  const double a = fabs(x);
  const bool large = a > 0x1p28;
  const double result = log1p(large ? a - 1.0 : a + a * a / (1.0 + sqrt(1.0 + a * a))) + (large ? kLn2 : 0.0);
  return copysign(result, x);
}
RL_INLINE double acosh(double x) {
  const bool large = x > 0x1p28;
  const double t = x - 1.0;
  const double result = log1p(large ? t : t + sqrt(t * (t + 2.0))) + (large ? kLn2 : 0.0);
  return x < 1.0 ? kNan : result;
}
RL_INLINE double atanh(double x) {
  const double a = fabs(x);
  return copysign(0.5 * log1p(2.0 * a / (1.0 - a)), x);
}

// ---- error functions

// erf for |x| <= 1
RL_INLINE double erf_kernel(double x) {
  const double z = x * x;
  const double p =
      polynomial(z, -8.101535898658006e-10, 1.3884466569058643e-08, -1.6246555985753571e-07, 1.645238885772104e-06,
                 -1.4925136993053747e-05, 0.00012055315499982439, -0.0008548326651244579, 0.005223977620809813,
                 -0.02686617064483512, 0.11283791670954386, -0.3761263890318375);
  return x * 0x1.20dd750429b6dp+0 + x * (0x1.1ae3a914fed8p-56 + z * p);
}
// exp(a^2) erfc(a) for a >= 1/2: (1 + 2a) times it is smooth in (a - 4) / (a + 4).
RL_INLINE double erfcx_kernel(double a) {
  const double large = a > 1e300 ? 1e300 : a;
  const double u = (large - 4.0) / (large + 4.0);
  const double p = polynomial(
      u, -1.5094011568474567e-09, -1.7587569131550358e-08, 7.774361005302237e-08, 8.41000664658662e-08,
      -7.85261329451825e-07, 2.7640192525956696e-07, 5.6807438673535554e-06, -1.12073036720784e-05,
      -2.4386151543427783e-05, 0.00015061454709067168, -0.00019926046299131533, -0.0007577711995687234,
      0.0050319706698057, -0.016197734426606665, 0.037167515459556266, -0.06633036577503158, 0.09373283500331438,
      -0.10103906603820055, 0.06809705425454203, 0.015379652102657083, -0.1396211168405611, 1.2329951186255523);
  return p / (1.0 + 2.0 * a);
}
// exp(s a^2) for s = 1 or -1, with a^2 in two parts: its rounding error alone would cost hundreds of ulps.
RL_INLINE double exp_of_square(double a, double s) {
  const double high = from_bits(bits_of(a) & 0xfffffffff8000000);
  const double d = s * (a - high) * (a + high);
  return exp(s * high * high) * (1.0 + d * (1.0 + d * (0.5 + d * (1.0 / 6.0))));
}
// erfc for a >= 1/2
RL_INLINE double erfc_kernel(double magnitude) {
  const double a = magnitude > 28.0 ? 28.0 : magnitude;
  return exp_of_square(a, -1.0) * erfcx_kernel(a);
}
RL_INLINE double erf(double x) {
  const double a = fabs(x);
  const double far = copysign(1.0 - erfc_kernel(a), x);
  return a > 1.0 ? far : erf_kernel(x);
}
RL_INLINE double erfc(double x) {
  const double c = erfc_kernel(fabs(x));
  const double far = x < 0.0 ? 2.0 - c : c;
  const double near = 1.0 - erf_kernel(x);
  return fabs(x) > 0.5 ? far : near;
}
RL_INLINE double erfcx(double x) {
  const double a = fabs(x);
  const double square = exp_of_square(a > 28.0 ? 28.0 : a, 1.0), kernel = erfcx_kernel(a);
  const double far = x < 0.0 ? 2.0 * square - kernel : kernel;
  return a > 0.5 ? far : square * (1.0 - erf_kernel(x));
}
RL_INLINE float erfcx(float x) { return static_cast<float>(erfcx(static_cast<double>(x))); }
RL_INLINE double ndtr(double x) { return 0.5 * erfc(-x * 0x1.6a09e667f3bcdp-1); }
RL_INLINE double erfinv(double y) {
  const double a = fabs(y), c = 1.0 - a;
  const double w = -log(c * (1.0 + a)), s = sqrt(w);
  const double near = polynomial(w, -5.480986588340674e-09, 1.438254372546854e-07, -1.2273974139540222e-06,
                                 7.37494504618361e-08, 5.641565539933546e-05, -0.00014847986596820705,
                                 -0.0023135366467075297, 0.011538470812838418, 0.23201571461284018, 0.8862268635882613);
  const double far = polynomial(s, -4.190171296637292e-06, 0.0001758567411665384, -0.0032659269785907884,
                                0.03524003864138626, -0.24361052845183234, 1.1198786635010651, -3.428446738398531,
                                6.756558363699546, -6.797558576385165, 3.8531490730800577);
  const double x = a * (w > 6.0 ? far : near);
  // One step of Halley's method, which triples the number of right digits.
  const double above = a > 0.55 ? c - erfc_kernel(x) : erf_kernel(x > 1.0 ? 1.0 : x) - a;
  const double d = above / (0x1.20dd750429b6dp+0 * exp(-x * x));
  const double result = copysign(x - d / (1.0 + x * d), y);
  return a == 1.0 ? copysign(kInf, y) : result;
}

}  // namespace m
}  // namespace
}  // namespace rl
