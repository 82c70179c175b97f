// What happened while the profiler was on: a flat list of events, each with its parent. Read by rushlight.profiler.
#include "../tensor/profiler.h"

#include <chrono>

#include "node.h"
#include "python_api.h"

namespace rl {

bool profiling = false;

namespace {

struct Event {
  PyObject* label;  // owned: of a user's range or a node; nullptr for an operation
  const Op* op;
  PyObject* shapes;  // owned, or nullptr
  PyObject* stack;   // owned, or nullptr
  int64_t start, end, parent, bytes;
  int64_t elements;  // of the results
  uint64_t sequence, thread;
  const void* node;
  char kind;  // 'o' operation, 'b' backward node, 'u' range of the user, 'm' call of a module
  bool inplace;
};

std::vector<Event> events;
bool with_shapes = false, with_memory = false, with_stack = false;
uint64_t session = 0;
// The innermost open event of this thread, of the session it belongs to.
thread_local int64_t innermost = -1;
thread_local uint64_t innermost_session = 0;

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int64_t allocated() {
  rl_memory_stats s;
  rl_memory_get_stats(&s);
  return s.allocated_bytes;
}

PyObject* shape_of(const Value& v) {
  Py list(need(PyList_New(0)));
  if (v.tag == Tag::Tensor) {
    for (int i = 0; i < v.tensor->ndim(); i++) {
      Py n(need(PyLong_FromLongLong(v.tensor->size(i))));
      if (PyList_Append(list.get(), n.get()) < 0) throw PythonError();
    }
  } else if (v.tag == Tag::TensorList) {
    for (uint32_t k = 0; k < v.size; k++) {
      Py inner(shape_of(Value::of(v.tensors[k])));
      if (PyList_Append(list.get(), inner.get()) < 0) throw PythonError();
    }
  }
  return list.take();
}

PyObject* shapes_of(const Op& op, const Value* args) {
  Py list(need(PyList_New(0)));
  for (int i = 0; i < op.argument_count; i++) {
    Py item(shape_of(args[i]));
    if (PyList_Append(list.get(), item.get()) < 0) throw PythonError();
  }
  return list.take();
}

// Never throws into the operation that is watched.
int64_t begin(Event e) {
  if (innermost_session != session) innermost = -1;
  innermost_session = session;
  e.parent = innermost;
  e.thread = static_cast<uint64_t>(PyThread_get_thread_ident());
  if (with_stack) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    e.stack = capture_stack();
    if (!e.stack) PyErr_Clear();
    PyErr_Restore(type, value, trace);
  }
  e.end = -1;
  if (with_memory) e.bytes = allocated();
  e.start = now();
  innermost = static_cast<int64_t>(events.size());
  events.push_back(e);
  return innermost;
}

}  // namespace

int64_t profile_begin(const Op& op, const Value* args, bool inplace) {
  Event e{};
  e.op = &op;
  e.kind = 'o';
  e.inplace = inplace;
  if (with_shapes) e.shapes = shapes_of(op, args);
  return begin(e);
}

int64_t profile_begin(Node* node) {
  Event e{};
  e.kind = 'b';
  e.label = PyObject_CallMethod(node->object(), "name", nullptr);
  if (!e.label) PyErr_Clear();
  e.sequence = node->sequence;
  e.node = node;
  return begin(e);
}

void profile_end(int64_t event, const Value* results) {
  int64_t time = now();
  if (innermost_session != session || event >= static_cast<int64_t>(events.size())) return;  // taken meanwhile
  Event& e = events[static_cast<size_t>(event)];
  e.end = time;
  if (with_memory) e.bytes = allocated() - e.bytes;
  if (results && results[0].tag == Tag::Tensor) e.elements = results[0].tensor->numel;
  if (results && results[0].tag == Tag::Tensor && results[0].tensor->grad_fn) {
    e.sequence = results[0].tensor->grad_fn->sequence;
    e.node = results[0].tensor->grad_fn;
  }
  innermost = e.parent;
}

namespace {

void drop_events() {
  std::vector<Event> old;
  old.swap(events);
  session++;
  for (Event& e : old) {
    Py_XDECREF(e.label);
    Py_XDECREF(e.shapes);
    Py_XDECREF(e.stack);
  }
}

// _profiler_start(shapes, memory, stack)
PyObject* start(PyObject*, PyObject* args) {
  int shapes, memory, stack;
  if (!PyArg_ParseTuple(args, "ppp:_profiler_start", &shapes, &memory, &stack)) return nullptr;
  if (profiling) {
    PyErr_SetString(PyExc_RuntimeError, "profiler: there is a profiler running already; expected none to be active");
    return nullptr;
  }
  drop_events();
  with_shapes = shapes;
  with_memory = memory;
  with_stack = stack;
  profiling = true;
  return PyLong_FromLongLong(now());
}

// _profiler_stop() -> (end, [(name, kind, thread, start, end, parent, bytes, sequence, node, shapes, stack,
// (module, name, overload) of the record or None, elements)])
PyObject* stop(PyObject*, PyObject*) {
  profiling = false;
  int64_t time = now();
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(events.size()));
  for (size_t i = 0; list && i < events.size(); i++) {
    Event& e = events[i];
    PyObject* name =
        e.label ? Py_NewRef(e.label)
        : e.op  ? PyUnicode_FromFormat("aten::%s%s", e.op->name, e.inplace && !(e.op->flags & kInplaceOnly) ? "_" : "")
                : PyUnicode_FromString("?");
    PyObject* record = e.op ? Py_BuildValue("(sss)", e.op->module, e.op->name, e.op->overload) : Py_NewRef(Py_None);
    PyObject* item =
        name ? Py_BuildValue(
                   "(NCKLLLLKKOONL)", name, static_cast<int>(e.kind), static_cast<unsigned long long>(e.thread),
                   static_cast<long long>(e.start), static_cast<long long>(e.end < 0 ? time : e.end),
                   static_cast<long long>(e.parent), static_cast<long long>(e.end < 0 ? 0 : e.bytes),
                   static_cast<unsigned long long>(e.sequence),
                   static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(e.node)), e.shapes ? e.shapes : Py_None,
                   e.stack ? e.stack : Py_None, record, static_cast<long long>(e.elements))
             : nullptr;
    if (!item)
      Py_CLEAR(list);
    else
      PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), item);
  }
  drop_events();
  return list ? Py_BuildValue("(LN)", static_cast<long long>(time), list) : nullptr;
}

// _profiler_push(name, module=False) -> the number of the event
PyObject* push(PyObject*, PyObject* args) {
  PyObject* name;
  int module = 0;
  if (!PyArg_ParseTuple(args, "O|p:_profiler_push", &name, &module)) return nullptr;
  if (!profiling) return PyLong_FromLong(-1);
  Event e{};
  e.kind = module ? 'm' : 'u';
  e.label = Py_NewRef(name);
  return PyLong_FromLongLong(begin(e));
}

PyObject* pop(PyObject*, PyObject* event) {
  long long number = PyLong_AsLongLong(event);
  if (number == -1 && PyErr_Occurred()) return nullptr;
  if (number >= 0) profile_end(number);
  Py_RETURN_NONE;
}

PyObject* is_on(PyObject*, PyObject*) { return PyBool_FromLong(profiling); }
// _profiler_toggle(on): pauses a running session, or goes on.
PyObject* toggle(PyObject*, PyObject* on) {
  int value = PyObject_IsTrue(on);
  if (value < 0) return nullptr;
  profiling = value;
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"_profiler_start", start, METH_VARARGS, nullptr},
                           {"_profiler_stop", stop, METH_NOARGS, nullptr},
                           {"_profiler_push", push, METH_VARARGS, nullptr},
                           {"_profiler_pop", pop, METH_O, nullptr},
                           {"_profiler_toggle", toggle, METH_O, nullptr},
                           {"_profiler_is_on", is_on, METH_NOARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool profiler_init(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace rl
