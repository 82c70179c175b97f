// Whether kernels may multiply tiles of bfloat16 numbers (AMX): beside a level, as all but a few kernels do without.
#pragma once

namespace rl {
namespace detail {
// Set with cpu_level.
extern bool cpu_tiles;
}  // namespace detail

// True on processors with AMX-BF16 (and AVX-512 BF16), unless RUSHLIGHT_CPU_LEVEL names a level below "amx".
inline bool cpu_tiles() { return detail::cpu_tiles; }

}  // namespace rl
