// Processes that share the clients of a run compute constants of all of them together. What they compute goes
// from one process to the next in the order of clients, so that every sum has the bits of one process.
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
  std::uint32_t clients = 0;  // of all processes; 0: this process is alone
  // Collective. Takes `state` from the process before, does `work`, which changes it, and gives it to the
  // next; in the end all have the same state. Where `work` throws on one process, it throws on all. Empty:
  // alone.
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
