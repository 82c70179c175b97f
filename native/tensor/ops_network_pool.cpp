// Pooling over 1 to 3 spatial dimensions, with and without a batch dimension.
#include "../autograd/autograd.h"
#include "../python/python.h"
#include "network.h"
#include "ops.h"
#include "rushlight/pool.h"

namespace rl {

namespace {

using ll = long long;

// The spatial dimensions in a name like "avg_pool2d" or "max_pool2d_with_indices".
int spatial_dims(const char* op) { return *(std::strstr(op, "pool") + 4) - '0'; }

struct Windows {
  int n;
  rl_pool_params params;
  Dims shape;  // of the output
};

bool not_given(const Value& v) { return v.is_none() || (v.tag == Tag::IntList && v.size == 0); }

void check_input(const char* op, const Tensor* t, int n) {
  bool fits = t->ndim() == n + 1 || t->ndim() == n + 2;
  // Only the batch may be empty.
  for (int i = t->ndim() == n + 2 ? 1 : 0; fits && i < t->ndim(); i++) fits = t->size(i) != 0;
  RL_CHECK(fits, Runtime,
           "%s: Expected %dD or %dD (batch mode) tensor with optional 0 dim batch size for input, but got: %s", op,
           n + 1, n + 2, shape_text(t).c_str());
}

int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

Windows windows(const char* op, const Tensor* t, const Value& kernel, const Value& stride, const Value& padding,
                const Value* dilation, bool ceil_mode) {
  Windows w{};
  int n = w.n = spatial_dims(op);
  Spatial k = spatial_of(kernel, n, op, "kernel_size"), s = not_given(stride) ? k : spatial_of(stride, n, op, "stride");
  Spatial p = spatial_of(padding, n, op, "padding"), d;
  if (dilation)
    d = spatial_of(*dilation, n, op, "dilation");
  else
    for (int i = 0; i < n; i++) d[i] = 1;
  for (int i = 0; i < n; i++) {
    RL_CHECK(k[i] > 0, Runtime, "%s: kernel size should be greater than zero, but got kernel_size=%s", op,
             shape_text(n, k.v).c_str());
    RL_CHECK(s[i] > 0, Runtime, "%s: stride should be greater than zero, but got stride=%s", op,
             shape_text(n, s.v).c_str());
    RL_CHECK(d[i] > 0, Runtime, "%s: dilation should be greater than zero, but got dilation=%s", op,
             shape_text(n, d.v).c_str());
    RL_CHECK(p[i] >= 0, Runtime, "%s: pad must be non-negative, but got pad: %lld", op, static_cast<ll>(p[i]));
    RL_CHECK(
        p[i] <= (d[i] * (k[i] - 1) + 1) / 2, Runtime,
        "%s: pad should be at most half of effective kernel size, but got pad=%lld, kernel_size=%lld and dilation=%lld",
        op, static_cast<ll>(p[i]), static_cast<ll>(k[i]), static_cast<ll>(d[i]));
  }
  check_input(op, t, n);
  w.shape = Dims(t->ndim() - n, t->shape());
  for (int i = 0; i < n; i++) {
    int64_t size = t->size(t->ndim() - n + i);
    int64_t room = size + 2 * p[i] - d[i] * (k[i] - 1) - 1;
    int64_t out = floor_divide(room + (ceil_mode ? s[i] - 1 : 0), s[i]) + 1;
    // The last window starts inside the input or its left padding.
    if (ceil_mode && (out - 1) * s[i] >= size + p[i]) out--;
    RL_CHECK(out >= 1, Runtime,
             "%s: Given input size %s. Calculated output size at spatial dimension %d: %lld. Output size is too small",
             op, shape_text(t).c_str(), i, static_cast<ll>(out));
    w.shape.push(out);
    w.params.kernel[i] = k[i];
    w.params.stride[i] = s[i];
    w.params.padding[i] = p[i];
    w.params.dilation[i] = d[i];
  }
  return w;
}

void max_dtype(const char* op, const Tensor* t) {
  RL_CHECK(t->dtype() != RL_BOOL && !is_complex(t->dtype()), NotImplemented, "\"%s\" not implemented for '%s'", op,
           dtype_title(t->dtype()));
}

void max_pool(Call& call, const Windows& w, bool with_indices) {
  Tensor* t = call.tensor(0);
  Tensor* out = call.result(0, t->dtype(), w.shape);
  Tensor* indices = with_indices ? call.result(1, RL_INT64, w.shape) : nullptr;
  if (out->is_meta() || out->numel == 0) return;
  Batched in(t, w.n + 2), to(out, w.n + 2), at(with_indices ? indices : out, w.n + 2);
  GilRelease gil(t->numel >= kGilWork);
  check(rl_max_pool(&in, &w.params, &to, with_indices ? &at : nullptr));
}

const Op& indexed(int n) {
  return n == 1 ? ops::max_pool1d_with_indices : n == 2 ? ops::max_pool2d_with_indices : ops::max_pool3d_with_indices;
}
const Op& unindexed(int n) { return n == 1 ? ops::_max_pool1d : n == 2 ? ops::_max_pool2d : ops::_max_pool3d; }

}  // namespace

// self, kernel_size, stride, padding, dilation, ceil_mode
RL_OP(max_pool_with_indices) {
  Tensor* t = call.tensor(0);
  max_dtype(call.op.title(), t);
  max_pool(call, windows(call.op.title(), t, call[1], call[2], call[3], &call[4], call.flag(5)), true);
}
RL_OP(_max_pool) {
  Tensor* t = call.tensor(0);
  const char* op = call.op.title();
  max_dtype(op, t);
  max_pool(call, windows(op, t, call[1], call[2], call[3], &call[4], call.flag(5)), false);
}
// The same, and return_indices for the functional: indices are computed where the backward or the caller wants them.
RL_OP(max_pool) {
  int n = spatial_dims(call.op.name);
  bool return_indices = call.op.argument_count > 6 && call.flag(6);
  Tensor* t = call.tensor(0);
  Value results[kMaxResults];
  bool with_indices = return_indices || t->is_wrapped() || (thread_state.grad_mode && needs_grad(t));
  run_op(with_indices ? indexed(n) : unindexed(n), call.args, results);
  if (return_indices) {
    std::vector<TensorRef> both;
    both.push_back(TensorRef::own(results[0].tensor));
    both.push_back(TensorRef::own(results[1].tensor));
    call.set_list(0, std::move(both));
    return;
  }
  if (with_indices) release(results[1].tensor);
  call.set(0, TensorRef::own(results[0].tensor));
}

// grad, indices, size, spatial
RL_OP(_max_pool_backward) {
  Tensor *grad = call.tensor(0), *indices = call.tensor(1);
  int n = static_cast<int>(call.integer(3));
  Tensor* out = call.result(0, grad->dtype(), call[2].dims());
  if (out->is_meta() || out->numel == 0) return;
  Batched from(grad, n + 2), at(indices, n + 2), to(out, n + 2);
  GilRelease gil(out->numel >= kGilWork);
  check(rl_max_pool_backward(&from, &at, &to));
}

// ---------------------------------------------------------------- averages

namespace {

void average_dtype(const char* op, const Tensor* t) {
  RL_CHECK(is_float(t->dtype()) || t->dtype() == RL_INT64, NotImplemented, "\"%s\" not implemented for '%s'", op,
           dtype_title(t->dtype()));
}

void run_average(Tensor* in, const rl_pool_params& params, Tensor* out, int n) {
  if (out->is_meta() || out->numel == 0) return;
  Batched from(in, n + 2), to(out, n + 2);
  GilRelease gil(in->numel >= kGilWork);
  check(rl_avg_pool(&from, &params, &to));
}

rl_pool_params given_windows(Call& call, int at,
                             int n) {  // kernel_size, stride, padding, count_include_pad, divisor_override
  rl_pool_params params{};
  Spatial k = spatial_of(call[at], n, "avg_pool", "kernel_size"),
          s = not_given(call[at + 1]) ? k : spatial_of(call[at + 1], n, "avg_pool", "stride");
  Spatial p = spatial_of(call[at + 2], n, "avg_pool", "padding");
  for (int i = 0; i < n; i++) {
    params.kernel[i] = k[i];
    params.stride[i] = s[i];
    params.padding[i] = p[i];
    params.dilation[i] = 1;
  }
  params.count_include_pad = call.flag(at + 3);
  params.divisor_override = call.integer_or(at + 4, 0);
  return params;
}

}  // namespace

// self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
RL_OP(avg_pool) {
  Tensor* t = call.tensor(0);
  const char* op = call.op.title();
  Windows w = windows(op, t, call[1], call[2], call[3], nullptr, call.flag(4));
  average_dtype(op, t);
  w.params.count_include_pad = call.flag(5);
  if (call.op.argument_count > 6 && !call[6].is_none()) {
    RL_CHECK(call.integer(6) != 0, Runtime, "%s: divisor must be not zero", op);
    w.params.divisor_override = call.integer(6);
  }
  Tensor* out = call.result(0, t->dtype(), w.shape);
  run_average(t, w.params, out, w.n);
}
// self, size, spatial, kernel_size, stride, padding, count_include_pad, divisor_override
RL_OP(_avg_pool_map) {
  Tensor* t = call.tensor(0);
  int n = static_cast<int>(call.integer(2));
  rl_pool_params params = given_windows(call, 3, n);
  Tensor* out = call.result(0, t->dtype(), call[1].dims());
  run_average(t, params, out, n);
}
// the same with grad for self, and the size of the input
RL_OP(_avg_pool_backward) {
  Tensor* grad = call.tensor(0);
  int n = static_cast<int>(call.integer(2));
  rl_pool_params params = given_windows(call, 3, n);
  Tensor* out = call.result(0, grad->dtype(), call[1].dims());
  if (out->is_meta() || out->numel == 0) return;
  Batched from(grad, n + 2), to(out, n + 2);
  GilRelease gil(out->numel >= kGilWork);
  check(rl_avg_pool_backward(&from, &params, &to));
}

// ---------------------------------------------------------------- adaptive

namespace {

// The output's shape from output_size: a number or a list whose entries may be None (keep the input's size).
Dims adaptive_shape(const char* op, const Tensor* t, const Value& v, int n) {
  Spatial size;
  bool keep[kMaxSpatial] = {false, false, false};
  if (v.tag == Tag::Object) {
    PyObject* o = v.object;
    bool list = PyTuple_Check(o) || PyList_Check(o);
    Py_ssize_t count = list ? PySequence_Fast_GET_SIZE(o) : n;
    RL_CHECK(!list || t->ndim() > count, Value, "%s: Input dimension should be at least %lld, got shape %s", op,
             static_cast<ll>(count) + 1, shape_text(t).c_str());
    RL_CHECK(count == n || count == 1, Runtime, "%s: output_size must have %d elements, got %lld", op, n,
             static_cast<ll>(count));
    for (int i = 0; i < n; i++) {
      PyObject* item = list ? PySequence_Fast_GET_ITEM(o, count == 1 ? 0 : i) : o;
      if (item == Py_None)
        keep[i] = true;
      else
        RL_CHECK(int_from(item, size[i]), Type,
                 "%s: output_size must be a number or a tuple of numbers and None, got %s", op, Py_TYPE(item)->tp_name);
    }
  } else if (v.is_none()) {
    for (bool& k : keep) k = true;
  } else {
    size = spatial_of(v, n, op, "output_size");
  }
  RL_CHECK(t->ndim() == n + 1 || t->ndim() == n + 2, Runtime, "%s: Expected %dD or %dD tensor, but got %s", op, n + 1,
           n + 2, shape_text(t).c_str());
  for (int i = t->ndim() == n + 2 ? 1 : 0; i < t->ndim(); i++)
    RL_CHECK(t->size(i) > 0, Runtime,
             "%s: Expected input to have non-zero size for non-batch dimensions, but input has sizes %s with dimension "
             "%d being empty",
             op, shape_text(t).c_str(), i);
  Dims shape(t->ndim() - n, t->shape());
  for (int i = 0; i < n; i++) {
    int64_t s = keep[i] ? t->size(t->ndim() - n + i) : size[i];
    RL_CHECK(s >= 0, Runtime, "%s: elements of output_size must be greater than or equal to 0, got %lld", op,
             static_cast<ll>(s));
    shape.push(s);
  }
  return shape;
}

}  // namespace

// self, output_size
RL_OP(adaptive_avg_pool) {
  Tensor* t = call.tensor(0);
  const char* op = call.op.title();
  int n = spatial_dims(op);
  Dims shape = adaptive_shape(op, t, call[1], n);
  RL_CHECK(is_float(t->dtype()), NotImplemented, "\"%s\" not implemented for '%s'", op, dtype_title(t->dtype()));
  Tensor* out = call.result(0, t->dtype(), shape);
  if (out->is_meta() || out->numel == 0) return;
  Batched from(t, n + 2), to(out, n + 2);
  GilRelease gil(t->numel >= kGilWork);
  check(rl_adaptive_avg_pool(&from, &to));
}
// self, size, spatial
RL_OP(_adaptive_avg_pool_map) {
  Tensor* t = call.tensor(0);
  int n = static_cast<int>(call.integer(2));
  Tensor* out = call.result(0, t->dtype(), call[1].dims());
  if (out->is_meta() || out->numel == 0) return;
  Batched from(t, n + 2), to(out, n + 2);
  GilRelease gil(t->numel >= kGilWork);
  check(rl_adaptive_avg_pool(&from, &to));
}
// grad, size, spatial
RL_OP(_adaptive_avg_pool_backward) {
  Tensor* grad = call.tensor(0);
  int n = static_cast<int>(call.integer(2));
  Tensor* out = call.result(0, grad->dtype(), call[1].dims());
  if (out->is_meta() || out->numel == 0) return;
  if (grad->numel == 0) return fill_value(out, Value::of(0));
  Batched from(grad, n + 2), to(out, n + 2);
  GilRelease gil(out->numel >= kGilWork);
  check(rl_adaptive_avg_pool_backward(&from, &to));
}
// self, output_size
RL_OP(adaptive_max_pool) {
  Tensor* t = call.tensor(0);
  const char* op = call.op.title();
  int n = spatial_dims(op);
  Dims shape = adaptive_shape(op, t, call[1], n);
  RL_CHECK(is_float(t->dtype()), NotImplemented, "\"%s\" not implemented for '%s'", op, dtype_title(t->dtype()));
  Tensor* out = call.result(0, t->dtype(), shape);
  Tensor* indices = call.result(1, RL_INT64, shape);
  if (out->is_meta() || out->numel == 0) return;
  Batched from(t, n + 2), to(out, n + 2), at(indices, n + 2);
  GilRelease gil(t->numel >= kGilWork);
  check(rl_adaptive_max_pool(&from, &to, &at));
}
// self, output_size, return_indices
RL_OP(_nn_adaptive_max_pool) {
  const char* op = call.op.title();
  int n = spatial_dims(op);
  Tensor* t = call.tensor(0);
  Dims shape = adaptive_shape(op, t, call[1], n);
  Value args[] = {Value::of(t), Value::of_ints(shape.v + shape.n - n, n)}, results[kMaxResults];
  run_op(n == 1   ? ops::adaptive_max_pool1d
         : n == 2 ? ops::adaptive_max_pool2d
                  : ops::adaptive_max_pool3d,
         args, results);
  std::vector<TensorRef> both;
  both.push_back(TensorRef::own(results[0].tensor));
  both.push_back(TensorRef::own(results[1].tensor));
  if (call.flag(2))
    call.set_list(0, std::move(both));
  else
    call.set(0, std::move(both[0]));
}

}  // namespace rl
