// Copies between strided arrays, converting elements: how matrix products and convolutions bring operands into the
// layout their inner loops want.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/dtype.h"
#include "core/parallel.h"

namespace rl {

// One row of n elements.
template <class To, class From>
static inline void copy_row(To* to, int64_t to_stride, const From* from, int64_t from_stride, int64_t n) {
  if (to_stride == 1 && from_stride == 1) {
    if constexpr (std::is_same_v<To, From>) {
      std::memcpy(to, from, static_cast<size_t>(n) * sizeof(To));
    } else if constexpr (std::is_same_v<To, float> && is_reduced_float_v<From>) {
      to_float(from, to, n);
    } else if constexpr (std::is_same_v<From, float> && is_reduced_float_v<To>) {
      from_float(from, to, n);
    } else {
      for (int64_t i = 0; i < n; ++i) to[i] = convert<To>(from[i]);
    }
    return;
  }
  if (to_stride == 1 && from_stride == 0) {
    std::fill_n(to, n, convert<To>(from[0]));
    return;
  }
  for (int64_t i = 0; i < n; ++i) to[i * to_stride] = convert<To>(from[i * from_stride]);
}

// An n-dimensional copy. The last dimension is the inner loop; the caller orders the dimensions.
template <class To, class From>
static inline void copy_strided(int ndim, const int64_t* shape, To* to, const int64_t* to_strides, const From* from,
                                const int64_t* from_strides) {
  if (ndim == 0) {
    *to = convert<To>(*from);
    return;
  }
  const int64_t inner = shape[ndim - 1];
  int64_t rows = 1;
  for (int d = 0; d < ndim - 1; ++d) rows *= shape[d];
  if (rows == 0 || inner == 0) return;
  constexpr int64_t kBlockElements = 32768;
  parallel_for(rows, std::max<int64_t>(1, kBlockElements / inner), [&](int64_t begin, int64_t end) {
    int64_t index[RL_MAX_DIMS];
    int64_t to_offset = 0, from_offset = 0, rest = begin;
    for (int d = ndim - 2; d >= 0; --d) {
      index[d] = rest % shape[d];
      rest /= shape[d];
      to_offset += index[d] * to_strides[d];
      from_offset += index[d] * from_strides[d];
    }
    for (int64_t row = begin;;) {
      copy_row(to + to_offset, to_strides[ndim - 1], from + from_offset, from_strides[ndim - 1], inner);
      if (++row == end) break;
      for (int d = ndim - 2; d >= 0; --d) {
        to_offset += to_strides[d];
        from_offset += from_strides[d];
        if (++index[d] < shape[d]) break;
        to_offset -= to_strides[d] * shape[d];
        from_offset -= from_strides[d] * shape[d];
        index[d] = 0;
      }
    }
  });
}

// The bytes that a tensor's elements lie in: [begin, end), empty without elements.
struct ByteRange {
  const char* begin;
  const char* end;
};

static inline ByteRange byte_range(const rl_tensor* t) {
  const char* begin = static_cast<const char*>(t->data);
  const char* end = begin;
  const int64_t size = dtype_size(t->dtype);
  for (int d = 0; d < t->ndim; ++d) {
    if (t->shape[d] == 0) return {begin, begin};
    const int64_t reach = (t->shape[d] - 1) * t->strides[d] * size;
    (reach < 0 ? begin : end) += reach;
  }
  return {begin, end + size};
}

static inline bool overlap(const rl_tensor* a, const rl_tensor* b) {
  const ByteRange x = byte_range(a), y = byte_range(b);
  return x.begin < y.end && y.begin < x.end;
}

}  // namespace rl
