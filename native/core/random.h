// The random number generator: MT19937 with PyTorch's bookkeeping (see docs/design/0004-random.md).
#pragma once

#include <cstdint>
#include <mutex>

#include "rushlight.h"
#include "rushlight/random.h"

namespace rl {

constexpr int kTwisterWords = 624;
constexpr int kTwisterShift = 397;

// The output function of the Mersenne Twister.
static inline uint32_t temper(uint32_t y) {
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}

// Uniform in [0, 1) from the low 53 bits.
static inline double unit_double(uint64_t bits) {
  return static_cast<double>(static_cast<int64_t>(bits & ((uint64_t{1} << 53) - 1))) * 0x1p-53;
}

}  // namespace rl

struct rl_generator {
  uint64_t seed = 0;
  uint32_t words[rl::kTwisterWords] = {};
  // The words from `next` on are unused; left - 1 of them remain before the block must be renewed. A fresh seed has
  // left 1 and next 0. Both are kept because both are part of the saved state.
  int32_t left = 1;
  uint32_t next = 0;
  // The second number of a pair of normal numbers, kept for the next call. The float one is only carried for states
  // saved by PyTorch: nothing draws it.
  bool has_double_normal = false;
  bool has_float_normal = false;
  double double_normal = 0;
  float float_normal = 0;
  mutable std::mutex mutex;

  void set_seed(uint64_t value);
  void renew();  // the next block of words

  uint32_t random32() {
    if (--left == 0) renew();
    return rl::temper(words[next++]);
  }
  uint64_t random64() {
    const uint64_t high = random32();
    return high << 32 | random32();
  }
  double uniform() { return rl::unit_double(random64()); }
};
