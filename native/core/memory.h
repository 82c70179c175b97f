// Scratch memory for kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight.h"

namespace rl {

// A block of the caching allocator for the life of a scope; get() is null when memory could not be had.
//   rl::Scratch<float> column(n);
//   if (!column) return RL_MEMORY_ERROR;   // the message is set
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t count)
      : data_(static_cast<T*>(count < 0 || static_cast<size_t>(count) > SIZE_MAX / sizeof(T)
                                  ? rl_allocate(SIZE_MAX)
                                  : rl_allocate(static_cast<size_t>(count) * sizeof(T)))) {}
  ~Scratch() { rl_deallocate(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  explicit operator bool() const { return data_ != nullptr; }
  T* get() const { return data_; }
  T& operator[](int64_t i) const { return data_[i]; }

 private:
  T* data_;
};

}  // namespace rl
