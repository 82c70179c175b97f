// Waiting for a 32-bit word to change.
#pragma once

#include <atomic>
#include <cstdint>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#else
#include <climits>
#endif

namespace rl {

#if defined(__linux__)

// Sleeps while *word equals `expected`; may return early.
inline void futex_wait(std::atomic<uint32_t>* word, uint32_t expected) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

inline void futex_wake(std::atomic<uint32_t>* word, int count) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

#else

inline void futex_wait(std::atomic<uint32_t>* word, uint32_t expected) { word->wait(expected); }
inline void futex_wake(std::atomic<uint32_t>* word, int) { word->notify_all(); }

#endif

}  // namespace rl
