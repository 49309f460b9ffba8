// The number of threads that can compute at the same time.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace gradwire {

// Returns the number of processors that this process may use: those of its affinity (taskset, cpuset), and no
// more than the quota of its control groups, rounded up (docker --cpus, CPUQuota= of a unit). At least 1.
unsigned usable_processors();

// Returns the least quota of processors among the control groups that `membership` names (the text of
// /proc/self/cgroup, versions 1 and 2) and those above them; nullopt if none has one. `root` is where their
// file systems are mounted: /sys/fs/cgroup.
std::optional<double> cgroup_quota(std::string_view membership, const std::filesystem::path& root);

}  // namespace gradwire
