// How a transform of some size is done, and the loops that do it. Numbers of tables are float or double, by the plan.
#pragma once

#include <cstdint>
#include <memory>

#include "cpu/isa.h"

namespace rl {

constexpr int kFftMaxPasses = 40;
constexpr int kFftLargestPrime = 61;  // greater prime factors make a size a convolution

// One pass of Stockham's algorithm: n elements as [radix][m][s].
struct FftPass {
  int radix;
  int64_t m, s;
  const void* twiddles;  // complex [m][radix - 1]
  const void* roots;     // cos [radix], sin [radix] of odd radices
};

// A transform done in every lane of vectors at once.
struct FftLanePlan {
  int64_t n = 0;
  int count = 0;
  FftPass passes[kFftMaxPasses];
};

enum class FftKind { kLanes, kSteps, kConvolution };

struct FftPlan {
  int64_t n = 0;
  bool wide = false;               // double
  FftKind line = FftKind::kLanes;  // how a single line is done
  bool has_lanes = false;
  double lane_cost = 0, line_cost = 0;  // of lines in all lanes at once; of a single line
  FftLanePlan lanes;                    // of n
  // Two steps: the line as a matrix [n1][n2] in row-major order. Columns first, factors exp(-2 pi i k1 j2 / n) between:
  // those of the first column of a block of lanes ([block][n1]), and of the lanes relative to it ([n1][re, im][lane]).
  FftLanePlan first, second;
  int64_t n1 = 0, n2 = 0, blocks = 0;
  const void *block_factors = nullptr, *lane_factors = nullptr;
  // Convolution
  std::shared_ptr<const FftPlan> inner;
  const void *chirp = nullptr, *kernel = nullptr;
  // exp(-2 pi i k / (2 n)), k <= n / 2: makes 2 n real numbers of n complex ones
  const void* halves = nullptr;
  int64_t bytes = 0;
  void* memory[64];
  int memory_count = 0;

  FftPlan() = default;
  FftPlan(const FftPlan&) = delete;
  FftPlan& operator=(const FftPlan&) = delete;
  ~FftPlan();
};

// The plan of a size, from the cache; null when memory could not be had.
std::shared_ptr<const FftPlan> fft_plan(int64_t n, bool wide);

// Up to `width` lines, transformed side by side. Steps and places count real numbers; of complex lines both are even.
struct FftGroup {
  const void* in;
  void* out;
  const int64_t *in_at, *out_at;  // of each line
  int64_t in_step, out_step;      // from one element of a line to the next
  int lines;
  bool inverse;
  double scale;
};

struct FftLoops {
  int64_t width;
  // `work` has room for 4 * width * (n + width + 1) numbers
  void (*lanes)(const FftPlan& plan, const FftGroup& group, void* work);
  // of 2 n contiguous real numbers to n + 1 complex ones, and back
  void (*lanes_real)(const FftPlan& plan, const FftGroup& group, void* work);
  void (*lanes_to_real)(const FftPlan& plan, const FftGroup& group, void* work);
  // the two steps of a contiguous line; `middle` has room for 2 * blocks * width * (n1 + width)
  void (*columns)(const FftPlan& plan, const void* in, bool inverse, void* middle, int64_t block, void* work);
  void (*rows)(const FftPlan& plan, const void* middle, bool inverse, double scale, void* out, int64_t group,
               void* work);
  // out[i] = a[i] * b[i] * scale; parts of a and of the result change places when asked for
  void (*multiply)(const void* a, const void* b, void* out, int64_t n, double scale, bool swap_in, bool swap_out);
  // n complex numbers that stand for 2 n real ones, to their transform (n + 1) and back
  void (*split)(const FftPlan& plan, void* line);
  void (*join)(const FftPlan& plan, const void* in, void* out);
};

struct FftTable {
  FftLoops single, wide;
};
RL_ISA_DECLARE(FftTable, fft_table)

}  // namespace rl
