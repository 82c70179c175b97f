// Shared by the operations of neural networks: lists of sizes, inputs without a batch dimension, texts.
#pragma once
#include "op.h"

namespace rl {

constexpr int kMaxSpatial = 3;

// The characters of a str argument.
const char* text_of(const Value& v);

// `n` numbers from an argument that is one number (repeated), a list of one or a list of n; `what` names it in errors.
struct Spatial {
  int64_t v[kMaxSpatial] = {0, 0, 0};
  int64_t& operator[](int i) { return v[i]; }
  int64_t operator[](int i) const { return v[i]; }
};
Spatial spatial_of(const Value& v, int n, const char* op, const char* what);

// A descriptor with a batch dimension of 1 in front when the tensor has none.
struct Batched {
  rl_tensor desc;
  int64_t shape[kMaxSpatial + 2], strides[kMaxSpatial + 2];
  Batched(const Tensor* t, int ndim);
  Batched(const Batched&) = delete;
  Batched& operator=(const Batched&) = delete;
  rl_tensor* operator&() { return &desc; }
};

constexpr int64_t kGilWork = 32768;  // elements above which other Python threads may run meanwhile

// How a formula's `needs` tuple answers for its i-th target.
bool wanted(const Value& needs, int i);

enum Reduction : int64_t { kReduceNone = 0, kReduceMean = 1, kReduceSum = 2 };
// From "none", "mean" or "sum"; ValueError otherwise.
int64_t reduction_of(const Value& v, const char* op);

// Calls rushlight.nn.functional.<file>.<name> with the arguments, in schema order by keyword: for the rare forms of a
// functional.
void call_functional(Call& call, const char* file, const char* name);

}  // namespace rl
