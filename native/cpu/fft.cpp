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

int64_t matrix_work_size(const FftLoops& loops, int64_t n) { return 6 * n + 12 * loops.width * (loops.width + 1); }

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
    loops.lanes(plan, {in, out, &zero, &zero, 2, 2, 1, inverse, false, false, scale}, work.get());
    return RL_OK;
  }
  if (plan.line == FftKind::kMatrix) {
    Scratch<char> work(matrix_work_size(loops, plan.n) * size);
    if (!work) return RL_MEMORY_ERROR;
    loops.lines(plan, {in, out, 0, 0, 1, FftLines::kComplex, inverse, scale}, work.get());
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
    int kept = 0;  // dims that follow one another without gaps count as one
    for (int d = 1; d < count; ++d) {
      if (in[d] == in[kept] * shape[kept] && out[d] == out[kept] * shape[kept]) {
        shape[kept] *= shape[d];
      } else {
        ++kept;
        shape[kept] = shape[d];
        in[kept] = in[d];
        out[kept] = out[d];
      }
    }
    if (count > 0) count = kept + 1;
  }
  int64_t inner() const { return count == 0 ? 1 : shape[0]; }
  void at(int64_t line, int64_t* in_at, int64_t* out_at) const {
    int64_t i = 0, o = 0;
    if (count == 1) {
      *in_at = line * in[0];
      *out_at = line * out[0];
      return;
    }
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

// Whether lines go through lanes together; otherwise one after the other. `dense`: both sides have steps of 1.
bool side_by_side(const FftPlan& plan, int64_t lines, bool dense) {
  if (!plan.has_lanes) return false;
  if (plan.line == FftKind::kLanes) return true;
  if (plan.line == FftKind::kMatrix && dense) return false;
  const int64_t width = loops_of(plan).width;
  return static_cast<double>((lines + width - 1) / width) * plan.lane_cost <
         static_cast<double>(lines) * plan.line_cost * (dense ? 1 : 2);
}

// How many of the lines go through lanes: the last few of them, which would leave most lanes empty, are done by
// themselves.
int64_t lines_in_lanes(const FftPlan& plan, int64_t lines) {
  const int64_t rest = lines % loops_of(plan).width;
  return plan.line != FftKind::kLanes && 2 * static_cast<double>(rest) * plan.line_cost < plan.lane_cost ? lines - rest
                                                                                                         : lines;
}

// Groups of the first `total` lines, `loop` on each: places and steps in real numbers.
rl_status run_groups(const FftPlan& plan, void (*loop)(const FftPlan&, const FftGroup&, void*), const rl_tensor* in,
                     int64_t in_unit, const rl_tensor* out, int64_t out_unit, int dim, bool inverse, bool odd,
                     double scale, int64_t total) {
  const FftLoops& loops = loops_of(plan);
  const Lines lines(in, out, dim);
  const int64_t groups = (total + loops.width - 1) / loops.width;
  const bool out_dense = lines.count == 1 && out->strides[dim] == 1 && lines.out[0] == out->shape[dim];
  return parallel_for(groups, std::max<int64_t>(1, kTask / (plan.n * loops.width)), [&](int64_t begin, int64_t end) {
    Scratch<char> work(work_size(loops, plan.n) * number_size(plan));
    if (!work) return RL_MEMORY_ERROR;
    int64_t in_at[kMostLanes], out_at[kMostLanes];
    FftGroup group = {in->data, out->data, in_at, out_at, in->strides[dim] * in_unit, out->strides[dim] * out_unit, 0,
                      inverse,  out_dense, odd,   scale};
    const int64_t in_step = lines.count > 0 ? lines.in[0] * in_unit : 0;
    const int64_t out_step = lines.count > 0 ? lines.out[0] * out_unit : 0;
    for (int64_t g = begin; g < end; ++g) {
      const int64_t first = g * loops.width;
      group.lines = static_cast<int>(std::min(loops.width, total - first));
      if (lines.count <= 1 || first % lines.inner() + loops.width <= lines.inner()) {
        int64_t in_first, out_first;
        lines.at(first, &in_first, &out_first);
        for (int l = 0; l < kMostLanes; ++l) {
          in_at[l] = in_first * in_unit + l * in_step;
          out_at[l] = out_first * out_unit + l * out_step;
        }
      } else {
        for (int l = 0; l < group.lines; ++l) {
          lines.at(first + l, &in_at[l], &out_at[l]);
          in_at[l] *= in_unit;
          out_at[l] *= out_unit;
        }
      }
      loop(plan, group, work.get());
    }
    return RL_OK;
  });
}

// Contiguous lines that are matrices
rl_status run_matrices(const FftPlan& plan, FftLines::Kind kind, const rl_tensor* in, int64_t in_unit,
                       const rl_tensor* out, int64_t out_unit, int dim, bool inverse, double scale) {
  const FftLoops& loops = loops_of(plan);
  const Lines lines(in, out, dim);
  const int64_t size = number_size(plan), together = plan.together;
  const int64_t block = std::max<int64_t>(1, kTask / (plan.n * together)) * together;
  return parallel_for(lines.total, block, [&](int64_t begin, int64_t end) {
    Scratch<char> work(matrix_work_size(loops, plan.n) * size);
    if (!work) return RL_MEMORY_ERROR;
    while (begin < end) {
      int64_t in_at, out_at;
      lines.at(begin, &in_at, &out_at);
      const int64_t count = std::min(end - begin, lines.inner() - begin % lines.inner());
      const char* from = static_cast<const char*>(in->data) + in_at * in_unit * size;
      char* to = static_cast<char*>(out->data) + out_at * out_unit * size;
      const int64_t in_step = lines.count > 0 ? lines.in[0] * in_unit : 0;
      const int64_t out_step = lines.count > 0 ? lines.out[0] * out_unit : 0;
      loops.lines(plan, {from, to, in_step, out_step, count, kind, inverse, scale}, work.get());
      begin += count;
    }
    return RL_OK;
  });
}

// Each line from number `first` on by itself: map(in, out) on contiguous copies of `in_size` and `out_size` numbers
// where it has gaps.
template <class In, class Out, class Map>
rl_status run_lines(const rl_tensor* in, int64_t in_size, const rl_tensor* out, int64_t out_size, int dim,
                    int64_t first, Map map) {
  const Lines lines(in, out, dim);
  const int64_t in_step = in->strides[dim], out_step = out->strides[dim];
  const bool copies_in = in_step != 1 && in_size > 1, copies_out = out_step != 1 && out_size > 1;
  // A single long line is shared out among the threads itself.
  const int64_t block = lines.total == 1 ? 1 : std::max<int64_t>(1, kTask / std::max(in_size, out_size));
  return parallel_for(lines.total - first, block, [&](int64_t begin, int64_t end) {
    Scratch<In> in_line(copies_in ? in_size : 0);
    Scratch<Out> out_line(copies_out ? out_size : 0);
    if (!in_line || !out_line) return RL_MEMORY_ERROR;
    for (int64_t i = begin; i < end; ++i) {
      int64_t in_at, out_at;
      lines.at(first + i, &in_at, &out_at);
      const In* from = static_cast<const In*>(in->data) + in_at;
      Out* to = static_cast<Out*>(out->data) + out_at;
      if (copies_in)
        for (int64_t k = 0; k < in_size; ++k) in_line[k] = from[k * in_step];
      RL_TRY(map(copies_in ? in_line.get() : from, copies_out ? out_line.get() : to));
      if (copies_out)
        for (int64_t k = 0; k < out_size; ++k) to[k * out_step] = out_line[k];
    }
    return RL_OK;
  });
}

bool is_dense(const rl_tensor* in, const rl_tensor* out, int dim) {
  return in->strides[dim] == 1 && out->strides[dim] == 1;
}

// ---- along one dimension

template <class T>
rl_status transform(const rl_tensor* in, int dim, bool inverse, double scale, const rl_tensor* out) {
  const int64_t n = in->shape[dim];
  const Plan plan = fft_plan(n, sizeof(T) == 8);
  if (!plan) return RL_MEMORY_ERROR;
  const bool dense = is_dense(in, out, dim);
  const int64_t total = Lines(in, out, dim).total;
  int64_t done = 0;
  if (side_by_side(*plan, total, dense)) {
    done = lines_in_lanes(*plan, total);
    RL_TRY(run_groups(*plan, loops_of(*plan).lanes, in, 2, out, 2, dim, inverse, false, scale, done));
    if (done == total) return RL_OK;
  }
  if (done == 0 && dense && plan->line == FftKind::kMatrix)
    return run_matrices(*plan, FftLines::kComplex, in, 2, out, 2, dim, inverse, scale);
  return run_lines<complex<T>, complex<T>>(in, n, out, n, dim, done, [&](const complex<T>* from, complex<T>* to) {
    return run_line(*plan, from, inverse, scale, to);
  });
}

// A line of 2 h real numbers is one of h complex ones.
template <class T>
rl_status from_real(const rl_tensor* in, int dim, double scale, const rl_tensor* out) {
  const int64_t n = in->shape[dim];
  const bool odd = n % 2 == 1;
  const Plan plan = fft_plan(odd ? n : n / 2, sizeof(T) == 8);
  if (!plan) return RL_MEMORY_ERROR;
  const bool dense = is_dense(in, out, dim);
  const int64_t total = Lines(in, out, dim).total;
  int64_t done = 0;
  if (side_by_side(*plan, total, dense && !odd)) {
    done = lines_in_lanes(*plan, total);
    RL_TRY(run_groups(*plan, loops_of(*plan).lanes_real, in, 1, out, 2, dim, false, odd, scale, done));
    if (done == total) return RL_OK;
  }
  const bool matrix = plan->line == FftKind::kMatrix && !odd;
  if (done == 0 && dense && matrix) return run_matrices(*plan, FftLines::kReal, in, 1, out, 2, dim, false, scale);
  const FftLoops& loops = loops_of(*plan);
  return run_lines<T, complex<T>>(in, n, out, n / 2 + 1, dim, done, [&](const T* from, complex<T>* to) {
    if (matrix) {
      Scratch<T> work(matrix_work_size(loops, plan->n));
      if (!work) return RL_MEMORY_ERROR;
      loops.lines(*plan, {from, to, 0, 0, 1, FftLines::kReal, false, scale}, work.get());
      return RL_OK;
    }
    if (!odd) {
      RL_TRY(run_line(*plan, from, false, scale, to));
      loops.split(*plan, to);
      return RL_OK;
    }
    Scratch<complex<T>> line(n);
    if (!line) return RL_MEMORY_ERROR;
    for (int64_t i = 0; i < n; ++i) line[i] = {from[i], T(0)};
    RL_TRY(run_line(*plan, line.get(), false, scale, line.get()));
    std::copy_n(line.get(), n / 2 + 1, to);
    return RL_OK;
  });
}

template <class T>
rl_status to_real(const rl_tensor* in, int dim, double scale, const rl_tensor* out) {
  const int64_t n = out->shape[dim];
  const bool odd = n % 2 == 1;
  const Plan plan = fft_plan(odd ? n : n / 2, sizeof(T) == 8);
  if (!plan) return RL_MEMORY_ERROR;
  const bool dense = is_dense(in, out, dim);
  const int64_t total = Lines(in, out, dim).total;
  int64_t done = 0;
  if (side_by_side(*plan, total, dense && !odd)) {
    done = lines_in_lanes(*plan, total);
    RL_TRY(run_groups(*plan, loops_of(*plan).lanes_to_real, in, 2, out, 1, dim, true, odd, scale, done));
    if (done == total) return RL_OK;
  }
  const bool matrix = plan->line == FftKind::kMatrix && !odd;
  if (done == 0 && dense && matrix) return run_matrices(*plan, FftLines::kToReal, in, 2, out, 1, dim, true, scale);
  const FftLoops& loops = loops_of(*plan);
  return run_lines<complex<T>, T>(in, n / 2 + 1, out, n, dim, done, [&](const complex<T>* from, T* to) {
    if (matrix) {
      Scratch<T> work(matrix_work_size(loops, plan->n));
      if (!work) return RL_MEMORY_ERROR;
      loops.lines(*plan, {from, to, 0, 0, 1, FftLines::kToReal, true, scale}, work.get());
      return RL_OK;
    }
    Scratch<complex<T>> line(plan->n);
    if (!line) return RL_MEMORY_ERROR;
    if (!odd) {
      loops.join(*plan, from, line.get());
      return run_line(*plan, line.get(), true, scale, to);
    }
    line[0] = {from[0].re, T(0)};
    for (int64_t k = 1; 2 * k < n; ++k) {
      line[k] = from[k];
      line[n - k] = conj(from[k]);
    }
    RL_TRY(run_line(*plan, line.get(), true, scale, line.get()));
    for (int64_t k = 0; k < n; ++k) to[k] = line[k].re;
    return RL_OK;
  });
}

// ---- over several dimensions

constexpr int64_t kItem = 1 << 17;  // complex numbers that go through all dimensions while they are in the cache

// body(in, out, dims) on each part of the tensors that has `dims` alone, where these are several small ones; else on
// the whole.
template <class Body>
rl_status by_items(const rl_tensor* in, const rl_tensor* out, const int* dims, int count, Body body) {
  int64_t size = 1;
  for (int i = 0; i < count; ++i) size *= std::max(in->shape[dims[i]], out->shape[dims[i]]);
  const int64_t total = std::max(count_elements(in), count_elements(out));
  if (count == 1 || size > kItem || size == total) return body(in, out, dims);
  int64_t shape[2][RL_MAX_DIMS], strides[2][RL_MAX_DIMS], items = 1;
  int inner[RL_MAX_DIMS], outer[RL_MAX_DIMS], outers = 0;
  for (int i = 0; i < count; ++i) {
    inner[i] = i;
    for (int t = 0; t < 2; ++t) {
      shape[t][i] = (t == 0 ? in : out)->shape[dims[i]];
      strides[t][i] = (t == 0 ? in : out)->strides[dims[i]];
    }
  }
  for (int d = 0; d < in->ndim; ++d) {
    if (std::find(dims, dims + count, d) != dims + count) continue;
    outer[outers++] = d;
    items *= in->shape[d];
  }
  return parallel_for(items, std::max<int64_t>(1, kTask / size), [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      int64_t in_at = 0, out_at = 0, rest = item;
      for (int i = outers - 1; i >= 0; --i) {
        const int d = outer[i];
        const int64_t k = rest % in->shape[d];
        rest /= in->shape[d];
        in_at += k * in->strides[d];
        out_at += k * out->strides[d];
      }
      rl_tensor part_in = *in, part_out = *out;
      part_in.data = static_cast<char*>(in->data) + in_at * dtype_size(in->dtype);
      part_out.data = static_cast<char*>(out->data) + out_at * dtype_size(out->dtype);
      part_in.ndim = part_out.ndim = count;
      part_in.shape = shape[0];
      part_out.shape = shape[1];
      part_in.strides = strides[0];
      part_out.strides = strides[1];
      RL_TRY(body(&part_in, &part_out, inner));
    }
    return RL_OK;
  });
}

template <class T>
rl_status complex_dims(const rl_tensor* in, const int* dims, int count, bool inverse, double scale,
                       const rl_tensor* out) {
  for (int i = count - 1; i >= 0; --i)
    RL_TRY(transform<T>(i == count - 1 ? in : out, dims[i], inverse, i == 0 ? scale : 1.0, out));
  return RL_OK;
}

// A row-major tensor of the shape of `t`, in memory of its own
template <class T>
struct Temporary {
  rl_tensor desc;
  int64_t strides[RL_MAX_DIMS];
  Scratch<T> memory;
  explicit Temporary(const rl_tensor* t) : desc(*t), memory(count_elements(t)) {
    int64_t step = 1;
    for (int d = t->ndim - 1; d >= 0; --d) {
      strides[d] = step;
      step *= t->shape[d];
    }
    desc.strides = strides;
    desc.data = memory.get();
  }
};

template <class T>
rl_status to_real_dims(const rl_tensor* in, const int* dims, int count, double scale, const rl_tensor* out) {
  if (count == 1) return to_real<T>(in, dims[0], scale, out);
  const Temporary<complex<T>> middle(in);
  if (!middle.memory) return RL_MEMORY_ERROR;
  RL_TRY(complex_dims<T>(in, dims, count - 1, true, 1.0, &middle.desc));
  return to_real<T>(&middle.desc, dims[count - 1], scale, out);
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

// The dims of a call, counted from the front
struct Axes {
  int dims[RL_MAX_DIMS];
};
rl_status wrap_axes(const char* name, const rl_tensor* t, const int* dims, int count, Axes* axes) {
  if (count < 1 || count > t->ndim) {
    return fail(RL_VALUE_ERROR, "%s: wrong number of dims; expected 1 to %d, got %d", name, t->ndim, count);
  }
  for (int i = 0; i < count; ++i) {
    axes->dims[i] = dims[i];
    RL_TRY(wrap_dim(name, t, &axes->dims[i]));
    if (std::find(axes->dims, axes->dims + i, axes->dims[i]) != axes->dims + i)
      return fail(RL_VALUE_ERROR, "%s: dims must differ; got %d twice", name, axes->dims[i]);
  }
  return RL_OK;
}

rl_status check_half(const char* name, const rl_tensor* half, const rl_tensor* real, int dim) {
  for (int d = 0; d < real->ndim; ++d) {
    if (half->shape[d] != (d == dim ? real->shape[d] / 2 + 1 : real->shape[d]))
      return fail(RL_VALUE_ERROR, "%s: the complex tensor has the wrong shape; got %s for real numbers of %s", name,
                  shape_text(half), shape_text(real));
  }
  return RL_OK;
}

}  // namespace
}  // namespace rl

rl_status rl_fft(const rl_tensor* in, const int* dims, int count, int inverse, double scale, const rl_tensor* out) {
  using namespace rl;
  RL_GUARD_BEGIN
  const int dtype = in->dtype == RL_COMPLEX128 ? RL_COMPLEX128 : RL_COMPLEX64;
  RL_TRY(check_pair("fft", in, dtype, out, dtype));
  RL_TRY(check_same_shape("fft", "the output", in, out));
  Axes axes;
  RL_TRY(wrap_axes("fft", in, dims, count, &axes));
  if (count_elements(in) == 0) return RL_OK;
  return by_items(in, out, axes.dims, count, [&](const rl_tensor* a, const rl_tensor* b, const int* d) {
    return dtype == RL_COMPLEX128 ? complex_dims<double>(a, d, count, inverse != 0, scale, b)
                                  : complex_dims<float>(a, d, count, inverse != 0, scale, b);
  });
  RL_GUARD_END
}

rl_status rl_fft_real(const rl_tensor* in, const int* dims, int count, double scale, const rl_tensor* out) {
  using namespace rl;
  RL_GUARD_BEGIN
  const bool wide = in->dtype == RL_FLOAT64;
  RL_TRY(check_pair("rfft", in, wide ? RL_FLOAT64 : RL_FLOAT32, out, wide ? RL_COMPLEX128 : RL_COMPLEX64));
  Axes axes;
  RL_TRY(wrap_axes("rfft", in, dims, count, &axes));
  RL_TRY(check_half("rfft", out, in, axes.dims[count - 1]));
  if (count_elements(in) == 0) return RL_OK;
  return by_items(in, out, axes.dims, count, [&](const rl_tensor* a, const rl_tensor* b, const int* d) {
    RL_TRY(wide ? from_real<double>(a, d[count - 1], scale, b) : from_real<float>(a, d[count - 1], scale, b));
    return wide ? complex_dims<double>(b, d, count - 1, false, 1.0, b)
                : complex_dims<float>(b, d, count - 1, false, 1.0, b);
  });
  RL_GUARD_END
}

rl_status rl_fft_to_real(const rl_tensor* in, const int* dims, int count, double scale, const rl_tensor* out) {
  using namespace rl;
  RL_GUARD_BEGIN
  const bool wide = out->dtype == RL_FLOAT64;
  RL_TRY(check_pair("irfft", in, wide ? RL_COMPLEX128 : RL_COMPLEX64, out, wide ? RL_FLOAT64 : RL_FLOAT32));
  Axes axes;
  RL_TRY(wrap_axes("irfft", out, dims, count, &axes));
  RL_TRY(check_half("irfft", in, out, axes.dims[count - 1]));
  if (count_elements(out) == 0) return RL_OK;
  return by_items(in, out, axes.dims, count, [&](const rl_tensor* a, const rl_tensor* b, const int* d) {
    return wide ? to_real_dims<double>(a, d, count, scale, b) : to_real_dims<float>(a, d, count, scale, b);
  });
  RL_GUARD_END
}
