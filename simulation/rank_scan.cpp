#include "simulation/rank_scan.h"

#include <cstddef>
#include <cstring>
#include <span>
#include <stdexcept>
#include <vector>

#include "mpi/rank_communicator.h"

namespace gradwire {
namespace {

// Error of this rank that all ranks know about.
struct KnownFailure {
  std::exception_ptr why;
};

// Tells all ranks which ranks have failed.
void tell(Ranks& ranks, bool failed, RankBytes& all) {
  const std::byte mine{failed};
  ranks.all_gather({&mine, 1}, all);
}

void run(Ranks& ranks, std::span<double> state, const std::function<void()>& work) {
  const unsigned rank = ranks.rank(), last = ranks.count() - 1;
  const std::span<std::byte> bytes = std::as_writable_bytes(state);
  std::exception_ptr mine;
  bool failed = false;
  RankBytes from;
  // In step r, rank r works; then the next rank has the state. After the last step, all have it.
  for (unsigned r = 0; r <= last; ++r) {
    if (r == rank && !failed) {
      try {
        work();
      } catch (...) {
        mine = std::current_exception();
        failed = true;
      }
    }
    std::vector<std::vector<std::byte>> to(ranks.count());
    if (r == rank) {
      std::vector<std::byte> message(1, std::byte{failed});
      message.insert(message.end(), bytes.begin(), bytes.end());
      if (r < last) {
        to[r + 1] = std::move(message);
      } else {
        for (unsigned other = 0; other < last; ++other) to[other] = message;
      }
    }
    ranks.exchange(to, from);
    const std::span<const std::byte> received = from.of(r);
    if (received.empty() || r == rank) continue;
    if (received.size() != bytes.size() + 1)
      throw std::logic_error("ordered_scan: the ranks are not at the same step");
    failed = received[0] != std::byte{0};
    if (!bytes.empty()) std::memcpy(bytes.data(), received.data() + 1, bytes.size());
  }
  if (mine) throw KnownFailure{mine};
  if (failed) throw FailedElsewhere();
}

}  // namespace

void all_or_none(Ranks* ranks, const std::function<void()>& work) {
  if (ranks == nullptr) return work();
  std::exception_ptr mine;
  try {
    work();
  } catch (const FailedElsewhere&) {
    throw;
  } catch (const KnownFailure& failure) {
    std::rethrow_exception(failure.why);
  } catch (...) {
    mine = std::current_exception();
  }
  RankBytes all;
  tell(*ranks, mine != nullptr, all);
  for (unsigned r = 0; r < ranks->count(); ++r) {
    if (all.of(r)[0] == std::byte{0}) continue;
    if (r == ranks->rank()) std::rethrow_exception(mine);
    throw FailedElsewhere();
  }
}

void none_has_failed(Ranks* ranks) {
  if (ranks == nullptr) return;
  RankBytes all;
  tell(*ranks, false, all);
  for (unsigned r = 0; r < ranks->count(); ++r)
    if (all.of(r)[0] != std::byte{0}) throw FailedElsewhere();
}

OrderedScan ordered_scan_of(Ranks* ranks, std::uint32_t clients) {
  if (ranks == nullptr) return {};
  const ClientRange mine = clients_of_rank(clients, ranks->rank(), ranks->count());
  OrderedScan scan;
  scan.first = mine.first;
  scan.end = mine.end;
  scan.clients = clients;
  scan.run = [ranks](std::span<double> state, const std::function<void()>& work) {
    run(*ranks, state, work);
  };
  return scan;
}

}  // namespace gradwire
