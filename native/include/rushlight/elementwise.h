/* rushlight/elementwise.h: operations that compute every element of the output from the elements at the same place.
 *
 * Inputs are broadcast to the outputs' shape (missing leading dimensions, size 1 or stride 0) and may have any dtype:
 * they are converted to the compute dtype as they are read, and results to the output's dtype as they are written.
 * Conversions are PyTorch's: float to integer drops the fraction (out of range saturates, NaN gives 0; to uint8 the
 * integer wraps), anything to bool is "differs from 0", complex to real drops the imaginary part. An output may be one
 * of the inputs (same data and strides). Other overlaps are the caller's to avoid.
 */
#ifndef RUSHLIGHT_ELEMENTWISE_H
#define RUSHLIGHT_ELEMENTWISE_H

#include "../rushlight.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Number of the operation of this name ("add", "tanh_backward"), or -1. */
RL_API int rl_elementwise_find(const char* name);
/* Name of an operation, or NULL when there is no such number. */
RL_API const char* rl_elementwise_name(int op);
/* 1 when the operation has a kernel for this compute dtype (float16 and bfloat16 are computed as float32). */
RL_API int rl_elementwise_supports(int op, rl_dtype compute);
/* dtype in which output `index` leaves the kernel (bool for comparisons, float32 for abs of complex64, ...). */
RL_API rl_dtype rl_elementwise_result_dtype(int op, rl_dtype compute, int index);
/* Runs an operation. The outputs have one shape, to which the inputs broadcast. */
RL_API rl_status rl_elementwise(int op, rl_dtype compute, int n_in, const rl_tensor* const* in, int n_out,
                                rl_tensor* const* out);
/* dst = src, broadcast and converted. */
RL_API rl_status rl_copy(const rl_tensor* src, rl_tensor* dst);
/* Every element of dst = the one element of value, converted. */
RL_API rl_status rl_fill(rl_tensor* dst, const rl_tensor* value);

#ifdef __cplusplus
}
#endif
#endif
