// Clients in this process: threads, a virtual clock, and seeded faults. Copies no payload; with `encoded`,
// every message passes through the codec instead.
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
#include "simulation/faults.h"

namespace gradwire {

struct FaultSimulationOptions {
  unsigned threads = 1;
  bool encoded = false;  // pass every message through the codec
  Faults faults = {};
  // Replies arrive in an order drawn from the seed, as with faults.shuffle. For rounds that end before all
  // have answered: otherwise they would always miss the clients with the last numbers.
  bool draw_arrival = false;
  ZstdMode zstd = {};
  // If the runtimes of all clients, or their last evaluations, would take more than this, memory is freed
  // after each request: a client that keeps no state lends its runtime to the client that is asked next, and
  // evaluations are not kept. No bit of a result depends on it. Not with faults.
  std::size_t runtime_bytes = std::size_t{64} << 20;
  std::size_t evaluation_bytes = std::size_t{512} << 20;
};

template <class Real>
class FaultSimulation final : public Transport<Real> {
 public:
  // `oracles`: one per client; they must outlive this.
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

  // For LoopHooks::evaluate: asks the functions, not the clients.
  void evaluate(View<Real> x, Evaluation<Real>& to);

  ClientRuntime<Real>& runtime(ClientId client);  // for tests and tools

  // The state of all clients, after each has learned which of its request ids was committed. To be called
  // between rounds.
  std::string save_clients(std::span<const std::uint64_t> committed);
  // REQUIRES: no client was asked yet. False: the bytes are not saved clients of this run.
  bool load_clients(std::string_view bytes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradwire
