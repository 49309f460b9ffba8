#include "parallel/processors.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <sched.h>
#include <string>
#include <thread>

#include "base/text_lines.h"
#include "base/whole_file.h"

namespace gradwire {
namespace {

namespace fs = std::filesystem;

constexpr int kMostProcessors = 1 << 20;

std::string content_of(const fs::path& file) { return whole_file(file).value_or(""); }

// Reads "QUOTA PERIOD", both in microseconds. Returns nullopt if there is no limit: "max", -1 or a missing
// file.
std::optional<double> quota_in(const std::string& text) {
  char* end = nullptr;
  const double quota = std::strtod(text.c_str(), &end), period = std::strtod(end, nullptr);
  if (!(quota > 0 && period > 0)) return std::nullopt;
  return quota / period;
}

std::optional<double> least(std::optional<double> a, std::optional<double> b) {
  if (a && b) return std::min(*a, *b);
  return a ? a : b;
}

// Returns the least `quota_of` over the group `name` and the groups above it.
template <class QuotaOf>
std::optional<double> least_upwards(const fs::path& mount, std::string_view name, const QuotaOf& quota_of) {
  std::optional<double> found;
  for (fs::path at = fs::path(name).relative_path().lexically_normal();; at = at.parent_path()) {
    found = least(found, quota_of(mount / at));
    if (at.empty()) return found;
  }
}

std::optional<double> version_2(const fs::path& folder) { return quota_in(content_of(folder / "cpu.max")); }

std::optional<double> version_1(const fs::path& folder) {
  return quota_in(content_of(folder / "cpu.cfs_quota_us") + " " + content_of(folder / "cpu.cfs_period_us"));
}

unsigned processors_of_affinity() {
  for (int most = 1024; most <= kMostProcessors; most *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(static_cast<std::size_t>(most)),
                                                               [](cpu_set_t* s) { CPU_FREE(s); });
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(most));
    if (set != nullptr && ::sched_getaffinity(0, bytes, set.get()) == 0)
      return static_cast<unsigned>(CPU_COUNT_S(bytes, set.get()));
    if (errno != EINVAL) break;  // EINVAL: the machine has more processors than the set
  }
  return std::thread::hardware_concurrency();
}

}  // namespace

std::optional<double> cgroup_quota(std::string_view membership, const fs::path& root) {
  std::optional<double> found;
  while (!membership.empty()) {
    const std::string line(take_line(membership));
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      for (const char* mount : {"", "unified"})
        found = least(found, least_upwards(root / mount, group, version_2));
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      for (const std::string& mount : {controllers, std::string("cpu")})
        found = least(found, least_upwards(root / mount, group, version_1));
    }
  }
  return found;
}

unsigned usable_processors() {
  const unsigned processors = std::max(1u, processors_of_affinity());
  // Reads the files once: that takes a tenth of a short run.
  static const std::optional<double> quota = cgroup_quota(content_of("/proc/self/cgroup"), "/sys/fs/cgroup");
  if (!quota || *quota >= processors) return processors;
  return std::max(1u, static_cast<unsigned>(std::ceil(*quota)));
}

}  // namespace gradwire
