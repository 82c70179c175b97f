// Advanced indexing: one loop for all kernels in which some dims of a tensor X are indexed, the others are kept, and
// each element met is paired with one of a dense tensor Y.
#pragma once

#include <atomic>
#include <cstddef>

#include "cpu/index_rows.h"
#include "cpu/index_values.h"
#include "cpu/index_walk.h"
#include "rushlight/index.h"

namespace rl {

inline constexpr int64_t kIndexChunk = 512;  // positions whose offsets are kept at hand

struct Indexed {
  // Kept dims before and after the indexed ones; operand 0 is X, 1 is Y.
  Box<2> outer, inner;
  // The positions: the common shape of the indices, as Y strides through it.
  Box<1> positions;
  int32_t n;
  bool wrap;  // negative indices count from the end
  struct Index {
    Box<1> box;
    int64_t size, step;  // of the dim of X, step in bytes
    int32_t dim;
  };
  const Index& index(int j) const { return reinterpret_cast<const Index*>(indices)[j]; }
  Index& index(int j) { return reinterpret_cast<Index*>(indices)[j]; }
  alignas(Index) std::byte indices[RL_MAX_DIMS][sizeof(Index)];  // n of them are made
};

// Checks the shapes and fills the plan. See rl_index_get for the arguments.
rl_status plan_indexed(const char* name, const rl_tensor& x, int32_t n, const rl_tensor* const* indices,
                       const int32_t* dims, int32_t at, const rl_tensor& y, bool wrap, Indexed* plan);
// RL_INDEX_ERROR for the first index out of range, if there is one.
rl_status check_indices(const Indexed& plan);
// Byte offsets of positions [begin, begin + n) in X and in Y; false when an index is out of range.
bool index_offsets(const Indexed& plan, int64_t begin, int64_t n, int64_t* x, int64_t* y);

// Whether the dtype can be reduced so.
bool scatter_takes(rl_scatter_mode mode, int dtype);
// The value that leaves any other unchanged under `mode`, in dtype's 1 to 16 bytes.
void scatter_neutral(rl_scatter_mode mode, int dtype, void* out);
// dst /= counts where those exceed 1; counts: int64 of dst's shape.
void divide_by_counts(const rl_tensor& dst, const rl_tensor& counts);

// The typed loop: n positions, x[i] and y[i] bytes from the bases, and at each of them `run` elements that are step_x
// and step_y bytes apart.
using PairLoop = void (*)(char* base_x, char* base_y, const int64_t* x, const int64_t* y, int64_t n, int64_t run,
                          int64_t step_x, int64_t step_y, const void* op);

template <class T, class Op>
void pair_loop(char* base_x, char* base_y, const int64_t* x, const int64_t* y, int64_t n, int64_t run, int64_t step_x,
               int64_t step_y, const void* state) {
  const Op& op = *static_cast<const Op*>(state);
  if (run == 1) {
    for (int64_t i = 0; i < n; ++i) op(*reinterpret_cast<T*>(base_x + x[i]), *reinterpret_cast<T*>(base_y + y[i]));
    return;
  }
  const int64_t item = static_cast<int64_t>(sizeof(T));
  const bool dense = step_x == item && step_y == item;
  for (int64_t i = 0; i < n; ++i) {
    char* px = base_x + x[i];
    char* py = base_y + y[i];
    if (dense) {
      if constexpr (Op::kCopies && Op::kOrdered) {
        std::memcpy(px, py, sizeof(T) * static_cast<size_t>(run));
      } else if constexpr (Op::kCopies) {
        std::memcpy(py, px, sizeof(T) * static_cast<size_t>(run));
      } else if constexpr (Op::kAdds) {
        row_table().add[dtype_of<T>](px, py, run);
      } else {
#pragma GCC ivdep
        for (int64_t j = 0; j < run; ++j) op(reinterpret_cast<T*>(px)[j], reinterpret_cast<T*>(py)[j]);
      }
    } else {
      for (int64_t j = 0; j < run; ++j, px += step_x, py += step_y)
        op(*reinterpret_cast<T*>(px), *reinterpret_cast<T*>(py));
    }
  }
}

// ---- an index per element: the loop of gather, scatter, take, put, and of advanced indexing where single elements are
// met

struct Gather {
  Box<3> box;          // of the index's shape: X (standing still along the indexed dim), index, Y
  int64_t size, step;  // of the indexed dim, step in bytes
  bool wrap;           // negative indices count from the end
};

// One run: x, index and y advance by their steps; the element of X lies index * step bytes further. False when an index
// is out of range.
struct GatherRun {
  int64_t n, step_x, step_index, step_y;
  int64_t size, step, wrap;
};
using GatherLoop = bool (*)(char* x, const char* index, char* y, const GatherRun& run);

template <class T, class Op>
bool gather_loop(char* x, const char* index, char* y, const GatherRun& run) {
  const Op op;
  constexpr int64_t item = static_cast<int64_t>(sizeof(T));
  const int64_t n = run.n, step = run.step;
  const uint64_t size = static_cast<uint64_t>(run.size), wrap = static_cast<uint64_t>(run.wrap);
  if (run.step_x == 0 && run.step_index == 8 && run.step_y == item && step == item) {
    const int64_t* indices = reinterpret_cast<const int64_t*>(index);
    T* to_x = reinterpret_cast<T*>(x);
    T* to_y = reinterpret_cast<T*>(y);
    for (int64_t i = 0; i < n; ++i) {
      uint64_t value = static_cast<uint64_t>(indices[i]);
      if (value >= size) [[unlikely]] {
        value += wrap;  // a negative index, unless it stays out of range
        if (value >= size) return false;
      }
      op(to_x[value], to_y[i]);
    }
    return true;
  }
  const int64_t step_x = run.step_x, step_index = run.step_index, step_y = run.step_y;
  for (int64_t i = 0; i < n; ++i) {
    uint64_t value = *reinterpret_cast<const uint64_t*>(index + i * step_index);
    if (value >= size) [[unlikely]] {
      value += wrap;
      if (value >= size) return false;
    }
    op(*reinterpret_cast<T*>(x + i * step_x + static_cast<int64_t>(value) * step),
       *reinterpret_cast<T*>(y + i * step_y));
  }
  return true;
}

// False when an index is out of range.
bool run_gather(const Gather& plan, GatherLoop loop, bool ordered);

template <class T, class Op>
inline bool run_gather(const Gather& plan) {
  return run_gather(plan, gather_loop<T, Op>, Op::kOrdered);
}

// Runs the loop over every pair. Ordered ones (values that meet in one x come in order) expect check_indices to have
// passed. `single` does the same where single elements are met, or is null.
rl_status run_indexed(const Indexed& plan, PairLoop loop, const void* op, GatherLoop single, bool ordered);

template <class T, class Op>
inline rl_status run_indexed(const Indexed& plan, const Op& op) {
  if constexpr (std::is_empty_v<Op>) {
    return run_indexed(plan, pair_loop<T, Op>, &op, gather_loop<T, Op>, Op::kOrdered);
  } else {
    return run_indexed(plan, pair_loop<T, Op>, &op, nullptr, Op::kOrdered);
  }
}

}  // namespace rl
