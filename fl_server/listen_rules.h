// The options that a server and a relay share, and the rules between them.
#pragma once

#include <string>

#include "base/log.h"

namespace gradwire {

struct ListenOptions {
  std::string listen, state, identity, metrics;
  bool asks_metrics = false;  // --metrics, with or without an address
  bool insecure = false, json = false, quiet = false;

  // Returns the address for metrics, or "" if none were asked for.
  std::string metrics_address() const;
};

inline constexpr const char* kMetricsListen = "127.0.0.1:9700";  // of --metrics without an address

// Returns an error about options that conflict, or an empty string.
std::string trouble_of(const ListenOptions& options);

// Warns about --insecure.
void warn_about(const ListenOptions& options, const Log& log);

}  // namespace gradwire
