// Products of bfloat16 matrices with the processor's own dot products of pairs.
//
// Both operands are packed in panels whose rows hold pairs of terms; the output is cut into tiles that depend on the
// sizes alone, each summed in float32 over pieces of k and rounded at the end.
#include "cpu/matmul_bf16.h"

#include <algorithm>
#include <cstring>

#include "core/memory.h"
#include "core/parallel.h"
#include "cpu/isa.h"

#if defined(__x86_64__) && defined(RL_X86_LEVELS)
#include <immintrin.h>
#define RL_BF16 1
#endif

namespace rl {

#if defined(RL_BF16)

namespace {

constexpr int64_t kRows = 12, kColumns = 32;  // of the tile in registers: 24 sums
constexpr int64_t kPairs = 256;               // of terms at a time: a panel of b stays in the second-level cache
constexpr int64_t kTileRows = 8 * kRows, kTileColumns = 8 * kColumns;

int64_t panels(int64_t size, int64_t panel) { return (size + panel - 1) / panel; }

// One panel: for each pair of terms, `width` lines of two numbers; what is outside is 0.
void pack(const bfloat16* from, int64_t line_stride, int64_t term_stride, int64_t lines, int64_t terms, int64_t width,
          uint16_t* to) {
  const int64_t pairs = (terms + 1) / 2;
  if (lines < width || (terms & 1)) std::memset(to, 0, static_cast<size_t>(pairs * width * 2) * sizeof(uint16_t));
  if (term_stride == 1) {
    for (int64_t line = 0; line < lines; ++line) {
      const bfloat16* const x = from + line * line_stride;
      uint16_t* const out = to + 2 * line;
      int64_t pair = 0;
      for (; 2 * pair + 1 < terms; ++pair) std::memcpy(out + pair * 2 * width, x + 2 * pair, 4);
      if (terms & 1) out[pair * 2 * width] = x[2 * pair].bits;
    }
    return;
  }
  for (int64_t term = 0; term < terms; ++term) {
    const bfloat16* const x = from + term * term_stride;
    uint16_t* const out = to + term / 2 * 2 * width + (term & 1);
    for (int64_t line = 0; line < lines; ++line) out[2 * line] = x[line * line_stride].bits;
  }
}

// sums (kRows x kColumns, rows kTileColumns apart) += panel of a times panel of b.
__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16"))) void multiply(const uint16_t* a,
                                                                                       const uint16_t* b, int64_t pairs,
                                                                                       float* sums, bool first) {
  __m512 left[kRows], right[kRows];
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
    left[r] = first ? _mm512_setzero_ps() : _mm512_loadu_ps(sums + r * kTileColumns);
    right[r] = first ? _mm512_setzero_ps() : _mm512_loadu_ps(sums + r * kTileColumns + 16);
  }
  for (int64_t pair = 0; pair < pairs; ++pair) {
    const __m512bh b0 = (__m512bh)_mm512_loadu_si512(b + pair * 2 * kColumns);
    const __m512bh b1 = (__m512bh)_mm512_loadu_si512(b + pair * 2 * kColumns + 32);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      int32_t two;
      __builtin_memcpy(&two, a + (pair * kRows + r) * 2, sizeof two);
      const __m512bh x = (__m512bh)_mm512_set1_epi32(two);
      left[r] = _mm512_dpbf16_ps(left[r], b0, x);
      right[r] = _mm512_dpbf16_ps(right[r], b1, x);
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
    _mm512_storeu_ps(sums + r * kTileColumns, left[r]);
    _mm512_storeu_ps(sums + r * kTileColumns + 16, right[r]);
  }
}

void store(const Bf16Product& p, const float* sums, int64_t i, int64_t rows, int64_t j, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* const from = sums + r * kTileColumns;
    bfloat16* const to = p.out + (i + r) * p.out_row + j * p.out_column;
    if (!p.add && p.alpha == 1.0f && p.out_column == 1) {
      from_float(from, to, columns);
      continue;
    }
    const bfloat16* const add = p.add ? p.add + (i + r) * p.add_row + j * p.add_column : nullptr;
    for (int64_t c = 0; c < columns; ++c) {
      float value = p.alpha * from[c];
      if (add) value += p.beta * static_cast<float>(add[c * p.add_column]);
      to[c * p.out_column] = bfloat16(value);
    }
  }
}

}  // namespace

bool bf16_products() {
  static const bool found = __builtin_cpu_supports("avx512bf16") != 0;
  return found && cpu_level() == CpuLevel::kAvx512;
}

rl_status bf16_product(const Bf16Product& p) {
  const int64_t pairs = (p.k + 1) / 2;
  const int64_t row_panels = panels(p.m, kRows), column_panels = panels(p.n, kColumns);
  const int64_t a_panel = pairs * kRows * 2, b_panel = pairs * kColumns * 2;
  const Scratch<uint16_t> a(row_panels * a_panel), b(column_panels * b_panel);
  if (!a || !b) return RL_MEMORY_ERROR;
  const int64_t at_a_time = std::max<int64_t>(1, 65536 / std::max<int64_t>(1, b_panel));
  parallel_for(column_panels, at_a_time, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      pack(p.b + i * kColumns * p.b_column, p.b_column, p.b_row, std::min(kColumns, p.n - i * kColumns), p.k, kColumns,
           &b[i * b_panel]);
  });
  parallel_for(row_panels, at_a_time * 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      pack(p.a + i * kRows * p.a_row, p.a_row, p.a_column, std::min(kRows, p.m - i * kRows), p.k, kRows,
           &a[i * a_panel]);
  });
  const int64_t across = panels(p.n, kTileColumns);
  return parallel_for(panels(p.m, kTileRows) * across, 1, [&](int64_t begin, int64_t end) -> rl_status {
    const Scratch<float> sums(kTileRows * kTileColumns);
    if (!sums) return RL_MEMORY_ERROR;
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t i = tile / across * kTileRows, j = tile % across * kTileColumns;
      const int64_t rows = std::min(kTileRows, p.m - i), columns = std::min(kTileColumns, p.n - j);
      for (int64_t first = 0; first < pairs; first += kPairs) {
        const int64_t count = std::min(kPairs, pairs - first);
        for (int64_t c = 0; c < columns; c += kColumns) {
          const uint16_t* const right = &b[(j + c) / kColumns * b_panel + first * kColumns * 2];
          for (int64_t r = 0; r < rows; r += kRows)
            multiply(&a[(i + r) / kRows * a_panel + first * kRows * 2], right, count, &sums[r * kTileColumns + c],
                     first == 0);
        }
      }
      store(p, sums.get(), i, rows, j, columns);
    }
    return RL_OK;
  });
}

#else

bool bf16_products() { return false; }
rl_status bf16_product(const Bf16Product&) { return RL_RUNTIME_ERROR; }

#endif

}  // namespace rl
