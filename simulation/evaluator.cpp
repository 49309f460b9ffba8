#include "simulation/evaluator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "compressors/norms.h"

namespace gradwire {
namespace {

// Clients of a block, which a thread takes at once. A block is a subtree of the tree over the clients.
constexpr std::size_t kClientsOfBlock = 1024;

}  // namespace

template <class Real>
Evaluator<Real>::Evaluator(ClientRange mine, ThreadPool& pool, std::vector<RebindableOracle<Real>*> oracles,
                           std::size_t memory_bytes)
    : mine_(mine),
      d_(oracles.at(0)->dim()),
      pool_(pool),
      remembers_(mine.size() * (d_ + 1) * sizeof(Real) <= memory_bytes) {
  for (RebindableOracle<Real>* oracle : oracles) workers_.push_back({oracle, {}});
}

template <class Real>
Uplink<Real> Evaluator<Real>::answer(ClientId client, View<Real> x, RebindableOracle<Real>& oracle,
                                     const Evaluation<Real>& to, Out<Real> gradient) const {
  oracle.bind(client);
  Uplink<Real> up;
  up.client = client;
  up.loss = gradient.empty() ? oracle.loss(x, {}) : oracle.loss_and_gradient(x, {}, gradient);
  if (to.has_gradient()) up.parts = {Payload<Real>::dense(gradient)};
  if (!std::isfinite(up.loss) || (to.has_gradient() && !all_finite<Real>(gradient))) {
    up.status = ReplyStatus::kNotFinite;
  } else if (const auto score = to.run_context().counts_correct ? oracle.score(x) : std::nullopt) {
    up.correct = score->correct;
    up.tested = score->tested;
  }
  return up;
}

template <class Real>
void Evaluator<Real>::evaluate(View<Real> x, Evaluation<Real>& to) {
  x_.clear();
  if (remembers_ && wants_gradients(to)) {
    x_.assign(x.begin(), x.end());
    gradients_.resize(mine_.size() * d_);
    losses_.assign(mine_.size(), std::numeric_limits<Real>::quiet_NaN());
  }
  if (pool_.size() == 1 || mine_.size() / kClientsOfBlock >= 2 * pool_.size()) {
    by_blocks(x, to);
  } else {
    by_clients(x, to);
  }
}

// Gives threads one block after another. Blocks are subtrees, and are added in their order.
template <class Real>
void Evaluator<Real>::by_blocks(View<Real> x, Evaluation<Real>& to) {
  const std::size_t begin = mine_.first / kClientsOfBlock;
  const std::size_t end = (std::size_t{mine_.end} + kClientsOfBlock - 1) / kClientsOfBlock;
  std::vector<EvaluationSum<Real>> sums(std::min<std::size_t>(end - begin, std::size_t{2} * pool_.size()),
                                        EvaluationSum<Real>(to.run_context(), to.kind(), to.kept()));
  const bool has_gradients = wants_gradients(to);
  for (std::size_t first = begin; first < end; first += sums.size()) {
    const std::size_t count = std::min(sums.size(), end - first);
    pool_.for_each(count, [&](unsigned thread, std::size_t k) {
      EvaluationWorker& worker = workers_[thread];
      sums[k].clear();
      worker.gradient.resize(has_gradients ? d_ : 0);
      const std::size_t block = (first + k) * kClientsOfBlock;
      for (std::size_t i = std::max<std::size_t>(block, mine_.first);
           i < std::min<std::size_t>(block + kClientsOfBlock, mine_.end); ++i) {
        const auto client = static_cast<ClientId>(i);
        if (!to.asks(client)) continue;
        const Out<Real> gradient =
            x_.empty() ? Out<Real>(worker.gradient) : Out<Real>(gradients_).subspan(place(client) * d_, d_);
        const Uplink<Real> up = answer(client, x, *worker.oracle, to, gradient);
        note(up);
        if (up.status == ReplyStatus::kReply) sums[k].add(up);
      }
    });
    for (std::size_t k = 0; k < count; ++k) to.add(sums[k]);
  }
}

template <class Real>
void Evaluator<Real>::note(const Uplink<Real>& up) {
  if (x_.empty()) return;
  const bool good = up.status == ReplyStatus::kReply;
  losses_[place(up.client)] = good ? static_cast<Real>(up.loss) : std::numeric_limits<Real>::quiet_NaN();
}

// Shares the clients of a window among the threads. Their answers are added in the order of clients.
template <class Real>
void Evaluator<Real>::by_clients(View<Real> x, Evaluation<Real>& to) {
  std::vector<ClientId> window;
  std::vector<Uplink<Real>> answers;
  const bool has_gradients = wants_gradients(to);
  for (ClientId next = mine_.first; next < mine_.end;) {
    next = to.next_window(next, window);
    if (x_.empty()) gradients_.resize(has_gradients ? window.size() * d_ : 0);
    answers.resize(window.size());
    pool_.for_each(window.size(), [&](unsigned thread, std::size_t k) {
      const std::size_t row = x_.empty() ? k : place(window[k]);
      const Out<Real> gradient = has_gradients ? Out<Real>(gradients_).subspan(row * d_, d_) : Out<Real>();
      answers[k] = answer(window[k], x, *workers_[thread].oracle, to, gradient);
    });
    for (const Uplink<Real>& up : answers) {
      note(up);
      if (up.status == ReplyStatus::kReply) to.add(up);
    }
  }
}

template <class Real>
Evaluated<Real> Evaluator<Real>::known(ClientId client) const {
  if (x_.empty() || std::isnan(losses_[place(client)])) return {};
  return {x_, View<Real>(gradients_).subspan(place(client) * d_, d_), losses_[place(client)]};
}

template class Evaluator<float>;
template class Evaluator<double>;

}  // namespace gradwire
