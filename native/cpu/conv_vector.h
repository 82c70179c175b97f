// Vectors for the convolution and pooling kernels, as wide as the instruction set. For files compiled once per
// instruction set.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/dtype.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace rl {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
constexpr int kPanel = 8;  // accumulators: kPanel * kPanelVectors, plus operands, fill the registers
constexpr int kPanelVectors = 3;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
constexpr int kPanel = 4;
constexpr int kPanelVectors = 3;
#else
constexpr int kVectorBytes = 16;
constexpr int kPanel = 4;
constexpr int kPanelVectors = 2;
#endif

template <class T>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kVectorBytes)));
  typedef T unaligned __attribute__((vector_size(kVectorBytes), aligned(alignof(T)), may_alias));
};
template <class T>
using Vector = typename VectorOf<T>::type;

template <class T>
RL_INLINE Vector<T> load(const T* from) {
  return *reinterpret_cast<const typename VectorOf<T>::unaligned*>(from);
}

template <class T>
RL_INLINE void store(T* to, Vector<T> value) {
  *reinterpret_cast<typename VectorOf<T>::unaligned*>(to) = value;
}

template <class T>
RL_INLINE Vector<T> splat(T value) {
  return value - Vector<T>{};  // one broadcast: nothing is subtracted (where 0 + -0 would be an addition)
}

// ---- parts of vectors: lanes [lo, hi), the others being zero on loading and left alone on storing. Nothing outside is
// touched.

#if defined(__AVX512F__)

template <class T>
inline constexpr bool kMasks = std::is_same_v<T, float> || std::is_same_v<T, double>;

template <class T>
struct Mask {
  uint32_t bits;
  Mask() = default;
  RL_INLINE Mask(int64_t lo, int64_t hi) {
    constexpr int64_t L = kLanes<T>;
    lo = lo < 0 ? 0 : lo > L ? L : lo;
    hi = hi < lo ? lo : hi > L ? L : hi;
    bits = ((1u << hi) - 1) & ~((1u << lo) - 1);
  }
};

RL_INLINE Vector<float> load(const float* from, Mask<float> mask) {
  return reinterpret_cast<Vector<float>>(_mm512_maskz_loadu_ps(static_cast<__mmask16>(mask.bits), from));
}
RL_INLINE Vector<double> load(const double* from, Mask<double> mask) {
  return reinterpret_cast<Vector<double>>(_mm512_maskz_loadu_pd(static_cast<__mmask8>(mask.bits), from));
}
RL_INLINE void store(float* to, Vector<float> value, Mask<float> mask) {
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>(mask.bits), reinterpret_cast<__m512>(value));
}
RL_INLINE void store(double* to, Vector<double> value, Mask<double> mask) {
  _mm512_mask_storeu_pd(to, static_cast<__mmask8>(mask.bits), reinterpret_cast<__m512d>(value));
}

// Copies the masked elements of half a vector and writes zeros to the rest of it.
RL_INLINE void store_half(float* to, const float* from, Mask<float> mask) {
  _mm256_storeu_ps(to, _mm256_maskz_loadu_ps(static_cast<__mmask8>(mask.bits), from));
}
RL_INLINE void store_half(double* to, const double* from, Mask<double> mask) {
  _mm256_storeu_pd(to, _mm256_maskz_loadu_pd(static_cast<__mmask8>(mask.bits), from));
}

// Every second element.
RL_INLINE Vector<float> load_alternate(const float* from, Mask<float> mask) {
  const uint32_t spread = _pdep_u32(mask.bits, 0x55555555u);
  const __m512 low = _mm512_maskz_loadu_ps(static_cast<__mmask16>(spread), from);
  const __m512 high = _mm512_maskz_loadu_ps(static_cast<__mmask16>(spread >> 16), from + 16);
  const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  return reinterpret_cast<Vector<float>>(_mm512_permutex2var_ps(low, even, high));
}
RL_INLINE Vector<double> load_alternate(const double* from, Mask<double> mask) {
  const uint32_t spread = _pdep_u32(mask.bits, 0x5555u);
  const __m512d low = _mm512_maskz_loadu_pd(static_cast<__mmask8>(spread), from);
  const __m512d high = _mm512_maskz_loadu_pd(static_cast<__mmask8>(spread >> 8), from + 8);
  const __m512i even = _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0);
  return reinterpret_cast<Vector<double>>(_mm512_permutex2var_pd(low, even, high));
}

#elif defined(__AVX2__)

template <class T>
inline constexpr bool kMasks = std::is_same_v<T, float> || std::is_same_v<T, double>;

alignas(64) constexpr int32_t kMaskTable32[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
alignas(64) constexpr int64_t kMaskTable64[8] = {-1, -1, -1, -1};

template <class T>
struct Mask {
  __m256i bits;
  Mask() = default;
  RL_INLINE Mask(int64_t lo, int64_t hi) {
    constexpr int64_t L = kLanes<T>;
    lo = lo < 0 ? 0 : lo > L ? L : lo;
    hi = hi < lo ? lo : hi > L ? L : hi;
    const void* below_hi = kMaskTable32 + (L - hi);
    const void* below_lo = kMaskTable32 + (L - lo);
    if constexpr (sizeof(T) == 8) {
      below_hi = kMaskTable64 + (L - hi);
      below_lo = kMaskTable64 + (L - lo);
    }
    bits = _mm256_andnot_si256(_mm256_loadu_si256(static_cast<const __m256i*>(below_lo)),
                               _mm256_loadu_si256(static_cast<const __m256i*>(below_hi)));
  }
};

RL_INLINE Vector<float> load(const float* from, Mask<float> mask) {
  return reinterpret_cast<Vector<float>>(_mm256_maskload_ps(from, mask.bits));
}
RL_INLINE Vector<double> load(const double* from, Mask<double> mask) {
  return reinterpret_cast<Vector<double>>(_mm256_maskload_pd(from, mask.bits));
}
RL_INLINE void store(float* to, Vector<float> value, Mask<float> mask) {
  _mm256_maskstore_ps(to, mask.bits, reinterpret_cast<__m256>(value));
}
RL_INLINE void store(double* to, Vector<double> value, Mask<double> mask) {
  _mm256_maskstore_pd(to, mask.bits, reinterpret_cast<__m256d>(value));
}

#else

template <class T>
inline constexpr bool kMasks = false;  // not by an instruction

template <class T>
struct Mask {
  int64_t lo, hi;
  Mask() = default;
  RL_INLINE Mask(int64_t low, int64_t high) : lo(low < 0 ? 0 : low), hi(high > kLanes<T> ? kLanes<T> : high) {}
};

template <class T>
RL_INLINE Vector<T> load(const T* from, Mask<T> mask) {
  alignas(kVectorBytes) T lanes[kLanes<T>] = {};
  for (int64_t i = mask.lo; i < mask.hi; ++i) lanes[i] = from[i];
  return *reinterpret_cast<const Vector<T>*>(lanes);
}

template <class T>
RL_INLINE void store(T* to, Vector<T> value, Mask<T> mask) {
  alignas(kVectorBytes) T lanes[kLanes<T>];
  *reinterpret_cast<Vector<T>*>(lanes) = value;
  for (int64_t i = mask.lo; i < mask.hi; ++i) to[i] = lanes[i];
}

#endif

// The first n elements, zeros behind them; reads nothing else.
template <class T>
RL_INLINE Vector<T> load_first(const T* from, int64_t n) {
  if (n == kLanes<T>) return load(from);
  if constexpr (kMasks<T>) {
    return load(from, Mask<T>(0, n));
  } else {
    alignas(kVectorBytes) T lanes[kLanes<T>] = {};
    for (int64_t i = 0; i < n; ++i) lanes[i] = from[i];
    return *reinterpret_cast<const Vector<T>*>(lanes);
  }
}

template <class T>
RL_INLINE void store_first(T* to, Vector<T> value, int64_t n) {
  if (n == kLanes<T>) {
    store(to, value);
  } else if constexpr (kMasks<T>) {
    store(to, value, Mask<T>(0, n));
  } else {
    alignas(kVectorBytes) T lanes[kLanes<T>];
    *reinterpret_cast<Vector<T>*>(lanes) = value;
    for (int64_t i = 0; i < n; ++i) to[i] = lanes[i];
  }
}

template <class T>
RL_INLINE T sum_lanes(Vector<T> value) {
  // Halves added to halves: the same order of additions whatever the compiler does.
  alignas(kVectorBytes) T lanes[kLanes<T>];
  *reinterpret_cast<Vector<T>*>(lanes) = value;
  for (int width = kLanes<T> / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

}  // namespace
}  // namespace rl
