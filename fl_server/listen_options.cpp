#include "fl_server/listen_options.h"

#include <CLI/CLI.hpp>

#include "report/build_info.h"

namespace gradwire {

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

}  // namespace gradwire
