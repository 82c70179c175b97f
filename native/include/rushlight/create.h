/* rushlight/create.h: tensors made from a few numbers. out is overwritten; any strides. */
#ifndef RUSHLIGHT_CREATE_H
#define RUSHLIGHT_CREATE_H

#include "../rushlight.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers are tensors of no dims, of any dtype: int64, float64 or complex128 hold a Python number exactly. */

/* out (one dim) = start, start + step, start + 2 * step, ... Real dtypes but bool. Floats are computed as PyTorch does:
 * in double (float32 for 16-bit floats), then rounded, in blocks of two vectors whose first element is rounded first.
 */
RL_API rl_status rl_arange(const rl_tensor* start, const rl_tensor* step, const rl_tensor* out);
/* How many elements lie in [start, end): ceil((end - start) / step), from integers exactly when all are. A step of
 * zero, of the wrong sign, bounds that are not finite, or a count that does not fit: RL_RUNTIME_ERROR. */
RL_API rl_status rl_arange_count(const rl_tensor* start, const rl_tensor* end, const rl_tensor* step, int64_t* count);
/* out (one dim) = evenly spaced numbers from start to end, both included; symmetric: the first half counts from start,
 * the second from end. Any dtype but bool. */
RL_API rl_status rl_linspace(const rl_tensor* start, const rl_tensor* end, const rl_tensor* out);
/* base to the powers linspace gives. */
RL_API rl_status rl_logspace(const rl_tensor* start, const rl_tensor* end, double base, const rl_tensor* out);
/* out (two dims): ones where column == row, zeros elsewhere. */
RL_API rl_status rl_eye(const rl_tensor* out);
/* Coordinates of a triangle's elements in row-major order: out int64 or int32 of shape (2, count), of which
 * rl_triangle_count says the size. */
RL_API int64_t rl_triangle_count(int64_t rows, int64_t columns, int64_t diagonal, int upper);
RL_API rl_status rl_triangle_indices(int64_t rows, int64_t columns, int64_t diagonal, int upper, const rl_tensor* out);

#ifdef __cplusplus
}
#endif
#endif
