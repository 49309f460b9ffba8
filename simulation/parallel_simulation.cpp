#include "simulation/parallel_simulation.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/serialize.h"
#include "parallel/thread_pool.h"
#include "proto/wire/codec_context.h"
#include "rounds/runtime.h"
#include "simulation/evaluator.h"
#include "simulation/local_client.h"
#include "simulation/reply_cache.h"
#include "simulation/state_cache.h"

namespace gradwire {

template <class Real>
struct ParallelSimulation<Real>::Impl {
  using Clock = std::chrono::steady_clock;

  struct WorkerSlot {
    LocalWorker<Real> worker;
    std::unique_ptr<ClientRuntime<Real>> runtime;
    Arena arena;  // memory of this slot's replies
    LeafOfReplies<Real> leaf;
    std::vector<std::pair<ClientId, ReplyStatus>> others;  // clients that did not reply
    std::uint64_t bytes_up = 0;                            // sum of the replies
    std::size_t good = 0;                                  // number of replies
  };
  using BatchRequest = typename BatchTransport<Real>::BatchRequest;
  using BatchReplies = typename BatchTransport<Real>::BatchReplies;
  struct AskedRange {
    std::size_t first, end;  // indices into the asked clients
  };

  Impl(std::shared_ptr<const RunContext<Real>> s, std::shared_ptr<const ClientObjectives<Real>> f,
       const ParallelSimulationOptions& options, RankBinding<Real> rank_binding)
      : run_context(std::move(s)),
        functions(std::move(f)),
        rank(std::move(rank_binding)),
        codec(codec_context(*run_context, zstd_of({}, false))),
        pool(std::max(1u, options.threads)),
        slots(make_slots()),
        evaluator(run_context->mine(), pool, oracles(), options.evaluation_bytes),
        states(run_context->n, *make_client<Real>(run_context)),
        traits(traits_of(*run_context)),
        whole_leaves(rank.communicator == nullptr || rank.communicator->has_whole_leaves()),
        adds(takes_sums(*run_context) && whole_leaves),
        counts(count_of(run_context->n) + 1) {
    if (functions->clients() != run_context->n)
      throw std::logic_error("ParallelSimulation: needs one function per client");
  }

  std::vector<WorkerSlot> make_slots() {
    std::vector<LocalWorker<Real>> workers = make_workers(*functions, pool.size(), codec.context());
    std::vector<WorkerSlot> made(workers.size());
    for (std::size_t k = 0; k < made.size(); ++k) {
      made[k].worker = std::move(workers[k]);
      made[k].runtime = std::make_unique<ClientRuntime<Real>>(run_context, 0, *made[k].worker.oracle);
    }
    return made;
  }
  std::vector<RebindableOracle<Real>*> oracles() const {
    std::vector<RebindableOracle<Real>*> all;
    for (const WorkerSlot& slot : slots) all.push_back(slot.worker.oracle.get());
    return all;
  }

  BatchReplies ask(const BatchRequest& batch) {
    const std::span<const ClientId> asked = batch.asked;
    forget_replies(asked.size());
    request_id = batch.request.request_id;
    const auto first = std::ranges::lower_bound(asked, run_context->mine().first) - asked.begin();
    const auto end = std::ranges::lower_bound(asked, run_context->mine().end) - asked.begin();
    const AskedRange here{static_cast<std::size_t>(first), static_cast<std::size_t>(end)};
    if (states.has_state())
      for (const ClientId client : asked.subspan(here.first, here.end - here.first)) states.reserve(client);
    share(asked, here,
          [&](WorkerSlot& slot, std::size_t begin, std::size_t until) { answer(slot, batch, begin, until); });
    RankRound round;
    for (WorkerSlot& slot : slots) {
      round.bytes_up += std::exchange(slot.bytes_up, 0);
      round.good += std::exchange(slot.good, 0);
      round.others.insert(round.others.end(), slot.others.begin(), slot.others.end());
      slot.others.clear();
    }
    std::ranges::sort(round.others);
    ReplyCountSum sum(run_context->mine(), run_context->n);
    for (std::size_t k = here.first; k < here.end; ++k)
      if (k == here.first || count_of(asked[k]) != count_of(asked[k - 1]))
        sum.add(asked[k], counts[count_of(asked[k])]);
    if (rank.communicator == nullptr) {
      round.counts = sum.sum();
    } else {
      round = agree_on_round(*rank.communicator, *rank.signals, sum, round);
      remote_answers = round.others;
      for (std::size_t k = 0; k < asked.size(); ++k)
        if (k < here.first || k >= here.end) replies[k] = elsewhere(asked[k], *batch.request.body);
    }
    for (const auto& [client, status] : round.others) others.push_back(client);
    BatchReplies answers;
    answers.replies = replies;
    answers.others = others;
    answers.counts = round.counts;
    answers.bytes_up = round.bytes_up;
    answers.bytes_down = round.good * Codec<Real>::request_bytes(codec.body_bytes(*batch.request.body), 0);
    return answers;
  }

  // Returns a stand-in for the reply of a client of another process.
  UplinkView<Real> elsewhere(ClientId client, const Downlink<Real>& body) const {
    UplinkHeader head;
    head.request_id = request_id;
    head.round = body.round;
    head.client = client;
    return {head, no_parts};
  }

  // Answers for the clients asked[begin, end), which are whole leaves as far as this process has them.
  void answer(WorkerSlot& slot, const BatchRequest& batch, std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k) {
      const ClientId client = batch.asked[k];
      if (k == begin || leaf_of(client) != leaf_of(batch.asked[k - 1])) slot.leaf.begin(adds);
      ReplyCounts& count = counts[count_of(client)];
      if (k == begin || count_of(client) != count_of(batch.asked[k - 1])) count = {};
      Request<Real> request = batch.request;
      request.committed = batch.committed[client];
      const auto take = [&](const Uplink<Real>& up) {
        if (up.status != ReplyStatus::kReply || up.round != request.body->round ||
            !batch.server.accepts(up)) {
          slot.leaf.leave_out();
          slot.others.emplace_back(client, up.status);
        } else {
          ++slot.good;
          count.add(counts_of<Real>(up.parts, up.grad_calls, traits));
        }
        replies[k] = slot.leaf.keep(up, slot.arena);
      };
      std::optional<Downlink<Real>> lacked;
      work(slot, client, request, [&](const Uplink<Real>& up) {
        if (up.status == ReplyStatus::kNeedsState || up.status == ReplyStatus::kNeedsBroadcast)
          lacked = restored(batch.server, client, up.status);
        if (!lacked) take(up);
      });
      if (!lacked) continue;
      request.resync = &*lacked;
      work(slot, client, request, take);
    }
  }
  // Returns the state that a client lacks, as RequestTracker does.
  static std::optional<Downlink<Real>> restored(const ServerAlgorithm<Real>& server, ClientId client,
                                                ReplyStatus lacks) {
    auto resync = server.resync(client, ReplyStatus::kNeedsState);
    return resync || lacks == ReplyStatus::kNeedsState ? resync : server.resync(client, lacks);
  }
  // Returns the place where the counts of the client's reply are added up: its leaf, unless processes share
  // leaves.
  std::size_t count_of(ClientId client) const { return whole_leaves ? leaf_of(client) : client; }

  // Frees the replies at a new request id, because answers to older ones are not read any more.
  void forget_replies(std::size_t size) {
    if (replies.capacity() > 4 * size + 1024) replies = {};
    replies.resize(size);
    others.clear();
    arrived.clear();
    delivered = 0;
    for (WorkerSlot& slot : slots) slot.arena.clear();
  }

  // Splits asked[here] into ranges and calls some(slot, begin, end) for each. No range ends within a leaf.
  void share(std::span<const ClientId> asked, AskedRange here, const auto& some) {
    const std::size_t count = here.end - here.first;
    const auto started = Clock::now();
    const auto over = [&] {
      const std::chrono::duration<double> took = Clock::now() - started;
      shared_seconds += took.count();
      return took.count();
    };
    // Waking threads costs more than a few tiny gradients. The bits do not depend on the threads.
    constexpr double kWorthThreadsSeconds = 100e-6;
    if (pool.size() == 1 || seconds_each * static_cast<double>(count) < kWorthThreadsSeconds) {
      some(slots[0], here.first, here.end);
      const double took = over();
      if (count > 0) seconds_each = took / static_cast<double>(count);
      return;
    }
    // Neighbours stay together, because their data and states are adjacent in memory.
    constexpr std::size_t kMostTogether = 64, kTurnsPerThread = 8;
    const std::size_t together =
        std::clamp<std::size_t>(count / (pool.size() * kTurnsPerThread), 1, kMostTogether);
    const auto next_leaf = [&](std::size_t k) {
      while (k > here.first && k < here.end && leaf_of(asked[k]) == leaf_of(asked[k - 1])) ++k;
      return std::min(k, here.end);
    };
    pool.for_each((count + together - 1) / together, [&](unsigned thread, std::size_t turn) {
      const std::size_t begin = here.first + turn * together;
      some(slots[thread], next_leaf(begin), next_leaf(begin + together));
    });
    over();
  }

  // Lets the client answer, and calls take(answer) while the views of the answer are valid. REQUIRES: the
  // client's state has memory.
  void work(WorkerSlot& slot, ClientId client, const Request<Real>& request, const auto& take) {
    const bool is_round = request.kind == RequestKind::kRound;
    KeptState<Real> state;
    const KeptState<Real>* kept = nullptr;
    std::uint64_t known_to = request.committed;  // 0 if the client has seen nothing or lost its state
    if (states.has_state() && is_round) {
      if (!states.holds(client)) known_to = 0;
      if (known_to == 0) states.begin(client);
      state = states.of(client);
      kept = &state;
    }
    ClientRuntime<Real>& runtime = *slot.runtime;
    slot.worker.oracle->bind(client);
    runtime.swap_in(client, known_to, *slot.worker.oracle, evaluator.known(client), kept);
    if (known_to != request.committed && request.resync != nullptr) runtime.lacked_state(request.request_id);
    const Uplink<Real>* const up = runtime.handle(request, slot.worker.scratch);
    if (up == nullptr) throw std::logic_error("ParallelSimulation: a request without an answer");
    take(*up);
    if (up->status == ReplyStatus::kReply) slot.bytes_up += slot.worker.codec->encoded_bytes(*up);
    if (is_round && up->status == ReplyStatus::kReply) {
      runtime.settle(request.request_id);
      states.settled(client);
    }
    runtime.swap_out(kept);
  }

  std::uint64_t send(ClientId client, const Request<Real>& request) {
    if (client >= run_context->n) throw std::logic_error("ParallelSimulation: the client does not exist");
    if (request.kind == RequestKind::kShutdown) return Codec<Real>::request_bytes(0, 0);
    if (rank.communicator != nullptr) return repeat_answer(client, request);
    if (request.request_id != request_id) forget_replies(0);
    request_id = request.request_id;
    if (states.has_state() && request.kind == RequestKind::kRound) states.reserve(client);
    WorkerSlot& slot = slots[0];
    Event<Real>& event = arrived.emplace_back();
    event.kind = Event<Real>::Kind::kReply;
    work(slot, client, request, [&](const Uplink<Real>& up) { event.up = keep_reply(up, slot.arena); });
    event.bytes = std::exchange(slot.bytes_up, 0);
    return Codec<Real>::request_bytes(codec.body_bytes(*request.body),
                                      request.resync == nullptr ? 0 : codec.body_bytes(*request.resync));
  }

  // Repeats a known answer. All processes know why the client did not reply to ask(), and it would give the
  // same answer again.
  std::uint64_t repeat_answer(ClientId client, const Request<Real>& request) {
    const auto known =
        std::ranges::lower_bound(remote_answers, client, {}, [](const auto& of) { return of.first; });
    if (known == remote_answers.end() || known->first != client || known->second != ReplyStatus::kNotFinite)
      throw std::runtime_error(
          "client " + std::to_string(client) +
          " does not reply to its process; clients on several ranks cannot be given their "
          "state back");
    Event<Real>& event = arrived.emplace_back();
    event.kind = Event<Real>::Kind::kReply;
    event.up = elsewhere(client, *request.body);
    event.up.status = known->second;
    return 0;
  }

  const Event<Real>& next(double deadline) {
    if (delivered < arrived.size()) return arrived[delivered++];
    clock = deadline;
    return nothing;
  }

  // Calls `use` on the slot's runtime with the client's state, so that its algorithm can save or load it.
  template <class Use>
  auto with_state(ClientId client, std::uint64_t committed, const Use& use) {
    const KeptState<Real> kept = states.of(client);
    ClientRuntime<Real>& runtime = *slots[0].runtime;
    runtime.swap_in(client, committed, *slots[0].worker.oracle, {}, &kept);
    const auto result = use(runtime);
    runtime.swap_out(&kept);
    return result;
  }

  std::shared_ptr<const RunContext<Real>> run_context;
  std::shared_ptr<const ClientObjectives<Real>> functions;
  const RankBinding<Real> rank;
  Codec<Real> codec;
  ThreadPool pool;
  std::vector<WorkerSlot> slots;
  Evaluator<Real> evaluator;
  StateCache<Real> states;
  const AlgorithmTraits& traits;
  const bool whole_leaves, adds;

  std::uint64_t request_id = 0;           // id of the last request
  std::vector<UplinkView<Real>> replies;  // to the last ask()
  std::vector<ClientId> others;           // clients of the last ask() without a usable reply
  std::vector<ReplyCounts> counts;        // by count_of()
  std::vector<std::pair<ClientId, ReplyStatus>>
      remote_answers;  // answers to the last ask(), if ranks share the clients
  const Parts<Real> no_parts = {
      Payload<Real>::nothing(run_context->d), Payload<Real>::nothing(run_context->d),
      Payload<Real>::nothing(run_context->d), Payload<Real>::nothing(run_context->d)};
  std::deque<Event<Real>> arrived;  // answers to send()
  std::size_t delivered = 0;        // prefix of `arrived`
  const Event<Real> nothing;
  double clock = 0;         // virtual: advances only if nothing is left to deliver
  double seconds_each = 0;  // time of one thread for one answer
  double shared_seconds = 0;
};

template <class Real>
ParallelSimulation<Real>::ParallelSimulation(std::shared_ptr<const RunContext<Real>> run_context,
                                             std::shared_ptr<const ClientObjectives<Real>> functions,
                                             const ParallelSimulationOptions& options,
                                             RankBinding<Real> binding)
    : impl_(std::make_unique<Impl>(std::move(run_context), std::move(functions), options,
                                   std::move(binding))) {}
template <class Real>
ParallelSimulation<Real>::~ParallelSimulation() = default;

template <class Real>
typename BatchTransport<Real>::BatchReplies ParallelSimulation<Real>::ask(
    const typename BatchTransport<Real>::BatchRequest& batch) {
  return impl_->ask(batch);
}
template <class Real>
std::uint64_t ParallelSimulation<Real>::send(ClientId client, const Request<Real>& request) {
  return impl_->send(client, request);
}
template <class Real>
const Event<Real>& ParallelSimulation<Real>::next(double deadline) {
  return impl_->next(deadline);
}
template <class Real>
double ParallelSimulation<Real>::now() const {
  return impl_->clock;
}
template <class Real>
double ParallelSimulation<Real>::shared_seconds() const {
  return impl_->shared_seconds;
}
template <class Real>
void ParallelSimulation<Real>::evaluate(View<Real> x, Evaluation<Real>& to) {
  impl_->evaluator.evaluate(x, to);
}

// Writes the format of FaultSimulation. The number of requests in it is 0, because it is not needed here.
template <class Real>
std::string ParallelSimulation<Real>::save_clients(std::span<const std::uint64_t> committed) {
  Saver saver;
  for (ClientId c = impl_->run_context->mine().first; c < impl_->run_context->mine().end; ++c) {
    std::string state;
    if (committed[c] != 0 && impl_->states.holds(c))
      state = impl_->with_state(c, committed[c],
                                [](const ClientRuntime<Real>& runtime) { return runtime.save(); });
    saver(std::uint32_t{0});
    saver(std::vector<char>(state.begin(), state.end()));
  }
  return saver.take();
}

template <class Real>
bool ParallelSimulation<Real>::load_clients(std::string_view bytes) {
  Loader loader(bytes);
  std::uint32_t requests = 0;
  std::vector<char> state;
  for (ClientId c = impl_->run_context->mine().first; c < impl_->run_context->mine().end; ++c) {
    loader(requests);
    loader(state);
    if (state.empty() || !impl_->states.has_state()) continue;
    impl_->states.reserve(c);
    impl_->states.begin(c);
    const bool good = impl_->with_state(c, 0, [&state](ClientRuntime<Real>& runtime) {
      return runtime.load({state.data(), state.size()});
    });
    if (!good) return false;
    impl_->states.settled(c);
  }
  return loader.done();
}

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

template class ParallelSimulation<float>;
template class ParallelSimulation<double>;

}  // namespace gradwire
