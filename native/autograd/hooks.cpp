// Hooks: running them, and the registration methods that tensors and nodes share.
#include "hooks.h"

#include "engine.h"

namespace rl {

namespace {

std::string hook_name(PyObject* hook) {
  Py name(PyObject_GetAttrString(hook, "__name__"));
  const char* text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
  std::string result = text ? text : Py_TYPE(hook)->tp_name;
  PyErr_Clear();
  return result;
}

// The hooks as they are now: one may remove itself or others while it runs.
Py snapshot(PyObject* hooks) { return Py(need(PyDict_Values(hooks))); }

void check_replacement(PyObject* hook, const Tensor* old, PyObject* fresh) {
  Tensor* t = as_tensor(fresh);
  RL_CHECK(t, Type, "expected Variable, but hook '%s' returned '%s'", hook_name(hook).c_str(), Py_TYPE(fresh)->tp_name);
  if (!old) return;
  RL_CHECK(t->dtype() == old->dtype(), Runtime, "hook '%s' has changed the type of value (was %s got %s)",
           hook_name(hook).c_str(), dtype_name(old->dtype()), dtype_name(t->dtype()));
  RL_CHECK(t->desc.device == old->desc.device, Runtime, "hook '%s' has changed the device of value (was %s got %s)",
           hook_name(hook).c_str(), device_name(old->desc.device), device_name(t->desc.device));
  RL_CHECK(same_shape(t, old), Runtime, "hook '%s' has changed the size of value (was %s got %s)",
           hook_name(hook).c_str(), shape_text(old).c_str(), shape_text(t).c_str());
}

void replace(Tensor*& place, PyObject* fresh) {
  Tensor* old = place;
  place = nullptr;
  if (fresh != Py_None) {
    Py_INCREF(fresh);
    place = reinterpret_cast<Tensor*>(fresh);
  }
  if (old) release(old);
}

Py as_tuple(Tensor* const* tensors, uint32_t count) {
  Py tuple(need(PyTuple_New(count)));
  for (uint32_t i = 0; i < count; i++) PyTuple_SET_ITEM(tuple.get(), i, Py_NewRef(tensor_or_none(tensors[i])));
  return tuple;
}

// What a hook of a node returned, one value for each entry.
void replace_all(PyObject* hook, PyObject* result, Tensor** tensors, uint32_t count) {
  if (result == Py_None) return;
  Py tuple;
  if (!PyTuple_Check(result)) {
    RL_CHECK(count == 1 && (as_tensor(result) || result == Py_None), Type,
             "hook '%s' must return a tuple of %u tensors or None, got %s", hook_name(hook).c_str(), count,
             Py_TYPE(result)->tp_name);
    tuple = Py(need(PyTuple_Pack(1, result)));
  } else {
    tuple = Py::share(result);
  }
  RL_CHECK(static_cast<uint32_t>(PyTuple_GET_SIZE(tuple.get())) == count, Runtime,
           "hook '%s' has returned an incorrect number of values (got %zd, but expected %u)", hook_name(hook).c_str(),
           PyTuple_GET_SIZE(tuple.get()), count);
  for (uint32_t i = 0; i < count; i++) {
    PyObject* item = PyTuple_GET_ITEM(tuple.get(), i);
    if (item != Py_None)
      check_replacement(hook, tensors[i], item);
    else
      RL_CHECK(!tensors[i] || count != 1 || PyTuple_Check(result), Runtime,
               "can't replace a None gradient with a non-None value");
  }
  for (uint32_t i = 0; i < count; i++) replace(tensors[i], PyTuple_GET_ITEM(tuple.get(), i));
}

}  // namespace

void run_tensor_hooks(PyObject* hooks, Tensor*& grad) {
  Py list = snapshot(hooks);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); i++) {
    PyObject* hook = PyList_GET_ITEM(list.get(), i);
    Py result(need(PyObject_CallOneArg(hook, tensor_or_none(grad))));
    if (result.get() == Py_None) continue;
    check_replacement(hook, grad, result.get());
    replace(grad, result.get());
  }
}

void run_pre_hooks(PyObject* hooks, Tensor** grads, uint32_t count) {
  Py list = snapshot(hooks);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); i++) {
    PyObject* hook = PyList_GET_ITEM(list.get(), i);
    Py result(need(PyObject_CallOneArg(hook, as_tuple(grads, count).get())));
    replace_all(hook, result.get(), grads, count);
  }
}

void run_post_hooks(PyObject* hooks, Tensor** results, uint32_t result_count, Tensor* const* grads,
                    uint32_t grad_count) {
  Py list = snapshot(hooks);
  Py outputs = as_tuple(grads, grad_count);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); i++) {
    PyObject* hook = PyList_GET_ITEM(list.get(), i);
    Py inputs = as_tuple(results, result_count);
    Py result(need(PyObject_CallFunctionObjArgs(hook, inputs.get(), outputs.get(), nullptr)));
    replace_all(hook, result.get(), results, result_count);
  }
}

void run_post_accumulate_hooks(PyObject* hooks, Tensor* leaf) {
  Py list = snapshot(hooks);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); i++)
    Py(need(PyObject_CallOneArg(PyList_GET_ITEM(list.get(), i), leaf->object())));
}

PyObject* add_hook(PyObject*& dict, PyObject* hook) {
  static PyObject* handle_type = nullptr;
  if (!handle_type) {
    Py module(need(PyImport_ImportModule("rushlight.utils.hooks")));
    handle_type = need(PyObject_GetAttrString(module.get(), "RemovableHandle"));
  }
  RL_CHECK(PyCallable_Check(hook), Type, "register_hook: expected a callable, got %s", Py_TYPE(hook)->tp_name);
  if (!dict) dict = need(PyODict_New());  // a plain dict cannot be referred to weakly
  Py handle(need(PyObject_CallOneArg(handle_type, dict)));
  Py id(need(PyObject_GetAttrString(handle.get(), "id")));
  if (PyObject_SetItem(dict, id.get(), hook) < 0) throw PythonError();
  return handle.take();
}

PyObject*& tensor_hooks_of(Tensor* t) {
  if (Node* n = grad_fn_of(t)) {
    auto& list = extras_of(n).tensor_hooks;
    for (auto& h : list)
      if (h.index == t->output_index) return h.hooks;
    list.push_back({t->output_index, need(PyODict_New())});
    return list.back().hooks;
  }
  return meta_of(t)->hooks;
}

}  // namespace rl
