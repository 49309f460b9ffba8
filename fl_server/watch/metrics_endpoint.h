// Shows a server's counts while it works: as a file in its folder, and over HTTP where it is asked to.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/log.h"
#include "fl_server/net/server_metrics.h"
#include "fl_server/watch/exposition.h"

namespace gradwire {

// In the server's folder: all counts, in the format of Prometheus; of a server that ended, its last ones.
inline constexpr const char* kCountsName = "counts.prom";

class MetricsEndpoint {
 public:
  struct MetricsEndpointOptions {
    std::filesystem::path state;  // the server's folder; empty: no file is written
    std::string listen;           // HOST:PORT for http://HOST:PORT/metrics; empty: nothing listens
    Log log;                      // may be empty
    Watched watched = Watched::kServer;
  };

  // The server metrics must outlive it. Throws std::invalid_argument or std::runtime_error (one line) when it
  // cannot listen. A file that cannot be written is nobody's trouble: the run goes on.
  MetricsEndpoint(const ServerMetrics& server_metrics, const MetricsEndpointOptions& options);
  ~MetricsEndpoint();  // writes the file once more
  MetricsEndpoint(const MetricsEndpoint&) = delete;
  MetricsEndpoint& operator=(const MetricsEndpoint&) = delete;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradwire
