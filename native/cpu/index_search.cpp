// Binary searches: searchsorted and isin.
#include <atomic>

#include "cpu/index_values.h"
#include "cpu/index_walk.h"
#include "rushlight/index.h"

namespace rl {
namespace {

constexpr int64_t kLanes = 8;  // searches that run side by side, each hiding the other's latency

// bool memory may hold any byte.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

template <class T>
inline compute_type<T> load_value(const char* at) {
  if constexpr (std::is_same_v<T, bool>) {
    return *reinterpret_cast<const uint8_t*>(at) != 0;
  } else {
    return static_cast<compute_type<T>>(*reinterpret_cast<const T*>(at));
  }
}

// A sorted sequence in memory, perhaps read through a sorter.
struct Sequence {
  const char* data;
  int64_t step, n;
  const char* sorter;
  int64_t sorter_step;
  template <class T>
  bool dense() const {
    return sorter == nullptr && step == static_cast<int64_t>(sizeof(T));
  }
  template <class T, bool kDense>
  inline compute_type<T> at(int64_t i) const {
    if constexpr (kDense) return load_value<T>(data + i * static_cast<int64_t>(sizeof(T)));
    if (sorter != nullptr) i = *reinterpret_cast<const int64_t*>(sorter + i * sorter_step);
    return load_value<T>(data + i * step);
  }
};

// result[lane] = how many leading elements `before` holds for, given that it holds for a prefix.
template <class T, bool kDense, class Before>
inline void search_lanes(const Sequence& sequence, const compute_type<T>* values, int64_t lanes, int64_t* result,
                         const Before& before) {
  for (int64_t lane = 0; lane < lanes; ++lane) result[lane] = 0;
  if (sequence.n == 0) return;
  int64_t length = sequence.n;
  while (length > 1) {
    const int64_t half = length / 2;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      // Arithmetic, not a branch: which way a search goes cannot be foretold.
      const int64_t forward = before(sequence.at<T, kDense>(result[lane] + half - 1), values[lane]);
      result[lane] += half & -forward;
    }
    length -= half;
  }
  for (int64_t lane = 0; lane < lanes; ++lane)
    result[lane] += before(sequence.at<T, kDense>(result[lane]), values[lane]);
}

template <class T, bool kDense, class Before, class Write>
inline void search_run(const Sequence& sequence, const char* values, int64_t step, int64_t n, const Before& before,
                       const Write& write) {
  compute_type<T> lanes[kLanes];
  int64_t result[kLanes];
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = load_value<T>(values + (i + lane) * step);
    search_lanes<T, kDense>(sequence, lanes, kLanes, result, before);
    for (int64_t lane = 0; lane < kLanes; ++lane) write(i + lane, result[lane], lanes[lane]);
  }
  for (; i < n; ++i) {
    lanes[0] = load_value<T>(values + i * step);
    search_lanes<T, kDense>(sequence, lanes, 1, result, before);
    write(i, result[0], lanes[0]);
  }
}

template <class T, bool kDense>
void searchsorted_run(const Sequence& sequence, const char* values, int64_t step, int64_t n, bool right, char* out,
                      int64_t step_out, bool wide) {
  const auto write = [&](int64_t i, int64_t result, compute_type<T>) {
    if (wide) {
      *reinterpret_cast<int64_t*>(out + i * step_out) = result;
    } else {
      *reinterpret_cast<int32_t*>(out + i * step_out) = static_cast<int32_t>(result);
    }
  };
  using C = compute_type<T>;
  if (right) {
    search_run<T, kDense>(sequence, values, step, n, [](C element, C value) { return !(element > value); }, write);
  } else {
    search_run<T, kDense>(sequence, values, step, n, [](C element, C value) { return !(element >= value); }, write);
  }
}

template <class T>
void isin_run(const Sequence& sequence, const char* values, int64_t step, int64_t n, bool invert, char* out,
              int64_t step_out) {
  using C = compute_type<T>;
  const auto write = [&](int64_t i, int64_t result, C value) {
    const bool found = result < sequence.n && sequence.at<T, false>(result) == value;
    *reinterpret_cast<uint8_t*>(out + i * step_out) = found != invert;
  };
  search_run<T, false>(sequence, values, step, n, [](C element, C value) { return element < value; }, write);
}

rl_status check_sorter(const rl_tensor& sorter, int64_t n) {
  Box<1> box;
  box_of(sorter, box);
  bool bad = false;
  walk(box, [&](char* const* p, int64_t run) {
    for (int64_t i = 0; i < run; ++i)
      bad |= *reinterpret_cast<const uint64_t*>(p[0] + i * box.steps()[0]) >= static_cast<uint64_t>(n);
  });
  return bad ? fail(RL_RUNTIME_ERROR, "searchsorted: sorter index out of range") : RL_OK;
}

}  // namespace
}  // namespace rl

extern "C" {

rl_status rl_searchsorted(const rl_tensor* sequence, const rl_tensor* values, const rl_tensor* sorter, int right,
                          const rl_tensor* out) {
  using rl::fail;
  if (sequence->dtype != values->dtype || rl::is_complex_dtype(values->dtype)) {
    return fail(RL_TYPE_ERROR, "searchsorted: expected a sequence and values of one real dtype, got %s and %s",
                rl::dtype_text(sequence->dtype), rl::dtype_text(values->dtype));
  }
  if (out->dtype != RL_INT64 && out->dtype != RL_INT32)
    return fail(RL_TYPE_ERROR, "searchsorted: expected an int64 or int32 output, got %s", rl::dtype_text(out->dtype));
  const bool shared = sequence->ndim == 1;  // one sequence for all values
  bool fits = rl::same_shape(*values, *out) && sequence->ndim >= 1 && (shared || sequence->ndim == values->ndim);
  for (int d = 0; fits && !shared && d + 1 < values->ndim; ++d) fits = sequence->shape[d] == values->shape[d];
  if (!fits || (sorter != nullptr && (sorter->dtype != RL_INT64 || !rl::same_shape(*sorter, *sequence)))) {
    return fail(RL_VALUE_ERROR, "searchsorted: shapes do not fit: sequence %s, values %s, output %s",
                rl::shape_text(sequence), rl::shape_text(values), rl::shape_text(out));
  }
  const int last = sequence->ndim - 1;
  const int64_t n = sequence->shape[last], item = rl::dtype_size(values->dtype);
  if (sorter != nullptr) RL_TRY(rl::check_sorter(*sorter, n));
  const int64_t item_out = rl::dtype_size(out->dtype);
  // Operands: values, out, sequence and sorter (which stand still along the last dim of values).
  rl::Box<4> box;
  box.data[0] = static_cast<char*>(values->data);
  box.data[1] = static_cast<char*>(out->data);
  box.data[2] = static_cast<char*>(sequence->data);
  box.data[3] = sorter == nullptr ? box.data[2] : static_cast<char*>(sorter->data);
  for (int d = 0; d < values->ndim; ++d) {
    const bool row = !shared && d < last;
    box.push(values->shape[d],
             {values->strides[d] * item, out->strides[d] * item_out, row ? sequence->strides[d] * item : 0,
              row ? (sorter == nullptr ? sequence->strides[d] * item : sorter->strides[d] * 8) : 0});
  }
  box.finish();
  const int64_t step = sequence->strides[last] * item, sorter_step = sorter == nullptr ? 0 : sorter->strides[last] * 8;
  RL_DISPATCH_REAL(values->dtype, T, {
    rl::parallel_for(box.count, 2048, [&](int64_t begin, int64_t end) {
      rl::walk(box, begin, end, [&](char* const* p, int64_t run) {
        const int64_t (&steps)[4] = box.steps();
        // Rows of one value each may have been merged into a run: then the sequence moves along.
        const int64_t group = steps[2] != 0 || steps[3] != 0 ? 1 : run;
        for (int64_t i = 0; i < run; i += group) {
          const rl::Sequence row{p[2] + i * steps[2], step, n, sorter == nullptr ? nullptr : p[3] + i * steps[3],
                                 sorter_step};
          const auto search = row.dense<T>() ? rl::searchsorted_run<T, true> : rl::searchsorted_run<T, false>;
          search(row, p[0] + i * steps[0], steps[0], group, right != 0, p[1] + i * steps[1], steps[1],
                 out->dtype == RL_INT64);
        }
      });
    });
  });
  return RL_OK;
}

rl_status rl_isin(const rl_tensor* elements, const rl_tensor* sorted, int invert, const rl_tensor* out) {
  if (elements->dtype != sorted->dtype || rl::is_complex_dtype(elements->dtype) || out->dtype != RL_BOOL) {
    return rl::fail(RL_TYPE_ERROR, "isin: expected tensors of one real dtype and a bool output, got %s, %s and %s",
                    rl::dtype_text(elements->dtype), rl::dtype_text(sorted->dtype), rl::dtype_text(out->dtype));
  }
  if (sorted->ndim != 1 || !rl::same_shape(*elements, *out)) {
    return rl::fail(RL_VALUE_ERROR, "isin: shapes do not fit: elements %s, sorted %s, output %s",
                    rl::shape_text(elements), rl::shape_text(sorted), rl::shape_text(out));
  }
  const int64_t item = rl::dtype_size(elements->dtype);
  rl::Box<2> box;
  box.data[0] = static_cast<char*>(elements->data);
  box.data[1] = static_cast<char*>(out->data);
  for (int d = 0; d < elements->ndim; ++d) box.push(elements->shape[d], {elements->strides[d] * item, out->strides[d]});
  box.finish();
  const rl::Sequence sequence{static_cast<const char*>(sorted->data), sorted->strides[0] * item, sorted->shape[0],
                              nullptr, 0};
  RL_DISPATCH_REAL(elements->dtype, T, {
    rl::parallel_for(box.count, 2048, [&](int64_t begin, int64_t end) {
      rl::walk(box, begin, end, [&](char* const* p, int64_t run) {
        rl::isin_run<T>(sequence, p[0], box.steps()[0], run, invert != 0, p[1], box.steps()[1]);
      });
    });
  });
  return RL_OK;
}

}  // extern "C"
