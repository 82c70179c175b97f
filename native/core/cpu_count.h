// How many processors this process may use.
#pragma once

namespace rl {

// The affinity mask's size, at most the cgroup quota rounded up; at least 1. Read once.
int usable_cpus();

}  // namespace rl
