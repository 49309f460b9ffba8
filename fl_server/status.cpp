#include "fl_server/status.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "fl_server/agreed.h"
#include "fl_server/durable_run.h"
#include "fl_server/registry/registry_file.h"
#include "fl_server/run_about.h"
#include "fl_server/summary.h"
#include "proto/config/experiment.pb.h"
#include "proto/report/json.h"
#include "proto/store/folder_disk.h"
#include "proto/store/journal.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostClientsShown = 20;

// Ignores all writes: only the server may repair what it reads.
class ReadOnlyDisk final : public Disk {
 public:
  explicit ReadOnlyDisk(const fs::path& folder) : folder_(folder) {}
  Result<std::vector<std::string>> list() override { return folder_.list(); }
  Result<std::string> read(const std::string& name) override { return folder_.read(name); }
  Status write(const std::string&, Pieces) override { return Unit{}; }
  Status append(const std::string&, Pieces) override { return Unit{}; }
  Status sync(const std::string&) override { return Unit{}; }
  Status sync_folder() override { return Unit{}; }
  Status rename(const std::string&, const std::string&) override { return Unit{}; }
  Status remove(const std::string&) override { return Unit{}; }

 private:
  FolderDisk folder_;
};

struct Seen {
  RunAbout about;
  RunStage stage = RunStage::kRounds;
  Outcome outcome = Outcome::kStopped;  // of a run that is over
  Ledger ledger;
};

std::optional<Seen> look(const fs::path& state) {
  ReadOnlyDisk disk(state);
  Journal journal(disk, Durability::kProcess);
  Seen seen;
  const Result<bool> found = journal.recover({.snapshot =
                                                  [&](std::span<const Section> sections) {
                                                    auto said = snapshot_about(sections);
                                                    if (!said) return false;
                                                    Result<RunAbout> about = load_about(said->about);
                                                    if (!about) return false;
                                                    seen.about = std::move(*about);
                                                    seen.stage = said->stage;
                                                    seen.outcome = said->outcome;
                                                    seen.ledger = said->ledger;
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
                                                    const auto ledger = peek_record(record);
                                                    if (ledger) seen.ledger = *ledger;
                                                    return ledger.has_value();
                                                  }});
  return found && *found ? std::optional(std::move(seen)) : std::nullopt;
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

// Cells of the last row of metrics.csv; nothing: there is no row yet.
struct LastEvaluation {
  std::string round, loss, grad_norm_sq, accuracy;
};
std::optional<LastEvaluation> last_evaluation(const fs::path& metrics) {
  std::istringstream line(last_line(metrics));
  LastEvaluation last;
  for (std::string* cell : {&last.round, &last.loss, &last.grad_norm_sq, &last.accuracy})
    if (!std::getline(line, *cell, ',')) return std::nullopt;
  return last.round == "round" ? std::nullopt : std::optional(last);
}

// All that the folder says.
struct Found {
  fs::path state;
  std::optional<std::string> holder;  // the number of the server's process
  std::string address;
  std::optional<Seen> run;  // nothing: the server still waits for its clients
  std::optional<RegistrySeen> registry;
  std::string no_registry;  // why there is none
};

Found find(const fs::path& state, const fs::path& registry) {
  if (!fs::is_directory(state)) throw std::runtime_error(state.string() + ": is no folder");
  Found found;
  found.state = state;
  found.holder = lock_holder(state);
  if (found.holder) found.address = first_line(state / "address");
  found.run = look(state);
  if (!found.run && !found.holder)
    throw std::runtime_error(state.string() +
                             ": holds no run of gradwire-server; was it the folder of --state?");
  const std::string id = found.run ? registry_id(run_of(found.run->about.start)) : "";
  auto seen =
      look_into_registry(registry.empty() ? state / kRegistryName : registry, id, registry_folder(state));
  if (!seen) {
    found.no_registry = seen.error().message;
  } else if (*seen) {
    found.registry = std::move(*seen);
  } else {
    found.no_registry = "the registry does not have this run";
  }
  // Who was connected when the server was killed is not connected any more.
  if (found.registry && !found.holder)
    for (RegistryClient& client : found.registry->clients) client.connected = false;
  return found;
}

std::string describe(const RegistryClient& c) {
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

// Missing clients come first: they are what the reader looks for.
std::vector<std::string> describe_clients(const Found& found) {
  if (!found.registry) return {"unknown: " + found.no_registry};
  std::vector<RegistryClient> clients = found.registry->clients;
  const auto away = std::stable_partition(clients.begin(), clients.end(),
                                          [](const RegistryClient& c) { return !c.connected; });
  std::vector<std::string> lines = {std::to_string(clients.end() - away) + " connected, " +
                                    std::to_string(away - clients.begin()) + " not"};
  for (const RegistryClient& c : clients) {
    if (lines.size() > kMostClientsShown) break;
    lines.push_back(describe(c));
  }
  if (clients.size() > kMostClientsShown)
    lines.push_back("and " + std::to_string(clients.size() - kMostClientsShown) +
                    " more; --json shows all of them");
  return lines;
}

std::string stage_name(const Found& found) {
  if (!found.run) return "waiting";  // for its clients
  switch (found.run->stage) {
    case RunStage::kRounds: return "rounds";
    case RunStage::kFarewell: return "farewell";
    case RunStage::kOver: return "over";
  }
  return "";
}

void text_member(JsonWriter& json, const char* name, const std::string& text) {
  json.key(name);
  if (text.empty()) return json.null();
  json.value(text);
}

void number_member(JsonWriter& json, const char* name, const std::string& text) {
  json.key(name);
  if (text.empty()) return json.null();
  json.value(std::strtod(text.c_str(), nullptr));
}

void write_run(JsonWriter& json, const Found& found) {
  const proto::Experiment& e = found.run->about.resolved;
  const Totals& totals = found.run->ledger.totals;
  json.member("run", registry_id(run_of(found.run->about.start)));
  json.member("name", e.name());
  json.member("algorithm", e.algorithm().name());
  json.member("clients_wanted", e.clients().count());
  json.member("round", found.run->ledger.round);
  json.member("rounds", e.run().rounds());
  text_member(json, "outcome", found.run->stage == RunStage::kRounds ? "" : outcome_name(found.run->outcome));
  json.key("evaluation");
  if (const auto last = last_evaluation(found.state / "metrics.csv")) {
    json.begin_object();
    number_member(json, "round", last->round);
    number_member(json, "loss", last->loss);
    number_member(json, "grad_norm_sq", last->grad_norm_sq);
    number_member(json, "accuracy", last->accuracy);
    json.end_object();
  } else {
    json.null();
  }
  json.member("bytes_up", totals.bytes_up);
  json.member("bytes_down", totals.bytes_down);
  json.member("seconds", totals.seconds);
  json.member("durability", survives_power(e) ? "power" : "process");
}

void write_client(JsonWriter& json, const RegistryClient& c) {
  json.begin_object();
  json.member("client", c.number);
  json.member("name", c.name);
  json.member("connected", c.connected);
  json.member("peer", c.peer);
  json.member("build", c.build);
  json.member("kernels", c.kernels);
  json.member("samples", c.samples);
  json.member("first_joined", c.first_joined);
  json.member("last_joined", c.last_joined);
  text_member(json, "last_lost", c.last_lost);
  text_member(json, "why_lost", c.why_lost);
  json.member("times_joined", c.times_joined);
  json.member("times_lost", c.times_lost);
  json.member("replies_used", c.replies_used);
  json.member("replies_unused", c.replies_unused);
  json.end_object();
}

}  // namespace

std::string status_text(const fs::path& state, const fs::path& registry) {
  const Found found = find(state, registry);
  std::string text;
  const auto row = [&](const std::string& name, const std::string& value) {
    text += name + std::string(12 - name.size(), ' ') + value + "\n";
  };
  const auto rows_of_clients = [&] {
    std::string name = "clients";
    for (const std::string& line : describe_clients(found)) row(std::exchange(name, ""), line);
  };
  const std::string server =
      found.holder ? "process " + *found.holder + ", listening on " + found.address : "not running";
  if (!found.run) {
    row("server", server + ", waiting for its clients");
    rows_of_clients();
    return text;
  }
  const proto::Experiment& e = found.run->about.resolved;
  const Totals& totals = found.run->ledger.totals;
  row("run",
      e.name() + ": " + e.algorithm().name() + ", " + std::to_string(e.clients().count()) + " clients");
  row("server", found.run->stage == RunStage::kOver ? server + "; the run is over"
                : found.holder                      ? server
                               : server + "; started with the same arguments it goes on");
  row("round",
      std::to_string(found.run->ledger.round) + " of " + std::to_string(e.run().rounds()) + " committed");
  const auto last = last_evaluation(state / "metrics.csv");
  row("evaluation", last ? "loss " + last->loss + " at round " + last->round : "none yet");
  row("received", std::to_string(totals.bytes_up) + " bytes");
  row("sent", std::to_string(totals.bytes_down) + " bytes");
  row("time", std::to_string(static_cast<long long>(totals.seconds)) + " s of rounds");
  row("durability", survives_power(e) ? "power" : "process");
  rows_of_clients();
  return text;
}

std::string status_json(const fs::path& state, const fs::path& registry) {
  const Found found = find(state, registry);
  JsonWriter json;
  json.begin_object();
  json.member("stage", stage_name(found));
  json.key("server");
  if (found.holder) {
    json.begin_object();
    number_member(json, "pid", *found.holder);
    text_member(json, "address", found.address);
    json.end_object();
  } else {
    json.null();
  }
  if (found.run) write_run(json, found);
  json.key("clients");
  if (found.registry) {
    json.begin_array();
    for (const RegistryClient& client : found.registry->clients) write_client(json, client);
    json.end_array();
  } else {
    json.null();
    json.member("clients_unknown", found.no_registry);
  }
  json.end_object();
  return json.take();
}

}  // namespace gradwire
