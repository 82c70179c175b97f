// Convolution kernels: packed weights and bands of outputs. For files compiled once per instruction set.
#pragma once

#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "cpu/conv_gather.h"
#include "cpu/conv_kernels.h"
#include "cpu/conv_tile.h"

namespace rl {
namespace {

// ---- weights

// Rows [o, o + M) of a group.
template <int M, class T, class S>
void pack_panel(const ConvPass& pass, const ConvWeight& weight, T* to, int64_t group, int64_t o) {
  const S* const base = static_cast<const S*>(weight.data) + group * weight.group_stride;
  if (weight.parts == 1) {
    for (int64_t c = 0; c < pass.source_channels; ++c) {
      const S* const from = base + c * weight.source_stride + o * weight.target_stride;
      for (int64_t t = 0; t < pass.taps; ++t, to += M) {
        const S* const tap = from + pass.weight_offsets[t];
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) to[m] = convert<T>(tap[m * weight.target_stride]);
      }
    }
    return;
  }
  // (a + bi)(c + di): a real target takes wr and -wi, an imaginary one wi and wr.
  for (int64_t c = 0; c < pass.source_channels; ++c) {
    const bool source_imaginary = c % 2 != 0;
    for (int64_t t = 0; t < pass.taps; ++t, to += M) {
      for (int m = 0; m < M; ++m) {
        const bool imaginary = (o + m) % 2 != 0;
        const T value = convert<T>(base[c / 2 * weight.source_stride + (o + m) / 2 * weight.target_stride +
                                        pass.weight_offsets[t] + (imaginary != source_imaginary)]);
        to[m] = !imaginary && source_imaginary ? -value : value;
      }
    }
  }
}

template <class T>
void pack_weights(const ConvPass& pass, const ConvWeight& weight, void* packed, int64_t group, int64_t first,
                  int64_t last) {
  const int64_t terms = pass.source_channels * pass.taps;
  with_element_type<T>(weight.dtype, [&]<class S>(S) {
    for (int64_t o = first; o < last;) {
      T* const to = static_cast<T*>(packed) + (group * pass.target_channels + o) * terms;
      const int64_t rows = panel_rows(last - o);
      if (rows == 8) pack_panel<8, T, S>(pass, weight, to, group, o);
      if (rows == 4) pack_panel<4, T, S>(pass, weight, to, group, o);
      if (rows == 2) pack_panel<2, T, S>(pass, weight, to, group, o);
      if (rows == 1) pack_panel<1, T, S>(pass, weight, to, group, o);
      o += rows;
    }
  });
}

// ---- a band of outputs

template <class T>
rl_status run(const ConvPass& pass, int64_t image, int64_t image_end, int64_t group, int64_t group_end, int64_t begin,
              int64_t end, int64_t first, int64_t last) {
  const ConvDim &d1 = pass.dim[1], &d2 = pass.dim[2];
  const int64_t outputs = end - begin;
  const int64_t images = image_end - image;
  // Outputs of the band as one run, with what lies between rows; not with what follows the last. Several images are
  // taken together only where nothing lies between rows.
  const int64_t image_length = ((outputs - 1) * d1.plane + d1.outputs - 1) * d2.plane + d2.outputs;
  const int64_t length = images * image_length;
  const int64_t terms_all = pass.source_channels * pass.taps;
  Scratch<T> buffer(least(pass.chunk, pass.source_channels) * pass.channel_elements + kTileSlack<T>);
  const bool direct = pass.direct && images == 1;
  Scratch<T> aside(direct ? 0 : (last - first) * length);
  if (!buffer || !aside) return RL_MEMORY_ERROR;
  constexpr int64_t kColumns = 2 * kPanelVectors * kLanes<T>;
  for (int64_t g = group; g < group_end; ++g) {
    T* result = aside.get();
    int64_t result_row = length;
    if (direct) {
      result = const_cast<T*>(element<T>(pass.target, image, g * pass.target_channels + first)) +
               begin * pass.target.stride[0];
      result_row = pass.target.channel_stride;
    }
    for (int64_t c = 0; c == 0 || c < pass.source_channels; c += pass.chunk) {
      const int64_t channels = least(pass.chunk, pass.source_channels - c);
      if (pass.taps > 0) gather_any<T>(pass, image, image_end, g, c, c + channels, begin, outputs, buffer.get());
      for (int64_t position = 0; position < length; position += kColumns) {
        const int64_t columns = least(kColumns, length - position);
        for (int64_t o = first; o < last;) {
          const int64_t rows = panel_rows(last - o);
          const int64_t channel = g * pass.target_channels + o;
          const Terms<T> terms = {channels * pass.taps,
                                  static_cast<const T*>(pass.weights) + channel * terms_all + c * pass.taps * rows,
                                  buffer.get(),
                                  pass.offsets,
                                  pass.bias ? static_cast<const T*>(pass.bias) + channel : nullptr,
                                  c == 0};
          panel<T>(rows, terms, position, columns, result + (o - first) * result_row + position, result_row);
          o += rows;
        }
      }
    }
    if (direct) continue;
    for (int64_t i = 0; i < images; ++i) {
      for (int64_t o = first; o < last; ++o)
        put_any<T>(pass, image + i, g * pass.target_channels + o, begin, outputs,
                   aside.get() + (o - first) * length + i * image_length);
    }
  }
  return RL_OK;
}

template <class T>
constexpr ConvFunctions conv_functions = {pack_weights<T>, run<T>, kPanel};

}  // namespace
}  // namespace rl
