#include "fl_server/metrics/metrics_endpoint.h"

#include <array>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <optional>
#include <string_view>
#include <sys/resource.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

#include "fl_server/metrics/http_server.h"
#include "report/build_info.h"
#include "storage/folder_disk.h"

namespace gradwire {
namespace {

constexpr std::chrono::seconds kWriteEvery{1};

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double count_files(const std::filesystem::path& folder) {
  double count = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error))
    ++count;
  return count;
}

ProcessMetrics process_metrics(double started_seconds) {
  ProcessMetrics metrics;
  metrics.build = build_info();
  metrics.started_seconds = started_seconds;
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0)
    metrics.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  double pages = 0, resident = 0;
  if (std::ifstream("/proc/self/statm") >> pages >> resident)
    metrics.resident_bytes = resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
  metrics.open_descriptors = count_files("/proc/self/fd");
  return metrics;
}

}  // namespace

class MetricsEndpoint::Impl {
 public:
  Impl(const ServerMetrics& server_metrics, const MetricsEndpointOptions& options)
      : server_metrics_(server_metrics), source_(options.source) {
    if (!options.state.empty()) disk_.emplace(options.state);
    if (!options.listen.empty()) {
      http_server_ = serve_http(options.listen, {{"/metrics", [this] {
                                                    return HttpPage{kExpositionType, text()};
                                                  }}});
      if (options.log) options.log("metrics for Prometheus: http://" + http_server_->address() + "/metrics");
    }
    write();
    thread_ = std::thread([this] { work(); });
  }
  ~Impl() {
    {
      const std::scoped_lock lock(mutex_);
      stop_ = true;
    }
    stopped_.notify_all();
    thread_.join();
    write();
  }

 private:
  std::string text() const { return exposition(server_metrics_, process_metrics(started_), source_); }

  void work() {
    std::unique_lock lock(mutex_);
    while (!stopped_.wait_for(lock, kWriteEvery, [this] { return stop_; })) {
      lock.unlock();
      write();
      if (http_server_) http_server_->check_time();
      lock.lock();
    }
  }

  // Writes the file in one atomic step, so readers never see a part. Does not sync it: after a loss of power
  // the values have no use.
  void write() {
    if (!disk_) return;
    const std::string name = kMetricsFileName, fresh = name + ".new", metrics = text();
    const std::array<std::string_view, 1> segments{metrics};
    if (disk_->write(fresh, segments)) (void)disk_->rename(fresh, name);
  }

  const ServerMetrics& server_metrics_;
  const MetricsSource source_;
  const double started_ =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  std::optional<FolderDisk> disk_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::unique_ptr<HttpServer> http_server_;
  std::thread thread_;
};

MetricsEndpoint::MetricsEndpoint(const ServerMetrics& server_metrics, const MetricsEndpointOptions& options)
    : impl_(std::make_unique<Impl>(server_metrics, options)) {}
MetricsEndpoint::~MetricsEndpoint() = default;

}  // namespace gradwire
