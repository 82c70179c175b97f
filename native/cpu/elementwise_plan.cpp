#include "cpu/elementwise_plan.h"

namespace rl {
namespace {

// True when `outer` steps over exactly the memory that `inner` covers, for every operand.
bool mergeable(const Plan& plan, int inner, int outer) {
  for (int k = 0; k < plan.n_operands(); ++k) {
    const int64_t* const strides = plan.operands[k].strides;
    if (strides[outer] != strides[inner] * plan.sizes[inner]) return false;
  }
  return true;
}

// Innermost first by the outputs' strides, then the inputs': memory is written, then read, in order.
bool comes_before(const Plan& plan, int a, int b) {
  for (int k = 0; k < plan.n_operands(); ++k) {
    const int64_t left = plan.operands[k].strides[a], right = plan.operands[k].strides[b];
    const int64_t left_step = left < 0 ? -left : left, right_step = right < 0 ? -right : right;
    if (left_step != right_step) return left_step < right_step;
    if (k + 1 == plan.n_out && left_step != 0) break;
  }
  return false;
}

void swap_dimensions(Plan& plan, int a, int b) {
  const auto swap = [a, b](int64_t* values) {
    const int64_t kept = values[a];
    values[a] = values[b];
    values[b] = kept;
  };
  swap(plan.sizes);
  for (int k = 0; k < plan.n_operands(); ++k) swap(plan.operands[k].strides);
}

void bind(Operand& operand, const rl_tensor& tensor) {
  operand.data = static_cast<char*>(tensor.data);
  operand.dtype = tensor.dtype;
  operand.size = dtype_size(tensor.dtype);
  operand.size_log2 = static_cast<uint8_t>(__builtin_ctzll(static_cast<unsigned long long>(operand.size)));
  operand.kernel_size = dtype_size(operand.kernel_dtype);
}

}  // namespace

rl_status make_plan(const char* name, Plan& plan, int n_out, rl_tensor* const* out, int n_in,
                    const rl_tensor* const* in) {
  const rl_tensor& shape = *out[0];
  plan.n_out = n_out;
  plan.n_in = n_in;
  for (int k = 0; k < n_out + n_in; ++k) {
    const rl_tensor& tensor = k < n_out ? *out[k] : *in[k - n_out];
    if (!is_valid_dtype(tensor.dtype)) return fail(RL_TYPE_ERROR, "%s: unknown dtype %d", name, tensor.dtype);
    if (tensor.ndim < 0 || tensor.ndim > RL_MAX_DIMS)
      return fail(RL_VALUE_ERROR, "%s: wrong number of dimensions; expected 0 to %d, got %d", name, RL_MAX_DIMS,
                  tensor.ndim);
    bool fits = k < n_out ? tensor.ndim == shape.ndim : tensor.ndim <= shape.ndim;
    for (int d = 1; fits && d <= tensor.ndim; ++d) {
      const int64_t have = tensor.shape[tensor.ndim - d], want = shape.shape[shape.ndim - d];
      fits = have == want || (have == 1 && k >= n_out);
    }
    if (!fits)
      return fail(RL_VALUE_ERROR, "%s: %s %d does not fit the output; expected shape %s, got %s", name,
                  k < n_out ? "output" : "input", k < n_out ? k : k - n_out, shape_text(&shape), shape_text(&tensor));
    bind(plan.operands[k], tensor);
  }

  plan.total = 1;
  plan.ndim = 0;
  for (int d = 1; d <= shape.ndim; ++d) {
    const int64_t size = shape.shape[shape.ndim - d];
    plan.total *= size;
    if (size == 1) continue;
    for (int k = 0; k < n_out + n_in; ++k) {
      const rl_tensor& tensor = k < n_out ? *out[k] : *in[k - n_out];
      const int at = tensor.ndim - d;
      const bool broadcast = at < 0 || tensor.shape[at] == 1;
      plan.operands[k].strides[plan.ndim] = broadcast ? 0 : tensor.strides[at] * plan.operands[k].size;
    }
    plan.sizes[plan.ndim++] = size;
  }
  if (plan.total == 0) return RL_OK;

  for (int d = 0; d < plan.ndim; ++d) {
    if (plan.operands[0].strides[d] >= 0) continue;
    // Walk the output forwards: everybody starts at the other end.
    for (int k = 0; k < n_out + n_in; ++k) {
      Operand& operand = plan.operands[k];
      operand.data += operand.strides[d] * (plan.sizes[d] - 1);
      operand.strides[d] = -operand.strides[d];
    }
  }
  for (int i = 1; i < plan.ndim; ++i)
    for (int j = i; j > 0 && comes_before(plan, j, j - 1); --j) swap_dimensions(plan, j, j - 1);

  int kept = 0;
  for (int d = 1; d < plan.ndim; ++d) {
    if (mergeable(plan, kept, d)) {
      plan.sizes[kept] *= plan.sizes[d];
    } else if (++kept != d) {
      plan.sizes[kept] = plan.sizes[d];
      for (int k = 0; k < n_out + n_in; ++k) plan.operands[k].strides[kept] = plan.operands[k].strides[d];
    }
  }
  if (plan.ndim > 0) plan.ndim = kept + 1;
  if (plan.ndim == 0) {  // a single element: one dimension of size 1, contiguous for everybody
    plan.ndim = 1;
    plan.sizes[0] = 1;
    for (int k = 0; k < n_out + n_in; ++k) plan.operands[k].strides[0] = plan.operands[k].size;
  }
  return RL_OK;
}

}  // namespace rl
