#include "fl_server/status.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "base/value.h"
#include "config/experiment.h"
#include "fl_server/metrics/exposition.h"
#include "fl_server/metrics/metrics_endpoint.h"
#include "fl_server/plan_of_joins.h"
#include "fl_server/run_history/run_history_file.h"
#include "fl_server/run_metadata.h"
#include "report/columns.h"
#include "report/json.h"
#include "report/summary.h"
#include "storage/folder_disk.h"
#include "storage/journal.h"
#include "storage/run_store.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostClientsShown = 20;
constexpr std::size_t kMaxMetricsBytes = 256 << 10;  // many times what a server writes

// A disk that ignores all writes, because only the server may repair its files.
class ReadOnlyDisk final : public Disk {
 public:
  explicit ReadOnlyDisk(const fs::path& folder) : folder_(folder) {}
  Result<std::vector<std::string>> list() override { return folder_.list(); }
  Result<std::string> read(const std::string& name) override { return folder_.read(name); }
  Status write(const std::string&, Segments) override { return Unit{}; }
  Status append(const std::string&, Segments) override { return Unit{}; }
  Status sync(const std::string&) override { return Unit{}; }
  Status sync_folder() override { return Unit{}; }
  Status rename(const std::string&, const std::string&) override { return Unit{}; }
  Status remove(const std::string&) override { return Unit{}; }

 private:
  FolderDisk folder_;
};

struct SavedRun {
  RunMetadata metadata;
  RunStage stage = RunStage::kRounds;
  Outcome outcome = Outcome::kStopped;  // valid if the run is over
  RunProgress progress;
};

// Reads the run in the folder. Returns nullopt if there is none, or an error if it cannot be read.
Result<std::optional<SavedRun>> read_state(const fs::path& state) {
  ReadOnlyDisk disk(state);
  Journal journal(disk, Durability::kProcess);
  SavedRun seen;
  const Result<bool> found = journal.recover({.snapshot =
                                                  [&](std::span<const Section> sections) {
                                                    auto said = snapshot_metadata(sections);
                                                    if (!said) return false;
                                                    Result<RunMetadata> metadata =
                                                        load_metadata(said->metadata);
                                                    if (!metadata) return false;
                                                    seen.metadata = std::move(*metadata);
                                                    seen.stage = said->stage;
                                                    seen.outcome = said->outcome;
                                                    seen.progress = said->progress;
                                                    return true;
                                                  },
                                              .record =
                                                  [&](std::string_view record) {
                                                    if (const auto end = peek_end(record)) {
                                                      seen.stage = end->stage;
                                                      seen.outcome = end->outcome;
                                                      return true;
                                                    }
                                                    seen.stage = RunStage::kRounds;
                                                    const auto progress = peek_record(record);
                                                    if (progress) seen.progress = *progress;
                                                    return progress.has_value();
                                                  }});
  if (!found) return found.error();
  return *found ? std::optional(std::move(seen)) : std::nullopt;
}

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string last_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line, last;
  while (std::getline(in, line)) last = line;
  return last;
}

// Returns the last row of the metrics, or nullopt if there is none.
std::optional<RoundRecord> last_evaluation(const fs::path& state) {
  return parse_metrics_line(last_line(state / "metrics.csv"));
}

std::string read_metrics_file(const fs::path& state) {
  std::ifstream in(state / kMetricsFileName, std::ios::binary);
  std::string text(kMaxMetricsBytes, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

// The contents of the folder.
struct Found {
  fs::path state;
  std::optional<std::string> holder;  // process id of the running server
  std::string address;
  std::optional<SavedRun> run;  // empty while the server waits for its clients
  std::optional<RunHistoryContent> run_history;
  std::string no_run_history;   // the reason if run_history is empty
  std::vector<Sample> metrics;  // values of the current or the last process; may be empty
};

Found find(const fs::path& state, const fs::path& run_history) {
  if (!fs::is_directory(state)) throw std::runtime_error(state.string() + ": is not a folder");
  Found found;
  found.state = state;
  found.holder = lock_holder(state);
  if (found.holder) found.address = first_line(state / "address");
  Result<std::optional<SavedRun>> run = read_state(state);
  if (run) found.run = std::move(*run);
  // If a server holds the folder, it may be writing the part that could not be read.
  if (!found.run && !found.holder)
    throw std::runtime_error(
        state.string() + ": " +
        (run ? "holds no run of gradwire-server; is it the folder of --state?" : run.error().message));
  const std::string id = found.run ? run_history_id(run_of(found.run->metadata.start)) : "";
  auto seen = read_run_history(run_history.empty() ? state / kRunHistoryName : run_history, id,
                               run_history_folder(state));
  if (!seen) {
    found.no_run_history = seen.error().message;
  } else if (*seen) {
    found.run_history = std::move(*seen);
  } else {
    found.no_run_history = "the registry has no record of this run";
  }
  found.metrics = samples_of(read_metrics_file(state));
  // A client that was connected when the server was killed is no longer connected.
  if (found.run_history && !found.holder)
    for (RunHistoryClient& client : found.run_history->clients) client.connected = false;
  return found;
}

double count(const Found& found, std::string_view name) {
  const auto sample = std::ranges::find(found.metrics, name, &Sample::first);
  return sample == found.metrics.end() ? 0 : sample->second;
}

std::string whole(double value) {
  return value < 1e18 ? std::to_string(static_cast<std::uint64_t>(value)) : "?";
}

// Returns the values of a metric for each reason, except zeros, as in "late 3, norm 1". Empty if all are 0.
std::string reasons(const Found& found, const std::string& metric) {
  const std::string begin = metric + "{reason=\"";
  std::string text;
  for (const auto& [name, value] : found.metrics)
    if (name.starts_with(begin) && name.ends_with("\"}") && value > 0)
      text += (text.empty() ? "" : ", ") + name.substr(begin.size(), name.size() - begin.size() - 2) + " " +
              whole(value);
  return text;
}

// Returns the mean of a histogram of seconds, as in "mean 1.2 ms of 200".
std::string mean_time(const Found& found, const std::string& metric) {
  const double times = count(found, metric + "_count");
  if (times == 0) return "none yet";
  std::array<char, 80> text{};
  std::snprintf(text.data(), text.size(), "mean %.4g ms of %.0f", 1e3 * count(found, metric + "_sum") / times,
                times);
  return text.data();
}

double sum_of(const Found& found, const std::string& begin) {
  double sum = 0;
  for (const auto& [name, value] : found.metrics)
    if (name.starts_with(begin)) sum += value;
  return sum;
}

using StatusRow = std::pair<std::string, std::string>;

std::vector<StatusRow> rows_of_metrics(const Found& found) {
  if (found.metrics.empty()) return {};
  const std::string rejected = reasons(found, "gradwire_rejected_updates_total");
  const std::string ended = reasons(found, "gradwire_connections_ended_total");
  const auto frames = [&](const std::string& direction) {
    const std::string labels = "{direction=\"" + direction + "\"";
    return whole(sum_of(found, "gradwire_frames_total" + labels)) + " messages, " +
           whole(sum_of(found, "gradwire_frame_bytes_total" + labels)) + " bytes " + direction;
  };
  return {
      {"messages", frames("received") + "; " + frames("sent") +
                       (found.holder ? "" : "; this line and those below: of the last process")},
      {"replies", whole(count(found, "gradwire_replies_used_total")) + " used; " +
                      (rejected.empty() ? "none rejected" : "rejected: " + rejected)},
      {"connections", whole(count(found, "gradwire_connections")) + " open, " +
                          whole(count(found, "gradwire_connections_accepted_total")) + " accepted" +
                          (ended.empty() ? "" : "; ended: " + ended)},
      {"waiting", whole(count(found, "gradwire_waiting_bytes{queue=\"write\"}")) + " bytes to be sent, " +
                      whole(count(found, "gradwire_waiting_bytes{queue=\"replies\"}")) + " bytes of replies"},
      {"times", "round " + mean_time(found, "gradwire_round_seconds") + "; reply " +
                    mean_time(found, "gradwire_reply_seconds") + "; commit " +
                    mean_time(found, "gradwire_commit_seconds")}};
}

std::string describe(const RunHistoryClient& c) {
  std::string text = std::to_string(c.number) + " '" + c.name + "' ";
  if (c.connected) {
    text += "connected since " + c.last_joined + " from " + c.peer;
  } else {
    text += "not connected";
  }
  if (c.times_lost > 0)
    text += (c.times_lost > 1 ? ", lost " + std::to_string(c.times_lost) + " times, last " : ", lost ") +
            c.last_lost + " (" + c.why_lost + ")";
  text += "; " + std::to_string(c.replies_used) + " replies used";
  if (c.replies_unused > 0) text += ", " + std::to_string(c.replies_unused) + " not";
  return text;
}

// Lists missing clients first, because readers look for them.
std::vector<std::string> describe_clients(const Found& found) {
  if (!found.run_history) return {"unknown: " + found.no_run_history};
  std::vector<RunHistoryClient> clients = found.run_history->clients;
  const auto away = std::stable_partition(clients.begin(), clients.end(),
                                          [](const RunHistoryClient& c) { return !c.connected; });
  std::vector<std::string> lines = {std::to_string(clients.end() - away) + " connected, " +
                                    std::to_string(away - clients.begin()) + " not"};
  for (const RunHistoryClient& c : clients) {
    if (lines.size() > kMostClientsShown) break;
    lines.push_back(describe(c));
  }
  if (clients.size() > kMostClientsShown)
    lines.push_back("and " + std::to_string(clients.size() - kMostClientsShown) + " more; --json shows all");
  return lines;
}

std::string stage_name(const Found& found) {
  if (!found.run) return "waiting";  // for its clients
  switch (found.run->stage) {
    case RunStage::kRounds: return "rounds";
    case RunStage::kNotifyingClients: return "farewell";
    case RunStage::kOver: return "over";
  }
  return "";
}

// Returns null for an empty text.
Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

void add_run(Json& json, const Found& found) {
  const Experiment& e = found.run->metadata.resolved;
  const RunTotals& totals = found.run->progress.totals;
  json["run"] = run_history_id(run_of(found.run->metadata.start));
  json["name"] = e.name;
  json["algorithm"] = e.algorithm.name;
  json["clients_wanted"] = e.clients.count;
  json["round"] = found.run->progress.round;
  json["rounds"] = e.run.rounds;
  json["outcome"] = found.run->stage == RunStage::kRounds ? Json() : Json(outcome_name(found.run->outcome));
  const std::optional<RoundRecord> last = last_evaluation(found.state);
  json["evaluation"] = last ? Json(*last) : Json();
  json["bytes_up"] = totals.bytes_up;
  json["bytes_down"] = totals.bytes_down;
  json["seconds"] = totals.seconds;
  json["durability"] = survives_power(e) ? "power" : "process";
}

Json client_json(const RunHistoryClient& c) {
  return {{"client", c.number},
          {"name", c.name},
          {"connected", c.connected},
          {"peer", c.peer},
          {"build", c.build},
          {"kernels", c.kernels},
          {"samples", c.samples},
          {"first_joined", c.first_joined},
          {"last_joined", c.last_joined},
          {"last_lost", text_or_null(c.last_lost)},
          {"why_lost", text_or_null(c.why_lost)},
          {"times_joined", c.times_joined},
          {"times_lost", c.times_lost},
          {"replies_used", c.replies_used},
          {"replies_unused", c.replies_unused}};
}

}  // namespace

std::string status_text(const fs::path& state, const fs::path& run_history) {
  const Found found = find(state, run_history);
  std::string text;
  const auto row = [&](const std::string& name, const std::string& value) {
    text += name + std::string(12 - name.size(), ' ') + printable(value) + "\n";
  };
  const auto rows_of_clients = [&] {
    std::string name = "clients";
    for (const std::string& line : describe_clients(found)) row(std::exchange(name, ""), line);
  };
  const std::string server =
      found.holder ? "process " + *found.holder + ", listening on " + found.address : "not running";
  if (!found.run) {
    row("server", server + ", waiting for its clients");
    for (const auto& [name, value] : rows_of_metrics(found)) row(name, value);
    rows_of_clients();
    return text;
  }
  const Experiment& e = found.run->metadata.resolved;
  const RunTotals& totals = found.run->progress.totals;
  row("run", e.name + ": " + e.algorithm.name + ", " + std::to_string(e.clients.count) + " clients");
  row("server", found.run->stage == RunStage::kOver ? server + "; the run is over"
                : found.holder                      ? server
                               : server + "; to resume, start it with the same arguments");
  row("round",
      std::to_string(found.run->progress.round) + " of " + std::to_string(e.run.rounds) + " committed");
  const auto last = last_evaluation(state);
  row("evaluation",
      last ? "loss " + number_text(last->loss) + " at round " + std::to_string(last->round) : "none yet");
  row("received", std::to_string(totals.bytes_up) + " bytes");
  row("sent", std::to_string(totals.bytes_down) + " bytes");
  row("time", std::to_string(static_cast<long long>(totals.seconds)) + " s of rounds");
  row("durability", survives_power(e) ? "power" : "process");
  for (const auto& [name, value] : rows_of_metrics(found)) row(name, value);
  rows_of_clients();
  return text;
}

std::string status_json(const fs::path& state, const fs::path& run_history) {
  const Found found = find(state, run_history);
  Json json = {{"stage", stage_name(found)}, {"server", nullptr}};
  if (found.holder)
    json["server"] = {{"pid", std::strtoull(found.holder->c_str(), nullptr, 10)},
                      {"address", text_or_null(found.address)}};
  if (found.run) add_run(json, found);
  json["counts"] = found.metrics.empty() ? Json() : Json::object();
  for (const auto& [name, value] : found.metrics) json["counts"][name] = value;
  json["clients"] = nullptr;
  if (found.run_history) {
    json["clients"] = Json::array();
    for (const RunHistoryClient& client : found.run_history->clients)
      json["clients"].push_back(client_json(client));
  } else {
    json["clients_unknown"] = found.no_run_history;
  }
  return json_text(json);
}

}  // namespace gradwire
