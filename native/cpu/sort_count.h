// Slices sorted and selected from by counting keys, which takes no words of working memory: of 8 bits always, of more
// bits where the slice is long.
#pragma once

#include "cpu/sort_slices.h"

namespace rl {

// Elements from which keys of more than 8 bits are counted. Words that hold 32 bits beside an index are selected from
// faster, until they take gigabytes.
inline constexpr int64_t kCountSlice = int64_t{1} << 17, kCountSlice32 = int64_t{1} << 22;

template <class T>
inline constexpr bool kCountable = SortKey<T>::kBits <= 16;
template <class T>
inline constexpr int kKeyCount = 1 << std::min(SortKey<T>::kBits, 16);

// Whether a slice is sorted by counting, whether one is selected from so.
template <class T>
bool sorts_by_counting(int64_t n) {
  return kCountable<T> && n > (SortKey<T>::kBits == 8 ? kRankLimit : kCountSlice);
}
template <class T>
bool selects_by_counting(int64_t n) {
  return n > (SortKey<T>::kBits == 8 ? kRankLimit : SortKey<T>::kBits == 32 ? kCountSlice32 : kCountSlice);
}

// How often each of `keys` keys occurs, by blocks of elements, which are few.
template <int keys>
class KeyCounts {
 public:
  explicit KeyCounts(int64_t n)
      : block_(std::max(int64_t{keys} * (keys > 256 ? 8 : 128), ceil_div(n, keys > 256 ? 32 : 128))),
        blocks_(ceil_div(n, block_)),
        n_(n),
        counts_(blocks_ * keys) {}
  bool ok() const { return counts_.ok(); }

  // key(i) is the key of element i, or `keys` to leave it out.
  template <class Key>
  void count(const Key& key) {
    parallel_for(n_, block_, [&](int64_t begin, int64_t end) {
      int64_t* const counts = of_block(begin);
      std::fill_n(counts, keys, 0);
      if constexpr (keys > 256) {
        for (int64_t i = begin; i < end; ++i) {
          const uint32_t here = key(i);
          if (here < keys) ++counts[here];
        }
      } else {
        uint32_t near[4][keys] = {};  // equal neighbours do not wait for each other
        int64_t i = begin;
        while (i < end) {
          const int64_t stop = std::min(end, i + (int64_t{1} << 30));
          for (; i + 4 <= stop; i += 4) {
            for (int64_t j = 0; j < 4; ++j) ++near[j][key(i + j)];
          }
          for (; i < stop; ++i) ++near[0][key(i)];
          for (int k = 0; k < keys; ++k) {
            counts[k] += int64_t{near[0][k]} + near[1][k] + near[2][k] + near[3][k];
            for (int j = 0; j < 4; ++j) near[j][k] = 0;
          }
        }
      }
    });
  }
  int64_t total(int key) const {
    int64_t sum = 0;
    for (int64_t b = 0; b < blocks_; ++b) sum += counts_[b * keys + key];
    return sum;
  }
  // Makes of the counts where each block's elements of each key begin in the order.
  void to_starts() {
    int64_t sum = 0;
    for (int key = 0; key < keys; ++key) {
      for (int64_t b = 0; b < blocks_; ++b) {
        int64_t& count = counts_[b * keys + key];
        const int64_t here = count;
        count = sum;
        sum += here;
      }
    }
  }
  int64_t* of_block(int64_t begin) { return counts_.get() + begin / block_ * keys; }
  int64_t block() const { return block_; }

 private:
  int64_t block_, blocks_, n_;
  Scratch<int64_t> counts_;
};

// The first `wanted` elements of the order, equal ones by their indices.
template <class T>
rl_status sort_counted(const SliceCall& call, int64_t wanted, bool reverse) {
  using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
  using Key = typename SortKey<T>::Key;
  constexpr int keys = kKeyCount<T>;
  const Key flip = reverse ? static_cast<Key>(~Key(0)) : Key(0);
  const auto key_of = [&](int64_t i) -> uint32_t {
    return static_cast<Key>(load_key<T>(call.src + i * call.src_step) ^ flip);
  };
  KeyCounts<keys> counts(call.n);
  if (!counts.ok()) return RL_MEMORY_ERROR;
  counts.count(key_of);
  bool many = false;  // some must be looked up
  const auto put = [&](int64_t i, Stored value) {
    *reinterpret_cast<Stored*>(call.values + i * call.values_step) = value;
  };
  if (call.values != nullptr) {
    int64_t at = 0;
    for (int key = 0; key < keys && at < wanted; ++key) {
      const Key own = static_cast<Key>(static_cast<Key>(key) ^ flip);
      const int64_t end = std::min(wanted, at + counts.total(key));
      many = many || (SortKey<T>::many(own) && end > at);
      const Stored value = static_cast<Stored>(SortKey<T>::back(own));
      if (call.values_step == static_cast<int64_t>(sizeof(Stored))) {
        std::fill(reinterpret_cast<Stored*>(call.values) + at, reinterpret_cast<Stored*>(call.values) + end, value);
      } else {
        for (int64_t i = at; i < end; ++i) put(i, value);
      }
      at = end;
    }
  }
  if (call.indices == nullptr && !many) return RL_OK;
  counts.to_starts();
  parallel_for(call.n, counts.block(), [&](int64_t begin, int64_t end) {
    int64_t* next = counts.of_block(begin);
    for (int64_t i = begin; i < end; ++i) {
      const uint32_t key = key_of(i);
      const int64_t to = next[key]++;
      if (to >= wanted) continue;
      if (call.indices != nullptr) *reinterpret_cast<int64_t*>(call.indices + to * call.indices_step) = i;
      if (many && SortKey<T>::many(static_cast<Key>(static_cast<Key>(key) ^ flip)))
        put(to, *reinterpret_cast<const Stored*>(call.src + i * call.src_step));
    }
  });
  return RL_OK;
}

// Where the k-th (from 0) of the elements with this key stands.
template <class T>
int64_t find_key(const char* from, int64_t step, typename SortKey<T>::Key key, int64_t k) {
  int64_t i = 0;
  for (; load_key<T>(from + i * step) != key || k-- > 0; ++i) {
  }
  return i;
}

// Where the k-th least (from 0) of n elements stands, equal ones by their indices. -1: out of memory.
template <class T>
int64_t select_counted(const char* from, int64_t step, int64_t n, int64_t k) {
  using Key = typename SortKey<T>::Key;
  constexpr int kDigit = std::min(SortKey<T>::kBits, 16), keys = 1 << kDigit;
  KeyCounts<keys> counts(n);
  if (!counts.ok()) return -1;
  // Digit by digit from the leading one, among the elements that have the digits found so far.
  Key found = 0;
  for (int low = SortKey<T>::kBits - kDigit; low >= 0; low -= kDigit) {
    if (low == SortKey<T>::kBits - kDigit) {
      counts.count([&](int64_t i) { return static_cast<uint32_t>(load_key<T>(from + i * step) >> low); });
    } else {
      counts.count([&](int64_t i) {
        const Key digits = static_cast<Key>((load_key<T>(from + i * step) >> low) ^ static_cast<Key>(found << kDigit));
        return static_cast<uint32_t>(std::min<Key>(digits, static_cast<Key>(keys)));
      });
    }
    int digit = 0;
    for (int64_t here; k >= (here = counts.total(digit)); ++digit) k -= here;
    found = static_cast<Key>((SortKey<T>::kBits == kDigit ? 0 : found << (kDigit % SortKey<T>::kBits)) | digit);
  }
  return find_key<T>(from, step, found, k);
}

// Where the last of the least of the most frequent elements stands; every NaN differs from the others. -1: out of
// memory.
template <class T>
int64_t mode_counted(const char* from, int64_t step, int64_t n) {
  using Key = typename SortKey<T>::Key;
  KeyCounts<kKeyCount<T>> counts(n);
  if (!counts.ok()) return -1;
  counts.count([&](int64_t i) -> uint32_t { return load_key<T>(from + i * step); });
  int64_t best = 0;
  Key key = 0;
  for (int other = 0; other < kKeyCount<T>; ++other) {
    int64_t here = counts.total(other);
    if (SortKey<T>::nan(static_cast<Key>(other))) here = std::min<int64_t>(here, 1);
    if (here > best) best = here, key = static_cast<Key>(other);
  }
  return find_key<T>(from, step, key, best - 1);
}

}  // namespace rl
