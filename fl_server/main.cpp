// gradwire-server: owns the model; waits for its clients, runs the rounds, writes the results.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "engine/dataset.h"
#include "fl_server/json.h"
#include "fl_server/relay.h"
#include "fl_server/results.h"
#include "fl_server/serve.h"
#include "fl_server/status.h"
#include "proto/build_info.h"
#include "proto/experiment.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBadUsage = 2;
constexpr int kFailed = 1;
constexpr std::chrono::seconds kProgressEvery{5};

constexpr const char* kExamples = R"(
Examples:
  gradwire-server experiment.toml --listen 0.0.0.0:7000 --state run1
  gradwire-server experiment.toml --listen 127.0.0.1:0 --state run1 --set run.rounds=100
The address that it listens on is in run1/address; the results come into run1. Clients:
  gradwire-client --server HOST:7000 --data libsvm:my.txt --id hospital-7
A server that was stopped or killed goes on when it is started again with the same arguments. Where its run is:
  gradwire-server status run1
Clients of a site that has one way out connect to a relay in place of the server:
  gradwire-server --upstream HOST:7000 --listen 0.0.0.0:7001)";

// One JSON object per evaluated round: the columns of metrics.csv.
std::string record_json(const gradwire::RoundRecord& record) {
  std::string_view names = gradwire::kMetricsHeader;
  const std::string line = gradwire::metrics_line(record);
  std::string_view values = line;
  const auto take = [](std::string_view& from) {
    const std::string_view word = from.substr(0, from.find(','));
    from.remove_prefix(std::min(from.size(), word.size() + 1));
    return word;
  };
  std::string json = "{";
  while (!names.empty()) {
    const std::string_view value = take(values);
    const bool number = value.find_first_not_of("0123456789+-.e") == std::string_view::npos && !value.empty();
    json += (json.size() > 1 ? ", " : "") + gradwire::json_string(take(names)) + ": ";
    json += number ? value : "null";
  }
  return json + "}";
}

class Console {
 public:
  Console(std::string name, bool json, bool quiet) : name_(std::move(name)), json_(json), quiet_(quiet) {}

  void log(const std::string& line) const {
    if (quiet_) return;
    const std::string text = json_ ? "{\"message\": " + gradwire::json_string(line) + "}" : line;
    std::fprintf(stderr, "%s\n", text.c_str());
  }

  // The last line of a server that failed; also of one that is to be quiet.
  int fail(const std::string& what, int code) const {
    const std::string text = json_ ? "{\"error\": " + gradwire::json_string(what) + "}" : name_ + ": " + what;
    std::fprintf(stderr, "%s\n", text.c_str());
    return code;
  }

  void record(const gradwire::RoundRecord& record) {
    if (quiet_) return;
    if (json_) {
      std::printf("%s\n", record_json(record).c_str());
      std::fflush(stdout);
      return;
    }
    const auto now = Clock::now();
    if (record.round > 0 && now - shown_ < kProgressEvery) return;
    shown_ = now;
    std::fprintf(stderr, "round %u: loss %.6g, ||grad||^2 %.3e, %.1f s\n", record.round, record.loss,
                 record.grad_norm_sq, record.seconds);
  }

 private:
  std::string name_;
  bool json_, quiet_;
  Clock::time_point shown_;
};

int run(const gradwire::ServeOptions& options, const Console& console) {
  const auto [outcome, was_over] = gradwire::serve(options);
  if (!outcome) {
    console.log("stopped before the run began");
    return 0;
  }
  if (*outcome == gradwire::Outcome::kDiverged && !was_over)  // once: who restarts it is to stop
    return console.fail("the run diverged; try a smaller algorithm.step_size", kFailed);
  console.log(*outcome == gradwire::Outcome::kStopped
                  ? "stopped; start it again with the same arguments, and the run goes on"
                  : "the results are in " + options.state.string());
  return 0;
}

// Known before the command line is understood: its errors are lines of JSON too.
bool wants_json(int argc, char** argv) {
  return std::any_of(argv + 1, argv + argc,
                     [](const char* word) { return std::string_view(word) == "--json"; });
}

// gradwire-server status DIR
int show_status(int argc, char** argv) {
  std::string folder, registry;
  bool json = false;
  CLI::App app{"Shows what the folder of a server says of its run, also while the server is at work.",
               "gradwire-server status"};
  app.add_option("DIR", folder, "The folder of --state")->required();
  app.add_option("--registry", registry,
                 "The registry, when the server was started with one of another place");
  app.add_flag("--json", json, "One JSON object, with all clients");
  const Console console("gradwire-server status", wants_json(argc, argv), false);
  try {
    app.parse(argc - 1, argv + 1);
    const std::string text =
        json ? gradwire::status_json(folder, registry) : gradwire::status_text(folder, registry);
    std::fputs(text.c_str(), stdout);
    return 0;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return console.fail(std::string(error.what()) + "; see gradwire-server status --help", kBadUsage);
  } catch (const std::exception& error) {
    return console.fail(error.what(), kFailed);
  }
}

// What does not go together on the command line; empty: all does.
std::string trouble_of(const gradwire::ServeOptions& options, bool is_relay, bool aggregates) {
  if (aggregates && !is_relay)
    return "--aggregate is for a relay: give the address of its server, --upstream";
  if (!is_relay && options.file.empty()) return "FILE.toml is required";
  if (!is_relay && options.state.empty()) return "--state is required";
  if (is_relay && (!options.file.empty() || !options.overrides.empty()))
    return "a relay (--upstream) has no experiment of its own: leave FILE.toml and --set to its server";
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "status") return show_status(argc, argv);
  gradwire::ServeOptions options;
  gradwire::RelayOptions relay;
  std::int64_t give_up_after_ms = relay.give_up_after.count();
  bool json = false, quiet = false, begin_anew = false;
  Console console("gradwire-server", wants_json(argc, argv), false);
  std::int64_t join_deadline_ms = options.join_deadline.count();
  CLI::App app{"Runs the rounds of one experiment with clients that connect over TCP.", "gradwire-server"};
  app.footer(kExamples);
  app.set_version_flag("--version", gradwire::build_info());
  app.add_option("FILE.toml", options.file, "The experiment; none with --upstream");
  app.add_option("--listen", options.listen, "HOST:PORT to listen on; port 0: any that is free")->required();
  app.add_option("--state", options.state,
                 "Folder for the address and the results; optional with --upstream");
  app.add_option(
      "--upstream", relay.upstream,
      "HOST:PORT of a server: be a relay, which joins the clients of a site to it over one connection");
  app.add_flag(
      "--aggregate", relay.aggregate,
      "Of a relay: send the sum of the replies of its clients where the method allows it; results then "
      "differ in the last bits");
  app.add_option("--give-up-after-ms", give_up_after_ms,
                 "Of a relay: end when the server was away for so long")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--registry", options.registry,
                 "The database of clients, runs and rounds, which runs may share; 'none': none. Else "
                 "registry.sqlite3 in the folder of --state");
  app.add_option("--set", options.overrides, "KEY=VALUE in place of what the file says; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--join-deadline-ms", join_deadline_ms, "Give up when not all clients have joined by then")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--no-resume", begin_anew,
               "Begin anew, although the folder holds a run that could go on: it is removed");
  app.add_flag("--json", json, "One JSON object per evaluated round on stdout; log lines as JSON");
  app.add_flag("--quiet", quiet, "Only errors");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return console.fail(std::string(error.what()) + "; see gradwire-server --help", kBadUsage);
  }
  console = Console("gradwire-server", json, quiet);
  const bool is_relay = !relay.upstream.empty();
  if (const std::string trouble = trouble_of(options, is_relay, relay.aggregate); !trouble.empty())
    return console.fail(trouble + "; see gradwire-server --help", kBadUsage);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error like a full disk
  options.resume = !begin_anew;
  options.join_deadline = std::chrono::milliseconds(join_deadline_ms);
  options.log = [&](const std::string& line) { console.log(line); };
  options.on_record = [&](const gradwire::RoundRecord& record) { console.record(record); };
  relay.listen = options.listen;
  relay.state = options.state;
  relay.give_up_after = std::chrono::milliseconds(give_up_after_ms);
  relay.log = options.log;
  try {
    if (!is_relay) return run(options, console);
    gradwire::run_relay(relay);
    return 0;
  } catch (const gradwire::ExperimentError& error) {
    return console.fail(error.what(), kBadUsage);
  } catch (const gradwire::DataError& error) {
    return console.fail(error.what(), kBadUsage);
  } catch (const std::invalid_argument& error) {
    return console.fail(error.what(), kBadUsage);
  } catch (const std::exception& error) {
    return console.fail(error.what(), kFailed);
  }
}
