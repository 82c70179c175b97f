// Pooling: checks, and the division of the work by planes.
#include <algorithm>
#include <initializer_list>

#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "cpu/matmul_strided.h"
#include "cpu/pool_kernels.h"
#include "rushlight/pool.h"

namespace rl {
namespace {

rl_status check_ndim(const char* name, const rl_tensor* in, const rl_tensor* out, const rl_tensor* indices) {
  bool good = in->ndim >= 3 && in->ndim <= 5 && out->ndim == in->ndim && (!indices || indices->ndim == in->ndim);
  for (int d = 0; good && d < 2; ++d) good = out->shape[d] == in->shape[d];
  for (int d = 0; good && indices && d < in->ndim; ++d) good = indices->shape[d] == out->shape[d];
  if (good) return RL_OK;
  return fail(
      RL_VALUE_ERROR,
      "%s: expected [N, C, spatial...] of 1 to 3 spatial dimensions, and indices like the pooled tensor; got %s, "
      "%s and %s",
      name, shape_text(in), shape_text(out), indices ? shape_text(indices) : "no indices");
}

template <class Function>
rl_status check_dtypes(const char* name, const rl_tensor* in, const rl_tensor* out, const rl_tensor* indices,
                       Function* const (&functions)[RL_DTYPE_COUNT], Function*& function) {
  if (in->dtype != out->dtype)
    return fail(RL_TYPE_ERROR, "%s: expected one dtype, got %s and %s", name, dtype_text(in->dtype),
                dtype_text(out->dtype));
  if (indices && indices->dtype != RL_INT64)
    return fail(RL_TYPE_ERROR, "%s: expected indices of dtype int64, got %s", name, dtype_text(indices->dtype));
  function = is_valid_dtype(in->dtype) ? functions[in->dtype] : nullptr;
  if (!function) return fail(RL_TYPE_ERROR, "%s: not for dtype %s", name, dtype_text(in->dtype));
  return RL_OK;
}

rl_status check_overlap(const char* name, const rl_tensor* out, std::initializer_list<const rl_tensor*> operands) {
  for (const rl_tensor* operand : operands) {
    if (operand && overlap(operand, out))
      return fail(RL_VALUE_ERROR, "%s: the output shares memory with an operand; expected memory of its own", name);
  }
  return RL_OK;
}

// Sizes and strides; `in` is the tensor before pooling (or its gradient).
PoolShape pool_shape(const rl_tensor* in, const rl_tensor* out, const rl_tensor* indices) {
  PoolShape shape{};
  for (int d = 0; d < 3; ++d) {
    shape.in[d] = shape.out[d] = shape.kernel[d] = shape.stride[d] = shape.dilation[d] = 1;
  }
  for (int i = 2; i < in->ndim; ++i) {
    const int d = 3 - in->ndim + i;
    shape.in[d] = in->shape[i];
    shape.out[d] = out->shape[i];
    shape.in_stride[d] = in->strides[i];
    shape.out_stride[d] = out->strides[i];
    if (indices) shape.index_stride[d] = indices->strides[i];
  }
  return shape;
}

// Every output's window must begin inside the padded input, and a max pooling window must hold an element.
rl_status set_windows(const char* name, const rl_tensor* in, const rl_tensor* out, const rl_pool_params* params,
                      bool average, PoolShape& shape) {
  for (int i = 0; i < in->ndim - 2; ++i) {
    const int d = 3 - (in->ndim - 2) + i;
    const int64_t kernel = params->kernel[i], stride = params->stride[i], padding = params->padding[i];
    const int64_t dilation = average ? 1 : params->dilation[i];
    constexpr int64_t kMost = int64_t{1} << 40;  // so that no position overflows
    if (kernel < 1 || stride < 1 || padding < 0 || dilation < 1 || kernel > kMost || stride > kMost ||
        padding > kMost || dilation > kMost)
      return fail(RL_VALUE_ERROR,
                  "%s: expected a kernel, stride and dilation of at least 1 and a padding of at least 0, got %lld, "
                  "%lld, %lld and %lld in "
                  "spatial dimension %d",
                  name, static_cast<long long>(kernel), static_cast<long long>(stride),
                  static_cast<long long>(dilation), static_cast<long long>(padding), i);
    shape.kernel[d] = kernel;
    shape.stride[d] = stride;
    shape.padding[d] = padding;
    shape.dilation[d] = dilation;
    if (shape.out[d] == 0) continue;
    int64_t last;
    bool good = !__builtin_mul_overflow(shape.out[d] - 1, stride, &last) && last - padding < shape.in[d] + padding;
    if (!average) {
      good = good && last - padding < shape.in[d];
      // Windows that begin in the padding: the first element not before the input must be in it.
      for (int64_t y = 0; good && y < shape.out[d] && y * stride < padding; ++y) {
        const int64_t before = padding - y * stride;
        const int64_t steps = (before + dilation - 1) / dilation;
        good = steps < kernel && steps * dilation - before < shape.in[d];
      }
    }
    if (!good)
      return fail(RL_VALUE_ERROR,
                  "%s: windows lie outside the input; got an output of shape %s for an input of shape %s (kernel %lld, "
                  "stride %lld, padding %lld in spatial dimension %d)",
                  name, shape_text(out), shape_text(in), static_cast<long long>(kernel), static_cast<long long>(stride),
                  static_cast<long long>(padding), i);
  }
  shape.count_include_pad = params->count_include_pad != 0;
  shape.divisor = average ? params->divisor_override : 0;
  return RL_OK;
}

char* plane_of(const rl_tensor* t, int64_t n, int64_t c) {
  return static_cast<char*>(t->data) + (n * t->strides[0] + c * t->strides[1]) * dtype_size(t->dtype);
}

// Runs body(n, c) for every plane; `work` is the cost of one, in element visits.
template <class Body>
rl_status for_planes(const rl_tensor* t, int64_t work, const Body& body) {
  const int64_t channels = t->shape[1];
  return parallel_for(t->shape[0] * channels, std::max<int64_t>(1, 30'000 / (work + 1)),
                      [&](int64_t begin, int64_t end) -> rl_status {
                        for (int64_t i = begin; i < end; ++i) RL_TRY(body(i / channels, i % channels));
                        return RL_OK;
                      });
}

int64_t visits(const PoolShape& s) {
  return s.out[0] * s.out[1] * s.out[2] * s.kernel[0] * s.kernel[1] * s.kernel[2] + s.in_elements();
}

bool empty(const rl_tensor* t) {
  for (int d = 0; d < t->ndim; ++d) {
    if (t->shape[d] == 0) return true;
  }
  return false;
}

int64_t compute_bytes(int dtype) { return std::max<int64_t>(dtype_size(dtype), 4); }

// Adaptive windows need an element for each output.
rl_status check_adaptive(const char* name, const rl_tensor* in, const rl_tensor* out) {
  for (int d = 2; d < in->ndim; ++d) {
    if (in->shape[d] == 0 && !empty(out))
      return fail(RL_VALUE_ERROR, "%s: expected spatial sizes of at least 1, got %s", name, shape_text(in));
  }
  return RL_OK;
}

// The planes' gradients by `function(shape, grad_out, grad_input, plane)`.
rl_status backward(const PoolShape& shape, const rl_tensor* grad_out, rl_tensor* grad_input,
                   void (*function)(const PoolShape&, const void*, void*, void*)) {
  if (empty(grad_input)) return RL_OK;
  return for_planes(grad_input, visits(shape), [&](int64_t n, int64_t c) -> rl_status {
    Scratch<char> plane(shape.in_elements() * compute_bytes(grad_input->dtype));
    if (!plane) return RL_MEMORY_ERROR;
    function(shape, plane_of(grad_out, n, c), plane_of(grad_input, n, c), plane.get());
    return RL_OK;
  });
}

}  // namespace
}  // namespace rl

rl_status rl_max_pool(const rl_tensor* input, const rl_pool_params* params, rl_tensor* out, rl_tensor* indices) {
  using namespace rl;
  static constexpr const char* name = "max_pool";
  void (*function)(const PoolShape&, const void*, void*, int64_t*);
  RL_TRY(check_ndim(name, input, out, indices));
  RL_TRY(check_dtypes(name, input, out, indices, pool_table().max_pool, function));
  PoolShape shape = pool_shape(input, out, indices);
  RL_TRY(set_windows(name, input, out, params, false, shape));
  if (empty(out)) return RL_OK;
  RL_TRY(check_overlap(name, out, {input, indices}));
  if (indices) RL_TRY(check_overlap(name, indices, {input}));
  return for_planes(out, visits(shape), [&](int64_t n, int64_t c) {
    function(shape, plane_of(input, n, c), plane_of(out, n, c),
             indices ? reinterpret_cast<int64_t*>(plane_of(indices, n, c)) : nullptr);
    return RL_OK;
  });
}

rl_status rl_adaptive_max_pool(const rl_tensor* input, rl_tensor* out, rl_tensor* indices) {
  using namespace rl;
  static constexpr const char* name = "adaptive_max_pool";
  void (*function)(const PoolShape&, const void*, void*, int64_t*);
  RL_TRY(check_ndim(name, input, out, indices));
  RL_TRY(check_dtypes(name, input, out, indices, pool_table().adaptive_max_pool, function));
  RL_TRY(check_adaptive(name, input, out));
  if (empty(out)) return RL_OK;
  RL_TRY(check_overlap(name, out, {input, indices}));
  if (indices) RL_TRY(check_overlap(name, indices, {input}));
  const PoolShape shape = pool_shape(input, out, indices);
  return for_planes(out, visits(shape), [&](int64_t n, int64_t c) {
    function(shape, plane_of(input, n, c), plane_of(out, n, c),
             indices ? reinterpret_cast<int64_t*>(plane_of(indices, n, c)) : nullptr);
    return RL_OK;
  });
}

rl_status rl_max_pool_backward(const rl_tensor* grad_out, const rl_tensor* indices, rl_tensor* grad_input) {
  using namespace rl;
  static constexpr const char* name = "max_pool_backward";
  bool (*function)(const PoolShape&, const void*, const int64_t*, void*, void*, int64_t*);
  RL_TRY(check_ndim(name, grad_input, grad_out, indices));
  RL_TRY(check_dtypes(name, grad_input, grad_out, indices, pool_table().max_pool_backward, function));
  if (empty(grad_input)) return RL_OK;
  RL_TRY(check_overlap(name, grad_input, {grad_out, indices}));
  const PoolShape shape = pool_shape(grad_input, grad_out, indices);
  return for_planes(grad_input, visits(shape), [&](int64_t n, int64_t c) -> rl_status {
    Scratch<char> plane(shape.in_elements() * compute_bytes(grad_input->dtype));
    if (!plane) return RL_MEMORY_ERROR;
    int64_t bad;
    if (function(shape, plane_of(grad_out, n, c), reinterpret_cast<const int64_t*>(plane_of(indices, n, c)),
                 plane_of(grad_input, n, c), plane.get(), &bad))
      return fail(RL_INDEX_ERROR, "%s: index %lld is out of range; expected 0 to %lld for the shape %s", name,
                  static_cast<long long>(bad), static_cast<long long>(shape.in_elements() - 1), shape_text(grad_input));
    return RL_OK;
  });
}

rl_status rl_avg_pool(const rl_tensor* input, const rl_pool_params* params, rl_tensor* out) {
  using namespace rl;
  static constexpr const char* name = "avg_pool";
  void (*function)(const PoolShape&, const void*, void*);
  RL_TRY(check_ndim(name, input, out, nullptr));
  RL_TRY(check_dtypes(name, input, out, nullptr, pool_table().avg_pool, function));
  PoolShape shape = pool_shape(input, out, nullptr);
  RL_TRY(set_windows(name, input, out, params, true, shape));
  if (empty(out)) return RL_OK;
  RL_TRY(check_overlap(name, out, {input}));
  return for_planes(out, visits(shape), [&](int64_t n, int64_t c) {
    function(shape, plane_of(input, n, c), plane_of(out, n, c));
    return RL_OK;
  });
}

rl_status rl_avg_pool_backward(const rl_tensor* grad_out, const rl_pool_params* params, rl_tensor* grad_input) {
  using namespace rl;
  static constexpr const char* name = "avg_pool_backward";
  void (*function)(const PoolShape&, const void*, void*, void*);
  RL_TRY(check_ndim(name, grad_input, grad_out, nullptr));
  RL_TRY(check_dtypes(name, grad_input, grad_out, nullptr, pool_table().avg_pool_backward, function));
  PoolShape shape = pool_shape(grad_input, grad_out, nullptr);
  RL_TRY(set_windows(name, grad_input, grad_out, params, true, shape));
  RL_TRY(check_overlap(name, grad_input, {grad_out}));
  return backward(shape, grad_out, grad_input, function);
}

rl_status rl_adaptive_avg_pool(const rl_tensor* input, rl_tensor* out) {
  using namespace rl;
  static constexpr const char* name = "adaptive_avg_pool";
  void (*function)(const PoolShape&, const void*, void*);
  RL_TRY(check_ndim(name, input, out, nullptr));
  RL_TRY(check_dtypes(name, input, out, nullptr, pool_table().adaptive_avg_pool, function));
  RL_TRY(check_adaptive(name, input, out));
  if (empty(out)) return RL_OK;
  RL_TRY(check_overlap(name, out, {input}));
  const PoolShape shape = pool_shape(input, out, nullptr);
  return for_planes(out, visits(shape), [&](int64_t n, int64_t c) {
    function(shape, plane_of(input, n, c), plane_of(out, n, c));
    return RL_OK;
  });
}

rl_status rl_adaptive_avg_pool_backward(const rl_tensor* grad_out, rl_tensor* grad_input) {
  using namespace rl;
  static constexpr const char* name = "adaptive_avg_pool_backward";
  void (*function)(const PoolShape&, const void*, void*, void*);
  RL_TRY(check_ndim(name, grad_input, grad_out, nullptr));
  RL_TRY(check_dtypes(name, grad_input, grad_out, nullptr, pool_table().adaptive_avg_pool_backward, function));
  RL_TRY(check_overlap(name, grad_input, {grad_out}));
  return backward(pool_shape(grad_input, grad_out, nullptr), grad_out, grad_input, function);
}
