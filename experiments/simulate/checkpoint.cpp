#include "experiments/simulate/checkpoint.h"

#include <array>
#include <charconv>
#include <stdexcept>
#include <utility>

#include "experiments/support/results_dir.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

constexpr std::uint32_t kConfig = 1, kRound = 2, kState = 3;
constexpr const char* kMetrics = "metrics.csv";

fs::path folder_of(fs::path results) {
  results = fs::absolute(results).lexically_normal();
  if (!results.has_filename()) results = results.parent_path();  // "results/x/"
  return results.parent_path() / ("." + results.filename().string() + ".checkpoint");
}

}  // namespace

Checkpoint::Checkpoint(const fs::path& results, std::string config)
    : folder_(folder_of(results)), config_(std::move(config)) {}

bool Checkpoint::exists() const { return fs::is_directory(folder_); }

void Checkpoint::open() {
  if (journal_) return;
  if (!make_folder(folder_)) throw std::runtime_error(folder_.string() + ": cannot be made");
  lock_.emplace(folder_);
  disk_.emplace(folder_);
  journal_.emplace(*disk_, Durability::kProcess);
}

Checkpoint::Saved Checkpoint::resume(const fs::path& metrics) {
  const std::string missing =
      "--resume: there is no checkpoint of this run in " + folder_.string() + "; run without --resume";
  if (!exists()) throw UsageError(missing);
  open();
  Saved saved;
  bool same = true;
  const Result<bool> found =
      journal_->recover({.snapshot =
                             [&](std::span<const Section> sections) {
                               if (sections.size() != 3 || sections[0].tag != kConfig) return false;
                               same = sections[0].bytes == config_;
                               const std::string_view round = sections[1].bytes;
                               std::from_chars(round.data(), round.data() + round.size(), saved.round);
                               saved.state = sections[2].bytes;
                               return true;
                             },
                         .record = [](std::string_view) { return true; }});
  if (!found) throw UsageError("--resume: " + found.error().message);
  if (!*found) throw UsageError(missing);
  if (!same)
    throw UsageError("--resume: the checkpoint in " + folder_.string() +
                     " is of a run with other settings; run without --resume, or with the settings it had");
  fs::copy_file(folder_ / kMetrics, metrics, fs::copy_options::overwrite_existing);
  return saved;
}

void Checkpoint::save(const Saved& saved, const fs::path& metrics) {
  open();
  const fs::path draft = folder_ / (std::string(kMetrics) + ".new");
  fs::copy_file(metrics, draft, fs::copy_options::overwrite_existing);
  if (const Status synced = disk_->sync(draft.filename().string()); !synced)
    throw std::runtime_error(synced.error().message);
  fs::rename(draft, folder_ / kMetrics);
  const std::string round = std::to_string(saved.round);
  const std::array<Section, 3> sections = {{{kConfig, config_}, {kRound, round}, {kState, saved.state}}};
  Status status = journal_->snapshot(sections);
  if (status) status = journal_->append({});  // so that the next snapshot has another number
  if (!status) throw std::runtime_error(status.error().message);
}

void Checkpoint::remove() {
  if (!exists()) return;
  open();
  if (const Status status = journal_->remove(); !status) throw std::runtime_error(status.error().message);
  journal_.reset();
  disk_.reset();
  for (const std::string& name : {std::string(kMetrics), std::string(kMetrics) + ".new", std::string("lock")})
    fs::remove(folder_ / name);
  lock_.reset();
  std::error_code ignored;  // it stays when it holds other files
  fs::remove(folder_, ignored);
}

}  // namespace gradwire
