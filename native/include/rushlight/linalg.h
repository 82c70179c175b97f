/* rushlight/linalg.h: factorisations of matrices and what is solved with them, by LAPACK. Part of rushlight.h.
 *
 * All functions take batches: the dimensions before the last two (before the last one for vectors, all of them for
 * `info`) are the batch, and agree; an operand is broadcast by stride 0. dtypes: float32, float64, complex64,
 * complex128, one for all operands unless said otherwise; pivots and info are int32. Any strides are taken; outputs
 * whose rows have stride 1 (column-major matrices) are written without a copy. Outputs overlap nothing.
 *
 * `info` is what LAPACK says of each matrix: 0 for success, i > 0 for a failure at step i. The functions themselves
 * fail only for wrong arguments and lack of memory. The library is the one of rl_set_blas_library.
 */
#ifndef RUSHLIGHT_LINALG_H
#define RUSHLIGHT_LINALG_H

#include "../rushlight.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out: the triangular factor of a Hermitian positive-definite matrix, of which one triangle is read; the other
 * triangle of out is 0. */
RL_API rl_status rl_cholesky(const rl_tensor* a, int upper, rl_tensor* out, rl_tensor* info);
/* The inverse of the matrix whose factor is given. */
RL_API rl_status rl_cholesky_inverse(const rl_tensor* factor, int upper, rl_tensor* out, rl_tensor* info);

/* P L U = a with partial pivoting: L (unit diagonal) and U in one matrix (m, n), pivots (min(m, n)) counted from 1. */
RL_API rl_status rl_lu_factor(const rl_tensor* a, rl_tensor* lu, rl_tensor* pivots, rl_tensor* info);
/* op(A) x = b, or x op(A) = b when `left` is 0; op is the conjugate transpose when `adjoint` is not 0. */
RL_API rl_status rl_lu_solve(const rl_tensor* lu, const rl_tensor* pivots, const rl_tensor* b, int left, int adjoint,
                             rl_tensor* out);
/* rl_lu_factor and rl_lu_solve in one pass. */
RL_API rl_status rl_solve(const rl_tensor* a, const rl_tensor* b, int left, rl_tensor* out, rl_tensor* lu,
                          rl_tensor* pivots, rl_tensor* info);
RL_API rl_status rl_inverse(const rl_tensor* a, rl_tensor* out, rl_tensor* info);
/* permutation (int64, rows): row i of L U is row permutation[i] of the matrix that was factored. */
RL_API rl_status rl_lu_permutation(const rl_tensor* pivots, rl_tensor* permutation);

typedef enum rl_triangular_flags {
  RL_UPPER = 1,
  RL_RIGHT = 2,     /* x a = b instead of a x = b */
  RL_UNIT = 4,      /* the diagonal is 1 and not read */
  RL_TRANSPOSE = 8, /* a.T instead of a */
  RL_ADJOINT = 16   /* the conjugate transpose of a */
} rl_triangular_flags;
RL_API rl_status rl_solve_triangular(const rl_tensor* a, const rl_tensor* b, int flags, rl_tensor* out);

/* L D L^T (L D L^H when hermitian) of the lower triangle, by Bunch and Kaufman. */
RL_API rl_status rl_ldl_factor(const rl_tensor* a, int hermitian, rl_tensor* ld, rl_tensor* pivots, rl_tensor* info);
RL_API rl_status rl_ldl_solve(const rl_tensor* ld, const rl_tensor* pivots, const rl_tensor* b, int hermitian,
                              rl_tensor* out);

/* Householder reflectors below the diagonal, R on and above it, and their factors tau (min(m, n)). */
RL_API rl_status rl_geqrf(const rl_tensor* a, rl_tensor* qr, rl_tensor* tau);
/* The first columns of the product of reflectors: a (m, n) with n <= m, tau (k) with k <= n. */
RL_API rl_status rl_householder_product(const rl_tensor* a, const rl_tensor* tau, rl_tensor* out);
/* out = Q c or c Q (left 0), with the conjugate transpose of Q when `adjoint` is not 0. */
RL_API rl_status rl_ormqr(const rl_tensor* a, const rl_tensor* tau, const rl_tensor* c, int left, int adjoint,
                          rl_tensor* out);
/* q (m, min(m, n)) and r (min(m, n), n), or q (m, m) and r (m, n). q may be NULL. */
RL_API rl_status rl_qr(const rl_tensor* a, rl_tensor* q, rl_tensor* r);

/* Eigenvalues in ascending order (the real dtype), and the eigenvectors as columns, or NULL. */
RL_API rl_status rl_eigh(const rl_tensor* a, int upper, rl_tensor* values, rl_tensor* vectors, rl_tensor* info);
/* Eigenvalues and right eigenvectors of norm 1, both of the complex dtype; vectors may be NULL. */
RL_API rl_status rl_eig(const rl_tensor* a, rl_tensor* values, rl_tensor* vectors, rl_tensor* info);
/* u (m, k), s (k, the real dtype), vh (k, n) with k = min(m, n); or u (m, m) and vh (n, n); u and vh may be NULL. */
RL_API rl_status rl_svd(const rl_tensor* a, rl_tensor* u, rl_tensor* s, rl_tensor* vh, rl_tensor* info);

typedef enum rl_lstsq_driver { RL_GELS = 0, RL_GELSY = 1, RL_GELSD = 2, RL_GELSS = 3 } rl_lstsq_driver;
/* Least squares: a (m, n), b (m, r), x (max(m, n), r) of which the first n rows are the solution. rank (int64) and s
 * (min(m, n), real) may be NULL where the driver does not give them. */
RL_API rl_status rl_lstsq(const rl_tensor* a, const rl_tensor* b, rl_lstsq_driver driver, double rcond, rl_tensor* x,
                          rl_tensor* rank, rl_tensor* s, rl_tensor* info);

#ifdef __cplusplus
}
#endif
#endif
