#include "fl_client/client_journal.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "gradwire/bad_input.h"

namespace gradwire {
namespace {

constexpr std::uint32_t kRun = 1, kState = 2, kLast = 3;
constexpr const char* kNameFile = "id";

const std::filesystem::path& made(const std::filesystem::path& folder) {
  if (!make_folder(folder))
    throw BadInput("--state " + folder.string() +
                   ": is not a folder and cannot be created: " + std::strerror(errno));
  return folder;
}

}  // namespace

ClientFolder::ClientFolder(const std::filesystem::path& folder) : disk_(made(folder)), lock_(folder) {}

ClientJournal::ClientJournal(Disk& disk, Log log) : disk_(disk), log_(std::move(log)) {}

std::string ClientJournal::name(const std::string& fresh) {
  if (const auto remembered = disk_.read(kNameFile); remembered && !remembered->empty()) return *remembered;
  const std::string_view text = fresh;
  Status status = disk_.write(kNameFile, std::span(&text, 1));
  if (status) status = disk_.sync(kNameFile);
  if (status) status = disk_.sync_folder();
  if (!status) throw std::runtime_error(status.error().message);
  return fresh;
}

Status ClientJournal::begin(const std::string& run, Durability durability, const Recovery& reader) {
  journal_ = std::make_unique<Journal>(disk_, durability, log_);
  run_ = run;
  most_records_ = reader.recalls_fast ? UINT32_MAX : kRecordsPerSnapshot;
  last_.clear();
  bool same_run = false;
  std::uint32_t recalled = 0;
  const auto recall = [&](std::string_view record) {
    if (!same_run || record.empty()) return true;
    last_ = record;
    ++recalled;
    bytes_ += record.size();
    return reader.recall(record);
  };
  const Result<bool> found =
      journal_->recover({.snapshot =
                             [&](std::span<const Section> sections) {
                               if (sections.size() != 3 || sections[0].tag != kRun) return false;
                               same_run = sections[0].bytes == run_;
                               bytes_ = 0;
                               snapshot_bytes_ = sections[1].bytes.size() + sections[2].bytes.size();
                               if (!same_run) return true;
                               return (sections[1].bytes.empty() || reader.load(sections[1].bytes)) &&
                                      recall(sections[2].bytes);
                             },
                         .record = recall});
  if (!found) return found.error();
  records_ = recalled;
  if (*found && same_run) {
    if (log_)
      log_("resuming the run from its journal; its last " + std::to_string(recalled) +
           " answers are restored");
    return Unit{};
  }
  return shorten("");
}

Status ClientJournal::remember(std::string_view record) {
  last_ = record;
  records_ += 1;
  bytes_ += record.size();
  return journal_->append(std::span(&record, 1));
}

Status ClientJournal::shorten(const std::string& state) {
  records_ = 0;
  bytes_ = 0;
  snapshot_bytes_ = state.size() + last_.size();
  const std::array<Section, 3> sections = {{{kRun, run_}, {kState, state}, {kLast, last_}}};
  return journal_->snapshot(sections);
}

}  // namespace gradwire
