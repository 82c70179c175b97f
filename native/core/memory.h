// Scratch memory for kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"
#include "rushlight.h"

namespace rl {

// Always inlined: files compiled once per instruction set use it.
//
// A block of the caching allocator for the life of a scope; get() is null when memory could not be had.
//   rl::Scratch<float> column(n);
//   if (!column) return RL_MEMORY_ERROR;   // the message is set
template <class T>
class Scratch {
 public:
  RL_INLINE explicit Scratch(int64_t count)
      : data_(static_cast<T*>(count < 0 || static_cast<size_t>(count) > SIZE_MAX / sizeof(T)
                                  ? rl_allocate(SIZE_MAX)
                                  : rl_allocate(static_cast<size_t>(count) * sizeof(T)))) {}
  RL_INLINE ~Scratch() { rl_deallocate(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  RL_INLINE explicit operator bool() const { return data_ != nullptr; }
  RL_INLINE T* get() const { return data_; }
  RL_INLINE T& operator[](int64_t i) const { return data_[i]; }

 private:
  T* data_;
};

}  // namespace rl
