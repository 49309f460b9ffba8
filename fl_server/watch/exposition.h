// Counts as text that Prometheus reads (https://prometheus.io/docs/instrumenting/exposition_formats/, version
// 0.0.4), and back. Pure: no I/O.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fl_server/net/server_metrics.h"

namespace gradwire {

inline constexpr const char* kExpositionType = "text/plain; version=0.0.4; charset=utf-8";

struct ProcessSeen {
  std::string build;            // of build_info()
  double started_seconds = 0;   // since 1970
  double cpu_seconds = 0;       // used so far
  double resident_bytes = 0;    // memory
  double open_descriptors = 0;  // files and sockets
};

enum class Watched { kServer, kRelay };  // a relay has clients and connections, but no run

// All counts, each with a line that says what it is.
std::string exposition(const ServerMetrics& server_metrics, const ProcessSeen& process,
                       Watched watched = Watched::kServer);

// A name, with its labels as they stand (`gradwire_frames_total{direction="sent",kind="Round"}`), and a
// value.
using Sample = std::pair<std::string, double>;

// The samples of such a text, in its order. Leaves out lines that are damaged.
std::vector<Sample> samples_of(std::string_view text);

}  // namespace gradwire
