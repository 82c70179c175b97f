// The slices that sorting kernels work on: lines of n elements along one dim, each loaded as words that carry its keys.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>

#include "cpu/index_walk.h"
#include "cpu/sort_core.h"
#include "cpu/sort_keys.h"
#include "rushlight/sort.h"

namespace rl {

inline constexpr int64_t kStackWords = kRankLimit;

// Room for sorting slices of up to n words; small ones need no allocation.
class SortSpace {
 public:
  explicit SortSpace(int64_t n) : heap_(n <= kStackWords ? 0 : 3 * n), n_(std::max(n, kStackWords)) {}
  bool ok() const { return heap_.ok(); }
  uint64_t* words() { return base(); }
  uint64_t* other() { return base() + n_; }
  uint64_t* keys() { return base() + 2 * n_; }

 private:
  uint64_t* base() { return n_ == kStackWords ? stack_ : heap_.get(); }
  uint64_t stack_[3 * kStackWords];
  Scratch<uint64_t> heap_;
  int64_t n_;
};

// The words of a slice: key << index_bits | index. Keys that do not fit beside the index have lost their `shift` low
// bits.
struct SliceWords {
  int index_bits, shift, high;  // the key lies in bits [index_bits, high)
  uint64_t least;               // what was taken off the keys
};

inline int index_bits_of(int64_t n) {
  return n < 2 ? 1 : static_cast<int>(std::bit_width(static_cast<uint64_t>(n - 1)));
}

// Loads the n elements at `from`, `step` bytes apart. keys() is filled only for 64-bit types.
template <class T>
SliceWords load_slice(const char* from, int64_t step, int64_t n, bool reverse, SortSpace& space);
// The same, sorted. Words of equal keys are in the order of their indices.
template <class T>
SliceWords sort_slice(const char* from, int64_t step, int64_t n, bool reverse, SortSpace& space);
// Puts words of keys that lost bits in their right order.
void order_ties(const SliceWords& shape, int64_t n, SortSpace& space);

// ---- walking the slices

// Operand 0 is src, 1 values, 2 indices (null data: not wanted).
struct Slices {
  Box<3> outer;   // every dim but the one sorted
  int64_t n;      // elements of a slice of src
  int64_t out_n;  // and of values and indices
  int64_t steps[3];
  int64_t item;
  int64_t words;  // of working room that the body wants for a slice: n unless it says otherwise
};

// Checks dtypes and shapes; out_n is the size of values and indices along dim (-1: src's).
rl_status plan_slices(const char* name, const rl_tensor& src, int32_t dim, int64_t out_n, const rl_tensor* values,
                      const rl_tensor* indices, Slices* plan);

// One slice: from src to values and indices (each may be null), with their steps.
struct SliceCall {
  const char* src;
  char* values;
  char* indices;
  int64_t src_step, values_step, indices_step;
  int64_t n;
};
using SliceBody = rl_status (*)(const SliceCall& call, SortSpace& space, const void* context);

// Calls body for every slice: slices are shared among the threads unless they are so long that body itself is threaded.
// Slices that lie across memory are handled several at a time, through dense copies.
rl_status for_each_slice(const Slices& plan, SliceBody body, const void* context);

// ---- templates

template <class Body>
inline void slice_blocks(int64_t n, const Body& body) {
  parallel_for(n, int64_t{1} << 15, body);
}

template <class T>
SliceWords load_slice(const char* from, int64_t step, int64_t n, bool reverse, SortSpace& space) {
  using Key = typename SortKey<T>::Key;
  constexpr int kBits = SortKey<T>::kBits;
  const Key flip = reverse ? static_cast<Key>(~Key(0)) : Key(0);
  const int bits = index_bits_of(n);
  uint64_t* const words = space.words();
  if (kBits <= 32 && bits <= 32) {
    std::atomic<uint64_t> varying{0};
    const Key first = n > 0 ? static_cast<Key>(load_key<T>(from) ^ flip) : Key(0);
    slice_blocks(n, [&](int64_t begin, int64_t end) {
      Key differing = 0;
      const auto load = [&](int64_t i, const char* at) {
        const Key key = static_cast<Key>(load_key<T>(at) ^ flip);
        differing = static_cast<Key>(differing | (key ^ first));
        words[i] = static_cast<uint64_t>(key) << bits | static_cast<uint64_t>(i);
      };
      if (step == static_cast<int64_t>(sizeof(T))) {
        for (int64_t i = begin; i < end; ++i) load(i, from + i * static_cast<int64_t>(sizeof(T)));
      } else {
        for (int64_t i = begin; i < end; ++i) load(i, from + i * step);
      }
      varying.fetch_or(differing, std::memory_order_relaxed);
    });
    const uint64_t mask = varying.load(std::memory_order_relaxed);
    return {bits, 0, bits + static_cast<int>(std::bit_width(mask)), 0};
  }
  uint64_t* const keys = space.keys();
  std::atomic<uint64_t> least{~uint64_t{0}}, greatest{0};
  slice_blocks(n, [&](int64_t begin, int64_t end) {
    uint64_t low = ~uint64_t{0}, high = 0;
    for (int64_t i = begin; i < end; ++i) {
      const uint64_t key = static_cast<Key>(load_key<T>(from + i * step) ^ flip);
      keys[i] = key;
      low = std::min(low, key);
      high = std::max(high, key);
    }
    for (uint64_t seen = least.load(); low < seen && !least.compare_exchange_weak(seen, low);) {
    }
    for (uint64_t seen = greatest.load(); high > seen && !greatest.compare_exchange_weak(seen, high);) {
    }
  });
  const uint64_t base = least.load();
  const int range = n > 0 ? static_cast<int>(std::bit_width(greatest.load() - base)) : 0;
  const int shift = std::max(0, range + bits - 64);
  slice_blocks(n, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) words[i] = ((keys[i] - base) >> shift) << bits | static_cast<uint64_t>(i);
  });
  return {bits, shift, bits + range - shift, base};
}

template <class T>
SliceWords sort_slice(const char* from, int64_t step, int64_t n, bool reverse, SortSpace& space) {
  const SliceWords shape = load_slice<T>(from, step, n, reverse, space);
  sort_words(space.words(), space.other(), n, shape.index_bits, shape.high);
  if (shape.shift != 0) order_ties(shape, n, space);
  return shape;
}

// Writes the elements and the indices of words [0, n).
template <class T>
void emit_words(const SliceCall& call, const SliceWords& shape, const uint64_t* words, int64_t n, bool reverse) {
  using Key = typename SortKey<T>::Key;
  using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
  const Key flip = reverse ? static_cast<Key>(~Key(0)) : Key(0);
  const uint64_t mask = (uint64_t{1} << shape.index_bits) - 1;
  slice_blocks(n, [&](int64_t begin, int64_t end) {
    if (call.indices != nullptr) {
      if (call.indices_step == 8) {
        int64_t* out = reinterpret_cast<int64_t*>(call.indices);
        for (int64_t i = begin; i < end; ++i) out[i] = static_cast<int64_t>(words[i] & mask);
      } else {
        for (int64_t i = begin; i < end; ++i)
          *reinterpret_cast<int64_t*>(call.indices + i * call.indices_step) = static_cast<int64_t>(words[i] & mask);
      }
    }
    if (call.values == nullptr) return;
    const auto source = [&](uint64_t word) {
      return *reinterpret_cast<const Stored*>(call.src + static_cast<int64_t>(word & mask) * call.src_step);
    };
    const auto put = [&](int64_t i, Stored value) {
      *reinterpret_cast<Stored*>(call.values + i * call.values_step) = value;
    };
    if (shape.shift != 0 || std::is_same_v<T, bool>) {
      for (int64_t i = begin; i < end; ++i) put(i, source(words[i]));
      return;
    }
    // Elements are cheaper to make from their keys than to look up.
    for (int64_t i = begin; i < end; ++i) {
      const Key key = static_cast<Key>(static_cast<Key>((words[i] >> shape.index_bits) + shape.least) ^ flip);
      if (SortKey<T>::kMany && SortKey<T>::many(key)) [[unlikely]] {
        put(i, source(words[i]));
      } else {
        put(i, static_cast<Stored>(SortKey<T>::back(key)));
      }
    }
  });
}

}  // namespace rl
