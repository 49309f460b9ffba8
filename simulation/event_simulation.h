// Clients of one process on a virtual clock. A client's speed gives the time that a request takes; messages
// take no time. The next reply comes from the client that finishes first; the lowest client number breaks
// ties. A superseded request is computed only if the client's state may depend on it, or ahead of time on an
// idle thread. No result depends on the wall clock or the number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/client_objectives.h"
#include "proto/wire/codec.h"
#include "rounds/evaluation.h"
#include "rounds/runtime.h"
#include "rounds/transport.h"
#include "simulation/faults.h"

namespace gradwire {

struct EventSimulationOptions {
  // Returns the seconds, 0 or more, that client i takes for a request. With infinity, the client never
  // answers. A client that always takes 0 seconds always finishes before the others.
  std::function<double(ClientId i, std::uint64_t request_id)> seconds;
  unsigned threads = 1;
  bool encoded = false;  // pass every message through the codec
  Faults faults = {};    // without shuffle, because the speeds give the order
  ZstdMode zstd = {};
  // With several threads, answers are computed ahead if a batch takes at least this much wall time.
  double worth_threads_seconds = 100e-6;
};

template <class Real>
class EventSimulation final : public Transport<Real> {
 public:
  // `oracles` has one oracle for each client; they must outlive this object.
  EventSimulation(std::shared_ptr<const RunContext<Real>> run_context, std::vector<Oracle<Real>*> oracles,
                  const EventSimulationOptions& options)
      : EventSimulation(std::move(run_context), std::make_shared<OracleList<Real>>(std::move(oracles)),
                        options) {}
  EventSimulation(std::shared_ptr<const RunContext<Real>> run_context,
                  std::shared_ptr<const ClientObjectives<Real>> functions,
                  const EventSimulationOptions& options);
  ~EventSimulation() override;

  std::uint64_t send(ClientId client, const Request<Real>& request) override;
  const Event<Real>& next(double deadline) override;
  double now() const override;

  // Implements LoopHooks::evaluate. Takes no virtual time.
  void evaluate(View<Real> x, Evaluation<Real>& to);

  std::uint64_t computed() const;  // answers so far, including those computed ahead

  // Returns the clock and the state of all clients: their current requests, and when they finish. Each client
  // first learns which of its requests was committed.
  std::string save_clients(std::span<const std::uint64_t> committed);
  // Continues from saved bytes. Returns false if they are not from this run. REQUIRES: no client has been
  // asked yet.
  bool load_clients(std::string_view bytes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradwire
