// rl_sort and rl_sort_slices.
#include <new>

#include "cpu/index_values.h"
#include "cpu/sort_count.h"

namespace rl {
namespace {

template <class T>
rl_status sort_body(const SliceCall& call, SortSpace& space, const void* context) {
  const bool reverse = *static_cast<const bool*>(context);
  if constexpr (kCountable<T>) {
    if (sorts_by_counting<T>(call.n)) return sort_counted<T>(call, call.n, reverse);
  }
  const SliceWords shape = sort_slice<T>(call.src, call.src_step, call.n, reverse, space);
  emit_words<T>(call, shape, space.words(), call.n, reverse);
  return RL_OK;
}

// Compares slices element by element.
struct SliceOrder {
  Box<1> box;  // one slice, from its first element
  int64_t step;
};

template <class T>
bool slice_less(const SliceOrder& order, int64_t a, int64_t b) {
  const Box<1>& box = order.box;
  const int64_t step = box.steps()[0];
  int result = 0;
  walk(box, [&](char* const* p, int64_t n) {
    if (result != 0) return;
    for (int64_t i = 0; i < n; ++i) {
      const auto key_a = load_key<T>(p[0] + a * order.step + i * step);
      const auto key_b = load_key<T>(p[0] + b * order.step + i * step);
      if (key_a != key_b) {
        result = key_a < key_b ? -1 : 1;
        return;
      }
    }
  });
  return result < 0;
}

}  // namespace
}  // namespace rl

extern "C" {

rl_status rl_sort(const rl_tensor* src, int32_t dim, int descending, const rl_tensor* values,
                  const rl_tensor* indices) {
  rl::Slices plan;
  RL_TRY(rl::plan_slices("sort", *src, dim, -1, values, indices, &plan));
  const bool reverse = descending != 0;
  rl::SliceBody body = nullptr;
  RL_DISPATCH_REAL(src->dtype, T, {
    body = rl::sort_body<T>;
    if (rl::sorts_by_counting<T>(plan.n)) plan.words = 0;
  });
  return rl::for_each_slice(plan, body, &reverse);
}

rl_status rl_sort_slices(const rl_tensor* src, int32_t dim, const rl_tensor* order) {
  if (rl::is_complex_dtype(src->dtype))
    return rl::fail(RL_TYPE_ERROR, "sort_slices: expected a real dtype, got %s", rl::dtype_text(src->dtype));
  if (dim < 0 || dim >= src->ndim)
    return rl::fail(RL_VALUE_ERROR, "sort_slices: no dimension %d in %s", dim, rl::shape_text(src));
  const int64_t n = src->shape[dim], item = rl::dtype_size(src->dtype);
  if (order->dtype != RL_INT64 || order->ndim != 1 || order->shape[0] != n) {
    return rl::fail(RL_VALUE_ERROR, "sort_slices: expected an int64 output of shape [%lld], got %s %s",
                    static_cast<long long>(n), rl::dtype_text(order->dtype), rl::shape_text(order));
  }
  rl::SliceOrder slices;
  slices.step = src->strides[dim] * item;
  slices.box.data[0] = static_cast<char*>(src->data);
  for (int d = 0; d < src->ndim; ++d) {
    if (d != dim) slices.box.push(src->shape[d], {src->strides[d] * item});
  }
  slices.box.finish();
  rl::Scratch<int64_t> sorted(n);
  if (!sorted.ok()) return RL_MEMORY_ERROR;
  for (int64_t i = 0; i < n; ++i) sorted[i] = i;
  RL_GUARD_BEGIN
  RL_DISPATCH_REAL(src->dtype, T, {
    std::stable_sort(sorted.get(), sorted.get() + n,
                     [&](int64_t a, int64_t b) { return rl::slice_less<T>(slices, a, b); });
  });
  RL_GUARD_END
  for (int64_t i = 0; i < n; ++i) static_cast<int64_t*>(order->data)[i * order->strides[0]] = sorted[i];
  return RL_OK;
}

}  // extern "C"
