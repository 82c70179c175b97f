// Calls of LAPACK, and the walk over batches of matrices that all functions of rushlight/linalg.h share.
#pragma once

#include <algorithm>
#include <atomic>
#include <climits>
#include <type_traits>
#include <utility>

#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "rushlight.h"
#include "rushlight/elementwise.h"
#include "rushlight/linalg.h"
#include "rushlight/matmul.h"

namespace rl {

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<complex<T>> {
  using type = T;
};
template <class T>
using real_t = typename RealOf<T>::type;

template <class T>
static inline T conjugate(T x) {
  if constexpr (is_complex_v<T>)
    return conj(x);
  else
    return x;
}
template <class T>
static inline real_t<T> real_part(T x) {
  if constexpr (is_complex_v<T>)
    return x.re;
  else
    return x;
}

// ---- routines

// One LAPACK (or BLAS) routine for the four dtypes, found at its first use.
class Routine {
 public:
  constexpr Routine(const char* s, const char* d, const char* c, const char* z) : names_{s, d, c, z} {}

  // RL_OK once the routine for T can be called.
  template <class T>
  rl_status find() {
    std::atomic<void*>& slot = found_[kIndex<T>];
    if (slot.load(std::memory_order_acquire)) return RL_OK;
    void* const address = rl_blas_symbol(names_[kIndex<T>]);
    if (!address) return RL_RUNTIME_ERROR;
    slot.store(address, std::memory_order_release);
    return RL_OK;
  }

  // Arguments by address as Fortran takes them. Fortran also takes the length of each text after all arguments.
  template <class T, class... Arguments>
  void call(Arguments... arguments) const {
    constexpr size_t texts = (size_t{0} + ... + size_t{std::is_same_v<Arguments, const char*>});
    run(std::make_index_sequence<texts>(), found_[kIndex<T>].load(std::memory_order_relaxed), arguments...);
  }

 private:
  template <class T>
  static constexpr int kIndex = std::is_same_v<T, float>       ? 0
                                : std::is_same_v<T, double>    ? 1
                                : std::is_same_v<T, complex64> ? 2
                                                               : 3;
  template <size_t>
  using Length = size_t;
  template <size_t... I, class... Arguments>
  static void run(std::index_sequence<I...>, void* address, Arguments... arguments) {
    reinterpret_cast<void (*)(Arguments..., Length<I>...)>(address)(arguments..., Length<I>{1}...);
  }

  const char* names_[4];
  std::atomic<void*> found_[4] = {};
};

// ---- matrices in a batch

struct MatrixShape {
  int64_t rows, columns, row_stride, column_stride;
};

// The matrices of a tensor's last two dimensions.
static inline MatrixShape matrix_shape(const rl_tensor* t) {
  return {t->shape[t->ndim - 2], t->shape[t->ndim - 1], t->strides[t->ndim - 2], t->strides[t->ndim - 1]};
}
// The vectors of its last dimension, as columns.
static inline MatrixShape vector_shape(const rl_tensor* t) {
  return {t->shape[t->ndim - 1], 1, t->strides[t->ndim - 1], 0};
}

// Element 0 of item `index` of a tensor whose last `core` dimensions are the item.
template <class T>
static inline T* item_of(const rl_tensor* t, int core, int64_t index) {
  int64_t offset = 0;
  for (int d = t->ndim - core - 1; d >= 0; --d) {
    offset += index % t->shape[d] * t->strides[d];
    index /= t->shape[d];
  }
  return static_cast<T*>(t->data) + offset;
}

static inline int64_t batch_count(const rl_tensor* t, int core) {
  int64_t count = 1;
  for (int d = 0; d < t->ndim - core; ++d) count *= t->shape[d];
  return count;
}

// Whether no element is infinite or NaN. What LAPACK does with those is left open: its iterations may never end.
template <class T>
static inline bool all_finite(const T* a, int64_t leading, const MatrixShape& s) {
  using R = real_t<T>;
  R sum(0);  // of x - x, which is 0 or NaN
  for (int64_t j = 0; j < s.columns; ++j)
    for (int64_t i = 0; i < s.rows; ++i) {
      const T x = a[j * leading + i];
      if constexpr (is_complex_v<T>)
        sum += (x.re - x.re) + (x.im - x.im);
      else
        sum += x - x;
    }
  return sum == R(0);
}

// A copy between two layouts of a large matrix, by the kernel that moves elements; false when it could not be made.
template <class T>
static inline bool copy_large(const T* from, int64_t from_row, int64_t from_column, T* to, int64_t to_row,
                              int64_t to_column, const MatrixShape& s) {
  if (s.rows * s.columns < 4096) return false;
  const int64_t shape[2] = {s.rows, s.columns}, from_strides[2] = {from_row, from_column};
  const int64_t to_strides[2] = {to_row, to_column};
  const rl_tensor a = {const_cast<T*>(from), shape, from_strides, 2, dtype_of<T>, 0, {}};
  rl_tensor b = {to, shape, to_strides, 2, dtype_of<T>, 0, {}};
  return rl_copy(&a, &b) == RL_OK;
}

// A column-major copy with leading dimension `leading`, conjugated if asked for.
template <class T>
static inline void pack(T* to, int64_t leading, const T* from, const MatrixShape& s, bool conjugated = false) {
  if (is_complex_v<T> && conjugated) {
    for (int64_t j = 0; j < s.columns; ++j)
      for (int64_t i = 0; i < s.rows; ++i)
        to[j * leading + i] = conjugate(from[i * s.row_stride + j * s.column_stride]);
    return;
  }
  if (s.row_stride == 1) {
    for (int64_t j = 0; j < s.columns; ++j) std::copy_n(from + j * s.column_stride, s.rows, to + j * leading);
    return;
  }
  if (copy_large(from, s.row_stride, s.column_stride, to, 1, leading, s)) return;
  constexpr int64_t kTile = 32;
  for (int64_t jb = 0; jb < s.columns; jb += kTile) {
    const int64_t j_end = std::min(jb + kTile, s.columns);
    for (int64_t ib = 0; ib < s.rows; ib += kTile) {
      const int64_t i_end = std::min(ib + kTile, s.rows);
      for (int64_t j = jb; j < j_end; ++j)
        for (int64_t i = ib; i < i_end; ++i) to[j * leading + i] = from[i * s.row_stride + j * s.column_stride];
    }
  }
}

// The way back.
template <class T>
static inline void unpack(T* to, const MatrixShape& s, const T* from, int64_t leading, bool conjugated = false) {
  if (is_complex_v<T> && conjugated) {
    for (int64_t j = 0; j < s.columns; ++j)
      for (int64_t i = 0; i < s.rows; ++i)
        to[i * s.row_stride + j * s.column_stride] = conjugate(from[j * leading + i]);
    return;
  }
  if (s.row_stride == 1) {
    for (int64_t j = 0; j < s.columns; ++j) std::copy_n(from + j * leading, s.rows, to + j * s.column_stride);
    return;
  }
  if (copy_large(from, 1, leading, to, s.row_stride, s.column_stride, s)) return;
  constexpr int64_t kTile = 32;
  for (int64_t jb = 0; jb < s.columns; jb += kTile) {
    const int64_t j_end = std::min(jb + kTile, s.columns);
    for (int64_t ib = 0; ib < s.rows; ib += kTile) {
      const int64_t i_end = std::min(ib + kTile, s.rows);
      for (int64_t i = ib; i < i_end; ++i)
        for (int64_t j = jb; j < j_end; ++j) to[i * s.row_stride + j * s.column_stride] = from[j * leading + i];
    }
  }
}

static inline bool column_major(const MatrixShape& s) {
  return (s.row_stride == 1 || s.rows <= 1) && (s.column_stride >= std::max<int64_t>(1, s.rows) || s.columns <= 1);
}
static inline int64_t leading_of(const MatrixShape& s) {
  return s.columns <= 1 ? std::max<int64_t>(1, s.rows) : s.column_stride;
}

// A column-major matrix that LAPACK works in: the output itself where its strides allow, else memory of its own that
// `finish` copies out.
template <class T>
class WorkMatrix {
 public:
  WorkMatrix(const MatrixShape& out)
      : shape_(out),
        direct_(column_major(out)),
        leading_(direct_ ? leading_of(out) : std::max<int64_t>(1, out.rows)),
        memory_(direct_ ? 0 : leading_ * out.columns) {}
  bool ok() const { return static_cast<bool>(memory_); }
  T* begin(T* out) {
    out_ = out;
    return direct_ ? out : memory_.get();
  }
  void finish() {
    if (!direct_) unpack(out_, shape_, memory_.get(), leading_);
  }
  int leading() const { return static_cast<int>(leading_); }

 private:
  MatrixShape shape_;
  bool direct_;
  int64_t leading_;
  Scratch<T> memory_;
  T* out_ = nullptr;
};

template <class T>
static inline void store_vector(T* to, int64_t stride, const T* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i * stride] = from[i];
}

// Runs body(begin, end) over the batch; an item costs about `flops`.
template <class Body>
static inline rl_status each_block(int64_t count, double flops, Body&& body) {
  const auto block = static_cast<int64_t>(std::max(1.0, 3e5 / (flops + 100)));
  return parallel_for(count, block, [&](int64_t begin, int64_t end) -> rl_status { return body(begin, end); });
}

static inline rl_status check_sizes(const char* name, std::initializer_list<int64_t> sizes) {
  for (const int64_t n : sizes) {
    if (n > INT_MAX / 2)
      return fail(RL_RUNTIME_ERROR, "%s: expected sizes that fit LAPACK's 32-bit integers, got %lld", name,
                  static_cast<long long>(n));
  }
  return RL_OK;
}

// Two results written to one tensor leave it with the shape of the last.
static inline rl_status check_output(const char* name, const rl_tensor* a, const rl_tensor* out) {
  bool same = a->ndim == out->ndim;
  for (int d = 0; same && d < a->ndim; ++d) same = a->shape[d] == out->shape[d];
  return same ? RL_OK
              : fail(RL_RUNTIME_ERROR, "%s: the output has not the shape of the input; got one of %d dimensions for %d",
                     name, out->ndim, a->ndim);
}

static inline rl_status unsupported(const char* name, int dtype) {
  return fail(RL_TYPE_ERROR, "%s: expected float32, float64, complex64 or complex128, got %s", name, dtype_text(dtype));
}

// A workspace as large as a query said.
template <class T>
static inline int64_t query_size(const T& answer) {
  const double size = static_cast<double>(real_part(answer));
  return std::max<int64_t>(1, static_cast<int64_t>(size * 1.0000002) + 1);
}

#define RL_LAPACK_DISPATCH(name, dtype, T, ...) \
  switch (dtype) {                              \
    case RL_FLOAT32: {                          \
      using T = float;                          \
      __VA_ARGS__                               \
    } break;                                    \
    case RL_FLOAT64: {                          \
      using T = double;                         \
      __VA_ARGS__                               \
    } break;                                    \
    case RL_COMPLEX64: {                        \
      using T = complex64;                      \
      __VA_ARGS__                               \
    } break;                                    \
    case RL_COMPLEX128: {                       \
      using T = complex128;                     \
      __VA_ARGS__                               \
    } break;                                    \
    default:                                    \
      return unsupported(name, dtype);          \
  }

}  // namespace rl
