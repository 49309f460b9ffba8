#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "algorithms/support/context.h"
#include "algorithms/support/message.h"
#include "rounds/round_loop.h"

namespace gradwire {

// The answers to an evaluation are added by blocks of so many clients, and the sums of blocks in their order:
// the same bits whoever adds a block.
inline constexpr ClientId kClientsOfBlock = 1024;

// Of the answers of clients of one block, in client order.
template <class Real>
class BlockSum {
 public:
  explicit BlockSum(const Setup<Real>& setup) : setup_(&setup), gradient_(setup.d) {}

  void clear() {
    std::fill(gradient_.begin(), gradient_.end(), 0.0);
    weight_ = loss_ = 0;
    correct_ = tested_ = 0;
    answered_ = 0;
  }
  // REQUIRES: Evaluation::accepts(up).
  void add(const Reply<Real>& up) {
    const double w = setup_->weights.empty() ? 1.0 / setup_->n : setup_->weights[up.client];
    weight_ += w;
    loss_ += w * up.loss;
    correct_ += up.correct;
    tested_ += up.tested;
    const View<Real> g = up.parts[0].values;
    for (std::size_t j = 0; j < gradient_.size(); ++j) gradient_[j] += w * static_cast<double>(g[j]);
    answered_ += 1;
  }
  void add(const BlockSum& block) {
    weight_ += block.weight_;
    loss_ += block.loss_;
    correct_ += block.correct_;
    tested_ += block.tested_;
    for (std::size_t j = 0; j < gradient_.size(); ++j) gradient_[j] += block.gradient_[j];
    answered_ += block.answered_;
  }

  double weight() const { return weight_; }
  double loss() const { return loss_; }
  const Vec<double>& gradient() const { return gradient_; }
  std::uint64_t correct() const { return correct_; }
  std::uint64_t tested() const { return tested_; }
  std::uint32_t answered() const { return answered_; }

 private:
  const Setup<Real>* setup_;
  Vec<double> gradient_;  // shape (d)
  double weight_ = 0, loss_ = 0;
  std::uint64_t correct_ = 0, tested_ = 0;
  std::uint32_t answered_ = 0;
};

// f, ||grad f||^2 and the accuracy at one point, from the clients' answers in client order.
template <class Real>
class Evaluation {
 public:
  explicit Evaluation(const Setup<Real>& setup) : setup_(setup), blocks_(setup), last_(setup) {}

  // Sets `cohort` to the clients to ask next, starting with `first`; returns the client after them. Their
  // gradients, and what a simulation keeps of each, take a bounded share of memory.
  ClientId next_window(ClientId first, std::vector<ClientId>& cohort) const {
    constexpr std::size_t kWindowBytes = 256 << 20;
    constexpr std::size_t kBytesBesideGradients = 8 << 10;
    const std::size_t window =
        std::max<std::size_t>(1, kWindowBytes / (setup_.d * sizeof(Real) + kBytesBesideGradients));
    const auto end = static_cast<ClientId>(std::min<std::size_t>(setup_.n, first + window));
    cohort.clear();
    for (ClientId c = first; c < end; ++c) cohort.push_back(c);
    return end;
  }

  static bool accepts(const Reply<Real>& up, const Setup<Real>& setup) {
    return up.parts.size() == 1 && up.parts[0].shape == Shape::kDense && up.parts[0].dim == setup.d;
  }

  // REQUIRES: accepts(up).
  void add(const Reply<Real>& up) {
    if (up.client / kClientsOfBlock != number_) {
      add(last_);
      last_.clear();
      number_ = up.client / kClientsOfBlock;
    }
    last_.add(up);
  }
  // The next block, whole.
  void add(const BlockSum<Real>& block) { blocks_.add(block); }

  const Setup<Real>& setup() const { return setup_; }
  std::uint32_t answered() const { return blocks_.answered() + last_.answered(); }
  double loss() const { return (blocks_.loss() + last_.loss()) / total(); }
  double grad_norm_sq() const {
    double sum = 0;
    for (std::size_t j = 0; j < setup_.d; ++j) {
      const double g = blocks_.gradient()[j] + last_.gradient()[j];
      sum += g * g;
    }
    return sum / (total() * total());
  }
  std::optional<double> accuracy() const {
    const std::uint64_t tested = blocks_.tested() + last_.tested();
    if (tested == 0) return std::nullopt;
    return static_cast<double>(blocks_.correct() + last_.correct()) / static_cast<double>(tested);
  }

 private:
  // The weights sum to one up to rounding; they are scaled up only when a client did not answer.
  double total() const { return answered() == setup_.n ? 1 : blocks_.weight() + last_.weight(); }

  const Setup<Real>& setup_;
  BlockSum<Real> blocks_;  // that are complete
  BlockSum<Real> last_;    // of the block `number_`
  ClientId number_ = 0;
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
