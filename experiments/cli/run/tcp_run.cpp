#include "experiments/cli/run/tcp_run.h"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <signal.h>
#include <stdexcept>
#include <thread>

#include "experiments/cli/support/child_process.h"
#include "experiments/cli/support/program.h"
#include "experiments/cli/support/scratch_folder.h"
#include "report/clients_file.h"
#include "report/columns.h"
#include "storage/atomic_file.h"
#include "storage/model_file.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kListenTime{60};          // from the start of the server to its address
constexpr milliseconds kJoinTime{600'000};  // for all clients to read their data and join
constexpr seconds kShutdownTime{20};        // for clients to end after the server
constexpr milliseconds kGrace{500};  // to wait if a client fails, because the server may have failed first
constexpr milliseconds kPoll{5}, kSlowPoll{50};

// A reader of the complete lines of a metrics.csv that is still being written.
class MetricsTail {
 public:
  explicit MetricsTail(fs::path file) : file_(std::move(file)) {}

  template <class OnRecord>
  bool read(const OnRecord& on_record) {
    if (!in_.is_open()) in_.open(file_, std::ios::binary);
    if (!in_.is_open()) return false;
    bool any = false;
    in_.clear();
    std::string piece;
    while (std::getline(in_, piece)) {
      line_ += piece;
      if (in_.eof()) break;  // the rest of the line is still to come
      if (const auto record = parse_metrics_line(line_)) {
        on_record(*record);
        any = true;
      }
      line_.clear();
    }
    return any;
  }

 private:
  fs::path file_;
  std::ifstream in_;
  std::string line_;
};

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Returns the text after `"name": ` in a summary.json, or "" if it is missing.
std::string json_member(const std::string& json, const std::string& name) {
  const std::string key = "\"" + name + "\": ";
  const std::size_t at = json.find(key);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + key.size();
  return json.substr(begin, json.find_first_of(",\n}", begin) - begin);
}

class TcpRun {
 public:
  TcpRun(const Prepared& prepared, TransportKind kind, const RunObserver& observer,
         const std::atomic<bool>& stop)
      : prepared_(prepared),
        secure_(kind == TransportKind::kTls),
        observer_(observer),
        stop_(stop),
        state_(folder_.path() / "state"),
        tail_(state_ / "metrics.csv") {}

  RunResult run() {
    const fs::path config = folder_.path() / "experiment.toml";
    ExperimentSpec experiment = prepared_.experiment;
    // Makes the rows of metrics.csv the same as in a simulation.
    experiment.evaluation.grad_norm = grad_norm_rows(experiment, /*over_network=*/false);
    write_whole(config, to_toml(experiment));
    fs::create_directory(state_);
    const std::string option = secure_ ? "--transport tls" : "--transport tcp";
    const fs::path server = installed_program("gradwire-server", option),
                   client = installed_program("gradwire-client", option);
    const std::uint32_t n = prepared_.problem.clients;
    if (secure_) make_identities(server, n);
    std::vector<std::string> arguments = {
        config.string(), "--listen",           "127.0.0.1:0",
        "--state",       state_.string(),      "--registry",
        "none",          "--join-deadline-ms", std::to_string(kJoinTime.count())};
    if (secure_) arguments.insert(arguments.end(), {"--identity", identity().string()});
    start("server", server, arguments);
    const std::string address = wait_for_address();
    for (std::uint32_t c = 0; c < n; ++c) start_client(client, address, c, n);
    wait_for_server();
    wait_for_clients();
    return collect();
  }

 private:
  void start(const std::string& role, const fs::path& program, const std::vector<std::string>& arguments) {
    const fs::path log = folder_.path() / (std::to_string(children_.size()) + ".log");
    children_.emplace_back(role, program, arguments, log);
    result_.processes.push_back(
        {role, static_cast<std::uint64_t>(children_.back().pid()), children_.back().executable()});
  }

  fs::path identity() const { return folder_.path() / "identity"; }
  fs::path tokens() const { return folder_.path() / "tokens"; }

  // Makes the identity of the server, and a file with a token for each client.
  void make_identities(const fs::path& server, std::uint32_t clients) {
    ChildProcess init("init", server,
                      {"init", identity().string(), "--clients", std::to_string(clients), "--out",
                       tokens().string(), "--host", "127.0.0.1"},
                      folder_.path() / "init.log");
    while (!init.ended()) std::this_thread::sleep_for(kPoll);
    if (*init.ended() != 0) fail(init, "failed");
  }

  void start_client(const fs::path& program, const std::string& address, std::uint32_t c, std::uint32_t n) {
    const SampleSource* const source = sources_of(prepared_.experiment.problem);
    std::vector<std::string> arguments = {
        "--server", address, "--data",
        (source == nullptr ? "" : source->data) + "#" + std::to_string(c) + "/" + std::to_string(n)};
    if (source != nullptr && !source->test.empty())
      arguments.insert(arguments.end(), {"--test", source->test});
    if (secure_)
      arguments.insert(arguments.end(),
                       {"--identity", (folder_.path() / ("client-" + std::to_string(c))).string(), "--token",
                        "@" + (tokens() / ("client-" + std::to_string(c) + ".token")).string()});
    start("client " + std::to_string(c), program, arguments);
  }

  [[noreturn]] static void fail(ChildProcess& child, const std::string& what) {
    const std::string said = child.last_line();
    throw std::runtime_error("the " + child.role() + " (process " + std::to_string(child.pid()) + ") " +
                             what + (said.empty() ? "" : ": " + said));
  }

  ChildProcess& server() { return children_.front(); }

  std::string wait_for_address() {
    const auto deadline = Clock::now() + kListenTime;
    for (;;) {
      std::string address = content_of(state_ / "address");
      if (address.ends_with('\n')) {
        address.pop_back();
        return address;
      }
      if (server().ended()) fail(server(), "ended before it listened");
      if (Clock::now() > deadline)
        fail(server(), "did not listen within " + std::to_string(kListenTime.count()) + " s");
      std::this_thread::sleep_for(kPoll);
    }
  }

  void forward_records() {
    tail_.read([&](const RoundRecord& record) {
      result_.last = record;
      observer_.on_record(record);
    });
  }

  // Waits until the server ends, which its own deadlines guarantee. Throws if a client fails before.
  void wait_for_server() {
    bool told = false;
    const auto started = Clock::now();
    while (!server().ended()) {
      forward_records();
      if (stop_ && !told) server().signal(SIGTERM);
      told = told || stop_;
      for (std::size_t c = 1; c < children_.size(); ++c)
        if (children_[c].ended().value_or(0) != 0) blame(children_[c]);
      std::this_thread::sleep_for(Clock::now() - started < seconds(2) ? kPoll : kSlowPoll);
    }
    forward_records();
    const bool diverged = json_member(content_of(state_ / "summary.json"), "outcome") == "\"diverged\"";
    if (*server().ended() != 0 && !diverged) fail(server(), "failed");
  }

  // Throws because of a failed client. Returns if the server has also failed, because that is probably the
  // cause.
  void blame(ChildProcess& client) {
    const auto deadline = Clock::now() + kGrace;
    while (Clock::now() < deadline && !server().ended()) std::this_thread::sleep_for(kPoll);
    if (server().ended().value_or(0) != 0) return;
    fail(client, "failed");
  }

  void wait_for_clients() {
    const auto deadline = Clock::now() + kShutdownTime;
    if (stop_)  // otherwise they would wait for the server to restart
      for (std::size_t c = 1; c < children_.size(); ++c) children_[c].signal(SIGTERM);
    for (std::size_t c = 1; c < children_.size(); ++c) {
      while (!children_[c].ended()) {
        if (Clock::now() > deadline) fail(children_[c], "did not end after the server");
        std::this_thread::sleep_for(kPoll);
      }
    }
  }

  RunResult collect() {
    const std::string summary = content_of(state_ / "summary.json");
    if (summary.empty()) {
      if (stop_) throw std::runtime_error("stopped before the clients had joined; there are no results");
      fail(server(), "wrote no summary");
    }
    const std::string outcome = json_member(summary, "outcome");
    for (const Outcome known : {Outcome::kFinished, Outcome::kReachedTarget, Outcome::kStopped,
                                Outcome::kDiverged, Outcome::kStalled})
      if (outcome == "\"" + outcome_name(known) + "\"") result_.outcome = known;
    result_.rounds =
        static_cast<std::uint32_t>(std::strtoul(json_member(summary, "rounds").c_str(), nullptr, 10));
    const std::string kernels = json_member(summary, "kernels");
    if (kernels.size() > 2) result_.kernels = kernels.substr(1, kernels.size() - 2);
    result_.seconds = std::strtod(json_member(summary, "seconds").c_str(), nullptr);
    result_.evaluation_seconds = std::strtod(json_member(summary, "evaluation_seconds").c_str(), nullptr);
    result_.model = read_model(state_ / "model.bin");
    result_.clients = content_of(state_ / kClientsFile);
    return std::move(result_);
  }

  const Prepared& prepared_;
  const bool secure_;
  const RunObserver& observer_;
  const std::atomic<bool>& stop_;
  ScratchFolder folder_;
  const fs::path state_;
  MetricsTail tail_;
  RunResult result_;
  std::vector<ChildProcess> children_;  // the server, then the clients; they end before the folder is removed
};

}  // namespace

RunResult run_over_tcp(const Prepared& prepared, TransportKind kind, const RunObserver& observer,
                       const std::atomic<bool>& stop) {
  return TcpRun(prepared, kind, observer, stop).run();
}

}  // namespace gradwire
