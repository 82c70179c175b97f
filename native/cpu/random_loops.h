// Inner loops of the random generator and its commonest distributions, compiled once per instruction set.
#pragma once

#include <cstdint>

#include "cpu/isa.h"

namespace rl {

struct RandomLoops {
  // The next block of 624 generator words, in place.
  void (*renew)(uint32_t* words);
  // Tempered words: what the generator hands out.
  void (*temper)(const uint32_t* words, uint32_t* out, int64_t n);
  // Generator words (not yet tempered) to floats in [from, to), one each. range is to - from.
  void (*uniform_float)(const uint32_t* words, float* out, int64_t n, float from, float range, float to);
  // Pairs of tempered words to doubles in [from, to).
  void (*uniform_double)(const uint32_t* pairs, double* out, int64_t n, double from, double range, double to);
  // Pairs of tempered words to -1 where their low 53 bits are below `threshold`, else 0.
  void (*coins)(const uint32_t* pairs, int32_t* out, int64_t n, uint64_t threshold);
  // Groups of 16 uniform floats, in place, to normal numbers: element j < 8 and element j + 8 are a Box-Muller pair.
  void (*normal_groups)(float* data, int64_t groups, float mean, float std);
};

RL_ISA_DECLARE(RandomLoops, random_loops)

}  // namespace rl
