// The geometry of a reduction and its driver: which dimensions are kept and which reduced, joined and sorted, cut into
// pieces whose bounds depend on shapes and strides alone, so that results do not depend on the number of threads.
#pragma once

#include "core/dtype.h"
#include "cpu/reduce_kernels.h"

namespace rl {

// Elements of one piece of work that another thread may take.
constexpr int64_t kReduceChunk = 32768;
constexpr int64_t kReduceTileBytes = 65536;

struct ReducePlan {
  const char* in;
  char* out[2];
  int64_t in_size;            // bytes of an input element
  int64_t out_size[2];        // bytes of an output element
  int kept, reduced;          // dimensions after joining; innermost last
  int64_t outputs, elements;  // products of the sizes
  int64_t kept_size[RL_MAX_DIMS], kept_in[RL_MAX_DIMS], kept_out[2][RL_MAX_DIMS];
  int64_t reduced_size[RL_MAX_DIMS], reduced_in[RL_MAX_DIMS];
};

// Fills the plan. Each output has the input's number of dimensions, with size 1 where reduced. `ordered` keeps the
// reduced dimensions in their order (indices count along them).
rl_status make_reduce_plan(const char* name, ReducePlan* plan, const rl_tensor* in, const rl_tensor* const* outs,
                           int out_count, bool ordered);

struct ReduceJob;

// States of `count` outputs (at most kReduceStrip) are complete. in and out point at the first output's data; steps are
// in elements.
using ReduceFinish = void (*)(const ReduceJob& job, double* state, int64_t pitch, int64_t count, const char* in,
                              char* const* out, int64_t in_step, const int64_t* out_step);

struct ReduceJob {
  const ReducePlan* plan;
  const ReduceKernel* kernel;
  ReduceLoad load;
  bool direct;  // the input's elements are tile elements
  // Where the elements are 16-bit floats that the kernel reads down columns as they are, its way to do so.
  decltype(ReduceKernel::columns) narrow;
  int64_t tile_size;  // bytes of a tile element
  double parameter;
  double identity[kReduceWords];  // state of nothing, as words
  bool indexed;                   // the second word is an index
  ReduceFinish finish;
  const void* context;  // of finish
};

void run_reduce(const ReduceJob& job);

// Calls visit(context, tile, n) for the reduced elements of one output, as tiles; for slow second looks.
void visit_reduced(const ReduceJob& job, const char* in, void (*visit)(void* context, const void* tile, int64_t n),
                   void* context);

}  // namespace rl
