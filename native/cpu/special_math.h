// Special functions that are computed one number at a time, in double: defined once, not per instruction set.
#pragma once

#include "core/dtype.h"

namespace rl::special {

double k0(double x);
double k0e(double x);
double k1(double x);
double k1e(double x);
double j0(double x);
double j1(double x);
double y0(double x);
double y1(double x);
double spherical_j0(double x);
double airy_ai(double x);
double igamma(double a, double x);
double igammac(double a, double x);

// Orthogonal polynomials of order n, rounded towards zero; 0 for negative ones.
double chebyshev_t(double x, double n);
double chebyshev_u(double x, double n);
double chebyshev_v(double x, double n);
double chebyshev_w(double x, double n);
double shifted_chebyshev_t(double x, double n);
double shifted_chebyshev_u(double x, double n);
double shifted_chebyshev_v(double x, double n);
double shifted_chebyshev_w(double x, double n);
double hermite_h(double x, double n);
double hermite_he(double x, double n);
double laguerre_l(double x, double n);
double legendre_p(double x, double n);

}  // namespace rl::special

namespace rl {
namespace {
namespace m {

#define RL_SPECIAL_1(name)                                     \
  RL_INLINE double name(double x) { return special::name(x); } \
  RL_INLINE float name(float x) { return static_cast<float>(special::name(static_cast<double>(x))); }
#define RL_SPECIAL_2(name)                                                                    \
  RL_INLINE double name(double x, double y) { return special::name(x, y); }                   \
  RL_INLINE float name(float x, float y) {                                                    \
    return static_cast<float>(special::name(static_cast<double>(x), static_cast<double>(y))); \
  }
RL_SPECIAL_1(k0)
RL_SPECIAL_1(k0e)
RL_SPECIAL_1(k1)
RL_SPECIAL_1(k1e)
RL_SPECIAL_1(j0)
RL_SPECIAL_1(j1)
RL_SPECIAL_1(y0)
RL_SPECIAL_1(y1)
RL_SPECIAL_1(spherical_j0)
RL_SPECIAL_1(airy_ai)
RL_SPECIAL_2(igamma)
RL_SPECIAL_2(igammac)
RL_SPECIAL_2(chebyshev_t)
RL_SPECIAL_2(chebyshev_u)
RL_SPECIAL_2(chebyshev_v)
RL_SPECIAL_2(chebyshev_w)
RL_SPECIAL_2(shifted_chebyshev_t)
RL_SPECIAL_2(shifted_chebyshev_u)
RL_SPECIAL_2(shifted_chebyshev_v)
RL_SPECIAL_2(shifted_chebyshev_w)
RL_SPECIAL_2(hermite_h)
RL_SPECIAL_2(hermite_he)
RL_SPECIAL_2(laguerre_l)
RL_SPECIAL_2(legendre_p)
#undef RL_SPECIAL_1
#undef RL_SPECIAL_2

}  // namespace m
}  // namespace
}  // namespace rl
