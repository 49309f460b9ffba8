// The options that a server and a relay share.
#pragma once

#include <string>
#include <vector>

#include "base/log.h"

namespace CLI {
class App;
}

namespace gradwire {

struct ListenOptions {
  std::string listen, state, identity, metrics;
  bool asks_metrics = false;  // --metrics, with or without an address
  bool insecure = false, json = false, quiet = false;

  // Returns the address for metrics, or "" if none were asked for.
  std::string metrics_address() const;
};

// The help texts of the options whose meaning differs between a server and a relay.
struct ListenHelp {
  const char *state, *identity;
};
// Adds the options to the command line, except --json. None is required. `to` must outlive it.
void add_options(CLI::App& app, ListenOptions& to, const ListenHelp& help);

// Adds options without help that exist only to be refused with a better error, those with a value and those
// without one.
void add_refused_options(CLI::App& app, const std::vector<std::string>& with_value,
                         const std::vector<std::string>& flags);

// Returns an error about options that conflict, or an empty string.
std::string trouble_of(const ListenOptions& options);

// Warns about --insecure.
void warn_about(const ListenOptions& options, const Log& log);

}  // namespace gradwire
