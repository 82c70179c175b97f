// Bessel functions of imaginary arguments and the logarithm of the gamma function as straight-line code: see
// vec_math.h. Chebyshev series were fitted with 40 digits.
#pragma once

#include "cpu/vec_math_double.h"

namespace rl {
namespace {
namespace m {

// ---- modified Bessel functions (DLMF 10.25): within 8 times exp(-x), beyond times exp(-x) sqrt(x)

// clang-format off
constexpr double kI0Small[] = {0.33839763720473803, -0.3046826723431984, 0.17162090152220877, -0.09490109704804764, 0.04930528423967071, -0.02373741480589947, 0.010546460394594998, -0.004324309995050576, 0.0016394756169413357, -0.0005763755745385824, 0.00018850288509584165, -5.754195010082104e-05, 1.6448448070728896e-05, -4.4167383584587505e-06, 1.1173875391201037e-06, -2.670793853940612e-07, 6.046995022541919e-08, -1.300025009986248e-08, 2.6598237246823866e-09, -5.189795601635263e-10, 9.675809035373237e-11, -1.726826291441556e-11, 2.95505266312964e-12, -4.856446783111929e-13, 7.676185498604936e-14, -1.1685332877993451e-14, 1.715391285555133e-15, -2.431279846547955e-16, 3.3307945188222384e-17, -4.4153416464793395e-18};
constexpr double kI0Large[] = {0.4022452055070544, 0.0033691164782556943, 6.889758346916825e-05, 2.8913705208347567e-06, 2.0489185894690638e-07, 2.266668990498178e-08, 3.3962320257083865e-09, 4.94060238822497e-10, 1.1889147107846439e-11, -3.1499165279632416e-11, -1.3215811840447713e-11, -1.7941785315068062e-12, 7.180124451383666e-13, 3.8527783827421426e-13, 1.54008621752141e-14, -4.150569347287222e-14, -9.554846698828307e-15, 3.8116806693526224e-15, 1.7725601330565263e-15, -3.425485619677219e-16, -2.8276239805165836e-16, 3.461222867697461e-17, 4.46562142029676e-17, -4.830504485944182e-18, -7.233180487874754e-18};
constexpr double kI1Small[] = {0.12629359322181682, -0.17641651835783406, 0.1026436586898471, -0.05294598120809499, 0.024726449030626516, -0.010564084894626197, 0.004156422944312888, -0.0015135724506312532, 0.0005122859561685758, -0.00016176081582589674, 4.781565107550054e-05, -1.3273163656039436e-05, 3.4702513081376785e-06, -8.568720264695455e-07, 2.0032947535521353e-07, -4.445059128796328e-08, 9.381537386495773e-09, -1.8872497517228294e-09, 3.625590281552117e-10, -6.663489723502027e-11, 1.1736186298890901e-11, -1.9839743977649436e-12, 3.223793365945575e-13, -5.042185504727912e-14, 7.600684294735408e-15, -1.1055969477353862e-15, 1.5536319577362005e-16, -2.111421214358166e-17, 2.7779141127610464e-18};
constexpr double kI1Large[] = {0.38928811750914005, -0.009761097491361469, -0.00011058893876262371, -3.882564808877691e-06, -2.512236237870209e-07, -2.6314688468895196e-08, -3.835380385964237e-09, -5.589743462196584e-10, -1.8974958123505413e-11, 3.2526035830154884e-11, 1.4125807436613782e-11, 2.0356285441470896e-12, -7.198551776245908e-13, -4.0835511110921974e-13, -2.1015418427726643e-14, 4.272440016711951e-14, 1.0420276984128802e-14, -3.8144030724370075e-15, -1.8803547755107825e-15, 3.3082023109209285e-16, 2.96262899764595e-16, -3.209525921993424e-17, -4.6503053684893586e-17, 4.414348323071708e-18, 7.517296310842105e-18};
// clang-format on

// c[0] + c[1] T_1(t) + ... by C. W. Clenshaw's recurrence (1955), from term k down
template <int k, int kTerms>
RL_INLINE double clenshaw(const double (&c)[kTerms], double twice_t, double b1, double b2) {
  if constexpr (k == 0) {
    return fma(0.5 * twice_t, b1, c[0] - b2);
  } else {
    return clenshaw<k - 1>(c, twice_t, fma(twice_t, b1, c[k] - b2), b1);
  }
}
template <int kTerms>
RL_INLINE double chebyshev_sum(const double (&c)[kTerms], double twice_t) {
  return clenshaw<kTerms - 1>(c, twice_t, 0.0, 0.0);
}

RL_INLINE double i0e(double x) {
  const double a = fabs(x);
  const double near = chebyshev_sum(kI0Small, 0.5 * a - 2.0), far = chebyshev_sum(kI0Large, 32.0 / a - 2.0) / sqrt(a);
  return a <= 8.0 ? near : far;
}
RL_INLINE double i1e(double x) {
  const double a = fabs(x);
  const double near = a * chebyshev_sum(kI1Small, 0.5 * a - 2.0);
  const double far = chebyshev_sum(kI1Large, 32.0 / a - 2.0) / sqrt(a);
  return copysign(a <= 8.0 ? near : far, x);
}
// exp(|x|) times a factor, without overflow where the product has none
RL_INLINE double times_exp(double factor, double x) {
  const double a = fabs(x), root = exp(0.5 * a);
  return a == kInf ? copysign(kInf, factor) : a < 700.0 ? factor * exp(a) : factor * root * root;
}
RL_INLINE double i0(double x) { return times_exp(i0e(x), x); }
RL_INLINE double i1(double x) { return times_exp(i1e(x), x); }
RL_INLINE float i0e(float x) { return static_cast<float>(i0e(static_cast<double>(x))); }
RL_INLINE float i1e(float x) { return static_cast<float>(i1e(static_cast<double>(x))); }
RL_INLINE float i0(float x) { return static_cast<float>(i0(static_cast<double>(x))); }
RL_INLINE float i1(float x) { return static_cast<float>(i1(static_cast<double>(x))); }

// ---- gamma functions

// For float, computed in double to about 1e-14 absolutely. Arguments below 7 are moved up by 7, which costs a product;
// negative ones are reflected (DLMF 5.5.3), which divides by a sine. Stirling's series (DLMF 5.11.1) does the rest.
RL_INLINE float lgamma(float x) {
  const double wide = x, r = wide - round(wide);
  const double z = x < 0.0f ? 1.0 - wide : wide;
  const double rising = z * (z + 1.0) * (z + 2.0) * (z + 3.0) * (z + 4.0) * (z + 5.0) * (z + 6.0);
  const double product = z < 7.0 ? rising : 1.0, y = z < 7.0 ? z + 7.0 : z;
  const double inverse = 1.0 / y;
  const double rest = polynomial(inverse * inverse, 1.0 / 156, -691.0 / 360360, 1.0 / 1188, -1.0 / 1680, 1.0 / 1260,
                                 -1.0 / 360, 1.0 / 12);
  const double stirling = (fma(y - 0.5, log(y), -y) + 0x1.d67f1c864beb5p-1) + inverse * rest;  // log(2 pi) / 2
  const double factor = x < 0.0f ? kPi * product / fabs(sin(kPi * r)) : product;
  const double upwards = stirling - log(factor);
  const float result = static_cast<float>(x < 0.0f ? -upwards : upwards);
  const float finite = (x == 1.0f) | (x == 2.0f) ? 0.0f : result;
  return fabs(x) == static_cast<float>(kInf) ? fabs(x) : finite;
}

}  // namespace m
}  // namespace
}  // namespace rl
