// Reductions: what each does with the state of its kernel (see reduce_kernels.h), behind rushlight/reduce.h.
#include "rushlight/reduce.h"

#include <cmath>
#include <limits>

#include "core/error.h"
#include "cpu/reduce_plan.h"

namespace rl {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// What becomes of a state.
enum class Result {
  kWord,   // the first word
  kWords,  // both, each its own output
  kIndex,  // the second word, an index
  kSum,    // high and low words
  kMean,   // sum / n
  kNorm,   // root of a sum of powers
  kVar,
  kStd,
  kLogSumExp,
  kAny,
  kAll,
  kComplex,  // real and imaginary part
};

// What one operation is.
struct Spec {
  const char* name;
  ReduceKind kind;
  Result result;
  double parameter;  // p of a norm, correction of a variance
  double identity[kReduceWords];
  bool no_identity;
  bool indexed;
};

struct Context {
  const Spec* spec;
  int tile;
  int out_dtype[2];
  int out_count;
  bool refine;  // float64 results may have left its range on the way
};

// ---- storing

template <class To, class From>
void store_as(char* out, int64_t step, const From* values, int64_t count) {
  To* to = reinterpret_cast<To*>(out);
  for (int64_t j = 0; j < count; ++j) {
    if constexpr (is_complex_v<To>)
      to[j * step] = convert<To>(values[j]);
    else if constexpr (std::is_same_v<To, float>)
      to[j * step] = static_cast<float>(values[j]);
    else
      to[j * step] = convert<To>(values[j]);
  }
}

template <class From>
void store(int dtype, char* out, int64_t step, const From* values, int64_t count) {
  switch (dtype) {
    case RL_BOOL:
      return store_as<bool>(out, step, values, count);
    case RL_UINT8:
      return store_as<uint8_t>(out, step, values, count);
    case RL_INT8:
      return store_as<int8_t>(out, step, values, count);
    case RL_INT16:
      return store_as<int16_t>(out, step, values, count);
    case RL_INT32:
      return store_as<int32_t>(out, step, values, count);
    case RL_INT64:
      return store_as<int64_t>(out, step, values, count);
    case RL_FLOAT16:
      return store_as<half>(out, step, values, count);
    case RL_BFLOAT16:
      return store_as<bfloat16>(out, step, values, count);
    case RL_FLOAT32:
      return store_as<float>(out, step, values, count);
    case RL_FLOAT64:
      return store_as<double>(out, step, values, count);
    case RL_COMPLEX32:
      return store_as<complex32>(out, step, values, count);
    case RL_COMPLEX64:
      return store_as<complex64>(out, step, values, count);
    default:
      return store_as<complex128>(out, step, values, count);
  }
}

// ---- a second look at float64 results that are not finite or close to underflow: the elements are scaled by a power
// of two so that the largest is near 1.

struct Second {
  ReduceKind kind;
  double parameter;
  double largest, scale, sum, error, center, first;
  int64_t seen;
  bool special;  // inf or NaN among the elements: the first result stands
  bool varies;   // not all elements are equal
};

double scaled_power(const Second& s, double x) {
  switch (s.kind) {
    case kReduceSumSquares:
      return x * x;
    case kReduceAbsSum:
      return std::fabs(x);
    case kReduceAbsPow:
      return std::pow(std::fabs(x), s.parameter);
    case kReduceVar:
      return (x - s.center) * (x - s.center);
    default:
      return x;
  }
}

void add_scaled(Second& s, double term) {
  const double sum = s.sum + term, back = sum - s.sum;
  s.error += (s.sum - (sum - back)) + (term - back);
  s.sum = sum;
}

template <class T>
void find_scale(void* context, const void* tile, int64_t n) {
  Second& s = *static_cast<Second*>(context);
  const T* x = static_cast<const T*>(tile);
  for (int64_t i = 0; i < n; ++i) {
    const double value = static_cast<double>(x[i]), m = std::fabs(value);
    if (s.kind == kReduceNanSum && m != m) continue;
    if (!(m < kInf)) s.special = true;
    if (s.kind == kReduceAbsPow && s.parameter < 0) {
      if (m == 0) s.special = true;
      if (s.largest == 0 || m < s.largest) s.largest = m;  // negative powers: the smallest counts
    } else if (m > s.largest) {
      s.largest = m;
    }
    if (s.seen == 0) s.first = value;
    if (value != s.first) s.varies = true;
    ++s.seen;
  }
}

template <class T>
void add_elements(void* context, const void* tile, int64_t n) {
  Second& s = *static_cast<Second*>(context);
  const T* x = static_cast<const T*>(tile);
  for (int64_t i = 0; i < n; ++i) {
    const double value = static_cast<double>(x[i]);
    if (s.kind == kReduceNanSum && value != value) continue;
    add_scaled(s, scaled_power(s, value * s.scale));
  }
}

// The sum of the kind's powers of the scaled elements, or false when the first result stands.
bool look_again(const ReduceJob& job, const Context& c, const char* in, Second& s) {
  s = Second{c.spec->kind, c.spec->parameter, 0, 1, 0, 0, 0, 0, 0, false, false};
  const bool wide = c.tile == kTileDouble;
  const auto visit = [&](void (*narrow)(void*, const void*, int64_t), void (*broad)(void*, const void*, int64_t)) {
    visit_reduced(job, in, wide ? broad : narrow, &s);
  };
  visit(find_scale<float>, find_scale<double>);
  if (s.special || s.largest == 0 || (s.kind == kReduceVar && !s.varies)) return false;
  const int exponent = std::ilogb(s.largest);
  s.scale = std::ldexp(1.0, exponent < -1000 ? 1000 : -exponent);
  if (s.kind == kReduceVar) {
    s.kind = kReduceSum;
    visit(add_elements<float>, add_elements<double>);
    s.center = (s.sum + s.error) / static_cast<double>(s.seen);
    s.sum = s.error = 0;
    s.kind = kReduceVar;
  }
  visit(add_elements<float>, add_elements<double>);
  s.sum += s.error;
  return true;
}

// a / scale^power without leaving the range on the way.
double unscale(double a, double scale, int power) {
  const int exponent = -std::ilogb(scale) * power;
  return std::ldexp(std::ldexp(a, exponent / 2), exponent - exponent / 2);
}

double root(double sum, double p) { return p == 2 ? std::sqrt(sum) : p == 1 ? sum : std::pow(sum, 1 / p); }

bool in_safe_range(double value) { return value > 1e-290 && value < 1e290; }

// ---- from states to results

void finish(const ReduceJob& job, double* state, int64_t pitch, int64_t count, const char* in, char* const* out,
            int64_t in_step, const int64_t* out_step) {
  const Context& c = *static_cast<const Context*>(job.context);
  const Spec& spec = *c.spec;
  const double n = static_cast<double>(job.plan->elements);
  double values[kReduceStrip];
  int64_t integers[kReduceStrip];
  const bool integral = c.tile <= kTileInt64;
  const auto words = [&](int w) {
    if (integral) {
      std::memcpy(integers, state + w * pitch, static_cast<size_t>(count) * 8);
      store(c.out_dtype[w], out[w], out_step[w], integers, count);
    } else {
      store(c.out_dtype[w], out[w], out_step[w], state + w * pitch, count);
    }
  };
  const auto element = [&](int64_t j) { return in + j * in_step * job.plan->in_size; };
  Second second;
  switch (spec.result) {
    case Result::kWord:
      words(0);
      return;
    case Result::kWords:
      words(0);
      if (spec.indexed) {
        std::memcpy(integers, state + pitch, static_cast<size_t>(count) * 8);
        store(c.out_dtype[1], out[1], out_step[1], integers, count);
      } else {
        words(1);
      }
      return;
    case Result::kIndex:
      std::memcpy(integers, state + pitch, static_cast<size_t>(count) * 8);
      store(c.out_dtype[0], out[0], out_step[0], integers, count);
      return;
    case Result::kSum:
    case Result::kMean:
      if (integral) {
        words(0);
        return;
      }
      if (!c.refine && job.kernel->words == 1) {
        if (spec.result == Result::kMean) {
          for (int64_t j = 0; j < count; ++j) state[j] /= n;
        }
        words(0);
        return;
      }
      for (int64_t j = 0; j < count; ++j) {
        double sum = state[j];
        if (job.kernel->words > 1 && std::fabs(sum) < kInf) sum += state[pitch + j];
        values[j] = spec.result == Result::kMean ? sum / n : sum;
        if (c.refine && !(std::fabs(sum) < kInf) && look_again(job, c, element(j), second)) {
          if (spec.result == Result::kMean) second.sum /= n;
          values[j] = unscale(second.sum, second.scale, 1);
        }
      }
      break;
    case Result::kNorm:
      if (!c.refine && job.kernel->words == 1 && spec.parameter == 2) {
        for (int64_t j = 0; j < count; ++j) state[j] = std::sqrt(state[j]);
        words(0);
        return;
      }
      for (int64_t j = 0; j < count; ++j) {
        double sum = state[j];
        if (job.kernel->words > 1 && std::fabs(sum) < kInf) sum += state[pitch + j];
        values[j] = root(sum, spec.parameter);
        if (c.refine && !in_safe_range(sum) && look_again(job, c, element(j), second)) {
          values[j] = unscale(root(second.sum, spec.parameter), second.scale, 1);
        }
      }
      break;
    case Result::kVar:
    case Result::kStd: {
      const double divisor = n - spec.parameter > 0 ? n - spec.parameter : 0;
      for (int64_t j = 0; j < count; ++j) {
        const double deviation = state[2 * pitch + j];
        const double var = deviation / divisor;
        values[j] = spec.result == Result::kStd ? std::sqrt(var) : var;
        if (c.refine && !in_safe_range(deviation) && look_again(job, c, element(j), second)) {
          const double again = second.sum / divisor;
          values[j] = spec.result == Result::kStd ? unscale(std::sqrt(again), second.scale, 1)
                                                  : unscale(again, second.scale, 2);
          state[j] = unscale(second.center, second.scale, 1);
          state[pitch + j] = 0;
        }
        state[j] += state[pitch + j];
      }
      if (c.out_count > 1) store(c.out_dtype[1], out[1], out_step[1], state, count);
      break;
    }
    case Result::kLogSumExp:
      for (int64_t j = 0; j < count; ++j) {
        const double best = state[j];
        values[j] = std::fabs(best) < kInf ? best + std::log(state[pitch + j]) : best;
      }
      break;
    case Result::kAny:
    case Result::kAll: {
      std::memcpy(integers, state, static_cast<size_t>(count) * 8);
      const int64_t all = job.plan->elements;
      for (int64_t j = 0; j < count; ++j)
        integers[j] = spec.result == Result::kAny ? integers[j] > 0 : integers[j] == all;
      store(c.out_dtype[0], out[0], out_step[0], integers, count);
      return;
    }
    case Result::kComplex:
      for (int64_t j = 0; j < count; ++j) {
        if (c.out_dtype[0] == RL_COMPLEX64) {
          float* to = reinterpret_cast<float*>(out[0]) + 2 * j * out_step[0];
          to[0] = static_cast<float>(state[j]);
          to[1] = static_cast<float>(state[pitch + j]);
        } else {
          double* to = reinterpret_cast<double*>(out[0]) + 2 * j * out_step[0];
          to[0] = state[j];
          to[1] = state[pitch + j];
        }
      }
      return;
  }
  store(c.out_dtype[0], out[0], out_step[0], values, count);
}

// ---- running

// A complex tensor as a real one with a further dimension of size 2.
struct RealView {
  rl_tensor desc;
  int64_t shape[RL_MAX_DIMS + 1], strides[RL_MAX_DIMS + 1];
  // `pair` is the size of the further dimension: 1 selects the real parts.
  void set(const rl_tensor* t, int64_t pair) {
    const bool complex = is_complex_dtype(t->dtype);
    for (int d = 0; d < t->ndim; ++d) {
      shape[d] = t->shape[d];
      strides[d] = complex ? 2 * t->strides[d] : t->strides[d];
    }
    shape[t->ndim] = pair;
    strides[t->ndim] = 1;
    desc = *t;
    desc.shape = shape;
    desc.strides = strides;
    desc.ndim = t->ndim + 1;
    desc.dtype = static_cast<uint8_t>(real_dtype(t->dtype));
  }
};

rl_status bad_dtype(const char* name, const char* what, int dtype) {
  return fail(RL_TYPE_ERROR, "%s: the dtype is not supported; expected %s, got %s", name, what, dtype_text(dtype));
}

rl_status too_many_dims(const char* name) {
  return fail(RL_VALUE_ERROR, "%s: too many dimensions for a complex tensor; expected at most %d", name,
              RL_MAX_DIMS - 1);
}

// The tile in which elements are read so that a result of this dtype comes out.
int tile_for(int dtype) {
  if (dtype == RL_FLOAT64 || dtype == RL_COMPLEX128) return kTileDouble;
  return dtype >= RL_FLOAT16 ? kTileFloat : kTileInt64;
}

// The tile in which extremes are looked for. Bytes have no form that carries indices.
int extreme_tile(int dtype, bool indexed) {
  if (dtype >= RL_INT64) return tile_for(dtype);
  return dtype <= RL_UINT8 && !indexed ? kTileUint8 : kTileInt32;
}

constexpr int64_t kTileSize[kTileCount] = {1, 1, 4, 8, 4, 8};

// Whether elements of the dtype are elements of the tile as they are.
bool is_tile_dtype(int dtype, int tile) {
  static constexpr uint8_t kDtype[kTileCount] = {RL_BOOL, RL_UINT8, RL_INT32, RL_INT64, RL_FLOAT32, RL_FLOAT64};
  if (tile == kTileByte) return dtype <= RL_INT8;
  return dtype == kDtype[tile] || (tile == kTileUint8 && dtype == RL_BOOL);
}

bool is_dense(const rl_tensor* t, int64_t* count) {
  int64_t expected = 1;
  for (int d = t->ndim - 1; d >= 0; --d) {
    if (t->shape[d] != 1 && t->strides[d] != expected) return false;
    expected *= t->shape[d];
  }
  *count = expected;
  return true;
}

bool is_extreme(ReduceKind kind) {
  return (kind >= kReduceMax && kind <= kReduceArgMin) || kind == kReduceAbsMax || kind == kReduceAbsMin;
}

// Runs a reduction of real elements (or of whatever `load` makes real).
rl_status run(const Spec& spec, const rl_tensor* in, const rl_tensor* const* outs, int out_count, int tile,
              ReduceLoad load = nullptr) {
  const ReduceTable& table = is_extreme(spec.kind) ? reduce_extreme_table() : reduce_table();
  Context context;
  context.spec = &spec;
  context.tile = tile;
  context.out_count = out_count;
  for (int o = 0; o < out_count; ++o) context.out_dtype[o] = outs[o]->dtype;
  context.refine = tile == kTileDouble || (spec.kind == kReduceAbsPow);
  ReducePlan plan;
  ReduceJob job;
  job.plan = &plan;
  job.kernel = &table.kernels[spec.kind][tile];
  job.direct = load == nullptr && is_tile_dtype(in->dtype, tile);
  const bool half = in->dtype == RL_FLOAT16;
  job.narrow =
      load == nullptr && (half || in->dtype == RL_BFLOAT16) ? job.kernel->columns_narrow[half ? 0 : 1] : nullptr;
  job.load = load != nullptr ? load : reduce_load_table().load[in->dtype][tile];
  job.tile_size = kTileSize[tile];
  if (spec.kind == kReduceComplexProd) {
    job.direct = in->dtype == RL_COMPLEX128;
    job.tile_size = 16;
  }
  job.parameter = spec.parameter;
  for (int w = 0; w < kReduceWords; ++w) job.identity[w] = spec.identity[w];
  job.indexed = spec.indexed;
  job.finish = finish;
  job.context = &context;
  if (job.load == nullptr) return bad_dtype(spec.name, "a real dtype", in->dtype);

  // A small dense tensor reduced to one number needs no plan.
  int64_t count;
  if (job.direct && out_count == 1 && is_dense(in, &count) && count > 0 && count <= kReduceChunk &&
      in->ndim == outs[0]->ndim) {
    bool whole = true;
    for (int d = 0; d < in->ndim; ++d) whole &= outs[0]->shape[d] == 1;
    if (whole) {
      plan.elements = count;
      plan.reduced = 1;
      plan.reduced_size[0] = count;
      plan.reduced_in[0] = 1;
      plan.in_size = job.tile_size;
      double state[kReduceWords];
      job.kernel->run(state, 1, in->data, count, 0, job.parameter);
      char* out[2] = {static_cast<char*>(outs[0]->data), nullptr};
      const int64_t step[2] = {1, 1};
      finish(job, state, 1, 1, static_cast<const char*>(in->data), out, 0, step);
      return RL_OK;
    }
  }
  RL_TRY(make_reduce_plan(spec.name, &plan, in, outs, out_count, spec.indexed));
  if (spec.no_identity && plan.elements == 0 && plan.outputs > 0) {
    return fail(RL_VALUE_ERROR,
                "%s: nothing to reduce; expected at least one element along the reduced dimensions, got shape %s",
                spec.name, shape_text(in));
  }
  run_reduce(job);
  return RL_OK;
}

rl_status run(const Spec& spec, const rl_tensor* in, const rl_tensor* out, int tile, ReduceLoad load = nullptr) {
  return run(spec, in, &out, 1, tile, load);
}

// Sums and means: complex ones are two real ones, side by side.
rl_status run_sum(const Spec& spec, const rl_tensor* in, const rl_tensor* out) {
  if (!is_valid_dtype(in->dtype)) return bad_dtype(spec.name, "a dtype", in->dtype);
  if (!is_valid_dtype(out->dtype)) return bad_dtype(spec.name, "a dtype", out->dtype);
  RL_TRY(refuse_complex32(spec.name, out->dtype));
  if (!is_complex_dtype(out->dtype)) {
    if (is_complex_dtype(in->dtype)) return bad_dtype(spec.name, "a complex output for a complex input", out->dtype);
    if (out->dtype == RL_BOOL) return run(spec, in, out, kTileInt64, reduce_load_table().load_truth[in->dtype]);
    return run(spec, in, out, tile_for(out->dtype));
  }
  if (in->ndim >= RL_MAX_DIMS) return too_many_dims(spec.name);
  if (out->ndim != in->ndim) return run(spec, in, out, kTileDouble);  // reports
  if (!is_complex_dtype(in->dtype)) {
    return run(spec, in, out, tile_for(out->dtype));  // stored as complex
  }
  RealView real_in, real_out;
  real_in.set(in, 2);
  real_out.set(out, 2);
  return run(spec, &real_in.desc, &real_out.desc, tile_for(out->dtype));
}

rl_status run_extreme(const Spec& spec, const rl_tensor* in, const rl_tensor* const* outs, int out_count) {
  if (!is_valid_dtype(in->dtype) || is_complex_dtype(in->dtype)) return bad_dtype(spec.name, "a real dtype", in->dtype);
  return run(spec, in, outs, out_count, extreme_tile(in->dtype, spec.indexed));
}

rl_status check_index_output(const char* name, const rl_tensor* out) {
  return out->dtype == RL_INT64 ? RL_OK : bad_dtype(name, "int64 for indices", out->dtype);
}

rl_status check_real_output(const char* name, const rl_tensor* in, const rl_tensor* out) {
  if (!is_float_dtype(in->dtype) && !is_complex_dtype(in->dtype)) {
    return bad_dtype(name, "a floating point or complex input", in->dtype);
  }
  return is_float_dtype(out->dtype) ? RL_OK : bad_dtype(name, "a floating point output", out->dtype);
}

int wider_tile(const rl_tensor* in, const rl_tensor* out) {
  return tile_for(in->dtype) == kTileDouble || tile_for(out->dtype) == kTileDouble ? kTileDouble : kTileFloat;
}

rl_status run_var(const char* name, const rl_tensor* in, double correction, const rl_tensor* var, const rl_tensor* mean,
                  bool root) {
  RL_TRY(check_real_output(name, in, var));
  Spec spec = {name, kReduceVar, root ? Result::kStd : Result::kVar, correction, {kNan, kNan, kNan}, false, false};
  const rl_tensor* outs[2] = {var, mean};
  const int out_count = mean != nullptr ? 2 : 1;
  if (!is_complex_dtype(in->dtype)) return run(spec, in, outs, out_count, wider_tile(in, var));
  // The variance of complex numbers is that of their real parts plus that of their imaginary parts.
  if (in->ndim >= RL_MAX_DIMS) return too_many_dims(name);
  if (var->ndim != in->ndim)
    return run(spec, in, outs, out_count, kTileDouble, reduce_load_table().load[RL_FLOAT64][kTileDouble]);
  if (mean != nullptr && !is_complex_dtype(mean->dtype)) return bad_dtype(name, "a complex mean", mean->dtype);
  RealView real_in, real_mean;
  real_in.set(in, 2);
  if (mean != nullptr) real_mean.set(mean, 2);
  int64_t outputs = 1;
  for (int d = 0; d < var->ndim; ++d) outputs *= var->shape[d];
  double* const parts = static_cast<double*>(rl_allocate(static_cast<size_t>(outputs) * 16));
  if (parts == nullptr) return RL_MEMORY_ERROR;
  RealView pairs;
  pairs.set(var, 2);
  pairs.desc.dtype = RL_FLOAT64;
  pairs.desc.data = parts;
  int64_t stride = 2;
  for (int d = var->ndim - 1; d >= 0; --d) {
    pairs.strides[d] = stride;
    stride *= var->shape[d];
  }
  spec.result = Result::kVar;
  const rl_tensor* real_outs[2] = {&pairs.desc, &real_mean.desc};
  rl_status status = run(spec, &real_in.desc, real_outs, out_count, tile_for(in->dtype));
  if (status == RL_OK) {
    // Two parts add up as a sum of two elements; a standard deviation is the norm of the parts' deviations.
    Spec join = {name, kReduceSum, Result::kSum, 0, {}, false, false};
    if (root) {
      for (int64_t i = 0; i < 2 * outputs; ++i) parts[i] = std::sqrt(parts[i]);
      join = {name, kReduceSumSquares, Result::kNorm, 2, {}, false, false};
    }
    RealView to;
    to.set(var, 1);
    to.strides[var->ndim] = 1;
    status = run(join, &pairs.desc, &to.desc, kTileDouble);
  }
  rl_deallocate(parts);
  return status;
}

}  // namespace
}  // namespace rl

using rl::Result;
using rl::Spec;

rl_status rl_sum(const rl_tensor* in, const rl_tensor* out) {
  static constexpr Spec spec = {"sum", rl::kReduceSum, Result::kSum, 0, {}, false, false};
  return rl::run_sum(spec, in, out);
}

rl_status rl_nansum(const rl_tensor* in, const rl_tensor* out) {
  static constexpr Spec spec = {"nansum", rl::kReduceNanSum, Result::kSum, 0, {}, false, false};
  return rl::run_sum(spec, in, out);
}

rl_status rl_prod(const rl_tensor* in, const rl_tensor* out) {
  static constexpr Spec real = {"prod", rl::kReduceProd, Result::kWord, 0, {1}, false, false};
  static constexpr Spec complex = {"prod", rl::kReduceComplexProd, Result::kComplex, 0, {1}, false, false};
  if (!rl::is_valid_dtype(in->dtype)) return rl::bad_dtype("prod", "a dtype", in->dtype);
  RL_TRY(rl::refuse_complex32("prod", out->dtype));
  if (rl::is_complex_dtype(in->dtype)) {
    if (!rl::is_complex_dtype(out->dtype))
      return rl::bad_dtype("prod", "a complex output for a complex input", out->dtype);
    return rl::run(complex, in, out, rl::kTileDouble, rl::reduce_load_table().load_complex[in->dtype]);
  }
  const int tile = rl::tile_for(out->dtype);
  if (tile != rl::kTileInt64) return rl::run(real, in, out, tile);
  Spec integer = real;
  integer.identity[0] = rl::bit_cast<double>(int64_t{1});
  return rl::run(integer, in, out, tile,
                 out->dtype == RL_BOOL ? rl::reduce_load_table().load_truth[in->dtype] : nullptr);
}

rl_status rl_mean(const rl_tensor* in, const rl_tensor* out) {
  static constexpr Spec spec = {"mean", rl::kReduceSum, Result::kMean, 0, {}, false, false};
  if (!rl::is_float_dtype(out->dtype) && !rl::is_complex_dtype(out->dtype)) {
    return rl::bad_dtype("mean", "a floating point or complex output", out->dtype);
  }
  return rl::run_sum(spec, in, out);
}

rl_status rl_sum_of_squares(const rl_tensor* in, const rl_tensor* out) {
  static constexpr Spec spec = {"sum_of_squares", rl::kReduceSumSquares, Result::kSum, 0, {}, false, false};
  if (!rl::is_complex_dtype(in->dtype)) return rl::run_sum(spec, in, out);
  if (!rl::is_float_dtype(out->dtype)) return rl::bad_dtype(spec.name, "a floating point output", out->dtype);
  if (in->ndim >= RL_MAX_DIMS) return rl::too_many_dims(spec.name);
  rl::RealView real_in, real_out;
  real_in.set(in, 2);
  real_out.set(out, 1);
  return rl::run(spec, &real_in.desc, &real_out.desc, rl::wider_tile(in, out));
}

rl_status rl_amax(const rl_tensor* in, const rl_tensor* out) {
  static constexpr Spec spec = {"amax", rl::kReduceMax, Result::kWord, 0, {}, true, false};
  return rl::run_extreme(spec, in, &out, 1);
}

rl_status rl_amin(const rl_tensor* in, const rl_tensor* out) {
  static constexpr Spec spec = {"amin", rl::kReduceMin, Result::kWord, 0, {}, true, false};
  return rl::run_extreme(spec, in, &out, 1);
}

rl_status rl_aminmax(const rl_tensor* in, const rl_tensor* out_min, const rl_tensor* out_max) {
  static constexpr Spec spec = {"aminmax", rl::kReduceMinMax, Result::kWords, 0, {}, true, false};
  const rl_tensor* outs[2] = {out_min, out_max};
  return rl::run_extreme(spec, in, outs, 2);
}

rl_status rl_argmax(const rl_tensor* in, const rl_tensor* out) {
  static constexpr Spec spec = {"argmax", rl::kReduceArgMax, Result::kIndex, 0, {}, true, true};
  RL_TRY(rl::check_index_output("argmax", out));
  return rl::run_extreme(spec, in, &out, 1);
}

rl_status rl_argmin(const rl_tensor* in, const rl_tensor* out) {
  static constexpr Spec spec = {"argmin", rl::kReduceArgMin, Result::kIndex, 0, {}, true, true};
  RL_TRY(rl::check_index_output("argmin", out));
  return rl::run_extreme(spec, in, &out, 1);
}

rl_status rl_max_with_indices(const rl_tensor* in, const rl_tensor* values, const rl_tensor* indices) {
  static constexpr Spec spec = {"max", rl::kReduceArgMax, Result::kWords, 0, {}, true, true};
  const rl_tensor* outs[2] = {values, indices};
  RL_TRY(rl::check_index_output("max", indices));
  return rl::run_extreme(spec, in, outs, 2);
}

rl_status rl_min_with_indices(const rl_tensor* in, const rl_tensor* values, const rl_tensor* indices) {
  static constexpr Spec spec = {"min", rl::kReduceArgMin, Result::kWords, 0, {}, true, true};
  const rl_tensor* outs[2] = {values, indices};
  RL_TRY(rl::check_index_output("min", indices));
  return rl::run_extreme(spec, in, outs, 2);
}

rl_status rl_any(const rl_tensor* in, const rl_tensor* out) {
  static constexpr Spec spec = {"any", rl::kReduceCount, Result::kAny, 0, {}, false, false};
  if (!rl::is_valid_dtype(in->dtype)) return rl::bad_dtype(spec.name, "a dtype", in->dtype);
  return rl::run(spec, in, out, rl::kTileByte);
}

rl_status rl_all(const rl_tensor* in, const rl_tensor* out) {
  static constexpr Spec spec = {"all", rl::kReduceCount, Result::kAll, 0, {}, false, false};
  if (!rl::is_valid_dtype(in->dtype)) return rl::bad_dtype(spec.name, "a dtype", in->dtype);
  return rl::run(spec, in, out, rl::kTileByte);
}

rl_status rl_count_nonzero(const rl_tensor* in, const rl_tensor* out) {
  static constexpr Spec spec = {"count_nonzero", rl::kReduceCount, Result::kWord, 0, {}, false, false};
  if (!rl::is_valid_dtype(in->dtype)) return rl::bad_dtype(spec.name, "a dtype", in->dtype);
  return rl::run(spec, in, out, rl::kTileByte);
}

rl_status rl_var(const rl_tensor* in, double correction, const rl_tensor* out) {
  return rl::run_var("var", in, correction, out, nullptr, false);
}

rl_status rl_std(const rl_tensor* in, double correction, const rl_tensor* out) {
  return rl::run_var("std", in, correction, out, nullptr, true);
}

rl_status rl_var_mean(const rl_tensor* in, double correction, const rl_tensor* var, const rl_tensor* mean) {
  return rl::run_var("var_mean", in, correction, var, mean, false);
}

rl_status rl_std_mean(const rl_tensor* in, double correction, const rl_tensor* std, const rl_tensor* mean) {
  return rl::run_var("std_mean", in, correction, std, mean, true);
}

rl_status rl_norm(const rl_tensor* in, double p, const rl_tensor* out) {
  RL_TRY(rl::check_real_output("norm", in, out));
  Spec spec = {"norm", rl::kReduceAbsPow, Result::kNorm, p, {}, false, false};
  if (p == 0) {
    spec.kind = rl::kReduceCount;
    spec.result = Result::kWord;
    return rl::run(spec, in, out, rl::kTileByte);
  }
  const int tile = rl::wider_tile(in, out);
  if (std::fabs(p) == rl::kInf) {
    spec.kind = p > 0 ? rl::kReduceAbsMax : rl::kReduceAbsMin;
    spec.result = Result::kWord;
    spec.no_identity = p < 0;
  } else if (p == 1) {
    spec.kind = rl::kReduceAbsSum;
  } else if (p == 2) {
    spec.kind = rl::kReduceSumSquares;
    if (rl::is_complex_dtype(in->dtype) && in->ndim < RL_MAX_DIMS) {
      rl::RealView real_in, real_out;
      real_in.set(in, 2);
      real_out.set(out, 1);
      return rl::run(spec, &real_in.desc, &real_out.desc, tile);
    }
  }
  if (!rl::is_complex_dtype(in->dtype)) return rl::run(spec, in, out, tile);
  const bool wide = in->dtype == RL_COMPLEX128;
  const rl::ReduceLoad load = rl::reduce_load_table().load_magnitude[in->dtype - RL_COMPLEX64];
  return rl::run(spec, in, out, wide ? rl::kTileDouble : rl::kTileFloat, load);
}

rl_status rl_logsumexp(const rl_tensor* in, const rl_tensor* out) {
  static constexpr Spec spec = {"logsumexp", rl::kReduceLogSumExp, Result::kLogSumExp, 0, {-rl::kInf}, false, false};
  if (!rl::is_valid_dtype(in->dtype) || rl::is_complex_dtype(in->dtype))
    return rl::bad_dtype("logsumexp", "a real dtype", in->dtype);
  if (!rl::is_float_dtype(out->dtype)) return rl::bad_dtype("logsumexp", "a floating point output", out->dtype);
  return rl::run(spec, in, out, rl::tile_for(out->dtype));
}
