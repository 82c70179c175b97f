// x[...] and x[...] = y. The ints, slices, None and ... of an index become one view (the private operation
// _basic_index); what indexes by tensors is left to index and index_put_.
#include "../autograd/autograd.h"
#include "ops.h"
#include "python.h"

namespace rl {

namespace {

enum : int64_t { kSelect = 0, kSlice = 1, kNewAxis = 2 };

struct Index {
  Dims spec;                                       // triples (code, start, step, length) flattened in fours
  bool trivial = true;                             // the view would be the tensor itself
  std::vector<std::pair<int, TensorRef>> tensors;  // position among the dims of the view
  int view_dims = 0;
};

constexpr int kMaxSpec = kMaxDims;

void push(std::vector<int64_t>& spec, int64_t code, int64_t start, int64_t step, int64_t length) {
  spec.insert(spec.end(), {code, start, step, length});
}

struct Parsed {
  std::vector<int64_t> spec;
  std::vector<std::pair<int, TensorRef>> tensors;
  int dim = 0;       // of self, consumed so far
  int view_dim = 0;  // of the view, produced so far
  bool trivial = true;
  bool past_end = false;  // a further ellipsis went beyond the last dim
};

int64_t select_position(const Tensor* t, int dim, int64_t i) {
  int64_t n = t->size(dim);
  RL_CHECK(i >= -n && i < n, Index, "index %lld is out of bounds for dimension %d with size %lld",
           static_cast<long long>(i), dim, static_cast<long long>(n));
  return i < 0 ? i + n : i;
}

void take_slice(const Tensor* t, PyObject* slice, Parsed& p) {
  int64_t n = t->size(p.dim);
  Py_ssize_t start, stop, step;
  // Bounds may be 0-dim integer tensors: __index__ makes them ints.
  if (PySlice_Unpack(slice, &start, &stop, &step) < 0) throw PythonError();
  Py_ssize_t length = PySlice_AdjustIndices(static_cast<Py_ssize_t>(n), &start, &stop, step);
  if (length == 0) {
    start = 0;
    if (step < 0) step = 1;
  }
  if (start != 0 || step != 1 || length != n) p.trivial = false;
  push(p.spec, kSlice, start, step, length);
  p.dim++;
  p.view_dim++;
}

// How many dims of self one item takes; -1 for an ellipsis.
int consumed(PyObject* item) {
  if (item == Py_Ellipsis) return -1;
  if (item == Py_None || PyBool_Check(item)) return 0;
  if (is_tensor(item)) {
    Tensor* t = tensor_of(item);
    return t->dtype() == RL_BOOL || t->dtype() == RL_UINT8 ? t->ndim() : 1;
  }
  return 1;
}

void take_mask(const Tensor* self, Tensor* mask, Parsed& p) {
  for (int i = 0; i < mask->ndim(); i++) {
    RL_CHECK(p.dim + i < self->ndim(), Index, "too many indices for tensor of dimension %d", self->ndim());
    RL_CHECK(mask->size(i) == self->size(p.dim + i), Index,
             "The shape of the mask %s at index %d does not match the shape of the indexed tensor %s at index %d",
             shape_text(mask).c_str(), i, shape_text(self).c_str(), p.dim + i);
  }
  if (mask->ndim() == 0) {
    // A scalar mask adds a dim of size 1 or 0.
    push(p.spec, kNewAxis, 0, 1, 1);
    int64_t n = *mask->as<uint8_t>() ? 1 : 0;
    TensorRef zero = empty(RL_INT64, 1, &n);
    fill_value(zero.get(), Value::of(0));
    p.tensors.emplace_back(p.view_dim++, std::move(zero));
    p.trivial = false;
    return;
  }
  std::vector<TensorRef> parts = call_many(ops::nonzero_numpy, {Value::of(mask)});
  for (int i = 0; i < mask->ndim(); i++) {
    push(p.spec, kSlice, 0, 1, self->size(p.dim));
    p.tensors.emplace_back(p.view_dim++, std::move(parts[static_cast<size_t>(i)]));
    p.dim++;
  }
}

void take_index_tensor(const Tensor* self, TensorRef index, Parsed& p) {
  DType d = index->dtype();
  if (d == RL_BOOL || d == RL_UINT8)
    return take_mask(self, d == RL_BOOL ? index.get() : cast(index.get(), RL_BOOL).get(), p);
  RL_CHECK(is_integral(d), Index, "tensors used as indices must be long, int, byte or bool tensors, got %s",
           dtype_name(d));
  RL_CHECK(p.dim < self->ndim(), Index, "too many indices for tensor of dimension %d", self->ndim());
  push(p.spec, kSlice, 0, 1, self->size(p.dim));
  p.dim++;
  p.tensors.emplace_back(p.view_dim++, cast(index.get(), RL_INT64));
}

void take(const Tensor* self, PyObject* item, int ellipsis_dims, Parsed& p) {
  RL_CHECK(!p.past_end || item == Py_Ellipsis, Index, "too many indices for tensor of dimension %d after ellipses",
           self->ndim());
  if (PySlice_Check(item)) {
    RL_CHECK(p.dim < self->ndim(), Index, "too many indices for tensor of dimension %d", self->ndim());
    return take_slice(self, item, p);
  }
  if (item == Py_Ellipsis) {
    // Each of several ellipses stands for as many dims as a single one would; what is too many is no error by itself.
    p.past_end = ellipsis_dims > self->ndim() - p.dim;
    for (int i = 0; i < ellipsis_dims && p.dim < self->ndim(); i++) {
      push(p.spec, kSlice, 0, 1, self->size(p.dim));
      p.dim++;
      p.view_dim++;
    }
    return;
  }
  if (item == Py_None) {
    push(p.spec, kNewAxis, 0, 1, 1);
    p.view_dim++;
    p.trivial = false;
    return;
  }
  if (PyBool_Check(item)) {
    TensorRef mask = empty(RL_BOOL, 0, nullptr);
    *mask->as<uint8_t>() = item == Py_True;
    return take_mask(self, mask.get(), p);
  }
  int64_t i;
  if (is_tensor(item)) {
    Tensor* t = tensor_of(item);
    if (t->ndim() == 0 && is_integral(t->dtype()) && t->dtype() != RL_UINT8 && !t->is_meta()) {
      PyObject* number = item_of(t);
      if (!number) throw PythonError();
      i = PyLong_AsLongLong(number);
      Py_DECREF(number);
    } else {
      return take_index_tensor(self, TensorRef::share(t), p);
    }
  } else if (!std::strncmp(Py_TYPE(item)->tp_name, "numpy.bool", 10)) {
    return take(self, PyObject_IsTrue(item) ? Py_True : Py_False, 0, p);
  } else if (!int_from(item, i)) {
    RL_CHECK(
        PySequence_Check(item) || is_array(item), Index,
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got %s)",
        Py_TYPE(item)->tp_name);
    TensorRef t = tensor_from_data(item, -1, true);
    if (t->numel == 0 && is_float(t->dtype())) t = cast(t.get(), RL_INT64);
    return take_index_tensor(self, std::move(t), p);
  }
  RL_CHECK(self->ndim() > 0, Index,
           "invalid index of a 0-dim tensor. Use `tensor.item()` in Python to convert it to a number");
  RL_CHECK(p.dim < self->ndim(), Index, "too many indices for tensor of dimension %d", self->ndim());
  push(p.spec, kSelect, select_position(self, p.dim, i), 0, 0);
  p.dim++;
  p.trivial = false;
}

// A sequence other than a tuple that holds sequences, tensors, slices, ... or None stands for a tuple, as once in
// NumPy; longer ones than 31, and those of numbers alone, are index tensors.
bool stands_for_tuple(PyObject* index) {
  if (!PySequence_Check(index) || is_tensor(index) || is_array(index)) return false;
  if (PyTuple_Check(index) || PyUnicode_Check(index) || PyBytes_Check(index)) return false;
  Py_ssize_t n = PySequence_Size(index);
  bool found = false;
  for (Py_ssize_t i = 0; i < n && n < 32 && !found; i++) {
    PyObject* item = PySequence_GetItem(index, i);
    if (!item) break;
    found = PySlice_Check(item) || item == Py_Ellipsis || item == Py_None || is_tensor(item) || PySequence_Check(item);
    Py_DECREF(item);
  }
  PyErr_Clear();
  return found;
}

void parse_index(const Tensor* self, PyObject* index, Parsed& p) {
  if (RL_UNLIKELY(stands_for_tuple(index))) {
    if (PyErr_WarnEx(PyExc_UserWarning,
                     "x[seq] with a sequence that holds sequences, slices or tensors is read as x[tuple(seq)]; write "
                     "tuple(seq), or rushlight.tensor(seq) for an index tensor",
                     1) < 0)
      throw PythonError();
    PyObject* tuple = PySequence_Tuple(index);
    if (!tuple) throw PythonError();
    struct Release {
      PyObject* o;
      ~Release() { Py_DECREF(o); }
    } guard{tuple};
    return parse_index(self, tuple, p);
  }
  PyObject* const* items = &index;
  Py_ssize_t n = 1;
  if (PyTuple_Check(index)) {
    items = &PyTuple_GET_ITEM(index, 0);
    n = PyTuple_GET_SIZE(index);
  }
  int used = 0;
  for (Py_ssize_t k = 0; k < n; k++) used += std::max(consumed(items[k]), 0);
  RL_CHECK(used <= self->ndim(), Index, "%s",
           self->ndim() == 0 && n == 1 && !PySlice_Check(items[0])
               ? "invalid index of a 0-dim tensor. Use `tensor.item()` in Python to convert it to a number"
               : ("too many indices for tensor of dimension " + std::to_string(self->ndim())).c_str());
  int rest = self->ndim() - used;
  for (Py_ssize_t k = 0; k < n; k++) take(self, items[k], rest, p);
  while (p.dim < self->ndim()) {
    push(p.spec, kSlice, 0, 1, self->size(p.dim));
    p.dim++;
    p.view_dim++;
  }
}

TensorRef basic_view(Tensor* self, const Parsed& p) {
  RL_CHECK(p.spec.size() / 4 <= kMaxSpec, Index, "an index may have at most %d items", kMaxSpec);
  return call(ops::_basic_index, {Value::of(self), Value::of_ints(p.spec.data(), static_cast<int>(p.spec.size()))});
}

bool overridden(PyObject* self, PyObject* index) {
  if (RL_LIKELY(classify(self) == kIsTensor && !thread_state.mode_depth)) {
    if (RL_LIKELY(!PyTuple_Check(index) && !PyList_Check(index)))
      return (classify(index) & kHasOverride) && !thread_state.overrides_disabled;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(index); i++)
      if (classify(PySequence_Fast_GET_ITEM(index, i)) & kHasOverride) return !thread_state.overrides_disabled;
    return false;
  }
  return !thread_state.overrides_disabled;
}

// The full list for index/index_put_: one entry per dim of the view, null where it is not indexed.
std::vector<Tensor*> index_list(const Parsed& p) {
  std::vector<Tensor*> list;
  for (const auto& [position, t] : p.tensors) {
    while (static_cast<int>(list.size()) < position) list.push_back(nullptr);
    list.push_back(t.get());
  }
  return list;
}

// A mask with one element for each of self, alone: index and index_put_ take it as it is.
Tensor* whole_mask(const Tensor* self, PyObject* index) {
  if (!is_tensor(index)) return nullptr;
  Tensor* mask = tensor_of(index);
  return mask->dtype() == RL_BOOL && mask->ndim() > 0 && same_shape(mask, self) && !mask->is_meta() &&
                 !self->is_meta() && !mask->is_wrapped() && !self->is_wrapped()
             ? mask
             : nullptr;
}

}  // namespace

// The view that a spec describes: per item (select, start) | (slice, start, step, length) | (new axis).
RL_OP(_basic_index) {
  Tensor* self = call.tensor(0);
  const Value& spec = call[1];
  RL_CHECK(spec.size % 4 == 0, Value, "_basic_index: not a spec");
  Dims shape, strides;
  int64_t offset = 0;
  int dim = 0;
  for (uint32_t i = 0; i < spec.size; i += 4) {
    int64_t code = spec.ints[i], start = spec.ints[i + 1], step = spec.ints[i + 2], length = spec.ints[i + 3];
    if (code == kNewAxis) {
      shape.push(1);
      strides.push(1);
      continue;
    }
    RL_CHECK(dim < self->ndim(), Value, "_basic_index: the spec has too many items");
    offset += start * self->stride(dim);
    if (code == kSlice) {
      shape.push(length);
      strides.push(self->stride(dim) * step);
    }
    dim++;
  }
  call.set(0, make_view(self, shape, strides, offset));
}

PyObject* tensor_subscript(PyObject* object, PyObject* index) {
  if (RL_UNLIKELY(overridden(object, index))) {
    PyObject* stack[2] = {object, index};
    return call_override(method_object("__getitem__"), nullptr, stack, 2, nullptr);
  }
  return guarded([&]() -> PyObject* {
    Tensor* self = tensor_of(object);
    if (RL_LIKELY(PyLong_CheckExact(index) && self->ndim() > 0 && !self->is_wrapped() &&
                  !(self->base && self->base->is_wrapped()) && (!thread_state.grad_mode || !needs_grad(self)))) {
      int64_t i;
      int_from(index, i);
      i = select_position(self, 0, i);
      TensorRef v = make_view(self, self->ndim() - 1, self->shape() + 1, self->strides() + 1,
                              self->data() + i * self->stride(0) * itemsize(self->dtype()));
      if (!thread_state.grad_mode) mark_view(v.get(), false);
      return v.take()->object();
    }
    if (Tensor* mask = whole_mask(self, index))
      return call(ops::index, {Value::of(self), Value::of_tensors(&mask, 1)}).take()->object();
    Parsed p;
    p.spec.reserve(16);
    parse_index(self, index, p);
    if (p.tensors.empty()) return basic_view(self, p).take()->object();
    TensorRef view = p.trivial ? TensorRef::share(self) : basic_view(self, p);
    std::vector<Tensor*> list = index_list(p);
    return call(ops::index, {Value::of(view), Value::of_tensors(list.data(), list.size())}).take()->object();
  });
}

int tensor_assign(PyObject* object, PyObject* index, PyObject* value) {
  if (!value) {
    PyErr_SetString(PyExc_TypeError, "Tensor does not support deleting items");
    return -1;
  }
  if (RL_UNLIKELY(overridden(object, index) || (classify(value) & kHasOverride && !thread_state.overrides_disabled))) {
    PyObject* stack[3] = {object, index, value};
    PyObject* r = call_override(method_object("__setitem__"), nullptr, stack, 3, nullptr);
    if (!r) return -1;
    Py_DECREF(r);
    return 0;
  }
  PyObject* r = guarded([&]() -> PyObject* {
    Tensor* self = tensor_of(object);
    Value source;
    TensorRef made;
    if (is_tensor(value)) {
      source = Value::of(tensor_of(value));
    } else if (scalar_from(value, source, true)) {
      RL_CHECK(source.tag != Tag::BigInt, Value, "__setitem__: expected a number within 64 bits, got a larger integer");
    } else {
      made = tensor_from_data(value, -1, true);
      source = Value::of(made);
    }
    RL_CHECK(!has_internal_overlap(self), Runtime,
             "__setitem__: more than one element of the written-to tensor refers to a single memory location; clone() "
             "the tensor before writing to it (shape %s, strides %s)",
             shape_text(self).c_str(), shape_text(self->ndim(), self->strides()).c_str());
    Parsed p;
    Tensor* mask = source.is_tensor() && source.tensor->numel != 1 ? nullptr : whole_mask(self, index);
    if (mask)
      p.tensors.emplace_back(0, TensorRef::share(mask));
    else
      parse_index(self, index, p);
    bool whole = p.trivial;
    if (p.tensors.empty()) {
      TensorRef view = whole ? TensorRef::share(self) : basic_view(self, p);
      if (source.is_tensor()) {
        Tensor* from = source.tensor;
        // Leading dims of size 1 may be surplus: x[0] = y of shape (1, n).
        TensorRef trimmed;
        int extra = from->ndim() - view->ndim();
        if (extra > 0) {
          for (int i = 0; i < extra; i++)
            RL_CHECK(from->size(i) == 1, Runtime,
                     "shape mismatch: value tensor of shape %s cannot be broadcast to indexing result of shape %s",
                     shape_text(from).c_str(), shape_text(view.get()).c_str());
          Dims shape(view->ndim(), from->shape() + extra);
          trimmed = call(ops::reshape, {Value::of(from), Value::of(shape)});
          from = trimmed.get();
        }
        call_inplace(ops::copy_, {Value::of(view), Value::of(from)});
      } else {
        call_inplace(ops::fill, {Value::of(view), source});
      }
      Py_RETURN_NONE;
    }
    TensorRef view = whole ? TensorRef::share(self) : basic_view(self, p);
    if (!source.is_tensor()) {
      made = empty(self->dtype(), 0, nullptr, self->device());
      check_fits("index_put_", source,
                 itemsize(self->dtype()) == 2 && is_float(self->dtype()) ? RL_FLOAT32 : self->dtype());
      ScalarTensor number(source);
      if (!made->is_meta()) check(rl_copy(&number.desc, &made->desc));
      source = Value::of(made);
    } else if (source.tensor->dtype() != self->dtype()) {
      if (source.tensor->ndim() == 0 || made) {
        made = call(ops::to_dtype, {source, Value::of(self->dtype())});
        source = Value::of(made);
      }
    }
    std::vector<Tensor*> list = index_list(p);
    call_inplace(ops::index_put_,
                 {Value::of(view), Value::of_tensors(list.data(), list.size()), source, Value::of(false)});
    Py_RETURN_NONE;
  });
  if (!r) return -1;
  Py_DECREF(r);
  return 0;
}

}  // namespace rl
