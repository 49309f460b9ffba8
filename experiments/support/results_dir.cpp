#include "experiments/support/results_dir.h"

#include <cstdint>
#include <fstream>
#include <iterator>
#include <unistd.h>

#include "proto/config/experiment_file.h"
#include "proto/config/toml_reader.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

constexpr const char *kUnfinished = ".unfinished-", *kLock = "lock";

std::string text_of_key(const std::vector<TomlEntry>& entries, std::string_view section,
                        std::string_view key) {
  for (const TomlEntry& e : entries)
    if (e.section == section && e.key == key && std::holds_alternative<std::string>(e.value))
      return std::get<std::string>(e.value);
  return "";
}

void check_target(const fs::path& target, const std::string& name) {
  const std::string shown = target.string();
  const std::string advice = "; choose another folder with --out, or move this one away";
  if (!fs::exists(fs::symlink_status(target))) return;
  if (!fs::is_directory(target)) throw UsageError(shown + ": is a file, not a folder for results" + advice);
  if (fs::is_empty(target)) return;
  const auto there = identify_run(target);
  if (!there) throw UsageError(shown + ": the folder is not empty and holds no results of gradwire" + advice);
  if (there->name != name)
    throw UsageError(shown + ": holds the results of '" + there->name + "', not of '" + name + "'" + advice);
}

}  // namespace

std::optional<RunIdentity> identify_run(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_regular_file(folder / "metrics.csv", ignored)) return std::nullopt;
  const fs::path config = folder / "config.toml";
  const auto size = fs::file_size(config, ignored);
  if (ignored || size > kMaxExperimentBytes) return std::nullopt;
  std::ifstream in(config, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  try {
    const std::vector<TomlEntry> entries = read_toml(text);
    RunIdentity identity{text_of_key(entries, "", "name"), text_of_key(entries, "algorithm", "name"),
                         text_of_key(entries, "algorithm", "compressor")};
    if (identity.name.empty()) return std::nullopt;
    return identity;
  } catch (const TomlError&) {
    return std::nullopt;
  }
}

ResultsDir::ResultsDir(const fs::path& target, const std::string& name)
    : target_(fs::absolute(target).lexically_normal()) {
  if (!target_.has_filename()) target_ = target_.parent_path();  // "results/x/"
  try {
    check_target(target_, name);
    made_parent_ = !fs::exists(target_.parent_path());
    fs::create_directories(target_.parent_path());
    make_work_folder();
    clear_abandoned();
  } catch (const fs::filesystem_error& error) {
    throw UsageError(target.string() + ": cannot be used for results (" + error.code().message() +
                     "); choose another with --out");
  }
}

// A folder of this process's number. A killed process of the same number may have left one; a living process
// may hold one, too: in another container that shares the folder of results. And another process may take the
// new one for abandoned, as long as it has no lock.
void ResultsDir::make_work_folder() {
  constexpr std::int64_t kNumbers = 1'000'000'000;  // more than there are processes
  for (std::int64_t number = getpid();; number += kNumbers) {
    work_ =
        target_.parent_path() / ("." + target_.filename().string() + kUnfinished + std::to_string(number));
    if (lock_holder(work_)) continue;
    fs::remove_all(work_);
    if (!fs::create_directory(work_)) continue;
    try {
      lock_.emplace(work_);
      return;
    } catch (const std::invalid_argument&) {
      if (fs::exists(work_)) throw;
    }
  }
}

// Removes the folders of killed runs, whose lock nobody holds; also of those that were killed before they had
// one. A folder that was kept has files and no lock.
void ResultsDir::clear_abandoned() {
  const std::string start = "." + target_.filename().string() + kUnfinished;
  for (const fs::directory_entry& entry : fs::directory_iterator(work_.parent_path())) {
    const std::string name = entry.path().filename().string();
    const bool is_ours = name.starts_with(start) && name.size() > start.size() &&
                         name.find_first_not_of("0123456789", start.size()) == std::string::npos;
    std::error_code error;
    if (!is_ours || entry.path() == work_ || lock_holder(entry.path())) continue;
    if (!fs::exists(entry.path() / kLock, error) && !fs::is_empty(entry.path(), error)) continue;
    try {
      const FolderLock ours(entry.path());
      if (fs::remove_all(entry.path(), error) > 0 && !error) cleared_.push_back(entry.path());
    } catch (const std::exception&) {  // whoever makes it was quicker, or it is gone
    }
  }
}

void ResultsDir::keep() {
  keep_ = true;
  std::error_code ignored;
  fs::remove(work_ / kLock, ignored);
}

ResultsDir::~ResultsDir() {
  if (keep_) return;
  std::error_code ignored;
  fs::remove_all(work_, ignored);
  if (made_parent_) fs::remove(work_.parent_path(), ignored);  // if it is empty
}

void ResultsDir::publish() {
  fs::remove(work_ / kLock);
  if (!fs::exists(fs::symlink_status(target_))) {
    fs::rename(work_, target_);
    return;
  }
  for (const fs::directory_entry& file : fs::directory_iterator(work_))
    fs::rename(file.path(), target_ / file.path().filename());
}

}  // namespace gradwire
