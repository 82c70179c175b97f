// Generator: a state of the random number generator.
#include "python.h"

#include <structmember.h>

#include "../tensor/random_generator.h"
#include "rushlight/random.h"

namespace rl {

namespace {

struct GeneratorObject {
  PyObject_HEAD rl_generator* generator;
  bool owned;
};

PyTypeObject* GeneratorType;

rl_generator* of(PyObject* o) { return reinterpret_cast<GeneratorObject*>(o)->generator; }

PyObject* wrap(rl_generator* generator, bool owned) {
  auto* o = reinterpret_cast<GeneratorObject*>(GeneratorType->tp_alloc(GeneratorType, 0));
  if (!o) {
    if (owned) rl_generator_destroy(generator);
    return nullptr;
  }
  o->generator = generator;
  o->owned = owned;
  return reinterpret_cast<PyObject*>(o);
}

PyObject* generator_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  static const char* keys[] = {"device", nullptr};
  PyObject* device = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", const_cast<char**>(keys), &device)) return nullptr;
  return guarded([&]() -> PyObject* {
    RL_CHECK(device == Py_None || device_from_object(device) == Device::CPU, Runtime,
             "Generator(): only the cpu device has a generator");
    rl_generator* g = rl_generator_create(RL_GENERATOR_DEFAULT_SEED);
    RL_CHECK(g, Memory, "%s", rl_last_error());
    return wrap(g, true);
  });
}
void generator_dealloc(PyObject* self) {
  auto* o = reinterpret_cast<GeneratorObject*>(self);
  if (o->owned) rl_generator_destroy(o->generator);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* manual_seed(PyObject* self, PyObject* seed) {
  return guarded([&]() -> PyObject* {
    PyObject* number = PyNumber_Index(seed);
    if (!number) throw PythonError();
    int overflow;
    long long v = PyLong_AsLongLongAndOverflow(number, &overflow);
    uint64_t s = static_cast<uint64_t>(v);
    if (overflow > 0) {
      s = PyLong_AsUnsignedLongLong(number);
      if (PyErr_Occurred()) {
        PyErr_Clear();
        Py_DECREF(number);
        throw_error(ErrorKind::Value,
                    "manual_seed: Overflow when unpacking long; the seed must be in [-2^63, 2^64 - 1]");
      }
    }
    Py_DECREF(number);
    RL_CHECK(overflow >= 0, Value, "manual_seed: Overflow when unpacking long; the seed must be in [-2^63, 2^64 - 1]");
    rl_generator_set_seed(of(self), s);
    return Py_NewRef(self);
  });
}
PyObject* seed(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    uint64_t s;
    check(rl_generator_seed(of(self), &s));
    return PyLong_FromUnsignedLongLong(s);
  });
}
PyObject* initial_seed(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(rl_generator_initial_seed(of(self)));
}
PyObject* get_state(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    int64_t n = RL_GENERATOR_STATE_BYTES;
    TensorRef t = empty(RL_UINT8, 1, &n);
    check(rl_generator_get_state(of(self), t->data(), RL_GENERATOR_STATE_BYTES));
    return t.take()->object();
  });
}
PyObject* set_state(PyObject* self, PyObject* state) {
  return guarded([&]() -> PyObject* {
    RL_CHECK(is_tensor(state), Type, "set_state(): expected a ByteTensor, got %s", Py_TYPE(state)->tp_name);
    Tensor* t = tensor_of(state);
    RL_CHECK(t->dtype() == RL_UINT8, Type, "RNG state must be a torch.ByteTensor, got %s", dtype_name(t->dtype()));
    RL_CHECK(t->numel == RL_GENERATOR_STATE_BYTES, Runtime,
             "set_state(): RNG state is wrong size; expected %d bytes, got %lld", RL_GENERATOR_STATE_BYTES,
             static_cast<long long>(t->numel));
    TensorRef dense = contiguous(t);
    check(rl_generator_set_state(of(self), dense->data(), RL_GENERATOR_STATE_BYTES));
    return Py_NewRef(self);
  });
}
PyObject* clone_state(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    rl_generator* g = rl_generator_clone(of(self));
    RL_CHECK(g, Memory, "%s", rl_last_error());
    return wrap(g, true);
  });
}
PyObject* get_device(PyObject*, void*) { return device_object(Device::CPU); }
PyObject* representation(PyObject* self) {
  return PyUnicode_FromFormat("<rushlight.Generator of seed %llu>",
                              static_cast<unsigned long long>(rl_generator_initial_seed(of(self))));
}
PyObject* set_state_pickled(PyObject* self, PyObject* state) { return set_state(self, state); }
PyObject* reduce(PyObject* self, PyObject*) {
  PyObject* state = get_state(self, nullptr);
  return state ? Py_BuildValue("O()N", GeneratorType, state) : nullptr;
}

PyObject* offset(PyObject*, PyObject*) {
  PyErr_SetString(PyExc_RuntimeError, "the CPU's generator has no offset");
  return nullptr;
}

PyMethodDef methods[] = {{"get_offset", offset, METH_NOARGS, "RuntimeError: the CPU's generator has no offset."},
                         {"set_offset", offset, METH_O, "RuntimeError: the CPU's generator has no offset."},
                         {"manual_seed", manual_seed, METH_O, "Starts the sequence of a seed; returns the generator."},
                         {"seed", seed, METH_NOARGS, "Seeds from the operating system; returns the seed."},
                         {"initial_seed", initial_seed, METH_NOARGS, "The seed of the sequence."},
                         {"get_state", get_state, METH_NOARGS, "The state as 5056 bytes, which PyTorch can read."},
                         {"set_state", set_state, METH_O, "Goes on from a state of get_state."},
                         {"clone_state", clone_state, METH_NOARGS, "A generator in the same state."},
                         {"graphsafe_get_state", clone_state, METH_NOARGS, "A generator in the same state."},
                         {"__setstate__", set_state_pickled, METH_O, nullptr},
                         {"__reduce__", reduce, METH_NOARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
PyGetSetDef getset[] = {{"device", get_device, nullptr, "The CPU.", nullptr},
                        {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(generator_new)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(generator_dealloc)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, getset},
                       {Py_tp_repr, reinterpret_cast<void*>(representation)},
                       {0, nullptr}};
PyType_Spec spec = {"rushlight.Generator", sizeof(GeneratorObject), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

rl_generator* generator_of(const Value& v) {
  if (v.is_none()) return nullptr;
  RL_CHECK(v.tag == Tag::Object && Py_TYPE(v.object) == GeneratorType, Type, "expected a Generator, got %s",
           Py_TYPE(v.object)->tp_name);
  return of(v.object);
}

bool generator_init(PyObject* module) {
  GeneratorType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!GeneratorType ||
      PyModule_AddObject(module, "Generator", Py_NewRef(reinterpret_cast<PyObject*>(GeneratorType))) < 0)
    return false;
  PyObject* standard = wrap(rl_default_generator(), false);
  return standard && PyModule_AddObject(module, "default_generator", standard) == 0;
}

}  // namespace rl
