// Elementary functions of double as straight-line code: see vec_math.h. Errors stay within 2 ulp (cosh, sinh and erfc:
// 4).
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
constexpr double kHalfPiTail = -0x1.f1976b7ed8fbcp-110;

// ---- exponentials

// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2
template <DoubleLanes V>
RL_INLINE V exp_kernel(V r) {
  return polynomial(r, 2.5100375832561234e-08, 2.7620075879983367e-07, 2.7557268480310024e-06, 2.4801521322368692e-05,
                    0.00019841269863040545, 0.0013888888917196719, 0.008333333333330065, 0.041666666666624164,
                    0.16666666666666669, 0.5000000000000001);
}
// p 2^n, rounded once when it is subnormal.
template <DoubleLanes V>
RL_INLINE V scale(V p, V n) {
#if defined(__AVX512F__)
  if constexpr (is_vector_v<V>)
    return (V)_mm512_scalef_pd((__m512d)p, (__m512d)n);
  else
#endif
  {
    // In two factors, neither of which leaves the exponent's range.
    const V half = fma(n, 0.5, kRounder);
    return p * power_of_two(half) * power_of_two((n - (half - kRounder)) + kRounder);
  }
}
// e^(x + rest), rest small
template <DoubleLanes V>
RL_INLINE V exp_of_sum(V x, V rest) {
  const V t = limit(x, -746.0, 710.0);
  const V n = fma(t, kLog2E, kRounder) - kRounder;
  const V r = fma(n, -kLn2High, t) - fma(n, kLn2Low, -rest);
  return scale(1.0 + fma(r * r, exp_kernel(r), r), n);
}
template <DoubleLanes V>
RL_INLINE V exp(V x) {
  const V t = limit(x, -746.0, 710.0);
  const V n = fma(t, kLog2E, kRounder) - kRounder;
  const V r = fma(n, -kLn2Low, fma(n, -kLn2High, t));
  return scale(1.0 + fma(r * r, exp_kernel(r), r), n);
}
template <DoubleLanes V>
RL_INLINE V exp2(V x) {
  const V t = limit(x, -1080.0, 1025.0);
  const V n = (t + kRounder) - kRounder;
  const V f = t - n;
  const V q = polynomial(f, 2.5725082444272935e-11, 4.454960975460706e-10, 7.0548999554389264e-09,
                         1.0178062443959398e-07, 1.3215486802905462e-06, 1.5252733829839213e-05, 0.0001540353039337591,
                         0.0013333558146416933, 0.009618129107628479, 0.0555041086648216, 0.24022650695910072);
  return scale(1.0 + fma(f * f, q, f * kLn2), n);
}
RL_INLINE double expm1(double x) {
  const double t = limit(x, -60.0, 710.0);
  const double n = fma(t, kLog2E, kRounder) - kRounder;
  const double high = fma(n, -kLn2High, t), low = n * kLn2Low;
  const double r = high - low, lost = (high - r) - low;
  const double p = r + fma(r * r, exp_kernel(r), lost);
  const double half_scale = power_of_two((n - 1.0) + kRounder);
  const double result = 2.0 * fma(half_scale, p, half_scale - 0.5);
  return fabs(x) < 0x1p-54 ? x : result;
}
template <DoubleLanes V>
RL_INLINE V sigmoid(V x) {
  const V e = exp(-fabs(x));
  return (x < 0.0 ? e : lanes_of<V>(1.0)) / (1.0 + e);
}
RL_INLINE double tanh(double x) {
  const double t = expm1(limit(2.0 * fabs(x), 0.0, 60.0));
  return copysign(t / (t + 2.0), x);
}
RL_INLINE double sinh(double x) {
  const double a = fabs(x), t = at_most(a, 710.5);
  const double n = fma(t, kLog2E, kRounder), k = n - kRounder, r = fma(k, -kLn2Low, fma(k, -kLn2High, t));
  const double quarter = power_of_two(n - 2.0);
  const double half = 2.0 * fma(quarter, fma(r * r, exp_kernel(r), r), quarter - 0.25);  // of e^a - 1
  const double finite = at_most(half, 0x1p1000), result = half + finite / (2.0 * finite + 1.0);
  return a < 0x1p-28 ? x : copysign(result, x);
}
RL_INLINE double cosh(double x) {
  const double a = at_most(fabs(x), 712.0);
  const double n = fma(a, kLog2E, kRounder) - kRounder, r = fma(n, -kLn2Low, fma(n, -kLn2High, a));
  const double half = scale(1.0 + fma(r * r, exp_kernel(r), r), n - 1.0);
  return half + 0.25 / half;
}

// ---- logarithms

// x = 2^n (1 + f) with 1 + f within [2/3, 4/3). n is infinite, and f finite, for 0 and infinity; f is NaN where the
// logarithm is.
template <DoubleLanes V>
RL_INLINE LogParts<V> log_reduce(V x) {
#if defined(__AVX512F__)
  if constexpr (is_vector_v<V>) {
    const __m512d m = _mm512_getmant_pd((__m512d)x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_nan);
    const __m512d n = _mm512_getexp_pd((__m512d)x);
    const __mmask8 above = _mm512_cmp_pd_mask(m, _mm512_set1_pd(0x1.5555555555556p+0), _CMP_GE_OQ);
    return {(V)_mm512_mask_add_pd(n, above, n, _mm512_set1_pd(1.0)),
            (V)_mm512_mask_mul_pd(m, above, m, _mm512_set1_pd(0.5)) - 1.0};
  }
#endif
  const auto subnormal = x < 0x1p-1022;
  const Bits<V> bits = bits_of(subnormal ? x * 0x1p54 : x);
  const Bits<V> exponent = (bits - 0x3fe5555555555556u) & 0xfff0000000000000u;
  const V whole = from_bits(((exponent >> 52) ^ 0x800u) + 0x4330000000000000u) -
                  (subnormal ? lanes_of<V>(0x1p52 + 2102.0) : lanes_of<V>(0x1p52 + 2048.0));
  const V f = from_bits(bits - exponent) - 1.0, infinity = lanes_of<V>(kInf), zero = lanes_of<V>(0.0);
  return {x <= 0.0       ? -infinity
          : x < infinity ? whole
                         : infinity,
          x > 0.0 ? (x < infinity ? f : zero) : (x == 0.0 ? zero : lanes_of<V>(kNan))};
}
// log(1 + f) = f - f^2/2 + s (f^2/2 + log_kernel(s^2)), s = f / (2 + f)
template <DoubleLanes V>
RL_INLINE V log_kernel(V z) {
  return z * polynomial(z, 0.13087330476603717, 0.1326870577297007, 0.15386242218879392, 0.1818179559386321,
                        0.22222222392147034, 0.285714285708017, 0.4000000000000088, 0.6666666666666666);
}
template <DoubleLanes V>
RL_INLINE V log_of_parts(V n, V f, V rest) {
  const V s = f / (2.0 + f), half = 0.5 * f * f;
  // n is infinite for 0 and infinity, where its parts must not cancel.
  return fma(n, kLn2High, f - (half - fma(s, half + log_kernel(s * s), fma(n, kLn2Low, rest))));
}
template <DoubleLanes V>
RL_INLINE V log(V x) {
  const auto [n, f] = log_reduce(x);
  return log_of_parts(n, f, V{});
}
RL_INLINE double log1p(double x) {
  const double u = 1.0 + x, back = u - 1.0;
  const double lost = (1.0 - (u - back)) + (x - back);
  const auto [n, f] = log_reduce(u);
  const double result = log_of_parts(n, f, fabs(x) < 0x1p60 ? lost / u : 0.0);
  return fabs(x) < 0x1p-54 ? x : u == 0.0 ? -kInf : result;
}
// log(1 + f) as high + low
template <DoubleLanes V>
struct HighLow {
  V high, low;
};
template <DoubleLanes V>
RL_INLINE HighLow<V> log_in_parts(V f) {
  const V s = f / (2.0 + f), half = 0.5 * f * f, high = f - half;
  return {high, fma(s, half + log_kernel(s * s), (f - high) - half)};
}
template <DoubleLanes V>
RL_INLINE V log2(V x) {
  constexpr double kHigh = 0x1.71547652b82fep+0, kLow = 0x1.777d0ffda0d24p-56;  // 1 / ln 2
  const auto [n, f] = log_reduce(x);
  const auto [high, low] = log_in_parts(f);
  return fma(high, kHigh, n) + fma(low, kHigh, high * kLow);
}
template <DoubleLanes V>
RL_INLINE V log10(V x) {
  constexpr double kHigh = 0x1.bcb7b1526e50ep-2, kLow = 0x1.95355baaafad3p-57;   // 1 / ln 10
  constexpr double kTwoHigh = 0x1.34413509p-2, kTwoLow = 0x1.ef3fde623e256p-35;  // log10 2
  const auto [n, f] = log_reduce(x);
  const auto [high, low] = log_in_parts(f);
  return fma(high, kHigh, n * kTwoHigh) + fma(n, kTwoLow, fma(low, kHigh, high * kLow));
}

// ---- powers

// log of a positive number as high + low, to about 2^-66 of it: 2 atanh(s) with s = f / (2 + f), its first two terms in
// two parts each (the sums and products of T. J. Dekker, 1971).
template <DoubleLanes V>
RL_INLINE HighLow<V> long_log(V x) {
  const auto [n, f] = log_reduce(x);
  const V d = 2.0 + f, d_low = f - (d - 2.0), inverse = 1.0 / d;
  const V s = f * inverse, s_low = fma(-s, d_low, fma(-s, d, f)) * inverse;
  const V z = s * s, z_low = fma(s + s, s_low, fma(s, s, -z));
  // (2 atanh(s) - 2s) / s^3 = 2/3 + rest
  const V rest = z * polynomial(z, 0.1219635756978303, 0.11652734508665301, 0.13337185364142076, 0.1538454240880213,
                                0.1818181893024613, 0.22222222218460067, 0.28571428571435764, 0.39999999999999997);
  const V u = rest + 0x1.5555555555555p-1, u_low = (0x1.5555555555555p-1 - u) + rest + 0x1.5555555555555p-55;
  const V cube = s * z, cube_low = fma(s, z, -cube) + fma(s, z_low, s_low * z);
  const V w = cube * u, w_low = fma(cube, u, -w) + fma(cube, u_low, cube_low * u);
  const V twice = s + s, sum = twice + w, sum_low = (twice - sum) + w + fma(s_low, 2.0, w_low);
  const V whole = n * kLn2High, high = whole + sum;
  return {high, (whole - high) + sum + fma(n, kLn2Low, sum_low)};
}
template <DoubleLanes V>
RL_INLINE V pow(V base, V exponent) {
  if constexpr (!kFuses) {
    V result;
    if constexpr (is_vector_v<V>) {
      for (int i = 0; i < kWidth<double>; ++i) result[i] = __builtin_pow(base[i], exponent[i]);
    } else {
      result = __builtin_pow(base, exponent);
    }
    return result;
  } else {
    const V m = fabs(base), a = fabs(exponent);
    const auto [high, low] = long_log(m);
    const V p = exponent * high, p_low = fma(exponent, low, fma(exponent, high, -p));
    const V magnitude = exp_of_sum(p, fabs(p) < 1000.0 ? p_low : V{});
    // Adding 2^52 leaves the whole number in the low bits.
    const V shifted = a + 0x1p52;
    const auto whole = (a >= 0x1p52) | (shifted - 0x1p52 == a);
    const Bits<V> low_bit = bits_of(a < 0x1p52 ? shifted : a) << 63;
    // A negative base: whole exponents only. -0 has a sign, too.
    const Bits<V> sign = (whole & (a < 0x1p53)) ? bits_of(base) & low_bit : Bits<V>{};
    const V result = from_bits(bits_of(magnitude) | sign), not_a_number = lanes_of<V>(kNan);
    const V right = ((base < 0.0) & (m < kInf) & (whole == 0)) ? not_a_number : result;
    const auto one = (exponent == 0.0) | (base == 1.0) | ((base == -1.0) & (a == kInf));
    return one ? lanes_of<V>(1.0) : right;
  }
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
  const double n = fma(x, 0x1.45f306dc9c883p-1, kRounder);
  const double k = n - kRounder;
  if constexpr (kFuses) {
    const double first = fma(k, -kHalfPi, x), second = k * kHalfPiRest, r = first - second;
    return {r, ((first - r) - second) - fma(k, kHalfPiTail, fma(k, kHalfPiRest, -second)), bits_of(n)};
  }
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
  return r + fma(r * z, p, rest * fma(z, -0.5, 1.0));
}
RL_INLINE double cos_kernel(double r, double rest, double z) {
  const double p = polynomial(z, -1.1382623647474604e-11, 2.087614614655861e-09, -2.7557317271145144e-07,
                              2.480158729876456e-05, -0.0013888888888887398, 0.041666666666666664);
  const double half = 0.5 * z, high = 1.0 - half;
  return high + (((1.0 - high) - half) + fma(z * z, p, -(r * rest)));
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
template <DoubleLanes V>
RL_INLINE V atan_kernel(V z) {
  return polynomial(z, -0.0191659065063043, 0.03922268882347632, -0.050851391487066376, 0.05858089538610203,
                    -0.06664504610032648, 0.0769218270524632, -0.09090904557214267, 0.11111111014741562,
                    -0.1428571428466014, 0.1999999999999549, -0.3333333333333333);
}
// atan(low / high) for low, high >= 0
template <DoubleLanes V>
RL_INLINE V atan_of_ratio(V low, V high) {
  // Rotated by pi/4 or pi/2 where the ratio is large.
  const auto above = low > 0.41421356237309503 * high, far = low > 2.414213562373095 * high;
  const V top = far ? -high : above ? low - high : low;
  const V bottom = far ? low : above ? low + high : high;
  const V turns = far ? lanes_of<V>(1.0) : above ? lanes_of<V>(0.5) : V{};
  const V t = top / bottom, z = t * t;
  return turns * kHalfPi + (t + (t * z * atan_kernel(z) + turns * kHalfPiRest));
}
RL_INLINE double atan(double x) {
  const double a = fabs(x);
  const double result = atan_of_ratio(a, 1.0);
  return copysign(a > 0x1p60 ? kHalfPi : result, x);
}
template <DoubleLanes V>
RL_INLINE V atan2(V y, V x) {
  const V a = fabs(x), b = fabs(y), one = lanes_of<V>(1.0);
  const auto both = (a == kInf) & (b == kInf), none = (a == 0.0) & (b == 0.0);
  const V run = (both | none) ? one : a, rise = both ? one : b;
  // Scaled, so that a sum of the two stays finite and a quotient stays normal.
  const V unit = ((run > 0x1p1000) | (rise > 0x1p1000)) ? lanes_of<V>(0x1p-100) : one;
  const V p = atan_of_ratio(rise * unit, run * unit);
  const V first = b == kInf ? (both ? p : lanes_of<V>(kHalfPi)) : p;
  const V turned = kPi - (first - 2.0 * kHalfPiRest);
  const V result = copysign(copysign(one, x) < 0.0 ? turned : first, y);
  return ((x != x) | (y != y)) ? x + y : result;
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

template <DoubleLanes V>
RL_INLINE V erf(V x) {
  return copysign(piecewise(piece_of_width(at_most(fabs(x), 5.99), 0.375), kErfPieces), x);
}
// exp(a^2) erfc(a) for 0 <= a < 30
template <DoubleLanes V>
RL_INLINE V erfcx_kernel(V a) {
  return piecewise(piece_of_octave(a, 2.0), kErfcxPieces);
}
// exp(s a^2) for s = 1 or -1, with a^2 in two parts: its rounding error alone would cost hundreds of ulps.
template <DoubleLanes V>
RL_INLINE V exp_of_square(V a, double s) {
  const V high = from_bits(bits_of(a) & 0xfffffffff8000000u);
  return exp_of_sum(s * high * high, s * (a - high) * (a + high));
}
template <DoubleLanes V>
RL_INLINE V erfc(V x) {
  const V a = at_most(fabs(x), 28.0), c = exp_of_square(a, -1.0) * erfcx_kernel(a);
  return x < 0.0 ? 2.0 - c : c;
}
template <DoubleLanes V>
RL_INLINE V erfcx(V x) {
  const V a = fabs(x), near = at_most(a, 28.0), kernel = erfcx_kernel(near);
  // From 28 on the first terms of 1 / (a sqrt(pi)) (1 - 1/(2a^2) + 3/(4a^4) - ...), DLMF 7.12.1
  const V inverse = 1.0 / a, z = inverse * inverse;
  const V far = inverse * (0x1.20dd750429b6dp-1 * polynomial(z, 105.0 / 16, -15.0 / 8, 3.0 / 4, -0.5, 1.0));
  const V right = a > 28.0 ? far : kernel;
  return x < 0.0 ? fma(exp_of_square(near, 1.0), 2.0, -right) : right;
}
RL_INLINE float erfcx(float x) { return static_cast<float>(erfcx(static_cast<double>(x))); }
template <DoubleLanes V>
RL_INLINE V ndtr(V x) {
  return 0.5 * erfc(-x * 0x1.6a09e667f3bcdp-1);
}
template <DoubleLanes V>
RL_INLINE V erfinv(V y) {
  const V a = fabs(y), w = -log(one_minus_square(a));
  const V x = y * piecewise(piece_of_octave(w, 4.0), kErfinvPieces);
  return a == 1.0 ? copysign(lanes_of<V>(kInf), y) : x;
}

// The inverse of ndtr, sqrt(2) erfinv(y) with y = 2p - 1: 1 - y^2 is 4p (1 - p), exact enough for the smallest p.
template <DoubleLanes V>
RL_INLINE V ndtri(V p) {
  const V y = 2.0 * p - 1.0;
  const V product = fabs(y) < 0.5 ? one_minus_square(y) : 4.0 * p * (1.0 - p);
  const V w = -log(product);
  const V near = piecewise(piece_of_octave(w, 4.0), kErfinvPieces);
  const V far = piecewise(piece_of_octave(w - 44.0, 64.0), kErfinvFarPieces);
  const V x = y * (0x1.6a09e667f3bcdp+0 * (w > 44.0 ? far : near));
  return ((p == 0.0) | (p == 1.0)) ? copysign(lanes_of<V>(kInf), y) : x;
}
RL_INLINE float ndtri(float p) { return static_cast<float>(ndtri(static_cast<double>(p))); }

}  // namespace m
}  // namespace
}  // namespace rl
