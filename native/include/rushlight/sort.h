/* rushlight/sort.h: sorting and selecting along one dim.
 *
 * dtypes: bool, integers and real floats (complex: RL_TYPE_ERROR). Order: ascending, NaN (of either sign) above
 * everything and equal to itself, -0 equal to 0; descending is the reverse, NaN first. Equal elements keep their order
 * (the lower index first) in both directions, so every result is fully determined. Values are moved, never rebuilt: NaN
 * payloads and signs of zero survive. `values` has src's dtype, `indices` is int64; either may be NULL. A tensor
 * without dims counts as one element along dim 0. Outputs must not overlap src.
 */
#ifndef RUSHLIGHT_SORT_H
#define RUSHLIGHT_SORT_H

#include "../rushlight.h"

#ifdef __cplusplus
extern "C" {
#endif

/* values, indices: src's shape. */
RL_API rl_status rl_sort(const rl_tensor* src, int32_t dim, int descending, const rl_tensor* values,
                         const rl_tensor* indices);
/* The k first elements of that order (largest != 0: of the descending one), in order. values, indices: src's shape with
 * k along dim. k above size(dim) or below 0: RL_RUNTIME_ERROR. */
RL_API rl_status rl_topk(const rl_tensor* src, int32_t dim, int64_t k, int largest, const rl_tensor* values,
                         const rl_tensor* indices);

typedef enum rl_select_kind {
  RL_SELECT_KTH = 0,       /* the k-th smallest, k from 1 */
  RL_SELECT_MEDIAN = 1,    /* the lower of the middle two; the first NaN if there is one (k unused) */
  RL_SELECT_NANMEDIAN = 2, /* the same among the numbers; NaN if there are none (k unused) */
  RL_SELECT_MODE = 3       /* the most frequent, of several the least; its last index (k unused). NaNs differ. */
} rl_select_kind;
/* values, indices: src's shape with 1 along dim. No elements along dim, or k out of range: RL_INDEX_ERROR resp.
 * RL_RUNTIME_ERROR. */
RL_API rl_status rl_select(const rl_tensor* src, int32_t dim, rl_select_kind kind, int64_t k, const rl_tensor* values,
                           const rl_tensor* indices);

/* order (int64, size(dim)): the slices along dim in lexicographic ascending order of their elements, in row-major
 * order; equal slices keep their order. For unique along a dim. */
RL_API rl_status rl_sort_slices(const rl_tensor* src, int32_t dim, const rl_tensor* order);

#ifdef __cplusplus
}
#endif
#endif
