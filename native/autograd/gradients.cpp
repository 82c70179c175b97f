// Linear helpers on gradients: sums, casts, zeros. They run as operations, so that a gradient of a gradient flows
// through.
#include "node.h"

namespace rl {

TensorRef sum_to_shape(Tensor* grad, int ndim, const int64_t* shape) {
  static const Op& op = find_op("sum_to_size");
  return call(op, {Value::of(grad), Value::of_ints(shape, ndim)});
}

TensorRef add_gradients(Tensor* a, Tensor* b) {
  static const Op& op = find_op("add");
  return call(op, {Value::of(a), Value::of(b)});
}

TensorRef convert_gradient(Tensor* grad, DType dtype) {
  if (grad->dtype() == dtype) return TensorRef::share(grad);
  TensorRef part = TensorRef::share(grad);
  if (is_complex(grad->dtype()) && !is_complex(dtype)) {
    static const Op& parts = find_op("view_as_real");
    static const Op& select = find_op("select");
    part = call(parts, {Value::of(grad)});
    part = call(select, {Value::of(part), Value::of(-1), Value::of(0)});
  }
  static const Op& convert = find_op("to_dtype");
  return call(convert, {Value::of(part), Value::of(dtype)});
}

TensorRef clone_gradient(Tensor* grad, const Tensor* layout) {
  if (!thread_state.grad_mode && !grad->is_wrapped()) {
    TensorRef copy = layout && same_shape(layout, grad) && is_dense_non_overlapping(layout)
                         ? empty_preserve(layout, grad->dtype())
                         : empty_like(grad);
    if (!grad->is_meta()) copy_into(copy.get(), grad);
    return copy;
  }
  static const Op& op = find_op("clone");
  return call(op, {Value::of(grad)});
}

TensorRef zeros_for(const OutputInfo& info) {
  Device device =
      info.device == static_cast<uint8_t>(Device::Meta) ? Device::Meta : Device::CPU;  // zeros for all of a batch
  TensorRef t = empty(static_cast<DType>(info.dtype), info.ndim, info.shape(), device);
  if (!t->is_meta() && t->storage->nbytes)
    std::memset(t->data(), 0, static_cast<size_t>(t->numel * itemsize(t->dtype())));
  return t;
}

namespace {

bool expands_to(const OutputInfo& info, const Tensor* grad) {
  if (info.ndim > grad->ndim()) return false;
  int extra = grad->ndim() - info.ndim;
  for (int i = 0; i < info.ndim; i++) {
    int64_t want = info.shape()[i];
    if (want != grad->size(extra + i) && want != 1) return false;
  }
  return true;
}

inline bool shape_fits(const OutputInfo& info, const Tensor* grad) {
  if (info.ndim != grad->ndim()) return false;
  const int64_t* shape = info.shape();
  for (int i = 0; i < info.ndim; i++)
    if (shape[i] != grad->size(i)) return false;
  return true;
}

[[gnu::noinline]] TensorRef fit_slow(TensorRef grad, const OutputInfo& info, Node* from, uint32_t edge) {
  if (!shape_fits(info, grad.get())) {
    if (!expands_to(info, grad.get())) {
      std::string line = line_text(from);
      throw_error(
          ErrorKind::Runtime,
          "Function %s returned an invalid gradient at index %u - got %s but expected shape compatible with %s%s",
          node_name(from).c_str(), edge, shape_text(grad.get()).c_str(), shape_text(info.ndim, info.shape()).c_str(),
          line.c_str());
    }
    grad = sum_to_shape(grad.get(), info.ndim, info.shape());
  }
  auto dtype = static_cast<DType>(info.dtype);
  if (grad->dtype() != dtype) grad = convert_gradient(grad.get(), dtype);
  auto wrapped = static_cast<uint8_t>(Device::Wrapped);  // goes with what is not wrapped
  if (grad->desc.device != info.device && grad->desc.device != wrapped && info.device != wrapped) {
    std::string line = line_text(from);
    throw_error(ErrorKind::Runtime,
                "Function %s returned an invalid gradient at index %u - expected device %s but got %s%s",
                node_name(from).c_str(), edge, device_name(info.device), device_name(grad->desc.device), line.c_str());
  }
  if (grad->lazy()) {
    static const Op& clone = find_op("clone");
    grad = call(clone, {Value::of(grad)});
  }
  return grad;
}

}  // namespace

TensorRef fit_gradient(TensorRef grad, const OutputInfo& info, Node* from, uint32_t edge) {
  if (RL_LIKELY(shape_fits(info, grad.get()) && grad->desc.dtype == info.dtype && grad->marks() == info.device))
    return grad;
  return fit_slow(std::move(grad), info, from, edge);
}

}  // namespace rl
