// Matrix products.
#include "op.h"
#include "ops.h"
#include "rushlight/matmul.h"

namespace rl {

// Runs rushlight._blas.prepare() before the first product, so that OpenBLAS is found where its wheel put it.
void prepare_blas() {
  static bool done = false;
  if (RL_LIKELY(done)) return;
  PyObject* module = PyImport_ImportModule("rushlight._blas");
  PyObject* path = module ? PyObject_CallMethod(module, "library_path", nullptr) : nullptr;
  Py_XDECREF(module);
  if (!path) throw PythonError();
  const char* text = path == Py_None ? nullptr : PyUnicode_AsUTF8(path);
  if (!rl_blas_loaded() && text) rl_set_blas_library(text);
  Py_DECREF(path);
  done = true;
}

namespace {

using ll = long long;

rl_number number_of(const Value& v) {
  std::complex<double> c = v.as_complex();
  return {c.real(), c.imag()};
}

void same_dtype(const char* op, const Tensor* a, const Tensor* b) {
  RL_CHECK(a->dtype() == b->dtype(), Runtime, "%s: expected both operands to have the same dtype, but got: %s != %s",
           op, dtype_name(a->dtype()), dtype_name(b->dtype()));
  RL_CHECK(a->dtype() != RL_BOOL, NotImplemented, "\"%s\" not implemented for 'Bool'", op);
}

void expect_dims(const char* op, const char* what, const Tensor* t, int ndim) {
  RL_CHECK(t->ndim() == ndim, Runtime, "%s: Expected %dD %s for argument '%s', got %dD of shape %s", op, ndim,
           ndim == 1   ? "vector"
           : ndim == 2 ? "matrix"
                       : "tensor",
           what, t->ndim(), shape_text(t).c_str());
}

// A geometry on the stack over a tensor's data, for kernel calls.
struct Matrix {
  rl_tensor desc;
  int64_t shape[3], strides[3];
  Matrix(const Tensor* t, std::initializer_list<int64_t> sizes, std::initializer_list<int64_t> steps) {
    desc = t->desc;
    desc.ndim = static_cast<int32_t>(sizes.size());
    std::copy(sizes.begin(), sizes.end(), shape);
    std::copy(steps.begin(), steps.end(), strides);
    desc.shape = shape;
    desc.strides = strides;
  }
};

// beta or alpha, which must be numbers of the dtype the product is computed in.
rl_number factor_of(const Call& call, int at) {
  const DType dtype = call.tensor(1)->dtype();
  check_fits(call.op.name, call[at], is_float(dtype) && itemsize(dtype) == 2 ? RL_FLOAT32 : dtype);
  return number_of(call[at]);
}

void product(const rl_tensor* a, const rl_tensor* b, const rl_tensor* add, rl_number alpha, rl_number beta, Tensor* out,
             int64_t work) {
  if (out->is_meta()) return;
  prepare_blas();
  GilRelease gil(work >= (int64_t{1} << 18));
  check(rl_matmul(a, b, add, alpha, beta, &out->desc));
}

constexpr rl_number kOne = {1, 0}, kZero = {0, 0};

// Batch dimensions of a product: those of both operands, broadcast.
Dims common_batch(const Tensor* a, const Tensor* b) {
  const int na = a->ndim() - 2, nb = b->ndim() - 2, n = std::max(na, nb);
  Dims batch;
  for (int i = 0; i < n; i++) {
    const int da = i - (n - na), db = i - (n - nb);
    const int64_t x = da < 0 ? 1 : a->size(da), y = db < 0 ? 1 : b->size(db);
    RL_CHECK(x == y || x == 1 || y == 1, Runtime,
             "matmul: The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton dimension "
             "%d; the shapes are %s and %s",
             static_cast<ll>(x), static_cast<ll>(y), i, shape_text(a).c_str(), shape_text(b).c_str());
    batch.push(x == 1 ? y : x);
  }
  return batch;
}

// Whether a tensor's batch dimensions, broadcast to `batch`, are one dimension of one stride.
bool is_one_batch(const Tensor* t, const Dims& batch) {
  int64_t next = 0, count = 1;  // the stride and the size of the dimensions so far
  for (int i = batch.n - 1, d = t->ndim() - 3; i >= 0; i--, d--) {
    if (batch[i] == 1) continue;
    const int64_t stride = d < 0 || t->size(d) == 1 ? 0 : t->stride(d);
    if (count > 1 && stride != next * count) return false;
    if (count == 1) next = stride;
    count *= batch[i];
  }
  return true;
}

// The add operand of addmm and its kin, broadcast to the output's shape by strides of 0.
struct Expanded {
  rl_tensor desc;
  int64_t strides[RL_MAX_DIMS];
  Expanded(const char* op, const Tensor* t, int ndim, const int64_t* shape) {
    desc = t->desc;
    for (int i = 0; i < ndim; i++) {
      int d = t->ndim() - ndim + i;
      int64_t n = d < 0 ? 1 : t->size(d);
      RL_CHECK(n == shape[i] || n == 1, Runtime,
               "%s: The expanded size of the tensor (%lld) must match the existing size (%lld) at non-singleton "
               "dimension %d.  Target sizes: %s.  "
               "Tensor sizes: %s",
               op, static_cast<ll>(shape[i]), static_cast<ll>(n), i, shape_text(ndim, shape).c_str(),
               shape_text(t).c_str());
      strides[i] = n == 1 ? 0 : t->stride(d);
    }
    RL_CHECK(t->ndim() <= ndim, Runtime, "%s: expected an input of at most %d dimensions, got shape %s", op, ndim,
             shape_text(t).c_str());
    desc.ndim = ndim;
    desc.shape = shape;
    desc.strides = strides;
  }
};

}  // namespace

RL_OP(_adjoint) {
  Tensor* t = call.tensor(0);
  TensorRef r = rl::call(ops::transpose, {Value::of(t), Value::of(-2), Value::of(-1)});
  if (is_complex(t->dtype())) r = rl::call(ops::conj_physical, {Value::of(r)});
  call.set(0, std::move(r));
}
RL_OP(conj) {
  Tensor* t = call.tensor(0);
  call.set(0, is_complex(t->dtype()) ? rl::call(ops::_conj, {Value::of(t)}) : TensorRef::share(t));
}
RL_OP(conj_physical) {
  Tensor* t = call.tensor(0);
  call.set(0, is_complex(t->dtype()) ? rl::call(ops::_conj_physical, {Value::of(t)}) : TensorRef::share(t));
}

namespace {

// What a wrapped tensor stands for becomes lazy, not the tensor.
TensorRef flipped(Tensor* t, int bit) {
  TensorRef view = make_view(t, t->ndim(), t->shape(), t->strides(), t->data());
  if (!t->is_wrapped()) view->set_lazy(t->lazy() ^ bit);
  return view;
}

}  // namespace

RL_OP(_conj) { call.set(0, flipped(call.tensor(0), kConjugated)); }
RL_OP(_neg_view) {
  RL_CHECK(call.tensor(0)->dtype() != RL_BOOL, Runtime, "_neg_view: expected a dtype with negative numbers, got bool");
  call.set(0, flipped(call.tensor(0), kNegated));
}
RL_OP(_scale) {
  if (call[1].tag != Tag::Complex && call[1].as_double() == 1)
    call.set(0, TensorRef::share(call.tensor(0)));
  else
    call.set(0, rl::call(ops::mul, {call[0], call[1]}));
}
RL_OP(_scale_conj) {
  Value factor = call[1];
  if (factor.tag == Tag::Complex)
    factor.complex.im = -factor.complex.im;
  else if (factor.as_double() == 1)
    return call.set(0, TensorRef::share(call.tensor(0)));
  call.set(0, rl::call(ops::mul, {call[0], factor}));
}
RL_OP(_fold) {
  Tensor* t = call.tensor(0);
  if (t->ndim() == 2) return call.set(0, TensorRef::share(t));
  int64_t last = t->ndim() ? t->size(t->ndim() - 1) : 1;
  int64_t rows = 1;
  for (int i = 0; i + 1 < t->ndim(); i++) rows *= t->size(i);
  call.set(0, rl::call(ops::reshape, {Value::of(t), Value::of(Dims{rows, last})}));
}

RL_OP(mm) {
  Tensor *a = call.tensor(0), *b = call.tensor(1);
  expect_dims("mm", "self", a, 2);
  expect_dims("mm", "mat2", b, 2);
  RL_CHECK(a->size(1) == b->size(0), Runtime, "mm: mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)",
           static_cast<ll>(a->size(0)), static_cast<ll>(a->size(1)), static_cast<ll>(b->size(0)),
           static_cast<ll>(b->size(1)));
  same_dtype("mm", a, b);
  Tensor* out = call.result(0, a->dtype(), Dims{a->size(0), b->size(1)});
  product(&a->desc, &b->desc, nullptr, kOne, kZero, out, out->numel * a->size(1));
}

RL_OP(bmm) {
  Tensor *a = call.tensor(0), *b = call.tensor(1);
  expect_dims("bmm", "batch1", a, 3);
  expect_dims("bmm", "batch2", b, 3);
  RL_CHECK(a->size(0) == b->size(0) && a->size(2) == b->size(1), Runtime,
           "bmm: Expected size for first two dimensions of batch2 tensor to be: [%lld, %lld] but got: [%lld, %lld].",
           static_cast<ll>(a->size(0)), static_cast<ll>(a->size(2)), static_cast<ll>(b->size(0)),
           static_cast<ll>(b->size(1)));
  same_dtype("bmm", a, b);
  Tensor* out = call.result(0, a->dtype(), Dims{a->size(0), a->size(1), b->size(2)});
  product(&a->desc, &b->desc, nullptr, kOne, kZero, out, out->numel * a->size(2));
}

RL_OP(_product_of_batches) {
  Tensor *a = call.tensor(0), *b = call.tensor(1);
  RL_CHECK(a->ndim() >= 2 && b->ndim() >= 2 && a->size(a->ndim() - 1) == b->size(b->ndim() - 2), Runtime,
           "_product_of_batches: shapes %s and %s; expected [..., n, k] and [..., k, m]", shape_text(a).c_str(),
           shape_text(b).c_str());
  same_dtype("bmm", a, b);
  Dims shape = common_batch(a, b);
  const Dims batch = shape;
  const int64_t inner = a->size(a->ndim() - 1);
  shape.push(a->size(a->ndim() - 2));
  shape.push(b->size(b->ndim() - 1));
  Dims left = batch, right = batch;
  left.push(a->size(a->ndim() - 2));
  left.push(inner);
  right.push(inner);
  right.push(b->size(b->ndim() - 1));
  Expanded wide_a("matmul", a, shape.n, left.v), wide_b("matmul", b, shape.n, right.v);
  Tensor* out = call.result(0, a->dtype(), shape);
  product(&wide_a.desc, &wide_b.desc, nullptr, kOne, kZero, out, out->numel * inner);
}

RL_OP(mv) {
  Tensor *a = call.tensor(0), *x = call.tensor(1);
  RL_CHECK(a->ndim() == 2 && x->ndim() == 1, Runtime, "mv: vector + matrix @ vector expected, got 1, %d, %d", a->ndim(),
           x->ndim());
  RL_CHECK(a->size(1) == x->size(0), Runtime, "mv: size mismatch, got input (%lld), mat (%lldx%lld), vec (%lld)",
           static_cast<ll>(a->size(0)), static_cast<ll>(a->size(0)), static_cast<ll>(a->size(1)),
           static_cast<ll>(x->size(0)));
  same_dtype("mv", a, x);
  Tensor* out = call.result(0, a->dtype(), Dims{a->size(0)});
  if (out->is_meta()) return;
  Matrix column(x, {x->size(0), 1}, {x->stride(0), 1}), to(out, {out->size(0), 1}, {out->stride(0), 1});
  prepare_blas();
  GilRelease gil(a->numel >= (1 << 18));
  check(rl_matmul(&a->desc, &column.desc, nullptr, kOne, kZero, &to.desc));
}

RL_OP(dot) {
  Tensor *a = call.tensor(0), *b = call.tensor(1);
  RL_CHECK(a->ndim() == 1 && b->ndim() == 1, Runtime, "dot: 1D tensors expected, but got %dD and %dD tensors",
           a->ndim(), b->ndim());
  RL_CHECK(a->dtype() == b->dtype(), Runtime, "dot: expected both vectors to have same dtype, but found %s and %s",
           dtype_title(a->dtype()), dtype_title(b->dtype()));
  RL_CHECK(a->numel == b->numel, Runtime,
           "dot: inconsistent tensor size, expected tensor [%lld] and src [%lld] to have the same number of elements, "
           "but got %lld and %lld elements "
           "respectively",
           static_cast<ll>(a->numel), static_cast<ll>(b->numel), static_cast<ll>(a->numel), static_cast<ll>(b->numel));
  same_dtype("dot", a, b);
  Tensor* out = call.result(0, a->dtype(), Dims{});
  if (out->is_meta()) return;
  prepare_blas();
  check(rl_dot(&a->desc, &b->desc, std::strcmp(call.op.name, "vdot") == 0, &out->desc));
}
RL_OP(vdot) { op_dot(call); }

RL_OP(addmm) {
  Tensor *self = call.tensor(0), *a = call.tensor(1), *b = call.tensor(2);
  RL_CHECK(a->ndim() == 2 && b->ndim() == 2, Runtime,
           "addmm: mat1 must be a matrix and mat2 must be a matrix, got %dD and %dD tensors", a->ndim(), b->ndim());
  RL_CHECK(a->size(1) == b->size(0), Runtime,
           "addmm: mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)", static_cast<ll>(a->size(0)),
           static_cast<ll>(a->size(1)), static_cast<ll>(b->size(0)), static_cast<ll>(b->size(1)));
  same_dtype("addmm", a, b);
  same_dtype("addmm", self, a);
  int64_t shape[2] = {a->size(0), b->size(1)};
  Expanded add("addmm", self, 2, shape);
  Tensor* out = call.result(0, a->dtype(), 2, shape);
  product(&a->desc, &b->desc, &add.desc, factor_of(call, 4), factor_of(call, 3), out, out->numel * a->size(1));
}
RL_OP(baddbmm) {
  Tensor *self = call.tensor(0), *a = call.tensor(1), *b = call.tensor(2);
  expect_dims("baddbmm", "batch1", a, 3);
  expect_dims("baddbmm", "batch2", b, 3);
  RL_CHECK(
      a->size(0) == b->size(0) && a->size(2) == b->size(1), Runtime,
      "baddbmm: Expected size for first two dimensions of batch2 tensor to be: [%lld, %lld] but got: [%lld, %lld].",
      static_cast<ll>(a->size(0)), static_cast<ll>(a->size(2)), static_cast<ll>(b->size(0)),
      static_cast<ll>(b->size(1)));
  same_dtype("baddbmm", a, b);
  same_dtype("baddbmm", self, a);
  int64_t shape[3] = {a->size(0), a->size(1), b->size(2)};
  Expanded add("baddbmm", self, 3, shape);
  Tensor* out = call.result(0, a->dtype(), 3, shape);
  product(&a->desc, &b->desc, &add.desc, factor_of(call, 4), factor_of(call, 3), out, out->numel * a->size(2));
}
RL_OP(addmv) {
  Tensor *self = call.tensor(0), *a = call.tensor(1), *x = call.tensor(2);
  RL_CHECK(a->ndim() == 2 && x->ndim() == 1 && self->ndim() <= 1, Runtime,
           "addmv: vector + matrix @ vector expected, got %d, %d, %d", self->ndim(), a->ndim(), x->ndim());
  RL_CHECK(a->size(1) == x->size(0) && (self->numel == 1 || self->numel == a->size(0)), Runtime,
           "addmv: size mismatch, got input (%lld), mat (%lldx%lld), vec (%lld)", static_cast<ll>(self->numel),
           static_cast<ll>(a->size(0)), static_cast<ll>(a->size(1)), static_cast<ll>(x->size(0)));
  same_dtype("addmv", a, x);
  same_dtype("addmv", self, a);
  int64_t n = a->size(0);
  Expanded add("addmv", self, 1, &n);
  Tensor* out = call.result(0, a->dtype(), 1, &n);
  if (out->is_meta()) return;
  Matrix column(x, {x->size(0), 1}, {x->stride(0), 1}), to(out, {n, 1}, {out->stride(0), 1}),
      plus(self, {n, 1}, {add.strides[0], 0});
  prepare_blas();
  GilRelease gil(a->numel >= (1 << 18));
  check(rl_matmul(&a->desc, &column.desc, &plus.desc, factor_of(call, 4), factor_of(call, 3), &to.desc));
}

RL_OP(matmul) {
  Tensor *a = call.tensor_or_null(0), *b = call.tensor_or_null(1);
  RL_CHECK(a && b, Type, "matmul: both operands must be tensors");
  RL_CHECK(a->ndim() > 0 && b->ndim() > 0, Runtime,
           "matmul: both arguments to matmul need to be at least 1D, but they are %dD and %dD", a->ndim(), b->ndim());
  if (RL_LIKELY(a->ndim() == 2 && b->ndim() == 2)) return call.set(0, rl::call(ops::mm, {Value::of(a), Value::of(b)}));
  if (a->ndim() == 1 && b->ndim() == 1) return call.set(0, rl::call(ops::dot, {Value::of(a), Value::of(b)}));
  if (a->ndim() == 2 && b->ndim() == 1) return call.set(0, rl::call(ops::mv, {Value::of(a), Value::of(b)}));
  if (a->ndim() == 1 && b->ndim() == 2) {
    TensorRef t = rl::call(ops::t, {Value::of(b)});
    return call.set(0, rl::call(ops::mv, {Value::of(t), Value::of(a)}));
  }
  int64_t inner_a = a->size(a->ndim() - 1), inner_b = b->size(b->ndim() >= 2 ? b->ndim() - 2 : 0);
  RL_CHECK(inner_a == inner_b, Runtime,
           "matmul: the inner dimensions disagree; expected a.size(-1) == b.size(%d), got shapes %s and %s",
           b->ndim() >= 2 ? -2 : 0, shape_text(a).c_str(), shape_text(b).c_str());
  if (a->ndim() >= 3 && b->ndim() <= 2) {
    // One matrix for all: a single product over the merged rows.
    TensorRef rows = rl::call(ops::_fold, {Value::of(a)});
    Dims shape(a->ndim() - 1, a->shape());
    TensorRef r;
    if (b->ndim() == 2) {
      r = rl::call(ops::mm, {Value::of(rows), Value::of(b)});
      shape.push(b->size(1));
    } else {
      r = rl::call(ops::mv, {Value::of(rows), Value::of(b)});
    }
    return call.set(0, rl::call(ops::view, {Value::of(r), Value::of(shape)}));
  }
  // Batches: broadcast, merge the batch dims, bmm.
  TensorRef left = TensorRef::share(a), right = TensorRef::share(b);
  if (a->ndim() == 1) left = rl::call(ops::unsqueeze, {Value::of(a), Value::of(0)});
  if (b->ndim() == 1) right = rl::call(ops::unsqueeze, {Value::of(b), Value::of(1)});
  Dims batch = common_batch(left.get(), right.get());
  if (batch.n > 1 && !(is_one_batch(left.get(), batch) && is_one_batch(right.get(), batch))) {
    TensorRef p = rl::call(ops::_product_of_batches, {Value::of(left), Value::of(right)});
    if (a->ndim() == 1) p = rl::call(ops::squeeze_dim, {Value::of(p), Value::of(-2)});
    if (b->ndim() == 1) p = rl::call(ops::squeeze_dim, {Value::of(p), Value::of(-1)});
    return call.set(0, std::move(p));
  }
  int64_t count = 1;
  for (int i = 0; i < batch.n; i++) count *= batch[i];
  auto batched = [&](TensorRef t) {
    int64_t r = t->size(t->ndim() - 2), c = t->size(t->ndim() - 1);
    Dims full = batch;
    full.push(r);
    full.push(c);
    TensorRef e = rl::call(ops::expand, {Value::of(t), Value::of(full)});
    if (e->ndim() == 3) return e;
    return rl::call(ops::reshape, {Value::of(e), Value::of(Dims{count, r, c})});
  };
  TensorRef l = batched(std::move(left)), r = batched(std::move(right));
  TensorRef p = rl::call(ops::bmm, {Value::of(l), Value::of(r)});
  Dims shape = batch;
  if (a->ndim() > 1) shape.push(l->size(1));
  if (b->ndim() > 1) shape.push(r->size(2));
  if (p->ndim() == shape.n && !std::memcmp(p->shape(), shape.v, sizeof(int64_t) * static_cast<size_t>(shape.n)))
    call.set(0, std::move(p));
  else
    call.set(0, rl::call(ops::view, {Value::of(p), Value::of(shape)}));
}

RL_OP(linear) {
  Tensor *x = call.tensor(0), *w = call.tensor(1), *bias = call.tensor_or_null(2);
  RL_CHECK(w->ndim() == 2 || w->ndim() == 1, Runtime,
           "linear: weight must be a matrix (out_features, in_features), got shape %s", shape_text(w).c_str());
  RL_CHECK(x->ndim() >= 1, Runtime, "linear: input must have at least 1 dimension, got a 0-dim tensor");
  int64_t in = x->size(x->ndim() - 1), out_features = w->ndim() == 2 ? w->size(0) : 1, want = w->size(w->ndim() - 1);
  if (in != want) {
    int64_t rows = 1;
    for (int i = 0; i + 1 < x->ndim(); i++) rows *= x->size(i);
    throw_error(ErrorKind::Runtime,
                "linear: mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld): the input's last "
                "dimension is %lld, the weight expects %lld",
                static_cast<ll>(rows), static_cast<ll>(in), static_cast<ll>(want), static_cast<ll>(out_features),
                static_cast<ll>(in), static_cast<ll>(want));
  }
  RL_CHECK(x->dtype() == w->dtype() && (!bias || bias->dtype() == x->dtype()), Runtime,
           "linear: mat1 and mat2 must have the same dtype, but got input %s, weight %s%s%s", dtype_name(x->dtype()),
           dtype_name(w->dtype()), bias ? " and bias " : "", bias ? dtype_name(bias->dtype()) : "");
  RL_CHECK(x->dtype() != RL_BOOL, NotImplemented, "\"linear\" not implemented for 'Bool'");
  Dims shape(x->ndim() - 1, x->shape());
  if (w->ndim() == 2) shape.push(out_features);
  int64_t rows = 1;
  for (int i = 0; i + 1 < x->ndim(); i++) rows *= x->size(i);
  Tensor* result = call.result(0, x->dtype(), shape);
  if (result->is_meta()) return;
  TensorRef dense, plain;
  if (RL_UNLIKELY(!result->contiguous)) plain = empty_like(result);  // an out= with strides of its own
  Tensor* out = plain ? plain.get() : result;
  int64_t row_stride;
  if (x->ndim() == 2) {
    row_stride = x->stride(0);
  } else if (x->ndim() == 1) {
    row_stride = in;
  } else {
    dense = contiguous(x);
    x = dense.get();
    row_stride = in;
  }
  Matrix a(x, {rows, in}, {row_stride, x->stride(x->ndim() - 1)});
  int64_t w0 = w->ndim() == 2 ? w->stride(0) : in, w1 = w->stride(w->ndim() - 1);
  Matrix b(w, {in, out_features}, {w1, w0});
  Matrix to(out, {rows, out_features}, {out_features, 1});
  prepare_blas();
  GilRelease gil(out->numel * in >= (int64_t{1} << 18));
  if (bias) {
    RL_CHECK(bias->ndim() <= 1 && (bias->numel == out_features || bias->numel == 1), Runtime,
             "linear: bias must have %lld elements, got shape %s", static_cast<ll>(out_features),
             shape_text(bias).c_str());
    Matrix plus(bias, {rows, out_features}, {0, bias->numel == 1 ? 0 : bias->stride(0)});
    check(rl_matmul(&a.desc, &b.desc, &plus.desc, kOne, kOne, &to.desc));
  } else {
    check(rl_matmul(&a.desc, &b.desc, nullptr, kOne, kZero, &to.desc));
  }
  if (plain) check(rl_copy(&plain->desc, &result->desc));
}

}  // namespace rl
