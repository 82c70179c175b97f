// Integers, coins, dropout factors, geometric numbers and permutations.
#include <cmath>
#include <limits>

#include "cpu/random_fill.h"
#include "cpu/random_loops.h"

namespace rl::rng {
namespace {

constexpr const char* kRealDtypes = "a dtype that is not complex";
// Ranges this wide take 64 bits a number, so that the remainder favours no value by much.
constexpr uint64_t kWideRange = uint64_t{1} << 28;

// An integer as an element: bool is "differs from zero", narrow integers wrap, 16-bit floats are rounded by way of
// float.
template <class T>
inline T element(int64_t value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else if constexpr (is_reduced_float_v<T>) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

// Bits of the significand, with the leading one; for other dtypes 0.
int float_digits(int dtype) {
  switch (dtype) {
    case RL_FLOAT16:
      return 11;
    case RL_BFLOAT16:
      return 8;
    case RL_FLOAT32:
      return 24;
    case RL_FLOAT64:
      return 53;
    default:
      return 0;
  }
}

// Largest and smallest int64 that a bool or integer dtype holds.
int64_t integer_max(int dtype) {
  switch (dtype) {
    case RL_BOOL:
      return 1;
    case RL_UINT8:
      return 255;
    case RL_INT8:
      return 127;
    case RL_INT16:
      return 32767;
    case RL_INT32:
      return 2147483647;
    default:
      return std::numeric_limits<int64_t>::max();
  }
}
int64_t integer_min(int dtype) { return dtype == RL_BOOL || dtype == RL_UINT8 ? 0 : -integer_max(dtype) - 1; }

// base + word % range for a run of tempered words, range below 2^32. The remainder of a 32-bit number is the high half
// of range times the fraction (word / range), which 64 bits hold exactly enough (Lemire, Kaser and Kurz, 2019).
void small_integers(const uint32_t* words, int64_t* out, int64_t n, uint64_t range, int64_t base) {
  if ((range & (range - 1)) == 0) {
    const uint32_t mask = static_cast<uint32_t>(range - 1);
    for (int64_t i = 0; i < n; ++i) out[i] = base + static_cast<int64_t>(words[i] & mask);
    return;
  }
  const uint64_t inverse = ~uint64_t{0} / range + 1;
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t fraction = inverse * words[i];
    out[i] = base + static_cast<int64_t>(static_cast<unsigned __int128>(fraction) * range >> 64);
  }
}

// The same for pairs of words. Range 0 stands for 2^64. The sum wraps.
void wide_integers(const uint32_t* pairs, int64_t* out, int64_t n, uint64_t range, int64_t base) {
  for (int64_t i = 0; i < n; ++i) {
    uint64_t value = static_cast<uint64_t>(pairs[2 * i]) << 32 | pairs[2 * i + 1];
    if (range != 0) value = (range & (range - 1)) == 0 ? value & (range - 1) : value % range;
    out[i] = static_cast<int64_t>(value + static_cast<uint64_t>(base));
  }
}

template <class T>
void integers(rl_generator& g, const rl_tensor& out, uint64_t range, int64_t base, bool wide) {
  fill_tiles<T>(out, [&](T* to, int64_t n) {
    uint32_t words[2 * kDrawTile];
    int64_t values[kDrawTile];
    if (wide) {
      draw_words(g, words, 2 * n);
      wide_integers(words, values, n, range, base);
    } else {
      draw_words(g, words, n);
      small_integers(words, values, n, range, base);
    }
    for (int64_t i = 0; i < n; ++i) to[i] = element<T>(values[i]);
  });
}

rl_status draw_integers(rl_generator* generator, const rl_tensor& out, uint64_t range, int64_t base, bool wide) {
  LockedGenerator g(generator);
  RL_DISPATCH_REAL(out.dtype, T, integers<T>(*g, out, range, base, wide));
  return RL_OK;
}

// Bounds beyond 2^digits are moved to the next number that a float dtype has, so that rounding an integer of the range
// cannot leave it. As in PyTorch, the spacing is taken from the magnitude of the neighbour inside.
int64_t spacing(int64_t near, int digits) {
  // Of 2^64 magnitude at most, hence unsigned.
  uint64_t magnitude = near < 0 ? 0 - static_cast<uint64_t>(near) : static_cast<uint64_t>(near);
  int exponent = 0;
  while (magnitude >>= 1) ++exponent;
  return int64_t{1} << std::max(exponent - digits + 1, 0);
}
// value as the float dtype has it, back as an integer. digits below 24 are PyTorch's float16 and bfloat16.
int64_t rounded(int64_t value, int dtype) {
  double result = 0;
  switch (dtype) {
    case RL_FLOAT16:
      result = static_cast<double>(static_cast<float>(half(static_cast<float>(value))));
      break;
    case RL_BFLOAT16:
      result = static_cast<double>(static_cast<float>(bfloat16(static_cast<float>(value))));
      break;
    case RL_FLOAT32:
      result = static_cast<double>(static_cast<float>(value));
      break;
    default:
      result = static_cast<double>(value);
      break;
  }
  if (!(result >= -0x1p63 && result < 0x1p63)) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(result);
}
int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t lower_bound_of(int64_t from, int dtype) {
  const int64_t next = wrapping_add(from, 1);
  const int64_t next_rounded = rounded(next, dtype);
  if (next_rounded >= from) return from;
  return wrapping_add(next_rounded, spacing(next, float_digits(dtype)));
}
int64_t upper_bound_of(int64_t to, int dtype) {
  const int64_t last = wrapping_add(to, -1);
  const int64_t last_rounded = rounded(last, dtype);
  if (last_rounded < to) return to;
  return wrapping_add(last_rounded, -spacing(last, float_digits(dtype)));
}

// Whether the dtype has the integer within its range.
bool holds(int dtype, int64_t value) {
  if (dtype == RL_FLOAT16) return value >= -65504 && value <= 65504;
  if (is_float_dtype(dtype)) return true;
  return value >= integer_min(dtype) && value <= integer_max(dtype);
}
rl_status check_holds(const char* name, int dtype, int64_t value) {
  if (holds(dtype, value)) return RL_OK;
  return fail(RL_RUNTIME_ERROR, "random_: %s is out of range for %s; got %lld", name, dtype_text(dtype),
              static_cast<long long>(value));
}

// ---- coins

// Numbers below this many units of 2^-53 show a one.
uint64_t coin_threshold(double p) { return static_cast<uint64_t>(std::ceil(p * 0x1p53)); }

// As many bits as an element has.
template <int kBytes>
struct BitsOf;
template <>
struct BitsOf<1> {
  using type = uint8_t;
};
template <>
struct BitsOf<2> {
  using type = uint16_t;
};
template <>
struct BitsOf<4> {
  using type = uint32_t;
};
template <>
struct BitsOf<8> {
  using type = uint64_t;
};

template <class T>
void coins(rl_generator& g, const rl_tensor& out, double p, T one) {
  using Bits = typename BitsOf<sizeof(T)>::type;
  const uint64_t threshold = coin_threshold(p);
  const Bits one_bits = bit_cast<Bits>(one);
  const RandomLoops& loops = random_loops();
  fill_tiles<T>(out, [&](T* to, int64_t n) {
    uint32_t words[2 * kDrawTile];
    int32_t masks[kDrawTile];
    draw_words(g, words, 2 * n);
    loops.coins(words, masks, n, threshold);
    // Zero has no bits in any dtype. A choice instead of the mask would become a branch that is mispredicted.
    for (int64_t i = 0; i < n; ++i) to[i] = bit_cast<T>(static_cast<Bits>(static_cast<Bits>(masks[i]) & one_bits));
  });
}

template <class T, class P>
rl_status coins_each(rl_generator& g, const rl_tensor& p, const rl_tensor& out) {
  Box<2> box;
  drawing_order<2>({&out, &p}, box);
  const int64_t (&steps)[2] = box.steps();
  bool valid = true;
  double offender = 0;
  walk(box, [&](char* const* at, int64_t n) {
    for (int64_t i = 0; valid && i < n; ++i) {
      const P probability = *reinterpret_cast<const P*>(at[1] + i * steps[1]);
      bool shown;
      if constexpr (std::is_same_v<P, double>) {
        valid = probability >= 0 && probability <= 1;
        if (!valid) {
          offender = probability;
          return;
        }
        shown = g.uniform() < probability;
      } else {
        const float value = static_cast<float>(probability);
        valid = value >= 0 && value <= 1;
        if (!valid) {
          offender = value;
          return;
        }
        shown = static_cast<float>(g.random32() & 0xffffffu) * 0x1p-24f < value;
      }
      *reinterpret_cast<T*>(at[0] + i * steps[0]) = element<T>(shown);
    }
  });
  if (valid) return RL_OK;
  return fail(RL_RUNTIME_ERROR, "bernoulli_: a probability is out of range; expected 0 <= p <= 1, got %g", offender);
}

rl_status check_probability(const char* op, double p) {
  if (p >= 0 && p <= 1) return RL_OK;
  return fail(RL_RUNTIME_ERROR, "%s: p is not a probability; expected 0 <= p <= 1, got %g", op, p);
}

// ---- geometric numbers: may exceed an integer dtype. Then int64 gets its smallest number, int32 and narrower dtypes
// the low bits of int32's, as the processor's conversion gives.
template <class T>
inline T truncated(double value) {
  if constexpr (is_reduced_float_v<T>) {
    return T(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value);
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return value >= -0x1p63 && value < 0x1p63 ? static_cast<int64_t>(value) : std::numeric_limits<int64_t>::min();
  } else {
    const bool fits = value > -2147483649.0 && value < 2147483648.0;
    return static_cast<T>(fits ? static_cast<int32_t>(value) : std::numeric_limits<int32_t>::min());
  }
}

// ---- permutations

// From this size on the positions take 64 bits.
constexpr int64_t kWidePermutation = 0xffffffff / 20;

template <class T>
void permutation(rl_generator& g, const rl_tensor& out) {
  T* const data = static_cast<T*>(out.data);
  const int64_t n = out.shape[0];
  const int64_t stride = out.strides[0];
  constexpr int64_t kTile = 1024;
  uint32_t words[kTile];
  if (n < kWidePermutation) {
    // Each position in turn is swapped with one of those from it to the end.
    for (int64_t i = 0; i < n; ++i) data[i * stride] = element<T>(i);
    for (int64_t start = 0; start < n - 1; start += kTile) {
      const int64_t count = std::min(kTile, n - 1 - start);
      draw_words(g, words, count);
      for (int64_t j = 0; j < count; ++j) {
        const int64_t i = start + j;
        const int64_t other = i + static_cast<int64_t>(words[j] % static_cast<uint32_t>(n - i));
        std::swap(data[i * stride], data[other * stride]);
      }
    }
    return;
  }
  // The shuffle that grows from the front: number i goes to a random place up to i, whose number moves to the end.
  for (int64_t start = 0; start < n; start += kTile / 2) {
    const int64_t count = std::min(kTile / 2, n - start);
    draw_words(g, words, 2 * count);
    for (int64_t j = 0; j < count; ++j) {
      const int64_t i = start + j;
      const uint64_t bits = static_cast<uint64_t>(words[2 * j]) << 32 | words[2 * j + 1];
      const int64_t other = static_cast<int64_t>(bits % static_cast<uint64_t>(i + 1));
      data[i * stride] = element<T>(i);
      std::swap(data[i * stride], data[other * stride]);
    }
  }
}

}  // namespace
}  // namespace rl::rng

extern "C" {

rl_status rl_random_integers(rl_generator* generator, const rl_tensor* out) {
  RL_GUARD_BEGIN
  RL_TRY(rl::rng::check_output("random_", out));
  if (rl::is_complex_dtype(out->dtype)) return rl::rng::dtype_failure("random_", rl::rng::kRealDtypes, out->dtype);
  const int digits = rl::rng::float_digits(out->dtype);
  const uint64_t largest = digits ? uint64_t{1} << digits : static_cast<uint64_t>(rl::rng::integer_max(out->dtype));
  const bool wide = out->dtype == RL_INT64 || out->dtype == RL_FLOAT64;
  return rl::rng::draw_integers(generator, *out, largest + 1, 0, wide);
  RL_GUARD_END
}

rl_status rl_random_integers_between(rl_generator* generator, int64_t from, int64_t to, const rl_tensor* out) {
  RL_GUARD_BEGIN
  RL_TRY(rl::rng::check_output("random_", out));
  if (from >= to)
    return rl::fail(RL_RUNTIME_ERROR, "random_: the range is empty; expected from < to, got from=%lld and to=%lld",
                    static_cast<long long>(from), static_cast<long long>(to));
  const int dtype = out->dtype;
  if (rl::is_complex_dtype(dtype)) return rl::rng::dtype_failure("random_", rl::rng::kRealDtypes, dtype);
  if (rl::is_float_dtype(dtype)) {
    from = rl::rng::lower_bound_of(from, dtype);
    to = rl::rng::upper_bound_of(to, dtype);
    if (from >= to)
      return rl::fail(RL_RUNTIME_ERROR,
                      "random_: the range is empty in %s; expected from < to, got from=%lld and to=%lld",
                      rl::dtype_text(dtype), static_cast<long long>(from), static_cast<long long>(to));
  }
  RL_TRY(rl::rng::check_holds("from", dtype, from));
  RL_TRY(rl::rng::check_holds("to - 1", dtype, to - 1));
  const uint64_t range = static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
  return rl::rng::draw_integers(generator, *out, range, from, range >= rl::rng::kWideRange);
  RL_GUARD_END
}

rl_status rl_random_integers_from(rl_generator* generator, int64_t from, const rl_tensor* out) {
  RL_GUARD_BEGIN
  RL_TRY(rl::rng::check_output("random_", out));
  const int dtype = out->dtype;
  if (rl::is_complex_dtype(dtype)) return rl::rng::dtype_failure("random_", rl::rng::kRealDtypes, dtype);
  if (from == std::numeric_limits<int64_t>::min()) {
    if (dtype != RL_INT64 && dtype != RL_FLOAT64 && dtype != RL_FLOAT32 && dtype != RL_BFLOAT16)
      return rl::fail(RL_RUNTIME_ERROR,
                      "random_: the range of all 64-bit integers; expected int64, float64, float32 or bfloat16, got %s",
                      rl::dtype_text(dtype));
    return rl::rng::draw_integers(generator, *out, 0, 0, true);
  }
  const int digits = rl::rng::float_digits(dtype);
  const int64_t last = digits ? int64_t{1} << digits : rl::rng::integer_max(dtype);
  if (digits) {
    from = rl::rng::lower_bound_of(from, dtype);
    if (from >= last)
      return rl::fail(RL_RUNTIME_ERROR, "random_: the range is empty in %s; expected from < %lld, got %lld",
                      rl::dtype_text(dtype), static_cast<long long>(last), static_cast<long long>(from));
  }
  RL_TRY(rl::rng::check_holds("from", dtype, from));
  const uint64_t range = static_cast<uint64_t>(last) - static_cast<uint64_t>(from) + 1;
  return rl::rng::draw_integers(generator, *out, range, from, range >= rl::rng::kWideRange);
  RL_GUARD_END
}

rl_status rl_random_bernoulli(rl_generator* generator, double p, const rl_tensor* out) {
  RL_GUARD_BEGIN
  RL_TRY(rl::rng::check_output("bernoulli_", out));
  RL_TRY(rl::rng::check_probability("bernoulli_", p));
  if (rl::is_complex_dtype(out->dtype)) return rl::rng::dtype_failure("bernoulli_", rl::rng::kRealDtypes, out->dtype);
  rl::rng::LockedGenerator g(generator);
  RL_DISPATCH_REAL(out->dtype, T, rl::rng::coins<T>(*g, *out, p, rl::rng::element<T>(1)));
  return RL_OK;
  RL_GUARD_END
}

rl_status rl_random_bernoulli_tensor(rl_generator* generator, const rl_tensor* p, const rl_tensor* out) {
  RL_GUARD_BEGIN
  RL_TRY(rl::rng::check_output("bernoulli_", out));
  RL_TRY(rl::rng::check_operand("bernoulli_", "p", p, out));
  if (rl::is_complex_dtype(out->dtype)) return rl::rng::dtype_failure("bernoulli_", rl::rng::kRealDtypes, out->dtype);
  if (!rl::is_float_dtype(p->dtype))
    return rl::rng::dtype_failure("bernoulli_", "probabilities of float16, bfloat16, float32 or float64", p->dtype);
  rl::rng::LockedGenerator g(generator);
  RL_DISPATCH_REAL(out->dtype, T, RL_DISPATCH_FLOAT(p->dtype, P, return (rl::rng::coins_each<T, P>(*g, *p, *out))));
  return RL_OK;
  RL_GUARD_END
}

rl_status rl_random_dropout_mask(rl_generator* generator, double p, const rl_tensor* out) {
  RL_GUARD_BEGIN
  RL_TRY(rl::rng::check_output("dropout", out));
  if (!(p >= 0 && p < 1))
    return rl::fail(RL_RUNTIME_ERROR, "dropout: no probability to drop with; expected 0 <= p < 1, got %g", p);
  if (!rl::is_float_dtype(out->dtype))
    return rl::rng::dtype_failure("dropout", "float16, bfloat16, float32 or float64", out->dtype);
  const double keep = 1 - p;
  rl::rng::LockedGenerator g(generator);
  RL_DISPATCH_FLOAT(out->dtype, T, {
    using Compute = rl::compute_type<T>;
    rl::rng::coins<T>(*g, *out, keep, T(Compute(1) / static_cast<Compute>(keep)));
  });
  return RL_OK;
  RL_GUARD_END
}

rl_status rl_random_geometric(rl_generator* generator, double p, const rl_tensor* out) {
  RL_GUARD_BEGIN
  RL_TRY(rl::rng::check_output("geometric_", out));
  if (!(p > 0 && p < 1))
    return rl::fail(RL_RUNTIME_ERROR, "geometric_: p is no probability between 0 and 1; expected 0 < p < 1, got %g", p);
  if (out->dtype == RL_BOOL || rl::is_complex_dtype(out->dtype))
    return rl::rng::dtype_failure("geometric_", "an integer or float dtype", out->dtype);
  rl::rng::LockedGenerator g(generator);
  const double log_miss = std::log1p(-p);
  const auto make = [=]<class T>(const uint32_t* words, T* to, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      to[i] = rl::rng::truncated<T>(std::ceil(std::log(rl::rng::pair_uniform(words + 2 * i)) / log_miss));
  };
  RL_DISPATCH_REAL(out->dtype, T, {
    if constexpr (!std::is_same_v<T, bool>) return (rl::rng::fill_from_words<T, 2>(*g, *out, make));
  });
  return RL_OK;
  RL_GUARD_END
}

rl_status rl_random_permutation(rl_generator* generator, const rl_tensor* out) {
  RL_GUARD_BEGIN
  RL_TRY(rl::rng::check_output("randperm", out));
  if (out->ndim != 1)
    return rl::fail(RL_VALUE_ERROR, "randperm: out has the wrong number of dims; expected shape [n], got %s",
                    rl::shape_text(out));
  const int dtype = out->dtype;
  if (dtype == RL_BOOL || rl::is_complex_dtype(dtype))
    return rl::rng::dtype_failure("randperm", "an integer or float dtype", dtype);
  // Every number up to n - 1 must have its own value in the dtype.
  const int digits = rl::rng::float_digits(dtype);
  const int64_t n = out->shape[0];
  if (digits ? n > (int64_t{1} << digits) + 1 : n > 0 && n - 1 > rl::rng::integer_max(dtype))
    return rl::fail(RL_RUNTIME_ERROR, "randperm: n is too large for %s; expected at most %lld, got %lld",
                    rl::dtype_text(dtype),
                    static_cast<long long>(digits ? (int64_t{1} << digits) + 1 : rl::rng::integer_max(dtype) + 1),
                    static_cast<long long>(n));
  rl::rng::LockedGenerator g(generator);
  RL_DISPATCH_REAL(dtype, T, {
    if constexpr (!std::is_same_v<T, bool>) rl::rng::permutation<T>(*g, *out);
  });
  return RL_OK;
  RL_GUARD_END
}

}  // extern "C"
