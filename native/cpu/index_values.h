// What scattering kernels do to one element: sums, products and extremes as PyTorch takes them, for every dtype.
#pragma once

#include <limits>
#include <type_traits>

#include "core/dtype.h"

namespace rl {

template <class T>
inline T wrapping_add(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return a || b;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
  } else if constexpr (is_storage_only_v<T>) {
    return T(static_cast<compute_type<T>>(a) + static_cast<compute_type<T>>(b));
  } else {
    return a + b;
  }
}

template <class T>
inline T wrapping_multiply(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return a && b;
  } else if constexpr (std::is_integral_v<T>) {
    // 64 bits: the product of two uint16_t promoted to int may overflow.
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else if constexpr (is_storage_only_v<T>) {
    return T(static_cast<compute_type<T>>(a) * static_cast<compute_type<T>>(b));
  } else {
    return a * b;
  }
}

template <class T>
inline bool is_nan(T a) {
  if constexpr (is_reduced_float_v<T>) {
    return is_nan(static_cast<float>(a));
  } else if constexpr (std::is_floating_point_v<T>) {
    return a != a;
  } else {
    return false;
  }
}

template <class T>
inline bool less(T a, T b) {
  if constexpr (is_reduced_float_v<T>) {
    return static_cast<float>(a) < static_cast<float>(b);
  } else {
    return a < b;
  }
}

template <class T>
inline bool differs(T a, T b) {
  if constexpr (is_storage_only_v<T>) {
    return static_cast<compute_type<T>>(a) != static_cast<compute_type<T>>(b);
  } else {
    return a != b;
  }
}

// Whether y replaces the greatest value so far, x: it is greater, or the first NaN.
template <class T>
inline bool replaces_larger(T x, T y) {
  if constexpr (is_reduced_float_v<T>) {
    return replaces_larger(static_cast<float>(x), static_cast<float>(y));
  } else {
    return !(x >= y) && x == x;
  }
}
template <class T>
inline bool replaces_smaller(T x, T y) {
  if constexpr (is_reduced_float_v<T>) {
    return replaces_smaller(static_cast<float>(x), static_cast<float>(y));
  } else {
    return !(x <= y) && x == x;
  }
}

template <class T>
inline T lowest_value() {
  if constexpr (is_reduced_float_v<T>) {
    return T(-std::numeric_limits<float>::infinity());
  } else if constexpr (std::is_floating_point_v<T>) {
    return -std::numeric_limits<T>::infinity();
  } else {
    return std::numeric_limits<T>::lowest();
  }
}
template <class T>
inline T highest_value() {
  if constexpr (is_reduced_float_v<T>) {
    return T(std::numeric_limits<float>::infinity());
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::numeric_limits<T>::infinity();
  } else {
    return std::numeric_limits<T>::max();
  }
}

// value / count; integers round down.
template <class T>
inline T divide_by_count(T value, int64_t count) {
  if constexpr (std::is_same_v<T, complex32>) {
    return T(divide_by_count(static_cast<complex64>(value), count));
  } else if constexpr (is_complex_v<T>) {
    const auto divisor = static_cast<real_type<T>>(count);
    return T(value.re / divisor, value.im / divisor);
  } else if constexpr (is_float_v<T>) {
    return T(static_cast<compute_type<T>>(value) / static_cast<compute_type<T>>(count));
  } else {
    const int64_t wide = static_cast<int64_t>(value);
    const int64_t quotient = wide / count;
    return static_cast<T>(quotient - (wide % count < 0 ? 1 : 0));
  }
}

// ---- what happens where an element x of the indexed tensor meets an element y of the dense one. kOrdered: values that
// meet in one x must come in order.
template <class T>
struct Fetch {
  static constexpr bool kOrdered = false, kCopies = true, kAdds = false;
  void operator()(const T& x, T& y) const { y = x; }
};
template <class T>
struct Store {
  static constexpr bool kOrdered = true, kCopies = true, kAdds = false;
  void operator()(T& x, const T& y) const { x = y; }
};
template <class T>
struct Accumulate {
  static constexpr bool kOrdered = true, kCopies = false, kAdds = true;
  void operator()(T& x, const T& y) const { x = wrapping_add(x, y); }
};
template <class T>
struct AccumulateScaled {
  static constexpr bool kOrdered = true, kCopies = false, kAdds = false;
  T alpha;
  void operator()(T& x, const T& y) const { x = wrapping_add(x, wrapping_multiply(alpha, y)); }
};
template <class T>
struct Multiply {
  static constexpr bool kOrdered = true, kCopies = false, kAdds = false;
  void operator()(T& x, const T& y) const { x = wrapping_multiply(x, y); }
};
template <class T>
struct TakeLarger {
  static constexpr bool kOrdered = true, kCopies = false, kAdds = false;
  // A branch: once extremes have been seen, most values are not.
  void operator()(T& x, const T& y) const {
    if (replaces_larger(x, y)) x = y;
  }
};
template <class T>
struct TakeSmaller {
  static constexpr bool kOrdered = true, kCopies = false, kAdds = false;
  void operator()(T& x, const T& y) const {
    if (replaces_smaller(x, y)) x = y;
  }
};

}  // namespace rl
