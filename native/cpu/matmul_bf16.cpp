// Products of bfloat16 matrices with the processor's own: AMX multiplies 16 x 32 by 32 x 16 numbers at once, AVX-512
// BF16 sums pairs of terms. Both flush subnormal numbers to zero, in operands and sums, as PyTorch's products do there.
//
// Both kernels read one layout, cut in units of 16 lines (rows of a, columns of b) and steps of 32 terms. Each output
// is summed in float32 in the order of the steps and rounded at the end, so no block size changes a result.
#include "cpu/matmul_bf16.h"

#include <algorithm>
#include <utility>

#include "core/memory.h"
#include "core/parallel.h"
#include "cpu/isa.h"
#include "cpu/tiles.h"

#if defined(__x86_64__) && defined(RL_X86_LEVELS)
#include <immintrin.h>
#define RL_BF16 1
#if !defined(__clang__)
// GCC takes the undefined operands inside its own 512-bit intrinsics for our mistake.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

namespace rl {

#if defined(RL_BF16)

namespace {

#define RL_TARGET_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#define RL_TARGET_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
#define RL_TARGET_AMX __attribute__((target("amx-tile,amx-bf16")))

constexpr int64_t kUnit = 16, kStep = 32;
constexpr int64_t kBlock = kUnit * kStep;  // elements of a packed unit in one step: 1 KB
constexpr int64_t kStepsAtATime = 16;      // two units of b stay in the first-level cache
constexpr int64_t kPair = 2 * kUnit;       // lines of a call of the kernel, at most

int64_t ceil_divide(int64_t size, int64_t by) { return (size + by - 1) / by; }

// One operand seen as lines of terms: the rows of a, or the columns of b.
struct Lines {
  const bfloat16* data;
  int64_t count, terms;
  int64_t line, term;  // strides
};

// ---- packing

// 16 vectors of 16 pairs, transposed.
RL_TARGET_AVX512 RL_INLINE void transpose(__m512i (&x)[16]) {
  __m512i y[16];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    y[2 * i] = _mm512_unpacklo_epi32(x[2 * i], x[2 * i + 1]);
    y[2 * i + 1] = _mm512_unpackhi_epi32(x[2 * i], x[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      x[4 * i + 2 * j] = _mm512_unpacklo_epi64(y[4 * i + j], y[4 * i + 2 + j]);
      x[4 * i + 2 * j + 1] = _mm512_unpackhi_epi64(y[4 * i + j], y[4 * i + 2 + j]);
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const __m512i a = _mm512_shuffle_i32x4(x[j], x[4 + j], 0x88), b = _mm512_shuffle_i32x4(x[8 + j], x[12 + j], 0x88);
    const __m512i c = _mm512_shuffle_i32x4(x[j], x[4 + j], 0xdd), d = _mm512_shuffle_i32x4(x[8 + j], x[12 + j], 0xdd);
    y[j] = _mm512_shuffle_i32x4(a, b, 0x88);
    y[8 + j] = _mm512_shuffle_i32x4(a, b, 0xdd);
    y[4 + j] = _mm512_shuffle_i32x4(c, d, 0x88);
    y[12 + j] = _mm512_shuffle_i32x4(c, d, 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) x[i] = y[i];
}

// Steps [first, last) of the unit that starts at line `at`, one block after another, what is outside being 0. A block
// holds 16 lines of 32 terms (kByLine: a), or 16 pairs of terms of 16 lines (b).
template <bool kByLine>
RL_TARGET_AVX512 void pack(const Lines& from, int64_t at, int64_t first, int64_t last, uint16_t* to) {
  const int lines = static_cast<int>(std::min(kUnit, from.count - at));
  const auto in_lines = static_cast<__mmask16>((1u << lines) - 1);
  for (int64_t step = first; step < last; ++step, to += kBlock) {
    const int terms = static_cast<int>(std::min(kStep, from.terms - step * kStep));
    const bfloat16* const x = from.data + at * from.line + step * kStep * from.term;
    __m512i block[16];
    if (from.term == 1) {
      const auto in_terms = static_cast<__mmask32>(terms == 32 ? ~0u : (1u << terms) - 1);
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) block[i] = _mm512_maskz_loadu_epi16(i < lines ? in_terms : 0, x + i * from.line);
      if (!kByLine) transpose(block);
    } else if (from.line == 1) {
      const auto row = [&](int term) RL_TARGET_AVX512 __attribute__((always_inline)) {
        return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(term < terms ? in_lines : 0, x + term * from.term));
      };
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) block[i] = _mm512_or_si512(row(2 * i), _mm512_slli_epi32(row(2 * i + 1), 16));
      if (kByLine) transpose(block);
    } else {
      for (int line = 0; line < kUnit; ++line) {
        for (int term = 0; term < kStep; ++term) {
          const uint16_t bits = line < lines && term < terms ? x[line * from.line + term * from.term].bits : 0;
          to[kByLine ? line * kStep + term : term / 2 * kPair + 2 * line + (term & 1)] = bits;
        }
      }
      continue;
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) _mm512_storeu_si512(to + i * kStep, block[i]);
  }
}

// All units that no one else packs, [unit][step].
template <bool kByLine>
void pack_units(const Lines& from, int64_t first, int64_t steps, uint16_t* to) {
  parallel_for(ceil_divide(from.count, kUnit) - first, std::max<int64_t>(1, 128 / steps),
               [&](int64_t begin, int64_t end) {
                 for (int64_t unit = begin; unit < end; ++unit)
                   pack<kByLine>(from, (first + unit) * kUnit, 0, steps, to + unit * steps * kBlock);
               });
}

// ---- kernels: sums (rows kPair apart in the caller's tile) += up to two units of a times up to two of b

// A unit of a, packed or where it is.
struct Rows {
  const uint16_t* data;
  int64_t row, step;  // strides
};

using Multiply = void (*)(const Rows* a, const uint16_t* const* b, int64_t steps, float* sums, int64_t sums_row,
                          bool first);

template <int kA, int kB>
RL_TARGET_AMX void multiply_amx(const Rows* a, const uint16_t* const* b, int64_t steps, float* sums, int64_t sums_row,
                                bool first) {
  const int64_t row_bytes = sums_row * 4, a_bytes = a[0].row * 2;
  float* const below = sums + kUnit * sums_row;
  if (first) {
    _tile_zero(0);
    if (kB > 1) _tile_zero(1);
    if (kA > 1) _tile_zero(2);
    if (kA > 1 && kB > 1) _tile_zero(3);
  } else {
    _tile_loadd(0, sums, row_bytes);
    if (kB > 1) _tile_loadd(1, sums + kUnit, row_bytes);
    if (kA > 1) _tile_loadd(2, below, row_bytes);
    if (kA > 1 && kB > 1) _tile_loadd(3, below + kUnit, row_bytes);
  }
  for (int64_t s = 0; s < steps; ++s) {
    _tile_loadd(4, a[0].data + s * a[0].step, a_bytes);
    _tile_loadd(6, b[0] + s * kBlock, 64);
    _tile_dpbf16ps(0, 4, 6);
    if (kB > 1) {
      _tile_loadd(7, b[1] + s * kBlock, 64);
      _tile_dpbf16ps(1, 4, 7);
    }
    if (kA > 1) {
      _tile_loadd(5, a[1].data + s * a[1].step, a[1].row * 2);
      _tile_dpbf16ps(2, 5, 6);
      if (kB > 1) _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, sums, row_bytes);
  if (kB > 1) _tile_stored(1, sums + kUnit, row_bytes);
  if (kA > 1) _tile_stored(2, below, row_bytes);
  if (kA > 1 && kB > 1) _tile_stored(3, below + kUnit, row_bytes);
}

template <int kA, int kB>
RL_TARGET_BF16 void multiply_pairs(const Rows* a, const uint16_t* const* b, int64_t steps, float* sums,
                                   int64_t sums_row, bool first) {
  constexpr int kRows = 8;  // with two units of b, 16 sums hide the latency
  for (int i = 0; i < kA * 2; ++i, sums += kRows * sums_row) {
    const Rows& rows = a[i / 2];
    __m512 sum[kRows][kB];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int c = 0; c < kB; ++c)
        sum[r][c] = first ? _mm512_setzero_ps() : _mm512_loadu_ps(sums + r * sums_row + c * kUnit);
    }
    for (int64_t s = 0; s < steps; ++s) {
      const uint16_t* const x = rows.data + i % 2 * kRows * rows.row + s * rows.step;
      for (int64_t pair = 0; pair < kStep / 2; ++pair) {
        __m512bh right[kB];
#pragma GCC unroll 2
        for (int c = 0; c < kB; ++c) right[c] = (__m512bh)_mm512_loadu_si512(b[c] + s * kBlock + pair * kPair);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          int32_t two;
          __builtin_memcpy(&two, x + r * rows.row + 2 * pair, sizeof two);
          const __m512bh left = (__m512bh)_mm512_set1_epi32(two);
#pragma GCC unroll 2
          for (int c = 0; c < kB; ++c) sum[r][c] = _mm512_dpbf16_ps(sum[r][c], right[c], left);
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int c = 0; c < kB; ++c) _mm512_storeu_ps(sums + r * sums_row + c * kUnit, sum[r][c]);
    }
  }
}

// [units of a - 1][units of b - 1]
constexpr Multiply kAmx[2][2] = {{multiply_amx<1, 1>, multiply_amx<1, 2>}, {multiply_amx<2, 1>, multiply_amx<2, 2>}};
constexpr Multiply kPairs[2][2] = {{multiply_pairs<1, 1>, multiply_pairs<1, 2>},
                                   {multiply_pairs<2, 1>, multiply_pairs<2, 2>}};

// Linux gives a process the tiles' registers when it asks; its threads and forks have them too.
bool tiles_granted() {
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  static const bool granted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted;
#else
  return false;
#endif
}

bool use_tiles() { return cpu_tiles() && tiles_granted(); }

struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
// In memory before the program starts: GCC's intrinsic tells the compiler of its first bytes only.
constexpr TileShapes kTileShapes;

// The tiles' registers for the life of a scope.
class Tiles {
 public:
  RL_TARGET_AMX explicit Tiles(bool use) : use_(use) {
    if (use) _tile_loadconfig(&kTileShapes);
  }
  RL_TARGET_AMX ~Tiles() {
    if (use_) _tile_release();
  }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;

 private:
  bool use_;
};

// ---- outputs

// The bits of the nearest bfloat16 numbers.
RL_TARGET_AVX512 RL_INLINE __m256i round_to_bf16(__m512 value) {
  const __m512i bits = _mm512_castps_si512(value);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  return _mm512_cvtepi32_epi16(
      _mm512_srli_epi32(_mm512_mask_mov_epi32(rounded, nan, _mm512_set1_epi32(0x7fc00000)), 16));
}

RL_TARGET_AVX512 void store(const Bf16Product& p, const float* sums, int64_t sums_row, int64_t i, int64_t rows,
                            int64_t j, int64_t columns) {
  const bool dense = p.out_column == 1 && (!p.add || p.add_column == 1);
  const __m512 alpha = _mm512_set1_ps(p.alpha), beta = _mm512_set1_ps(p.beta);
  for (int64_t r = 0; r < rows; ++r) {
    const float* const from = sums + r * sums_row;
    bfloat16* const to = p.out + (i + r) * p.out_row + j * p.out_column;
    const bfloat16* const add = p.add ? p.add + (i + r) * p.add_row + j * p.add_column : nullptr;
    if (!dense) {
      for (int64_t c = 0; c < columns; ++c) {
        float value = p.alpha * from[c];
        if (add) value += p.beta * static_cast<float>(add[c * p.add_column]);
        to[c * p.out_column] = bfloat16(value);
      }
      continue;
    }
    for (int64_t c = 0; c < columns; c += 16) {
      const auto mask = static_cast<__mmask16>((1u << std::min<int64_t>(16, columns - c)) - 1);
      __m512 value = _mm512_mul_ps(alpha, _mm512_loadu_ps(from + c));
      if (add) {
        const __m512i bits = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, add + c));
        value = _mm512_add_ps(value, _mm512_mul_ps(beta, _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16))));
      }
      _mm256_mask_storeu_epi16(to + c, mask, round_to_bf16(value));
    }
  }
}

// ---- the product

struct Packed {
  const Bf16Product* p;
  Lines a, b;
  int64_t steps;
  int64_t first_packed_unit;  // of a; those before are read where they are
  const uint16_t* a_units;
  const uint16_t* b_units;  // null: each tile packs its own
  bool tiles;

  Rows rows(int64_t unit, int64_t step) const {
    if (unit < first_packed_unit)
      return {reinterpret_cast<const uint16_t*>(a.data) + unit * kUnit * a.line + step * kStep, a.line, kStep};
    return {a_units + ((unit - first_packed_unit) * steps + step) * kBlock, kStep, kBlock};
  }

  // Outputs [i, i + rows) x [j, j + columns).
  rl_status tile(int64_t i, int64_t row_count, int64_t j, int64_t column_count) const {
    const Multiply(&multiply)[2][2] = tiles ? kAmx : kPairs;
    // With all terms in one go the sums of one call are all there is.
    const bool once = steps <= kStepsAtATime;
    const int64_t sums_row = once ? kPair : ceil_divide(column_count, kUnit) * kUnit;
    const Scratch<float> sums((once ? kPair : ceil_divide(row_count, kUnit) * kUnit) * sums_row);
    const Scratch<uint16_t> own(b_units ? 0 : 2 * std::min(steps, kStepsAtATime) * kBlock);
    if (!sums || !own) return RL_MEMORY_ERROR;
    const Tiles registers(tiles);
    for (int64_t step = 0; step < steps; step += kStepsAtATime) {
      const int64_t count = std::min(kStepsAtATime, steps - step);
      for (int64_t c = 0; c < column_count; c += kPair) {
        const int64_t columns = std::min(kPair, column_count - c);
        const int wide = columns > kUnit;
        const uint16_t* right[2];
        for (int u = 0; u <= wide; ++u) {
          const int64_t unit = (j + c) / kUnit + u;
          if (!b_units) pack<false>(b, unit * kUnit, step, step + count, own.get() + u * count * kBlock);
          right[u] = b_units ? b_units + (unit * steps + step) * kBlock : own.get() + u * count * kBlock;
        }
        for (int64_t r = 0; r < row_count; r += kPair) {
          const int64_t rows_here = std::min(kPair, row_count - r);
          const int tall = rows_here > kUnit;
          const Rows left[2] = {rows((i + r) / kUnit, step), tall ? rows((i + r) / kUnit + 1, step) : Rows{}};
          float* const to = once ? sums.get() : &sums[r * sums_row + c];
          multiply[tall][wide](left, right, count, to, sums_row, step == 0);
          if (step + count == steps) store(*p, to, sums_row, i + r, rows_here, j + c, columns);
        }
      }
    }
    return RL_OK;
  }
};

}  // namespace

bool bf16_products() {
  static const bool pairs = __builtin_cpu_supports("avx512bf16") != 0;
  return pairs && cpu_level() == CpuLevel::kAvx512;
}

rl_status bf16_product(const Bf16Product& product) {
  Bf16Product p = product;
  if (p.out_column != 1 && p.out_row == 1 && p.n > 1) {
    // out^T = b^T a^T is row-major.
    std::swap(p.m, p.n);
    std::swap(p.a, p.b);
    std::swap(p.a_row, p.b_column);
    std::swap(p.a_column, p.b_row);
    std::swap(p.add_row, p.add_column);
    std::swap(p.out_row, p.out_column);
  }
  Packed run;
  run.p = &p;
  run.a = {p.a, p.m, p.k, p.a_row, p.a_column};
  run.b = {p.b, p.n, p.k, p.b_column, p.b_row};
  run.steps = ceil_divide(p.k, kStep);
  run.tiles = use_tiles();

  // Halved until there is something for every thread, but not below some microseconds of work.
  constexpr int64_t kMostRows = 512, kMostColumns = 256, kLeastWork = 1 << 22;
  int64_t rows = std::min(p.m, kMostRows), columns = std::min(p.n, kMostColumns);
  const auto tiles = [&] { return ceil_divide(p.m, rows) * ceil_divide(p.n, columns); };
  while (tiles() < 16 && rows * columns > kPair * kPair && rows * columns * run.steps * kStep > 2 * kLeastWork) {
    int64_t& longer = rows > columns ? rows : columns;
    longer = ceil_divide(ceil_divide(longer, 2), kPair) * kPair;
  }

  // Rows a large power of two apart would meet in the same few sets of the first-level cache.
  const bool read_in_place = p.a_column == 1 && p.k % kStep == 0 && (p.a_row % 256 != 0 || p.n <= kPair);
  run.first_packed_unit = read_in_place ? p.m / kUnit : 0;
  const Scratch<uint16_t> a_units((ceil_divide(p.m, kUnit) - run.first_packed_unit) * run.steps * kBlock);
  const bool share_b = p.m > rows;
  const Scratch<uint16_t> b_units(share_b ? ceil_divide(p.n, kUnit) * run.steps * kBlock : 0);
  if (!a_units || !b_units) return RL_MEMORY_ERROR;
  run.a_units = a_units.get();
  run.b_units = share_b ? b_units.get() : nullptr;
  pack_units<true>(run.a, run.first_packed_unit, run.steps, a_units.get());
  if (share_b) pack_units<false>(run.b, 0, run.steps, b_units.get());

  const int64_t across = ceil_divide(p.n, columns);
  return parallel_for(tiles(), 1, [&](int64_t begin, int64_t end) -> rl_status {
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t i = tile / across * rows, j = tile % across * columns;
      RL_TRY(run.tile(i, std::min(rows, p.m - i), j, std::min(columns, p.n - j)));
    }
    return RL_OK;
  });
}

#else

bool bf16_products() { return false; }
rl_status bf16_product(const Bf16Product&) { return RL_RUNTIME_ERROR; }

#endif

}  // namespace rl
