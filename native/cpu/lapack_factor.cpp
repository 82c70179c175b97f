// Orthogonal factors (QR), eigenvalues, singular values, least squares.
#include <cmath>
#include <limits>

#include "cpu/lapack_qr.h"

namespace rl {
namespace {

constinit Routine g_geqrf("sgeqrf_", "dgeqrf_", "cgeqrf_", "zgeqrf_");
constinit Routine g_orgqr("sorgqr_", "dorgqr_", "cungqr_", "zungqr_");
constinit Routine g_ormqr("sormqr_", "dormqr_", "cunmqr_", "zunmqr_");
constinit Routine g_heevd("ssyevd_", "dsyevd_", "cheevd_", "zheevd_");
constinit Routine g_hetrd("ssytrd_", "dsytrd_", "chetrd_", "zhetrd_");
constinit Routine g_stedc("sstedc_", "dstedc_", "cstedc_", "zstedc_");
constinit Routine g_unmtr("sormtr_", "dormtr_", "cunmtr_", "zunmtr_");
constinit Routine g_geev("sgeev_", "dgeev_", "cgeev_", "zgeev_");
constinit Routine g_gesdd("sgesdd_", "dgesdd_", "cgesdd_", "zgesdd_");
constinit Routine g_gels("sgels_", "dgels_", "cgels_", "zgels_");
constinit Routine g_gelsy("sgelsy_", "dgelsy_", "cgelsy_", "zgelsy_");
constinit Routine g_gelsd("sgelsd_", "dgelsd_", "cgelsd_", "zgelsd_");
constinit Routine g_gelss("sgelss_", "dgelss_", "cgelss_", "zgelss_");

constexpr int kAsk = -1;

template <class T>
int64_t geqrf_space(int m, int n, int leading) {
  T answer(0);
  int status = 0;
  g_geqrf.call<T>(&m, &n, static_cast<T*>(nullptr), &leading, static_cast<T*>(nullptr), &answer, &kAsk, &status);
  return query_size(answer);
}
template <class T>
int64_t orgqr_space(int m, int n, int k, int leading) {
  T answer(0);
  int status = 0;
  g_orgqr.call<T>(&m, &n, &k, static_cast<T*>(nullptr), &leading, static_cast<T*>(nullptr), &answer, &kAsk, &status);
  return query_size(answer);
}

// ---- small real matrices: the plain algorithm, in the order of LAPACK's reference implementation. Calls cost more
// than the work, and float32 results have the bits of PyTorch's (MKL's) at these sizes.

constexpr int kSmallQr = 16;

template <class T>
T vector_size(const T* x, int64_t n) {
  T scale(0), sum(1);
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] == T(0)) continue;
    const T size = std::abs(x[i]);
    if (scale < size) {
      const T ratio = scale / size;
      sum = T(1) + sum * ratio * ratio;
      scale = size;
    } else {
      const T ratio = size / scale;
      sum += ratio * ratio;
    }
  }
  return scale * std::sqrt(sum);
}

// Subtracts tau v (v . c) from a column, where v starts with an implicit 1.
template <class T>
void reflect(const T* v, T tau, T* column, int64_t n) {
  T product = column[0];
  for (int64_t i = 1; i < n; ++i) product += v[i] * column[i];
  product *= tau;
  column[0] -= product;
  for (int64_t i = 1; i < n; ++i) column[i] -= product * v[i];
}

// Numbers whose squares and quotients neither overflow nor lose digits: others are left to LAPACK's rescaling.
template <class T>
bool is_moderate(const T* a, int m, int n, int leading) {
  constexpr T limit = std::is_same_v<T, float> ? T(1e15) : T(1e120);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < m; ++i) {
      const T size = std::abs(a[j * leading + i]);
      if (!(size == T(0) || (size < limit && size > 1 / limit))) return false;
    }
  }
  return true;
}

template <class T>
bool factor_small(int m, int n, T* a, int leading, T* tau) {
  if constexpr (!is_complex_v<T>) {
    if (m > kSmallQr || n > kSmallQr || !is_moderate(a, m, n, leading)) return false;
    for (int64_t i = 0; i < std::min(m, n); ++i) {
      T* const v = a + i * leading + i;
      const int64_t rows = m - i;
      const T rest = vector_size(v + 1, rows - 1);
      tau[i] = T(0);
      if (rest == T(0)) continue;
      const T head = std::abs(v[0]), more = std::max(head, rest), ratio = std::min(head, rest) / more;
      const T beta = -std::copysign(more * std::sqrt(T(1) + ratio * ratio), v[0]);
      tau[i] = (beta - v[0]) / beta;
      const T scale = v[0] - beta;
      for (int64_t r = 1; r < rows; ++r) v[r] /= scale;
      for (int64_t j = 1; j < n - i; ++j) reflect(v, tau[i], v + j * leading, rows);
      v[0] = beta;
    }
    return true;
  }
  return false;
}

// The first n columns of the product of k reflectors.
template <class T>
bool multiply_small(int m, int n, int k, T* a, int leading, const T* tau) {
  if constexpr (!is_complex_v<T>) {
    if (m > kSmallQr || n > kSmallQr) return false;
    for (int64_t j = k; j < n; ++j)
      for (int64_t i = 0; i < m; ++i) a[j * leading + i] = T(i == j ? 1 : 0);
    for (int64_t i = k - 1; i >= 0; --i) {
      T* const v = a + i * leading + i;
      const int64_t rows = m - i;
      for (int64_t j = 1; j < n - i; ++j) reflect(v, tau[i], v + j * leading, rows);
      for (int64_t r = 1; r < rows; ++r) v[r] *= -tau[i];
      v[0] = T(1) - tau[i];
      for (int64_t r = 0; r < i; ++r) a[i * leading + r] = T(0);
    }
    return true;
  }
  return false;
}

template <class T>
rl_status geqrf(const rl_tensor* a, rl_tensor* qr, rl_tensor* tau) {
  RL_TRY(g_geqrf.find<T>());
  const MatrixShape from = matrix_shape(a), to = matrix_shape(qr);
  const int m = static_cast<int>(from.rows), n = static_cast<int>(from.columns), k = std::min(m, n);
  const bool large = k >= kLargeReflections;
  if (large) RL_TRY(Reflections<T>::find());
  return each_block(batch_count(a, 2), 2.0 * m * n * k, [&](int64_t begin, int64_t end) -> rl_status {
    WorkMatrix<T> work(to);
    const int leading = work.leading();
    const int64_t size = k > 0 ? geqrf_space<T>(m, n, leading) : 1;
    const Scratch<T> space(size), factors(k);
    Reflections<T> reflections(large ? m : 0, large ? n : 0);
    if (!work.ok() || !space || !factors || !reflections.ok()) return RL_MEMORY_ERROR;
    const int length = static_cast<int>(size);
    for (int64_t b = begin; b < end; ++b) {
      T* const matrix = work.begin(item_of<T>(qr, 2, b));
      pack(matrix, leading, item_of<T>(a, 2, b), from);
      int status = 0;
      if (large)
        RL_TRY(reflections.factor(matrix, leading, factors.get()));
      else if (k > 0 && !factor_small(m, n, matrix, leading, factors.get()))
        g_geqrf.call<T>(&m, &n, matrix, &leading, factors.get(), space.get(), &length, &status);
      store_vector(item_of<T>(tau, 1, b), tau->strides[tau->ndim - 1], factors.get(), k);
      work.finish();
    }
    return RL_OK;
  });
}

template <class T>
rl_status householder_product(const rl_tensor* a, const rl_tensor* tau, rl_tensor* out) {
  RL_TRY(g_orgqr.find<T>());
  const MatrixShape from = matrix_shape(a), to = matrix_shape(out);
  const int m = static_cast<int>(from.rows), n = static_cast<int>(from.columns);
  const int k = static_cast<int>(tau->shape[tau->ndim - 1]);
  return each_block(batch_count(a, 2), 2.0 * m * n * n, [&](int64_t begin, int64_t end) -> rl_status {
    WorkMatrix<T> work(to);
    const int leading = work.leading();
    const int64_t size = n > 0 ? orgqr_space<T>(m, n, k, leading) : 1;
    const Scratch<T> space(size), factors(k);
    if (!work.ok() || !space || !factors) return RL_MEMORY_ERROR;
    const int length = static_cast<int>(size);
    for (int64_t b = begin; b < end; ++b) {
      T* const matrix = work.begin(item_of<T>(out, 2, b));
      pack(matrix, leading, item_of<T>(a, 2, b), from);
      const T* const t = item_of<T>(tau, 1, b);
      for (int i = 0; i < k; ++i) factors[i] = t[i * tau->strides[tau->ndim - 1]];
      int status = 0;
      if (n > 0 && !multiply_small(m, n, k, matrix, leading, factors.get()))
        g_orgqr.call<T>(&m, &n, &k, matrix, &leading, factors.get(), space.get(), &length, &status);
      work.finish();
    }
    return RL_OK;
  });
}

template <class T>
rl_status ormqr(const rl_tensor* a, const rl_tensor* tau, const rl_tensor* c, bool left, bool adjoint, rl_tensor* out) {
  RL_TRY(g_ormqr.find<T>());
  MatrixShape reflectors = matrix_shape(a);
  const MatrixShape from = matrix_shape(c), to = matrix_shape(out);
  const int m = static_cast<int>(to.rows), n = static_cast<int>(to.columns);
  const int k = static_cast<int>(tau->shape[tau->ndim - 1]);
  const int order = static_cast<int>(reflectors.rows);
  reflectors.columns = k;
  const char* const transpose = !adjoint ? "N" : is_complex_v<T> ? "C" : "T";
  const char* const side = left ? "L" : "R";
  return each_block(batch_count(out, 2), 4.0 * m * n * k, [&](int64_t begin, int64_t end) -> rl_status {
    WorkMatrix<T> work(to);
    const int leading = work.leading(), a_leading = std::max(1, order);
    T answer(0);
    int status = 0;
    const bool some = m > 0 && n > 0 && k > 0;
    if (some)
      g_ormqr.call<T>(side, transpose, &m, &n, &k, static_cast<T*>(nullptr), &a_leading, static_cast<T*>(nullptr),
                      static_cast<T*>(nullptr), &leading, &answer, &kAsk, &status);
    const int64_t size = query_size(answer);
    const Scratch<T> space(size), factors(k), matrix(static_cast<int64_t>(order) * k);
    if (!work.ok() || !space || !factors || !matrix) return RL_MEMORY_ERROR;
    const int length = static_cast<int>(size);
    for (int64_t b = begin; b < end; ++b) {
      pack(matrix.get(), a_leading, item_of<T>(a, 2, b), reflectors);
      const T* const t = item_of<T>(tau, 1, b);
      for (int i = 0; i < k; ++i) factors[i] = t[i * tau->strides[tau->ndim - 1]];
      T* const x = work.begin(item_of<T>(out, 2, b));
      pack(x, leading, item_of<T>(c, 2, b), from);
      if (some)
        g_ormqr.call<T>(side, transpose, &m, &n, &k, matrix.get(), &a_leading, factors.get(), x, &leading, space.get(),
                        &length, &status);
      work.finish();
    }
    return RL_OK;
  });
}

template <class T>
rl_status qr(const rl_tensor* a, rl_tensor* q, rl_tensor* r) {
  RL_TRY(g_geqrf.find<T>());
  RL_TRY(g_orgqr.find<T>());
  const MatrixShape from = matrix_shape(a), triangle = matrix_shape(r);
  const int m = static_cast<int>(from.rows), n = static_cast<int>(from.columns), k = std::min(m, n);
  const int q_columns = q ? static_cast<int>(q->shape[q->ndim - 1]) : 0;
  const int leading = std::max(1, m), columns = std::max(n, q_columns);
  const bool large = k >= kLargeReflections;
  if (large) RL_TRY(Reflections<T>::find());
  return each_block(batch_count(a, 2), 4.0 * m * n * k, [&](int64_t begin, int64_t end) -> rl_status {
    int64_t size = k > 0 ? geqrf_space<T>(m, n, leading) : 1;
    if (q_columns > 0) size = std::max(size, orgqr_space<T>(m, q_columns, k, leading));
    const Scratch<T> space(size), factors(k), memory(static_cast<int64_t>(leading) * columns);
    Reflections<T> reflections(large ? m : 0, large ? n : 0);
    if (!space || !factors || !memory || !reflections.ok()) return RL_MEMORY_ERROR;
    const int length = static_cast<int>(size);
    T* const matrix = memory.get();
    for (int64_t b = begin; b < end; ++b) {
      pack(matrix, leading, item_of<T>(a, 2, b), from);
      int status = 0;
      if (large)
        RL_TRY(reflections.factor(matrix, leading, nullptr));
      else if (k > 0 && !factor_small(m, n, matrix, leading, factors.get()))
        g_geqrf.call<T>(&m, &n, matrix, &leading, factors.get(), space.get(), &length, &status);
      T* const to = item_of<T>(r, 2, b);
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t i = 0; i < triangle.rows; ++i)
          to[i * triangle.row_stride + j * triangle.column_stride] = i <= j ? matrix[j * leading + i] : T(0);
      }
      if (!q) continue;
      if (large)
        RL_TRY(reflections.expand(matrix, leading, q_columns));
      else if (q_columns > 0 && !multiply_small(m, q_columns, k, matrix, leading, factors.get()))
        g_orgqr.call<T>(&m, &q_columns, &k, matrix, &leading, factors.get(), space.get(), &length, &status);
      unpack(item_of<T>(q, 2, b), matrix_shape(q), matrix, leading);
    }
    return RL_OK;
  });
}

// ---- eigenvalues

// Whether the largest part of a number is neither so small nor so large that squares leave the normal range; no NaN.
template <class T>
bool needs_no_scaling(const T* a, int64_t count) {
  using R = real_t<T>;
  constexpr R limit = std::is_same_v<R, float> ? R(1e14) : R(1e120);
  const R* const parts = reinterpret_cast<const R*>(a);
  R largest = 0;
  bool finite = true;
  for (int64_t i = 0; i < count * int64_t{sizeof(T) / sizeof(R)}; ++i) {
    const R size = std::abs(parts[i]);
    finite &= size <= limit;
    largest = std::max(largest, size);
  }
  return finite && (largest == R(0) || largest >= 1 / limit);
}

// What ?heevd does with a matrix whose numbers need no scaling, in its steps, so that the last one, which multiplies
// the vectors of the tridiagonal matrix by the reflectors, is shared out by columns. The values end up in w.
template <class T>
rl_status eigh_in_steps(const char* uplo, int n, T* matrix, T* vectors, real_t<T>* w, int* status) {
  using R = real_t<T>;
  const int64_t size = n;
  const int64_t real_count = 1 + 4 * size + (is_complex_v<T> ? 2 : 1) * size * size;
  const int reduce_length = 64 * n, real_length = static_cast<int>(real_count), int_length = 3 + 5 * n;
  const Scratch<T> space(reduce_length), tau(n);
  const Scratch<R> beside(n), reals(real_count);
  const Scratch<int> ints(int_length);
  if (!space || !tau || !beside || !reals || !ints) return RL_MEMORY_ERROR;
  g_hetrd.call<T>(uplo, &n, matrix, &n, w, beside.get(), tau.get(), space.get(), &reduce_length, status);
  if constexpr (is_complex_v<T>)
    g_stedc.call<T>("I", &n, w, beside.get(), vectors, &n, space.get(), &reduce_length, reals.get(), &real_length,
                    ints.get(), &int_length, status);
  else
    g_stedc.call<T>("I", &n, w, beside.get(), vectors, &n, reals.get(), &real_length, ints.get(), &int_length, status);
  return parallel_for(n, block_columns(n), [&](int64_t begin, int64_t end) -> rl_status {
    const int width = static_cast<int>(end - begin);
    // Room for blocks of 64 reflectors: with less, LAPACK would take them singly and write to the matrix meanwhile.
    const int length = 64 * width + 65 * 64;
    const Scratch<T> own(length);
    if (!own) return RL_MEMORY_ERROR;
    int failed = 0;
    g_unmtr.call<T>("L", uplo, "N", &n, &width, matrix, &n, tau.get(), vectors + begin * n, &n, own.get(), &length,
                    &failed);
    return RL_OK;
  });
}

template <class T>
rl_status eigh(const rl_tensor* a, bool upper, rl_tensor* values, rl_tensor* vectors, rl_tensor* info) {
  using R = real_t<T>;
  for (Routine* const routine : {&g_heevd, &g_hetrd, &g_stedc, &g_unmtr}) RL_TRY(routine->find<T>());
  const MatrixShape from = matrix_shape(a);
  const int n = static_cast<int>(from.rows), leading = std::max(1, n);
  const char* const job = vectors ? "V" : "N";
  const char* const uplo = upper ? "U" : "L";
  return each_block(batch_count(a, 2), 8.0 * n * n * n, [&](int64_t begin, int64_t end) -> rl_status {
    const bool large = vectors && n >= kLargeMatrix;
    const Scratch<T> matrix(static_cast<int64_t>(n) * n), found(large ? static_cast<int64_t>(n) * n : 1);
    const Scratch<R> w(n);
    T answer(0);
    R real_answer(0);
    int int_answer = 1, status = 0;
    auto run = [&](T* m, R* out, T* space, const int* length, R* real_space, const int* real_length, int* ints,
                   const int* int_length) {
      if constexpr (is_complex_v<T>)
        g_heevd.call<T>(job, uplo, &n, m, &leading, out, space, length, real_space, real_length, ints, int_length,
                        &status);
      else
        g_heevd.call<T>(job, uplo, &n, m, &leading, out, space, length, ints, int_length, &status);
    };
    if (n > 0) run(matrix.get(), w.get(), &answer, &kAsk, &real_answer, &kAsk, &int_answer, &kAsk);
    const int64_t size = query_size(answer), real_size = query_size(real_answer);
    const Scratch<T> space(size);
    const Scratch<R> real_space(real_size);
    const Scratch<int> ints(int_answer);
    if (!matrix || !found || !w || !space || !real_space || !ints) return RL_MEMORY_ERROR;
    const int length = static_cast<int>(size), real_length = static_cast<int>(real_size);
    for (int64_t b = begin; b < end; ++b) {
      pack(matrix.get(), leading, item_of<T>(a, 2, b), from);
      status = 0;
      T* result = matrix.get();
      if (large && needs_no_scaling(matrix.get(), static_cast<int64_t>(n) * n)) {
        result = found.get();
        RL_TRY(eigh_in_steps(uplo, n, matrix.get(), result, w.get(), &status));
      } else if (n > 0)
        run(matrix.get(), w.get(), space.get(), &length, real_space.get(), &real_length, ints.get(), &int_answer);
      *item_of<int32_t>(info, 0, b) = status;
      store_vector(item_of<R>(values, 1, b), values->strides[values->ndim - 1], w.get(), n);
      if (vectors) unpack(item_of<T>(vectors, 2, b), matrix_shape(vectors), result, leading);
    }
    return RL_OK;
  });
}

template <class T>
rl_status eig(const rl_tensor* a, rl_tensor* values, rl_tensor* vectors, rl_tensor* info) {
  using R = real_t<T>;
  using C = complex<R>;
  RL_TRY(g_geev.find<T>());
  const MatrixShape from = matrix_shape(a);
  const int n = static_cast<int>(from.rows), leading = std::max(1, n), one = 1;
  const int v_leading = vectors ? leading : 1;
  const char* const job = vectors ? "V" : "N";
  return each_block(batch_count(a, 2), 25.0 * n * n * n, [&](int64_t begin, int64_t end) -> rl_status {
    const int64_t square = static_cast<int64_t>(n) * n;
    const Scratch<T> matrix(square), right(vectors ? square : 1), w(2 * static_cast<int64_t>(leading));
    const Scratch<R> real_space(2 * static_cast<int64_t>(leading));
    if (!matrix || !right || !w || !real_space) return RL_MEMORY_ERROR;
    T answer(0);
    int status = 0;
    T nothing(0);
    auto run = [&](T* space, const int* length) {
      if constexpr (is_complex_v<T>)
        g_geev.call<T>("N", job, &n, matrix.get(), &leading, w.get(), &nothing, &one, right.get(), &v_leading, space,
                       length, real_space.get(), &status);
      else
        g_geev.call<T>("N", job, &n, matrix.get(), &leading, w.get(), w.get() + n, &nothing, &one, right.get(),
                       &v_leading, space, length, &status);
    };
    if (n > 0) run(&answer, &kAsk);
    const int64_t size = query_size(answer);
    const Scratch<T> space(size);
    if (!space) return RL_MEMORY_ERROR;
    const int length = static_cast<int>(size);
    for (int64_t b = begin; b < end; ++b) {
      pack(matrix.get(), leading, item_of<T>(a, 2, b), from);
      status = 0;
      if (n > 0) run(space.get(), &length);
      *item_of<int32_t>(info, 0, b) = status;
      C* const to = item_of<C>(values, 1, b);
      const int64_t step = values->strides[values->ndim - 1];
      if constexpr (is_complex_v<T>) {
        store_vector(to, step, w.get(), n);
        if (vectors) unpack(item_of<T>(vectors, 2, b), matrix_shape(vectors), right.get(), leading);
      } else {
        for (int i = 0; i < n; ++i) to[i * step] = C(w[i], w[n + i]);
        if (!vectors) continue;
        // A pair of conjugate eigenvalues has its vector in two columns: the real part, then the imaginary part.
        C* const v = item_of<C>(vectors, 2, b);
        const MatrixShape s = matrix_shape(vectors);
        for (int64_t j = 0; j < n; ++j) {
          const R* const column = right.get() + j * n;
          C* const first = v + j * s.column_stride;
          if (w[n + j] == R(0) || j + 1 == n) {
            for (int64_t i = 0; i < n; ++i) first[i * s.row_stride] = C(column[i], R(0));
          } else {
            for (int64_t i = 0; i < n; ++i) {
              first[i * s.row_stride] = C(column[i], column[n + i]);
              first[i * s.row_stride + s.column_stride] = C(column[i], -column[n + i]);
            }
            ++j;
          }
        }
      }
    }
    return RL_OK;
  });
}

// ---- singular values

constexpr int kNotFinite = -4;  // what ?gesdd answers to NaN: its fourth argument is not right

template <class T>
rl_status svd(const rl_tensor* a, rl_tensor* u, rl_tensor* s, rl_tensor* vh, rl_tensor* info) {
  using R = real_t<T>;
  RL_TRY(g_gesdd.find<T>());
  const MatrixShape from = matrix_shape(a);
  const int m = static_cast<int>(from.rows), n = static_cast<int>(from.columns), k = std::min(m, n);
  const bool vectors = u && vh;
  const bool full = vectors && (u->shape[u->ndim - 1] != k || vh->shape[vh->ndim - 2] != k);
  const char* const job = !vectors ? "N" : full ? "A" : "S";
  const int leading = std::max(1, m), vt_rows = full ? n : k, vt_leading = std::max(1, vectors ? vt_rows : 1);
  const int64_t big = std::max(m, n), small = k;
  // Of the documentation of ?gesdd.
  const int64_t real_size = !is_complex_v<T> ? 1
                            : vectors
                                ? std::max(5 * small * small + 5 * small, 2 * big * small + 2 * small * small + small)
                                : 7 * small;
  return each_block(batch_count(a, 2), 20.0 * m * n * k, [&](int64_t begin, int64_t end) -> rl_status {
    const Scratch<T> matrix(static_cast<int64_t>(leading) * n), left(vectors ? int64_t{leading} * (full ? m : k) : 1),
        right(vectors ? int64_t{vt_leading} * n : 1);
    const Scratch<R> values(k), real_space(std::max<int64_t>(1, real_size));
    const Scratch<int> ints(8 * static_cast<int64_t>(k));
    if (!matrix || !left || !right || !values || !real_space || !ints) return RL_MEMORY_ERROR;
    int status = 0;
    T answer(0);
    auto run = [&](T* space, const int* length) {
      if constexpr (is_complex_v<T>)
        g_gesdd.call<T>(job, &m, &n, matrix.get(), &leading, values.get(), left.get(), &leading, right.get(),
                        &vt_leading, space, length, real_space.get(), ints.get(), &status);
      else
        g_gesdd.call<T>(job, &m, &n, matrix.get(), &leading, values.get(), left.get(), &leading, right.get(),
                        &vt_leading, space, length, ints.get(), &status);
    };
    if (k > 0) run(&answer, &kAsk);
    const int64_t size = query_size(answer);
    const Scratch<T> space(size);
    if (!space) return RL_MEMORY_ERROR;
    const int length = static_cast<int>(size);
    for (int64_t b = begin; b < end; ++b) {
      pack(matrix.get(), leading, item_of<T>(a, 2, b), from);
      status = 0;
      if (!all_finite(matrix.get(), leading, from)) {
        status = kNotFinite;
      } else if (k > 0) {
        run(space.get(), &length);
      } else if (vectors) {  // nothing to decompose: identities
        for (int64_t j = 0; full && j < m; ++j)
          for (int64_t i = 0; i < m; ++i) left[j * leading + i] = T(i == j ? 1 : 0);
        for (int64_t j = 0; full && j < n; ++j)
          for (int64_t i = 0; i < n; ++i) right[j * vt_leading + i] = T(i == j ? 1 : 0);
      }
      *item_of<int32_t>(info, 0, b) = status;
      store_vector(item_of<R>(s, 1, b), s->strides[s->ndim - 1], values.get(), k);
      if (vectors) {
        unpack(item_of<T>(u, 2, b), matrix_shape(u), left.get(), leading);
        unpack(item_of<T>(vh, 2, b), matrix_shape(vh), right.get(), vt_leading);
      }
    }
    return RL_OK;
  });
}

// ---- least squares

// Least squares by a QR factorisation without exchanges of columns, of a matrix with no more columns than rows that has
// full rank beyond doubt: its condition, bounded by |R| |R^-1| in the Frobenius norm, is less than 1 / rcond. False
// when that is not certain; then a and x are spoilt.
template <class T>
rl_status solve_full_rank(int m, int n, int r, T* a, int leading, T* x, int x_leading, double rcond, bool* solved) {
  using R = real_t<T>;
  *solved = false;
  if (!needs_no_scaling(a, int64_t{leading} * n)) return RL_OK;
  RL_TRY(Reflections<T>::find());
  Reflections<T> reflections(m, n);
  const Scratch<T> inverse(int64_t{n} * n);
  if (!reflections.ok() || !inverse) return RL_MEMORY_ERROR;
  RL_TRY(reflections.factor(a, leading, nullptr));
  const auto norm = [&](const T* matrix, int step) {
    double sum = 0;
    for (int j = 0; j < n; ++j)
      for (int i = 0; i <= j; ++i) {
        const T v = matrix[int64_t{j} * step + i];
        const double size = std::abs(static_cast<double>(real_part(v)));
        sum += size * size;
        if constexpr (is_complex_v<T>) sum += static_cast<double>(v.im) * static_cast<double>(v.im);
      }
    return std::sqrt(sum);
  };
  for (int j = 0; j < n; ++j) std::copy_n(a + int64_t{j} * leading, j + 1, inverse.get() + int64_t{j} * n);
  const int status = invert_upper_by_halves(n, inverse.get(), n);
  const double condition = norm(a, leading) * norm(inverse.get(), n);
  const double least =
      std::max(rcond, 4 * static_cast<double>(n) * static_cast<double>(std::numeric_limits<R>::epsilon()));
  if (status != 0 || !(condition * least < 1)) return RL_OK;
  RL_TRY(reflections.multiply_adjoint(x, x_leading, r));
  const T one(1);
  g_large_trsm.call<T>("L", "U", "N", "N", &n, &r, &one, a, &leading, x, &x_leading);
  *solved = true;
  return RL_OK;
}

template <class T>
rl_status lstsq(const rl_tensor* a, const rl_tensor* b, rl_lstsq_driver driver, double rcond, rl_tensor* x,
                rl_tensor* rank, rl_tensor* s, rl_tensor* info) {
  using R = real_t<T>;
  Routine& routine = driver == RL_GELS ? g_gels : driver == RL_GELSY ? g_gelsy : driver == RL_GELSD ? g_gelsd : g_gelss;
  RL_TRY(routine.find<T>());
  const MatrixShape from = matrix_shape(a), right = matrix_shape(b), to = matrix_shape(x);
  const int m = static_cast<int>(from.rows), n = static_cast<int>(from.columns), k = std::min(m, n);
  const int r = static_cast<int>(right.columns);
  const int leading = std::max(1, m), x_leading = std::max({1, m, n});
  const R tolerance = static_cast<R>(rcond);
  return each_block(batch_count(x, 2), 4.0 * m * n * k, [&](int64_t begin, int64_t end) -> rl_status {
    const Scratch<T> matrix(int64_t{leading} * n), solution(int64_t{x_leading} * r);
    const Scratch<R> values(k);
    const Scratch<int> pivots(n);
    if (!matrix || !solution || !values || !pivots) return RL_MEMORY_ERROR;
    int status = 0, found = 0, int_answer = 1;
    T answer(0);
    R real_answer(0);
    auto run = [&](T* space, const int* length, R* reals, int* ints) {
      switch (driver) {
        case RL_GELS:
          g_gels.call<T>("N", &m, &n, &r, matrix.get(), &leading, solution.get(), &x_leading, space, length, &status);
          break;
        case RL_GELSY:
          std::fill_n(pivots.get(), n, 0);
          if constexpr (is_complex_v<T>)
            g_gelsy.call<T>(&m, &n, &r, matrix.get(), &leading, solution.get(), &x_leading, pivots.get(), &tolerance,
                            &found, space, length, reals, &status);
          else
            g_gelsy.call<T>(&m, &n, &r, matrix.get(), &leading, solution.get(), &x_leading, pivots.get(), &tolerance,
                            &found, space, length, &status);
          break;
        case RL_GELSD:
          if constexpr (is_complex_v<T>)
            g_gelsd.call<T>(&m, &n, &r, matrix.get(), &leading, solution.get(), &x_leading, values.get(), &tolerance,
                            &found, space, length, reals, ints, &status);
          else
            g_gelsd.call<T>(&m, &n, &r, matrix.get(), &leading, solution.get(), &x_leading, values.get(), &tolerance,
                            &found, space, length, ints, &status);
          break;
        default:
          if constexpr (is_complex_v<T>)
            g_gelss.call<T>(&m, &n, &r, matrix.get(), &leading, solution.get(), &x_leading, values.get(), &tolerance,
                            &found, space, length, reals, &status);
          else
            g_gelss.call<T>(&m, &n, &r, matrix.get(), &leading, solution.get(), &x_leading, values.get(), &tolerance,
                            &found, space, length, &status);
      }
    };
    const bool plain = (driver == RL_GELS || driver == RL_GELSY) && m >= n && n >= kLargeReflections;
    const bool some = k > 0 && r > 0, values_needed = driver == RL_GELSD || driver == RL_GELSS;
    if (some) run(&answer, &kAsk, &real_answer, &int_answer);
    const int64_t size = query_size(answer);
    int64_t real_size = query_size(real_answer);
    if (driver == RL_GELSY) real_size = 2 * std::max(1, n);
    if (driver == RL_GELSS) real_size = 5 * std::max(1, k);
    const Scratch<T> space(size);
    const Scratch<R> reals(real_size);
    const Scratch<int> ints(std::max(1, int_answer));
    if (!space || !reals || !ints) return RL_MEMORY_ERROR;
    const int length = static_cast<int>(size);
    for (int64_t i = begin; i < end; ++i) {
      pack(matrix.get(), leading, item_of<T>(a, 2, i), from);
      std::fill_n(solution.get(), int64_t{x_leading} * r, T(0));
      pack(solution.get(), x_leading, item_of<T>(b, 2, i), right);
      status = found = 0;
      bool solved = false;
      if (plain && some) {
        RL_TRY(solve_full_rank(m, n, r, matrix.get(), leading, solution.get(), x_leading,
                               driver == RL_GELSY ? rcond : 0.0, &solved));
        found = n;
        if (!solved) {
          pack(matrix.get(), leading, item_of<T>(a, 2, i), from);
          pack(solution.get(), x_leading, item_of<T>(b, 2, i), right);
          found = 0;
        }
      }
      // Singular values of what is not finite may never be found: no rank is, then.
      if (solved)
        status = 0;
      else if (values_needed && !all_finite(matrix.get(), leading, from))
        status = 1;
      else if (some)
        run(space.get(), &length, reals.get(), ints.get());
      *item_of<int32_t>(info, 0, i) = status;
      if (rank) *item_of<int64_t>(rank, 0, i) = found;
      if (s) store_vector(item_of<R>(s, 1, i), s->strides[s->ndim - 1], values.get(), k);
      unpack(item_of<T>(x, 2, i), to, solution.get(), x_leading);
    }
    return RL_OK;
  });
}

}  // namespace
}  // namespace rl

extern "C" {

rl_status rl_geqrf(const rl_tensor* a, rl_tensor* qr, rl_tensor* tau) {
  using namespace rl;
  RL_TRY(check_sizes("geqrf", {a->shape[a->ndim - 1], a->shape[a->ndim - 2]}));
  RL_LAPACK_DISPATCH("geqrf", a->dtype, T, { return geqrf<T>(a, qr, tau); })
}

rl_status rl_householder_product(const rl_tensor* a, const rl_tensor* tau, rl_tensor* out) {
  using namespace rl;
  RL_TRY(check_sizes("householder_product", {a->shape[a->ndim - 1], a->shape[a->ndim - 2]}));
  RL_LAPACK_DISPATCH("householder_product", a->dtype, T, { return householder_product<T>(a, tau, out); })
}

rl_status rl_ormqr(const rl_tensor* a, const rl_tensor* tau, const rl_tensor* c, int left, int adjoint,
                   rl_tensor* out) {
  using namespace rl;
  RL_TRY(check_sizes("ormqr", {out->shape[out->ndim - 1], out->shape[out->ndim - 2]}));
  RL_LAPACK_DISPATCH("ormqr", a->dtype, T, { return ormqr<T>(a, tau, c, left != 0, adjoint != 0, out); })
}

rl_status rl_qr(const rl_tensor* a, rl_tensor* q, rl_tensor* r) {
  using namespace rl;
  RL_TRY(check_sizes("qr", {a->shape[a->ndim - 1], a->shape[a->ndim - 2]}));
  RL_LAPACK_DISPATCH("qr", a->dtype, T, { return qr<T>(a, q, r); })
}

rl_status rl_eigh(const rl_tensor* a, int upper, rl_tensor* values, rl_tensor* vectors, rl_tensor* info) {
  using namespace rl;
  RL_TRY(check_sizes("eigh", {a->shape[a->ndim - 1]}));
  RL_LAPACK_DISPATCH("eigh", a->dtype, T, { return eigh<T>(a, upper != 0, values, vectors, info); })
}

rl_status rl_eig(const rl_tensor* a, rl_tensor* values, rl_tensor* vectors, rl_tensor* info) {
  using namespace rl;
  RL_TRY(check_sizes("eig", {a->shape[a->ndim - 1]}));
  RL_LAPACK_DISPATCH("eig", a->dtype, T, { return eig<T>(a, values, vectors, info); })
}

rl_status rl_svd(const rl_tensor* a, rl_tensor* u, rl_tensor* s, rl_tensor* vh, rl_tensor* info) {
  using namespace rl;
  RL_TRY(check_sizes("svd", {a->shape[a->ndim - 1], a->shape[a->ndim - 2]}));
  RL_LAPACK_DISPATCH("svd", a->dtype, T, { return svd<T>(a, u, s, vh, info); })
}

rl_status rl_lstsq(const rl_tensor* a, const rl_tensor* b, rl_lstsq_driver driver, double rcond, rl_tensor* x,
                   rl_tensor* rank, rl_tensor* s, rl_tensor* info) {
  using namespace rl;
  RL_TRY(check_sizes("lstsq", {a->shape[a->ndim - 1], a->shape[a->ndim - 2], b->shape[b->ndim - 1]}));
  RL_LAPACK_DISPATCH("lstsq", a->dtype, T, { return lstsq<T>(a, b, driver, rcond, x, rank, s, info); })
}

}  // extern "C"
