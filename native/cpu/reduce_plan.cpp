#include "cpu/reduce_plan.h"

#include <new>

#include "core/error.h"
#include "core/parallel.h"

namespace rl {
namespace {

constexpr int64_t kShortRun = 24;         // reduced runs shorter than this are read down columns
constexpr int64_t kNarrow = 32;           // dense matrices with fewer columns are read as wider ones
constexpr int64_t kBatch = 64;            // outputs whose states are finished together
constexpr int64_t kParallelFrom = 65536;  // elements of input from which threads help

int64_t magnitude(int64_t value) { return value < 0 ? -value : value; }
int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t at_least(int64_t a, int64_t b) { return a > b ? a : b; }
int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

// Insertion sort by decreasing stride: the innermost dimension last. There are few dimensions.
template <class Swap>
void sort_dims(int count, const int64_t* strides, Swap swap) {
  for (int i = 1; i < count; ++i) {
    for (int j = i; j > 0 && magnitude(strides[j - 1]) < magnitude(strides[j]); --j) swap(j - 1, j);
  }
}

void exchange(int64_t* values, int a, int b) {
  const int64_t value = values[a];
  values[a] = values[b];
  values[b] = value;
}

// The reduced elements of one output, cut into pieces of one or more runs along the innermost reduced dimension.
struct Pieces {
  int64_t length;   // elements of a run in one piece
  int64_t runs;     // runs of one piece (whole runs when above 1)
  int64_t per_run;  // pieces of one run
  int64_t groups;   // groups of runs along the second innermost dimension
  int64_t total;
  int64_t per_chunk, chunks;
};

int64_t inner_size(const ReducePlan& p) { return p.reduced > 0 ? p.reduced_size[p.reduced - 1] : 1; }
int64_t inner_stride(const ReducePlan& p) { return p.reduced > 0 ? p.reduced_in[p.reduced - 1] : 1; }
int64_t second_size(const ReducePlan& p) { return p.reduced > 1 ? p.reduced_size[p.reduced - 2] : 1; }
int64_t second_stride(const ReducePlan& p) { return p.reduced > 1 ? p.reduced_in[p.reduced - 2] : 1; }

Pieces cut(const ReducePlan& p, int64_t length, int64_t runs, int64_t elements_per_unit) {
  Pieces c;
  c.length = at_most(length, inner_size(p));
  c.runs = at_least(1, at_most(runs, second_size(p)));
  if (p.elements == 0) return Pieces{};
  c.per_run = ceil_divide(inner_size(p), c.length);
  c.groups = ceil_divide(second_size(p), c.runs);
  int64_t outer = 1;
  for (int d = 0; d + 2 < p.reduced; ++d) outer *= p.reduced_size[d];
  c.total = c.per_run * c.groups * outer;
  c.per_chunk = at_least(1, kReduceChunk / at_least(1, c.length * c.runs * elements_per_unit));
  c.chunks = ceil_divide(c.total, c.per_chunk);
  return c;
}

struct Piece {
  int64_t offset;  // elements from the output's first element
  int64_t index;   // among the reduced elements, in order
  int64_t runs, length;
};

// Walks pieces in order, from any one.
class PieceWalk {
 public:
  PieceWalk(const ReducePlan& plan, const Pieces& pieces, int64_t number) : p_(plan), c_(pieces) {
    part_ = number % c_.per_run;
    number /= c_.per_run;
    group_ = number % c_.groups;
    number /= c_.groups;
    offset_ = index_ = 0;
    int64_t weight = inner_size(p_) * second_size(p_);
    for (int d = p_.reduced - 3; d >= 0; --d) {
      at_[d] = number % p_.reduced_size[d];
      number /= p_.reduced_size[d];
      offset_ += at_[d] * p_.reduced_in[d];
      index_ += at_[d] * weight;
      weight *= p_.reduced_size[d];
    }
  }

  Piece piece() const {
    const int64_t start = part_ * c_.length, first = group_ * c_.runs;
    return {offset_ + start * inner_stride(p_) + first * second_stride(p_), index_ + start + first * inner_size(p_),
            at_most(c_.runs, second_size(p_) - first), at_most(c_.length, inner_size(p_) - start)};
  }

  void next() {
    if (++part_ < c_.per_run) return;
    part_ = 0;
    if (++group_ < c_.groups) return;
    group_ = 0;
    index_ += inner_size(p_) * second_size(p_);
    for (int d = p_.reduced - 3; d >= 0; --d) {
      offset_ += p_.reduced_in[d];
      if (++at_[d] < p_.reduced_size[d]) return;
      offset_ -= at_[d] * p_.reduced_in[d];
      at_[d] = 0;
    }
  }

 private:
  const ReducePlan& p_;
  const Pieces& c_;
  int64_t part_, group_, offset_, index_;
  int64_t at_[RL_MAX_DIMS];
};

// Outputs taken together: up to `width` neighbours along the innermost kept dimension.
struct Group {
  const char* in;
  char* out[2];
  int64_t count;
};

struct Driver {
  const ReduceJob& job;
  const ReducePlan& plan;
  Pieces pieces;
  bool by_columns;
  bool through_tile;
  bool many_rows;  // runs that the kernel takes many at a time
  int64_t width, strips, groups;
  int64_t column_size, column_in, column_out[2];

  explicit Driver(const ReduceJob& j) : job(j), plan(*j.plan), pieces{} {
    const int inner = plan.kept - 1;
    column_size = plan.kept > 0 ? plan.kept_size[inner] : 1;
    column_in = plan.kept > 0 ? plan.kept_in[inner] : 1;
    for (int o = 0; o < 2; ++o) column_out[o] = plan.kept > 0 ? plan.kept_out[o][inner] : 1;
    const int64_t run = inner_size(plan), run_stride = inner_stride(plan);
    const int64_t tile_elements = kReduceTileBytes / job.tile_size;
    // Four-byte elements are turned around faster than they are read along short runs.
    const int64_t shortest = job.direct && job.tile_size == 4 ? kShortRun : 4;
    many_rows = job.kernel->rows != nullptr && plan.kept > 0 && plan.reduced == 1 && run_stride == 1 &&
                run >= shortest && run <= kReduceRow && run_stride < magnitude(column_in) && column_size >= 4;
    if (plan.kept == 0 || many_rows) {
      by_columns = false;
    } else if (plan.reduced == 0) {
      by_columns = true;
    } else if (magnitude(run_stride) < magnitude(column_in)) {
      by_columns = run < kShortRun && column_size >= 4;
    } else {
      by_columns = column_size >= 4 || (column_in == 1 && run_stride == column_size);
    }
    if (by_columns) {
      width = at_most(kReduceStrip, column_size);
      through_tile = !(job.direct || job.narrow != nullptr) || column_in != 1;
      const int64_t rows = through_tile ? at_least(1, tile_elements / 2 / width) : at_least(512, kReduceChunk / width);
      pieces = cut(plan, rows, 1, at_most(width, column_size));
    } else {
      width = at_least(1, at_most(at_most(kBatch, 2 * kReduceChunk / at_least(1, plan.elements)), column_size));
      through_tile = !job.direct || run_stride != 1 || (run < 512 && plan.reduced > 1);
      if (through_tile) {
        pieces = cut(plan, 4096, run < 4096 ? 4096 / at_least(1, run) : 1, 1);
      } else {
        pieces = cut(plan, kReduceChunk, 1, 1);
      }
    }
    strips = ceil_divide(column_size, width);
    groups = strips;
    for (int d = 0; d + 1 < plan.kept; ++d) groups *= plan.kept_size[d];
  }

  Group locate_group(int64_t number) const {
    Group g;
    const int64_t start = number % strips * width;
    int64_t rest = number / strips;
    int64_t in = start * column_in, out[2] = {start * column_out[0], start * column_out[1]};
    for (int d = plan.kept - 2; d >= 0; --d) {
      const int64_t at = rest % plan.kept_size[d];
      rest /= plan.kept_size[d];
      in += at * plan.kept_in[d];
      for (int o = 0; o < 2; ++o) out[o] += at * plan.kept_out[o][d];
    }
    g.count = at_most(width, column_size - start);
    g.in = plan.in + in * plan.in_size;
    for (int o = 0; o < 2; ++o) g.out[o] = plan.out[o] + out[o] * plan.out_size[o];
    return g;
  }

  // The state of one piece, for all columns of a group.
  void columns_piece(double* state, const Group& g, const Piece& piece) const {
    const char* data = g.in + piece.offset * plan.in_size;
    int64_t stride = inner_stride(plan);
    const bool narrow = job.narrow != nullptr && !through_tile;
    const auto columns = narrow ? job.narrow : job.kernel->columns;
    const int64_t element = narrow ? plan.in_size : job.tile_size;
    alignas(64) char tile[kReduceTileBytes];
    if (through_tile) {
      job.load(tile, data, piece.length, g.count, stride, column_in);
      data = tile;
      stride = g.count;
    }
    const int64_t factor = stride == g.count && g.count < kNarrow ? 64 / g.count : 1;
    if (factor == 1 || piece.length < 4 * factor) {
      columns(state, kReduceStrip, data, stride, piece.length, g.count, piece.index, 1, job.parameter);
      return;
    }
    // Several rows side by side are one wider row; their states are joined afterwards.
    const int64_t rows = piece.length / factor, rest = piece.length - rows * factor;
    double wide[kReduceWords * kReduceStrip];
    columns(wide, kReduceStrip, data, stride * factor, rows, g.count * factor, piece.index, factor, job.parameter);
    for (int64_t k = 0; k < factor; ++k) {
      double* part = wide + k * g.count;
      if (job.indexed) {
        for (int64_t j = 0; j < g.count; ++j) {
          const int64_t index = bit_cast<int64_t>(part[kReduceStrip + j]) + k;
          part[kReduceStrip + j] = bit_cast<double>(index);
        }
      }
      if (k == 0) {
        for (int w = 0; w < job.kernel->words; ++w)
          std::memcpy(state + w * kReduceStrip, part + w * kReduceStrip, g.count * 8);
      } else {
        job.kernel->merge(state, part, kReduceStrip, kReduceStrip, g.count, static_cast<double>(rows * k),
                          static_cast<double>(rows));
      }
    }
    if (rest > 0) {
      columns(wide, kReduceStrip, data + rows * factor * stride * element, stride, rest, g.count,
              piece.index + rows * factor, 1, job.parameter);
      job.kernel->merge(state, wide, kReduceStrip, kReduceStrip, g.count, static_cast<double>(rows * factor),
                        static_cast<double>(rest));
    }
  }

  void run_piece(double* state, const Group& g, const Piece& piece) const {
    alignas(64) char tile[kReduceTileBytes];
    if (many_rows) {
      if (!through_tile) {
        job.kernel->rows(state, kReduceStrip, g.in, column_in, g.count, piece.length, job.parameter);
        return;
      }
      const int64_t batch = kReduceTileBytes / 4 / job.tile_size / piece.length;
      for (int64_t j = 0; j < g.count; j += batch) {
        const int64_t rows = at_most(batch, g.count - j);
        job.load(tile, g.in + j * column_in * plan.in_size, rows, piece.length, column_in, 1);
        job.kernel->rows(state + j, kReduceStrip, tile, piece.length, rows, piece.length, job.parameter);
      }
      return;
    }
    for (int64_t j = 0; j < g.count; ++j) {
      const char* data = g.in + (j * column_in + piece.offset) * plan.in_size;
      if (through_tile) {
        job.load(tile, data, piece.runs, piece.length, second_stride(plan), inner_stride(plan));
        data = tile;
      }
      job.kernel->run(state + j, kReduceStrip, data, piece.runs * piece.length, piece.index, job.parameter);
    }
  }

  // The state of pieces [begin, end), joined in order.
  void chunk(double* state, const Group& g, int64_t begin, int64_t end, double* size) const {
    double elements = 0;
    PieceWalk walk(plan, pieces, begin);
    for (int64_t i = begin; i < end; ++i, walk.next()) {
      const Piece piece = walk.piece();
      double part[kReduceWords * kReduceStrip];
      double* into = i == begin ? state : part;
      if (by_columns)
        columns_piece(into, g, piece);
      else
        run_piece(into, g, piece);
      const double count = static_cast<double>(piece.runs * piece.length);
      if (i != begin) job.kernel->merge(state, part, kReduceStrip, kReduceStrip, g.count, elements, count);
      elements += count;
    }
    *size = elements;
  }

  void chunk_number(double* state, const Group& g, int64_t number, double* size) const {
    const int64_t begin = number * pieces.per_chunk;
    chunk(state, g, begin, at_most(begin + pieces.per_chunk, pieces.total), size);
  }

  void finish(double* state, int64_t pitch, const Group& g) const {
    job.finish(job, state, pitch, g.count, g.in, g.out, column_in, column_out);
  }

  void group(int64_t number) const {
    const Group g = locate_group(number);
    double state[kReduceWords * kReduceStrip];
    if (plan.elements == 0) {
      for (int w = 0; w < job.kernel->words; ++w) {
        for (int64_t j = 0; j < g.count; ++j) state[w * kReduceStrip + j] = job.identity[w];
      }
    } else {
      double size;
      chunk_number(state, g, 0, &size);
      for (int64_t c = 1; c < pieces.chunks; ++c) {
        double part[kReduceWords * kReduceStrip], part_size;
        chunk_number(part, g, c, &part_size);
        job.kernel->merge(state, part, kReduceStrip, kReduceStrip, g.count, size, part_size);
        size += part_size;
      }
    }
    finish(state, kReduceStrip, g);
  }

  // Few outputs of many elements: chunks go to threads, and are joined in order afterwards.
  bool by_chunks() const {
    const int64_t state_words = width * job.kernel->words;
    const int64_t tasks = groups * pieces.chunks;
    double* const states = static_cast<double*>(rl_allocate(static_cast<size_t>(tasks * (state_words + 1)) * 8));
    if (states == nullptr) return false;  // the caller takes the other way, with the same bits
    double* const sizes = states + tasks * state_words;
    const int words = job.kernel->words;
    parallel_for(tasks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const Group g = locate_group(task / pieces.chunks);
        double state[kReduceWords * kReduceStrip];
        chunk_number(state, g, task % pieces.chunks, sizes + task);
        for (int w = 0; w < words; ++w) {
          std::memcpy(states + task * state_words + w * width, state + w * kReduceStrip,
                      static_cast<size_t>(g.count) * 8);
        }
      }
    });
    for (int64_t n = 0; n < groups; ++n) {
      const Group g = locate_group(n);
      double* const state = states + n * pieces.chunks * state_words;
      double size = sizes[n * pieces.chunks];
      for (int64_t c = 1; c < pieces.chunks; ++c) {
        const double part_size = sizes[n * pieces.chunks + c];
        job.kernel->merge(state, state + c * state_words, width, width, g.count, size, part_size);
        size += part_size;
      }
      finish(state, width, g);
    }
    rl_deallocate(states);
    return true;
  }

  void run() const {
    const int64_t per_group = at_least(1, plan.elements) * width;
    const int64_t total = at_least(1, plan.elements) * plan.outputs;
    if (total < kParallelFrom) {
      for (int64_t n = 0; n < groups; ++n) group(n);
      return;
    }
    if (groups < 16 && pieces.chunks > 1 && plan.elements > 0 && by_chunks()) return;
    parallel_for(groups, at_least(1, kParallelFrom / 2 / per_group), [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) group(n);
    });
  }
};

}  // namespace

rl_status make_reduce_plan(const char* name, ReducePlan* plan, const rl_tensor* in, const rl_tensor* const* outs,
                           int out_count, bool ordered) {
  ReducePlan& p = *plan;
  p.kept = p.reduced = 0;
  p.outputs = p.elements = 1;
  p.in_size = dtype_size(in->dtype);
  p.in = static_cast<const char*>(in->data);
  for (int o = 0; o < 2; ++o) {
    const rl_tensor* out = outs[o < out_count ? o : 0];
    p.out[o] = static_cast<char*>(out->data);
    p.out_size[o] = dtype_size(out->dtype);
    if (out->ndim != in->ndim) {
      return fail(RL_VALUE_ERROR, "%s: the output has the wrong number of dimensions; expected %d, got %d", name,
                  in->ndim, out->ndim);
    }
  }
  for (int d = 0; d < in->ndim; ++d) {
    const int64_t size = in->shape[d], out_size = outs[0]->shape[d];
    if ((out_size != size && out_size != 1) || (out_count > 1 && outs[1]->shape[d] != out_size)) {
      return fail(RL_VALUE_ERROR, "%s: an output has the wrong shape; expected the sizes of the input %s or 1, got %s",
                  name, shape_text(in), shape_text(outs[out_count > 1 && outs[1]->shape[d] != out_size ? 1 : 0]));
    }
    if (size == 1) continue;
    int64_t stride = in->strides[d];
    if (out_size == size) {
      int64_t out_strides[2] = {outs[0]->strides[d], out_count > 1 ? outs[1]->strides[d] : 0};
      p.outputs *= size;
      if (stride < 0) {  // walk backwards through everything
        p.in += (size - 1) * stride * p.in_size;
        stride = -stride;
        for (int o = 0; o < out_count; ++o) {
          p.out[o] += (size - 1) * out_strides[o] * p.out_size[o];
          out_strides[o] = -out_strides[o];
        }
      }
      p.kept_size[p.kept] = size;
      p.kept_in[p.kept] = stride;
      p.kept_out[0][p.kept] = out_strides[0];
      p.kept_out[1][p.kept] = out_strides[1];
      ++p.kept;
    } else {
      p.elements *= size;
      if (stride < 0 && !ordered) {
        p.in += (size - 1) * stride * p.in_size;
        stride = -stride;
      }
      p.reduced_size[p.reduced] = size;
      p.reduced_in[p.reduced] = stride;
      ++p.reduced;
    }
  }
  if (p.kept > 1) {
    sort_dims(p.kept, p.kept_in, [&](int a, int b) {
      exchange(p.kept_size, a, b);
      exchange(p.kept_in, a, b);
      exchange(p.kept_out[0], a, b);
      exchange(p.kept_out[1], a, b);
    });
    int last = 0;
    for (int d = 1; d < p.kept; ++d) {
      const bool joins = p.kept_in[last] == p.kept_size[d] * p.kept_in[d] &&
                         p.kept_out[0][last] == p.kept_size[d] * p.kept_out[0][d] &&
                         p.kept_out[1][last] == p.kept_size[d] * p.kept_out[1][d];
      const int64_t size = joins ? p.kept_size[last] * p.kept_size[d] : p.kept_size[d];
      if (!joins) ++last;
      p.kept_size[last] = size;
      p.kept_in[last] = p.kept_in[d];
      p.kept_out[0][last] = p.kept_out[0][d];
      p.kept_out[1][last] = p.kept_out[1][d];
    }
    p.kept = last + 1;
  }
  if (p.reduced > 1) {
    if (!ordered) {
      sort_dims(p.reduced, p.reduced_in, [&](int a, int b) {
        exchange(p.reduced_size, a, b);
        exchange(p.reduced_in, a, b);
      });
    }
    int last = 0;
    for (int d = 1; d < p.reduced; ++d) {
      const bool joins = p.reduced_in[last] == p.reduced_size[d] * p.reduced_in[d];
      const int64_t size = joins ? p.reduced_size[last] * p.reduced_size[d] : p.reduced_size[d];
      if (!joins) ++last;
      p.reduced_size[last] = size;
      p.reduced_in[last] = p.reduced_in[d];
    }
    p.reduced = last + 1;
  }
  return RL_OK;
}

void run_reduce(const ReduceJob& job) {
  if (job.plan->outputs == 0) return;
  Driver(job).run();
}

void visit_reduced(const ReduceJob& job, const char* in, void (*visit)(void* context, const void* tile, int64_t n),
                   void* context) {
  const ReducePlan& plan = *job.plan;
  if (plan.elements == 0) return;
  const int64_t run = inner_size(plan);
  const Pieces pieces = cut(plan, 4096, run < 4096 ? 4096 / at_least(1, run) : 1, 1);
  alignas(64) char tile[kReduceTileBytes];
  PieceWalk walk(plan, pieces, 0);
  for (int64_t i = 0; i < pieces.total; ++i, walk.next()) {
    const Piece piece = walk.piece();
    job.load(tile, in + piece.offset * plan.in_size, piece.runs, piece.length, second_stride(plan), inner_stride(plan));
    visit(context, tile, piece.runs * piece.length);
  }
}

}  // namespace rl
