/* rushlight/distance.h: distances between the rows of matrices. Part of rushlight.h. */
#ifndef RUSHLIGHT_DISTANCE_H
#define RUSHLIGHT_DISTANCE_H

#include "../rushlight.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out[..., i, j] = (sum over k of |a[..., i, k] - b[..., j, k]|^p)^(1/p); for p = 0 how many differ, for p = inf the
 * greatest difference. float32 and float64. Batch dimensions agree; an operand is broadcast by stride 0. out overlaps
 * neither operand. p is at least 0. */
RL_API rl_status rl_distances(const rl_tensor* a, const rl_tensor* b, double p, rl_tensor* out);

#ifdef __cplusplus
}
#endif
#endif
