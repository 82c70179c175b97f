// Indexing by tensors: shape rules over the kernels of rushlight/index.h.
#include "elementwise_ids.h"
#include "op.h"
#include "ops.h"
#include "rushlight/index.h"

namespace rl {

namespace {

using ll = long long;

// Index tensors broadcast to one shape, with the dims they index.
struct Indices {
  std::vector<TensorRef> owned;  // masks turned into indices, conversions
  std::vector<Tensor*> tensors;
  std::vector<int32_t> dims;
  std::vector<rl_tensor> descs;
  std::vector<Dims> strides;
  std::vector<const rl_tensor*> pointers;
  Dims shape;   // of the broadcast indices
  Dims result;  // of the indexed tensor
  int32_t at = 0;

  Indices(const char* op, const Tensor* self, const Value& list) {
    int dim = 0;
    for (uint32_t i = 0; i < list.size; i++) {
      Tensor* t = list.tensors[i];
      if (!t) {
        dim++;
        continue;
      }
      if (t->dtype() == RL_BOOL || t->dtype() == RL_UINT8) {
        for (int k = 0; k < t->ndim(); k++)
          RL_CHECK(dim + k < self->ndim() && t->size(k) == self->size(dim + k), Index,
                   "The shape of the mask %s at index %d does not match the shape of the indexed tensor %s at index %d",
                   shape_text(t).c_str(), k, shape_text(self).c_str(), dim + k);
        std::vector<TensorRef> parts = call_many(ops::nonzero_numpy, {Value::of(t)});
        for (TensorRef& p : parts) {
          tensors.push_back(p.get());
          dims.push_back(dim++);
          owned.push_back(std::move(p));
        }
        continue;
      }
      RL_CHECK(is_integral(t->dtype()), Index,
               "tensors used as indices must be long, int, byte or bool tensors, got %s", dtype_name(t->dtype()));
      if (t->dtype() != RL_INT64) {
        owned.push_back(cast(t, RL_INT64));
        t = owned.back().get();
      }
      tensors.push_back(t);
      dims.push_back(dim++);
    }
    RL_CHECK(dim <= self->ndim(), Index, "too many indices for tensor of dimension %d (got %d)", self->ndim(), dim);
    RL_CHECK(!tensors.empty(), Value, "%s: at least one index tensor is needed", op);
    for (Tensor* t : tensors) shape.n = std::max(shape.n, t->ndim());
    for (int i = 0; i < shape.n; i++) shape[i] = 1;
    for (Tensor* t : tensors)
      for (int i = 0; i < t->ndim(); i++) {
        int64_t& n = shape[shape.n - t->ndim() + i];
        if (t->size(i) == n || t->size(i) == 1) continue;
        if (n != 1) {
          std::string all;
          for (Tensor* o : tensors) all += (all.empty() ? "" : ", ") + shape_text(o);
          throw_error(ErrorKind::Index,
                      "shape mismatch: indexing tensors could not be broadcast together with shapes %s", all.c_str());
        }
        n = t->size(i);
      }
    strides.resize(tensors.size());
    descs.resize(tensors.size());
    for (size_t k = 0; k < tensors.size(); k++) {
      Tensor* t = tensors[k];
      for (int i = 0; i < shape.n; i++) {
        int d = i - (shape.n - t->ndim());
        strides[k].push(d < 0 || (t->size(d) == 1 && shape[i] != 1) ? 0 : t->stride(d));
      }
      descs[k] = t->desc;
      descs[k].ndim = shape.n;
      descs[k].shape = shape.v;
      descs[k].strides = strides[k].v;
      pointers.push_back(&descs[k]);
    }
    bool neighbours = true;
    for (size_t k = 1; k < dims.size(); k++) neighbours = neighbours && dims[k] == dims[k - 1] + 1;
    at = neighbours ? dims[0] : 0;
    int kept = 0;
    auto put_shape = [&] {
      for (int i = 0; i < shape.n; i++) result.push(shape[i]);
    };
    if (at == 0) put_shape();
    for (int d = 0; d < self->ndim(); d++) {
      bool indexed = false;
      for (int32_t x : dims) indexed |= x == d;
      if (indexed) continue;
      result.push(self->size(d));
      if (++kept == at) put_shape();
    }
  }
  int32_t count() const { return static_cast<int32_t>(tensors.size()); }
};

// A tensor's descriptor broadcast to a shape.
struct Broadcast {
  rl_tensor desc;
  Dims shape, strides;
  Broadcast(const Tensor* t, const Dims& to, const char* what) : desc(t->desc), shape(to) {
    int extra = t->ndim() - to.n;
    for (int i = 0; i < extra; i++)
      RL_CHECK(t->size(i) == 1, Runtime, "shape mismatch: %s of shape %s cannot be broadcast to %s", what,
               shape_text(t).c_str(), shape_text(to.n, to.v).c_str());
    for (int i = 0; i < to.n; i++) {
      int d = i + extra;
      RL_CHECK(d < 0 || t->size(d) == to[i] || t->size(d) == 1, Runtime,
               "shape mismatch: %s of shape %s cannot be broadcast to indexing result of shape %s", what,
               shape_text(t).c_str(), shape_text(to.n, to.v).c_str());
      strides.push(d < 0 || t->size(d) != to[i] ? 0 : t->stride(d));
    }
    desc.ndim = to.n;
    desc.shape = shape.v;
    desc.strides = strides.v;
  }
};

TensorRef without_overlap(Tensor* t, const Tensor* written) {
  if (!may_share_memory(t, written)) return TensorRef::share(t);
  TensorRef copy = empty(t->dtype(), t->ndim(), t->shape());
  copy_into(copy.get(), t);
  return copy;
}

// The output of an operation that starts from self's values: the output itself in place, else a copy.
Tensor* start_from(Call& call, Tensor* self) {
  Tensor* out = call.result_like(0, self->dtype(), Dims(self->ndim(), self->shape()), self);
  if (!out->is_meta() && !(out->desc.data == self->desc.data && out->storage == self->storage)) copy_into(out, self);
  return out;
}

void check_index_dtype(const char* op, const Tensor* index) {
  RL_CHECK(index->dtype() == RL_INT64 || index->dtype() == RL_INT32, Runtime,
           "%s(): Expected dtype int32/int64 for index, got %s", op, dtype_name(index->dtype()));
}

int64_t count_mask(const rl_tensor* mask, int64_t elements, std::vector<int64_t>& offsets) {
  offsets.resize(static_cast<size_t>(rl_mask_blocks(elements)));
  int64_t count;
  check(rl_mask_count(mask, offsets.data(), &count));
  return count;
}

// The mask that is the only index and has one element for each of self: it needs no list of places.
Tensor* only_mask(const Tensor* self, const Value& list) {
  Tensor* t = list.size == 1 ? list.tensors[0] : nullptr;
  return t && t->dtype() == RL_BOOL && t->ndim() > 0 && same_shape(t, self) && !t->is_meta() && !self->is_meta() &&
                 !t->is_wrapped() && !self->is_wrapped()
             ? t
             : nullptr;
}

// self where the mask is true = a single value.
bool fill_masked(Tensor* self, Tensor* mask, Tensor* value) {
  const DType dtype = self->dtype();
  if (!rl_elementwise_supports(RL_EW_where, dtype) && dtype != RL_FLOAT16 && dtype != RL_BFLOAT16) return false;
  const bool in_place = mask->desc.data == self->desc.data && same_shape(mask, self) && dtype == RL_BOOL &&
                        std::equal(mask->strides(), mask->strides() + mask->ndim(), self->strides());
  TensorRef where = in_place ? TensorRef::share(mask) : without_overlap(mask, self);
  TensorRef what = without_overlap(value, self);
  rl_tensor number = what->desc;
  number.ndim = 0;
  const rl_tensor* in[3] = {&where->desc, &number, &self->desc};
  rl_tensor* out = &self->desc;
  GilRelease gil(self->numel >= 32768);
  check(rl_elementwise(RL_EW_where, dtype, 3, in, 1, &out));
  return true;
}

}  // namespace

RL_OP(index) {
  Tensor* self = call.tensor(0);
  if (Tensor* mask = only_mask(self, call[1])) {
    std::vector<int64_t> offsets;
    Tensor* out = call.result(0, self->dtype(), Dims{count_mask(&mask->desc, self->numel, offsets)});
    GilRelease gil(self->numel >= 32768);
    return check(rl_masked_select(&self->desc, &mask->desc, offsets.data(), &out->desc));
  }
  Indices ix("index", self, call[1]);
  Tensor* out = call.result(0, self->dtype(), ix.result);
  if (out->is_meta()) return;
  GilRelease gil(out->numel >= 32768);
  check(rl_index_get(&self->desc, ix.count(), ix.pointers.data(), ix.dims.data(), ix.at, &out->desc));
}

RL_OP(_index_backward) {
  Tensor* g = call.tensor(0);
  Dims shape = call[1].dims();
  Tensor* out = call.result(0, g->dtype(), shape);
  if (out->is_meta()) return;
  fill_value(out, Value::of(0));
  Tensor* mask = only_mask(out, call[2]);
  if (mask && g->dtype() != RL_COMPLEX32) {
    GilRelease gil(out->numel >= 32768);
    return check(rl_masked_scatter(&out->desc, &mask->desc, nullptr, &g->desc));
  }
  Indices ix("index", out, call[2]);
  GilRelease gil(g->numel >= 32768);
  check(rl_index_put(&out->desc, ix.count(), ix.pointers.data(), ix.dims.data(), ix.at, &g->desc, 1));
}

RL_OP(index_put_) {
  Tensor *self = call.tensor(0), *values = call.tensor(2);
  RL_CHECK(
      self->dtype() == values->dtype(), Runtime,
      "Index put requires the source and destination dtypes match, got %s for the destination and %s for the source.",
      dtype_title(self->dtype()), dtype_title(values->dtype()));
  Tensor* mask = values->numel == 1 && !call.flag(3) ? only_mask(self, call[1]) : nullptr;
  if (mask && fill_masked(self, mask, values)) return;
  Indices ix("index_put_", self, call[1]);
  Broadcast checked(values, ix.result, "value tensor");
  if (self->is_meta()) return;
  TensorRef safe = without_overlap(values, self);
  Broadcast v(safe.get(), ix.result, "value tensor");
  GilRelease gil(ix.shape.n && values->numel >= 32768);
  check(rl_index_put(&self->desc, ix.count(), ix.pointers.data(), ix.dims.data(), ix.at, &v.desc, call.flag(3)));
}

// ---------------------------------------------------------------- masks

RL_OP(_nonzero) {
  Tensor* t = call.tensor(0);
  RL_CHECK(!t->is_meta(), NotImplemented,
           "nonzero: the size of the result depends on data that a meta tensor does not have");
  std::vector<int64_t> offsets;
  int64_t n = count_mask(&t->desc, t->numel, offsets);
  Tensor* out = call.result(0, RL_INT64, Dims{n, t->ndim()});
  check(rl_nonzero(&t->desc, offsets.data(), &out->desc));
}
RL_OP(nonzero_numpy) {
  Tensor* t = call.tensor(0);
  RL_CHECK(!t->is_meta(), NotImplemented,
           "nonzero: the size of the result depends on data that a meta tensor does not have");
  TensorRef one_dim;
  if (t->ndim() == 0) {
    int64_t one = 1;
    one_dim = over_storage(t->storage, t->dtype(), 1, &one, &one, t->data());
    t = one_dim.get();
  }
  std::vector<int64_t> offsets;
  int64_t n = count_mask(&t->desc, t->numel, offsets);
  int64_t shape[2] = {n, t->ndim()}, strides[2] = {1, n};
  TensorRef all = empty(RL_INT64, Dims{t->ndim(), n});
  rl_tensor columns = all->desc;
  columns.shape = shape;
  columns.strides = strides;
  check(rl_nonzero(&t->desc, offsets.data(), &columns));
  std::vector<TensorRef> list;
  int64_t one = 1;
  for (int d = 0; d < t->ndim(); d++)
    list.push_back(over_storage(all->storage, RL_INT64, 1, &n, &one, all->data() + d * n * 8));
  call.set_list(0, std::move(list));
}

namespace {

// self and mask broadcast against each other.
struct Masked {
  Dims shape;
  TensorRef dense;
  Masked(const char* op, Tensor* self, Tensor* mask) {
    const Tensor* both[2] = {self, mask};
    shape = broadcast_shapes(both, 2, op);
  }
};

void check_mask(const char* op, const Tensor* mask) {
  RL_CHECK(mask->dtype() == RL_BOOL, Runtime, "%s: expected a bool tensor for mask, got %s", op,
           dtype_name(mask->dtype()));
}

}  // namespace

RL_OP(masked_select) {
  Tensor *self = call.tensor(0), *mask = call.tensor(1);
  TensorRef converted;
  if (mask->dtype() == RL_UINT8) converted = cast(mask, RL_BOOL), mask = converted.get();
  check_mask("masked_select", mask);
  RL_CHECK(!self->is_meta(), NotImplemented,
           "masked_select: the size of the result depends on data that a meta tensor does not have");
  Masked m("masked_select", self, mask);
  Broadcast s(self, m.shape, "self"), k(mask, m.shape, "mask");
  std::vector<int64_t> offsets;
  int64_t n = count_mask(&k.desc, count_elements(m.shape.n, m.shape.v), offsets);
  Tensor* out = call.result(0, self->dtype(), Dims{n});
  check(rl_masked_select(&s.desc, &k.desc, offsets.data(), &out->desc));
}

RL_OP(masked_fill) {
  Tensor *self = call.tensor(0), *mask = call.tensor(1);
  check_mask("masked_fill", mask);
  check_fits("masked_fill", call[2], self->dtype());
  TensorRef value = empty(self->dtype(), 0, nullptr, self->device());
  fill_value(value.get(), call[2]);
  Value m = Value::of(mask), v = Value::of(value), s = Value::of(self);
  const Value* inputs[3] = {&m, &v, &s};
  elementwise(call, {RL_EW_where, 0x1f3f, 0, 0}, inputs, 3);
}
RL_OP(masked_fill_Tensor) {
  Tensor *self = call.tensor(0), *mask = call.tensor(1), *value = call.tensor(2);
  check_mask("masked_fill", mask);
  RL_CHECK(value->ndim() == 0, Runtime,
           "masked_fill only supports a 0-dimensional value tensor, but got tensor with %d dimension(s).",
           value->ndim());
  RL_CHECK(can_cast(value->dtype(), self->dtype()) || !is_complex(value->dtype()), Runtime,
           "value cannot be converted to type %s without overflow", dtype_name(self->dtype()));
  TensorRef v0 = cast(value, self->dtype());
  Value m = Value::of(mask), v = Value::of(v0), s = Value::of(self);
  const Value* inputs[3] = {&m, &v, &s};
  elementwise(call, {RL_EW_where, 0x1f3f, 0, 0}, inputs, 3);
}
RL_OP(masked_scatter) {
  Tensor *self = call.tensor(0), *mask = call.tensor(1), *source = call.tensor(2);
  check_mask("masked_scatter_", mask);
  RL_CHECK(self->dtype() == source->dtype(), Runtime,
           "masked_scatter: expected self and source to have same dtypes but got %s and %s", dtype_name(self->dtype()),
           dtype_name(source->dtype()));
  Masked m("masked_scatter", self, mask);
  Tensor* out = call.result(0, self->dtype(), m.shape);
  if (out->is_meta()) return;
  TensorRef safe = without_overlap(source, out);
  if (out != self) copy_into(out, self);
  Broadcast k(mask, m.shape, "mask");
  std::vector<int64_t> offsets;
  count_mask(&k.desc, out->numel, offsets);
  check(rl_masked_scatter(&out->desc, &k.desc, offsets.data(), &safe->desc));
}

// ---------------------------------------------------------------- one index along one dim

namespace {

struct OneIndex {
  int dim;
  TensorRef index;
  OneIndex(const char* op, const Tensor* self, int64_t dim_argument, Tensor* given)
      : dim(wrap_dim(dim_argument, self->ndim())) {
    RL_CHECK(given->ndim() <= 1, Index, "%s(): Index is supposed to be a vector, but got shape %s", op,
             shape_text(given).c_str());
    check_index_dtype(op, given);
    index = cast(given, RL_INT64);
  }
};

// The source of index_copy and index_add: self's shape with the number of indices along dim.
void check_source(const char* op, const Tensor* self, int dim, const Tensor* index, const Tensor* source,
                  ErrorKind wrong_rank = ErrorKind::Index) {
  RL_CHECK(self->dtype() == source->dtype(), Runtime,
           "%s(): self and source expected to have the same dtype, but got (self) %s and (source) %s", op,
           dtype_title(self->dtype()), dtype_title(source->dtype()));
  if (source->ndim() != self->ndim() && (self->ndim() > 1 || source->ndim() > 1))
    throw_error(wrong_rank,
                "%s(): When source and destination are not scalars, their dimensionality must match. Source "
                "dimensionality (%d), destination dimensionality (%d)",
                op, source->ndim(), self->ndim());
  int64_t n = source->ndim() ? source->size(dim) : 1;
  RL_CHECK(n == index->numel, Runtime,
           "%s(): Number of indices (%lld) should be equal to source.size(dim): (%lld), for dim: %d", op,
           static_cast<ll>(index->numel), static_cast<ll>(n), dim);
  for (int i = 0; i < source->ndim() && i < self->ndim(); i++)
    RL_CHECK(i == dim || source->size(i) == self->size(i), Runtime,
             "%s(): Source/destination tensor must have same slice shapes. Destination slice shape: %s and source "
             "slice shape: %s",
             op, shape_text(self).c_str(), shape_text(source).c_str());
}

// The reduction that scatter_reduce and index_reduce name, for a dtype that has it.
rl_scatter_mode reduction_of(const char* op, const Value& v, bool sum_is_one, DType dtype) {
  const char* text = PyUnicode_AsUTF8(v.object);
  if (!text) throw PythonError();
  static constexpr struct {
    const char* name;
    rl_scatter_mode mode;
  } kModes[] = {{"prod", RL_SCATTER_PROD},
                {"mean", RL_SCATTER_MEAN},
                {"amax", RL_SCATTER_AMAX},
                {"amin", RL_SCATTER_AMIN},
                {"sum", RL_SCATTER_SUM}};
  for (const auto& m : kModes) {
    if (std::strcmp(text, m.name) != 0 || (m.mode == RL_SCATTER_SUM && !sum_is_one)) continue;
    bool ordered = m.mode == RL_SCATTER_AMAX || m.mode == RL_SCATTER_AMIN;
    RL_CHECK(!(ordered && is_complex(dtype)) && !(m.mode == RL_SCATTER_MEAN && dtype == RL_BOOL), NotImplemented,
             "%s: reduce='%s' is not implemented for %s", op, text, dtype_name(dtype));
    return m.mode;
  }
  throw_error(ErrorKind::Runtime, "%s: reduce; expected %s'prod', 'mean', 'amax' or 'amin', got '%s'", op,
              sum_is_one ? "'sum', " : "", text);
}

// A tensor of at least one dim for the kernels.
TensorRef at_least_1d(Tensor* t) {
  if (t->ndim()) return TensorRef::share(t);
  int64_t one = 1;
  return over_storage(t->storage, t->dtype(), 1, &one, &one, t->data());
}

}  // namespace

RL_OP(index_select) {
  Tensor* self = call.tensor(0);
  OneIndex ix("index_select", self, call.integer(1), call.tensor(2));
  Dims shape(self->ndim(), self->shape());
  if (self->ndim())
    shape[ix.dim] = ix.index->numel;
  else
    RL_CHECK(ix.index->numel == 1, Index, "index_select(): Index to scalar can have only 1 value, got %lld value(s)",
             static_cast<ll>(ix.index->numel));
  Tensor* out = call.result(0, self->dtype(), shape);
  if (out->is_meta()) return;
  TensorRef s = at_least_1d(self), o = at_least_1d(out);
  GilRelease gil(out->numel >= 32768);
  check(rl_index_select(&s->desc, ix.dim, &ix.index->desc, &o->desc));
}
RL_OP(_index_select_backward) {
  Tensor* g = call.tensor(0);
  Dims shape = call[1].dims();
  Tensor* out = call.result(0, g->dtype(), shape);
  if (out->is_meta()) return;
  fill_value(out, Value::of(0));
  OneIndex ix("index_select", out, call.integer(2), call.tensor(3));
  TensorRef o = at_least_1d(out), s = at_least_1d(g);
  check(rl_index_add(&o->desc, ix.dim, &ix.index->desc, &s->desc, nullptr));
}
RL_OP(index_add) {
  Tensor *self = call.tensor(0), *source = call.tensor(3);
  OneIndex ix("index_add", self, call.integer(1), call.tensor(2));
  check_source("index_add", self, ix.dim, ix.index.get(), source, ErrorKind::Runtime);
  TensorRef safe = without_overlap(source, self);
  Tensor* out = start_from(call, self);
  if (out->is_meta()) return;
  ScalarTensor alpha(call[4], self->dtype());
  TensorRef o = at_least_1d(out), s = at_least_1d(safe.get());
  check(rl_index_add(&o->desc, ix.dim, &ix.index->desc, &s->desc, call[4].as_complex() == 1.0 ? nullptr : &alpha.desc));
}
RL_OP(index_copy) {
  Tensor *self = call.tensor(0), *source = call.tensor(3);
  OneIndex ix("index_copy", self, call.integer(1), call.tensor(2));
  check_source("index_copy", self, ix.dim, ix.index.get(), source);
  TensorRef safe = without_overlap(source, self);
  Tensor* out = start_from(call, self);
  if (out->is_meta()) return;
  TensorRef o = at_least_1d(out), s = at_least_1d(safe.get());
  check(rl_index_copy(&o->desc, ix.dim, &ix.index->desc, &s->desc));
}
RL_OP(index_reduce) {
  Tensor *self = call.tensor(0), *source = call.tensor(3);
  rl_scatter_mode mode = reduction_of("index_reduce", call[4], false, self->dtype());
  RL_CHECK(self->dtype() != RL_BOOL && !is_complex(self->dtype()), NotImplemented,
           "index_reduce: not implemented for %s", dtype_name(self->dtype()));
  OneIndex ix("index_reduce", self, call.integer(1), call.tensor(2));
  check_source("index_reduce", self, ix.dim, ix.index.get(), source, ErrorKind::Runtime);
  RL_CHECK(source->ndim() == self->ndim(), Runtime,
           "index_reduce: shape of source; expected as many dimensions as %s, got %s", shape_text(self).c_str(),
           shape_text(source).c_str());
  TensorRef safe = without_overlap(source, self);
  Tensor* out = start_from(call, self);
  if (out->is_meta()) return;
  TensorRef o = at_least_1d(out), s = at_least_1d(safe.get());
  GilRelease gil(source->numel >= 32768);
  check(rl_index_reduce(&o->desc, ix.dim, &ix.index->desc, &s->desc, mode, call.flag(5)));
}

namespace {

void index_fill(Call& call, const rl_tensor& value) {
  Tensor* self = call.tensor(0);
  OneIndex ix("index_fill", self, call.integer(1), call.tensor(2));
  Tensor* out = start_from(call, self);
  if (out->is_meta()) return;
  TensorRef o = at_least_1d(out);
  check(rl_index_fill(&o->desc, ix.dim, &ix.index->desc, &value));
}

}  // namespace

RL_OP(index_fill) {
  DType dtype = call.tensor(0)->dtype();
  RL_CHECK(call[3].tag != Tag::Complex || is_complex(dtype), Runtime,
           "index_fill_(): Converting complex Scalar to non-complex type is not supported");
  check_fits("index_fill", call[3], dtype);
  ScalarTensor value(call[3], dtype);
  index_fill(call, value.desc);
}
RL_OP(index_fill_Tensor) {
  Tensor *self = call.tensor(0), *value = call.tensor(3);
  RL_CHECK(value->ndim() == 0, Runtime, "index_fill: value; expected a tensor without dimensions, got shape %s",
           shape_text(value).c_str());
  RL_CHECK(!is_complex(value->dtype()) || is_complex(self->dtype()), Runtime,
           "index_fill_(): Converting complex Scalar to non-complex type is not supported");
  TensorRef v = cast(without_overlap(value, self).get(), self->dtype());
  index_fill(call, v->desc);
}

// ---------------------------------------------------------------- an index per element

namespace {

struct Spread {
  int dim;
  TensorRef index, self1, src1;
  Spread(const char* op, Tensor* self, int64_t dim_argument, Tensor* given, const Tensor* src)
      : dim(wrap_dim(dim_argument, self->ndim())) {
    RL_CHECK(given->numel == 0 || given->dtype() == RL_INT64 || given->dtype() == RL_INT32, Runtime,
             "%s(): Expected dtype int32/int64 for index, got %s", op, dtype_name(given->dtype()));
    index = cast(given, RL_INT64);
    if (given->numel == 0) return;
    auto dims_of = [](const Tensor* t) { return std::max(t->ndim(), 1); };
    RL_CHECK(dims_of(self) == dims_of(given), Runtime,
             "%s(): Index tensor must have the same number of dimensions as self tensor; expected %d, got %d", op,
             self->ndim(), given->ndim());
    for (int i = 0; i < given->ndim() && i < self->ndim(); i++)
      RL_CHECK(i == dim || given->size(i) <= self->size(i), Runtime,
               "%s(): Size does not match at dimension %d expected index %s to be no larger than self %s apart from "
               "dimension %d",
               op, i, shape_text(given).c_str(), shape_text(self).c_str(), dim);
    if (!src) return;
    RL_CHECK(src->dtype() == self->dtype(), Runtime,
             "%s(): Expected self.dtype to be equal to src.dtype; got %s and %s", op, dtype_name(self->dtype()),
             dtype_name(src->dtype()));
    RL_CHECK(dims_of(src) == dims_of(given), Runtime,
             "%s(): Index tensor must have the same number of dimensions as src tensor; expected %d, got %d", op,
             src->ndim(), given->ndim());
    for (int i = 0; i < given->ndim() && i < src->ndim(); i++)
      RL_CHECK(given->size(i) <= src->size(i), Runtime,
               "%s(): Expected index %s to be no larger than self %s apart from dimension %d and to be no larger size "
               "than src %s",
               op, shape_text(given).c_str(), shape_text(self).c_str(), dim, shape_text(src).c_str());
  }
};

void scatter(Call& call, const char* op, rl_scatter_mode mode, bool include_self = true) {
  Tensor* self = call.tensor(0);
  Tensor* src = call.tensor_or_null(3);
  Spread s(op, self, call.integer(1), call.tensor(2), src);
  if (!src) check_fits(op, call[3], self->dtype());
  TensorRef safe = src ? without_overlap(src, self) : TensorRef();
  Tensor* out = start_from(call, self);
  if (out->is_meta() || s.index->numel == 0) return;
  TensorRef o = at_least_1d(out), i = at_least_1d(s.index.get());
  TensorRef from = src ? at_least_1d(safe.get()) : TensorRef();
  ScalarTensor value(src ? Value::of(0) : call[3], self->dtype());
  GilRelease gil(s.index->numel >= 32768);
  check(rl_scatter(&o->desc, s.dim, &i->desc, from ? &from->desc : &value.desc, mode, include_self));
}

rl_scatter_mode mode_of(const Value& v) {
  const char* text = PyUnicode_AsUTF8(v.object);
  if (!std::strcmp(text, "add")) return RL_SCATTER_SUM;
  if (!std::strcmp(text, "multiply")) return RL_SCATTER_PROD;
  throw_error(ErrorKind::Runtime, "scatter: reduce argument must be either add or multiply, got '%s'", text);
}

}  // namespace

RL_OP(gather) {
  Tensor* self = call.tensor(0);
  Spread s("gather", self, call.integer(1), call.tensor(2), nullptr);
  Tensor* index = call.tensor(2);
  if (call.out && call.out[0])
    RL_CHECK(call.out[0]->dtype() == self->dtype(), Runtime, "gather: out= has the wrong dtype; expected %s, got %s",
             dtype_name(self->dtype()), dtype_name(call.out[0]->dtype()));
  Tensor* out = call.result(0, self->dtype(), Dims(index->ndim(), index->shape()));
  if (out->is_meta() || out->numel == 0) return;
  TensorRef f = at_least_1d(self), i = at_least_1d(s.index.get()), o = at_least_1d(out);
  GilRelease gil(out->numel >= 32768);
  check(rl_gather(&f->desc, s.dim, &i->desc, &o->desc));
}
RL_OP(scatter_src) { scatter(call, "scatter", RL_SCATTER_SET); }
RL_OP(scatter_value) { scatter(call, "scatter", RL_SCATTER_SET); }
RL_OP(scatter_reduce) { scatter(call, "scatter", mode_of(call[4])); }
RL_OP(scatter_value_reduce) { scatter(call, "scatter", mode_of(call[4])); }
RL_OP(scatter_reduce_two) {
  scatter(call, "scatter_reduce", reduction_of("scatter_reduce", call[4], true, call.tensor(0)->dtype()), call.flag(5));
}
RL_OP(scatter_add) { scatter(call, "scatter_add", RL_SCATTER_SUM); }

RL_OP(take) {
  Tensor *self = call.tensor(0), *index = call.tensor(1);
  RL_CHECK(index->dtype() == RL_INT64, Runtime, "take(): Expected a long tensor for index, but got %s",
           dtype_title(index->dtype()));
  RL_CHECK(self->numel > 0 || index->numel == 0, Index, "take(): tried to take from an empty tensor");
  if (call.out && call.out[0])
    RL_CHECK(!may_share_memory(call.out[0], self) && !may_share_memory(call.out[0], index), Runtime,
             "take: out= shares memory with an input; clone() the input first");
  Tensor* out = call.result(0, self->dtype(), Dims(index->ndim(), index->shape()));
  RL_KERNEL(out, rl_take(&self->desc, &index->desc, &out->desc));
}
RL_OP(put) {
  Tensor *self = call.tensor(0), *index = call.tensor(1), *source = call.tensor(2);
  RL_CHECK(index->dtype() == RL_INT64, Runtime, "put_(): Expected a long tensor for index, but got %s",
           dtype_title(index->dtype()));
  RL_CHECK(self->dtype() == source->dtype(), Runtime,
           "put_(): self and source expected to have the same dtype, but got self.dtype = %s and source.dtype = %s",
           dtype_title(self->dtype()), dtype_title(source->dtype()));
  RL_CHECK(source->numel == index->numel, Runtime,
           "put_(): Expected source and index to have the same number of elements, but got source.numel() = %lld, "
           "index.numel() = %lld",
           static_cast<ll>(source->numel), static_cast<ll>(index->numel));
  RL_CHECK(self->numel > 0 || index->numel == 0, Index, "put_(): cannot put elements into an empty tensor");
  TensorRef safe = without_overlap(source, self);
  Tensor* out = start_from(call, self);
  if (out->is_meta()) return;
  TensorRef dense = contiguous(safe.get());
  TensorRef shaped = over_storage(
      dense->storage, dense->dtype(), index->ndim(), index->shape(),
      [&] {
        static thread_local int64_t strides[kMaxDims];
        contiguous_strides(index->ndim(), index->shape(), strides);
        return strides;
      }(),
      dense->data());
  check(rl_put(&out->desc, &index->desc, &shaped->desc, call.flag(3)));
}

}  // namespace rl
