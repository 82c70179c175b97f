#include "core/error.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/dtype.h"

namespace rl {
namespace {

constexpr int kMessageBytes = 1024;
constexpr int kShapeBytes = 256;
constexpr int kShapeBuffers = 8;

struct ErrorState {
  char message[kMessageBytes];
  char shapes[kShapeBuffers][kShapeBytes];
  int next_shape;
};

// Memory in thread-local storage itself is scarce for a library that is loaded late, so each thread keeps a pointer.
struct ErrorHolder {
  ErrorState* state = nullptr;
  ~ErrorHolder() {
    std::free(state);
    state = nullptr;
  }
};
thread_local ErrorHolder t_error;

ErrorState& error_state() {
  if (t_error.state == nullptr) t_error.state = static_cast<ErrorState*>(std::calloc(1, sizeof(ErrorState)));
  static ErrorState shared;  // better a message that threads share than none
  return t_error.state != nullptr ? *t_error.state : shared;
}

}  // namespace

rl_status fail(rl_status status, const char* format, ...) {
  // Formatted aside first: an argument may be the previous message.
  char text[kMessageBytes];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  std::memcpy(error_state().message, text, sizeof text);
  return status;
}

const char* shape_text(const int64_t* shape, int ndim) {
  ErrorState& state = error_state();
  char* const text = state.shapes[static_cast<unsigned>(state.next_shape++) % kShapeBuffers];
  int used = std::snprintf(text, kShapeBytes, "[");
  for (int i = 0; i < ndim; ++i) {
    if (used > kShapeBytes - 32) {
      used += std::snprintf(text + used, static_cast<size_t>(kShapeBytes - used), ", ...");
      break;
    }
    used += std::snprintf(text + used, static_cast<size_t>(kShapeBytes - used), i ? ", %lld" : "%lld",
                          static_cast<long long>(shape[i]));
  }
  std::snprintf(text + used, static_cast<size_t>(kShapeBytes - used), "]");
  return text;
}

const char* dtype_text(int dtype) {
  if (dtype >= 0 && dtype < RL_DTYPE_COUNT) return rl_dtype_name(static_cast<rl_dtype>(dtype));
  ErrorState& state = error_state();
  char* const text = state.shapes[static_cast<unsigned>(state.next_shape++) % kShapeBuffers];
  std::snprintf(text, kShapeBytes, "dtype %d", dtype);
  return text;
}

}  // namespace rl

const char* rl_last_error(void) { return rl::error_state().message; }

const char* rl_version(void) { return RL_VERSION; }

size_t rl_dtype_size(rl_dtype dtype) {
  static constexpr uint8_t sizes[RL_DTYPE_COUNT] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 4};
  return static_cast<unsigned>(dtype) < RL_DTYPE_COUNT ? sizes[dtype] : 0;
}

const char* rl_dtype_name(rl_dtype dtype) {
  static constexpr const char* names[RL_DTYPE_COUNT] = {"bool",      "uint8",      "int8",     "int16",   "int32",
                                                        "int64",     "float16",    "bfloat16", "float32", "float64",
                                                        "complex64", "complex128", "complex32"};
  return static_cast<unsigned>(dtype) < RL_DTYPE_COUNT ? names[dtype] : "unknown";
}
