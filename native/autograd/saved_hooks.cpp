// saved_tensors_hooks: every tensor that is saved for backward goes through a pair of Python functions.
#include "python_api.h"

namespace rl {

PyObject* write_watcher = nullptr;

thread_local int saved_hooks_depth __attribute__((tls_model("initial-exec"))) = 0;

namespace {

struct Pair {
  PyObject *pack, *unpack;
};
thread_local std::vector<Pair> stack;
thread_local PyObject* disabled_message = nullptr;

PyObject* push(PyObject*, PyObject* args) {
  PyObject *pack, *unpack;
  if (!PyArg_ParseTuple(args, "OO:_push_saved_tensors_hooks", &pack, &unpack)) return nullptr;
  if (disabled_message) {
    PyErr_SetObject(PyExc_RuntimeError, disabled_message);
    return nullptr;
  }
  Py_INCREF(pack);
  Py_INCREF(unpack);
  stack.push_back({pack, unpack});
  saved_hooks_depth++;
  Py_RETURN_NONE;
}

PyObject* pop(PyObject*, PyObject*) {
  if (stack.empty()) {
    PyErr_SetString(PyExc_RuntimeError, "there are no saved_tensors_hooks to leave");
    return nullptr;
  }
  Pair p = stack.back();
  stack.pop_back();
  saved_hooks_depth--;
  Py_DECREF(p.pack);
  Py_DECREF(p.unpack);
  Py_RETURN_NONE;
}

// _disable_saved_tensors_hooks(message or None) -> what was set before
PyObject* disable(PyObject*, PyObject* message) {
  if (message != Py_None && !PyUnicode_Check(message)) {
    PyErr_Format(PyExc_TypeError, "disable_saved_tensors_hooks: expected a str, got %s", Py_TYPE(message)->tp_name);
    return nullptr;
  }
  if (message != Py_None && saved_hooks_depth) {
    PyErr_SetObject(PyExc_RuntimeError, message);
    return nullptr;
  }
  PyObject* before = disabled_message;
  disabled_message = message == Py_None ? nullptr : Py_NewRef(message);
  return before ? before : Py_NewRef(Py_None);
}

// _watch_writes(callable or None): who is called with a tensor before it is written in place.
PyObject* watch_writes(PyObject*, PyObject* watcher) {
  PyObject* old = std::exchange(write_watcher, watcher == Py_None ? nullptr : Py_NewRef(watcher));
  Py_XDECREF(old);
  Py_RETURN_NONE;
}

PyObject* increment_version(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Tensor* t = as_tensor(o);
    RL_CHECK(t, Type, "increment_version: expected a Tensor, got %s", Py_TYPE(o)->tp_name);
    bump_version(t);
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {{"_push_saved_tensors_hooks", push, METH_VARARGS, nullptr},
                           {"_pop_saved_tensors_hooks", pop, METH_NOARGS, nullptr},
                           {"_disable_saved_tensors_hooks", disable, METH_O, nullptr},
                           {"_increment_version", increment_version, METH_O, nullptr},
                           {"_watch_writes", watch_writes, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

// The saved value is a tuple (packed, unpack, node or None, output number): what unpack returns gets that place in the
// graph.
static void pack_with(PyObject* pack_hook, PyObject* unpack_hook, Saved& s, Tensor* t, bool is_output,
                      uint32_t output_index) {
  Py pack = Py::share(pack_hook), unpack = Py::share(unpack_hook);
  TensorRef alias = is_output ? shallow_copy(t) : TensorRef::share(t);
  uint32_t version = t->version();
  Py packed;
  {
    int depth = std::exchange(saved_hooks_depth, 0);  // what the hook itself records is saved as usual
    struct Restore {
      int depth;
      ~Restore() { saved_hooks_depth = depth; }
    } restore{depth};
    packed = Py(need(PyObject_CallOneArg(pack.get(), alias->object())));
  }
  RL_CHECK(t->version() == version, Runtime,
           "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not "
           "be modified by in-place operations");
  Edge link = is_output ? Edge{nullptr, 0} : gradient_edge(t);
  NodeRef node = NodeRef::own(link.node);
  Py tuple(need(Py_BuildValue("(OOOI)", packed.get(), unpack.get(), node ? node->object() : Py_None, link.index)));
  s.value = Value::of_object(tuple.take());
  s.version = 0;
  s.is_output = is_output;
  s.freed = false;
  s.packed = true;
  s.output_index = output_index;
}

void pack_saved(Saved& s, Tensor* t, bool is_output, uint32_t output_index) {
  pack_with(stack.back().pack, stack.back().unpack, s, t, is_output, output_index);
}

void pack_later(Node* n, Saved& s, PyObject* pack, PyObject* unpack) {
  RL_CHECK(!s.freed, Runtime,
           "register_hooks: what %s saved was freed by a backward; register the hooks before it, or pass "
           "retain_graph=True to it",
           node_name(n).c_str());
  RL_CHECK(!s.packed, Runtime, "register_hooks: %s has hooks for this tensor; expected none, as one pair is allowed",
           node_name(n).c_str());
  RL_CHECK(s.value.tag == Tag::Tensor, Runtime, "register_hooks: %s saved no tensor here", node_name(n).c_str());
  TensorRef held;
  unpack_saved(n, s, held);  // which refuses what was written since
  TensorRef kept = TensorRef::own(s.value.tensor);
  try {
    pack_with(pack, unpack, s, kept.get(), s.is_output, s.output_index);
  } catch (...) {
    kept.take();  // still the slot's
    throw;
  }
}

TensorRef unpack_packed(Node* n, const Saved& s) {
  Py tuple = Py::share(s.value.object);
  Py result(need(PyObject_CallOneArg(PyTuple_GET_ITEM(tuple.get(), 1), PyTuple_GET_ITEM(tuple.get(), 0))));
  Tensor* t = as_tensor(result.get());
  RL_CHECK(t, Type, "Output of saved tensor unpack_hook expected to be a Tensor but got result of type %s",
           Py_TYPE(result.get())->tp_name);
  PyObject* o = PyTuple_GET_ITEM(tuple.get(), 2);
  uint32_t index =
      s.is_output ? s.output_index : static_cast<uint32_t>(PyLong_AsUnsignedLong(PyTuple_GET_ITEM(tuple.get(), 3)));
  Node* source = s.is_output ? saved_link(n, index) : o != Py_None ? reinterpret_cast<Node*>(o) : nullptr;
  TensorRef copy = shallow_copy(t);
  NodeRef view;
  if (source == n && n->owner) {
    view = view_of_base(n->owner);
    source = view.get();
    index = 0;
  }
  if (source && thread_state.grad_mode) set_grad_fn(copy.get(), source, index);
  return copy;
}

bool saved_hooks_init(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace rl
