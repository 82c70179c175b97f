// Elementwise operations whose kernel depends on an argument.
#include "op.h"
#include "ops.h"

namespace rl {

void run_elementwise(Call& call);  // elementwise.cpp

namespace {

std::string text_of(const Value& v) {
  if (v.tag == Tag::Text) return v.text;
  const char* s = PyUnicode_AsUTF8(v.object);
  if (!s) throw PythonError();
  return s;
}

}  // namespace

// ---------------------------------------------------------------- arguments that PyTorch refuses

namespace {

void refuse_bool(Call& call, std::initializer_list<int> operands) {
  for (int i : operands) {
    const Value& v = call[i];
    RL_CHECK(
        !(v.tag == Tag::Bool || (v.is_tensor() && v.tensor->dtype() == RL_BOOL)), Runtime,
        "%s: Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, "
        "use the `~` or `logical_not()` operator instead; argument %d is bool",
        call.op.title(), i + 1);
  }
}

// The tensors among these arguments have one dtype.
void one_dtype(Call& call, std::initializer_list<int> operands) {
  const DType dtype = call.tensor(0)->dtype();
  for (int i : operands)
    RL_CHECK(!call[i].is_tensor() || call.tensor(i)->dtype() == dtype, Runtime,
             "%s: expected dtype %s for `%s` but got dtype %s", call.op.title(), dtype_name(dtype),
             call.op.arguments[i].name, dtype_name(call.tensor(i)->dtype()));
}

}  // namespace

RL_OP(sub) {
  refuse_bool(call, {0, 1});
  run_elementwise(call);
}
RL_OP(rsub) {
  refuse_bool(call, {0, 1});
  run_elementwise(call);
}
RL_OP(pow) {
  const Value &base = call[0], &exponent = call[1];
  RL_CHECK(!(exponent.tag == Tag::Int && exponent.integer < 0 && base.is_tensor() && is_integral(base.tensor->dtype())),
           Runtime, "pow: Integers to negative integer powers are not allowed; got %s to the power %lld",
           base.is_tensor() ? dtype_name(base.tensor->dtype()) : "a number", static_cast<long long>(exponent.as_int()));
  run_elementwise(call);
}
RL_OP(lerp) {
  one_dtype(call, {1, 2});
  run_elementwise(call);
}
RL_OP(heaviside) {
  one_dtype(call, {1});
  run_elementwise(call);
}
RL_OP(where) {
  const DType condition = call.tensor(0)->dtype();
  RL_CHECK(condition == RL_BOOL || condition == RL_UINT8, Runtime,
           "where: expected condition to be a boolean tensor, but got a tensor with dtype %s", dtype_title(condition));
  run_elementwise(call);
}
RL_OP(celu) {
  RL_CHECK(call.real(1) != 0, Runtime, "celu: ZeroDivisionError: alpha cannot be 0 for CELU");
  run_elementwise(call);
}

// ---------------------------------------------------------------- operations that choose their kernel

namespace {

// Tensors of 16-bit floats are divided in steps; by a single element in one.
bool divides_in_steps(Call& call, DType dtype) {
  return call[1].is_tensor() && call.tensor(1)->numel != 1 && result_type(call.args, 2) == dtype;
}

}  // namespace

RL_OP(floor_divide) {
  const Op* op = divides_in_steps(call, RL_BFLOAT16)  ? &ops::_div_floor_bfloat16
                 : divides_in_steps(call, RL_FLOAT16) ? &ops::_div_floor_float16
                                                      : nullptr;
  op ? call.set(0, rl::call(*op, {call[0], call[1]})) : run_elementwise(call);
}

RL_OP(div_mode) {
  if (call[2].is_none()) return call.set(0, rl::call(ops::div, {call[0], call[1]}));
  std::string mode = text_of(call[2]);
  RL_CHECK(mode == "trunc" || mode == "floor", Runtime,
           "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '%s'", mode.c_str());
  const bool trunc = mode == "trunc";
  const Op* op = trunc ? &ops::_div_trunc : &ops::_div_floor;
  if (divides_in_steps(call, RL_BFLOAT16)) op = trunc ? &ops::_div_trunc_bfloat16 : &ops::_div_floor_bfloat16;
  if (divides_in_steps(call, RL_FLOAT16)) op = trunc ? &ops::_div_trunc_float16 : &ops::_div_floor_float16;
  call.set(0, rl::call(*op, {call[0], call[1]}));
}

RL_OP(complex) {
  TensorRef r = rl::call(ops::_complex, {call[0], call[1]});
  RL_CHECK(!call.out || !call.out[0] || call.out[0]->dtype() == r->dtype(), Runtime,
           "complex: out= has the wrong dtype; expected %s, got %s", dtype_name(r->dtype()),
           dtype_name(call.out[0]->dtype()));
  call.set(0, std::move(r));
}

RL_OP(clamp) {
  const Value &low = call[1], &high = call[2];
  RL_CHECK(!low.is_none() || !high.is_none(), Runtime, "torch.clamp: At least one of 'min' or 'max' must not be None");
  RL_CHECK(!is_complex(call.tensor(0)->dtype()), Runtime, "clamp is not supported for complex types, got %s",
           dtype_name(call.tensor(0)->dtype()));
  if (high.is_none()) return call.set(0, rl::call(ops::clamp_min, {call[0], low}));
  if (low.is_none()) return call.set(0, rl::call(ops::clamp_max, {call[0], high}));
  call.set(0, rl::call(ops::_clamp, {call[0], low, high}));
}

RL_OP(gelu) {
  std::string kind = text_of(call[1]);
  RL_CHECK(kind == "none" || kind == "tanh", Runtime, "approximate argument must be either none or tanh, got '%s'",
           kind.c_str());
  call.set(0, rl::call(kind == "none" ? ops::_gelu : ops::_gelu_tanh, {call[0]}));
}

}  // namespace rl
