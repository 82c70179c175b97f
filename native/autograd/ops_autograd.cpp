// Operations that the tape needs: sum_to_size and gradients through views of a storage.
#include "node.h"

namespace rl {

RL_OP(sum_to_size) {
  Tensor* self = call.tensor(0);
  Dims size = call[1].dims();
  int extra = self->ndim() - size.n;
  bool fits = extra >= 0;
  Dims reduced;
  for (int i = 0; fits && i < self->ndim(); i++) {
    if (i < extra) {
      reduced.push(i);
    } else if (size[i - extra] != self->size(i)) {
      fits = size[i - extra] == 1;
      reduced.push(i);
    }
  }
  RL_CHECK(fits, Runtime, "sum_to_size: size %s is not expandable to the shape %s", shape_text(size.n, size.v).c_str(),
           shape_text(self).c_str());
  TensorRef sum = TensorRef::share(self);
  if (!size.n) {
    static const Op& op = find_op("sum");
    sum = rl::call(op, {Value::of(self)});
    extra = 0;
  } else if (reduced.n) {
    static const Op& op = find_op("sum", "dim");
    sum = rl::call(op, {Value::of(self), Value::of(reduced), Value::of(true)});
  }
  if (extra) {
    static const Op& op = find_op("reshape");
    sum = rl::call(op, {Value::of(sum), Value::of(size)});
  }
  call.set(0, std::move(sum));
}

namespace {

struct Place {
  Dims shape, strides;
  int64_t low, high;  // bytes of the storage that it touches, relative to the storage's start
  int64_t start;      // of its first element
  DType dtype;
};

Place place(const Value& shape, const Value& strides, const Value& offset, DType dtype) {
  Place p{shape.dims(), strides.dims(), 0, 0, 0, dtype};
  int64_t size = itemsize(dtype);
  p.start = p.low = p.high = offset.as_int() * size;
  bool empty = false;
  for (int i = 0; i < p.shape.n; i++) {
    empty |= p.shape[i] == 0;
    (p.strides[i] < 0 ? p.low : p.high) += (p.shape[i] - 1) * p.strides[i] * size;
  }
  p.high = empty ? p.start : p.high + size;
  if (empty) p.low = p.start;
  return p;
}

// Two indices may reach one element.
bool overlaps(const Place& p) {
  int order[RL_MAX_DIMS], n = 0;
  for (int i = 0; i < p.shape.n; i++) {
    if (p.shape[i] == 0) return false;
    if (p.shape[i] > 1) order[n++] = i;
  }
  auto step = [&](int i) { return p.strides[i] < 0 ? -p.strides[i] : p.strides[i]; };
  for (int i = 1; i < n; i++)
    for (int k = i; k > 0 && step(order[k]) < step(order[k - 1]); k--) std::swap(order[k], order[k - 1]);
  int64_t reach = 0;
  for (int i = 0; i < n; i++) {
    if (step(order[i]) <= reach) return true;
    reach += (p.shape[order[i]] - 1) * step(order[i]);
  }
  return false;
}

// A stretch of fresh memory that stands for the storage from byte `low` on.
struct Flat {
  Storage* storage;
  int64_t low;
  Flat(int64_t low_byte, int64_t high_byte, bool zero) : low(low_byte) {
    storage = storage_new(static_cast<size_t>(high_byte - low_byte));
    if (zero) std::memset(storage->data, 0, storage->nbytes);
  }
  ~Flat() { release(storage); }
  Flat(const Flat&) = delete;
  Flat& operator=(const Flat&) = delete;
  TensorRef at(const Place& p, DType dtype) const {
    return over_storage(storage, dtype, p.shape.n, p.shape.v, p.strides.v,
                        static_cast<char*>(storage->data) + (p.start - low));
  }
};

template <class T>
void add_elements(const Place& p, const Tensor* source, char* memory, int width) {
  const T* from = source->as<T>();
  int64_t index[RL_MAX_DIMS] = {};
  int64_t offset = 0;
  for (int64_t i = 0; i < source->numel; i++) {
    T* to = reinterpret_cast<T*>(memory) + offset * width;
    for (int k = 0; k < width; k++) to[k] += from[i * width + k];
    for (int d = p.shape.n - 1; d >= 0; d--) {
      offset += p.strides[d];
      if (++index[d] < p.shape[d]) break;
      offset -= p.strides[d] * p.shape[d];
      index[d] = 0;
    }
  }
}

// Adds a dense source to the elements of a place that reaches some of them more than once.
void add_overlapping(const Flat& flat, const Place& p, Tensor* source) {
  TensorRef dense = contiguous(source);
  char* memory = static_cast<char*>(flat.storage->data) + (p.start - flat.low);
  switch (source->dtype()) {
    case RL_FLOAT32:
      add_elements<float>(p, dense.get(), memory, 1);
      break;
    case RL_FLOAT64:
      add_elements<double>(p, dense.get(), memory, 1);
      break;
    case RL_COMPLEX64:
      add_elements<float>(p, dense.get(), memory, 2);
      break;
    case RL_COMPLEX128:
      add_elements<double>(p, dense.get(), memory, 2);
      break;
    default:
      throw_error(ErrorKind::NotImplemented, "_geometry_scatter: expected a floating point or complex dtype, got %s",
                  dtype_name(source->dtype()));
  }
}

struct Places {
  Place base, view;
  int64_t low, high;
  bool meta;
  Places(Call& c, int first, DType base_dtype, DType view_dtype)
      : base(place(c[first], c[first + 1], c[first + 2], base_dtype)),
        view(place(c[first + 3], c[first + 4], c[first + 5], view_dtype)),
        low(std::min(base.low, view.low)),
        high(std::max(base.high, view.high)),
        meta(c.tensor(0)->is_meta()) {}
};

void put(const Flat& flat, const Place& p, const Tensor* source) {
  copy_into(flat.at(p, source->dtype()).get(), source);
}

}  // namespace

RL_OP(_geometry_gather) {
  Tensor* self = call.tensor(0);
  DType dtype = call[7].dtype;
  Places p(call, 1, self->dtype(), dtype);
  Tensor* out = call.result(0, dtype, p.view.shape);
  if (p.meta || out->numel == 0) return;
  if (self->contiguous && is_contiguous(p.base.shape.n, p.base.shape.v, p.base.strides.v) && p.view.low >= p.base.low &&
      p.view.high <= p.base.high) {
    TensorRef view = over_storage(self->storage, dtype, p.view.shape.n, p.view.shape.v, p.view.strides.v,
                                  self->data() + (p.view.start - p.base.start));
    copy_into(out, view.get());
    return;
  }
  Flat flat(p.low, p.high, true);
  put(flat, p.base, self);
  copy_into(out, flat.at(p.view, dtype).get());
}

RL_OP(_geometry_scatter) {
  Tensor* self = call.tensor(0);
  DType dtype = call[7].dtype;
  Places p(call, 1, dtype, self->dtype());
  Tensor* out = call.result(0, dtype, p.base.shape);
  if (p.meta || out->numel == 0) return;
  bool overlap = overlaps(p.view);
  if (overlap && (self->dtype() == RL_FLOAT16 || self->dtype() == RL_BFLOAT16)) {
    // Sums of halves are taken in float32; both geometries count elements, so they hold for the wider dtype too.
    Places wide(call, 1, RL_FLOAT32, RL_FLOAT32);
    TensorRef values = cast(self, RL_FLOAT32);
    Flat flat(wide.low, wide.high, true);
    add_overlapping(flat, wide.view, values.get());
    copy_into(out, flat.at(wide.base, RL_FLOAT32).get());
    return;
  }
  Flat flat(p.low, p.high, true);
  if (overlap)
    add_overlapping(flat, p.view, self);
  else
    put(flat, p.view, self);
  copy_into(out, flat.at(p.base, dtype).get());
}

RL_OP(_geometry_replace) {
  Tensor* self = call.tensor(0);
  Tensor* source = call.tensor_or_null(1);
  DType dtype = call[8].dtype;
  Places p(call, 2, self->dtype(), dtype);
  Tensor* out = call.result(0, self->dtype(), p.base.shape);
  if (p.meta || out->numel == 0) return;
  Flat flat(p.low, p.high, true);
  put(flat, p.base, self);
  TensorRef view = flat.at(p.view, dtype);
  if (source)
    copy_into(view.get(), source);
  else
    fill_value(view.get(), Value::of(0.0));
  copy_into(out, flat.at(p.base, self->dtype()).get());
}

}  // namespace rl
