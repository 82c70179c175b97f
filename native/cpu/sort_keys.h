// Unsigned keys that sort as the elements do: NaN above everything, zeros equal.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/dtype.h"

namespace rl {

// of() maps an element to its key, back() returns an element from a key. kMany: keys that stand for several elements
// (both zeros, any NaN), whose element must be looked up.
template <class T>
struct SortKey {
  static_assert(std::is_integral_v<T>);
  static constexpr int kBits = 8 * static_cast<int>(sizeof(T));
  static constexpr bool kMany = false;
  using Key = std::conditional_t<
      kBits == 8, uint8_t,
      std::conditional_t<kBits == 16, uint16_t, std::conditional_t<kBits == 32, uint32_t, uint64_t>>>;
  static constexpr Key kFlip = std::is_signed_v<T> ? static_cast<Key>(Key(1) << (kBits - 1)) : Key(0);
  static RL_INLINE Key of(T value) { return static_cast<Key>(static_cast<Key>(value) ^ kFlip); }
  static RL_INLINE T back(Key key) { return static_cast<T>(static_cast<Key>(key ^ kFlip)); }
  static RL_INLINE bool many(Key) { return false; }
  static RL_INLINE bool nan(Key) { return false; }
};

template <class Stored, class Bits, Bits kInfinity>
struct FloatSortKey {
  static constexpr int kBits = 8 * static_cast<int>(sizeof(Bits));
  static constexpr bool kMany = true;
  using Key = Bits;
  static constexpr Bits kSign = static_cast<Bits>(Bits(1) << (kBits - 1));
  static constexpr Bits kNan = static_cast<Bits>(~Bits(0));
  static RL_INLINE Key of(Stored value) {
    const Bits bits = bit_cast<Bits>(value);
    const Bits magnitude = static_cast<Bits>(bits & static_cast<Bits>(~kSign));
    // Negative numbers descend below kSign with growing magnitude; -0 meets 0 there.
    const Bits key = (bits & kSign) ? static_cast<Bits>(kSign - magnitude) : static_cast<Bits>(kSign + magnitude);
    return magnitude > kInfinity ? kNan : key;
  }
  static RL_INLINE Stored back(Key key) {
    const Bits bits =
        key < kSign ? static_cast<Bits>(kSign | static_cast<Bits>(kSign - key)) : static_cast<Bits>(key - kSign);
    return bit_cast<Stored>(bits);
  }
  static RL_INLINE bool many(Key key) { return key == kSign || key == kNan; }
  static RL_INLINE bool nan(Key key) { return key == kNan; }
};

template <>
struct SortKey<half> : FloatSortKey<half, uint16_t, 0x7c00> {};
template <>
struct SortKey<bfloat16> : FloatSortKey<bfloat16, uint16_t, 0x7f80> {};
template <>
struct SortKey<float> : FloatSortKey<float, uint32_t, 0x7f800000> {};
template <>
struct SortKey<double> : FloatSortKey<double, uint64_t, 0x7ff0000000000000> {};

// bool memory may hold any byte; what is not zero is true.
template <>
struct SortKey<bool> {
  static constexpr int kBits = 8;
  static constexpr bool kMany = false;
  using Key = uint8_t;
  static RL_INLINE Key of(bool value) { return value ? 1 : 0; }
  static RL_INLINE bool back(Key key) { return key != 0; }
  static RL_INLINE bool many(Key) { return false; }
  static RL_INLINE bool nan(Key) { return false; }
};

// The element as memory holds it (bool: through its byte).
template <class T>
RL_INLINE typename SortKey<T>::Key load_key(const void* at) {
  if constexpr (std::is_same_v<T, bool>) {
    return *static_cast<const uint8_t*>(at) != 0;
  } else {
    return SortKey<T>::of(*static_cast<const T*>(at));
  }
}

}  // namespace rl
