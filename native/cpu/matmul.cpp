// Batched matrix products with any strides.
//
// The operands are brought into a layout that the inner product takes (unit stride in one dimension): most are there
// already, the others are copied. The output is cut into blocks that depend on the sizes alone, and each block is one
// call of a single-threaded GEMM or GEMV; so the number of threads never changes a result.
#include <climits>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "cpu/matmul_bf16.h"
#include "cpu/matmul_blas.h"
#include "cpu/matmul_dense.h"
#include "cpu/matmul_integer.h"
#include "cpu/matmul_small.h"
#include "cpu/matmul_strided.h"
#include "rushlight.h"
#include "rushlight/matmul.h"

namespace rl {
namespace {

// A matrix of each batch: batch strides are kept in Batch.
struct Matrix {
  void* data;
  int64_t row, column;  // strides
};

enum Role { kA, kB, kAdd, kOut, kRoles };

struct Batch {
  int ndim;
  int64_t count;
  int64_t shape[RL_MAX_DIMS];
  int64_t strides[kRoles][RL_MAX_DIMS];
};

struct Product {
  int64_t m, n, k;
  rl_number alpha, beta;  // beta 0: there is no add
  Matrix of[kRoles];
  bool add_is_out;
  bool copy_a, copy_b, copy_add;  // because out overlaps them
  Batch* batch;                   // null: one product
  int64_t count() const { return batch ? batch->count : 1; }
};

// Offsets of one batch after another.
class BatchWalk {
 public:
  BatchWalk(const Batch* batch, int64_t position) : batch_(batch) {
    if (!batch) return;
    for (int d = batch->ndim - 1; d >= 0; --d) {
      index_[d] = position % batch->shape[d];
      position /= batch->shape[d];
      for (int r = 0; r < kRoles; ++r) offset_[r] += index_[d] * batch->strides[r][d];
    }
  }
  void next() {
    if (!batch_) return;
    for (int d = batch_->ndim - 1; d >= 0; --d) {
      for (int r = 0; r < kRoles; ++r) offset_[r] += batch_->strides[r][d];
      if (++index_[d] < batch_->shape[d]) return;
      for (int r = 0; r < kRoles; ++r) offset_[r] -= batch_->strides[r][d] * batch_->shape[d];
      index_[d] = 0;
    }
  }
  int64_t offset(Role role) const { return offset_[role]; }

 private:
  const Batch* batch_;
  int64_t offset_[kRoles] = {};
  int64_t index_[RL_MAX_DIMS];
};

// ---- blocks

constexpr int64_t kSmallProduct = 512;     // multiplications that the kernel for small matrices does sooner
constexpr int64_t kSmallWork = 1'500'000;  // multiplications: more of them pay for a second thread
constexpr int64_t kLongDot = 1 << 24;      // terms from which a product of two vectors makes no copies
constexpr int64_t kBatchWork = 4'000'000;  // of a matrix in a batch, whose matrices are what threads share

struct Blocks {
  int64_t rows, columns;                // of a block
  int64_t per_row = 1, per_matrix = 1;  // blocks in a row of blocks; in a matrix
  void count(int64_t m, int64_t n) {
    per_row = (n + columns - 1) / columns;
    per_matrix = per_row * ((m + rows - 1) / rows);
  }
};

Blocks blocks_of(int64_t m, int64_t n, int64_t k, bool batched) {
  Blocks b{m, n};
  // In doubles: the product of three sizes may pass 2^63.
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  if (work > static_cast<double>(batched ? kBatchWork : kSmallWork)) [[unlikely]] {
    // Larger blocks repeat less of the inner product's packing; four keep small machines busy, and more pay off later.
    double target = std::max(2.0, work / 10e6);
    if (target > 4) target = std::clamp(work / 1e8, 4.0, 16.0);
    if (work > 16e9) target = 64;
    double have = 1;
    while (have < target) {
      if (b.rows >= b.columns && b.rows > 64) {
        b.rows = ((b.rows + 1) / 2 + 15) & ~int64_t{15};
      } else if (b.columns > 64) {
        b.columns = ((b.columns + 1) / 2 + 15) & ~int64_t{15};
      } else {
        break;
      }
      have *= 2;
    }
    constexpr int64_t most = 1 << 20;  // also keeps sizes within an int
    b.rows = std::min(b.rows, most);
    b.columns = std::min(b.columns, most);
  }
  b.count(m, n);
  return b;
}

// A product with a vector reads the matrix once: memory, not arithmetic, sets the block.
Blocks vector_blocks_of(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kElements = 1 << 17;
  Blocks b{m, n};
  int64_t& length = n == 1 ? b.rows : b.columns;
  const int64_t per_block = std::max<int64_t>(kElements / std::max<int64_t>(k, 1), 64) & ~int64_t{15};
  if (length > 2 * per_block) length = std::min<int64_t>(per_block, 1 << 20);
  b.count(m, n);
  return b;
}

// ---- layout

// Whether rows x columns with these strides is a row-major (kNo) or a transposed (kYes) matrix with a leading
// dimension, which may be beyond BLAS's ints. That of a single line is never stepped by: any that BLAS accepts will do.
template <class Size>
bool blas_layout(int64_t rows, int64_t columns, Size row, Size column, Transpose& transpose, int64_t& leading) {
  if ((column == 1 || columns == 1) && (rows == 1 || (row >= columns && row > 0))) {
    transpose = Transpose::kNo;
    leading = rows == 1 ? std::min<int64_t>(columns, INT_MAX) : row;
    return columns > 1 || leading >= 1;
  }
  if ((row == 1 || rows == 1) && (columns == 1 || (column >= rows && column > 0))) {
    transpose = Transpose::kYes;
    leading = columns == 1 ? std::min<int64_t>(rows, INT_MAX) : column;
    return true;
  }
  return false;
}

// Copies one operand of all batches, converting to C. Broadcast batch dimensions stay broadcast. False: no memory.
template <class C, class S>
bool pack(Product& p, Role role, int64_t rows, int64_t columns, void*& owned) {
  Matrix& matrix = p.of[role];
  int ndim = 0;
  int64_t shape[RL_MAX_DIMS + 2], from[RL_MAX_DIMS + 2], to[RL_MAX_DIMS + 2];
  int batch_dim[RL_MAX_DIMS];
  if (p.batch) {
    for (int d = 0; d < p.batch->ndim; ++d) {
      if (p.batch->strides[role][d] == 0) continue;
      batch_dim[ndim] = d;
      shape[ndim] = p.batch->shape[d];
      from[ndim++] = p.batch->strides[role][d];
    }
  }
  const int batch_ndim = ndim;
  // Keep the order in memory, so that the copy runs along it.
  const bool transposed = std::abs(matrix.row) < std::abs(matrix.column) && rows > 1;
  shape[ndim] = transposed ? columns : rows;
  from[ndim++] = transposed ? matrix.column : matrix.row;
  shape[ndim] = transposed ? rows : columns;
  from[ndim++] = transposed ? matrix.row : matrix.column;
  int64_t total = 1;
  for (int d = ndim - 1; d >= 0; --d) {
    to[d] = total;
    if (__builtin_mul_overflow(total, shape[d], &total)) total = INT64_MAX;
  }
  const size_t bytes =
      total > static_cast<int64_t>(INT64_MAX / sizeof(C)) ? SIZE_MAX : static_cast<size_t>(total) * sizeof(C);
  owned = rl_allocate(bytes);
  if (!owned) return false;
  copy_strided(ndim, shape, static_cast<C*>(owned), to, static_cast<const S*>(matrix.data), from);
  matrix.data = owned;
  matrix.row = to[transposed ? ndim - 1 : ndim - 2];
  matrix.column = to[transposed ? ndim - 2 : ndim - 1];
  for (int d = 0; d < batch_ndim; ++d) p.batch->strides[role][batch_dim[d]] = to[d];
  return true;
}

template <class C>
C factor(rl_number value) {
  if constexpr (is_complex_v<C>) {
    return C(static_cast<real_type<C>>(value.re), static_cast<real_type<C>>(value.im));
  } else {
    return convert<C>(value.re);
  }
}

struct Owned {
  void* block = nullptr;
  ~Owned() { rl_deallocate(block); }
};

// ---- out = beta * add, when the product has no terms

template <class S>
void scale_block(const Product& p, const BatchWalk& walk) {
  using C = compute_type<S>;
  const C beta = factor<C>(p.beta);
  const bool zero = p.beta.re == 0 && p.beta.im == 0;
  const Matrix &out = p.of[kOut], &add = p.of[kAdd];
  for (int64_t i = 0; i < p.m; ++i) {
    S* const to = static_cast<S*>(out.data) + walk.offset(kOut) + i * out.row;
    if (zero) {
      for (int64_t j = 0; j < p.n; ++j) to[j * out.column] = S{};
      continue;
    }
    const S* const from = static_cast<const S*>(add.data) + walk.offset(kAdd) + i * add.row;
    for (int64_t j = 0; j < p.n; ++j) {
      to[j * out.column] = convert<S>(static_cast<C>(beta * convert<C>(from[j * add.column])));
    }
  }
}

template <class S>
rl_status scale(Product& p) {
  Owned add;
  if (p.copy_add && !pack<S, S>(p, kAdd, p.m, p.n, add.block)) return RL_MEMORY_ERROR;
  BatchWalk walk(p.batch, 0);
  for (int64_t i = 0; i < p.count(); ++i, walk.next()) scale_block<S>(p, walk);
  return RL_OK;
}

// ---- floating point and complex, on BLAS

// Everything a block needs.
template <class C, class S>
struct BlasProduct {
  const BlasTable* blas;
  const Product* p;
  Transpose transpose_a, transpose_b;
  int64_t lda, ldb, ldc;
  C alpha, beta;
  bool direct;  // out is written by BLAS itself, else through a tile
  bool vector;
  int64_t terms = 1 << 30;  // of a call: an int counts no more

  // Lines that lie too far apart for an int are taken one at a time: the blocks are shrunk, or the terms of a call.
  void part_far_lines(Blocks& blocks) {
    if (lda > INT_MAX) (transpose_a == Transpose::kNo ? blocks.rows : terms) = 1;
    if (ldb > INT_MAX) (transpose_b == Transpose::kNo ? terms : blocks.columns) = 1;
    lda = std::min<int64_t>(lda, INT_MAX);
    ldb = std::min<int64_t>(ldb, INT_MAX);
    blocks.count(p->m, p->n);
  }

  // Rows [i, i + rows) and columns [j, j + columns) of one matrix of the batch.
  rl_status block(const BatchWalk& walk, int64_t i, int64_t rows, int64_t j, int64_t columns) const {
    const Matrix &out = p->of[kOut], &add = p->of[kAdd];
    S* const target = static_cast<S*>(out.data) + walk.offset(kOut) + i * out.row + j * out.column;
    if (direct) {
      if constexpr (std::is_same_v<C, S>) {
        if (!p->add_is_out && beta != C(0)) copy_add(walk, i, rows, j, columns, target, ldc);
        multiply(walk, i, rows, j, columns, target, ldc);
      }
      return RL_OK;
    }
    Scratch<C> tile(rows * columns);
    if (!tile) return RL_MEMORY_ERROR;
    if (beta != C(0)) copy_add(walk, i, rows, j, columns, tile.get(), columns);
    multiply(walk, i, rows, j, columns, tile.get(), columns);
    for (int64_t r = 0; r < rows; ++r) copy_row(target + r * out.row, out.column, &tile[r * columns], 1, columns);
    static_cast<void>(add);
    return RL_OK;
  }

  void copy_add(const BatchWalk& walk, int64_t i, int64_t rows, int64_t j, int64_t columns, C* to,
                int64_t to_row) const {
    const Matrix& add = p->of[kAdd];
    const S* const from = static_cast<const S*>(add.data) + walk.offset(kAdd) + i * add.row + j * add.column;
    if (columns == 1) {
      copy_row(to, to_row, from, add.row, rows);
      return;
    }
    for (int64_t r = 0; r < rows; ++r) copy_row(to + r * to_row, 1, from + r * add.row, add.column, columns);
  }

  void multiply(const BatchWalk& walk, int64_t i, int64_t rows, int64_t j, int64_t columns, C* c, int64_t c_row) const {
    const Matrix &ma = p->of[kA], &mb = p->of[kB];
    const C* a = static_cast<const C*>(ma.data) + walk.offset(kA) + i * ma.row;
    const C* b = static_cast<const C*>(mb.data) + walk.offset(kB) + j * mb.column;
    C rest_beta = beta;
    for (int64_t k = p->k;;) {
      const int length = static_cast<int>(std::min(k, terms));
      if (vector) {
        if (p->n == 1) {
          const bool no = transpose_a == Transpose::kNo;
          gemv(*blas, transpose_a, static_cast<int>(no ? rows : length), static_cast<int>(no ? length : rows), alpha, a,
               static_cast<int>(lda), b, static_cast<int>(transpose_b == Transpose::kNo ? ldb : 1), rest_beta, c,
               static_cast<int>(c_row));
        } else {
          // out is one row, b^T times a.
          const bool no = transpose_b == Transpose::kNo;
          gemv(*blas, no ? Transpose::kYes : Transpose::kNo, static_cast<int>(no ? length : columns),
               static_cast<int>(no ? columns : length), alpha, b, static_cast<int>(ldb), a,
               static_cast<int>(transpose_a == Transpose::kNo ? 1 : lda), rest_beta, c, 1);
        }
      } else {
        gemm(*blas, transpose_a, transpose_b, static_cast<int>(rows), static_cast<int>(columns), length, alpha, a,
             static_cast<int>(lda), b, static_cast<int>(ldb), rest_beta, c, static_cast<int>(c_row));
      }
      k -= length;
      if (k == 0) [[likely]]
        return;
      a += int64_t{length} * ma.column;
      b += int64_t{length} * mb.row;
      rest_beta = C(1);
    }
  }
};

// Whether the kernel for small matrices takes this product: decided by its sizes alone.
bool is_small(const Product& p) {
  if (p.m > 64 || p.n > 64 || p.k > 64 || p.copy_a || p.copy_b || p.copy_add) return false;
  return p.k * ((p.n + 7) & ~int64_t{7}) <= kSmallElements && p.m * p.n * p.k <= kSmallProduct;
}

template <class C>
rl_status small_product(const Product& p) {
  const MatmulSmallTable& table = matmul_small_table();
  const auto run = std::is_same_v<C, float>       ? table.float32
                   : std::is_same_v<C, double>    ? table.float64
                   : std::is_same_v<C, complex64> ? table.complex64
                                                  : table.complex128;
  const Matrix &a = p.of[kA], &b = p.of[kB], &add = p.of[kAdd], &out = p.of[kOut];
  SmallProduct one{p.m,        p.n,        p.k,        a.data,    b.data,   add.data,   out.data,
                   a.row,      a.column,   b.row,      b.column,  add.row,  add.column, out.row,
                   out.column, p.alpha.re, p.alpha.im, p.beta.re, p.beta.im};
  if (!p.batch) {
    run(one);
    return RL_OK;
  }
  parallel_for(p.count(), std::max<int64_t>(1, 500'000 / (p.m * p.n * p.k + 100)), [&](int64_t begin, int64_t end) {
    BatchWalk walk(p.batch, begin);
    SmallProduct next = one;
    for (int64_t i = begin; i < end; ++i, walk.next()) {
      next.a = static_cast<const C*>(a.data) + walk.offset(kA);
      next.b = static_cast<const C*>(b.data) + walk.offset(kB);
      next.out = static_cast<C*>(out.data) + walk.offset(kOut);
      if (add.data) next.add = static_cast<const C*>(add.data) + walk.offset(kAdd);
      run(next);
    }
  });
  return RL_OK;
}

// Whether operands in units of 16 lines and 32 terms would take far more memory than they do.
bool pads_much(const Product& p) {
  const double terms = std::ceil(static_cast<double>(p.k) / 32) * 32;
  const double lines = std::ceil(static_cast<double>(p.m) / 16) * 16 + std::ceil(static_cast<double>(p.n) / 16) * 16;
  constexpr double kMost = 1 << 26;
  return lines * terms > kMost &&
         lines * terms > 4 * (static_cast<double>(p.m) + static_cast<double>(p.n)) * static_cast<double>(p.k);
}

// Products large enough for the preparations to pay, on processors that can.
bool is_bf16_product(const Product& p) {
  return static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) > 4096 && !p.copy_a &&
         !p.copy_b && !p.copy_add && bf16_products() && !pads_much(p);
}

rl_status bf16_batch(const Product& p) {
  const Matrix &a = p.of[kA], &b = p.of[kB], &add = p.of[kAdd], &out = p.of[kOut];
  const auto run = [&](int64_t begin, int64_t end) -> rl_status {
    BatchWalk walk(p.batch, begin);
    for (int64_t i = begin; i < end; ++i, walk.next()) {
      RL_TRY(bf16_product({p.m, p.n, p.k, static_cast<const bfloat16*>(a.data) + walk.offset(kA),
                           static_cast<const bfloat16*>(b.data) + walk.offset(kB),
                           add.data ? static_cast<const bfloat16*>(add.data) + walk.offset(kAdd) : nullptr,
                           static_cast<bfloat16*>(out.data) + walk.offset(kOut), a.row, a.column, b.row, b.column,
                           add.row, add.column, out.row, out.column, static_cast<float>(p.alpha.re),
                           static_cast<float>(p.beta.re)}));
    }
    return RL_OK;
  };
  // Small products share the threads among them, large ones use all threads one after the other.
  const double work = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  if (work > 64e6) return run(0, p.count());
  return parallel_for(p.count(), std::max<int64_t>(1, static_cast<int64_t>(1e6 / work)), run);
}

template <class T>
rl_status dense_batch(Product& p) {
  Owned a_copy, b_copy, add_copy;
  if (p.copy_a && !pack<T, T>(p, kA, p.m, p.k, a_copy.block)) return RL_MEMORY_ERROR;
  if (p.copy_b && !pack<T, T>(p, kB, p.k, p.n, b_copy.block)) return RL_MEMORY_ERROR;
  if (p.copy_add && !pack<T, T>(p, kAdd, p.m, p.n, add_copy.block)) return RL_MEMORY_ERROR;
  const Matrix &a = p.of[kA], &b = p.of[kB], &add = p.of[kAdd], &out = p.of[kOut];
  const auto run = [&](int64_t begin, int64_t end) -> rl_status {
    BatchWalk walk(p.batch, begin);
    for (int64_t i = begin; i < end; ++i, walk.next()) {
      RL_TRY(dense_product(DenseProduct<T>{p.m, p.n, p.k, static_cast<const T*>(a.data) + walk.offset(kA),
                                           static_cast<const T*>(b.data) + walk.offset(kB),
                                           add.data ? static_cast<const T*>(add.data) + walk.offset(kAdd) : nullptr,
                                           static_cast<T*>(out.data) + walk.offset(kOut), a.row, a.column, b.row,
                                           b.column, add.row, add.column, out.row, out.column, factor<T>(p.alpha),
                                           factor<T>(p.beta)}));
    }
    return RL_OK;
  };
  // Small products share the threads among them, large ones use all threads one after the other.
  const double work = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  if (p.count() == 1 || work > 64e6) return run(0, p.count());
  return parallel_for(p.count(), std::max<int64_t>(1, static_cast<int64_t>(1e6 / work)), run);
}

template <class C, class S>
rl_status blas_product(Product& p) {
  if constexpr (std::is_same_v<S, bfloat16>) {
    if (is_bf16_product(p)) return bf16_batch(p);
  }
  if constexpr (std::is_same_v<C, S>) {
    if (is_small(p)) return small_product<C>(p);
  }
  if constexpr (std::is_same_v<C, S> && std::is_floating_point_v<S>) {
    if (p.m > 1 && p.n > 1 && dense_products()) return dense_batch<S>(p);
  }
  BlasProduct<C, S> run;
  run.blas = blas();
  if (!run.blas) return RL_RUNTIME_ERROR;
  run.p = &p;
  run.alpha = factor<C>(p.alpha);
  run.beta = factor<C>(p.beta);

  Transpose transpose_out;
  run.direct = std::is_same_v<C, S> &&
               blas_layout(p.m, p.n, p.of[kOut].row, p.of[kOut].column, transpose_out, run.ldc) && run.ldc <= INT_MAX;
  if (run.direct && transpose_out == Transpose::kYes) {
    // out^T = b^T a^T is row-major.
    std::swap(p.of[kA], p.of[kB]);
    std::swap(p.m, p.n);
    std::swap(p.copy_a, p.copy_b);
    for (Matrix& matrix : p.of) std::swap(matrix.row, matrix.column);
    if (p.batch) {
      for (int d = 0; d < p.batch->ndim; ++d) std::swap(p.batch->strides[kA][d], p.batch->strides[kB][d]);
    }
  }
  Owned a, b, add;
  if constexpr (std::is_same_v<C, S>) {
    if ((p.copy_a || !blas_layout(p.m, p.k, p.of[kA].row, p.of[kA].column, run.transpose_a, run.lda)) &&
        !pack<C, S>(p, kA, p.m, p.k, a.block))
      return RL_MEMORY_ERROR;
    if ((p.copy_b || !blas_layout(p.k, p.n, p.of[kB].row, p.of[kB].column, run.transpose_b, run.ldb)) &&
        !pack<C, S>(p, kB, p.k, p.n, b.block))
      return RL_MEMORY_ERROR;
  } else {
    if (!pack<C, S>(p, kA, p.m, p.k, a.block) || !pack<C, S>(p, kB, p.k, p.n, b.block)) return RL_MEMORY_ERROR;
  }
  if (a.block) blas_layout(p.m, p.k, p.of[kA].row, p.of[kA].column, run.transpose_a, run.lda);
  if (b.block) blas_layout(p.k, p.n, p.of[kB].row, p.of[kB].column, run.transpose_b, run.ldb);
  if (p.copy_add && !pack<S, S>(p, kAdd, p.m, p.n, add.block)) return RL_MEMORY_ERROR;

  run.vector = p.m == 1 || p.n == 1;
  Blocks blocks = run.vector ? vector_blocks_of(p.m, p.n, p.k) : blocks_of(p.m, p.n, p.k, p.batch != nullptr);
  if (std::max(run.lda, run.ldb) > INT_MAX) [[unlikely]]
    run.part_far_lines(blocks);
  if (blocks.per_matrix == 1) {
    if (!p.batch) return run.block(BatchWalk(nullptr, 0), 0, p.m, 0, p.n);
    const int64_t work = p.m * p.n * p.k;  // at most kBatchWork, or a matrix times a vector
    return parallel_for(p.count(), std::max<int64_t>(1, 1'000'000 / (work + 100)),
                        [&](int64_t begin, int64_t end) -> rl_status {
                          BatchWalk walk(p.batch, begin);
                          for (int64_t i = begin; i < end; ++i, walk.next()) RL_TRY(run.block(walk, 0, p.m, 0, p.n));
                          return RL_OK;
                        });
  }
  return parallel_for(p.count() * blocks.per_matrix, 1, [&](int64_t begin, int64_t end) -> rl_status {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t block = unit % blocks.per_matrix;
      const int64_t i = block / blocks.per_row * blocks.rows, j = block % blocks.per_row * blocks.columns;
      RL_TRY(run.block(BatchWalk(p.batch, unit / blocks.per_matrix), i, std::min(blocks.rows, p.m - i), j,
                       std::min(blocks.columns, p.n - j)));
    }
    return RL_OK;
  });
}

// ---- integers

template <class T>
rl_status integer_product(Product& p) {
  Owned a, b, add;
  if (p.copy_a && !pack<T, T>(p, kA, p.m, p.k, a.block)) return RL_MEMORY_ERROR;
  // The inner loop runs along the rows of b.
  if (p.of[kB].column != 1 && p.n > 1) p.copy_b = true;
  if (p.copy_b) {
    // Row-major, whatever the order in memory was.
    if (!pack<T, T>(p, kB, p.k, p.n, b.block)) return RL_MEMORY_ERROR;
  }
  Owned b_rows;
  if (p.of[kB].column != 1 && p.n > 1) {
    // The copy kept a transposed order: copy once more, across it.
    int ndim = 0;
    int64_t shape[RL_MAX_DIMS + 2], from[RL_MAX_DIMS + 2], to[RL_MAX_DIMS + 2];
    if (p.batch) {
      for (int d = 0; d < p.batch->ndim; ++d) {
        if (p.batch->strides[kB][d] == 0) continue;
        shape[ndim] = p.batch->shape[d];
        from[ndim] = to[ndim] = p.batch->strides[kB][d];
        ++ndim;
      }
    }
    int64_t total = p.k * p.n;
    for (int d = 0; d < ndim; ++d) total *= shape[d];
    shape[ndim] = p.k;
    from[ndim] = p.of[kB].row;
    to[ndim++] = p.n;
    shape[ndim] = p.n;
    from[ndim] = p.of[kB].column;
    to[ndim++] = 1;
    b_rows.block = rl_allocate(static_cast<size_t>(total) * sizeof(T));
    if (!b_rows.block) return RL_MEMORY_ERROR;
    copy_strided(ndim, shape, static_cast<T*>(b_rows.block), to, static_cast<const T*>(p.of[kB].data), from);
    p.of[kB] = {b_rows.block, p.n, 1};
  }
  if (p.copy_add && !pack<T, T>(p, kAdd, p.m, p.n, add.block)) return RL_MEMORY_ERROR;

  const T alpha = factor<T>(p.alpha), beta = factor<T>(p.beta);
  const auto sum = matmul_integer_table().sum[dtype_of<T>];
  const Matrix &ma = p.of[kA], &mb = p.of[kB], &mc = p.of[kOut], &md = p.of[kAdd];
  const int64_t block_rows =
      std::max<int64_t>(1, 1'000'000 / std::max<int64_t>(1, std::min<int64_t>(p.n * p.k, 1'000'000)));
  const int64_t row_blocks = (p.m + block_rows - 1) / block_rows;
  return parallel_for(p.count() * row_blocks, 1, [&](int64_t begin, int64_t end) -> rl_status {
    Scratch<T> line(p.n);
    if (!line) return RL_MEMORY_ERROR;
    for (int64_t unit = begin; unit < end; ++unit) {
      const BatchWalk walk(p.batch, unit / row_blocks);
      const int64_t first = unit % row_blocks * block_rows;
      for (int64_t i = first; i < std::min(first + block_rows, p.m); ++i) {
        sum(static_cast<const T*>(ma.data) + walk.offset(kA) + i * ma.row, ma.column,
            static_cast<const T*>(mb.data) + walk.offset(kB), mb.row, line.get(), p.n, p.k);
        T* const out = static_cast<T*>(mc.data) + walk.offset(kOut) + i * mc.row;
        const T* const addend = static_cast<const T*>(md.data) + walk.offset(kAdd) + i * md.row;
        using U = uint64_t;  // wraps; narrower types keep its low bits
        if (beta == 0) {
          for (int64_t j = 0; j < p.n; ++j)
            out[j * mc.column] = static_cast<T>(static_cast<U>(alpha) * static_cast<U>(line[j]));
        } else {
          for (int64_t j = 0; j < p.n; ++j) {
            out[j * mc.column] = static_cast<T>(static_cast<U>(alpha) * static_cast<U>(line[j]) +
                                                static_cast<U>(beta) * static_cast<U>(addend[j * md.column]));
          }
        }
      }
    }
    return RL_OK;
  });
}

// ---- checks

bool same_strides(const rl_tensor* x, const rl_tensor* y) {
  for (int d = 0; d < x->ndim; ++d) {
    if (x->shape[d] > 1 && x->strides[d] != y->strides[d]) return false;
  }
  return true;
}

rl_status check_dtype(const rl_tensor* t, const rl_tensor* out, const char* name) {
  if (t->dtype == out->dtype) [[likely]]
    return RL_OK;
  return fail(RL_TYPE_ERROR, "matmul: the dtypes differ; expected %s is %s like the output, got %s", name,
              dtype_text(out->dtype), dtype_text(t->dtype));
}

rl_status check_shapes(const rl_tensor* a, const rl_tensor* b, const rl_tensor* add, const rl_tensor* out) {
  const int nd = out->ndim;
  if (nd < 2 || nd > RL_MAX_DIMS || a->ndim != nd || b->ndim != nd || (add && add->ndim != nd))
    return fail(RL_VALUE_ERROR,
                "matmul: expected tensors of one number of dimensions from 2 to %d, got %s and %s for the output %s",
                RL_MAX_DIMS, shape_text(a), shape_text(b), shape_text(out));
  bool good = a->shape[nd - 1] == b->shape[nd - 2] && out->shape[nd - 2] == a->shape[nd - 2] &&
              out->shape[nd - 1] == b->shape[nd - 1];
  for (int d = 0; d < nd - 2; ++d) good &= a->shape[d] == out->shape[d] && b->shape[d] == out->shape[d];
  if (!good) [[unlikely]]
    return fail(
        RL_VALUE_ERROR,
        "matmul: shapes %s and %s cannot be multiplied into %s; expected [..., m, k], [..., k, n] and [..., m, n]",
        shape_text(a), shape_text(b), shape_text(out));
  if (add) {
    for (int d = 0; d < nd; ++d) {
      if (add->shape[d] != out->shape[d])
        return fail(RL_VALUE_ERROR, "matmul: the added tensor has shape %s; expected the output's, %s", shape_text(add),
                    shape_text(out));
    }
  }
  return RL_OK;
}

// Batch dimensions, merged where all operands allow it, and folded into the rows where b is shared.
void set_batch(Product& p, Batch& batch, const rl_tensor* const (&tensors)[kRoles]) {
  const rl_tensor* const out = tensors[kOut];
  batch.ndim = 0;
  batch.count = 1;
  for (int d = 0; d < out->ndim - 2; ++d) {
    const int64_t size = out->shape[d];
    if (size == 1) continue;
    batch.count *= size;
    bool merge = batch.ndim > 0;
    for (int r = 0; r < kRoles && merge; ++r) {
      if (tensors[r] && batch.strides[r][batch.ndim - 1] != tensors[r]->strides[d] * size) merge = false;
    }
    if (!merge) batch.shape[batch.ndim++] = 1;
    batch.shape[batch.ndim - 1] *= size;
    for (int r = 0; r < kRoles; ++r) batch.strides[r][batch.ndim - 1] = tensors[r] ? tensors[r]->strides[d] : 0;
  }
  while (batch.ndim > 0) {
    const int last = batch.ndim - 1;
    if (batch.strides[kB][last] != 0) break;
    bool fold = true;
    for (const Role role : {kA, kAdd, kOut}) {
      if (!tensors[role]) continue;
      const int64_t stride = batch.strides[role][last];
      if (p.m == 1 ? (role != kAdd && stride <= 0) : stride != p.of[role].row * p.m) fold = false;
    }
    if (!fold) break;
    if (p.m == 1) {
      for (const Role role : {kA, kAdd, kOut}) p.of[role].row = batch.strides[role][last];
    }
    p.m *= batch.shape[last];
    batch.count /= batch.shape[last];
    --batch.ndim;
  }
  if (batch.ndim > 0) p.batch = &batch;
}

rl_status run(Product& p, int dtype) {
  const bool no_terms = p.k == 0 || (p.alpha.re == 0 && p.alpha.im == 0);
  if (no_terms) {
    RL_DISPATCH_NUMBER(dtype, T, { return scale<T>(p); });
  }
  switch (dtype) {
    case RL_FLOAT32:
      return blas_product<float, float>(p);
    case RL_FLOAT64:
      return blas_product<double, double>(p);
    case RL_COMPLEX64:
      return blas_product<complex64, complex64>(p);
    case RL_COMPLEX128:
      return blas_product<complex128, complex128>(p);
    case RL_FLOAT16:
      return blas_product<float, half>(p);
    case RL_BFLOAT16:
      return blas_product<float, bfloat16>(p);
    default:
      RL_DISPATCH_INTEGER(dtype, T, { return integer_product<T>(p); });
  }
  return fail(RL_TYPE_ERROR, "matmul: unknown dtype %d", dtype);
}

}  // namespace
}  // namespace rl

rl_status rl_matmul(const rl_tensor* a, const rl_tensor* b, const rl_tensor* add, rl_number alpha, rl_number beta,
                    rl_tensor* out) {
  using namespace rl;
  const int dtype = out->dtype;
  RL_TRY(check_dtype(a, out, "the first operand"));
  RL_TRY(check_dtype(b, out, "the second operand"));
  if (beta.re == 0 && beta.im == 0) add = nullptr;
  if (add) RL_TRY(check_dtype(add, out, "the added tensor"));
  if (!is_valid_dtype(dtype) || dtype == RL_BOOL)
    return fail(RL_TYPE_ERROR, "matmul: expected integers, floating point or complex numbers, got %s",
                dtype_text(dtype));
  RL_TRY(check_shapes(a, b, add, out));

  const int nd = out->ndim;
  Product p;
  p.m = out->shape[nd - 2];
  p.n = out->shape[nd - 1];
  p.k = a->shape[nd - 1];
  if (p.m == 0 || p.n == 0) return RL_OK;
  p.alpha = alpha;
  p.beta = add ? beta : rl_number{0, 0};
  p.of[kA] = {a->data, a->strides[nd - 2], a->strides[nd - 1]};
  p.of[kB] = {b->data, b->strides[nd - 2], b->strides[nd - 1]};
  p.of[kOut] = {out->data, out->strides[nd - 2], out->strides[nd - 1]};
  p.of[kAdd] = add ? Matrix{add->data, add->strides[nd - 2], add->strides[nd - 1]} : Matrix{nullptr, 0, 0};
  p.add_is_out = add && add->data == out->data && same_strides(add, out);
  if (nd == 2 && p.m == 1 && p.n == 1 && p.k > kLongDot && !add && alpha.re == 1 && alpha.im == 0) {
    rl_tensor row = *a, column = *b, one = *out;
    row.ndim = column.ndim = 1;
    row.shape = column.shape = &p.k;
    row.strides = &p.of[kA].column;
    column.strides = &p.of[kB].row;
    one.ndim = 0;
    return rl_dot(&row, &column, 0, &one);
  }
  p.copy_a = overlap(a, out);
  p.copy_b = overlap(b, out);
  p.copy_add = add && !p.add_is_out && overlap(add, out);
  p.batch = nullptr;
  if (nd == 2) return run(p, dtype);

  for (int d = 0; d < nd - 2; ++d) {
    if (out->shape[d] == 0) return RL_OK;
  }
  Batch batch;
  set_batch(p, batch, {a, b, add, out});
  return run(p, dtype);
}

// ---- inner products

namespace rl {
namespace {

constexpr int64_t kDotBlock = 1 << 16;

template <class C, class S>
C dot_block(const BlasTable* table, bool conjugate, const S* x, int64_t x_stride, const S* y, int64_t y_stride,
            int64_t n) {
  if constexpr (std::is_same_v<C, S>) {
    if (x_stride > 0 && y_stride > 0 && x_stride <= INT_MAX && y_stride <= INT_MAX)
      return dot(*table, conjugate, static_cast<int>(n), x, static_cast<int>(x_stride), y, static_cast<int>(y_stride));
  }
  constexpr int64_t kRun = 512;
  C total = C(0);
  C a[kRun], b[kRun];
  for (int64_t i = 0; i < n; i += kRun) {
    const int64_t length = std::min(kRun, n - i);
    copy_row(a, 1, x + i * x_stride, x_stride, length);
    copy_row(b, 1, y + i * y_stride, y_stride, length);
    total += dot(*table, conjugate, static_cast<int>(length), a, 1, b, 1);
  }
  return total;
}

template <class C, class S>
rl_status float_dot(const rl_tensor* a, const rl_tensor* b, bool conjugate, rl_tensor* out) {
  const BlasTable* const table = blas();
  if (!table) return RL_RUNTIME_ERROR;
  const int64_t n = a->shape[0];
  const S *const x = static_cast<const S*>(a->data), *const y = static_cast<const S*>(b->data);
  const int64_t x_stride = a->strides[0], y_stride = b->strides[0];
  C total = C(0);
  if (n <= kDotBlock) {
    if (n > 0) total = dot_block<C>(table, conjugate, x, x_stride, y, y_stride, n);
  } else {
    const int64_t blocks = (n + kDotBlock - 1) / kDotBlock;
    Scratch<C> partial(blocks);
    if (!partial) return RL_MEMORY_ERROR;
    parallel_for(n, kDotBlock, [&](int64_t begin, int64_t end) {
      partial[begin / kDotBlock] =
          dot_block<C>(table, conjugate, x + begin * x_stride, x_stride, y + begin * y_stride, y_stride, end - begin);
    });
    for (int64_t i = 0; i < blocks; ++i) total += partial[i];
  }
  *static_cast<S*>(out->data) = convert<S>(total);
  return RL_OK;
}

template <class T>
rl_status integer_dot(const rl_tensor* a, const rl_tensor* b, rl_tensor* out) {
  const T *const x = static_cast<const T*>(a->data), *const y = static_cast<const T*>(b->data);
  uint64_t total = 0;
  for (int64_t i = 0; i < a->shape[0]; ++i)
    total += static_cast<uint64_t>(x[i * a->strides[0]]) * static_cast<uint64_t>(y[i * b->strides[0]]);
  *static_cast<T*>(out->data) = static_cast<T>(total);
  return RL_OK;
}

}  // namespace
}  // namespace rl

rl_status rl_dot(const rl_tensor* a, const rl_tensor* b, int conjugate, rl_tensor* out) {
  using namespace rl;
  if (a->ndim != 1 || b->ndim != 1 || out->ndim != 0 || a->shape[0] != b->shape[0])
    return fail(RL_VALUE_ERROR,
                "dot: expected two vectors of one length and an output without dimensions, got %s, %s and %s",
                shape_text(a), shape_text(b), shape_text(out));
  if (a->dtype != out->dtype || b->dtype != out->dtype)
    return fail(RL_TYPE_ERROR, "dot: the dtypes differ; expected one for all, got %s, %s and %s for the output",
                dtype_text(a->dtype), dtype_text(b->dtype), dtype_text(out->dtype));
  switch (out->dtype) {
    case RL_FLOAT32:
      return float_dot<float, float>(a, b, false, out);
    case RL_FLOAT64:
      return float_dot<double, double>(a, b, false, out);
    case RL_COMPLEX64:
      return float_dot<complex64, complex64>(a, b, conjugate != 0, out);
    case RL_COMPLEX128:
      return float_dot<complex128, complex128>(a, b, conjugate != 0, out);
    case RL_FLOAT16:
      return float_dot<float, half>(a, b, false, out);
    case RL_BFLOAT16:
      return float_dot<float, bfloat16>(a, b, false, out);
    default:
      RL_DISPATCH_INTEGER(out->dtype, T, { return integer_dot<T>(a, b, out); });
  }
  return fail(RL_TYPE_ERROR, "dot: expected integers, floating point or complex numbers, got %s",
              dtype_text(out->dtype));
}
