/* rushlight/softmax.h: softmax and its logarithm along a dimension.
 *
 * All tensors have one shape; `in` is converted to the dtype of `out` first. Floating point results; float16 and
 * bfloat16 work in float32. A run that is all -inf, or has +inf or NaN, gives NaN. `out` may be `in`. dim may be
 * negative.
 */
#ifndef RUSHLIGHT_SOFTMAX_H
#define RUSHLIGHT_SOFTMAX_H

#include "../rushlight.h"

#ifdef __cplusplus
extern "C" {
#endif

RL_API rl_status rl_softmax(const rl_tensor* in, int dim, const rl_tensor* out);
RL_API rl_status rl_log_softmax(const rl_tensor* in, int dim, const rl_tensor* out);
/* From the gradient of the result and the result itself. */
RL_API rl_status rl_softmax_backward(const rl_tensor* grad, const rl_tensor* result, int dim, const rl_tensor* grad_in);
RL_API rl_status rl_log_softmax_backward(const rl_tensor* grad, const rl_tensor* result, int dim,
                                         const rl_tensor* grad_in);

#ifdef __cplusplus
}
#endif
#endif
