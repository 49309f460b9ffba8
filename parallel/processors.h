// The number of threads that can compute at the same time.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace gradwire {

// Returns the number of processors that this process may use: those of its affinity (taskset, cpuset), and no
// more than the quota of its control groups at the first call, rounded up (docker --cpus, CPUQuota= of a
// unit). At least 1.
unsigned usable_processors();

// Returns the smallest processor quota of the control groups in `membership` and of the groups above them, or
// nullopt if none has a quota. `membership` is the text of /proc/self/cgroup, of version 1 or 2. `root` is
// the folder in which their file systems are mounted: /sys/fs/cgroup.
std::optional<double> cgroup_quota(std::string_view membership, const std::filesystem::path& root);

}  // namespace gradwire
