// Fourier transforms: the linear maps that rushlight.fft is made of.
#include "op.h"
#include "ops.h"
#include "rushlight/fft.h"

namespace rl {

namespace {

constexpr int64_t kGilWork = 4096;

void check_dtype(const Call& call, const Tensor* t, bool complex) {
  RL_CHECK(complex ? is_complex(t->dtype()) : t->dtype() == RL_FLOAT32 || t->dtype() == RL_FLOAT64, Runtime,
           "%s: unsupported dtype; expected %s, got %s", call.op.name, complex ? "complex" : "float32 or float64",
           dtype_name(t->dtype()));
}

struct Axes {
  int dims[RL_MAX_DIMS];
  Axes(const Dims& given, int ndim) {
    for (int i = 0; i < given.n; ++i) dims[i] = wrap_dim(given[i], ndim);
  }
};

}  // namespace

// self, dims, scale, inverse
RL_OP(_fft_complex) {
  Tensor* self = call.tensor(0);
  check_dtype(call, self, true);
  const Dims dims = call[1].dims();
  const Axes axes(dims, self->ndim());
  Tensor* out = call.result(0, self->dtype(), Dims(self->ndim(), self->shape()));
  if (out->is_meta() || out->numel == 0) return;
  if (dims.n == 0) return copy_into(out, self);
  GilRelease gil(self->numel >= kGilWork);
  check(rl_fft(&self->desc, axes.dims, dims.n, call.flag(3), call.real(2), &out->desc));
}

// self, dims, scale
RL_OP(_fft_real) {
  Tensor* self = call.tensor(0);
  check_dtype(call, self, false);
  const Dims dims = call[1].dims();
  const Axes axes(dims, self->ndim());
  Dims shape(self->ndim(), self->shape());
  int64_t& last = shape[axes.dims[dims.n - 1]];
  last = last / 2 + 1;
  Tensor* out = call.result(0, complex_dtype(self->dtype()), shape);
  if (out->is_meta() || out->numel == 0) return;
  GilRelease gil(self->numel >= kGilWork);
  check(rl_fft_real(&self->desc, axes.dims, dims.n, call.real(2), &out->desc));
}

// self, dims, n, scale
RL_OP(_fft_to_real) {
  Tensor* self = call.tensor(0);
  check_dtype(call, self, true);
  const Dims dims = call[1].dims();
  const Axes axes(dims, self->ndim());
  Dims shape(self->ndim(), self->shape());
  shape[axes.dims[dims.n - 1]] = call.integer(2);
  Tensor* out = call.result(0, real_dtype(self->dtype()), shape);
  if (out->is_meta() || out->numel == 0) return;
  GilRelease gil(out->numel >= kGilWork);
  check(rl_fft_to_real(&self->desc, axes.dims, dims.n, call.real(3), &out->desc));
}

}  // namespace rl
