#include "fl_server/status.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "algorithms/algorithms.h"
#include "base/printable.h"
#include "base/value.h"
#include "config/experiment_spec.h"
#include "fl_server/plan_of_joins.h"
#include "fl_server/stall_report.h"
#include "fl_server/state_folder.h"
#include "report/columns.h"
#include "report/json.h"
#include "report/quantities.h"
#include "report/summary.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostClientsShown = 20;
constexpr std::size_t kMostMissingNamed = 8;

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

std::string whole(double value) {
  return value < 1e18 ? std::to_string(static_cast<std::uint64_t>(value)) : "?";
}

// Returns the values of a metric for each reason, except zeros, as in "late 3, norm 1". Empty if all are 0.
std::string reasons(const StateFolder& found, const std::string& metric) {
  const std::string begin = metric + "{reason=\"";
  std::string text;
  for (const auto& [name, value] : found.metrics)
    if (name.starts_with(begin) && name.ends_with("\"}") && value > 0)
      text += (text.empty() ? "" : ", ") + name.substr(begin.size(), name.size() - begin.size() - 2) + " " +
              whole(value);
  return text;
}

// Returns the mean of a histogram of seconds, as in "mean 1.2 ms of 200".
std::string mean_time(const StateFolder& found, const std::string& metric) {
  const double times = count(found, metric + "_count");
  if (times == 0) return "none yet";
  std::array<char, 80> text{};
  std::snprintf(text.data(), text.size(), "mean %.4g ms of %.0f", 1e3 * count(found, metric + "_sum") / times,
                times);
  return text.data();
}

double sum_of(const StateFolder& found, const std::string& begin) {
  double sum = 0;
  for (const auto& [name, value] : found.metrics)
    if (name.starts_with(begin)) sum += value;
  return sum;
}

using StatusRow = std::pair<std::string, std::string>;

std::vector<StatusRow> rows_of_metrics(const StateFolder& found) {
  if (found.metrics.empty()) return {};
  const std::string rejected = reasons(found, "gradwire_rejected_updates_total");
  const std::string ended = reasons(found, "gradwire_connections_ended_total");
  const auto frames = [&](const std::string& direction) {
    const std::string labels = "{direction=\"" + direction + "\"";
    return whole(sum_of(found, "gradwire_frames_total" + labels)) + " messages, " +
           bytes_text(sum_of(found, "gradwire_frame_bytes_total" + labels)) + " " + direction;
  };
  std::vector<StatusRow> rows = {
      {"messages", frames("received") + "; " + frames("sent") +
                       (found.holder ? "" : "; this line and those below: of the last process")},
      {"connections", whole(count(found, "gradwire_connections")) + " open, " +
                          whole(count(found, "gradwire_connections_accepted_total")) + " accepted" +
                          (ended.empty() ? "" : "; ended: " + ended)},
      {"waiting", bytes_text(count(found, "gradwire_waiting_bytes{queue=\"write\"}")) + " to be sent, " +
                      bytes_text(count(found, "gradwire_waiting_bytes{queue=\"replies\"}")) + " of replies"}};
  if (found.is_relay) return rows;
  rows.insert(rows.begin() + 1,
              {"replies", whole(count(found, "gradwire_replies_used_total")) + " used; " +
                              (rejected.empty() ? "none rejected" : "rejected: " + rejected)});
  rows.push_back({"times", "round " + mean_time(found, "gradwire_round_seconds") + "; reply " +
                               mean_time(found, "gradwire_reply_seconds") + "; commit " +
                               mean_time(found, "gradwire_commit_seconds")});
  return rows;
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

std::string named(const RunHistoryClient& c) { return std::to_string(c.number) + " '" + c.name + "'"; }

// Returns the clients that are not connected, ordered by number.
std::vector<const RunHistoryClient*> missing_clients(const StateFolder& found) {
  std::vector<const RunHistoryClient*> missing;
  if (found.run_history)
    for (const RunHistoryClient& c : found.run_history->clients)
      if (!c.connected) missing.push_back(&c);
  return missing;
}

bool is_over(const StateFolder& found) { return found.run && found.run->stage == RunStage::kOver; }

// Returns n.
std::size_t clients_wanted(const StateFolder& found) {
  if (found.run) return found.run->metadata.resolved.clients.count;
  return static_cast<std::size_t>(sum_of(found, "gradwire_clients{"));
}

// Lists the clients by number. The first line names those that are not connected, until the run is over.
std::vector<std::string> describe_clients(const StateFolder& found) {
  if (!found.run_history) return {"unknown: " + found.no_run_history};
  const std::vector<RunHistoryClient>& clients = found.run_history->clients;
  const std::vector<const RunHistoryClient*> missing = missing_clients(found);
  std::string head = std::to_string(clients.size() - missing.size()) + " of " +
                     std::to_string(std::max(clients.size(), clients_wanted(found))) + " connected";
  const std::size_t shown = is_over(found) ? 0 : std::min(kMostMissingNamed, missing.size());
  for (std::size_t k = 0; k < shown; ++k) head += (k == 0 ? "; missing: " : ", ") + named(*missing[k]);
  if (shown > 0 && missing.size() > shown) head += " and " + std::to_string(missing.size() - shown) + " more";
  std::vector<std::string> lines = {head};
  for (const RunHistoryClient& c : clients) {
    if (lines.size() > kMostClientsShown) break;
    lines.push_back(describe(c));
  }
  if (clients.size() > kMostClientsShown)
    lines.push_back("and " + std::to_string(clients.size() - kMostClientsShown) + " more; --json shows all");
  return lines;
}

double seconds_since_1970(std::chrono::system_clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

// Returns why the running process cannot continue at the moment. Empty if it can.
std::string stall(const StateFolder& found) {
  if (!found.holder) return "";
  if (found.is_relay)
    return count(found, kRelayHasServer) > 0 ? ""
                                             : "this relay has no connection to its server; its log says why";
  const double since = count(found, "gradwire_stalled_since_seconds");
  if (since <= 0) return "";
  const double now = seconds_since_1970(std::chrono::system_clock::now());
  std::vector<std::string> names;
  for (const RunHistoryClient* c : missing_clients(found))
    names.push_back(named(*c) + (c->last_lost.empty()
                                     ? " (not back since the server started)"
                                     : " (lost at " + c->last_lost + ": " + c->why_lost + ")"));
  return stall_text(found.run ? found.run->progress.round : 0, now - since,
                    std::max(0.0, count(found, "gradwire_gives_up_at_seconds") - now), names,
                    static_cast<std::size_t>(count(found, "gradwire_stalled_clients")));
}

// Returns the seconds since 1970 of a time of the run history, or 0.
double seconds_of(const std::string& time) {
  std::tm utc{};
  return ::strptime(time.c_str(), "%Y-%m-%dT%H:%M:%S", &utc) == nullptr ? 0
                                                                        : static_cast<double>(::timegm(&utc));
}

// Returns when the server began to listen, in seconds since 1970, or 0.
double listens_since(const StateFolder& found) {
  std::error_code absent;
  const auto time = fs::last_write_time(found.state / "address", absent);
  return absent ? 0 : seconds_since_1970(std::chrono::file_clock::to_sys(time));
}

// Returns whether each round needs all clients.
bool needs_all(const ExperimentSpec& e) {
  const AlgorithmTraits& traits = find_algorithm(e.algorithm.name).traits;
  return !traits.asynchronous && e.clients.participation >= 1 &&
         (traits.needs_all_replies || e.server.quorum >= 1);
}

// Returns a text like "waiting 12 s for 'n1'" if the running process waits for lost clients, else "".
std::string wait_for_lost(const StateFolder& found) {
  const std::vector<const RunHistoryClient*> missing = missing_clients(found);
  const bool is_stalled = count(found, "gradwire_stalled_since_seconds") > 0;
  if (!found.holder || missing.empty() || !(is_stalled || needs_all(found.run->metadata.resolved))) return "";
  double since = listens_since(found);
  std::string names;
  for (const RunHistoryClient* const c : missing) since = std::max(since, seconds_of(c->last_lost));
  for (std::size_t k = 0; k < std::min(kNamedInStall, missing.size()); ++k)
    names += (k == 0 ? "'" : ", '") + missing[k]->name + "'";
  if (missing.size() > kNamedInStall)
    names += " and " + std::to_string(missing.size() - kNamedInStall) + " more";
  const double waited = seconds_since_1970(std::chrono::system_clock::now()) - since;
  return "waiting " + duration_text(std::max(0.0, waited)) + " for " + names;
}

// Returns the progress of the rounds, as in "20139 of 100000 (20 %), 210 rounds/s, 6:20 min left".
std::string progress_text(const StateFolder& found) {
  const double done = found.run->progress.round, rounds = found.run->metadata.resolved.run.rounds;
  std::string text = whole(done) + " of " + whole(rounds) + " committed";
  std::array<char, 32> percent{};
  std::snprintf(percent.data(), percent.size(), " (%.0f %%)",
                std::floor(rounds > 0 ? 100 * done / rounds : 100));
  text += percent.data();
  const double measured = count(found, "gradwire_round_seconds_count"),
               seconds = count(found, "gradwire_round_seconds_sum");
  if (!found.holder || done >= rounds) return text;
  if (const std::string wait = wait_for_lost(found); !wait.empty()) return text + ", " + wait;
  if (measured == 0 || seconds <= 0) return text;
  const double rate = measured / seconds;
  return text + ", " + rate_text(rate) + " rounds/s" +
         (stall(found).empty() ? ", " + duration_text((rounds - done) / rate) + " left" : "");
}

std::string stage_name(const StateFolder& found) {
  if (found.is_relay) return "relay";
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

void add_run(Json& json, const StateFolder& found, const std::optional<RoundRecord>& last) {
  const ExperimentSpec& e = found.run->metadata.resolved;
  const RunTotals& totals = found.run->progress.totals;
  json["run"] = run_history_id(run_of(found.run->metadata.start));
  json["name"] = e.name;
  json["algorithm"] = e.algorithm.name;
  json["clients_wanted"] = e.clients.count;
  json["round"] = found.run->progress.round;
  json["rounds"] = e.run.rounds;
  json["outcome"] = found.run->stage == RunStage::kRounds ? Json() : Json(outcome_name(found.run->outcome));
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

ShownStatus status_text(const fs::path& state, const fs::path& run_history) {
  const auto last = last_evaluation(state);  // first: so the journal has its round
  const StateFolder found = read_state_folder(state, run_history);
  const std::string trouble = stall(found);
  std::string text = trouble.empty() ? "" : "warning: " + printable(trouble) + "\n";
  const auto row = [&](const std::string& name, const std::string& value) {
    text += name + std::string(12 - name.size(), ' ') + printable(value) + "\n";
  };
  const auto rows_of_clients = [&] {
    std::string name = "clients";
    for (const std::string& line : describe_clients(found)) row(std::exchange(name, ""), line);
  };
  const std::string server =
      found.holder ? "process " + *found.holder + ", listening on " + found.address : "not running";
  if (found.is_relay) {
    row("relay", server);
    row("server", count(found, kRelayHasServer) > 0 && found.holder ? "connected" : "not connected");
    row("clients", whole(count(found, "gradwire_clients{state=\"connected\"}")) + " connected");
    for (const auto& [name, value] : rows_of_metrics(found)) row(name, value);
    return {text, !trouble.empty()};
  }
  if (!found.run) {
    row("server", server + ", waiting for its clients");
    for (const auto& [name, value] : rows_of_metrics(found)) row(name, value);
    rows_of_clients();
    return {text};
  }
  const ExperimentSpec& e = found.run->metadata.resolved;
  const RunTotals& totals = found.run->progress.totals;
  row("run", e.name + ": " + e.algorithm.name + ", " + std::to_string(e.clients.count) + " clients");
  row("server", found.run->stage == RunStage::kOver ? server + "; the run is over"
                : found.holder                      ? server
                               : server + "; to resume, start it with the same arguments");
  row("round", progress_text(found));
  const bool is_lost = last && last->round > found.run->progress.round;  // the machine lost power
  row("evaluation", last ? "loss " + number_text(last->loss) + " at round " + std::to_string(last->round) +
                               (is_lost ? ", which is lost and runs again" : "")
                         : "none yet");
  row("received", bytes_text(static_cast<double>(totals.bytes_up)));
  row("sent", bytes_text(static_cast<double>(totals.bytes_down)));
  row("time", duration_text(totals.seconds) + " of rounds");
  row("durability", survives_power(e) ? "power" : "process");
  for (const auto& [name, value] : rows_of_metrics(found)) row(name, value);
  rows_of_clients();
  return {text, !trouble.empty()};
}

ShownStatus status_json(const fs::path& state, const fs::path& run_history) {
  const auto last = last_evaluation(state);  // first: so the journal has its round
  const StateFolder found = read_state_folder(state, run_history);
  Json json = {{"stage", stage_name(found)}, {"server", nullptr}};
  if (found.holder)
    json["server"] = {{"pid", std::strtoull(found.holder->c_str(), nullptr, 10)},
                      {"address", text_or_null(found.address)}};
  const std::string trouble = stall(found);
  json["stalled"] = text_or_null(trouble);
  if (found.run) add_run(json, found, last);
  json["counts"] = found.metrics.empty() ? Json() : Json::object();
  for (const auto& [name, value] : found.metrics) json["counts"][name] = value;
  json["clients"] = nullptr;
  if (found.run_history) {
    json["clients"] = Json::array();
    for (const RunHistoryClient& client : found.run_history->clients)
      json["clients"].push_back(client_json(client));
  } else if (!found.is_relay) {
    json["clients_unknown"] = found.no_run_history;
  }
  return {json_text(json), !trouble.empty()};
}

}  // namespace gradwire
