// The progress of a run at the server, in addition to the state of the algorithm.
#pragma once

#include <cstdint>
#include <vector>

namespace gradwire {

// The totals of what was sent and computed since the run began.
struct RunTotals {
  double bits_up = 0, bits_down = 0;              // sums over all clients, by the wire definition
  double bits_up_paper = 0, bits_down_paper = 0;  // as papers count
  std::uint64_t bytes_up = 0, bytes_down = 0;
  std::uint64_t grad_calls = 0;
  std::uint32_t replies = 0;  // number used in the last round
  double seconds = 0;         // time of the run at the end of the last round
  // Totals of evaluations, which the counts above exclude.
  std::uint64_t evaluation_bytes_up = 0, evaluation_bytes_down = 0;
  double evaluation_seconds = 0;

  static void fields(auto& self, auto&& visit) {
    visit(self.bits_up), visit(self.bits_down), visit(self.bits_up_paper), visit(self.bits_down_paper);
    visit(self.bytes_up), visit(self.bytes_down), visit(self.grad_calls), visit(self.replies);
    visit(self.seconds);
    visit(self.evaluation_bytes_up), visit(self.evaluation_bytes_down), visit(self.evaluation_seconds);
  }
};

// The server's progress in a run: the round, and 8 bytes for each client. Part of the server's snapshot.
struct RunProgress {
  std::uint64_t request_id = 0;  // the highest one issued
  // The request id of the last used reply, by client; 0 if none was used.
  std::vector<std::uint64_t> committed;
  std::uint32_t round = 0;  // k; the algorithm's state belongs to x^k
  RunTotals totals;
};

}  // namespace gradwire
