// Copies of bytes, around the cache when they are too many for it.
#pragma once

#include "cpu/index_walk.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace rl {

// From this many bytes on, what is written will not be found in the cache later: reading it in first is a waste.
inline constexpr int64_t kStreamBytes = int64_t{1} << 25;

// Runs too short to be copied by microcode, which is slow where source and destination are not aligned alike.
inline void copy_run(char* to, const char* from, int64_t n) {
#if defined(__SSE2__)
  if (n < 256 || n > (int64_t{1} << 16)) {
    std::memcpy(to, from, static_cast<size_t>(n));
    return;
  }
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i + 16));
    const __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i + 32));
    const __m128i d = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i + 48));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), a);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i + 16), b);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i + 32), c);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i + 48), d);
  }
  std::memcpy(to + i, from + i, static_cast<size_t>(n - i));
#else
  std::memcpy(to, from, static_cast<size_t>(n));
#endif
}

inline void copy_bytes(char* to, const char* from, int64_t n, [[maybe_unused]] bool stream) {
#if defined(__SSE2__)
  if (stream && n >= 4096) {
    const int64_t head = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) & 63);
    std::memcpy(to, from, static_cast<size_t>(head));
    int64_t i = head;
    for (; i + 64 <= n; i += 64) {
      const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
      const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i + 16));
      const __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i + 32));
      const __m128i d = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i + 48));
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), a);
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i + 16), b);
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i + 32), c);
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i + 48), d);
    }
    _mm_sfence();
    std::memcpy(to + i, from + i, static_cast<size_t>(n - i));
    return;
  }
#endif
  std::memcpy(to, from, static_cast<size_t>(n));
}

}  // namespace rl
