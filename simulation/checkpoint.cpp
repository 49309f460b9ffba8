#include "simulation/checkpoint.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "config/experiment_file.h"
#include "config/settings.h"
#include "report/earlier_results.h"
#include "report/results_dir.h"
#include "storage/run_store.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kCopyBytes = 1 << 20;  // per read

fs::path folder_of(fs::path results) {
  results = fs::absolute(results).lexically_normal();
  if (!results.has_filename()) results = results.parent_path();  // a path such as "results/x/"
  return results.parent_path() / checkpoint_name(results.filename().string());
}

// Beginning of the line with the hashes, which follows the config.
constexpr std::string_view kHashes = "# hashes ";
std::string text_of(const RunInputs& inputs) {
  return inputs.config + std::string(kHashes) + std::to_string(inputs.samples) + " " +
         std::to_string(inputs.traces) + (inputs.program == 0 ? "" : " " + std::to_string(inputs.program));
}

constexpr const char* kRemedies =
    "; restore it, choose another folder with --out, or start again with --fresh, which moves the checkpoint "
    "aside";

// Returns the first setting that differs between two configs.
std::string changed_setting(std::string_view saved, std::string_view now) {
  std::string changed;
  try {
    changed = first_difference(parse_experiment(now, "the experiment").experiment,
                               parse_experiment(saved, "the checkpoint").experiment, Compared::kAll);
  } catch (const ExperimentError& error) {
    changed = error.what();
  }
  return changed.empty() ? "its settings differ" : changed;
}

// Returns the reason why a run with the metadata `now` cannot continue one with `saved`. Nullopt if it can.
std::optional<std::string> difference(const std::string& saved, const std::string& now) {
  if (saved == now) return std::nullopt;
  struct Parts {
    bool has_hashes = false;
    std::string_view config;
    std::string samples, traces;
  };
  const auto split = [](std::string_view metadata) {
    const std::size_t end = metadata.rfind(kHashes);
    Parts parts{end != metadata.npos, metadata.substr(0, end), "", ""};
    if (parts.has_hashes)
      std::istringstream(std::string(metadata.substr(end + kHashes.size()))) >> parts.samples >> parts.traces;
    return parts;
  };
  const auto before = split(saved), after = split(now);
  if (!before.has_hashes)
    return "was written by an earlier version of gradwire, which saved too little to continue with the same "
           "bits; finish the run with that version, or start again with --fresh, which moves the checkpoint "
           "aside";
  if (before.config != after.config)
    return "is of a run with other settings: " + changed_setting(before.config, after.config) + kRemedies;
  std::string what = "other functions, another algorithm or another start point of the program";
  if (before.samples != after.samples)
    what = "other data: a file that problem.data or problem.test reads has changed";
  else if (before.traces != after.traces)
    what = "other traces: the file of clients.latency has changed";
  return "is of a run with " + what + kRemedies;
}

}  // namespace

RunCheckpoint::RunCheckpoint(const fs::path& results, const RunInputs& metadata, fs::path metrics)
    : folder_(folder_of(results)),
      metadata_(text_of(metadata)),
      files_{std::move(metrics)},
      disk_(folder_),
      journal_(disk_, Durability::kProcess) {}

bool RunCheckpoint::exists() const { return fs::is_directory(folder_); }

void RunCheckpoint::open() {
  if (lock_) return;
  if (!make_folder(folder_))
    throw std::runtime_error(folder_.string() + ": cannot be made: " + std::strerror(errno));
  lock_.emplace(folder_);
}

RunCheckpoint::Saved RunCheckpoint::resume() {
  std::optional<Saved> saved = find();
  if (!saved)
    throw UsageError("--resume: there is no checkpoint of this run in " + folder_.string() +
                     "; leave --resume out, to start from round 0");
  return std::move(*saved);
}

std::optional<RunCheckpoint::Saved> RunCheckpoint::find() {
  if (!exists()) return std::nullopt;
  open();
  Saved saved;
  std::optional<std::string> trouble;
  const Result<bool> found = journal_.recover({.snapshot =
                                                   [&](std::span<const Section> sections) {
                                                     const auto said = snapshot_metadata(sections);
                                                     if (!said) return false;
                                                     trouble = difference(said->metadata, metadata_);
                                                     saved.round = said->progress.round;
                                                     saved.sections.clear();
                                                     for (const Section& s : sections)
                                                       saved.sections.emplace_back(s.tag, s.bytes);
                                                     return true;
                                                   },
                                               .record = [](std::string_view) { return true; }});
  if (!found)
    throw UsageError("the checkpoint in " + folder_.string() + " cannot be used: " + found.error().message +
                     "; start again with --fresh, which moves it aside");
  if (!*found) return std::nullopt;
  if (trouble) throw UsageError("the checkpoint in " + folder_.string() + " " + *trouble);
  for (const fs::path& file : files_)
    if (const fs::path copy = folder_ / file.filename(); file == files_.front() || fs::exists(copy))
      fs::copy_file(copy, file, fs::copy_options::overwrite_existing);
  return saved;
}

Status RunCheckpoint::prepare() {
  open();
  for (const fs::path& file : files_)
    if (Status copied = copy(file); !copied) return copied;
  return Unit{};
}

Status RunCheckpoint::copy(const fs::path& file) {
  const std::string name = file.filename().string(), draft = name + ".new";
  std::ifstream in(file, std::ios::binary);
  if (!in) return Error{file.string() + ": cannot be read: " + std::strerror(errno), ErrorKind::kSystem};
  std::string block;
  const auto next = [&] {
    block.resize(kCopyBytes);
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    block.resize(static_cast<std::size_t>(in.gcount()));
    return std::string_view(block);
  };
  Status copied = disk_.write_chunks(draft, next);
  if (copied) copied = disk_.sync(draft);
  if (copied) return disk_.rename(draft, name);
  (void)disk_.remove(draft);  // free the disk space for the run
  return copied;
}

bool RunCheckpoint::has_snapshot() {
  if (!exists()) return false;
  const Result<bool> found = journal_.is_there();
  return found && *found;
}

std::optional<fs::path> RunCheckpoint::set_aside() {
  if (!exists()) return std::nullopt;
  open();
  FolderDisk disk(folder_);  // disk_ would expect the renamed folder
  const Result<bool> found = Journal(disk, Durability::kProcess).is_there();
  if (found && !*found) {
    remove();
    return std::nullopt;
  }
  const fs::path kept = gradwire::set_aside(folder_);
  lock_.reset();
  return kept;
}

void RunCheckpoint::remove() {
  if (!exists()) return;
  open();
  throw_if_failed(journal_.remove());
  for (const char* name : {"metrics.csv", "metrics.csv.new", "clients.csv", "clients.csv.new", "lock"})
    fs::remove(folder_ / name);
  lock_.reset();
  std::error_code ignored;  // the folder stays if it holds other files
  fs::remove(folder_, ignored);
}

}  // namespace gradwire
