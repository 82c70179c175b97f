#include "cpu/random_loops.h"

#include "core/dtype.h"

// Fused multiply-adds are explicit, and part of the definition: PyTorch's numbers come from code that has them. Without
// the instruction (the default level) the C library's fma gives the same bits, slowly.
namespace rl {
namespace {

constexpr int kWords = 624;
constexpr int kShift = 397;

RL_INLINE uint32_t mix(uint32_t u, uint32_t v) {
  return (((u & 0x80000000u) | (v & 0x7fffffffu)) >> 1) ^ ((0u - (v & 1u)) & 0x9908b0dfu);
}

RL_INLINE uint32_t tempered(uint32_t y) {
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}

RL_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
RL_INLINE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }

void renew(uint32_t* words) {
  for (int i = 0; i < kWords - kShift; ++i) words[i] = words[i + kShift] ^ mix(words[i], words[i + 1]);
  // Each reads what this loop wrote 227 words before, which is further than any vector.
  for (int i = kWords - kShift; i < kWords - 1; ++i)
    words[i] = words[i + kShift - kWords] ^ mix(words[i], words[i + 1]);
  words[kWords - 1] = words[kShift - 1] ^ mix(words[kWords - 1], words[0]);
}

void temper_words(const uint32_t* __restrict words, uint32_t* __restrict out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = tempered(words[i]);
}

void uniform_float(const uint32_t* __restrict words, float* __restrict out, int64_t n, float from, float range,
                   float to) {
  for (int64_t i = 0; i < n; ++i) {
    const float unit = static_cast<float>(static_cast<int32_t>(tempered(words[i]) & 0xffffffu)) * 0x1p-24f;
    const float value = fma(unit, range, from);
    out[i] = value == to ? from : value;  // rounding can reach the upper end
  }
}

// The low 53 bits of a pair, the first word being the high half.
RL_INLINE uint64_t low53(const uint32_t* pair) { return (static_cast<uint64_t>(pair[0] & 0x1fffffu) << 32) | pair[1]; }

void uniform_double(const uint32_t* __restrict pairs, double* __restrict out, int64_t n, double from, double range,
                    double to) {
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t bits = low53(pairs + 2 * i);
    // Exact: each half becomes the low bits of a double with a large exponent, which is taken off again.
    const double high = bit_cast<double>((bits >> 32) | 0x4530000000000000u) - (0x1p84 + 0x1p52);
    const double low = bit_cast<double>((bits & 0xffffffffu) | 0x4330000000000000u);
    const double value = fma((high + low) * 0x1p-53, range, from);
    out[i] = value == to ? from : value;
  }
}

void coins(const uint32_t* __restrict pairs, int32_t* __restrict out, int64_t n, uint64_t threshold) {
  for (int64_t i = 0; i < n; ++i) out[i] = low53(pairs + 2 * i) < threshold ? -1 : 0;
}

// Natural logarithm for x in [2^-24, 1]: Cephes' logf (S. Moshier), with the fused steps that fix its bits.
RL_INLINE float log_unit(float x) {
  const uint32_t bits = bit_cast<uint32_t>(x);
  float exponent = static_cast<float>(static_cast<int32_t>(bits >> 23) - 126);
  const float mantissa = bit_cast<float>((bits & 0x007fffffu) | 0x3f000000u);  // in [0.5, 1)
  const bool small = mantissa < 0.707106781186547524f;
  exponent -= small ? 1.0f : 0.0f;
  const float r = (mantissa - 1.0f) + (small ? mantissa : 0.0f);
  const float square = r * r;
  float y = 7.0376836292e-2f;
  y = fma(y, r, -1.1514610310e-1f);
  y = fma(y, r, 1.1676998740e-1f);
  y = fma(y, r, -1.2420140846e-1f);
  y = fma(y, r, 1.4249322787e-1f);
  y = fma(y, r, -1.6668057665e-1f);
  y = fma(y, r, 2.0000714765e-1f);
  y = fma(y, r, -2.4999993993e-1f);
  y = fma(y, r, 3.3333331174e-1f);
  y = fma(y * r, square, exponent * -2.12194440e-4f);
  y = fma(-square, 0.5f, y);
  return fma(exponent, 0.693359375f, r + y);
}

// Sine and cosine of x in [0, 2 pi): Cephes' sinf and cosf, which share the reduction to [-pi/4, pi/4].
RL_INLINE void sine_cosine(float x, float* sine, float* cosine) {
  const int32_t octant = (static_cast<int32_t>(x * 1.27323954473516f) + 1) & ~1;
  const float multiple = static_cast<float>(octant);
  float r = fma(multiple, -0.78515625f, x);
  r = fma(multiple, -2.4187564849853515625e-4f, r);
  r = fma(multiple, -3.77489497744594108e-8f, r);
  const float square = r * r;
  float even = fma(2.443315711809948e-5f, square, -1.388731625493765e-3f);
  even = fma(even, square, 4.166664568298827e-2f);
  even = fma(square, even * square, -(square * 0.5f)) + 1.0f;
  float odd = fma(-1.9515295891e-4f, square, 8.3321608736e-3f);
  odd = fma(odd, square, -1.6666654611e-1f);
  odd = fma(r, odd * square, r);
  const bool swap = (octant & 2) != 0;
  const uint32_t sine_sign = static_cast<uint32_t>(octant & 4) << 29;
  const uint32_t cosine_sign = static_cast<uint32_t>(~(octant - 2) & 4) << 29;
  // Adding zero makes a negative zero positive before the sign is set.
  *sine = bit_cast<float>(bit_cast<uint32_t>((swap ? even : odd) + 0.0f) ^ sine_sign);
  *cosine = bit_cast<float>(bit_cast<uint32_t>((swap ? odd : even) + 0.0f) ^ cosine_sign);
}

constexpr int kGroups = 8;  // groups of 16 taken at once

template <int kCount>
RL_INLINE void normal_group_batch(float* data, float mean, float std) {
  float first[8 * kCount], second[8 * kCount];
  for (int g = 0; g < kCount; ++g) {
    for (int j = 0; j < 8; ++j) {
      first[8 * g + j] = data[16 * g + j];
      second[8 * g + j] = data[16 * g + 8 + j];
    }
  }
  for (int i = 0; i < 8 * kCount; ++i) {
    const float radius = __builtin_sqrtf(-2.0f * log_unit(1.0f - first[i]));
    float sine, cosine;
    sine_cosine(6.283185307179586f * second[i], &sine, &cosine);
    first[i] = fma(radius * cosine, std, mean);
    second[i] = fma(radius * sine, std, mean);
  }
  for (int g = 0; g < kCount; ++g) {
    for (int j = 0; j < 8; ++j) {
      data[16 * g + j] = first[8 * g + j];
      data[16 * g + 8 + j] = second[8 * g + j];
    }
  }
}

void normal_groups(float* data, int64_t groups, float mean, float std) {
  int64_t g = 0;
  for (; g + kGroups <= groups; g += kGroups) normal_group_batch<kGroups>(data + 16 * g, mean, std);
  for (; g < groups; ++g) normal_group_batch<1>(data + 16 * g, mean, std);
}

const RandomLoops table = {renew, temper_words, uniform_float, uniform_double, coins, normal_groups};

}  // namespace

const RandomLoops& RL_ISA_SYMBOL(random_loops)() { return table; }

}  // namespace rl
