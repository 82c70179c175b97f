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

enum class FftKind { kLanes, kMatrix, kSteps, kConvolution };

struct FftPlan {
  int64_t n = 0;
  bool wide = false;               // double
  FftKind line = FftKind::kLanes;  // how a single line is done
  bool has_lanes = false;
  double lane_cost = 0, line_cost = 0;  // of lines in all lanes at once; of a single line
  FftLanePlan lanes;                    // of n
  // A matrix [w][m] in row-major order, w the numbers in a vector: its columns first, factors exp(-2 pi i p k / n)
  // between, [block of p][k - 1][re, im][lane], then the rows. So many lines have their columns in one block of lanes
  // together.
  FftLanePlan rest;  // of m
  int64_t m = 0, together = 1;
  const void* turns = nullptr;
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
  const void* halves_in_lanes = nullptr;  // k < n, [block][re, im][lane]
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
  bool out_dense;  // nothing is between contiguous lines of the output
  bool odd;        // the size of real signals; an even one is twice the plan's
  double scale;
};

// `count` contiguous lines, steps of real numbers from one to the next. Real signals have twice the plan's size.
struct FftLines {
  enum Kind { kComplex, kReal, kToReal };
  const void* in;
  void* out;
  int64_t in_step, out_step, count;
  Kind kind;
  bool inverse;
  double scale;
};

struct FftLoops {
  int64_t width;
  // `work` has room for 4 * width * (n + width + 1) numbers
  void (*lanes)(const FftPlan& plan, const FftGroup& group, void* work);
  // of real numbers to the n / 2 + 1 complex ones that are not mirror images, and back
  void (*lanes_real)(const FftPlan& plan, const FftGroup& group, void* work);
  void (*lanes_to_real)(const FftPlan& plan, const FftGroup& group, void* work);
  // of FftKind::kMatrix; `work` has room for 6 * n + 8 * width * width + 2 * width * (together - 1) * m numbers
  void (*lines)(const FftPlan& plan, const FftLines& lines, void* work);
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
