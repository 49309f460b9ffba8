#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "algorithms/core/context.h"
#include "algorithms/core/message.h"
#include "algorithms/core/tree_sum.h"
#include "rounds/round_loop.h"

namespace gradwire {

// The content of one evaluation: what it asks for, and which clients it asks.
struct Measured {
  RequestKind kind = RequestKind::kEvaluate;  // kMeasure asks for no gradients
  std::span<const ClientId> sample;           // ascending; empty means all clients
  bool keeps_answers = false;                 // keeps the answer of each client, for LoopHooks::on_clients
};

// Returns true if the next round needs the gradients of all clients at x^k in any case. Then an evaluation
// computes and remembers them even if it does not report the gradient norm.
template <class Real>
bool reuses_gradients(const RunContext<Real>& run_context) {
  return run_context.algorithm.batch == 0 && run_context.algorithm.participation == 1;
}

// Adds up the clients' answers to an evaluation along the tree over the clients (tree_sum.h). Threads and
// processes may add up subtrees; the sum has the same bits.
template <class Real>
class EvaluationSum {
 public:
  // Makes an empty sum of the clients run_context.mine(), or of some of them. `kept` has one place for each
  // client of mine(), or is empty if no answers are kept.
  explicit EvaluationSum(const RunContext<Real>& run_context, RequestKind kind = RequestKind::kEvaluate,
                         std::span<ClientEvaluation> kept = {})
      : run_context_(&run_context), kind_(kind), kept_(kept) {
    clear();
  }

  void clear() {
    if (has_gradient()) gradient_.begin_part(run_context_->d, run_context_->mine(), run_context_->n);
    numbers_.begin_part(kNumbers, run_context_->mine(), run_context_->n);
  }
  RequestKind kind() const { return kind_; }
  bool has_gradient() const { return kind_ == RequestKind::kEvaluate; }
  static bool accepts(const UplinkView<Real>& up, const RunContext<Real>& run_context, RequestKind kind) {
    if (kind == RequestKind::kMeasure) return up.parts.empty();
    return up.parts.size() == 1 && up.parts[0].shape == Shape::kDense && up.parts[0].dim == run_context.d;
  }
  // Adds one answer. REQUIRES: accepts(up, run_context, kind()); ascending clients.
  void add(const UplinkView<Real>& up) {
    const double w = run_context_->weights.empty() ? 1.0 / run_context_->n : run_context_->weights[up.client];
    if (has_gradient()) gradient_.add(up.client, w, up.parts[0].values.data());
    const double numbers[kNumbers] = {w * up.loss,
                                      w,
                                      static_cast<double>(up.correct),
                                      static_cast<double>(up.tested),
                                      1,
                                      up.tested > 0 ? 1.0 : 0.0};
    numbers_.add(up.client, 1, numbers);
    if (!kept_.empty())
      kept_[up.client - run_context_->mine().first] = {up.loss, up.correct, up.tested, true};
  }
  // Appends the sums of a whole subtree. Its clients must come after all clients added so far.
  void add(EvaluationSum& subtree) {
    if (has_gradient())
      for (const auto& node : subtree.gradient_.nodes()) gradient_.add(node.client, 1, node.sum.data());
    for (const auto& node : subtree.numbers_.nodes()) numbers_.add(node.client, 1, node.sum.data());
  }

 protected:
  // The positions in the sum of numbers. Counts are exact up to 2^53.
  enum : std::size_t { kLoss, kWeight, kCorrect, kTested, kAnswered, kTesters, kNumbers };

  const RunContext<Real>* run_context_;
  RequestKind kind_;
  std::span<ClientEvaluation> kept_;
  TreeSum<double> gradient_, numbers_;
};

// Evaluates f, the squared norm of its gradient, and the accuracy at one point, from the clients' answers in
// client order.
template <class Real>
class Evaluation : public EvaluationSum<Real> {
 public:
  // `measured.sample` must outlive this.
  explicit Evaluation(const RunContext<Real>& run_context, const Measured& measured = {})
      : EvaluationSum<Real>(run_context, measured.kind),
        sample_(measured.sample),
        answers_(measured.keeps_answers ? run_context.mine().size() : 0) {
    this->kept_ = answers_;
  }
  Evaluation(Evaluation&&) = default;  // kept_ still views answers_, whose memory moves along

  bool asks(ClientId client) const { return sample_.empty() || std::ranges::binary_search(sample_, client); }
  // Returns the number of clients asked, including those of other processes.
  std::uint32_t asked() const {
    return sample_.empty() ? run_context_->n : static_cast<std::uint32_t>(sample_.size());
  }

  // Sets `cohort` to the clients to ask next, from `first` on. Returns the first client after this window.
  // The window bounds the memory for the gradients, and for the state that a simulation keeps of each client.
  ClientId next_window(ClientId first, std::vector<ClientId>& cohort) const {
    constexpr std::size_t kWindowBytes = 256 << 20;
    constexpr std::size_t kOtherBytes = 8 << 10;
    const std::size_t window =
        std::max<std::size_t>(1, kWindowBytes / (run_context_->d * sizeof(Real) + kOtherBytes));
    const auto end = static_cast<ClientId>(std::min<std::size_t>(run_context_->mine().end, first + window));
    cohort.clear();
    for (ClientId c = first; c < end; ++c)
      if (asks(c)) cohort.push_back(c);
    return end;
  }

  // Returns the place of each client's answer, for the sums of subtrees to fill.
  std::span<ClientEvaluation> kept() const { return this->kept_; }

  // Completes the evaluation after the last answer. Collective if processes share the clients. Nothing may be
  // added afterwards.
  void finish() {
    if (Base::has_gradient()) total_gradient_ = total(this->gradient_, gradient_of_group_);
    const View<double> numbers = total(this->numbers_, numbers_of_group_);
    for (std::size_t k = 0; k < numbers.size(); ++k) total_[k] = numbers[k];
    if (!answers_.empty() && run_context_->communicator != nullptr) gather_answers();
  }

  const RunContext<Real>& run_context() const { return *run_context_; }
  // REQUIRES from here on: finish().
  // Returns the answers of the clients: shape (n), or empty if no answers are kept.
  std::span<const ClientEvaluation> answers() const { return answers_; }
  std::uint32_t answered() const { return static_cast<std::uint32_t>(total_[Base::kAnswered]); }
  // Returns the number of clients that have test samples.
  std::uint32_t testers() const { return static_cast<std::uint32_t>(total_[Base::kTesters]); }
  double loss() const { return total_[Base::kLoss] / total_weight(); }
  // REQUIRES: has_gradient().
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
  using Base = EvaluationSum<Real>;
  using Base::run_context_;

  // Returns the sum over all processes. Empty if no client answered. Without other processes, the result
  // views the tree, to save a copy as long as the model.
  View<double> total(TreeSum<double>& tree, Vec<double>& of_group) const {
    if (run_context_->communicator == nullptr) return tree.sum();
    of_group = run_context_->communicator->sum(tree);
    return of_group;
  }

  // Adds the answers of the clients of other processes.
  void gather_answers() {
    std::vector<double> mine;
    for (const ClientEvaluation& answer : answers_)
      mine.insert(mine.end(), {answer.loss, static_cast<double>(answer.correct),
                               static_cast<double>(answer.tested), answer.answered ? 1.0 : 0.0});
    const std::vector<double> all = run_context_->communicator->gather(mine);
    answers_.clear();
    for (std::size_t k = 0; k < all.size(); k += 4)
      answers_.push_back({all[k], static_cast<std::uint64_t>(all[k + 1]),
                          static_cast<std::uint64_t>(all[k + 2]), all[k + 3] != 0});
    this->kept_ = {};
  }

  // Returns the weight of the clients that answered. Returns exactly 1 if all answered, because the weights
  // sum to 1 only up to rounding.
  double total_weight() const { return answered() == run_context_->n ? 1 : total_[Base::kWeight]; }

  std::span<const ClientId> sample_;
  std::vector<ClientEvaluation> answers_;
  Vec<double> gradient_of_group_, numbers_of_group_;
  View<double> total_gradient_;
  std::array<double, Base::kNumbers> total_{};
};

// Returns row k of the metrics.
template <class Real>
RoundRecord record_of(std::uint32_t k, const Evaluation<Real>& evaluation, const RunTotals& totals, double n,
                      double seconds) {
  RoundRecord record;
  record.round = k;
  record.loss = evaluation.loss();
  if (evaluation.has_gradient()) record.grad_norm_sq = evaluation.grad_norm_sq();
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
  record.evaluation_bytes_up = totals.evaluation_bytes_up;
  record.evaluation_bytes_down = totals.evaluation_bytes_down;
  return record;
}

}  // namespace gradwire
