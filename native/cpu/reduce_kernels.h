// Inner loops of the reductions, compiled once per instruction set, and the tiles they read.
//
// A reduction reads tiles of one of six types; other dtypes and strides are converted on the way into a tile. It keeps
// a state of one to three 8-byte words per output: word w of output j stands at state[w * pitch + j].
#pragma once

#include "cpu/isa.h"

namespace rl {

enum ReduceTile : int {
  kTileByte,   // 1 where the element differs from 0, or any byte that differs from 0
  kTileUint8,  // extremes of bytes
  kTileInt32,  // extremes of short integers
  kTileInt64,
  kTileFloat,
  kTileDouble,
  kTileCount
};

enum ReduceKind : int {
  kReduceSum,
  kReduceNanSum,
  kReduceProd,
  kReduceMax,
  kReduceMin,
  kReduceMinMax,  // words: min, max
  kReduceArgMax,  // words: value, index
  kReduceArgMin,
  kReduceCount,  // of bytes that differ from 0
  kReduceVar,    // words: mean (as pivot + offset), sum of squared deviations
  kReduceSumSquares,
  kReduceAbsSum,
  kReduceAbsMax,
  kReduceAbsMin,
  kReduceAbsPow,       // sum of |x|^p
  kReduceLogSumExp,    // words: max, sum of exp(x - max)
  kReduceComplexProd,  // tiles of pairs of doubles; words: real, imaginary
  kReduceKindCount
};

// Most columns of one call of `columns`, and most words per state.
constexpr int64_t kReduceStrip = 512;
constexpr int kReduceWords = 3;
// Longest run that `rows` takes.
constexpr int64_t kReduceRow = 2048;

struct ReduceKernel {
  int words;
  // One state from a run of n > 0 elements whose first has index `index` among the reduced elements.
  void (*run)(double* state, int64_t pitch, const void* x, int64_t n, int64_t index, double parameter);
  // The same for `rows` runs of n elements, `stride` elements apart, 0 < n <= kReduceRow; null where there is no faster
  // way than one by one.
  void (*rows)(double* state, int64_t pitch, const void* x, int64_t stride, int64_t rows, int64_t n, double parameter);
  // One state per column of a matrix of rows > 0 rows, `stride` elements apart, and 0 < columns <= kReduceStrip. Row r
  // has index `index + r * step`.
  void (*columns)(double* state, int64_t pitch, const void* x, int64_t stride, int64_t rows, int64_t columns,
                  int64_t index, int64_t step, double parameter);
  // The same of a matrix of float16 and of bfloat16, for kTileFloat; may be null.
  void (*columns_narrow[2])(double* state, int64_t pitch, const void* x, int64_t stride, int64_t rows, int64_t columns,
                            int64_t index, int64_t step, double parameter);
  // into = into, then from, for `count` outputs; the states stand for `into_size` and `from_size` elements.
  void (*merge)(double* into, const double* from, int64_t pitch_into, int64_t pitch_from, int64_t count,
                double into_size, double from_size);
};

// Reads rows x columns elements (strides in elements) into a dense tile. `magnitude` takes absolute values of complex
// numbers.
using ReduceLoad = void (*)(void* tile, const void* data, int64_t rows, int64_t columns, int64_t row_stride,
                            int64_t column_stride);

struct ReduceTable {
  ReduceKernel kernels[kReduceKindCount][kTileCount];
};

struct ReduceLoadTable {
  ReduceLoad load[RL_DTYPE_COUNT][kTileCount];  // null where the conversion makes no sense
  ReduceLoad load_truth[RL_DTYPE_COUNT];        // into kTileInt64: 1 where the element differs from 0
  ReduceLoad load_magnitude[3];                 // complex64, 128 (into kTileDouble) and 32, by dtype - RL_COMPLEX64
  ReduceLoad load_complex[RL_DTYPE_COUNT];      // into pairs of doubles
};

RL_ISA_DECLARE(ReduceTable, reduce_table)
RL_ISA_DECLARE(ReduceTable, reduce_extreme_table)  // of kReduceMax to kReduceArgMin, kReduceAbsMax and -Min
RL_ISA_DECLARE(ReduceLoadTable, reduce_load_table)

}  // namespace rl
