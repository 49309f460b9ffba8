// A priority queue of times, with at most one time for each client. The earliest time is on top.
#pragma once

#include <cstdint>
#include <limits>
#include <queue>
#include <vector>

#include "algorithms/core/message.h"

namespace gradwire {

class ClientTimes {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  struct Due {
    double at;
    ClientId client;
    // Puts the earliest time on top, and the lowest client number among equal times.
    bool operator<(const Due& o) const { return at != o.at ? at > o.at : client > o.client; }
  };

  // Makes an empty queue for the clients 0, ..., n - 1.
  void reset(std::uint32_t n) {
    queue_ = {};
    has_.assign(n, 0);
  }
  bool empty() const { return queue_.empty(); }
  bool has(ClientId client) const { return has_[client] != 0; }
  // REQUIRES: not empty.
  Due top() const { return queue_.top(); }
  void pop() {
    has_[queue_.top().client] = 0;
    queue_.pop();
  }
  // REQUIRES: the client has no time yet.
  void push(double at, ClientId client) {
    has_[client] = 1;
    queue_.push({at, client});
  }

  // Returns the time of each client, or kNever if it has none.
  std::vector<double> times() const {
    std::vector<double> at(has_.size(), kNever);
    for (auto rest = queue_; !rest.empty(); rest.pop()) at[rest.top().client] = rest.top().at;
    return at;
  }
  void set_times(const std::vector<double>& at) {
    reset(static_cast<std::uint32_t>(at.size()));
    for (ClientId c = 0; c < at.size(); ++c)
      if (at[c] != kNever) push(at[c], c);
  }

 private:
  std::priority_queue<Due> queue_;
  std::vector<char> has_;  // by client
};

}  // namespace gradwire
