// Scalar functions of the elementwise kernels, for every compute type: what records' expressions are printed in terms
// of.
//
// Included by files compiled once per instruction set: everything is in an anonymous namespace and always inlined.
// Functions of floats are in vec_math.h. Nothing branches on data, so that loops over these become vector code, and no
// input is undefined: integers wrap, shifts beyond the width give what an infinitely wide integer would, division by
// zero is reported beside a harmless result (see zero_divisor).
#pragma once

#include <type_traits>

#include "core/dtype.h"
#include "cpu/exact_math.h"
#include "cpu/special_math.h"

namespace rl {
namespace {
namespace m {

template <class T>
concept Integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;
template <class T>
concept Float = std::is_floating_point_v<T>;
template <class T>
concept Complex = is_complex_v<T>;
template <class T>
concept Real = !is_complex_v<T>;

// Arithmetic on integers happens in an unsigned type at least as wide as int, where it wraps.
template <class T>
using Wide = std::conditional_t<(sizeof(T) < 4), uint32_t,
                                std::make_unsigned_t<std::conditional_t<std::is_same_v<T, bool>, int, T>>>;

// ---- conversions

template <class T>
RL_INLINE bool to_bool(T x) {
  if constexpr (Complex<T>) {
    return x.re != 0 || x.im != 0;
  } else {
    return x != T(0);
  }
}

// Rounded to a 16-bit float: the steps of operations that PyTorch computes in that dtype throughout.
template <Float T>
RL_INLINE T to_float16(T x) {
  return static_cast<T>(half_bits_to_float(float_to_half_bits(static_cast<float>(x))));
}
template <Float T>
RL_INLINE T to_bfloat16(T x) {
  return static_cast<T>(bfloat16_bits_to_float(float_to_bfloat16_bits(static_cast<float>(x))));
}

// ---- arithmetic

template <class T>
RL_INLINE T add(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return a | b;
  } else if constexpr (Integer<T>) {
    return static_cast<T>(static_cast<Wide<T>>(a) + static_cast<Wide<T>>(b));
  } else {
    return a + b;
  }
}

template <class T>
RL_INLINE T sub(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return a ^ b;
  } else if constexpr (Integer<T>) {
    return static_cast<T>(static_cast<Wide<T>>(a) - static_cast<Wide<T>>(b));
  } else {
    return a - b;
  }
}

template <class T>
RL_INLINE T mul(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return a & b;
  } else if constexpr (Integer<T>) {
    return static_cast<T>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b));
  } else {
    return a * b;
  }
}

template <class T>
RL_INLINE T div(T a, T b) {
  return a / b;
}

// A real factor of a complex number, as |x| is.
template <class T>
RL_INLINE complex<T> mul(complex<T> a, T b) {
  return {a.re * b, a.im * b};
}
template <class T>
RL_INLINE complex<T> mul(T a, complex<T> b) {
  return {a * b.re, a * b.im};
}
template <class T>
RL_INLINE complex<T> div(complex<T> a, T b) {
  return {a.re / b, a.im / b};
}

template <class T>
RL_INLINE T neg(T a) {
  if constexpr (Integer<T>) {
    return static_cast<T>(Wide<T>(0) - static_cast<Wide<T>>(a));
  } else {
    return -a;
  }
}

template <class T>
RL_INLINE T positive(T a) {
  return a;
}

template <Real T>
RL_INLINE T abs(T a) {
  if constexpr (std::is_same_v<T, bool> || std::is_unsigned_v<T>) {
    return a;
  } else if constexpr (Integer<T>) {
    return a < 0 ? neg(a) : a;
  } else {
    return m::fabs(a);
  }
}

// The bits of a quiet NaN where x is NaN. ORed into a result they make it NaN without a branch: a chain of conditions
// on the same values becomes a tangle of masks.
RL_INLINE uint32_t nan_bits(float x) { return -static_cast<uint32_t>(x != x) & 0x7fc00000u; }
RL_INLINE uint64_t nan_bits(double x) { return -static_cast<uint64_t>(x != x) & 0x7ff8000000000000u; }

template <Real T>
RL_INLINE T sign(T a) {
  if constexpr (std::is_same_v<T, bool>) {
    return a;
  } else {
    const T result = static_cast<T>((a > T(0)) - (a < T(0)));
    if constexpr (Float<T>) {
      return m::from_bits(m::bits_of(result) | nan_bits(a));
    } else {
      return result;
    }
  }
}
template <Real T>
RL_INLINE T sgn(T a) {
  return m::sign(a);
}

template <class T>
RL_INLINE T square(T a) {
  return mul(a, a);
}
template <class T>
RL_INLINE T reciprocal(T a) {
  return T(1) / a;
}
template <Real T>
RL_INLINE T relu(T a) {
  return a < T(0) ? T(0) : a;  // NaN passes
}

// ---- choice

template <class T>
RL_INLINE T where(bool condition, T a, T b) {
  if constexpr (Complex<T>) {
    return {condition ? a.re : b.re, condition ? a.im : b.im};
  } else {
    return condition ? a : b;
  }
}

template <Real T>
RL_INLINE bool isnan(T x) {
  if constexpr (Float<T>) {
    return x != x;
  } else {
    return false;
  }
}
// NaN wins.
template <Real T>
RL_INLINE T maximum(T a, T b) {
  const T result = a > b ? a : b;
  if constexpr (Float<T>) {
    return m::from_bits(m::bits_of(result) | nan_bits(a));
  } else {
    return result;
  }
}
template <Real T>
RL_INLINE T minimum(T a, T b) {
  const T result = a < b ? a : b;
  if constexpr (Float<T>) {
    return m::from_bits(m::bits_of(result) | nan_bits(a));
  } else {
    return result;
  }
}
// NaN loses.
template <Real T>
RL_INLINE T fmax(T a, T b) {
  const T result = a > b ? a : b;
  return m::isnan(b) ? a : result;
}
template <Real T>
RL_INLINE T fmin(T a, T b) {
  const T result = a < b ? a : b;
  return m::isnan(b) ? a : result;
}

// ---- comparison

template <class T>
RL_INLINE bool eq(T a, T b) {
  return a == b;
}
template <class T>
RL_INLINE bool ne(T a, T b) {
  return a != b;
}
template <Real T>
RL_INLINE bool lt(T a, T b) {
  return a < b;
}
template <Real T>
RL_INLINE bool le(T a, T b) {
  return a <= b;
}
template <Real T>
RL_INLINE bool gt(T a, T b) {
  return a > b;
}
template <Real T>
RL_INLINE bool ge(T a, T b) {
  return a >= b;
}

RL_INLINE bool logical_and(bool a, bool b) { return a & b; }
RL_INLINE bool logical_or(bool a, bool b) { return a | b; }
RL_INLINE bool logical_xor(bool a, bool b) { return a ^ b; }
RL_INLINE bool logical_not(bool a) { return !a; }

// ---- bits

template <class T>
RL_INLINE T bitwise_and(T a, T b) {
  return static_cast<T>(a & b);
}
template <class T>
RL_INLINE T bitwise_or(T a, T b) {
  return static_cast<T>(a | b);
}
template <class T>
RL_INLINE T bitwise_xor(T a, T b) {
  return static_cast<T>(a ^ b);
}
template <class T>
RL_INLINE T bitwise_not(T a) {
  if constexpr (std::is_same_v<T, bool>) {
    return !a;
  } else {
    return static_cast<T>(~a);
  }
}
// Counts that are negative or too large shift everything out.
template <Integer T>
RL_INLINE T bitwise_left_shift(T a, T b) {
  constexpr int bits = 8 * sizeof(T);
  const bool out = b < 0 || b >= T(bits);
  return out ? T(0) : static_cast<T>(static_cast<Wide<T>>(a) << (out ? 0 : b));
}
template <Integer T>
RL_INLINE T bitwise_right_shift(T a, T b) {
  constexpr int bits = 8 * sizeof(T);
  const bool out = b < 0 || b >= T(bits);
  // The sign fills up; for unsigned types one more shift than the last legal one gives 0.
  const T most = static_cast<T>(a >> (bits - 1));
  return out ? (std::is_signed_v<T> ? most : T(0)) : static_cast<T>(a >> (out ? 0 : b));
}

// ---- integer division. A zero divisor is reported by the kernel, whose result is then not used.

template <class T>
RL_INLINE int zero_divisor(T b) {
  if constexpr (Integer<T>) {
    return b == T(0);
  } else {
    return 0;
  }
}

// Quotient towards zero.
template <Integer T>
RL_INLINE T trunc_divide(T a, T b) {
  if constexpr (sizeof(T) <= 4) {
    // Exact: 53 bits separate any quotient of 32-bit integers from the whole number next to it. The most negative
    // number by -1 leaves the range of int32; going through int64 makes it wrap.
    const double divisor = b == 0 ? 1.0 : static_cast<double>(b);
    return static_cast<T>(static_cast<int64_t>(static_cast<double>(a) / divisor));
  } else {
    if (b == -1) return neg(a);
    return b == 0 ? T(0) : a / b;
  }
}
template <Float T>
RL_INLINE T trunc_divide(T a, T b) {
  return m::trunc(a / b);
}
template <Integer T>
RL_INLINE T fmod(T a, T b) {
  if constexpr (sizeof(T) <= 4) {
    return sub(a, mul(trunc_divide(a, b), b));
  } else {
    return b == 0 || b == -1 ? T(0) : a % b;
  }
}
template <Integer T>
RL_INLINE T floor_divide(T a, T b) {
  const T quotient = trunc_divide(a, b);
  const T rest = sub(a, mul(quotient, b));
  return static_cast<T>(quotient - ((rest != 0) & ((rest < 0) != (b < 0))));
}
template <Integer T>
RL_INLINE T remainder(T a, T b) {
  const T rest = m::fmod(a, b);
  return static_cast<T>(rest + ((rest != 0) & ((rest < 0) != (b < 0)) ? b : T(0)));
}

// ---- integer powers and divisors

template <class T>
  requires Integer<T> || std::is_same_v<T, bool>
RL_INLINE T pow(T base, T exponent) {
  if constexpr (std::is_same_v<T, bool>) {
    return base | !exponent;
  } else {
    if (exponent < 0) {  // 1 / base**|exponent|, rounded towards zero
      if (base == 1) return T(1);
      if (base == T(-1)) return exponent & 1 ? T(-1) : T(1);
      return T(0);
    }
    T result = T(1);
    while (exponent > 0) {
      if (exponent & 1) result = mul(result, base);
      base = mul(base, base);
      exponent = static_cast<T>(exponent >> 1);
    }
    return result;
  }
}

template <Integer T>
RL_INLINE T gcd(T a, T b) {
  Wide<T> x = static_cast<Wide<T>>(m::abs(a)), y = static_cast<Wide<T>>(m::abs(b));
  while (y != 0) {
    const Wide<T> rest = x % y;
    x = y;
    y = rest;
  }
  return static_cast<T>(x);
}
template <Integer T>
RL_INLINE T lcm(T a, T b) {
  const T divisor = gcd(a, b);
  return divisor == 0 ? T(0) : m::abs(mul(static_cast<T>(a / divisor), b));
}

// ---- rounding and classes of numbers that are whole already

template <class T>
  requires Integer<T> || std::is_same_v<T, bool>
RL_INLINE T floor(T a) {
  return a;
}
template <class T>
  requires Integer<T> || std::is_same_v<T, bool>
RL_INLINE T ceil(T a) {
  return a;
}
template <class T>
  requires Integer<T> || std::is_same_v<T, bool>
RL_INLINE T trunc(T a) {
  return a;
}
template <class T>
  requires Integer<T> || std::is_same_v<T, bool>
RL_INLINE T round(T a) {
  return a;
}
template <Float T>
RL_INLINE T frac(T a) {
  return a - m::trunc(a);
}
template <Real T>
RL_INLINE bool isinf(T x) {
  if constexpr (Float<T>) {
    return m::fabs(x) == T(__builtin_inf());
  } else {
    return false;
  }
}
template <Real T>
RL_INLINE bool isfinite(T x) {
  if constexpr (Float<T>) {
    return m::fabs(x) < T(__builtin_inf());
  } else {
    return true;
  }
}
template <Real T>
RL_INLINE bool isposinf(T x) {
  return m::isinf(x) & (x > T(0));
}
template <Real T>
RL_INLINE bool isneginf(T x) {
  return m::isinf(x) & (x < T(0));
}
template <Real T>
RL_INLINE bool signbit(T x) {
  if constexpr (Float<T>) {
    return m::sign_of_bits(x);
  } else if constexpr (std::is_signed_v<T>) {
    return x < T(0);
  } else {
    return false;
  }
}

// ---- real numbers as complex ones

template <Real T>
RL_INLINE T conj(T a) {
  return a;
}
template <Real T>
RL_INLINE T real(T a) {
  return a;
}
template <Real T>
RL_INLINE T imag(T) {
  return T(0);
}
template <Float T>
RL_INLINE T angle(T a) {
  const T pi = T(3.14159265358979323846);
  return a != a ? a : a < T(0) ? pi : T(0);
}
template <Real T>
RL_INLINE T heaviside(T a, T at_zero) {
  return a == T(0) ? at_zero : T(a > T(0));
}

}  // namespace m
}  // namespace
}  // namespace rl
