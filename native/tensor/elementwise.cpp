// The elementwise families: promotion, broadcasting and one kernel call.
#include "rushlight/elementwise.h"
#include "op.h"

#include <cmath>

namespace rl {

void run_elementwise(Call& call);

namespace {

// PyTorch's promotion has three ranks: tensors with dims, 0-dim tensors, Python numbers. A lower rank only decides when
// its category (bool < integer < float < complex) is higher.
int category(DType d) { return d == RL_BOOL ? 0 : d <= RL_INT64 ? 1 : d <= RL_FLOAT64 ? 2 : 3; }

DType number_dtype(const Value& v) {
  switch (v.tag) {
    case Tag::Bool:
      return RL_BOOL;
    case Tag::Int:
    case Tag::BigInt:
      return RL_INT64;
    case Tag::Double:
      return default_dtype;
    default:
      return complex_dtype(default_dtype);
  }
}

struct Ranks {
  int tensor = -1, zero_dim = -1, number = -1;  // dtypes, -1 when absent
  void add(const Value& v) {
    auto merge = [](int& slot, DType d) { slot = slot < 0 ? d : promote(static_cast<DType>(slot), d); };
    if (v.tag == Tag::Tensor)
      merge(v.tensor->ndim() ? tensor : zero_dim, v.tensor->dtype());
    else if (v.tag == Tag::TensorList)
      for (uint32_t i = 0; i < v.size; i++) merge(v.tensors[i]->ndim() ? tensor : zero_dim, v.tensors[i]->dtype());
    else if (v.is_scalar() || v.tag == Tag::BigInt)
      merge(number, number_dtype(v));
  }
  static int combine(int high, int low) {
    if (high < 0) return low;
    if (low < 0) return high;
    auto h = static_cast<DType>(high), l = static_cast<DType>(low);
    if (category(h) >= category(l)) return high;
    // A float16 tensor with a complex number keeps its own precision's complex type.
    return promote(h, category(l) == 3 && category(h) == 2 ? complex_dtype(h) : l);
  }
  DType result() const {
    int low = combine(zero_dim, number);
    int r = combine(tensor, low);
    if (tensor >= 0 && low >= 0 && category(static_cast<DType>(low)) == 3 && category(static_cast<DType>(tensor)) == 2)
      r = complex_dtype(static_cast<DType>(tensor));
    return static_cast<DType>(r < 0 ? default_dtype : r);
  }
};

void check_weight(const Op& op, const Value& v, DType dtype) {
  RL_CHECK(v.tag != Tag::Bool || dtype == RL_BOOL, Runtime,
           "%s: Boolean alpha only supported for Boolean results, got %s", op.title(), dtype_name(dtype));
  RL_CHECK(v.tag != Tag::Double || dtype > RL_INT64, Runtime,
           "%s: For integral input tensors, argument alpha must not be a floating point number; the result is %s",
           op.title(), dtype_name(dtype));
  RL_CHECK(v.tag != Tag::Complex || is_complex(dtype), Runtime,
           "%s: For non-complex input tensors, argument alpha must not be a complex number; the result is %s",
           op.title(), dtype_name(dtype));
}

}  // namespace

bool compares(const Op& op) {
  return op.run == run_elementwise && static_cast<const ElementwiseFamily*>(op.family)->result == 1;
}

DType result_type(const Value* values, int count) {
  Ranks ranks;
  for (int i = 0; i < count; i++) ranks.add(values[i]);
  return ranks.result();
}

Dims broadcast_shapes(const Tensor* const* tensors, int count, const char* what) {
  Dims d;
  for (int k = 0; k < count; k++) d.n = std::max(d.n, tensors[k]->ndim());
  for (int i = 0; i < d.n; i++) d[i] = 1;
  for (int k = 0; k < count; k++) {
    const Tensor* t = tensors[k];
    for (int i = 0; i < t->ndim(); i++) {
      int at = d.n - t->ndim() + i;
      if (t->size(i) == d[at] || t->size(i) == 1) continue;
      RL_CHECK(d[at] == 1, Runtime,
               "%s: The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton dimension %d; "
               "the shapes are %s and %s",
               what, static_cast<long long>(d[at]), static_cast<long long>(t->size(i)), at,
               shape_text(tensors[0]).c_str(), shape_text(t).c_str());
      d[at] = t->size(i);
    }
  }
  return d;
}

namespace {

// The tensor whose order in memory a result of this shape takes: the first that has an order in all dims.
const Tensor* layout_among(Tensor* const* tensors, int n, const Dims& shape) {
  const int64_t count = count_elements(shape.n, shape.v);
  for (int i = 0; i < n; i++) {
    const Tensor* t = tensors[i];
    if (t->ndim() == shape.n && t->numel == count && (t->contiguous || !has_internal_overlap(t))) return t;
  }
  return nullptr;
}

}  // namespace

void elementwise(Call& call, const ElementwiseSpec& spec, const Value* const* inputs, int input_count) {
  const rl_tensor* in[4];
  Tensor* tensors[4];
  alignas(ScalarTensor) unsigned char scalars[4][sizeof(ScalarTensor)];
  int tensor_count = 0, numbers = 0;
  DType common = RL_BOOL;
  bool uniform = true;  // all tensors have one dtype and one shape
  for (int i = 0; i < input_count; i++) {
    const Value& v = *inputs[i];
    if (RL_LIKELY(v.tag == Tag::Tensor)) {
      Tensor* t = v.tensor;
      in[i] = &t->desc;
      if (tensor_count == 0)
        common = t->dtype();
      else
        uniform = uniform && t->dtype() == common && same_shape(t, tensors[0]);
      tensors[tensor_count++] = t;
    } else {
      RL_CHECK(v.is_scalar() || v.tag == Tag::BigInt, Type, "%s: argument %d must be a tensor or a number",
               call.op.title(), i);
      numbers++;
    }
  }
  RL_CHECK(tensor_count > 0, Type, "%s(): at least one argument must be a Tensor; expected %s", call.op.title(),
           call.op.schema);
  DType promoted = common;
  if (!uniform || numbers) {
    Ranks ranks;
    for (int i = 0; i < input_count; i++)
      if ((spec.compute != 2 || inputs[i]->tag == Tag::Tensor) && !(spec.weights >> i & 1)) ranks.add(*inputs[i]);
    promoted = ranks.result();
    for (int i = 0; spec.weights >> i; i++)
      if (spec.weights >> i & 1 && i < input_count) check_weight(call.op, *inputs[i], promoted);
  }
  if (spec.compute == 1 && promoted <= RL_INT64) promoted = default_dtype;
  if (spec.compute == 3 && promoted == RL_BOOL) promoted = RL_INT64;
  DType compute = promoted;
  if (spec.result == 1 && compute <= RL_INT64 && !uniform) {
    // Comparisons are mathematically right: compare in a type that holds every operand.
    for (int i = 0; i < tensor_count; i++) compute = promote(compute, tensors[i]->dtype());
  }
  if (numbers) {
    for (int i = 0; i < input_count; i++) {
      const Value& v = *inputs[i];
      if (v.tag == Tag::Tensor) continue;
      Value number = v;
      if (RL_UNLIKELY(v.tag == Tag::BigInt)) {
        // No 64-bit integer reaches it, so that infinity compares the same.
        number = Value::of(compute > RL_INT64 ? v.real : std::copysign(HUGE_VAL, v.real));
        if (compute <= RL_INT64) compute = RL_FLOAT64;
      } else if (RL_UNLIKELY(v.tag == Tag::Int && is_integral(compute) && !fits(v, compute))) {
        if (spec.result == 1)
          compute = RL_INT64;
        else
          check_fits(call.op.title(), v, compute);
      } else if (RL_UNLIKELY(v.tag == Tag::Complex && !is_complex(compute))) {
        check_fits(call.op.title(), v, compute);
      }
      in[i] = &(new (scalars[i]) ScalarTensor(number))->desc;
    }
  }
  TensorRef casts[4];
  if (compute == RL_FLOAT16 || compute == RL_BFLOAT16) {
    if (spec.rounded && (!uniform || numbers)) {
      for (int i = 0; i < input_count; i++) {
        const Value& v = *inputs[i];
        if (!(spec.rounded >> i & 1)) continue;
        Tensor* t = v.tag == Tag::Tensor ? v.tensor : nullptr;
        if (((spec.wide >> i & 1) && (!t || t->numel == 1)) || v.tag == Tag::BigInt) continue;
        if (!t) {
          in[i] = &(new (scalars[i]) ScalarTensor(v, compute))->desc;
        } else if (t->dtype() > RL_INT8 && t->dtype() != compute && !t->is_meta()) {
          casts[i] = cast(t, compute);
          in[i] = &casts[i]->desc;
        }
      }
    }
    if (!(spec.types >> RL_FLOAT16 & 1)) compute = RL_FLOAT32;  // else the operation has no 16-bit floats
  }
  if (compute == RL_COMPLEX32 && spec.types >> RL_COMPLEX32 & 1) compute = RL_COMPLEX64;
  if (RL_UNLIKELY(!(spec.types >> compute & 1) || compute == RL_FLOAT16 || compute == RL_BFLOAT16)) {
    throw_error(call.op.flags & kRefuseRuntime ? ErrorKind::Runtime : ErrorKind::NotImplemented,
                "\"%s\" not implemented for '%s'", call.op.title(), dtype_title(promoted));
  }
  RL_CHECK(!(spec.result == 2 && call.inplace && is_complex(promoted)), Runtime,
           "In-place %s is not supported for complex tensors.", call.op.title());
  DType result = spec.result == 0 ? promoted : spec.result == 1 ? RL_BOOL : real_dtype(promoted);

  Tensor* out;
  if (RL_LIKELY(uniform && tensor_count)) {
    Tensor* first = tensors[0];
    if (RL_LIKELY(first->contiguous && !call.out)) {
      out = empty(result, first->ndim(), first->shape(), first->device()).take();
      call.results[0] = Value::of(out);
    } else {
      Dims shape(first->ndim(), first->shape());
      out = call.result_like(0, result, shape, layout_among(tensors, tensor_count, shape), true);
    }
  } else {
    Dims shape = broadcast_shapes(tensors, tensor_count, call.op.title());
    out = call.result_like(0, result, shape, layout_among(tensors, tensor_count, shape), true);
  }
  if (out->is_meta() || out->numel == 0) return;
  TensorRef rounded;  // what a wider out= takes are numbers of the result's dtype
  if (RL_UNLIKELY(call.out && out->dtype() != result &&
                  (result == RL_FLOAT16 || result == RL_BFLOAT16 || result == RL_COMPLEX32)))
    rounded = empty(result, out->ndim(), out->shape(), out->device());
  {
    GilRelease gil(out->numel >= 32768);
    rl_tensor* outs[1] = {rounded ? &rounded->desc : &out->desc};
    check(rl_elementwise(spec.kernel, compute, input_count, in, 1, outs));
  }
  if (rounded) copy_into(out, rounded.get());
}

void run_elementwise(Call& call) {
  const auto& family = *static_cast<const ElementwiseFamily*>(call.op.family);
  const Value* inputs[4];
  for (int i = 0; i < family.input_count; i++) inputs[i] = &call.args[family.inputs[i]];
  int kernel = family.kernel, count = family.input_count;
  if (family.default_kernel != kNoKernel) {
    bool plain = true;
    for (int i = family.default_input_count; i < count; i++) {
      const Value& v = *inputs[i];
      const Value& d = call.op.arguments[family.inputs[i]].default_value;
      plain = plain && v.tag != Tag::Complex && v.as_double() == d.as_double();
    }
    if (plain) {
      kernel = family.default_kernel;
      count = family.default_input_count;
    }
  }
  elementwise(call, {kernel, family.types, family.compute, family.result, family.rounded, family.wide, family.weights},
              inputs, count);
}

}  // namespace rl
