// Computation of constants by processes that share the clients of a run. The state goes from one process to
// the next in the order of clients, so every sum has the same bits as in a single process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>

namespace gradwire {

struct OrderedScan {
  // This process has the samples of the clients [first, end).
  std::uint32_t first = 0;
  std::uint32_t end = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t clients = 0;  // in all processes; 0 if this process is alone
  // Runs `work` on all processes in turn; a collective operation. Each process takes `state` from the
  // previous one, calls work(), which changes the state, and passes it to the next. In the end all have the
  // same state. If `work` throws on one process, the call throws on all. Empty if this process is alone.
  std::function<void(std::span<double> state, const std::function<void()>& work)> run;

  void operator()(std::span<double> state, const std::function<void()>& work) const {
    if (run) return run(state, work);
    work();
  }
  bool has(std::uint32_t client) const { return client >= first && client < end; }
  std::uint32_t all_clients(std::size_t own) const {
    return clients > 0 ? clients : static_cast<std::uint32_t>(own);
  }
};

}  // namespace gradwire
