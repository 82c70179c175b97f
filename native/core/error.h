// Failures: a status, and a message kept for the calling thread.
#pragma once

#include "rushlight.h"

namespace rl {

// Keeps the formatted message for this thread (rl_last_error) and returns `status`:
//   return rl::fail(RL_VALUE_ERROR, "matmul: the inner sizes differ; expected %lld, got %lld", ...);
__attribute__((format(printf, 2, 3), cold)) rl_status fail(rl_status status, const char* format, ...);

// "[2, 3, 4]" in a ring of per-thread buffers: valid until the eighth further call of this thread. Long shapes end in
// "...".
const char* shape_text(const int64_t* shape, int ndim);
inline const char* shape_text(const rl_tensor* t) { return shape_text(t->shape, t->ndim); }

// "float32", or "dtype 99" for a number that is none.
const char* dtype_text(int dtype);

// A failure for complex32, which most kernels do not take.
inline rl_status refuse_complex32(const char* name, int dtype) {
  return dtype == RL_COMPLEX32 ? fail(RL_TYPE_ERROR, "%s: not implemented for complex32", name) : RL_OK;
}

}  // namespace rl

// Returns from the calling function when `expression` is not RL_OK.
#define RL_TRY(expression)                        \
  do {                                            \
    const rl_status rl_try_status = (expression); \
    if (rl_try_status != RL_OK) [[unlikely]]      \
      return rl_try_status;                       \
  } while (0)

// Body of an extern "C" function that may throw: RL_GUARD_BEGIN ... RL_GUARD_END turns exceptions into a status.
#define RL_GUARD_BEGIN try {
#define RL_GUARD_END                                                          \
  }                                                                           \
  catch (const std::bad_alloc&) {                                             \
    return rl::fail(RL_MEMORY_ERROR, "%s: out of memory", __func__);          \
  }                                                                           \
  catch (const std::exception& error) {                                       \
    return rl::fail(RL_RUNTIME_ERROR, "%s: %s", __func__, error.what());      \
  }                                                                           \
  catch (...) {                                                               \
    return rl::fail(RL_RUNTIME_ERROR, "%s: unknown C++ exception", __func__); \
  }
