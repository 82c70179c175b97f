/* rushlight/loss.h: losses with their reduction in one pass, and their gradients.
 *
 * Floating point inputs; float16 and bfloat16 work in float32, and sums are formed in float64. With a reduction `out`
 * has one element, without it the shape of the terms. Results do not depend on the number of threads.
 */
#ifndef RUSHLIGHT_LOSS_H
#define RUSHLIGHT_LOSS_H

#include "../rushlight.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rl_loss_reduction { RL_LOSS_NONE = 0, RL_LOSS_MEAN = 1, RL_LOSS_SUM = 2 } rl_loss_reduction;

/* ---- classes. in [C], [N, C] or [N, C, ...]; target (int64 or uint8) has the shape of `in` without C; weight (may be
 * NULL) [C]. Targets equal to ignore_index do not count; any other outside [0, C) gives RL_INDEX_ERROR. The mean
 * divides by the weights of the targets that count, whose sum total_weight receives (one element, may be NULL). */
RL_API rl_status rl_nll_loss(const rl_tensor* in, const rl_tensor* target, const rl_tensor* weight,
                             int64_t ignore_index, rl_loss_reduction reduction, const rl_tensor* out,
                             const rl_tensor* total_weight);
/* grad has the shape of the forward's `out`; total_weight is the forward's (needed for the mean). Fills grad_in. */
RL_API rl_status rl_nll_loss_backward(const rl_tensor* grad, const rl_tensor* target, const rl_tensor* weight,
                                      int64_t ignore_index, rl_loss_reduction reduction, const rl_tensor* total_weight,
                                      const rl_tensor* grad_in);

/* nll_loss(log_softmax(in)) with label smoothing, without storing log_softmax. log_sum (may be NULL; shape of target,
 * float32 or float64) receives log(sum(exp(in))) per target, which the backward needs. */
RL_API rl_status rl_cross_entropy(const rl_tensor* in, const rl_tensor* target, const rl_tensor* weight,
                                  int64_t ignore_index, double label_smoothing, rl_loss_reduction reduction,
                                  const rl_tensor* out, const rl_tensor* total_weight, const rl_tensor* log_sum);
RL_API rl_status rl_cross_entropy_backward(const rl_tensor* grad, const rl_tensor* in, const rl_tensor* log_sum,
                                           const rl_tensor* target, const rl_tensor* weight, int64_t ignore_index,
                                           double label_smoothing, rl_loss_reduction reduction,
                                           const rl_tensor* total_weight, const rl_tensor* grad_in);

/* ---- term by term, d = in - target */
typedef enum rl_loss_kind {
  RL_LOSS_MSE = 0,         /* d^2 */
  RL_LOSS_L1 = 1,          /* |d| */
  RL_LOSS_SMOOTH_L1 = 2,   /* |d| < p ? d^2 / (2 p) : |d| - p / 2 */
  RL_LOSS_HUBER = 3,       /* |d| <= p ? d^2 / 2 : p (|d| - p / 2) */
  RL_LOSS_BCE = 4,         /* -(target log(in) + (1 - target) log(1 - in)), logarithms at least -100 */
  RL_LOSS_BCE_LOGITS = 5,  /* the same of sigmoid(in), with pos_weight on target's part */
  RL_LOSS_KL = 6,          /* target (log(target) - in) */
  RL_LOSS_KL_LOG = 7,      /* exp(target) (target - in) */
  RL_LOSS_SOFT_MARGIN = 8, /* log(1 + exp(-target in)) */
  RL_LOSS_KIND_COUNT = 9
} rl_loss_kind;

/* All tensors have the shape of `in` (stride 0 where broadcast); weight multiplies each term, pos_weight is for
 * RL_LOSS_BCE_LOGITS; both may be NULL. */
RL_API rl_status rl_pointwise_loss(rl_loss_kind kind, double p, const rl_tensor* in, const rl_tensor* target,
                                   const rl_tensor* weight, const rl_tensor* pos_weight, rl_loss_reduction reduction,
                                   const rl_tensor* out);
/* Gradient with respect to `in`; grad has the shape of the forward's `out`. */
RL_API rl_status rl_pointwise_loss_backward(rl_loss_kind kind, double p, const rl_tensor* grad, const rl_tensor* in,
                                            const rl_tensor* target, const rl_tensor* weight,
                                            const rl_tensor* pos_weight, rl_loss_reduction reduction,
                                            const rl_tensor* grad_in);

#ifdef __cplusplus
}
#endif
#endif
