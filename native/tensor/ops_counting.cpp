// Searching, counting and finding what is the same: shape rules over the kernels of rushlight/index.h.
#include <cmath>

#include "op.h"
#include "ops.h"
#include "rushlight/index.h"
#include "rushlight/reduce.h"
#include "rushlight/sort.h"

namespace rl {

using ll = long long;

RL_OP(_repeated_positions) {
  Tensor* repeats = call.tensor(0);
  Tensor* out = call.result(0, RL_INT64, Dims{call.integer(1)});
  GilRelease gil(out->numel >= 65536);
  RL_KERNEL(out, rl_repeat_interleave(&repeats->desc, &out->desc));
}

// ---------------------------------------------------------------- searching

namespace {

void search(Call& call, Tensor* sequence, const Value& wanted, Tensor* sorter, bool narrow, bool right) {
  const char* op = call.op.name;
  Value pair[2] = {Value::of(sequence), wanted};
  DType dtype = result_type(pair, 2);
  RL_CHECK(dtype != RL_BOOL && !is_complex(dtype), NotImplemented, "%s: not implemented for %s", op, dtype_name(dtype));
  TensorRef number;
  Tensor* values = wanted.is_tensor() ? wanted.tensor : nullptr;
  if (!values) {
    number = empty(dtype, 0, nullptr, sequence->device());
    fill_value(number.get(), wanted);
    values = number.get();
  }
  RL_CHECK(sequence->ndim() > 0, Runtime, "%s: expected a sorted sequence of at least one dimension, got none", op);
  RL_CHECK(values->ndim() > 0 || sequence->ndim() == 1, Runtime,
           "%s: a single value needs a sequence of one dimension, got shape %s", op, shape_text(sequence).c_str());
  if (sequence->ndim() > 1) {
    bool fits = sequence->ndim() == values->ndim();
    for (int i = 0; fits && i < sequence->ndim() - 1; i++) fits = sequence->size(i) == values->size(i);
    RL_CHECK(fits, Runtime,
             "%s: expected sequences in one dimension, or one for each row of the values; got shapes %s and %s", op,
             shape_text(sequence).c_str(), shape_text(values).c_str());
  }
  if (sorter) {
    RL_CHECK(same_shape(sorter, sequence), Runtime, "%s: shape of sorter; expected %s, got %s", op,
             shape_text(sequence).c_str(), shape_text(sorter).c_str());
    RL_CHECK(sorter->dtype() == RL_INT64, Runtime, "%s: dtype of sorter; expected int64, got %s", op,
             dtype_name(sorter->dtype()));
  }
  DType result = narrow ? RL_INT32 : RL_INT64;
  RL_CHECK(!call.out || !call.out[0] || call.out[0]->dtype() == result, Runtime,
           "%s: dtype of out; expected %s, got %s", op, dtype_name(result), dtype_name(call.out[0]->dtype()));
  RL_CHECK(!narrow || sequence->size(sequence->ndim() - 1) < INT32_MAX, Runtime,
           "%s: the sequence is too long for int32 results; its last dimension has size %lld", op,
           static_cast<ll>(sequence->size(sequence->ndim() - 1)));
  TensorRef s = cast(sequence, dtype), v = cast(values, dtype);
  Tensor* out = call.result(0, result, Dims(values->ndim(), values->shape()));
  if (out->is_meta() || out->numel == 0) return;
  GilRelease gil(out->numel >= 4096);
  check(rl_searchsorted(&s->desc, &v->desc, sorter ? &sorter->desc : nullptr, right, &out->desc));
}

}  // namespace

RL_OP(searchsorted) {
  bool right = call.flag(3);
  if (!call[4].is_none()) {
    const char* side = PyUnicode_AsUTF8(call[4].object);
    if (!side) throw PythonError();
    bool is_right = !std::strcmp(side, "right");
    RL_CHECK(is_right || !std::strcmp(side, "left"), Runtime,
             "searchsorted: side; expected 'left' or 'right', got '%s'", side);
    RL_CHECK(is_right || !right, Runtime, "searchsorted: side='left' and right=True contradict each other");
    right = is_right;
  }
  search(call, call.tensor(0), call[1], call.tensor_or_null(5), call.flag(2), right);
}
RL_OP(bucketize) {
  Tensor* boundaries = call.tensor(1);
  RL_CHECK(boundaries->ndim() == 1, Runtime, "bucketize: boundaries; expected a vector, got shape %s",
           shape_text(boundaries).c_str());
  search(call, boundaries, call[0], nullptr, call.flag(2), call.flag(3));
}
RL_OP(_isin) {
  Tensor *elements = call.tensor(0), *sorted = call.tensor(1);
  Tensor* out = call.result(0, RL_BOOL, Dims(elements->ndim(), elements->shape()));
  GilRelease gil(out->numel >= 4096);
  RL_KERNEL(out, rl_isin(&elements->desc, &sorted->desc, call.flag(2), &out->desc));
}

// ---------------------------------------------------------------- what is the same

RL_OP(_sorted_slices) {
  Tensor* t = call.tensor(0);
  int dim = wrap_dim(call.integer(1), t->ndim());
  Tensor* out = call.result(0, RL_INT64, Dims{t->size(dim)});
  GilRelease gil(t->numel >= 4096);
  RL_KERNEL(out, rl_sort_slices(&t->desc, dim, &out->desc));
}
RL_OP(_runs) {
  Tensor* t = call.tensor(0);
  int dim = static_cast<int>(call.integer(1));
  Tensor* order = call.tensor_or_null(2);
  RL_CHECK(!t->is_meta(), NotImplemented,
           "unique: the size of the result depends on data that a meta tensor does not have");
  int64_t n = t->size(dim < 0 ? 0 : dim), count = 0;
  TensorRef flags = empty(RL_BOOL, Dims{n});
  check(rl_run_flags(&t->desc, dim, order && !call.flag(3) ? &order->desc : nullptr, &flags->desc));
  check(rl_mask_count(&flags->desc, nullptr, &count));
  const bool inverted = call.flag(4);
  Tensor* first = call.result(0, RL_INT64, Dims{count});
  Tensor* inverse = call.result(1, RL_INT64, Dims{inverted ? n : 0});
  Tensor* lengths = call.result(2, RL_INT64, Dims{count});
  check(rl_run_fill(&flags->desc, order ? &order->desc : nullptr, &first->desc, inverted ? &inverse->desc : nullptr,
                    &lengths->desc));
}

// ---------------------------------------------------------------- counting

RL_OP(bincount) {
  Tensor *t = call.tensor(0), *weights = call.tensor_or_null(1);
  int64_t least = call.integer(2), n = 0;
  RL_CHECK(least >= 0, Runtime, "bincount: minlength; expected at least 0, got %lld", static_cast<ll>(least));
  RL_CHECK(is_integral(t->dtype()), NotImplemented, "bincount: not implemented for %s", dtype_name(t->dtype()));
  bool nothing = t->ndim() == 1 && t->numel == 0;
  RL_CHECK(t->ndim() == 1, Runtime, "bincount: expected a vector, got shape %s", shape_text(t).c_str());
  RL_CHECK(!weights || nothing || same_shape(weights, t), Runtime, "bincount: shape of weights; expected %s, got %s",
           shape_text(t).c_str(), weights ? shape_text(weights).c_str() : "");
  RL_CHECK(!t->is_meta(), NotImplemented,
           "bincount: the size of the result depends on data that a meta tensor does not have");
  if (!nothing) {
    int64_t one = 1, bounds[2];
    rl_tensor low{}, high{};
    low.data = bounds;
    low.dtype = RL_INT64;
    low.ndim = 1;
    low.shape = low.strides = &one;
    high = low;
    high.data = bounds + 1;
    check(rl_aminmax(&t->desc, &low, &high));
    RL_CHECK(bounds[0] >= 0, Runtime, "bincount: expected no negative numbers, got %lld", static_cast<ll>(bounds[0]));
    n = bounds[1] + 1;
  }
  n = std::max(n, least);
  DType dtype = !weights || nothing ? RL_INT64 : weights->dtype() == RL_FLOAT32 ? RL_FLOAT32 : RL_FLOAT64;
  Tensor* out = call.result(0, dtype, Dims{n});
  if (nothing) return fill_value(out, Value::of(0));
  TensorRef w = weights ? cast(weights, dtype) : TensorRef();
  GilRelease gil(t->numel >= 4096);
  check(rl_bincount(&t->desc, w ? &w->desc : nullptr, &out->desc));
}

RL_OP(histc) {
  Tensor* t = call.tensor(0);
  int64_t bins = call.integer(1);
  double low = call.real(2), high = call.real(3);
  RL_CHECK(is_float(t->dtype()), NotImplemented, "histc: not implemented for %s", dtype_name(t->dtype()));
  RL_CHECK(bins > 0, Runtime, "histc: bins; expected more than 0, got %lld", static_cast<ll>(bins));
  RL_CHECK(!call.out || !call.out[0] || call.out[0]->dtype() == t->dtype(), Runtime,
           "histc: dtype of out; expected %s, got %s", dtype_name(t->dtype()), dtype_name(call.out[0]->dtype()));
  if (low == high && t->numel && !t->is_meta()) {
    Dims ones, zeros;
    for (int i = 0; i < t->ndim(); i++) ones.push(1), zeros.push(0);
    double bounds[2];
    rl_tensor first{}, second{};
    first.data = bounds;
    first.dtype = RL_FLOAT64;
    first.ndim = t->ndim();
    first.shape = ones.v;
    first.strides = zeros.v;
    second = first;
    second.data = bounds + 1;
    check(rl_aminmax(&t->desc, &first, &second));
    low = bounds[0];
    high = bounds[1];
  }
  if (low == high) low -= 1, high += 1;
  RL_CHECK(std::isfinite(low) && std::isfinite(high), Runtime, "histc: expected a finite range, got [%g, %g]", low,
           high);
  RL_CHECK(low < high, Runtime, "histc: expected max above min, got min %g and max %g", low, high);
  Tensor* out = call.result(0, t->dtype(), Dims{bins});
  GilRelease gil(t->numel >= 4096);
  RL_KERNEL(out, rl_histc(&t->desc, low, high, &out->desc));
}

RL_OP(_histogram) {
  Tensor *t = call.tensor(0), *weight = call.tensor_or_null(2);
  std::vector<const rl_tensor*> edges;
  Dims shape;
  for (uint32_t i = 0; i < call[1].size; i++) {
    edges.push_back(&call[1].tensors[i]->desc);
    shape.push(call[1].tensors[i]->numel - 1);
  }
  Tensor* out = call.result(0, t->dtype(), shape);
  GilRelease gil(t->numel >= 4096);
  RL_KERNEL(out, rl_histogramdd(&t->desc, static_cast<int32_t>(edges.size()), edges.data(),
                                weight ? &weight->desc : nullptr, call.flag(3), &out->desc));
}

}  // namespace rl
