#include "core/cpu_count.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "core/cgroup.h"

#if defined(__linux__)
#include <sched.h>
#endif

namespace rl {
namespace {

int affinity_cpus() {
#if defined(__linux__)
  // Machines with more than 1024 processors need a larger mask than cpu_set_t.
  for (int most = 1024; most <= 1 << 18; most *= 4) {
    cpu_set_t* const set = CPU_ALLOC(static_cast<size_t>(most));
    if (!set) break;
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(most));
    const int count = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
#endif
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

int usable_cpus() {
  // Not a guarded static: a fork during its initialisation would leave the child waiting for it.
  static std::atomic<int> known{0};
  int cpus = known.load(std::memory_order_relaxed);
  if (cpus > 0) return cpus;
  cpus = std::max(affinity_cpus(), 1);
  const double quota = cgroup_cpu_quota();
  if (quota > 0 && quota < cpus) cpus = std::max(static_cast<int>(std::ceil(quota)), 1);
  known.store(cpus, std::memory_order_relaxed);
  return cpus;
}

}  // namespace rl
