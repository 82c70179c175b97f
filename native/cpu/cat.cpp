// rl_cat, and what else moves whole blocks: triangles, flip, roll, tile, one-hot.
#include <cmath>

#include "cpu/cat_blocks.h"
#include "cpu/index_values.h"
#include "rushlight/cat.h"
#include "rushlight/elementwise.h"

namespace rl {
namespace {

constexpr int64_t kCopyBlock = int64_t{1} << 18;  // bytes one thread copies at a time

// A view of `out` along one dim: elements [begin, begin + size).
struct Narrowed {
  rl_tensor desc;
  int64_t shape[RL_MAX_DIMS];
  Narrowed(const rl_tensor& out, int32_t dim, int64_t begin, int64_t size) {
    std::copy_n(out.shape, out.ndim, shape);
    shape[dim] = size;
    desc = out;
    desc.shape = shape;
    desc.data = static_cast<char*>(out.data) + begin * out.strides[dim] * dtype_size(out.dtype);
  }
};

// Whether the dims from `from` on are dense.
bool dense_from(const rl_tensor& t, int from) {
  int64_t expected = 1;
  for (int d = t.ndim - 1; d >= from; --d) {
    if (t.shape[d] != 1 && t.strides[d] != expected) return false;
    expected *= t.shape[d];
  }
  return true;
}

// How many bytes lie between neighbours along the dims before `to`, when those step evenly; -1 when they do not.
int64_t even_step(const rl_tensor& t, int to, int64_t item) {
  int64_t step = 0, expected = 0;
  for (int d = to - 1; d >= 0; --d) {
    if (t.shape[d] == 1) continue;
    if (step == 0) {
      step = expected = t.strides[d];
      if (step <= 0) return -1;
    }
    if (t.strides[d] != expected) return -1;
    expected *= t.shape[d];
  }
  return step * item;
}

// One input of a cat: rows of `bytes`, `step` apart.
struct Piece {
  const char* data;
  int64_t bytes, step;
};

// Copies bytes [begin, end) of the rows that the pieces form side by side; rows of out are dense.
void copy_pieces(const Piece* pieces, int32_t n, int64_t row, char* out, int64_t begin, int64_t end, bool stream) {
  int64_t outer = begin / row, at = begin - outer * row;
  char* to = out + begin;
  int64_t left = end - begin;
  while (left > 0) {
    for (int32_t i = 0; i < n && left > 0; ++i) {
      if (at >= pieces[i].bytes) {
        at -= pieces[i].bytes;
        continue;
      }
      const int64_t size = std::min(pieces[i].bytes - at, left);
      copy_bytes(to, pieces[i].data + outer * pieces[i].step + at, size, stream);
      to += size;
      left -= size;
      at = 0;
    }
    ++outer;
  }
}

rl_status cat(int32_t n, const rl_tensor* const* inputs, int32_t dim, const rl_tensor& out) {
  if (dim < 0 || dim >= out.ndim) return fail(RL_VALUE_ERROR, "cat: no dimension %d in %s", dim, shape_text(&out));
  const int64_t item = dtype_size(out.dtype);
  int64_t size = 0, outer = 1, inner = item;
  bool fits = true, plain = is_contiguous(out);
  for (int d = 0; d < dim; ++d) outer *= out.shape[d];
  for (int d = dim + 1; d < out.ndim; ++d) inner *= out.shape[d];
  for (int32_t i = 0; i < n; ++i) {
    const rl_tensor& t = *inputs[i];
    fits = fits && t.ndim == out.ndim;
    for (int d = 0; fits && d < out.ndim; ++d) fits = d == dim || t.shape[d] == out.shape[d];
    if (!fits) {
      return fail(RL_VALUE_ERROR, "cat: expected inputs of the shape %s but for dimension %d, got %s", shape_text(&out),
                  dim, shape_text(&t));
    }
    size += t.shape[dim];
    plain = plain && t.dtype == out.dtype;
  }
  if (size != out.shape[dim]) {
    return fail(RL_VALUE_ERROR, "cat: expected an output of size %lld along dimension %d, got %s",
                static_cast<long long>(size), dim, shape_text(&out));
  }
  const int64_t row = size * inner, total = outer * row;
  if (total == 0) return RL_OK;
  constexpr int32_t kFew = 16;
  Piece few[kFew];
  Scratch<Piece> many(plain && n > kFew ? n : 0);
  if (!many.ok()) return RL_MEMORY_ERROR;
  Piece* const pieces = n > kFew ? many.get() : few;
  for (int32_t i = 0; i < n && plain; ++i) {
    const rl_tensor& t = *inputs[i];
    const int64_t step = even_step(t, dim, item);
    plain = dense_from(t, dim) && step >= 0;
    pieces[i] = {static_cast<const char*>(t.data), t.shape[dim] * inner, step};
  }
  if (plain) {
    char* const to = static_cast<char*>(out.data);
    parallel_for(total, kCopyBlock, [&](int64_t begin, int64_t end) {
      copy_pieces(pieces, n, row, to, begin, end, total >= kStreamBytes);
    });
    return RL_OK;
  }
  int64_t begin = 0;
  for (int32_t i = 0; i < n; ++i) {
    Narrowed part(out, dim, begin, inputs[i]->shape[dim]);
    RL_TRY(rl_copy(inputs[i], &part.desc));
    begin += inputs[i]->shape[dim];
  }
  return RL_OK;
}

rl_status check_same(const char* name, const rl_tensor& src, const rl_tensor& out) {
  if (src.dtype != out.dtype)
    return fail(RL_TYPE_ERROR, "%s: dtypes differ; expected %s, got %s", name, dtype_text(src.dtype),
                dtype_text(out.dtype));
  if (!same_shape(src, out))
    return fail(RL_VALUE_ERROR, "%s: expected an output of shape %s, got %s", name, shape_text(&src), shape_text(&out));
  return RL_OK;
}

// Runs that are dense on both sides are copied as bytes.
rl_status copy_part(const rl_tensor& src, rl_tensor& out) {
  const int64_t item = dtype_size(src.dtype);
  Box<2> box;
  box.data[0] = static_cast<char*>(src.data);
  box.data[1] = static_cast<char*>(out.data);
  for (int d = 0; d < src.ndim; ++d) box.push(src.shape[d], {src.strides[d] * item, out.strides[d] * item});
  box.finish();
  if (box.steps()[0] != item || box.steps()[1] != item) return rl_copy(&src, &out);
  parallel_for(box.count, kBlockElements, [&](int64_t begin, int64_t end) {
    walk(box, begin, end, [&](char* const* p, int64_t n) { copy_run(p[1], p[0], n * item); });
  });
  return RL_OK;
}

// ---- triangles

// out[j] = src[j] where j < kept (lower) or j >= kept (upper), else zero.
template <class T>
void triangle_row(const char* src, int64_t step_src, char* out, int64_t step_out, int64_t kept, int64_t columns,
                  bool upper) {
  const int64_t begin = upper ? kept : 0, end = upper ? columns : kept;
  constexpr int64_t item = static_cast<int64_t>(sizeof(T));
  if (step_src == item && step_out == item) {
    if (src != out && end > begin)
      std::memcpy(out + begin * item, src + begin * item, static_cast<size_t>((end - begin) * item));
    const int64_t zero_begin = upper ? 0 : kept, zero_end = upper ? kept : columns;
    std::memset(out + zero_begin * item, 0, static_cast<size_t>((zero_end - zero_begin) * item));
    return;
  }
  for (int64_t j = 0; j < columns; ++j) {
    *reinterpret_cast<T*>(out + j * step_out) =
        j >= begin && j < end ? *reinterpret_cast<const T*>(src + j * step_src) : T{};
  }
}

template <class T>
using Wide = std::conditional_t<std::is_same_v<T, float>, double, compute_type<T>>;

// Sums in int64, double or complex128, and 16-bit floats in float.
template <class T>
void trace(const rl_tensor& src, int64_t n, int64_t step, void* out) {
  const T* data = static_cast<const T*>(src.data);
  if constexpr (std::is_integral_v<T>) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += static_cast<uint64_t>(static_cast<int64_t>(data[i * step]));
    *static_cast<uint64_t*>(out) = sum;
  } else if constexpr (is_complex_v<T>) {
    complex128 sum{0, 0};
    for (int64_t i = 0; i < n; ++i) sum += convert<complex128>(data[i * step]);
    *static_cast<T*>(out) = convert<T>(sum);
  } else {
    Wide<T> sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += static_cast<compute_type<T>>(data[i * step]);
    *static_cast<T*>(out) = T(static_cast<compute_type<T>>(sum));
  }
}

// ---- flip

template <class T>
void reverse_run(const char* from, char* to, int64_t n) {
  // `from` is the last element.
  const T* src = reinterpret_cast<const T*>(from) - (n - 1);
  T* out = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < n; ++i) out[i] = src[n - 1 - i];
}

// src with each size split in repeats and size, as tile copies it.
struct Tiled {
  rl_tensor src, out;
  int64_t shape[RL_MAX_DIMS], src_strides[RL_MAX_DIMS], out_strides[RL_MAX_DIMS];
};

}  // namespace
}  // namespace rl

extern "C" {

rl_status rl_cat(int32_t n, const rl_tensor* const* inputs, int32_t dim, const rl_tensor* out) {
  return rl::cat(n, inputs, dim, *out);
}

rl_status rl_triangle(const rl_tensor* src, int64_t diagonal, int upper, const rl_tensor* out) {
  RL_TRY(rl::check_same(upper ? "triu" : "tril", *src, *out));
  if (src->ndim < 2) {
    return rl::fail(RL_RUNTIME_ERROR, "%s: expected a tensor of at least 2 dimensions, got %s", upper ? "triu" : "tril",
                    rl::shape_text(src));
  }
  const int row = src->ndim - 2, column = src->ndim - 1;
  const int64_t rows = src->shape[row], columns = src->shape[column], item = rl::dtype_size(src->dtype);
  if (rl::element_count(*src) == 0) return RL_OK;
  rl::Box<2> batch;
  batch.data[0] = static_cast<char*>(src->data);
  batch.data[1] = static_cast<char*>(out->data);
  for (int d = 0; d < row; ++d) batch.push(src->shape[d], {src->strides[d] * item, out->strides[d] * item});
  batch.finish();
  const int64_t offset = std::max(-rows, std::min(diagonal, columns));
  rl::with_item_type(item, [&](auto type) {
    using T = decltype(type);
    // Rows of all matrices, counted through.
    rl::parallel_for(batch.count * rows, std::max<int64_t>(1, rl::kBlockElements / columns),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t first = begin; first < end;) {
                         const int64_t matrix = first / rows, top = first - matrix * rows;
                         const int64_t bottom = std::min(rows, top + (end - first));
                         rl::walk(batch, matrix, matrix + 1, [&](char* const* p, int64_t) {
                           for (int64_t i = top; i < bottom; ++i) {
                             const int64_t edge = upper ? i + offset : i + offset + 1;
                             rl::triangle_row<T>(p[0] + i * src->strides[row] * item, src->strides[column] * item,
                                                 p[1] + i * out->strides[row] * item, out->strides[column] * item,
                                                 std::max<int64_t>(0, std::min(edge, columns)), columns, upper != 0);
                           }
                         });
                         first += bottom - top;
                       }
                     });
  });
  return RL_OK;
}

rl_status rl_trace(const rl_tensor* src, const rl_tensor* out) {
  if (src->ndim != 2) return rl::fail(RL_RUNTIME_ERROR, "trace: expected a matrix, got shape %s", rl::shape_text(src));
  RL_TRY(rl::refuse_complex32("trace", src->dtype));
  const bool whole = src->dtype <= RL_INT64;
  if (out->ndim != 0 || out->dtype != (whole ? static_cast<int>(RL_INT64) : src->dtype))
    return rl::fail(RL_VALUE_ERROR, "trace: expected an output of no dimensions of src's dtype (int64 for integers)");
  const int64_t n = std::min(src->shape[0], src->shape[1]), step = src->strides[0] + src->strides[1];
  RL_DISPATCH_ALL(src->dtype, T, { rl::trace<T>(*src, n, step, out->data); });
  return RL_OK;
}

rl_status rl_flip(const rl_tensor* src, int32_t n, const int32_t* dims, const rl_tensor* out) {
  RL_TRY(rl::refuse_complex32("flip", src->dtype));
  RL_TRY(rl::check_same("flip", *src, *out));
  if (rl::element_count(*src) == 0) return RL_OK;
  const int64_t item = rl::dtype_size(src->dtype);
  int64_t strides[RL_MAX_DIMS];
  std::copy_n(src->strides, src->ndim, strides);
  uint64_t seen = 0;
  rl_tensor view = *src;
  for (int32_t j = 0; j < n; ++j) {
    const int32_t d = dims[j];
    if (d < 0 || d >= src->ndim || (seen >> d & 1))
      return rl::fail(RL_VALUE_ERROR, "flip: dimension %d does not exist or is named twice", d);
    seen |= uint64_t{1} << d;
    view.data = static_cast<char*>(view.data) + (src->shape[d] - 1) * strides[d] * item;
    strides[d] = -strides[d];
  }
  view.strides = strides;
  rl::Box<2> box;
  box.data[0] = static_cast<char*>(view.data);
  box.data[1] = static_cast<char*>(out->data);
  for (int d = 0; d < src->ndim; ++d) box.push(src->shape[d], {strides[d] * item, out->strides[d] * item});
  box.finish();
  if (box.steps()[0] != -item || box.steps()[1] != item) {
    rl_tensor to = *out;
    return rl_copy(&view, &to);
  }
  rl::with_item_type(item, [&](auto type) {
    using T = decltype(type);
    rl::parallel_for(box.count, rl::kBlockElements, [&](int64_t begin, int64_t end) {
      rl::walk(box, begin, end, [&](char* const* p, int64_t run) { rl::reverse_run<T>(p[0], p[1], run); });
    });
  });
  return RL_OK;
}

rl_status rl_roll(const rl_tensor* src, int32_t n, const int64_t* shifts, const int32_t* dims, const rl_tensor* out) {
  RL_TRY(rl::check_same("roll", *src, *out));
  if (rl::element_count(*src) == 0) return RL_OK;
  const int64_t item = rl::dtype_size(src->dtype);
  int64_t shift[RL_MAX_DIMS] = {};
  for (int32_t j = 0; j < n; ++j) {
    const int32_t d = dims[j];
    if (d < 0 || d >= src->ndim) return rl::fail(RL_VALUE_ERROR, "roll: no dimension %d in %s", d, rl::shape_text(src));
    const int64_t size = src->shape[d];
    const int64_t by = shifts[j] % size;
    shift[d] = (shift[d] + by + size) % size;
  }
  int rolled[RL_MAX_DIMS];
  int count = 0;
  for (int d = 0; d < src->ndim; ++d) {
    if (shift[d] != 0) rolled[count++] = d;
  }
  if (count > 30) return rl::fail(RL_VALUE_ERROR, "roll: expected at most 30 dimensions, got %d", count);
  // Each dim falls into two parts that change places.
  for (uint64_t parts = 0; parts < (uint64_t{1} << count); ++parts) {
    int64_t shape[RL_MAX_DIMS];
    std::copy_n(src->shape, src->ndim, shape);
    rl_tensor from = *src, to = *out;
    char* read = static_cast<char*>(src->data);
    char* write = static_cast<char*>(out->data);
    for (int k = 0; k < count; ++k) {
      const int d = rolled[k];
      const int64_t size = src->shape[d];
      if (parts >> k & 1) {  // the last shift[d] elements go to the front
        read += (size - shift[d]) * src->strides[d] * item;
        shape[d] = shift[d];
      } else {
        write += shift[d] * out->strides[d] * item;
        shape[d] = size - shift[d];
      }
    }
    from.data = read;
    to.data = write;
    from.shape = to.shape = shape;
    RL_TRY(rl::copy_part(from, to));
  }
  return RL_OK;
}

rl_status rl_tile(const rl_tensor* src, const rl_tensor* out) {
  if (src->dtype != out->dtype) {
    return rl::fail(RL_TYPE_ERROR, "tile: dtypes differ; expected %s, got %s", rl::dtype_text(src->dtype),
                    rl::dtype_text(out->dtype));
  }
  rl::Tiled tiled;
  int ndim = 0;
  bool fits = out->ndim >= src->ndim;
  const int lead = out->ndim - src->ndim;
  const auto push = [&](int64_t size, int64_t src_stride, int64_t out_stride) {
    if (size == 1) return;
    fits = fits && ndim < RL_MAX_DIMS;
    if (!fits) return;
    tiled.shape[ndim] = size;
    tiled.src_strides[ndim] = src_stride;
    tiled.out_strides[ndim++] = out_stride;
  };
  for (int d = 0; d < out->ndim && fits; ++d) {
    const int64_t size = d < lead ? 1 : src->shape[d - lead];
    fits = size == 0 ? out->shape[d] == 0 : out->shape[d] % size == 0;
    if (!fits || size == 0) continue;
    push(out->shape[d] / size, 0, out->strides[d] * size);
    push(size, d < lead ? 0 : src->strides[d - lead], out->strides[d]);
  }
  if (!fits) {
    return rl::fail(RL_VALUE_ERROR, "tile: expected output sizes that are multiples of %s, got %s", rl::shape_text(src),
                    rl::shape_text(out));
  }
  if (rl::element_count(*out) == 0) return RL_OK;
  tiled.src = *src;
  tiled.out = *out;
  tiled.src.ndim = tiled.out.ndim = ndim;
  tiled.src.shape = tiled.out.shape = tiled.shape;
  tiled.src.strides = tiled.src_strides;
  tiled.out.strides = tiled.out_strides;
  return rl_copy(&tiled.src, &tiled.out);
}

rl_status rl_one_hot(const rl_tensor* index, const rl_tensor* out) {
  bool fits = index->dtype == RL_INT64 && out->ndim == index->ndim + 1;
  for (int d = 0; fits && d < index->ndim; ++d) fits = out->shape[d] == index->shape[d];
  if (!fits) {
    return rl::fail(RL_VALUE_ERROR,
                    "one_hot: expected an int64 index and an output of its shape and the classes, got %s %s, %s",
                    rl::dtype_text(index->dtype), rl::shape_text(index), rl::shape_text(out));
  }
  const int64_t classes = out->shape[index->ndim], item = rl::dtype_size(out->dtype);
  const int64_t step_class = out->strides[index->ndim] * item;
  rl::Box<2> box;
  box.data[0] = static_cast<char*>(index->data);
  box.data[1] = static_cast<char*>(out->data);
  for (int d = 0; d < index->ndim; ++d) box.push(index->shape[d], {index->strides[d] * 8, out->strides[d] * item});
  box.finish();
  bool negative = false;
  bool large = false;
  rl::walk(box, [&](char* const* p, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t value = *reinterpret_cast<const int64_t*>(p[0] + i * box.steps()[0]);
      negative |= value < 0;
      large |= value >= classes;
    }
  });
  if (negative) return rl::fail(RL_RUNTIME_ERROR, "Class values must be non-negative.");
  if (large) return rl::fail(RL_RUNTIME_ERROR, "Class values must be smaller than num_classes.");
  RL_DISPATCH_ALL(out->dtype, T, {
    const T one = rl::convert<T>(1.0f);
    const T zero = rl::convert<T>(0.0f);
    rl::parallel_for(box.count, std::max<int64_t>(1, rl::kBlockElements / std::max<int64_t>(1, classes)),
                     [&](int64_t begin, int64_t end) {
                       rl::walk(box, begin, end, [&](char* const* p, int64_t n) {
                         for (int64_t i = 0; i < n; ++i) {
                           char* const row = p[1] + i * box.steps()[1];
                           for (int64_t c = 0; c < classes; ++c) *reinterpret_cast<T*>(row + c * step_class) = zero;
                           const int64_t value = *reinterpret_cast<const int64_t*>(p[0] + i * box.steps()[0]);
                           *reinterpret_cast<T*>(row + value * step_class) = one;
                         }
                       });
                     });
  });
  return RL_OK;
}

}  // extern "C"
