// Plans for convolutions: how a convolution's shapes become passes over subplanes (see conv_kernels.h).
#pragma once

#include "core/error.h"
#include "core/memory.h"
#include "cpu/conv_kernels.h"
#include "rushlight/conv.h"

namespace rl {

// Sizes of a convolution with three spatial dimensions, those a tensor lacks being 1.
struct ConvShape {
  int64_t images, groups;
  int64_t in_channels, out_channels;  // of a group
  int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
};

// Checks dtypes and shapes of a convolution's tensors; `weight` may be NULL in which case kernel sizes stay unset.
rl_status conv_shape(const char* name, const rl_tensor* input, const rl_tensor* weight, const rl_tensor* out,
                     const rl_conv_params* params, ConvShape& shape);

// Seen with three spatial dimensions, and complex numbers as two reals.
ConvArray conv_array(const rl_tensor* t);
// `from_input`: targets are output channels and sources input channels, as in the forward direction; else the reverse.
ConvWeight conv_weight(const rl_tensor* weight, const ConvShape& shape, bool from_input);

// Memory that a pass points into.
class ConvPassMemory {
 public:
  explicit ConvPassMemory(const ConvShape& shape);
  bool ok() const { return taps_ && starts_ && offsets_; }
  ConvTap* taps(int d) const { return taps_.get() + first_[d]; }
  int64_t* starts(int d) const { return starts_.get() + first_[d]; }
  int64_t* offsets() const { return offsets_.get(); }
  int64_t* weight_offsets() const { return offsets_.get() + most_offsets_; }

 private:
  int64_t first_[4];
  int64_t most_offsets_;
  Scratch<ConvTap> taps_;
  Scratch<int64_t> starts_, offsets_;
};

// The forward convolution's one pass: source is the input, target the output.
void plan_forward(const ConvShape& shape, int64_t element_bytes, ConvPassMemory& memory, ConvPass& pass);
// The pass of the input gradient that writes the elements congruent to `phase` modulo the stride: source is the
// output's gradient, target the input's.
void plan_transposed(const ConvShape& shape, const int64_t (&phase)[3], int64_t element_bytes, ConvPassMemory& memory,
                     ConvPass& pass);
// Where the taps of a planned pass lie in the weight.
void plan_weight(const rl_tensor* weight, ConvPassMemory& memory, ConvPass& pass);
// The weight gradient; `outer` says which kernel is to run.
void plan_gram(const ConvShape& shape, int64_t element_bytes, int64_t lanes, ConvPassMemory& memory, ConvGram& gram,
               bool& outer);

}  // namespace rl
