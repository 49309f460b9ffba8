// gradwire-server: owns the model, waits for its clients, runs the rounds, writes the results.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "config/duration_option.h"
#include "config/experiment_file.h"
#include "config/known_keys.h"
#include "config/shipped_experiments.h"
#include "fl_server/identity_commands.h"
#include "fl_server/listen_options.h"
#include "fl_server/relay_command.h"
#include "fl_server/serve.h"
#include "fl_server/status.h"
#include "report/build_info.h"
#include "report/command_line.h"
#include "report/json.h"
#include "report/logger.h"
#include "report/main_frame.h"
#include "report/metrics_file.h"

namespace {

using Clock = std::chrono::steady_clock;
using gradwire::kBadUsage;
using gradwire::kFailed;
using gradwire::Logger;

constexpr std::chrono::seconds kProgressEvery{5};
constexpr const char* kDefaultListen = "127.0.0.1:7000";

constexpr const char* kExamples = R"(
Examples:
  gradwire-server experiment.toml                     listens on 127.0.0.1:7000, with its state in NAME-state
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
More commands: relay, enroll, revoke, role, renew, certify, clients (each with --help).
At a site with a single gateway, clients connect to a relay in place of the server:
  gradwire-server relay --upstream HOST:7000 --listen 0.0.0.0:7001 --identity relay-identity
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

int run(const gradwire::ServeOptions& options, const gradwire::LoadedExperiment& loaded, Logger& logger) {
  const gradwire::Served served = gradwire::serve(options, loaded);
  const auto& outcome = served.outcome;
  if (!outcome) {
    logger.log("stopped before the run began");
    return 0;
  }
  // Fails only in the process in which the run diverged. Otherwise a supervisor would restart the server
  // endlessly.
  if (*outcome == gradwire::Outcome::kDiverged && !served.was_over)
    return logger.fail(gradwire::trouble_of(served), kFailed);
  logger.log(*outcome == gradwire::Outcome::kStopped
                 ? "stopped; to resume, start it again with the same arguments"
                 : "the results are in " + options.state.string());
  return 0;
}

constexpr int kStalled = 3;  // exit code of `status`

// Runs gradwire-server status DIR.
int show_status(int argc, char** argv) {
  std::string folder, run_history;
  bool json = false;
  CLI::App app{"Shows the state of a server's run, or of a relay, from its folder, even while it runs.",
               "gradwire-server status"};
  app.footer(
      "Exit codes: 0; 3 if the run waits for lost or silent clients, or the relay for its server; 1 if there "
      "is no "
      "run");
  app.add_option("DIR", folder, "The folder of --state")->type_name("")->required();
  app.add_option("--registry", run_history, "The registry, if the server was started with --registry")
      ->type_name("FILE");
  app.add_flag("--json", json, "Print one JSON object with all clients");
  Logger logger("gradwire-server status", gradwire::log_format(argc, argv));
  if (const auto code = gradwire::parse_command_line(app, argc - 1, argv + 1, logger)) return *code;
  return gradwire::exit_code_of(
      [&] {
        const gradwire::ShownStatus status =
            json ? gradwire::status_json(folder, run_history) : gradwire::status_text(folder, run_history);
        std::fputs(status.text.c_str(), stdout);
        return status.stalled ? kStalled : 0;
      },
      [&](const std::string& what, int) { logger.complain(what); });
}

// Returns an error about options that conflict or are missing, or an empty string.
std::string trouble_of(const CLI::App& app, const gradwire::ListenOptions& common, const std::string& file) {
  if (const std::string trouble = gradwire::trouble_of(common); !trouble.empty()) return trouble;
  for (const char* option : {"--aggregate", "--give-up-after-ms"})
    if (app.count(option) > 0)
      return std::string(option) + " is only for relays: gradwire-server relay --upstream HOST:PORT";
  if (app.count("--connections-per-address") > 0)
    return "--connections-per-address is only for relays: for a server, use --set "
           "server.connections_per_address=N";
  if (file.empty()) return "FILE.toml is required";
  return "";
}

// Returns the error about a first word that is neither a command, an option nor an experiment, else "".
std::string trouble_of_command(const std::string& word) {
  std::error_code ignored;
  if (word.empty() || word[0] == '-' || word.find_first_of("./") != std::string::npos ||
      std::filesystem::exists(word, ignored) || gradwire::find_shipped(word) != nullptr)
    return "";
  std::vector<std::string> known = {"relay", "status"};
  for (std::string& name : gradwire::identity_command_names()) known.push_back(std::move(name));
  return gradwire::unknown_command(word, known);
}

int main_of(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "status") return show_status(argc, argv);
  if (argc > 1 && gradwire::is_identity_command(argv[1])) return gradwire::identity_command(argc, argv);
  if (gradwire::is_relay_command(argc, argv)) return gradwire::relay_command(argc, argv);
  gradwire::ServeOptions options;
  gradwire::ListenOptions common;
  std::string file;
  std::vector<std::string> overrides;
  bool restart = false;
  Logger logger("gradwire-server", gradwire::log_format(argc, argv));
  std::optional<std::int64_t> join_deadline_ms;
  CLI::App app{"Runs the rounds of one experiment with clients that connect over TCP.", "gradwire-server"};
  app.footer(kExamples);
  const CLI::Validator time(gradwire::trouble_of_ms, "", "time");
  app.add_option("FILE.toml", file, "The experiment")->type_name("");
  common.listen = kDefaultListen;
  gradwire::add_options(
      app, common,
      {.state = "Folder of the run: its address, results and recovery files. Default: NAME-state",
       .identity = "Folder made by gradwire-server init: clients authenticate over TLS"});
  app.add_option("--registry", options.run_history,
                 "Database of clients, runs and rounds, which runs may share, or 'none'. Default: "
                 "registry.sqlite3 in the --state folder")
      ->type_name("FILE");
  app.add_option("--set", overrides,
                 "Override a value of the file (see gradwire list keys); --rounds 100 is --set rounds=100")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("--join-deadline-ms", join_deadline_ms,
                 "Time for clients to join or return; overrides server.join_deadline_ms")
      ->type_name("MS")
      ->check(time);
  app.add_flag("--fresh,--no-resume", restart,
               "Start a new run, and move the one in the folder to before/ there");
  app.add_flag("--json", common.json,
               "Print one JSON object per evaluated round on stdout, and log lines as JSON");
  gradwire::add_refused_options(app, {"--give-up-after-ms", "--connections-per-address"}, {"--aggregate"});
  if (const std::string trouble = argc > 1 ? trouble_of_command(argv[1]) : ""; !trouble.empty())
    return logger.fail(trouble + "; see gradwire-server --help", kBadUsage);
  if (const auto code = gradwire::parse_command_line(app, argc, argv, logger, gradwire::key_of_word))
    return *code;
  logger.set_quiet(common.quiet);
  RoundLog rounds(logger, common.json, common.quiet);
  options.listen = common.listen;
  options.state = common.state;
  options.identity = common.identity;
  options.metrics = common.metrics_address();
  if (const std::string trouble = trouble_of(app, common, file); !trouble.empty())
    return logger.fail(trouble + "; see gradwire-server --help", kBadUsage);
  options.resume = !restart;
  if (join_deadline_ms) options.join_deadline = std::chrono::milliseconds(*join_deadline_ms);
  options.log = [&](const gradwire::LogLine& line) { logger.log(line); };
  options.on_record = [&](const gradwire::RoundRecord& record) { rounds.record(record); };
  gradwire::warn_about(common, options.log);
  return gradwire::exit_code_of(
      [&] {
        const gradwire::LoadedExperiment loaded = gradwire::load_server_experiment(file, overrides);
        if (options.state.empty()) options.state = loaded.experiment.name + "-state";
        return run(options, loaded, logger);
      },
      [&](const std::string& what, int code) { logger.fail(what, code); });
}

}  // namespace

int main(int argc, char** argv) { return gradwire::run_main("gradwire-server", argc, argv, main_of); }
