#include "cpu/create_loops.h"

#include "core/dtype.h"

namespace rl {
namespace {

RL_INLINE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
RL_INLINE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }

// A number in an arithmetic type; to integers it drops the fraction.
template <class T>
RL_INLINE T number_as(const Number& number) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(number.is_integer ? number.integer : static_cast<int64_t>(number.real));
  } else {
    return number.is_integer ? static_cast<T>(number.integer) : static_cast<T>(number.real);
  }
}

template <class T>
void arange(const Number& start_number, const Number& step_number, [[maybe_unused]] int64_t n, int64_t begin,
            int64_t count, void* to) {
  T* const out = static_cast<T*>(to);
  if constexpr (std::is_integral_v<T>) {
    const uint64_t start = static_cast<uint64_t>(number_as<int64_t>(start_number));
    const uint64_t step = static_cast<uint64_t>(number_as<int64_t>(step_number));
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(start + step * static_cast<uint64_t>(begin + i));
  } else {
    using A = std::conditional_t<is_reduced_float_v<T>, float, double>;
    // PyTorch's bits: in whole pairs of 256-bit vectors the first element of each vector is rounded to T, and the
    // others count from it; the rest count from the start.
    constexpr int64_t kLanes = 32 / static_cast<int64_t>(sizeof(T));
    const A start = number_as<A>(start_number), step = number_as<A>(step_number);
    const int64_t whole = n / (2 * kLanes) * (2 * kLanes);
    int64_t i = begin;
    const int64_t end = begin + count;
    for (; i + kLanes <= end && i < whole; i += kLanes) {
      const A first = static_cast<A>(T(fused(step, static_cast<A>(i), start)));
      T* const group = out + (i - begin);
      for (int64_t lane = 0; lane < kLanes; ++lane)
        group[lane] = T(fused(step, static_cast<A>(static_cast<int32_t>(lane)), first));
    }
    for (; i < end; ++i) out[i - begin] = T(fused(step, static_cast<A>(i), start));
  }
}

template <class T>
void linspace(const Number& start_number, const Number& end_number, int64_t n, int64_t begin, int64_t count, void* to) {
  T* const out = static_cast<T*>(to);
  const int64_t half_way = n / 2, end_index = begin + count;
  const int64_t middle = half_way < begin ? begin : (half_way > end_index ? end_index : half_way);
  if constexpr (is_complex_v<T>) {
    using R = real_type<T>;
    const T start{number_as<R>(start_number), static_cast<R>(start_number.imag)};
    const T end{number_as<R>(end_number), static_cast<R>(end_number.imag)};
    const R steps = n > 1 ? static_cast<R>(n - 1) : R(1);
    const T step{(end.re - start.re) / steps, (end.im - start.im) / steps};
    for (int64_t i = begin; i < middle; ++i) {
      const R k = static_cast<R>(i);
      out[i - begin] = {start.re + step.re * k, start.im + step.im * k};
    }
    for (int64_t i = middle; i < end_index; ++i) {
      const R k = static_cast<R>(n - 1 - i);
      out[i - begin] = {end.re - step.re * k, end.im - step.im * k};
    }
    if (n == 1 && count == 1) out[0] = start;
  } else if constexpr (is_reduced_float_v<T>) {
    // Every step is rounded to T.
    const T start{number_as<float>(start_number)}, end{number_as<float>(end_number)};
    const T range{static_cast<float>(end) - static_cast<float>(start)};
    const T steps{static_cast<float>(n > 1 ? n - 1 : 1)};
    const float first = static_cast<float>(start), last = static_cast<float>(end), count_f = static_cast<float>(steps);
    const float whole = static_cast<float>(range);
    const float step = static_cast<float>(T(whole - whole == 0 ? whole / count_f : last / count_f - first / count_f));
    for (int64_t i = begin; i < middle; ++i) {
      const T product{step * static_cast<float>(T(static_cast<float>(i)))};
      out[i - begin] = T(first + static_cast<float>(product));
    }
    for (int64_t i = middle; i < end_index; ++i) {
      const T product{step * static_cast<float>(T(static_cast<float>(n - 1 - i)))};
      out[i - begin] = T(last - static_cast<float>(product));
    }
    if (n == 1 && count == 1) out[0] = start;
  } else {
    using A = std::conditional_t<std::is_integral_v<T>, double, T>;
    const A start = static_cast<A>(number_as<T>(start_number)), end = static_cast<A>(number_as<T>(end_number));
    const A steps = static_cast<A>(n > 1 ? n - 1 : 1), range = end - start;
    const A step = range - range == A(0) ? range / steps : end / steps - start / steps;  // the range may overflow
    for (int64_t i = begin; i < middle; ++i) out[i - begin] = convert<T>(fused(step, static_cast<A>(i), start));
    for (int64_t i = middle; i < end_index; ++i)
      out[i - begin] = convert<T>(fused(-step, static_cast<A>(n - 1 - i), end));
    if (n == 1 && count == 1) out[0] = number_as<T>(start_number);
  }
}

const CreateTable table = {
    {nullptr, arange<uint8_t>, arange<int8_t>, arange<int16_t>, arange<int32_t>, arange<int64_t>, arange<half>,
     arange<bfloat16>, arange<float>, arange<double>, nullptr, nullptr},
    {nullptr, linspace<uint8_t>, linspace<int8_t>, linspace<int16_t>, linspace<int32_t>, linspace<int64_t>,
     linspace<half>, linspace<bfloat16>, linspace<float>, linspace<double>, linspace<complex64>, linspace<complex128>}};

}  // namespace

const CreateTable& RL_ISA_SYMBOL(create_table)() { return table; }

}  // namespace rl
