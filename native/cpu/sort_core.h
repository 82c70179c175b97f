// Sorting of 64-bit words that carry a key above the number of their element: all sorting kernels come down to it.
#pragma once

#include <cstdint>

#include "cpu/isa.h"

namespace rl {

// Sorts n distinct words, whose low bits ascend, by their bits [low, high) into `words`; `other` is room for n more.
// Threaded when n is large.
void sort_words(uint64_t* words, uint64_t* other, int64_t n, int low, int high);

// Words up to this many are sorted by counting, for each, those below it.
inline constexpr int64_t kRankLimit = 128;

// Above this many words sort_words works on several threads.
inline constexpr int64_t kSplitSlice = int64_t{1} << 17;

struct SortTable {
  // out = the n <= kRankLimit distinct words in ascending order.
  void (*rank_sort)(const uint64_t* words, uint64_t* out, int64_t n);
  // Writes the positions in [0, n) whose key (ascending order, or its complement when `reverse`) is below `bound`;
  // returns how many. Dense elements of the dtype; `out` has room for n + 16. For topk.
  int64_t (*below[RL_DTYPE_COUNT])(const void* elements, int64_t n, uint64_t bound, int reverse, int32_t* out);
};
RL_ISA_DECLARE(SortTable, sort_table)

}  // namespace rl
