#include "experiments/simulate/checkpoint.h"

#include <stdexcept>
#include <utility>

#include "experiments/support/results_dir.h"
#include "proto/store/run_store.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

constexpr const char* kMetrics = "metrics.csv";

fs::path folder_of(fs::path results) {
  results = fs::absolute(results).lexically_normal();
  if (!results.has_filename()) results = results.parent_path();  // "results/x/"
  return results.parent_path() / ("." + results.filename().string() + ".checkpoint");
}

}  // namespace

Checkpoint::Checkpoint(const fs::path& results, std::string config, fs::path metrics)
    : folder_(folder_of(results)),
      config_(std::move(config)),
      metrics_(std::move(metrics)),
      disk_(folder_),
      journal_(disk_, Durability::kProcess) {}

bool Checkpoint::exists() const { return fs::is_directory(folder_); }

void Checkpoint::open() {
  if (lock_) return;
  if (!make_folder(folder_)) throw std::runtime_error(folder_.string() + ": cannot be made");
  lock_.emplace(folder_);
}

Checkpoint::Saved Checkpoint::resume() {
  std::optional<Saved> saved = find();
  if (!saved)
    throw UsageError("--resume: there is no checkpoint of this run in " + folder_.string() +
                     "; run without --resume, or with --resume=auto, which begins where there is none");
  return std::move(*saved);
}

std::optional<Checkpoint::Saved> Checkpoint::find() {
  if (!exists()) return std::nullopt;
  open();
  Saved saved;
  bool same = true;
  const Result<bool> found = journal_.recover({.snapshot =
                                                   [&](std::span<const Section> sections) {
                                                     const auto said = snapshot_about(sections);
                                                     if (!said) return false;
                                                     same = said->about == config_;
                                                     saved.round = said->ledger.round;
                                                     saved.sections.clear();
                                                     for (const Section& s : sections)
                                                       saved.sections.emplace_back(s.tag, s.bytes);
                                                     return true;
                                                   },
                                               .record = [](std::string_view) { return true; }});
  if (!found) throw UsageError("--resume: " + found.error().message);
  if (!*found) return std::nullopt;
  if (!same)
    throw UsageError("--resume: the checkpoint in " + folder_.string() +
                     " is of a run with other settings; run without --resume, or with the settings it had");
  fs::copy_file(folder_ / kMetrics, metrics_, fs::copy_options::overwrite_existing);
  return saved;
}

Status Checkpoint::prepare() {
  open();
  const fs::path draft = folder_ / (std::string(kMetrics) + ".new");
  fs::copy_file(metrics_, draft, fs::copy_options::overwrite_existing);
  if (Status synced = disk_.sync(draft.filename().string()); !synced) return synced;
  fs::rename(draft, folder_ / kMetrics);
  return Unit{};
}

void Checkpoint::remove() {
  if (!exists()) return;
  open();
  throw_if_failed(journal_.remove());
  for (const std::string& name : {std::string(kMetrics), std::string(kMetrics) + ".new", std::string("lock")})
    fs::remove(folder_ / name);
  lock_.reset();
  std::error_code ignored;  // it stays when it holds other files
  fs::remove(folder_, ignored);
}

}  // namespace gradwire
