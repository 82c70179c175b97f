// Parallel loops for C++: rl::parallel_for over rl_parallel_for's pool.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/error.h"
#include "rushlight.h"

namespace rl {
namespace detail {

using BlockFunction = void (*)(void* context, int64_t begin, int64_t end);
using StatusBlockFunction = rl_status (*)(void* context, int64_t begin, int64_t end);

// Both run every block exactly once. An exception of a block is thrown again in the caller once all blocks have ended.
void run_blocks(int64_t count, int64_t block, BlockFunction body, void* context);
// Returns the status of the first failing block in index order, its message now being the caller's last error. Blocks
// after a failed one may be skipped.
rl_status run_status_blocks(int64_t count, int64_t block, StatusBlockFunction body, void* context);

}  // namespace detail

// True inside a parallel loop's body, where further loops run serially.
bool in_parallel_region();

// Calls body(begin, end) over [0, count) in blocks of exactly `block` elements (the last may be shorter), in any order,
// on the threads of the pool; serially when called from inside a body. Blocks never depend on the number of threads, so
// partial results kept per block (begin / block) and combined in order give the same bits with any number. body may
// return rl_status, and then the loop does too.
template <class Body>
static inline auto parallel_for(int64_t count, int64_t block, Body&& body) {
  using Function = std::remove_reference_t<Body>;
  using Result = decltype(body(int64_t{}, int64_t{}));
  if constexpr (std::is_same_v<Result, rl_status>) {
    if (count <= 0) return RL_OK;
    if (count <= block) return static_cast<rl_status>(body(int64_t{0}, count));
    return detail::run_status_blocks(
        count, block,
        [](void* context, int64_t begin, int64_t end) { return (*static_cast<Function*>(context))(begin, end); },
        const_cast<void*>(static_cast<const void*>(&body)));
  } else {
    if (count <= 0) return;
    if (count <= block) {
      body(int64_t{0}, count);
      return;
    }
    detail::run_blocks(
        count, block, [](void* context, int64_t begin, int64_t end) { (*static_cast<Function*>(context))(begin, end); },
        const_cast<void*>(static_cast<const void*>(&body)));
  }
}

}  // namespace rl
