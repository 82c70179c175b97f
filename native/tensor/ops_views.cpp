// Views: operations that only compute sizes and strides.
#include "op.h"
#include "ops.h"

namespace rl {

namespace {

using ll = long long;

TensorRef like(Tensor* t, const Dims& shape, const Dims& strides, int64_t offset = 0) {
  return make_view(t, shape, strides, offset);
}
Dims shape_of(const Tensor* t) { return Dims(t->ndim(), t->shape()); }
Dims strides_of(const Tensor* t) { return Dims(t->ndim(), t->strides()); }

void remove_dim(Dims& d, int at) {
  for (int i = at; i + 1 < d.n; i++) d[i] = d[i + 1];
  d.n--;
}
void insert_dim(Dims& d, int at, int64_t value) {
  d.push(0);
  for (int i = d.n - 1; i > at; i--) d[i] = d[i - 1];
  d[at] = value;
}

// A shape with one -1 filled in.
Dims infer_size(const Value& size, int64_t numel) {
  Dims d = size.dims();
  int unknown = -1;
  int64_t known = 1;
  for (int i = 0; i < d.n; i++) {
    if (d[i] == -1) {
      RL_CHECK(unknown < 0, Runtime, "only one dimension can be inferred, got shape %s", shape_text(d.n, d.v).c_str());
      unknown = i;
    } else {
      RL_CHECK(d[i] >= 0, Runtime, "invalid shape dimension %lld in %s", static_cast<ll>(d[i]),
               shape_text(d.n, d.v).c_str());
      if (__builtin_mul_overflow(known, d[i], &known)) known = -2;
    }
  }
  bool fits = unknown < 0 ? known == numel : known > 0 ? numel % known == 0 : false;
  if (unknown >= 0 && known == 0 && numel == 0)
    throw_error(ErrorKind::Runtime,
                "cannot reshape tensor of 0 elements into shape %s because the unspecified dimension size -1 can be "
                "any value and is ambiguous",
                shape_text(d.n, d.v).c_str());
  RL_CHECK(fits, Runtime, "shape '%s' is invalid for input of size %lld", shape_text(d.n, d.v).c_str(),
           static_cast<ll>(numel));
  if (unknown >= 0) d[unknown] = numel / known;
  return d;
}

// Strides for `shape` over the same memory; false when only a copy can have that shape.
bool view_strides(const Tensor* t, const Dims& shape, Dims& strides) {
  strides.n = shape.n;
  if (t->contiguous) {
    contiguous_strides(shape.n, shape.v, strides.v);
    return true;
  }
  if (t->numel == 0) {
    contiguous_strides(shape.n, shape.v, strides.v);
    return true;
  }
  // Walk from the innermost dim: runs of old dims that are contiguous among themselves take whole groups of new dims.
  int target = shape.n - 1;
  int64_t base = t->ndim() ? t->stride(t->ndim() - 1) : 1, run = 1, filled = 1;
  for (int d = t->ndim() - 1; d >= 0; d--) {
    run *= t->size(d);
    bool ends = d == 0 || (t->size(d - 1) != 1 && t->stride(d - 1) != run * base);
    if (!ends) continue;
    while (target >= 0 && (filled < run || shape[target] == 1)) {
      strides[target] = filled * base;
      filled *= shape[target--];
    }
    if (filled != run) return false;
    if (d > 0) {
      base = t->stride(d - 1);
      run = filled = 1;
    }
  }
  return target == -1;
}

}  // namespace

RL_OP(alias) {
  Tensor* t = call.tensor(0);
  call.set(0, make_view(t, t->ndim(), t->shape(), t->strides(), t->data()));
}

RL_OP(select) {
  Tensor* t = call.tensor(0);
  RL_CHECK(t->ndim() > 0, Index, "select() cannot be applied to a 0-dim tensor.");
  int dim = wrap_dim(call.integer(1), t->ndim());
  int64_t i = call.integer(2), n = t->size(dim);
  RL_CHECK(i >= -n && i < n, Index, "select(): index %lld out of range for tensor of size %s at dimension %d",
           static_cast<ll>(i), shape_text(t).c_str(), dim);
  if (i < 0) i += n;
  Dims shape = shape_of(t), strides = strides_of(t);
  int64_t offset = i * strides[dim];
  remove_dim(shape, dim);
  remove_dim(strides, dim);
  call.set(0, like(t, shape, strides, offset));
}

namespace {

TensorRef narrow(Tensor* t, int64_t dim_argument, int64_t start, int64_t length) {
  RL_CHECK(t->ndim() > 0, Runtime, "narrow() cannot be applied to a 0-dim tensor.");
  int dim = wrap_dim(dim_argument, t->ndim());
  int64_t n = t->size(dim);
  RL_CHECK(length >= 0, Runtime, "narrow(): length must be non-negative, got %lld", static_cast<ll>(length));
  RL_CHECK(start >= -n && start <= n, Index,
           "start out of range (expected to be in range of [%lld, %lld], but got %lld)", static_cast<ll>(-n),
           static_cast<ll>(n), static_cast<ll>(start));
  if (start < 0) start += n;
  RL_CHECK(start <= n - length, Runtime, "start (%lld) + length (%lld) exceeds dimension size (%lld).",
           static_cast<ll>(start), static_cast<ll>(length), static_cast<ll>(n));
  Dims shape = shape_of(t);
  shape[dim] = length;
  return like(t, shape, strides_of(t), start * t->stride(dim));
}

TensorRef zeros_of(const Tensor* grad, const Value& size) {
  Dims d = size.dims();
  TensorRef z = empty(grad->dtype(), d, grad->device());
  fill_value(z.get(), Value::of(0));
  return z;
}

}  // namespace

RL_OP(narrow) { call.set(0, narrow(call.tensor(0), call.integer(1), call.integer(2), call.integer(3))); }
RL_OP(narrow_tensor) {
  Tensor* start = call.tensor(2);
  RL_CHECK(start->ndim() == 0 && is_integral(start->dtype()), Runtime, "start must be an 0-dim integral Tensor.");
  RL_CHECK(!start->is_meta(), Runtime, "narrow(): start must not be a meta tensor");
  TensorRef i = cast(start, RL_INT64);
  call.set(0, rl::call(ops::narrow, {call[0], call[1], Value::of(*i->as<int64_t>()), call[3]}));
}
RL_OP(_narrow_like) {
  int dim = wrap_dim(call.integer(2), call.tensor(0)->ndim());
  call.set(0, narrow(call.tensor(0), dim, call.integer(3), call[1].ints[dim]));
}
RL_OP(_narrow_backward) {
  Tensor* g = call.tensor(0);
  TensorRef z = zeros_of(g, call[1]);
  int dim = wrap_dim(call.integer(2), z->ndim());
  int64_t start = call.integer(3) < 0 ? call.integer(3) + z->size(dim) : call.integer(3);
  TensorRef part = narrow(z.get(), dim, start, g->size(dim));
  if (!z->is_meta()) copy_into(part.get(), g);
  call.set(0, std::move(z));
}
RL_OP(select_backward) {
  Tensor* g = call.tensor(0);
  TensorRef z = zeros_of(g, call[1]);
  int dim = wrap_dim(call.integer(2), z->ndim());
  int64_t i = call.integer(3) < 0 ? call.integer(3) + z->size(dim) : call.integer(3);
  Dims shape = shape_of(z.get()), strides = strides_of(z.get());
  int64_t offset = i * strides[dim];
  remove_dim(shape, dim);
  remove_dim(strides, dim);
  TensorRef part = like(z.get(), shape, strides, offset);
  if (!z->is_meta()) copy_into(part.get(), g);
  call.set(0, std::move(z));
}

namespace {

TensorRef slice(Tensor* t, int64_t dim_argument, const Value& start_argument, const Value& end_argument, int64_t step) {
  RL_CHECK(t->ndim() > 0, Runtime, "slice() cannot be applied to a 0-dim tensor.");
  int dim = wrap_dim(dim_argument, t->ndim());
  RL_CHECK(step > 0, Value, "slice step must be positive, got %lld", static_cast<ll>(step));
  int64_t n = t->size(dim);
  auto clamp = [&](int64_t i) { return std::min(std::max<int64_t>(i < 0 ? i + n : i, 0), n); };
  int64_t start = start_argument.is_none() ? 0 : clamp(start_argument.integer);
  int64_t end = std::max(start, end_argument.is_none() ? n : clamp(end_argument.integer));
  Dims shape = shape_of(t), strides = strides_of(t);
  shape[dim] = (end - start + step - 1) / step;
  strides[dim] *= step;
  return like(t, shape, strides, start * t->stride(dim));
}

}  // namespace

RL_OP(slice) { call.set(0, slice(call.tensor(0), call.integer(1), call[2], call[3], call.integer(4))); }
RL_OP(slice_backward) {
  TensorRef z = zeros_of(call.tensor(0), call[1]);
  TensorRef part = slice(z.get(), call.integer(2), call[3], call[4], call.integer(5));
  if (!z->is_meta()) copy_into(part.get(), call.tensor(0));
  call.set(0, std::move(z));
}
RL_OP(_basic_index_backward) {
  TensorRef z = zeros_of(call.tensor(0), call[1]);
  TensorRef part;
  {
    GradGuard off(false);
    part = rl::call(ops::_basic_index, {Value::of(z), call[2]});
  }
  if (!z->is_meta()) copy_into(part.get(), call.tensor(0));
  call.set(0, std::move(z));
}

// ---------------------------------------------------------------- shapes

RL_OP(view) {
  Tensor* t = call.tensor(0);
  Dims shape = infer_size(call[1], t->numel), strides;
  RL_CHECK(view_strides(t, shape, strides), Runtime,
           "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
           "contiguous "
           "subspaces). Use .reshape(...) instead. (view of shape %s, strides %s as %s)",
           shape_text(t).c_str(), shape_text(t->ndim(), t->strides()).c_str(), shape_text(shape.n, shape.v).c_str());
  call.set(0, like(t, shape, strides));
}

RL_OP(_reshape_alias) { op_view(call); }

RL_OP(view_as_dtype) {
  Tensor* t = call.tensor(0);
  RL_CHECK(!t->lazy(), Runtime,
           "view(dtype): not supported for conjugated or negated views; use resolve_conj() or resolve_neg() first");
  DType to = call[1].dtype;
  int64_t from_size = itemsize(t->dtype()), to_size = itemsize(to);
  Dims shape = shape_of(t), strides = strides_of(t);
  if (to_size != from_size) {
    RL_CHECK(t->ndim() > 0, Runtime, "self.dim() cannot be 0 to view %s as %s (different element sizes)",
             dtype_title(t->dtype()), dtype_title(to));
    int last = t->ndim() - 1;
    RL_CHECK(t->stride(last) == 1 || t->numel == 0, Runtime,
             "self.stride(-1) must be 1 to view %s as %s (different element sizes), but got %lld",
             dtype_title(t->dtype()), dtype_title(to), static_cast<ll>(t->stride(last)));
    if (to_size > from_size) {
      int64_t ratio = to_size / from_size;
      RL_CHECK(shape[last] % ratio == 0, Runtime,
               "self.size(-1) must be divisible by %lld to view %s as %s (different element sizes), but got %lld",
               static_cast<ll>(ratio), dtype_title(t->dtype()), dtype_title(to), static_cast<ll>(shape[last]));
      RL_CHECK(
          t->offset() % ratio == 0, Runtime,
          "self.storage_offset() must be divisible by %lld to view %s as %s (different element sizes), but got %lld",
          static_cast<ll>(ratio), dtype_title(t->dtype()), dtype_title(to), static_cast<ll>(t->offset()));
      for (int i = 0; i < last; i++) {
        RL_CHECK(strides[i] % ratio == 0, Runtime,
                 "self.stride(%d) must be divisible by %lld to view %s as %s (different element sizes), but got %lld",
                 i, static_cast<ll>(ratio), dtype_title(t->dtype()), dtype_title(to), static_cast<ll>(strides[i]));
        strides[i] /= ratio;
      }
      shape[last] /= ratio;
    } else {
      int64_t ratio = from_size / to_size;
      for (int i = 0; i < last; i++) strides[i] *= ratio;
      shape[last] *= ratio;
    }
  }
  call.set(0, view_dtype(t, to, shape, strides, t->data()));
}

RL_OP(reshape) {
  Tensor* t = call.tensor(0);
  Dims shape = infer_size(call[1], t->numel), strides;
  if (view_strides(t, shape, strides)) {
    call.set(0, rl::call(ops::view, {call[0], Value::of(shape)}));
    return;
  }
  TensorRef copy = rl::call(ops::clone, {call[0], Value::of(int64_t{0})});
  call.set(0, rl::call(ops::view, {Value::of(copy), Value::of(shape)}));
}

RL_OP(permute) {
  Tensor* t = call.tensor(0);
  const Value& dims = call[1];
  RL_CHECK(static_cast<int>(dims.size) == t->ndim(), Runtime,
           "permute: number of dimensions in the tensor input does not match the length of the desired ordering of "
           "dimensions i.e. "
           "input.dim() = %d is not equal to len(dims) = %u",
           t->ndim(), dims.size);
  Dims shape, strides;
  uint64_t seen = 0;
  for (int i = 0; i < t->ndim(); i++) {
    int d = wrap_dim(dims.ints[i], t->ndim());
    RL_CHECK(!(seen >> d & 1), Runtime, "permute(): duplicate dims are not allowed, got %s",
             shape_text(static_cast<int>(dims.size), dims.ints).c_str());
    seen |= uint64_t{1} << d;
    shape.push(t->size(d));
    strides.push(t->stride(d));
  }
  call.set(0, like(t, shape, strides));
}

RL_OP(_permute_inverse) {
  Tensor* t = call.tensor(0);
  Dims shape = shape_of(t), strides = strides_of(t);
  for (int i = 0; i < t->ndim(); i++) {
    int d = wrap_dim(call[1].ints[i], t->ndim());
    shape[d] = t->size(i);
    strides[d] = t->stride(i);
  }
  call.set(0, like(t, shape, strides));
}

RL_OP(transpose) {
  Tensor* t = call.tensor(0);
  int a = wrap_dim(call.integer(1), t->ndim()), b = wrap_dim(call.integer(2), t->ndim());
  Dims shape = shape_of(t), strides = strides_of(t);
  if (t->ndim()) {
    std::swap(shape[a], shape[b]);
    std::swap(strides[a], strides[b]);
  }
  call.set(0, like(t, shape, strides));
}

RL_OP(t) {
  Tensor* t = call.tensor(0);
  RL_CHECK(t->ndim() <= 2, Runtime, "t() expects a tensor with <= 2 dimensions, but self is %dD", t->ndim());
  Dims shape = shape_of(t), strides = strides_of(t);
  if (t->ndim() == 2) {
    std::swap(shape[0], shape[1]);
    std::swap(strides[0], strides[1]);
  }
  call.set(0, like(t, shape, strides));
}

RL_OP(expand) {
  Tensor* t = call.tensor(0);
  Dims shape = call[1].dims(), strides;
  RL_CHECK(shape.n >= t->ndim(), Runtime,
           "expand(%s, size=%s): the number of sizes provided (%d) must be greater or equal to the number of "
           "dimensions in the tensor (%d)",
           shape_text(t).c_str(), shape_text(shape.n, shape.v).c_str(), shape.n, t->ndim());
  strides.n = shape.n;
  for (int i = 0; i < shape.n; i++) {
    int d = i - (shape.n - t->ndim());
    if (d < 0) {
      RL_CHECK(shape[i] >= 0, Runtime,
               "The expanded size of the tensor (%lld) isn't allowed in a leading, non-existing dimension %d",
               static_cast<ll>(shape[i]), i);
      strides[i] = 0;
      continue;
    }
    if (shape[i] == -1) shape[i] = t->size(d);
    RL_CHECK(shape[i] >= 0, Runtime, "expand(): sizes must not be negative, got %s",
             shape_text(shape.n, shape.v).c_str());
    if (t->size(d) == shape[i]) {
      strides[i] = t->stride(d);
    } else {
      RL_CHECK(t->size(d) == 1, Runtime,
               "The expanded size of the tensor (%lld) must match the existing size (%lld) at non-singleton dimension "
               "%d.  Target sizes: %s.  "
               "Tensor sizes: %s",
               static_cast<ll>(shape[i]), static_cast<ll>(t->size(d)), i, shape_text(shape.n, shape.v).c_str(),
               shape_text(t).c_str());
      strides[i] = 0;
    }
  }
  count_elements(shape.n, shape.v);
  call.set(0, like(t, shape, strides));
}

RL_OP(squeeze) {
  Tensor* t = call.tensor(0);
  Dims shape, strides;
  for (int i = 0; i < t->ndim(); i++) {
    if (t->size(i) == 1) continue;
    shape.push(t->size(i));
    strides.push(t->stride(i));
  }
  call.set(0, like(t, shape, strides));
}
RL_OP(squeeze_dim) {
  Tensor* t = call.tensor(0);
  int dim = wrap_dim(call.integer(1), t->ndim());
  Dims shape = shape_of(t), strides = strides_of(t);
  if (t->ndim() && shape[dim] == 1) {
    remove_dim(shape, dim);
    remove_dim(strides, dim);
  }
  call.set(0, like(t, shape, strides));
}
RL_OP(squeeze_dims) {
  Tensor* t = call.tensor(0);
  uint64_t drop = 0;
  for (uint32_t i = 0; i < call[1].size; i++) {
    int d = wrap_dim(call[1].ints[i], t->ndim());
    RL_CHECK(!(drop >> d & 1), Runtime, "dim %d appears multiple times in the list of dims", d);
    drop |= uint64_t{1} << d;
  }
  Dims shape, strides;
  for (int i = 0; i < t->ndim(); i++) {
    if ((drop >> i & 1) && t->size(i) == 1) continue;
    shape.push(t->size(i));
    strides.push(t->stride(i));
  }
  call.set(0, like(t, shape, strides));
}
RL_OP(unsqueeze) {
  Tensor* t = call.tensor(0);
  int dim = wrap_dim(call.integer(1), t->ndim() + 1);
  Dims shape = shape_of(t), strides = strides_of(t);
  int64_t stride = dim < t->ndim() ? t->size(dim) * t->stride(dim) : 1;
  insert_dim(shape, dim, 1);
  insert_dim(strides, dim, stride);
  call.set(0, like(t, shape, strides));
}
RL_OP(flatten) {
  Tensor* t = call.tensor(0);
  int start = wrap_dim(call.integer(1), t->ndim()), end = wrap_dim(call.integer(2), t->ndim());
  RL_CHECK(start <= end, Runtime, "flatten() has invalid args: start_dim cannot come after end_dim (%d, %d)", start,
           end);
  Dims shape;
  if (t->ndim() == 0) {
    shape.push(1);
  } else {
    if (start == end) {
      call.set(0, TensorRef::share(t));
      return;
    }
    int64_t merged = 1;
    for (int i = 0; i < t->ndim(); i++) {
      if (i < start || i > end) {
        shape.push(t->size(i));
        continue;
      }
      merged *= t->size(i);
      if (i == end) shape.push(merged);
    }
  }
  call.set(0, rl::call(ops::reshape, {call[0], Value::of(shape)}));
}
RL_OP(unflatten) {
  Tensor* t = call.tensor(0);
  int dim = wrap_dim(call.integer(1), t->ndim());
  RL_CHECK(call[2].size > 0, Runtime, "unflatten: sizes must be non-empty");
  RL_CHECK(t->ndim() > 0, Index, "unflatten: a 0-dim tensor has no dimension to divide");
  int64_t product = 1, unknown = 0;
  for (uint32_t i = 0; i < call[2].size; i++) {
    if (call[2].ints[i] == -1)
      unknown++;
    else
      product *= call[2].ints[i];
  }
  RL_CHECK(unknown <= 1, Runtime, "only one dimension can be inferred, got sizes %s",
           shape_text(static_cast<int>(call[2].size), call[2].ints).c_str());
  RL_CHECK(unknown ? product > 0 && t->size(dim) % product == 0 : product == t->size(dim), Runtime,
           "unflatten: Provided sizes %s don't multiply up to the size of dim %d (%lld) in the input tensor",
           shape_text(static_cast<int>(call[2].size), call[2].ints).c_str(), dim, static_cast<ll>(t->size(dim)));
  Dims shape;
  for (int i = 0; i < t->ndim(); i++) {
    if (i != dim) {
      shape.push(t->size(i));
      continue;
    }
    for (uint32_t k = 0; k < call[2].size; k++)
      shape.push(call[2].ints[k] == -1 ? t->size(dim) / product : call[2].ints[k]);
  }
  call.set(0, rl::call(ops::view, {call[0], Value::of(shape)}));
}

RL_OP(as_strided) {
  Tensor* t = call.tensor(0);
  Dims shape = call[1].dims(), strides = call[2].dims();
  RL_CHECK(shape.n == strides.n, Runtime,
           "mismatch in length of strides and shape: as_strided got size %s and stride %s",
           shape_text(shape.n, shape.v).c_str(), shape_text(strides.n, strides.v).c_str());
  int64_t offset = call.integer_or(3, t->offset());
  RL_CHECK(offset >= 0, Runtime, "as_strided: storage_offset must not be negative, got %lld", static_cast<ll>(offset));
  int64_t n = count_elements(shape.n, shape.v), last = offset;
  for (int i = 0; i < shape.n; i++) {
    RL_CHECK(strides[i] >= 0, Runtime, "as_strided: Negative strides are not supported at the moment, got strides: %s",
             shape_text(strides.n, strides.v).c_str());
    int64_t step = 0;
    if (n > 0)
      RL_CHECK(!__builtin_mul_overflow(shape[i] - 1, strides[i], &step) && !__builtin_add_overflow(last, step, &last),
               Runtime, "as_strided: sizes and strides overflow");
  }
  int64_t size = itemsize(t->dtype());
  RL_CHECK(n == 0 || last < static_cast<int64_t>(t->storage->nbytes) / size, Runtime,
           "setStorage: sizes %s, strides %s, storage offset %lld, and itemsize %lld requiring a storage size of %lld "
           "are out of bounds for "
           "storage of size %zu",
           shape_text(shape.n, shape.v).c_str(), shape_text(strides.n, strides.v).c_str(), static_cast<ll>(offset),
           static_cast<ll>(size), static_cast<ll>((last + 1) * size), t->storage->nbytes);
  call.set(0, make_view(t, shape.n, shape.v, strides.v, static_cast<char*>(t->storage->data) + offset * size));
}

RL_OP(diagonal) {
  Tensor* t = call.tensor(0);
  int a = wrap_dim(call.integer(2), t->ndim()), b = wrap_dim(call.integer(3), t->ndim());
  RL_CHECK(a != b, Runtime, "diagonal dimensions cannot be identical %lld, %lld", static_cast<ll>(call.integer(2)),
           static_cast<ll>(call.integer(3)));
  int64_t offset = call.integer(1);
  int64_t n = offset >= 0 ? std::min(t->size(a), t->size(b) - offset) : std::min(t->size(a) + offset, t->size(b));
  n = std::max<int64_t>(n, 0);
  int64_t start = n == 0 ? 0 : offset >= 0 ? offset * t->stride(b) : -offset * t->stride(a);
  Dims shape, strides;
  for (int i = 0; i < t->ndim(); i++) {
    if (i == a || i == b) continue;
    shape.push(t->size(i));
    strides.push(t->stride(i));
  }
  shape.push(n);
  strides.push(t->stride(a) + t->stride(b));
  call.set(0, like(t, shape, strides, start));
}
RL_OP(diagonal_backward) {
  TensorRef z = zeros_of(call.tensor(0), call[1]);
  GradGuard off(false);
  TensorRef part = rl::call(ops::diagonal, {Value::of(z), call[2], call[3], call[4]});
  if (!z->is_meta()) copy_into(part.get(), call.tensor(0));
  call.set(0, std::move(z));
}

RL_OP(unfold) {
  Tensor* t = call.tensor(0);
  int64_t size = call.integer(2), step = call.integer(3);
  int dim = wrap_dim(call.integer(1), t->ndim());
  int64_t limit = t->ndim() ? t->size(dim) : 1;
  RL_CHECK(size >= 0, Runtime, "size is %lld but must be >= 0", static_cast<ll>(size));
  RL_CHECK(size <= limit, Runtime, "maximum size for tensor at dimension %d is %lld but size is %lld", dim,
           static_cast<ll>(limit), static_cast<ll>(size));
  RL_CHECK(step > 0, Runtime, "step is %lld but must be > 0", static_cast<ll>(step));
  Dims shape = shape_of(t), strides = strides_of(t);
  if (t->ndim() == 0) {
    call.set(0, like(t, Dims{size}, Dims{1}));
    return;
  }
  int64_t stride = strides[dim];
  shape[dim] = (limit - size) / step + 1;
  strides[dim] = step * stride;
  shape.push(size);
  strides.push(stride);
  call.set(0, like(t, shape, strides));
}
RL_OP(_unfold_backward) {
  TensorRef z = zeros_of(call.tensor(0), call[1]);
  Tensor* g = call.tensor(0);
  if (!z->is_meta() && g->numel) {
    GradGuard off(false);
    TensorRef windows = rl::call(ops::unfold, {Value::of(z), call[2], call[3], call[4]});
    // Windows may share elements: add them one position of the window at a time.
    for (int64_t i = 0; i < windows->size(windows->ndim() - 1); i++) {
      TensorRef to = rl::call(ops::select, {Value::of(windows), Value::of(-1), Value::of(i)});
      TensorRef from = rl::call(ops::select, {Value::of(g), Value::of(-1), Value::of(i)});
      call_inplace(ops::add, {Value::of(to), Value::of(from), Value::of(1)});
    }
  }
  call.set(0, std::move(z));
}

RL_OP(view_as_real) {
  Tensor* t = call.tensor(0);
  RL_CHECK(is_complex(t->dtype()), Runtime, "view_as_real is only supported for complex tensors, got %s",
           dtype_name(t->dtype()));
  RL_CHECK(!(t->lazy() & kConjugated), Runtime,
           "view_as_real doesn't work on unresolved conjugated tensors; use resolve_conj() first, which copies");
  Dims shape = shape_of(t), strides = strides_of(t);
  for (int i = 0; i < strides.n; i++) strides[i] *= 2;
  shape.push(2);
  strides.push(1);
  call.set(0, view_dtype(t, real_dtype(t->dtype()), shape, strides, t->data()));
}
RL_OP(view_as_complex) {
  Tensor* t = call.tensor(0);
  RL_CHECK(is_float(t->dtype()) && t->dtype() != RL_BFLOAT16, Runtime,
           "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: %s",
           dtype_title(t->dtype()));
  int last = t->ndim() - 1;
  RL_CHECK(last >= 0, Runtime, "Input tensor must have one or more dimensions");
  RL_CHECK(t->size(last) == 2, Runtime, "Tensor must have a last dimension of size 2, got shape %s",
           shape_text(t).c_str());
  RL_CHECK(t->stride(last) == 1, Runtime, "Tensor must have a last dimension with stride 1, got strides %s",
           shape_text(t->ndim(), t->strides()).c_str());
  Dims shape = shape_of(t), strides = strides_of(t);
  shape.n--;
  strides.n--;
  for (int i = 0; i < strides.n; i++) {
    RL_CHECK(strides[i] % 2 == 0, Runtime,
             "Tensor must have a stride divisible by 2 for all but last dimension, got strides %s",
             shape_text(t->ndim(), t->strides()).c_str());
    strides[i] /= 2;
  }
  RL_CHECK(t->offset() % 2 == 0, Runtime, "Tensor must have a storage_offset divisible by 2, got %lld",
           static_cast<ll>(t->offset()));
  call.set(0, view_dtype(t, complex_dtype(t->dtype()), shape, strides, t->data()));
}

// ---------------------------------------------------------------- several views

namespace {

std::vector<TensorRef> pieces(Tensor* t, int dim, const std::vector<int64_t>& sizes) {
  std::vector<TensorRef> list;
  int64_t start = 0;
  Dims shape = shape_of(t), strides = strides_of(t);
  for (int64_t n : sizes) {
    shape[dim] = n;
    list.push_back(like(t, shape, strides, start * t->stride(dim)));
    start += n;
  }
  return list;
}

std::vector<int64_t> equal_sizes(int64_t total, int64_t size) {
  std::vector<int64_t> sizes;
  if (size == 0) return {0};
  int64_t n = std::max<int64_t>((total + size - 1) / size, 1);
  for (int64_t i = 0; i < n; i++) sizes.push_back(std::min(size, total - i * size));
  return sizes;
}

}  // namespace

RL_OP(split) {
  Tensor* t = call.tensor(0);
  RL_CHECK(t->ndim() > 0, Runtime, "split expects at least a 1-dimensional tensor");
  int dim = wrap_dim(call.integer(2), t->ndim());
  int64_t size = call.integer(1);
  RL_CHECK(size >= 0, Runtime, "split expects split_size be non-negative, but got split_size=%lld",
           static_cast<ll>(size));
  RL_CHECK(size > 0 || t->size(dim) == 0, Runtime,
           "split_size can only be 0 if dimension size is 0, but got dimension size of %lld",
           static_cast<ll>(t->size(dim)));
  call.set_list(0, pieces(t, dim, equal_sizes(t->size(dim), size)));
}
RL_OP(split_with_sizes) {
  Tensor* t = call.tensor(0);
  RL_CHECK(t->ndim() > 0, Runtime, "split_with_sizes expects at least a 1-dimensional tensor");
  int dim = wrap_dim(call.integer(2), t->ndim());
  std::vector<int64_t> sizes;
  int64_t sum = 0;
  for (uint32_t i = 0; i < call[1].size; i++) {
    int64_t n = call[1].ints[i];
    RL_CHECK(n >= 0, Runtime,
             "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes=%s",
             shape_text(static_cast<int>(call[1].size), call[1].ints).c_str());
    sizes.push_back(n);
    sum += n;
  }
  RL_CHECK(sum == t->size(dim), Runtime,
           "split_with_sizes expects split_sizes to sum exactly to %lld (input tensor's size at dimension %d), but got "
           "split_sizes=%s",
           static_cast<ll>(t->size(dim)), dim, shape_text(static_cast<int>(call[1].size), call[1].ints).c_str());
  call.set_list(0, pieces(t, dim, sizes));
}
RL_OP(chunk) {
  Tensor* t = call.tensor(0);
  int64_t chunks = call.integer(1);
  RL_CHECK(t->ndim() > 0, Runtime, "chunk expects at least a 1-dimensional tensor");
  RL_CHECK(chunks > 0, Runtime, "chunk expects `chunks` to be greater than 0, got: %lld", static_cast<ll>(chunks));
  int dim = wrap_dim(call.integer(2), t->ndim());
  int64_t n = t->size(dim), size = (n + chunks - 1) / chunks;
  if (size == 0) {  // all pieces of an empty dimension are empty
    call.set_list(0, pieces(t, dim, std::vector<int64_t>(static_cast<size_t>(chunks), 0)));
    return;
  }
  call.set_list(0, pieces(t, dim, equal_sizes(n, size)));
}
RL_OP(unbind) {
  Tensor* t = call.tensor(0);
  RL_CHECK(t->ndim() > 0, Index, "Dimension specified as %lld but tensor has no dimensions",
           static_cast<ll>(call.integer(1)));
  int dim = wrap_dim(call.integer(1), t->ndim());
  Dims shape = shape_of(t), strides = strides_of(t);
  remove_dim(shape, dim);
  remove_dim(strides, dim);
  std::vector<TensorRef> list;
  for (int64_t i = 0; i < t->size(dim); i++) list.push_back(like(t, shape, strides, i * t->stride(dim)));
  call.set_list(0, std::move(list));
}

}  // namespace rl
