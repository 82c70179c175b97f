// Operands as row-major arrays of a working dtype, for kernels that take nothing else: in place where the tensor
// already is one, else through a copy. Not for files compiled once per instruction set.
#pragma once

#include <algorithm>
#include <utility>

#include "core/dtype.h"
#include "core/error.h"
#include "rushlight.h"
#include "rushlight/elementwise.h"

namespace rl {

inline int64_t count_elements(const rl_tensor* t) {
  int64_t count = 1;
  for (int d = 0; d < t->ndim; ++d) count *= t->shape[d];
  return count;
}

inline bool is_row_major(const rl_tensor* t) {
  int64_t expected = 1;
  for (int d = t->ndim - 1; d >= 0; --d) {
    if (t->shape[d] != 1 && t->strides[d] != expected) return count_elements(t) == 0;
    expected *= t->shape[d];
  }
  return true;
}

inline bool shapes_equal(const rl_tensor* a, const rl_tensor* b) {
  if (a->ndim != b->ndim) return false;
  for (int d = 0; d < a->ndim; ++d) {
    if (a->shape[d] != b->shape[d]) return false;
  }
  return true;
}

// A row-major block beside a tensor, of its shape.
class DenseCopy {
 public:
  DenseCopy() = default;
  ~DenseCopy() { rl_deallocate(block_); }
  DenseCopy(const DenseCopy&) = delete;
  DenseCopy& operator=(const DenseCopy&) = delete;

 protected:
  bool make(const rl_tensor* t, int dtype) {
    block_ = rl_allocate(static_cast<size_t>(count_elements(t) * dtype_size(dtype)));
    if (block_ == nullptr) return false;
    int64_t stride = 1;
    for (int d = t->ndim - 1; d >= 0; --d) {
      strides_[d] = stride;
      stride *= t->shape[d];
    }
    desc_ = *t;
    desc_.data = block_;
    desc_.strides = strides_;
    desc_.dtype = static_cast<uint8_t>(dtype);
    return true;
  }
  void* block_ = nullptr;
  rl_tensor desc_{};
  int64_t strides_[RL_MAX_DIMS];
};

// rl::DenseInput x; RL_TRY(x.open(in, RL_FLOAT32)); x.data<float>()
// A null tensor opens as null data.
class DenseInput : DenseCopy {
 public:
  rl_status open(const rl_tensor* t, int dtype) {
    data_ = nullptr;
    if (t == nullptr) return RL_OK;
    if (t->dtype == dtype && is_row_major(t)) {
      data_ = t->data;
      return RL_OK;
    }
    if (!make(t, dtype)) return RL_MEMORY_ERROR;
    data_ = block_;
    return rl_copy(t, &desc_);
  }
  template <class T>
  const T* data() const {
    return static_cast<const T*>(data_);
  }

 private:
  const void* data_ = nullptr;
};

// The same for results; close() writes a copy back. With `read`, it starts with the tensor's values.
class DenseOutput : DenseCopy {
 public:
  rl_status open(const rl_tensor* t, int dtype, bool read = false) {
    data_ = nullptr;
    tensor_ = t;
    if (t == nullptr) return RL_OK;
    if (t->dtype == dtype && is_row_major(t)) {
      data_ = t->data;
      return RL_OK;
    }
    if (!make(t, dtype)) return RL_MEMORY_ERROR;
    data_ = block_;
    return read ? rl_copy(t, &desc_) : RL_OK;
  }
  rl_status close() {
    if (block_ == nullptr) return RL_OK;
    rl_tensor to = *tensor_;
    return rl_copy(&desc_, &to);
  }
  template <class T>
  T* data() const {
    return static_cast<T*>(data_);
  }

 private:
  const rl_tensor* tensor_ = nullptr;
  void* data_ = nullptr;
};

// A tensor seen as [outer, n, inner] around dimension `dim`.
struct AroundDim {
  int64_t outer = 1, n = 1, inner = 1;
  AroundDim(const rl_tensor* t, int dim) {
    for (int d = 0; d < t->ndim; ++d) (d < dim ? outer : d == dim ? n : inner) *= t->shape[d];
  }
};

// Elements [start, start + n) along dim.
struct Narrowed {
  Narrowed(const rl_tensor* t, int dim, int64_t start, int64_t n) : desc(*t) {
    for (int d = 0; d < t->ndim; ++d) shape[d] = d == dim ? n : t->shape[d];
    desc.shape = shape;
    desc.data = static_cast<char*>(t->data) + start * t->strides[dim] * dtype_size(t->dtype);
  }
  Narrowed(const Narrowed&) = delete;
  Narrowed& operator=(const Narrowed&) = delete;
  rl_tensor desc;
  int64_t shape[RL_MAX_DIMS];
};

template <size_t K, class Piece, class Body, size_t... I>
rl_status with_pieces(const rl_tensor* const (&operands)[K], Piece piece, Body body, std::index_sequence<I...>) {
  const Narrowed parts[K] = {piece(operands[I])...};
  const rl_tensor* const descs[K] = {&parts[I].desc...};
  return body(descs);
}

// Calls body(operands) for pieces of operands of one shape along the longest dimension but `dim`, so that copies of
// pieces in another dtype stay small and near; once for all where none of them needs a copy to be dense in dtype.
template <size_t K, class Body>
rl_status in_pieces(const rl_tensor* const (&operands)[K], int dim, int dtype, Body body) {
  constexpr int64_t kPiece = int64_t{1} << 18;
  bool dense = true;
  for (const rl_tensor* t : operands) dense = dense && t->dtype == dtype && is_row_major(t);
  const int64_t total = count_elements(operands[0]);
  const int64_t* shape = operands[0]->shape;
  int along = -1;
  for (int d = 0; d < operands[0]->ndim; ++d) {
    if (d != dim && (along < 0 || shape[d] > shape[along])) along = d;
  }
  if (dense || total <= kPiece || along < 0) return body(operands);
  const int64_t n = shape[along], rows = std::max<int64_t>(1, kPiece / (total / n));
  for (int64_t start = 0; start < n; start += rows) {
    const auto piece = [&](const rl_tensor* t) { return Narrowed(t, along, start, std::min(rows, n - start)); };
    RL_TRY(with_pieces(operands, piece, body, std::make_index_sequence<K>()));
  }
  return RL_OK;
}

// dim in [-ndim, ndim) to [0, ndim); a scalar has one dimension of size 1.
inline rl_status wrap_dim(const char* name, const rl_tensor* t, int* dim) {
  const int ndim = t->ndim > 0 ? t->ndim : 1;
  if (*dim < -ndim || *dim >= ndim) {
    return fail(RL_INDEX_ERROR, "%s: dim is out of range; expected %d to %d, got %d", name, -ndim, ndim - 1, *dim);
  }
  if (*dim < 0) *dim += ndim;
  return RL_OK;
}

inline rl_status check_same_shape(const char* name, const char* what, const rl_tensor* expected, const rl_tensor* t) {
  if (t == nullptr || shapes_equal(expected, t)) return RL_OK;
  return fail(RL_VALUE_ERROR, "%s: %s has the wrong shape; expected %s, got %s", name, what, shape_text(expected),
              shape_text(t));
}

// float16, bfloat16 and float32 work in float32, the rest in float64.
inline int working_float(int dtype) { return dtype == RL_FLOAT64 || dtype == RL_COMPLEX128 ? RL_FLOAT64 : RL_FLOAT32; }

}  // namespace rl
