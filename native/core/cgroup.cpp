#include "core/cgroup.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace rl {
namespace {

std::string read_text(const std::string& path) {
  std::string text;
  if (std::FILE* file = std::fopen(path.c_str(), "re")) {
    char buffer[4096];
    while (const size_t n = std::fread(buffer, 1, sizeof buffer, file)) text.append(buffer, n);
    std::fclose(file);
  }
  return text;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (;;) {
    const size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

// The directories that limit this process: its group and all groups above it. `controller` is a version 1 controller,
// or "" for version 2.
std::vector<std::string> group_directories(const std::string& controller) {
  std::string group;
  bool found = false;
  for (const std::string& line : split(read_text("/proc/self/cgroup"), '\n')) {  // 4:cpu,cpuacct:/path
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    const std::vector<std::string> list = split(names, ',');
    const bool ours =
        controller.empty() ? names.empty() : std::find(list.begin(), list.end(), controller) != list.end();
    if (!ours) continue;
    group = line.substr(second + 1);
    found = true;
    break;
  }
  if (!found) return {};

  std::vector<std::string> directories;
  for (const std::string& line : split(read_text("/proc/self/mountinfo"), '\n')) {
    // 36 35 98:0 /root /mount/point options... - type source super_options
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const std::vector<std::string> left = split(line.substr(0, dash), ' ');
    const std::vector<std::string> right = split(line.substr(dash + 3), ' ');
    if (left.size() < 5 || right.size() < 3) continue;
    if (controller.empty()) {
      if (right[0] != "cgroup2") continue;
    } else {
      const std::vector<std::string> options = split(right[2], ',');
      if (right[0] != "cgroup" || std::find(options.begin(), options.end(), controller) == options.end()) continue;
    }
    const std::string& root = left[3];
    const std::string& mount = left[4];
    // Inside a container the mount shows the group itself as its root.
    std::string path = group;
    if (root != "/" && path.compare(0, root.size(), root) == 0) path = path.substr(root.size());
    while (!path.empty() && path != "/") {
      directories.push_back(mount + (path[0] == '/' ? "" : "/") + path);
      const size_t slash = path.rfind('/');
      path = slash == std::string::npos ? "" : path.substr(0, slash);
    }
    directories.push_back(mount);
    break;
  }
  return directories;
}

int64_t parse_limit(const std::string& text) {
  if (text.empty() || text.compare(0, 3, "max") == 0) return INT64_MAX;
  char* end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  return end == text.c_str() || value < 0 ? INT64_MAX : value;
}

}  // namespace

double cgroup_cpu_quota() {
  double least = 0;
  const auto add = [&least](double quota, double period) {
    if (quota > 0 && period > 0 && (least == 0 || quota / period < least)) least = quota / period;
  };
  for (const std::string& directory : group_directories("")) {
    double quota = 0, period = 0;
    if (std::sscanf(read_text(directory + "/cpu.max").c_str(), "%lf %lf", &quota, &period) == 2) add(quota, period);
  }
  for (const std::string& directory : group_directories("cpu")) {
    add(std::atof(read_text(directory + "/cpu.cfs_quota_us").c_str()),
        std::atof(read_text(directory + "/cpu.cfs_period_us").c_str()));
  }
  return least;
}

int64_t cgroup_memory_limit() {
  int64_t least = INT64_MAX;
  for (const std::string& directory : group_directories("")) {
    const int64_t memory = parse_limit(read_text(directory + "/memory.max"));
    const int64_t swap = parse_limit(read_text(directory + "/memory.swap.max"));
    if (memory != INT64_MAX && swap != INT64_MAX) least = std::min(least, memory + swap);
  }
  for (const std::string& directory : group_directories("memory")) {
    const std::string both = read_text(directory + "/memory.memsw.limit_in_bytes");
    // Without swap accounting the group's memory limit says nothing about swap, so it counts only on a machine without.
    if (!both.empty()) least = std::min(least, parse_limit(both));
  }
  return least;
}

}  // namespace rl
