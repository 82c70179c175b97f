// Limits that a container sets on this process (Linux control groups, versions 1 and 2).
#pragma once

#include <cstdint>

namespace rl {

// Processors' worth of time per period, as in 1.5; 0 when there is no limit.
double cgroup_cpu_quota();

// Bytes of memory the process's group may use, swap included; INT64_MAX when there is no limit.
int64_t cgroup_memory_limit();

}  // namespace rl
