// The skeleton under every elementwise operation.
//
// A kernel is a loop over contiguous elements of its own dtypes. The skeleton brings everything else to that form, a
// tile of a few kilobytes at a time, so that what it copies stays in the first-level cache: operands of another dtype
// are converted, strided ones gathered, broadcast ones filled in; whatever is contiguous already is used where it is.
// Two ways to walk:
//   linear: tiles are runs of consecutive elements of the whole iteration space. For everything small, for operands
//   that
//           are contiguous as a whole, and for short innermost dimensions.
//   rows:   tiles lie within rows of the innermost dimension, so an operand need only be contiguous along it. When an
//           input runs along another dimension instead (a transposed matrix), tiles are blocks of a few rows, so that
//           each cache line of that input is read once.
// Work is split among threads by fixed blocks of about kBlock elements.
#include "cpu/elementwise_plan.h"

#include <atomic>
#include <cstring>

#include "rushlight/elementwise.h"

namespace rl {
namespace {

constexpr int64_t kTileBytes = 8192;     // room for a tile
constexpr int64_t kRunBytes = 2048;      // of a tile that is one run: small ones overlap best with what memory delivers
constexpr int64_t kBlock = 32768;        // elements per unit of parallel work
constexpr int64_t kShortRow = 64;        // shorter rows are not worth a kernel call each, when some operand is moved
constexpr int64_t kShortDirect = 16;     // the same when all are used in place
constexpr int64_t kTileElements = 4096;  // of a tile of rows that are used in place
constexpr int64_t kCacheLine = 64;
constexpr int64_t kSmallBytes = 4096;  // scratch of the fast path for small tensors

// How an operand reaches the kernel.
enum class Access : uint8_t {
  kDirect,     // contiguous and of the kernel's dtype: used in place
  kConvert,    // contiguous, of another dtype
  kConstant,   // the same element all over: filled in once
  kBroadcast,  // the same element along a row
  kStrided,    // gathered
  kBlock,      // contiguous along dimension 1: gathered a block of rows at a time
};

struct Job {
  Plan plan;
  ElementwiseKernel kernel;  // nullptr for a copy
  unsigned scalar_sets;      // of the kernel
  unsigned scalars;          // the set of inputs passed as single elements
  const char* name;
  Access access[kMaxOperands];
  int64_t tile;           // elements
  int64_t columns, rows;  // of a tile, in the row walk
  int64_t column_tiles, row_tiles;
  std::atomic<int> error{0};

  bool is_scalar(int operand) const { return operand >= plan.n_out && (scalars >> (operand - plan.n_out) & 1u); }
};

// Room for one tile of every operand, and one of elements not yet converted.
struct Buffers {
  alignas(64) char tiles[kMaxOperands][kTileBytes];
  alignas(64) char raw[kTileBytes];
};

// Elements [start, start + n) of an operand's iteration space, in order, to or from consecutive memory.
template <bool kGather>
void move_elements(const MoveTable& move, const Plan& plan, const Operand& operand, int64_t start, int64_t n,
                   char* memory) {
  int64_t index[RL_MAX_DIMS];
  char* at = operand.data;
  int64_t rest = start;
  for (int d = 0; d < plan.ndim; ++d) {
    const int64_t next = rest / plan.sizes[d];
    index[d] = rest - next * plan.sizes[d];
    at += index[d] * operand.strides[d];
    rest = next;
  }
  while (true) {
    const int64_t left = plan.sizes[0] - index[0];
    const int64_t run = left < n ? left : n;
    if constexpr (kGather) {
      move.gather[operand.size_log2](memory, at, operand.strides[0], run);
    } else {
      move.scatter[operand.size_log2](at, operand.strides[0], memory, run);
    }
    n -= run;
    if (n == 0) return;
    memory += run * operand.size;
    at -= index[0] * operand.strides[0];
    index[0] = 0;
    for (int d = 1; d < plan.ndim; ++d) {
      at += operand.strides[d];
      if (++index[d] < plan.sizes[d]) break;
      at -= operand.strides[d] * plan.sizes[d];
      index[d] = 0;
    }
  }
}

void fill_converted(const MoveTable& move, const Operand& operand, const char* element, char* target, int64_t n) {
  alignas(16) char converted[16];
  move.convert[operand.kernel_dtype][operand.dtype](converted, element, 1);
  move.fill[__builtin_ctzll(static_cast<unsigned long long>(operand.kernel_size))](target, converted, n);
}

// ---- the linear walk

// Brings elements [start, start + n) of an input to `tile`, or finds them in place.
const void* load_linear(const MoveTable& move, const Job& job, int k, int64_t start, int64_t n, char* tile, char* raw) {
  const Operand& operand = job.plan.operands[k];
  switch (job.access[k]) {
    case Access::kDirect:
      return operand.data + start * operand.size;
    case Access::kConvert:
      move.convert[operand.kernel_dtype][operand.dtype](tile, operand.data + start * operand.size, n);
      return tile;
    case Access::kConstant:
      return tile;
    default:
      break;
  }
  if (operand.dtype == operand.kernel_dtype) {
    move_elements<true>(move, job.plan, operand, start, n, tile);
  } else {
    move_elements<true>(move, job.plan, operand, start, n, raw);
    move.convert[operand.kernel_dtype][operand.dtype](tile, raw, n);
  }
  return tile;
}

void store_linear(const MoveTable& move, const Job& job, int k, int64_t start, int64_t n, char* tile, char* raw) {
  const Operand& operand = job.plan.operands[k];
  if (job.access[k] == Access::kConvert) {
    move.convert[operand.dtype][operand.kernel_dtype](operand.data + start * operand.size, tile, n);
  } else if (job.access[k] != Access::kDirect) {
    char* from = tile;
    if (operand.dtype != operand.kernel_dtype) {
      move.convert[operand.dtype][operand.kernel_dtype](raw, tile, n);
      from = raw;
    }
    move_elements<false>(move, job.plan, operand, start, n, from);
  }
}

void fill_constants(const MoveTable& move, const Job& job, Buffers& buffers, int64_t n) {
  for (int k = job.plan.n_out; k < job.plan.n_operands(); ++k)
    if (job.access[k] == Access::kConstant)
      fill_converted(move, job.plan.operands[k], job.plan.operands[k].data, buffers.tiles[k], job.is_scalar(k) ? 1 : n);
}

void run_linear(void* context, int64_t begin, int64_t end) {
  Job& job = *static_cast<Job*>(context);
  const Plan& plan = job.plan;
  const MoveTable& move = move_table();
  Buffers buffers;
  void* out[kMaxElementwiseOutputs];
  const void* in[kMaxElementwiseInputs];
  fill_constants(move, job, buffers, job.tile < end - begin ? job.tile : end - begin);
  int error = 0;
  for (int64_t start = begin; start < end; start += job.tile) {
    const int64_t n = end - start < job.tile ? end - start : job.tile;
    for (int k = 0; k < plan.n_out; ++k)
      out[k] =
          job.access[k] == Access::kDirect ? plan.operands[k].data + start * plan.operands[k].size : buffers.tiles[k];
    for (int k = plan.n_out; k < plan.n_operands(); ++k)
      in[k - plan.n_out] = load_linear(move, job, k, start, n, buffers.tiles[k], buffers.raw);
    error |= job.kernel(out, in, n, job.scalars);
    for (int k = 0; k < plan.n_out; ++k) store_linear(move, job, k, start, n, buffers.tiles[k], buffers.raw);
  }
  if (error) job.error.fetch_or(error, std::memory_order_relaxed);
}

void copy_linear(void* context, int64_t begin, int64_t end) {
  Job& job = *static_cast<Job*>(context);
  const MoveTable& move = move_table();
  Buffers buffers;
  const Operand& target = job.plan.operands[0];
  const bool direct = job.access[0] == Access::kDirect;
  if (job.access[1] == Access::kConstant) {
    const int64_t n = job.tile < end - begin ? job.tile : end - begin;
    fill_converted(move, job.plan.operands[1], job.plan.operands[1].data, buffers.tiles[1], n);
  }
  for (int64_t start = begin; start < end; start += job.tile) {
    const int64_t n = end - start < job.tile ? end - start : job.tile;
    char* const place = direct ? target.data + start * target.size : buffers.tiles[1];
    const void* const loaded =
        load_linear(move, job, 1, start, n, job.access[1] == Access::kConstant ? buffers.tiles[1] : place, buffers.raw);
    if (!direct) {
      move_elements<false>(move, job.plan, target, start, n, const_cast<char*>(static_cast<const char*>(loaded)));
    } else if (loaded != place) {
      std::memcpy(place, loaded, static_cast<size_t>(n * target.size));
    }
  }
}

// ---- the row walk

// One tile: rows [row, row + rows) of dimension 1, columns [column, column + columns) of dimension 0, one index of the
// rest.
struct Tile {
  int64_t row, rows, column, columns;
  int64_t offsets[kMaxOperands];  // of the tile's first element, in bytes
};

Tile tile_at(const Job& job, int64_t unit) {
  const Plan& plan = job.plan;
  Tile tile;
  const int64_t by_row = unit / job.column_tiles;
  tile.column = (unit - by_row * job.column_tiles) * job.columns;
  int64_t rest = by_row / job.row_tiles;
  tile.row = (by_row - rest * job.row_tiles) * job.rows;
  tile.columns = plan.sizes[0] - tile.column < job.columns ? plan.sizes[0] - tile.column : job.columns;
  tile.rows = plan.sizes[1] - tile.row < job.rows ? plan.sizes[1] - tile.row : job.rows;
  for (int k = 0; k < plan.n_operands(); ++k)
    tile.offsets[k] = tile.column * plan.operands[k].strides[0] + tile.row * plan.operands[k].strides[1];
  for (int d = 2; rest > 0 && d < plan.ndim; ++d) {
    const int64_t next = rest / plan.sizes[d], index = rest - next * plan.sizes[d];
    for (int k = 0; k < plan.n_operands(); ++k) tile.offsets[k] += index * plan.operands[k].strides[d];
    rest = next;
  }
  return tile;
}

// Brings one row of an input to `tile`, or finds it in place.
const void* load_row(const MoveTable& move, const Job& job, int k, const char* from, int64_t n, char* tile, char* raw) {
  const Operand& operand = job.plan.operands[k];
  switch (job.access[k]) {
    case Access::kDirect:
      return from;
    case Access::kConvert:
      move.convert[operand.kernel_dtype][operand.dtype](tile, from, n);
      return tile;
    case Access::kConstant:
      return tile;
    case Access::kBroadcast:
      if (job.is_scalar(k) && operand.dtype == operand.kernel_dtype) return from;
      fill_converted(move, operand, from, tile, job.is_scalar(k) ? 1 : n);
      return tile;
    default:
      break;
  }
  if (operand.dtype == operand.kernel_dtype) {
    move.gather[operand.size_log2](tile, from, operand.strides[0], n);
  } else {
    move.gather[operand.size_log2](raw, from, operand.strides[0], n);
    move.convert[operand.kernel_dtype][operand.dtype](tile, raw, n);
  }
  return tile;
}

void store_row(const MoveTable& move, const Job& job, int k, char* to, int64_t n, char* tile, char* raw) {
  const Operand& operand = job.plan.operands[k];
  if (job.access[k] == Access::kConvert) {
    move.convert[operand.dtype][operand.kernel_dtype](to, tile, n);
  } else if (job.access[k] != Access::kDirect) {
    char* from = tile;
    if (operand.dtype != operand.kernel_dtype) {
      move.convert[operand.dtype][operand.kernel_dtype](raw, tile, n);
      from = raw;
    }
    move.scatter[operand.size_log2](to, operand.strides[0], from, n);
  }
}

// Brings a block of an input that is contiguous along dimension 1 to `tile`, row after row.
void load_block(const MoveTable& move, const Job& job, int k, const Tile& at, char* tile, char* raw) {
  const Operand& operand = job.plan.operands[k];
  const bool same = operand.dtype == operand.kernel_dtype;
  char* const target = same ? tile : raw;
  move.transpose[operand.size_log2](target, at.columns * operand.size, operand.data + at.offsets[k], operand.strides[0],
                                    at.rows, at.columns);
  if (!same) move.convert[operand.kernel_dtype][operand.dtype](tile, raw, at.rows * at.columns);
}

// The rows of a tile where nothing is moved.
int run_direct_rows(const Job& job, const Tile& at, Buffers& buffers) {
  const Plan& plan = job.plan;
  void* out[kMaxElementwiseOutputs];
  const void* in[kMaxElementwiseInputs];
  int64_t steps[kMaxOperands];
  for (int k = 0; k < plan.n_operands(); ++k) {
    const bool constant = job.access[k] == Access::kConstant;
    steps[k] = constant ? 0 : plan.operands[k].strides[1];
    char* const first = constant ? buffers.tiles[k] : plan.operands[k].data + at.offsets[k];
    if (k < plan.n_out)
      out[k] = first;
    else
      in[k - plan.n_out] = first;
  }
  int error = 0;
  for (int64_t row = 0; row < at.rows; ++row) {
    error |= job.kernel(out, in, at.columns, job.scalars);
    for (int k = 0; k < plan.n_out; ++k) out[k] = static_cast<char*>(out[k]) + steps[k];
    for (int k = plan.n_out; k < plan.n_operands(); ++k)
      in[k - plan.n_out] = static_cast<const char*>(in[k - plan.n_out]) + steps[k];
  }
  return error;
}

void run_rows(void* context, int64_t begin, int64_t end) {
  Job& job = *static_cast<Job*>(context);
  const Plan& plan = job.plan;
  const MoveTable& move = move_table();
  bool direct = true;
  for (int k = 0; k < plan.n_operands(); ++k)
    direct = direct && (job.access[k] == Access::kDirect || job.access[k] == Access::kConstant ||
                        (job.access[k] == Access::kBroadcast && job.is_scalar(k) &&
                         plan.operands[k].dtype == plan.operands[k].kernel_dtype));
  Buffers buffers;
  void* out[kMaxElementwiseOutputs];
  const void* in[kMaxElementwiseInputs];
  fill_constants(move, job, buffers, job.columns);
  int error = 0;
  for (int64_t unit = begin; unit < end; ++unit) {
    const Tile at = tile_at(job, unit);
    if (direct) {
      error |= run_direct_rows(job, at, buffers);
      continue;
    }
    for (int k = plan.n_out; k < plan.n_operands(); ++k)
      if (job.access[k] == Access::kBlock) load_block(move, job, k, at, buffers.tiles[k], buffers.raw);
    for (int64_t row = 0; row < at.rows; ++row) {
      for (int k = 0; k < plan.n_out; ++k) {
        const Operand& operand = plan.operands[k];
        out[k] = job.access[k] == Access::kDirect ? operand.data + at.offsets[k] + row * operand.strides[1]
                                                  : buffers.tiles[k];
      }
      for (int k = plan.n_out; k < plan.n_operands(); ++k) {
        const Operand& operand = plan.operands[k];
        in[k - plan.n_out] = job.access[k] == Access::kBlock
                                 ? buffers.tiles[k] + row * at.columns * operand.kernel_size
                                 : load_row(move, job, k, operand.data + at.offsets[k] + row * operand.strides[1],
                                            at.columns, buffers.tiles[k], buffers.raw);
      }
      error |= job.kernel(out, in, at.columns, job.scalars);
      for (int k = 0; k < plan.n_out; ++k) {
        const Operand& operand = plan.operands[k];
        store_row(move, job, k, operand.data + at.offsets[k] + row * operand.strides[1], at.columns, buffers.tiles[k],
                  buffers.raw);
      }
    }
  }
  if (error) job.error.fetch_or(error, std::memory_order_relaxed);
}

void copy_rows(void* context, int64_t begin, int64_t end) {
  Job& job = *static_cast<Job*>(context);
  const MoveTable& move = move_table();
  Buffers buffers;
  const Operand& target = job.plan.operands[0];
  const Operand& source = job.plan.operands[1];
  const bool direct = job.access[0] == Access::kDirect;
  const bool same = source.dtype == target.dtype;
  if (job.access[1] == Access::kConstant) fill_converted(move, source, source.data, buffers.tiles[1], job.columns);
  for (int64_t unit = begin; unit < end; ++unit) {
    const Tile at = tile_at(job, unit);
    const bool block = job.access[1] == Access::kBlock;
    if (block && direct && same) {
      move.transpose[source.size_log2](target.data + at.offsets[0], target.strides[1], source.data + at.offsets[1],
                                       source.strides[0], at.rows, at.columns);
      continue;
    }
    if (block)
      move.transpose[source.size_log2](buffers.raw, at.columns * source.size, source.data + at.offsets[1],
                                       source.strides[0], at.rows, at.columns);
    for (int64_t row = 0; row < at.rows; ++row) {
      char* const to = target.data + at.offsets[0] + row * target.strides[1];
      char* const place = direct ? to : buffers.tiles[0];
      const void* loaded = place;
      if (block) {
        move.convert[target.dtype][source.dtype](place, buffers.raw + row * at.columns * source.size, at.columns);
      } else {
        const bool kept = job.access[1] == Access::kConstant;
        loaded = load_row(move, job, 1, source.data + at.offsets[1] + row * source.strides[1], at.columns,
                          kept ? buffers.tiles[1] : place, buffers.raw);
      }
      if (!direct) {
        move.scatter[target.size_log2](to, target.strides[0], loaded, at.columns);
      } else if (loaded != to) {
        std::memcpy(to, loaded, static_cast<size_t>(at.columns * target.size));
      }
    }
  }
}

// ---- choosing the walk

// Of the sets of inputs named by the bits of `sets`, the largest that lies within `wanted`; 0 when there is none.
unsigned largest_set(unsigned sets, unsigned wanted) {
  unsigned best = 0;
  for (unsigned set = wanted; set != 0; set = (set - 1) & wanted)
    if ((sets >> set & 1u) && __builtin_popcount(set) > __builtin_popcount(best)) best = set;
  return best;
}

Access linear_access(const Plan& plan, const Operand& operand) {
  bool constant = true, contiguous = true;
  int64_t expected = operand.size;
  for (int d = 0; d < plan.ndim; ++d) {
    constant = constant && operand.strides[d] == 0;
    contiguous = contiguous && operand.strides[d] == expected;
    expected *= plan.sizes[d];
  }
  if (contiguous) return operand.dtype == operand.kernel_dtype ? Access::kDirect : Access::kConvert;
  return constant ? Access::kConstant : Access::kStrided;
}

Access row_access(const Plan& plan, const Operand& operand) {
  bool constant = true;
  for (int d = 0; d < plan.ndim; ++d) constant = constant && operand.strides[d] == 0;
  if (constant) return Access::kConstant;
  if (operand.strides[0] == operand.size)
    return operand.dtype == operand.kernel_dtype ? Access::kDirect : Access::kConvert;
  return operand.strides[0] == 0 ? Access::kBroadcast : Access::kStrided;
}

bool rows_in_place(const Plan& plan) {
  for (int k = 0; k < plan.n_operands(); ++k) {
    const Access access = row_access(plan, plan.operands[k]);
    if (access == Access::kConvert || access == Access::kStrided) return false;
  }
  return true;
}

// A dimension other than the innermost along which some input is contiguous, moved to place 1. Returns that operand or
// -1.
int find_block(Plan& plan) {
  for (int k = plan.n_out; k < plan.n_operands(); ++k) {
    const Operand& operand = plan.operands[k];
    if (operand.strides[0] == operand.size || operand.strides[0] == 0) continue;
    for (int d = 1; d < plan.ndim; ++d) {
      if (operand.strides[d] != operand.size || plan.sizes[d] < 2) continue;
      for (int e = d; e > 1; --e) {
        const int64_t size = plan.sizes[e];
        plan.sizes[e] = plan.sizes[e - 1];
        plan.sizes[e - 1] = size;
        for (int j = 0; j < plan.n_operands(); ++j) {
          int64_t* const strides = plan.operands[j].strides;
          const int64_t stride = strides[e];
          strides[e] = strides[e - 1];
          strides[e - 1] = stride;
        }
      }
      return k;
    }
  }
  return -1;
}

// The largest set of constant inputs that the kernel takes as single elements.
unsigned choose_scalars(const Job& job) {
  unsigned constant = 0;
  for (int k = job.plan.n_out; k < job.plan.n_operands(); ++k)
    if (job.access[k] == Access::kConstant || job.access[k] == Access::kBroadcast)
      constant |= 1u << (k - job.plan.n_out);
  return largest_set(job.scalar_sets, constant);
}

// Whether some operand passes through a tile, beyond a single element.
bool needs_tiles(const Job& job) {
  for (int k = 0; k < job.plan.n_operands(); ++k)
    if (job.access[k] != Access::kDirect && !job.is_scalar(k)) return true;
  return false;
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

void run_job(Job& job) {
  Plan& plan = job.plan;
  const bool copy = job.kernel == nullptr;
  int64_t widest = 1;
  for (int k = 0; k < plan.n_operands(); ++k) {
    const Operand& operand = plan.operands[k];
    widest = operand.size > widest ? operand.size : widest;
    widest = operand.kernel_size > widest ? operand.kernel_size : widest;
  }
  job.tile = kRunBytes / widest;

  int block = -1;
  bool by_rows = false;
  const int64_t short_row = rows_in_place(plan) ? kShortDirect : kShortRow;
  if (plan.ndim > 1 && plan.total > job.tile && (copy || plan.sizes[0] >= short_row)) {
    block = find_block(plan);
    by_rows = block >= 0 || plan.sizes[0] >= short_row;
  }
  if (!by_rows) {
    for (int k = 0; k < plan.n_operands(); ++k) job.access[k] = linear_access(plan, plan.operands[k]);
    job.scalars = choose_scalars(job);
    if (!needs_tiles(job)) job.tile = kBlock;
    // kBlock is a multiple of every tile size, so the blocks do not depend on what the operands look like.
    rl_parallel_for(plan.total, kBlock, copy ? copy_linear : run_linear, &job);
    return;
  }
  for (int k = 0; k < plan.n_operands(); ++k) job.access[k] = row_access(plan, plan.operands[k]);
  job.scalars = choose_scalars(job);
  if (block < 0 && !needs_tiles(job)) job.tile = kBlock;
  job.rows = 1;
  job.columns = plan.sizes[0] < job.tile ? plan.sizes[0] : job.tile;
  if (block < 0 && job.columns == plan.sizes[0]) {
    const int64_t rows = kTileElements / job.columns;
    job.rows = rows < 1 ? 1 : rows < plan.sizes[1] ? rows : plan.sizes[1];
  }
  if (block >= 0) {
    const Operand& operand = plan.operands[block];
    const int64_t tile = kTileBytes / widest;
    int64_t rows = kCacheLine / operand.size;
    if (copy && plan.sizes[0] < tile / rows) rows = tile / plan.sizes[0];
    job.rows = rows < plan.sizes[1] ? rows : plan.sizes[1];
    job.columns = tile / job.rows;
    if (job.columns > plan.sizes[0]) job.columns = plan.sizes[0];
    if (copy && job.columns < 1) job.columns = 1;
    for (int k = plan.n_out; k < plan.n_operands(); ++k) {
      const Operand& other = plan.operands[k];
      if (job.access[k] == Access::kStrided && other.strides[1] == other.size) job.access[k] = Access::kBlock;
    }
  }
  job.column_tiles = ceil_div(plan.sizes[0], job.columns);
  job.row_tiles = ceil_div(plan.sizes[1], job.rows);
  int64_t units = job.column_tiles * job.row_tiles;
  for (int d = 2; d < plan.ndim; ++d) units *= plan.sizes[d];
  const int64_t per_block = kBlock / (job.columns * job.rows);
  rl_parallel_for(units, per_block > 1 ? per_block : 1, copy ? copy_rows : run_rows, &job);
}

rl_status status_of(const char* name, int error) {
  if (error & kDivisionByZero) return fail(RL_RUNTIME_ERROR, "ZeroDivisionError");
  return error ? fail(RL_RUNTIME_ERROR, "%s: kernel failed with code %d", name, error) : RL_OK;
}

int kernel_dtype(OperandKind kind, int compute) {
  switch (kind) {
    case OperandKind::kBool:
      return RL_BOOL;
    case OperandKind::kReal:
      return real_dtype(compute);
    default:
      return compute;
  }
}

// ---- the fast path: everything contiguous and of the kernel's dtype, or a single element; small enough for one thread

bool same_layout(const rl_tensor& a, const rl_tensor& b) {
  if (a.ndim != b.ndim) return false;
  for (int d = 0; d < a.ndim; ++d)
    if (a.shape[d] != b.shape[d] || a.strides[d] != b.strides[d]) return false;
  return true;
}

// Number of elements, or -1 when the tensor is not contiguous.
int64_t contiguous_size(const rl_tensor& t) {
  int64_t expected = 1;
  for (int d = t.ndim - 1; d >= 0; --d) {
    if (t.shape[d] != 1 && t.strides[d] != expected) return -1;
    expected *= t.shape[d];
  }
  return expected;
}

bool is_single(const rl_tensor& t) {
  for (int d = 0; d < t.ndim; ++d)
    if (t.shape[d] != 1) return false;
  return true;
}

// Returns false, having done nothing, when the operands do not qualify.
bool run_small(const ElementwiseInfo& info, ElementwiseKernel kernel, unsigned scalar_sets, int compute,
               const rl_tensor* const* in, rl_tensor* const* out, int& error) {
  const rl_tensor& first = *out[0];
  const int64_t n = contiguous_size(first);
  if (n < 0 || n > kBlock) return false;
  void* outputs[kMaxElementwiseOutputs];
  const void* inputs[kMaxElementwiseInputs];
  for (int k = 0; k < info.n_out; ++k) {
    const rl_tensor& t = *out[k];
    if (t.dtype != kernel_dtype(info.out[k], compute) || (k > 0 && !same_layout(t, first))) return false;
    outputs[k] = t.data;
  }
  unsigned singles = 0;
  for (int k = 0; k < info.n_in; ++k) {
    const rl_tensor& t = *in[k];
    if (t.dtype == kernel_dtype(info.in[k], compute) && same_layout(t, first)) {
      inputs[k] = t.data;
      continue;
    }
    if (t.ndim > first.ndim || !is_valid_dtype(t.dtype) || !is_single(t)) return false;
    singles |= 1u << k;
  }
  if (n == 0) return true;
  if (singles == 0) [[likely]] {
    error = kernel(outputs, inputs, n, 0);
    return true;
  }
  alignas(64) char scratch[kSmallBytes];
  const unsigned scalars = largest_set(scalar_sets, singles);
  int64_t used = 0;
  for (int k = 0; k < info.n_in; ++k) {
    if (!(singles >> k & 1u)) continue;
    const int wanted = kernel_dtype(info.in[k], compute);
    const int64_t count = scalars >> k & 1u ? 1 : n;
    const int64_t bytes = count * dtype_size(wanted);
    if (bytes > kSmallBytes - used) return false;
    const MoveTable& move = move_table();
    alignas(16) char element[16];
    const rl_tensor& t = *in[k];
    const void* source = t.data;
    if (t.dtype != wanted) {
      void* const target = count == 1 ? scratch + used : element;
      move.convert[wanted][t.dtype](target, t.data, 1);
      source = target;
    }
    inputs[k] = source;
    if (count > 1) {
      move.fill[__builtin_ctzll(static_cast<unsigned long long>(dtype_size(wanted)))](scratch + used, source, n);
      inputs[k] = scratch + used;
    }
    used += (bytes + 63) & ~int64_t{63};
  }
  error = kernel(outputs, inputs, n, scalars);
  return true;
}

rl_status run_general(const ElementwiseInfo& info, ElementwiseKernel kernel, unsigned scalar_sets, int compute,
                      const rl_tensor* const* in, rl_tensor* const* out) {
  Job job;
  job.kernel = kernel;
  job.scalar_sets = scalar_sets;
  job.name = info.name;
  for (int k = 0; k < info.n_out; ++k)
    job.plan.operands[k].kernel_dtype = static_cast<uint8_t>(kernel_dtype(info.out[k], compute));
  for (int k = 0; k < info.n_in; ++k)
    job.plan.operands[info.n_out + k].kernel_dtype = static_cast<uint8_t>(kernel_dtype(info.in[k], compute));
  RL_TRY(make_plan(info.name, job.plan, info.n_out, out, info.n_in, in));
  if (job.plan.total == 0) return RL_OK;
  run_job(job);
  return status_of(info.name, job.error.load(std::memory_order_relaxed));
}

// The operation of one input that x^exponent is for a single real exponent, or -1.
int simpler_power(const rl_tensor& exponent, int compute) {
  if (!is_valid_dtype(exponent.dtype) || is_complex_dtype(exponent.dtype) || !is_single(exponent)) return -1;
  double value;
  move_table().convert[RL_FLOAT64][exponent.dtype](&value, exponent.data, 1);
  const int op = elementwise_power(value);
  return op >= 0 && elementwise_kernels[op][compute] ? op : -1;
}

rl_status copy(const char* name, const rl_tensor* src, rl_tensor* dst) {
  if (!is_valid_dtype(dst->dtype)) return fail(RL_TYPE_ERROR, "%s: unknown dtype %d", name, dst->dtype);
  if (src->dtype == dst->dtype && same_layout(*src, *dst)) {
    const int64_t n = contiguous_size(*dst);
    if (n >= 0 && n <= kBlock) {
      if (src->data != dst->data && n > 0)
        std::memcpy(dst->data, src->data, static_cast<size_t>(n * dtype_size(dst->dtype)));
      return RL_OK;
    }
  }
  Job job;
  job.kernel = nullptr;
  job.scalar_sets = 0;
  job.name = name;
  job.plan.operands[0].kernel_dtype = job.plan.operands[1].kernel_dtype = dst->dtype;
  RL_TRY(make_plan(name, job.plan, 1, &dst, 1, &src));
  if (job.plan.total > 0) run_job(job);
  return RL_OK;
}

}  // namespace
}  // namespace rl

rl_status rl_elementwise(int op, rl_dtype compute, int n_in, const rl_tensor* const* in, int n_out,
                         rl_tensor* const* out) {
  using namespace rl;
  if (op < 0 || op >= elementwise_op_count) [[unlikely]]
    return fail(RL_VALUE_ERROR, "rl_elementwise: no operation %d; expected 0 to %d", op, elementwise_op_count - 1);
  const int dtype = compute_dtype(compute);
  if (op == elementwise_pow && n_in == 2 && is_valid_dtype(dtype)) [[unlikely]] {
    const int simpler = simpler_power(*in[1], dtype);
    if (simpler >= 0) {
      op = simpler;
      n_in = 1;
    }
  }
  const ElementwiseInfo& info = elementwise_info[op];
  if (n_in != info.n_in || n_out != info.n_out) [[unlikely]]
    return fail(RL_VALUE_ERROR, "%s: wrong number of operands; expected %d inputs and %d outputs, got %d and %d",
                info.name, info.n_in, info.n_out, n_in, n_out);
  const ElementwiseKernel kernel = is_valid_dtype(dtype) ? elementwise_kernels[op][dtype] : nullptr;
  if (!kernel) [[unlikely]]
    return fail(RL_TYPE_ERROR, "%s: not implemented for %s", info.name, dtype_text(compute));
  const unsigned scalar_sets = elementwise_scalar_sets[op][dtype];
  int error = 0;
  if (run_small(info, kernel, scalar_sets, dtype, in, out, error)) return error ? status_of(info.name, error) : RL_OK;
  return run_general(info, kernel, scalar_sets, dtype, in, out);
}

rl_status rl_copy(const rl_tensor* src, rl_tensor* dst) { return rl::copy("copy_", src, dst); }

rl_status rl_fill(rl_tensor* dst, const rl_tensor* value) {
  for (int d = 0; d < value->ndim; ++d)
    if (value->shape[d] != 1)
      return rl::fail(RL_VALUE_ERROR, "fill_: the value is not a single element; expected shape [], got %s",
                      rl::shape_text(value));
  rl_tensor element = *value;
  element.ndim = 0;
  return rl::copy("fill_", &element, dst);
}

rl_dtype rl_elementwise_result_dtype(int op, rl_dtype compute, int index) {
  using namespace rl;
  if (op < 0 || op >= elementwise_op_count || index < 0 || index >= elementwise_info[op].n_out) return compute;
  return static_cast<rl_dtype>(kernel_dtype(elementwise_info[op].out[index], compute));
}
