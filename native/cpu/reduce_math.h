// exp in a form that loops vectorise: no branches, no calls. Internal linkage, for files compiled once per instruction
// set.
//
// Cody and Waite's reduction x = n ln 2 + r with |r| <= ln(2) / 2, a polynomial for (e^r - 1 - r) / r^2, and 2^n
// applied in two factors so that subnormal results are rounded once. Errors stay under 1 ulp.
#pragma once

#include "cpu/reduce_simd.h"

namespace rl {
namespace {

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
RL_INLINE float multiply_add(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
RL_INLINE double multiply_add(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
RL_INLINE float multiply_add(float a, float b, float c) { return a * b + c; }
RL_INLINE double multiply_add(double a, double b, double c) { return a * b + c; }
#endif

[[maybe_unused]] RL_INLINE float fast_exp(float x) {
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.5f ? -104.5f : x;
  const float magic = 0x1.8p23f;  // adding it rounds to an integer, left in the low bits
  const float shifted = multiply_add(x, 0x1.715476p+0f, magic);
  const float n = shifted - magic;
  float r = multiply_add(n, -0x1.62e4p-1f, x);
  r = multiply_add(n, -0x1.7f7d1cp-20f, r);
  float q = 0x1.a124f6p-13f;
  q = multiply_add(q, r, 0x1.6d432ap-10f);
  q = multiply_add(q, r, 0x1.1110e0p-7f);
  q = multiply_add(q, r, 0x1.5554eap-5f);
  q = multiply_add(q, r, 0x1.555556p-3f);
  q = multiply_add(q, r, 0.5f);
  const float y = 1.0f + multiply_add(r * r, q, r);
  const int32_t power = bit_cast<int32_t>(shifted) - bit_cast<int32_t>(magic);
  const int32_t half = power >> 1;
  return y * bit_cast<float>((half + 127) << 23) * bit_cast<float>((power - half + 127) << 23);
}

[[maybe_unused]] RL_INLINE double fast_exp(double x) {
  x = x > 710.0 ? 710.0 : x;
  x = x < -746.0 ? -746.0 : x;
  const double magic = 0x1.8p52;
  const double shifted = multiply_add(x, 0x1.71547652b82fep+0, magic);
  const double n = shifted - magic;
  double r = multiply_add(n, -0x1.62e42fefa3800p-1, x);
  r = multiply_add(n, -0x1.ef35793c76730p-45, r);
  double q = 0x1.1f73059b2800fp-29;
  q = multiply_add(q, r, 0x1.af4ded8bc133cp-26);
  q = multiply_add(q, r, 0x1.27e4db634dd1cp-22);
  q = multiply_add(q, r, 0x1.71de022fa2b45p-19);
  q = multiply_add(q, r, 0x1.a01a01a6d8e3bp-16);
  q = multiply_add(q, r, 0x1.a01a01abe89b8p-13);
  q = multiply_add(q, r, 0x1.6c16c16c162d3p-10);
  q = multiply_add(q, r, 0x1.11111111100dap-7);
  q = multiply_add(q, r, 0x1.5555555555556p-5);
  q = multiply_add(q, r, 0x1.5555555555557p-3);
  q = multiply_add(q, r, 0.5);
  const double y = 1.0 + multiply_add(r * r, q, r);
  // Biased so that the halving is of a positive number: there is no arithmetic shift of 64-bit lanes before AVX-512.
  const uint64_t power = bit_cast<uint64_t>(shifted) - bit_cast<uint64_t>(magic) + 4096;
  const uint64_t half = power >> 1;
  return y * bit_cast<double>((half - 2048 + 1023) << 52) * bit_cast<double>((power - half - 2048 + 1023) << 52);
}

// The same on vectors, for loops written with them.
#if defined(__AVX512F__)
RL_INLINE Vector<float> vector_fma(Vector<float> a, Vector<float> b, Vector<float> c) {
  return (Vector<float>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
RL_INLINE Vector<double> vector_fma(Vector<double> a, Vector<double> b, Vector<double> c) {
  return (Vector<double>)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}
RL_INLINE Vector<float> vector_scale(Vector<float> y, Vector<float> shifted, float magic) {
  return (Vector<float>)_mm512_scalef_ps((__m512)y, (__m512)(shifted - magic));
}
RL_INLINE Vector<double> vector_scale(Vector<double> y, Vector<double> shifted, double magic) {
  return (Vector<double>)_mm512_scalef_pd((__m512d)y, (__m512d)(shifted - magic));
}
#else
#if defined(__FMA__) && defined(__AVX__)
RL_INLINE Vector<float> vector_fma(Vector<float> a, Vector<float> b, Vector<float> c) {
  return (Vector<float>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
RL_INLINE Vector<double> vector_fma(Vector<double> a, Vector<double> b, Vector<double> c) {
  return (Vector<double>)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}
#else
template <class V>
RL_INLINE V vector_fma(V a, V b, V c) {
  return a * b + c;
}
#endif
RL_INLINE Vector<float> vector_scale(Vector<float> y, Vector<float> shifted, float magic) {
  typedef Vector<int32_t> Bits;
  const Bits power = (Bits)shifted - bit_cast<int32_t>(magic), half = power >> 1;
  return y * (Vector<float>)((half + 127) << 23) * (Vector<float>)((power - half + 127) << 23);
}
RL_INLINE Vector<double> vector_scale(Vector<double> y, Vector<double> shifted, double magic) {
  typedef Vector<uint64_t> Bits;
  const Bits power = (Bits)shifted - bit_cast<uint64_t>(magic) + 4096, half = power >> 1;
  return y * (Vector<double>)((half - 1025) << 52) * (Vector<double>)((power - half - 1025) << 52);
}
#endif

[[maybe_unused]] RL_INLINE Vector<float> vector_exp(Vector<float> x) {
  using V = Vector<float>;
  const float magic = 0x1.8p23f;
  x = x > 89.0f ? V{} + 89.0f : x;
  x = x < -104.5f ? V{} - 104.5f : x;
  const V shifted = vector_fma(x, splat(0x1.715476p+0f), splat(magic));
  const V n = shifted - magic;
  V r = vector_fma(n, splat(-0x1.62e4p-1f), x);
  r = vector_fma(n, splat(-0x1.7f7d1cp-20f), r);
  V q = splat(0x1.a124f6p-13f);
  q = vector_fma(q, r, splat(0x1.6d432ap-10f));
  q = vector_fma(q, r, splat(0x1.1110e0p-7f));
  q = vector_fma(q, r, splat(0x1.5554eap-5f));
  q = vector_fma(q, r, splat(0x1.555556p-3f));
  q = vector_fma(q, r, splat(0.5f));
  return vector_scale(1.0f + vector_fma(r * r, q, r), shifted, magic);
}

[[maybe_unused]] RL_INLINE Vector<double> vector_exp(Vector<double> x) {
  using V = Vector<double>;
  const double magic = 0x1.8p52;
  x = x > 710.0 ? V{} + 710.0 : x;
  x = x < -746.0 ? V{} - 746.0 : x;
  const V shifted = vector_fma(x, splat(0x1.71547652b82fep+0), splat(magic));
  const V n = shifted - magic;
  V r = vector_fma(n, splat(-0x1.62e42fefa3800p-1), x);
  r = vector_fma(n, splat(-0x1.ef35793c76730p-45), r);
  V q = splat(0x1.1f73059b2800fp-29);
  q = vector_fma(q, r, splat(0x1.af4ded8bc133cp-26));
  q = vector_fma(q, r, splat(0x1.27e4db634dd1cp-22));
  q = vector_fma(q, r, splat(0x1.71de022fa2b45p-19));
  q = vector_fma(q, r, splat(0x1.a01a01a6d8e3bp-16));
  q = vector_fma(q, r, splat(0x1.a01a01abe89b8p-13));
  q = vector_fma(q, r, splat(0x1.6c16c16c162d3p-10));
  q = vector_fma(q, r, splat(0x1.11111111100dap-7));
  q = vector_fma(q, r, splat(0x1.5555555555556p-5));
  q = vector_fma(q, r, splat(0x1.5555555555557p-3));
  q = vector_fma(q, r, splat(0.5));
  return vector_scale(1.0 + vector_fma(r * r, q, r), shifted, magic);
}

}  // namespace
}  // namespace rl
