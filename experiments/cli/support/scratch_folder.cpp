#include "experiments/cli/support/scratch_folder.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace gradwire {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kName = "gradwire-", kTemplate = "gradwire-XXXXXX";
// A younger folder may be in use although it is not locked yet.
constexpr std::chrono::minutes kLeastAge{1};

bool was_left(const fs::path& folder) {
  const std::string name = folder.filename().string();
  std::error_code error;
  if (name.size() != kTemplate.size() || !name.starts_with(kName)) return false;
  if (!fs::is_directory(fs::symlink_status(folder, error)) || !fs::exists(folder / "lock", error))
    return false;
  const auto written = fs::last_write_time(folder / "lock", error);
  return !error && fs::file_time_type::clock::now() - written > kLeastAge && !lock_holder(folder);
}

void remove_what_was_left(const fs::path& parent) {
  std::error_code error;
  for (auto entry = fs::directory_iterator(parent, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    std::error_code ignored;  // the folder may belong to another user
    if (was_left(entry->path())) fs::remove_all(entry->path(), ignored);
  }
}

}  // namespace

ScratchFolder::ScratchFolder() {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  if (error)
    throw std::runtime_error("TMPDIR is not a folder: " + error.message() + "; set it to one with space");
  remove_what_was_left(parent);
  std::string name = (parent / kTemplate).string();
  if (mkdtemp(name.data()) == nullptr)
    throw std::runtime_error(name + ": cannot be created: " + std::strerror(errno) +
                             "; set TMPDIR to a folder with space");
  path_ = name;
  lock_.emplace(path_);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace gradwire
