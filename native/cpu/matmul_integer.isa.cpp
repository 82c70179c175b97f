// Sums of products of integers, wrapping around.
#include "cpu/matmul_integer.h"

#include "core/dtype.h"

namespace rl {
namespace {

template <class T>
void sum(const void* a_data, int64_t a_stride, const void* b_data, int64_t b_row, void* line_data, int64_t n,
         int64_t k) {
  using U = std::make_unsigned_t<T>;
  using W = decltype(U{} + 0u);  // at least unsigned int: narrower factors would be promoted to int, which may overflow
  const U* const a = static_cast<const U*>(a_data);
  const U* const b = static_cast<const U*>(b_data);
  U* const line = static_cast<U*>(line_data);
  // Columns whose sums stay in the first-level cache while four rows of b at a time pass by.
  constexpr int64_t kColumns = 4096 / static_cast<int64_t>(sizeof(T));
  for (int64_t first = 0; first < n; first += kColumns) {
    const int64_t columns = n - first < kColumns ? n - first : kColumns;
    U* const to = line + first;
    for (int64_t j = 0; j < columns; ++j) to[j] = 0;
    int64_t l = 0;
    for (; l + 4 <= k; l += 4) {
      const W a0 = a[l * a_stride], a1 = a[(l + 1) * a_stride], a2 = a[(l + 2) * a_stride], a3 = a[(l + 3) * a_stride];
      const U* const b0 = b + l * b_row + first;
      const U* const b1 = b0 + b_row;
      const U* const b2 = b1 + b_row;
      const U* const b3 = b2 + b_row;
      for (int64_t j = 0; j < columns; ++j)
        to[j] = static_cast<U>(to[j] + a0 * b0[j] + a1 * b1[j] + a2 * b2[j] + a3 * b3[j]);
    }
    for (; l < k; ++l) {
      const W a0 = a[l * a_stride];
      const U* const b0 = b + l * b_row + first;
      for (int64_t j = 0; j < columns; ++j) to[j] = static_cast<U>(to[j] + a0 * b0[j]);
    }
  }
}

constexpr MatmulIntegerTable table = {{nullptr, sum<uint8_t>, sum<int8_t>, sum<int16_t>, sum<int32_t>, sum<int64_t>}};

}  // namespace

const MatmulIntegerTable& RL_ISA_SYMBOL(matmul_integer_table)() { return table; }

}  // namespace rl
