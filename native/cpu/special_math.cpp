// Special functions of real numbers. Chebyshev series were fitted with 40 digits; formulas: NIST Digital Library of
// Mathematical Functions, https://dlmf.nist.gov, by section.
#include "cpu/special_math.h"

#include <cmath>
#include <limits>

#include "cpu/vec_special.h"

namespace rl::special {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = 3.14159265358979323846;

// clang-format off
constexpr double kK0Small[] = {-0.2676636966169514, 0.3442898999246285, 0.0359799365153615, 0.001264615411446926, 2.286212103119452e-05, 2.5347910790261494e-07, 1.904516377220209e-09, 1.0349695257633625e-11, 4.2598161427910826e-14, 1.3744654358807508e-16};
constexpr double kK0Large[] = {1.2201515410329777, -0.0314481013119645, 0.0015698838857300533, -0.00012849549581627802, 1.39498137188765e-05, -1.8317555227191195e-06, 2.766813639445015e-07, -4.660489897687948e-08, 8.574034017414225e-09, -1.6975345093890614e-09, 3.5773972814003283e-10, -7.957489244477396e-11, 1.8559491149549264e-11, -4.514597883374519e-12, 1.1403405882073441e-12, -2.9800969231481784e-13, 8.032890775068375e-14, -2.2275133267462965e-14, 6.340076476276646e-15, -1.848593377920907e-15, 5.5120559994043335e-16, -1.6782311257549006e-16, 5.2103917776435543e-17};
constexpr double kK1Small[] = {0.7626501136694739, -0.3531559607765449, -0.12261118082265715, -0.006975723859639864, -0.0001730288957513052, -2.4334061415659684e-06, -2.213387630734726e-08, -1.4114883926335278e-10, -6.666901694199329e-13, -2.427449850519366e-15, -7.023863479386288e-18};
constexpr double kK1Large[] = {1.3603130952422213, 0.10392373657681724, -0.002857816859622779, 0.00019521551847135162, -1.936197974166083e-05, 2.406484947837217e-06, -3.5019606030878126e-07, 5.7410841254500495e-08, -1.0345762465678097e-08, 2.0150497551970347e-09, -4.1903547593419254e-10, 9.218315187605315e-11, -2.129967838427791e-11, 5.139639673482343e-12, -1.2891739609498229e-12, 3.348419666052243e-13, -8.976705182010146e-14, 2.4771544242195988e-14, -7.0198370892147685e-15, 2.038703166239861e-15, -6.057047270643018e-16, 1.8380935752430455e-16, -5.689462849193648e-17, 1.7940510478863572e-17};
constexpr double kAiryMiddle[] = {0.26381798191440015, -0.19176745775077353, -0.11544587863809751, 0.10129229869705277, -0.020634225363441998, -0.005263460235879724, 0.003521327342050992, -0.0005522127136308693, -8.722346961097546e-05, 4.9972155304858785e-05, -6.58209616965938e-06, -7.465940980665808e-07, 3.8371005050115145e-07, -4.427726202518875e-08, -3.901520676114033e-09, 1.8443828865292734e-09, -1.9121426939191717e-10, -1.3741370931826864e-11, 6.069496004903079e-12, -5.749799143489761e-13, -3.483089713417748e-14, 1.452966097730621e-14, -1.2731201711598244e-15, -6.658181469864444e-17, 2.6436799630296418e-17, -2.162377737234879e-18};
constexpr double kAiryLeft[] = {0.04138787003120341, -0.1687343506622321, 0.3242349596875748, 0.11145781622000064, -0.08428500527967654, -0.003671779058439344, 0.008070794838756315, -0.0008002422159240336, -0.00032786893888409876, 7.441134247829548e-05, 3.2750318271604864e-06, -2.6894075163211095e-06, 2.0177383569622546e-07, 4.337004147746419e-08, -8.680553977562855e-09, 1.407327394270113e-11, 1.4976657104902643e-10, -1.3963171253228815e-11, -9.386983673010024e-13, 2.691362562269109e-13, -1.1016541849703989e-14, -2.214520310533238e-15, 2.9698620527779447e-16, -8.001018696377009e-19, -2.7703063293552334e-18};
constexpr double kAiryRight[] = {0.9844053049171552, -0.014792784850104199, 0.0007327177465426715, -6.12595423417825e-05, 6.83476697557269e-06, -9.237229735403982e-07, 1.436225340438052e-07, -2.489319422322096e-08, 4.709793440054328e-09, -9.583863708112733e-10, 2.0745855483677591e-10, -4.737267332192277e-11, 1.1336099808224236e-11, -2.827706782319351e-12, 7.320712095125598e-13, -1.9599793911089723e-13, 5.4101162570683925e-14, -1.5356466802223836e-14, 4.472340393300025e-15, -1.3338094674756683e-15, 4.066582046456231e-16, -1.265583225645289e-16, 4.015126334015871e-17};
constexpr double kAiryCosine[] = {0.9996723415461005, -0.0003255483561055322, 2.069745155969119e-06, -3.890961736474424e-08, 1.3645959446950337e-09, -7.265563438866682e-11, 5.234675629062907e-12, -4.749669415821452e-13, 5.172156139604189e-14, -6.533725295545284e-15, 9.33927407277721e-16, -1.4823330512580455e-16, 2.5745988399644002e-17};
constexpr double kAirySine[] = {0.06911528040160503, -0.0003251060364586695, 3.945977743866323e-06, -1.068929090514341e-07, 4.800334718951617e-09, -3.0691067169997637e-10, 2.5517594369013928e-11, -2.601606731752434e-12, 3.123666855119186e-13, -4.2903251712839485e-14, 6.596710595977435e-15, -1.116833216041688e-15, 2.0551350158850327e-16, -4.0680056098438254e-17, 8.589182631392619e-18, -1.921018818902054e-18};
// clang-format on

// Sum of c[k] T_k(t), by C. W. Clenshaw's recurrence (1955), for x in [low, high] that t in [-1, 1] stands for.
template <int kTerms>
double chebyshev(const double (&c)[kTerms], double x, double low, double high) {
  const double t = (2 * x - (low + high)) / (high - low);
  double b1 = 0, b2 = 0;
  for (int k = kTerms - 1; k > 0; --k) {
    const double b0 = 2 * t * b1 - b2 + c[k];
    b2 = b1;
    b1 = b0;
  }
  return t * b1 - b2 + c[0];
}

double log_gamma(double x) {
#if defined(__GLIBC__)
  int sign;
  return ::lgamma_r(x, &sign);
#else
  return std::lgamma(x);
#endif
}

}  // namespace

// ---- Bessel functions (DLMF 10)

// With the logarithm taken off, K is analytic at 0.
double k0(double x) {
  if (x <= 0) return x == 0 ? kInf : kNan;
  if (x <= 2) return chebyshev(kK0Small, x * x, 0, 4) - std::log(0.5 * x) * m::i0(x);
  return x == kInf ? 0 : chebyshev(kK0Large, 2 / x, 0, 1) * std::exp(-x) / std::sqrt(x);
}
double k0e(double x) {
  if (x <= 2) return k0(x) * std::exp(x);
  return x == kInf ? 0 : chebyshev(kK0Large, 2 / x, 0, 1) / std::sqrt(x);
}
double k1(double x) {
  if (x <= 0) return x == 0 ? kInf : kNan;
  if (x <= 2) return chebyshev(kK1Small, x * x, 0, 4) / x + std::log(0.5 * x) * m::i1(x);
  return x == kInf ? 0 : chebyshev(kK1Large, 2 / x, 0, 1) * std::exp(-x) / std::sqrt(x);
}
double k1e(double x) {
  if (x <= 2) return k1(x) * std::exp(x);
  return x == kInf ? 0 : chebyshev(kK1Large, 2 / x, 0, 1) / std::sqrt(x);
}
double j0(double x) { return ::j0(x); }
double j1(double x) { return ::j1(x); }
double y0(double x) { return x < 0 ? kNan : ::y0(x); }
double y1(double x) { return x < 0 ? kNan : ::y1(x); }
double spherical_j0(double x) {
  if (std::isinf(x)) return 0;
  if (std::fabs(x) > 0.5) return std::sin(x) / x;
  const double z = x * x;
  return 1 - z / 6 * (1 - z / 20 * (1 - z / 42 * (1 - z / 72 * (1 - z / 110 * (1 - z / 156)))));
}

// Airy's function (DLMF 9.7): beyond 2 and -5 its asymptotic forms with fitted factors.
double airy_ai(double x) {
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return 0;
  if (std::fabs(x) <= 2) return chebyshev(kAiryMiddle, x, -2, 2);
  if (x < 0 && x >= -5) return chebyshev(kAiryLeft, x, -5, -2);
  const double a = std::fabs(x), root = std::sqrt(a), zeta = 2 * a * root / 3;
  const double quarter = std::sqrt(root);
  if (x > 0) {
    const double at_2 = 4 * std::sqrt(2.0) / 3;
    return chebyshev(kAiryRight, at_2 / zeta, 0, 1) * std::exp(-zeta) / (2 * std::sqrt(kPi) * quarter);
  }
  const double at_5 = 10 * std::sqrt(5.0) / 3, t = (at_5 / zeta) * (at_5 / zeta);
  const double p = chebyshev(kAiryCosine, t, 0, 1), q = chebyshev(kAirySine, t, 0, 1) / zeta;
  // cos and sin of zeta - pi / 4
  const double s = std::sin(zeta), c = std::cos(zeta);
  return (p * (c + s) + q * (s - c)) * std::sqrt(0.5) / (std::sqrt(kPi) * quarter);
}

// ---- incomplete gamma functions (DLMF 8)

namespace {

// With u = (x - a) / a: u - log(1 + u)
double minus_log1p_of(double x, double a) {
  const double u = (x - a) / a;
  if (std::fabs(u) > 0.3) return u - std::log(x / a);
  // log(1 + u) = 2 atanh(r), r = u / (2 + u)
  const double r = u / (2 + u), z = r * r;
  double sum = 0, power = z;
  for (int k = 3; k < 60; k += 2) {
    const double term = power / k;
    sum += term;
    if (term < 1e-18 * sum) break;
    power *= z;
  }
  return u * r - 2 * r * sum;
}

// log of gamma(a) over Stirling's formula sqrt(2 pi / a) (a / e)^a, for a >= 10
double stirling_rest(double a) {
  const double z = 1 / (a * a);
  return (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680 - z * (1.0 / 1188 - z * (691.0 / 360360)))))) /
         a;
}

// x^a exp(-x) / gamma(a + 1)
double gamma_factor(double a, double x) {
  if (x == 0) return a == 0 ? 1 : 0;
  if (a < 10) {
    const double power = a * std::log(x) - x;
    if (std::fabs(power) < 600) return std::pow(x, a) * std::exp(-x) / std::tgamma(a + 1);
    return std::exp(power - log_gamma(a + 1));
  }
  return std::exp(-a * minus_log1p_of(x, a) - stirling_rest(a)) / std::sqrt(2 * kPi * a);
}

double gamma_series(double a, double x) {
  double sum = 1, term = 1;
  for (int64_t k = 1; k < 100000; ++k) {
    term *= x / (a + static_cast<double>(k));
    sum += term;
    if (term < 1e-17 * sum) break;
  }
  return sum * gamma_factor(a, x);
}

// By W. J. Lentz's method (1976).
double gamma_fraction(double a, double x) {
  const double tiny = 1e-300;
  double b = x + 1 - a, c = 1 / tiny, d = 1 / (b == 0 ? tiny : b), h = d;
  for (int64_t k = 1; k < 100000; ++k) {
    const double n = static_cast<double>(k) * (a - static_cast<double>(k));
    b += 2;
    d = n * d + b;
    if (d == 0) d = tiny;
    c = b + n / c;
    if (c == 0) c = tiny;
    d = 1 / d;
    const double change = d * c;
    h *= change;
    if (std::fabs(change - 1) < 1e-16) break;
  }
  return h * gamma_factor(a, x) * a;
}

// Q for small a and x, where 1 - P would lose digits
double gamma_upper_small(double a, double x) {
  double sum = 0, power = 1;
  for (int k = 1; k < 200; ++k) {
    power *= -x / k;
    const double term = power / (a + k);
    sum += term;
    if (std::fabs(term) < 1e-18 * std::fabs(sum)) break;
  }
  const double log_power = a * std::log(x) - log_gamma(a + 1);
  return -std::expm1(log_power) - a * std::exp(log_power) * sum;
}

// Both functions of a large a near x (N. M. Temme, 1979; DLMF 8.12): its first two coefficients suffice from 1e6 on.
double gamma_large(double a, double x, bool upper) {
  const double mu = (x - a) / a;
  double eta = std::sqrt(2 * minus_log1p_of(x, a));
  if (mu < 0) eta = -eta;
  const double c0 = std::fabs(eta) < 1e-2
                        ? -1.0 / 3 + eta * (1.0 / 12 + eta * (-2.0 / 135 + eta * (1.0 / 864 + eta / 2835)))
                        : 1 / mu - 1 / eta;
  const double c1 = -1.0 / 540 - eta / 288;
  const double rest = std::exp(-0.5 * a * eta * eta) / std::sqrt(2 * kPi * a) * (c0 + c1 / a);
  const double z = eta * std::sqrt(0.5 * a);
  return upper ? 0.5 * std::erfc(z) + rest : 0.5 * std::erfc(-z) - rest;
}

bool gamma_edges(double a, double x, bool upper, double* result) {
  if (std::isnan(a) || std::isnan(x) || a < 0 || x < 0) {
    *result = kNan;
  } else if (a == 0) {
    *result = x == 0 ? kNan : upper ? 0 : 1;
  } else if (x == 0) {
    *result = upper ? 1 : 0;
  } else if (std::isinf(a)) {
    *result = std::isinf(x) ? kNan : upper ? 1 : 0;
  } else if (std::isinf(x)) {
    *result = upper ? 0 : 1;
  } else {
    return false;
  }
  return true;
}

bool near_large(double a, double x) { return a > 1e6 && std::fabs(x - a) < 0.05 * a; }

}  // namespace

double igamma(double a, double x) {
  double result;
  if (gamma_edges(a, x, false, &result)) return result;
  if (near_large(a, x)) return gamma_large(a, x, false);
  if (x < 1 || x < a) return gamma_series(a, x);
  return 1 - igammac(a, x);
}
double igammac(double a, double x) {
  double result;
  if (gamma_edges(a, x, true, &result)) return result;
  if (near_large(a, x)) return gamma_large(a, x, true);
  if (x < 1.1 && x >= a) return gamma_upper_small(a, x);
  if (x < a) return 1 - gamma_series(a, x);
  return gamma_fraction(a, x);
}

// ---- orthogonal polynomials, by their recurrences (DLMF 18.9)

namespace {

constexpr double kMostSteps = 9e15;

// p[k + 1] = f(k, p[k], p[k - 1]) up to order n
template <class F>
double recur(int64_t n, double p0, double p1, F f) {
  if (n < 0) return 0;
  if (n == 0) return p0;
  double before = p0, now = p1;
  for (int64_t k = 1; k < n && !std::isnan(now); ++k) {
    const double next = f(static_cast<double>(k), now, before);
    before = now;
    now = next;
  }
  return now;
}
int64_t order(double n) { return std::isnan(n) ? -1 : static_cast<int64_t>(std::fmin(std::fmax(n, -1), kMostSteps)); }
bool is_odd(int64_t n) { return n & 1; }

// The four kinds obey one recurrence and differ in their first member; within (-1, 1) they are quotients of sines and
// cosines of multiples of acos(x), at the ends whole numbers.
enum Kind { kT, kU, kV, kW };
double chebyshev_kind(Kind kind, double x, double real_n) {
  const int64_t n = order(real_n);
  if (n < 0) return 0;
  const double d = static_cast<double>(n), sign = is_odd(n) ? -1 : 1;
  if (std::fabs(x) == 1) {
    const bool left = x < 0;
    switch (kind) {
      case kT:
        return left ? sign : 1;
      case kU:
        return left ? sign * (d + 1) : d + 1;
      case kV:
        return left ? sign * (2 * d + 1) : 1;
      default:
        return left ? sign : 2 * d + 1;
    }
  }
  if (n > 40 && std::fabs(x) < 1) {
    const double t = std::acos(x);
    switch (kind) {
      case kT:
        return std::cos(d * t);
      case kU:
        return std::sin((d + 1) * t) / std::sin(t);
      case kV:
        return std::cos((d + 0.5) * t) / std::cos(0.5 * t);
      default:
        return std::sin((d + 0.5) * t) / std::sin(0.5 * t);
    }
  }
  const double first = kind == kT ? x : kind == kU ? 2 * x : kind == kV ? 2 * x - 1 : 2 * x + 1;
  return recur(n, 1, first, [x](double, double now, double before) { return 2 * x * now - before; });
}

}  // namespace

double chebyshev_t(double x, double n) { return chebyshev_kind(kT, x, n); }
double chebyshev_u(double x, double n) { return chebyshev_kind(kU, x, n); }
double chebyshev_v(double x, double n) { return chebyshev_kind(kV, x, n); }
double chebyshev_w(double x, double n) { return chebyshev_kind(kW, x, n); }
double shifted_chebyshev_t(double x, double n) { return chebyshev_kind(kT, 2 * x - 1, n); }
double shifted_chebyshev_u(double x, double n) { return chebyshev_kind(kU, 2 * x - 1, n); }
double shifted_chebyshev_v(double x, double n) { return chebyshev_kind(kV, 2 * x - 1, n); }
double shifted_chebyshev_w(double x, double n) { return chebyshev_kind(kW, 2 * x - 1, n); }
double hermite_h(double x, double n) {
  return recur(order(n), 1, 2 * x, [x](double k, double now, double before) { return 2 * (x * now - k * before); });
}
double hermite_he(double x, double n) {
  return recur(order(n), 1, x, [x](double k, double now, double before) { return x * now - k * before; });
}
double laguerre_l(double x, double n) {
  return recur(order(n), 1, 1 - x,
               [x](double k, double now, double before) { return ((2 * k + 1 - x) * now - k * before) / (k + 1); });
}
double legendre_p(double x, double n) {
  if (std::fabs(x) == 1) return order(n) < 0 ? 0 : x < 0 && is_odd(order(n)) ? -1 : 1;
  return recur(order(n), 1, x,
               [x](double k, double now, double before) { return ((2 * k + 1) * x * now - k * before) / (k + 1); });
}

}  // namespace rl::special
