#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "algorithms/support/context.h"
#include "algorithms/support/message.h"
#include "rounds/round_loop.h"

namespace gradwire {

// f, ||grad f||^2 and the accuracy at one point, from the clients' answers in client order.
template <class Real>
class Evaluation {
 public:
  explicit Evaluation(const Setup<Real>& setup) : setup_(setup), gradient_(setup.d) {}

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

  static bool accepts(const Uplink<Real>& up, const Setup<Real>& setup) {
    return up.parts.size() == 1 && up.parts[0].shape == Shape::kDense && up.parts[0].dim == setup.d;
  }

  // REQUIRES: accepts(up).
  void add(const Uplink<Real>& up) {
    const double w = setup_.weights.empty() ? 1.0 / setup_.n : setup_.weights[up.client];
    weight_ += w;
    loss_ += w * up.loss;
    correct_ += up.correct;
    tested_ += up.tested;
    const View<Real> g = up.parts[0].values;
    for (std::size_t j = 0; j < gradient_.size(); ++j) gradient_[j] += w * static_cast<double>(g[j]);
    answered_ += 1;
  }

  std::uint32_t answered() const { return answered_; }
  double loss() const { return loss_ / total(); }
  double grad_norm_sq() const {
    double sum = 0;
    for (const double g : gradient_) sum += g * g;
    return sum / (total() * total());
  }
  std::optional<double> accuracy() const {
    if (tested_ == 0) return std::nullopt;
    return static_cast<double>(correct_) / static_cast<double>(tested_);
  }

 private:
  // The weights sum to one up to rounding; they are scaled up only when a client did not answer.
  double total() const { return answered_ == setup_.n ? 1 : weight_; }

  const Setup<Real>& setup_;
  Vec<double> gradient_;  // shape (d)
  double weight_ = 0, loss_ = 0;
  std::uint64_t correct_ = 0, tested_ = 0;
  std::uint32_t answered_ = 0;
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
