#include "cpu/random_fill.h"

#include "cpu/random_loops.h"

namespace rl::rng {

namespace {

constexpr int64_t kFewWords = 16;  // below this one word at a time is as fast

// Calls take(words, n) for runs of unused generator words until `count` words are used.
template <class Take>
void take_words(rl_generator& g, int64_t count, const Take& take) {
  while (count > 0) {
    if (g.left == 1) {
      random_loops().renew(g.words);
      g.left = kTwisterWords + 1;
      g.next = 0;
    }
    const int64_t n = std::min<int64_t>(count, g.left - 1);
    take(g.words + g.next, n);
    g.next += static_cast<uint32_t>(n);
    g.left -= static_cast<int32_t>(n);
    count -= n;
  }
}

}  // namespace

void draw_words(rl_generator& g, uint32_t* out, int64_t n) {
  if (n < kFewWords) {
    for (int64_t i = 0; i < n; ++i) out[i] = g.random32();
    return;
  }
  const auto temper_words = random_loops().temper;
  take_words(g, n, [&](const uint32_t* words, int64_t count) {
    temper_words(words, out, count);
    out += count;
  });
}

void draw_floats(rl_generator& g, float* out, int64_t n, float from, float to) {
  const float range = to - from;
  const auto uniform_float = random_loops().uniform_float;
  take_words(g, n, [&](const uint32_t* words, int64_t count) {
    uniform_float(words, out, count, from, range, to);
    out += count;
  });
}

void draw_doubles(rl_generator& g, double* out, int64_t n, double from, double to) {
  const double range = to - from;
  const auto uniform_double = random_loops().uniform_double;
  uint32_t words[2 * kDrawTile];
  for (int64_t i = 0; i < n; i += kDrawTile) {
    const int64_t count = std::min(kDrawTile, n - i);
    draw_words(g, words, 2 * count);
    uniform_double(words, out + i, count, from, range, to);
  }
}

void draw_normals(rl_generator& g, double* out, int64_t n) {
  if (n > 0 && g.has_double_normal) {
    *out++ = g.double_normal;
    --n;
    g.has_double_normal = false;
  }
  while (n >= 2) {
    uint32_t words[2 * kDrawTile];
    const int64_t pairs = std::min(kDrawTile, n) / 2;
    draw_words(g, words, 4 * pairs);
    for (int64_t i = 0; i < pairs; ++i) {
      const NormalPair pair = normal_pair(words + 4 * i);
      *out++ = pair.first;
      *out++ = pair.second;
    }
    n -= 2 * pairs;
  }
  if (n == 1) {
    const double u1 = g.uniform();
    const double u2 = g.uniform();
    const NormalPair pair = normal_pair(u1, u2);
    *out = pair.first;
    g.double_normal = pair.second;
    g.has_double_normal = true;
  }
}

namespace {

rl_status check_descriptor(const char* op, const char* name, const rl_tensor* t) {
  if (!t) return fail(RL_VALUE_ERROR, "%s: %s is missing; expected a tensor, got NULL", op, name);
  if (!is_valid_dtype(t->dtype))
    return fail(RL_TYPE_ERROR, "%s: %s has no known dtype; expected 0 to %d, got %d", op, name, RL_DTYPE_COUNT - 1,
                t->dtype);
  if (t->device != 0)
    return fail(RL_VALUE_ERROR, "%s: %s is not on the CPU; expected device 0, got %d", op, name, t->device);
  if (t->ndim < 0 || t->ndim > RL_MAX_DIMS)
    return fail(RL_VALUE_ERROR, "%s: %s has too many dims; expected 0 to %d, got %d", op, name, RL_MAX_DIMS, t->ndim);
  return RL_OK;
}

}  // namespace

rl_status check_output(const char* op, const rl_tensor* out) {
  RL_TRY(check_descriptor(op, "out", out));
  const int64_t count = element_count(*out);
  for (int d = 0; count > 0 && d < out->ndim; ++d) {
    if (out->strides[d] == 0 && out->shape[d] > 1)
      return fail(
          RL_RUNTIME_ERROR,
          "%s: several elements of out share one place in memory; expected no stride 0 over a size above 1, got "
          "shape %s with strides %s",
          op, shape_text(out), shape_text(out->strides, out->ndim));
  }
  return RL_OK;
}

rl_status check_operand(const char* op, const char* name, const rl_tensor* operand, const rl_tensor* out) {
  RL_TRY(check_descriptor(op, name, operand));
  bool fits = operand->ndim <= out->ndim;
  for (int d = 0; fits && d < operand->ndim; ++d) {
    const int64_t size = operand->shape[d];
    fits = size == 1 || size == out->shape[d + out->ndim - operand->ndim];
  }
  if (!fits)
    return fail(RL_RUNTIME_ERROR, "%s: %s does not broadcast to out; expected a shape that fits %s, got %s", op, name,
                shape_text(out), shape_text(operand));
  return RL_OK;
}

rl_status dtype_failure(const char* op, const char* expected, int dtype) {
  return fail(RL_TYPE_ERROR, "%s: not defined for this dtype; expected %s, got %s", op, expected, dtype_text(dtype));
}

rl_status check_dtype_is(const char* op, const char* name, const rl_tensor* operand, int dtype) {
  if (operand->dtype == dtype) return RL_OK;
  return fail(RL_TYPE_ERROR, "%s: %s has another dtype than out; expected %s, got %s", op, name, dtype_text(dtype),
              dtype_text(operand->dtype));
}

}  // namespace rl::rng
