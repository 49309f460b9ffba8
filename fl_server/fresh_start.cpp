#include "fl_server/fresh_start.h"

#include <cerrno>
#include <cstring>

#include "report/earlier_results.h"

namespace gradwire {
namespace fs = std::filesystem;

Result<std::optional<fs::path>> set_run_aside(const fs::path& state, FolderDisk& disk, Journal& journal) {
  const Result<bool> found = journal.is_there();
  if (!found) return found.error();
  if (!*found) {
    if (Status removed = journal.remove(); !removed) return removed.error();  // may be half removed
    return std::optional<fs::path>();
  }
  const fs::path kept = unused_name(state / "before");
  if (!make_folder(kept))
    return Error{kept.string() + ": cannot be made: " + std::strerror(errno), ErrorKind::kSystem};
  const std::string name = kept.filename().string();
  for (const char* file :
       {"config.toml", "preprocessing.json", "metrics.csv", "clients.csv", "model.bin", "summary.json"})
    if (fs::exists(state / file))
      if (Status moved = disk.rename(file, name + "/" + file); !moved) return moved.error();
  if (Status moved = journal.move_into(name); !moved) return moved.error();
  return std::optional(kept);
}

}  // namespace gradwire
