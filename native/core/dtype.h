// Element types: C++ types behind the dtypes, conversions between them, and dispatch from a dtype to its type.
//
// Files compiled once per instruction set include this header, so every function here is always inlined: an out-of-line
// copy built for one instruction set must never serve another.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "rushlight.h"

#if defined(__F16C__) || defined(__AVX512BF16__)
#include <immintrin.h>
#endif

#define RL_INLINE inline __attribute__((always_inline))

namespace rl {

template <class To, class From>
RL_INLINE To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

// ---- 16-bit floats. Branch-free, so that loops over them become vector code.

RL_INLINE float half_bits_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  // Exponents are rebiased by a multiplication, which is exact and brings subnormal halves to normal floats.
  const float scaled = bit_cast<float>(magnitude << 13) * 0x1p112f;
  const uint32_t finite = bit_cast<uint32_t>(scaled);
  const uint32_t special = (magnitude << 13) | 0x7f800000u | (magnitude > 0x7c00u ? 0x00400000u : 0u);
  return bit_cast<float>(sign | (magnitude >= 0x7c00u ? special : finite));
}

// Round to nearest, ties to even; overflow to infinity; NaN stays a (quiet) NaN.
RL_INLINE uint16_t float_to_half_bits(float value) {
  const uint32_t bits = bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  // Normal results: add half an ulp (less one, plus the last kept bit) to the bits, then rebias.
  const uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
  // Subnormal results: adding 0.5 leaves the rounded value in the last bits of the sum.
  const uint32_t subnormal = bit_cast<uint32_t>(bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  uint32_t result = magnitude < 0x38800000u ? subnormal : normal;
  result = magnitude >= 0x47800000u ? 0x7c00u : result;
  result = magnitude > 0x7f800000u ? (0x7e00u | ((magnitude >> 13) & 0x1ffu)) : result;
  return static_cast<uint16_t>(sign | result);
}

RL_INLINE float bfloat16_bits_to_float(uint16_t bits) { return bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

RL_INLINE uint16_t float_to_bfloat16_bits(float value) {
  const uint32_t bits = bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t nan = (bits >> 16) | 0x40u;
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

// Storage types: arithmetic happens in float (see compute_type).
struct half {
  uint16_t bits;
  half() = default;
  RL_INLINE explicit half(float value) : bits(float_to_half_bits(value)) {}
  RL_INLINE explicit operator float() const { return half_bits_to_float(bits); }
  static RL_INLINE half from_bits(uint16_t bits) { return bit_cast<half>(bits); }
};

struct bfloat16 {
  uint16_t bits;
  bfloat16() = default;
  RL_INLINE explicit bfloat16(float value) : bits(float_to_bfloat16_bits(value)) {}
  RL_INLINE explicit operator float() const { return bfloat16_bits_to_float(bits); }
  static RL_INLINE bfloat16 from_bits(uint16_t bits) { return bit_cast<bfloat16>(bits); }
};

static_assert(sizeof(half) == 2 && std::is_trivial_v<half> && sizeof(bfloat16) == 2 && std::is_trivial_v<bfloat16>);

// ---- complex numbers. std::complex would bring functions with external linkage, and a product that repairs NaNs.
template <class T>
struct complex {
  T re, im;
  complex() = default;
  RL_INLINE constexpr complex(T real, T imag = T(0)) : re(real), im(imag) {}
  template <class U>
  RL_INLINE constexpr explicit complex(const complex<U>& other)
      : re(static_cast<T>(other.re)), im(static_cast<T>(other.im)) {}

  friend RL_INLINE complex operator+(complex a, complex b) { return {a.re + b.re, a.im + b.im}; }
  friend RL_INLINE complex operator-(complex a, complex b) { return {a.re - b.re, a.im - b.im}; }
  friend RL_INLINE complex operator-(complex a) { return {-a.re, -a.im}; }
  friend RL_INLINE complex operator*(complex a, complex b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  // Smith's method: scaled by the larger part of the divisor, so that no intermediate overflows before the result does.
  friend RL_INLINE complex operator/(complex a, complex b) {
    const T abs_re = b.re < T(0) ? -b.re : b.re;
    const T abs_im = b.im < T(0) ? -b.im : b.im;
    if (abs_re >= abs_im) {
      if (abs_re == T(0) && abs_im == T(0)) return {a.re / abs_re, a.im / abs_im};
      const T ratio = b.im / b.re;
      const T scale = T(1) / (b.re + b.im * ratio);
      return {(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
    }
    const T ratio = b.re / b.im;
    const T scale = T(1) / (b.im + b.re * ratio);
    return {(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
  }
  RL_INLINE complex& operator+=(complex b) { return *this = *this + b; }
  RL_INLINE complex& operator-=(complex b) { return *this = *this - b; }
  RL_INLINE complex& operator*=(complex b) { return *this = *this * b; }
  RL_INLINE complex& operator/=(complex b) { return *this = *this / b; }
  friend RL_INLINE bool operator==(complex a, complex b) { return a.re == b.re && a.im == b.im; }
  friend RL_INLINE bool operator!=(complex a, complex b) { return !(a == b); }
};

// A storage type like half.
template <>
struct complex<half> {
  half re, im;
  complex() = default;
  RL_INLINE explicit complex(complex<float> value) : re(value.re), im(value.im) {}
  RL_INLINE explicit operator complex<float>() const { return {static_cast<float>(re), static_cast<float>(im)}; }
};

using complex32 = complex<half>;
using complex64 = complex<float>;
using complex128 = complex<double>;

template <class T>
RL_INLINE complex<T> conj(complex<T> value) {
  return {value.re, -value.im};
}

// ---- traits

template <class T>
inline constexpr bool is_complex_v = false;
template <class T>
inline constexpr bool is_complex_v<complex<T>> = true;

template <class T>
inline constexpr bool is_reduced_float_v = std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;

// Kept in 16 bits a part, computed in float.
template <class T>
inline constexpr bool is_storage_only_v = is_reduced_float_v<T> || std::is_same_v<T, complex32>;

// Real floating point of any width.
template <class T>
inline constexpr bool is_float_v = std::is_floating_point_v<T> || is_reduced_float_v<T>;

// The type arithmetic is done in: float for the 16-bit floats, complex64 for complex32, else the type itself.
template <class T>
struct compute_type_of {
  using type = T;
};
template <>
struct compute_type_of<half> {
  using type = float;
};
template <>
struct compute_type_of<bfloat16> {
  using type = float;
};
template <>
struct compute_type_of<complex32> {
  using type = complex64;
};
template <class T>
using compute_type = typename compute_type_of<T>::type;

template <class T>
struct real_type_of {
  using type = T;
};
template <class T>
struct real_type_of<complex<T>> {
  using type = T;
};
template <class T>
using real_type = typename real_type_of<T>::type;

template <class T>
inline constexpr int dtype_of = -1;
template <>
inline constexpr int dtype_of<bool> = RL_BOOL;
template <>
inline constexpr int dtype_of<uint8_t> = RL_UINT8;
template <>
inline constexpr int dtype_of<int8_t> = RL_INT8;
template <>
inline constexpr int dtype_of<int16_t> = RL_INT16;
template <>
inline constexpr int dtype_of<int32_t> = RL_INT32;
template <>
inline constexpr int dtype_of<int64_t> = RL_INT64;
template <>
inline constexpr int dtype_of<half> = RL_FLOAT16;
template <>
inline constexpr int dtype_of<bfloat16> = RL_BFLOAT16;
template <>
inline constexpr int dtype_of<float> = RL_FLOAT32;
template <>
inline constexpr int dtype_of<double> = RL_FLOAT64;
template <>
inline constexpr int dtype_of<complex64> = RL_COMPLEX64;
template <>
inline constexpr int dtype_of<complex128> = RL_COMPLEX128;
template <>
inline constexpr int dtype_of<complex32> = RL_COMPLEX32;

RL_INLINE bool is_valid_dtype(int dtype) { return dtype >= 0 && dtype < RL_DTYPE_COUNT; }
RL_INLINE bool is_float_dtype(int dtype) { return dtype >= RL_FLOAT16 && dtype <= RL_FLOAT64; }
RL_INLINE bool is_complex_dtype(int dtype) { return dtype >= RL_COMPLEX64 && dtype <= RL_COMPLEX32; }
RL_INLINE bool is_integer_dtype(int dtype) { return dtype >= RL_UINT8 && dtype <= RL_INT64; }  // without bool
// The dtype of a complex dtype's parts; other dtypes are their own.
RL_INLINE int real_dtype(int dtype) {
  switch (dtype) {
    case RL_COMPLEX32:
      return RL_FLOAT16;
    case RL_COMPLEX64:
      return RL_FLOAT32;
    case RL_COMPLEX128:
      return RL_FLOAT64;
    default:
      return dtype;
  }
}
// The complex dtype whose parts hold numbers of this dtype.
RL_INLINE int complex_dtype(int dtype) {
  if (dtype == RL_FLOAT16 || dtype == RL_COMPLEX32) return RL_COMPLEX32;
  return dtype == RL_FLOAT64 || dtype == RL_COMPLEX128 ? RL_COMPLEX128 : RL_COMPLEX64;
}
// The dtype in which arithmetic on this one is done.
RL_INLINE int compute_dtype(int dtype) {
  return dtype == RL_FLOAT16 || dtype == RL_BFLOAT16 ? int{RL_FLOAT32}
         : dtype == RL_COMPLEX32                     ? int{RL_COMPLEX64}
                                                     : dtype;
}
// Bytes of an element, for a valid dtype.
RL_INLINE int64_t dtype_size(int dtype) {
  // 4 bits each: log2 of the sizes 1 1 1 2 4 8 2 2 4 8 8 16 4.
  return int64_t{1} << ((0x2433211321000ull >> (4 * dtype)) & 15u);
}

// A float beyond an integer's range becomes the range's end, NaN becomes 0.
template <class I, class F>
RL_INLINE I float_to_integer(F value) {
  if constexpr (std::is_unsigned_v<I> && sizeof(I) < sizeof(int32_t)) {
    const int32_t wide = float_to_integer<int32_t>(value);
    constexpr int32_t high = static_cast<I>(~I(0));
    return static_cast<I>(wide < 0 ? 0 : wide > high ? high : wide);
  } else {
    static_assert(std::is_signed_v<I>);
    // The bounds are powers of two, so exact in any float; the upper one is the first value too large.
    constexpr F upper = static_cast<F>(uint64_t{1} << (8 * sizeof(I) - 1));
    constexpr I low = static_cast<I>(uint64_t{1} << (8 * sizeof(I) - 1));
    constexpr I high = static_cast<I>(~low);
    const bool inside = value >= -upper && value < upper;
    const I whole = static_cast<I>(inside ? value : F(0));
    return value >= upper ? high : value < -upper ? low : whole;
  }
}

// ---- conversion of one element: to bool is "differs from zero" (NaN does), complex to real drops the imaginary part,
// float to integer truncates and saturates.
template <class To, class From>
RL_INLINE To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<To, complex32>) {
    return To(convert<complex64>(value));
  } else if constexpr (is_storage_only_v<From>) {
    return convert<To>(static_cast<compute_type<From>>(value));
  } else if constexpr (is_complex_v<From>) {
    if constexpr (is_complex_v<To>) {
      return To(static_cast<real_type<To>>(value.re), static_cast<real_type<To>>(value.im));
    } else if constexpr (std::is_same_v<To, bool>) {
      return value.re != 0 || value.im != 0;
    } else {
      return convert<To>(value.re);
    }
  } else if constexpr (is_complex_v<To>) {
    return To(static_cast<real_type<To>>(value), real_type<To>(0));
  } else if constexpr (is_reduced_float_v<To>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != 0;
  } else if constexpr (dtype_of<To> >= 0 && std::is_integral_v<To> && std::is_floating_point_v<From>) {
    return float_to_integer<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

// ---- conversion of runs of 16-bit floats
namespace {

[[maybe_unused]] inline void half_to_float(const half* in, float* out, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16)
    _mm512_storeu_ps(out + i, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i))));
#endif
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
#endif
  for (; i < n; ++i) out[i] = half_bits_to_float(in[i].bits);
}

[[maybe_unused]] inline void float_to_half(const float* in, half* out, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm512_cvtps_ph(_mm512_loadu_ps(in + i), 0));
#endif
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(in + i), 0));
#endif
  for (; i < n; ++i) out[i].bits = float_to_half_bits(in[i]);
}

[[maybe_unused]] inline void bfloat16_to_float(const bfloat16* in, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = bfloat16_bits_to_float(in[i].bits);
}

[[maybe_unused]] inline void float_to_bfloat16(const float* in, bfloat16* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i].bits = float_to_bfloat16_bits(in[i]);
}

[[maybe_unused]] inline void to_float(const half* in, float* out, int64_t n) { half_to_float(in, out, n); }
[[maybe_unused]] inline void to_float(const bfloat16* in, float* out, int64_t n) { bfloat16_to_float(in, out, n); }
[[maybe_unused]] inline void from_float(const float* in, half* out, int64_t n) { float_to_half(in, out, n); }
[[maybe_unused]] inline void from_float(const float* in, bfloat16* out, int64_t n) { float_to_bfloat16(in, out, n); }

}  // namespace
}  // namespace rl

// ---- dispatch: runs the code with T naming the dtype's C++ type. A dtype outside the set runs nothing, so check it
// first.
//   RL_DISPATCH_ALL(x->dtype, T, { return fill<T>(x, rl::convert<T>(value)); });
#define RL_DISPATCH_CASE(code, type, T, ...) \
  case code: {                               \
    using T = type;                          \
    __VA_ARGS__;                             \
    break;                                   \
  }
#define RL_CASES_BOOL(T, ...) RL_DISPATCH_CASE(RL_BOOL, bool, T, __VA_ARGS__)
#define RL_CASES_INTEGER(T, ...)                      \
  RL_DISPATCH_CASE(RL_UINT8, uint8_t, T, __VA_ARGS__) \
  RL_DISPATCH_CASE(RL_INT8, int8_t, T, __VA_ARGS__)   \
  RL_DISPATCH_CASE(RL_INT16, int16_t, T, __VA_ARGS__) \
  RL_DISPATCH_CASE(RL_INT32, int32_t, T, __VA_ARGS__) \
  RL_DISPATCH_CASE(RL_INT64, int64_t, T, __VA_ARGS__)
#define RL_CASES_REDUCED_FLOAT(T, ...)                   \
  RL_DISPATCH_CASE(RL_FLOAT16, rl::half, T, __VA_ARGS__) \
  RL_DISPATCH_CASE(RL_BFLOAT16, rl::bfloat16, T, __VA_ARGS__)
#define RL_CASES_WIDE_FLOAT(T, ...)                   \
  RL_DISPATCH_CASE(RL_FLOAT32, float, T, __VA_ARGS__) \
  RL_DISPATCH_CASE(RL_FLOAT64, double, T, __VA_ARGS__)
#define RL_CASES_REDUCED_COMPLEX(T, ...) RL_DISPATCH_CASE(RL_COMPLEX32, rl::complex32, T, __VA_ARGS__)
#define RL_CASES_COMPLEX(T, ...)                                \
  RL_DISPATCH_CASE(RL_COMPLEX64, rl::complex64, T, __VA_ARGS__) \
  RL_DISPATCH_CASE(RL_COMPLEX128, rl::complex128, T, __VA_ARGS__)

#define RL_DISPATCH_ALL(dtype, T, ...)       \
  switch (dtype) {                           \
    RL_CASES_BOOL(T, __VA_ARGS__)            \
    RL_CASES_INTEGER(T, __VA_ARGS__)         \
    RL_CASES_REDUCED_FLOAT(T, __VA_ARGS__)   \
    RL_CASES_WIDE_FLOAT(T, __VA_ARGS__)      \
    RL_CASES_REDUCED_COMPLEX(T, __VA_ARGS__) \
    RL_CASES_COMPLEX(T, __VA_ARGS__)         \
    default:                                 \
      break;                                 \
  }
// bool, integers, floats
#define RL_DISPATCH_REAL(dtype, T, ...)    \
  switch (dtype) {                         \
    RL_CASES_BOOL(T, __VA_ARGS__)          \
    RL_CASES_INTEGER(T, __VA_ARGS__)       \
    RL_CASES_REDUCED_FLOAT(T, __VA_ARGS__) \
    RL_CASES_WIDE_FLOAT(T, __VA_ARGS__)    \
    default:                               \
      break;                               \
  }
#define RL_DISPATCH_INTEGER(dtype, T, ...) \
  switch (dtype) {                         \
    RL_CASES_INTEGER(T, __VA_ARGS__)       \
    default:                               \
      break;                               \
  }
#define RL_DISPATCH_BOOL_INTEGER(dtype, T, ...) \
  switch (dtype) {                              \
    RL_CASES_BOOL(T, __VA_ARGS__)               \
    RL_CASES_INTEGER(T, __VA_ARGS__)            \
    default:                                    \
      break;                                    \
  }
// float16, bfloat16, float32, float64
#define RL_DISPATCH_FLOAT(dtype, T, ...)   \
  switch (dtype) {                         \
    RL_CASES_REDUCED_FLOAT(T, __VA_ARGS__) \
    RL_CASES_WIDE_FLOAT(T, __VA_ARGS__)    \
    default:                               \
      break;                               \
  }
// floats, complex64, complex128
#define RL_DISPATCH_FLOAT_COMPLEX(dtype, T, ...) \
  switch (dtype) {                               \
    RL_CASES_REDUCED_FLOAT(T, __VA_ARGS__)       \
    RL_CASES_WIDE_FLOAT(T, __VA_ARGS__)          \
    RL_CASES_COMPLEX(T, __VA_ARGS__)             \
    default:                                     \
      break;                                     \
  }
// Everything but bool and complex32
#define RL_DISPATCH_NUMBER(dtype, T, ...)  \
  switch (dtype) {                         \
    RL_CASES_INTEGER(T, __VA_ARGS__)       \
    RL_CASES_REDUCED_FLOAT(T, __VA_ARGS__) \
    RL_CASES_WIDE_FLOAT(T, __VA_ARGS__)    \
    RL_CASES_COMPLEX(T, __VA_ARGS__)       \
    default:                               \
      break;                               \
  }
