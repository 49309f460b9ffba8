// The options that a server and a relay share, on the command line.
#pragma once

#include <string>
#include <vector>

#include "fl_server/listen_rules.h"

namespace CLI {
class App;
}

namespace gradwire {

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

}  // namespace gradwire
