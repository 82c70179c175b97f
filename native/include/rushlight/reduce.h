/* rushlight/reduce.h: reductions.
 *
 * `out` has the number of dimensions of `in`, and size 1 where it is reduced (any set of dimensions); sizes, dtypes and
 * strides are otherwise free: the result is converted to the dtype of `out` as it is stored, and the elements of `in`
 * are read in the working type that this implies (int64 for integers; float32 for float16, bfloat16 and float32, added
 * up so that no representable result overflows or loses digits; else float64). No output may overlap an input.
 * Reductions over nothing give the identity; those without one fail with RL_VALUE_ERROR.
 * Results do not depend on the number of threads.
 */
#ifndef RUSHLIGHT_REDUCE_H
#define RUSHLIGHT_REDUCE_H

#include "../rushlight.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sum, sum without NaNs, product. Any dtype in; a complex `in` needs a complex `out`, an integer `out` sums modulo
 * 2^64, and a bool `out` tells whether the result of the elements as bools differs from 0. */
RL_API rl_status rl_sum(const rl_tensor* in, const rl_tensor* out);
RL_API rl_status rl_nansum(const rl_tensor* in, const rl_tensor* out);
RL_API rl_status rl_prod(const rl_tensor* in, const rl_tensor* out);
/* Mean; `out` floating point or complex. Never overflows where the mean itself does not. */
RL_API rl_status rl_mean(const rl_tensor* in, const rl_tensor* out);
/* Sum of |x|^2; `out` real. */
RL_API rl_status rl_sum_of_squares(const rl_tensor* in, const rl_tensor* out);

/* Extremes of real numbers. NaN wins. */
RL_API rl_status rl_amax(const rl_tensor* in, const rl_tensor* out);
RL_API rl_status rl_amin(const rl_tensor* in, const rl_tensor* out);
RL_API rl_status rl_aminmax(const rl_tensor* in, const rl_tensor* out_min, const rl_tensor* out_max);
/* Index (int64) of the extreme in row-major order of the reduced dimensions: the first of equals, the first NaN before
 * all. The second pair also gives the value. */
RL_API rl_status rl_argmax(const rl_tensor* in, const rl_tensor* out);
RL_API rl_status rl_argmin(const rl_tensor* in, const rl_tensor* out);
RL_API rl_status rl_max_with_indices(const rl_tensor* in, const rl_tensor* values, const rl_tensor* indices);
RL_API rl_status rl_min_with_indices(const rl_tensor* in, const rl_tensor* values, const rl_tensor* indices);

/* Any dtype in; `out` bool or uint8 for any and all, int64 for the count. NaN differs from 0. */
RL_API rl_status rl_any(const rl_tensor* in, const rl_tensor* out);
RL_API rl_status rl_all(const rl_tensor* in, const rl_tensor* out);
RL_API rl_status rl_count_nonzero(const rl_tensor* in, const rl_tensor* out);

/* Variance and standard deviation: sum |x - mean|^2 / max(0, n - correction). Floating point or complex in, real out
 * (mean: as `in`). Equal values give exactly 0. */
RL_API rl_status rl_var(const rl_tensor* in, double correction, const rl_tensor* out);
RL_API rl_status rl_std(const rl_tensor* in, double correction, const rl_tensor* out);
RL_API rl_status rl_var_mean(const rl_tensor* in, double correction, const rl_tensor* var, const rl_tensor* mean);
RL_API rl_status rl_std_mean(const rl_tensor* in, double correction, const rl_tensor* std, const rl_tensor* mean);

/* Vector norm (sum |x|^p)^(1/p); p = 0 counts, p = +-inf are the extremes of |x|. Floating point or complex in, real
 * out. Neither overflows nor underflows where the norm itself does not. */
RL_API rl_status rl_norm(const rl_tensor* in, double p, const rl_tensor* out);

/* log(sum(exp(x))); real in, floating point out. */
RL_API rl_status rl_logsumexp(const rl_tensor* in, const rl_tensor* out);

#ifdef __cplusplus
}
#endif
#endif
