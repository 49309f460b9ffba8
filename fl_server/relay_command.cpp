#include "fl_server/relay_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/field.h"
#include "config/duration_option.h"
#include "fl_server/listen_options.h"
#include "fl_server/metrics/metrics_endpoint.h"
#include "fl_server/relay/relay.h"
#include "proto/wire/address.h"
#include "report/command_line.h"
#include "report/logger.h"
#include "report/main_frame.h"
#include "storage/folder_disk.h"
#include "storage/journal.h"

namespace gradwire {
namespace {

constexpr std::string_view kCommand = "relay", kUpstream = "--upstream";
constexpr const char* kExamples = R"(
Examples:
  gradwire-server relay --upstream HOST:7000 --listen 0.0.0.0:7001 --identity relay-identity
  gradwire-server relay --upstream 127.0.0.1:7000 --listen 127.0.0.1:7001 --aggregate
Exit codes: 0 done or stopped; 2 invalid command line; 1 any other error)";

void run_relay_with_metrics(RelayOptions options, const std::string& metrics) {
  std::optional<FolderLock> lock;
  if (!options.state.empty()) {
    const std::string option = "--state " + options.state.string();
    if (!make_folder(options.state))
      throw std::invalid_argument(option +
                                  ": is not a folder and cannot be created: " + std::strerror(errno));
    lock.emplace(options.state);
    FolderDisk disk(options.state);
    const auto run = Journal(disk, Durability::kProcess).is_there();
    if (!run) throw std::runtime_error(run.error().message);
    if (*run)
      throw std::invalid_argument(option + ": holds the run of a server; give the relay a folder of its own");
  }
  ServerMetrics server_metrics;
  const MetricsEndpoint metrics_endpoint(server_metrics,
                                         {options.state, metrics, options.log, MetricsSource::kRelay});
  options.server_metrics = &server_metrics;
  run_relay(options);
}

// Returns an error about options that conflict or that a relay would ignore, or an empty string.
std::string trouble_of(const CLI::App& app, const ListenOptions& common, const RelayOptions& relay) {
  const auto upstream = parse_address(relay.upstream, AddressUse::kToConnect);
  if (common.identity.empty() && !common.insecure && upstream && !is_loopback(*upstream))
    return "--upstream " + relay.upstream +
           " is another machine: give --identity (gradwire-server enroll NAME --relay DIR makes one on the "
           "server) or --insecure";
  if (const std::string trouble = trouble_of(common); !trouble.empty()) return trouble;
  const std::vector<std::string> others = app.remaining();
  const bool has_file = !others.empty() && !others[0].starts_with('-');
  if (has_file || app.count("--set") > 0)
    return "a relay has no experiment: give FILE.toml and --set to its server";
  if (!others.empty()) return "The following argument was not expected: " + others[0];
  for (const char* option : {"--registry", "--join-deadline-ms", "--no-resume", "--fresh"})
    if (app.count(option) > 0)
      return std::string(option) + " is only for servers: a relay has no run of its own";
  return "";
}

}  // namespace

bool is_relay_command(int argc, const char* const* argv) {
  if (argc > 1 && argv[1] == kCommand) return true;
  return std::any_of(argv + 1, argv + std::max(argc, 1), [](std::string_view argument) {
    return argument == kUpstream || argument.starts_with(std::string(kUpstream) + "=");
  });
}

int relay_command(int argc, char** argv) {
  const bool is_old_form = argv[1] != kCommand;
  RelayOptions relay;
  ListenOptions common;
  std::string tls_min = "TLS1.3";
  std::int64_t give_up_after_ms = relay.give_up_after.count();
  Logger logger("gradwire-server", log_format(argc, argv));
  CLI::App app{
      "Connects the clients of a site to a server over one connection. Clients connect to the relay in place "
      "of the server.",
      "gradwire-server relay"};
  app.footer(kExamples);
  const CLI::Validator time(trouble_of_ms, "", "time");
  app.add_option("--upstream", relay.upstream, "The server, or another relay")
      ->type_name("HOST:PORT")
      ->required();
  add_options(app, common,
              {.state = "Folder for the address of the relay and its counts; optional",
               .identity = "Folder made by gradwire-server enroll --relay: the relay and its clients "
                           "authenticate over TLS"});
  app.add_flag("--aggregate", relay.aggregate,
               "Send the sum of the clients' replies if the algorithm allows it; results then differ in the "
               "last bits");
  app.add_option("--give-up-after-ms", give_up_after_ms, "Give up after this time without a server")
      ->type_name("MS")
      ->check(time)
      ->capture_default_str();
  app.add_option("--connections-per-address", relay.most_from_address,
                 "Most connections from one address (for IPv6 one /64); 0 means no limit")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--tls-min", tls_min, "The oldest version of TLS that clients may use, with --identity")
      ->type_name("VERSION")
      ->check(CLI::IsMember({"TLS1.3", "TLS1.2"}))
      ->capture_default_str();
  app.add_option("--min-bytes-per-second", relay.times.min_bytes_per_second,
                 "Disconnect a peer that delivers less of a message for half a minute, or accepts less for a "
                 "minute")
      ->type_name("N")
      ->check(CLI::Range(1, INT32_MAX))
      ->capture_default_str();
  app.add_flag("--json", common.json, "Print log lines as JSON");
  app.get_option("--listen")->required();
  app.allow_extras();
  add_refused_options(app, {"--set", "--registry", "--join-deadline-ms"}, {"--no-resume", "--fresh"});
  const int skipped = is_old_form ? 0 : 1;
  if (const auto code = parse_command_line(app, argc - skipped, argv + skipped, logger)) return *code;
  logger.set_quiet(common.quiet);
  if (const std::string trouble = trouble_of(app, common, relay); !trouble.empty())
    return logger.fail(trouble + "; see gradwire-server relay --help", kBadUsage);
  relay.listen = common.listen;
  relay.state = common.state;
  relay.identity = common.identity;
  relay.tls_min = tls_min == "TLS1.2" ? TlsVersion::k12 : TlsVersion::k13;
  relay.give_up_after = std::chrono::milliseconds(give_up_after_ms);
  relay.log = [&](const LogLine& line) { logger.log(line); };
  if (is_old_form)
    relay.log(
        LogLine::warning("gradwire-server --upstream is now gradwire-server relay --upstream; the old form "
                         "works until version " +
                         std::string(kOldNamesEnd)));
  warn_about(common, relay.log);
  if (common.identity.empty() && app.count("--tls-min") > 0)
    relay.log(LogLine::warning("--tls-min has no effect without --identity, because TLS is not used"));
  return exit_code_of(
      [&] {
        run_relay_with_metrics(relay, common.metrics_address());
        return 0;
      },
      [&](const std::string& what, int code) { logger.fail(what, code); });
}

}  // namespace gradwire
