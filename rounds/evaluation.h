#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "algorithms/support/context.h"
#include "algorithms/support/message.h"
#include "algorithms/support/tree_sum.h"
#include "rounds/round_loop.h"

namespace gradwire {

// Adds up the answers of clients to an evaluation along the tree over the clients (tree_sum.h): the same bits
// whoever adds up a subtree.
template <class Real>
class AnswerSum {
 public:
  // Of the clients that answer to this process, or of some of them.
  explicit AnswerSum(const Setup<Real>& setup) : setup_(&setup) { clear(); }

  void clear() {
    gradient_.begin_part(setup_->d, setup_->mine(), setup_->n);
    numbers_.begin_part(kNumbers, setup_->mine(), setup_->n);
  }
  static bool accepts(const Reply<Real>& up, const Setup<Real>& setup) {
    return up.parts.size() == 1 && up.parts[0].shape == Shape::kDense && up.parts[0].dim == setup.d;
  }
  // REQUIRES: accepts(up); ascending clients.
  void add(const Reply<Real>& up) {
    const double w = setup_->weights.empty() ? 1.0 / setup_->n : setup_->weights[up.client];
    gradient_.add(up.client, w, up.parts[0].values.data());
    const double numbers[kNumbers] = {w * up.loss, w, static_cast<double>(up.correct),
                                      static_cast<double>(up.tested), 1};
    numbers_.add(up.client, 1, numbers);
  }
  // The answers of a whole subtree, behind all that were added.
  void add(AnswerSum& subtree) {
    for (const auto& node : subtree.gradient_.nodes()) gradient_.add(node.client, 1, node.sum.data());
    for (const auto& node : subtree.numbers_.nodes()) numbers_.add(node.client, 1, node.sum.data());
  }

 protected:
  // Of the numbers that are no vector. Counts are exact up to 2^53.
  enum : std::size_t { kLoss, kWeight, kCorrect, kTested, kAnswered, kNumbers };

  const Setup<Real>* setup_;
  TreeSum<double> gradient_, numbers_;
};

// f, ||grad f||^2 and the accuracy at one point, from the clients' answers in client order.
template <class Real>
class Evaluation : public AnswerSum<Real> {
 public:
  using AnswerSum<Real>::AnswerSum;

  // Sets `cohort` to the clients to ask next, starting with `first`; returns the client after them. Their
  // gradients, and what a simulation keeps of each, take a bounded share of memory.
  ClientId next_window(ClientId first, std::vector<ClientId>& cohort) const {
    constexpr std::size_t kWindowBytes = 256 << 20;
    constexpr std::size_t kBytesBesideGradients = 8 << 10;
    const std::size_t window =
        std::max<std::size_t>(1, kWindowBytes / (setup_->d * sizeof(Real) + kBytesBesideGradients));
    const auto end = static_cast<ClientId>(std::min<std::size_t>(setup_->mine().end, first + window));
    cohort.clear();
    for (ClientId c = first; c < end; ++c) cohort.push_back(c);
    return end;
  }

  // All answers are there. Where processes share the clients, collective; nothing more may be added.
  void finish() {
    const auto total = [this](TreeSum<double>& tree) {
      if (setup_->group != nullptr) return setup_->group->sum(tree);
      const View<double> root = tree.sum();
      Vec<double> values(root.begin(), root.end());
      values.resize(tree.size());
      return values;
    };
    total_gradient_ = total(this->gradient_);
    total_ = total(this->numbers_);
  }

  const Setup<Real>& setup() const { return *setup_; }
  // REQUIRES from here on: finish().
  std::uint32_t answered() const { return static_cast<std::uint32_t>(total_[Base::kAnswered]); }
  double loss() const { return total_[Base::kLoss] / total_weight(); }
  double grad_norm_sq() const {
    double sum = 0;
    for (const double g : total_gradient_) sum += g * g;
    return sum / (total_weight() * total_weight());
  }
  std::optional<double> accuracy() const {
    if (total_[Base::kTested] == 0) return std::nullopt;
    return total_[Base::kCorrect] / total_[Base::kTested];
  }

 private:
  using Base = AnswerSum<Real>;
  using Base::setup_;

  // The weights sum to one up to rounding; they are scaled up only when a client did not answer.
  double total_weight() const { return answered() == setup_->n ? 1 : total_[Base::kWeight]; }

  Vec<double> total_gradient_, total_;
};

// Row k of the metrics.
template <class Real>
RoundRecord record_of(std::uint32_t k, const Evaluation<Real>& evaluation, const Totals& totals, double n,
                      double seconds) {
  RoundRecord record;
  record.round = k;
  record.loss = evaluation.loss();
  record.grad_norm_sq = evaluation.grad_norm_sq();
  record.accuracy = evaluation.accuracy();
  record.bits_up = totals.bits_up / n;
  record.bits_down = totals.bits_down / n;
  record.bits_up_paper = totals.bits_up_paper / n;
  record.bits_down_paper = totals.bits_down_paper / n;
  record.bytes_up = totals.bytes_up;
  record.bytes_down = totals.bytes_down;
  record.grad_calls = static_cast<double>(totals.grad_calls) / n;
  record.replies = totals.replies;
  record.seconds = seconds;
  return record;
}

}  // namespace gradwire
