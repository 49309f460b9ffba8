// gradwire-server: owns the model, waits for its clients, runs the rounds, writes the results.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "config/duration_option.h"
#include "config/experiment_file.h"
#include "fl_server/identity_commands.h"
#include "fl_server/metrics/metrics_endpoint.h"
#include "fl_server/relay/relay.h"
#include "fl_server/serve.h"
#include "fl_server/status.h"
#include "proto/wire/address.h"
#include "report/build_info.h"
#include "report/command_line.h"
#include "report/json.h"
#include "report/logger.h"
#include "report/main_frame.h"
#include "report/metrics_file.h"
#include "storage/folder_disk.h"
#include "storage/journal.h"

namespace {

using Clock = std::chrono::steady_clock;
using gradwire::kBadUsage;
using gradwire::kFailed;
using gradwire::Logger;

constexpr std::chrono::seconds kProgressEvery{5};
constexpr const char* kMetricsListen = "127.0.0.1:9700";

constexpr const char* kExamples = R"(
Examples:
  gradwire-server experiment.toml --listen 127.0.0.1:7000 --state run1
  gradwire-server experiment.toml --listen 127.0.0.1:0 --state run1 --set run.rounds=100
The server writes its address to run1/address and its results to run1. Clients:
  gradwire-client --server 127.0.0.1:7000 --data libsvm:my.txt --id hospital-7
A server that was stopped or killed resumes if it is started again with the same arguments. Progress of a run:
  gradwire-server status run1
Metrics for Prometheus, at http://127.0.0.1:9700/metrics:
  gradwire-server experiment.toml --listen 127.0.0.1:7000 --state run1 --metrics
Clients on other machines, over TLS, with authentication of every client:
  gradwire-server init identity --clients 10
  gradwire-server experiment.toml --listen 0.0.0.0:7000 --state run1 --identity identity
More commands: enroll, revoke, role, renew, certify, clients (each with --help).
At a site with a single gateway, clients connect to a relay in place of the server:
  gradwire-server --upstream HOST:7000 --listen 0.0.0.0:7001 --identity relay-identity
Exit codes: 0 done or stopped; 2 invalid command line, experiment or data; 1 any other error)";

// A display of evaluated rounds: with --json all of them, on stdout; else a line in the log every few
// seconds.
class RoundLog {
 public:
  RoundLog(Logger& logger, bool json, bool quiet) : logger_(logger), json_(json), quiet_(quiet) {}

  void record(const gradwire::RoundRecord& record) {
    if (quiet_) return;
    if (json_) {
      std::printf("%s\n", gradwire::json_line(record).c_str());
      std::fflush(stdout);
      return;
    }
    const auto now = Clock::now();
    if (record.round > 0 && now - shown_ < kProgressEvery) return;
    shown_ = now;
    std::array<char, 160> text;
    std::array<char, 40> norm{};
    if (record.grad_norm_sq)
      std::snprintf(norm.data(), norm.size(), ", ||grad||^2 %.3e", *record.grad_norm_sq);
    std::snprintf(text.data(), text.size(), "round %u: loss %.6g%s, %.1f s", record.round, record.loss,
                  norm.data(), record.seconds);
    logger_.log(gradwire::LogLine(text.data()).in_round(record.round));
  }

 private:
  Logger& logger_;
  const bool json_, quiet_;
  Clock::time_point shown_;
};

std::string why_diverged(const gradwire::Served& served) {
  const std::uint64_t rejected = served.beyond_norm_limit;
  if (rejected == 0) return "the run diverged; try a smaller algorithm.step_size";
  return "the run diverged, and " + std::to_string(rejected) +
         (rejected == 1 ? " reply was" : " replies were") +
         " rejected because of server.norm_limit; try a larger server.norm_limit, or a smaller "
         "algorithm.step_size";
}

int run(const gradwire::ServeOptions& options, Logger& logger) {
  const gradwire::Served served = gradwire::serve(options);
  const auto& outcome = served.outcome;
  if (!outcome) {
    logger.log("stopped before the run began");
    return 0;
  }
  // Fails only once; otherwise a supervisor would restart it endlessly.
  if (*outcome == gradwire::Outcome::kDiverged && !served.was_over)
    return logger.fail(why_diverged(served), kFailed);
  logger.log(*outcome == gradwire::Outcome::kStopped
                 ? "stopped; to resume, start it again with the same arguments"
                 : "the results are in " + options.state.string());
  return 0;
}

void run_relay_with_metrics(gradwire::RelayOptions options, const std::string& metrics) {
  std::optional<gradwire::FolderLock> lock;
  if (!options.state.empty()) {
    const std::string option = "--state " + options.state.string();
    if (!gradwire::make_folder(options.state))
      throw std::invalid_argument(option +
                                  ": is not a folder and cannot be created: " + std::strerror(errno));
    lock.emplace(options.state);
    gradwire::FolderDisk disk(options.state);
    const auto run = gradwire::Journal(disk, gradwire::Durability::kProcess).is_there();
    if (!run) throw std::runtime_error(run.error().message);
    if (*run)
      throw std::invalid_argument(option + ": holds the run of a server; give the relay a folder of its own");
  }
  gradwire::ServerMetrics server_metrics;
  const gradwire::MetricsEndpoint metrics_endpoint(
      server_metrics, {options.state, metrics, options.log, gradwire::MetricsSource::kRelay});
  options.server_metrics = &server_metrics;
  gradwire::run_relay(options);
}

// Returns an error about an option that the server or relay would ignore, or an empty string.
std::string unused_option(const CLI::App& app, bool is_relay) {
  for (const char* option : {"--registry", "--join-deadline-ms", "--no-resume"})
    if (is_relay && app.count(option) > 0)
      return std::string(option) + " is only for servers: a relay (--upstream) has no run of its own";
  if (!is_relay && app.count("--give-up-after-ms") > 0)
    return "--give-up-after-ms is only for relays: give the address of the server with --upstream";
  if (!is_relay && app.count("--connections-per-address") > 0)
    return "--connections-per-address is only for relays: for a server, use --set "
           "server.connections_per_address=N";
  return "";
}

// Runs gradwire-server status DIR.
int show_status(int argc, char** argv) {
  std::string folder, run_history;
  bool json = false;
  CLI::App app{"Shows the state of a server's run from its folder, even while the server runs.",
               "gradwire-server status"};
  app.add_option("DIR", folder, "The folder of --state")->type_name("")->required();
  app.add_option("--registry", run_history, "The registry, if the server was started with --registry")
      ->type_name("FILE");
  app.add_flag("--json", json, "Print one JSON object with all clients");
  Logger logger("gradwire-server status", gradwire::log_format(argc, argv));
  if (const auto code = gradwire::parse_command_line(app, argc - 1, argv + 1, logger)) return *code;
  return gradwire::exit_code_of(
      [&] {
        const std::string text =
            json ? gradwire::status_json(folder, run_history) : gradwire::status_text(folder, run_history);
        std::fputs(text.c_str(), stdout);
        return 0;
      },
      [&](const std::string& what, int) { logger.complain(what); });
}

// Returns an error about options that conflict or are missing, or an empty string.
std::string trouble_of(const gradwire::ServeOptions& options, const gradwire::RelayOptions& relay,
                       bool insecure) {
  const bool is_relay = !relay.upstream.empty();
  const auto address = gradwire::parse_address(options.listen, gradwire::AddressUse::kToListen);
  if (options.identity.empty() && !insecure && address && !gradwire::is_loopback(*address))
    return "--listen " + options.listen +
           " is open to other machines: give --identity (gradwire-server init makes one) or --insecure";
  const auto upstream = gradwire::parse_address(relay.upstream, gradwire::AddressUse::kToConnect);
  if (is_relay && options.identity.empty() && !insecure && upstream && !gradwire::is_loopback(*upstream))
    return "--upstream " + relay.upstream +
           " is another machine: give --identity (gradwire-server enroll NAME --relay DIR makes one on the "
           "server) or --insecure";
  const auto metrics = gradwire::parse_address(options.metrics, gradwire::AddressUse::kToListen);
  if (!options.metrics.empty() && !metrics)
    return "--metrics " + metrics.error().message + "; FILE.toml goes before --metrics";
  if (!options.metrics.empty() && !insecure && !gradwire::is_loopback(*metrics))
    return "--metrics " + options.metrics +
           " is open to other machines, in plain text and without a password: use 127.0.0.1 and a "
           "proxy or tunnel with authentication (--insecure, for a server without --identity, permits it)";
  if (!options.identity.empty() && insecure) return "--insecure is only for servers without --identity";
  if (relay.aggregate && !is_relay)
    return "--aggregate is only for relays: give the address of the server with --upstream";
  if (!is_relay && options.file.empty()) return "FILE.toml is required";
  if (!is_relay && options.state.empty()) return "--state is required";
  if (is_relay && (!options.file.empty() || !options.overrides.empty()))
    return "a relay (--upstream) has no experiment: give FILE.toml and --set to its server";
  return "";
}

int main_of(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "status") return show_status(argc, argv);
  if (argc > 1 && gradwire::is_identity_command(argv[1])) return gradwire::identity_command(argc, argv);
  gradwire::ServeOptions options;
  gradwire::RelayOptions relay;
  std::int64_t give_up_after_ms = relay.give_up_after.count();
  bool json = false, quiet = false, restart = false, insecure = false;
  Logger logger("gradwire-server", gradwire::log_format(argc, argv));
  std::optional<std::int64_t> join_deadline_ms;
  CLI::App app{"Runs the rounds of one experiment with clients that connect over TCP.", "gradwire-server"};
  app.footer(kExamples);
  app.set_version_flag("--version", gradwire::build_info());
  const CLI::Validator time(gradwire::trouble_of_ms, "", "time");
  app.add_option("FILE.toml", options.file, "The experiment; not with --upstream")->type_name("");
  app.add_option("--listen", options.listen, "Address to listen on; port 0 picks a free port")
      ->type_name("HOST:PORT")
      ->required();
  app.add_option("--state", options.state,
                 "Folder of the run: its address, results and recovery files; optional with --upstream")
      ->type_name("DIR");
  app.add_option("--identity", options.identity,
                 "Folder made by gradwire-server init: clients authenticate over TLS. For a relay: the "
                 "folder made by gradwire-server enroll --relay")
      ->type_name("DIR");
  app.add_flag("--insecure", insecure,
               "Use plain text without authentication, even between machines: only on a network "
               "that you trust");
  app.add_option("--upstream", relay.upstream,
                 "Be a relay: connect the clients of a site to this server over one connection")
      ->type_name("HOST:PORT");
  app.add_flag("--aggregate", relay.aggregate,
               "For a relay: send the sum of its clients' replies if the algorithm allows it; results then "
               "differ in the last bits");
  app.add_option("--give-up-after-ms", give_up_after_ms,
                 "For a relay: give up after this time without a server")
      ->type_name("MS")
      ->check(time)
      ->capture_default_str();
  app.add_option("--connections-per-address", relay.most_from_address,
                 "For a relay: most connections from one address (for IPv6 one /64); 0 means no limit")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--registry", options.run_history,
                 "Database of clients, runs and rounds, which runs may share, or 'none'. Default: "
                 "registry.sqlite3 in the --state folder")
      ->type_name("FILE");
  CLI::Option* const metrics =
      app.add_option("--metrics", options.metrics,
                     "Serve metrics for Prometheus at http://HOST:PORT/metrics; default: " +
                         std::string(kMetricsListen))
          ->type_name("[HOST:PORT]")
          ->expected(0, 1);
  app.add_option("--set", options.overrides,
                 "Override a value of the file (see gradwire list keys); may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("--join-deadline-ms", join_deadline_ms,
                 "Time for clients to join or return; overrides server.join_deadline_ms")
      ->type_name("MS")
      ->check(time);
  app.add_flag("--no-resume", restart, "Delete the run in the folder and start a new one");
  app.add_flag("--json", json, "Print one JSON object per evaluated round on stdout, and log lines as JSON");
  app.add_flag("--quiet", quiet, "Print only errors");
  if (const auto code = gradwire::parse_command_line(app, argc, argv, logger)) return *code;
  if (metrics->count() > 0 && options.metrics.empty()) options.metrics = kMetricsListen;
  logger.set_quiet(quiet);
  RoundLog rounds(logger, json, quiet);
  const bool is_relay = !relay.upstream.empty();
  if (const std::string trouble = trouble_of(options, relay, insecure); !trouble.empty())
    return logger.fail(trouble + "; see gradwire-server --help", kBadUsage);
  if (const std::string trouble = unused_option(app, is_relay); !trouble.empty())
    return logger.fail(trouble + "; see gradwire-server --help", kBadUsage);
  options.resume = !restart;
  if (join_deadline_ms) options.join_deadline = std::chrono::milliseconds(*join_deadline_ms);
  options.log = [&](const gradwire::LogLine& line) { logger.log(line); };
  options.on_record = [&](const gradwire::RoundRecord& record) { rounds.record(record); };
  relay.listen = options.listen;
  relay.state = options.state;
  relay.identity = options.identity;
  relay.give_up_after = std::chrono::milliseconds(give_up_after_ms);
  relay.log = options.log;
  if (insecure)
    logger.log(gradwire::LogLine::warning(
        "--insecure: all traffic is in plain text, and peers are not authenticated"));
  return gradwire::exit_code_of(
      [&] {
        if (!is_relay) return run(options, logger);
        run_relay_with_metrics(relay, options.metrics);
        return 0;
      },
      [&](const std::string& what, int code) { logger.fail(what, code); });
}

}  // namespace

int main(int argc, char** argv) { return gradwire::run_main("gradwire-server", argc, argv, main_of); }
