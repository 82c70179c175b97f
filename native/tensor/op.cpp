// Running an operation: device checks, the out/in-place gate, the implementation, recording.
#include "op.h"

#include <cctype>

#include "../autograd/autograd.h"
#include "ops.h"
#include "profiler.h"
#include "rushlight/elementwise.h"

#include <cmath>
#include <memory>
#include <vector>

namespace rl {

thread_local ThreadState thread_state __attribute__((tls_model("initial-exec")));

const Op& find_op(const char* name, const char* overload) {
  for (int i = 0; i < op_table_size; i++)
    if (!std::strcmp(op_table[i].name, name) && !std::strcmp(op_table[i].overload, overload)) return op_table[i];
  throw_error(ErrorKind::Attribute, "there is no operation %s%s%s", name, *overload ? "." : "", overload);
}

// ---------------------------------------------------------------- devices

namespace {

template <class F>
void each_tensor(const Op& op, const Value* args, F f) {
  for (uint32_t m = op.tensor_mask; m; m &= m - 1) {
    const Value& v = args[__builtin_ctz(m)];
    if (v.tag == Tag::Tensor) {
      f(v.tensor);
    } else if (v.tag == Tag::TensorList) {
      for (uint32_t i = 0; i < v.size; i++)
        if (v.tensors[i]) f(v.tensors[i]);
    }
  }
}

[[gnu::noinline]] void check_devices(const Op& op, const Value* args) {
  const Tensor* first = nullptr;
  each_tensor(op, args, [&](Tensor* t) {
    if (!first || (first->ndim() == 0 && t->ndim() > 0 && first->device() != t->device())) {
      if (first && !(first->ndim() == 0 && first->device() == Device::CPU)) return;
      first = t;
    }
  });
  each_tensor(op, args, [&](Tensor* t) {
    if (t->device() == first->device() || (t->ndim() == 0 && t->device() == Device::CPU)) return;
    throw_error(ErrorKind::Runtime, "%s: expected all tensors to be on the same device; expected %s, got %s",
                op.title(), device_name(first->desc.device), device_name(t->desc.device));
  });
}

}  // namespace

Device Call::device() const {
  Device device = Device::CPU;
  each_tensor(op, args, [&](Tensor* t) {
    if (t->device() == Device::Meta) device = Device::Meta;
  });
  return device;
}

// ---------------------------------------------------------------- outputs

namespace {

[[gnu::noinline]] void check_writable(const Tensor* t, const char* op) {
  RL_CHECK(
      !has_internal_overlap(t), Runtime,
      "%s: unsupported operation: more than one element of the written-to tensor refers to a single memory location; "
      "clone() the tensor before writing to it (shape %s, strides %s)",
      op, shape_text(t).c_str(), shape_text(t->ndim(), t->strides()).c_str());
  RL_CHECK(!t->storage->read_only, Runtime, "%s: the written-to tensor is over read-only memory; clone() it first", op);
}

// Another tensor argument whose memory the output touches without being exactly the same view.
bool overlaps_input(const Op& op, const Value* args, const Tensor* out, bool same_is_fine) {
  bool found = false;
  each_tensor(op, args, [&](Tensor* t) {
    if (found || !may_share_memory(out, t)) return;
    if (same_is_fine && t->desc.data == out->desc.data && t->dtype() == out->dtype() && same_shape(t, out) &&
        !std::memcmp(t->strides(), out->strides(), sizeof(int64_t) * static_cast<size_t>(t->ndim())))
      return;
    found = true;
  });
  return found;
}

}  // namespace

Tensor* Call::result_like(int i, DType dtype, const Dims& d, const Tensor* layout, bool any_dtype) {
  if (RL_UNLIKELY(out != nullptr) && out[i]) return result(i, dtype, d, any_dtype);
  TensorRef t = layout && !layout->contiguous && layout->ndim() == d.n ? empty_preserve(layout, dtype)
                                                                       : empty(dtype, d.n, d.v, device());
  results[i] = Value::of(t.get());
  return t.take();
}

Tensor* Call::result(int i, DType dtype, int ndim, const int64_t* shape, bool any_dtype) {
  Tensor* target = out ? out[i] : nullptr;
  if (RL_LIKELY(!target)) {
    Tensor* t = empty(dtype, ndim, shape, device()).take();
    results[i] = Value::of(t);
    return t;
  }
  RL_CHECK(can_cast(dtype, target->dtype()), Runtime, "%s: result type %s can't be cast to the desired output type %s",
           op.title(), dtype_title(dtype), dtype_title(target->dtype()));
  bool fits =
      target->ndim() == ndim && !std::memcmp(target->shape(), shape, sizeof(int64_t) * static_cast<size_t>(ndim));
  if (!fits) {
    if (inplace) {
      throw_error(ErrorKind::Runtime, "%s_: output with shape %s doesn't match the broadcast shape %s", op.title(),
                  shape_text(target).c_str(), shape_text(ndim, shape).c_str());
    }
    RL_CHECK(target->numel == 0, Runtime,
             "%s: out= has the wrong shape; expected %s, got %s (an empty tensor would be resized)", op.title(),
             shape_text(ndim, shape).c_str(), shape_text(target).c_str());
    int64_t strides[kMaxDims];
    contiguous_strides(ndim, shape, strides);
    size_t bytes = static_cast<size_t>(count_elements(ndim, shape) * itemsize(target->dtype()));
    size_t offset = static_cast<size_t>(target->offset() * itemsize(target->dtype()));
    if (offset + bytes > target->storage->nbytes) storage_resize(target->storage, offset + bytes);
    target->desc.data = static_cast<char*>(target->storage->data) + offset;
    set_geometry(target, ndim, shape, strides);
  }
  RL_CHECK(target->device() == device(), Runtime, "%s: out= is on the wrong device; expected %s, got %s", op.title(),
           device_name(static_cast<uint8_t>(device())), device_name(target->desc.device));
  check_writable(target, op.title());
  if ((any_dtype || target->dtype() == dtype) && !target->lazy() &&
      !overlaps_input(op, args, target, op.flags & kElementwise)) {
    retain(target);
    results[i] = Value::of(target);
    return target;
  }
  Tensor* t = empty(dtype, ndim, shape, device()).take();
  results[i] = Value::of(t);
  copy_back |= 1u << i;
  return t;
}

void Call::set(int i, TensorRef t) {
  if (RL_UNLIKELY(out != nullptr) && out[i]) {
    Tensor* target = result(i, t->dtype(), t->ndim(), t->shape(), true);
    if (!(copy_back >> i & 1)) {
      if (!target->is_meta()) copy_into(target, t.get());
      return;
    }
    copy_back &= ~(1u << i);
    release(target);
    copy_back |= 1u << i;
  }
  results[i] = Value::of(t.get());
  t.take();
}

void Call::set_list(int i, std::vector<TensorRef> list) {
  auto** block = static_cast<Tensor**>(PyMem_Malloc(sizeof(Tensor*) * (list.size() + 1)));
  if (!block) throw std::bad_alloc();
  for (size_t k = 0; k < list.size(); k++) block[k] = list[k].take();
  results[i] = Value::of_tensors(block, list.size());
}

void release_results(Value* results, int count) {
  for (int i = 0; i < count; i++) {
    if (results[i].tag == Tag::Tensor) {
      release(results[i].tensor);
    } else if (results[i].tag == Tag::TensorList) {
      for (uint32_t k = 0; k < results[i].size; k++) release(results[i].tensors[k]);
      PyMem_Free(results[i].tensors);
    } else if (results[i].tag == Tag::Object) {
      Py_DECREF(results[i].object);
    }
    results[i] = Value::none();
  }
}

// ---------------------------------------------------------------- running

namespace {

[[gnu::noinline]] void finish_outputs(Call& c) {
  for (uint32_t m = c.copy_back; m; m &= m - 1) {
    int i = __builtin_ctz(m);
    Tensor* temporary = c.results[i].tensor;
    if (may_share_memory(temporary, c.out[i])) {  // the result is an input itself
      TensorRef apart = empty(temporary->dtype(), temporary->ndim(), temporary->shape());
      copy_into(apart.get(), temporary);
      copy_into(c.out[i], apart.get());
    } else if (!c.out[i]->is_meta()) {
      copy_into(c.out[i], temporary);
    }
    release(temporary);
    retain(c.out[i]);
    c.results[i] = Value::of(c.out[i]);
  }
  for (int i = 0; i < c.op.result_count; i++)
    if (c.out[i]) bump_version(c.out[i]);
}

[[gnu::noinline]] void check_out(const Op& op, const Value* args, Tensor* const* out) {
  if (!(op.flags & (kDifferentiable | kComposite))) return;  // its results never require grad
  bool grad = false;
  each_tensor(op, args, [&](Tensor* t) { grad |= needs_grad(t); });
  for (int i = 0; i < op.result_count; i++) grad |= out[i] && needs_grad(out[i]);
  RL_CHECK(!grad || !thread_state.grad_mode, Runtime,
           "%s(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
           "requires grad",
           op.title());
}

}  // namespace

namespace {

// "mul: ..." or "Tensor.item() ...": the message starts with a name.
bool is_named(const std::string& message) {
  size_t i = 0;
  while (i < message.size() &&
         (std::isalnum(static_cast<unsigned char>(message[i])) || message[i] == '_' || message[i] == '.'))
    i++;
  return i > 0 && i < message.size() && (message[i] == ':' || message[i] == '(');
}

// Throws the exception in flight again; an error that names no operation gets the name of this one.
[[noreturn]] [[gnu::noinline]] void rethrow_named(const Op& op) {
  try {
    throw;
  } catch (Error& e) {
    if (!is_named(e.message)) e.message = std::string(op.title()) + ": " + e.message;
    throw;
  }
}

}  // namespace

// The in-place twin of a composite: its result, written with copy_, so that the tape sees the write.
[[gnu::noinline]] static void run_composite_inplace(const Op& op, const Value* args, Value* results) {
  Tensor* self = args[0].tensor;
  Value made[kMaxResults];
  bool grad = false;
  if (thread_state.grad_mode) each_tensor(op, args, [&](Tensor* t) { grad |= needs_grad(t); });
  if (grad) {  // what the operations inside save must outlive the write
    static const Op &clone = find_op("clone"), &as_strided = find_op("as_strided");
    // As for any write to a view, the gradient goes to the base past the view's own place in the graph, and its hooks.
    Tensor* base = self->base && self->base->dtype() == self->dtype() ? self->base : nullptr;
    TensorRef source =
        base && !self->is_wrapped() && self->lazy() == base->lazy() && needs_grad(base)
            ? call(as_strided, {Value::of(base), Value::of_ints(self->shape(), self->ndim()),
                                Value::of_ints(self->strides(), self->ndim()), Value::of(self->offset())})
            : TensorRef::share(self);
    TensorRef old = call(clone, {Value::of(source)});
    Value copied[kMaxArgs];
    for (int i = 0; i < op.argument_count; i++) copied[i] = args[i];
    copied[0] = Value::of(old);
    run_op(op, copied, made);
  } else {
    run_op(op, args, made);
  }
  TensorRef r = TensorRef::own(made[0].tensor);
  RL_CHECK(can_cast(r->dtype(), self->dtype()), Runtime,
           "%s_: result type %s can't be cast to the desired output type %s", op.title(), dtype_title(r->dtype()),
           dtype_title(self->dtype()));
  RL_CHECK(same_shape(r.get(), self), Runtime, "%s_: output with shape %s doesn't match the broadcast shape %s",
           op.title(), shape_text(self).c_str(), shape_text(r.get()).c_str());
  if (r.get() != self) call_inplace(ops::copy_, {Value::of(self), Value::of(r)});
  retain(self);
  results[0] = Value::of(self);
}

// Runs an operation that reads memory: lazy tensors among its arguments are resolved before, and one that it writes
// into gets its new numbers afterwards. (Outputs asked for with Call::result take care of themselves.)
[[gnu::noinline]] static void run_resolved(Call& c) {
  const Value* given = c.args;
  Value args[kMaxArgs];
  std::vector<TensorRef> made;
  std::vector<std::unique_ptr<Tensor*[]>> lists;
  auto resolve = [&](Tensor* t) {
    if (!t || !t->lazy()) return t;
    made.push_back(resolved(t));
    return made.back().get();
  };
  for (int i = 0; i < c.op.argument_count; i++) {
    args[i] = given[i];
    if (!(c.op.tensor_mask >> i & 1)) continue;
    if (args[i].tag == Tag::Tensor) {
      args[i].tensor = resolve(args[i].tensor);
    } else if (args[i].tag == Tag::TensorList) {
      lists.emplace_back(new Tensor*[args[i].size + 1]);
      for (uint32_t k = 0; k < args[i].size; k++) lists.back()[k] = resolve(args[i].tensors[k]);
      args[i].tensors = lists.back().get();
    }
  }
  c.args = args;
  c.op.run(c);
  c.args = given;
  if (!(c.op.flags & kInplaceOnly)) return;
  auto write = [](Tensor* target, Tensor* source) {
    if (target != source && !target->is_meta()) copy_into(target, source);
  };
  if (given[0].tag == Tag::TensorList) {
    for (uint32_t k = 0; k < given[0].size; k++) write(given[0].tensors[k], args[0].tensors[k]);
    return;
  }
  write(given[0].tensor, args[0].tensor);
  if (c.results[0].is_tensor() && c.results[0].tensor == args[0].tensor) {
    retain(given[0].tensor);
    release(c.results[0].tensor);
    c.results[0] = given[0];
  }
}

// A composite may build its result as a view of a tensor of its own; nobody else sees that one, so the result counts as
// a tensor by itself: no `_is_view()`, and `detach_()` works.
[[gnu::noinline]] static void own_results(const Op& op, const Value* args, Value* results) {
  auto seen = [&](const Tensor* t, int at) {
    bool found = false;
    each_tensor(op, args, [&](Tensor* given) { found |= given->storage == t->storage; });
    for (int i = 0; i < op.result_count; i++)
      found |= i != at && results[i].is_tensor() && results[i].tensor->storage == t->storage;
    return found;
  };
  for (int i = 0; i < op.result_count; i++) {
    if (!results[i].is_tensor()) continue;
    Tensor* t = results[i].tensor;
    if (t->base && !t->is_wrapped() && !seen(t, i)) unmark_view(t);
  }
}

// What runs in place of the implementation, if anything: a rule for wrapped tensors, a source of results for operations
// that make new tensors (below the tape, above the kernels), or the implementation on what lazy tensors stand for.
[[gnu::noinline]] static OpFunction chosen_body(const Op& op, const Value* args, Tensor* const* out, bool lazy) {
  if (op.flags & kComposite) return op.run;
  if (wants_transform(op, args)) return run_transformed;
  bool makes_tensors = !(op.flags & (kView | kInplaceOnly | kScalarResult)) && !out;
  if (thread_state.source && makes_tensors) return run_from_source;
  return lazy && !(op.flags & kView) ? run_resolved : op.run;
}

// What an operation cannot overlook about a tensor; a view of a wrapped tensor may have to follow it.
static inline uint32_t marks_of(const Tensor* t) {
  return RL_UNLIKELY(t->base && t->base->is_wrapped()) ? t->marks() | t->base->desc.device : t->marks();
}

void run_op(const Op& op, const Value* args, Value* results, Tensor* const* out, bool inplace) {
  ProfiledOp event(op, args, results, inplace);
  if (RL_UNLIKELY(inplace && (op.flags & kComposite))) return run_composite_inplace(op, args, results);
  uint32_t marks = 0;
  for (uint32_t m = op.tensor_mask; m; m &= m - 1) {
    const Value& v = args[__builtin_ctz(m)];
    if (v.tag == Tag::Tensor)
      marks |= marks_of(v.tensor);
    else if (v.tag == Tag::TensorList)
      for (uint32_t i = 0; i < v.size; i++) marks |= v.tensors[i] ? marks_of(v.tensors[i]) : 0;
  }
  OpFunction body = op.run;
  if (RL_UNLIKELY((marks | (op.flags & kRandom)) || thread_state.source)) {
    body = chosen_body(op, args, out, marks >> 8);
    if ((marks & 0xff) == static_cast<uint32_t>(Device::Meta)) check_devices(op, args);
  }

  uint32_t mask = 0;
  bool recording = thread_state.grad_mode;
  if (recording && (op.flags & kDifferentiable)) mask = arguments_needing_grad(op, args);
  bool writes = inplace || (op.flags & kInplaceOnly);
  if (RL_UNLIKELY(out != nullptr && !inplace)) check_out(op, args, out);
  if (RL_UNLIKELY(writes)) {
    Tensor* self = args[0].tensor;
    check_inplace(self, op, mask != 0);
    if (op.flags & kInplaceOnly) check_writable(self, op.title());
  }

  for (int i = 0; i < op.result_count; i++) results[i] = Value::none();
  Call c{op, args, results, out, inplace};
  if (RL_LIKELY(mask == 0)) {
    try {
      body(c);
    } catch (...) {
      release_results(results, op.result_count);
      rethrow_named(op);
    }
    if (op.flags & kComposite) own_results(op, args, results);
    if (RL_UNLIKELY(op.order_mask && !out)) keep_order(op, args, results);
    if (RL_UNLIKELY(out != nullptr)) finish_outputs(c);
  } else {
    Node* node = record_begin(op, args, mask, writes);
    try {
      GradGuard off(body == run_transformed);  // what a wrapped tensor stands for has a tape of its own
      body(c);
      if (RL_UNLIKELY(op.order_mask && !out)) keep_order(op, args, results);
      if (RL_UNLIKELY(out != nullptr)) finish_outputs(c);
    } catch (...) {
      node_release(node);
      release_results(results, op.result_count);
      rethrow_named(op);
    }
    if (RL_UNLIKELY(op.flags & kInplaceOnly)) {
      bump_version(args[0].tensor);
      if (results[0].is_none()) {
        retain(args[0].tensor);
        results[0] = Value::of(args[0].tensor);
      }
    }
    try {
      record_end(node, op, args, results, writes);
    } catch (...) {  // a hook on what is saved
      release_results(results, op.result_count);
      throw;
    }
    if (op.flags & kView)
      for (int i = 0; i < op.result_count; i++) {
        if (results[i].tag == Tag::Tensor)
          mark_view(results[i].tensor, op.flags & kMultiView);
        else if (results[i].tag == Tag::TensorList)
          for (uint32_t k = 0; k < results[i].size; k++) mark_view(results[i].tensors[k], true);
      }
    return;
  }
  if (RL_UNLIKELY(op.flags & kInplaceOnly)) {
    bump_version(args[0].tensor);
    if (results[0].is_none()) {
      retain(args[0].tensor);
      results[0] = Value::of(args[0].tensor);
    }
  }
  if (RL_UNLIKELY(writes) && recording) record_overwrite(args[0].tensor, op);
  if (RL_UNLIKELY((op.flags & kMultiView) || (!recording && (op.flags & kView)))) {
    for (int i = 0; i < op.result_count; i++) {
      if (results[i].tag == Tag::Tensor && results[i].tensor->base)
        mark_view(results[i].tensor, op.flags & kMultiView);
      else if (results[i].tag == Tag::TensorList)
        for (uint32_t k = 0; k < results[i].size; k++)
          if (results[i].tensors[k]->base) mark_view(results[i].tensors[k], true);
    }
  }
}

namespace {

void fill_arguments(const Op& op, std::initializer_list<Value> given, Value* args) {
  int i = 0;
  for (const Value& v : given) args[i++] = v;
  for (; i < op.argument_count; i++) args[i] = op.arguments[i].default_value;
}

}  // namespace

TensorRef call(const Op& op, std::initializer_list<Value> given) {
  Value args[kMaxArgs], results[kMaxResults];
  fill_arguments(op, given, args);
  run_op(op, args, results);
  for (int i = 1; i < op.result_count; i++)
    if (results[i].is_tensor()) release(results[i].tensor);
  return TensorRef::own(results[0].is_tensor() ? results[0].tensor : nullptr);
}

std::vector<TensorRef> call_many(const Op& op, std::initializer_list<Value> given) {
  Value args[kMaxArgs], results[kMaxResults];
  fill_arguments(op, given, args);
  run_op(op, args, results);
  std::vector<TensorRef> list;
  for (int i = 0; i < op.result_count; i++) {
    if (results[i].tag == Tag::TensorList) {
      for (uint32_t k = 0; k < results[i].size; k++) list.push_back(TensorRef::own(results[i].tensors[k]));
      PyMem_Free(results[i].tensors);
    } else {
      list.push_back(TensorRef::own(results[i].is_tensor() ? results[i].tensor : nullptr));
    }
  }
  return list;
}

void call_inplace(const Op& op, std::initializer_list<Value> given) {
  Value args[kMaxArgs], results[kMaxResults];
  fill_arguments(op, given, args);
  Tensor* out[kMaxResults] = {args[0].tensor};
  bool inplace_only = op.flags & kInplaceOnly;
  run_op(op, args, results, inplace_only ? nullptr : out, !inplace_only);
  release_results(results, op.result_count);
}

// ---------------------------------------------------------------- small helpers of implementations

ScalarTensor::ScalarTensor(const Value& number)
    : ScalarTensor(number, number.tag == Tag::Double    ? RL_FLOAT64
                           : number.tag == Tag::Complex ? RL_COMPLEX128
                           : number.tag == Tag::Bool    ? RL_BOOL
                                                        : RL_INT64) {}

ScalarTensor::ScalarTensor(const Value& number, DType dtype) : desc{}, bytes{} {
  desc.data = bytes;
  desc.dtype = static_cast<uint8_t>(dtype);
  auto put = [&](auto x) { std::memcpy(bytes, &x, sizeof x); };
  switch (dtype) {
    case RL_BOOL:
      put(static_cast<uint8_t>(number.tag == Tag::Double    ? number.real != 0
                               : number.tag == Tag::Complex ? number.complex.re != 0 || number.complex.im != 0
                                                            : number.integer != 0));
      break;
    case RL_INT64:
      put(number.as_int());
      break;
    case RL_FLOAT64:
      put(number.as_double());
      break;
    case RL_COMPLEX128:
      put(number.as_complex());
      break;
    default: {  // through the library's conversion
      Value wide = number;
      ScalarTensor source(wide);
      check(rl_copy(&source.desc, &desc));
    }
  }
}

bool fits(const Value& number, DType dtype) {
  if (number.tag == Tag::Bool || dtype == RL_BOOL) return true;
  if (number.tag == Tag::Complex && number.complex.im != 0 && !is_complex(dtype)) return false;
  if (is_integral(dtype)) {
    static constexpr int64_t low[] = {0, INT8_MIN, INT16_MIN, INT32_MIN, INT64_MIN};
    static constexpr int64_t high[] = {UINT8_MAX, INT8_MAX, INT16_MAX, INT32_MAX, INT64_MAX};
    const int i = dtype - RL_UINT8;
    if (number.tag == Tag::Int) return number.integer >= low[i] && number.integer <= high[i];
    double x = number.as_double();  // a fraction is cut off after the test
    return dtype == RL_INT64 ? x >= -0x1p63 && x < 0x1p63
                             : x >= static_cast<double>(low[i]) && x <= static_cast<double>(high[i]);
  }
  const DType real = real_dtype(dtype);
  const double limit = real == RL_FLOAT16    ? 65504.0
                       : real == RL_BFLOAT16 ? 0x1.fep127
                       : real == RL_FLOAT32  ? 0x1.fffffep127
                                             : HUGE_VAL;
  auto inside = [limit](double x) { return !(std::fabs(x) > limit) || std::isinf(x); };
  return inside(number.as_double()) && (number.tag != Tag::Complex || inside(number.complex.im));
}

void check_fits(const char* op, const Value& number, DType dtype) {
  if (RL_LIKELY(fits(number, dtype))) return;
  if (number.tag == Tag::Int)
    throw_error(ErrorKind::Runtime, "%s: value cannot be converted to type %s without overflow: %lld", op,
                dtype_name(dtype), static_cast<long long>(number.integer));
  throw_error(ErrorKind::Runtime, "%s: value cannot be converted to type %s without overflow: %g%s", op,
              dtype_name(dtype), number.as_double(), number.tag == Tag::Complex ? " with an imaginary part" : "");
}

TensorRef contiguous(Tensor* t) {
  if (t->contiguous && !t->lazy()) return TensorRef::share(t);
  if (RL_UNLIKELY(t->is_wrapped())) return call(ops::contiguous, {Value::of(t)});
  TensorRef c = empty_like(t);
  if (!t->is_meta()) copy_into(c.get(), t);
  return c;
}

TensorRef resolved(Tensor* t) {
  if (RL_LIKELY(!t->lazy())) return TensorRef::share(t);
  TensorRef r = empty_preserve(t, t->dtype());
  if (!t->is_meta()) copy_into(r.get(), t);
  return r;
}

TensorRef cast(Tensor* t, DType dtype) {
  if (t->dtype() == dtype && !t->lazy()) return TensorRef::share(t);
  if (RL_UNLIKELY(t->is_wrapped())) return call(ops::to_dtype, {Value::of(t), Value::of(dtype)});
  TensorRef c = empty(dtype, t->ndim(), t->shape(), t->device());
  if (!t->is_meta()) copy_into(c.get(), t);
  return c;
}

// A copy between tensors of which one at least is lazy. Conjugation and negation are their own inverses, so what two
// tensors have in common needs no work.
[[gnu::noinline]] static void copy_lazily(Tensor* dst, const Tensor* src) {
  static const int conjugate = rl_elementwise_find("_conj_physical"), negate = rl_elementwise_find("neg");
  int bits = dst->lazy() ^ src->lazy();
  if (!is_complex(dst->dtype()) || !is_complex(src->dtype())) bits &= kNegated;
  const rl_tensor* in = &src->desc;
  rl_tensor* out = &dst->desc;
  if (bits & kConjugated) {
    check(rl_elementwise(conjugate, src->dtype(), 1, &in, 1, &out));
    in = out;
  }
  if (bits & kNegated) {
    check(rl_elementwise(negate, static_cast<rl_dtype>(in->dtype), 1, &in, 1, &out));
    in = out;
  }
  if (in != out) check(rl_copy(in, out));
}

void copy_into(Tensor* dst, const Tensor* src) {
  if (RL_UNLIKELY(dst->is_wrapped() || src->is_wrapped()))
    return call_inplace(ops::copy_, {Value::of(dst), Value::of(const_cast<Tensor*>(src))});
  GilRelease gil(dst->numel >= 32768);
  if (RL_UNLIKELY(dst->lazy() | src->lazy())) return copy_lazily(dst, src);
  check(rl_copy(&src->desc, &dst->desc));
}

void fill_value(Tensor* t, const Value& number) {
  if (RL_UNLIKELY(t->is_wrapped() || t->lazy())) return call_inplace(ops::fill, {Value::of(t), number});
  if (t->is_meta()) return;
  ScalarTensor s(number);
  GilRelease gil(t->numel >= 65536);
  check(rl_fill(&t->desc, &s.desc));
}

}  // namespace rl
