// The kernels of every elementwise operation by compute dtype, for the machine's instruction set, and operations by
// name.
#include <cstring>
#include <initializer_list>

#include "core/dtype.h"
#include "core/error.h"
#include "cpu/elementwise.h"
#include "elementwise_ids.h"
#include "elementwise_ops.h"
#include "rushlight/elementwise.h"

namespace rl {

RL_ISA_DECLARE(ElementwiseGroup, elementwise_integer)
RL_ISA_DECLARE(ElementwiseGroup, elementwise_arithmetic)
RL_ISA_DECLARE(ElementwiseGroup, elementwise_transcendental)
const ElementwiseGroup& elementwise_complex();

#include "elementwise_table.inc"

const int elementwise_op_count = RL_EW_COUNT;
ElementwiseKernel elementwise_kernels[RL_EW_COUNT][RL_DTYPE_COUNT];
uint8_t elementwise_scalar_sets[RL_EW_COUNT][RL_DTYPE_COUNT];

namespace {

void place_kernels(const ElementwiseGroup& group, const Place* places, int count) {
  for (int i = 0; i < count; ++i) {
    elementwise_kernels[places[i].op][places[i].dtype] = group.kernels[i];
    elementwise_scalar_sets[places[i].op][places[i].dtype] = places[i].scalars;
  }
}

// After the choice of instruction set (priority 101), before the constructors of those who use the library.
__attribute__((constructor(102))) void place_all_kernels() {
  place_kernels(elementwise_integer(), kPlaces_integer, kCount_integer);
  place_kernels(elementwise_arithmetic(), kPlaces_arithmetic, kCount_arithmetic);
  place_kernels(elementwise_transcendental(), kPlaces_transcendental, kCount_transcendental);
  place_kernels(elementwise_complex(), kPlaces_complex, kCount_complex);
}

// ---- result types as PyTorch has them, for callers that have no tensor layer: bool < integers < floats < complex

int category(int dtype) { return dtype == RL_BOOL ? 0 : dtype <= RL_INT64 ? 1 : dtype <= RL_FLOAT64 ? 2 : 3; }

int promote(int a, int b) {
  if (a < 0 || a == b) return b;
  if (is_complex_dtype(a) || is_complex_dtype(b)) return complex_dtype(promote(real_dtype(a), real_dtype(b)));
  const int category_a = category(a), category_b = category(b);
  if (category_a != category_b) {
    return category_a > category_b ? a : b;
  }
  if ((a == RL_UINT8 && b == RL_INT8) || (a == RL_INT8 && b == RL_UINT8)) return RL_INT16;
  if ((a == RL_FLOAT16 && b == RL_BFLOAT16) || (a == RL_BFLOAT16 && b == RL_FLOAT16)) return RL_FLOAT32;
  return a > b ? a : b;
}

rl_status by_promotion(int op, bool floats, std::initializer_list<const rl_tensor*> in,
                       std::initializer_list<rl_tensor*> out) {
  int with_dims = -1, zero_dim = -1;
  for (const rl_tensor* t : in) {
    if (!is_valid_dtype(t->dtype))
      return fail(RL_TYPE_ERROR, "%s: unknown dtype %d", elementwise_info[op].name, t->dtype);
    int& rank = t->ndim > 0 ? with_dims : zero_dim;
    rank = promote(rank, t->dtype);
  }
  // A 0-dim tensor decides only when its category is higher.
  int dtype = with_dims < 0 ? zero_dim : with_dims;
  if (with_dims >= 0 && zero_dim >= 0 && category(zero_dim) > category(with_dims)) dtype = promote(with_dims, zero_dim);
  if (floats && dtype <= RL_INT64) dtype = RL_FLOAT32;
  return rl_elementwise(op, static_cast<rl_dtype>(dtype), static_cast<int>(in.size()), in.begin(),
                        static_cast<int>(out.size()), out.begin());
}

}  // namespace

const int elementwise_pow = RL_EW_pow;

int elementwise_power(double exponent) {
  if (exponent == 2.0) return RL_EW_square;
  if (exponent == 3.0) return RL_EW__cube;
  if (exponent == 0.5) return RL_EW_sqrt;
  if (exponent == -0.5) return RL_EW_rsqrt;
  if (exponent == -1.0) return RL_EW_reciprocal;
  if (exponent == -2.0) return RL_EW__reciprocal_square;
  return -1;
}

}  // namespace rl

int rl_elementwise_find(const char* name) {
  for (int op = 0; op < RL_EW_COUNT; ++op)
    if (std::strcmp(rl::elementwise_info[op].name, name) == 0) return op;
  return -1;
}

const char* rl_elementwise_name(int op) {
  return op >= 0 && op < RL_EW_COUNT ? rl::elementwise_info[op].name : nullptr;
}

int rl_elementwise_supports(int op, rl_dtype compute) {
  const int dtype = rl::compute_dtype(compute);
  return op >= 0 && op < RL_EW_COUNT && rl::is_valid_dtype(dtype) && rl::elementwise_kernels[op][dtype] != nullptr;
}

#include "elementwise_ops.inc"
