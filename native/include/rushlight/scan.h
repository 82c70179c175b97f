/* rushlight/scan.h: running sums, products and extremes along a dimension.
 *
 * `out` has the shape of `in`; elements are converted to the dtype of `out` first (integers add up modulo 2^64,
 * float16, bfloat16 and float32 in higher precision). dim may be negative. `out` may be `in` itself. Results do not
 * depend on the number of threads.
 */
#ifndef RUSHLIGHT_SCAN_H
#define RUSHLIGHT_SCAN_H

#include "../rushlight.h"

#ifdef __cplusplus
extern "C" {
#endif

RL_API rl_status rl_cumsum(const rl_tensor* in, int dim, const rl_tensor* out);
RL_API rl_status rl_cumprod(const rl_tensor* in, int dim, const rl_tensor* out);
/* log(cumsum(exp(in))), floating point or complex. */
RL_API rl_status rl_logcumsumexp(const rl_tensor* in, int dim, const rl_tensor* out);
/* Real numbers. `indices` (int64) name the last of equals and the last NaN so far; a NaN stays. values: dtype of in. */
RL_API rl_status rl_cummax(const rl_tensor* in, int dim, const rl_tensor* values, const rl_tensor* indices);
RL_API rl_status rl_cummin(const rl_tensor* in, int dim, const rl_tensor* values, const rl_tensor* indices);

#ifdef __cplusplus
}
#endif
#endif
