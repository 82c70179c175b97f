/* rushlight/pool.h: pooling over 1, 2 or 3 spatial dimensions. Part of rushlight.h.
 *
 * Tensors are [N, C, spatial...] with any strides. The output's sizes say where windows lie: output position y covers
 * input positions y * stride - padding + k * dilation for 0 <= k < kernel, as far as they exist. (A caller with
 * ceil_mode passes the larger output.) Every window of max pooling must hold at least one input element. Averages of
 * float16 and bfloat16 are computed in float32 and rounded once.
 */
#ifndef RUSHLIGHT_POOL_H
#define RUSHLIGHT_POOL_H

#include "../rushlight.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The first ndim - 2 entries of each array are used. */
typedef struct rl_pool_params {
  int64_t kernel[3], stride[3], padding[3], dilation[3]; /* average pooling takes no dilation: 1 */
  int count_include_pad;                                 /* average: padding counts as elements */
  int64_t divisor_override;                              /* average: divide by this; 0 for the number of elements */
} rl_pool_params;

/* The largest element of each window and, where indices (int64, out's shape, or NULL) are wanted, its position in the
 * input's spatial dimensions taken as one. NaN is larger than everything; of equal elements the first is taken.
 * Any real dtype but bool. */
RL_API rl_status rl_max_pool(const rl_tensor* input, const rl_pool_params* params, rl_tensor* out, rl_tensor* indices);
/* grad_input, fully written: each element of grad_out added at its index. Floating point dtypes. Indices out of range
 * are RL_INDEX_ERROR. Also the backward of adaptive max pooling. */
RL_API rl_status rl_max_pool_backward(const rl_tensor* grad_out, const rl_tensor* indices, rl_tensor* grad_input);

/* Floating point dtypes and int64. */
RL_API rl_status rl_avg_pool(const rl_tensor* input, const rl_pool_params* params, rl_tensor* out);
RL_API rl_status rl_avg_pool_backward(const rl_tensor* grad_out, const rl_pool_params* params, rl_tensor* grad_input);

/* Output position y of Y covers input positions floor(y * X / Y) to ceil((y + 1) * X / Y) - 1. Floating point dtypes.
 */
RL_API rl_status rl_adaptive_avg_pool(const rl_tensor* input, rl_tensor* out);
RL_API rl_status rl_adaptive_avg_pool_backward(const rl_tensor* grad_out, rl_tensor* grad_input);
RL_API rl_status rl_adaptive_max_pool(const rl_tensor* input, rl_tensor* out, rl_tensor* indices);

#ifdef __cplusplus
}
#endif
#endif
