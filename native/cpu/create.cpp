// Tensors made from a few numbers.
#include <cmath>

#include "cpu/create_loops.h"
#include "cpu/index_walk.h"

namespace rl {
namespace {

constexpr int64_t kTile = 1024;  // a multiple of every pair of vectors

using Fill = void (*)(const Number& a, const Number& b, int64_t n, int64_t begin, int64_t count, void* out);

void scatter_tile(const char* tile, int64_t count, int64_t item, char* out, int64_t step) {
  with_item_type(item, [&](auto type) {
    using T = decltype(type);
    for (int64_t i = 0; i < count; ++i)
      *reinterpret_cast<T*>(out + i * step) = *reinterpret_cast<const T*>(tile + i * item);
  });
}

// Runs `fill` over one dim in tiles.
void fill_line(Fill fill, const Number& a, const Number& b, const rl_tensor& out) {
  const int64_t n = out.shape[0], item = dtype_size(out.dtype), step = out.strides[0] * item;
  char* const data = static_cast<char*>(out.data);
  parallel_for(n, 32 * kTile, [&](int64_t begin, int64_t end) {
    if (step == item) {
      fill(a, b, n, begin, end - begin, data + begin * item);
      return;
    }
    alignas(64) char tile[kTile * 16];
    for (int64_t i = begin; i < end; i += kTile) {
      const int64_t count = std::min(kTile, end - i);
      fill(a, b, n, i, count, tile);
      scatter_tile(tile, count, item, data + i * step, step);
    }
  });
}

template <class T>
Number number_from(T value) {
  if constexpr (std::is_integral_v<T>) {
    return {static_cast<double>(value), 0, static_cast<int64_t>(value), true};
  } else if constexpr (std::is_same_v<T, complex32>) {
    return number_from(static_cast<complex64>(value));
  } else if constexpr (is_complex_v<T>) {
    return {static_cast<double>(value.re), static_cast<double>(value.im), 0, false};
  } else {
    return {static_cast<double>(static_cast<compute_type<T>>(value)), 0, 0, false};
  }
}

Number number_of(const rl_tensor& t) {
  Number number = {0, 0, 0, false};
  RL_DISPATCH_ALL(t.dtype, T, { number = number_from(*static_cast<const T*>(t.data)); });
  return number;
}

rl_status check_line(const char* name, const rl_tensor& out) {
  if (out.ndim != 1)
    return fail(RL_VALUE_ERROR, "%s: expected an output of 1 dimension, got %s", name, shape_text(&out));
  return RL_OK;
}

complex128 power(double base, complex128 exponent) {
  // base is real: base^(x + iy) = base^x * exp(i y log base), and exp(i pi (x + iy)) more for a negative base.
  const double log_base = std::log(std::abs(base)), angle = base < 0 ? M_PI : 0.0;
  const double radius = std::exp(exponent.re * log_base - exponent.im * angle);
  const double phase = exponent.im * log_base + exponent.re * angle;
  return {radius * std::cos(phase), radius * std::sin(phase)};
}

// Everything in double, then rounded once: PyTorch's bits but for the last of pow.
template <class T>
void logspace(const Number& start, const Number& end, double base, int64_t n, int64_t begin, int64_t count, T* out) {
  const double steps = static_cast<double>(n > 1 ? n - 1 : 1);
  const complex128 first{start.real, start.imag}, last{end.real, end.imag};
  const complex128 step{(last.re - first.re) / steps, (last.im - first.im) / steps};
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = begin + i;
    const bool front = index < n / 2 || n == 1;
    const double k = static_cast<double>(front ? index : n - 1 - index);
    const complex128 exponent =
        front ? first + complex128(step.re * k, step.im * k) : last - complex128(step.re * k, step.im * k);
    if constexpr (is_complex_v<T>) {
      out[i] = T(power(base, exponent));
    } else if constexpr (is_float_v<T>) {
      out[i] = T(static_cast<compute_type<T>>(std::pow(base, exponent.re)));
    } else {
      out[i] = convert<T>(std::pow(base, exponent.re));
    }
  }
}

}  // namespace
}  // namespace rl

extern "C" {

rl_status rl_arange_count(const rl_tensor* start_number, const rl_tensor* end_number, const rl_tensor* step_number,
                          int64_t* count) {
  const rl::Number start = rl::number_of(*start_number), end = rl::number_of(*end_number),
                   step = rl::number_of(*step_number);
  if (start.is_integer && end.is_integer && step.is_integer) {
    if (step.integer == 0) return rl::fail(RL_RUNTIME_ERROR, "arange: step must be nonzero");
    const __int128 range = static_cast<__int128>(end.integer) - start.integer;
    if ((range > 0 && step.integer < 0) || (range < 0 && step.integer > 0))
      return rl::fail(RL_RUNTIME_ERROR, "arange: upper bound and lower bound inconsistent with step sign");
    const __int128 magnitude = step.integer < 0 ? -static_cast<__int128>(step.integer) : step.integer;
    const __int128 result = ((range < 0 ? -range : range) + magnitude - 1) / magnitude;
    if (result > INT64_MAX) return rl::fail(RL_RUNTIME_ERROR, "arange: invalid size, possible overflow?");
    *count = static_cast<int64_t>(result);
    return RL_OK;
  }
  const auto value = [](const rl::Number& number) {
    return number.is_integer ? static_cast<double>(number.integer) : number.real;
  };
  const double from = value(start), to = value(end), by = value(step);
  if (by == 0) return rl::fail(RL_RUNTIME_ERROR, "arange: step must be nonzero");
  if (!std::isfinite(from) || !std::isfinite(to))
    return rl::fail(RL_RUNTIME_ERROR, "arange: unsupported range: %g -> %g", from, to);
  if (std::isnan(by)) return rl::fail(RL_RUNTIME_ERROR, "arange: step must be nonzero, got nan");
  if ((by > 0 && to < from) || (by < 0 && to > from))
    return rl::fail(RL_RUNTIME_ERROR, "arange: upper bound and lower bound inconsistent with step sign");
  const double result = std::ceil((to - from) / by);
  if (!(result >= 0 && result < 9223372036854775807.0))
    return rl::fail(RL_RUNTIME_ERROR, "arange: invalid size, possible overflow?");
  *count = static_cast<int64_t>(result);
  return RL_OK;
}

rl_status rl_arange(const rl_tensor* start, const rl_tensor* step, const rl_tensor* out) {
  RL_TRY(rl::check_line("arange", *out));
  const rl::Fill fill = rl::create_table().arange[out->dtype];
  if (fill == nullptr)
    return rl::fail(RL_TYPE_ERROR, "arange: expected a real number dtype, got %s", rl::dtype_text(out->dtype));
  rl::fill_line(fill, rl::number_of(*start), rl::number_of(*step), *out);
  return RL_OK;
}

rl_status rl_linspace(const rl_tensor* start, const rl_tensor* end, const rl_tensor* out) {
  RL_TRY(rl::check_line("linspace", *out));
  const rl::Fill fill = rl::create_table().linspace[out->dtype];
  if (fill == nullptr)
    return rl::fail(RL_TYPE_ERROR, "linspace: expected a number dtype, got %s", rl::dtype_text(out->dtype));
  rl::fill_line(fill, rl::number_of(*start), rl::number_of(*end), *out);
  return RL_OK;
}

rl_status rl_logspace(const rl_tensor* start, const rl_tensor* end, double base, const rl_tensor* out) {
  RL_TRY(rl::check_line("logspace", *out));
  if (rl::create_table().linspace[out->dtype] == nullptr)
    return rl::fail(RL_TYPE_ERROR, "logspace: expected a number dtype, got %s", rl::dtype_text(out->dtype));
  const rl::Number first = rl::number_of(*start), last = rl::number_of(*end);
  const int64_t n = out->shape[0], item = rl::dtype_size(out->dtype), step = out->strides[0] * item;
  rl::parallel_for(n, 16 * rl::kTile, [&](int64_t begin, int64_t end_index) {
    alignas(64) char tile[rl::kTile * 16];
    for (int64_t i = begin; i < end_index; i += rl::kTile) {
      const int64_t count = std::min(rl::kTile, end_index - i);
      RL_DISPATCH_NUMBER(out->dtype, T, { rl::logspace(first, last, base, n, i, count, reinterpret_cast<T*>(tile)); });
      rl::scatter_tile(tile, count, item, static_cast<char*>(out->data) + i * step, step);
    }
  });
  return RL_OK;
}

rl_status rl_eye(const rl_tensor* out) {
  if (out->ndim != 2)
    return rl::fail(RL_VALUE_ERROR, "eye: expected an output of 2 dimensions, got %s", rl::shape_text(out));
  RL_TRY(rl::refuse_complex32("eye", out->dtype));
  const int64_t rows = out->shape[0], columns = out->shape[1];
  RL_DISPATCH_ALL(out->dtype, T, {
    const T one = rl::convert<T>(1.0f);
    T* const data = static_cast<T*>(out->data);
    rl::parallel_for(rows, std::max<int64_t>(1, rl::kBlockElements / std::max<int64_t>(1, columns)),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t i = begin; i < end; ++i) {
                         T* const row = data + i * out->strides[0];
                         if (out->strides[1] == 1) {
                           std::memset(static_cast<void*>(row), 0, static_cast<size_t>(columns) * sizeof(T));
                         } else {
                           for (int64_t j = 0; j < columns; ++j) row[j * out->strides[1]] = rl::convert<T>(0.0f);
                         }
                         if (i < columns) row[i * out->strides[1]] = one;
                       }
                     });
  });
  return RL_OK;
}

int64_t rl_triangle_count(int64_t rows, int64_t columns, int64_t diagonal, int upper) {
  if (rows <= 0 || columns <= 0) return 0;
  // Elements with column - row <= diagonal; a far diagonal takes all or nothing.
  const int64_t offset =
      upper ? std::max(-rows, std::min(diagonal, columns)) - 1 : std::max(-rows, std::min(diagonal, columns));
  const int64_t first = std::max<int64_t>(0, -offset);  // the first row with any
  int64_t below = 0;
  if (first < rows) {
    // Rows first, first + 1, ... have first + offset + 1, ... elements, until they are full.
    const int64_t start = first + offset + 1;
    const int64_t partial = std::max<int64_t>(0, std::min(rows - first, columns - start));
    below = partial * start + partial * (partial - 1) / 2 + (rows - first - partial) * columns;
  }
  return upper ? rows * columns - below : below;
}

rl_status rl_triangle_indices(int64_t rows, int64_t columns, int64_t diagonal, int upper, const rl_tensor* out) {
  const int64_t count = rl_triangle_count(rows, columns, diagonal, upper);
  if ((out->dtype != RL_INT64 && out->dtype != RL_INT32) || out->ndim != 2 || out->shape[0] != 2 ||
      out->shape[1] != count) {
    return rl::fail(RL_VALUE_ERROR, "triangle_indices: expected an int64 or int32 output of shape [2, %lld], got %s %s",
                    static_cast<long long>(count), rl::dtype_text(out->dtype), rl::shape_text(out));
  }
  if (count == 0) return RL_OK;
  const int64_t offset = std::max(-rows, std::min(diagonal, columns));
  RL_DISPATCH_INTEGER(out->dtype, T, {
    T* const data = static_cast<T*>(out->data);
    int64_t k = 0;
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t begin = upper ? std::max<int64_t>(0, i + offset) : 0;
      const int64_t end = upper ? columns : std::min(columns, i + offset + 1);
      for (int64_t j = begin; j < end; ++j, ++k) {
        data[k * out->strides[1]] = static_cast<T>(i);
        data[out->strides[0] + k * out->strides[1]] = static_cast<T>(j);
      }
    }
  });
  return RL_OK;
}

}  // extern "C"
