// Clients in this process on a virtual clock: a request takes a client as long as its speed says, and the
// next reply is that of whoever is done first, of several at once that of the lowest number. Messages take no
// time. What is superseded before it is done is computed only where the client keeps state, which may depend
// on it, or where other threads had nothing else to do. No result depends on a wall clock, or on the number
// of threads.
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
  // Seconds that client i takes for the request of a request id: 0 or more; infinity: it never answers. A
  // client that takes no time is done before all others, again and again.
  std::function<double(ClientId i, std::uint64_t request_id)> seconds;
  unsigned threads = 1;
  bool encoded = false;  // pass every message through the codec
  Faults faults = {};    // but for shuffle: the speeds give the order
  ZstdMode zstd = {};
  // With several threads, answers are computed ahead if this many take at least so long, wall time.
  double worth_threads_seconds = 100e-6;
};

template <class Real>
class EventSimulation final : public Transport<Real> {
 public:
  // `oracles`: one per client; they must outlive this.
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

  // LoopHooks::evaluate: takes no virtual time.
  void evaluate(View<Real> x, Evaluation<Real>& to);

  std::uint64_t computed() const;  // answers so far, those computed ahead included

  // Returns the clock, the state of all clients, after each has learned which of its request ids was
  // committed, what they are at work on, and when they will be done.
  std::string save_clients(std::span<const std::uint64_t> committed);
  // Continues from there. Returns false if the bytes are not saved clients of this run.
  // REQUIRES: no client was asked yet.
  bool load_clients(std::string_view bytes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradwire
