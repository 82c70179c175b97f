// Inner loops of the normalisation layers. See norm_kernels.h for the contract.
#include "cpu/reduce_simd.h"

#include "cpu/norm_kernels.h"

namespace rl {
namespace {

constexpr int64_t kBlock = 2048;      // elements that add up in T before their sum is added in double
constexpr int64_t kStripWidth = 512;  // columns of one pass

// Two sums over a run: add(first, lanes, sums) adds a vector to each; totals in double.
template <class T, class Add>
RL_INLINE void two_sums(int64_t n, double* first, double* second, Add add) {
  using V = Vector<T>;
  const auto plus = [](V a, V b) { return a + b; };
  *first = *second = 0;
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t end = n - i < kBlock ? n : i + kBlock;
    V a[4] = {}, b[4] = {};
    int64_t k = i;
    for (; k + 4 * kWidth<T> <= end; k += 4 * kWidth<T>) {
#pragma GCC unroll 4
      for (int u = 0; u < 4; ++u) add(k + u * kWidth<T>, kWidth<T>, a[u], b[u]);
    }
    for (; k < end; k += kWidth<T>) add(k, end - k < kWidth<T> ? static_cast<int>(end - k) : kWidth<T>, a[0], b[0]);
    *first += static_cast<double>(fold_vector<T>((a[0] + a[2]) + (a[1] + a[3]), plus));
    *second += static_cast<double>(fold_vector<T>((b[0] + b[2]) + (b[1] + b[3]), plus));
  }
}

// Statistics in double, scaled by a power of two so that squares stay in range whatever the elements are.
template <class T>
void scaled_statistics(const T* x, int64_t n, bool center, double eps, double* mean, double* rstd) {
  double largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double m = __builtin_fabs(static_cast<double>(x[i]));
    largest = (m > largest) | (m != m) ? m : largest;
  }
  double scale = 1;  // stays for float32, whose squares are in range anyway, and where nothing helps
  if (std::is_same_v<T, double> && largest < __builtin_inf() &&
      (largest > 1e140 || (largest > 0 && largest < 1e-140))) {
    scale = __builtin_ldexp(1.0, largest < 1e-300 ? 1000 : -__builtin_ilogb(largest));
  }
  double sum = 0;
  if (center) {
    const double pivot = n > 0 ? static_cast<double>(x[0]) * scale : 0;
    for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * scale - pivot;
    sum = pivot + sum / static_cast<double>(n);
  }
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double d = static_cast<double>(x[i]) * scale - sum;
    squares += d * d;
  }
  *mean = sum / scale;
  // (eps may be lost in the scaled sum, which matters where there is nothing else.)
  *rstd = squares > 0 ? scale / __builtin_sqrt(squares / static_cast<double>(n) + eps * scale * scale)
                      : 1 / __builtin_sqrt(squares + eps);
}

template <class T>
void statistics(const void* data, int64_t n, bool center, double eps, double* mean, double* rstd) {
  const T* x = static_cast<const T*>(data);
  const double count = static_cast<double>(n);
  double sum = 0, rest = 0, squares = 0;
  T middle = 0;
  if (center) {
    double unused;
    two_sums<T>(n, &sum, &unused,
                [&](int64_t i, int lanes, Vector<T>& a, Vector<T>&) { a += load_lanes(x + i, lanes, T(0)); });
    middle = static_cast<T>(sum / count);
  }
  two_sums<T>(n, &rest, &squares, [&](int64_t i, int lanes, Vector<T>& a, Vector<T>& b) {
    const Vector<T> d = load_lanes(x + i, lanes, middle) - middle;
    a += d;
    b += d * d;
  });
  const double offset = center ? rest / count : 0;
  const double variance = squares / count - offset * offset;
  // Squares that left T's comfortable range, or a spread lost to rounding, are computed again with care.
  constexpr double low = sizeof(T) == 4 ? 1e-24 : 1e-280, high = sizeof(T) == 4 ? 1e36 : 1e290;
  if (!(squares > low && squares < high && variance > squares / count * 1e-3)) {
    scaled_statistics(x, n, center, eps, mean, rstd);
    return;
  }
  *mean = static_cast<double>(middle) + offset;
  *rstd = 1 / __builtin_sqrt(variance + eps);
}

template <class T, bool kWeight, bool kBias>
RL_INLINE void normalize_run(const T* x, T* y, int64_t n, T mean, T rstd, const T* w, const T* b) {
  for_vectors<T>(n, [&](int64_t i, int lanes) {
    Vector<T> v = (load_lanes(x + i, lanes, T(0)) - mean) * rstd;
    if constexpr (kWeight) v *= load_lanes(w + i, lanes, T(0));
    if constexpr (kBias) v += load_lanes(b + i, lanes, T(0));
    store_lanes(y + i, lanes, v);
  });
}

template <class T>
void normalize(const void* x_data, void* y_data, int64_t n, double mean, double rstd, const void* w_data,
               const void* b_data, bool safe) {
  const T *x = static_cast<const T*>(x_data), *w = static_cast<const T*>(w_data), *b = static_cast<const T*>(b_data);
  T* y = static_cast<T*>(y_data);
  if (!safe) {
    for (int64_t i = 0; i < n; ++i) {
      // Half the difference, since the whole may be out of range.
      const double v = (static_cast<double>(x[i]) * 0.5 - mean * 0.5) * rstd * 2;
      y[i] = static_cast<T>(v * (w ? static_cast<double>(w[i]) : 1) + (b ? static_cast<double>(b[i]) : 0));
    }
    return;
  }
  const T m = static_cast<T>(mean), r = static_cast<T>(rstd);
  if (w && b)
    normalize_run<T, true, true>(x, y, n, m, r, w, b);
  else if (w)
    normalize_run<T, true, false>(x, y, n, m, r, w, b);
  else if (b)
    normalize_run<T, false, true>(x, y, n, m, r, w, b);
  else
    normalize_run<T, false, false>(x, y, n, m, r, w, b);
}

template <class T>
void affine(const void* x_data, void* y_data, int64_t n, double mean, double scale, double shift, bool safe) {
  const T* x = static_cast<const T*>(x_data);
  T* y = static_cast<T*>(y_data);
  if (!safe) {
    for (int64_t i = 0; i < n; ++i)
      y[i] = static_cast<T>((static_cast<double>(x[i]) * 0.5 - mean * 0.5) * scale * 2 + shift);
    return;
  }
  const T m = static_cast<T>(mean), s = static_cast<T>(scale), t = static_cast<T>(shift);
  for_vectors<T>(
      n, [&](int64_t i, int lanes) { store_lanes(y + i, lanes, (load_lanes(x + i, lanes, T(0)) - m) * s + t); });
}

template <class T>
void affine_columns(const void* x_data, void* y_data, int64_t rows, int64_t n, const double* mean, const double* scale,
                    const double* shift, bool safe) {
  const T* x = static_cast<const T*>(x_data);
  T* y = static_cast<T*>(y_data);
  for (int64_t start = 0; start < n; start += kStripWidth) {
    const int64_t count = n - start < kStripWidth ? n - start : kStripWidth;
    T m[kStripWidth], s[kStripWidth], t[kStripWidth];
    for (int64_t j = 0; j < count; ++j) {
      m[j] = static_cast<T>(mean[start + j]);
      s[j] = static_cast<T>(scale[start + j]);
      t[j] = static_cast<T>(shift[start + j]);
    }
    for (int64_t r = 0; r < rows; ++r) {
      const T* from = x + r * n + start;
      T* to = y + r * n + start;
      if (safe) {
        for_vectors<T>(count, [&](int64_t j, int lanes) {
          store_lanes(
              to + j, lanes,
              (load_lanes(from + j, lanes, T(0)) - load_lanes(m + j, lanes, T(0))) * load_lanes(s + j, lanes, T(0)) +
                  load_lanes(t + j, lanes, T(0)));
        });
      } else {
        for (int64_t j = 0; j < count; ++j) {
          to[j] = static_cast<T>((static_cast<double>(from[j]) * 0.5 - mean[start + j] * 0.5) * scale[start + j] * 2 +
                                 shift[start + j]);
        }
      }
    }
  }
}

template <class T>
void gradient_sums(const void* grad_data, const void* x_data, const void* w_data, int64_t n, double mean, bool safe,
                   double* sum, double* sum_x) {
  const T *g = static_cast<const T*>(grad_data), *x = static_cast<const T*>(x_data), *w = static_cast<const T*>(w_data);
  if (!safe) {
    double a = 0, b = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double v = static_cast<double>(g[i]) * (w ? static_cast<double>(w[i]) : 1);
      a += v;
      b += v * (static_cast<double>(x[i]) - mean);
    }
    *sum = a;
    *sum_x = b;
    return;
  }
  const T m = static_cast<T>(mean);
  const auto run = [&](auto weighted) {
    two_sums<T>(n, sum, sum_x, [&](int64_t i, int lanes, Vector<T>& a, Vector<T>& b) {
      Vector<T> v = load_lanes(g + i, lanes, T(0));
      if constexpr (decltype(weighted)::value) v *= load_lanes(w + i, lanes, T(0));
      a += v;
      b += v * (load_lanes(x + i, lanes, T(0)) - m);
    });
  };
  if (w)
    run(std::true_type{});
  else
    run(std::false_type{});
}

template <class T>
void gradient_sums_columns(const void* grad_data, const void* x_data, int64_t rows, int64_t n, const double* mean,
                           bool safe, double* sum, double* sum_x) {
  const T *g = static_cast<const T*>(grad_data), *x = static_cast<const T*>(x_data);
  for (int64_t start = 0; start < n; start += kStripWidth) {
    const int64_t count = n - start < kStripWidth ? n - start : kStripWidth;
    T m[kStripWidth];
    for (int64_t j = 0; j < count; ++j) {
      m[j] = static_cast<T>(mean[start + j]);
      sum[start + j] = sum_x[start + j] = 0;
    }
    for (int64_t first = 0; first < rows; first += kNormRows) {
      const int64_t end = rows - first < kNormRows ? rows : first + kNormRows;
      T a[kStripWidth] = {}, b[kStripWidth] = {};
      for (int64_t r = first; r < end; ++r) {
        const T *grads = g + r * n + start, *from = x + r * n + start;
        if (safe) {
          for (int64_t j = 0; j < count; ++j) {
            a[j] += grads[j];
            b[j] += grads[j] * (from[j] - m[j]);
          }
        } else {
          for (int64_t j = 0; j < count; ++j) {
            sum[start + j] += static_cast<double>(grads[j]);
            sum_x[start + j] += static_cast<double>(grads[j]) * (static_cast<double>(from[j]) - mean[start + j]);
          }
        }
      }
      for (int64_t j = 0; j < count; ++j) {
        sum[start + j] += static_cast<double>(a[j]);
        sum_x[start + j] += static_cast<double>(b[j]);
      }
    }
  }
}

template <class T>
void combine(const void* grad_data, const void* x_data, const void* w_data, void* out_data, int64_t n, double mean,
             double a, double b, double c, bool safe) {
  const T *g = static_cast<const T*>(grad_data), *x = static_cast<const T*>(x_data), *w = static_cast<const T*>(w_data);
  T* out = static_cast<T*>(out_data);
  if (!safe) {
    for (int64_t i = 0; i < n; ++i) {
      const double v = static_cast<double>(g[i]) * (w ? static_cast<double>(w[i]) : 1);
      out[i] = static_cast<T>(a * v + b * (static_cast<double>(x[i]) - mean) + c);
    }
    return;
  }
  const T m = static_cast<T>(mean), ta = static_cast<T>(a), tb = static_cast<T>(b), tc = static_cast<T>(c);
  const auto run = [&](auto weighted) {
    for_vectors<T>(n, [&](int64_t i, int lanes) {
      Vector<T> v = load_lanes(g + i, lanes, T(0));
      if constexpr (decltype(weighted)::value) v *= load_lanes(w + i, lanes, T(0));
      store_lanes(out + i, lanes, v * ta + (load_lanes(x + i, lanes, T(0)) - m) * tb + tc);
    });
  };
  if (w)
    run(std::true_type{});
  else
    run(std::false_type{});
}

template <class T>
void combine_columns(const void* grad_data, const void* x_data, void* out_data, int64_t rows, int64_t n,
                     const double* mean, const double* a, const double* b, const double* c, bool safe) {
  const T *g = static_cast<const T*>(grad_data), *x = static_cast<const T*>(x_data);
  T* out = static_cast<T*>(out_data);
  for (int64_t start = 0; start < n; start += kStripWidth) {
    const int64_t count = n - start < kStripWidth ? n - start : kStripWidth;
    T m[kStripWidth], ta[kStripWidth], tb[kStripWidth], tc[kStripWidth];
    for (int64_t j = 0; j < count; ++j) {
      m[j] = static_cast<T>(mean[start + j]);
      ta[j] = static_cast<T>(a[start + j]);
      tb[j] = static_cast<T>(b[start + j]);
      tc[j] = static_cast<T>(c[start + j]);
    }
    for (int64_t r = 0; r < rows; ++r) {
      const T *grads = g + r * n + start, *from = x + r * n + start;
      T* to = out + r * n + start;
      if (safe) {
#pragma GCC ivdep
        for (int64_t j = 0; j < count; ++j) to[j] = grads[j] * ta[j] + (from[j] - m[j]) * tb[j] + tc[j];
      } else {
        for (int64_t j = 0; j < count; ++j) {
          const int64_t k = start + j;
          to[j] = static_cast<T>(static_cast<double>(grads[j]) * a[k] +
                                 (static_cast<double>(from[j]) - mean[k]) * b[k] + c[k]);
        }
      }
    }
  }
}

template <class T>
void combine_parameters(const void* grad_data, const void* x_data, const void* w_data, void* out_data, int64_t n,
                        double mean, double rstd, double b, double c, void* dw_data, void* db_data) {
  const T *g = static_cast<const T*>(grad_data), *x = static_cast<const T*>(x_data), *w = static_cast<const T*>(w_data);
  T *out = static_cast<T*>(out_data), *dw = static_cast<T*>(dw_data), *db = static_cast<T*>(db_data);
  const T m = static_cast<T>(mean), r = static_cast<T>(rstd), tb = static_cast<T>(b), tc = static_cast<T>(c);
  for_vectors<T>(n, [&](int64_t i, int lanes) {
    const Vector<T> v = load_lanes(g + i, lanes, T(0)), d = load_lanes(x + i, lanes, T(0)) - m;
    store_lanes(dw + i, lanes, load_lanes(dw + i, lanes, T(0)) + v * (d * r));
    store_lanes(db + i, lanes, load_lanes(db + i, lanes, T(0)) + v);
    store_lanes(out + i, lanes, v * load_lanes(w + i, lanes, T(0)) * r + d * tb + tc);
  });
}

template <class T>
void parameter_sums(const void* grad_data, const void* x_data, int64_t n, double mean, double rstd, void* dw_data,
                    void* db_data, bool safe) {
  const T *g = static_cast<const T*>(grad_data), *x = static_cast<const T*>(x_data);
  T *dw = static_cast<T*>(dw_data), *db = static_cast<T*>(db_data);
  const T m = static_cast<T>(mean), r = static_cast<T>(rstd);
  if (dw && safe) {
    for (int64_t i = 0; i < n; ++i) dw[i] += g[i] * ((x[i] - m) * r);
  } else if (dw) {
    for (int64_t i = 0; i < n; ++i) {
      dw[i] += static_cast<T>(static_cast<double>(g[i]) * ((static_cast<double>(x[i]) - mean) * rstd));
    }
  }
  if (db) {
    for (int64_t i = 0; i < n; ++i) db[i] += g[i];
  }
}

template <class T>
constexpr NormLoops kLoops = {statistics<T>,     normalize<T>,       affine<T>,
                              affine_columns<T>, gradient_sums<T>,   gradient_sums_columns<T>,
                              combine<T>,        combine_columns<T>, combine_parameters<T>,
                              parameter_sums<T>};

constexpr NormTable table = {kLoops<float>, kLoops<double>};

}  // namespace

const NormTable& RL_ISA_SYMBOL(norm_table)() { return table; }

}  // namespace rl
