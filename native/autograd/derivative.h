// The derivative of an operation, as read from its record: which values it needs, and how to compute it.
#pragma once
#include <memory>

#include "node.h"

namespace rl {

// Where a parameter of a formula comes from.
// Grads is a tuple of all incoming gradients.
enum class SourceKind : uint8_t { Argument, Shape, Shapes, Strides, Offset, DType, Result, Grad, Grads, Needs };
struct Source {
  SourceKind kind;
  uint8_t index;  // of the argument or result
  uint8_t slot;   // among the saved sources of the derivative; unused for Grad and Needs
};

// One operand of a recorded operation.
struct Operand {
  enum Kind : uint8_t { Parameter, Temporary, Constant, Element, List, TensorList } kind;
  uint16_t index = 0;             // parameter, or position of the temporary
  uint32_t position = 0;          // Element: of the list in the temporary
  Value constant;                 // its memory belongs to the program
  std::vector<Operand> elements;  // of a list
};
struct Instruction {
  const Op* op;
  uint16_t first_temporary;
  std::vector<Operand> arguments;  // in schema order, all of them
};
// A formula as a list of operations.
struct Program {
  std::vector<Instruction> instructions;
  std::vector<Operand> results;  // one for each target; a None constant is a zero gradient
  uint16_t temporaries = 0;
  std::vector<std::vector<int64_t>> ints;  // memory of constants
  std::vector<std::vector<double>> doubles;
  std::vector<PyObject*> objects;
};
// What a trace assumed: that this property of a parameter has this value.
struct Guard {
  enum Property : uint8_t { Equal, IsNone, NotNone, TensorShape, TensorDType, IsTensor, IsNumber, SameKind } property;
  uint16_t parameter;
  Value value;
  std::vector<int64_t> ints;
  std::vector<double> doubles;
};
struct Variant {
  std::vector<Guard> guards;
  Program program;
};

struct Formula {
  std::vector<uint8_t> targets;  // arguments whose gradients it gives
  uint32_t target_mask = 0;
  uint32_t save_mask = 0;
  uint32_t grad_mask = 0;  // incoming gradients it reads
  std::vector<Source> parameters;
  PyObject* callable = nullptr;
  bool all_grads = false;
  bool returns_tuple = false;  // the key names several inputs
  bool python_only = false;    // cannot be traced, or has too many variants
  std::vector<Variant*> variants;
};

struct Derivative {
  const Op* op;
  PyTypeObject* node_type;  // MulBackward0
  std::vector<Formula> formulas;
  std::vector<Source> saved;  // distinct sources, by slot
  int8_t formula_of[kMaxArgs];
  bool has_lists = false;  // some differentiable argument is a tensor list
};

// For tests: [(first target, number of traced variants, stays in Python)] of the formulas.
PyObject* formula_state(const Op& op);

// Loads the record at the first use; throws when the derivative cannot be read.
const Derivative& derivative_of(const Op& op);
std::string backward_name(const Op& op);  // "MulBackward0"
// Finds or makes the node type of this name.
PyTypeObject* node_type_named(const std::string& name);

}  // namespace rl
