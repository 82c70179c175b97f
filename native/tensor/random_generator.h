// The generator an operation draws from.
#pragma once
#include "op.h"
#include "rushlight/random.h"

namespace rl {

rl_generator* generator_of(const Value& v);  // nullptr, the default generator, for None

}  // namespace rl
