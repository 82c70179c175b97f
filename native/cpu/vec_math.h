// Elementary functions of float as straight-line code, which the compiler turns into vector code.
//
// No function branches or calls the C library. Products and sums are fused where `fma` says so and nowhere else, so
// every instruction set that fuses gives the same bits, in vectors, in what is left over at their end, and alone; the
// one that does not (x86-64 before AVX2) differs in last places. Most functions of float compute in float, within 2
// ulp; the `wide` ones compute in double, exact to about 2^-33. Infinities, NaN, signed zeros and subnormal numbers are
// as in C's Annex F. Polynomials were fitted for the least greatest error.
//
// Functions of `Lanes` take a float (or double) or a vector of them. A loop over the former is left to the compiler;
// the latter reach instructions for which there is no C (AVX-512's exponents), and give the same bits.
//
// Conditions are written so that NaN takes the "false" side into arithmetic that keeps it; a chain like
// x != x ? x : x < a ? a : b makes GCC compute everything once per case.
#pragma once

#include <cstdint>

#include "cpu/reduce_simd.h"
#include "cpu/vec_tables.h"

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

// ---- one number or a vector of them

template <class V>
inline constexpr bool is_vector_v = !std::is_arithmetic_v<V>;
template <class V>
concept FloatLanes = std::is_same_v<V, float> || std::is_same_v<V, Vector<float>>;
template <class V>
concept DoubleLanes = std::is_same_v<V, double> || std::is_same_v<V, Vector<double>>;
template <class V>
concept Lanes = FloatLanes<V> || DoubleLanes<V>;
template <Lanes V>
using Lane = std::conditional_t<FloatLanes<V>, float, double>;
template <Lanes V, class T>
using WithLanes = std::conditional_t<is_vector_v<V>, Vector<T>, T>;
template <Lanes V>
using Bits = WithLanes<V, std::conditional_t<FloatLanes<V>, uint32_t, uint64_t>>;

template <Lanes V>
  requires is_vector_v<V>
RL_INLINE Bits<V> bits_of(V x) {
  return (Bits<V>)x;
}
RL_INLINE Vector<float> from_bits(Vector<uint32_t> x) { return (Vector<float>)x; }
RL_INLINE Vector<double> from_bits(Vector<uint64_t> x) { return (Vector<double>)x; }
template <Lanes V>
  requires is_vector_v<V>
RL_INLINE V fabs(V x) {
  return from_bits(bits_of(x) & (~Bits<V>{} >> 1));
}
template <Lanes V>
  requires is_vector_v<V>
RL_INLINE V copysign(V x, V y) {
  const Bits<V> rest = ~Bits<V>{} >> 1;
  return from_bits((bits_of(x) & rest) | (bits_of(y) & ~rest));
}

// x, or a vector of it.
template <Lanes V>
RL_INLINE V lanes_of(Lane<V> x) {
  if constexpr (is_vector_v<V>) {
    return splat(x);
  } else {
    return x;
  }
}

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
constexpr bool kFuses = true;
RL_INLINE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
RL_INLINE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
constexpr bool kFuses = false;
template <class V>
RL_INLINE V fused(V a, V b, V c) {
  return a * b + c;
}
#endif
#if defined(__AVX512F__)
RL_INLINE Vector<float> fused(Vector<float> a, Vector<float> b, Vector<float> c) {
  return (Vector<float>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
RL_INLINE Vector<double> fused(Vector<double> a, Vector<double> b, Vector<double> c) {
  return (Vector<double>)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}
#elif defined(__FMA__)
RL_INLINE Vector<float> fused(Vector<float> a, Vector<float> b, Vector<float> c) {
  return (Vector<float>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
RL_INLINE Vector<double> fused(Vector<double> a, Vector<double> b, Vector<double> c) {
  return (Vector<double>)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}
#elif defined(__ARM_FEATURE_FMA)
template <class T>
  requires is_vector_v<T>
RL_INLINE T fused(T a, T b, T c) {
  T result;
  for (unsigned i = 0; i < sizeof(T) / sizeof(a[0]); ++i) result[i] = fused(a[i], b[i], c[i]);
  return result;
}
#endif
// a b + c. The factor and the summand may be numbers beside a vector.
template <Lanes V, class B, class C>
RL_INLINE V fma(V a, B b, C c) {
  const auto lanes = [](auto x) {
    if constexpr (std::is_same_v<decltype(x), V>) {
      return x;
    } else {
      return lanes_of<V>(static_cast<Lane<V>>(x));
    }
  };
  return fused(a, lanes(b), lanes(c));
}

// Bounds that NaN passes. The instructions keep their second operand then, which GCC does not know of vectors.
template <Lanes V>
RL_INLINE V at_least(V x, Lane<V> low) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<V, Vector<float>>) {
    return (V)_mm512_max_ps((__m512)splat(low), (__m512)x);
  } else if constexpr (std::is_same_v<V, Vector<double>>) {
    return (V)_mm512_max_pd((__m512d)splat(low), (__m512d)x);
  } else
#endif
    return x < low ? lanes_of<V>(low) : x;
}
template <Lanes V>
RL_INLINE V at_most(V x, Lane<V> high) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<V, Vector<float>>) {
    return (V)_mm512_min_ps((__m512)splat(high), (__m512)x);
  } else if constexpr (std::is_same_v<V, Vector<double>>) {
    return (V)_mm512_min_pd((__m512d)splat(high), (__m512d)x);
  } else
#endif
    return x > high ? lanes_of<V>(high) : x;
}
template <Lanes V>
RL_INLINE V limit(V x, Lane<V> low, Lane<V> high) {
  return at_most(at_least(x, low), high);
}

// A polynomial, highest coefficient first. The even and odd halves of a long one are independent, which halves the
// waiting for results. c[0] x^n + c[kStep] x^(n-1) + ...
template <int kTerms, int kStep, Lanes V>
RL_INLINE V horner(V x, const Lane<V>* c) {
  if constexpr (kTerms == 1) {
    return lanes_of<V>(c[0]);
  } else {
    return fma(horner<kTerms - 1, kStep>(x, c), x, c[(kTerms - 1) * kStep]);
  }
}
template <Lanes V, class... Coefficients>
RL_INLINE V polynomial(V x, Coefficients... coefficients) {
  constexpr int n = sizeof...(Coefficients);
  const Lane<V> c[n] = {static_cast<Lane<V>>(coefficients)...};
  if constexpr (n < 8) {
    return horner<n, 1>(x, c);
  } else {
    // The last coefficient is of x^0, so the terms with its parity are the even ones.
    const V z = x * x;
    const V with_last = horner<(n + 1) / 2, 2>(z, c + (n + 1) % 2);
    return fma(horner<n / 2, 2>(z, c + n % 2), x, with_last);
  }
}

// ---- polynomials on sixteen intervals (tools/fit_pieces.py)

// row[index] for the low four bits of the index.
template <Lanes V>
RL_INLINE V lookup(const Lane<V>* row, Bits<V> index) {
  if constexpr (!is_vector_v<V>) {
    return row[index & 15];
  } else {
#if defined(__AVX512F__)
    if constexpr (FloatLanes<V>)
      return (V)_mm512_permutexvar_ps((__m512i)index, _mm512_load_ps(row));
    else
      return (V)_mm512_permutex2var_pd(_mm512_load_pd(row), (__m512i)index, _mm512_load_pd(row + 8));
#elif defined(__AVX2__)
    if constexpr (FloatLanes<V>) {
      const __m256 low = _mm256_permutevar8x32_ps(_mm256_load_ps(row), (__m256i)index);
      const __m256 high = _mm256_permutevar8x32_ps(_mm256_load_ps(row + 8), (__m256i)index);
      return (V)_mm256_blendv_ps(low, high, (__m256)(index << 28));
    } else {
      return (V)_mm256_i64gather_pd(row, (__m256i)(index & 15), 8);
    }
#else
    V result;
    for (int i = 0; i < kWidth<Lane<V>>; ++i) result[i] = row[index[i] & 15];
    return result;
#endif
  }
}
template <Lanes V>
struct Piece {
  V t;  // from the interval's lower end
  Bits<V> index;
};
// (p(t) - p(0)) / t, and p(t)
template <Lanes V, int kTerms>
RL_INLINE V piecewise_rest(Piece<V> p, const Lane<V> (&c)[kTerms][16]) {
  V result = lookup<V>(c[0], p.index);
#pragma GCC unroll 16
  for (int k = 1; k < kTerms - 1; ++k) result = fma(result, p.t, lookup<V>(c[k], p.index));
  return result;
}
template <Lanes V, int kTerms>
RL_INLINE V piecewise(Piece<V> p, const Lane<V> (&c)[kTerms][16]) {
  return fma(piecewise_rest(p, c), p.t, lookup<V>(c[kTerms - 1], p.index));
}
// Intervals of one width, a power of two times 1 or 3, for 0 <= x < 16 widths.
template <Lanes V>
RL_INLINE Piece<V> piece_of_width(V x, Lane<V> width) {
  constexpr Lane<V> kRound = FloatLanes<V> ? static_cast<Lane<V>>(0x1.8p23) : static_cast<Lane<V>>(0x1.8p52);
  const V whole = fma(x, Lane<V>(1) / width, Lane<V>(-0.5)) + kRound;
  return {fma(whole - kRound, -width, x), bits_of(whole)};
}
// Four intervals for each doubling of x + start, for 0 <= x < 15 start.
template <Lanes V>
RL_INLINE Piece<V> piece_of_octave(V x, Lane<V> start) {
  constexpr int kShift = FloatLanes<V> ? 21 : 50;
  const Bits<V> bits = bits_of(x + start) >> kShift;
  return {x - (from_bits(bits << kShift) - start), bits - (bits_of(start) >> kShift)};
}

// 2^n for a whole n (given as n + kRounder), -1022 <= n <= 1023.
template <DoubleLanes V>
RL_INLINE V power_of_two(V n_plus_rounder) {
  return from_bits((bits_of(n_plus_rounder) + 1023) << 52);
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
constexpr float kFloatRounder = 0x1.8p23f;
// One that leaves n + 127 in the low bits, the exponent of 2^n.
constexpr float kPowerRounder = kFloatRounder + 127.0f;
template <FloatLanes V>
RL_INLINE V power_of_two(V n_plus_rounder) {
  return from_bits(bits_of(n_plus_rounder) << 23);
}
// p 2^n, rounded once when it is subnormal.
template <FloatLanes V>
RL_INLINE V scale(V p, V n_plus_rounder) {
#if defined(__AVX512F__)
  if constexpr (is_vector_v<V>)
    return (V)_mm512_scalef_ps((__m512)p, (__m512)(n_plus_rounder - kPowerRounder));
  else
#endif
  {
    // In two factors, neither of which leaves the exponent's range.
    const WithLanes<V, int32_t> n = (WithLanes<V, int32_t>)bits_of(n_plus_rounder), half = n >> 1;
    return p * from_bits((Bits<V>)(half + 64) << 23) * from_bits((Bits<V>)(n - half + 63) << 23);
  }
}
// x = n ln 2 + r, |r| <= ln 2 / 2
template <FloatLanes V>
struct ExpParts {
  V n_plus_rounder, r;
};
template <FloatLanes V>
RL_INLINE ExpParts<V> exp_reduce(V x) {
  const V whole = fma(x, 0x1.715476p+0f, kPowerRounder), n = whole - kPowerRounder;
  // ln 2 in two parts, the first for exact products
  return {whole, fma(n, -0x1.7f7d1cp-20f, fma(n, -0x1.62e4p-1f, x))};
}
// x + rest = n ln 2 + r
template <FloatLanes V>
RL_INLINE ExpParts<V> exp_reduce(V x, V rest) {
  const V whole = fma(x + rest, 0x1.715476p+0f, kPowerRounder), n = whole - kPowerRounder;
  return {whole, fma(n, -0x1.7f7d1cp-20f, fma(n, -0x1.62e4p-1f, x) + rest)};
}
// e^r
template <FloatLanes V>
RL_INLINE V exp_kernel(V r) {
  const V q = polynomial(r, 0x1.6a4f28p-10f, 0x1.12398p-7f, 0x1.5558aep-5f, 0x1.555492p-3f, 0x1.fffffcp-2f);
  return 1.0f + fma(r * r, q, r);
}
// e^r - 1
template <FloatLanes V>
RL_INLINE V expm1_kernel(V r) {
  const V q = polynomial(r, 0x1.9e6ef4p-13f, 0x1.6d3a3ap-10f, 0x1.1112dap-7f, 0x1.5554f8p-5f, 0x1.555554p-3f, 0.5f);
  return fma(r * r, q, r);
}
template <FloatLanes V>
RL_INLINE V exp(V x) {
  const auto [n, r] = exp_reduce(limit(x, -104.0f, 89.0f));
  return scale(exp_kernel(r), n);
}
template <FloatLanes V>
RL_INLINE V exp2(V x) {
  const V t = limit(x, -151.0f, 129.0f);
  const V n = t + kPowerRounder, f = t - (n - kPowerRounder);
  const V q = polynomial(f, 0.0001545336197353356f, 0.0013391093247266345f, 0.009618082183394121f, 0.05550356682386405f,
                         0.24022650761348438f, 0.693147188116349f);
  return scale(fma(f, q, 1.0f), n);
}
template <FloatLanes V>
RL_INLINE V sigmoid(V x) {
  const auto [n, r] = exp_reduce(at_least(-fabs(x), -104.0f));
  const V e = scale(exp_kernel(r), n);
  const V top = x < 0.0f ? e : lanes_of<V>(1.0f);
  // top / (1 + e), and what that leaves, so that the sum's rounding does not add to that of e.
  const V inverse = 1.0f / (1.0f + e), quotient = top * inverse;
  return fma(fma(-quotient, e, top - quotient), inverse, quotient);
}
template <FloatLanes V>
RL_INLINE V expm1(V x) {
  const auto [n, r] = exp_reduce(limit(x, -18.0f, 89.0f));
  const V half = power_of_two(n - 1.0f);  // the power itself may be infinite
  const V result = 2.0f * fma(half, expm1_kernel(r), half - 0.5f);
  return fabs(x) < 0x1p-25f ? x : result;  // subnormal numbers and -0
}
template <FloatLanes V>
RL_INLINE V tanh(V x) {
  const V a = fabs(x);
  const V z = x * x;
  const V near =
      fma(a * z, polynomial(z, -0x1.754f72p-8f, 0x1.520420p-6f, -0x1.b836c8p-5f, 0x1.1106fap-3f, -0x1.555532p-2f), a);
  // 1 - 2 / (e^2a + 1), a = n ln 2 / 2 + r
  const V t = at_most(a, 10.0f), whole = fma(t, 0x1.715476p+1f, kPowerRounder), n = whole - kPowerRounder;
  const V r = fma(n, -0x1.7f7d1cp-21f, fma(n, -0x1.62e4p-2f, t));
  const V e = polynomial(r, 0x1.6a4f28p-4f, 0x1.12398p-2f, 0x1.5558aep-1f, 0x1.555492p+0f, 0x1.fffffcp+0f, 2.0f, 1.0f);
  const V far = 1.0f - 2.0f / fma(power_of_two(whole), e, 1.0f);
  return from_bits(bits_of(a < 0.625f ? near : far) | (bits_of(x) & ~(~Bits<V>{} >> 1)));
}
RL_INLINE float sinh(float x) {
  const float a = fabs(x);
  const auto [n, r] = exp_reduce(at_most(a, 89.5f));
  const float quarter = power_of_two(n - 2.0f);
  const float half = 2.0f * fma(quarter, expm1_kernel(r), quarter - 0.25f);  // of e^a - 1
  const float finite = at_most(half, 0x1p100f), result = half + finite / (2.0f * finite + 1.0f);
  const float near =
      fma(a * (a * a), polynomial(a * a, 0x1.75c14ap-19f, 0x1.a02104p-13f, 0x1.1110e2p-7f, 0x1.555556p-3f), a);
  return copysign(a < 1.0f ? near : result, x);
}
RL_INLINE float cosh(float x) {
  const auto [n, r] = exp_reduce(at_most(fabs(x), 91.0f));
  const float half = scale(exp_kernel(r), n - 1.0f);
  return half + 0.25f / half;
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

// x = 2^n (1 + f) with 1 + f within [2/3, 4/3). n is infinite, and f finite, for 0 and infinity; f is NaN where the
// logarithm is.
template <Lanes V>
struct LogParts {
  V n, f;
};
template <FloatLanes V>
RL_INLINE LogParts<V> log_reduce(V x) {
#if defined(__AVX512F__)
  if constexpr (is_vector_v<V>) {
    const __m512 m = _mm512_getmant_ps((__m512)x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_nan),
                 n = _mm512_getexp_ps((__m512)x);
    const __mmask16 above = _mm512_cmp_ps_mask(m, _mm512_set1_ps(0x1.555556p+0f), _CMP_GE_OQ);
    return {(V)_mm512_mask_add_ps(n, above, n, _mm512_set1_ps(1.0f)),
            (V)_mm512_mask_mul_ps(m, above, m, _mm512_set1_ps(0.5f)) - 1.0f};
  }
#endif
  const auto subnormal = x < 0x1p-126f;
  const Bits<V> bits = bits_of(subnormal ? x * 0x1p23f : x);
  const Bits<V> exponent = (bits - 0x3f2aaaabu) & 0xff800000u;
  const V whole = from_bits(((exponent >> 23) ^ 0x100u) + 0x4b400000u) -
                  (subnormal ? lanes_of<V>(0x1.8p23f + 279.0f) : lanes_of<V>(0x1.8p23f + 256.0f));
  const V infinity = lanes_of<V>(static_cast<float>(kInf)), not_a_number = lanes_of<V>(static_cast<float>(kNan));
  const V n = x < infinity ? whole : infinity;
  const V f = from_bits(bits - exponent) - 1.0f;
  const V of_zero = x == 0.0f ? lanes_of<V>(0.0f) : not_a_number;
  return {x <= 0.0f ? -infinity : n, x > 0.0f ? (x < infinity ? f : lanes_of<V>(0.0f)) : of_zero};
}
// (log(1 + f) - f) / f^2
template <FloatLanes V>
RL_INLINE V log_kernel(V f) {
  return polynomial(f, -0x1.07a942p-3f, 0x1.1e72ap-3f, -0x1.f33cccp-4f, 0x1.1ed452p-3f, -0x1.559c2cp-3f, 0x1.99d05cp-3f,
                    -0x1.fffefap-3f, 0x1.555506p-2f, -0.5f);
}
template <FloatLanes V>
RL_INLINE V log(V x) {
  const auto [n, f] = log_reduce(x);
  return fma(n, 0x1.62e430p-1f, fma(f * f, log_kernel(f), f));
}
template <FloatLanes V>
  requires(kFuses || !is_vector_v<V>)
RL_INLINE V log2(V x) {
  if constexpr (!kFuses) {
    return static_cast<float>(wide_log2(x));
  } else {
    const auto [n, f] = log_reduce(x);
    // (log2(1 + f) - f / ln 2) / f^2
    const V q = polynomial(f, -0x1.7bcc5p-3f, 0x1.9cddeep-3f, -0x1.685266p-3f, 0x1.9de5bap-3f, -0x1.ecd0b8p-3f,
                           0x1.279d7p-2f, -0x1.7153ep-2f, 0x1.ec703p-2f, -0x1.715476p-1f);
    return fma(f, 0x1.715476p+0f, n) + fma(f * f, q, f * 0x1.4ae0cp-26f);
  }
}
template <FloatLanes V>
RL_INLINE V log10(V x) {
  const auto [n, f] = log_reduce(x);
  const V low = fma(f * f * log_kernel(f), 0x1.bcb7b2p-2f, fma(n, 0x1.3509f8p-18f, f * -0x1.5b235ep-27f));
  return fma(f, 0x1.bcb7b2p-2f, n * 0x1.344p-2f) + low;
}
// log(1 + x) for |x| up to 2^128, exact to 2^-33 relatively.
RL_INLINE double wide_log1p(double x) {
  const double u = 1.0 + x;
  const double lost = x - (u - 1.0);  // of x in u; what is lost of 1 does not matter
  const double result = wide_log2(u) * kLn2 + lost / u;
  return (u > 0.0) & (u < kInf) ? result : wide_log2(u);
}
RL_INLINE float log1p(float x) {
  const float u = 1.0f + x, back = u - 1.0f;
  const float lost = (1.0f - (u - back)) + (x - back);
  const auto [n, f] = log_reduce(u);
  // What was lost in units of 2^n; nothing where n is large or infinite.
  const float moderate = limit(n, -30.0f, 60.0f), unit = power_of_two(kPowerRounder - moderate);
  const float g = fabs(n) < 60.0f ? fma(lost, unit, f) : f;
  const float result = fma(n, 0x1.62e430p-1f, fma(g * g, log_kernel(g), g));
  return fabs(x) < 0x1p-25f ? x : result;  // subnormal numbers and -0
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

// The same in float, where products are fused: pi / 2 in three parts.
struct FloatReduced {
  float r;
  uint32_t quadrant;
};
RL_INLINE FloatReduced float_reduce(float x) {
  const float n = fma(x, 0x1.45f306p-1f, kFloatRounder), k = n - kFloatRounder;
  return {fma(k, 0x1.ee59dap-50f, fma(k, 0x1.777a5cp-25f, fma(k, -0x1.921fb6p+0f, x))), bits_of(n)};
}
RL_INLINE float flip_sign(float x, uint32_t flip) { return from_bits(bits_of(x) ^ (flip << 31)); }
RL_INLINE float sin_of(FloatReduced a) {
  const float r = a.r, z = r * r;
  const float s = fma(r * z, polynomial(z, 0x1.7a86b2p-19f, -0x1.a053f2p-13f, 0x1.11117p-7f, -0x1.555556p-3f), r);
  const float c = fma(z, fma(z, polynomial(z, 0x1.99911ap-16f, -0x1.6c0af4p-10f, 0x1.555548p-5f), -0.5f), 1.0f);
  return flip_sign(a.quadrant & 1 ? c : s, a.quadrant >> 1);
}
RL_INLINE float sin(float x) {
  if constexpr (kFuses) {
    return x == 0.0f ? x : sin_of(float_reduce(x));  // -0
  } else {
    return static_cast<float>(wide_sin_of(wide_reduce(x)));
  }
}
RL_INLINE float cos(float x) {
  if constexpr (kFuses) {
    FloatReduced a = float_reduce(x);
    a.quadrant += 1;
    return sin_of(a);
  } else {
    Reduced a = wide_reduce(x);
    a.quadrant += 1;
    return static_cast<float>(wide_sin_of(a));
  }
}
RL_INLINE float tan(float x) {
  if constexpr (kFuses) {
    // x = quadrant pi / 2 + r + rest
    const float n = fma(x, 0x1.45f306p-1f, kFloatRounder), k = n - kFloatRounder;
    const float first = fma(k, -0x1.921fb6p+0f, x), second = k * 0x1.777a5cp-25f, r = first + second, z = r * r;
    const float rest = ((first - r) + second) + fma(k, 0x1.ee59dap-50f, fma(k, 0x1.777a5cp-25f, -second));
    const float q = polynomial(z, 0x1.2cf84p-8f, -0x1.676f16p-12f, 0x1.6e0d94p-7f, 0x1.5a9d6p-6f, 0x1.bb0dbcp-5f,
                               0x1.110c8p-3f, 0x1.555564p-2f);
    const float t = r + fma(r * z, q, fma(rest, z, rest));
    const float result = bits_of(n) & 1 ? -1.0f / t : t;
    return x == 0.0f ? x : result;
  } else {
    const Reduced a = wide_reduce(x);
    const double z = a.r * a.r, s = wide_sin_kernel(a.r, z), c = wide_cos_kernel(z);
    const bool odd = a.quadrant & 1;
    return static_cast<float>((odd ? c : s) / flip_sign(odd ? s : c, odd));
  }
}
RL_INLINE bool sin_in_range(float x) { return fabs(x) < static_cast<float>(kTrigLimit); }
RL_INLINE bool cos_in_range(float x) { return sin_in_range(x); }
RL_INLINE bool tan_in_range(float x) { return sin_in_range(x); }

// ---- inverse trigonometric functions

constexpr float kFloatHalfPi = 0x1.921fb6p+0f, kFloatHalfPiRest = -0x1.777a5cp-25f;

// atan for 0 <= x <= 1
RL_INLINE float atan_kernel(float x) {
  const float z = x * x;
  const float q = polynomial(z, -0x1.d4984ap-10f, 0x1.64c1cep-7f, -0x1.fdfc1cp-6f, 0x1.da5ed4p-5f, -0x1.58155ep-4f,
                             0x1.c08f64p-4f, -0x1.2420b6p-3f, 0x1.9991e6p-3f, -0x1.55553ep-2f);
  return fma(x * z, q, x);
}
RL_INLINE float atan(float x) {
  const float a = fabs(x);
  const bool large = a > 1.0f;
  const float p = atan_kernel(large ? 1.0f / a : a);
  return copysign(large ? kFloatHalfPi - (p - kFloatHalfPiRest) : p, x);
}
RL_INLINE float atan2(float y, float x) {
  const float a = fabs(x), b = fabs(y);
  const bool steep = b > a;
  const float low = steep ? a : b, high = steep ? b : a;
  // 2^127 / 2^-126 would be subnormal only where the angle is.
  float ratio = low / high;
  ratio = high == 0.0f ? 0.0f : ratio;
  ratio = low == static_cast<float>(kInf) ? 1.0f : ratio;
  const float p = atan_kernel(ratio);
  const float first = steep ? kFloatHalfPi - (p - kFloatHalfPiRest) : p;
  const float result = copysign(sign_of_bits(x) ? 2.0f * kFloatHalfPi - (first - 2.0f * kFloatHalfPiRest) : first, y);
  return (x != x) | (y != y) ? x + y : result;
}
// asin(s) - s for 0 <= s <= 1/2, z = s * s
RL_INLINE float asin_rest(float s, float z) {
  const float q =
      polynomial(z, 0x1.34cd16p-5f, 0x1.d51562p-7f, 0x1.04d358p-5f, 0x1.6ca75p-5f, 0x1.3338acp-4f, 0x1.55554cp-3f);
  return s * z * q;
}
RL_INLINE float asin(float x) {
  const float a = fabs(x);
  const bool large = a > 0.5f;
  const float z = large ? 0.5f - 0.5f * a : a * a;
  const float s = large ? sqrt(z) : a, rest = asin_rest(s, z);
  return copysign(large ? fma(s, -2.0f, kFloatHalfPi) - fma(rest, 2.0f, -kFloatHalfPiRest) : s + rest, x);
}
RL_INLINE float acos(float x) {
  const float a = fabs(x);
  const bool large = a > 0.5f;
  const float z = large ? 0.5f - 0.5f * a : a * a;
  const float s = large ? sqrt(z) : a, p = s + asin_rest(s, z);
  const float of_small = kFloatHalfPi - (copysign(p, x) - kFloatHalfPiRest);
  const float of_large = x < 0.0f ? 2.0f * kFloatHalfPi - (2.0f * p - 2.0f * kFloatHalfPiRest) : 2.0f * p;
  return large ? of_large : of_small;
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
  const double near = fma(a * a, a * (1.0 / 3.0), a), far = 0.5 * kLn2 * wide_log2((1.0 + a) / (1.0 - a));
  return copysign(static_cast<float>(a < 0x1p-8 ? near : far), x);
}

// ---- error functions

template <FloatLanes V>
RL_INLINE V erf(V x) {
  const Piece<V> p = piece_of_width(at_most(fabs(x), 3.99f), 0.25f);
  // The table has the slope less 1: the product's rounding counts for less.
  const V above = fma(piecewise_rest(p, kFloatErfPieces), p.t, p.t);
  return copysign(above + lookup<V>(kFloatErfPieces[6], p.index), x);
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
template <FloatLanes V>
RL_INLINE V erfc(V x) {
  const V a = at_most(fabs(x), 10.1f), high = from_bits(bits_of(a) & 0xfffff000u);
  const auto [n, r] = exp_reduce(-high * high, (high - a) * (a + high));
  // exp(-a^2) times exp(a^2) erfc(a), rounded once when it is subnormal
  const Piece<V> p = piece_of_octave(a, 2.0f);
  const V start = lookup<V>(kFloatErfcxPieces[7], p.index), rest = piecewise_rest(p, kFloatErfcxPieces);
  const V scaled = fma(rest, p.t, start), lost = fma(rest, p.t, start - scaled);
  const V c = scale(fma(scaled, expm1_kernel(r), lost) + scaled, n);
  return x < 0.0f ? 2.0f - c : c;
}
// erfinv(y) / y is a function of log(1 - y^2).
template <Lanes V>
RL_INLINE V one_minus_square(V a) {
  if constexpr (kFuses)
    return fma(-a, a, Lane<V>(1));
  else
    return (Lane<V>(1) - a) * (Lane<V>(1) + a);
}
template <FloatLanes V>
RL_INLINE V erfinv(V y) {
  const V a = fabs(y), w = -log(one_minus_square(a));
  const V x = y * piecewise(piece_of_octave(w, 4.0f), kFloatErfinvPieces);
  return a == 1.0f ? copysign(lanes_of<V>(static_cast<float>(kInf)), y) : x;
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
