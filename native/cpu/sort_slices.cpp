#include "cpu/sort_slices.h"

namespace rl {

void order_ties(const SliceWords& shape, int64_t n, SortSpace& space) {
  uint64_t* const words = space.words();
  const uint64_t* const keys = space.keys();
  const int bits = shape.index_bits;
  const uint64_t index_mask = (uint64_t{1} << bits) - 1, key_mask = (uint64_t{1} << shape.shift) - 1;
  for (int64_t begin = 0; begin < n;) {
    const uint64_t top = words[begin] >> bits;
    int64_t end = begin + 1;
    while (end < n && words[end] >> bits == top) ++end;
    const int64_t run = end - begin;
    if (run > 1 && shape.shift + bits <= 64) {
      // The lost bits, beside the index, order the run.
      uint64_t* const low = space.other() + begin;
      for (int64_t i = 0; i < run; ++i) {
        const uint64_t index = words[begin + i] & index_mask;
        low[i] = ((keys[index] - shape.least) & key_mask) << bits | index;
      }
      sort_words(low, words + begin, run, bits, bits + shape.shift);
      for (int64_t i = 0; i < run; ++i) words[begin + i] = low[i] & index_mask;
    } else if (run > 1) {
      std::sort(words + begin, words + end, [&](uint64_t a, uint64_t b) {
        const uint64_t key_a = keys[a & index_mask], key_b = keys[b & index_mask];
        return key_a != key_b ? key_a < key_b : (a & index_mask) < (b & index_mask);
      });
    }
    begin = end;
  }
}

rl_status plan_slices(const char* name, const rl_tensor& src, int32_t dim, int64_t out_n, const rl_tensor* values,
                      const rl_tensor* indices, Slices* plan) {
  if (is_complex_dtype(src.dtype))
    return fail(RL_TYPE_ERROR, "%s: expected a real dtype, got %s", name, dtype_text(src.dtype));
  if (dim < 0 || dim >= std::max(src.ndim, 1))
    return fail(RL_VALUE_ERROR, "%s: no dimension %d in %s", name, dim, shape_text(&src));
  if (values != nullptr && values->dtype != src.dtype) {
    return fail(RL_TYPE_ERROR, "%s: expected values of dtype %s, got %s", name, dtype_text(src.dtype),
                dtype_text(values->dtype));
  }
  if (indices != nullptr && indices->dtype != RL_INT64)
    return fail(RL_TYPE_ERROR, "%s: expected indices of dtype int64, got %s", name, dtype_text(indices->dtype));
  plan->item = dtype_size(src.dtype);
  plan->n = src.ndim == 0 ? 1 : src.shape[dim];
  plan->out_n = out_n < 0 ? plan->n : out_n;
  plan->words = plan->n;
  const rl_tensor* outs[2] = {values, indices};
  for (const rl_tensor* out : outs) {
    if (out == nullptr) continue;
    bool fits = out->ndim == src.ndim;
    for (int d = 0; d < src.ndim && fits; ++d) fits = out->shape[d] == (d == dim ? plan->out_n : src.shape[d]);
    if (!fits) {
      return fail(RL_VALUE_ERROR, "%s: expected an output of src's shape %s but %lld along dimension %d, got %s", name,
                  shape_text(&src), static_cast<long long>(plan->out_n), dim, shape_text(out));
    }
  }
  const auto bytes = [&](const rl_tensor* t, int64_t item, int d) { return t == nullptr ? 0 : t->strides[d] * item; };
  plan->outer.data[0] = static_cast<char*>(src.data);
  plan->outer.data[1] = values == nullptr ? nullptr : static_cast<char*>(values->data);
  plan->outer.data[2] = indices == nullptr ? nullptr : static_cast<char*>(indices->data);
  for (int d = 0; d < src.ndim; ++d) {
    if (d == dim) continue;
    plan->outer.push(src.shape[d], {bytes(&src, plan->item, d), bytes(values, plan->item, d), bytes(indices, 8, d)});
  }
  plan->outer.finish();
  const bool line = src.ndim > 0;
  plan->steps[0] = line ? bytes(&src, plan->item, dim) : plan->item;
  plan->steps[1] = line ? bytes(values, plan->item, dim) : plan->item;
  plan->steps[2] = line ? bytes(indices, 8, dim) : 8;
  return RL_OK;
}

namespace {

constexpr int64_t kGroup = 16;  // slices handled together where they lie across memory

// to[g][i] = from[i * step + g * across], or back.
template <class T>
void move_group(char* strided, int64_t step, int64_t across, char* dense, int64_t n, int64_t group, bool back) {
  T* lines = reinterpret_cast<T*>(dense);
  for (int64_t i = 0; i < n; ++i) {
    char* at = strided + i * step;
    for (int64_t g = 0; g < group; ++g, at += across) {
      if (back) {
        *reinterpret_cast<T*>(at) = lines[g * n + i];
      } else {
        lines[g * n + i] = *reinterpret_cast<T*>(at);
      }
    }
  }
}

void move_group(int64_t item, char* strided, int64_t step, int64_t across, char* dense, int64_t n, int64_t group,
                bool back) {
  with_item_type(item, [&](auto type) { move_group<decltype(type)>(strided, step, across, dense, n, group, back); });
}

rl_status run_slices(const Slices& plan, int64_t begin, int64_t end, SliceBody body, const void* context) {
  SortSpace space(plan.words);
  if (!space.ok()) return RL_MEMORY_ERROR;
  const Box<3>& outer = plan.outer;
  const int64_t n = plan.n, out_n = plan.out_n, item = plan.item;
  const bool want_values = outer.data[1] != nullptr, want_indices = outer.data[2] != nullptr;
  const bool across = plan.steps[0] != item || (want_values && plan.steps[1] != item && out_n > 1) ||
                      (want_indices && plan.steps[2] != 8 && out_n > 1);
  const bool grouped = across && n > 1 && n <= kSplitSlice && end - begin > 1;
  const int64_t line = (n * item + 63) / 64 * 64, out_line = (out_n * item + 63) / 64 * 64;
  Scratch<char> buffer(grouped ? kGroup * (line + out_line + out_n * 8) : 0);
  if (!buffer.ok()) return RL_MEMORY_ERROR;
  rl_status status = RL_OK;
  const auto run = [&](const SliceCall& call) {
    if (status == RL_OK) status = body(call, space, context);
  };
  walk(outer, begin, end, [&](char* const* p, int64_t slices) {
    const int64_t (&steps)[3] = outer.steps();
    for (int64_t first = 0; first < slices; first += kGroup) {
      const int64_t group = std::min(kGroup, slices - first);
      char* at[3];
      for (int k = 0; k < 3; ++k) at[k] = p[k] == nullptr ? nullptr : p[k] + first * steps[k];
      if (!grouped) {
        for (int64_t g = 0; g < group; ++g) {
          run({at[0], at[1], at[2], plan.steps[0], plan.steps[1], plan.steps[2], n});
          for (int k = 0; k < 3; ++k) at[k] = at[k] == nullptr ? nullptr : at[k] + steps[k];
        }
        continue;
      }
      char* const src = buffer.get();
      char* const values = src + kGroup * line;
      char* const indices = values + kGroup * out_line;
      move_group(item, at[0], plan.steps[0], steps[0], src, n, group, false);
      for (int64_t g = 0; g < group; ++g) {
        run({src + g * n * item, want_values ? values + g * out_n * item : nullptr,
             want_indices ? indices + g * out_n * 8 : nullptr, item, item, 8, n});
      }
      if (want_values) move_group(item, at[1], plan.steps[1], steps[1], values, out_n, group, true);
      if (want_indices) move_group(8, at[2], plan.steps[2], steps[2], indices, out_n, group, true);
    }
  });
  return status;
}

}  // namespace

rl_status for_each_slice(const Slices& plan, SliceBody body, const void* context) {
  const int64_t slices = plan.outer.count;
  if (slices == 0) return RL_OK;
  if (plan.n > kSplitSlice) return run_slices(plan, 0, slices, body, context);
  int64_t block = std::max<int64_t>(1, kBlockElements / std::max<int64_t>(1, plan.n));
  if (plan.steps[0] != plan.item) block = std::max(block, kGroup);
  return parallel_for(slices, block,
                      [&](int64_t begin, int64_t end) { return run_slices(plan, begin, end, body, context); });
}

}  // namespace rl
