// Clients in this process that exist only while they work: each thread has one slot, which takes the state of
// one client after the other. Nothing is lost or late: what a client answers is permanent at once. Copies no
// message; nothing is encoded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "algorithms/algorithms.h"
#include "engine/client_objectives.h"
#include "mpi/rank_communicator.h"
#include "rounds/evaluation.h"
#include "rounds/transport.h"
#include "simulation/rank_round.h"

namespace gradwire {

struct ParallelSimulationOptions {
  unsigned threads = 1;
  // The gradients of an evaluation are remembered, for algorithms that need them at the same point, if those
  // of all clients take no more.
  std::size_t evaluation_bytes = std::size_t{256} << 20;
};

// Where ranks share the clients: of this process.
template <class Real>
struct RankBinding {
  std::shared_ptr<RankCommunicator<Real>>
      communicator;                // RunContext::communicator, too; null: all clients are here
  RankSignals* signals = nullptr;  // outlives the clients
};

template <class Real>
class ParallelSimulation final : public Transport<Real>, public BatchTransport<Real> {
 public:
  // REQUIRES: one function per client; the algorithm is synchronous, and uses all replies of each round
  // (ServerAlgorithm::may_refuse() is false, the quorum is 1).
  ParallelSimulation(std::shared_ptr<const RunContext<Real>> run_context,
                     std::shared_ptr<const ClientObjectives<Real>> functions,
                     const ParallelSimulationOptions& options, RankBinding<Real> binding = {});
  ~ParallelSimulation() override;

  typename BatchTransport<Real>::BatchReplies ask(
      const typename BatchTransport<Real>::BatchRequest& batch) override;
  BatchTransport<Real>* batch_transport() override { return this; }
  // One client, which answers before this returns.
  std::uint64_t send(ClientId client, const Request<Real>& request) override;
  const Event<Real>& next(double deadline) override;
  double now() const override;

  // Of all rounds so far: the seconds of that work which threads share. The rest of a round is serial.
  double shared_seconds() const;

  // For LoopHooks::evaluate: asks the functions, not the clients; of those that are here.
  void evaluate(View<Real> x, Evaluation<Real>& to);

  // The state of all clients, or of those that are here. To be called between rounds; `committed`: by client,
  // as the server knows it.
  std::string save_clients(std::span<const std::uint64_t> committed);
  // Takes what save_clients() gave for the same clients. REQUIRES: no client was asked yet. False: the bytes
  // are not of this run.
  bool load_clients(std::string_view bytes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// What save_clients() gave for all clients, cut where those of the next rank begin; `ends`: of their ranges,
// ascending. The rest belongs to the last one.
std::vector<std::string_view> cut_clients(std::string_view saved, std::span<const ClientId> ends);

}  // namespace gradwire
