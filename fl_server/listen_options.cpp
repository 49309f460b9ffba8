#include "fl_server/listen_options.h"

#include <CLI/CLI.hpp>

#include "proto/wire/address.h"
#include "report/build_info.h"

namespace gradwire {
namespace {

constexpr const char* kMetricsListen = "127.0.0.1:9700";

}  // namespace

std::string ListenOptions::metrics_address() const {
  return asks_metrics && metrics.empty() ? kMetricsListen : metrics;
}

void add_options(CLI::App& app, ListenOptions& to, const ListenHelp& help) {
  app.set_version_flag("--version", build_info());
  app.add_option("--listen", to.listen, "Address to listen on; port 0 picks a free port")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  app.add_option("--state", to.state, help.state)->type_name("DIR");
  app.add_option("--identity", to.identity, help.identity)->type_name("DIR");
  app.add_flag("--insecure", to.insecure,
               "Use plain text without authentication, even between machines: only on a network "
               "that you trust");
  app.add_option(
         "--metrics", to.metrics,
         "Serve metrics for Prometheus at http://HOST:PORT/metrics; default: " + std::string(kMetricsListen))
      ->type_name("[HOST:PORT]")
      ->expected(0, 1);
  app.add_flag("--quiet", to.quiet, "Print only errors");
  app.parse_complete_callback([&app, &to] { to.asks_metrics = app.count("--metrics") > 0; });
}

void add_refused_options(CLI::App& app, const std::vector<std::string>& with_value,
                         const std::vector<std::string>& flags) {
  for (const std::string& name : with_value) app.add_option(name)->group("");
  for (const std::string& name : flags) app.add_flag(name)->group("");
}

std::string trouble_of(const ListenOptions& options) {
  const auto address = parse_address(options.listen, AddressUse::kToListen);
  if (options.identity.empty() && !options.insecure && address && !is_loopback(*address))
    return "--listen " + options.listen +
           " is open to other machines: give --identity (gradwire-server init makes one) or --insecure";
  const std::string where = options.metrics_address();
  const auto metrics = parse_address(where, AddressUse::kToListen);
  if (!where.empty() && !metrics)
    return "--metrics " + metrics.error().message + "; FILE.toml goes before --metrics";
  if (!where.empty() && !options.insecure && !is_loopback(*metrics))
    return "--metrics " + where +
           " is open to other machines, in plain text and without a password: use 127.0.0.1 and a "
           "proxy or tunnel with authentication (--insecure, for a server without --identity, permits it)";
  if (!options.identity.empty() && options.insecure)
    return "--insecure is only for servers without --identity";
  return "";
}

void warn_about(const ListenOptions& options, const Log& log) {
  if (options.insecure)
    log(LogLine::warning("--insecure: all traffic is in plain text, and peers are not authenticated"));
}

}  // namespace gradwire
