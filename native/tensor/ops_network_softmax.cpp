// Softmax and its logarithm.
#include "network.h"
#include "ops.h"
#include "rushlight/softmax.h"

namespace rl {

namespace {

int dim_of(Call& call, const Value& dim, int ndim) {
  if (RL_LIKELY(!dim.is_none())) return wrap_dim(dim.as_int(), ndim);
  if (PyErr_WarnFormat(PyExc_UserWarning, static_cast<Py_ssize_t>(call.integer(2)) - 2,
                       "%s: choosing dim by itself is deprecated; pass dim=X", call.op.title()) < 0)
    throw PythonError();
  return ndim == 0 || ndim == 1 || ndim == 3 ? 0 : 1;
}

// self, dim, [_stacklevel], dtype
void softmax(Call& call, rl_status (*kernel)(const rl_tensor*, int, const rl_tensor*)) {
  Tensor* t = call.tensor(0);
  const Value& wanted = call[call.op.argument_count - 1];
  DType dtype = wanted.is_none() ? t->dtype() : wanted.dtype;
  int dim = dim_of(call, call[1], t->ndim());
  RL_CHECK(is_float(dtype), NotImplemented, "\"%s\" not implemented for '%s'", call.op.title(), dtype_title(dtype));
  TensorRef real;
  if (is_complex(t->dtype())) {  // only the real part is looked at
    real = cast(t, dtype);
    t = real.get();
  }
  Tensor* out = call.result(0, dtype, Dims(t->ndim(), t->shape()));
  if (out->is_meta()) return;
  GilRelease gil(t->numel >= kGilWork);
  check(kernel(&t->desc, dim, &out->desc));
}

// grad, result, dim, dtype
void backward(Call& call, rl_status (*kernel)(const rl_tensor*, const rl_tensor*, int, const rl_tensor*)) {
  Tensor *grad = call.tensor(0), *result = call.tensor(1);
  int n = result->ndim();
  int dim = call[2].is_none() ? (n == 0 || n == 1 || n == 3 ? 0 : 1) : wrap_dim(call.integer(2), n);
  Tensor* out = call.result(0, call[3].dtype, Dims(n, result->shape()));
  if (out->is_meta()) return;
  GilRelease gil(result->numel >= kGilWork);
  if (is_float(out->dtype())) {
    check(kernel(&grad->desc, &result->desc, dim, &out->desc));
    return;
  }
  TensorRef wide = empty(result->dtype(), n, result->shape());
  check(kernel(&grad->desc, &result->desc, dim, &wide->desc));
  check(rl_copy(&wide->desc, &out->desc));
}

}  // namespace

RL_OP(softmax) { softmax(call, rl_softmax); }
RL_OP(log_softmax) { softmax(call, rl_log_softmax); }
RL_OP(_softmax_backward) { backward(call, rl_softmax_backward); }
RL_OP(_log_softmax_backward) { backward(call, rl_log_softmax_backward); }

}  // namespace rl
