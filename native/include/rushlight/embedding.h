/* rushlight/embedding.h: rows of a table by index, and sums of them.
 *
 * weight is (rows, size) of any strides; indices are int64, not negative, of any shape. An index out of range:
 * RL_INDEX_ERROR "index I is out of bounds for dimension 0 with size S", before anything is written into weight.
 * Gradients are added up in order of the indices, whatever the number of threads. padding_idx: the row that gets no
 * gradient and no part in a bag, or -1.
 */
#ifndef RUSHLIGHT_EMBEDDING_H
#define RUSHLIGHT_EMBEDDING_H

#include "../rushlight.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out: indices' shape and (size); any dtype. */
RL_API rl_status rl_embedding(const rl_tensor* weight, const rl_tensor* indices, const rl_tensor* out);
/* Scales the rows named by indices whose norm (of order norm_type; infinity: the greatest magnitude) exceeds max_norm
 * down to it, in place: row * max_norm / (norm + 1e-7). Real floats. */
RL_API rl_status rl_embedding_renorm(const rl_tensor* weight, const rl_tensor* indices, double max_norm,
                                     double norm_type);
/* out (rows, size) = sums of grad's rows, each divided by how often its index occurs if scale_grad_by_freq. out is
 * overwritten. Floats, real or complex; 16-bit ones are rounded after each sum. */
RL_API rl_status rl_embedding_backward(const rl_tensor* grad, const rl_tensor* indices, int64_t padding_idx,
                                       int scale_grad_by_freq, const rl_tensor* out);

typedef enum rl_bag_mode { RL_BAG_SUM = 0, RL_BAG_MEAN = 1, RL_BAG_MAX = 2 } rl_bag_mode;
/* Bag b holds indices[offsets[b]] up to the next offset (the last: to the end). indices and offsets in one dim;
 * offsets[0] is 0, they do not fall, and do not exceed the number of indices (RL_RUNTIME_ERROR). With
 * include_last_offset the last offset only ends the last bag. per_sample_weights: NULL or one factor per index (sum
 * only), of weight's dtype. out: (bags, size) of weight's dtype, a real float; 16-bit ones are computed in float32.
 * Empty bags are 0. bag_size: NULL or int64 (bags): indices that took part. max_indices: NULL or int64 (bags, size):
 * where each maximum was found (max only; 0 for empty bags). */
RL_API rl_status rl_embedding_bag(const rl_tensor* weight, const rl_tensor* indices, const rl_tensor* offsets,
                                  rl_bag_mode mode, int include_last_offset, const rl_tensor* per_sample_weights,
                                  int64_t padding_idx, const rl_tensor* out, const rl_tensor* bag_size,
                                  const rl_tensor* max_indices);
/* Gradient of weight; arguments as above. max_indices is needed for max alone. out (rows, size) is overwritten. */
RL_API rl_status rl_embedding_bag_backward(const rl_tensor* grad, const rl_tensor* indices, const rl_tensor* offsets,
                                           rl_bag_mode mode, int include_last_offset,
                                           const rl_tensor* per_sample_weights, int64_t padding_idx,
                                           int scale_grad_by_freq, const rl_tensor* max_indices, const rl_tensor* out);
/* Gradient of per_sample_weights (sum only): out (indices). */
RL_API rl_status rl_embedding_bag_weights_backward(const rl_tensor* grad, const rl_tensor* weight,
                                                   const rl_tensor* indices, const rl_tensor* offsets,
                                                   int include_last_offset, int64_t padding_idx, const rl_tensor* out);

#ifdef __cplusplus
}
#endif
#endif
