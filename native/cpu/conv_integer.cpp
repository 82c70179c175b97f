// Convolution kernels of integers. All widths are computed modulo 2^64, of which the narrower ones keep the low bits.
// They are rare enough to be compiled for one instruction set.
#include "cpu/conv_gram.h"
#include "cpu/conv_run.h"

namespace rl {

const ConvFunctions& conv_integer_functions() {
  static constexpr ConvFunctions functions = conv_functions<uint64_t>;
  return functions;
}

const ConvGramFunctions& conv_integer_gram_functions() {
  static constexpr ConvGramFunctions functions = conv_gram_functions<uint64_t>;
  return functions;
}

}  // namespace rl
