// Clients of one process without faults. Each thread has one worker slot, which runs one client after another
// with that client's state. No message is lost, late, copied or encoded, and every answer is permanent at
// once.
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
#include "simulation/client_loop.h"
#include "simulation/rank_round.h"

namespace gradwire {

struct ParallelSimulationOptions {
  unsigned threads = 1;
  // Limit of the memory for all gradients of an evaluation. Within the limit they are kept, for algorithms
  // that need them at the same point.
  std::size_t evaluation_bytes = std::size_t{256} << 20;
  double worth_threads_seconds = kWorthThreadsSeconds;
  double seconds_each = kUnknownSeconds;  // estimate of a client's time in the first round
};

// The communicator and the signals of this process, if ranks share the clients.
template <class Real>
struct RankBinding {
  std::shared_ptr<RankCommunicator<Real>>
      communicator;                // same as RunContext::communicator; null if all clients are here
  RankSignals* signals = nullptr;  // must outlive the clients
};

template <class Real>
class ParallelSimulation final : public Transport<Real>, public BatchTransport<Real> {
 public:
  // REQUIRES: `functions` has one function for each client. The algorithm is synchronous.
  // ServerAlgorithm::may_refuse() is false and the quorum is 1, so each round uses all of its replies.
  ParallelSimulation(std::shared_ptr<const RunContext<Real>> run_context,
                     std::shared_ptr<const ClientObjectives<Real>> functions,
                     const ParallelSimulationOptions& options, RankBinding<Real> binding = {});
  ~ParallelSimulation() override;

  typename BatchTransport<Real>::BatchReplies ask(
      const typename BatchTransport<Real>::BatchRequest& batch) override;
  BatchTransport<Real>* batch_transport() override { return this; }
  // Asks one client, which answers before this returns.
  std::uint64_t send(ClientId client, const Request<Real>& request) override;
  const Event<Real>& next(double deadline) override;
  double now() const override;

  // Returns the seconds so far of the parts of rounds that threads share. The rest of a round is serial.
  double shared_seconds() const;

  // Implements LoopHooks::evaluate. Asks the objectives, not the clients, and only those of this process.
  void evaluate(View<Real> x, Evaluation<Real>& to);

  // Returns the state of the clients of this process. `committed` has, for each client, the last request that
  // the server committed. REQUIRES: no round is in progress.
  std::string save_clients(std::span<const std::uint64_t> committed);
  // Continues from the bytes that save_clients() returned for the same clients. Returns false if they are not
  // from this run. REQUIRES: no client has been asked yet.
  bool load_clients(std::string_view bytes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradwire
