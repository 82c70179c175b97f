// The profiler's eyes: operations and backward nodes report here while it is on. Off, it costs one test each.
#pragma once
#include "op.h"

namespace rl {

struct Node;
extern bool profiling;

// Starts an event of the calling thread; its number, or -1 when it is not kept.
int64_t profile_begin(const Op& op, const Value* args, bool inplace);
int64_t profile_begin(Node* node);
void profile_end(int64_t event, const Value* results = nullptr);

// An operation, for the length of a scope.
class ProfiledOp {
 public:
  ProfiledOp(const Op& op, const Value* args, const Value* results, bool inplace) : results_(results) {
    if (RL_UNLIKELY(profiling)) event_ = profile_begin(op, args, inplace);
  }
  ~ProfiledOp() {
    if (RL_UNLIKELY(event_ >= 0)) profile_end(event_, results_);
  }
  ProfiledOp(const ProfiledOp&) = delete;
  ProfiledOp& operator=(const ProfiledOp&) = delete;

 private:
  const Value* results_;
  int64_t event_ = -1;
};

class ProfiledNode {
 public:
  explicit ProfiledNode(Node* node) {
    if (RL_UNLIKELY(profiling)) event_ = profile_begin(node);
  }
  ~ProfiledNode() {
    if (RL_UNLIKELY(event_ >= 0)) profile_end(event_);
  }
  ProfiledNode(const ProfiledNode&) = delete;
  ProfiledNode& operator=(const ProfiledNode&) = delete;

 private:
  int64_t event_ = -1;
};

}  // namespace rl
