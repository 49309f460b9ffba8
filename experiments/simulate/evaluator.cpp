#include "experiments/simulate/evaluator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "compressors/norms.h"

namespace gradwire {

template <class Real>
Evaluator<Real>::Evaluator(const Population<Real>& clients, ThreadPool& pool,
                           std::vector<MovableOracle<Real>*> oracles, std::size_t memory_bytes)
    : n_(clients.clients()),
      d_(oracles.at(0)->dim()),
      pool_(pool),
      remembers_(n_ * (d_ + 1) * sizeof(Real) <= memory_bytes) {
  for (MovableOracle<Real>* oracle : oracles) workers_.push_back({oracle, {}});
}

template <class Real>
Uplink<Real> Evaluator<Real>::answer(ClientId client, View<Real> x, MovableOracle<Real>& oracle,
                                     Out<Real> gradient) const {
  oracle.move_to(client);
  Uplink<Real> up;
  up.client = client;
  up.loss = oracle.loss_and_gradient(x, {}, gradient);
  up.parts = {Payload<Real>::dense(gradient)};
  if (!std::isfinite(up.loss) || !all_finite<Real>(gradient)) {
    up.answer = Answer::kNotFinite;
  } else if (const auto score = oracle.score(x)) {
    up.correct = score->correct;
    up.tested = score->tested;
  }
  return up;
}

template <class Real>
void Evaluator<Real>::evaluate(View<Real> x, Evaluation<Real>& to) {
  if (remembers_) {
    x_.assign(x.begin(), x.end());
    gradients_.resize(n_ * d_);
    losses_.resize(n_);
  }
  const std::size_t blocks = (n_ + kClientsOfBlock - 1) / kClientsOfBlock;
  if (pool_.size() == 1 || blocks >= std::size_t{2} * pool_.size()) {
    by_blocks(x, to);
  } else {
    by_clients(x, to);
  }
}

// A thread takes a block of clients after the other; the sums of blocks are added in their order.
template <class Real>
void Evaluator<Real>::by_blocks(View<Real> x, Evaluation<Real>& to) {
  const std::size_t blocks = (n_ + kClientsOfBlock - 1) / kClientsOfBlock;
  std::vector<BlockSum<Real>> sums(std::min<std::size_t>(blocks, std::size_t{4} * pool_.size()),
                                   BlockSum<Real>(to.setup()));
  for (std::size_t first = 0; first < blocks; first += sums.size()) {
    const std::size_t count = std::min(sums.size(), blocks - first);
    pool_.for_each(count, [&](unsigned thread, std::size_t k) {
      Worker& worker = workers_[thread];
      sums[k].clear();
      worker.gradient.resize(d_);
      const std::size_t begin = (first + k) * kClientsOfBlock;
      for (std::size_t i = begin; i < std::min<std::size_t>(n_, begin + kClientsOfBlock); ++i) {
        const Out<Real> gradient = remembers_ ? Out<Real>(gradients_).subspan(i * d_, d_) : worker.gradient;
        const Uplink<Real> up = answer(static_cast<ClientId>(i), x, *worker.oracle, gradient);
        const bool good = up.answer == Answer::kReply;
        if (remembers_)
          losses_[i] = good ? static_cast<Real>(up.loss) : std::numeric_limits<Real>::quiet_NaN();
        if (good) sums[k].add(up);
      }
    });
    for (std::size_t k = 0; k < count; ++k) to.add(sums[k]);
  }
}

// The threads share the clients of a window, whose answers are added in the order of clients.
template <class Real>
void Evaluator<Real>::by_clients(View<Real> x, Evaluation<Real>& to) {
  std::vector<ClientId> window;
  std::vector<Uplink<Real>> answers;
  for (ClientId next = 0; next < n_;) {
    const ClientId first = next;
    next = to.next_window(next, window);
    if (!remembers_) gradients_.resize(window.size() * d_);
    answers.resize(window.size());
    pool_.for_each(window.size(), [&](unsigned thread, std::size_t k) {
      const std::size_t place = remembers_ ? window[k] : window[k] - first;
      answers[k] =
          answer(window[k], x, *workers_[thread].oracle, Out<Real>(gradients_).subspan(place * d_, d_));
    });
    for (const Uplink<Real>& up : answers) {
      const bool good = up.answer == Answer::kReply;
      if (remembers_)
        losses_[up.client] = good ? static_cast<Real>(up.loss) : std::numeric_limits<Real>::quiet_NaN();
      if (good) to.add(up);
    }
  }
}

template <class Real>
Evaluated<Real> Evaluator<Real>::known(ClientId client) const {
  if (x_.empty() || std::isnan(losses_[client])) return {};
  return {x_, View<Real>(gradients_).subspan(client * d_, d_), losses_[client]};
}

template class Evaluator<float>;
template class Evaluator<double>;

}  // namespace gradwire
