// Inner loops of the optimizers, compiled once per instruction set.
//
// Array 0 is the parameter, 1 the gradient, then the state in the order of rushlight/optimizer.h. `c` are the constants
// of the update; which ones stands beside each loop.
#pragma once

#include "cpu/isa.h"

namespace rl {

constexpr int kOptimizerArrays = 5;

enum OptimizerRule : int {
  kRuleSgd,       // lr, weight_decay, sign
  kRuleMomentum,  // lr, weight_decay, sign, momentum, 1 - dampening, nesterov
  kRuleAdam,      // step size, weight_decay, sign, 1 - beta1, beta2, 1 - beta2, sqrt(correction 2), eps, decay factor
  kRuleAmsgrad,
  kRuleAdagrad,          // step size, weight_decay, sign, eps
  kRuleRmsprop,          // lr, weight_decay, sign, alpha, 1 - alpha, eps, momentum
  kRuleRmspropMomentum,  // arrays: square average, buffer
  kRuleRmspropCentered,  // square average, gradient average
  kRuleRmspropBoth,      // square average, gradient average, buffer
  kRuleAdadelta,         // lr, weight_decay, sign, rho, 1 - rho, eps
  kRuleAdamax,           // step size, weight_decay, sign, 1 - beta1, beta2, eps
  kRuleNadam,  // gradient's factor, weight_decay, sign, 1 - beta1, beta2, 1 - beta2, correction 2, eps, decay factor,
               // average's factor
  kRuleRadam,  // factor, weight_decay, sign, 1 - beta1, beta2, 1 - beta2, sqrt(correction 2) or 0, eps, decay factor,
               // correction 1
  kRuleScale,  // factor
  kRuleCount
};

constexpr int kOptimizerConstants = 10;

struct OptimizerTable {
  void (*single[kRuleCount])(float* const* arrays, int64_t n, const double* c);
  void (*wide[kRuleCount])(double* const* arrays, int64_t n, const double* c);
};

RL_ISA_DECLARE(OptimizerTable, optimizer_table)

}  // namespace rl
