#include "anomaly.h"

#include <cmath>
#include <unordered_set>

#include "python_api.h"

namespace rl {

AnomalyMode anomaly;

namespace {

thread_local Node* evaluating = nullptr;

PyObject* python_side(const char* name) {
  static PyObject* module = nullptr;
  if (!module) module = need(PyImport_ImportModule("rushlight.autograd.anomaly_mode"));
  return need(PyObject_GetAttrString(module, name));
}

struct Census {
  int64_t nan = 0, infinite = 0, zero = 0;
};

template <class T>
Census count(const T* p, int64_t elements, int width) {
  Census c;
  for (int64_t i = 0; i < elements; i++, p += width) {
    bool nan = std::isnan(p[0]) || (width == 2 && std::isnan(p[1]));
    bool infinite = std::isinf(p[0]) || (width == 2 && std::isinf(p[1]));
    c.nan += nan;
    c.infinite += infinite && !nan;
    c.zero += p[0] == 0 && (width == 1 || p[1] == 0);
  }
  return c;
}

bool countable(const Tensor* t) { return t && is_differentiable(t->dtype()) && !t->is_meta() && t->numel; }

// The tensor's values in row-major order, as float or double or pairs of these.
TensorRef plain(Tensor* t) {
  GradGuard off(false);
  DType dtype = t->dtype();
  if (dtype == RL_FLOAT16 || dtype == RL_BFLOAT16) return cast(t, RL_FLOAT32);
  return contiguous(t);
}

Census census(Tensor* t) {
  if (!countable(t)) return {};
  TensorRef p = plain(t);
  int width = is_complex(p->dtype()) ? 2 : 1;
  bool single = p->dtype() == RL_FLOAT32 || p->dtype() == RL_COMPLEX64;
  return single ? count(p->as<float>(), p->numel, width) : count(p->as<double>(), p->numel, width);
}

// How many of the NaNs of `result` stand where `grad` is exactly zero; -1 when the shapes differ.
int64_t nan_over_zero(Tensor* result, Tensor* grad) {
  if (!countable(grad) || !same_shape(result, grad)) return -1;
  TensorRef r = plain(result), g = plain(grad);
  auto value = [](const Tensor* t, int64_t i, bool want_nan) {
    int width = is_complex(t->dtype()) ? 2 : 1;
    bool single = t->dtype() == RL_FLOAT32 || t->dtype() == RL_COMPLEX64;
    bool nan = false, zero = true;
    for (int k = 0; k < width; k++) {
      double v = single ? t->as<float>()[i * width + k] : t->as<double>()[i * width + k];
      nan |= std::isnan(v);
      zero &= v == 0;
    }
    return want_nan ? nan : zero;
  };
  int64_t n = 0;
  for (int64_t i = 0; i < r->numel; i++) n += value(r.get(), i, true) && value(g.get(), i, false);
  return n;
}

uint64_t checksum(Tensor* const* tensors, uint32_t count) {
  uint64_t h = 0x9e3779b97f4a7c15u;
  auto mix = [&h](uint64_t word) {
    h = (h ^ word) * 0xff51afd7ed558ccdu;
    h ^= h >> 32;
  };
  for (uint32_t i = 0; i < count; i++) {
    Tensor* t = tensors[i];
    if (!t || t->is_meta() || !t->numel) continue;
    GradGuard off(false);
    TensorRef dense = contiguous(t);
    const char* p = dense->data();
    auto bytes = static_cast<size_t>(dense->numel * itemsize(dense->dtype()));
    for (; bytes >= 8; bytes -= 8, p += 8) {
      uint64_t word;
      std::memcpy(&word, p, 8);
      mix(word);
    }
    uint64_t last = bytes;
    std::memcpy(&last, p, bytes);
    mix(last);
  }
  return h;
}

std::string times(int64_t n, int64_t of) { return std::to_string(n) + " of " + std::to_string(of); }

// The operation of forward that was the first to make a NaN, among what leads to this node.
Node* first_nan(Node* from) {
  std::vector<Node*> stack{from};
  std::unordered_set<Node*> seen{from};
  Node* first = nullptr;
  while (!stack.empty()) {
    Node* n = stack.back();
    stack.pop_back();
    Node* inner = n->kind == NodeKind::CopySlices && n->slices ? n->slices->function : nullptr;
    for (Node* candidate : {n, inner})
      if (candidate && candidate->extras && candidate->extras->nan_results &&
          (!first || candidate->sequence < first->sequence))
        first = candidate;
    for (uint32_t i = 0; i < n->edge_count; i++)
      if (Node* next = n->edges[i].node)
        if (seen.insert(next).second) stack.push_back(next);
  }
  return first;
}

// The nearest node, on the way that the gradient came, of which `property` holds.
Node* origin(const GradientTraces& traces, Node* from, bool GradientTrace::* property) {
  std::vector<Node*> queue{from};
  std::unordered_set<Node*> seen{from};
  for (size_t at = 0; at < queue.size(); at++) {
    auto found = traces.find(queue[at]);
    if (found == traces.end()) continue;
    if (at && found->second.*property) return queue[at];
    for (Node* sender : found->second.senders)
      if (seen.insert(sender).second) queue.push_back(sender);
  }
  return nullptr;
}

std::string explain(const GradientTraces& traces, Node* n, Tensor* const* grads, uint32_t grad_count, Tensor* result) {
  Census found = census(result);
  std::string text = "\n  " + times(found.nan, result->numel) + " of its elements are NaN (shape " +
                     shape_text(result) + ")" + line_text(n);
  if (Node* maker = first_nan(n))
    text += "\n  In forward, " + std::string(maker->op ? maker->op->name : node_name(maker).c_str()) +
            " was the first operation to make a NaN: " + std::to_string(maker->extras->nan_results) +
            " in its result, none in its inputs" + (maker == n ? "" : line_text(maker));
  int64_t zero = -1;
  Census incoming;
  for (uint32_t i = 0; i < grad_count; i++) {
    Census c = census(grads[i]);
    incoming.nan += c.nan;
    incoming.infinite += c.infinite;
    if (grads[i] && zero < 0) zero = nan_over_zero(result, grads[i]);
  }
  if (incoming.nan) text += "\n  Its incoming gradient held NaN already: it was given to backward, or a hook made it";
  if (incoming.infinite) {
    text += "\n  Its incoming gradient held infinite elements";
    if (Node* maker = origin(traces, n, &GradientTrace::made_infinite))
      text += ", which " + node_name(maker) + " made" + line_text(maker);
  }
  if (zero == found.nan) {
    text += "\n  The incoming gradient is exactly 0 at all of these elements";
    if (Node* masker = origin(traces, n, &GradientTrace::made_zero))
      text += ": " + node_name(masker) + " masked this branch there" + line_text(masker);
    text +=
        "\n  Hint: 0 times a derivative that is NaN or infinite is NaN. Give the operation harmless inputs where its "
        "result is not used, as in where(mask, f(where(mask, x, 1)), y).";
  }
  return text;
}

}  // namespace

Evaluating::Evaluating(Node* n) : before_(evaluating) { evaluating = n; }
Evaluating::~Evaluating() { evaluating = before_; }

void anomaly_recorded(Node* n) {
  NodeExtras& x = extras_of(n);
  if (!x.metadata) x.metadata = need(PyDict_New());
  Py function(python_side("_stack"));
  Py stack(need(PyObject_CallNoArgs(function.get())));
  if (PyDict_SetItemString(x.metadata, "traceback_", stack.get()) < 0) throw PythonError();
  if (evaluating && PyDict_SetItemString(x.metadata, "parent_", evaluating->object()) < 0) throw PythonError();
}

void anomaly_results(Node* n, const Op& op, const Value* args, const Value* results, bool inplace) {
  if (!anomaly.check_nan) return;
  int64_t nan = 0;
  for (int i = 0; i < op.result_count; i++) {
    if (results[i].tag == Tag::Tensor) nan += census(results[i].tensor).nan;
    if (results[i].tag == Tag::TensorList)
      for (uint32_t k = 0; k < results[i].size; k++) nan += census(results[i].tensors[k]).nan;
  }
  if (!nan) return;
  for (uint32_t m = op.tensor_mask; m; m &= m - 1) {
    int i = __builtin_ctz(m);
    if (inplace && i == 0) continue;  // holds the result by now; an older NaN has an older maker
    const Value& v = args[i];
    if (v.tag == Tag::Tensor && census(v.tensor).nan) return;
    if (v.tag == Tag::TensorList)
      for (uint32_t k = 0; k < v.size; k++)
        if (v.tensors[k] && census(v.tensors[k]).nan) return;
  }
  extras_of(n).nan_results = nan;
}

void anomaly_saved(Node* n, uint32_t slot, Tensor* const* tensors, uint32_t count) {
  extras_of(n).checksums.push_back({slot, checksum(tensors, count)});
}

void anomaly_verify(Node* n, uint32_t slot, Tensor* const* tensors, uint32_t count) {
  if (!n->extras) return;
  for (auto& [saved, sum] : n->extras->checksums) {
    if (saved != slot || sum == checksum(tensors, count)) continue;
    const Tensor* t = tensors[0];
    std::string line = line_text(n);
    throw_error(ErrorKind::Runtime,
                "one of the variables needed for gradient computation has been changed without its version counter: a "
                "%s tensor of shape %s, saved by %s; expected the values it had when it was saved. It was written "
                "through .data, a NumPy array or other memory that it shares.%s\n"
                "  Hint: write into a clone(), or copy the values with no_grad() so that the write is seen.",
                t ? dtype_name(t->dtype()) : "?", t ? shape_text(t).c_str() : "?", node_name(n).c_str(), line.c_str());
  }
}

void anomaly_check(GradientTraces& traces, Node* n, Tensor* const* grads, uint32_t grad_count, Tensor* const* results,
                   uint32_t result_count) {
  Census in;
  for (uint32_t i = 0; i < grad_count; i++) {
    Census c = census(grads[i]);
    in.zero += c.zero;
    in.infinite += c.infinite;
    in.nan += c.nan;
  }
  for (uint32_t i = 0; i < result_count; i++) {
    if (!results[i]) continue;
    Census c = census(results[i]);
    if (c.nan) {
      std::string text = explain(traces, n, grads, grad_count, results[i]);
      throw_error(ErrorKind::Runtime, "Function '%s' returned nan values in its %uth output.%s", node_name(n).c_str(),
                  i, text.c_str());
    }
    GradientTrace& trace = traces[n];
    trace.made_zero |= c.zero && !in.zero;
    trace.made_infinite |= c.infinite && !in.infinite;
    if (n->edges[i].node) traces[n->edges[i].node].senders.push_back(n);
  }
}

void anomaly_warn(Node* n) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  try {
    Py warn(python_side("_warn"));
    Py(need(PyObject_CallOneArg(warn.get(), n->object())));
  } catch (...) {
    PyErr_Clear();  // warnings may be errors; the failure itself is the one to raise
  }
  PyErr_Restore(type, value, trace);
}

// ---------------------------------------------------------------- Python

namespace {

PyObject* set_anomaly(PyObject*, PyObject* args) {
  int enabled, check_nan = 1;
  if (!PyArg_ParseTuple(args, "p|p:set_anomaly_enabled", &enabled, &check_nan)) return nullptr;
  anomaly.enabled = enabled;
  anomaly.check_nan = check_nan;
  Py_RETURN_NONE;
}
PyObject* is_enabled(PyObject*, PyObject*) { return PyBool_FromLong(anomaly.enabled); }
PyObject* is_checking(PyObject*, PyObject*) { return PyBool_FromLong(anomaly.check_nan); }

PyMethodDef functions[] = {{"_set_anomaly_enabled", set_anomaly, METH_VARARGS, nullptr},
                           {"_is_anomaly_enabled", is_enabled, METH_NOARGS, nullptr},
                           {"_is_anomaly_check_nan_enabled", is_checking, METH_NOARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool anomaly_init(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace rl
