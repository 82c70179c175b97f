// Lookups in tables, dropout, and the functionals of single operations.
#include "../autograd/autograd.h"
#include "network.h"
#include "ops.h"
#include "rushlight/embedding.h"

namespace rl {

namespace {

using ll = long long;

void check_table(const char* op, const Tensor* indices, const Tensor* weight) {
  RL_CHECK(weight->ndim() == 2, Runtime, "%s: 'weight' must be 2-D, got shape %s", op, shape_text(weight).c_str());
  RL_CHECK(indices->dtype() == RL_INT64 || indices->dtype() == RL_INT32, Runtime,
           "%s: Expected tensor for argument 'indices' to have one of the following scalar types: Long, Int; but got "
           "%s instead",
           op, dtype_title(indices->dtype()));
}

TensorRef lookup(Call& call, Tensor* weight, Tensor* indices) {
  TensorRef wide = cast(indices, RL_INT64);
  Dims shape(indices->ndim(), indices->shape());
  shape.push(weight->size(1));
  Tensor* out = call.result(0, weight->dtype(), shape);
  if (!out->is_meta()) {
    GilRelease gil(out->numel >= kGilWork);
    check(rl_embedding(&weight->desc, &wide->desc, &out->desc));
  }
  return wide;
}

}  // namespace

// input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse
RL_OP(_nn_embedding) {
  Tensor *indices = call.tensor(0), *weight = call.tensor(1);
  check_table("embedding", indices, weight);
  int64_t rows = weight->size(0), padding = -1;
  if (!call[2].is_none()) {
    padding = call.integer(2);
    if (padding < -rows || padding >= rows) {
      PyErr_Format(PyExc_AssertionError,
                   "embedding: padding_idx must be within num_embeddings: expected %lld to %lld, got %lld",
                   static_cast<ll>(-rows), static_cast<ll>(rows - 1), static_cast<ll>(padding));
      throw PythonError();
    }
    if (padding < 0) padding += rows;
  }
  if (!call[3].is_none() && !weight->is_meta()) {
    TensorRef wide = cast(indices, RL_INT64);
    GradGuard off(false);
    check(rl_embedding_renorm(&weight->desc, &wide->desc, call.real(3), call.real(4)));
    bump_version(weight);
  }
  call.set(0, rl::call(ops::embedding, {Value::of(weight), Value::of(indices), Value::of(padding), call[5], call[6]}));
}
// weight, indices, padding_idx, scale_grad_by_freq, sparse
RL_OP(embedding) {
  Tensor *weight = call.tensor(0), *indices = call.tensor(1);
  check_table("embedding", indices, weight);
  lookup(call, weight, indices);
}
// grad, indices, rows, padding_idx, scale_grad_by_freq
RL_OP(_embedding_backward) {
  Tensor *grad = call.tensor(0), *indices = call.tensor(1);
  Dims shape{call.integer(2), grad->size(grad->ndim() - 1)};
  Tensor* out = call.result(0, grad->dtype(), shape);
  if (out->is_meta()) return;
  TensorRef wide = cast(indices, RL_INT64);
  GilRelease gil(out->numel + grad->numel >= kGilWork);
  check(rl_embedding_backward(&grad->desc, &wide->desc, call.integer(3), call.flag(4), &out->desc));
}

// weight, indices, max_norm, norm_type
RL_OP(embedding_renorm_) {
  Tensor *weight = call.tensor(0), *indices = call.tensor(1);
  check_table("embedding_renorm_", indices, weight);
  if (weight->is_meta()) return;
  TensorRef wide = cast(indices, RL_INT64);
  check(rl_embedding_renorm(&weight->desc, &wide->desc, call.real(2), call.real(3)));
}

namespace {

struct Bags {
  TensorRef indices, offsets;
  rl_bag_mode mode;
  int last;
  int64_t count;  // of bags
  Bags(Tensor* i, Tensor* o, int64_t m, bool include_last)
      : indices(cast(i, RL_INT64)), offsets(cast(o, RL_INT64)), mode(static_cast<rl_bag_mode>(m)), last(include_last) {
    count = o->numel - (include_last ? 1 : 0);
    RL_CHECK(count >= 0, Runtime, "embedding_bag: include_last_offset: number of offsets should be at least 1, got 0");
  }
};

rl_tensor* desc_of(Tensor* t) { return t ? &t->desc : nullptr; }

}  // namespace

// weight, indices, offsets, mode, include_last_offset, per_sample_weights, padding_idx, scale_grad_by_freq -> out,
// bag_size, max_indices
RL_OP(_embedding_bag) {
  Tensor *weight = call.tensor(0), *scale = call.tensor_or_null(5);
  check_table("embedding_bag", call.tensor(1), weight);
  check_table("embedding_bag", call.tensor(2), weight);
  RL_CHECK(is_float(weight->dtype()), NotImplemented, "\"embedding_bag\" not implemented for '%s'",
           dtype_title(weight->dtype()));
  RL_CHECK(!scale || scale->dtype() == weight->dtype(), Runtime,
           "embedding_bag: expected per_sample_weights of dtype %s, got %s", dtype_name(weight->dtype()),
           scale ? dtype_name(scale->dtype()) : "");
  Bags bags(call.tensor(1), call.tensor(2), call.integer(3), call.flag(4));
  Dims shape{bags.count, weight->size(1)};
  Tensor* out = call.result(0, weight->dtype(), shape);
  Tensor* sizes = call.result(1, RL_INT64, Dims{bags.count});
  Tensor* largest = call.result(2, RL_INT64, bags.mode == RL_BAG_MAX ? shape : Dims{0});
  if (out->is_meta()) return;
  GilRelease gil(bags.indices->numel * weight->size(1) >= kGilWork);
  check(rl_embedding_bag(&weight->desc, &bags.indices->desc, &bags.offsets->desc, bags.mode, bags.last, desc_of(scale),
                         call.integer(6), &out->desc, &sizes->desc,
                         bags.mode == RL_BAG_MAX ? &largest->desc : nullptr));
}
// grad, rows, indices, offsets, mode, include_last_offset, per_sample_weights, padding_idx, scale_grad_by_freq,
// bag_size, max_indices
RL_OP(_embedding_bag_backward) {
  Tensor* grad = call.tensor(0);
  Bags bags(call.tensor(2), call.tensor(3), call.integer(4), call.flag(5));
  Tensor* out = call.result(0, grad->dtype(), Dims{call.integer(1), grad->size(1)});
  if (out->is_meta()) return;
  GilRelease gil(out->numel + grad->numel >= kGilWork);
  check(rl_embedding_bag_backward(&grad->desc, &bags.indices->desc, &bags.offsets->desc, bags.mode, bags.last,
                                  desc_of(call.tensor_or_null(6)), call.integer(7), call.flag(8),
                                  bags.mode == RL_BAG_MAX ? &call.tensor(10)->desc : nullptr, &out->desc));
}
// grad, weight, indices, offsets, include_last_offset, padding_idx
RL_OP(_embedding_bag_weights_backward) {
  Tensor *grad = call.tensor(0), *weight = call.tensor(1);
  Bags bags(call.tensor(2), call.tensor(3), RL_BAG_SUM, call.flag(4));
  Tensor* out = call.result(0, grad->dtype(), Dims{bags.indices->numel});
  if (out->is_meta()) return;
  GilRelease gil(grad->numel >= kGilWork);
  check(rl_embedding_bag_weights_backward(&grad->desc, &weight->desc, &bags.indices->desc, &bags.offsets->desc,
                                          bags.last, call.integer(5), &out->desc));
}

// input, p, training, inplace
RL_OP(_nn_dropout) {
  double p = call.real(1);
  bool inplace = call.flag(3);
  Tensor* input = call.tensor(0);
  RL_CHECK(p >= 0 && p <= 1, Value, "dropout: dropout probability has to be between 0 and 1, but got %g", p);
  if (p == 0 || !call.flag(2) || input->numel == 0) return call.set(0, TensorRef::share(input));
  TensorRef mask;
  if (p == 1) {
    TensorRef zero = empty(input->dtype(), Dims{}, input->device());
    fill_value(zero.get(), Value::of(0));
    mask = std::move(zero);
  } else {
    GradGuard off(false);
    mask = rl::call(ops::_dropout_mask, {Value::of(input), Value::of(p)});
  }
  if (!inplace) return call.set(0, rl::call(ops::mul, {Value::of(input), Value::of(mask)}));
  call_inplace(ops::mul, {Value::of(input), Value::of(mask)});
  call.set(0, TensorRef::share(input));
}

// input, inplace
RL_OP(_nn_relu) {
  if (RL_LIKELY(!call.flag(1))) return call.set(0, rl::call(ops::relu, {call[0]}));
  call_inplace(ops::relu, {call[0]});
  call.set(0, TensorRef::share(call.tensor(0)));
}

// input, approximate
RL_OP(_nn_gelu) { call.set(0, rl::call(ops::gelu, {call[0], call[1]})); }

}  // namespace rl
