// Operations: a parsed schema, an implementation and what autograd needs to know. One mechanism for every operation.
#pragma once
#include "rushlight/elementwise.h"
#include "tensor.h"

namespace rl {

constexpr int kMaxArgs = 20;
constexpr int kMaxResults = 6;

enum class Tag : uint8_t {
  None,
  Tensor,
  Int,
  Double,
  Bool,
  Complex,
  IntList,
  DoubleList,
  TensorList,
  DType,
  Object,
  Text,
  BigInt  // an integer beyond 64 bits, as a double: only comparisons know what to do with it
};

// One argument or result. Arguments are borrowed; results own their tensors.
struct Value {
  Tag tag = Tag::None;
  uint32_t size = 0;  // of a list
  union {
    Tensor* tensor;
    int64_t integer;
    double real;
    struct {
      double re, im;
    } complex;
    const int64_t* ints;
    const double* doubles;
    Tensor** tensors;  // entries may be nullptr in a Tensor?[]
    PyObject* object;
    rl_dtype dtype;
    const char* text;
  };
  constexpr Value() : complex{0, 0} {}
  static constexpr Value none() { return {}; }
  static constexpr Value of(Tensor* t) {
    Value v;
    if (t) {
      v.tag = Tag::Tensor;
      v.tensor = t;
    }
    return v;
  }
  static Value of(const TensorRef& t) { return of(t.get()); }
  static constexpr Value of(int64_t i) {
    Value v;
    v.tag = Tag::Int;
    v.integer = i;
    return v;
  }
  static constexpr Value of(int i) { return of(static_cast<int64_t>(i)); }
  static constexpr Value of(double d) {
    Value v;
    v.tag = Tag::Double;
    v.real = d;
    return v;
  }
  static constexpr Value of(bool b) {
    Value v;
    v.tag = Tag::Bool;
    v.integer = b;
    return v;
  }
  static constexpr Value of(DType d) {
    Value v;
    v.tag = Tag::DType;
    v.dtype = d;
    return v;
  }
  static constexpr Value of(std::complex<double> c) {
    Value v;
    v.tag = Tag::Complex;
    v.complex = {c.real(), c.imag()};
    return v;
  }
  // Text that is static (defaults of schemas); arguments from Python are Objects.
  static constexpr Value of_text(const char* s) {
    Value v;
    v.tag = Tag::Text;
    v.text = s;
    return v;
  }
  static constexpr Value of_ints(const int64_t* p, int n) {
    Value v;
    v.tag = Tag::IntList;
    v.size = static_cast<uint32_t>(n);
    v.ints = p;
    return v;
  }
  static Value of(const Dims& d) { return of_ints(d.v, d.n); }
  static constexpr Value of_tensors(Tensor** p, size_t n) {
    Value v;
    v.tag = Tag::TensorList;
    v.size = static_cast<uint32_t>(n);
    v.tensors = p;
    return v;
  }
  static constexpr Value of_object(PyObject* o) {
    Value v;
    v.tag = Tag::Object;
    v.object = o;
    return v;
  }

  bool is_none() const { return tag == Tag::None; }
  bool is_tensor() const { return tag == Tag::Tensor; }
  bool is_scalar() const { return tag >= Tag::Int && tag <= Tag::Complex; }
  // Numeric value of a scalar (real part of a complex).
  double as_double() const {
    return tag == Tag::Double || tag == Tag::BigInt ? real
           : tag == Tag::Complex                    ? complex.re
                                                    : static_cast<double>(integer);
  }
  // Truncated; the end of the range where it does not fit, and 0 for NaN.
  int64_t as_int() const {
    if (RL_LIKELY(tag < Tag::Double || tag > Tag::Complex || tag == Tag::Bool)) return integer;
    double x = as_double();
    return x >= 0x1p63 ? INT64_MAX : x < -0x1p63 ? INT64_MIN : x != x ? 0 : static_cast<int64_t>(x);
  }
  bool as_bool() const { return integer != 0; }
  std::complex<double> as_complex() const {
    return tag == Tag::Complex ? std::complex<double>{complex.re, complex.im} : std::complex<double>{as_double(), 0};
  }
  Dims dims() const { return Dims(static_cast<int>(size), ints); }
};

enum class Kind : uint8_t {  // of a schema argument
  Tensor,
  TensorOrScalar,
  TensorList,
  Scalar,
  Int,
  Float,
  Bool,
  IntList,
  FloatList,
  Str,
  DType,
  Device,
  Generator,
  Layout,
  MemoryFormat,
  Object
};

struct Argument {
  const char* name;
  Kind kind;
  bool optional;  // None is accepted
  bool has_default;
  int8_t list_size;     // of int[2]: a single int stands for that many; 0 for any length; -1: takes all that follow
  Value default_value;  // not a tensor
  PyObject* interned;   // the name as Python keyword, set at its first use
};

struct Op;
struct Call;
using OpFunction = void (*)(Call& call);

enum OpFlags : uint32_t {
  kView = 1,            // results share memory with the first tensor argument
  kMultiView = 2,       // a view operation with several outputs (split, unbind)
  kDifferentiable = 4,  // has a derivative for some input
  kComposite = 8,       // recorded through the operations it calls, not itself
  kPython = 16,         // the body is Python
  kHasOut = 32,         // accepts out=
  kHasInplace = 64,     // has an in-place twin name_
  kInplaceOnly = 128,   // the schema itself writes into the first argument (copy_, index_put_...) and returns it
  kMethod = 256,
  kFunction = 512,
  kElementwise = 1024,  // an output identical to an input is safe
  kRandom = 2048,
  kNamedResult = 4096,     // several results come back as a named tuple
  kListResult = 8192,      // one result: a tensor list (split, unbind, meshgrid)
  kPrivate = 16384,        // not in a public namespace; for derivatives
  kRefuseRuntime = 65536,  // an unsupported dtype is a RuntimeError, where most operations raise NotImplementedError
  kScalarResult = 32768,   // the result is a Python number, bool or dtype, not a tensor
};

struct Derivative;  // native/autograd/derivative.h

// The record of one overload, static data written by tools/generate.py.
struct Op {
  const char* name;      // "sum"
  const char* overload;  // "dim", or ""
  const char* schema;    // as in the record
  Argument* arguments;
  uint8_t argument_count, positional_count, result_count;
  uint32_t flags;
  OpFunction run;
  const void* family;  // data of the family (ElementwiseOp ...), for `run`
  const char* const* result_names;
  uint32_t tensor_mask;            // arguments that may be tensors
  uint32_t differentiable_mask;    // arguments with a derivative
  uint32_t result_mask;            // results that are differentiable
  uint32_t order_mask;             // arguments whose order in memory, when it is channels last, is that of the results
  const char* module;              // rushlight.ops module of the record
  int index;                       // in the table
  mutable Derivative* derivative;  // filled at first use

  // The name to show: without the prefix of private operations, which users do not write.
  const char* title() const { return name + (std::strncmp(name, "_nn_", 4) ? *name == '_' && name[1] != '_' : 4); }
};
extern const Op op_table[];
extern const int op_table_size;

// The overloads behind one Python name, tried in order.
struct OpGroup {
  const char* name;
  const uint16_t* members;
  uint8_t count;
};
struct PublicFunction {
  const char* module;
  const char* name;
  uint16_t group;
  bool inplace;
};  // module "" is rushlight
struct PublicMethod {
  const char* name;
  uint16_t group;
  bool inplace;
};
extern const OpGroup op_groups[];
extern const int op_group_count;
extern const PublicFunction public_functions[];
extern const int public_function_count;
extern const PublicMethod public_methods[];
extern const int public_method_count;

constexpr uint16_t kNoKernel = 0xffff;
// What the elementwise family needs to know of a record.
struct ElementwiseFamily {
  uint16_t kernel;  // rl_elementwise id
  uint16_t types;   // bit d: there is a kernel computing in dtype d
  uint8_t compute;  // 0 promoted type, 1 the same with integers as float, 2 promoted type of the tensors alone
  uint8_t result;   // 0 the promoted type, 1 bool, 2 real part's type
  uint8_t input_count;
  uint8_t inputs[4];        // argument numbers
  uint16_t default_kernel;  // used when all Scalar arguments have their default values; kNoKernel when there is none
  uint8_t default_input_count;  // its inputs: the first ones
  uint8_t rounded = 0;          // bit i: input i is rounded to a 16-bit promoted type before it is computed with,
  uint8_t wide = 0;             // but not where this bit is set too and it is a single element
  uint8_t weights = 0;          // bit i: input i is a factor that has no say in the result's type
};

// One execution. The implementation asks for its outputs with result(), which honours out= and in-place.
struct Call {
  const Op& op;
  const Value* args;
  Value* results;
  Tensor* const* out = nullptr;  // op.result_count tensors (entries may be null), or nullptr
  bool inplace = false;          // out[0] is args[0]

  const Value& operator[](int i) const { return args[i]; }
  Tensor* tensor(int i) const { return args[i].tensor; }
  Tensor* tensor_or_null(int i) const { return args[i].is_tensor() ? args[i].tensor : nullptr; }
  int64_t integer(int i) const { return args[i].as_int(); }
  int64_t integer_or(int i, int64_t other) const { return args[i].is_none() ? other : args[i].as_int(); }
  double real(int i) const { return args[i].as_double(); }
  bool flag(int i) const { return args[i].as_bool(); }
  uint32_t copy_back = 0;  // outputs that are temporaries, to be copied into `out`
  Device device() const;   // of the first tensor argument (CPU when there is none)

  // Output number i with this dtype and shape: fresh memory, or the caller's out when that can be written directly, or
  // a temporary that is copied into it afterwards. `any_dtype`: the kernel converts on store. Borrowed pointer.
  Tensor* result(int i, DType dtype, int ndim, const int64_t* shape, bool any_dtype = false);
  Tensor* result(int i, DType dtype, const Dims& d, bool any_dtype = false) {
    return result(i, dtype, d.n, d.v, any_dtype);
  }
  // The same, laid out in memory like `layout` when that is dense and of this shape.
  Tensor* result_like(int i, DType dtype, const Dims& d, const Tensor* layout, bool any_dtype = false);
  // Output number i is this tensor (views, or results of other operations).
  void set(int i, TensorRef t);
  void set_list(int i, std::vector<TensorRef> list);
};

// Runs an operation on arguments in schema order: device checks, the implementation, recording. Results are owned by
// the caller.
void run_op(const Op& op, const Value* args, Value* results, Tensor* const* out = nullptr, bool inplace = false);
// The same, from C++: call(ops::sum_dim, {a, dims, true}); missing trailing arguments take their defaults.
TensorRef call(const Op& op, std::initializer_list<Value> args);
std::vector<TensorRef> call_many(const Op& op, std::initializer_list<Value> args);
void call_inplace(const Op& op,
                  std::initializer_list<Value> args);            // the in-place twin: writes into the first argument
const Op& find_op(const char* name, const char* overload = "");  // throws AttributeError when missing

// The elementwise families, also for implementations that choose their kernel themselves. Inputs are tensors or
// numbers.
struct ElementwiseSpec {
  int kernel;
  uint32_t types;  // with the bit of float16: refuses 16-bit floats
  uint8_t compute;
  uint8_t result;
  uint8_t rounded = 0, wide = 0;
  uint8_t weights = 0;
};
void elementwise(Call& call, const ElementwiseSpec& spec, const Value* const* inputs, int input_count);

// Implementations are declared with this; the generator refers to them by record name ("." becomes "_").
#define RL_OP(symbol) void op_##symbol([[maybe_unused]] ::rl::Call& call)
// Runs a kernel unless the output is on the meta device.
#define RL_KERNEL(out, expression)                  \
  do {                                              \
    if (!(out)->is_meta()) ::rl::check(expression); \
  } while (0)

// The result dtype of PyTorch's promotion over tensors (with dims), 0-dim tensors and Python numbers.
DType result_type(const Value* values, int count);
// Broadcast of several shapes; RuntimeError naming `what` when they do not fit.
Dims broadcast_shapes(const Tensor* const* tensors, int count, const char* what);
// A number as a 0-dim tensor on the stack: keeps the value in 16 bytes. Usable as kernel input.
struct ScalarTensor {
  rl_tensor desc;
  alignas(16) unsigned char bytes[16];
  explicit ScalarTensor(const Value& number);
  ScalarTensor(const Value& number, DType dtype);
};
// A dense row-major version of t: t itself (new reference) or a copy.
TensorRef contiguous(Tensor* t);
TensorRef resolved(Tensor* t);  // t itself, or a lazy one's numbers in memory of its own; no autograd
// Fresh memory of t's shape on a device, in a memory format (0: row by row, 1: in t's order, 2 and 3: channels last).
TensorRef empty_in_format(const Tensor* t, DType dtype, int64_t format, Device device);
bool ordered_as_channels_last(const Tensor* t);
// Results in channels last where one of the arguments that the record names is.
void keep_order(const Op& op, const Value* args, Value* results);
TensorRef cast(Tensor* t, DType dtype);          // t itself when the dtype is right; no autograd
void copy_into(Tensor* dst, const Tensor* src);  // broadcast and converting copy; no version bump, no autograd
void fill_value(Tensor* t, const Value& number);
// Whether a number converts to this dtype: integers to integers that hold them, floats to floats without overflow.
bool fits(const Value& number, DType dtype);
void check_fits(const char* op, const Value& number, DType dtype);  // RuntimeError when it does not
bool compares(const Op& op);  // an elementwise comparison: numbers of any size are welcome

extern Device default_device;  // of factories

// Python state that kernels may run without.
struct GilRelease {
  explicit GilRelease(bool worthwhile) : state_(worthwhile ? PyEval_SaveThread() : nullptr) {}
  ~GilRelease() {
    if (state_) PyEval_RestoreThread(state_);
  }
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  PyThreadState* state_;
};

// ---------------------------------------------------------------- hooks of the layers above, one test each on the hot
// path

// Thread-local switches read by run_op.
struct ThreadState {
  bool grad_mode = true;
  bool inference_mode = false;
  bool overrides_disabled = false;  // DisableTorchFunction
  int mode_depth = 0;               // entries of the Python mode stack
  int vmap_depth = 0;               // vmaps in progress: random operations without tensor arguments must know
  PyObject* source = nullptr;       // owned: asked for the results of operations, in place of implementations
};
extern thread_local ThreadState thread_state __attribute__((tls_model("initial-exec")));
struct GradGuard {
  explicit GradGuard(bool on) : old_(thread_state.grad_mode) { thread_state.grad_mode = on; }
  ~GradGuard() { thread_state.grad_mode = old_; }

 private:
  bool old_;
};

}  // namespace rl
