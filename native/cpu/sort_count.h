// Slices of 8-bit elements: their 256 keys are counted, so that sorting and selecting take no words of working memory.
#pragma once

#include "cpu/sort_slices.h"

namespace rl {

template <class T>
inline constexpr bool kCounted = SortKey<T>::kBits == 8;

inline constexpr int kByteKeys = 256;

// How often each key occurs, by blocks of `block` elements, which are few.
class KeyCounts {
 public:
  explicit KeyCounts(int64_t n)
      : block_(std::max(int64_t{1} << 15, ceil_div(n, 128))),
        blocks_(ceil_div(n, block_)),
        n_(n),
        counts_(blocks_ * kByteKeys) {}
  bool ok() const { return counts_.ok(); }

  template <class T>
  void count(const char* from, int64_t step, uint8_t flip) {
    parallel_for(n_, block_, [&](int64_t begin, int64_t end) {
      int64_t* counts = of_block(begin);
      uint32_t near[4][kByteKeys] = {};  // equal neighbours do not wait for each other
      int64_t i = begin;
      while (i < end) {
        const int64_t stop = std::min(end, i + (int64_t{1} << 30));
        for (; i + 4 <= stop; i += 4) {
          for (int64_t j = 0; j < 4; ++j) ++near[j][load_key<T>(from + (i + j) * step) ^ flip];
        }
        for (; i < stop; ++i) ++near[0][load_key<T>(from + i * step) ^ flip];
      }
      for (int k = 0; k < kByteKeys; ++k) counts[k] = int64_t{near[0][k]} + near[1][k] + near[2][k] + near[3][k];
    });
  }
  int64_t total(int key) const {
    int64_t sum = 0;
    for (int64_t b = 0; b < blocks_; ++b) sum += counts_[b * kByteKeys + key];
    return sum;
  }
  // Makes of the counts where each block's elements of each key begin in the order.
  void to_starts() {
    int64_t sum = 0;
    for (int key = 0; key < kByteKeys; ++key) {
      for (int64_t b = 0; b < blocks_; ++b) {
        int64_t& count = counts_[b * kByteKeys + key];
        const int64_t here = count;
        count = sum;
        sum += here;
      }
    }
  }
  int64_t* of_block(int64_t begin) { return counts_.get() + begin / block_ * kByteKeys; }
  int64_t block() const { return block_; }

 private:
  int64_t block_, blocks_, n_;
  Scratch<int64_t> counts_;
};

// The first `wanted` elements of the order, equal ones by their indices.
template <class T>
rl_status sort_counted(const SliceCall& call, int64_t wanted, bool reverse) {
  using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
  const uint8_t flip = reverse ? 0xff : 0;
  KeyCounts counts(call.n);
  if (!counts.ok()) return RL_MEMORY_ERROR;
  counts.count<T>(call.src, call.src_step, flip);
  if (call.values != nullptr) {
    int64_t at = 0;
    for (int key = 0; key < kByteKeys && at < wanted; ++key) {
      const Stored value = static_cast<Stored>(SortKey<T>::back(static_cast<uint8_t>(key ^ flip)));
      const int64_t end = std::min(wanted, at + counts.total(key));
      if (call.values_step == 1) {
        std::memset(call.values + at, static_cast<uint8_t>(value), static_cast<size_t>(end - at));
      } else {
        for (int64_t i = at; i < end; ++i) *reinterpret_cast<Stored*>(call.values + i * call.values_step) = value;
      }
      at = end;
    }
  }
  if (call.indices == nullptr) return RL_OK;
  counts.to_starts();
  parallel_for(call.n, counts.block(), [&](int64_t begin, int64_t end) {
    int64_t* next = counts.of_block(begin);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t to = next[load_key<T>(call.src + i * call.src_step) ^ flip]++;
      if (to < wanted) *reinterpret_cast<int64_t*>(call.indices + to * call.indices_step) = i;
    }
  });
  return RL_OK;
}

// Where the k-th least (from 0) of n elements stands, equal ones by their indices; with `mode` where the last of the
// least of the most frequent ones does. -1: out of memory.
template <class T>
int64_t select_counted(const char* from, int64_t step, int64_t n, int64_t k, bool mode) {
  KeyCounts counts(n);
  if (!counts.ok()) return -1;
  counts.count<T>(from, step, 0);
  int key = 0;
  if (mode) {
    for (int other = 1; other < kByteKeys; ++other) {
      if (counts.total(other) > counts.total(key)) key = other;
    }
    k = counts.total(key) - 1;
  } else {
    for (int64_t here; k >= (here = counts.total(key)); ++key) k -= here;
  }
  int64_t i = 0;
  for (; load_key<T>(from + i * step) != key || k-- > 0; ++i) {
  }
  return i;
}

}  // namespace rl
