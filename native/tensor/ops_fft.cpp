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

}  // namespace

// self, dims, scale, inverse
RL_OP(_fft_complex) {
  Tensor* self = call.tensor(0);
  check_dtype(call, self, true);
  const Dims dims = call[1].dims();
  Tensor* out = call.result(0, self->dtype(), Dims(self->ndim(), self->shape()));
  if (out->is_meta() || out->numel == 0) return;
  if (dims.n == 0) return copy_into(out, self);
  GilRelease gil(self->numel >= kGilWork);
  // The scale goes with the last pass; the others are made in place.
  for (int i = dims.n - 1; i >= 0; --i) {
    const int dim = wrap_dim(dims[i], self->ndim());
    check(
        rl_fft(i == dims.n - 1 ? &self->desc : &out->desc, dim, call.flag(3), i == 0 ? call.real(2) : 1.0, &out->desc));
  }
}

// self, scale
RL_OP(_fft_real) {
  Tensor* self = call.tensor(0);
  check_dtype(call, self, false);
  Dims shape(self->ndim(), self->shape());
  shape[shape.n - 1] = shape[shape.n - 1] / 2 + 1;
  Tensor* out = call.result(0, complex_dtype(self->dtype()), shape);
  if (out->is_meta() || out->numel == 0) return;
  GilRelease gil(self->numel >= kGilWork);
  check(rl_fft_real(&self->desc, call.real(1), &out->desc));
}

// self, n, scale
RL_OP(_fft_to_real) {
  Tensor* self = call.tensor(0);
  check_dtype(call, self, true);
  Dims shape(self->ndim(), self->shape());
  shape[shape.n - 1] = call.integer(1);
  Tensor* out = call.result(0, real_dtype(self->dtype()), shape);
  if (out->is_meta() || out->numel == 0) return;
  GilRelease gil(out->numel >= kGilWork);
  check(rl_fft_to_real(&self->desc, call.real(2), &out->desc));
}

}  // namespace rl
