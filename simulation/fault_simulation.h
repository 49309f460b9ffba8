// Clients of one process on threads, with a virtual clock and seeded faults. Copies no payload; with
// `encoded`, every message passes through the codec instead.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/algorithms.h"
#include "engine/client_objectives.h"
#include "proto/wire/codec.h"
#include "rounds/evaluation.h"
#include "rounds/runtime.h"
#include "rounds/transport.h"
#include "simulation/client_loop.h"
#include "simulation/faults.h"

namespace gradwire {

struct FaultSimulationOptions {
  unsigned threads = 1;
  bool encoded = false;  // pass every message through the codec
  Faults faults = {};
  // Draws the order of arrival from the seed, as faults.shuffle does. Needed if rounds end before all clients
  // have answered: otherwise each round would lack the clients with the highest numbers.
  bool draw_arrival = false;
  ZstdMode zstd = {};
  // Limit of the memory for all runtimes; `evaluation_bytes` limits the memory for the last evaluations.
  // Above a limit, memory is freed after each request: a client without state gives its runtime to the next
  // client, and evaluations are not kept. Results do not change. Ignored with faults.
  std::size_t runtime_bytes = std::size_t{64} << 20;
  std::size_t evaluation_bytes = std::size_t{512} << 20;
  double worth_threads_seconds = kWorthThreadsSeconds;
};

template <class Real>
class FaultSimulation final : public Transport<Real> {
 public:
  // `oracles` has one oracle for each client; they must outlive this object.
  FaultSimulation(std::shared_ptr<const RunContext<Real>> run_context, std::vector<Oracle<Real>*> oracles,
                  const FaultSimulationOptions& options)
      : FaultSimulation(std::move(run_context), std::make_shared<OracleList<Real>>(std::move(oracles)),
                        options) {}
  FaultSimulation(std::shared_ptr<const RunContext<Real>> run_context,
                  std::shared_ptr<const ClientObjectives<Real>> functions,
                  const FaultSimulationOptions& options);
  ~FaultSimulation() override;

  std::uint64_t send(ClientId client, const Request<Real>& request) override;
  const Event<Real>& next(double deadline) override;
  double now() const override;

  // Implements LoopHooks::evaluate. Asks the objectives, not the clients.
  void evaluate(View<Real> x, Evaluation<Real>& to);

  ClientRuntime<Real>& runtime(ClientId client);  // for tests and tools

  // Returns the state of all clients. Each client first learns which of its requests was committed. REQUIRES:
  // no round is in progress.
  std::string save_clients(std::span<const std::uint64_t> committed);
  // Continues from saved bytes. Returns false if they are not from this run. REQUIRES: no client has been
  // asked yet.
  bool load_clients(std::string_view bytes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradwire
