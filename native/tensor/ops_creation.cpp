// Operations that make tensors from sizes and numbers.
#include <cmath>

#include "op.h"
#include "ops.h"
#include "rushlight/create.h"

namespace rl {

Device default_device = Device::CPU;

namespace {

using ll = long long;

// The common tail of factories: dtype, layout, device, pin_memory, requires_grad, starting at argument `at`.
struct Options {
  Value dtype;
  Device device;
  bool requires_grad;
  Options(const Call& call, int at, Device fallback)
      : dtype(call[at]),
        device(call[at + 2].is_none() ? fallback : static_cast<Device>(call[at + 2].integer)),
        requires_grad(call[at + 4].as_bool()) {}
  DType dtype_or(DType other) const { return dtype.is_none() ? other : dtype.dtype; }
};

// Makes output 0 (or checks the caller's out=), and sets requires_grad.
Tensor* make(Call& call, const Options& o, DType dtype, const Dims& shape) {
  count_elements(shape.n, shape.v);
  Tensor* t;
  if (call.out && call.out[0]) {
    Tensor* target = call.out[0];
    RL_CHECK(o.dtype.is_none() || o.dtype.dtype == target->dtype(), Runtime,
             "%s: dtype %s does not match dtype of out parameter (%s)", call.op.title(), dtype_name(o.dtype.dtype),
             dtype_name(target->dtype()));
    t = call.result(0, o.dtype.is_none() ? target->dtype() : dtype, shape);
  } else {
    TensorRef fresh = empty(dtype, shape, o.device);
    t = fresh.get();
    call.results[0] = Value::of(fresh.take());
  }
  if (o.requires_grad) {
    RL_CHECK(is_differentiable(t->dtype()), Runtime,
             "Only Tensors of floating point and complex dtype can require gradients, got %s", dtype_name(t->dtype()));
    t->requires_grad = true;
  }
  return t;
}

DType dtype_of_number(const Value& v) {
  return v.tag == Tag::Bool      ? RL_BOOL
         : v.tag == Tag::Int     ? RL_INT64
         : v.tag == Tag::Complex ? complex_dtype(default_dtype)
                                 : default_dtype;
}

}  // namespace

RL_OP(empty) {
  Options o(call, 1, default_device);
  Tensor* t = make(call, o, o.dtype_or(default_dtype), call[0].dims());
  int64_t format = call.integer_or(6, 0);
  RL_CHECK(format != 1, Runtime, "empty: preserve_format is not a memory format to create in");
  if (format >= 2) {
    TensorRef plain = TensorRef::share(t);
    TensorRef laid_out = rl::call(ops::clone, {Value::of(plain), Value::of(format)});
    laid_out->requires_grad = t->requires_grad;
    release(t);
    call.results[0] = Value::of(laid_out.take());
  }
}
RL_OP(zeros) {
  Options o(call, 1, default_device);
  fill_value(make(call, o, o.dtype_or(default_dtype), call[0].dims()), Value::of(0));
}
RL_OP(ones) {
  Options o(call, 1, default_device);
  fill_value(make(call, o, o.dtype_or(default_dtype), call[0].dims()), Value::of(1));
}
RL_OP(full) {
  Options o(call, 2, default_device);
  Value number = call[1];
  if (number.is_tensor()) {
    Tensor* n = number.tensor;
    RL_CHECK(n->ndim() == 0, Runtime, "full: fill_value must be a number or a 0-dim tensor, got shape %s",
             shape_text(n).c_str());
    Tensor* t = make(call, o, o.dtype_or(n->dtype()), call[0].dims());
    if (!t->is_meta()) check(rl_fill(&t->desc, &n->desc));
    return;
  }
  DType dtype = o.dtype_or(call.out && call.out[0] ? call.out[0]->dtype() : dtype_of_number(number));
  check_fits("full", number, dtype);
  fill_value(make(call, o, dtype, call[0].dims()), number);
}
RL_OP(empty_strided) {
  Options o(call, 2, default_device);
  Dims shape = call[0].dims(), strides = call[1].dims();
  RL_CHECK(shape.n == strides.n, Runtime,
           "empty_strided: dimensionality of sizes (%d) must match dimensionality of strides (%d)", shape.n, strides.n);
  TensorRef t = empty_strided(o.dtype_or(default_dtype), shape.n, shape.v, strides.v, o.device);
  t->requires_grad = o.requires_grad;
  call.results[0] = Value::of(t.take());
}

namespace {

// *_like(self, ..., dtype, layout, device, pin_memory, requires_grad, memory_format)
Tensor* make_like(Call& call, int at) {
  Tensor* self = call.tensor(0);
  Options o(call, at, self->device());
  DType dtype = o.dtype_or(self->dtype());
  TensorRef t = empty_in_format(self, dtype, call.integer_or(at + 5, 1), o.device);
  if (o.requires_grad) {
    RL_CHECK(is_differentiable(dtype), Runtime,
             "Only Tensors of floating point and complex dtype can require gradients, got %s", dtype_name(dtype));
    t->requires_grad = true;
  }
  Tensor* made = t.get();
  call.set(0, std::move(t));
  return made;
}
Tensor* make_new(Call& call, int at) {
  Tensor* self = call.tensor(0);
  Options o(call, at, self->device());
  return make(call, o, o.dtype_or(self->dtype()), call[1].dims());
}

}  // namespace

RL_OP(empty_like) { make_like(call, 1); }
RL_OP(zeros_like) { fill_value(make_like(call, 1), Value::of(0)); }
RL_OP(ones_like) { fill_value(make_like(call, 1), Value::of(1)); }
RL_OP(full_like) {
  Tensor* t = make_like(call, 2);
  check_fits("full_like", call[1], t->dtype());
  fill_value(t, call[1]);
}
RL_OP(new_empty) { make_new(call, 2); }
RL_OP(new_zeros) { fill_value(make_new(call, 2), Value::of(0)); }
RL_OP(new_ones) { fill_value(make_new(call, 2), Value::of(1)); }
RL_OP(new_full) {
  Tensor* t = make_new(call, 3);
  check_fits("new_full", call[2], t->dtype());
  fill_value(t, call[2]);
}
RL_OP(new_empty_strided) {
  Options o(call, 3, call.tensor(0)->device());
  TensorRef t = empty_strided(o.dtype_or(call.tensor(0)->dtype()), static_cast<int>(call[1].size), call[1].ints,
                              call[2].ints, o.device);
  t->requires_grad = o.requires_grad;
  call.results[0] = Value::of(t.take());
}

// ---------------------------------------------------------------- ranges

namespace {

void arange(Call& call, Value start, Value end, Value step, int options) {
  Options o(call, options, default_device);
  bool integral = start.tag != Tag::Double && end.tag != Tag::Double && step.tag != Tag::Double;
  DType dtype = o.dtype_or(call.out && call.out[0] ? call.out[0]->dtype() : integral ? RL_INT64 : default_dtype);
  if (dtype == RL_INT64 && !integral && std::fabs(start.as_double()) < 9e18 && std::fabs(end.as_double()) < 9e18) {
    // Integer results count in integers: the bounds lose their fractions first.
    start = Value::of(start.as_int());
    end = Value::of(end.as_int());
    step = Value::of(step.as_int());
    integral = true;
    RL_CHECK(step.integer != 0, Value, "arange: the step, converted to int64 like the result, is 0");
  }
  if (is_integral(dtype))
    for (const Value& v : {start, end, step}) check_fits("arange", v, RL_INT64);
  double s = start.as_double(), e = end.as_double(), d = step.as_double();
  RL_CHECK(d != 0, Runtime, "step must be nonzero");
  RL_CHECK(std::isfinite(s) && std::isfinite(e), Runtime, "unsupported range: %g -> %g", s, e);
  RL_CHECK((d > 0 && e >= s) || (d < 0 && e <= s), Runtime,
           "upper bound and lower bound inconsistent with step sign: arange(%g, %g, %g)", s, e, d);
  int64_t n;
  if (integral) {
    int64_t a = start.as_int(), b = end.as_int(), c = step.as_int();
    __int128 span = static_cast<__int128>(b) - a;
    __int128 count = c > 0 ? (span + c - 1) / c : (-span - c - 1) / -static_cast<__int128>(c);
    RL_CHECK(count <= INT64_MAX, Runtime, "arange: the number of elements overflows");
    n = static_cast<int64_t>(count);
  } else {
    double count = std::ceil((e - s) / d);
    RL_CHECK(count >= 0 && count < 9.2e18, Runtime, "invalid size, possible overflow? arange(%g, %g, %g)", s, e, d);
    n = static_cast<int64_t>(count);
  }
  Tensor* t = make(call, o, dtype, Dims{n});
  if (t->is_meta() || n == 0) return;
  ScalarTensor a(start), b(step);
  check(rl_arange(&a.desc, &b.desc, &t->desc));
}

}  // namespace

RL_OP(arange) { arange(call, Value::of(0), call[0], Value::of(1), 1); }
RL_OP(arange_start) { arange(call, call[0], call[1], Value::of(1), 2); }
RL_OP(arange_start_step) { arange(call, call[0], call[1], call[2], 3); }

namespace {

// The 0-dim tensors among start and end as numbers; the result's dtype.
DType spaced_dtype(const Call& call, const Options& o, Value (&bounds)[2]) {
  for (Value& v : bounds) {
    if (!v.is_tensor()) continue;
    Tensor* t = v.tensor;
    RL_CHECK(t->ndim() == 0, Runtime,
             "%s only supports 0-dimensional start and end tensors, but got a tensor with %d dimension(s)",
             call.op.name, t->ndim());
    if (is_complex(t->dtype()))
      v = Value::of(*cast(t, RL_COMPLEX128)->as<std::complex<double>>());
    else if (is_float(t->dtype()))
      v = Value::of(*cast(t, RL_FLOAT64)->as<double>());
    else
      v = Value::of(*cast(t, RL_INT64)->as<int64_t>());
  }
  bool complex = bounds[0].tag == Tag::Complex || bounds[1].tag == Tag::Complex;
  return o.dtype_or(call.out && call.out[0] ? call.out[0]->dtype()
                    : complex               ? complex_dtype(default_dtype)
                                            : default_dtype);
}

}  // namespace

RL_OP(linspace) {
  Options o(call, 3, default_device);
  int64_t n = call.integer(2);
  RL_CHECK(n >= 0, Runtime, "number of steps must be non-negative, got %lld", static_cast<ll>(n));
  Value bounds[2] = {call[0], call[1]};
  DType dtype = spaced_dtype(call, o, bounds);
  Tensor* t = make(call, o, dtype, Dims{n});
  if (t->is_meta() || n == 0) return;
  for (const Value& v : bounds) check_fits("linspace", v, dtype);
  ScalarTensor a(bounds[0]), b(bounds[1]);
  check(rl_linspace(&a.desc, &b.desc, &t->desc));
}
RL_OP(logspace) {
  Options o(call, 4, default_device);
  int64_t n = call.integer(2);
  RL_CHECK(n >= 0, Runtime, "number of steps must be non-negative, got %lld", static_cast<ll>(n));
  Value bounds[2] = {call[0], call[1]};
  DType dtype = spaced_dtype(call, o, bounds);
  Tensor* t = make(call, o, dtype, Dims{n});
  if (t->is_meta() || n == 0) return;
  for (const Value& v : bounds) check_fits("logspace", v, dtype);
  if (is_integral(dtype))  // exponents are numbers of the result's dtype
    for (Value& v : bounds) v = Value::of(v.tag == Tag::Complex ? static_cast<int64_t>(v.complex.re) : v.as_int());
  ScalarTensor a(bounds[0]), b(bounds[1]);
  check(rl_logspace(&a.desc, &b.desc, call.real(3), &t->desc));
}

RL_OP(empty_permuted) {
  Options o(call, 2, default_device);
  Dims shape = call[0].dims(), order = call[1].dims(), strides(shape.n, shape.v);
  RL_CHECK(shape.n == order.n, Runtime,
           "empty_permuted: expected as many dims in physical_layout as sizes, got %d and %d", order.n, shape.n);
  uint64_t seen[2] = {0, 0};
  int64_t step = 1;
  count_elements(shape.n, shape.v);
  for (int i = order.n - 1; i >= 0; i--) {
    int64_t d = order[i];
    RL_CHECK(d >= 0 && d < shape.n && !(seen[d / 64] >> (d % 64) & 1), Runtime,
             "empty_permuted: physical_layout; expected every dim from 0 to %d once, got %s", shape.n - 1,
             shape_text(order.n, order.v).c_str());
    seen[d / 64] |= uint64_t{1} << (d % 64);
    strides[static_cast<int>(d)] = step;
    step *= std::max<int64_t>(shape[static_cast<int>(d)], 1);
  }
  TensorRef t = empty_strided(o.dtype_or(default_dtype), shape.n, shape.v, strides.v, o.device);
  t->requires_grad = o.requires_grad;
  call.results[0] = Value::of(t.take());
}

namespace {

void triangle_indices(Call& call, int upper) {
  Options o(call, 3, default_device);
  int64_t rows = call.integer(0), columns = call.integer(1), offset = call.integer(2);
  RL_CHECK(rows >= 0 && columns >= 0, Runtime, "%s: row and col; expected at least 0, got %lld and %lld", call.op.name,
           static_cast<ll>(rows), static_cast<ll>(columns));
  DType dtype = o.dtype_or(RL_INT64);
  RL_CHECK(dtype == RL_INT64 || dtype == RL_INT32, Runtime, "\"%s\" not implemented for '%s'", call.op.name,
           dtype_title(dtype));
  Tensor* t = make(call, o, dtype, Dims{2, rl_triangle_count(rows, columns, offset, upper)});
  RL_KERNEL(t, rl_triangle_indices(rows, columns, offset, upper, &t->desc));
}

}  // namespace

RL_OP(tril_indices) { triangle_indices(call, 0); }
RL_OP(triu_indices) { triangle_indices(call, 1); }

RL_OP(eye) {
  Options o(call, 1, default_device);
  int64_t n = call.integer(0);
  RL_CHECK(n >= 0, Runtime, "n must be greater or equal to 0, got %lld", static_cast<ll>(n));
  Tensor* t = make(call, o, o.dtype_or(default_dtype), Dims{n, n});
  RL_KERNEL(t, rl_eye(&t->desc));
}
RL_OP(eye_m) {
  Options o(call, 2, default_device);
  int64_t n = call.integer(0), m = call.integer(1);
  RL_CHECK(n >= 0, Runtime, "n must be greater or equal to 0, got %lld", static_cast<ll>(n));
  RL_CHECK(m >= 0, Runtime, "m must be greater or equal to 0, got %lld", static_cast<ll>(m));
  Tensor* t = make(call, o, o.dtype_or(default_dtype), Dims{n, m});
  RL_KERNEL(t, rl_eye(&t->desc));
}

// ---------------------------------------------------------------- filling in place

RL_OP(fill) {
  Tensor* self = call.tensor(0);
  Tensor* out = call.result_like(0, self->dtype(), Dims(self->ndim(), self->shape()), self);
  check_fits("fill_", call[1], out->dtype());
  fill_value(out, call[1]);
}
RL_OP(fill_Tensor) {
  Tensor *self = call.tensor(0), *value = call.tensor(1);
  RL_CHECK(value->ndim() == 0, Runtime,
           "fill_ only supports 0-dimension value tensor but got tensor with %d dimensions.", value->ndim());
  TensorRef copy = TensorRef::share(value);
  if (may_share_memory(self, value)) copy = empty(value->dtype(), 0, nullptr), copy_into(copy.get(), value);
  Tensor* out = call.result_like(0, self->dtype(), Dims(self->ndim(), self->shape()), self);
  RL_KERNEL(out, rl_fill(&out->desc, &copy->desc));
}
RL_OP(zero) {
  Tensor* self = call.tensor(0);
  Tensor* out = call.result_like(0, self->dtype(), Dims(self->ndim(), self->shape()), self);
  fill_value(out, Value::of(0));
}

}  // namespace rl
