// Sliding blocks: im2col, col2im, and the gradient of Tensor.unfold.
#include "cpu/index_values.h"
#include "cpu/index_walk.h"
#include "rushlight/cat.h"

namespace rl {
namespace {

struct Columns {
  const rl_window& window;
  const rl_tensor& image;    // (N, C, H, W)
  const rl_tensor& columns;  // (N, C * kernel, positions)
  int64_t channels, kernel, rows, width_out;
  int64_t item;

  char* pixel(int64_t n, int64_t c) const {
    return static_cast<char*>(image.data) + (n * image.strides[0] + c * image.strides[1]) * item;
  }
  char* column(int64_t n, int64_t line) const {
    return static_cast<char*>(columns.data) + (n * columns.strides[0] + line * columns.strides[1]) * item;
  }
  // The positions [begin, end) along x whose pixel x * stride + shift lies in [0, size).
  static void inside(int64_t shift, int64_t stride, int64_t size, int64_t positions, int64_t* begin, int64_t* end) {
    *begin = shift >= 0 ? 0 : std::min(positions, (-shift + stride - 1) / stride);
    const int64_t last = size - 1 - shift;  // greatest x * stride
    *end = last < 0 ? *begin : std::max(*begin, std::min(positions, last / stride + 1));
  }
};

rl_status plan_columns(const char* name, const rl_tensor& image, const rl_window& window, const rl_tensor& columns,
                       int64_t positions[2]) {
  if (image.dtype != columns.dtype) {
    return fail(RL_TYPE_ERROR, "%s: dtypes differ; expected %s, got %s", name, dtype_text(image.dtype),
                dtype_text(columns.dtype));
  }
  for (int i = 0; i < 2; ++i) {
    if (window.kernel[i] < 1 || window.dilation[i] < 1 || window.stride[i] < 1 || window.padding[i] < 0) {
      return fail(RL_RUNTIME_ERROR, "%s: expected kernel size, dilation and stride above 0 and padding of at least 0",
                  name);
    }
  }
  if (image.ndim != 4 || columns.ndim != 3)
    return fail(RL_VALUE_ERROR, "%s: expected 4 and 3 dimensions, got %s and %s", name, shape_text(&image),
                shape_text(&columns));
  rl_window_positions(&window, image.shape[2], image.shape[3], positions);
  if (positions[0] < 1 || positions[1] < 1) {
    return fail(RL_RUNTIME_ERROR,
                "%s: an image of [%lld, %lld] has no room for kernel_size=(%lld, %lld), dilation=(%lld, %lld), "
                "padding=(%lld, %lld): the number of blocks (%lld, %lld) would not be positive",
                name, static_cast<long long>(image.shape[2]), static_cast<long long>(image.shape[3]),
                static_cast<long long>(window.kernel[0]), static_cast<long long>(window.kernel[1]),
                static_cast<long long>(window.dilation[0]), static_cast<long long>(window.dilation[1]),
                static_cast<long long>(window.padding[0]), static_cast<long long>(window.padding[1]),
                static_cast<long long>(positions[0]), static_cast<long long>(positions[1]));
  }
  if (columns.shape[0] != image.shape[0] || columns.shape[1] != image.shape[1] * window.kernel[0] * window.kernel[1] ||
      columns.shape[2] != positions[0] * positions[1]) {
    return fail(RL_RUNTIME_ERROR, "%s: expected columns of shape [%lld, %lld, %lld], got %s", name,
                static_cast<long long>(image.shape[0]),
                static_cast<long long>(image.shape[1] * window.kernel[0] * window.kernel[1]),
                static_cast<long long>(positions[0] * positions[1]), shape_text(&columns));
  }
  return RL_OK;
}

// Row `line` of sample n: one element of the kernel at every position.
template <class T>
void gather_line(const Columns& work, int64_t n, int64_t line) {
  const rl_window& w = work.window;
  const int64_t x = line % w.kernel[1], y = line / w.kernel[1] % w.kernel[0], c = line / work.kernel;
  const char* const image = work.pixel(n, c);
  char* out = work.column(n, line);
  const int64_t step_out = work.columns.strides[2] * work.item;
  const int64_t step_y = work.image.strides[2] * work.item, step_x = work.image.strides[3] * work.item;
  const int64_t shift_x = x * w.dilation[1] - w.padding[1];
  int64_t begin, end;
  Columns::inside(shift_x, w.stride[1], work.image.shape[3], work.width_out, &begin, &end);
  for (int64_t row = 0; row < work.rows; ++row, out += work.width_out * step_out) {
    const int64_t at = row * w.stride[0] + y * w.dilation[0] - w.padding[0];
    const bool within = at >= 0 && at < work.image.shape[2];
    const int64_t first = within ? begin : work.width_out, last = within ? end : work.width_out;
    const char* from = image + at * step_y + (first * w.stride[1] + shift_x) * step_x;
    const int64_t step_from = w.stride[1] * step_x;
    for (int64_t j = 0; j < first; ++j) *reinterpret_cast<T*>(out + j * step_out) = T{};
    if (step_from == work.item && step_out == work.item && last > first) {
      std::memcpy(out + first * step_out, from, static_cast<size_t>((last - first) * work.item));
    } else {
      for (int64_t j = first; j < last; ++j, from += step_from)
        *reinterpret_cast<T*>(out + j * step_out) = *reinterpret_cast<const T*>(from);
    }
    for (int64_t j = last; j < work.width_out; ++j) *reinterpret_cast<T*>(out + j * step_out) = T{};
  }
}

// Channel c of sample n: all its columns, element of the kernel by element.
template <class T>
void add_channel(const Columns& work, int64_t n, int64_t c) {
  const rl_window& w = work.window;
  char* const image = work.pixel(n, c);
  const int64_t step_y = work.image.strides[2] * work.item, step_x = work.image.strides[3] * work.item;
  for (int64_t y = 0; y < work.image.shape[2]; ++y) {
    for (int64_t x = 0; x < work.image.shape[3]; ++x)
      *reinterpret_cast<T*>(image + y * step_y + x * step_x) = convert<T>(0.0f);
  }
  const int64_t step = work.columns.strides[2] * work.item;
  for (int64_t y = 0; y < w.kernel[0]; ++y) {
    for (int64_t x = 0; x < w.kernel[1]; ++x) {
      const char* column = work.column(n, c * work.kernel + y * w.kernel[1] + x);
      const int64_t shift_x = x * w.dilation[1] - w.padding[1];
      int64_t begin, end;
      Columns::inside(shift_x, w.stride[1], work.image.shape[3], work.width_out, &begin, &end);
      for (int64_t row = 0; row < work.rows; ++row, column += work.width_out * step) {
        const int64_t at = row * w.stride[0] + y * w.dilation[0] - w.padding[0];
        if (at < 0 || at >= work.image.shape[2]) continue;
        char* to = image + at * step_y + (begin * w.stride[1] + shift_x) * step_x;
        for (int64_t j = begin; j < end; ++j, to += w.stride[1] * step_x) {
          T& pixel = *reinterpret_cast<T*>(to);
          pixel = wrapping_add(pixel, *reinterpret_cast<const T*>(column + j * step));
        }
      }
    }
  }
}

// Position p along the dim gets window w's element p - w * step, for all windows that hold it.
template <class T>
void add_windows(const Box<2>& box, const rl_tensor& grad, int32_t dim, int64_t size, int64_t step,
                 const rl_tensor& out, int64_t begin, int64_t end) {
  constexpr int64_t item = static_cast<int64_t>(sizeof(T));
  const int64_t windows = grad.shape[dim], length = out.shape[dim];
  const int64_t step_out = out.strides[dim] * item, step_window = grad.strides[dim] * item;
  const int64_t step_element = grad.strides[grad.ndim - 1] * item;
  walk(box, begin, end, [&](char* const* p, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const char* from = p[0] + i * box.steps()[0];
      char* to = p[1] + i * box.steps()[1];
      for (int64_t at = 0; at < length; ++at) {
        T sum = convert<T>(0.0f);
        const int64_t first = at < size ? 0 : (at - size) / step + 1;
        for (int64_t w = first; w < windows && w * step <= at; ++w)
          sum = wrapping_add(sum, *reinterpret_cast<const T*>(from + w * step_window + (at - w * step) * step_element));
        *reinterpret_cast<T*>(to + at * step_out) = sum;
      }
    }
  });
}

}  // namespace
}  // namespace rl

extern "C" {

void rl_window_positions(const rl_window* window, int64_t height, int64_t width, int64_t positions[2]) {
  const int64_t sizes[2] = {height, width};
  for (int i = 0; i < 2; ++i) {
    const int64_t room = sizes[i] + 2 * window->padding[i] - window->dilation[i] * (window->kernel[i] - 1) - 1;
    positions[i] = room < 0 ? 0 : room / window->stride[i] + 1;
  }
}

rl_status rl_im2col(const rl_tensor* src, const rl_window* window, const rl_tensor* out) {
  RL_TRY(rl::refuse_complex32("im2col", src->dtype));
  int64_t positions[2];
  RL_TRY(rl::plan_columns("im2col", *src, *window, *out, positions));
  const rl::Columns work{*window,
                         *src,
                         *out,
                         src->shape[1],
                         window->kernel[0] * window->kernel[1],
                         positions[0],
                         positions[1],
                         rl::dtype_size(src->dtype)};
  const int64_t lines = out->shape[1];
  rl::with_item_type(work.item, [&](auto type) {
    using T = decltype(type);
    rl::parallel_for(out->shape[0] * lines, std::max<int64_t>(1, rl::kBlockElements / out->shape[2]),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t i = begin; i < end; ++i) rl::gather_line<T>(work, i / lines, i % lines);
                     });
  });
  return RL_OK;
}

rl_status rl_col2im(const rl_tensor* src, const rl_window* window, const rl_tensor* out) {
  int64_t positions[2];
  RL_TRY(rl::plan_columns("col2im", *out, *window, *src, positions));
  const rl::Columns work{*window,
                         *out,
                         *src,
                         out->shape[1],
                         window->kernel[0] * window->kernel[1],
                         positions[0],
                         positions[1],
                         rl::dtype_size(src->dtype)};
  RL_TRY(rl::refuse_complex32("col2im", out->dtype));
  const int64_t elements = work.kernel * src->shape[2];
  RL_DISPATCH_ALL(out->dtype, T, {
    rl::parallel_for(out->shape[0] * work.channels, std::max<int64_t>(1, rl::kBlockElements / elements),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t i = begin; i < end; ++i)
                         rl::add_channel<T>(work, i / work.channels, i % work.channels);
                     });
  });
  return RL_OK;
}

rl_status rl_unfold_backward(const rl_tensor* grad, int32_t dim, int64_t size, int64_t step, const rl_tensor* out) {
  if (grad->dtype != out->dtype) {
    return rl::fail(RL_TYPE_ERROR, "unfold_backward: dtypes differ; expected %s, got %s", rl::dtype_text(out->dtype),
                    rl::dtype_text(grad->dtype));
  }
  bool fits = dim >= 0 && dim < out->ndim && grad->ndim == out->ndim + 1 && size >= 0 && step >= 1;
  for (int d = 0; d < out->ndim && fits; ++d) fits = d == dim || grad->shape[d] == out->shape[d];
  fits = fits && grad->shape[out->ndim] == size && size <= out->shape[dim] &&
         grad->shape[dim] == (out->shape[dim] - size) / step + 1;
  if (!fits) {
    return rl::fail(RL_VALUE_ERROR,
                    "unfold_backward: shapes do not fit: %s is not %s in windows of %lld by %lld along dimension %d",
                    rl::shape_text(grad), rl::shape_text(out), static_cast<long long>(size),
                    static_cast<long long>(step), dim);
  }
  RL_TRY(rl::refuse_complex32("unfold_backward", out->dtype));
  const int64_t item = rl::dtype_size(out->dtype);
  rl::Box<2> box;
  box.data[0] = static_cast<char*>(grad->data);
  box.data[1] = static_cast<char*>(out->data);
  for (int d = 0; d < out->ndim; ++d) {
    if (d != dim) box.push(out->shape[d], {grad->strides[d] * item, out->strides[d] * item});
  }
  box.finish();
  RL_DISPATCH_ALL(out->dtype, T, {
    rl::parallel_for(
        box.count, std::max<int64_t>(1, rl::kBlockElements / std::max<int64_t>(1, out->shape[dim])),
        [&](int64_t begin, int64_t end) { rl::add_windows<T>(box, *grad, dim, size, step, *out, begin, end); });
  });
  return RL_OK;
}

}  // extern "C"
