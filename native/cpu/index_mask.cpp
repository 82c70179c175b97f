// Masks: counting, nonzero, masked_select, masked_scatter. A tensor is cut into blocks of kMaskBlock elements in
// row-major order; the counts of the blocks say where the results of each begin, so blocks run on any thread.
#include <atomic>

#include "cpu/index_engine.h"

namespace rl {
namespace {

constexpr int64_t kMaskBlock = 1024;
constexpr int64_t kBlocksPerTask = 16;

template <class T>
void load_flags(const char* from, int64_t step, int64_t n, uint8_t* out) {
  if constexpr (is_complex_v<T>) {
    for (int64_t i = 0; i < n; ++i) out[i] = convert<bool>(*reinterpret_cast<const T*>(from + i * step));
  } else {
    // A bool read as the byte it is: memory that holds more than 0 and 1 must not lead astray.
    using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
    if (step == static_cast<int64_t>(sizeof(T))) {
      const Stored* values = reinterpret_cast<const Stored*>(from);
      for (int64_t i = 0; i < n; ++i) out[i] = convert<bool>(values[i]);
    } else {
      for (int64_t i = 0; i < n; ++i) out[i] = convert<bool>(*reinterpret_cast<const Stored*>(from + i * step));
    }
  }
}

using FlagLoader = void (*)(const char* from, int64_t step, int64_t n, uint8_t* out);

FlagLoader flag_loader(int dtype) {
  FlagLoader loader = nullptr;
  RL_DISPATCH_ALL(dtype, T, { loader = load_flags<T>; });
  return loader;
}

struct Mask {
  Box<1> box;
  FlagLoader loader;
  int64_t elements, blocks;
  explicit Mask(const rl_tensor& t)
      : loader(flag_loader(t.dtype)), elements(element_count(t)), blocks(ceil_div(elements, kMaskBlock)) {
    box_of(t, box);
  }
  int64_t begin(int64_t block) const { return block * kMaskBlock; }
  int64_t size(int64_t block) const { return std::min(kMaskBlock, elements - block * kMaskBlock); }
  // 0 or 1 for each element of the block, padded with zeros to a multiple of 8.
  void load(int64_t block, uint8_t* flags) const {
    uint8_t* out = flags;
    walk(box, begin(block), begin(block) + size(block), [&](char* const* p, int64_t n) {
      loader(p[0], box.steps()[0], n, out);
      out += n;
    });
    while ((out - flags) % 8 != 0) *out++ = 0;
  }
};

int64_t count_flags(const uint8_t* flags, int64_t n) {
  // Bytes are summed in the bytes of words: at most kMaskBlock / 8 = 128 of them, so none overflows.
  uint64_t sum = 0;
  for (int64_t i = 0; i < n; i += 8) {
    uint64_t word;
    std::memcpy(&word, flags + i, 8);
    sum += word;
  }
  int64_t count = 0;
  for (; sum != 0; sum >>= 8) count += static_cast<int64_t>(sum & 255);
  return count;
}

// Positions of the set flags; `out` has room for n + 1. Returns how many.
int64_t list_flags(const uint8_t* flags, int64_t n, bool sparse, int32_t* out) {
  int64_t count = 0;
  int64_t i = 0;
  if (sparse) {
    for (; i + 8 <= n; i += 8) {
      uint64_t word;
      std::memcpy(&word, flags + i, 8);
      for (; word != 0; word &= word - 1) out[count++] = static_cast<int32_t>(i + (__builtin_ctzll(word) >> 3));
    }
  }
  for (; i < n; ++i) {
    out[count] = static_cast<int32_t>(i);
    count += flags[i];
  }
  return count;
}

// Counts before each block, and in all; offsets may be NULL.
void count_blocks(const Mask& mask, int64_t* offsets, int64_t* total) {
  std::atomic<int64_t> sum{0};
  parallel_for(mask.blocks, kBlocksPerTask, [&](int64_t begin, int64_t end) {
    alignas(8) uint8_t flags[kMaskBlock + 8];
    int64_t count = 0;
    for (int64_t b = begin; b < end; ++b) {
      mask.load(b, flags);
      const int64_t here = count_flags(flags, mask.size(b));
      if (offsets != nullptr) offsets[b] = here;
      count += here;
    }
    sum.fetch_add(count, std::memory_order_relaxed);
  });
  *total = sum.load(std::memory_order_relaxed);
  if (offsets == nullptr) return;
  int64_t before = 0;
  for (int64_t b = 0; b < mask.blocks; ++b) {
    const int64_t here = offsets[b];
    offsets[b] = before;
    before += here;
  }
}

// The caller's offsets, or fresh ones; `expected` is the room in the output (or -1).
class Offsets {
 public:
  Offsets(const Mask& mask, const int64_t* given) : own_(given != nullptr ? 0 : mask.blocks), values_(given) {
    if (given == nullptr && own_.ok()) {
      int64_t total;
      count_blocks(mask, own_.get(), &total);
      values_ = own_.get();
    }
  }
  bool ok() const { return values_ != nullptr; }
  int64_t operator[](int64_t block) const { return values_[block]; }

 private:
  Scratch<int64_t> own_;
  const int64_t* values_;
};

// Elements set in the last block and before: the size results must have.
int64_t total_of(const Mask& mask, const Offsets& offsets) {
  if (mask.blocks == 0) return 0;
  alignas(8) uint8_t flags[kMaskBlock + 8];
  mask.load(mask.blocks - 1, flags);
  return offsets[mask.blocks - 1] + count_flags(flags, mask.size(mask.blocks - 1));
}

// Calls body(block, positions, count) for every block that has set elements.
template <class Body>
void for_each_block(const Mask& mask, const Offsets& offsets, int64_t total, const Body& body) {
  parallel_for(mask.blocks, kBlocksPerTask, [&](int64_t begin, int64_t end) {
    alignas(8) uint8_t flags[kMaskBlock + 8];
    int32_t positions[kMaskBlock + 1];
    for (int64_t b = begin; b < end; ++b) {
      const int64_t expected = (b + 1 < mask.blocks ? offsets[b + 1] : total) - offsets[b];
      if (expected == 0) continue;
      mask.load(b, flags);
      const int64_t count = list_flags(flags, mask.size(b), expected * 8 < mask.size(b), positions);
      // Another thread of the caller may have changed the mask since it was counted: never write more than was counted.
      body(b, positions, std::min(count, expected));
    }
  });
}

void nonzero_block(const rl_tensor& shape_of, const rl_tensor& out, int64_t first, int64_t n, const int32_t* positions,
                   int64_t count, int64_t row) {
  const int last = shape_of.ndim - 1;
  if (last < 0) return;
  const int64_t run = shape_of.shape[last], step = out.strides[0];
  int64_t index[RL_MAX_DIMS];
  int64_t rest = first;
  for (int d = last; d >= 0; --d) {
    index[d] = rest % shape_of.shape[d];
    rest /= shape_of.shape[d];
  }
  int64_t* base = static_cast<int64_t*>(out.data) + row * step;
  int64_t* column = base + last * out.strides[1];
  int64_t done = 0;
  for (int64_t begin = 0; begin < n;) {
    // Elements [begin, end) of the block lie in one row: only the last coordinate changes.
    const int64_t end = std::min(n, begin + run - index[last]);
    const int64_t shift = index[last] - begin;
    const int64_t from = done;
    for (; done < count && positions[done] < end; ++done) column[done * step] = positions[done] + shift;
    if (done > from) {
      for (int d = 0; d < last; ++d) {
        int64_t* coordinate = base + d * out.strides[1];
        for (int64_t k = from; k < done; ++k) coordinate[k * step] = index[d];
      }
      if (done == count) return;
    }
    begin = end;
    index[last] = 0;
    for (int d = last - 1; d >= 0; --d) {
      if (++index[d] < shape_of.shape[d]) break;
      index[d] = 0;
    }
  }
}

// The byte offsets, from the box's data, of the positions of a block.
void position_offsets(const Box<1>& box, int64_t first, int64_t n, const int32_t* positions, int64_t count,
                      int64_t* out) {
  int64_t done = 0, begin = 0;
  const int64_t step = box.steps()[0];
  walk(box, first, first + n, [&](char* const* p, int64_t run) {
    const int64_t shift = (p[0] - box.data[0]) - begin * step;
    for (; done < count && positions[done] < begin + run; ++done) out[done] = shift + positions[done] * step;
    begin += run;
  });
}

// The byte offsets of elements [first, first + n) of the box.
void element_offsets(const Box<1>& box, int64_t first, int64_t n, int64_t* out) {
  const int64_t step = box.steps()[0];
  walk(box, first, first + n, [&](char* const* p, int64_t run) {
    const int64_t offset = p[0] - box.data[0];
    for (int64_t i = 0; i < run; ++i) out[i] = offset + i * step;
    out += run;
  });
}

rl_status check_mask(const char* name, const rl_tensor& t, const rl_tensor& mask, const rl_tensor& other) {
  if (mask.dtype != RL_BOOL)
    return fail(RL_TYPE_ERROR, "%s: expected a mask of dtype bool, got %s", name, dtype_text(mask.dtype));
  if (t.dtype != other.dtype) {
    return fail(RL_TYPE_ERROR, "%s: dtypes differ; expected %s, got %s", name, dtype_text(t.dtype),
                dtype_text(other.dtype));
  }
  if (!same_shape(t, mask)) {
    return fail(RL_VALUE_ERROR, "%s: expected a mask of shape %s, got %s", name, shape_text(&t), shape_text(&mask));
  }
  return RL_OK;
}

}  // namespace
}  // namespace rl

extern "C" {

int64_t rl_mask_blocks(int64_t elements) { return rl::ceil_div(elements, rl::kMaskBlock); }

rl_status rl_mask_count(const rl_tensor* mask, int64_t* offsets, int64_t* count) {
  rl::count_blocks(rl::Mask(*mask), offsets, count);
  return RL_OK;
}

rl_status rl_nonzero(const rl_tensor* tensor, const int64_t* given, const rl_tensor* out) {
  const rl::Mask mask(*tensor);
  const rl::Offsets offsets(mask, given);
  if (!offsets.ok()) return RL_MEMORY_ERROR;
  const int64_t total = rl::total_of(mask, offsets);
  if (out->dtype != RL_INT64 || out->ndim != 2 || out->shape[0] != total || out->shape[1] != tensor->ndim) {
    return rl::fail(RL_VALUE_ERROR, "nonzero: expected an int64 output of shape [%lld, %d], got %s %s",
                    static_cast<long long>(total), tensor->ndim, rl::dtype_text(out->dtype), rl::shape_text(out));
  }
  rl::for_each_block(mask, offsets, total, [&](int64_t b, const int32_t* positions, int64_t count) {
    rl::nonzero_block(*tensor, *out, mask.begin(b), mask.size(b), positions, count, offsets[b]);
  });
  return RL_OK;
}

rl_status rl_masked_select(const rl_tensor* src, const rl_tensor* mask_tensor, const int64_t* given,
                           const rl_tensor* out) {
  RL_TRY(rl::check_mask("masked_select", *src, *mask_tensor, *out));
  const rl::Mask mask(*mask_tensor);
  const rl::Offsets offsets(mask, given);
  if (!offsets.ok()) return RL_MEMORY_ERROR;
  const int64_t total = rl::total_of(mask, offsets);
  if (out->ndim != 1 || out->shape[0] != total) {
    return rl::fail(RL_VALUE_ERROR, "masked_select: expected an output of shape [%lld], got %s",
                    static_cast<long long>(total), rl::shape_text(out));
  }
  rl::Box<1> box;
  rl::box_of(*src, box);
  const int64_t item = rl::dtype_size(src->dtype), step_out = out->strides[0] * item;
  const bool dense = rl::is_contiguous(*src) && step_out == item;
  rl::with_item_type(item, [&](auto type) {
    using T = decltype(type);
    rl::for_each_block(mask, offsets, total, [&](int64_t b, const int32_t* positions, int64_t count) {
      if (dense) {
        const T* from = static_cast<const T*>(src->data) + mask.begin(b);
        T* to = static_cast<T*>(out->data) + offsets[b];
        for (int64_t i = 0; i < count; ++i) to[i] = from[positions[i]];
        return;
      }
      int64_t x[rl::kMaskBlock], y[rl::kMaskBlock];
      rl::position_offsets(box, mask.begin(b), mask.size(b), positions, count, x);
      for (int64_t i = 0; i < count; ++i) y[i] = (offsets[b] + i) * step_out;
      const rl::Fetch<T> op;
      rl::pair_loop<T, rl::Fetch<T>>(box.data[0], static_cast<char*>(out->data), x, y, count, 1, 0, 0, &op);
    });
  });
  return RL_OK;
}

rl_status rl_masked_scatter(const rl_tensor* dst, const rl_tensor* mask_tensor, const int64_t* given,
                            const rl_tensor* source) {
  RL_TRY(rl::refuse_complex32("masked_scatter", dst->dtype));
  RL_TRY(rl::check_mask("masked_scatter", *dst, *mask_tensor, *source));
  const rl::Mask mask(*mask_tensor);
  const rl::Offsets offsets(mask, given);
  if (!offsets.ok()) return RL_MEMORY_ERROR;
  const int64_t total = rl::total_of(mask, offsets), available = rl::element_count(*source);
  if (total > available) {
    return rl::fail(RL_RUNTIME_ERROR, "masked_scatter: the mask has %lld elements set, and source has only %lld",
                    static_cast<long long>(total), static_cast<long long>(available));
  }
  rl::Box<1> box, source_box;
  rl::box_of(*dst, box);
  rl::box_of(*source, source_box);
  rl::with_item_type(rl::dtype_size(dst->dtype), [&](auto type) {
    using T = decltype(type);
    rl::for_each_block(mask, offsets, total, [&](int64_t b, const int32_t* positions, int64_t count) {
      int64_t x[rl::kMaskBlock], y[rl::kMaskBlock];
      rl::position_offsets(box, mask.begin(b), mask.size(b), positions, count, x);
      rl::element_offsets(source_box, offsets[b], count, y);
      const rl::Store<T> op;
      rl::pair_loop<T, rl::Store<T>>(box.data[0], source_box.data[0], x, y, count, 1, 0, 0, &op);
    });
  });
  return RL_OK;
}

}  // extern "C"
