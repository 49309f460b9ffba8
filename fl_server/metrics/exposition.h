// Metrics in the text format of Prometheus (https://prometheus.io/docs/instrumenting/exposition_formats/,
// version 0.0.4), and a reader of it. Pure: no I/O.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fl_server/net/server_metrics.h"

namespace gradwire {

inline constexpr const char* kExpositionType = "text/plain; version=0.0.4; charset=utf-8";

struct ProcessMetrics {
  std::string build;            // from build_info()
  double started_seconds = 0;   // since 1970
  double cpu_seconds = 0;       // used so far
  double resident_bytes = 0;    // memory
  double open_descriptors = 0;  // files and sockets
};

enum class MetricsSource { kServer, kRelay };  // a relay has clients and connections, but no run

// Returns all metrics, each with a help line.
std::string exposition(const ServerMetrics& server_metrics, const ProcessMetrics& process,
                       MetricsSource source = MetricsSource::kServer);

// A metric with its labels, as in `gradwire_frames_total{direction="sent",kind="Round"}`, and its value.
using Sample = std::pair<std::string, double>;

// Returns the samples of such a text, in order. Skips damaged lines.
std::vector<Sample> samples_of(std::string_view text);

}  // namespace gradwire
