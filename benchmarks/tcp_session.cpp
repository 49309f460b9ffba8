#include "benchmarks/tcp_session.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "benchmarks/slow_link.h"
#include "experiments/cli/support/child_process.h"
#include "experiments/cli/support/scratch_folder.h"

namespace gradwire::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kSessionDeadline{300};

std::string read_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Returns the number after the first `name` in `text`, or 0 if there is none.
double number_after(const std::string& text, const std::string& name) {
  std::size_t at = text.find(name);
  if (at == std::string::npos) return 0;
  at = text.find_first_of("0123456789", at + name.size());
  if (at == std::string::npos) return 0;
  double number = 0;
  std::from_chars(text.data() + at, text.data() + text.size(), number);
  return number;
}

class BenchSession {
 public:
  BenchSession(const std::filesystem::path& programs, const std::string& toml, std::uint32_t clients,
               Watch watch, const std::string& source, double link_bytes_per_second)
      : programs_(programs), watch_(watch), deadline_(Clock::now() + kSessionDeadline) {
    const auto experiment = folder_.path() / "bench.toml";
    std::ofstream(experiment) << toml;
    start("server", "gradwire-server",
          {experiment.string(), "--listen", "127.0.0.1:0", "--state", state().string(), "--quiet"});
    const auto address = state() / "address";
    while (!std::filesystem::exists(address)) {
      if (server().ended()) fail(server());
      pause();
    }
    std::string where = read_file(address);
    where.erase(where.find_last_not_of('\n') + 1);
    if (link_bytes_per_second > 0) where = link_.emplace(where, link_bytes_per_second).address();
    for (std::uint32_t i = 0; i < clients; ++i) {
      const std::string part = source + "#" + std::to_string(i) + "/" + std::to_string(clients);
      start("client " + std::to_string(i), "gradwire-client", {"--server", where, "--data", part, "--quiet"});
    }
  }

  TcpFigures finish() {
    peaks_.resize(processes_.size());
    while (!all_ended()) pause();
    TcpFigures figures;
    figures.seconds = number_after(read_file(state() / "summary.json"), "\n  \"seconds\":");
    figures.server_peak_bytes = peaks_.front();
    figures.client_peak_bytes.assign(peaks_.begin() + 1, peaks_.end());
    return figures;
  }

 private:
  std::filesystem::path state() const { return folder_.path() / "state"; }
  ChildProcess& server() { return processes_.front(); }

  void start(const std::string& role, const std::string& program, const std::vector<std::string>& arguments) {
    processes_.emplace_back(role, programs_ / program, arguments, folder_.path() / (role + ".log"));
  }
  bool all_ended() {
    bool all = true;
    for (std::size_t k = 0; k < processes_.size(); ++k) {
      if (watch_ == Watch::kMemory) peaks_[k] = std::max(peaks_[k], processes_[k].peak_bytes());
      const std::optional<int> code = processes_[k].ended();
      if (code && *code != 0) fail(processes_[k]);
      all = all && code;
    }
    return all;
  }
  void pause() const {
    if (Clock::now() > deadline_) throw std::runtime_error("the processes did not end in time");
    std::this_thread::sleep_for(watch_ == Watch::kMemory ? std::chrono::milliseconds(2)
                                                         : std::chrono::milliseconds(20));
  }
  [[noreturn]] static void fail(const ChildProcess& process) {
    throw std::runtime_error("the " + process.role() + " ended early: " + process.last_line());
  }

  std::filesystem::path programs_;
  Watch watch_;
  Clock::time_point deadline_;
  ScratchFolder folder_;
  std::optional<SlowLink> link_;
  // the server, then the clients; they end before the folder is removed
  std::vector<ChildProcess> processes_;
  std::vector<std::uint64_t> peaks_;
};

}  // namespace

TcpFigures run_session(const std::filesystem::path& programs, const std::string& toml, std::uint32_t clients,
                       Watch watch, const std::string& source, double link_bytes_per_second) {
  return BenchSession(programs, toml, clients, watch, source, link_bytes_per_second).finish();
}

std::filesystem::path find_programs(const std::filesystem::path& given) {
  std::error_code error;
  const std::filesystem::path folder =
      !given.empty() ? given : std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  const bool there = std::filesystem::exists(folder / "gradwire-server", error) &&
                     std::filesystem::exists(folder / "gradwire-client", error);
  return there ? folder : std::filesystem::path();
}

}  // namespace gradwire::bench
