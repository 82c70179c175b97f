// What embeddings and bags share: adding rows to those an index names, in order.
#pragma once

#include "cpu/index_rows.h"
#include "cpu/index_walk.h"

namespace rl {

// `count` rows to be added; load gives row i dense (perhaps in `line`), or null to pass over it. A negative destination
// is nowhere.
struct RowSource {
  int64_t count;
  const int64_t* rows_of;  // destinations
  const void* (*load)(const RowSource& source, int64_t i, void* line);
  int64_t row(int64_t i) const { return rows_of[i]; }
};

// out (rows, size) = the sums, in order of i. Threaded.
rl_status add_rows(const RowSource& source, const rl_tensor& out);
// RL_INDEX_ERROR when an index is not in [0, rows).
rl_status check_rows(const rl_tensor& indices, int64_t rows);
// How often each of the checked indices occurs.
rl_status count_rows(const rl_tensor& indices, int64_t* counts, int64_t rows);

// The indices in row-major order, dense.
inline void copy_indices(const rl_tensor& indices, int64_t* out) {
  Box<1> box;
  box_of(indices, box);
  walk(box, [&](char* const* p, int64_t n) {
    for (int64_t i = 0; i < n; ++i) *out++ = *reinterpret_cast<const int64_t*>(p[0] + i * box.steps()[0]);
  });
}

}  // namespace rl
