/* rushlight/optimizer.h: one step of an optimizer over all parameters in one call, and gradient clipping.
 *
 * Arrays hold `count` descriptors; entry i of each belongs to parameter i and has its shape. Tensors may have any
 * strides (those that lie the same way in memory are walked in place) and any floating dtype; float16 and bfloat16 work
 * in float32. Complex ones are taken as pairs of reals, and then all tensors of the parameter must have its dtype. A
 * NULL in an array of gradients skips the parameter. `steps` are one-element tensors that count the steps done; a call
 * adds 1 first. maximize
 * != 0 goes up instead of down. Formulas are PyTorch's, in the same order of operations.
 */
#ifndef RUSHLIGHT_OPTIMIZER_H
#define RUSHLIGHT_OPTIMIZER_H

#include "../rushlight.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef const rl_tensor* const* rl_tensors;

/* momentum_buffers may be NULL when momentum is 0. A buffer of zeros with dampening 0 is one that starts. */
RL_API rl_status rl_sgd_step(int64_t count, rl_tensors params, rl_tensors grads, rl_tensors momentum_buffers, double lr,
                             double momentum, double dampening, double weight_decay, int nesterov, int maximize);

/* decoupled != 0 is AdamW. max_exp_avg_sqs (AMSGrad) may be NULL. */
RL_API rl_status rl_adam_step(int64_t count, rl_tensors params, rl_tensors grads, rl_tensors exp_avgs,
                              rl_tensors exp_avg_sqs, rl_tensors max_exp_avg_sqs, rl_tensors steps, double lr,
                              double beta1, double beta2, double eps, double weight_decay, int maximize, int decoupled);

RL_API rl_status rl_adagrad_step(int64_t count, rl_tensors params, rl_tensors grads, rl_tensors sums, rl_tensors steps,
                                 double lr, double lr_decay, double weight_decay, double eps, int maximize);

/* grad_avgs (centered) and momentum_buffers (momentum > 0) may be NULL. */
RL_API rl_status rl_rmsprop_step(int64_t count, rl_tensors params, rl_tensors grads, rl_tensors square_avgs,
                                 rl_tensors grad_avgs, rl_tensors momentum_buffers, rl_tensors steps, double lr,
                                 double alpha, double eps, double weight_decay, double momentum, int maximize);

RL_API rl_status rl_adadelta_step(int64_t count, rl_tensors params, rl_tensors grads, rl_tensors square_avgs,
                                  rl_tensors acc_deltas, rl_tensors steps, double lr, double rho, double eps,
                                  double weight_decay, int maximize);

RL_API rl_status rl_adamax_step(int64_t count, rl_tensors params, rl_tensors grads, rl_tensors exp_avgs,
                                rl_tensors exp_infs, rl_tensors steps, double lr, double beta1, double beta2,
                                double eps, double weight_decay, int maximize);

/* mu_products are one-element tensors too. */
RL_API rl_status rl_nadam_step(int64_t count, rl_tensors params, rl_tensors grads, rl_tensors exp_avgs,
                               rl_tensors exp_avg_sqs, rl_tensors mu_products, rl_tensors steps, double lr,
                               double beta1, double beta2, double eps, double weight_decay, double momentum_decay,
                               int maximize, int decoupled);

RL_API rl_status rl_radam_step(int64_t count, rl_tensors params, rl_tensors grads, rl_tensors exp_avgs,
                               rl_tensors exp_avg_sqs, rl_tensors steps, double lr, double beta1, double beta2,
                               double eps, double weight_decay, int maximize, int decoupled);

/* The p-norm of all elements of all tensors together, which overflows only where it is too large itself. */
RL_API rl_status rl_total_norm(int64_t count, rl_tensors tensors, double p, double* norm);
/* Every tensor times factor, or zero. NULL entries are skipped. */
RL_API rl_status rl_scale_tensors(int64_t count, rl_tensors tensors, double factor);
RL_API rl_status rl_zero_tensors(int64_t count, rl_tensors tensors);
/* Scales the gradients so that their total norm is at most max_norm; *norm (may be NULL) is the norm before. */
RL_API rl_status rl_clip_grad_norm(int64_t count, rl_tensors grads, double max_norm, double p, double* norm);

#ifdef __cplusplus
}
#endif
#endif
