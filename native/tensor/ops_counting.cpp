// Searching, counting and finding what is the same: shape rules over the kernels of rushlight/index.h.
#include "op.h"
#include "ops.h"
#include "rushlight/index.h"
#include "rushlight/sort.h"

namespace rl {

RL_OP(_repeated_positions) {
  Tensor* repeats = call.tensor(0);
  Tensor* out = call.result(0, RL_INT64, Dims{call.integer(1)});
  GilRelease gil(out->numel >= 65536);
  RL_KERNEL(out, rl_repeat_interleave(&repeats->desc, &out->desc));
}

}  // namespace rl
