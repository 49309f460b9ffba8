// f, grad f and the accuracy of all clients of a simulation at one point, by threads.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/population.h"
#include "experiments/support/thread_pool.h"
#include "rounds/evaluation.h"
#include "rounds/memo_oracle.h"

namespace gradwire {

template <class Real>
class Evaluator {
 public:
  // Remembers the gradients of all clients, for methods that need them at the same point, if they take at
  // most `memory_bytes`. `oracles`: one for each thread of the pool; all must outlive this.
  Evaluator(const Population<Real>& clients, ThreadPool& pool, std::vector<MovableOracle<Real>*> oracles,
            std::size_t memory_bytes);

  // Adds the answers of all clients whose loss and gradient are finite. The bits do not depend on the
  // threads.
  void evaluate(View<Real> x, Evaluation<Real>& to);

  // What the last evaluation found of the client. Views that stay until the next evaluation.
  Evaluated<Real> known(ClientId client) const;

 private:
  struct Worker {
    MovableOracle<Real>* oracle;
    Vec<Real> gradient;
  };

  void by_blocks(View<Real> x, Evaluation<Real>& to);
  void by_clients(View<Real> x, Evaluation<Real>& to);
  // Writes the gradient, shape (d).
  Uplink<Real> answer(ClientId client, View<Real> x, MovableOracle<Real>& oracle, Out<Real> gradient) const;

  const std::uint32_t n_;
  const std::size_t d_;
  ThreadPool& pool_;
  std::vector<Worker> workers_;
  const bool remembers_;
  Vec<Real> x_;          // empty: nothing was evaluated
  Vec<Real> gradients_;  // shape (n, d) where they are remembered, else of a window of clients
  Vec<Real> losses_;     // shape (n); nan: not finite
};

}  // namespace gradwire
