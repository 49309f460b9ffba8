// The time that the round loop waits for the answers to one request, before it asks again and before it gives
// up.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "rounds/round_loop.h"

namespace gradwire {

// Returns a list like "3, 7, 12 and 5 more".
inline std::string name_some(const std::vector<ClientId>& clients) {
  constexpr std::size_t kNamed = 8;
  std::string text;
  for (std::size_t k = 0; k < std::min(kNamed, clients.size()); ++k)
    text += (k == 0 ? "" : ", ") + std::to_string(clients[k]);
  if (clients.size() > kNamed) text += " and " + std::to_string(clients.size() - kNamed) + " more";
  return text;
}

// The times at which a waiting round is reported: at growing intervals.
class StallReports {
 public:
  // Makes no reports unless `wanted`.
  StallReports(const RoundLimits& limits, double now, bool wanted)
      : begun_(now), next_(wanted ? now + std::min(kFirstSeconds, limits.deadline_seconds) : kNever) {}

  double next() const { return next_; }
  bool has_reported() const { return reported_; }
  void reported(double now) {
    reported_ = true;
    next_ = begun_ + 2 * (now - begun_);
  }

 private:
  static constexpr double kFirstSeconds = 5, kNever = std::numeric_limits<double>::infinity();

  const double begun_;
  double next_;
  bool reported_ = false;
};

class RetryPolicy {
 public:
  // `now` is the time on the transport's clock. `first` means that this is the first request of this process.
  RetryPolicy(const RoundLimits& limits, double now, bool first)
      : limits_(limits),
        begun_(now),
        deadline_(now + limits.deadline_seconds),
        patience_seconds_(first ? limits.first_wait_seconds : 0) {}

  double deadline() const { return deadline_; }
  double waited(double now) const { return now - begun_; }
  // Returns the time at which the last attempt ends.
  double gives_up_at() const {
    return begun_ + std::max(patience_seconds_, limits_.attempts * limits_.deadline_seconds);
  }
  // Starts the next attempt after a deadline. Returns false after the last attempt, or if a virtual clock is
  // at infinity, because then no pending work will ever finish.
  bool next_attempt(double now) {
    attempts_ += 1;
    if (std::isinf(now)) return false;
    if (attempts_ < limits_.attempts) {
      deadline_ = now + limits_.deadline_seconds;
      return true;
    }
    const double left = begun_ + patience_seconds_ - now;
    deadline_ = now + std::min(left, std::max(limits_.deadline_seconds, kAskingAgainSeconds));
    return left > 0;
  }
  // Returns a text like "after 10 deadlines of 60 s".
  std::string so_far(double now) const {
    if (std::isinf(now)) return "that never answer on this clock";
    if (patience_seconds_ > 0)
      return "after " + std::to_string(static_cast<std::uint64_t>(now - begun_)) + " s";
    return "after " + std::to_string(attempts_) + " deadlines of " +
           std::to_string(limits_.deadline_seconds) + " s";
  }

  // Returns the advice for the error after the last attempt: `usual`, unless a virtual clock is at infinity.
  static std::string advice(double now, const std::string& usual) {
    return std::isinf(now) ? "make every request finite, or use an algorithm that stops or cuts such work"
                           : usual;
  }

 private:
  // The shortest wait after the first limits_.attempts deadlines.
  static constexpr double kAskingAgainSeconds = 60;

  const RoundLimits& limits_;
  const double begun_;
  double deadline_;
  const double patience_seconds_;
  std::uint32_t attempts_ = 0;
};

}  // namespace gradwire
