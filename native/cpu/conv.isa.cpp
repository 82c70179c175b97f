// Convolution kernels: gathering, the register tiles, and the weight gradient's sums of products.
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "cpu/conv_kernels.h"
#include "cpu/conv_vector.h"

namespace rl {
namespace {

int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

template <class T>
const T* element(const ConvArray& array, int64_t image, int64_t channel) {
  return static_cast<const T*>(array.data) + image * array.image_stride + channel / array.parts * array.channel_stride +
         channel % array.parts;
}

// ---- gathering

// Subplane elements [lo, hi) lie inside the source; those of [0, lo) and [hi, n) are padding.
struct Inside {
  int64_t lo, hi;
};

Inside inside(int64_t n, int64_t start, int64_t step, int64_t size) {
  const int64_t lo = start >= 0 ? 0 : least((step - 1 - start) / step, n);
  const int64_t hi = start >= size ? 0 : least((size - 1 - start) / step + 1, n);
  return {lo, hi < lo ? lo : hi};
}

template <class T>
RL_INLINE void zero(T* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = T(0);
}

template <class T, class S>
RL_INLINE void gather_row(T* __restrict to, const S* from, int64_t stride, int64_t n, Inside range) {
  zero(to, range.lo);
  if (stride == 1) {
    if constexpr (std::is_same_v<T, float> && is_reduced_float_v<S>) {
      to_float(from + range.lo, to + range.lo, range.hi - range.lo);
    } else {
      for (int64_t i = range.lo; i < range.hi; ++i) to[i] = convert<T>(from[i]);
    }
  } else {
    for (int64_t i = range.lo; i < range.hi; ++i) to[i] = convert<T>(from[i * stride]);
  }
  zero(to + range.hi, n - range.hi);
}

// Channels [first, last) of a group, for outputs [begin, begin + outputs) of dimension 0.
template <class T, class S>
void gather(const ConvPass& pass, int64_t image, int64_t group, int64_t first, int64_t last, int64_t begin,
            int64_t outputs, T* buffer) {
  const ConvDim &d0 = pass.dim[0], &d1 = pass.dim[1], &d2 = pass.dim[2];
  const ConvArray& source = pass.source;
  const int64_t reach = d0.plane - d0.outputs;
  const int64_t rows = outputs + reach;
  const int64_t slab = d1.plane * d2.plane;
  const int64_t subplane = (least(pass.band, d0.outputs) + reach) * slab;
  const bool line = slab == 1;
  T* plane = buffer;
  for (int64_t c = first; c < last; ++c) {
    const S* const channel = element<S>(source, image, group * pass.source_channels + c);
    for (int64_t s0 = 0; s0 < d0.subplanes; ++s0) {
      const int64_t start0 = d0.starts[s0] + begin * d0.step;
      for (int64_t s1 = 0; s1 < d1.subplanes; ++s1) {
        const int64_t start1 = d1.starts[s1];
        for (int64_t s2 = 0; s2 < d2.subplanes; ++s2, plane += subplane) {
          const int64_t start2 = d2.starts[s2];
          const S* const origin = channel + start1 * source.stride[1] + start2 * source.stride[2];
          if (line) {
            // One-dimensional: the row runs along dimension 0.
            Inside range = inside(rows, start0, d0.step, source.size[0]);
            if (start1 < 0 || start1 >= source.size[1] || start2 < 0 || start2 >= source.size[2]) range = {0, 0};
            gather_row(plane, origin + start0 * source.stride[0], d0.step * source.stride[0], rows, range);
            continue;
          }
          const Inside range = inside(d2.plane, start2, d2.step, source.size[2]);
          T* to = plane;
          for (int64_t q0 = 0; q0 < rows; ++q0) {
            const int64_t x0 = start0 + q0 * d0.step;
            if (x0 < 0 || x0 >= source.size[0]) {
              zero(to, slab);
              to += slab;
              continue;
            }
            for (int64_t q1 = 0; q1 < d1.plane; ++q1, to += d2.plane) {
              const int64_t x1 = start1 + q1 * d1.step;
              if (x1 < 0 || x1 >= source.size[1]) {
                zero(to, d2.plane);
                continue;
              }
              gather_row(to, origin + x0 * source.stride[0] + q1 * d1.step * source.stride[1],
                         d2.step * source.stride[2], d2.plane, range);
            }
          }
        }
      }
    }
  }
}

template <class T>
void gather_any(const ConvPass& pass, int64_t image, int64_t group, int64_t first, int64_t last, int64_t begin,
                int64_t outputs, T* buffer) {
  const auto go = [&]<class S>(S) { gather<T, S>(pass, image, group, first, last, begin, outputs, buffer); };
  if constexpr (std::is_same_v<T, float>) {
    if (pass.source.dtype == RL_FLOAT32) go(float{});
    if (pass.source.dtype == RL_FLOAT16) go(half{});
    if (pass.source.dtype == RL_BFLOAT16) go(bfloat16{});
  } else if constexpr (std::is_same_v<T, double>) {
    go(double{});
  } else {
    RL_DISPATCH_INTEGER(pass.source.dtype, S, { go(S{}); });
  }
}

// ---- storing results

template <class T, class S>
void put(const ConvPass& pass, int64_t image, int64_t channel, int64_t begin, int64_t outputs, const T* from) {
  const ConvDim &d0 = pass.dim[0], &d1 = pass.dim[1], &d2 = pass.dim[2];
  const ConvArray& target = pass.target;
  S* const origin =
      const_cast<S*>(element<S>(target, image, channel)) + d1.first * target.stride[1] + d2.first * target.stride[2];
  const int64_t stride = d2.every * target.stride[2];
  for (int64_t i0 = 0; i0 < outputs; ++i0) {
    for (int64_t i1 = 0; i1 < d1.outputs; ++i1) {
      S* const to = origin + (d0.first + (begin + i0) * d0.every) * target.stride[0] + i1 * d1.every * target.stride[1];
      const T* const row = from + (i0 * d1.plane + i1) * d2.plane;
      if constexpr (std::is_same_v<T, float> && is_reduced_float_v<S>) {
        if (stride == 1) {
          from_float(row, to, d2.outputs);
          continue;
        }
      }
      if (stride == 1) {
        for (int64_t i = 0; i < d2.outputs; ++i) to[i] = convert<S>(row[i]);
      } else {
        for (int64_t i = 0; i < d2.outputs; ++i) to[i * stride] = convert<S>(row[i]);
      }
    }
  }
}

template <class T>
void put_any(const ConvPass& pass, int64_t image, int64_t channel, int64_t begin, int64_t outputs, const T* from) {
  const auto go = [&]<class S>(S) { put<T, S>(pass, image, channel, begin, outputs, from); };
  if constexpr (std::is_same_v<T, float>) {
    if (pass.target.dtype == RL_FLOAT32) go(float{});
    if (pass.target.dtype == RL_FLOAT16) go(half{});
    if (pass.target.dtype == RL_BFLOAT16) go(bfloat16{});
  } else if constexpr (std::is_same_v<T, double>) {
    go(double{});
  } else {
    RL_DISPATCH_INTEGER(pass.target.dtype, S, { go(S{}); });
  }
}

// ---- weights

// Target channels computed together, when `left` remain.
int64_t panel_rows(int64_t left) {
  int64_t rows = kPanel;
  while (rows > left) rows /= 2;
  return rows;
}

template <class T, class S>
void pack(const ConvPass& pass, const ConvWeight& weight, T* packed, int64_t group, int64_t first, int64_t last) {
  const ConvDim &d0 = pass.dim[0], &d1 = pass.dim[1], &d2 = pass.dim[2];
  const int64_t terms = pass.source_channels * pass.taps;
  for (int64_t o = first; o < last;) {
    const int64_t rows = panel_rows(last - o);
    for (int64_t m = 0; m < rows; ++m) {
      T* to = packed + (group * pass.target_channels + o) * terms + m;
      const int64_t target = (o + m) / weight.parts, target_part = (o + m) % weight.parts;
      for (int64_t c = 0; c < pass.source_channels; ++c) {
        const int64_t source = c / weight.parts, source_part = c % weight.parts;
        // (a + bi)(c + di): a real target takes wr and -wi, an imaginary one wi and wr.
        const S* const from = static_cast<const S*>(weight.data) + group * weight.group_stride +
                              target * weight.target_stride + source * weight.source_stride +
                              (target_part != source_part);
        const bool negative = target_part == 0 && source_part == 1;
        for (int64_t t0 = 0; t0 < d0.taps; ++t0) {
          for (int64_t t1 = 0; t1 < d1.taps; ++t1) {
            const S* const row = from + d0.tap[t0].kernel * weight.stride[0] + d1.tap[t1].kernel * weight.stride[1];
            for (int64_t t2 = 0; t2 < d2.taps; ++t2, to += rows) {
              const T value = convert<T>(row[d2.tap[t2].kernel * weight.stride[2]]);
              *to = negative ? -value : value;
            }
          }
        }
      }
    }
    o += rows;
  }
}

template <class T>
void pack_weights(const ConvPass& pass, const ConvWeight& weight, void* packed, int64_t group, int64_t first,
                  int64_t last) {
  const auto go = [&]<class S>(S) { pack<T, S>(pass, weight, static_cast<T*>(packed), group, first, last); };
  if constexpr (std::is_same_v<T, float>) {
    if (weight.dtype == RL_FLOAT32) go(float{});
    if (weight.dtype == RL_FLOAT16) go(half{});
    if (weight.dtype == RL_BFLOAT16) go(bfloat16{});
  } else if constexpr (std::is_same_v<T, double>) {
    go(double{});
  } else {
    RL_DISPATCH_INTEGER(weight.dtype, S, { go(S{}); });
  }
}

// ---- the register tile: M target channels by V vectors of consecutive outputs

template <class T>
struct Terms {
  int64_t count;
  const T* weights;  // [count][M]
  const T* buffer;
  const int64_t* offsets;  // of each term's row
  const T* bias;           // of the tile's first channel, or null for zeros
  bool first;              // start from bias, else from what the result holds
};

template <class T, int M, int V>
void tile(const Terms<T>& terms, int64_t position, T* result, int64_t result_row) {
  constexpr int L = kLanes<T>;
  Vector<T> sum[M][V];
  if (terms.first) {
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) {
      const Vector<T> start = splat<T>(terms.bias ? terms.bias[m] : T(0));
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) sum[m][v] = start;
    }
  } else {
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) {
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) sum[m][v] = load(result + m * result_row + v * L);
    }
  }
  const T* weight = terms.weights;
  const T* const base = terms.buffer + position;
  for (int64_t k = 0; k < terms.count; ++k, weight += M) {
    const T* const row = base + terms.offsets[k];
    Vector<T> x[V];
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) x[v] = load(row + v * L);
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) {
      const Vector<T> w = splat<T>(weight[m]);
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) sum[m][v] += w * x[v];
    }
  }
#pragma GCC unroll 16
  for (int m = 0; m < M; ++m) {
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) store(result + m * result_row + v * L, sum[m][v]);
  }
}

// A tile whose last vector is only partly wanted: it must not write beyond.
template <class T, int M, int V>
void partial_tile(const Terms<T>& terms, int64_t position, int64_t columns, T* result, int64_t result_row) {
  T aside[M * V * kLanes<T>];
  constexpr int64_t row = V * kLanes<T>;
  if (!terms.first) {
    for (int m = 0; m < M; ++m) {
      for (int64_t j = 0; j < row; ++j) aside[m * row + j] = j < columns ? result[m * result_row + j] : T(0);
    }
  }
  tile<T, M, V>(terms, position, aside, row);
  for (int m = 0; m < M; ++m) {
    for (int64_t j = 0; j < columns; ++j) result[m * result_row + j] = aside[m * row + j];
  }
}

// Columns [position, position + columns), in tiles of V vectors, then narrower ones.
template <class T, int M, int V>
void tiles(const Terms<T>& terms, int64_t position, int64_t columns, T* result, int64_t result_row) {
  constexpr int64_t width = V * kLanes<T>;
  while (columns >= width) {
    tile<T, M, V>(terms, position, result, result_row);
    position += width;
    result += width;
    columns -= width;
  }
  if (columns <= 0) return;
  if constexpr (V > 1) {
    constexpr int narrower = V == 3 ? 2 : V / 2;
    if (columns <= narrower * kLanes<T>) {
      tiles<T, M, narrower>(terms, position, columns, result, result_row);
      return;
    }
  }
  partial_tile<T, M, V>(terms, position, columns, result, result_row);
}

// Vectors that a tile of M channels has.
template <int M>
inline constexpr int kTileVectors = M == kPanel ? kPanelVectors
                                    : M == 4    ? 6
                                    : M == 2    ? (kVectorBytes == 64 ? 8 : 4)
                                                : (kVectorBytes == 64 ? 8 : 4);

template <class T>
void panel(int64_t rows, const Terms<T>& terms, int64_t position, int64_t columns, T* result, int64_t result_row) {
  switch (rows) {
    case 8:
      if constexpr (kPanel >= 8) tiles<T, 8, kTileVectors<8>>(terms, position, columns, result, result_row);
      break;
    case 4:
      tiles<T, 4, kTileVectors<4>>(terms, position, columns, result, result_row);
      break;
    case 2:
      tiles<T, 2, kTileVectors<2>>(terms, position, columns, result, result_row);
      break;
    default:
      tiles<T, 1, kTileVectors<1>>(terms, position, columns, result, result_row);
  }
}

constexpr int64_t kMostTileVectors = 8;

template <class T>
rl_status run(const ConvPass& pass, int64_t image, int64_t group, int64_t group_end, int64_t begin, int64_t end,
              int64_t first, int64_t last) {
  const ConvDim &d1 = pass.dim[1], &d2 = pass.dim[2];
  const int64_t outputs = end - begin;
  // Outputs of the band as one run, with what lies between rows; not with what follows the last.
  const int64_t length = ((outputs - 1) * d1.plane + d1.outputs - 1) * d2.plane + d2.outputs;
  const int64_t terms_all = pass.source_channels * pass.taps;
  constexpr int64_t kSlack = kMostTileVectors * kLanes<T>;
  Scratch<T> buffer(least(pass.chunk, pass.source_channels) * pass.channel_elements + kSlack);
  Scratch<T> aside(pass.direct ? 0 : (last - first) * length);
  if (!buffer || !aside) return RL_MEMORY_ERROR;
  constexpr int64_t kColumns = 2 * kPanelVectors * kLanes<T>;
  for (int64_t g = group; g < group_end; ++g) {
    T* result = aside.get();
    int64_t result_row = length;
    if (pass.direct) {
      result = const_cast<T*>(element<T>(pass.target, image, g * pass.target_channels + first)) +
               begin * pass.target.stride[0];
      result_row = pass.target.channel_stride;
    }
    for (int64_t c = 0; c == 0 || c < pass.source_channels; c += pass.chunk) {
      const int64_t channels = least(pass.chunk, pass.source_channels - c);
      if (pass.taps > 0) gather_any<T>(pass, image, g, c, c + channels, begin, outputs, buffer.get());
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
    if (pass.direct) continue;
    for (int64_t o = first; o < last; ++o)
      put_any<T>(pass, image, g * pass.target_channels + o, begin, outputs, aside.get() + (o - first) * length);
  }
  return RL_OK;
}

// ---- the weight gradient: sums of products of two sets of rows

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
  Scratch<T> buffer(channels * pass.channel_elements);
  Scratch<T> gradient(pass.direct ? 0 : rows * pass.band * slab);
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
  const int64_t last_image = least((image_group + 1) * gram.image_group, gram.images);
  for (int64_t image = image_group * gram.image_group; image < last_image; ++image) {
    for (int64_t begin = 0; begin < d0.outputs; begin += pass.band) {
      const int64_t outputs = least(pass.band, d0.outputs - begin);
      const int64_t length = outputs * slab;
      gather_any<T>(pass, image, group, first_channel, first_channel + channels, begin, outputs, buffer.get());
      const T* gradient_rows;
      int64_t gradient_row;
      if (pass.direct) {
        gradient_rows =
            element<T>(pass.target, image, group * pass.target_channels + first_row) + begin * pass.target.stride[0];
        gradient_row = pass.target.channel_stride;
      } else {
        gather_any<T>(copy, image, group, first_row, first_row + rows, begin, outputs, gradient.get());
        gradient_rows = gradient.get();
        gradient_row = least(pass.band, d0.outputs) * slab;
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
  const auto go = [&]<class S>(S) { *static_cast<S*>(result) = convert<S>(sum_images<T, S>(array, images, channel)); };
  if constexpr (std::is_same_v<T, float>) {
    if (array.dtype == RL_FLOAT32) go(float{});
    if (array.dtype == RL_FLOAT16) go(half{});
    if (array.dtype == RL_BFLOAT16) go(bfloat16{});
  } else if constexpr (std::is_same_v<T, double>) {
    go(double{});
  } else {
    RL_DISPATCH_INTEGER(array.dtype, S, { go(S{}); });
  }
}

template <class T>
constexpr ConvFunctions functions = {pack_weights<T>, run<T>, gram<T>, sum_channel<T>, kLanes<T>, kPanel};

// Integers of all widths are computed modulo 2^64, of which the narrower ones keep the low bits.
constexpr ConvTable table = {functions<float>, functions<double>, functions<uint64_t>};

}  // namespace

const ConvTable& RL_ISA_SYMBOL(conv_table)() { return table; }

}  // namespace rl
