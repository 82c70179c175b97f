// Triangular factors (Cholesky, LU, LDL), inverses and what is solved with them.
#include <cmath>

#include "cpu/lapack_lanes.h"
#include "cpu/lapack_large.h"

namespace rl {

constinit Routine g_large_getrf("sgetrf_", "dgetrf_", "cgetrf_", "zgetrf_");
constinit Routine g_large_laswp("slaswp_", "dlaswp_", "claswp_", "zlaswp_");
constinit Routine g_large_trsm("strsm_", "dtrsm_", "ctrsm_", "ztrsm_");
constinit Routine g_large_gemm("sgemm_", "dgemm_", "cgemm_", "zgemm_");
constinit Routine g_large_trmm("strmm_", "dtrmm_", "ctrmm_", "ztrmm_");
constinit Routine g_large_trtri("strtri_", "dtrtri_", "ctrtri_", "ztrtri_");

namespace {

constinit Routine g_potrf("spotrf_", "dpotrf_", "cpotrf_", "zpotrf_");
constinit Routine g_potri("spotri_", "dpotri_", "cpotri_", "zpotri_");
constinit Routine g_getrs("sgetrs_", "dgetrs_", "cgetrs_", "zgetrs_");
constinit Routine g_getri("sgetri_", "dgetri_", "cgetri_", "zgetri_");
constinit Routine g_sytrf("ssytrf_", "dsytrf_", "csytrf_", "zsytrf_");
constinit Routine g_sytrs("ssytrs_", "dsytrs_", "csytrs_", "zsytrs_");
constinit Routine g_hetrf("ssytrf_", "dsytrf_", "chetrf_", "zhetrf_");
constinit Routine g_hetrs("ssytrs_", "dsytrs_", "chetrs_", "zhetrs_");

double cube(double n) { return n * n * n; }

// ---- many small matrices

// Whether a batch of matrices fills vectors with them.
template <class T>
bool lanes_fit(const rl_tensor* a, int64_t columns = 0) {
  if constexpr (is_complex_v<T>) {
    return false;
  } else {
    const MatrixShape s = matrix_shape(a);
    return s.rows == s.columns && s.rows > 0 && s.rows <= kLanesMatrix && columns <= 2 * kLanesMatrix &&
           batch_count(a, 2) >= lanes_loops<T>().width;
  }
}

// Runs one of the loops over all of a batch, which is not the output; the last group has some of the matrices of the
// one before it, and is of the same task.
template <class T>
rl_status run_in_lanes(void (*loop)(const LanesGroup<T>&, T*), const rl_tensor* a, bool upper, rl_tensor* out,
                       const rl_tensor* pivots, rl_tensor* info, const rl_tensor* b = nullptr, rl_tensor* x = nullptr) {
  const MatrixShape from = matrix_shape(a);
  const int64_t width = lanes_loops<T>().width, n = from.rows, count = batch_count(x ? x : a, 2);
  LanesGroup<T> shared = {};
  shared.n = static_cast<int>(n);
  shared.in_row = from.row_stride;
  shared.in_column = from.column_stride;
  shared.upper = upper;
  if (out) {
    shared.out_row = matrix_shape(out).row_stride;
    shared.out_column = matrix_shape(out).column_stride;
  }
  if (pivots) shared.pivot_stride = pivots->strides[pivots->ndim - 1];
  if (x) {
    shared.columns = static_cast<int>(matrix_shape(x).columns);
    shared.b_row = matrix_shape(b).row_stride;
    shared.b_column = matrix_shape(b).column_stride;
    shared.x_row = matrix_shape(x).row_stride;
    shared.x_column = matrix_shape(x).column_stride;
  }
  const int64_t room = width * (n * (n + shared.columns) + 4 * width);
  return each_block(count / width, static_cast<double>(room * n), [&](int64_t begin, int64_t end) -> rl_status {
    const Scratch<T> work(room);
    if (!work) return RL_MEMORY_ERROR;
    LanesGroup<T> g = shared;
    const auto run = [&](int64_t first) {
      for (int64_t l = 0; l < width; ++l) {
        g.in[l] = item_of<T>(a, 2, first + l);
        if (out) g.out[l] = item_of<T>(out, 2, first + l);
        if (info) g.info[l] = item_of<int32_t>(info, 0, first + l);
        if (pivots) g.pivots[l] = item_of<int32_t>(pivots, 1, first + l);
        if (x) {
          g.b[l] = item_of<T>(b, 2, first + l);
          g.x[l] = item_of<T>(x, 2, first + l);
        }
      }
      loop(g, work.get());
    };
    for (int64_t i = begin; i < end; ++i) run(i * width);
    if (end == count / width && count % width != 0) run(count - width);
    return RL_OK;
  });
}

// ---- Cholesky

// A Hermitian matrix's row-major memory is its conjugate in column-major order, whose factor in the other triangle has
// the same memory: so rows need no transposition, only the other letter.
template <class T>
rl_status cholesky_one_by_one(const rl_tensor* a, bool upper, rl_tensor* out, rl_tensor* info) {
  MatrixShape from = matrix_shape(a), to = matrix_shape(out);
  const bool swap = from.row_stride != 1;
  if (swap) {
    std::swap(from.row_stride, from.column_stride);
    std::swap(to.row_stride, to.column_stride);
  }
  const bool upper_here = upper != swap;
  const int n = static_cast<int>(from.rows);
  return each_block(batch_count(a, 2), cube(n) / 3, [&](int64_t begin, int64_t end) -> rl_status {
    WorkMatrix<T> work(to);
    if (!work.ok()) return RL_MEMORY_ERROR;
    const int leading = work.leading();
    for (int64_t b = begin; b < end; ++b) {
      T* const m = work.begin(item_of<T>(out, 2, b));
      pack(m, leading, item_of<T>(a, 2, b), from);
      int status = 0;
      if (n > 0) g_potrf.call<T>(upper_here ? "U" : "L", &n, m, &leading, &status);
      *item_of<int32_t>(info, 0, b) = status;
      for (int64_t j = 0; j < n; ++j) {
        T* const column = m + j * leading;
        if (upper_here)
          std::fill(column + j + 1, column + n, T(0));
        else
          std::fill(column, column + j, T(0));
      }
      work.finish();
    }
    return RL_OK;
  });
}

template <class T>
rl_status cholesky(const rl_tensor* a, bool upper, rl_tensor* out, rl_tensor* info) {
  RL_TRY(g_potrf.find<T>());
  if constexpr (!is_complex_v<T>) {
    if (lanes_fit<T>(a) && a->data != out->data) {
      RL_TRY(run_in_lanes<T>(lanes_loops<T>().cholesky, a, upper, out, nullptr, info));
      const int64_t count = batch_count(a, 2);
      for (int64_t b = 0; b < count; ++b)
        if (*item_of<int32_t>(info, 0, b) != 0) return cholesky_one_by_one<T>(a, upper, out, info);
      return RL_OK;
    }
  }
  return cholesky_one_by_one<T>(a, upper, out, info);
}

// The inverse W W^H of A = U^H U, where W = U^-1, from U's triangle in `from`: by blocks of columns down to their
// diagonal, and mirrored. LAPACK's info is in `status`.
template <class T>
rl_status inverse_of_large(const T* factor, const MatrixShape& from, bool conjugated, T* out, int leading,
                           int* status) {
  const int n = static_cast<int>(from.rows);
  const Scratch<T> inverse(int64_t{n} * n);
  if (!inverse) return RL_MEMORY_ERROR;
  T* const w = inverse.get();
  pack(w, n, factor, from, conjugated);
  for (int64_t j = 0; j < n; ++j) std::fill(w + j * n + j + 1, w + (j + 1) * n, T(0));
  *status = invert_upper_by_halves(n, w, n);
  if (*status != 0) {
    pack(out, leading, factor, from, conjugated);
    return RL_OK;
  }
  const T one(1), zero(0);
  RL_TRY(parallel_for(n, block_columns(n), [&](int64_t begin, int64_t end) -> rl_status {
    const int rows = static_cast<int>(end), width = static_cast<int>(end - begin), inner = static_cast<int>(n - begin);
    g_large_gemm.call<T>("N", is_complex_v<T> ? "C" : "T", &rows, &width, &inner, &one, w + begin * n, &n,
                         w + begin * n + begin, &n, &zero, out + begin * leading, &leading);
    return RL_OK;
  }));
  for (int64_t j = 0; j < n; ++j) out[j * leading + j] = T(real_part(out[j * leading + j]));
  constexpr int64_t kTile = 32;
  for (int64_t jb = 0; jb < n; jb += kTile)
    for (int64_t ib = 0; ib <= jb; ib += kTile)
      for (int64_t j = jb; j < std::min<int64_t>(jb + kTile, n); ++j)
        for (int64_t i = ib; i < std::min(ib + kTile, j); ++i) out[i * leading + j] = conjugate(out[j * leading + i]);
  return RL_OK;
}

template <class T>
rl_status cholesky_inverse(const rl_tensor* factor, bool upper, rl_tensor* out, rl_tensor* info) {
  RL_TRY(g_potri.find<T>());
  RL_TRY(find_large<T>());
  const MatrixShape from = matrix_shape(factor), to = matrix_shape(out);
  const int n = static_cast<int>(from.rows);
  return each_block(batch_count(factor, 2), cube(n), [&](int64_t begin, int64_t end) -> rl_status {
    WorkMatrix<T> work(to);
    if (!work.ok()) return RL_MEMORY_ERROR;
    const int leading = work.leading();
    for (int64_t b = begin; b < end; ++b) {
      T* const m = work.begin(item_of<T>(out, 2, b));
      int status = 0;
      if (n >= 96) {
        const MatrixShape turned = {from.columns, from.rows, from.column_stride, from.row_stride};
        RL_TRY(inverse_of_large(item_of<T>(factor, 2, b), upper ? from : turned, !upper, m, leading, &status));
        *item_of<int32_t>(info, 0, b) = status;
        work.finish();
        continue;
      }
      pack(m, leading, item_of<T>(factor, 2, b), from);
      if (n > 0) g_potri.call<T>(upper ? "U" : "L", &n, m, &leading, &status);
      *item_of<int32_t>(info, 0, b) = status;
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t i = 0; i < j; ++i) {
          T &above = m[j * leading + i], &below = m[i * leading + j];
          (upper ? below : above) = conjugate(upper ? above : below);
        }
      }
      work.finish();
    }
    return RL_OK;
  });
}

// ---- LU

// Small matrices are factored here, by columns as LAPACK's unblocked routine does: a call would cost more.
constexpr int kSmallLu = 12;

template <class T>
real_t<T> pivot_size(T x) {  // LAPACK's measure of complex pivots
  if constexpr (is_complex_v<T>)
    return std::abs(x.re) + std::abs(x.im);
  else
    return std::abs(x);
}

// N: the number of rows and columns when it is known, so that the loops are unrolled; else 0.
template <int N, class T>
int factor_sized(int m, int n, T* a, int leading, int* pivots) {
  if (N) m = n = N;
  int status = 0;
  for (int j = 0; j < std::min(m, n); ++j) {
    T* const column = a + int64_t{j} * leading;
    int best = j;
    for (int i = j + 1; i < m; ++i)
      if (pivot_size(column[i]) > pivot_size(column[best])) best = i;
    pivots[j] = best + 1;
    const T pivot = column[best];
    if (pivot == T(0)) {
      if (status == 0) status = j + 1;
      continue;
    }
    if (best != j)
      for (int k = 0; k < n; ++k) std::swap(a[int64_t{k} * leading + j], a[int64_t{k} * leading + best]);
    for (int i = j + 1; i < m; ++i) column[i] = column[i] / pivot;
    for (int k = j + 1; k < n; ++k) {
      T* const other = a + int64_t{k} * leading;
      const T head = other[j];
      for (int i = j + 1; i < m; ++i) other[i] -= column[i] * head;
    }
  }
  return status;
}

template <class T>
int factor_small(int m, int n, T* a, int leading, int* pivots) {
  if (m == n) {
    switch (n) {
      case 2:
        return factor_sized<2>(m, n, a, leading, pivots);
      case 3:
        return factor_sized<3>(m, n, a, leading, pivots);
      case 4:
        return factor_sized<4>(m, n, a, leading, pivots);
      default:
        break;
    }
  }
  return factor_sized<0>(m, n, a, leading, pivots);
}

// x = A^-1 x for `count` columns, from those factors.
template <int N, class T>
void substitute_sized(int n, int count, const T* lu, int leading, const int* pivots, T* x, int x_leading) {
  if (N) n = N;
  for (int c = 0; c < count; ++c, x += x_leading) {
    for (int i = 0; i < n; ++i)
      if (pivots[i] != i + 1) std::swap(x[i], x[pivots[i] - 1]);
    for (int j = 0; j < n; ++j)
      for (int i = j + 1; i < n; ++i) x[i] -= lu[int64_t{j} * leading + i] * x[j];
    for (int j = n - 1; j >= 0; --j) {
      x[j] = x[j] / lu[int64_t{j} * leading + j];
      for (int i = 0; i < j; ++i) x[i] -= lu[int64_t{j} * leading + i] * x[j];
    }
  }
}

template <class T>
void substitute_small(int n, int count, const T* lu, int leading, const int* pivots, T* x, int x_leading) {
  switch (n) {
    case 2:
      return substitute_sized<2>(n, count, lu, leading, pivots, x, x_leading);
    case 3:
      return substitute_sized<3>(n, count, lu, leading, pivots, x, x_leading);
    case 4:
      return substitute_sized<4>(n, count, lu, leading, pivots, x, x_leading);
    default:
      return substitute_sized<0>(n, count, lu, leading, pivots, x, x_leading);
  }
}

template <class T>
int factor_in_place(int m, int n, T* a, int leading, int* pivots) {
  if (m <= kSmallLu && n <= kSmallLu) return factor_small(m, n, a, leading, pivots);
  if (std::min(m, n) >= kLargeMatrix) return factor_by_halves(m, n, a, leading, pivots);
  int status = 0;
  if (m > 0 && n > 0) g_large_getrf.call<T>(&m, &n, a, &leading, pivots, &status);
  return status;
}

template <class T>
rl_status lu_factor(const rl_tensor* a, rl_tensor* lu, rl_tensor* pivots, rl_tensor* info) {
  RL_TRY(find_large<T>());
  if constexpr (!is_complex_v<T>) {
    if (lanes_fit<T>(a) && a->data != lu->data) return run_in_lanes<T>(lanes_loops<T>().lu, a, false, lu, pivots, info);
  }
  const MatrixShape from = matrix_shape(a), to = matrix_shape(lu);
  const int m = static_cast<int>(from.rows), n = static_cast<int>(from.columns), k = std::min(m, n);
  const double flops = static_cast<double>(m) * n * k;
  return each_block(batch_count(a, 2), flops, [&](int64_t begin, int64_t end) -> rl_status {
    WorkMatrix<T> work(to);
    const Scratch<int> swaps(k);
    if (!work.ok() || !swaps) return RL_MEMORY_ERROR;
    for (int64_t b = begin; b < end; ++b) {
      T* const matrix = work.begin(item_of<T>(lu, 2, b));
      pack(matrix, work.leading(), item_of<T>(a, 2, b), from);
      *item_of<int32_t>(info, 0, b) = factor_in_place(m, n, matrix, work.leading(), swaps.get());
      store_vector(item_of<int32_t>(pivots, 1, b), pivots->strides[pivots->ndim - 1], swaps.get(), k);
      work.finish();
    }
    return RL_OK;
  });
}

// Solves with factors in column-major memory. x is n x r, or r x n when !left.
template <class T>
class Substitution {
 public:
  Substitution(const rl_tensor* b, rl_tensor* out, bool left, bool adjoint)
      : b_(b), out_(out), from_(matrix_shape(b)), to_(matrix_shape(out)), left_(left), adjoint_(adjoint) {
    if (!left) {
      std::swap(from_.rows, from_.columns);
      std::swap(from_.row_stride, from_.column_stride);
      std::swap(to_.rows, to_.columns);
      std::swap(to_.row_stride, to_.column_stride);
    }
    n_ = static_cast<int>(to_.rows);
    r_ = static_cast<int>(to_.columns);
  }
  MatrixShape work_shape() const { return to_; }
  // x op(A) = b is op(A)^H x^H = b^H.
  void run(const T* lu, int leading, const int* pivots, WorkMatrix<T>& work, int64_t index) const {
    T* const x = work.begin(item_of<T>(out_, 2, index));
    const int x_leading = work.leading();
    pack(x, x_leading, item_of<T>(b_, 2, index), from_, !left_);
    const char* const transpose = left_ == adjoint_ ? (is_complex_v<T> ? "C" : "T") : "N";
    if (n_ <= kSmallLu && *transpose == 'N')
      substitute_small(n_, r_, lu, leading, pivots, x, x_leading);
    else if (n_ > 0)
      parallel_for(r_, std::max<int64_t>(block_columns(r_), 500'000 / (int64_t{n_} * n_)),
                   [&](int64_t begin, int64_t end) {
                     const int width = static_cast<int>(end - begin);
                     T* const columns = x + begin * x_leading;
                     if (*transpose == 'N' && n_ > 64 && width >= 16) {
                       exchange_rows(columns, width, x_leading, 0, n_, pivots);
                       solve_by_halves(true, n_, width, lu, leading, columns, x_leading);
                       solve_by_halves(false, n_, width, lu, leading, columns, x_leading);
                     } else {
                       int status = 0;
                       g_getrs.call<T>(transpose, &n_, &width, lu, &leading, pivots, columns, &x_leading, &status);
                     }
                   });
    if (is_complex_v<T> && !left_) {
      for (int64_t j = 0; j < r_; ++j)
        for (int64_t i = 0; i < n_; ++i) x[j * x_leading + i] = conjugate(x[j * x_leading + i]);
    }
    work.finish();
  }

 private:
  const rl_tensor* b_;
  rl_tensor* out_;
  MatrixShape from_, to_;
  bool left_, adjoint_;
  int n_, r_;
};

rl_status check_pivot(int pivot, int n) {
  if (pivot >= 1 && pivot <= n) return RL_OK;
  return fail(RL_RUNTIME_ERROR, "lu_solve: pivots; expected numbers from 1 to %d, got %d", n, pivot);
}

template <class T>
rl_status lu_solve(const rl_tensor* lu, const rl_tensor* pivots, const rl_tensor* b, bool left, bool adjoint,
                   rl_tensor* out) {
  RL_TRY(g_getrs.find<T>());
  const MatrixShape factors = matrix_shape(lu);
  const Substitution<T> substitution(b, out, left, adjoint);
  const int n = static_cast<int>(factors.rows);
  if constexpr (!is_complex_v<T>) {
    if (left && !adjoint && lanes_fit<T>(lu, matrix_shape(out).columns) && b->data != out->data) {
      for (int64_t i = 0; i < batch_count(out, 2); ++i) {
        const int32_t* const p = item_of<int32_t>(pivots, 1, i);
        for (int k = 0; k < n; ++k) RL_TRY(check_pivot(p[k * pivots->strides[pivots->ndim - 1]], n));
      }
      return run_in_lanes<T>(lanes_loops<T>().lu_solve, lu, false, nullptr, pivots, nullptr, b, out);
    }
  }
  const bool direct = column_major(factors);
  const int leading = static_cast<int>(direct ? leading_of(factors) : std::max(1, n));
  const double flops = static_cast<double>(n) * n * substitution.work_shape().columns;
  return each_block(batch_count(out, 2), flops, [&](int64_t begin, int64_t end) -> rl_status {
    WorkMatrix<T> work(substitution.work_shape());
    const Scratch<T> copy(direct ? 0 : static_cast<int64_t>(n) * n);
    const Scratch<int> swaps(n);
    if (!work.ok() || !copy || !swaps) return RL_MEMORY_ERROR;
    for (int64_t i = begin; i < end; ++i) {
      const T* matrix = item_of<T>(lu, 2, i);
      if (!direct) {
        pack(copy.get(), leading, matrix, factors);
        matrix = copy.get();
      }
      const int32_t* const p = item_of<int32_t>(pivots, 1, i);
      for (int k = 0; k < n; ++k) swaps[k] = p[k * pivots->strides[pivots->ndim - 1]];
      for (int k = 0; k < n; ++k) RL_TRY(check_pivot(swaps[k], n));
      substitution.run(matrix, leading, swaps.get(), work, i);
    }
    return RL_OK;
  });
}

template <class T>
rl_status solve(const rl_tensor* a, const rl_tensor* b, bool left, rl_tensor* out, rl_tensor* lu, rl_tensor* pivots,
                rl_tensor* info) {
  RL_TRY(find_large<T>());
  RL_TRY(g_getrs.find<T>());
  if constexpr (!is_complex_v<T>) {
    if (left && lanes_fit<T>(a, matrix_shape(out).columns) && a->data != lu->data && b->data != out->data)
      return run_in_lanes<T>(lanes_loops<T>().solve, a, false, lu, pivots, info, b, out);
  }
  const MatrixShape from = matrix_shape(a), factors = matrix_shape(lu);
  const Substitution<T> substitution(b, out, left, false);
  const int n = static_cast<int>(from.rows);
  const double flops = cube(n) + 2.0 * n * n * static_cast<double>(substitution.work_shape().columns);
  return each_block(batch_count(lu, 2), flops, [&](int64_t begin, int64_t end) -> rl_status {
    WorkMatrix<T> matrix(factors), work(substitution.work_shape());
    const Scratch<int> swaps(n);
    if (!matrix.ok() || !work.ok() || !swaps) return RL_MEMORY_ERROR;
    for (int64_t i = begin; i < end; ++i) {
      T* const m = matrix.begin(item_of<T>(lu, 2, i));
      pack(m, matrix.leading(), item_of<T>(a, 2, i), from);
      *item_of<int32_t>(info, 0, i) = factor_in_place(n, n, m, matrix.leading(), swaps.get());
      substitution.run(m, matrix.leading(), swaps.get(), work, i);
      store_vector(item_of<int32_t>(pivots, 1, i), pivots->strides[pivots->ndim - 1], swaps.get(), n);
      matrix.finish();
    }
    return RL_OK;
  });
}

template <class T>
rl_status inverse(const rl_tensor* a, rl_tensor* out, rl_tensor* info) {
  RL_TRY(find_large<T>());
  if constexpr (!is_complex_v<T>) {
    if (lanes_fit<T>(a) && a->data != out->data)
      return run_in_lanes<T>(lanes_loops<T>().inverse, a, false, nullptr, nullptr, info, a, out);
  }
  RL_TRY(g_getri.find<T>());
  const MatrixShape from = matrix_shape(a), to = matrix_shape(out);
  const int n = static_cast<int>(from.rows);
  return each_block(batch_count(a, 2), 2 * cube(n), [&](int64_t begin, int64_t end) -> rl_status {
    const Scratch<int> swaps(n);
    const int length = std::max(1, n < kLargeMatrix ? 64 * n : 1);
    const Scratch<T> factors(static_cast<int64_t>(n) * n), space(length);
    WorkMatrix<T> work(to);
    if (!work.ok() || !swaps || !factors || !space) return RL_MEMORY_ERROR;
    for (int64_t i = begin; i < end; ++i) {
      pack(factors.get(), n, item_of<T>(a, 2, i), from);
      const int failed = factor_in_place(n, n, factors.get(), std::max(1, n), swaps.get());
      *item_of<int32_t>(info, 0, i) = failed;
      if (failed != 0) {  // an error, or a caller who looks at info: there is no inverse
        unpack(item_of<T>(out, 2, i), to, factors.get(), n);
        continue;
      }
      if (n > kSmallLu && n < kLargeMatrix) {
        int status = 0;
        g_getri.call<T>(&n, factors.get(), &n, swaps.get(), space.get(), &length, &status);
        unpack(item_of<T>(out, 2, i), to, factors.get(), n);
        continue;
      }
      if (n > kSmallLu) {
        RL_TRY(inverse_of_factors(n, factors.get(), n, swaps.get(), item_of<T>(out, 2, i), to));
        continue;
      }
      T* const m = work.begin(item_of<T>(out, 2, i));
      for (int64_t c = 0; c < n; ++c)
        for (int64_t r = 0; r < n; ++r) m[c * work.leading() + r] = T(r == c ? 1 : 0);
      substitute_small(n, n, factors.get(), n, swaps.get(), m, work.leading());
      work.finish();
    }
    return RL_OK;
  });
}

// ---- triangular systems

// The output starts as b and is solved in place, by columns or, transposed, by rows.
// Few right sides of a large triangle whose rows are contiguous in memory: op(A) x = b, x's columns as `to` has them.
template <class T>
rl_status solve_rows(const rl_tensor* a, const rl_tensor* b, int64_t row_stride, bool upper, bool unit,
                     const MatrixShape& from, const MatrixShape& to, rl_tensor* out) {
  const int n = static_cast<int>(to.rows), columns = static_cast<int>(to.columns);
  return each_block(batch_count(out, 2), static_cast<double>(n) * n * columns, [&](int64_t begin, int64_t end) {
    const Scratch<T> x(int64_t{n} * columns);
    if (!x) return RL_MEMORY_ERROR;
    for (int64_t i = begin; i < end; ++i) {
      pack(x.get(), n, item_of<T>(b, 2, i), from);
      lanes_loops<T>().substitute(n, item_of<T>(a, 2, i), row_stride, upper, unit, x.get(), n, columns);
      unpack(item_of<T>(out, 2, i), to, x.get(), n);
    }
    return RL_OK;
  });
}

template <class T>
rl_status solve_triangular(const rl_tensor* a, const rl_tensor* b, int flags, rl_tensor* out) {
  RL_TRY(g_large_trsm.find<T>());
  MatrixShape matrix = matrix_shape(a), from = matrix_shape(b), to = matrix_shape(out);
  bool right = (flags & RL_RIGHT) != 0, upper = (flags & RL_UPPER) != 0;
  const bool adjoint = (flags & RL_ADJOINT) != 0;
  bool transposed = adjoint || (flags & RL_TRANSPOSE) != 0;
  if constexpr (!is_complex_v<T>) {
    MatrixShape sides = from, solutions = to;
    if (right) {
      std::swap(sides.rows, sides.columns);
      std::swap(sides.row_stride, sides.column_stride);
      std::swap(solutions.rows, solutions.columns);
      std::swap(solutions.row_stride, solutions.column_stride);
    }
    const bool turned = transposed != right;
    const int64_t step = turned ? matrix.row_stride : matrix.column_stride;
    if (step == 1 && solutions.rows >= 64 && solutions.columns <= 8)
      return solve_rows<T>(a, b, turned ? matrix.column_stride : matrix.row_stride, upper != turned,
                           (flags & RL_UNIT) != 0, sides, solutions, out);
  }
  // The conjugate of a transposed matrix is LAPACK's "C"; that of a plain one there is no letter for.
  bool conjugated = is_complex_v<T> && adjoint;
  if (!column_major(to)) {  // op(A) x = b  <=>  x.T op(A).T = b.T
    std::swap(from.rows, from.columns);
    std::swap(from.row_stride, from.column_stride);
    std::swap(to.rows, to.columns);
    std::swap(to.row_stride, to.column_stride);
    right = !right;
    transposed = !transposed;
  }
  bool direct = column_major(matrix);
  if (!direct || (conjugated && !transposed)) {
    MatrixShape other = matrix;
    std::swap(other.row_stride, other.column_stride);
    if (column_major(other) && !(conjugated && transposed)) {
      matrix = other;
      transposed = !transposed;
      upper = !upper;
      direct = true;
    } else if (conjugated && !transposed) {
      direct = false;
    }
  }
  const bool conjugate_copy = !direct && conjugated && !transposed;
  const char* const letter = !transposed ? "N" : conjugated ? "C" : "T";
  const int n = static_cast<int>(matrix.rows);
  const int m = static_cast<int>(to.rows), r = static_cast<int>(to.columns);
  const int leading = static_cast<int>(direct ? leading_of(matrix) : std::max(1, n));
  const double flops = static_cast<double>(n) * m * r;
  const T one(1);
  return each_block(batch_count(out, 2), flops, [&](int64_t begin, int64_t end) -> rl_status {
    WorkMatrix<T> work(to);
    const Scratch<T> copy(direct ? 0 : static_cast<int64_t>(n) * n);
    if (!work.ok() || !copy) return RL_MEMORY_ERROR;
    const int x_leading = work.leading();
    for (int64_t i = begin; i < end; ++i) {
      T* const x = work.begin(item_of<T>(out, 2, i));
      pack(x, x_leading, item_of<T>(b, 2, i), from);
      const T* t = item_of<T>(a, 2, i);
      if (!direct) {
        pack(copy.get(), leading, t, matrix, conjugate_copy);
        t = copy.get();
      }
      if (m > 0 && r > 0)
        g_large_trsm.call<T>(right ? "R" : "L", upper ? "U" : "L", letter, (flags & RL_UNIT) ? "U" : "N", &m, &r, &one,
                             t, &leading, x, &x_leading);
      work.finish();
    }
    return RL_OK;
  });
}

// ---- LDL

template <class T>
rl_status ldl_factor(const rl_tensor* a, bool hermitian, rl_tensor* ld, rl_tensor* pivots, rl_tensor* info) {
  Routine& routine = hermitian ? g_hetrf : g_sytrf;
  RL_TRY(routine.find<T>());
  const MatrixShape from = matrix_shape(a), to = matrix_shape(ld);
  const int n = static_cast<int>(from.rows);
  return each_block(batch_count(a, 2), cube(n) / 3, [&](int64_t begin, int64_t end) -> rl_status {
    WorkMatrix<T> work(to);
    const int length = std::max(1, n * 64);
    const Scratch<T> space(length);
    const Scratch<int> swaps(n);
    if (!work.ok() || !space || !swaps) return RL_MEMORY_ERROR;
    const int leading = work.leading();
    for (int64_t b = begin; b < end; ++b) {
      T* const m = work.begin(item_of<T>(ld, 2, b));
      pack(m, leading, item_of<T>(a, 2, b), from);
      int status = 0;
      if (n > 0) routine.call<T>("L", &n, m, &leading, swaps.get(), space.get(), &length, &status);
      *item_of<int32_t>(info, 0, b) = status;
      store_vector(item_of<int32_t>(pivots, 1, b), pivots->strides[pivots->ndim - 1], swaps.get(), n);
      for (int64_t j = 0; j < n; ++j) std::fill(m + j * leading, m + j * leading + j, T(0));
      work.finish();
    }
    return RL_OK;
  });
}

template <class T>
rl_status ldl_solve(const rl_tensor* ld, const rl_tensor* pivots, const rl_tensor* b, bool hermitian, rl_tensor* out) {
  Routine& routine = hermitian ? g_hetrs : g_sytrs;
  RL_TRY(routine.find<T>());
  const MatrixShape factors = matrix_shape(ld), from = matrix_shape(b), to = matrix_shape(out);
  const int n = static_cast<int>(factors.rows), r = static_cast<int>(to.columns);
  const int leading = std::max(1, n);
  return each_block(batch_count(out, 2), 2.0 * n * n * r, [&](int64_t begin, int64_t end) -> rl_status {
    WorkMatrix<T> work(to);
    const Scratch<T> matrix(static_cast<int64_t>(n) * n);
    const Scratch<int> swaps(n);
    if (!work.ok() || !matrix || !swaps) return RL_MEMORY_ERROR;
    const int x_leading = work.leading();
    for (int64_t i = begin; i < end; ++i) {
      pack(matrix.get(), leading, item_of<T>(ld, 2, i), factors);
      const int32_t* const p = item_of<int32_t>(pivots, 1, i);
      for (int k = 0; k < n; ++k) {
        swaps[k] = p[k * pivots->strides[pivots->ndim - 1]];
        const int row = swaps[k] < 0 ? -swaps[k] : swaps[k];
        if (row < 1 || row > n)
          return fail(RL_RUNTIME_ERROR,
                      "ldl_solve: pivots; expected numbers from 1 to %d (negative for blocks), got %d", n, swaps[k]);
      }
      T* const x = work.begin(item_of<T>(out, 2, i));
      pack(x, x_leading, item_of<T>(b, 2, i), from);
      int status = 0;
      if (n > 0 && r > 0) routine.call<T>("L", &n, &r, matrix.get(), &leading, swaps.get(), x, &x_leading, &status);
      work.finish();
    }
    return RL_OK;
  });
}

}  // namespace
}  // namespace rl

extern "C" {

rl_status rl_cholesky(const rl_tensor* a, int upper, rl_tensor* out, rl_tensor* info) {
  using namespace rl;
  RL_TRY(check_sizes("cholesky", {a->shape[a->ndim - 1]}));
  RL_TRY(check_output("cholesky", a, out));
  RL_LAPACK_DISPATCH("cholesky", a->dtype, T, { return cholesky<T>(a, upper != 0, out, info); })
}

rl_status rl_cholesky_inverse(const rl_tensor* factor, int upper, rl_tensor* out, rl_tensor* info) {
  using namespace rl;
  RL_TRY(check_sizes("cholesky_inverse", {factor->shape[factor->ndim - 1]}));
  RL_LAPACK_DISPATCH("cholesky_inverse", factor->dtype, T,
                     { return cholesky_inverse<T>(factor, upper != 0, out, info); })
}

rl_status rl_lu_factor(const rl_tensor* a, rl_tensor* lu, rl_tensor* pivots, rl_tensor* info) {
  using namespace rl;
  RL_TRY(check_sizes("lu_factor", {a->shape[a->ndim - 1], a->shape[a->ndim - 2]}));
  RL_LAPACK_DISPATCH("lu_factor", a->dtype, T, { return lu_factor<T>(a, lu, pivots, info); })
}

rl_status rl_lu_solve(const rl_tensor* lu, const rl_tensor* pivots, const rl_tensor* b, int left, int adjoint,
                      rl_tensor* out) {
  using namespace rl;
  RL_TRY(check_sizes("lu_solve", {b->shape[b->ndim - 1], b->shape[b->ndim - 2]}));
  RL_LAPACK_DISPATCH("lu_solve", lu->dtype, T, { return lu_solve<T>(lu, pivots, b, left != 0, adjoint != 0, out); })
}

rl_status rl_solve(const rl_tensor* a, const rl_tensor* b, int left, rl_tensor* out, rl_tensor* lu, rl_tensor* pivots,
                   rl_tensor* info) {
  using namespace rl;
  RL_TRY(check_sizes("solve", {b->shape[b->ndim - 1], b->shape[b->ndim - 2]}));
  RL_LAPACK_DISPATCH("solve", a->dtype, T, { return solve<T>(a, b, left != 0, out, lu, pivots, info); })
}

rl_status rl_inverse(const rl_tensor* a, rl_tensor* out, rl_tensor* info) {
  using namespace rl;
  RL_TRY(check_sizes("inv", {a->shape[a->ndim - 1] * 64}));
  RL_TRY(check_output("inv", a, out));
  RL_LAPACK_DISPATCH("inv", a->dtype, T, { return inverse<T>(a, out, info); })
}

rl_status rl_lu_permutation(const rl_tensor* pivots, rl_tensor* permutation) {
  using namespace rl;
  const int64_t k = pivots->shape[pivots->ndim - 1], rows = permutation->shape[permutation->ndim - 1];
  const int64_t step = pivots->strides[pivots->ndim - 1], to_step = permutation->strides[permutation->ndim - 1];
  return each_block(batch_count(permutation, 1), static_cast<double>(rows), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int32_t* const p = item_of<int32_t>(pivots, 1, b);
      int64_t* const order = item_of<int64_t>(permutation, 1, b);
      for (int64_t i = 0; i < rows; ++i) order[i * to_step] = i;
      for (int64_t i = 0; i < k; ++i) {
        const int64_t other = p[i * step] - 1;
        if (other < 0 || other >= rows)
          return fail(RL_RUNTIME_ERROR, "lu_unpack: pivots; expected numbers from 1 to %lld, got %lld",
                      static_cast<long long>(rows), static_cast<long long>(other + 1));
        std::swap(order[i * to_step], order[other * to_step]);
      }
    }
    return RL_OK;
  });
}

rl_status rl_solve_triangular(const rl_tensor* a, const rl_tensor* b, int flags, rl_tensor* out) {
  using namespace rl;
  RL_TRY(check_sizes("solve_triangular", {b->shape[b->ndim - 1], b->shape[b->ndim - 2]}));
  RL_LAPACK_DISPATCH("solve_triangular", a->dtype, T, { return solve_triangular<T>(a, b, flags, out); })
}

rl_status rl_ldl_factor(const rl_tensor* a, int hermitian, rl_tensor* ld, rl_tensor* pivots, rl_tensor* info) {
  using namespace rl;
  RL_TRY(check_sizes("ldl_factor", {a->shape[a->ndim - 1] * 64}));
  RL_LAPACK_DISPATCH("ldl_factor", a->dtype, T, { return ldl_factor<T>(a, hermitian != 0, ld, pivots, info); })
}

rl_status rl_ldl_solve(const rl_tensor* ld, const rl_tensor* pivots, const rl_tensor* b, int hermitian,
                       rl_tensor* out) {
  using namespace rl;
  RL_TRY(check_sizes("ldl_solve", {b->shape[b->ndim - 1], b->shape[b->ndim - 2]}));
  RL_LAPACK_DISPATCH("ldl_solve", ld->dtype, T, { return ldl_solve<T>(ld, pivots, b, hermitian != 0, out); })
}

}  // extern "C"
