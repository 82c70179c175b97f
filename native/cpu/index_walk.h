// What the indexing, sorting and copying kernels share: boxes of elements walked in row-major order for several
// operands at once, blocks of work for the thread pool, and scratch memory. Not for files compiled once per instruction
// set.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/dtype.h"
#include "core/error.h"
#include "core/parallel.h"
#include "rushlight.h"

namespace rl {

// Elements that are worth a block of their own on another thread.
constexpr int64_t kBlockElements = 16384;

inline int64_t element_count(const rl_tensor& t) {
  int64_t count = 1;
  for (int d = 0; d < t.ndim; ++d) count *= t.shape[d];
  return count;
}

inline bool same_shape(const rl_tensor& a, const rl_tensor& b) {
  if (a.ndim != b.ndim) return false;
  for (int d = 0; d < a.ndim; ++d) {
    if (a.shape[d] != b.shape[d]) return false;
  }
  return true;
}

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Whether row-major neighbours are neighbours in memory.
inline bool is_contiguous(const rl_tensor& t) {
  int64_t expected = 1;
  for (int d = t.ndim - 1; d >= 0; --d) {
    if (t.shape[d] == 1) continue;
    if (t.strides[d] != expected) return t.shape[d] == 0;
    expected *= t.shape[d];
  }
  return true;
}

// A fresh row-major descriptor over `data`, with its own shape and strides.
struct DenseTensor {
  rl_tensor desc;
  int64_t shape[RL_MAX_DIMS];
  int64_t strides[RL_MAX_DIMS];
  DenseTensor(void* data, int dtype, int ndim, const int64_t* sizes) {
    desc = {data, shape, strides, ndim, static_cast<uint8_t>(dtype), 0, {0, 0}};
    int64_t stride = 1;
    for (int d = ndim - 1; d >= 0; --d) {
      shape[d] = sizes[d];
      strides[d] = stride;
      stride *= sizes[d];
    }
  }
  DenseTensor(const DenseTensor&) = delete;
  DenseTensor& operator=(const DenseTensor&) = delete;
};

// Uninitialised memory for the duration of a kernel. Check ok() first: rl_allocate has left the message.
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t count)
      : data_(count > 0 && static_cast<uint64_t>(count) > SIZE_MAX / sizeof(T)
                  ? nullptr
                  : static_cast<T*>(rl_allocate(sizeof(T) * static_cast<size_t>(count > 0 ? count : 0)))) {}
  ~Scratch() { rl_deallocate(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  bool ok() const { return data_ != nullptr; }
  T* get() const { return data_; }
  T& operator[](int64_t i) const { return data_[i]; }

 private:
  T* data_;
};

// Elements moved as raw bytes: the type with that many.
struct Bytes16 {
  uint64_t low, high;
};
template <class Body>
inline void with_item_type(int64_t bytes, Body&& body) {
  switch (bytes) {
    case 1:
      body(uint8_t{});
      break;
    case 2:
      body(uint16_t{});
      break;
    case 4:
      body(uint32_t{});
      break;
    case 8:
      body(uint64_t{});
      break;
    default:
      body(Bytes16{});
      break;
  }
}

// A box of elements for K operands. Dims are pushed from the outermost to the innermost; those that every operand steps
// through evenly are merged. Strides are in bytes. Has at least one dim after finish().
template <int K>
struct Box {
  int ndim = 0;
  int64_t count = 1;
  char* data[K];
  int64_t shape[RL_MAX_DIMS];
  int64_t strides[RL_MAX_DIMS][K];

  void push(int64_t size, const int64_t (&steps)[K]) {
    count *= size;
    if (size == 1) return;
    if (ndim > 0) {
      bool even = true;
      for (int k = 0; k < K; ++k) even = even && strides[ndim - 1][k] == steps[k] * size;
      if (even) {
        shape[ndim - 1] *= size;
        for (int k = 0; k < K; ++k) strides[ndim - 1][k] = steps[k];
        return;
      }
    }
    shape[ndim] = size;
    for (int k = 0; k < K; ++k) strides[ndim][k] = steps[k];
    ++ndim;
  }
  void finish() {
    if (ndim == 0) {
      shape[0] = 1;
      for (int k = 0; k < K; ++k) strides[0][k] = 0;
      ndim = 1;
    }
  }
  int64_t run() const { return shape[ndim - 1]; }  // length of the innermost dim
  const int64_t (&steps() const)[K] { return strides[ndim - 1]; }
};

// Walks elements [begin, end) of the box in row-major order: body(pointers, n) for each run of n elements along the
// innermost dim, whose byte steps are box.steps().
template <int K, class Body>
inline void walk(const Box<K>& box, int64_t begin, int64_t end, Body&& body) {
  if (begin >= end || box.count == 0) return;
  const int last = box.ndim - 1;
  const int64_t run = box.shape[last];
  char* pointers[K];
  if (last == 0) {
    for (int k = 0; k < K; ++k) pointers[k] = box.data[k] + begin * box.strides[0][k];
    body(pointers, end - begin);
    return;
  }
  int64_t position[RL_MAX_DIMS];
  for (int k = 0; k < K; ++k) pointers[k] = box.data[k];
  int64_t rest = begin;
  for (int d = last; d >= 0; --d) {
    const int64_t size = box.shape[d];
    const int64_t quotient = rest / size;
    position[d] = rest - quotient * size;
    rest = quotient;
    for (int k = 0; k < K; ++k) pointers[k] += position[d] * box.strides[d][k];
  }
  int64_t left = end - begin;
  if (position[last] != 0) {  // the tail of a run that another block began
    const int64_t n = std::min(run - position[last], left);
    body(pointers, n);
    left -= n;
    for (int k = 0; k < K; ++k) pointers[k] -= position[last] * box.strides[last][k];
    if (left == 0) return;
    goto next_row;
  }
  for (;;) {
    {
      const int64_t n = std::min(run, left);
      char* at[K];
      for (int k = 0; k < K; ++k) at[k] = pointers[k];
      body(at, n);
      left -= n;
      if (left == 0) return;
    }
  next_row:
    for (int d = last - 1; d >= 0; --d) {
      for (int k = 0; k < K; ++k) pointers[k] += box.strides[d][k];
      if (++position[d] < box.shape[d]) break;
      for (int k = 0; k < K; ++k) pointers[k] -= box.shape[d] * box.strides[d][k];
      position[d] = 0;
    }
  }
}

template <int K, class Body>
inline void walk(const Box<K>& box, Body&& body) {
  walk(box, 0, box.count, body);
}

// The box of a single tensor.
inline void box_of(const rl_tensor& t, Box<1>& box) {
  const int64_t item = dtype_size(t.dtype);
  box.data[0] = static_cast<char*>(t.data);
  for (int d = 0; d < t.ndim; ++d) box.push(t.shape[d], {t.strides[d] * item});
  box.finish();
}

// `failure` for the first of the int64 values that is not in [low, high), naming a dimension of size `high`.
rl_status check_range(const Box<1>& box, int64_t low, int64_t high, int32_t dim, rl_status failure);

}  // namespace rl
