#include "cpu/index_engine.h"

#include <new>

namespace rl {

rl_status plan_indexed(const char* name, const rl_tensor& x, int32_t n, const rl_tensor* const* indices,
                       const int32_t* dims, int32_t at, const rl_tensor& y, bool wrap, Indexed* plan) {
  if (x.dtype != y.dtype) {
    return fail(RL_TYPE_ERROR, "%s: dtypes differ; expected %s, got %s", name, dtype_text(x.dtype),
                dtype_text(y.dtype));
  }
  if (n < 1 || n > x.ndim || at < 0 || at > x.ndim - n) {
    return fail(RL_VALUE_ERROR, "%s: %d indices at %d for a tensor of %d dimensions", name, n, at, x.ndim);
  }
  const rl_tensor& first = *indices[0];
  const int64_t item = dtype_size(x.dtype);
  uint64_t indexed = 0;
  for (int j = 0; j < n; ++j) {
    if (indices[j]->dtype != RL_INT64)
      return fail(RL_TYPE_ERROR, "%s: expected indices of dtype int64, got %s", name, dtype_text(indices[j]->dtype));
    if (!same_shape(*indices[j], first)) {
      return fail(RL_VALUE_ERROR, "%s: indices differ in shape; expected %s, got %s", name, shape_text(&first),
                  shape_text(indices[j]));
    }
    if (dims[j] < 0 || dims[j] >= x.ndim || (indexed >> dims[j] & 1))
      return fail(RL_VALUE_ERROR, "%s: dimension %d is indexed twice or does not exist", name, dims[j]);
    indexed |= uint64_t{1} << dims[j];
    Indexed::Index* index = new (&plan->indices[j]) Indexed::Index;
    index->dim = dims[j];
    index->size = x.shape[dims[j]];
    index->step = x.strides[dims[j]] * item;
    box_of(*indices[j], index->box);
  }
  plan->n = n;
  plan->wrap = wrap;
  plan->outer.data[0] = plan->inner.data[0] = static_cast<char*>(x.data);
  plan->outer.data[1] = plan->inner.data[1] = plan->positions.data[0] = static_cast<char*>(y.data);
  // Y: `at` kept dims, the positions, the other kept dims.
  bool fits = y.ndim == x.ndim - n + first.ndim;
  int kept = 0;
  for (int d = 0; d < x.ndim && fits; ++d) {
    if (indexed >> d & 1) continue;
    const int in_y = kept < at ? kept : kept + first.ndim;
    fits = y.shape[in_y] == x.shape[d];
    (kept < at ? plan->outer : plan->inner).push(x.shape[d], {x.strides[d] * item, y.strides[in_y] * item});
    ++kept;
  }
  for (int d = 0; d < first.ndim && fits; ++d) {
    fits = y.shape[at + d] == first.shape[d];
    plan->positions.push(first.shape[d], {y.strides[at + d] * item});
  }
  if (!fits) {
    return fail(RL_VALUE_ERROR, "%s: shapes do not fit: %s indexed by %s, and %s", name, shape_text(&x),
                shape_text(&first), shape_text(&y));
  }
  plan->outer.finish();
  plan->inner.finish();
  plan->positions.finish();
  return RL_OK;
}

rl_status check_range(const Box<1>& box, int64_t low, int64_t high, int32_t dim, rl_status failure) {
  const int64_t step = box.steps()[0];
  std::atomic<bool> bad{false};
  parallel_for(box.count, 4 * kBlockElements, [&](int64_t begin, int64_t end) {
    walk(box, begin, end, [&](char* const* p, int64_t n) {
      const char* at = p[0];
      if (step == 0) n = 1;
      bool out_of_range = false;
      if (step == 8) {
        const int64_t* values = reinterpret_cast<const int64_t*>(at);
        for (int64_t i = 0; i < n; ++i) out_of_range |= values[i] < low || values[i] >= high;
      } else {
        for (int64_t i = 0; i < n; ++i, at += step) {
          const int64_t value = *reinterpret_cast<const int64_t*>(at);
          out_of_range |= value < low || value >= high;
        }
      }
      if (out_of_range) bad.store(true, std::memory_order_relaxed);
    });
  });
  if (!bad.load(std::memory_order_relaxed)) return RL_OK;
  int64_t culprit = 0;
  bool found = false;
  walk(box, [&](char* const* p, int64_t n) {
    for (int64_t i = 0; i < n && !found; ++i) {
      culprit = *reinterpret_cast<const int64_t*>(p[0] + i * step);
      found = culprit < low || culprit >= high;
    }
  });
  return fail(failure, "index %lld is out of bounds for dimension %d with size %lld", static_cast<long long>(culprit),
              dim, static_cast<long long>(high));
}

rl_status check_indices(const Indexed& plan) {
  // An index that meets no element is not looked at.
  if (plan.outer.count == 0 || plan.inner.count == 0) return RL_OK;
  for (int j = 0; j < plan.n; ++j) {
    const Indexed::Index& index = plan.index(j);
    RL_TRY(check_range(index.box, plan.wrap ? -index.size : 0, index.size, index.dim, RL_INDEX_ERROR));
  }
  return RL_OK;
}

bool index_offsets(const Indexed& plan, int64_t begin, int64_t n, int64_t* x, int64_t* y) {
  bool bad = false;
  for (int j = 0; j < plan.n; ++j) {
    const Indexed::Index& index = plan.index(j);
    const int64_t size = index.size, wrap = plan.wrap ? size : 0, step_x = index.step;
    const int64_t step = index.box.steps()[0];
    int64_t* out = x;
    walk(index.box, begin, begin + n, [&](char* const* p, int64_t run) {
      const char* at = p[0];
      for (int64_t i = 0; i < run; ++i, at += step) {
        int64_t value = *reinterpret_cast<const int64_t*>(at);
        value += (value >> 63) & wrap;
        bad |= static_cast<uint64_t>(value) >= static_cast<uint64_t>(size);
        out[i] = j == 0 ? value * step_x : out[i] + value * step_x;
      }
      out += run;
    });
    if (bad) return false;
  }
  const int64_t step = plan.positions.steps()[0];
  int64_t* out = y;
  walk(plan.positions, begin, begin + n, [&](char* const* p, int64_t run) {
    const int64_t offset = p[0] - plan.positions.data[0];
    for (int64_t i = 0; i < run; ++i) out[i] = offset + i * step;
    out += run;
  });
  return true;
}

namespace {

// A plan with its loop, and the rectangles of work it is cut into.
struct Runner {
  const Indexed& plan;
  const PairLoop loop;
  const void* const op;
  std::atomic<bool> failed{false};

  // n positions at the offsets given, outer elements [o, o_end), inner elements [i, i_end).
  void apply(const int64_t* x, const int64_t* y, int64_t n, int64_t o, int64_t o_end, int64_t i, int64_t i_end) const {
    const Box<2>&outer = plan.outer, &inner = plan.inner;
    const int64_t outer_x = outer.steps()[0], outer_y = outer.steps()[1];
    const int64_t inner_x = inner.steps()[0], inner_y = inner.steps()[1];
    walk(outer, o, o_end, [&](char* const* base, int64_t outer_run) {
      for (int64_t k = 0; k < outer_run; ++k) {
        char* base_x = base[0] + k * outer_x;
        char* base_y = base[1] + k * outer_y;
        if (inner.ndim == 1) {
          loop(base_x + i * inner_x, base_y + i * inner_y, x, y, n, i_end - i, inner_x, inner_y, op);
        } else {
          walk(inner, i, i_end, [&](char* const* p, int64_t run) {
            loop(base_x + (p[0] - inner.data[0]), base_y + (p[1] - inner.data[1]), x, y, n, run, inner_x, inner_y, op);
          });
        }
      }
    });
  }

  bool offsets(int64_t position, int64_t n, int64_t* x, int64_t* y) {
    if (index_offsets(plan, position, n, x, y)) return true;
    failed.store(true, std::memory_order_relaxed);
    return false;
  }

  // Positions [first, last), in order.
  void rectangle(int64_t first, int64_t last, int64_t o, int64_t o_end, int64_t i, int64_t i_end) {
    int64_t x[kIndexChunk], y[kIndexChunk];
    for (int64_t p = first; p < last; p += kIndexChunk) {
      const int64_t n = std::min(kIndexChunk, last - p);
      if (!offsets(p, n, x, y)) return;
      apply(x, y, n, o, o_end, i, i_end);
    }
  }
};

}  // namespace

rl_status run_indexed(const Indexed& plan, PairLoop loop, const void* op, GatherLoop single, bool ordered) {
  const int64_t positions = plan.positions.count, outer = plan.outer.count, inner = plan.inner.count;
  if (positions == 0 || outer == 0 || inner == 0) return RL_OK;
  if (plan.n == 1 && inner == 1 && single != nullptr && plan.index(0).box.ndim == 1 && plan.positions.ndim == 1) {
    // An index for every element of Y, the same along the outer dims.
    const Indexed::Index& index = plan.index(0);
    Gather gather;
    gather.size = index.size;
    gather.step = index.step;
    gather.wrap = plan.wrap;
    gather.box.data[0] = plan.outer.data[0];
    gather.box.data[1] = index.box.data[0];
    gather.box.data[2] = plan.outer.data[1];
    for (int d = 0; d < plan.outer.ndim; ++d)
      gather.box.push(plan.outer.shape[d], {plan.outer.strides[d][0], 0, plan.outer.strides[d][1]});
    gather.box.push(positions, {0, index.box.steps()[0], plan.positions.steps()[0]});
    gather.box.finish();
    return run_gather(gather, single, ordered) ? RL_OK : check_indices(plan);
  }
  Runner runner{plan, loop, op};
  if (positions * outer * inner <= kBlockElements) {
    runner.rectangle(0, positions, 0, outer, 0, inner);
  } else if (!ordered) {
    const int64_t position_block = std::min(positions, kIndexChunk);
    const int64_t inner_block = inner >= 8 * kBlockElements ? kBlockElements : inner;
    const int64_t outer_block =
        std::max<int64_t>(1, std::min(outer, kBlockElements / std::max<int64_t>(1, position_block * inner_block)));
    const int64_t position_blocks = ceil_div(positions, position_block), inner_blocks = ceil_div(inner, inner_block);
    const int64_t tasks = ceil_div(outer, outer_block) * position_blocks * inner_blocks;
    const int64_t task_elements = outer_block * position_block * inner_block;
    parallel_for(tasks, std::max<int64_t>(1, kBlockElements / task_elements), [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t i = t % inner_blocks, p = t / inner_blocks % position_blocks;
        const int64_t o = t / inner_blocks / position_blocks;
        runner.rectangle(p * position_block, std::min(positions, (p + 1) * position_block), o * outer_block,
                         std::min(outer, (o + 1) * outer_block), i * inner_block,
                         std::min(inner, (i + 1) * inner_block));
      }
    });
  } else if (outer >= 8) {
    const int64_t block = std::max(ceil_div(outer, 64), ceil_div(kBlockElements, positions * inner));
    parallel_for(outer, block,
                 [&](int64_t begin, int64_t end) { runner.rectangle(0, positions, begin, end, 0, inner); });
  } else if (inner >= 512) {
    // Long pieces: short ones far apart are slow to reach.
    const int64_t block =
        inner < 2048 ? ceil_div(ceil_div(inner, 2), 64) * 64 : std::max<int64_t>(ceil_div(inner, 32), 1024);
    parallel_for(inner, block,
                 [&](int64_t begin, int64_t end) { runner.rectangle(0, positions, 0, outer, begin, end); });
  } else {
    runner.rectangle(0, positions, 0, outer, 0, inner);  // the order within an element leaves nothing to share out
  }
  return runner.failed.load(std::memory_order_relaxed) ? check_indices(plan) : RL_OK;
}

namespace {

template <template <class> class Op>
rl_status run_bytes(const Indexed& plan, int dtype) {
  rl_status status = RL_OK;
  with_item_type(dtype_size(dtype), [&](auto item) {
    using T = decltype(item);
    status = run_indexed<T>(plan, Op<T>{});
  });
  return status;
}

template <template <class> class Op>
rl_status run_values(const Indexed& plan, int dtype) {
  rl_status status = RL_OK;
  RL_DISPATCH_ALL(dtype, T, { status = run_indexed<T>(plan, Op<T>{}); });
  return status;
}

template <template <class> class Op>
rl_status run_ordered_values(const Indexed& plan, int dtype) {
  rl_status status = RL_OK;
  RL_DISPATCH_REAL(dtype, T, { status = run_indexed<T>(plan, Op<T>{}); });
  return status;
}

// One index along one dim: out or source as y, its dim `dim` being the positions.
rl_status plan_single(const char* name, const rl_tensor& x, int32_t dim, const rl_tensor& index, const rl_tensor& y,
                      bool wrap, Indexed* plan) {
  if (index.ndim > 1) {
    return fail(RL_VALUE_ERROR, "%s: expected an index of at most 1 dimension, got %s", name, shape_text(&index));
  }
  if (dim < 0 || dim >= x.ndim) return fail(RL_VALUE_ERROR, "%s: no dimension %d in %s", name, dim, shape_text(&x));
  const int64_t size = index.ndim == 1 ? index.shape[0] : 1, stride = index.ndim == 1 ? index.strides[0] : 0;
  rl_tensor line = index;
  line.ndim = 1;
  line.shape = &size;
  line.strides = &stride;
  const rl_tensor* lines[] = {&line};
  return plan_indexed(name, x, 1, lines, &dim, dim, y, wrap, plan);
}

// A value in place of y: y's shape with strides 0.
struct Expanded {
  rl_tensor desc;
  int64_t shape[RL_MAX_DIMS];
  int64_t strides[RL_MAX_DIMS];
  Expanded(const rl_tensor& x, int32_t dim, const rl_tensor& index, void* value) {
    for (int d = 0; d < x.ndim; ++d) {
      shape[d] = d == dim ? element_count(index) : x.shape[d];
      strides[d] = 0;
    }
    desc = {value, shape, strides, x.ndim, x.dtype, 0, {0, 0}};
  }
};

rl_status index_reduce(const rl_tensor& dst, int32_t dim, const rl_tensor& index, const rl_tensor& source,
                       rl_scatter_mode mode, bool include_self) {
  if (!scatter_takes(mode, dst.dtype))
    return fail(RL_TYPE_ERROR, "index_reduce: this reduction does not take dtype %s", dtype_text(dst.dtype));
  Indexed plan;
  RL_TRY(plan_single("index_reduce", dst, dim, index, source, false, &plan));
  RL_TRY(check_indices(plan));
  if (!include_self && mode != RL_SCATTER_SET) {
    alignas(16) char neutral[16];
    scatter_neutral(mode, dst.dtype, neutral);
    Expanded value(dst, dim, index, neutral);
    Indexed fill;
    RL_TRY(plan_single("index_reduce", dst, dim, index, value.desc, false, &fill));
    RL_TRY(run_bytes<Store>(fill, dst.dtype));
  }
  switch (mode) {
    case RL_SCATTER_SET:
      return run_bytes<Store>(plan, dst.dtype);
    case RL_SCATTER_SUM:
      return run_values<Accumulate>(plan, dst.dtype);
    case RL_SCATTER_PROD:
      return run_values<Multiply>(plan, dst.dtype);
    case RL_SCATTER_AMAX:
      return run_ordered_values<TakeLarger>(plan, dst.dtype);
    case RL_SCATTER_AMIN:
      return run_ordered_values<TakeSmaller>(plan, dst.dtype);
    case RL_SCATTER_MEAN:
      break;
  }
  RL_TRY(run_values<Accumulate>(plan, dst.dtype));
  // One count per slice, seen as a tensor of dst's shape.
  const int64_t size = dst.shape[dim];
  Scratch<int64_t> counts(size);
  if (!counts.ok()) return RL_MEMORY_ERROR;
  std::fill_n(counts.get(), size, include_self ? 1 : 0);
  walk(plan.index(0).box, [&](char* const* p, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      ++counts[*reinterpret_cast<const int64_t*>(p[0] + i * plan.index(0).box.steps()[0])];
  });
  int64_t strides[RL_MAX_DIMS] = {};
  strides[dim] = 1;
  divide_by_counts(dst, {counts.get(), dst.shape, strides, dst.ndim, RL_INT64, 0, {0, 0}});
  return RL_OK;
}

}  // namespace

bool scatter_takes(rl_scatter_mode mode, int dtype) {
  if (mode == RL_SCATTER_AMAX || mode == RL_SCATTER_AMIN) return !is_complex_dtype(dtype);
  return mode != RL_SCATTER_MEAN || dtype != RL_BOOL;
}

void scatter_neutral(rl_scatter_mode mode, int dtype, void* out) {
  RL_DISPATCH_ALL(dtype, T, {
    T value = convert<T>(mode == RL_SCATTER_PROD ? 1.0f : 0.0f);
    if constexpr (!is_complex_v<T>) {
      if (mode == RL_SCATTER_AMAX) value = lowest_value<T>();
      if (mode == RL_SCATTER_AMIN) value = highest_value<T>();
    }
    std::memcpy(out, &value, sizeof value);
  });
}

void divide_by_counts(const rl_tensor& dst, const rl_tensor& counts) {
  Box<2> box;
  box.data[0] = static_cast<char*>(dst.data);
  box.data[1] = static_cast<char*>(counts.data);
  const int64_t item = dtype_size(dst.dtype);
  for (int d = 0; d < dst.ndim; ++d) box.push(dst.shape[d], {dst.strides[d] * item, counts.strides[d] * 8});
  box.finish();
  RL_DISPATCH_ALL(dst.dtype, T, {
    parallel_for(box.count, kBlockElements, [&](int64_t begin, int64_t end) {
      walk(box, begin, end, [&](char* const* p, int64_t n) {
        for (int64_t i = 0; i < n; ++i) {
          T& value = *reinterpret_cast<T*>(p[0] + i * box.steps()[0]);
          const int64_t count = *reinterpret_cast<const int64_t*>(p[1] + i * box.steps()[1]);
          if constexpr (!std::is_same_v<T, bool>) {
            if (count > 1) value = divide_by_count(value, count);
          }
        }
      });
    });
  });
}

}  // namespace rl

using rl::Indexed;

extern "C" {

rl_status rl_index_get(const rl_tensor* src, int32_t n, const rl_tensor* const* indices, const int32_t* dims,
                       int32_t at, const rl_tensor* out) {
  Indexed plan;
  RL_TRY(rl::plan_indexed("index", *src, n, indices, dims, at, *out, true, &plan));
  return rl::run_bytes<rl::Fetch>(plan, src->dtype);
}

rl_status rl_index_put(const rl_tensor* dst, int32_t n, const rl_tensor* const* indices, const int32_t* dims,
                       int32_t at, const rl_tensor* values, int accumulate) {
  Indexed plan;
  RL_TRY(rl::plan_indexed("index_put", *dst, n, indices, dims, at, *values, true, &plan));
  RL_TRY(rl::check_indices(plan));
  return accumulate ? rl::run_values<rl::Accumulate>(plan, dst->dtype) : rl::run_bytes<rl::Store>(plan, dst->dtype);
}

rl_status rl_index_select(const rl_tensor* src, int32_t dim, const rl_tensor* index, const rl_tensor* out) {
  Indexed plan;
  RL_TRY(rl::plan_single("index_select", *src, dim, *index, *out, false, &plan));
  return rl::run_bytes<rl::Fetch>(plan, src->dtype);
}

rl_status rl_index_copy(const rl_tensor* dst, int32_t dim, const rl_tensor* index, const rl_tensor* source) {
  Indexed plan;
  RL_TRY(rl::plan_single("index_copy", *dst, dim, *index, *source, false, &plan));
  RL_TRY(rl::check_indices(plan));
  return rl::run_bytes<rl::Store>(plan, dst->dtype);
}

rl_status rl_index_add(const rl_tensor* dst, int32_t dim, const rl_tensor* index, const rl_tensor* source,
                       const rl_tensor* alpha) {
  Indexed plan;
  RL_TRY(rl::plan_single("index_add", *dst, dim, *index, *source, false, &plan));
  RL_TRY(rl::check_indices(plan));
  if (alpha == nullptr) return rl::run_values<rl::Accumulate>(plan, dst->dtype);
  if (alpha->dtype != dst->dtype) {
    return rl::fail(RL_TYPE_ERROR, "index_add: expected alpha of dtype %s, got %s", rl::dtype_text(dst->dtype),
                    rl::dtype_text(alpha->dtype));
  }
  rl_status status = RL_OK;
  RL_DISPATCH_ALL(dst->dtype, T,
                  { status = rl::run_indexed<T>(plan, rl::AccumulateScaled<T>{*static_cast<const T*>(alpha->data)}); });
  return status;
}

rl_status rl_index_fill(const rl_tensor* dst, int32_t dim, const rl_tensor* index, const rl_tensor* value) {
  if (value->dtype != dst->dtype) {
    return rl::fail(RL_TYPE_ERROR, "index_fill: expected a value of dtype %s, got %s", rl::dtype_text(dst->dtype),
                    rl::dtype_text(value->dtype));
  }
  if (dim < 0 || dim >= dst->ndim)
    return rl::fail(RL_VALUE_ERROR, "index_fill: no dimension %d in %s", dim, rl::shape_text(dst));
  rl::Expanded expanded(*dst, dim, *index, value->data);
  Indexed plan;
  RL_TRY(rl::plan_single("index_fill", *dst, dim, *index, expanded.desc, true, &plan));
  RL_TRY(rl::check_indices(plan));
  return rl::run_bytes<rl::Store>(plan, dst->dtype);
}

rl_status rl_index_reduce(const rl_tensor* dst, int32_t dim, const rl_tensor* index, const rl_tensor* source,
                          rl_scatter_mode mode, int include_self) {
  RL_TRY(rl::refuse_complex32("index_reduce", dst->dtype));
  return rl::index_reduce(*dst, dim, *index, *source, mode, include_self != 0);
}

}  // extern "C"
