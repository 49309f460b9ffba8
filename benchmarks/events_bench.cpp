// Benchmarks of asynchronous algorithms on the virtual clock in this process: all costs except the gradient.
#include <algorithm>
#include <cstring>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/benchmarks.h"
#include "benchmarks/workloads.h"
#include "config/client_latency.h"
#include "simulation/event_simulation.h"

namespace gradwire::bench {
namespace {

constexpr std::size_t kEventDim = 10;
constexpr std::uint32_t kEventClients = 1000;

// An oracle with the gradient of ||x||^2 / 2.
class CopyOracle final : public Oracle<double> {
 public:
  std::size_t dim() const override { return kEventDim; }
  std::size_t sample_count() const override { return 1; }
  double loss_and_gradient(std::span<const double> x, Batch, std::span<double> gradient) override {
    std::memcpy(gradient.data(), x.data(), kEventDim * sizeof(double));
    return x[0];
  }
};

AlgorithmSpec asynchronous(const std::string& name, Options parameters) {
  AlgorithmSpec spec;
  spec.name = name;
  spec.step_size = "1e-6";
  spec.parameters = std::move(parameters);
  return spec;
}

// A run on the virtual clock. Each call of run() continues where the last one ended.
class EventRun {
 public:
  EventRun(const AlgorithmSpec& spec, const std::string& speeds)
      : run_context_(make_run_context(spec, kEventClients, std::vector<double>(kEventDim, 1))),
        server_(make_server<double>(run_context_)),
        clients_(run_context_, std::vector<Oracle<double>*>(kEventClients, &oracle_), options(speeds)) {}
  void run(std::uint32_t events) {
    RoundLimits limits;
    limits.rounds = progress_.round + events;
    limits.evaluate_every = 0;
    limits.keep_clients = true;
    limits.deadline_seconds = 1e300;
    run_rounds<double>(*server_, traits_of(*run_context_), *run_context_, clients_, progress_, limits, {});
  }
  View<double> model() const { return server_->model(); }

 private:
  static EventSimulationOptions options(const std::string& speeds) {
    EventSimulationOptions options;
    options.seconds = [seconds = parse_client_latency(speeds)](ClientId i, std::uint64_t request_id) {
      return seconds.of(1, i, request_id);
    };
    return options;
  }

  CopyOracle oracle_;
  std::shared_ptr<const RunContext<double>> run_context_;
  std::unique_ptr<ServerAlgorithm<double>> server_;
  EventSimulation<double> clients_;
  RunProgress progress_;
};

// ASGD over a queue of events, in a short version without the framework.
class BareEvents {
 public:
  explicit BareEvents(const std::string& speeds)
      : seconds_(parse_client_latency(speeds)),
        x_(kEventDim, 1),
        gradient_(kEventDim),
        points_(kEventClients, x_) {
    for (ClientId i = 0; i < kEventClients; ++i) queue_.emplace(seconds_.of(1, i, ++request_id_), i);
  }
  void run(std::uint32_t events) {
    for (std::uint32_t k = 0; k < events; ++k) {
      const auto [now, i] = queue_.top();
      queue_.pop();
      oracle_.loss_and_gradient(points_[i], {}, gradient_);
      for (std::size_t j = 0; j < kEventDim; ++j) x_[j] -= 1e-6 * gradient_[j];
      points_[i] = x_;
      queue_.emplace(now + seconds_.of(1, i, ++request_id_), i);
    }
  }
  std::span<const double> x() const { return x_; }

 private:
  using BareEvent = std::pair<double, ClientId>;
  CopyOracle oracle_;
  ClientLatency seconds_;
  std::vector<double> x_, gradient_;
  std::vector<std::vector<double>> points_;
  std::priority_queue<BareEvent, std::vector<BareEvent>, std::greater<>> queue_;
  std::uint64_t request_id_ = 0;
};

void events_row(Bench& bench, const AlgorithmSpec& spec, const std::string& speeds) {
  const std::uint32_t events = bench.size(500'000u, 2'000u);
  EventRun run(spec, speeds);
  BareEvents bare(speeds);
  run.run(events / 4);  // creates the clients, which happens at their first request
  bare.run(events / 4);
  const auto series = interleave(bench.repeats(7), {[&] { return seconds_of([&] { run.run(events); }); },
                                                    [&] { return seconds_of([&] { bare.run(events); }); }});
  bench.keep_all(run.model());
  bench.keep_all(bare.x());
  Row row;
  row.name = "rounds/events " + spec.name + " " + speeds;
  row.value = series[0].times(1e6 / events);
  row.unit = "us/event";
  row.versus = {"bare ASGD over a queue", series[1].times(1e6 / events)};
  row.target = {Target::Of::kValue, 2};
  bench.row(row);
}

}  // namespace

void rounds_events(Bench& bench) {
  events_row(bench, asynchronous("asgd", {}), "sqrt");
  events_row(bench, asynchronous("ringmaster", {{"delay_threshold", "4000"}}), "sqrt");
  events_row(bench, asynchronous("rennala", {}), "sqrt");
  events_row(bench, asynchronous("mindflayer", {{"trials", "4"}, {"allotted_seconds", "2"}}), "lognormal:1");
  events_row(bench, asynchronous("fedbuff", {{"local_step_size", "1e-6"}}), "sqrt");
}

}  // namespace gradwire::bench
