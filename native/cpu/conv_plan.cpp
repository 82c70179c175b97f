#include "cpu/conv_plan.h"

#include <algorithm>

#include "core/dtype.h"

namespace rl {
namespace {

constexpr int64_t kBufferBytes = 256 * 1024;  // gathered at a time: to stay in the second-level cache
constexpr int64_t kTerms = 384;               // channels times taps summed at a time
constexpr int64_t kLeastRun = 192;            // outputs in a band, to keep tiles full
constexpr int64_t kMostOffsets = 4096;

// Place of spatial dimension `i` of `nd`: the outermost is 0, an inner one of two is 2.
int place(int i, int nd) { return nd == 2 && i == 1 ? 2 : i; }

// Terms whose rows' offsets are kept: at least one channel.
int64_t most_channels(const ConvShape& shape) {
  return std::max<int64_t>(1, kMostOffsets / std::max<int64_t>(1, shape.taps()));
}

void set_forward_dim(const ConvShape& shape, int d, bool expanded, ConvTap* tap, int64_t* starts, ConvDim& dim) {
  const int64_t stride = shape.stride[d];
  dim = {};
  dim.outputs = dim.plane = shape.out[d];
  dim.every = 1;
  dim.step = stride;
  dim.starts = starts;
  dim.taps = shape.kernel[d];
  dim.tap = tap;
  int64_t reach = 0;
  for (int64_t k = 0; k < shape.kernel[d]; ++k) {
    const int64_t distance = k * shape.dilation[d];
    if (expanded) {
      starts[k] = distance - shape.padding[d];
      tap[k] = {k, k, 0};
      continue;
    }
    const int64_t start = distance % stride - shape.padding[d];
    int64_t subplane = 0;
    while (subplane < dim.subplanes && starts[subplane] != start) ++subplane;
    if (subplane == dim.subplanes) starts[dim.subplanes++] = start;
    tap[k] = {k, subplane, distance / stride};
    reach = std::max(reach, distance / stride);
  }
  if (expanded) dim.subplanes = shape.kernel[d];
  dim.plane += reach;
}

void set_transposed_dim(const ConvShape& shape, int d, int64_t phase, bool expanded, ConvTap* tap, int64_t* starts,
                        ConvDim& dim) {
  const int64_t stride = shape.stride[d], padding = shape.padding[d], size = shape.in[d];
  dim = {};
  // Input element x is output * stride + kernel * dilation - padding; here (x + padding) % stride == phase.
  dim.first = ((phase - padding) % stride + stride) % stride;
  dim.every = stride;
  dim.outputs = dim.plane = dim.first < size ? (size - 1 - dim.first) / stride + 1 : 0;
  dim.step = 1;
  dim.starts = starts;
  dim.tap = tap;
  const int64_t base = (dim.first + padding - phase) / stride;
  int64_t nearest = INT64_MAX, farthest = 0;
  for (int64_t k = 0; k < shape.kernel[d]; ++k) {
    const int64_t distance = k * shape.dilation[d];
    if (distance % stride != phase) continue;
    const int64_t back = (distance - phase) / stride;
    nearest = std::min(nearest, back);
    farthest = std::max(farthest, back);
    tap[dim.taps] = {k, 0, back};
    ++dim.taps;
  }
  if (dim.taps == 0) return;
  if (expanded) {
    dim.subplanes = dim.taps;
    for (int64_t i = 0; i < dim.taps; ++i) {
      starts[i] = base - tap[i].shift;
      tap[i].subplane = i;
      tap[i].shift = 0;
    }
    return;
  }
  dim.subplanes = 1;
  starts[0] = base - farthest;
  for (int64_t i = 0; i < dim.taps; ++i) tap[i].shift = farthest - tap[i].shift;
  dim.plane += farthest - nearest;
}

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Elements behind a channel's last: rows are gathered in whole vectors (of at most 64 bytes).
constexpr int64_t kChannelSlack = 16;

int64_t reach_of(const ConvDim& dim) { return dim.plane - dim.outputs; }

int64_t slab_of(const ConvPass& pass) { return std::max<int64_t>(pass.dim[1].plane * pass.dim[2].plane, 1); }

// Offsets of the rows of pass.chunk channels, whose subplanes have band + reach rows.
void set_offsets(ConvPassMemory& memory, ConvPass& pass) {
  const ConvDim &d0 = pass.dim[0], &d1 = pass.dim[1], &d2 = pass.dim[2];
  const int64_t slab = slab_of(pass);
  const int64_t subplane = pass.together * (pass.band + reach_of(d0)) * slab;
  pass.channel_elements = d0.subplanes * d1.subplanes * d2.subplanes * subplane + kChannelSlack;
  pass.offsets = memory.offsets();
  int64_t* offset = memory.offsets();
  for (int64_t c = 0; c < pass.chunk; ++c) {
    for (int64_t t0 = 0; t0 < d0.taps; ++t0) {
      for (int64_t t1 = 0; t1 < d1.taps; ++t1) {
        for (int64_t t2 = 0; t2 < d2.taps; ++t2) {
          const ConvTap &a = d0.tap[t0], &b = d1.tap[t1], &e = d2.tap[t2];
          *offset++ = c * pass.channel_elements +
                      ((a.subplane * d1.subplanes + b.subplane) * d2.subplanes + e.subplane) * subplane +
                      a.shift * slab + b.shift * d2.plane + e.shift;
        }
      }
    }
  }
}

void set_common(const ConvShape& shape, ConvPass& pass) {
  pass.groups = shape.groups;
  pass.taps = pass.dim[0].taps * pass.dim[1].taps * pass.dim[2].taps;
  pass.together = 1;
  pass.direct = false;
  pass.bias = nullptr;
  pass.weights = nullptr;
  pass.weight_offsets = nullptr;
}

// Images to compute together: so many that tiles are full and a weight serves a good number of outputs. Each tap then
// needs a subplane of its own, which many target channels must pay for.
int64_t images_together(const ConvShape& shape, const ConvPass& pass) {
  constexpr int64_t kLeastTargets = 32;
  const int64_t outputs = pass.dim[0].outputs * slab_of(pass);
  const bool expanded = reach_of(pass.dim[1]) == 0 && reach_of(pass.dim[2]) == 0;
  if (outputs >= kLeastRun || outputs == 0 || !expanded || pass.target_channels < kLeastTargets || pass.taps == 0)
    return 1;
  // Rows of whole vectors waste nothing.
  if (outputs % 16 == 0 && outputs >= 48) return 1;
  return std::clamp<int64_t>(divide_up(kLeastRun, outputs), 1, std::max<int64_t>(shape.images, 1));
}

// Band, chunk and offsets, once the dimensions are set.
void set_blocks(const ConvShape& shape, int64_t element_bytes, ConvPassMemory& memory, ConvPass& pass) {
  const ConvDim &d0 = pass.dim[0], &d1 = pass.dim[1], &d2 = pass.dim[2];
  const int64_t outputs = std::max<int64_t>(d0.outputs, 1);
  const int64_t slab = slab_of(pass);
  if (pass.taps == 0) {
    pass.chunk = std::max<int64_t>(pass.source_channels, 1);
    pass.channel_elements = 0;
    pass.offsets = nullptr;
    pass.band = std::min(outputs, std::max<int64_t>(1, 8192 / slab));
    return;
  }
  const int64_t reach = reach_of(d0);
  const int64_t row_elements = pass.together * d0.subplanes * d1.subplanes * d2.subplanes * slab;
  const int64_t channels = std::max<int64_t>(pass.source_channels, 1);
  int64_t chunk = std::clamp<int64_t>(kTerms / pass.taps, 1, std::min(channels, most_channels(shape)));
  const int64_t buffer = kBufferBytes / element_bytes;
  // Rows that fit, but enough to fill tiles and to be worth the rows that neighbouring bands gather again.
  int64_t band = buffer / std::max<int64_t>(1, chunk * row_elements) - reach;
  band = std::max({band, divide_up(kLeastRun, slab), std::min<int64_t>(2 * reach, divide_up(2048, slab))});
  band = std::clamp<int64_t>(pass.together > 1 ? outputs : band, 1, outputs);
  pass.band = divide_up(outputs, divide_up(outputs, band));
  chunk = std::clamp<int64_t>(buffer / ((pass.band + reach) * row_elements),
                              std::min<int64_t>(chunk, divide_up(64, pass.taps)), chunk);
  pass.chunk = divide_up(channels, divide_up(channels, std::max<int64_t>(chunk, 1)));
  set_offsets(memory, pass);
}

// Expanding copies each element once per inner tap, to be used by every target channel at every outer tap.
bool worth_expanding(const ConvShape& shape, int64_t target_channels) {
  constexpr int64_t kLeastUses = 12;
  return shape.kernel[1] * shape.kernel[2] == 1 || target_channels * shape.kernel[0] >= kLeastUses;
}

// Along dimension 0 shifts beyond the band would be gathered for nothing.
bool expand_outer(const ConvShape& shape) { return shape.dilation[0] / shape.stride[0] >= 8; }

}  // namespace

ConvPassMemory::ConvPassMemory(const ConvShape& shape)
    : first_{0, shape.kernel[0], shape.kernel[0] + shape.kernel[1],
             shape.kernel[0] + shape.kernel[1] + shape.kernel[2]},
      most_offsets_(
          std::min(most_channels(shape), std::max<int64_t>(1, 2 * std::max(shape.in_channels, shape.out_channels))) *
          shape.taps()),
      taps_(first_[3]),
      starts_(first_[3]),
      offsets_(most_offsets_ + shape.taps()) {}

void plan_forward(const ConvShape& shape, int64_t element_bytes, ConvPassMemory& memory, ConvPass& pass) {
  const bool expanded = worth_expanding(shape, pass.target_channels);
  for (int d = 0; d < 3; ++d)
    set_forward_dim(shape, d, d == 0 ? expand_outer(shape) : expanded, memory.taps(d), memory.starts(d), pass.dim[d]);
  set_common(shape, pass);
  pass.together = images_together(shape, pass);
  if (pass.together > 1) set_forward_dim(shape, 0, true, memory.taps(0), memory.starts(0), pass.dim[0]);
  set_blocks(shape, element_bytes, memory, pass);
}

void plan_transposed(const ConvShape& shape, const int64_t (&phase)[3], int64_t element_bytes, ConvPassMemory& memory,
                     ConvPass& pass) {
  const bool expanded = worth_expanding(shape, pass.target_channels);
  for (int d = 0; d < 3; ++d) {
    set_transposed_dim(shape, d, phase[d], d == 0 ? expand_outer(shape) : expanded, memory.taps(d), memory.starts(d),
                       pass.dim[d]);
  }
  set_common(shape, pass);
  pass.together = images_together(shape, pass);
  if (pass.together > 1) set_transposed_dim(shape, 0, phase[0], true, memory.taps(0), memory.starts(0), pass.dim[0]);
  set_blocks(shape, element_bytes, memory, pass);
}

void plan_weight(const rl_tensor* weight, ConvPassMemory& memory, ConvPass& pass) {
  const ConvArray array = conv_array(weight);
  const ConvDim &d0 = pass.dim[0], &d1 = pass.dim[1], &d2 = pass.dim[2];
  int64_t* offset = memory.weight_offsets();
  pass.weight_offsets = offset;
  for (int64_t t0 = 0; t0 < d0.taps; ++t0) {
    for (int64_t t1 = 0; t1 < d1.taps; ++t1) {
      for (int64_t t2 = 0; t2 < d2.taps; ++t2) {
        *offset++ = d0.tap[t0].kernel * array.stride[0] + d1.tap[t1].kernel * array.stride[1] +
                    d2.tap[t2].kernel * array.stride[2];
      }
    }
  }
}

namespace {

// Vectors along the outputs: few channels at a time, all taps but the outer ones expanded.
void plan_inner_gram(int64_t element_bytes, int64_t lanes, ConvPassMemory& memory, ConvGram& gram) {
  ConvPass& pass = gram.pass;
  const ConvDim &d0 = pass.dim[0], &d1 = pass.dim[1], &d2 = pass.dim[2];
  const int64_t outputs = std::max<int64_t>(d0.outputs, 1);
  const int64_t slab = slab_of(pass), reach = reach_of(d0);
  const int64_t channels = std::max<int64_t>(pass.source_channels, 1);
  const int64_t row_elements = d0.subplanes * d1.subplanes * d2.subplanes * slab;
  const int64_t buffer = kBufferBytes / element_bytes;
  int64_t chunk = std::clamp<int64_t>(60 / pass.taps, 1, channels);
  int64_t band = std::min(buffer / std::max<int64_t>(1, chunk * row_elements) - reach, divide_up(1024, slab));
  band = std::clamp<int64_t>(std::max(band, divide_up(kLeastRun, slab)), 1, outputs);
  pass.band = divide_up(outputs, divide_up(outputs, band));
  pass.chunk = divide_up(channels, divide_up(channels, chunk));
  set_offsets(memory, pass);
  gram.channel_block = pass.chunk;
  // The sums, a vector for each pair of a row and a term, stay in the second-level cache.
  const int64_t pairs = 262'144 / (lanes * element_bytes);
  gram.row_block = std::clamp<int64_t>(pairs / (pass.chunk * pass.taps) & ~int64_t{7}, 8, 64);
}

// Vectors along the channels.
void plan_outer_gram(const ConvShape& shape, int64_t element_bytes, ConvPassMemory& memory, ConvGram& gram) {
  ConvPass& pass = gram.pass;
  const int64_t outputs = std::max<int64_t>(shape.out[0], 1);
  const int64_t slab = std::max<int64_t>(shape.out[1] * shape.out[2], 1);
  const int64_t channels = pass.source_channels;
  gram.channel_block = divide_up(channels, divide_up(channels, ConvGram::kMostChannels));
  if (gram.channel_block < channels)
    gram.channel_block = std::min<int64_t>((gram.channel_block + 15) & ~int64_t{15}, 64);
  for (int d = 0; d < 3; ++d) {
    gram.padding[d] = shape.padding[d];
    gram.grid[d] = (shape.out[d] - 1) * shape.stride[d] + (shape.kernel[d] - 1) * shape.dilation[d] + 1;
  }
  gram.grid_reach = (shape.kernel[0] - 1) * shape.dilation[0];
  const int64_t row_bytes = gram.grid[1] * gram.grid[2] * gram.channel_block * element_bytes;
  const int64_t fitting =
      (2 * kBufferBytes / std::max<int64_t>(row_bytes, 1) - gram.grid_reach - 1) / shape.stride[0] + 1;
  const int64_t band = std::clamp<int64_t>(std::min(std::max<int64_t>(fitting, 1), divide_up(512, slab)), 1, outputs);
  pass.band = divide_up(outputs, divide_up(outputs, band));
  pass.chunk = gram.channel_block;
  pass.channel_elements = 0;
  if (pass.band == outputs)
    pass.together = std::clamp<int64_t>(256 / (outputs * slab), 1, std::max<int64_t>(shape.images, 1));
  gram.row_block =
      std::clamp<int64_t>(2 * kBufferBytes / (pass.taps * gram.channel_block * element_bytes) & ~int64_t{7}, 8, 128);
  pass.offsets = memory.offsets();
  int64_t* offset = memory.offsets();
  for (int64_t k0 = 0; k0 < shape.kernel[0]; ++k0) {
    for (int64_t k1 = 0; k1 < shape.kernel[1]; ++k1) {
      for (int64_t k2 = 0; k2 < shape.kernel[2]; ++k2)
        *offset++ =
            (k0 * shape.dilation[0] * gram.grid[1] + k1 * shape.dilation[1]) * gram.grid[2] + k2 * shape.dilation[2];
    }
  }
}

}  // namespace

void plan_gram(const ConvShape& shape, int64_t element_bytes, int64_t lanes, ConvPassMemory& memory, ConvGram& gram,
               bool& outer) {
  ConvPass& pass = gram.pass;
  for (int d = 0; d < 3; ++d)
    set_forward_dim(shape, d, d == 0 ? expand_outer(shape) : true, memory.taps(d), memory.starts(d), pass.dim[d]);
  set_common(shape, pass);
  gram.images = shape.images;
  outer = pass.source_channels >= lanes / 2;
  if (outer) {
    plan_outer_gram(shape, element_bytes, memory, gram);
  } else {
    plan_inner_gram(element_bytes, lanes, memory, gram);
  }
}

ConvArray conv_array(const rl_tensor* t) {
  const bool is_complex = is_complex_dtype(t->dtype);
  const int64_t unit = is_complex ? 2 : 1;
  ConvArray array{};
  array.data = t->data;
  array.dtype = real_dtype(t->dtype);
  array.parts = static_cast<int>(unit);
  array.image_stride = t->strides[0] * unit;
  array.channel_stride = t->strides[1] * unit;
  for (int d = 0; d < 3; ++d) {
    array.size[d] = 1;
    array.stride[d] = 0;
  }
  for (int i = 0; i < t->ndim - 2; ++i) {
    array.size[place(i, t->ndim - 2)] = t->shape[2 + i];
    array.stride[place(i, t->ndim - 2)] = t->strides[2 + i] * unit;
  }
  return array;
}

ConvWeight conv_weight(const rl_tensor* t, const ConvShape& shape, bool from_input) {
  const ConvArray array = conv_array(t);
  ConvWeight weight{};
  weight.data = array.data;
  weight.dtype = array.dtype;
  weight.parts = array.parts;
  weight.group_stride = shape.out_channels * array.image_stride;
  weight.target_stride = from_input ? array.image_stride : array.channel_stride;
  weight.source_stride = from_input ? array.channel_stride : array.image_stride;
  return weight;
}

rl_status conv_shape(const char* name, const rl_tensor* input, const rl_tensor* weight, const rl_tensor* out,
                     const rl_conv_params* params, ConvShape& shape) {
  const int nd = input->ndim - 2;
  if (nd < 1 || nd > 3 || out->ndim != input->ndim || weight->ndim != input->ndim)
    return fail(
        RL_VALUE_ERROR,
        "%s: expected an input, a weight and an output of one number of dimensions, from 3 to 5; got %s, %s and %s",
        name, shape_text(input), shape_text(weight), shape_text(out));
  if (input->dtype != out->dtype || weight->dtype != out->dtype)
    return fail(RL_TYPE_ERROR,
                "%s: expected one dtype for all tensors, got %s for the input, %s for the weight and %s for the output",
                name, dtype_text(input->dtype), dtype_text(weight->dtype), dtype_text(out->dtype));
  if (!is_valid_dtype(out->dtype) || out->dtype == RL_BOOL)
    return fail(RL_TYPE_ERROR, "%s: expected integers, floating point or complex numbers, got %s", name,
                dtype_text(out->dtype));
  const int64_t groups = params->groups;
  if (groups < 1 || input->shape[1] % groups != 0 || weight->shape[0] % groups != 0)
    return fail(RL_VALUE_ERROR,
                "%s: %lld groups do not divide the channels; got an input of shape %s and a weight of shape %s", name,
                static_cast<long long>(groups), shape_text(input), shape_text(weight));
  if (input->shape[1] / groups != weight->shape[1] || out->shape[1] != weight->shape[0] ||
      out->shape[0] != input->shape[0])
    return fail(RL_VALUE_ERROR,
                "%s: shapes do not fit; expected an input [N, C, ...], a weight [O, C / %lld, ...] and an output [N, "
                "O, ...], got %s, "
                "%s and %s",
                name, static_cast<long long>(groups), shape_text(input), shape_text(weight), shape_text(out));
  shape = {};
  shape.images = input->shape[0];
  shape.groups = groups;
  shape.in_channels = input->shape[1] / groups;
  shape.out_channels = weight->shape[0] / groups;
  for (int d = 0; d < 3; ++d) shape.in[d] = shape.out[d] = shape.kernel[d] = shape.stride[d] = shape.dilation[d] = 1;
  for (int i = 0; i < nd; ++i) {
    const int d = place(i, nd);
    shape.in[d] = input->shape[2 + i];
    shape.out[d] = out->shape[2 + i];
    shape.kernel[d] = weight->shape[2 + i];
    shape.stride[d] = params->stride[i];
    shape.padding[d] = params->padding[i];
    shape.dilation[d] = params->dilation[i];
    constexpr int64_t kMost = int64_t{1} << 40;  // so that no position overflows
    if (shape.stride[d] < 1 || shape.dilation[d] < 1 || shape.padding[d] < 0 || shape.kernel[d] < 1 ||
        shape.stride[d] > kMost || shape.dilation[d] > kMost || shape.padding[d] > kMost)
      return fail(RL_VALUE_ERROR,
                  "%s: expected a stride, dilation and kernel of at least 1 and a padding of at least 0, got %lld, "
                  "%lld, %lld and %lld in "
                  "spatial dimension %d",
                  name, static_cast<long long>(shape.stride[d]), static_cast<long long>(shape.dilation[d]),
                  static_cast<long long>(shape.kernel[d]), static_cast<long long>(shape.padding[d]), i);
    int64_t span;
    if (__builtin_mul_overflow(shape.dilation[d], shape.kernel[d] - 1, &span)) span = INT64_MAX;
    const int64_t room = shape.in[d] + 2 * shape.padding[d] - 1;
    const int64_t most = span > room ? 0 : (room - span) / shape.stride[d] + 1;
    if (shape.out[d] > most)
      return fail(RL_VALUE_ERROR,
                  "%s: expected an output of at most %lld in spatial dimension %d, got %s for an input of shape %s",
                  name, static_cast<long long>(most), i, shape_text(out), shape_text(input));
  }
  return RL_OK;
}

}  // namespace rl
