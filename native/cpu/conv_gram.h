// Kernels of the weight's and the bias's gradient. For files compiled once per instruction set.
#pragma once

#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "cpu/conv_gather.h"
#include "cpu/conv_kernels.h"
#include "cpu/conv_tile.h"

namespace rl {
namespace {

constexpr int64_t kMostChannels = ConvGram::kMostChannels;

// ---- few source channels: sums of products of two sets of rows, vectors running along the outputs

// Rows of a tile, and terms (rows of the other set).
constexpr int kGramRows = kVectorBytes == 64 ? 4 : 2;
constexpr int kGramTerms = kVectorBytes == 64 ? 6 : kVectorBytes == 32 ? 6 : 4;

// sums[m][k] += the products of row m and term k over n elements, lane by lane.
template <class T>
void gram_tile(const T* const* rows, const T* const* terms, int64_t n, T* const* sums) {
  constexpr int L = kLanes<T>;
  Vector<T> sum[kGramRows][kGramTerms];
#pragma GCC unroll 16
  for (int m = 0; m < kGramRows; ++m) {
#pragma GCC unroll 16
    for (int k = 0; k < kGramTerms; ++k) sum[m][k] = load(sums[m] + k * L);
  }
  const auto step = [&](auto take, int64_t i) __attribute__((always_inline)) {
    Vector<T> row[kGramRows];
#pragma GCC unroll 16
    for (int m = 0; m < kGramRows; ++m) row[m] = take(rows[m] + i);
#pragma GCC unroll 16
    for (int k = 0; k < kGramTerms; ++k) {
      const Vector<T> term = take(terms[k] + i);
#pragma GCC unroll 16
      for (int m = 0; m < kGramRows; ++m) sum[m][k] += row[m] * term;
    }
  };
  int64_t i = 0;
  for (; i + L <= n; i += L) step([](const T* from) __attribute__((always_inline)) { return load(from); }, i);
  if (i < n) {
    const int64_t left = n - i;
    step([left](const T* from) __attribute__((always_inline)) { return load_first(from, left); }, i);
  }
#pragma GCC unroll 16
  for (int m = 0; m < kGramRows; ++m) {
#pragma GCC unroll 16
    for (int k = 0; k < kGramTerms; ++k) store(sums[m] + k * L, sum[m][k]);
  }
}

template <class T>
rl_status gram(const ConvGram& gram, int64_t image_group, int64_t group, int64_t first_row, int64_t first_channel) {
  constexpr int L = kLanes<T>;
  const ConvPass& pass = gram.pass;
  const ConvDim &d0 = pass.dim[0], &d1 = pass.dim[1], &d2 = pass.dim[2];
  const int64_t rows = least(gram.row_block, pass.target_channels - first_row);
  const int64_t channels = least(gram.channel_block, pass.source_channels - first_channel);
  const int64_t terms = channels * pass.taps;
  const int64_t slab = d1.outputs * d2.outputs;  // all but dimension 0 is expanded
  const int64_t row_tiles = (rows + kGramRows - 1) / kGramRows, term_tiles = (terms + kGramTerms - 1) / kGramTerms;
  const int64_t term_row = term_tiles * kGramTerms * L;
  Scratch<T> buffer(channels * pass.channel_elements + kGatherSlack<T>);
  const int64_t gradient_elements = least(pass.band, d0.outputs) * slab + kGatherSlack<T>;
  Scratch<T> gradient(pass.direct ? 0 : rows * gradient_elements);
  Scratch<T> sums(row_tiles * kGramRows * term_row);
  if (!buffer || !gradient || !sums) return RL_MEMORY_ERROR;
  zero(sums.get(), row_tiles * kGramRows * term_row);
  // grad_out seen as the source of a gathering that only copies.
  const int64_t start = 0;
  ConvPass copy = pass;
  copy.source = pass.target;
  copy.source_channels = pass.target_channels;
  for (int d = 0; d < 3; ++d) {
    copy.dim[d].step = copy.dim[d].subplanes = 1;
    copy.dim[d].plane = copy.dim[d].outputs;
    copy.dim[d].starts = &start;
  }
  copy.channel_elements = gradient_elements;
  const int64_t last_image = least((image_group + 1) * gram.image_group, gram.images);
  for (int64_t image = image_group * gram.image_group; image < last_image; ++image) {
    for (int64_t begin = 0; begin < d0.outputs; begin += pass.band) {
      const int64_t outputs = least(pass.band, d0.outputs - begin);
      const int64_t length = outputs * slab;
      gather_any<T>(pass, image, image + 1, group, first_channel, first_channel + channels, begin, outputs,
                    buffer.get());
      const T* gradient_rows;
      int64_t gradient_row;
      if (pass.direct) {
        gradient_rows =
            element<T>(pass.target, image, group * pass.target_channels + first_row) + begin * pass.target.stride[0];
        gradient_row = pass.target.channel_stride;
      } else {
        gather_any<T>(copy, image, image + 1, group, first_row, first_row + rows, begin, outputs, gradient.get());
        gradient_rows = gradient.get();
        gradient_row = gradient_elements;
      }
      for (int64_t k = 0; k < terms; k += kGramTerms) {
        const T* term[kGramTerms];
        for (int i = 0; i < kGramTerms; ++i) term[i] = buffer.get() + pass.offsets[least(k + i, terms - 1)];
        for (int64_t m = 0; m < rows; m += kGramRows) {
          const T* row[kGramRows];
          T* sum[kGramRows];
          for (int i = 0; i < kGramRows; ++i) {
            row[i] = gradient_rows + least(m + i, rows - 1) * gradient_row;
            sum[i] = sums.get() + (m + i) * term_row + k * L;
          }
          gram_tile<T>(row, term, length, sum);
        }
      }
    }
  }
  T* const to =
      static_cast<T*>(gram.sums) +
      ((image_group * pass.groups + group) * pass.target_channels + first_row) * pass.source_channels * pass.taps +
      first_channel * pass.taps;
  for (int64_t m = 0; m < rows; ++m) {
    for (int64_t k = 0; k < terms; ++k)
      to[m * pass.source_channels * pass.taps + k] = sum_lanes<T>(load(sums.get() + m * term_row + k * L));
  }
  return RL_OK;
}

// ---- many source channels: vectors running along the channels
//
// The input is laid out with its channels innermost, on a grid that has the padding. Then the input elements that all
// source channels contribute to a tap at some output are one run, and the output's gradient is the weight of that run.

// Lays out channels [first, first + channels) of a group: grid rows [0, rows) of dimension 0 from source row `origin`.
template <class T, class S>
void lay_out(const ConvGram& gram, int64_t image, int64_t group, int64_t first, int64_t channels, int64_t origin,
             int64_t rows, int64_t width, T* to) {
  const ConvArray& source = gram.pass.source;
  const int64_t channel = group * gram.pass.source_channels + first;
  const S* const base = element<S>(source, image, channel);
  int64_t apart[kMostChannels];
  for (int64_t c = 0; c < channels; ++c) apart[c] = element<S>(source, image, channel + c) - base;
  const int64_t lo = least(gram.padding[2], gram.grid[2]);
  const int64_t hi = lo == gram.grid[2] ? lo : least(gram.grid[2], source.size[2] + gram.padding[2]);
  for (int64_t g0 = 0; g0 < rows; ++g0) {
    const int64_t x0 = origin + g0;
    for (int64_t g1 = 0; g1 < gram.grid[1]; ++g1, to += gram.grid[2] * width) {
      const int64_t x1 = g1 - gram.padding[1];
      if (x0 < 0 || x0 >= source.size[0] || x1 < 0 || x1 >= source.size[1]) {
        zero(to, gram.grid[2] * width);
        continue;
      }
      zero(to, lo * width);
      const S* const row = base + x0 * source.stride[0] + x1 * source.stride[1] - gram.padding[2] * source.stride[2];
      for (int64_t g2 = lo; g2 < hi; ++g2) {
        const S* const from = row + g2 * source.stride[2];
        T* const position = to + g2 * width;
        for (int64_t c = 0; c < channels; ++c) position[c] = convert<T>(from[apart[c]]);
        for (int64_t c = channels; c < width; ++c) position[c] = T(0);
      }
      zero(to + hi * width, (gram.grid[2] - hi) * width);
    }
  }
}

// Rows [first, last) of grad_out for outputs [begin, begin + outputs) of dimension 0, in panels: element [p][m] of a
// panel goes to to[p * M + m]. A panel of all images has `count` positions.
template <class T, class S>
void pack_gradient(const ConvPass& pass, int64_t image, int64_t group, int64_t first, int64_t last, int64_t begin,
                   int64_t outputs, int64_t position, int64_t count, T* to) {
  const ConvDim &d1 = pass.dim[1], &d2 = pass.dim[2];
  const ConvArray& target = pass.target;
  for (int64_t o = first; o < last;) {
    const int64_t rows = panel_rows(last - o);
    const int64_t channel = group * pass.target_channels + o;
    const S* from[kPanel];
    for (int64_t m = 0; m < rows; ++m) from[m] = element<S>(target, image, channel + m) + begin * target.stride[0];
    T* panel = to + (o - first) * count + position * rows;
    for (int64_t i0 = 0; i0 < outputs; ++i0) {
      for (int64_t i1 = 0; i1 < d1.outputs; ++i1) {
        const int64_t row = i0 * target.stride[0] + i1 * target.stride[1];
        if (rows == kPanel) {
          for (int64_t i2 = 0; i2 < d2.outputs; ++i2, panel += kPanel) {
#pragma GCC unroll 8
            for (int m = 0; m < kPanel; ++m) panel[m] = convert<T>(from[m][row + i2 * target.stride[2]]);
          }
        } else {
          for (int64_t i2 = 0; i2 < d2.outputs; ++i2, panel += rows) {
            for (int64_t m = 0; m < rows; ++m) panel[m] = convert<T>(from[m][row + i2 * target.stride[2]]);
          }
        }
      }
    }
    o += rows;
  }
}

template <class T>
rl_status outer(const ConvGram& gram, int64_t image_group, int64_t group, int64_t first_row, int64_t first_channel) {
  constexpr int64_t L = kLanes<T>;
  const ConvPass& pass = gram.pass;
  const ConvDim &d0 = pass.dim[0], &d1 = pass.dim[1], &d2 = pass.dim[2];
  const int64_t rows = least(gram.row_block, pass.target_channels - first_row);
  const int64_t channels = least(gram.channel_block, pass.source_channels - first_channel);
  const int64_t width = (channels + L - 1) / L * L;
  const int64_t slab = d1.outputs * d2.outputs;
  const int64_t band = least(pass.band, d0.outputs);
  const int64_t grid_slab = gram.grid[1] * gram.grid[2];
  const int64_t grid_rows = (band - 1) * d0.step + gram.grid_reach + 1;
  const int64_t image_grid = grid_rows * grid_slab * width;
  const int64_t most_count = pass.together * band * slab;
  Scratch<T> laid_out(pass.together * image_grid + kTileSlack<T>);
  Scratch<T> gradient(rows * most_count);
  Scratch<T> sums(rows * pass.taps * width);
  Scratch<int64_t> offsets(most_count);
  if (!laid_out || !gradient || !sums || !offsets) return RL_MEMORY_ERROR;

  bool first = true;
  const int64_t last_image = least((image_group + 1) * gram.image_group, gram.images);
  for (int64_t image = image_group * gram.image_group; image < last_image; image += pass.together) {
    const int64_t images = least(pass.together, last_image - image);
    for (int64_t begin = 0; begin < d0.outputs; begin += band) {
      const int64_t outputs = least(band, d0.outputs - begin);
      const int64_t count = images * outputs * slab;
      int64_t* offset = offsets.get();
      for (int64_t i = 0; i < images; ++i) {
        with_element_type<T>(pass.source.dtype, [&]<class S>(S) {
          lay_out<T, S>(gram, image + i, group, first_channel, channels, begin * d0.step - gram.padding[0],
                        (outputs - 1) * d0.step + gram.grid_reach + 1, width, laid_out.get() + i * image_grid);
        });
        with_element_type<T>(pass.target.dtype, [&]<class S>(S) {
          pack_gradient<T, S>(pass, image + i, group, first_row, first_row + rows, begin, outputs, i * outputs * slab,
                              count, gradient.get());
        });
        for (int64_t y0 = 0; y0 < outputs; ++y0) {
          for (int64_t y1 = 0; y1 < d1.outputs; ++y1) {
            const int64_t row = i * image_grid + (y0 * d0.step * grid_slab + y1 * d1.step * gram.grid[2]) * width;
            for (int64_t y2 = 0; y2 < d2.outputs; ++y2) *offset++ = row + y2 * d2.step * width;
          }
        }
      }
      for (int64_t t = 0; t < pass.taps; ++t) {
        for (int64_t o = 0; o < rows;) {
          const int64_t panel_size = panel_rows(rows - o);
          const Terms<T> terms = {
              count, gradient.get() + o * count, laid_out.get() + pass.offsets[t] * width, offsets.get(), nullptr,
              first};
          panel<T>(panel_size, terms, 0, width, sums.get() + (o * pass.taps + t) * width, pass.taps * width);
          o += panel_size;
        }
      }
      first = false;
    }
  }
  T* const to =
      static_cast<T*>(gram.sums) +
      ((image_group * pass.groups + group) * pass.target_channels + first_row) * pass.source_channels * pass.taps +
      first_channel * pass.taps;
  for (int64_t m = 0; m < rows; ++m) {
    for (int64_t t = 0; t < pass.taps; ++t) {
      for (int64_t c = 0; c < channels; ++c)
        to[(m * pass.source_channels + c) * pass.taps + t] = first ? T(0) : sums[(m * pass.taps + t) * width + c];
    }
  }
  return RL_OK;
}

// ---- the bias gradient

template <class T, class S>
T sum_plane(const S* plane, const ConvArray& array) {
  // Wide numbers of lanes in a fixed order; double for long sums of floats.
  using Wide = std::conditional_t<std::is_same_v<T, float>, double, T>;
  Wide total = 0;
  for (int64_t i = 0; i < array.size[0]; ++i) {
    for (int64_t j = 0; j < array.size[1]; ++j) {
      const S* const row = plane + i * array.stride[0] + j * array.stride[1];
      constexpr int L = 16;
      T lanes[L] = {};
      int64_t k = 0;
      for (; k + L <= array.size[2]; k += L) {
        for (int l = 0; l < L; ++l) lanes[l] += convert<T>(row[(k + l) * array.stride[2]]);
      }
      for (int l = 0; k < array.size[2]; ++k, ++l) lanes[l] += convert<T>(row[k * array.stride[2]]);
      Wide sum = 0;
      for (int l = 0; l < L; ++l) sum += lanes[l];
      total += sum;
    }
  }
  return static_cast<T>(total);
}

template <class T, class S>
T sum_images(const ConvArray& array, int64_t images, int64_t channel) {
  using Wide = std::conditional_t<std::is_same_v<T, float>, double, T>;
  Wide total = 0;
  for (int64_t n = 0; n < images; ++n) total += sum_plane<T, S>(element<S>(array, n, channel), array);
  return static_cast<T>(total);
}

template <class T>
void sum_channel(const ConvArray& array, int64_t images, int64_t channel, void* result) {
  with_element_type<T>(array.dtype, [&]<class S>(S) {
    *static_cast<S*>(result) = convert<S>(sum_images<T, S>(array, images, channel));
  });
}

template <class T>
constexpr ConvGramFunctions conv_gram_functions = {gram<T>, outer<T>, sum_channel<T>, kLanes<T>};

}  // namespace
}  // namespace rl
