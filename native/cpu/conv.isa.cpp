// Convolution kernels of floating point numbers.
#include "cpu/conv_gram.h"
#include "cpu/conv_run.h"

namespace rl {
namespace {

constexpr ConvTable table = {conv_functions<float>, conv_functions<double>, conv_gram_functions<float>,
                             conv_gram_functions<double>};

}  // namespace

const ConvTable& RL_ISA_SYMBOL(conv_table)() { return table; }

}  // namespace rl
