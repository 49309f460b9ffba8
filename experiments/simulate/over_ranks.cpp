#include "experiments/simulate/over_ranks.h"

#include <exception>
#include <span>
#include <stdexcept>
#include <vector>

#include "algorithms/methods.h"
#include "base/state.h"
#include "experiments/support/results_dir.h"
#include "proto/config/run_plan.h"

namespace gradwire {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }
std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

[[noreturn]] void refuse(const std::string& what) {
  throw UsageError("several ranks cannot share this run: " + what);
}

template <class Real>
bool may_refuse(const RunPlan& plan) {
  return make_server<Real>(make_setup<Real>(plan, Seat::kSimulation))->may_refuse();
}

}  // namespace

void all_or_none(Ranks* ranks, const std::function<void()>& work) {
  if (ranks == nullptr) return work();
  std::exception_ptr mine;
  try {
    work();
  } catch (...) {
    mine = std::current_exception();
  }
  const std::byte failed{mine != nullptr};
  RankBytes all;
  ranks->all_gather({&failed, 1}, all);
  for (unsigned r = 0; r < ranks->count(); ++r) {
    if (all.of(r)[0] == std::byte{0}) continue;
    if (r == ranks->rank()) std::rethrow_exception(mine);
    throw FailedElsewhere();
  }
}

void check_for_ranks(const Prepared& prepared) {
  const Experiment& e = prepared.experiment;
  const FaultsSection& f = e.faults;
  if (f.lost_replies > 0 || f.lost_requests > 0 || f.duplicates > 0 || f.crashes > 0 || f.wiped > 0 ||
      f.shuffle)
    refuse("[faults] are drawn for all clients of one process; leave them out, or start it once");
  if (e.server.quorum < 1 || e.server.over_selection > 0)
    refuse(
        "server.quorum and server.over_selection decide by who is first; leave them out, or start it once");
  if (!e.clients.seconds.empty())
    refuse("clients.seconds are virtual, and one process has their clock; leave it out, or start it once");
  const MethodInfo& method = find_method(e.algorithm.name);
  const std::string name(method.facts.name);
  if (method.facts.asynchronous)
    refuse(name + " takes one reply at a time, in the order of one clock; start it once, with --threads N");
  if (name == "ef21_plus")
    refuse(name +
           " keeps a vector of every client at the server; start it once, with --threads N, or use ef21");
  if (e.precision == Precision::kFp32 ? may_refuse<float>(prepared) : may_refuse<double>(prepared))
    refuse(name + " with a line search may give the replies of a round back; leave it out, or start it once");
}

void check_same_run(Ranks& ranks, const std::string& text) {
  RankBytes all;
  ranks.all_gather(bytes_of(text), all);
  all_or_none(&ranks, [&] {
    if (text != text_of(all.of(0)))
      throw UsageError(
          "rank " + std::to_string(ranks.rank()) +
          " has another program, processor or experiment than rank 0: give all ranks the same ones");
  });
}

Checkpoint::Saved share_saved(Ranks& ranks, const Checkpoint::Saved& mine) {
  Saver saver;
  if (ranks.rank() == 0) {
    saver(mine.round);
    saver(static_cast<std::uint32_t>(mine.sections.size()));
    for (const auto& [tag, bytes] : mine.sections) {
      saver(tag);
      saver(std::vector<char>(bytes.begin(), bytes.end()));
    }
  }
  RankBytes all;
  ranks.all_gather(bytes_of(saver.take()), all);
  Loader loader(text_of(all.of(0)));
  Checkpoint::Saved saved;
  std::uint32_t sections = 0;
  loader(saved.round);
  loader(sections);
  for (std::uint32_t k = 0; k < sections; ++k) {
    std::uint32_t tag = 0;
    std::vector<char> bytes;
    loader(tag);
    loader(bytes);
    saved.sections.emplace_back(tag, std::string(bytes.begin(), bytes.end()));
  }
  if (!loader.done()) throw std::logic_error("share_saved: the ranks are not at the same point");
  return saved;
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
