// Files compiled once per instruction set, and the choice among them at run time.
//
// A file <x>.isa.cpp is compiled with RL_ISA = default, avx2 and avx512 (default alone off x86-64). Everything in it
// lives in an anonymous namespace but one accessor; its table type is declared in a header:
//   // loops.h
//   namespace rl {
//   struct LoopTable { void (*add)(const float*, const float*, float*, int64_t); };
//   RL_ISA_DECLARE(LoopTable, loop_table)
//   }
//   // loops.isa.cpp
//   namespace rl {
//   namespace { void add(...) {...}  const LoopTable table = {add}; }
//   const LoopTable& RL_ISA_SYMBOL(loop_table)() { return table; }
//   }
//   // anywhere: rl::loop_table().add(a, b, out, n);
#pragma once

#include "rushlight.h"

#define RL_PASTE_TOKENS(a, b) a##_##b
#define RL_PASTE(a, b) RL_PASTE_TOKENS(a, b)
#define RL_ISA_SYMBOL(name) RL_PASTE(name, RL_ISA)

namespace rl {

enum class CpuLevel : int { kDefault = 0, kAvx2 = 1, kAvx512 = 2 };

namespace detail {
// Set before any other constructor of the library runs.
extern CpuLevel cpu_level;
}  // namespace detail

static inline __attribute__((always_inline)) CpuLevel cpu_level() { return detail::cpu_level; }

}  // namespace rl

#if defined(RL_X86_LEVELS)
#define RL_ISA_DECLARE(Table, name)                                                   \
  const Table& name##_default();                                                      \
  const Table& name##_avx2();                                                         \
  const Table& name##_avx512();                                                       \
  [[maybe_unused]] static inline __attribute__((always_inline)) const Table& name() { \
    switch (::rl::cpu_level()) {                                                      \
      case ::rl::CpuLevel::kAvx512:                                                   \
        return name##_avx512();                                                       \
      case ::rl::CpuLevel::kAvx2:                                                     \
        return name##_avx2();                                                         \
      default:                                                                        \
        return name##_default();                                                      \
    }                                                                                 \
  }
#else
#define RL_ISA_DECLARE(Table, name) \
  const Table& name##_default();    \
  [[maybe_unused]] static inline __attribute__((always_inline)) const Table& name() { return name##_default(); }
#endif
