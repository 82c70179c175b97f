// Copies, conversions and joins.
#include "../autograd/autograd.h"
#include "op.h"
#include "ops.h"
#include "rushlight/cat.h"

namespace rl {

namespace {

using ll = long long;
constexpr int64_t kContiguousFormat = 0, kPreserveFormat = 1, kChannelsLast = 2;

// Whether t lies in memory as a copy of it in this format would.
bool has_format(const Tensor* t, int64_t format) {
  if (format == kPreserveFormat) return true;
  if (format == kContiguousFormat) return t->contiguous;
  TensorRef wanted = empty_in_format(t, t->dtype(), format, t->device());
  for (int i = 0; i < t->ndim(); i++)
    if (t->size(i) != 1 && t->stride(i) != wanted->stride(i)) return false;
  return true;
}

}  // namespace

TensorRef empty_in_format(const Tensor* t, DType dtype, int64_t format, Device device) {
  if (format == kPreserveFormat && device == t->device()) return empty_preserve(t, dtype);
  if (format == kPreserveFormat) {
    TensorRef same = empty_strided(t->dtype(), t->ndim(), t->shape(), t->strides(), Device::Meta);
    TensorRef layout = empty_preserve(same.get(), dtype);
    return empty_strided(dtype, t->ndim(), t->shape(), layout->strides(), device);
  }
  if (format == kContiguousFormat) return empty(dtype, t->ndim(), t->shape(), device);
  int ndim = format == kChannelsLast ? 4 : 5;
  RL_CHECK(t->ndim() == ndim, Runtime, "required rank %d tensor to use channels_last%s format, got shape %s", ndim,
           ndim == 5 ? "_3d" : "", shape_text(t).c_str());
  int64_t strides[5], step = 1;
  auto set = [&](int d) {
    strides[d] = step;
    step *= t->size(d) > 1 ? t->size(d) : 1;
  };
  set(1);
  for (int d = ndim - 1; d >= 2; d--) set(d);
  set(0);
  return empty_strided(dtype, ndim, t->shape(), strides, device);
}

// Whether the strides grow as in channels last, from the channels over the last dims to the first; there may be gaps.
bool ordered_as_channels_last(const Tensor* t) {
  const int n = t->ndim();
  if (n < 4 || n > 5 || t->stride(1) == 0) return false;
  int64_t least = 0;
  for (int i = 0; i < n; i++) {
    const int dim = i == n - 1 ? 0 : i == 0 ? 1 : n - i;
    if (t->size(dim) == 0 || t->stride(dim) < least) return false;
    if (dim == 0 && least == t->stride(1)) return false;  // all sizes are 1: row-major just as well
    least = t->stride(dim) * t->size(dim);
  }
  return true;
}

void keep_order(const Op& op, const Value* args, Value* results) {
  bool last = false;
  for (uint32_t m = op.order_mask; m && !last; m &= m - 1) {
    const Value& v = args[__builtin_ctz(m)];
    if (v.tag == Tag::Tensor) {
      last = ordered_as_channels_last(v.tensor);
    } else if (v.tag == Tag::TensorList && v.size) {
      last = true;
      for (uint32_t i = 0; i < v.size; i++) last = last && v.tensors[i] && ordered_as_channels_last(v.tensors[i]);
    }
  }
  if (RL_LIKELY(!last)) return;
  for (int i = 0; i < op.result_count; i++) {
    Tensor* t = results[i].tag == Tag::Tensor ? results[i].tensor : nullptr;
    if (!t || t->ndim() < 4 || t->ndim() > 5 || t->is_wrapped() || t->grad_fn || ordered_as_channels_last(t)) continue;
    TensorRef ordered = empty_in_format(t, t->dtype(), t->ndim() == 4 ? kChannelsLast : kChannelsLast + 1, t->device());
    if (!t->is_meta()) copy_into(ordered.get(), t);
    results[i] = Value::of(ordered.take());
    release(t);
  }
}

RL_OP(_ordered_like) {
  Tensor *t = call.tensor(0), *like = call.tensor(1);
  if (t->ndim() == like->ndim() && ordered_as_channels_last(like) && !ordered_as_channels_last(t))
    call.set(0, rl::call(ops::clone, {call[0], Value::of(t->ndim() == 4 ? kChannelsLast : kChannelsLast + 1)}));
  else
    call.set(0, TensorRef::share(t));
}

RL_OP(clone) {
  Tensor* t = call.tensor(0);
  TensorRef copy = empty_in_format(t, t->dtype(), call.integer_or(1, kPreserveFormat), t->device());
  if (!t->is_meta()) copy_into(copy.get(), t);
  call.set(0, std::move(copy));
}

RL_OP(_without_derivative) { call.set(0, rl::call(ops::clone, {call[0]})); }

RL_OP(contiguous) {
  Tensor* t = call.tensor(0);
  int64_t format = call.integer(1);
  RL_CHECK(format != kPreserveFormat || t->contiguous, Runtime,
           "preserve memory format is unsupported by the contiguous operator");
  if (has_format(t, format))
    call.set(0, TensorRef::share(t));
  else
    call.set(0, rl::call(ops::clone, {call[0], Value::of(format)}));
}

RL_OP(to_dtype) {
  Tensor* t = call.tensor(0);
  DType dtype = call[1].dtype;
  TensorRef copy = empty_in_format(t, dtype, call.integer_or(3, kPreserveFormat), t->device());
  if (!t->is_meta()) copy_into(copy.get(), t);
  call.set(0, std::move(copy));
}

RL_OP(_to_meta) {
  Tensor* t = call.tensor(0);
  call.set(0, empty_in_format(t, call[1].dtype, call.integer_or(2, kPreserveFormat), Device::Meta));
}

namespace {

// Which tensors to(memory_format=) leaves as they are: those ordered like the format, as in PyTorch, gaps or not.
bool counts_as(const Tensor* t, int64_t format) {
  if (format == kPreserveFormat) return true;
  const bool last = ordered_as_channels_last(t);
  if (format == kContiguousFormat) return !last;
  return last && t->ndim() == (format == kChannelsLast ? 4 : 5);
}

void convert(Call& call, DType dtype, Device device, bool copy, const Value& format_argument) {
  Tensor* t = call.tensor(0);
  int64_t format = format_argument.is_none() ? kPreserveFormat : format_argument.integer;
  if (device != t->device()) {
    RL_CHECK(device == Device::Meta, NotImplemented, "Cannot copy out of meta tensor; no data!");
    call.set(0, rl::call(ops::_to_meta, {call[0], Value::of(dtype), Value::of(format)}));
    return;
  }
  if (dtype == t->dtype()) {
    if (!copy && counts_as(t, format))
      call.set(0, TensorRef::share(t));
    else
      call.set(0, rl::call(ops::clone, {call[0], Value::of(format)}));
    return;
  }
  call.set(0, rl::call(ops::to_dtype, {call[0], Value::of(dtype), Value::of(copy), Value::of(format)}));
}

}  // namespace

RL_OP(to) { convert(call, call[1].dtype, call.tensor(0)->device(), call.flag(3), call[4]); }
RL_OP(to_device) {
  Tensor* t = call.tensor(0);
  convert(call, call[2].is_none() ? t->dtype() : call[2].dtype,
          call[1].is_none() ? t->device() : static_cast<Device>(call[1].integer), call.flag(4), call[5]);
}
RL_OP(to_other) { convert(call, call.tensor(1)->dtype(), call.tensor(1)->device(), call.flag(3), call[4]); }
// float(), long() ...: the record says the dtype.
RL_OP(to_named) { convert(call, *static_cast<const DType*>(call.op.family), call.tensor(0)->device(), false, call[1]); }

RL_OP(copy_) {
  Tensor *self = call.tensor(0), *src = call.tensor(1);
  if (self->is_meta()) return;
  bool fits = src->ndim() <= self->ndim();
  for (int i = 0; fits && i < src->ndim(); i++) {
    int64_t n = self->size(self->ndim() - src->ndim() + i);
    fits = src->size(i) == n || src->size(i) == 1;
  }
  if (!fits) {
    for (int i = 1; i <= std::min(self->ndim(), src->ndim()); i++) {
      int64_t a = self->size(self->ndim() - i), b = src->size(src->ndim() - i);
      if (a != b && b != 1)
        throw_error(ErrorKind::Runtime,
                    "copy_: The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton "
                    "dimension %d; the shapes are %s and %s",
                    static_cast<ll>(a), static_cast<ll>(b), self->ndim() - i, shape_text(self).c_str(),
                    shape_text(src).c_str());
    }
    throw_error(ErrorKind::Runtime, "copy_: the source of shape %s cannot be broadcast to the destination of shape %s",
                shape_text(src).c_str(), shape_text(self).c_str());
  }
  if (self == src || self->numel == 0) return;
  if (self->storage == src->storage && may_share_memory(self, src)) {
    TensorRef safe = empty(src->dtype(), src->ndim(), src->shape());
    copy_into(safe.get(), src);
    copy_into(self, safe.get());
    return;
  }
  copy_into(self, src);
}

// ---------------------------------------------------------------- joins

namespace {

bool skipped(const Tensor* t) {
  return t->ndim() == 1 && t->numel == 0;
}  // PyTorch's legacy: an empty vector joins anything

}  // namespace

RL_OP(cat) {
  const Value& list = call[0];
  RL_CHECK(list.size > 0, Value, "torch.cat(): expected a non-empty list of Tensors");
  const Tensor* first = nullptr;
  for (uint32_t i = 0; i < list.size; i++) {
    RL_CHECK(list.tensors[i]->ndim() > 0, Runtime, "zero-dimensional tensor (at position %u) cannot be concatenated",
             i);
    if (!first && !skipped(list.tensors[i])) first = list.tensors[i];
  }
  DType dtype = result_type(&list, 1);
  if (!first) {
    int64_t zero = 0;
    call.result(0, dtype, 1, &zero);
    return;
  }
  int dim = wrap_dim(call.integer(1), first->ndim());
  Dims shape(first->ndim(), first->shape());
  shape[dim] = 0;
  std::vector<const rl_tensor*> inputs;
  for (uint32_t i = 0; i < list.size; i++) {
    const Tensor* t = list.tensors[i];
    if (skipped(t)) continue;
    RL_CHECK(t->ndim() == first->ndim(), Runtime, "Tensors must have same number of dimensions: got %d and %d",
             first->ndim(), t->ndim());
    for (int d = 0; d < shape.n; d++)
      RL_CHECK(d == dim || t->size(d) == first->size(d), Runtime,
               "Sizes of tensors must match except in dimension %d. Expected size %lld but got size %lld for tensor "
               "number %u in the list.",
               dim, static_cast<ll>(first->size(d)), static_cast<ll>(t->size(d)), i);
    shape[dim] += t->size(dim);
    inputs.push_back(&t->desc);
  }
  Tensor* out = call.result(0, dtype, shape);
  if (out->is_meta()) return;
  for (uint32_t i = 0; call.out && call.out[0] && i < list.size; i++)
    RL_CHECK(!may_share_memory(call.out[0], list.tensors[i]), Runtime,
             "cat: unsupported operation: the input tensors cannot refer to any of the output memory locations. Found "
             "overlap in input tensor %u",
             i);
  GilRelease gil(out->numel >= 32768);
  check(rl_cat(static_cast<int32_t>(inputs.size()), inputs.data(), dim, &out->desc));
}

RL_OP(stack) {
  const Value& list = call[0];
  RL_CHECK(list.size > 0, Runtime, "stack expects a non-empty TensorList");
  const Tensor* first = list.tensors[0];
  int dim = wrap_dim(call.integer(1), first->ndim() + 1);
  DType dtype = result_type(&list, 1);
  Dims shape, strides;
  for (int d = 0; d <= first->ndim(); d++) {
    if (d == dim) shape.push(list.size);
    if (d < first->ndim()) shape.push(first->size(d));
  }
  std::vector<TensorRef> views;
  std::vector<const rl_tensor*> inputs;
  for (uint32_t i = 0; i < list.size; i++) {
    Tensor* t = list.tensors[i];
    RL_CHECK(same_shape(t, first), Runtime,
             "stack expects each tensor to be equal size, but got %s at entry 0 and %s at entry %u",
             shape_text(first).c_str(), shape_text(t).c_str(), i);
    Dims s(t->ndim(), t->shape()), st(t->ndim(), t->strides());
    s.push(1);
    st.push(1);
    for (int d = s.n - 1; d > dim; d--) {
      s[d] = s[d - 1];
      st[d] = st[d - 1];
    }
    s[dim] = 1;
    st[dim] = 1;
    views.push_back(over_storage(t->storage, t->dtype(), s.n, s.v, st.v, t->data()));
    inputs.push_back(&views.back()->desc);
  }
  Tensor* out = call.result(0, dtype, shape);
  if (out->is_meta()) return;
  GilRelease gil(out->numel >= 32768);
  check(rl_cat(static_cast<int32_t>(inputs.size()), inputs.data(), dim, &out->desc));
}

RL_OP(_cat_backward) {
  Tensor* g = call.tensor(0);
  int dim = wrap_dim(call.integer(2), g->ndim());
  const Value& sizes = call[1];
  std::vector<TensorRef> list;
  int64_t start = 0;
  for (uint32_t i = 0; i < sizes.size; i++) {
    int64_t n = sizes.ints[i];
    if (n < 0) {  // a skipped empty vector
      int64_t zero = 0;
      list.push_back(empty(g->dtype(), 1, &zero, g->device()));
      continue;
    }
    Dims shape(g->ndim(), g->shape()), strides(g->ndim(), g->strides());
    shape[dim] = n;
    list.push_back(make_view(g, shape, strides, start * g->stride(dim)));
    start += n;
  }
  call.set_list(0, std::move(list));
}

}  // namespace rl
