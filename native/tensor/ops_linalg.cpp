// Linear algebra: what the kernels of rushlight/linalg.h decompose and solve.
#include "rushlight/linalg.h"

#include <cmath>

#include "op.h"
#include "ops.h"
#include "rushlight/distance.h"
#include "rushlight/matmul.h"

namespace rl {

void prepare_blas();  // ops_matrix.cpp

namespace {

using ll = long long;

// rushlight.linalg.LinAlgError, a RuntimeError.
[[noreturn]] void throw_linalg_error(const std::string& message) {
  PyObject* module = PyImport_ImportModule("rushlight.linalg");
  PyObject* type = module ? PyObject_GetAttrString(module, "LinAlgError") : nullptr;
  Py_XDECREF(module);
  if (type) {
    PyErr_SetString(type, message.c_str());
    Py_DECREF(type);
  }
  throw PythonError();
}

// "linalg_inv_ex" as users write it: "linalg.inv".
std::string public_name(const Call& call) {
  std::string name = call.op.name;
  if (name.front() == '_') name.erase(0, 1);
  if (name.rfind("linalg_", 0) == 0) name[6] = '.';
  if (name.size() > 3 && name.compare(name.size() - 3, 3, "_ex") == 0) name.erase(name.size() - 3);
  return name;
}

void check_dtype(const Call& call, const char* argument, const Tensor* t) {
  RL_CHECK(is_float(t->dtype()) || is_complex(t->dtype()), Runtime,
           "%s: %s; expected floating point or complex elements, got %s", public_name(call).c_str(), argument,
           dtype_name(t->dtype()));
  RL_CHECK(real_dtype(t->dtype()) >= RL_FLOAT32, Runtime,
           "%s: %s; expected float32, float64, complex64 or complex128, got %s", public_name(call).c_str(), argument,
           dtype_name(t->dtype()));
}
void check_matrix(const Call& call, const char* argument, const Tensor* t) {
  RL_CHECK(t->ndim() >= 2, Runtime, "%s: %s; expected at least 2 dimensions, got shape %s", public_name(call).c_str(),
           argument, shape_text(t).c_str());
  check_dtype(call, argument, t);
}
void check_square(const Call& call, const char* argument, const Tensor* t) {
  check_matrix(call, argument, t);
  RL_CHECK(t->size(t->ndim() - 1) == t->size(t->ndim() - 2), Runtime,
           "%s: %s must be batches of square matrices; got shape %s", public_name(call).c_str(), argument,
           shape_text(t).c_str());
}
void check_same_dtype(const Call& call, const Tensor* a, const Tensor* b, const char* name_a, const char* name_b) {
  RL_CHECK(a->dtype() == b->dtype(), Runtime, "%s: expected %s and %s to have the same dtype, got %s and %s",
           public_name(call).c_str(), name_a, name_b, dtype_name(a->dtype()), dtype_name(b->dtype()));
}

Dims batch_dims(const Tensor* t, int core) { return Dims(t->ndim() - core, t->shape()); }
Dims with(Dims batch, std::initializer_list<int64_t> core) {
  for (int64_t n : core) batch.push(n);
  return batch;
}

Dims broadcast(const Call& call, const Dims& a, const Dims& b) {
  Dims out;
  int n = std::max(a.n, b.n);
  for (int i = 0; i < n; i++) {
    int da = i - (n - a.n), db = i - (n - b.n);
    int64_t x = da < 0 ? 1 : a[da], y = db < 0 ? 1 : b[db];
    RL_CHECK(x == y || x == 1 || y == 1, Runtime, "%s: the batch dimensions do not broadcast; got %s and %s",
             public_name(call).c_str(), shape_text(a.n, a.v).c_str(), shape_text(b.n, b.v).c_str());
    out.push(x == 1 ? y : x);
  }
  return out;
}

// A tensor's descriptor with its batch dimensions broadcast, by strides of 0.
struct Batched {
  rl_tensor desc;
  Dims shape, strides;
  Batched(const Tensor* t, int core, const Dims& batch) {
    desc = t->desc;
    int missing = batch.n - (t->ndim() - core);
    for (int i = 0; i < batch.n; i++) {
      shape.push(batch[i]);
      strides.push(i < missing || t->size(i - missing) != batch[i] ? 0 : t->stride(i - missing));
    }
    for (int i = t->ndim() - core; i < t->ndim(); i++) {
      shape.push(t->size(i));
      strides.push(t->stride(i));
    }
    desc.ndim = shape.n;
    desc.shape = shape.v;
    desc.strides = strides.v;
  }
  Batched(const Batched&) = delete;
  Batched& operator=(const Batched&) = delete;
};

// Fresh outputs have column-major matrices, as LAPACK makes them (and PyTorch).
Tensor* matrix_result(Call& call, int i, DType dtype, const Dims& shape) {
  if (call.out && call.out[i]) return call.result(i, dtype, shape);
  int64_t strides[kMaxDims];
  contiguous_strides(shape.n, shape.v, strides);
  int64_t rows = shape[shape.n - 2];
  strides[shape.n - 2] = 1;
  strides[shape.n - 1] = std::max<int64_t>(1, rows);
  TensorRef t = empty_strided(dtype, shape.n, shape.v, strides, call.device());
  call.results[i] = Value::of(t.get());
  return t.take();
}

// Memory for a result nobody asked for.
struct Temporary {
  TensorRef tensor;
  Temporary(Call& call, DType dtype, const Dims& shape) : tensor(empty(dtype, shape, call.device())) {}
  rl_tensor* desc() { return &tensor->desc; }
};

void zero(Tensor* t) { fill_value(t, Value::of(0)); }

// The first failed matrix of a batch as "(Batch element 2): ", and its info. 0 when none failed.
int first_failure(const Tensor* info, std::string& where) {
  if (info->is_meta() || info->numel == 0) return 0;
  TensorRef plain = contiguous(const_cast<Tensor*>(info));
  const auto* p = plain->as<int32_t>();
  for (int64_t i = 0; i < plain->numel; i++) {
    if (p[i] == 0) continue;
    if (info->ndim() > 0) where = "(Batch element " + std::to_string(i) + "): ";
    return p[i];
  }
  return 0;
}

void raise_failure(const Call& call, const Tensor* info, const char* text) {
  std::string where;
  int failed = first_failure(info, where);
  if (RL_LIKELY(failed == 0)) return;
  std::string filled = text;
  for (size_t at; (at = filled.find("%d")) != std::string::npos;) filled.replace(at, 2, std::to_string(failed));
  throw_linalg_error(public_name(call) + ": " + where + filled);
}

constexpr const char* kSingular = "The solver failed because the input matrix is singular (element %d of U is 0).";
constexpr const char* kSingularInverse =
    "The diagonal element %d is zero, the inversion could not be completed because the input matrix is singular.";
constexpr const char* kNotPositive =
    "The factorization could not be completed because the input is not positive-definite (the leading minor of order "
    "%d is not positive-definite).";

bool heavy(const Tensor* t) { return t->numel >= 1024; }

std::string text_of(const Value& v) {
  if (v.tag == Tag::Text) return v.text;
  if (v.tag == Tag::Object && PyUnicode_Check(v.object)) {
    const char* text = PyUnicode_AsUTF8(v.object);
    if (!text) throw PythonError();
    return text;
  }
  return "";
}

}  // namespace

#define RL_RUN(tensor, expression)   \
  do {                               \
    if (!(tensor)->is_meta()) {      \
      prepare_blas();                \
      GilRelease gil(heavy(tensor)); \
      ::rl::check(expression);       \
    }                                \
  } while (0)

// ---------------------------------------------------------------- Cholesky

RL_OP(linalg_cholesky_ex) {
  Tensor* a = call.tensor(0);
  check_square(call, "A", a);
  Dims shape(a->ndim(), a->shape());
  Tensor* l = matrix_result(call, 0, a->dtype(), shape);
  Tensor* info = call.result(1, RL_INT32, batch_dims(a, 2));
  RL_RUN(a, rl_cholesky(&a->desc, call.flag(1), &l->desc, &info->desc));
  if (call.flag(2)) raise_failure(call, info, kNotPositive);
}

RL_OP(cholesky_solve) {
  Tensor *b = call.tensor(0), *factor = call.tensor(1);
  bool upper = call.flag(2);
  RL_CHECK(b->ndim() >= 2 && factor->ndim() >= 2, Runtime,
           "cholesky_solve: expected matrices of at least 2 dimensions, got shapes %s and %s", shape_text(b).c_str(),
           shape_text(factor).c_str());
  check_square(call, "input2", factor);
  check_same_dtype(call, factor, b, "the factor", "the right side");
  int64_t n = factor->size(factor->ndim() - 1);
  RL_CHECK(b->size(b->ndim() - 2) == n, Runtime,
           "cholesky_solve: incompatible matrix sizes; expected as many rows as the factor has, got %s and %s",
           shape_text(b).c_str(), shape_text(factor).c_str());
  Dims batch = broadcast(call, batch_dims(factor, 2), batch_dims(b, 2));
  Dims shape = with(batch, {n, b->size(b->ndim() - 1)});
  Tensor* out = matrix_result(call, 0, b->dtype(), shape);
  TensorRef middle = empty(b->dtype(), shape, call.device());
  Batched fs(factor, 2, batch), bs(b, 2, batch);
  int first = upper ? RL_UPPER | RL_ADJOINT : 0, second = upper ? RL_UPPER : RL_ADJOINT;
  RL_RUN(out, rl_solve_triangular(&fs.desc, &bs.desc, first, &middle->desc));
  RL_RUN(out, rl_solve_triangular(&fs.desc, &middle->desc, second, &out->desc));
}

RL_OP(cholesky_inverse) {
  Tensor* a = call.tensor(0);
  check_square(call, "A", a);
  Tensor* out = matrix_result(call, 0, a->dtype(), Dims(a->ndim(), a->shape()));
  Temporary info(call, RL_INT32, batch_dims(a, 2));
  RL_RUN(a, rl_cholesky_inverse(&a->desc, call.flag(1), &out->desc, info.desc()));
  raise_failure(call, info.tensor.get(), "The diagonal element %d of the factor is zero: the matrix is singular.");
}

// ---------------------------------------------------------------- LU

RL_OP(linalg_lu_factor_ex) {
  Tensor* a = call.tensor(0);
  check_matrix(call, "A", a);
  RL_CHECK(call.flag(1), Runtime, "%s: LU without pivoting is not implemented on the CPU; expected pivot=True",
           public_name(call).c_str());
  Dims batch = batch_dims(a, 2);
  int64_t k = std::min(a->size(a->ndim() - 1), a->size(a->ndim() - 2));
  Tensor* lu = matrix_result(call, 0, a->dtype(), Dims(a->ndim(), a->shape()));
  Tensor* pivots = call.result(1, RL_INT32, with(batch, {k}));
  Tensor* info = call.result(2, RL_INT32, batch);
  RL_RUN(a, rl_lu_factor(&a->desc, &lu->desc, &pivots->desc, &info->desc));
  if (call.flag(2))
    raise_failure(call, info, "U[%d,%d] is zero and using it on lu_solve would result in a division by zero.");
}

RL_OP(_lu_permutation) {
  Tensor* pivots = call.tensor(0);
  Tensor* out = call.result(0, RL_INT64, with(batch_dims(pivots, 1), {call.integer(1)}));
  if (!out->is_meta()) check(rl_lu_permutation(&pivots->desc, &out->desc));
}

namespace {

// Of one factored matrix: the determinant, or its sign and the logarithm of its size.
template <class T, class R>
void determinant(const Tensor* lu, const Tensor* pivots, int64_t batch, T* det, T* sign, R* log_size) {
  int64_t n = lu->size(lu->ndim() - 1), lu_offset = 0, rest = batch;
  for (int d = lu->ndim() - 3; d >= 0; d--) {
    lu_offset += rest % lu->size(d) * lu->stride(d);
    rest /= lu->size(d);
  }
  const T* p = lu->as<T>() + lu_offset;
  const int32_t* swaps = pivots->as<int32_t>() + batch * n;
  int64_t step = lu->stride(lu->ndim() - 1) + lu->stride(lu->ndim() - 2);
  bool odd = false;
  for (int64_t i = 0; i < n; i++) odd ^= swaps[i] != i + 1;
  T product = odd ? T(-1) : T(1);
  R sum = 0;
  for (int64_t i = 0; i < n; i++) {
    T x = p[i * step];
    if (det) {
      product *= x;
      continue;
    }
    R size = std::abs(x);
    sum += std::log(size);
    product *= size == R(0) ? T(0) : x / size;
  }
  if (det)
    *det = product;
  else
    *sign = product, *log_size = sum;
}

// Output `first` is the determinant (or sign and logarithm), the two after it are the factors.
void determinants(Call& call, bool logarithm) {
  Tensor* a = call.tensor(0);
  check_square(call, "A", a);
  Dims batch = batch_dims(a, 2);
  int64_t n = a->size(a->ndim() - 1);
  Tensor* first = call.result(0, a->dtype(), batch);
  Tensor* second = logarithm ? call.result(1, real_dtype(a->dtype()), batch) : nullptr;
  Tensor* lu = matrix_result(call, logarithm ? 2 : 1, a->dtype(), Dims(a->ndim(), a->shape()));
  Tensor* pivots = call.result(logarithm ? 3 : 2, RL_INT32, with(batch, {n}));
  Temporary info(call, RL_INT32, batch);
  RL_RUN(a, rl_lu_factor(&a->desc, &lu->desc, &pivots->desc, info.desc()));
  if (a->is_meta()) return;
  TensorRef det = first->contiguous ? TensorRef::share(first) : empty_like(first);
  TensorRef size = !second || second->contiguous ? TensorRef::share(second) : empty_like(second);
  auto run = [&](auto example, auto real) {
    using T = decltype(example);
    using R = decltype(real);
    for (int64_t i = 0; i < first->numel; i++)
      determinant<T, R>(lu, pivots, i, logarithm ? nullptr : det->as<T>() + i, logarithm ? det->as<T>() + i : nullptr,
                        logarithm ? size->as<R>() + i : nullptr);
  };
  switch (a->dtype()) {
    case RL_FLOAT32:
      run(float{}, float{});
      break;
    case RL_FLOAT64:
      run(double{}, double{});
      break;
    case RL_COMPLEX64:
      run(std::complex<float>{}, float{});
      break;
    default:
      run(std::complex<double>{}, double{});
  }
  if (det.get() != first) copy_into(first, det.get());
  if (second && size.get() != second) copy_into(second, size.get());
}

}  // namespace

RL_OP(_linalg_det) { determinants(call, false); }
RL_OP(_linalg_slogdet) { determinants(call, true); }

RL_OP(linalg_lu_solve) {
  Tensor *lu = call.tensor(0), *pivots = call.tensor(1), *b = call.tensor(2);
  bool left = call.flag(3), adjoint = call.flag(4);
  check_square(call, "LU", lu);
  check_matrix(call, "B", b);
  check_same_dtype(call, lu, b, "LU", "B");
  RL_CHECK(pivots->dtype() == RL_INT32, Runtime, "linalg.lu_solve: pivots; expected int32, got %s",
           dtype_name(pivots->dtype()));
  int64_t n = lu->size(lu->ndim() - 1);
  RL_CHECK(pivots->ndim() >= 1 && pivots->size(pivots->ndim() - 1) == n && pivots->ndim() == lu->ndim() - 1, Runtime,
           "linalg.lu_solve: pivots; expected shape of LU without its last dimension, got %s beside LU of %s",
           shape_text(pivots).c_str(), shape_text(lu).c_str());
  for (int i = 0; i < pivots->ndim(); i++)
    RL_CHECK(pivots->size(i) == lu->size(i), Runtime,
             "linalg.lu_solve: pivots; expected shape of LU without its last dimension, got %s beside LU of %s",
             shape_text(pivots).c_str(), shape_text(lu).c_str());
  RL_CHECK(b->size(b->ndim() - (left ? 2 : 1)) == n, Runtime,
           "linalg.lu_solve: incompatible shapes of A and B for the equation %s; got LU %s and B %s",
           left ? "AX = B" : "XA = B", shape_text(lu).c_str(), shape_text(b).c_str());
  Dims batch = broadcast(call, batch_dims(lu, 2), batch_dims(b, 2));
  Tensor* out = matrix_result(call, 0, b->dtype(), with(batch, {b->size(b->ndim() - 2), b->size(b->ndim() - 1)}));
  Batched lus(lu, 2, batch), ps(pivots, 1, batch), bs(b, 2, batch);
  RL_RUN(out, rl_lu_solve(&lus.desc, &ps.desc, &bs.desc, left, adjoint, &out->desc));
}

// (A, B, left, check_errors) -> (result, LU, pivots, info).
RL_OP(_linalg_solve_ex) {
  Tensor *a = call.tensor(0), *b = call.tensor(1);
  bool left = call.flag(2);
  check_square(call, "A", a);
  check_same_dtype(call, a, b, "A", "B");
  int64_t n = a->size(a->ndim() - 1);
  // B is a vector, or a batch of them of A's batch shape: those of NumPy before 2.
  bool vector = b->ndim() == 1;
  if (!vector && b->ndim() == a->ndim() - 1 && b->ndim() > 0) {
    vector = true;
    for (int i = 0; i < b->ndim(); i++) vector = vector && b->size(i) == a->size(i);
  }
  RL_CHECK(b->ndim() >= 1, Runtime, "linalg.solve: B; expected at least 1 dimension, got shape []");
  RL_CHECK(!vector || left, Runtime,
           "linalg.solve: left=False is not for vectors; expected B to be a matrix or a batch of matrices, got %s",
           shape_text(b).c_str());
  RL_CHECK(b->size(b->ndim() - (vector || !left ? 1 : 2)) == n, Runtime,
           "linalg.solve: incompatible shapes of A and B for the equation %s; got A %s and B %s",
           left ? "AX = B" : "XA = B", shape_text(a).c_str(), shape_text(b).c_str());
  TensorRef columns;
  if (vector) columns = rl::call(ops::unsqueeze, {Value::of(b), Value::of(-1)});
  Tensor* matrix = vector ? columns.get() : b;
  Dims batch = broadcast(call, batch_dims(a, 2), batch_dims(matrix, 2));
  int64_t rows = matrix->size(matrix->ndim() - 2), width = matrix->size(matrix->ndim() - 1);
  Tensor* out = vector ? call.result(0, a->dtype(), with(batch, {rows}))
                       : matrix_result(call, 0, a->dtype(), with(batch, {rows, width}));
  Dims own = batch_dims(a, 2);
  int64_t copies = count_elements(batch.n, batch.v), originals = count_elements(own.n, own.v);
  Tensor* lu = matrix_result(call, 1, a->dtype(), Dims(a->ndim(), a->shape()));
  Tensor* pivots = call.result(2, RL_INT32, with(own, {n}));
  Tensor* info = call.result(3, RL_INT32, own);
  Batched bs(matrix, 2, batch);
  rl_tensor to = out->desc;
  Dims to_shape(out->ndim(), out->shape()), to_strides(out->ndim(), out->strides());
  if (vector) {
    to_shape.push(1);
    to_strides.push(std::max<int64_t>(1, rows));
    to.ndim++;
    to.shape = to_shape.v;
    to.strides = to_strides.v;
  }
  if (copies == originals && own.n == batch.n) {
    RL_RUN(out, rl_solve(&a->desc, &bs.desc, left, &to, &lu->desc, &pivots->desc, &info->desc));
  } else {
    RL_RUN(a, rl_lu_factor(&a->desc, &lu->desc, &pivots->desc, &info->desc));
    Batched lus(lu, 2, batch), ps(pivots, 1, batch);
    RL_RUN(out, rl_lu_solve(&lus.desc, &ps.desc, &bs.desc, left, 0, &to));
  }
  if (call.flag(3)) raise_failure(call, info, kSingular);
}

RL_OP(linalg_inv_ex) {
  Tensor* a = call.tensor(0);
  check_square(call, "A", a);
  Tensor* out = matrix_result(call, 0, a->dtype(), Dims(a->ndim(), a->shape()));
  Tensor* info = call.result(1, RL_INT32, batch_dims(a, 2));
  RL_RUN(a, rl_inverse(&a->desc, &out->desc, &info->desc));
  if (call.flag(1)) raise_failure(call, info, kSingularInverse);
}

RL_OP(linalg_solve_triangular) {
  Tensor *a = call.tensor(0), *b = call.tensor(1);
  bool upper = call.flag(2), left = call.flag(3), unit = call.flag(4);
  check_square(call, "A", a);
  check_matrix(call, "B", b);
  check_same_dtype(call, a, b, "A", "B");
  RL_CHECK(b->size(b->ndim() - (left ? 2 : 1)) == a->size(a->ndim() - 1), Runtime,
           "linalg.solve_triangular: incompatible shapes of A and B for the equation %s; got A %s and B %s",
           left ? "AX = B" : "XA = B", shape_text(a).c_str(), shape_text(b).c_str());
  Dims batch = broadcast(call, batch_dims(a, 2), batch_dims(b, 2));
  Tensor* out = matrix_result(call, 0, b->dtype(), with(batch, {b->size(b->ndim() - 2), b->size(b->ndim() - 1)}));
  Batched as(a, 2, batch), bs(b, 2, batch);
  int flags = (upper ? RL_UPPER : 0) | (left ? 0 : RL_RIGHT) | (unit ? RL_UNIT : 0);
  RL_RUN(out, rl_solve_triangular(&as.desc, &bs.desc, flags, &out->desc));
}

// ---------------------------------------------------------------- LDL

RL_OP(linalg_ldl_factor_ex) {
  Tensor* a = call.tensor(0);
  check_square(call, "A", a);
  Dims batch = batch_dims(a, 2);
  Tensor* ld = matrix_result(call, 0, a->dtype(), Dims(a->ndim(), a->shape()));
  Tensor* pivots = call.result(1, RL_INT32, with(batch, {a->size(a->ndim() - 1)}));
  Tensor* info = call.result(2, RL_INT32, batch);
  RL_RUN(a, rl_ldl_factor(&a->desc, call.flag(1), &ld->desc, &pivots->desc, &info->desc));
  if (call.flag(2)) raise_failure(call, info, "The factorization could not be completed: D[%d,%d] is exactly zero.");
}

RL_OP(linalg_ldl_solve) {
  Tensor *ld = call.tensor(0), *pivots = call.tensor(1), *b = call.tensor(2);
  check_square(call, "LD", ld);
  check_matrix(call, "B", b);
  check_same_dtype(call, ld, b, "LD", "B");
  int64_t n = ld->size(ld->ndim() - 1);
  RL_CHECK(pivots->dtype() == RL_INT32, Runtime, "linalg.ldl_solve: pivots; expected int32, got %s",
           dtype_name(pivots->dtype()));
  bool fits = pivots->ndim() == ld->ndim() - 1;
  for (int i = 0; fits && i < pivots->ndim(); i++) fits = pivots->size(i) == ld->size(i);
  RL_CHECK(fits, Runtime,
           "linalg.ldl_solve: pivots; expected shape of LD without its last dimension, got %s beside LD of %s",
           shape_text(pivots).c_str(), shape_text(ld).c_str());
  RL_CHECK(b->size(b->ndim() - 2) == n, Runtime, "linalg.ldl_solve: incompatible shapes; got LD %s and B %s",
           shape_text(ld).c_str(), shape_text(b).c_str());
  Dims batch = broadcast(call, batch_dims(ld, 2), batch_dims(b, 2));
  Tensor* out = matrix_result(call, 0, b->dtype(), with(batch, {n, b->size(b->ndim() - 1)}));
  Batched lds(ld, 2, batch), ps(pivots, 1, batch), bs(b, 2, batch);
  RL_RUN(out, rl_ldl_solve(&lds.desc, &ps.desc, &bs.desc, call.flag(3), &out->desc));
}

// ---------------------------------------------------------------- QR

RL_OP(geqrf) {
  Tensor* a = call.tensor(0);
  check_matrix(call, "input", a);
  int64_t k = std::min(a->size(a->ndim() - 1), a->size(a->ndim() - 2));
  Tensor* qr = matrix_result(call, 0, a->dtype(), Dims(a->ndim(), a->shape()));
  Tensor* tau = call.result(1, a->dtype(), with(batch_dims(a, 2), {k}));
  RL_RUN(a, rl_geqrf(&a->desc, &qr->desc, &tau->desc));
}

RL_OP(linalg_householder_product) {
  Tensor *a = call.tensor(0), *tau = call.tensor(1);
  check_matrix(call, "input", a);
  int64_t m = a->size(a->ndim() - 2), n = a->size(a->ndim() - 1);
  RL_CHECK(m >= n, Runtime,
           "linalg.householder_product: input; expected at least as many rows as columns, got shape %s",
           shape_text(a).c_str());
  RL_CHECK(tau->ndim() == a->ndim() - 1, Runtime,
           "linalg.householder_product: tau; expected one dimension less than input, got shapes %s and %s",
           shape_text(tau).c_str(), shape_text(a).c_str());
  int64_t k = tau->size(tau->ndim() - 1);
  RL_CHECK(k <= n, Runtime,
           "linalg.householder_product: tau; expected at most as many factors as input has columns, got %lld and %lld",
           static_cast<ll>(k), static_cast<ll>(n));
  for (int i = 0; i + 1 < tau->ndim(); i++)
    RL_CHECK(tau->size(i) == a->size(i), Runtime,
             "linalg.householder_product: tau; expected the batch dimensions of input, got shapes %s and %s",
             shape_text(tau).c_str(), shape_text(a).c_str());
  check_same_dtype(call, a, tau, "input", "tau");
  Tensor* out = matrix_result(call, 0, a->dtype(), Dims(a->ndim(), a->shape()));
  RL_RUN(a, rl_householder_product(&a->desc, &tau->desc, &out->desc));
}

RL_OP(ormqr) {
  Tensor *a = call.tensor(0), *tau = call.tensor(1), *c = call.tensor(2);
  bool left = call.flag(3), transpose = call.flag(4);
  check_matrix(call, "input", a);
  RL_CHECK(c->ndim() >= 2, Runtime, "ormqr: other; expected at least 2 dimensions, got shape %s",
           shape_text(c).c_str());
  int64_t order = c->size(c->ndim() - (left ? 2 : 1));
  RL_CHECK(tau->ndim() >= 1 && order >= tau->size(tau->ndim() - 1), Runtime,
           "ormqr: other.shape[%d] must be greater than or equal to tau.shape[-1], got shapes %s and %s",
           left ? -2 : -1, shape_text(c).c_str(), shape_text(tau).c_str());
  RL_CHECK(order == a->size(a->ndim() - 2), Runtime,
           "ormqr: other.shape[%d] must be equal to input.shape[-2], got shapes %s and %s", left ? -2 : -1,
           shape_text(c).c_str(), shape_text(a).c_str());
  RL_CHECK(tau->size(tau->ndim() - 1) <= a->size(a->ndim() - 1), Runtime,
           "ormqr: tau.shape[-1] must be less than or equal to input.shape[-1], got shapes %s and %s",
           shape_text(tau).c_str(), shape_text(a).c_str());
  RL_CHECK(tau->ndim() == a->ndim() - 1, Runtime, "ormqr: tau; expected one dimension less than input, got %s and %s",
           shape_text(tau).c_str(), shape_text(a).c_str());
  RL_CHECK(c->ndim() == a->ndim(), Runtime, "ormqr: other; expected as many dimensions as input, got %s and %s",
           shape_text(c).c_str(), shape_text(a).c_str());
  for (int i = 0; i + 2 < a->ndim(); i++)
    RL_CHECK(tau->size(i) == a->size(i) && c->size(i) == a->size(i), Runtime,
             "ormqr: expected batch dimensions of input for tau and other, got %s, %s and %s", shape_text(a).c_str(),
             shape_text(tau).c_str(), shape_text(c).c_str());
  check_same_dtype(call, a, tau, "input", "tau");
  check_same_dtype(call, a, c, "input", "other");
  Tensor* out = matrix_result(call, 0, a->dtype(), Dims(c->ndim(), c->shape()));
  RL_RUN(out, rl_ormqr(&a->desc, &tau->desc, &c->desc, left, transpose, &out->desc));
}

RL_OP(linalg_qr) {
  Tensor* a = call.tensor(0);
  check_matrix(call, "A", a);
  std::string mode = text_of(call[1]);
  RL_CHECK(mode == "reduced" || mode == "complete" || mode == "r", Runtime,
           "linalg.qr: mode; expected 'reduced', 'complete' or 'r', got '%s'", mode.c_str());
  Dims batch = batch_dims(a, 2);
  int64_t m = a->size(a->ndim() - 2), n = a->size(a->ndim() - 1), k = std::min(m, n);
  if (mode == "complete") k = m;
  bool with_q = mode != "r";
  Tensor* q = with_q ? matrix_result(call, 0, a->dtype(), with(batch, {m, k})) : call.result(0, a->dtype(), Dims{0});
  Tensor* r = matrix_result(call, 1, a->dtype(), with(batch, {k, n}));
  RL_RUN(a, rl_qr(&a->desc, with_q ? &q->desc : nullptr, &r->desc));
}

// ---------------------------------------------------------------- eigenvalues, singular values

RL_OP(_linalg_eigh) {  // (A, UPLO, compute_v) -> (eigenvalues, eigenvectors)
  Tensor* a = call.tensor(0);
  check_square(call, "A", a);
  std::string uplo = text_of(call[1]);
  RL_CHECK(uplo.size() == 1 && std::strchr("LlUu", uplo[0]), Runtime,
           "linalg.eigh: UPLO; expected 'L' or 'U', got '%s'", uplo.c_str());
  bool vectors = call.flag(2);
  int64_t n = a->size(a->ndim() - 1);
  Tensor* w = call.result(0, real_dtype(a->dtype()), with(batch_dims(a, 2), {n}));
  Tensor* v =
      vectors ? matrix_result(call, 1, a->dtype(), Dims(a->ndim(), a->shape())) : call.result(1, a->dtype(), Dims{0});
  Temporary info(call, RL_INT32, batch_dims(a, 2));
  RL_RUN(a, rl_eigh(&a->desc, uplo[0] == 'U' || uplo[0] == 'u', &w->desc, vectors ? &v->desc : nullptr, info.desc()));
  raise_failure(call, info.tensor.get(),
                "The algorithm failed to converge because the input matrix is ill-conditioned, has too many repeated "
                "eigenvalues or contains non-finite values (error code: %d).");
}

RL_OP(_linalg_eig) {  // (A, compute_v) -> (eigenvalues, eigenvectors)
  Tensor* a = call.tensor(0);
  check_square(call, "A", a);
  bool vectors = call.flag(1);
  if (!a->is_meta() && a->numel > 0) {
    TensorRef finite = rl::call(ops::isfinite, {Value::of(a)});
    TensorRef all = rl::call(ops::all, {Value::of(finite)});
    RL_CHECK(*all->as<bool>(), Runtime, "linalg.eig: the input should not contain infs or NaNs");
  }
  int64_t n = a->size(a->ndim() - 1);
  DType dtype = complex_dtype(a->dtype());
  Tensor* w = call.result(0, dtype, with(batch_dims(a, 2), {n}));
  Tensor* v = vectors ? matrix_result(call, 1, dtype, Dims(a->ndim(), a->shape())) : call.result(1, dtype, Dims{0});
  Temporary info(call, RL_INT32, batch_dims(a, 2));
  RL_RUN(a, rl_eig(&a->desc, &w->desc, vectors ? &v->desc : nullptr, info.desc()));
  raise_failure(call, info.tensor.get(),
                "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated "
                "eigenvalues (error code: %d).");
}

RL_OP(_linalg_svd) {  // (A, full_matrices, compute_uv) -> (U, S, Vh)
  Tensor* a = call.tensor(0);
  check_matrix(call, "A", a);
  bool full = call.flag(1), vectors = call.flag(2);
  Dims batch = batch_dims(a, 2);
  int64_t m = a->size(a->ndim() - 2), n = a->size(a->ndim() - 1), k = std::min(m, n);
  Tensor* u = vectors ? matrix_result(call, 0, a->dtype(), with(batch, {m, full ? m : k}))
                      : call.result(0, a->dtype(), Dims{0});
  Tensor* s = call.result(1, real_dtype(a->dtype()), with(batch, {k}));
  Tensor* vh = vectors ? matrix_result(call, 2, a->dtype(), with(batch, {full ? n : k, n}))
                       : call.result(2, a->dtype(), Dims{0});
  Temporary info(call, RL_INT32, batch);
  RL_RUN(a, rl_svd(&a->desc, vectors ? &u->desc : nullptr, &s->desc, vectors ? &vh->desc : nullptr, info.desc()));
  std::string where;
  int failed = first_failure(info.tensor.get(), where);
  if (failed < 0)
    throw_linalg_error("linalg.svd: " + where +
                       "The algorithm failed to converge because the input matrix contained non-finite values.");
  raise_failure(call, info.tensor.get(),
                "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated "
                "singular values (error code: %d).");
}

// ---------------------------------------------------------------- least squares

// (A, B, rcond, driver) -> (solution, residuals, rank, singular_values). B has a matrix for each of A.
RL_OP(_linalg_lstsq) {
  Tensor *a = call.tensor(0), *b = call.tensor(1);
  std::string name = text_of(call[3]);
  rl_lstsq_driver driver = name == "gels"    ? RL_GELS
                           : name == "gelsd" ? RL_GELSD
                           : name == "gelss" ? RL_GELSS
                                             : RL_GELSY;
  int64_t m = a->size(a->ndim() - 2), n = a->size(a->ndim() - 1), r = b->size(b->ndim() - 1);
  Dims batch = batch_dims(a, 2);
  TensorRef whole = empty(a->dtype(), with(batch, {std::max(m, n), r}), call.device());
  Tensor* rank = call.result(2, RL_INT64, driver == RL_GELS ? Dims{0} : batch);
  bool values = driver == RL_GELSD || driver == RL_GELSS;
  Tensor* s = call.result(3, real_dtype(a->dtype()), values ? with(batch, {std::min(m, n)}) : Dims{0});
  Temporary info(call, RL_INT32, batch);
  if (a->numel == 0 && !a->is_meta()) {
    zero(whole.get());
    if (rank->numel) zero(rank);
    if (s->numel) zero(s);
    zero(info.tensor.get());
  } else {
    RL_RUN(a, rl_lstsq(&a->desc, &b->desc, driver, call.real(2), &whole->desc,
                       driver == RL_GELS ? nullptr : &rank->desc, values ? &s->desc : nullptr, info.desc()));
  }
  raise_failure(call, info.tensor.get(),
                "The least squares solution could not be computed because the input matrix does not have full rank "
                "(error code: %d).");
  bool full_rank = true;
  if (driver != RL_GELS && !rank->is_meta()) {
    TensorRef plain = contiguous(rank);
    for (int64_t i = 0; i < plain->numel; i++) full_rank = full_rank && plain->as<int64_t>()[i] == n;
  }
  call.set(0, rl::call(ops::narrow, {Value::of(whole), Value::of(-2), Value::of(0), Value::of(n)}));
  if (m > n && full_rank && driver != RL_GELSY) {
    TensorRef rest = rl::call(ops::narrow, {Value::of(whole), Value::of(-2), Value::of(n), Value::of(m - n)});
    TensorRef sizes = rl::call(ops::abs, {Value::of(rest)});
    TensorRef squares = rl::call(ops::mul, {Value::of(sizes), Value::of(sizes)});
    call.set(1, rl::call(ops::sum_dim, {Value::of(squares), Value::of(Dims{-2})}));
  } else {
    call.set(1, empty(real_dtype(a->dtype()), Dims{0}, call.device()));
  }
}

// ---------------------------------------------------------------- with a derivative of their own, computed in Python

RL_OP(_linalg_pinv) { call.set(0, rl::call(ops::_pinv_forward, {call[0], call[1], call[2], call[3]})); }
RL_OP(_cdist) {
  Tensor *a = call.tensor(0), *b = call.tensor(1);
  if (call.flag(3)) return call.set(0, rl::call(ops::_cdist_product, {call[0], call[1]}));
  Dims batch = broadcast(call, batch_dims(a, 2), batch_dims(b, 2));
  Tensor* out = call.result(0, a->dtype(), with(batch, {a->size(a->ndim() - 2), b->size(b->ndim() - 2)}));
  if (out->is_meta()) return;
  Batched as(a, 2, batch), bs(b, 2, batch);
  GilRelease gil(out->numel >= 4096);
  check(rl_distances(&as.desc, &bs.desc, call.real(2), &out->desc));
}
RL_OP(_row_distance) { call.set(0, rl::call(ops::_row_distance_forward, {call[0], call[1], call[2]})); }
RL_OP(matrix_exp) {
  Tensor* a = call.tensor(0);
  RL_CHECK(is_float(a->dtype()) || is_complex(a->dtype()), Runtime,
           "linalg.matrix_exp: input; expected floating point or complex elements, got %s", dtype_name(a->dtype()));
  RL_CHECK(a->ndim() >= 2 && a->size(a->ndim() - 1) == a->size(a->ndim() - 2), Runtime,
           "linalg.matrix_exp: input must be batches of square matrices; got shape %s", shape_text(a).c_str());
  call.set(0, rl::call(ops::_matrix_exp_forward, {call[0]}));
}

}  // namespace rl
