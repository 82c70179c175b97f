// Gathering a convolution's source into subplanes, and storing results: for files compiled once per instruction set.
#pragma once

#include "core/dtype.h"
#include "cpu/conv_kernels.h"
#include "cpu/conv_vector.h"

namespace rl {
namespace {

// Rows are gathered in whole vectors, so a buffer needs this many elements behind its last.
template <class T>
constexpr int64_t kGatherSlack = kLanes<T>;

[[maybe_unused]] RL_INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

template <class T>
RL_INLINE const T* element(const ConvArray& array, int64_t image, int64_t channel) {
  return static_cast<const T*>(array.data) + image * array.image_stride + channel / array.parts * array.channel_stride +
         channel % array.parts;
}

// Calls go(S{}) with the element type of a real dtype whose compute type is T.
template <class T, class Go>
RL_INLINE void with_element_type(int dtype, Go go) {
  if constexpr (std::is_same_v<T, float>) {
    if (dtype == RL_FLOAT32) go(float{});
    if (dtype == RL_FLOAT16) go(half{});
    if (dtype == RL_BFLOAT16) go(bfloat16{});
  } else if constexpr (std::is_same_v<T, double>) {
    go(double{});
  } else {
    RL_DISPATCH_INTEGER(dtype, S, { go(S{}); });
  }
}

template <class T>
RL_INLINE void zero(T* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = T(0);
}

// Subplane elements [lo, hi) lie inside the source; those of [0, lo) and [hi, n) are padding.
struct Inside {
  int64_t lo, hi;
};

RL_INLINE Inside inside(int64_t n, int64_t start, int64_t step, int64_t size) {
  const int64_t lo = start >= 0 ? 0 : least((step - 1 - start) / step, n);
  const int64_t hi = start >= size ? 0 : least((size - 1 - start) / step + 1, n);
  return {lo, hi < lo ? lo : hi};
}

// Copies rows of n elements, `stride` apart in the source, of which range lies inside it.
template <class T, class S>
class RowGather {
 public:
  RowGather(int64_t n, int64_t stride, Inside range) : n_(n), stride_(stride), range_(range) {
    if constexpr (kMasked) {
      constexpr int64_t L = kLanes<T>;
      vectors_ = stride == 1 || (kAlternates && stride == 2) ? (n + L - 1) / L : kMostVectors + 1;
      if (vectors_ > kMostVectors) return;
      for (int64_t v = 0; v < vectors_; ++v) masks_[v] = Mask<T>(range.lo - v * L, range.hi - v * L);
    }
  }

  // `from` is where element 0 would be.
  RL_INLINE void operator()(T* __restrict to, const S* from) const {
    if constexpr (kMasked) {
      constexpr int64_t L = kLanes<T>;
      if (vectors_ <= kMostVectors) {
        if (stride_ == 1) {
          for (int64_t v = 0; v < vectors_; ++v) store(to + v * L, load(from + v * L, masks_[v]));
        } else {
#if defined(__AVX512F__)
          for (int64_t v = 0; v < vectors_; ++v) store(to + v * L, load_alternate(from + 2 * v * L, masks_[v]));
#endif
        }
        return;
      }
    }
    zero(to, range_.lo);
    if (stride_ == 1) {
      if constexpr (std::is_same_v<T, float> && is_reduced_float_v<S>) {
        to_float(from + range_.lo, to + range_.lo, range_.hi - range_.lo);
      } else {
        for (int64_t i = range_.lo; i < range_.hi; ++i) to[i] = convert<T>(from[i]);
      }
    } else {
      for (int64_t i = range_.lo; i < range_.hi; ++i) to[i] = convert<T>(from[i * stride_]);
    }
    zero(to + range_.hi, n_ - range_.hi);
  }

 private:
  static constexpr bool kMasked = kMasks<T> && std::is_same_v<T, S>;
  static constexpr bool kAlternates = kVectorBytes == 64;
  static constexpr int64_t kMostVectors = 16;
  int64_t n_, stride_;
  Inside range_;
  int64_t vectors_;
  struct None {};
  std::conditional_t<kMasked, Mask<T>, None> masks_[kMostVectors];
};

// A slab (what lies below dimension 0) without elements inside the source.
template <class T>
RL_INLINE void zero_slab(T* to, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes<T>) store(to + i, Vector<T>{});
}

// Channels [first, last) of a group of images [image, image_end), for outputs [begin, begin + outputs) of dimension 0.
// In the buffer the images of a subplane follow each other.
template <class T, class S>
void gather(const ConvPass& pass, int64_t image, int64_t image_end, int64_t group, int64_t first, int64_t last,
            int64_t begin, int64_t outputs, T* buffer) {
  const ConvDim &d0 = pass.dim[0], &d1 = pass.dim[1], &d2 = pass.dim[2];
  const ConvArray& source = pass.source;
  const int64_t reach = d0.plane - d0.outputs;
  const int64_t rows = outputs + reach;
  const int64_t slab = d1.plane * d2.plane;
  const int64_t image_elements = (least(pass.band, d0.outputs) + reach) * slab;
  const int64_t images = image_end - image;
  const int64_t subplane = pass.together * image_elements;
  const bool line = slab == 1;
  for (int64_t s0 = 0; s0 < d0.subplanes; ++s0) {
    const int64_t start0 = d0.starts[s0] + begin * d0.step;
    for (int64_t s1 = 0; s1 < d1.subplanes; ++s1) {
      const int64_t start1 = d1.starts[s1];
      for (int64_t s2 = 0; s2 < d2.subplanes; ++s2) {
        const int64_t start2 = d2.starts[s2];
        const int64_t origin = start1 * source.stride[1] + start2 * source.stride[2];
        T* const plane = buffer + ((s0 * d1.subplanes + s1) * d2.subplanes + s2) * subplane;
        if (line) {
          // One-dimensional: the row runs along dimension 0.
          Inside range = inside(rows, start0, d0.step, source.size[0]);
          if (start1 < 0 || start1 >= source.size[1] || start2 < 0 || start2 >= source.size[2]) range = {0, 0};
          const RowGather<T, S> copy(rows, d0.step * source.stride[0], range);
          for (int64_t c = first; c < last; ++c) {
            for (int64_t i = 0; i < images; ++i)
              copy(
                  plane + (c - first) * pass.channel_elements + i * image_elements,
                  element<S>(source, image + i, group * pass.source_channels + c) + origin + start0 * source.stride[0]);
          }
          continue;
        }
        const RowGather<T, S> copy(d2.plane, d2.step * source.stride[2],
                                   inside(d2.plane, start2, d2.step, source.size[2]));
        for (int64_t c = first; c < last; ++c) {
          T* to = plane + (c - first) * pass.channel_elements;
          for (int64_t i = 0; i < images; ++i) {
            const S* const channel = element<S>(source, image + i, group * pass.source_channels + c) + origin;
            for (int64_t q0 = 0; q0 < rows; ++q0) {
              const int64_t x0 = start0 + q0 * d0.step;
              if (x0 < 0 || x0 >= source.size[0]) {
                zero_slab(to, slab);
                to += slab;
                continue;
              }
              for (int64_t q1 = 0; q1 < d1.plane; ++q1, to += d2.plane) {
                const int64_t x1 = start1 + q1 * d1.step;
                if (x1 < 0 || x1 >= source.size[1]) {
                  zero_slab(to, d2.plane);
                  continue;
                }
                copy(to, channel + x0 * source.stride[0] + q1 * d1.step * source.stride[1]);
              }
            }
          }
        }
      }
    }
  }
}

template <class T>
void gather_any(const ConvPass& pass, int64_t image, int64_t image_end, int64_t group, int64_t first, int64_t last,
                int64_t begin, int64_t outputs, T* buffer) {
  with_element_type<T>(pass.source.dtype, [&]<class S>(S) {
    gather<T, S>(pass, image, image_end, group, first, last, begin, outputs, buffer);
  });
}

// ---- storing results

template <class T, class S>
void put(const ConvPass& pass, int64_t image, int64_t channel, int64_t begin, int64_t outputs, const T* from) {
  const ConvDim &d0 = pass.dim[0], &d1 = pass.dim[1], &d2 = pass.dim[2];
  const ConvArray& target = pass.target;
  S* const origin =
      const_cast<S*>(element<S>(target, image, channel)) + d1.first * target.stride[1] + d2.first * target.stride[2];
  const int64_t stride = d2.every * target.stride[2];
  const int64_t n = d2.outputs;
  for (int64_t i0 = 0; i0 < outputs; ++i0) {
    for (int64_t i1 = 0; i1 < d1.outputs; ++i1) {
      S* const to = origin + (d0.first + (begin + i0) * d0.every) * target.stride[0] + i1 * d1.every * target.stride[1];
      const T* const row = from + (i0 * d1.plane + i1) * d2.plane;
      if (stride != 1) {
        for (int64_t i = 0; i < n; ++i) to[i * stride] = convert<S>(row[i]);
      } else if constexpr (std::is_same_v<T, float> && is_reduced_float_v<S>) {
        from_float(row, to, n);
      } else if constexpr (kMasks<T> && std::is_same_v<T, S>) {
        constexpr int64_t L = kLanes<T>;
        int64_t i = 0;
        for (; i + L <= n; i += L) store(to + i, load(row + i));
        if (i < n) {
          const Mask<T> rest(0, n - i);
          store(to + i, load(row + i, rest), rest);
        }
      } else {
        for (int64_t i = 0; i < n; ++i) to[i] = convert<S>(row[i]);
      }
    }
  }
}

template <class T>
void put_any(const ConvPass& pass, int64_t image, int64_t channel, int64_t begin, int64_t outputs, const T* from) {
  with_element_type<T>(pass.target.dtype, [&]<class S>(S) { put<T, S>(pass, image, channel, begin, outputs, from); });
}

}  // namespace
}  // namespace rl
