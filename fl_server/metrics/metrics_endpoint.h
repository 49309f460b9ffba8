// An endpoint for a server's metrics: a file in its folder and, if requested, an HTTP server.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/log.h"
#include "fl_server/metrics/exposition.h"
#include "fl_server/net/server_metrics.h"

namespace gradwire {

// The metrics file in the server's folder, in the format of Prometheus. After the server has ended, the file
// holds the last values.
inline constexpr const char* kMetricsFileName = "metrics.prom";

class MetricsEndpoint {
 public:
  struct MetricsEndpointOptions {
    std::filesystem::path state;  // the server's folder; if empty, no file is written
    std::string listen;           // HOST:PORT for http://HOST:PORT/metrics; if empty, no HTTP server
    Log log;                      // may be empty
    MetricsSource source = MetricsSource::kServer;
  };

  // The server metrics must outlive this object. Throws std::invalid_argument or std::runtime_error (one
  // line) if it cannot listen. Failing to write the file is not an error; the run continues.
  MetricsEndpoint(const ServerMetrics& server_metrics, const MetricsEndpointOptions& options);
  ~MetricsEndpoint();  // writes the file a last time
  MetricsEndpoint(const MetricsEndpoint&) = delete;
  MetricsEndpoint& operator=(const MetricsEndpoint&) = delete;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradwire
