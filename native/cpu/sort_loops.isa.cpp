#include "cpu/sort_core.h"
#include "cpu/sort_keys.h"

namespace rl {
namespace {

void rank_sort(const uint64_t* words, uint64_t* out, int64_t n) {
  // Signed comparison is what every instruction set has.
  int64_t shifted[kRankLimit];
  for (int64_t i = 0; i < n; ++i) shifted[i] = static_cast<int64_t>(words[i] ^ (uint64_t{1} << 63));
  for (int64_t i = 0; i < n; ++i) {
    const int64_t word = shifted[i];
    int64_t rank = 0;
    for (int64_t j = 0; j < n; ++j) rank += shifted[j] < word;
    out[rank] = words[i];
  }
}

template <class T>
int64_t below(const void* elements, int64_t n, uint64_t bound64, int reverse, int32_t* out) {
  using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
  using Key = typename SortKey<T>::Key;
  const Stored* x = static_cast<const Stored*>(elements);
  const Key bound = static_cast<Key>(bound64), flip = reverse ? static_cast<Key>(~Key(0)) : Key(0);
  int64_t count = 0;
  constexpr int64_t kTile = 32;
  int64_t i = 0;
  for (; i + kTile <= n; i += kTile) {
    // Once the bound is good few tiles hold anything below it.
    Key any = 0;
    for (int64_t j = 0; j < kTile; ++j) {
      const Key key = static_cast<Key>(load_key<T>(x + i + j) ^ flip);
      any = static_cast<Key>(any | static_cast<Key>(key < bound ? 1 : 0));
    }
    if (any == 0) continue;
    for (int64_t j = 0; j < kTile; ++j) {
      out[count] = static_cast<int32_t>(i + j);
      count += static_cast<Key>(load_key<T>(x + i + j) ^ flip) < bound;
    }
  }
  for (; i < n; ++i) {
    out[count] = static_cast<int32_t>(i);
    count += static_cast<Key>(load_key<T>(x + i) ^ flip) < bound;
  }
  return count;
}

const SortTable table = {rank_sort,
                         {below<bool>, below<uint8_t>, below<int8_t>, below<int16_t>, below<int32_t>, below<int64_t>,
                          below<half>, below<bfloat16>, below<float>, below<double>, nullptr, nullptr}};

}  // namespace

const SortTable& RL_ISA_SYMBOL(sort_table)() { return table; }

}  // namespace rl
