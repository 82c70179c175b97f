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
  RowGather() = default;
  RowGather(int64_t n, int64_t stride, Inside range) : n_(n), stride_(stride), range_(range) {
    if constexpr (kMasked) {
      constexpr int64_t L = kLanes<T>;
      vectors_ = stride == 1 || (kAlternates && stride == 2) ? (n + L - 1) / L : kMostVectors + 1;
      if (vectors_ > kMostVectors) return;
      for (int64_t v = 0; v < vectors_; ++v) masks_[v] = Mask<T>(range.lo - v * L, range.hi - v * L);
    }
  }

  // `count` rows; with the masks in registers where they are few.
  RL_INLINE void rows(T* to, int64_t to_step, const S* from, int64_t from_step, int64_t count) const {
    if constexpr (kMasked) {
      constexpr int64_t L = kLanes<T>;
      if (stride_ == 1 && vectors_ <= 2) {
        const Mask<T> first = masks_[0], second = masks_[1];
#if defined(__AVX512F__)
        // Stores of whole vectors for rows far shorter would mostly cross cache lines.
        if (n_ <= L / 2) {
          for (int64_t i = 0; i < count; ++i) store_half(to + i * to_step, from + i * from_step, first);
          return;
        }
#endif
        if (vectors_ == 1) {
          for (int64_t i = 0; i < count; ++i) store(to + i * to_step, load(from + i * from_step, first));
          return;
        }
        for (int64_t i = 0; i < count; ++i) {
          store(to + i * to_step, load(from + i * from_step, first));
          store(to + i * to_step + L, load(from + i * from_step + L, second));
        }
        return;
      }
    }
    for (int64_t i = 0; i < count; ++i) (*this)(to + i * to_step, from + i * from_step);
  }

  // `from` is where element 0 would be.
  void operator()(T* __restrict to, const S* from) const {
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
// In the buffer the images of a subplane follow each other. Whole vectors are written, so the order must be that of the
// addresses.
template <class T, class S>
void gather(const ConvPass& pass, int64_t image, int64_t image_end, int64_t group, int64_t first, int64_t last,
            int64_t begin, int64_t outputs, T* buffer) {
  // Copies: after a vector store the compiler has to think that the plan may have changed.
  const ConvDim d0 = pass.dim[0], d1 = pass.dim[1], d2 = pass.dim[2];
  const ConvArray source = pass.source;
  const int64_t reach = d0.plane - d0.outputs;
  const int64_t rows = outputs + reach;
  const int64_t slab = d1.plane * d2.plane;
  const int64_t image_elements = (least(pass.band, d0.outputs) + reach) * slab;
  const int64_t images = image_end - image;
  const int64_t subplane = pass.together * image_elements;
  const int64_t channel_elements = pass.channel_elements;
  const int64_t base_channel = group * pass.source_channels;
  // One-dimensional: the row runs along dimension 0.
  const bool line = slab == 1;
  const int64_t stride = line ? d0.step * source.stride[0] : d2.step * source.stride[2];
  const auto row_of = [&](int64_t s) {
    return line ? RowGather<T, S>(rows, stride, inside(rows, d0.starts[s] + begin * d0.step, d0.step, source.size[0]))
                : RowGather<T, S>(d2.plane, stride, inside(d2.plane, d2.starts[s], d2.step, source.size[2]));
  };
  constexpr int64_t kKnown = 8;
  const int64_t kinds = line ? d0.subplanes : d2.subplanes;
  RowGather<T, S> known[kKnown];
  for (int64_t s = 0; s < least(kinds, kKnown); ++s) known[s] = row_of(s);

  for (int64_t c = first; c < last; ++c) {
    T* plane = buffer + (c - first) * channel_elements;
    const S* const channel = element<S>(source, image, base_channel + c);
    for (int64_t s0 = 0; s0 < d0.subplanes; ++s0) {
      const int64_t start0 = d0.starts[s0] + begin * d0.step;
      // Rows [lo, hi) lie inside the source.
      const Inside inside0 = inside(rows, start0, d0.step, source.size[0]);
      for (int64_t s1 = 0; s1 < d1.subplanes; ++s1) {
        const int64_t start1 = d1.starts[s1];
        for (int64_t s2 = 0; s2 < d2.subplanes; ++s2, plane += subplane) {
          const int64_t start2 = d2.starts[s2];
          const int64_t kind = line ? s0 : s2;
          const RowGather<T, S> copy = kind < kKnown ? known[kind] : row_of(kind);
          const S* const origin =
              channel + start0 * source.stride[0] + start1 * source.stride[1] + start2 * source.stride[2];
          if (line) {
            const bool outside = start1 < 0 || start1 >= source.size[1] || start2 < 0 || start2 >= source.size[2];
            for (int64_t i = 0; i < images; ++i) {
              if (outside) {
                zero_slab(plane + i * image_elements, rows);
              } else {
                copy(plane + i * image_elements, origin + i * source.image_stride);
              }
            }
            continue;
          }
          T* to = plane;
          for (int64_t i = 0; i < images; ++i) {
            const S* from = origin + i * source.image_stride + inside0.lo * d0.step * source.stride[0];
            zero_slab(to, inside0.lo * slab);
            to += inside0.lo * slab;
            if (d1.plane == 1) {
              if (start1 < 0 || start1 >= source.size[1]) {
                zero_slab(to, (inside0.hi - inside0.lo) * slab);
                to += (inside0.hi - inside0.lo) * slab;
              } else {
                copy.rows(to, slab, from, d0.step * source.stride[0], inside0.hi - inside0.lo);
                to += (inside0.hi - inside0.lo) * slab;
              }
            } else {
              for (int64_t q0 = inside0.lo; q0 < inside0.hi; ++q0, from += d0.step * source.stride[0]) {
                for (int64_t q1 = 0; q1 < d1.plane; ++q1, to += d2.plane) {
                  const int64_t x1 = start1 + q1 * d1.step;
                  if (x1 < 0 || x1 >= source.size[1]) {
                    zero_slab(to, d2.plane);
                  } else {
                    copy(to, from + q1 * d1.step * source.stride[1]);
                  }
                }
              }
            }
            zero_slab(to, (rows - inside0.hi) * slab);
            to += (rows - inside0.hi) * slab;
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
