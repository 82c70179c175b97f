// What the convolution kernels work on: plans made from shapes (conv_plan.cpp), and the functions compiled once per
// instruction set (conv.isa.cpp).
//
// A convolution is a matrix product whose right-hand matrix, one row for each channel and kernel position (tap), is
// never formed: each of its rows is a run of consecutive elements in a buffer that holds the input rearranged. For that
// the source is gathered into subplanes:
//   - along an expanded dimension each tap has a subplane of its own, holding the element that each output needs;
//   - along a shifted dimension there is a subplane for each remainder modulo the stride, and taps are shifts within
//   it.
// Padding becomes zeros in the subplanes. The outermost spatial dimension is shifted, so that a band of output rows is
// one run; the inner ones are expanded, or, where the gathering would cost more than the arithmetic, shifted too: then
// runs hold some elements between rows that belong to no output and are skipped when the result is stored.
//
// Spatial dimensions are named by place: 0 is the outermost, and in one- and two-dimensional convolutions trailing or
// middle ones have size 1.
#pragma once

#include <cstdint>

#include "cpu/isa.h"
#include "rushlight.h"

namespace rl {

// A strided array [images, channels, 3 spatial]. A complex array is seen as a real one with 2 parts: channel 2 * c is
// the real part of c and 2 * c + 1 the imaginary part; strides count real elements.
struct ConvArray {
  void* data;
  int dtype;  // of the elements, never complex
  int parts;
  int64_t image_stride, channel_stride;
  int64_t size[3];
  int64_t stride[3];
};

struct ConvTap {
  int64_t kernel;  // position along the kernel's dimension
  int64_t subplane;
  int64_t shift;
};

struct ConvDim {
  int64_t outputs;       // of this pass
  int64_t first, every;  // output i is written to first + i * every of the target
  int64_t step;          // subplane element q holds source element q * step + start
  int64_t plane;         // elements of a subplane: outputs, or more by the largest shift
  int64_t subplanes;
  const int64_t* starts;  // per subplane
  int64_t taps;
  const ConvTap* tap;
};

// One pass of a forward convolution or an input gradient: all outputs first + i * every of the target.
struct ConvPass {
  ConvArray source, target;
  ConvDim dim[3];
  int64_t groups;
  int64_t source_channels, target_channels;  // of a group, parts counted
  int64_t taps;                              // of all dimensions
  int64_t band;                              // outputs of dimension 0 computed at a time
  int64_t chunk;                             // source channels gathered at a time
  int64_t together;                          // images computed together, their outputs following each other in one run
  int64_t channel_elements;                  // buffer elements of a channel
  const int64_t* offsets;                    // of the rows of a chunk: channel-major, then taps in kernel order
  const int64_t* weight_offsets;             // of each tap in the weight's memory
  const void* weights;                       // packed
  const void* bias;                          // per target channel of all groups, in compute type; or null
  bool direct;                               // results are stored to the target as they are computed
};

// Where weight[o, i, k0, k1, k2] lies, o being a target channel of a group and i a source channel, parts not counted.
struct ConvWeight {
  const void* data;
  int dtype;
  int parts;
  int64_t group_stride, target_stride, source_stride;
};

// By compute type.
struct ConvFunctions {
  // Packs the weights of a group's target channels [first, last) into `packed`, which is for all groups.
  void (*pack_weights)(const ConvPass& pass, const ConvWeight& weight, void* packed, int64_t group, int64_t first,
                       int64_t last);
  // Outputs [begin, end) of dimension 0 (a band), target channels [first, last) of groups [group, group_end), for
  // images [image, image_end), at most `together`.
  rl_status (*run)(const ConvPass& pass, int64_t image, int64_t image_end, int64_t group, int64_t group_end,
                   int64_t begin, int64_t end, int64_t first, int64_t last);
  int64_t panel;  // target channels computed together: ranges of channels begin at a multiple of it
};

// A weight gradient: the pass's source is the input, and its target grad_out, which is read. In `outer`, offsets are
// those of the taps on the grid.
struct ConvGram {
  static constexpr int64_t kMostChannels = 64;
  ConvPass pass;
  int64_t row_block;      // output channels of a unit (parts counted)
  int64_t channel_block;  // source channels of a unit; for `outer` at most kMostChannels
  int64_t images;
  int64_t image_group;  // images of a unit
  void* sums;           // [image groups][groups][target channels][source channels * taps] in compute type
  // For `outer`: the padded input's positions that outputs use, those of a band along dimension 0.
  int64_t padding[3];
  int64_t grid[3];     // [0] is not used
  int64_t grid_reach;  // rows of the grid that the last output of a band reaches beyond its first tap
};

struct ConvGramFunctions {
  // One unit of a weight gradient: a block of rows by a block of channels, summed over a group of images.
  rl_status (*gram)(const ConvGram& gram, int64_t image_group, int64_t group, int64_t first_row, int64_t first_channel);
  // The same for many source channels.
  rl_status (*outer)(const ConvGram& gram, int64_t image_group, int64_t group, int64_t first_row,
                     int64_t first_channel);
  // The sum of a channel (parts counted) over all images, in the array's dtype.
  void (*sum_channel)(const ConvArray& array, int64_t images, int64_t channel, void* result);
  int64_t lanes;  // elements of a vector
};

struct ConvTable {
  ConvFunctions f32, f64;
  ConvGramFunctions gram_f32, gram_f64;
};
RL_ISA_DECLARE(ConvTable, conv_table)

// conv_integer.cpp
const ConvFunctions& conv_integer_functions();
const ConvGramFunctions& conv_integer_gram_functions();

}  // namespace rl
