// Which instruction set the kernels use: the best one of the machine, or what RUSHLIGHT_CPU_LEVEL asks for.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cpu/isa.h"
#include "cpu/tiles.h"

#if defined(RL_X86_LEVELS)
#include <cpuid.h>
#endif

namespace rl {
namespace {

#if defined(RL_X86_LEVELS)

bool os_saves(uint32_t state_bits) {
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & state_bits) == state_bits;
}

CpuLevel best_level() {
  uint32_t eax, ebx, ecx, edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return CpuLevel::kDefault;
  constexpr uint32_t leaf1 = bit_FMA | bit_MOVBE | bit_OSXSAVE | bit_AVX | bit_F16C;
  if ((ecx & leaf1) != leaf1 || !os_saves(0x6)) return CpuLevel::kDefault;
  uint32_t extended_ecx;
  if (!__get_cpuid(0x80000001u, &eax, &ebx, &extended_ecx, &edx) || !(extended_ecx & bit_LZCNT))
    return CpuLevel::kDefault;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return CpuLevel::kDefault;
  constexpr uint32_t v3 = bit_AVX2 | bit_BMI | bit_BMI2;
  if ((ebx & v3) != v3) return CpuLevel::kDefault;
  constexpr uint32_t v4 = bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL;
  if ((ebx & v4) != v4 || !os_saves(0xe6)) return CpuLevel::kAvx2;
  return CpuLevel::kAvx512;
}

bool has_tiles() {
  uint32_t eax, ebx, ecx, edx;
  constexpr uint32_t amx = 1u << 22 | 1u << 24;  // AMX-BF16, AMX-TILE
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) || (edx & amx) != amx || !os_saves(0x600e6)) return false;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && (eax & bit_AVX512BF16);
}

// The last one is that of tiles, whose other kernels are those of the level before.
constexpr const char* kLevelNames[] = {"default", "avx2", "avx512", "amx"};
constexpr int kTiles = static_cast<int>(CpuLevel::kAvx512) + 1;

#elif defined(__aarch64__)

CpuLevel best_level() { return CpuLevel::kDefault; }
bool has_tiles() { return false; }
constexpr const char* kLevelNames[] = {"neon"};
constexpr int kTiles = 1;

#else

CpuLevel best_level() { return CpuLevel::kDefault; }
bool has_tiles() { return false; }
constexpr const char* kLevelNames[] = {"default"};
constexpr int kTiles = 1;

#endif

int chosen_name() {
  const CpuLevel level = best_level();
  const int best = level == CpuLevel::kAvx512 && has_tiles() ? kTiles : static_cast<int>(level);
  const char* const wanted = std::getenv("RUSHLIGHT_CPU_LEVEL");
  if (!wanted || !*wanted) return best;
  const int count = static_cast<int>(sizeof kLevelNames / sizeof *kLevelNames);
  for (int i = 0; i < count; ++i) {
    if (std::strcmp(wanted, kLevelNames[i]) != 0) continue;
    if (i <= best) return i;
    std::fprintf(stderr, "rushlight: RUSHLIGHT_CPU_LEVEL=%s: this processor lacks it; using %s\n", wanted,
                 kLevelNames[best]);
    return best;
  }
  std::fprintf(stderr, "rushlight: RUSHLIGHT_CPU_LEVEL=%s: unknown level; expected one of", wanted);
  for (int i = 0; i < count; ++i) std::fprintf(stderr, "%s %s", i ? "," : "", kLevelNames[i]);
  std::fprintf(stderr, "; using %s\n", kLevelNames[best]);
  return best;
}

}  // namespace

namespace detail {

CpuLevel cpu_level = CpuLevel::kDefault;
bool cpu_tiles = false;

__attribute__((constructor(101))) static void choose_level() {
  const int chosen = chosen_name();
  cpu_tiles = chosen == kTiles;
  cpu_level = static_cast<CpuLevel>(chosen - cpu_tiles);
}

}  // namespace detail
}  // namespace rl

const char* rl_cpu_level(void) { return rl::kLevelNames[static_cast<int>(rl::cpu_level()) + rl::cpu_tiles()]; }
