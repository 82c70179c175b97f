// Reading derivatives from the records and evaluating them.
#include "derivative.h"

#include <algorithm>

#include <map>

namespace rl {

// "max_pool2d" -> "MaxPool2DBackward0"; the number counts the overloads that come before.
std::string backward_name(const Op& op) {
  std::string name;
  bool upper = true;
  for (const char* p = op.name; *p; p++) {
    if (*p == '_') {
      upper = true;
      continue;
    }
    name += upper ? static_cast<char>(std::toupper(*p)) : *p;
    upper = *p >= '0' && *p <= '9';
  }
  int number = 0;
  for (int i = op.index - 1; i >= 0 && !std::strcmp(op_table[i].name, op.name); i--)
    number += op_table[i].differentiable_mask != 0;
  return name + "Backward" + std::to_string(number);
}

namespace {

PyObject* trace_module() {
  static PyObject* module = nullptr;
  if (!module) module = need(PyImport_ImportModule("rushlight.ops._trace"));
  return module;
}

int64_t as_int(PyObject* o) {
  int64_t v = PyLong_AsLongLong(o);
  if (v == -1 && PyErr_Occurred()) throw PythonError();
  return v;
}

Source read_source(const Op& op, Derivative& d, Formula& f, PyObject* item) {
  const char* kind = PyUnicode_AsUTF8(need(PyTuple_GetItem(item, 0)));
  if (!kind) throw PythonError();
  auto index = static_cast<uint8_t>(as_int(need(PyTuple_GetItem(item, 1))));
  Source s{SourceKind::Argument, index, 0};
  if (!std::strcmp(kind, "argument"))
    s.kind = SourceKind::Argument;
  else if (!std::strcmp(kind, "shape"))
    s.kind = SourceKind::Shape;
  else if (!std::strcmp(kind, "shapes"))
    s.kind = SourceKind::Shapes;
  else if (!std::strcmp(kind, "dtype"))
    s.kind = SourceKind::DType;
  else if (!std::strcmp(kind, "result"))
    s.kind = SourceKind::Result;
  else if (!std::strcmp(kind, "grad"))
    s.kind = SourceKind::Grad;
  else if (!std::strcmp(kind, "strides"))
    s.kind = SourceKind::Strides;
  else if (!std::strcmp(kind, "offset"))
    s.kind = SourceKind::Offset;
  else if (!std::strcmp(kind, "grads"))
    s.kind = SourceKind::Grads;
  else if (!std::strcmp(kind, "needs"))
    s.kind = SourceKind::Needs;
  else
    throw_error(ErrorKind::Runtime, "derivative of %s: unknown source %s", op.name, kind);
  if (s.kind == SourceKind::Grad) f.grad_mask |= 1u << index;
  if (s.kind == SourceKind::Grads) f.all_grads = true;
  if (s.kind == SourceKind::Grad || s.kind == SourceKind::Grads || s.kind == SourceKind::Needs) return s;
  for (size_t k = 0; k < d.saved.size(); k++)
    if (d.saved[k].kind == s.kind && d.saved[k].index == s.index) {
      s.slot = static_cast<uint8_t>(k);
      f.save_mask |= 1u << k;
      return s;
    }
  RL_CHECK(d.saved.size() < 32, Runtime, "derivative of %s: more than 32 saved values", op.name);
  s.slot = static_cast<uint8_t>(d.saved.size());
  f.save_mask |= 1u << s.slot;
  d.saved.push_back(s);
  return s;
}

[[gnu::noinline]] const Derivative& load(const Op& op) {
  GradGuard off(false);
  Py list(need(PyObject_CallMethod(trace_module(), "derivative", "sss", op.module, op.name, op.overload)));
  auto d = std::make_unique<Derivative>();
  d->op = &op;
  std::fill_n(d->formula_of, kMaxArgs, static_cast<int8_t>(-1));
  for (Py_ssize_t i = 0; i < PyList_Size(list.get()); i++) {
    PyObject* item = PyList_GetItem(list.get(), i);  // (targets, sources, callable, returns_tuple)
    Formula f;
    PyObject* targets = need(PyTuple_GetItem(item, 0));
    for (Py_ssize_t k = 0; k < PyTuple_Size(targets); k++) {
      auto target = static_cast<uint8_t>(as_int(PyTuple_GetItem(targets, k)));
      f.targets.push_back(target);
      f.target_mask |= 1u << target;
      d->formula_of[target] = static_cast<int8_t>(i);
    }
    PyObject* sources = need(PyTuple_GetItem(item, 1));
    for (Py_ssize_t k = 0; k < PyTuple_Size(sources); k++)
      f.parameters.push_back(read_source(op, *d, f, PyTuple_GetItem(sources, k)));
    f.callable = need(PyTuple_GetItem(item, 2));
    Py_INCREF(f.callable);
    f.returns_tuple = PyObject_IsTrue(need(PyTuple_GetItem(item, 3))) == 1;
    d->formulas.push_back(std::move(f));
  }
  for (int i = 0; i < op.argument_count; i++)
    if (op.differentiable_mask >> i & 1) d->has_lists |= op.arguments[i].kind == Kind::TensorList;
  d->node_type = node_type_named(backward_name(op));
  if (!op.derivative) op.derivative = d.release();  // importing the record may have recorded the same operation
  return *op.derivative;
}

}  // namespace

const Derivative& derivative_of(const Op& op) {
  if (RL_LIKELY(op.derivative != nullptr)) return *op.derivative;
  return load(op);
}

// ---------------------------------------------------------------- evaluation

namespace {

constexpr int kMaxParameters = kMaxArgs + 8;

// Values that are not initialised until they are used: a formula has few of the many that it might have.
template <size_t N>
struct Values {
  union {
    Value items[N];
  };
  Values() {}
};

struct Parameters {
  Values<kMaxParameters> values;
  union {
    TensorRef held[kMaxParameters];
  };
  size_t count;
  Py needs;                   // the tuple of `needs`
  std::vector<Tensor*> list;  // all gradients
  std::vector<TensorRef> zeros;
  explicit Parameters(size_t n) : count(n) {
    for (size_t i = 0; i < n; i++) new (&held[i]) TensorRef();
  }
  ~Parameters() {
    for (size_t i = 0; i < count; i++) held[i].~TensorRef();
  }
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;
};

[[noreturn]] void wrong_result(Node* n, const char* what) {
  throw_error(ErrorKind::Runtime, "internal: the derivative of %s %s", n->op->name, what);
}

struct Registers {
  Values<16> room;
  Value* values;
  size_t used = 0;
  explicit Registers(size_t n) : values(n <= 16 ? room.items : new Value[n]) {}
  ~Registers() {
    release_results(values, static_cast<int>(used));
    if (values != room.items) delete[] values;
  }
  Registers(const Registers&) = delete;
  Registers& operator=(const Registers&) = delete;
};

// Memory for lists that are put together while a program runs.
struct Scratch {
  std::vector<std::unique_ptr<int64_t[]>> ints;
  std::vector<std::unique_ptr<Tensor*[]>> tensors;
};

Value operand(const Operand& o, const Value* parameters, Value* registers, Scratch& scratch) {
  switch (o.kind) {
    case Operand::Parameter:
      return parameters[o.index];
    case Operand::Temporary:
      return registers[o.index];
    case Operand::Constant:
      return o.constant;
    case Operand::Element: {
      const Value& list = registers[o.index];
      if (list.tag != Tag::TensorList || o.position >= list.size)
        throw_error(ErrorKind::Runtime, "internal: a derivative reads element %u of a result that has fewer",
                    o.position);
      return Value::of(list.tensors[o.position]);
    }
    case Operand::List: {
      scratch.ints.push_back(std::make_unique<int64_t[]>(o.elements.size() + 1));
      int64_t* p = scratch.ints.back().get();
      for (size_t i = 0; i < o.elements.size(); i++)
        p[i] = operand(o.elements[i], parameters, registers, scratch).as_int();
      return Value::of_ints(p, static_cast<int>(o.elements.size()));
    }
    case Operand::TensorList: {
      scratch.tensors.push_back(std::make_unique<Tensor*[]>(o.elements.size() + 1));
      Tensor** p = scratch.tensors.back().get();
      for (size_t i = 0; i < o.elements.size(); i++) {
        Value v = operand(o.elements[i], parameters, registers, scratch);
        p[i] = v.is_tensor() ? v.tensor : nullptr;
      }
      return Value::of_tensors(p, o.elements.size());
    }
  }
  return Value::none();
}

// Results of a formula: one for each target, with references of their own.
struct FormulaResults {
  Values<kMaxArgs> room;
  Value* values = room.items;
  size_t count = 0;
  ~FormulaResults() {
    for (size_t i = 0; i < count; i++) {
      Value& v = values[i];
      if (v.tag == Tag::Tensor)
        release(v.tensor);
      else if (v.tag == Tag::TensorList) {
        for (uint32_t k = 0; k < v.size; k++)
          if (v.tensors[k]) release(v.tensors[k]);
        PyMem_Free(v.tensors);
      }
    }
  }
  void add(const Value& v) {  // borrowed
    Value own = v;
    if (v.tag == Tag::Tensor) {
      retain(v.tensor);
    } else if (v.tag == Tag::TensorList) {
      auto** p = static_cast<Tensor**>(PyMem_Malloc(sizeof(Tensor*) * (v.size + 1)));
      if (!p) throw std::bad_alloc();
      for (uint32_t k = 0; k < v.size; k++) {
        p[k] = v.tensors[k];
        if (p[k]) retain(p[k]);
      }
      own.tensors = p;
    } else {
      own = Value::none();
    }
    values[count++] = own;
  }
};

void run_program(const Program& program, const Value* parameters, FormulaResults& out) {
  Registers registers(program.temporaries);
  Value* r = registers.values;
  Scratch scratch;
  Values<kMaxArgs> room;
  Value* args = room.items;
  for (const Instruction& in : program.instructions) {
    size_t i = 0;
    for (const Operand& o : in.arguments) {
      args[i++] = RL_LIKELY(o.kind == Operand::Parameter) ? parameters[o.index]
                  : o.kind == Operand::Temporary          ? r[o.index]
                                                          : operand(o, parameters, r, scratch);
    }
    run_op(*in.op, args, r + in.first_temporary);
    registers.used = in.first_temporary + static_cast<size_t>(in.op->result_count);
  }
  for (const Operand& o : program.results) out.add(operand(o, parameters, r, scratch));
}

// ---- guards

bool same_value(const Guard& g, const Value& v) {
  if (v.tag != g.value.tag) return false;
  switch (v.tag) {
    case Tag::None:
      return true;
    case Tag::Int:
    case Tag::Bool:
      return v.integer == g.value.integer;
    case Tag::Double:
      return v.real == g.value.real || (v.real != v.real && g.value.real != g.value.real);
    case Tag::Complex:
      return v.complex.re == g.value.complex.re && v.complex.im == g.value.complex.im;
    case Tag::DType:
      return v.dtype == g.value.dtype;
    case Tag::IntList:
      return std::equal(v.ints, v.ints + v.size, g.ints.begin(), g.ints.end());
    case Tag::DoubleList:
      return v.size == g.doubles.size() &&
             (!v.size || !std::memcmp(v.doubles, g.doubles.data(), v.size * sizeof(double)));
    case Tag::Object: {
      int equal = PyObject_RichCompareBool(v.object, g.value.object, Py_EQ);
      if (equal < 0) throw PythonError();
      return equal == 1;
    }
    default:
      return false;
  }
}

bool holds(const Guard& g, const Value* parameters) {
  const Value& v = parameters[g.parameter];
  switch (g.property) {
    case Guard::Equal:
      return same_value(g, v);
    case Guard::IsNone:
      return v.is_none();
    case Guard::NotNone:
      return !v.is_none();
    case Guard::IsTensor:
      return v.is_tensor();
    case Guard::IsNumber:
      return v.is_scalar();
    case Guard::SameKind:
      return v.tag == g.value.tag;
    case Guard::TensorShape:
      return v.is_tensor() && static_cast<size_t>(v.tensor->ndim()) == g.ints.size() &&
             std::equal(g.ints.begin(), g.ints.end(), v.tensor->shape());
    case Guard::TensorDType:
      return v.is_tensor() && v.tensor->dtype() == g.value.dtype;
  }
  return false;
}

// ---- reading a trace

// A Python constant as a Value whose memory belongs to the program.
Value constant(PyObject* o, std::vector<std::vector<int64_t>>& ints, std::vector<std::vector<double>>& doubles,
               std::vector<PyObject*>& objects) {
  if (o == Py_None) return Value::none();
  if (PyBool_Check(o)) return Value::of(o == Py_True);
  if (PyLong_Check(o)) return Value::of(as_int(o));
  if (PyFloat_Check(o)) return Value::of(PyFloat_AS_DOUBLE(o));
  if (PyComplex_Check(o)) return Value::of(std::complex<double>(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o)));
  if (is_dtype(o)) return Value::of(dtype_of(o));
  if (PyTuple_Check(o) || PyList_Check(o)) {
    Py_ssize_t n = PySequence_Size(o);
    bool all_int = true, all_number = true;
    for (Py_ssize_t i = 0; i < n; i++) {
      Py item(need(PySequence_GetItem(o, i)));
      all_int &= PyLong_Check(item.get()) && !PyBool_Check(item.get());  // `needs` stays a tuple
      all_number &= (PyLong_Check(item.get()) && !PyBool_Check(item.get())) || PyFloat_Check(item.get());
    }
    if (all_int) {
      auto& list = ints.emplace_back();
      for (Py_ssize_t i = 0; i < n; i++) list.push_back(as_int(Py(need(PySequence_GetItem(o, i))).get()));
      return Value::of_ints(list.data(), static_cast<int>(n));
    }
    if (all_number) {
      auto& list = doubles.emplace_back();
      for (Py_ssize_t i = 0; i < n; i++) list.push_back(PyFloat_AsDouble(Py(need(PySequence_GetItem(o, i))).get()));
      Value v;
      v.tag = Tag::DoubleList;
      v.size = static_cast<uint32_t>(n);
      v.doubles = list.data();
      return v;
    }
  }
  Py_INCREF(o);
  objects.push_back(o);
  return Value::of_object(o);
}

Operand read_operand(PyObject* o, Program& p, const Op* op, size_t position) {
  Operand result;
  const char* kind = PyUnicode_AsUTF8(need(PyTuple_GetItem(o, 0)));
  if (!kind) throw PythonError();
  PyObject* what = PyTuple_Size(o) > 1 ? PyTuple_GetItem(o, 1) : nullptr;
  switch (*kind) {
    case 'p':
    case 't':
      result.kind = *kind == 'p' ? Operand::Parameter : Operand::Temporary;
      result.index = static_cast<uint16_t>(as_int(need(what)));
      return result;
    case 'e':
      result.kind = Operand::Element;
      result.index = static_cast<uint16_t>(as_int(need(what)));
      result.position = static_cast<uint32_t>(as_int(need(PyTuple_GetItem(o, 2))));
      return result;
    case 'd':
      result.kind = Operand::Constant;
      result.constant = op->arguments[position].default_value;
      return result;
    case 'l':
    case 'T':
      result.kind = *kind == 'l' ? Operand::List : Operand::TensorList;
      for (Py_ssize_t i = 0; i < PyList_Size(need(what)); i++)
        result.elements.push_back(read_operand(PyList_GetItem(what, i), p, op, position));
      return result;
    default:
      result.kind = Operand::Constant;
      result.constant = constant(need(what), p.ints, p.doubles, p.objects);
      return result;
  }
}

void read_program(PyObject* instructions, PyObject* results, Program& p) {
  for (Py_ssize_t i = 0; i < PyList_Size(instructions); i++) {
    PyObject* item = PyList_GetItem(instructions, i);  // (op index, first temporary, [operands])
    Instruction in;
    in.op = &op_table[as_int(need(PyTuple_GetItem(item, 0)))];
    in.first_temporary = static_cast<uint16_t>(as_int(need(PyTuple_GetItem(item, 1))));
    PyObject* operands = need(PyTuple_GetItem(item, 2));
    for (Py_ssize_t k = 0; k < PyList_Size(operands); k++)
      in.arguments.push_back(read_operand(PyList_GetItem(operands, k), p, in.op, static_cast<size_t>(k)));
    p.temporaries = static_cast<uint16_t>(in.first_temporary + in.op->result_count);
    p.instructions.push_back(std::move(in));
  }
  for (Py_ssize_t i = 0; i < PyList_Size(results); i++)
    p.results.push_back(read_operand(PyList_GetItem(results, i), p, nullptr, 0));
}

void read_guards(PyObject* guards, Variant& v) {
  static const std::map<std::string, Guard::Property> names = {
      {"equal", Guard::Equal},       {"none", Guard::IsNone},      {"not none", Guard::NotNone},
      {"number", Guard::IsNumber},   {"kind", Guard::SameKind},    {"tensor", Guard::IsTensor},
      {"shape", Guard::TensorShape}, {"dtype", Guard::TensorDType}};
  for (Py_ssize_t i = 0; i < PyList_Size(guards); i++) {
    PyObject* item = PyList_GetItem(guards, i);  // (property, parameter, value)
    const char* property = PyUnicode_AsUTF8(need(PyTuple_GetItem(item, 0)));
    if (!property) throw PythonError();
    Guard g{};
    g.property = names.at(property);
    g.parameter = static_cast<uint16_t>(as_int(need(PyTuple_GetItem(item, 1))));
    std::vector<std::vector<int64_t>> ints;
    std::vector<std::vector<double>> doubles;
    g.value = constant(need(PyTuple_GetItem(item, 2)), ints, doubles, v.program.objects);
    if (!ints.empty()) g.ints = std::move(ints[0]);
    if (!doubles.empty()) g.doubles = std::move(doubles[0]);
    v.guards.push_back(std::move(g));
  }
}

Py python_arguments(const Formula& f, const Value* parameters) {
  Py tuple(need(PyTuple_New(static_cast<Py_ssize_t>(f.parameters.size()))));
  for (size_t i = 0; i < f.parameters.size(); i++)
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), need(value_to_python(parameters[i])));
  return tuple;
}

constexpr size_t kMaxVariants = 12;

// Calls the formula once with proxies; nullptr when it cannot be written as a list of operations.
[[gnu::noinline]] Variant* trace(Formula& f, const Value* parameters) {
  if (f.variants.size() >= kMaxVariants) {
    f.python_only = true;
    return nullptr;
  }
  GradGuard off(false);
  Py arguments = python_arguments(f, parameters);
  Py result(need(PyObject_CallMethod(trace_module(), "trace", "OOni", f.callable, arguments.get(),
                                     static_cast<Py_ssize_t>(f.targets.size()), static_cast<int>(f.returns_tuple))));
  if (result.get() == Py_None) {
    f.python_only = true;
    return nullptr;
  }
  auto v = std::make_unique<Variant>();
  read_guards(need(PyTuple_GetItem(result.get(), 0)), *v);
  read_program(need(PyTuple_GetItem(result.get(), 1)), need(PyTuple_GetItem(result.get(), 2)), v->program);
  f.variants.push_back(v.get());
  return v.release();
}

Value tensor_list_from(Node* n, PyObject* o) {
  Py list(PySequence_Fast(o, "the derivative of a tensor list must return a list"));
  if (!list) throw PythonError();
  Py_ssize_t size = PySequence_Fast_GET_SIZE(list.get());
  auto** p = static_cast<Tensor**>(PyMem_Malloc(sizeof(Tensor*) * static_cast<size_t>(size + 1)));
  if (!p) throw std::bad_alloc();
  for (Py_ssize_t i = 0; i < size; i++) {
    PyObject* item = PySequence_Fast_GET_ITEM(list.get(), i);
    p[i] = item == Py_None ? nullptr : as_tensor(item);
    if (item != Py_None && !p[i]) {
      PyMem_Free(p);
      wrong_result(n, "returned something that is not a tensor");
    }
  }
  for (Py_ssize_t i = 0; i < size; i++)
    if (p[i]) retain(p[i]);
  return Value::of_tensors(p, static_cast<size_t>(size));
}

void add_python_result(Node* n, PyObject* o, bool list, FormulaResults& out) {
  if (o == Py_None) {
    out.values[out.count++] = Value::none();
  } else if (list) {
    out.values[out.count++] = tensor_list_from(n, o);
  } else {
    Tensor* t = as_tensor(o);
    if (!t) wrong_result(n, "returned something that is not a tensor");
    out.add(Value::of(t));
  }
}

void run_python(Node* n, const Formula& f, const Value* parameters, FormulaResults& out) {
  Py arguments = python_arguments(f, parameters);
  Py result(need(PyObject_Call(f.callable, arguments.get(), nullptr)));
  auto is_list = [&](size_t k) { return n->op->arguments[f.targets[k]].kind == Kind::TensorList; };
  if (!f.returns_tuple) {
    add_python_result(n, result.get(), is_list(0), out);
    return;
  }
  if (!PyTuple_Check(result.get()) || static_cast<size_t>(PyTuple_Size(result.get())) != f.targets.size())
    wrong_result(n, "returned the wrong number of gradients");
  for (size_t k = 0; k < f.targets.size(); k++)
    add_python_result(n, PyTuple_GET_ITEM(result.get(), static_cast<Py_ssize_t>(k)), is_list(k), out);
}

// Which edges belong to which argument.
struct EdgeMap {
  uint32_t first[kMaxArgs], count[kMaxArgs];
  EdgeMap(const Node* n, const Derivative& d) {
    uint32_t edge = 0, list = 0;
    for (uint32_t m = n->op->differentiable_mask; m; m &= m - 1) {
      int i = __builtin_ctz(m);
      first[i] = edge;
      count[i] = RL_UNLIKELY(d.has_lists) && n->op->arguments[i].kind == Kind::TensorList
                     ? static_cast<uint32_t>(n->arena[list++])
                     : 1;
      edge += count[i];
    }
  }
};

Py needs_tuple(const Node* n, const Formula& f, const EdgeMap& edges, const bool* needed) {
  Py tuple(need(PyTuple_New(static_cast<Py_ssize_t>(f.targets.size()))));
  for (size_t k = 0; k < f.targets.size(); k++) {
    int target = f.targets[k];
    PyObject* item;
    if (n->op->arguments[target].kind == Kind::TensorList) {
      item = need(PyTuple_New(edges.count[target]));
      for (uint32_t e = 0; e < edges.count[target]; e++)
        PyTuple_SET_ITEM(item, e, PyBool_FromLong(needed[edges.first[target] + e]));
    } else {
      item = PyBool_FromLong(needed[edges.first[target]]);
    }
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(k), item);
  }
  return tuple;
}

void evaluate(Node* n, const Derivative& d, Formula& f, const EdgeMap& edges, Tensor* const* grads, const bool* needed,
              Tensor** results) {
  Parameters p(f.parameters.size());
  Value* values = p.values.items;
  for (size_t i = 0; i < f.parameters.size(); i++) {
    const Source& s = f.parameters[i];
    if (s.kind == SourceKind::Grad) {
      Tensor* g = grads[s.index];
      if (RL_UNLIKELY(!g)) {
        p.held[i] = zeros_for(n->outputs[s.index]);
        g = p.held[i].get();
      }
      values[i] = Value::of(g);
    } else if (RL_UNLIKELY(s.kind == SourceKind::Grads)) {
      p.list.resize(n->output_count + 1);
      p.zeros.resize(n->output_count);
      for (uint32_t k = 0; k < n->output_count; k++) {
        if (!grads[k]) p.zeros[k] = zeros_for(n->outputs[k]);
        p.list[k] = grads[k] ? grads[k] : p.zeros[k].get();
      }
      values[i] = Value::of_tensors(p.list.data(), n->output_count);
    } else if (RL_UNLIKELY(s.kind == SourceKind::Needs)) {
      p.needs = needs_tuple(n, f, edges, needed);
      values[i] = Value::of_object(p.needs.get());
    } else {
      uint32_t position = static_cast<uint32_t>(__builtin_popcount(n->save_mask & ((1u << s.slot) - 1)));
      values[i] = unpack_saved(n, n->saved[position], p.held[i]);
    }
  }
  FormulaResults out;
  if (RL_LIKELY(!f.python_only)) {
    Variant* found = nullptr;
    for (Variant* v : f.variants) {
      bool fits = true;
      for (const Guard& g : v->guards)
        if (!holds(g, values)) {
          fits = false;
          break;
        }
      if (fits) {
        found = v;
        break;
      }
    }
    if (RL_UNLIKELY(!found)) found = trace(f, values);
    if (RL_LIKELY(found != nullptr))
      run_program(found->program, values, out);
    else
      run_python(n, f, values, out);
  } else {
    run_python(n, f, values, out);
  }
  for (size_t k = 0; k < f.targets.size(); k++) {
    int target = f.targets[k];
    Value& v = out.values[k];
    uint32_t first = edges.first[target];
    if (RL_LIKELY(v.tag == Tag::Tensor)) {
      if (RL_UNLIKELY(d.has_lists) && n->op->arguments[target].kind == Kind::TensorList)
        wrong_result(n, "returned a tensor for a list of tensors");
      if (needed[first]) {
        results[first] = v.tensor;
        v = Value::none();
      }
    } else if (v.tag == Tag::TensorList) {
      if (v.size != edges.count[target]) wrong_result(n, "returned a list of the wrong length");
      for (uint32_t e = 0; e < v.size; e++)
        if (needed[first + e]) results[first + e] = std::exchange(v.tensors[e], nullptr);
    }
  }
}

}  // namespace

PyObject* formula_state(const Op& op) {
  const Derivative& d = derivative_of(op);
  Py list(need(PyList_New(0)));
  for (const Formula& f : d.formulas) {
    Py item(need(Py_BuildValue("(sni)", op.arguments[f.targets[0]].name, static_cast<Py_ssize_t>(f.variants.size()),
                               f.python_only)));
    if (PyList_Append(list.get(), item.get()) < 0) throw PythonError();
  }
  return list.take();
}

void apply_operation(Node* n, Tensor* const* grads, Tensor** results, const bool* needed) {
  const Derivative& d = *n->op->derivative;
  EdgeMap edges(n, d);
  for (const Formula& formula : d.formulas) {
    bool wanted = false;
    for (uint8_t target : formula.targets)
      for (uint32_t e = 0; e < edges.count[target]; e++) wanted |= needed[edges.first[target] + e];
    if (!wanted) continue;
    bool defined = formula.grad_mask == 0 || formula.all_grads;
    for (uint32_t m = formula.grad_mask; m; m &= m - 1) defined |= grads[__builtin_ctz(m)] != nullptr;
    if (defined) evaluate(n, d, const_cast<Formula&>(formula), edges, grads, needed, results);
  }
}

}  // namespace rl
