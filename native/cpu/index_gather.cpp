// gather and scatter: an index for each element.
#include <atomic>

#include "cpu/index_engine.h"

namespace rl {
namespace {

bool run_box(const Gather& plan, const Box<3>& box, int64_t begin, int64_t end, GatherLoop loop) {
  bool good = true;
  GatherRun run{0, box.steps()[0], box.steps()[1], box.steps()[2], plan.size, plan.step, plan.wrap ? plan.size : 0};
  walk(box, begin, end, [&](char* const* p, int64_t n) {
    run.n = n;
    good = loop(p[0], p[1], p[2], run) && good;
  });
  return good;
}

}  // namespace

bool run_gather(const Gather& plan, GatherLoop loop, bool ordered) {
  const Box<3>& box = plan.box;
  if (box.count <= kBlockElements) return run_box(plan, box, 0, box.count, loop);
  std::atomic<bool> good{true};
  const auto note = [&](bool fine) {
    if (!fine) good.store(false, std::memory_order_relaxed);
  };
  if (!ordered) {
    parallel_for(box.count, kBlockElements,
                 [&](int64_t begin, int64_t end) { note(run_box(plan, box, begin, end, loop)); });
    return good.load(std::memory_order_relaxed);
  }
  // Blocks along a dim in which X moves on never meet in an element of X.
  int split = -1;
  for (int d = 0; d < box.ndim; ++d) {
    if (box.strides[d][0] != 0 && (split < 0 || box.shape[d] > box.shape[split])) split = d;
  }
  const bool innermost = split == box.ndim - 1;
  if (split >= 0 && box.shape[split] >= (innermost ? 256 : 8)) {
    const int64_t length = box.shape[split];
    int64_t block = std::max(ceil_div(length, 64), ceil_div(kBlockElements, box.count / length));
    if (innermost) block = ceil_div(block, 64) * 64;
    parallel_for(length, block, [&](int64_t begin, int64_t end) {
      Box<3> slab = box;
      slab.shape[split] = end - begin;
      slab.count = box.count / length * (end - begin);
      for (int k = 0; k < 3; ++k) slab.data[k] += begin * box.strides[split][k];
      note(run_box(plan, slab, 0, slab.count, loop));
    });
  } else {
    return run_box(plan, box, 0, box.count, loop);  // the order within an element leaves nothing to share out
  }
  return good.load(std::memory_order_relaxed);
}

namespace {

rl_status plan_gather(const char* name, const rl_tensor& x, int32_t dim, const rl_tensor& index, const rl_tensor& y,
                      bool scatter, Gather* plan) {
  plan->wrap = false;
  if (x.dtype != y.dtype) {
    return fail(RL_TYPE_ERROR, "%s: dtypes differ; expected %s, got %s", name, dtype_text(x.dtype),
                dtype_text(y.dtype));
  }
  if (index.dtype != RL_INT64)
    return fail(RL_TYPE_ERROR, "%s: expected an index of dtype int64, got %s", name, dtype_text(index.dtype));
  const bool single = scatter && y.ndim == 0;
  bool fits = x.ndim == index.ndim && (single || y.ndim == index.ndim);
  if (!fits || dim < 0 || dim >= std::max(x.ndim, 1)) {
    return fail(RL_VALUE_ERROR, "%s: expected tensors of as many dimensions, with dimension %d; got %s, index %s, %s",
                name, dim, shape_text(&x), shape_text(&index), shape_text(&y));
  }
  const int64_t item = dtype_size(x.dtype);
  plan->box.data[0] = static_cast<char*>(x.data);
  plan->box.data[1] = static_cast<char*>(index.data);
  plan->box.data[2] = static_cast<char*>(y.data);
  plan->size = x.ndim == 0 ? 1 : x.shape[dim];
  plan->step = x.ndim == 0 ? 0 : x.strides[dim] * item;
  for (int d = 0; d < index.ndim; ++d) {
    const int64_t size = index.shape[d];
    fits = fits && (d == dim || size <= x.shape[d]) && (single || (scatter ? size <= y.shape[d] : size == y.shape[d]));
    plan->box.push(size, {d == dim ? 0 : x.strides[d] * item, index.strides[d] * 8, single ? 0 : y.strides[d] * item});
  }
  plan->box.finish();
  if (!fits && plan->box.count != 0) {
    return fail(RL_VALUE_ERROR, "%s: index %s does not fit %s and %s but for dimension %d", name, shape_text(&index),
                shape_text(&x), shape_text(&y), dim);
  }
  return RL_OK;
}

rl_status check_gather(const rl_tensor& index, int32_t dim, int64_t size) {
  Box<1> box;
  box_of(index, box);
  return check_range(box, 0, size, dim, RL_RUNTIME_ERROR);
}

template <template <class> class Op>
bool scatter_bytes(const Gather& plan, int dtype) {
  bool good = true;
  with_item_type(dtype_size(dtype), [&](auto item) {
    using T = decltype(item);
    good = run_gather<T, Op<T>>(plan);
  });
  return good;
}

template <template <class> class Op>
bool scatter_values(const Gather& plan, int dtype) {
  bool good = true;
  RL_DISPATCH_ALL(dtype, T, { good = run_gather<T, Op<T>>(plan); });
  return good;
}

template <template <class> class Op>
bool scatter_ordered_values(const Gather& plan, int dtype) {
  bool good = true;
  RL_DISPATCH_REAL(dtype, T, { good = run_gather<T, Op<T>>(plan); });
  return good;
}

rl_status scatter(const rl_tensor& dst, int32_t dim, const rl_tensor& index, const rl_tensor& src, rl_scatter_mode mode,
                  bool include_self) {
  if (!scatter_takes(mode, dst.dtype))
    return fail(RL_TYPE_ERROR, "scatter: this reduction does not take dtype %s", dtype_text(dst.dtype));
  Gather plan;
  RL_TRY(plan_gather("scatter", dst, dim, index, src, true, &plan));
  if (plan.box.count == 0) return RL_OK;
  if (!include_self && mode != RL_SCATTER_SET) {
    alignas(16) char neutral[16];
    scatter_neutral(mode, dst.dtype, neutral);
    const rl_tensor value = {neutral, nullptr, nullptr, 0, dst.dtype, 0, {0, 0}};
    Gather fill;
    RL_TRY(plan_gather("scatter", dst, dim, index, value, true, &fill));
    if (!scatter_bytes<Store>(fill, dst.dtype)) return check_gather(index, dim, plan.size);
  }
  bool good = true;
  switch (mode) {
    case RL_SCATTER_SET:
      good = scatter_bytes<Store>(plan, dst.dtype);
      break;
    case RL_SCATTER_PROD:
      good = scatter_values<Multiply>(plan, dst.dtype);
      break;
    case RL_SCATTER_AMAX:
      good = scatter_ordered_values<TakeLarger>(plan, dst.dtype);
      break;
    case RL_SCATTER_AMIN:
      good = scatter_ordered_values<TakeSmaller>(plan, dst.dtype);
      break;
    case RL_SCATTER_SUM:
    case RL_SCATTER_MEAN:
      good = scatter_values<Accumulate>(plan, dst.dtype);
      break;
  }
  if (!good) return check_gather(index, dim, plan.size);
  if (mode != RL_SCATTER_MEAN) return RL_OK;
  const int64_t elements = element_count(dst);
  Scratch<int64_t> counts(elements);
  if (!counts.ok()) return RL_MEMORY_ERROR;
  std::fill_n(counts.get(), elements, include_self ? 1 : 0);
  DenseTensor count_tensor(counts.get(), RL_INT64, dst.ndim, dst.shape);
  int64_t one = 1;
  const rl_tensor ones = {&one, nullptr, nullptr, 0, RL_INT64, 0, {0, 0}};
  Gather counting;
  RL_TRY(plan_gather("scatter", count_tensor.desc, dim, index, ones, true, &counting));
  scatter_values<Accumulate>(counting, RL_INT64);
  divide_by_counts(dst, count_tensor.desc);
  return RL_OK;
}

// ---- take and put: indices into the elements in row-major order

struct Flat {
  const rl_tensor& tensor;
  const int64_t elements = element_count(tensor);
  const int64_t item = dtype_size(tensor.dtype);
  const bool dense = is_contiguous(tensor);

  int64_t offset(int64_t element) const {
    if (dense) return element * item;
    int64_t bytes = 0;
    for (int d = tensor.ndim - 1; d >= 0; --d) {
      const int64_t quotient = element / tensor.shape[d];
      bytes += (element - quotient * tensor.shape[d]) * tensor.strides[d] * item;
      element = quotient;
    }
    return bytes;
  }
};

rl_status plan_flat(const char* name, const rl_tensor& x, const rl_tensor& index, const rl_tensor& y, Box<2>* box) {
  if (x.dtype != y.dtype) {
    return fail(RL_TYPE_ERROR, "%s: dtypes differ; expected %s, got %s", name, dtype_text(x.dtype),
                dtype_text(y.dtype));
  }
  if (index.dtype != RL_INT64)
    return fail(RL_TYPE_ERROR, "%s: expected an index of dtype int64, got %s", name, dtype_text(index.dtype));
  if (!same_shape(index, y)) {
    return fail(RL_VALUE_ERROR, "%s: expected a tensor of the index's shape %s, got %s", name, shape_text(&index),
                shape_text(&y));
  }
  box->data[0] = static_cast<char*>(index.data);
  box->data[1] = static_cast<char*>(y.data);
  const int64_t item = dtype_size(y.dtype);
  for (int d = 0; d < y.ndim; ++d) box->push(y.shape[d], {index.strides[d] * 8, y.strides[d] * item});
  box->finish();
  return RL_OK;
}

// A dense tensor is one indexed dim.
Gather dense_gather(const Flat& flat, const Box<2>& box) {
  Gather plan;
  plan.size = flat.elements;
  plan.step = flat.item;
  plan.wrap = true;
  plan.box.data[0] = static_cast<char*>(flat.tensor.data);
  plan.box.data[1] = box.data[0];
  plan.box.data[2] = box.data[1];
  for (int d = 0; d < box.ndim; ++d) plan.box.push(box.shape[d], {0, box.strides[d][0], box.strides[d][1]});
  plan.box.finish();
  return plan;
}

rl_status check_flat(const rl_tensor& index, int64_t elements) {
  Box<1> box;
  box_of(index, box);
  if (check_range(box, -elements, elements, 0, RL_INDEX_ERROR) == RL_OK) return RL_OK;
  int64_t culprit = 0;
  bool found = false;
  walk(box, [&](char* const* p, int64_t n) {
    for (int64_t i = 0; i < n && !found; ++i) {
      culprit = *reinterpret_cast<const int64_t*>(p[0] + i * box.steps()[0]);
      found = culprit < -elements || culprit >= elements;
    }
  });
  return fail(RL_INDEX_ERROR, "out of range: tried to access index %lld on a tensor of %lld elements",
              static_cast<long long>(culprit), static_cast<long long>(elements));
}

// Elements [begin, end) of the index. False when one is out of range.
bool run_flat(const Flat& flat, const Box<2>& box, int64_t begin, int64_t end, PairLoop loop, const void* op) {
  bool good = true;
  const int64_t step_index = box.steps()[0], step_y = box.steps()[1], elements = flat.elements;
  char* base = static_cast<char*>(flat.tensor.data);
  walk(box, begin, end, [&](char* const* p, int64_t n) {
    int64_t x[kIndexChunk], y[kIndexChunk];
    for (int64_t first = 0; first < n; first += kIndexChunk) {
      const int64_t last = std::min(n, first + kIndexChunk);
      for (int64_t i = first; i < last; ++i) {
        int64_t value = *reinterpret_cast<const int64_t*>(p[0] + i * step_index);
        value += (value >> 63) & elements;
        if (static_cast<uint64_t>(value) >= static_cast<uint64_t>(elements)) [[unlikely]] {
          good = false;
          return;
        }
        x[i - first] = flat.offset(value);
        y[i - first] = i * step_y;
      }
      loop(base, p[1], x, y, last - first, 1, 0, 0, op);
    }
  });
  return good;
}

}  // namespace
}  // namespace rl

extern "C" {

rl_status rl_gather(const rl_tensor* src, int32_t dim, const rl_tensor* index, const rl_tensor* out) {
  RL_TRY(rl::refuse_complex32("gather", src->dtype));
  rl::Gather plan;
  RL_TRY(rl::plan_gather("gather", *src, dim, *index, *out, false, &plan));
  bool good = true;
  rl::with_item_type(rl::dtype_size(src->dtype), [&](auto item) {
    using T = decltype(item);
    good = rl::run_gather<T, rl::Fetch<T>>(plan);
  });
  return good ? RL_OK : rl::check_gather(*index, dim, plan.size);
}

rl_status rl_scatter(const rl_tensor* dst, int32_t dim, const rl_tensor* index, const rl_tensor* src,
                     rl_scatter_mode mode, int include_self) {
  RL_TRY(rl::refuse_complex32("scatter", dst->dtype));
  return rl::scatter(*dst, dim, *index, *src, mode, include_self != 0);
}

rl_status rl_take(const rl_tensor* src, const rl_tensor* index, const rl_tensor* out) {
  RL_TRY(rl::refuse_complex32("take", src->dtype));
  rl::Box<2> box;
  RL_TRY(rl::plan_flat("take", *src, *index, *out, &box));
  const rl::Flat flat{*src};
  std::atomic<bool> good{true};
  rl::with_item_type(flat.item, [&](auto item) {
    using T = decltype(item);
    if (flat.dense) {
      good = rl::run_gather<T, rl::Fetch<T>>(rl::dense_gather(flat, box));
      return;
    }
    const rl::Fetch<T> op;
    rl::parallel_for(box.count, rl::kBlockElements, [&](int64_t begin, int64_t end) {
      if (!rl::run_flat(flat, box, begin, end, rl::pair_loop<T, rl::Fetch<T>>, &op)) good = false;
    });
  });
  return good ? RL_OK : rl::check_flat(*index, flat.elements);
}

rl_status rl_put(const rl_tensor* dst, const rl_tensor* index, const rl_tensor* source, int accumulate) {
  RL_TRY(rl::refuse_complex32("put", dst->dtype));
  rl::Box<2> box;
  RL_TRY(rl::plan_flat("put", *dst, *index, *source, &box));
  const rl::Flat flat{*dst};
  RL_TRY(rl::check_flat(*index, flat.elements));
  const auto run = [&](rl::PairLoop loop, const void* op) { rl::run_flat(flat, box, 0, box.count, loop, op); };
  if (accumulate) {
    RL_DISPATCH_ALL(dst->dtype, T, {
      using Op = rl::Accumulate<T>;
      const Op op;
      flat.dense ? void(rl::run_gather<T, Op>(rl::dense_gather(flat, box))) : run(rl::pair_loop<T, Op>, &op);
    });
  } else {
    rl::with_item_type(flat.item, [&](auto item) {
      using T = decltype(item);
      using Op = rl::Store<T>;
      const Op op;
      flat.dense ? void(rl::run_gather<T, Op>(rl::dense_gather(flat, box))) : run(rl::pair_loop<T, Op>, &op);
    });
  }
  return RL_OK;
}

}  // extern "C"
