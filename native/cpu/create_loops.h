// Sequences of numbers: loops that need fused multiplication, which every instruction set but the baseline has.
#pragma once

#include "cpu/isa.h"
#include "rushlight/create.h"

namespace rl {

// A number as the caller wrote it: integers keep 64 bits.
struct Number {
  double real, imag;
  int64_t integer;
  bool is_integer;  // `integer` holds it
};

struct CreateTable {
  // Elements [begin, begin + count) of the n of rl_arange and rl_linspace, dense, in the dtype.
  void (*arange[RL_DTYPE_COUNT])(const Number& start, const Number& step, int64_t n, int64_t begin, int64_t count,
                                 void* out);
  void (*linspace[RL_DTYPE_COUNT])(const Number& start, const Number& end, int64_t n, int64_t begin, int64_t count,
                                   void* out);
};
RL_ISA_DECLARE(CreateTable, create_table)

}  // namespace rl
