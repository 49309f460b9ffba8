#include "simulation/monitor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/value.h"

namespace gradwire {

template <class Real>
Monitor<Real>::Monitor(MonitorPlan plan, std::shared_ptr<const RunContext<Real>> run_context,
                       std::shared_ptr<const ClientObjectives<Real>> functions)
    : plan_(std::move(plan)),
      run_context_(std::move(run_context)),
      oracle_(functions->oracle()),
      gradient_(run_context_->d),
      x_star_(plan_.optimum.begin(), plan_.optimum.end()),
      mean_(run_context_->d) {
  if (plan_.of.lyapunov.floor == 0) return;
  for (ClientId i = 0; i < run_context_->n; ++i) {
    oracle_->bind(i);
    oracle_->loss_and_gradient(x_star_, {}, gradient_);
    double square = 0;
    for (const Real g : gradient_) square += static_cast<double>(g) * static_cast<double>(g);
    at_optimum_ +=
        (run_context_->weights.empty() ? 1.0 / run_context_->n : run_context_->weights[i]) * square;
  }
}

template <class Real>
void Monitor<Real>::begin_round(View<Real> x) {
  if (plan_.of.lyapunov.of_round) x_before_.assign(x.begin(), x.end());
}

template <class Real>
void Monitor<Real>::end_round(std::uint32_t rounds, const ServerAlgorithm<Real>& server) {
  if (rounds == 1 && plan_.of.lyapunov.of_round) start_ = value(x_before_, server.lyapunov_state());
}

template <class Real>
void Monitor<Real>::fill(RoundRecord& record, const ServerAlgorithm<Real>& server) {
  const Lyapunov& l = plan_.of.lyapunov;
  if (l.of_round && record.round == 0) return;
  const std::uint32_t t = record.round - l.of_round;
  const double now = value(l.of_round ? View<Real>(x_before_) : server.model(), server.lyapunov_state());
  if (!start_) start_ = now;
  const double left = std::pow(l.rate, t);
  const double bound = left * *start_ + (1 - left) * l.floor * at_optimum_;
  record.lyapunov = now;
  record.lyapunov_bound = bound;
  compare(t, now, bound);
}

template <class Real>
void Monitor<Real>::compare(std::uint32_t t, double value, double bound) {
  // Tolerance for the rounding errors of Ψ, which is a difference, and of x*.
  constexpr double kUlps = 1e4;
  const double rounding = kUlps * static_cast<double>(std::numeric_limits<Real>::epsilon()) * size_;
  ++rows_;
  if (!(value <= bound + rounding)) {
    if (crossings_++ == 0) {
      first_ = t;
      first_value_ = value;
      first_bound_ = bound;
    }
  }
  if (t > 0 && bound > rounding) largest_share_ = std::max(largest_share_, value / bound);
}

// Returns Ψ at x.
template <class Real>
double Monitor<Real>::value(View<Real> x, const LyapunovState<Real>& state) {
  const Lyapunov& l = plan_.of.lyapunov;
  double f = 0, shifts = 0;
  std::fill(mean_.begin(), mean_.end(), 0.0);
  const bool at_x = l.gap > 0 || l.estimate > 0 || (l.shifts > 0 && l.y == Lyapunov::Shifted::kToPoint);
  const bool at_optimum = l.shifts > 0 && !at_x;
  for (ClientId i = 0; i < run_context_->n && (at_x || at_optimum); ++i) {
    oracle_->bind(i);
    const double w = run_context_->weights.empty() ? 1.0 / run_context_->n : run_context_->weights[i];
    f += w * static_cast<double>(oracle_->loss_and_gradient(at_x ? x : View<Real>(x_star_), {}, gradient_));
    const bool has_shift = i < state.shifts.size() && !state.shifts[i].empty();
    double square = 0;
    for (std::size_t j = 0; j < gradient_.size(); ++j) {
      const double g = static_cast<double>(gradient_[j]);
      mean_[j] += w * g;
      const double away = g - (has_shift ? static_cast<double>(state.shifts[i][j]) : 0.0);
      square += away * away;
    }
    shifts += w * square;
  }
  double distance = 0, estimate = 0, length = 0;
  for (std::size_t j = 0; j < x.size(); ++j) {
    const double v = static_cast<double>(x[j]);
    length += v * v;
    if (l.distance > 0) distance += (v - plan_.optimum[j]) * (v - plan_.optimum[j]);
    if (l.estimate > 0) {
      const double away = static_cast<double>(state.g[j]) - mean_[j];
      estimate += away * away;
    }
  }
  size_ = l.gap * std::abs(f) + l.distance * length + start_.value_or(0);
  return l.gap * (f - plan_.f_star.value_or(0)) + l.distance * distance + l.estimate * estimate +
         l.shifts * shifts;
}

template <class Real>
std::string Monitor<Real>::verdict() const {
  const auto short_text = [](double v) { return rounded_text(v, 3); };
  const std::string all = std::to_string(rows_) + " rows";
  if (!crossed())
    return "monitor: the Lyapunov function stayed below its bound in all " + all +
           (largest_share_ > 0 ? ", at most at " + short_text(largest_share_) + " times the bound" : "");
  std::string text =
      "monitor: the Lyapunov function crosses its bound first at t = " + std::to_string(first_) + " (" +
      short_text(first_value_) + " above " + short_text(first_bound_) + "), in " +
      std::to_string(crossings_) + " of " + all;
  constexpr double kRounding = 1e-9;
  const Monitored& of = plan_.of;
  if (of.theory_step > 0 && of.step > of.theory_step * (1 + kRounding))
    return text + "; algorithm.step_size = " + short_text(of.step) + " is above the theorem's " +
           short_text(of.theory_step) + ": use step_size = \"theory\"";
  if (of.lyapunov.is_mean)
    return text + "; the theorem bounds the mean over the algorithm's random draws: compare several seeds";
  return of.theory_step == 0
             ? text
             : text +
                   "; the step is that of the theorem, so a constant of the problem or the program is wrong";
}

template class Monitor<float>;
template class Monitor<double>;

}  // namespace gradwire
