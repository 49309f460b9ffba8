#include "report/results_dir.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string_view>
#include <unistd.h>

#include "config/experiment_file.h"
#include "config/toml_reader.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

constexpr const char *kUnfinished = ".unfinished-", *kStarting = ".starting-", *kLock = "lock";

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
  if (!there) throw UsageError(shown + ": the folder is not empty and has no results of gradwire" + advice);
  if (there->name != name)
    throw UsageError(shown + ": contains the results of '" + there->name + "', not of '" + name + "'" +
                     advice);
}

// Returns NAME of ".NAME.unfinished-PID" and ".NAME.starting-PID", or an empty string for other names.
std::string run_of(const std::string& folder) {
  for (const std::string_view mark : {kUnfinished, kStarting}) {
    const std::size_t end = folder.rfind(mark), number = end + mark.size();
    const bool is_one = folder.starts_with('.') && end != std::string::npos && number < folder.size() &&
                        folder.find_first_not_of("0123456789", number) == std::string::npos;
    if (is_one && end > 1) return folder.substr(1, end - 1);
  }
  return "";
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

// A killed run leaves its lock file, which no process has locked, unless it was killed before it made one. A
// kept folder has files and no lock file. A symbolic link is not the work folder of a run.
std::vector<LeftRun> left_runs(const fs::path& results) {
  std::vector<LeftRun> all;
  std::error_code end;
  for (fs::directory_iterator at(results, end); !end && at != fs::directory_iterator(); at.increment(end)) {
    const fs::path folder = at->path();
    const std::string run = run_of(folder.filename().string());
    std::error_code error;
    if (run.empty() || !fs::is_directory(at->symlink_status(error)) || lock_holder(folder)) continue;
    const bool has_lock = fs::exists(fs::symlink_status(folder / kLock, error));
    const bool is_kept = !has_lock && !fs::is_empty(folder, error);
    all.push_back({folder, run, is_kept, fs::is_directory(results / checkpoint_name(run), error)});
  }
  std::sort(all.begin(), all.end(), [](const LeftRun& a, const LeftRun& b) { return a.folder < b.folder; });
  return all;
}

std::optional<fs::path> growing_results(const fs::path& target) {
  const fs::path wanted = fs::absolute(target).lexically_normal();
  const fs::path named = wanted.has_filename() ? wanted : wanted.parent_path();
  std::error_code end;
  for (fs::directory_iterator at(named.parent_path(), end); !end && at != fs::directory_iterator();
       at.increment(end))
    if (run_of(at->path().filename().string()) == named.filename() && lock_holder(at->path()))
      return at->path();
  return std::nullopt;
}

std::string checkpoint_name(const std::string& run) { return "." + run + ".checkpoint"; }

ResultsDir::ResultsDir(const fs::path& target, const std::string& name)
    : target_(fs::absolute(target).lexically_normal()) {
  if (!target_.has_filename()) target_ = target_.parent_path();  // "results/x/"
  try {
    check_target(target_, name);
    made_parent_ = !fs::exists(target_.parent_path());
    fs::create_directories(target_.parent_path());
    clear_abandoned();
    make_work_folder();
  } catch (const fs::filesystem_error& error) {
    throw UsageError(target.string() + ": cannot be used for results (" + error.code().message() +
                     "); choose another with --out");
  }
}

// Makes a folder with this process's number in its name. A kept folder, or a process in another container
// that shares the folder of results, may have the same number. The folder gets its final name once it is
// locked. Until then another process may remove it, which costs another attempt.
void ResultsDir::make_work_folder() {
  constexpr std::int64_t kNumbers = 1'000'000'000;  // larger than any process number
  constexpr int kAttempts = 10;
  int failed = 0;
  const std::string start = "." + target_.filename().string();
  for (std::int64_t number = getpid();; number += kNumbers) {
    const fs::path made = target_.parent_path() / (start + kStarting + std::to_string(number));
    work_ = target_.parent_path() / (start + kUnfinished + std::to_string(number));
    if (fs::exists(fs::symlink_status(work_)) || !fs::create_directory(made)) continue;
    try {
      lock_.emplace(made);
      fs::rename(made, work_);
      return;
    } catch (const std::exception&) {
      lock_.reset();
      if (++failed == kAttempts) throw;
    }
  }
}

void ResultsDir::clear_abandoned() {
  for (const LeftRun& left : left_runs(target_.parent_path())) {
    if (left.is_kept) continue;
    try {
      std::error_code error;
      const FolderLock ours(left.folder);
      if (fs::remove_all(left.folder, error) > 0 && !error) cleared_.push_back(left);
    } catch (const std::exception&) {  // another process locked or removed it, or it belongs to another user
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
  if (made_parent_) fs::remove(work_.parent_path(), ignored);  // removes it only if it is empty
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
