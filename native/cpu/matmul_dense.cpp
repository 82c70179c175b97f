// Cuts products of float32 and float64 matrices into blocks of out for the threads.
#include "cpu/matmul_dense.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/parallel.h"

namespace rl {
namespace {

constexpr double kSerialWork = 1'000'000;  // multiplications: more of them pay for a second thread

// A quarter of the second-level cache: the rest is for a, out and what is fetched ahead.
int64_t block_bytes() {
  static const int64_t bytes = [] {
#if defined(_SC_LEVEL2_CACHE_SIZE)
    const int64_t cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
#else
    const int64_t cache = 0;
#endif
    return std::clamp<int64_t>(cache / 4, 128 << 10, 1 << 20);
  }();
  return bytes;
}

template <class T>
rl_status cut_product(DenseProduct<T> p, rl_status (*run)(const DenseProduct<T>&, int64_t)) {
  if (p.out_column != 1 && p.out_row == 1 && p.n > 1) {
    // out^T = b^T a^T is row-major.
    std::swap(p.m, p.n);
    std::swap(p.a, p.b);
    std::swap(p.a_row, p.b_column);
    std::swap(p.a_column, p.b_row);
    std::swap(p.add_row, p.add_column);
    std::swap(p.out_row, p.out_column);
  }
  const MatmulDenseTable& table = matmul_dense_table();
  const double work = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  const int threads = rl_get_num_threads();
  if (work <= kSerialWork || threads == 1 || in_parallel_region()) return run(p, block_bytes());
  const int64_t width = table.row_bytes / static_cast<int64_t>(sizeof(T));
  // More blocks than threads even out what else the processors do, but each packs its part of b again.
  const double most = std::clamp(work / 16e6, 1.0, 4.0) * threads;
  int64_t rows = p.m, columns = p.n;
  for (double have = 1; have < most; have *= 2) {
    const auto half = [](int64_t size, int64_t unit) { return (size / 2 + unit - 1) / unit * unit; };
    if (columns >= rows && columns > width) {
      columns = half(columns, width);
    } else if (rows > table.rows) {
      rows = half(rows, table.rows);
    } else if (columns > width) {
      columns = half(columns, width);
    } else {
      break;
    }
  }
  const int64_t across = (p.n + columns - 1) / columns, down = (p.m + rows - 1) / rows;
  return parallel_for(across * down, 1, [&](int64_t begin, int64_t end) -> rl_status {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t i = at / across * rows, j = at % across * columns;
      DenseProduct<T> part = p;
      part.m = std::min(rows, p.m - i);
      part.n = std::min(columns, p.n - j);
      part.a += i * p.a_row;
      part.b += j * p.b_column;
      part.out += i * p.out_row + j * p.out_column;
      if (p.add) part.add += i * p.add_row + j * p.add_column;
      RL_TRY(run(part, block_bytes()));
    }
    return RL_OK;
  });
}

}  // namespace

bool dense_products() { return matmul_dense_table().float32 != nullptr; }

rl_status dense_product(const DenseProduct<float>& p) { return cut_product(p, matmul_dense_table().float32); }
rl_status dense_product(const DenseProduct<double>& p) { return cut_product(p, matmul_dense_table().float64); }

}  // namespace rl
