#include "cpu/sort_core.h"
#include "cpu/sort_keys.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

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

// Appends the positions base + j of keys below the bound.
template <class Key>
int64_t list_below(const Key* keys, int64_t n, Key bound, int64_t base, int32_t* out) {
  int64_t count = 0, j = 0;
#if defined(__AVX512F__)
  if constexpr (sizeof(Key) == 4) {
    const __m512i bounds = _mm512_set1_epi32(static_cast<int>(bound));
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (; j + 16 <= n; j += 16) {
      const __mmask16 mask = _mm512_cmplt_epu32_mask(_mm512_loadu_si512(keys + j), bounds);
      if (mask == 0) continue;
      const __m512i positions = _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(base + j)), lanes);
      // A whole store, which `out` has the room for: compressing into memory is slow on some machines.
      _mm512_storeu_si512(out + count, _mm512_maskz_compress_epi32(mask, positions));
      count += __builtin_popcount(mask);
    }
  }
#endif
  for (; j < n; ++j) {
    out[count] = static_cast<int32_t>(base + j);
    count += keys[j] < bound;
  }
  return count;
}

template <class T>
int64_t below(const void* elements, int64_t n, uint64_t bound64, int reverse, int32_t* out) {
  using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
  using Key = typename SortKey<T>::Key;
  const Stored* x = static_cast<const Stored*>(elements);
  const Key bound = static_cast<Key>(bound64), flip = reverse ? static_cast<Key>(~Key(0)) : Key(0);
  constexpr int64_t kTile = 64;
  Key keys[kTile];
  int64_t count = 0;
  for (int64_t i = 0; i < n; i += kTile) {
    const int64_t size = n - i < kTile ? n - i : kTile;
    // Once the bound is good few tiles hold anything below it.
    Key any = 0;
    for (int64_t j = 0; j < size; ++j) {
      keys[j] = static_cast<Key>(load_key<T>(x + i + j) ^ flip);
      any = static_cast<Key>(any | static_cast<Key>(keys[j] < bound ? 1 : 0));
    }
    if (any != 0) count += list_below(keys, size, bound, i, out + count);
  }
  return count;
}

const SortTable table = {rank_sort,
                         {below<bool>, below<uint8_t>, below<int8_t>, below<int16_t>, below<int32_t>, below<int64_t>,
                          below<half>, below<bfloat16>, below<float>, below<double>, nullptr, nullptr}};

}  // namespace

const SortTable& RL_ISA_SYMBOL(sort_table)() { return table; }

}  // namespace rl
