// Steps of optimizers over lists of tensors: _C._sgd_step, _adam_step, and _optim_gather, which makes the lists.
#include "rushlight/optimizer.h"
#include "python.h"

namespace rl {

namespace {

// A Python list of tensors as descriptors, kept between calls so that a step allocates nothing.
struct TensorArray {
  std::vector<const rl_tensor*> descs;
  std::vector<Tensor*> tensors;

  // False when it is no list of `count` real floating point tensors on the CPU (or of any length for count < 0).
  bool read(PyObject* o, Py_ssize_t count) {
    descs.clear();
    tensors.clear();
    if (!PyList_Check(o)) throw_error(ErrorKind::Type, "expected a list of tensors, got %s", Py_TYPE(o)->tp_name);
    Py_ssize_t n = PyList_GET_SIZE(o);
    if (count >= 0 && n != count)
      throw_error(ErrorKind::Value, "expected lists of one length, got %lld and %lld", static_cast<long long>(count),
                  static_cast<long long>(n));
    for (Py_ssize_t i = 0; i < n; i++) {
      PyObject* item = PyList_GET_ITEM(o, i);
      if (!is_tensor(item))
        throw_error(ErrorKind::Type, "expected a list of tensors, got an entry of type %s", Py_TYPE(item)->tp_name);
      Tensor* t = tensor_of(item);
      if (t->is_meta() || t->lazy() || !is_float(t->dtype())) return false;
      tensors.push_back(t);
      descs.push_back(&t->desc);
    }
    return true;
  }
  // Whether each tensor has the dtype and shape of the parameter.
  bool matches(const TensorArray& params) const {
    for (size_t i = 0; i < tensors.size(); i++)
      if (tensors[i]->dtype() != params.tensors[i]->dtype() || !same_shape(tensors[i], params.tensors[i])) return false;
    return true;
  }
  bool single_numbers() const {
    for (Tensor* t : tensors)
      if (t->numel != 1) return false;
    return true;
  }
  rl_tensors data() const { return descs.data(); }
  int64_t count() const { return static_cast<int64_t>(descs.size()); }
  void written() const {
    for (Tensor* t : tensors) bump_version(t);
  }
};

double number(PyObject* o) {
  double v = PyFloat_AsDouble(o);
  if (v == -1 && PyErr_Occurred()) throw PythonError();
  return v;
}
bool truth(PyObject* o) {
  int v = PyObject_IsTrue(o);
  if (v < 0) throw PythonError();
  return v;
}

void expect(const char* name, Py_ssize_t got, Py_ssize_t wanted) {
  if (got != wanted)
    throw_error(ErrorKind::Type, "%s: expected %d arguments, got %d", name, static_cast<int>(wanted),
                static_cast<int>(got));
}

// params, grads, momentum_buffers or None, lr, momentum, dampening, weight_decay, nesterov, maximize
PyObject* sgd_step(PyObject*, PyObject* const* args, Py_ssize_t n) {
  try {
    expect("_sgd_step", n, 9);
    static TensorArray params, grads, buffers;
    bool with_buffers = args[2] != Py_None;
    if (!params.read(args[0], -1) || !grads.read(args[1], params.count()) ||
        (with_buffers && !buffers.read(args[2], params.count())))
      Py_RETURN_FALSE;
    if (!grads.matches(params) || (with_buffers && !buffers.matches(params))) Py_RETURN_FALSE;
    double lr = number(args[3]), momentum = number(args[4]), dampening = number(args[5]), decay = number(args[6]);
    int nesterov = truth(args[7]), maximize = truth(args[8]);
    check(rl_sgd_step(params.count(), params.data(), grads.data(), with_buffers ? buffers.data() : nullptr, lr,
                      momentum, dampening, decay, nesterov, maximize));
    params.written();
    if (with_buffers) buffers.written();
    Py_RETURN_TRUE;
  } catch (...) {
    return raise_current();
  }
}

// params, grads, steps, exp_avgs, exp_avg_sqs, max_exp_avg_sqs or None, lr, beta1, beta2, eps, weight_decay, maximize,
// decoupled
PyObject* adam_step(PyObject*, PyObject* const* args, Py_ssize_t n) {
  try {
    expect("_adam_step", n, 13);
    static TensorArray params, grads, steps, averages, squares, largest;
    bool amsgrad = args[5] != Py_None;
    if (!params.read(args[0], -1) || !grads.read(args[1], params.count()) || !steps.read(args[2], params.count()) ||
        !averages.read(args[3], params.count()) || !squares.read(args[4], params.count()) ||
        (amsgrad && !largest.read(args[5], params.count())))
      Py_RETURN_FALSE;
    if (!grads.matches(params) || !averages.matches(params) || !squares.matches(params) ||
        (amsgrad && !largest.matches(params)) || !steps.single_numbers())
      Py_RETURN_FALSE;
    double lr = number(args[6]), beta1 = number(args[7]), beta2 = number(args[8]), eps = number(args[9]),
           decay = number(args[10]);
    int maximize = truth(args[11]), decoupled = truth(args[12]);
    check(rl_adam_step(params.count(), params.data(), grads.data(), averages.data(), squares.data(),
                       amsgrad ? largest.data() : nullptr, steps.data(), lr, beta1, beta2, eps, decay, maximize,
                       decoupled));
    params.written();
    steps.written();
    averages.written();
    squares.written();
    if (amsgrad) largest.written();
    Py_RETURN_TRUE;
  } catch (...) {
    return raise_current();
  }
}

// params (a list), state (a dict by parameter of dicts by name), keys (a tuple of names): lists of the parameters that
// have a gradient, of their gradients, and of their state by key; None when some state is missing.
PyObject* optim_gather(PyObject*, PyObject* const* args, Py_ssize_t n) {
  PyObject* result = nullptr;
  try {
    expect("_optim_gather", n, 3);
    PyObject *params = args[0], *state = args[1], *keys = args[2];
    if (!PyList_Check(params) || !PyDict_Check(state) || !PyTuple_Check(keys))
      throw_error(ErrorKind::Type, "_optim_gather: expected a list, a dict and a tuple");
    Py_ssize_t count = PyTuple_GET_SIZE(keys);
    result = PyTuple_New(count + 2);
    for (Py_ssize_t k = 0; result && k < count + 2; k++) {
      PyObject* list = PyList_New(0);
      if (!list) throw PythonError();
      PyTuple_SET_ITEM(result, k, list);
    }
    if (!result) throw PythonError();
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(params); i++) {
      PyObject* p = PyList_GET_ITEM(params, i);
      if (!is_tensor(p))
        throw_error(ErrorKind::Type, "_optim_gather: expected a list of tensors, got an entry of type %s",
                    Py_TYPE(p)->tp_name);
      Tensor* grad = tensor_of(p)->grad;
      if (!grad) continue;
      if (PyList_Append(PyTuple_GET_ITEM(result, 0), p) < 0 ||
          PyList_Append(PyTuple_GET_ITEM(result, 1), grad->object()) < 0)
        throw PythonError();
      if (!count) continue;
      PyObject* own = PyDict_GetItemWithError(state, p);
      for (Py_ssize_t k = 0; k < count; k++) {
        PyObject* value = own && PyDict_Check(own) ? PyDict_GetItemWithError(own, PyTuple_GET_ITEM(keys, k)) : nullptr;
        if (!value && PyErr_Occurred()) throw PythonError();
        if (!value || value == Py_None) {
          Py_DECREF(result);
          Py_RETURN_NONE;
        }
        if (PyList_Append(PyTuple_GET_ITEM(result, k + 2), value) < 0) throw PythonError();
      }
    }
    return result;
  } catch (...) {
    Py_XDECREF(result);
    return raise_current();
  }
}

template <class F>
PyCFunction fast(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

PyMethodDef functions[] = {{"_sgd_step", fast(sgd_step), METH_FASTCALL,
                            "One step of SGD over lists of tensors; False when they are not for it."},
                           {"_adam_step", fast(adam_step), METH_FASTCALL,
                            "One step of Adam over lists of tensors; False when they are not for it."},
                           {"_optim_gather", fast(optim_gather), METH_FASTCALL,
                            "Parameters with gradients, their gradients and their state, as lists."},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool optimizer_init(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace rl
