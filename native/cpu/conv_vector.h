// Vectors for the convolution kernels, as wide as the instruction set. For files compiled once per instruction set.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/dtype.h"

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
  return Vector<T>{} + value;
}

// The first n elements, zeros behind them; reads nothing else.
template <class T>
RL_INLINE Vector<T> load_first(const T* from, int64_t n) {
  alignas(kVectorBytes) T lanes[kLanes<T>] = {};
  for (int64_t i = 0; i < n; ++i) lanes[i] = from[i];
  return *reinterpret_cast<const Vector<T>*>(lanes);
}

#if defined(__AVX512F__)
RL_INLINE Vector<float> load_first(const float* from, int64_t n) {
  return reinterpret_cast<Vector<float>>(_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), from));
}
RL_INLINE Vector<double> load_first(const double* from, int64_t n) {
  return reinterpret_cast<Vector<double>>(_mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << n) - 1), from));
}
#endif

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
