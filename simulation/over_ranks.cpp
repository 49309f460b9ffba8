#include "simulation/over_ranks.h"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "algorithms/algorithms.h"
#include "base/serialize.h"
#include "config/run_plan.h"
#include "mpi/rank_communicator.h"
#include "report/results_dir.h"
#include "simulation/parallel_simulation.h"
#include "storage/run_store.h"

namespace gradwire {
namespace {

// Splits the bytes that save_clients() returned for all clients. `ends` has the ends of the ranks' client
// ranges, in ascending order. The last rank gets the rest.
std::vector<std::string_view> cut_clients(std::string_view saved, std::span<const ClientId> ends) {
  std::vector<std::string_view> slices;
  Loader loader(saved);
  std::uint32_t requests = 0;
  std::vector<char> state;
  std::size_t begin = 0, at = 0;
  ClientId client = 0;
  for (const ClientId end : ends.first(ends.size() - 1)) {
    for (; client < end; ++client) {
      loader(requests);
      loader(state);
      at += sizeof requests + sizeof(std::uint64_t) + state.size();
    }
    at = std::min(at, saved.size());  // too few bytes; load_clients() rejects them
    slices.push_back(saved.substr(begin, at - begin));
    begin = at;
  }
  slices.push_back(saved.substr(begin));
  return slices;
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }
std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_shared(const std::pair<std::uint32_t, std::string>& section) {
  return section.first != kClientsSection;
}

[[noreturn]] void refuse(const std::string& what) {
  throw UsageError("several ranks cannot share this run: " + what);
}

template <class Real>
bool may_refuse(const RunPlan& plan) {
  return make_server<Real>(make_run_context<Real>(plan, Role::kSimulation))->may_refuse();
}

}  // namespace

void check_for_ranks(const Prepared& prepared) {
  const ExperimentSpec& e = prepared.experiment;
  const FaultsSection& f = e.faults;
  if (f.lost_replies > 0 || f.lost_requests > 0 || f.duplicates > 0 || f.crashes > 0 || f.state_loss > 0 ||
      f.shuffle)
    refuse("[faults] need all clients in one process; remove them, or start one process");
  if (e.server.quorum < 1 || e.server.over_selection > 0)
    refuse(
        "server.quorum and server.over_selection need one order of arrival; remove them, or start one "
        "process");
  if (e.server.norm_limit > 0)
    refuse("server.norm_limit needs all replies in one process; remove it, or start one process");
  if (!e.clients.latency.empty())
    refuse("clients.latency needs one virtual clock; remove it, or start one process");
  const AlgorithmInfo& algorithm = find_algorithm(e.algorithm.name);
  const std::string name(algorithm.traits.name);
  if (algorithm.traits.asynchronous)
    refuse(name +
           " uses one reply at a time, in the order of one clock; start one process, with --threads N");
  if (name == "ef21_plus")
    refuse(name +
           " keeps a vector of every client at the server; start one process, with --threads N, or use ef21");
  if (e.precision == Precision::kFp32 ? may_refuse<float>(prepared) : may_refuse<double>(prepared))
    refuse(name + " with a line search may reject the replies of a round; remove it, or start one process");
}

void check_same_run(Ranks& ranks, const std::string& text) {
  RankBytes all;
  ranks.all_gather(bytes_of(text), all);
  all_or_none(&ranks, [&] {
    if (text != text_of(all.of(0)))
      throw UsageError(
          "rank " + std::to_string(ranks.rank()) +
          " differs from rank 0 in program, processor or experiment; start all ranks with the same ones");
  });
}

RunCheckpoint::Saved share_saved(Ranks& ranks, RunCheckpoint::Saved mine) {
  Saver saver;
  if (ranks.rank() == 0) {
    saver(mine.round);
    saver(mine.plateau.best);
    saver(mine.plateau.evaluations);
    saver(static_cast<std::uint32_t>(std::ranges::count_if(mine.sections, is_shared)));
    for (const auto& section : mine.sections) {
      if (!is_shared(section)) continue;
      saver(section.first);
      saver(std::vector<char>(section.second.begin(), section.second.end()));
    }
  }
  RankBytes all;
  ranks.all_gather(bytes_of(saver.take()), all);
  if (ranks.rank() == 0) return mine;
  Loader loader(text_of(all.of(0)));
  RunCheckpoint::Saved saved;
  std::uint32_t sections = 0;
  loader(saved.round);
  loader(saved.plateau.best);
  loader(saved.plateau.evaluations);
  loader(sections);
  for (std::uint32_t k = 0; k < sections; ++k) {
    std::uint32_t tag = 0;
    std::vector<char> bytes;
    loader(tag);
    loader(bytes);
    saved.sections.emplace_back(tag, std::string(bytes.begin(), bytes.end()));
  }
  if (!loader.done()) throw std::logic_error("share_saved: the ranks are not at the same step");
  return saved;
}

std::string hand_out_clients(Ranks& ranks, std::uint32_t clients, std::string_view saved) {
  std::vector<std::vector<std::byte>> to(ranks.count());
  if (ranks.rank() == 0) {
    std::vector<ClientId> ends;
    for (unsigned r = 0; r < ranks.count(); ++r)
      ends.push_back(clients_of_rank(clients, r, ranks.count()).end);
    const std::vector<std::string_view> slices = cut_clients(saved, ends);
    for (unsigned r = 0; r < ranks.count(); ++r)
      to[r].assign(bytes_of(slices[r]).begin(), bytes_of(slices[r]).end());
  }
  RankBytes from;
  ranks.exchange(to, from);
  return std::string(text_of(from.of(0)));
}

std::string join_at_first(Ranks& ranks, std::string_view mine) {
  std::vector<std::vector<std::byte>> to(ranks.count());
  const auto bytes = bytes_of(mine);
  to[0].assign(bytes.begin(), bytes.end());
  RankBytes from;
  ranks.exchange(to, from);
  std::string all;
  for (unsigned r = 0; r < ranks.count(); ++r) all += text_of(from.of(r));
  return all;
}

}  // namespace gradwire
