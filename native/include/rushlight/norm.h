/* rushlight/norm.h: normalisation layers, forward and backward.
 *
 * Floating point tensors; float16 and bfloat16 work in float32. Sums are formed so that any finite input gives the
 * finite answer where there is one. weight, bias (affine parameters, any floating dtype) and saved statistics may be
 * NULL, as may any gradient that is not wanted. A saved statistic holds one element per normalised group, in any
 * floating dtype and in a shape with that many elements (float32 is enough for float16 and bfloat16 inputs). Inputs may
 * have any strides; outputs have the shape of `in`. Results do not depend on the number of threads.
 */
#ifndef RUSHLIGHT_NORM_H
#define RUSHLIGHT_NORM_H

#include "../rushlight.h"

#ifdef __cplusplus
extern "C" {
#endif

/* (x - mean) / sqrt(var + eps) * weight + bias over the last `dims` dimensions together; weight and bias have their
 * shape. rstd is 1 / sqrt(var + eps). */
RL_API rl_status rl_layer_norm(const rl_tensor* in, int dims, const rl_tensor* weight, const rl_tensor* bias,
                               double eps, const rl_tensor* out, const rl_tensor* mean, const rl_tensor* rstd);
RL_API rl_status rl_layer_norm_backward(const rl_tensor* grad, const rl_tensor* in, int dims, const rl_tensor* mean,
                                        const rl_tensor* rstd, const rl_tensor* weight, const rl_tensor* grad_in,
                                        const rl_tensor* grad_weight, const rl_tensor* grad_bias);

/* x / sqrt(mean(x^2) + eps) * weight over the last `dims` dimensions. */
RL_API rl_status rl_rms_norm(const rl_tensor* in, int dims, const rl_tensor* weight, double eps, const rl_tensor* out,
                             const rl_tensor* rstd);
RL_API rl_status rl_rms_norm_backward(const rl_tensor* grad, const rl_tensor* in, int dims, const rl_tensor* rstd,
                                      const rl_tensor* weight, const rl_tensor* grad_in, const rl_tensor* grad_weight);

/* in [N, C, ...]: over each sample's C / groups channels and all positions. weight, bias [C]; mean, rstd [N, groups].
 */
RL_API rl_status rl_group_norm(const rl_tensor* in, int64_t groups, const rl_tensor* weight, const rl_tensor* bias,
                               double eps, const rl_tensor* out, const rl_tensor* mean, const rl_tensor* rstd);
RL_API rl_status rl_group_norm_backward(const rl_tensor* grad, const rl_tensor* in, int64_t groups,
                                        const rl_tensor* mean, const rl_tensor* rstd, const rl_tensor* weight,
                                        const rl_tensor* grad_in, const rl_tensor* grad_weight,
                                        const rl_tensor* grad_bias);

/* in [N, C, ...]: over samples and positions, per channel. Everything else is [C]. training != 0 uses the batch's
 * statistics and moves the running ones (where given): running = (1 - momentum) * running + momentum * batch (variance
 * with n - 1), and saves mean and 1 / sqrt(var + eps). Else the running ones are used and the saved ones left alone.
 * Row-major and channels-last tensors are read in place. */
RL_API rl_status rl_batch_norm(const rl_tensor* in, const rl_tensor* weight, const rl_tensor* bias,
                               const rl_tensor* running_mean, const rl_tensor* running_var, int training,
                               double momentum, double eps, const rl_tensor* out, const rl_tensor* save_mean,
                               const rl_tensor* save_rstd);
/* training tells which statistics the forward used: the saved ones or the running ones. */
RL_API rl_status rl_batch_norm_backward(const rl_tensor* grad, const rl_tensor* in, const rl_tensor* weight,
                                        const rl_tensor* running_mean, const rl_tensor* running_var,
                                        const rl_tensor* save_mean, const rl_tensor* save_rstd, int training,
                                        double eps, const rl_tensor* grad_in, const rl_tensor* grad_weight,
                                        const rl_tensor* grad_bias);

#ifdef __cplusplus
}
#endif
#endif
