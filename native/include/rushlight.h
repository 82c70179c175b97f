/* rushlight.h: the kernels of Rushlight as a C99 library.
 *
 * Every function works on tensor descriptors (the idea of DLPack's DLTensor): a pointer, a dtype, a shape and strides
 * in elements. The caller owns all memory, outputs included. A function returns RL_OK or a status whose message
 * rl_last_error() gives, for the calling thread. No function knows Python or automatic differentiation.
 */
#ifndef RUSHLIGHT_H
#define RUSHLIGHT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(RL_API)
#elif defined(_WIN32)
#define RL_API __declspec(dllexport)
#else
#define RL_API __attribute__((visibility("default")))
#endif

/* Most dimensions a descriptor may have. */
#define RL_MAX_DIMS 64

typedef enum rl_dtype {
  RL_BOOL = 0,
  RL_UINT8 = 1,
  RL_INT8 = 2,
  RL_INT16 = 3,
  RL_INT32 = 4,
  RL_INT64 = 5,
  RL_FLOAT16 = 6,
  RL_BFLOAT16 = 7,
  RL_FLOAT32 = 8,
  RL_FLOAT64 = 9,
  RL_COMPLEX64 = 10,
  RL_COMPLEX128 = 11,
  RL_COMPLEX32 = 12, /* two float16: kept and moved, computed as complex64 */
  RL_DTYPE_COUNT = 13
} rl_dtype;

typedef enum rl_status {
  RL_OK = 0,
  RL_VALUE_ERROR = 1,  /* an argument has a value the function cannot take */
  RL_TYPE_ERROR = 2,   /* a dtype the function cannot take */
  RL_INDEX_ERROR = 3,  /* an index is out of range */
  RL_MEMORY_ERROR = 4, /* memory could not be had */
  RL_RUNTIME_ERROR = 5 /* anything else */
} rl_status;

/* A tensor in memory. strides count elements, and may be 0 (broadcast) or negative. data points at element [0, ..., 0].
 * shape and strides may be NULL when ndim is 0. */
typedef struct rl_tensor {
  void* data;
  const int64_t* shape;
  const int64_t* strides;
  int32_t ndim;
  uint8_t dtype;  /* rl_dtype */
  uint8_t device; /* 0 is the CPU */
  uint8_t reserved[2];
} rl_tensor;

/* ---- library */

/* The message of the last failure in this thread, or "". Valid until the thread's next failure. */
RL_API const char* rl_last_error(void);
/* "0.1.0" */
RL_API const char* rl_version(void);
/* The instruction set in use: "default" (x86-64-v2 or the platform's baseline), "avx2", "avx512", "amx", "neon".
 * RUSHLIGHT_CPU_LEVEL in the environment forces one that the machine has. */
RL_API const char* rl_cpu_level(void);
RL_API size_t rl_dtype_size(rl_dtype dtype);
RL_API const char* rl_dtype_name(rl_dtype dtype);

/* ---- threads: at most this many run one kernel, the caller included. Results do not depend on the number. */
RL_API int rl_get_num_threads(void);
RL_API rl_status rl_set_num_threads(int threads);
/* Runs body(context, begin, end) over [0, count) in blocks of exactly `block` (the last may be shorter), in any order
 * and on any thread of the pool. Called from inside a body it runs serially. */
RL_API void rl_parallel_for(int64_t count, int64_t block, void (*body)(void* context, int64_t begin, int64_t end),
                            void* context);

/* ---- memory: a caching allocator of 64-byte aligned blocks. */
RL_API void* rl_allocate(size_t bytes); /* NULL when memory cannot be had (see rl_last_error); never NULL for 0 bytes */
RL_API void rl_deallocate(void* block); /* NULL is ignored */
typedef struct rl_memory_stats {
  int64_t allocated_bytes, allocated_blocks, peak_allocated_bytes; /* handed out now; most at one time */
  int64_t reserved_bytes, cached_blocks; /* held from the system, handed out or not; kept free */
  int64_t allocations, cache_hits;       /* since the start */
} rl_memory_stats;
RL_API void rl_memory_get_stats(rl_memory_stats* out);
RL_API void rl_memory_reset_peak(void);
RL_API void rl_memory_empty_cache(void);
RL_API void rl_memory_set_limit(int64_t bytes); /* most bytes to reserve; 0 for no limit */

#ifdef __cplusplus
}
#endif

/* ---- kernels by family */
#include "rushlight/cat.h"
#include "rushlight/conv.h"
#include "rushlight/create.h"
#include "rushlight/distance.h"
#include "rushlight/elementwise.h"
#include "rushlight/embedding.h"
#include "rushlight/fft.h"
#include "rushlight/index.h"
#include "rushlight/linalg.h"
#include "rushlight/loss.h"
#include "rushlight/matmul.h"
#include "rushlight/norm.h"
#include "rushlight/optimizer.h"
#include "rushlight/pool.h"
#include "rushlight/random.h"
#include "rushlight/reduce.h"
#include "rushlight/scan.h"
#include "rushlight/softmax.h"
#include "rushlight/sort.h"

#endif
