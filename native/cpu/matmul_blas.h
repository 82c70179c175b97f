// The CBLAS functions of the library that rl_set_blas_library names, with one overloaded name per operation. All
// matrices are row-major. Sizes and strides fit an int: callers see to that.
#pragma once

#include "core/dtype.h"
#include "core/error.h"

namespace rl {

enum class Transpose : int { kNo = 111, kYes = 112 };

struct BlasTable {
  template <class T>
  using RealGemm = void (*)(int, int, int, int, int, int, T, const T*, int, const T*, int, T, T*, int);
  using ComplexGemm = void (*)(int, int, int, int, int, int, const void*, const void*, int, const void*, int,
                               const void*, void*, int);
  template <class T>
  using RealGemv = void (*)(int, int, int, int, T, const T*, int, const T*, int, T, T*, int);
  using ComplexGemv = void (*)(int, int, int, int, const void*, const void*, int, const void*, int, const void*, void*,
                               int);
  template <class T>
  using RealDot = T (*)(int, const T*, int, const T*, int);
  using ComplexDot = void (*)(int, const void*, int, const void*, int, void*);

  RealGemm<float> sgemm;
  RealGemm<double> dgemm;
  ComplexGemm cgemm, zgemm;
  RealGemv<float> sgemv;
  RealGemv<double> dgemv;
  ComplexGemv cgemv, zgemv;
  RealDot<float> sdot;
  RealDot<double> ddot;
  ComplexDot cdotu, cdotc, zdotu, zdotc;
};

namespace detail {
extern const BlasTable* loaded_blas;
const BlasTable* load_blas();
}  // namespace detail

// Null, with the error set, when no library can be loaded.
inline const BlasTable* blas() {
  const BlasTable* table = __atomic_load_n(&detail::loaded_blas, __ATOMIC_ACQUIRE);
  return table ? table : detail::load_blas();
}

constexpr int kRowMajor = 101;

#define RL_GEMM_REAL(T, function)                                                                                     \
  inline void gemm(const BlasTable& t, Transpose ta, Transpose tb, int m, int n, int k, T alpha, const T* a, int lda, \
                   const T* b, int ldb, T beta, T* c, int ldc) {                                                      \
    t.function(kRowMajor, static_cast<int>(ta), static_cast<int>(tb), m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);  \
  }
#define RL_GEMM_COMPLEX(T, function)                                                                                   \
  inline void gemm(const BlasTable& t, Transpose ta, Transpose tb, int m, int n, int k, T alpha, const T* a, int lda,  \
                   const T* b, int ldb, T beta, T* c, int ldc) {                                                       \
    t.function(kRowMajor, static_cast<int>(ta), static_cast<int>(tb), m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc); \
  }
#define RL_GEMV_REAL(T, function)                                                                                      \
  inline void gemv(const BlasTable& t, Transpose ta, int m, int n, T alpha, const T* a, int lda, const T* x, int incx, \
                   T beta, T* y, int incy) {                                                                           \
    t.function(kRowMajor, static_cast<int>(ta), m, n, alpha, a, lda, x, incx, beta, y, incy);                          \
  }
#define RL_GEMV_COMPLEX(T, function)                                                                                   \
  inline void gemv(const BlasTable& t, Transpose ta, int m, int n, T alpha, const T* a, int lda, const T* x, int incx, \
                   T beta, T* y, int incy) {                                                                           \
    t.function(kRowMajor, static_cast<int>(ta), m, n, &alpha, a, lda, x, incx, &beta, y, incy);                        \
  }
RL_GEMM_REAL(float, sgemm)
RL_GEMM_REAL(double, dgemm)
RL_GEMM_COMPLEX(complex64, cgemm)
RL_GEMM_COMPLEX(complex128, zgemm)
RL_GEMV_REAL(float, sgemv)
RL_GEMV_REAL(double, dgemv)
RL_GEMV_COMPLEX(complex64, cgemv)
RL_GEMV_COMPLEX(complex128, zgemv)
#undef RL_GEMM_REAL
#undef RL_GEMM_COMPLEX
#undef RL_GEMV_REAL
#undef RL_GEMV_COMPLEX

inline float dot(const BlasTable& t, bool, int n, const float* x, int incx, const float* y, int incy) {
  return t.sdot(n, x, incx, y, incy);
}
inline double dot(const BlasTable& t, bool, int n, const double* x, int incx, const double* y, int incy) {
  return t.ddot(n, x, incx, y, incy);
}
inline complex64 dot(const BlasTable& t, bool conjugate, int n, const complex64* x, int incx, const complex64* y,
                     int incy) {
  complex64 result;
  (conjugate ? t.cdotc : t.cdotu)(n, x, incx, y, incy, &result);
  return result;
}
inline complex128 dot(const BlasTable& t, bool conjugate, int n, const complex128* x, int incx, const complex128* y,
                      int incy) {
  complex128 result;
  (conjugate ? t.zdotc : t.zdotu)(n, x, incx, y, incy, &result);
  return result;
}

}  // namespace rl
