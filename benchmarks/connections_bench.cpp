// Benchmarks of many connections: the server's memory for each, and the time until all clients have returned
// after a restart.
#include <array>
#include <chrono>
#include <fstream>
#include <malloc.h>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>

#include "benchmarks/benchmarks.h"
#include "benchmarks/load_server.h"
#include "benchmarks/tcp_session.h"
#include "experiments/cli/support/child_process.h"

namespace gradwire::bench {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

std::string count_text(std::uint32_t clients, std::uint32_t wanted) {
  return std::to_string(clients) + " clients" + (clients < wanted ? ", limited by 'ulimit -Hn'" : "");
}

// Returns the resident memory of this process, after it returned its free memory to the system.
double resident_bytes() {
  ::malloc_trim(0);
  std::ifstream file("/proc/self/statm");
  double all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

// Returns the server's memory per client in bytes, at two times: when all clients have joined, and when each
// has answered one request.
std::array<double, 2> bytes_each(const Load& load) {
  const double before = resident_bytes();
  LoadServer server(load);
  server.begin();
  const double joined = resident_bytes();
  server.round();
  return {(joined - before) / load.clients, (resident_bytes() - before) / load.clients};
}

std::string restart_experiment(std::uint32_t clients) {
  return R"(name = "bench"
[problem]
kind = "quadratic"
dim = 10
[clients]
count = )" +
         std::to_string(clients) + R"(
[algorithm]
name = "gd"
step_size = 0.01
[run]
evaluate_every = 0
rounds = 1000000
)";
}

// gradwire-server, killed and restarted, with clients that reconnect by themselves.
class Restart {
 public:
  Restart(const std::filesystem::path& programs, std::uint32_t clients, milliseconds cap)
      : programs_(programs), clients_count_(clients) {
    std::ofstream(experiment()) << restart_experiment(clients);
    start("127.0.0.1:0");
    const auto file = state() / "address";
    wait_until([&] { return std::filesystem::exists(file); });
    std::ifstream(file) >> address_;
    LoadOptions options;
    options.server = address_;
    options.good = clients;
    options.dim = 10;
    options.back_off_cap = cap;
    clients_.emplace(options);
    wait_until([&] { return clients_->in_run() == clients_count_; });
  }

  // Returns the seconds from the start of the new server until the last client has returned.
  double seconds(milliseconds down) {
    server_.reset();  // kills it
    wait_until([&] { return clients_->in_run() == 0; });
    std::this_thread::sleep_for(down);
    const auto begun = Clock::now();
    start(address_);
    wait_until([&] { return clients_->in_run() == clients_count_; });
    return std::chrono::duration<double>(Clock::now() - begun).count();
  }

 private:
  std::filesystem::path state() const { return folder_.path() / "state"; }
  std::filesystem::path experiment() const { return folder_.path() / "bench.toml"; }

  void start(const std::string& address) {
    server_.emplace("server", programs_ / "gradwire-server",
                    std::vector<std::string>{experiment().string(), "--listen", address, "--state",
                                             state().string(), "--quiet"},
                    folder_.path() / "server.log");
  }
  template <class Done>
  void wait_until(Done done) {
    constexpr std::chrono::minutes kDeadline{5};
    for (const auto end = Clock::now() + kDeadline; !done();) {
      if (server_ && server_->ended())
        throw std::runtime_error("the server ended early: " + server_->last_line());
      if (clients_ && clients_->ended()) throw std::runtime_error("the clients ended early");
      if (Clock::now() > end) throw std::runtime_error("the clients did not return in time");
      std::this_thread::sleep_for(milliseconds(2));
    }
  }

  const std::filesystem::path programs_;
  const std::uint32_t clients_count_;
  const ScratchFolder folder_;
  std::string address_;
  std::optional<ChildProcess> server_;
  std::optional<LoadProcess> clients_;
};

}  // namespace

void tcp_connections(Bench& bench) {
  const std::uint32_t wanted = bench.size(9500u, 50u);
  const Certificates certificates;
  for (const bool tls : {false, true}) {
    Load load;
    load.clients = clients_up_to(wanted);
    load.dim = 1000;
    load.reply = LoadOptions::ReplyKind::kNothing;
    if (tls) load.certificates = certificates.folder();
    Row joined, asked;
    for (std::uint32_t k = 0; k < bench.repeats(2); ++k) {
      const auto bytes = bytes_each(load);
      joined.value.add(bytes[0] / 1e3);
      asked.value.add(bytes[1] / 1e3);
    }
    joined.name = tls ? "tcp/connections TLS" : "tcp/connections";
    joined.unit = asked.unit = "kB/connection";
    joined.target = asked.target = {Target::Of::kValue, tls ? 80.0 : 4.0};
    joined.note =
        "resident memory of a server whose clients have joined; " + count_text(load.clients, wanted);
    bench.row(joined);
    asked.name = joined.name + ", asked";
    asked.note = "the same after each has sent one empty reply";
    bench.row(asked);
  }
}

void tcp_restart(Bench& bench) {
  const std::filesystem::path programs = find_programs(bench.options().programs);
  if (programs.empty())
    return bench.skip("tcp/restart", "gradwire-server and gradwire-client are not next to this program");
  const std::uint32_t wanted = bench.size(10'000u, 20u), clients = clients_up_to(wanted);
  const milliseconds cap(bench.size(5000, 200)), down = 3 * cap;
  Restart restart(programs, clients, cap);
  Series seconds, caps;
  caps.add(1e-3 * static_cast<double>(cap.count()));
  for (std::uint32_t k = 0; k < bench.repeats(2); ++k) seconds.add(restart.seconds(down));
  Row row;
  row.name = "tcp/restart";
  row.value = seconds;
  row.unit = "s";
  row.versus = {"longest back-off", caps};
  row.target = {Target::Of::kRatio, 2};
  row.note = "from the start of gradwire-server until the last client is in the run again, " +
             std::to_string(down.count()) + " ms after it was killed; " + count_text(clients, wanted);
  bench.row(row);
}

}  // namespace gradwire::bench
