/* rushlight/index.h: indexing, gathering and scattering, masks, searching and counting.
 *
 * Common to all: index tensors are int64, sizes and offsets are 64-bit, any strides, any dtype unless said otherwise.
 * Inputs and outputs of one call have one dtype where nothing else is said; the caller has converted. Outputs must not
 * overlap inputs or themselves. An index out of range gives RL_INDEX_ERROR (RL_RUNTIME_ERROR for rl_gather and
 * rl_scatter) with the message "index I is out of bounds for dimension D with size S". Functions that write into an
 * existing tensor check every index before they write; after an error, the output of the others, and what rl_scatter
 * has written, is unspecified. Where several values meet in one element they are taken in row-major order of the index,
 * whatever the number of threads: the last one stays, sums are added up in that order.
 */
#ifndef RUSHLIGHT_INDEX_H
#define RUSHLIGHT_INDEX_H

#include "../rushlight.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What happens to an element of the destination when a value arrives. AMAX and AMIN propagate NaN and take no complex
 * numbers. MEAN divides by the number of values (integers: rounded down) and takes no bool. */
typedef enum rl_scatter_mode {
  RL_SCATTER_SET = 0,
  RL_SCATTER_SUM = 1,
  RL_SCATTER_PROD = 2,
  RL_SCATTER_MEAN = 3,
  RL_SCATTER_AMAX = 4,
  RL_SCATTER_AMIN = 5
} rl_scatter_mode;

/* ---- advanced indexing.
 * `indices` are n >= 1 tensors of one common shape B (broadcast by strides 0); indices[j] indexes dim dims[j] of the
 * tensor, dims are ascending and distinct. The other dims of the tensor are kept. The shape of out or values is that of
 * the kept dims in order, with B inserted after the first `at` of them: with x of shape (P, Q, R, S),
 *   x[:, i, j]    dims {1, 2}, at 1  ->  (P, B..., S)
 *   x[i, :, j]    dims {0, 2}, at 0  ->  (B..., Q, S)     indices that are not neighbours go in front
 * Slices, new axes and ellipsis are views the caller has taken before. Negative indices count from the end. */
RL_API rl_status rl_index_get(const rl_tensor* src, int32_t n, const rl_tensor* const* indices, const int32_t* dims,
                              int32_t at, const rl_tensor* out);
/* accumulate != 0 adds (bool: or) instead of assigning. */
RL_API rl_status rl_index_put(const rl_tensor* dst, int32_t n, const rl_tensor* const* indices, const int32_t* dims,
                              int32_t at, const rl_tensor* values, int accumulate);

/* ---- one index along one dim. `index` has one dim (or none, then it is a single index); source or out has the shape
 * of the tensor with size(dim) replaced by the number of indices. Negative indices are out of range but in
 * rl_index_fill. */
RL_API rl_status rl_index_select(const rl_tensor* src, int32_t dim, const rl_tensor* index, const rl_tensor* out);
RL_API rl_status rl_index_copy(const rl_tensor* dst, int32_t dim, const rl_tensor* index, const rl_tensor* source);
/* dst[index] += alpha * source; alpha is a 0-dim tensor of the dtype, or NULL for 1. */
RL_API rl_status rl_index_add(const rl_tensor* dst, int32_t dim, const rl_tensor* index, const rl_tensor* source,
                              const rl_tensor* alpha);
/* value is a 0-dim tensor of dst's dtype. */
RL_API rl_status rl_index_fill(const rl_tensor* dst, int32_t dim, const rl_tensor* index, const rl_tensor* value);
/* include_self == 0: the old values of the elements that are written do not take part. */
RL_API rl_status rl_index_reduce(const rl_tensor* dst, int32_t dim, const rl_tensor* index, const rl_tensor* source,
                                 rl_scatter_mode mode, int include_self);

/* ---- an index per element. All have the same number of dims; out has index's shape; along every dim but `dim` index
 * is no larger than src and dst, and along every dim no larger than the src of rl_scatter. Negative indices are out of
 * range. src of rl_scatter may have no dims: one value for all. */
RL_API rl_status rl_gather(const rl_tensor* src, int32_t dim, const rl_tensor* index, const rl_tensor* out);
RL_API rl_status rl_scatter(const rl_tensor* dst, int32_t dim, const rl_tensor* index, const rl_tensor* src,
                            rl_scatter_mode mode, int include_self);

/* ---- indices into the elements of a tensor in row-major order. Negative ones count from the end. out or source has
 * index's shape. RL_INDEX_ERROR says "out of range: tried to access index I on a tensor of N elements". */
RL_API rl_status rl_take(const rl_tensor* src, const rl_tensor* index, const rl_tensor* out);
RL_API rl_status rl_put(const rl_tensor* dst, const rl_tensor* index, const rl_tensor* source, int accumulate);

/* ---- masks. Elements that differ from zero are set (NaN is), in row-major order. Counting fills `offsets`, which the
 * functions that follow take: rl_mask_blocks(number of elements) entries, the number of set elements before each block
 * of elements. They may get NULL instead and count again. */
RL_API int64_t rl_mask_blocks(int64_t elements);
RL_API rl_status rl_mask_count(const rl_tensor* mask, int64_t* offsets, int64_t* count);
/* out: int64 of shape (count, mask->ndim), any strides: (1, count) strides are fastest. */
RL_API rl_status rl_nonzero(const rl_tensor* mask, const int64_t* offsets, const rl_tensor* out);
/* mask: bool of src's shape (broadcast by strides 0). out: `count` elements in one dim. */
RL_API rl_status rl_masked_select(const rl_tensor* src, const rl_tensor* mask, const int64_t* offsets,
                                  const rl_tensor* out);
/* Set elements of dst take the elements of source (any shape), in row-major order; RL_RUNTIME_ERROR when those are too
 * few, before anything is written. */
RL_API rl_status rl_masked_scatter(const rl_tensor* dst, const rl_tensor* mask, const int64_t* offsets,
                                   const rl_tensor* source);

/* ---- searching and counting; bool, integers and real floats */

/* Where each value would be inserted into its sorted sequence. sequence: one dim, or the dims of values with any last
 * size. sorter: NULL, or int64 of sequence's shape: the order in which it is sorted (out of range: RL_RUNTIME_ERROR).
 * right == 0: before equal elements, else after. out: int64 or int32, values' shape. Counts as searching without a
 * comparison that holds for NaN: !(element >= value), right: !(element > value). */
RL_API rl_status rl_searchsorted(const rl_tensor* sequence, const rl_tensor* values, const rl_tensor* sorter, int right,
                                 const rl_tensor* out);

/* out (bool, elements' shape) = whether the element occurs in `sorted` (one dim, ascending, NaN last), or its contrary.
 */
RL_API rl_status rl_isin(const rl_tensor* elements, const rl_tensor* sorted, int invert, const rl_tensor* out);

/* Runs of equal slices along `dim` (dim == -1: of the elements, src has one dim). order: NULL, or the int64 order in
 * which the slices are to be read. flags: bool, one dim; true where a run begins. NaN differs from NaN. */
RL_API rl_status rl_run_flags(const rl_tensor* src, int32_t dim, const rl_tensor* order, const rl_tensor* flags);
/* From flags with `count` runs (rl_mask_count): first (int64, count): where each run begins, through order; inverse
 * (int64, slices): the run each slice is in, through order; lengths (int64, count). Each output may be NULL. */
RL_API rl_status rl_run_fill(const rl_tensor* flags, const rl_tensor* order, const rl_tensor* first,
                             const rl_tensor* inverse, const rl_tensor* lengths);

/* out[v] = how often v occurs (weights == NULL, out int64), or the sum of its weights (float32 or float64, out of the
 * same dtype) in order. input: integers, one dim. A value outside out: RL_INDEX_ERROR. out is overwritten. */
RL_API rl_status rl_bincount(const rl_tensor* input, const rl_tensor* weights, const rl_tensor* out);
/* Counts of elements of equal bins over [low, high]; others and NaN are left out. input: float; out: one dim of input's
 * dtype, overwritten. */
RL_API rl_status rl_histc(const rl_tensor* input, double low, double high, const rl_tensor* out);
/* Weighted counts over the bins between edges: the last bin is closed. input: (elements, D) float; edges: D tensors
 * of one dim, ascending; weights: (elements) or NULL; out: D dims of size len(edges[d]) - 1, overwritten, all of one
 * dtype, float32 or float64. uniform != 0: edges are evenly spaced. */
RL_API rl_status rl_histogramdd(const rl_tensor* input, int32_t n, const rl_tensor* const* edges,
                                const rl_tensor* weights, int uniform, const rl_tensor* out);
/* out (int64) = 0 repeats[0] times, 1 repeats[1] times, ...; repeats: int64, one dim, not negative (RL_RUNTIME_ERROR),
 * of sum len(out). */
RL_API rl_status rl_repeat_interleave(const rl_tensor* repeats, const rl_tensor* out);

#ifdef __cplusplus
}
#endif
#endif
