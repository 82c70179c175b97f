// Uniform, normal, log-normal, exponential and Cauchy numbers.
#include <cmath>
#include <limits>

#include "cpu/random_fill.h"
#include "cpu/random_loops.h"

namespace rl::rng {
namespace {

constexpr const char* kFloatDtypes = "float16, bfloat16, float32 or float64";
constexpr const char* kFloatOrComplexDtypes = "float16, bfloat16, float32, float64 or complex numbers";

// Sees a complex tensor as a real one with a further dim for the two parts, and any other tensor as it is.
struct RealView {
  rl_tensor desc;
  int64_t shape[RL_MAX_DIMS + 1];
  int64_t strides[RL_MAX_DIMS + 1];
  explicit RealView(const rl_tensor& t) : desc(t) {
    if (!is_complex_dtype(t.dtype)) return;
    for (int d = 0; d < t.ndim; ++d) {
      shape[d] = t.shape[d];
      strides[d] = 2 * t.strides[d];
    }
    shape[t.ndim] = 2;
    strides[t.ndim] = 1;
    desc.shape = shape;
    desc.strides = strides;
    desc.ndim = t.ndim + 1;
    desc.dtype = static_cast<uint8_t>(real_dtype(t.dtype));
  }
  RealView(const RealView&) = delete;
  RealView& operator=(const RealView&) = delete;
};

rl_status check_real_view(const char* op, const rl_tensor* out) {
  RL_TRY(check_output(op, out));
  if (!is_float_dtype(out->dtype) && !is_complex_dtype(out->dtype))
    return dtype_failure(op, kFloatOrComplexDtypes, out->dtype);
  if (is_complex_dtype(out->dtype) && out->ndim == RL_MAX_DIMS)
    return fail(RL_VALUE_ERROR, "%s: too many dims for a complex tensor; expected at most %d, got %d", op,
                RL_MAX_DIMS - 1, out->ndim);
  return RL_OK;
}

double largest_of(int dtype) {
  switch (dtype) {
    case RL_FLOAT16:
      return 65504.0;
    case RL_BFLOAT16:
      return 0x1.fep127;
    case RL_FLOAT32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

// A double as an element: 16-bit floats are rounded by way of float, as PyTorch does.
template <class T>
inline T element(double value) {
  if constexpr (is_reduced_float_v<T>) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
void uniform(rl_generator& g, const rl_tensor& out, double from, double to) {
  if constexpr (is_reduced_float_v<T>) {
    // The 16-bit number may round up to the end of the range where the float did not.
    const T low(static_cast<float>(from)), high(static_cast<float>(to));
    const float high_value = static_cast<float>(high);
    fill_tiles<T>(out, [&](T* at, int64_t n) {
      float tile[kDrawTile];
      // A NaN never equals a number: the float that reaches the end is left to the comparison below.
      draw_floats(g, tile, n, static_cast<float>(from), static_cast<float>(to));
      for (int64_t i = 0; i < n; ++i) {
        const T value(tile[i]);
        at[i] = static_cast<float>(value) == high_value ? low : value;
      }
    });
  } else if constexpr (std::is_same_v<T, float>) {
    fill_tiles<T>(out,
                  [&](T* at, int64_t n) { draw_floats(g, at, n, static_cast<float>(from), static_cast<float>(to)); });
  } else {
    fill_tiles<T>(out, [&](T* at, int64_t n) { draw_doubles(g, at, n, from, to); });
  }
}

// ---- normal numbers in groups of 16 uniform ones, for contiguous tensors of at least 16 elements. Where the size is
// no multiple of 16, the last 16 elements are drawn anew at the end.

constexpr int64_t kGroup = 16;
// Elements up to which one thread is as fast: a float takes under a nanosecond, a double about 15.
template <class T>
constexpr int64_t kSerialGroups = std::is_same_v<T, float> ? 32768 : kDrawThreaded;

void normal_group(double* data, double mean, double std) {
  for (int j = 0; j < 8; ++j) {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - data[j]));
    const double angle = 2.0 * 3.14159265358979323846 * data[j + 8];
    data[j] = std::fma(radius * std::cos(angle), std, mean);
    data[j + 8] = std::fma(radius * std::sin(angle), std, mean);
  }
}

void normal_groups(float* data, int64_t groups, double mean, double std) {
  random_loops().normal_groups(data, groups, static_cast<float>(mean), static_cast<float>(std));
}
void normal_groups(double* data, int64_t groups, double mean, double std) {
  for (int64_t i = 0; i < groups; ++i) normal_group(data + kGroup * i, mean, std);
}

void draw_units(rl_generator& g, float* data, int64_t n) { draw_floats(g, data, n, 0.0f, 1.0f); }
void draw_units(rl_generator& g, double* data, int64_t n) { draw_doubles(g, data, n, 0.0, 1.0); }

template <class T>
void normal_contiguous(rl_generator& g, T* data, int64_t n, double mean, double std) {
  if constexpr (is_reduced_float_v<T>) {
    // Unlike the wider floats, nothing is drawn for the remainder but its final group.
    constexpr int64_t kTile = 32 * kGroup;
    float tile[kTile];
    const int64_t whole = n - n % kGroup;
    for (int64_t i = 0; i < whole; i += kTile) {
      const int64_t count = std::min(kTile, whole - i);
      draw_units(g, tile, count);
      normal_groups(tile, count / kGroup, mean, std);
      for (int64_t j = 0; j < count; ++j) data[i + j] = T(tile[j]);
    }
    if (whole != n) {
      draw_units(g, tile, kGroup);
      normal_groups(tile, 1, mean, std);
      for (int64_t j = 0; j < kGroup; ++j) data[n - kGroup + j] = T(tile[j]);
    }
  } else {
    static_assert(kDrawBlock % kGroup == 0);
    draw_ahead(
        n, kSerialGroups<T>, [&](int64_t start, int64_t count, int) { draw_units(g, data + start, count); },
        [&](int64_t begin, int64_t end, int64_t, int) {
          normal_groups(data + begin, (end - begin) / kGroup, mean, std);
        });
    if (n % kGroup != 0) {
      draw_units(g, data + n - kGroup, kGroup);
      normal_groups(data + n - kGroup, 1, mean, std);
    }
  }
}

// Fills out from standard normal numbers of the scalar method: to_element(z).
template <class T, class ToElement>
rl_status fill_from_normals(rl_generator& g, const rl_tensor& out, const ToElement& to_element) {
  Box<1> box;
  drawing_order<1>({&out}, box);
  if (box.count < kDrawThreaded || !is_dense<T>(box)) {
    fill_tiles<T>(out, [&](T* at, int64_t n) {
      double normals[kDrawTile];
      draw_normals(g, normals, n);
      for (int64_t i = 0; i < n; ++i) at[i] = to_element(normals[i]);
    });
    return RL_OK;
  }
  T* data = reinterpret_cast<T*>(box.data[0]);
  int64_t count = box.count;
  DrawnWords<4> words(count / 2);
  if (!words.ok()) return RL_MEMORY_ERROR;
  const auto draw_one = [&] {
    double z;
    draw_normals(g, &z, 1);
    return to_element(z);
  };
  if (g.has_double_normal) {
    *data++ = draw_one();
    --count;
  }
  draw_ahead(
      count / 2, 0, [&](int64_t, int64_t n, int slot) { words.draw(g, n, slot); },
      [&](int64_t begin, int64_t end, int64_t start, int slot) {
        for (int64_t i = begin; i < end; ++i) {
          const NormalPair pair = normal_pair(words.at(i, start, slot));
          data[2 * i] = to_element(pair.first);
          data[2 * i + 1] = to_element(pair.second);
        }
      });
  if (count % 2 != 0) data[count - 1] = draw_one();
  return RL_OK;
}

template <class T>
rl_status normal(rl_generator& g, const rl_tensor& out, double mean, double std) {
  const int64_t count = element_count(out);
  if (count >= kGroup && is_contiguous(out)) {
    normal_contiguous(g, static_cast<T*>(out.data), count, mean, std);
    return RL_OK;
  }
  return fill_from_normals<T>(g, out, [=](double z) { return element<T>(std::fma(z, std, mean)); });
}

}  // namespace
}  // namespace rl::rng

extern "C" {

rl_status rl_random_uniform(rl_generator* generator, double from, double to, const rl_tensor* out) {
  RL_GUARD_BEGIN
  RL_TRY(rl::rng::check_real_view("uniform_", out));
  const rl::rng::RealView view(*out);
  const rl_tensor& real = view.desc;
  const double largest = rl::rng::largest_of(real.dtype);
  if (!(from >= -largest && from <= largest))
    return rl::fail(RL_RUNTIME_ERROR, "uniform_: from is out of range for %s; expected a finite number of it, got %g",
                    rl::dtype_text(real.dtype), from);
  if (!(to >= -largest && to <= largest))
    return rl::fail(RL_RUNTIME_ERROR, "uniform_: to is out of range for %s; expected a finite number of it, got %g",
                    rl::dtype_text(real.dtype), to);
  if (from > to)
    return rl::fail(RL_RUNTIME_ERROR, "uniform_: the range is empty; expected from <= to, got from=%g and to=%g", from,
                    to);
  if (to - from > largest)
    return rl::fail(RL_RUNTIME_ERROR,
                    "uniform_: the range is too wide for %s; expected to - from <= %g, got from=%g and to=%g",
                    rl::dtype_text(real.dtype), largest, from, to);
  rl::rng::LockedGenerator g(generator);
  RL_DISPATCH_FLOAT(real.dtype, T, rl::rng::uniform<T>(*g, real, from, to));
  return RL_OK;
  RL_GUARD_END
}

rl_status rl_random_normal(rl_generator* generator, double mean, double std, const rl_tensor* out) {
  RL_GUARD_BEGIN
  RL_TRY(rl::rng::check_real_view("normal_", out));
  if (!(std >= 0.0))
    return rl::fail(RL_RUNTIME_ERROR, "normal_: std is negative or NaN; expected std >= 0, got %g", std);
  const rl::rng::RealView view(*out);
  if (rl::is_complex_dtype(out->dtype)) std /= std::sqrt(2.0);
  rl::rng::LockedGenerator g(generator);
  RL_DISPATCH_FLOAT(view.desc.dtype, T, return rl::rng::normal<T>(*g, view.desc, mean, std));
  return RL_OK;
  RL_GUARD_END
}

rl_status rl_random_log_normal(rl_generator* generator, double mean, double std, const rl_tensor* out) {
  RL_GUARD_BEGIN
  RL_TRY(rl::rng::check_output("log_normal_", out));
  if (!(std > 0.0))
    return rl::fail(RL_RUNTIME_ERROR, "log_normal_: std is not positive; expected std > 0, got %g", std);
  if (!rl::is_float_dtype(out->dtype)) return rl::rng::dtype_failure("log_normal_", rl::rng::kFloatDtypes, out->dtype);
  rl::rng::LockedGenerator g(generator);
  RL_DISPATCH_FLOAT(out->dtype, T, return rl::rng::fill_from_normals<T>(*g, *out, [=](double z) {
                      return rl::rng::element<T>(std::exp(std::fma(z, std, mean)));
                    }));
  return RL_OK;
  RL_GUARD_END
}

rl_status rl_random_exponential(rl_generator* generator, double lambda, const rl_tensor* out) {
  RL_GUARD_BEGIN
  RL_TRY(rl::rng::check_output("exponential_", out));
  if (!(lambda > 0.0))
    return rl::fail(RL_RUNTIME_ERROR, "exponential_: lambda is not positive; expected lambda > 0, got %g", lambda);
  if (!rl::is_float_dtype(out->dtype)) return rl::rng::dtype_failure("exponential_", rl::rng::kFloatDtypes, out->dtype);
  rl::rng::LockedGenerator g(generator);
  const double scale = -1.0 / lambda;
  const auto make = [=]<class T>(const uint32_t* words, T* to, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      to[i] = rl::rng::element<T>(scale * std::log1p(-rl::rng::pair_uniform(words + 2 * i)));
  };
  RL_DISPATCH_FLOAT(out->dtype, T, return rl::rng::fill_from_words<T, 2>(*g, *out, make));
  return RL_OK;
  RL_GUARD_END
}

rl_status rl_random_cauchy(rl_generator* generator, double median, double sigma, const rl_tensor* out) {
  RL_GUARD_BEGIN
  RL_TRY(rl::rng::check_output("cauchy_", out));
  if (!(sigma > 0.0))
    return rl::fail(RL_RUNTIME_ERROR, "cauchy_: sigma is not positive; expected sigma > 0, got %g", sigma);
  if (!rl::is_float_dtype(out->dtype)) return rl::rng::dtype_failure("cauchy_", rl::rng::kFloatDtypes, out->dtype);
  rl::rng::LockedGenerator g(generator);
  const auto make = [=]<class T>(const uint32_t* words, T* to, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const double angle = 3.14159265358979323846 * (rl::rng::pair_uniform(words + 2 * i) - 0.5);
      to[i] = rl::rng::element<T>(std::fma(sigma, std::tan(angle), median));
    }
  };
  RL_DISPATCH_FLOAT(out->dtype, T, return rl::rng::fill_from_words<T, 2>(*g, *out, make));
  return RL_OK;
  RL_GUARD_END
}

}  // extern "C"
