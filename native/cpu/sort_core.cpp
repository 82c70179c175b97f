#include "cpu/sort_core.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cpu/index_walk.h"

namespace rl {
namespace {

constexpr int64_t kWideDigits = 2048;  // words from which 11-bit digits beat 8-bit ones
constexpr int64_t kSplitBlock = int64_t{1} << 15;
constexpr int kSplitBits = 11;

// Least significant digit first. Starts in `from`; the result ends in `result`, which is `from` or `other`.
template <int kDigit, int kMaxPasses, class Count>
void radix_passes(uint64_t* from, uint64_t* other, uint64_t* result, int64_t n, int low, int high) {
  constexpr int kRadix = 1 << kDigit;
  const int passes = (high - low + kDigit - 1) / kDigit;
  Count counts[kMaxPasses][kRadix];
  std::memset(counts, 0, sizeof(counts[0]) * static_cast<size_t>(passes));
  for (int64_t i = 0; i < n; ++i) {
    uint64_t word = from[i] >> low;
    for (int p = 0; p < passes; ++p, word >>= kDigit) ++counts[p][word & (kRadix - 1)];
  }
  for (int p = 0; p < passes; ++p) {
    const int shift = low + p * kDigit;
    Count* const next = counts[p];
    if (static_cast<int64_t>(next[(from[0] >> shift) & (kRadix - 1)]) == n) continue;  // all alike
    Count sum = 0;
    for (int digit = 0; digit < kRadix; ++digit) {
      const Count here = next[digit];
      next[digit] = sum;
      sum += here;
    }
    for (int64_t i = 0; i < n; ++i) {
      const uint64_t word = from[i];
      other[next[(word >> shift) & (kRadix - 1)]++] = word;
    }
    std::swap(from, other);
  }
  if (from != result) std::memcpy(result, from, sizeof(uint64_t) * static_cast<size_t>(n));
}

void sort_serial(uint64_t* from, uint64_t* other, uint64_t* result, int64_t n, int low, int high) {
  if (n <= kRankLimit) {
    if (n < 2) {
      if (n == 1) result[0] = from[0];
      return;
    }
    uint64_t sorted[kRankLimit];
    sort_table().rank_sort(from, sorted, n);
    std::memcpy(result, sorted, sizeof(uint64_t) * static_cast<size_t>(n));
  } else if (high <= low) {
    if (from != result) std::memcpy(result, from, sizeof(uint64_t) * static_cast<size_t>(n));
  } else if (n < kWideDigits || high - low <= 8) {
    radix_passes<8, 8, uint32_t>(from, other, result, n, low, high);
  } else if (n < (int64_t{1} << 31)) {
    radix_passes<11, 6, uint32_t>(from, other, result, n, low, high);
  } else {
    radix_passes<8, 8, uint64_t>(from, other, result, n, low, high);
  }
}

}  // namespace

void sort_words(uint64_t* words, uint64_t* other, int64_t n, int low, int high) {
  if (n <= kSplitSlice || high <= low) {
    sort_serial(words, other, words, n, low, high);
    return;
  }
  // Spread over buckets by the leading bits, which leaves each bucket to one thread and its cache.
  const int split_low = std::max(low, high - kSplitBits);
  const int64_t buckets = int64_t{1} << (high - split_low);
  const int64_t blocks = ceil_div(n, kSplitBlock);
  Scratch<int64_t> starts(blocks * buckets + buckets + 1);
  if (!starts.ok()) {  // too little memory left for speed
    sort_serial(words, other, words, n, low, high);
    return;
  }
  const uint64_t mask = static_cast<uint64_t>(buckets) - 1;
  parallel_for(n, kSplitBlock, [&](int64_t begin, int64_t end) {
    int64_t* counts = starts.get() + begin / kSplitBlock * buckets;
    std::fill_n(counts, buckets, 0);
    for (int64_t i = begin; i < end; ++i) ++counts[(words[i] >> split_low) & mask];
  });
  int64_t* const bucket_starts = starts.get() + blocks * buckets;
  int64_t sum = 0;
  for (int64_t bucket = 0; bucket < buckets; ++bucket) {
    bucket_starts[bucket] = sum;
    for (int64_t block = 0; block < blocks; ++block) {
      int64_t& count = starts[block * buckets + bucket];
      const int64_t here = count;
      count = sum;
      sum += here;
    }
  }
  bucket_starts[buckets] = n;
  parallel_for(n, kSplitBlock, [&](int64_t begin, int64_t end) {
    int64_t* next = starts.get() + begin / kSplitBlock * buckets;
    for (int64_t i = begin; i < end; ++i) other[next[(words[i] >> split_low) & mask]++] = words[i];
  });
  parallel_for(buckets, 8, [&](int64_t begin, int64_t end) {
    for (int64_t bucket = begin; bucket < end; ++bucket) {
      const int64_t start = bucket_starts[bucket];
      sort_serial(other + start, words + start, words + start, bucket_starts[bucket + 1] - start, low, split_low);
    }
  });
}

}  // namespace rl
