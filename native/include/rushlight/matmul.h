/* rushlight/matmul.h: matrix products and inner products. Part of rushlight.h.
 *
 * Products of float32, float64, complex64 and complex128 run on a CBLAS library (OpenBLAS), which is loaded when the
 * first of them runs. float16 and bfloat16 are computed in float32 and rounded once; integers wrap around.
 */
#ifndef RUSHLIGHT_MATMUL_H
#define RUSHLIGHT_MATMUL_H

#include "../rushlight.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A factor: im is 0 for real dtypes; integer dtypes truncate re. */
typedef struct rl_number {
  double re, im;
} rl_number;

/* out[..., i, j] = beta * add[..., i, j] + alpha * sum over l of a[..., i, l] * b[..., l, j]
 *
 * All tensors have one dtype (not bool) and the same number of dimensions, at least 2. Leading (batch) dimensions
 * agree; an operand is broadcast by stride 0. add has out's shape (again with stride 0 where it is broadcast), may be
 * out itself, and may be NULL. Any strides are taken; unit stride in one of the last two dimensions, or a stride of 0
 * in a batch dimension, avoids a copy. out may overlap the operands (then the product goes through a temporary) but not
 * itself. add is not read when beta is 0, and neither a nor b when alpha is 0. */
RL_API rl_status rl_matmul(const rl_tensor* a, const rl_tensor* b, const rl_tensor* add, rl_number alpha,
                           rl_number beta, rl_tensor* out);

/* out[] = sum over i of a[i] * b[i], with a conjugated when `conjugate` is not 0. a and b have one dimension, out none.
 */
RL_API rl_status rl_dot(const rl_tensor* a, const rl_tensor* b, int conjugate, rl_tensor* out);

/* The CBLAS library to load: a path, or a name for the system's loader; NULL forgets an earlier one. Fails when another
 * is loaded already. RUSHLIGHT_BLAS in the environment comes first; without either the system's OpenBLAS is tried. */
RL_API rl_status rl_set_blas_library(const char* path);
/* 1 once a library is loaded. */
RL_API int rl_blas_loaded(void);
/* Loads the library now if it is not, and gives the address of one of its functions by its plain name ("cblas_sgemm",
 * "dgesv_"); the prefixes of packaged OpenBLAS builds are tried too. NULL, with rl_last_error, if there is none. */
RL_API void* rl_blas_symbol(const char* name);

#ifdef __cplusplus
}
#endif
#endif
