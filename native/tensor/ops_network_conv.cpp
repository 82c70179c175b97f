// Convolutions and transposed convolutions over 1 to 3 spatial dimensions, with and without a batch dimension.
#include "network.h"
#include "ops.h"
#include "rushlight/conv.h"

namespace rl {

// In ops_matrix.cpp: finds OpenBLAS, which the convolutions multiply with.
void prepare_blas();

namespace {

using ll = long long;

struct Geometry {
  int n;  // spatial dimensions
  rl_conv_params params;
  Geometry(const char* op, int spatial, const Value& stride, const Value& padding, const Value& dilation,
           int64_t groups)
      : n(spatial), params{} {
    Spatial s = spatial_of(stride, n, op, "stride"), p = spatial_of(padding, n, op, "padding"),
            d = spatial_of(dilation, n, op, "dilation");
    for (int i = 0; i < n; i++) {
      RL_CHECK(p[i] >= 0, Runtime, "%s: negative padding is not supported, got padding=%s", op,
               shape_text(n, p.v).c_str());
      RL_CHECK(s[i] > 0, Runtime, "%s: non-positive stride is not supported, got stride=%s", op,
               shape_text(n, s.v).c_str());
      RL_CHECK(d[i] > 0, Runtime, "%s: dilation should be greater than zero, got dilation=%s", op,
               shape_text(n, d.v).c_str());
      params.stride[i] = s[i];
      params.padding[i] = p[i];
      params.dilation[i] = d[i];
    }
    RL_CHECK(groups > 0, Runtime, "%s: non-positive groups is not supported, got groups=%lld", op,
             static_cast<ll>(groups));
    params.groups = groups;
  }
};

int spatial_dims(const char* op) {
  char last = op[std::strlen(op) - 2];  // conv2d
  return last - '0';
}

void check_operands(const char* op, int n, const Tensor* x, const Tensor* w, const Tensor* bias, int64_t outputs) {
  RL_CHECK(w->ndim() == n + 2, Runtime, "%s: expected a weight of %d dimensions, got shape %s", op, n + 2,
           shape_text(w).c_str());
  RL_CHECK(x->ndim() == n + 1 || x->ndim() == n + 2, Runtime,
           "%s: expected %dD (unbatched) or %dD (batched) input, but got input of size: %s", op, n + 1, n + 2,
           shape_text(x).c_str());
  RL_CHECK(x->dtype() == w->dtype(), Runtime, "%s: Input type (%s) and weight type (%s) should be the same", op,
           dtype_name(x->dtype()), dtype_name(w->dtype()));
  RL_CHECK(!bias || bias->dtype() == x->dtype(), Runtime, "%s: Input type (%s) and bias type (%s) should be the same",
           op, dtype_name(x->dtype()), bias ? dtype_name(bias->dtype()) : "");
  RL_CHECK(x->dtype() != RL_BOOL, Runtime, "\"%s\" not implemented for 'Bool'", op);
  RL_CHECK(!bias || (bias->ndim() == 1 && bias->size(0) == outputs), Runtime,
           "%s: given weight of size %s, expected bias to be 1-dimensional with %lld elements, but got bias of size %s "
           "instead",
           op, shape_text(w).c_str(), static_cast<ll>(outputs), bias ? shape_text(bias).c_str() : "");
}

enum class Form { Forward, Transposed };

// Both directions are one linear map; `wide` is its input side (N, C, ...), `narrow` its output side (N, O, ...).
void run_map(Form form, const Tensor* in, const Tensor* w, const Tensor* bias, const Geometry& g, Tensor* out) {
  if (out->is_meta() || (out->numel == 0)) return;
  Batched from(in, g.n + 2), to(out, g.n + 2);
  prepare_blas();
  GilRelease gil(in->numel + out->numel >= 4096);
  if (form == Form::Forward)
    check(rl_conv(&from, &w->desc, bias ? &bias->desc : nullptr, &g.params, &to));
  else
    check(rl_conv_grad_input(&from, &w->desc, bias ? &bias->desc : nullptr, &g.params, &to));
}

}  // namespace

// input, weight, bias, stride, padding, dilation, groups
RL_OP(conv2d) {
  const char* op = call.op.title();
  int n = spatial_dims(op);
  Tensor *x = call.tensor(0), *w = call.tensor(1), *bias = call.tensor_or_null(2);
  check_operands(op, n, x, w, bias, w->ndim() ? w->size(0) : 0);
  Geometry g(op, n, call[3], call[4], call[5], call.integer(6));
  int64_t groups = g.params.groups, channels = x->size(x->ndim() - n - 1);
  RL_CHECK(
      w->size(0) >= groups, Runtime,
      "%s: Given groups=%lld, expected weight to be at least %lld at dimension 0, but got weight of size %s instead",
      op, static_cast<ll>(groups), static_cast<ll>(groups), shape_text(w).c_str());
  RL_CHECK(w->size(0) % groups == 0, Runtime,
           "%s: Given groups=%lld, expected weight to be divisible by %lld at dimension 0, but got weight of size %s "
           "instead",
           op, static_cast<ll>(groups), static_cast<ll>(groups), shape_text(w).c_str());
  RL_CHECK(
      channels == w->size(1) * groups, Runtime,
      "%s: Given groups=%lld, weight of size %s, expected input%s to have %lld channels, but got %lld channels instead",
      op, static_cast<ll>(groups), shape_text(w).c_str(), shape_text(x).c_str(), static_cast<ll>(w->size(1) * groups),
      static_cast<ll>(channels));
  Dims shape(x->ndim() - n, x->shape());
  shape[shape.n - 1] = w->size(0);
  for (int i = 0; i < n; i++) {
    int64_t size = x->size(x->ndim() - n + i), k = w->size(i + 2), reach = g.params.dilation[i] * (k - 1) + 1;
    int64_t padded = size + 2 * g.params.padding[i];
    RL_CHECK(k > 0, Runtime, "%s: expected a kernel without zero sizes, got weight of size %s", op,
             shape_text(w).c_str());
    RL_CHECK(padded >= reach, Runtime,
             "%s: Calculated padded input size per channel is too small at spatial dimension %d: it is %lld, and the "
             "kernel reaches over %lld. Kernel size "
             "can't be greater than actual input size; the input has shape %s, the weight %s",
             op, i, static_cast<ll>(padded), static_cast<ll>(reach), shape_text(x).c_str(), shape_text(w).c_str());
    shape.push((padded - reach) / g.params.stride[i] + 1);
  }
  Tensor* out = call.result(0, x->dtype(), shape);
  run_map(Form::Forward, x, w, bias, g, out);
}
RL_OP(conv1d) { op_conv2d(call); }
RL_OP(conv3d) { op_conv2d(call); }

// input, weight, bias, stride, padding, output_padding, groups, dilation
RL_OP(conv_transpose2d) {
  const char* op = call.op.title();
  int n = spatial_dims(op);
  Tensor *x = call.tensor(0), *w = call.tensor(1), *bias = call.tensor_or_null(2);
  Geometry g(op, n, call[3], call[4], call[7], call.integer(6));
  Spatial extra = spatial_of(call[5], n, op, "output_padding");
  int64_t groups = g.params.groups;
  check_operands(op, n, x, w, bias, w->ndim() > 1 ? w->size(1) * groups : 0);
  int64_t channels = x->size(x->ndim() - n - 1);
  RL_CHECK(
      w->size(0) >= groups, Runtime,
      "%s: Given groups=%lld, expected weight to be at least %lld at dimension 0, but got weight of size %s instead",
      op, static_cast<ll>(groups), static_cast<ll>(groups), shape_text(w).c_str());
  RL_CHECK(w->size(0) % groups == 0, Runtime,
           "%s: Given groups=%lld, expected weight to be divisible by %lld at dimension 0, but got weight of size %s "
           "instead",
           op, static_cast<ll>(groups), static_cast<ll>(groups), shape_text(w).c_str());
  RL_CHECK(channels == w->size(0), Runtime,
           "%s: Given transposed=1, weight of size %s, expected input%s to have %lld channels, but got %lld channels "
           "instead",
           op, shape_text(w).c_str(), shape_text(x).c_str(), static_cast<ll>(w->size(0)), static_cast<ll>(channels));
  Dims shape(x->ndim() - n, x->shape());
  shape[shape.n - 1] = w->size(1) * groups;
  for (int i = 0; i < n; i++) {
    RL_CHECK(extra[i] >= 0, Runtime, "%s: negative output_padding is not supported, got output_padding=%s", op,
             shape_text(n, extra.v).c_str());
    RL_CHECK(extra[i] < std::max(g.params.stride[i], g.params.dilation[i]), Runtime,
             "%s: output padding must be smaller than either stride or dilation, but got output_padding=%s, stride=%s, "
             "dilation=%s",
             op, shape_text(n, extra.v).c_str(), shape_text(n, g.params.stride).c_str(),
             shape_text(n, g.params.dilation).c_str());
    int64_t size = x->size(x->ndim() - n + i);
    int64_t result = (size - 1) * g.params.stride[i] - 2 * g.params.padding[i] +
                     g.params.dilation[i] * (w->size(i + 2) - 1) + extra[i] + 1;
    RL_CHECK(result > 0 || x->numel == 0, Runtime,
             "%s: Given input size %s and kernel size %s, the calculated output size at spatial dimension %d is %lld. "
             "Output size is too small",
             op, shape_text(x).c_str(), shape_text(n, w->shape() + 2).c_str(), i, static_cast<ll>(result));
    shape.push(std::max<int64_t>(result, 0));
  }
  Tensor* out = call.result(0, x->dtype(), shape);
  run_map(Form::Transposed, x, w, bias, g, out);
}
RL_OP(conv_transpose1d) { op_conv_transpose2d(call); }
RL_OP(conv_transpose3d) { op_conv_transpose2d(call); }

// ---------------------------------------------------------------- for derivatives

// input, weight, size, stride, padding, dilation, groups: the convolution with an output of this size
RL_OP(_conv_map) {
  Tensor *x = call.tensor(0), *w = call.tensor(1);
  Geometry g("_conv_map", w->ndim() - 2, call[3], call[4], call[5], call.integer(6));
  Tensor* out = call.result(0, x->dtype(), call[2].dims());
  run_map(Form::Forward, x, w, nullptr, g, out);
}

// grad, weight, size, stride, padding, dilation, groups
RL_OP(_conv_grad_input) {
  Tensor *grad = call.tensor(0), *w = call.tensor(1);
  Geometry g("_conv_grad_input", w->ndim() - 2, call[3], call[4], call[5], call.integer(6));
  Tensor* out = call.result(0, grad->dtype(), call[2].dims());
  run_map(Form::Transposed, grad, w, nullptr, g, out);
}

// grad, input, size, stride, padding, dilation, groups
RL_OP(_conv_grad_weight) {
  Tensor *grad = call.tensor(0), *x = call.tensor(1);
  Dims size = call[2].dims();
  Geometry g("_conv_grad_weight", size.n - 2, call[3], call[4], call[5], call.integer(6));
  Tensor* out = call.result(0, grad->dtype(), size);
  if (out->is_meta() || out->numel == 0) return;
  Batched from(grad, size.n), in(x, size.n);
  prepare_blas();
  GilRelease gil(grad->numel + x->numel >= 4096);
  check(rl_conv_grad_weight(&from, &in, &g.params, &out->desc));
}

// grad, spatial: sums over everything but the channels
RL_OP(_conv_grad_bias) {
  Tensor* grad = call.tensor(0);
  int n = static_cast<int>(call.integer(1));
  Tensor* out = call.result(0, grad->dtype(), Dims{grad->size(grad->ndim() - n - 1)});
  if (out->is_meta() || out->numel == 0) return;
  Batched from(grad, n + 2);
  GilRelease gil(grad->numel >= kGilWork);
  check(rl_conv_grad_bias(&from, &out->desc));
}

}  // namespace rl
