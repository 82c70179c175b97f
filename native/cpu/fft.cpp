// Fourier transforms of tensors: lines along a dimension, side by side in lanes or one after the other.
#include "rushlight/fft.h"

#include <algorithm>
#include <new>

#include "core/memory.h"
#include "core/parallel.h"
#include "cpu/fft_plan.h"
#include "cpu/reduce_dense.h"

namespace rl {
namespace {

constexpr int64_t kTask = 16384;  // complex numbers of one task
constexpr int kMostLanes = 16;

using Plan = std::shared_ptr<const FftPlan>;

const FftLoops& loops_of(const FftPlan& plan) { return plan.wide ? fft_table().wide : fft_table().single; }
int64_t number_size(const FftPlan& plan) { return plan.wide ? 8 : 4; }

// Numbers of scratch memory for lanes of n elements
int64_t work_size(const FftLoops& loops, int64_t n) { return 4 * loops.width * (n + loops.width + 1); }

// One contiguous line, whose output may be its input.
rl_status run_line(const FftPlan& plan, const void* in, bool inverse, double scale, void* out) {
  const FftLoops& loops = loops_of(plan);
  const int64_t size = number_size(plan);
  if (plan.line == FftKind::kConvolution) {
    const int64_t n = plan.n, m = plan.inner->n;
    Scratch<char> memory(4 * m * size);
    if (!memory) return RL_MEMORY_ERROR;
    char *a = memory.get(), *b = a + 2 * m * size;
    loops.multiply(in, plan.chirp, a, n, 1.0, inverse, false);
    std::fill(a + 2 * n * size, b, char{0});
    RL_TRY(run_line(*plan.inner, a, false, 1.0, b));
    loops.multiply(b, plan.kernel, b, m, 1.0, false, false);
    RL_TRY(run_line(*plan.inner, b, true, 1.0, a));
    loops.multiply(a, plan.chirp, out, n, scale, false, inverse);
    return RL_OK;
  }
  if (plan.line == FftKind::kLanes) {
    Scratch<char> work(work_size(loops, plan.n) * size);
    if (!work) return RL_MEMORY_ERROR;
    const int64_t zero = 0;
    loops.lanes(plan, {in, out, &zero, &zero, 2, 2, 1, inverse, scale}, work.get());
    return RL_OK;
  }
  const int64_t groups = (plan.n1 + loops.width - 1) / loops.width;
  const int64_t middle_size = 2 * plan.blocks * loops.width * groups * loops.width;
  const int64_t room = work_size(loops, std::max(plan.n1, plan.n2));
  const bool parallel = plan.n >= 2 * kTask;
  Scratch<char> memory((middle_size + (parallel ? 0 : room)) * size);
  if (!memory) return RL_MEMORY_ERROR;
  char *middle = memory.get(), *work = middle + middle_size * size;
  if (!parallel) {
    for (int64_t b = 0; b < plan.blocks; ++b) loops.columns(plan, in, inverse, middle, b, work);
    for (int64_t g = 0; g < groups; ++g) loops.rows(plan, middle, inverse, scale, out, g, work);
    return RL_OK;
  }
  RL_TRY(
      parallel_for(plan.blocks, std::max<int64_t>(1, kTask / (plan.n1 * loops.width)), [&](int64_t begin, int64_t end) {
        Scratch<char> own(room * size);
        if (!own) return RL_MEMORY_ERROR;
        for (int64_t b = begin; b < end; ++b) loops.columns(plan, in, inverse, middle, b, own.get());
        return RL_OK;
      }));
  return parallel_for(groups, std::max<int64_t>(1, kTask / (plan.n2 * loops.width)), [&](int64_t begin, int64_t end) {
    Scratch<char> own(room * size);
    if (!own) return RL_MEMORY_ERROR;
    for (int64_t g = begin; g < end; ++g) loops.rows(plan, middle, inverse, scale, out, g, own.get());
    return RL_OK;
  });
}

// Where lines along `dim` begin, in complex numbers; the dim with the smallest step of the output counts fastest.
struct Lines {
  int count = 0;
  int64_t total = 1, shape[RL_MAX_DIMS], in[RL_MAX_DIMS], out[RL_MAX_DIMS];

  Lines(const rl_tensor* a, const rl_tensor* b, int dim) {
    for (int d = 0; d < a->ndim; ++d) {
      if (d == dim || a->shape[d] == 1) continue;
      const int64_t step = std::abs(b->strides[d]);
      int at = count++;
      for (; at > 0 && std::abs(out[at - 1]) > step; --at) {
        shape[at] = shape[at - 1];
        in[at] = in[at - 1];
        out[at] = out[at - 1];
      }
      shape[at] = a->shape[d];
      in[at] = a->strides[d];
      out[at] = b->strides[d];
      total *= a->shape[d];
    }
  }
  int64_t inner() const { return count == 0 ? 1 : shape[0]; }
  void at(int64_t line, int64_t* in_at, int64_t* out_at) const {
    int64_t i = 0, o = 0;
    for (int d = 0; d < count; ++d) {
      const int64_t next = line / shape[d], k = line - next * shape[d];
      i += k * in[d];
      o += k * out[d];
      line = next;
    }
    *in_at = i;
    *out_at = o;
  }
};

// Whether lines go through lanes together; otherwise one after the other.
bool side_by_side(const FftPlan& plan, int64_t lines) {
  if (!plan.has_lanes) return false;
  if (plan.line == FftKind::kLanes) return true;
  const int64_t width = loops_of(plan).width;
  return static_cast<double>((lines + width - 1) / width) * plan.lane_cost <
         static_cast<double>(lines) * plan.line_cost;
}

// Groups of lines, `loop` on each: places and steps in real numbers.
rl_status run_groups(const FftPlan& plan, void (*loop)(const FftPlan&, const FftGroup&, void*), const rl_tensor* in,
                     int64_t in_unit, const rl_tensor* out, int64_t out_unit, int dim, bool inverse, double scale) {
  const FftLoops& loops = loops_of(plan);
  const Lines lines(in, out, dim);
  const int64_t groups = (lines.total + loops.width - 1) / loops.width;
  return parallel_for(groups, std::max<int64_t>(1, kTask / (plan.n * loops.width)), [&](int64_t begin, int64_t end) {
    Scratch<char> work(work_size(loops, plan.n) * number_size(plan));
    if (!work) return RL_MEMORY_ERROR;
    for (int64_t g = begin; g < end; ++g) {
      int64_t in_at[kMostLanes], out_at[kMostLanes];
      const int64_t first = g * loops.width;
      const int count = static_cast<int>(std::min(loops.width, lines.total - first));
      lines.at(first, &in_at[0], &out_at[0]);
      // Lines of one dimension are a step apart; only the first one of the next takes divisions.
      int64_t place = first % lines.inner();
      for (int l = 1; l < count; ++l) {
        if (++place < lines.inner()) {
          in_at[l] = in_at[l - 1] + lines.in[0];
          out_at[l] = out_at[l - 1] + lines.out[0];
        } else {
          place = 0;
          lines.at(first + l, &in_at[l], &out_at[l]);
        }
      }
      for (int l = 0; l < count; ++l) {
        in_at[l] *= in_unit;
        out_at[l] *= out_unit;
      }
      loop(plan,
           {in->data, out->data, in_at, out_at, in->strides[dim] * in_unit, out->strides[dim] * out_unit, count,
            inverse, scale},
           work.get());
    }
    return RL_OK;
  });
}

template <class T>
void gather(const T* from, int64_t step, T* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[i * step];
}
template <class T>
void scatter(const T* from, T* to, int64_t step, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i * step] = from[i];
}

template <class T>
rl_status run_lines(const FftPlan& plan, const rl_tensor* in, int dim, bool inverse, double scale,
                    const rl_tensor* out) {
  const Lines lines(in, out, dim);
  const int64_t n = plan.n, in_step = in->strides[dim], out_step = out->strides[dim];
  // A single long line is shared out among the threads itself.
  const int64_t block = lines.total == 1 ? 1 : std::max<int64_t>(1, kTask / n);
  return parallel_for(lines.total, block, [&](int64_t begin, int64_t end) {
    Scratch<T> line(in_step != 1 || out_step != 1 ? n : 0);
    if (!line) return RL_MEMORY_ERROR;
    for (int64_t i = begin; i < end; ++i) {
      int64_t in_at, out_at;
      lines.at(i, &in_at, &out_at);
      const T* from = static_cast<const T*>(in->data) + in_at;
      T* to = static_cast<T*>(out->data) + out_at;
      if (in_step != 1) gather(from, in_step, line.get(), n);
      RL_TRY(run_line(plan, in_step != 1 ? line.get() : from, inverse, scale, out_step != 1 ? line.get() : to));
      if (out_step != 1) scatter(line.get(), to, out_step, n);
    }
    return RL_OK;
  });
}

rl_status check_pair(const char* name, const rl_tensor* in, int in_dtype, const rl_tensor* out, int out_dtype) {
  if (in->dtype != in_dtype || out->dtype != out_dtype) {
    return fail(RL_TYPE_ERROR, "%s: the dtypes do not fit; expected %s to %s, got %s to %s", name, dtype_text(in_dtype),
                dtype_text(out_dtype), dtype_text(in->dtype), dtype_text(out->dtype));
  }
  if (in->ndim < 1 || in->ndim != out->ndim) {
    return fail(RL_VALUE_ERROR, "%s: tensors need one number of dimensions, at least 1; got %d and %d", name, in->ndim,
                out->ndim);
  }
  return RL_OK;
}

rl_status transform(const rl_tensor* in, int dim, bool inverse, double scale, const rl_tensor* out) {
  const int64_t n = in->shape[dim];
  if (count_elements(in) == 0) return RL_OK;
  const bool wide = in->dtype == RL_COMPLEX128;
  const Plan plan = fft_plan(n, wide);
  if (!plan) return RL_MEMORY_ERROR;
  const Lines lines(in, out, dim);
  if (side_by_side(*plan, lines.total))
    return run_groups(*plan, loops_of(*plan).lanes, in, 2, out, 2, dim, inverse, scale);
  return wide ? run_lines<complex128>(*plan, in, dim, inverse, scale, out)
              : run_lines<complex64>(*plan, in, dim, inverse, scale, out);
}

// A row-major tensor of lines of n elements, in place of `t`'s last dimension.
struct Whole {
  rl_tensor desc;
  int64_t shape[RL_MAX_DIMS], strides[RL_MAX_DIMS], count;
  Whole(const rl_tensor* t, int64_t n, int dtype) : desc(*t), count(n) {
    const int last = t->ndim - 1;
    int64_t step = 1;
    for (int d = last; d >= 0; --d) {
      shape[d] = d == last ? n : t->shape[d];
      strides[d] = step;
      step *= shape[d];
    }
    count = step;
    desc.shape = shape;
    desc.strides = strides;
    desc.dtype = static_cast<uint8_t>(dtype);
  }
};

// A line of 2 h real numbers is one of h complex ones.
template <class T>
rl_status real_lines(const FftPlan& plan, const rl_tensor* in, double scale, const rl_tensor* out) {
  const int last = in->ndim - 1;
  const Lines lines(in, out, last);
  const int64_t block = lines.total == 1 ? 1 : std::max<int64_t>(1, kTask / plan.n);
  return parallel_for(lines.total, block, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t in_at, out_at;
      lines.at(i, &in_at, &out_at);
      complex<T>* to = static_cast<complex<T>*>(out->data) + out_at;
      RL_TRY(run_line(plan, static_cast<const T*>(in->data) + in_at, false, scale, to));
      loops_of(plan).split(plan, to);
    }
    return RL_OK;
  });
}
template <class T>
rl_status to_real_lines(const FftPlan& plan, const rl_tensor* in, double scale, const rl_tensor* out) {
  const int last = in->ndim - 1;
  const Lines lines(in, out, last);
  const int64_t block = lines.total == 1 ? 1 : std::max<int64_t>(1, kTask / plan.n);
  return parallel_for(lines.total, block, [&](int64_t begin, int64_t end) {
    Scratch<complex<T>> line(plan.n);
    if (!line) return RL_MEMORY_ERROR;
    for (int64_t i = begin; i < end; ++i) {
      int64_t in_at, out_at;
      lines.at(i, &in_at, &out_at);
      loops_of(plan).join(plan, static_cast<const complex<T>*>(in->data) + in_at, line.get());
      RL_TRY(run_line(plan, line.get(), true, scale, static_cast<T*>(out->data) + out_at));
    }
    return RL_OK;
  });
}

template <class T>
void mirror(const rl_tensor* half, const rl_tensor* whole) {
  const int last = half->ndim - 1;
  const Lines lines(half, whole, last);
  const int64_t n = whole->shape[last];
  for (int64_t i = 0; i < lines.total; ++i) {
    int64_t in_at, out_at;
    lines.at(i, &in_at, &out_at);
    const complex<T>* x = static_cast<const complex<T>*>(half->data) + in_at;
    complex<T>* y = static_cast<complex<T>*>(whole->data) + out_at;
    y[0] = {x[0].re, T(0)};
    for (int64_t k = 1; 2 * k <= n; ++k) {
      y[k] = x[k * half->strides[last]];
      if (2 * k == n) y[k].im = T(0);
      if (k != n - k) y[n - k] = conj(y[k]);
    }
  }
}

}  // namespace
}  // namespace rl

rl_status rl_fft(const rl_tensor* in, int dim, int inverse, double scale, const rl_tensor* out) {
  using namespace rl;
  RL_GUARD_BEGIN
  const int dtype = in->dtype == RL_COMPLEX128 ? RL_COMPLEX128 : RL_COMPLEX64;
  RL_TRY(check_pair("fft", in, dtype, out, dtype));
  RL_TRY(check_same_shape("fft", "the output", in, out));
  RL_TRY(wrap_dim("fft", in, &dim));
  return transform(in, dim, inverse != 0, scale, out);
  RL_GUARD_END
}

rl_status rl_fft_real(const rl_tensor* in, double scale, const rl_tensor* out) {
  using namespace rl;
  RL_GUARD_BEGIN
  const bool wide = in->dtype == RL_FLOAT64;
  const int to = wide ? RL_COMPLEX128 : RL_COMPLEX64;
  RL_TRY(check_pair("rfft", in, wide ? RL_FLOAT64 : RL_FLOAT32, out, to));
  const int last = in->ndim - 1;
  const int64_t n = in->shape[last];
  for (int d = 0; d <= last; ++d) {
    if (out->shape[d] != (d == last ? n / 2 + 1 : in->shape[d]))
      return fail(RL_VALUE_ERROR, "rfft: the output has the wrong shape; got %s for %s", shape_text(out),
                  shape_text(in));
  }
  if (count_elements(in) == 0) return RL_OK;
  if (n % 2 == 0 && in->strides[last] == 1 && out->strides[last] == 1) {
    const Plan plan = fft_plan(n / 2, wide);
    if (!plan) return RL_MEMORY_ERROR;
    if (side_by_side(*plan, Lines(in, out, last).total))
      return run_groups(*plan, loops_of(*plan).lanes_real, in, 1, out, 2, last, false, scale);
    return wide ? real_lines<double>(*plan, in, scale, out) : real_lines<float>(*plan, in, scale, out);
  }
  Whole whole(in, n, to);
  Scratch<char> memory(whole.count * dtype_size(to));
  if (!memory) return RL_MEMORY_ERROR;
  whole.desc.data = memory.get();
  RL_TRY(rl_copy(in, &whole.desc));
  RL_TRY(transform(&whole.desc, last, false, scale, &whole.desc));
  whole.shape[last] = n / 2 + 1;
  rl_tensor target = *out;
  return rl_copy(&whole.desc, &target);
  RL_GUARD_END
}

rl_status rl_fft_to_real(const rl_tensor* in, double scale, const rl_tensor* out) {
  using namespace rl;
  RL_GUARD_BEGIN
  const bool wide = out->dtype == RL_FLOAT64;
  const int from = wide ? RL_COMPLEX128 : RL_COMPLEX64;
  RL_TRY(check_pair("irfft", in, from, out, wide ? RL_FLOAT64 : RL_FLOAT32));
  const int last = in->ndim - 1;
  const int64_t n = out->shape[last];
  for (int d = 0; d <= last; ++d) {
    if (in->shape[d] != (d == last ? n / 2 + 1 : out->shape[d]))
      return fail(RL_VALUE_ERROR, "irfft: the output has the wrong shape; got %s for %s", shape_text(out),
                  shape_text(in));
  }
  if (count_elements(out) == 0) return RL_OK;
  if (n % 2 == 0 && in->strides[last] == 1 && out->strides[last] == 1) {
    const Plan plan = fft_plan(n / 2, wide);
    if (!plan) return RL_MEMORY_ERROR;
    if (side_by_side(*plan, Lines(in, out, last).total))
      return run_groups(*plan, loops_of(*plan).lanes_to_real, in, 2, out, 1, last, true, scale);
    return wide ? to_real_lines<double>(*plan, in, scale, out) : to_real_lines<float>(*plan, in, scale, out);
  }
  Whole whole(out, n, from);
  Scratch<char> memory(whole.count * dtype_size(from));
  if (!memory) return RL_MEMORY_ERROR;
  whole.desc.data = memory.get();
  wide ? mirror<double>(in, &whole.desc) : mirror<float>(in, &whole.desc);
  RL_TRY(transform(&whole.desc, last, true, scale, &whole.desc));
  rl_tensor real = whole.desc;
  int64_t strides[RL_MAX_DIMS];
  for (int d = 0; d <= last; ++d) strides[d] = 2 * whole.strides[d];
  real.dtype = static_cast<uint8_t>(wide ? RL_FLOAT64 : RL_FLOAT32);
  real.strides = strides;
  rl_tensor target = *out;
  return rl_copy(&real, &target);
  RL_GUARD_END
}
