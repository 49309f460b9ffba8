// Computes f, grad f and the accuracy of all clients of a simulation at one point, on several threads.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/client_objectives.h"
#include "parallel/thread_pool.h"
#include "rounds/evaluation.h"
#include "rounds/memo_oracle.h"
#include "simulation/client_loop.h"

namespace gradwire {

template <class Real>
class Evaluator {
 public:
  // Makes an evaluator of the clients `mine`. It keeps their gradients if these take at most `memory_bytes`,
  // for algorithms that need them at the same point. `oracles` has one oracle for each thread of the pool.
  // `seconds_each` is an estimate of a client's time in the first evaluation. All arguments must outlive the
  // evaluator.
  Evaluator(ClientRange mine, ThreadPool& pool, std::vector<RebindableOracle<Real>*> oracles,
            std::size_t memory_bytes, double seconds_each = kUnknownSeconds);

  // Adds the answers of all clients of this process that the evaluation asks. Leaves out clients whose loss
  // or gradient is not finite. The bits do not depend on the threads.
  void evaluate(View<Real> x, Evaluation<Real>& to);

  // Returns the client's result in the last evaluation, or an empty one if it was not kept. Its views are
  // valid until the next evaluation.
  Evaluated<Real> known(ClientId client) const;

 private:
  struct EvaluationWorker {
    RebindableOracle<Real>* oracle;
    Vec<Real> gradient;  // shape (d); empty if `gradients_` has the memory, or if there are no gradients
  };
  // Some neighbouring blocks, which threads add up at the same time.
  struct Blocks;

  std::size_t clients_of_block() const;
  std::size_t blocks_at_once(std::size_t block_clients) const;
  void by_blocks(View<Real> x, Evaluation<Real>& to, Blocks& blocks);
  void by_clients(View<Real> x, Evaluation<Real>& to, Blocks& blocks);
  // Asks the client. The gradient views memory of `worker` or of `gradients_`.
  Uplink<Real> answer(ClientId client, View<Real> x, EvaluationWorker& worker, const Evaluation<Real>& to);
  // Returns true if gradients are computed at all.
  bool wants_gradients(const Evaluation<Real>& to) const {
    return to.has_gradient() || (remembers_ && reuses_gradients(to.run_context()));
  }

  std::size_t place(ClientId client) const { return client - mine_.first; }

  const ClientRange mine_;
  const std::size_t d_;
  ClientLoop loop_;
  const std::size_t all_threads_;
  std::size_t threads_ = 1;  // threads of the evaluation in progress
  std::vector<EvaluationWorker> workers_;
  const bool remembers_;
  Vec<Real> x_;          // point of the kept results; empty if nothing is kept
  Vec<Real> gradients_;  // shape (mine, d) if they are kept
  Vec<Real> losses_;     // shape (mine); NaN if not finite
};

}  // namespace gradwire
