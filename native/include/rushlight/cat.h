/* rushlight/cat.h: moving whole blocks: cat, triangles, flip, roll, tile, unfold and fold.
 *
 * Any strides; inputs and output of one dtype unless said otherwise; outputs must not overlap inputs.
 */
#ifndef RUSHLIGHT_CAT_H
#define RUSHLIGHT_CAT_H

#include "../rushlight.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out = the n inputs one behind the other along dim. Inputs have out's other sizes; any dtypes, converted as by
 * rl_copy. */
RL_API rl_status rl_cat(int32_t n, const rl_tensor* const* inputs, int32_t dim, const rl_tensor* out);

/* The elements of each matrix (last two dims) on and below (upper == 0) or on and above the diagonal with column - row
 * == diagonal; zero elsewhere. out may be src itself. */
RL_API rl_status rl_triangle(const rl_tensor* src, int64_t diagonal, int upper, const rl_tensor* out);
/* Sum of the diagonal of a matrix. out: no dims, of src's dtype or, for bool and integers, int64. */
RL_API rl_status rl_trace(const rl_tensor* src, const rl_tensor* out);

/* out[..., i, ...] = src[..., size - 1 - i, ...] along the n dims. */
RL_API rl_status rl_flip(const rl_tensor* src, int32_t n, const int32_t* dims, const rl_tensor* out);
/* Elements move up by shifts[j] (any integer) along dims[j], those that leave come back at the other end. */
RL_API rl_status rl_roll(const rl_tensor* src, int32_t n, const int64_t* shifts, const int32_t* dims,
                         const rl_tensor* out);
/* out's sizes are multiples of src's (missing leading dims count as 1): src repeated in every direction. */
RL_API rl_status rl_tile(const rl_tensor* src, const rl_tensor* out);

/* out[..., c] = whether index[...] == c, as 0 and 1 of out's dtype; index int64, classes are out's last dim. A negative
 * class, or one too large: RL_RUNTIME_ERROR. */
RL_API rl_status rl_one_hot(const rl_tensor* index, const rl_tensor* out);

/* ---- sliding blocks of images */
typedef struct rl_window {
  int64_t kernel[2], dilation[2], padding[2], stride[2]; /* vertical, horizontal */
} rl_window;
/* Number of block positions of an image of that size: vertical, horizontal (below 1: there are none). */
RL_API void rl_window_positions(const rl_window* window, int64_t height, int64_t width, int64_t positions[2]);
/* src (N, C, H, W) -> out (N, C * kernel[0] * kernel[1], positions): each block is a column. */
RL_API rl_status rl_im2col(const rl_tensor* src, const rl_window* window, const rl_tensor* out);
/* The contrary: every column is added where it came from, in order of the kernel's elements. out is overwritten. */
RL_API rl_status rl_col2im(const rl_tensor* src, const rl_window* window, const rl_tensor* out);
/* Gradient of Tensor.unfold(dim, size, step): grad has out's shape with the number of windows along dim, and a further
 * last dim of `size`. out is overwritten; sums in order of the windows. */
RL_API rl_status rl_unfold_backward(const rl_tensor* grad, int32_t dim, int64_t size, int64_t step,
                                    const rl_tensor* out);

#ifdef __cplusplus
}
#endif
#endif
