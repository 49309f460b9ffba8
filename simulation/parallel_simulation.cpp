#include "simulation/parallel_simulation.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
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
#include "simulation/idle_threads.h"
#include "simulation/local_client.h"
#include "simulation/reply_cache.h"
#include "simulation/shared_leaves.h"
#include "simulation/state_cache.h"

namespace gradwire {

template <class Real>
struct ParallelSimulation<Real>::Impl {
  using Clock = std::chrono::steady_clock;

  // Two slots never share a cache line.
  struct alignas(64) WorkerSlot {
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
  struct OrderedClient {
    std::size_t samples, place;  // place: index into the asked clients
  };

  Impl(std::shared_ptr<const RunContext<Real>> s, std::shared_ptr<const ClientObjectives<Real>> f,
       const ParallelSimulationOptions& options, RankBinding<Real> rank_binding)
      : run_context(std::move(s)),
        functions(std::move(f)),
        rank(std::move(rank_binding)),
        codec(codec_context(*run_context, zstd_of({}, false))),
        pool(std::max(1u, options.threads)),
        loop(pool, options.worth_threads_seconds, options.seconds_each),
        slots(make_slots()),
        idle(oracles()),
        evaluator(run_context->mine(), pool, oracles(), options.evaluation_bytes, options.seconds_each),
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
    if (here.first < here.end) share(batch, here);
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
      if (begins_count(asked, k, here.first)) sum.add(asked[k], counts[count_of(asked[k])]);
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

  // Answers for the clients asked[here], on several threads if that is faster. The bits do not depend on the
  // threads.
  void share(const BatchRequest& batch, AskedRange here) {
    // With fewer leaves than this, some threads would have no work at the end.
    constexpr std::size_t kLeavesPerThread = 16;
    const auto started = Clock::now();
    const std::size_t count = here.end - here.first;
    idle.share_among(count);
    if (!loop.uses_threads(count)) {
      loop.run(1, count, [&](unsigned thread, std::size_t) {
        answer_leaves(slots[thread], batch, here.first, here.end);
      });
    } else if (shared_leaves.find(batch.asked.subspan(here.first, count), kLeavesPerThread * pool.size())) {
      share_clients(batch, here);
    } else {
      share_leaves(batch, here);
    }
    shared_seconds += std::chrono::duration<double>(Clock::now() - started).count();
  }

  // Gives each thread whole leaves. Neighbours stay together, because their data and states are adjacent in
  // memory.
  void share_leaves(const BatchRequest& batch, AskedRange here) {
    constexpr std::size_t kMostTogether = 64, kTurnsPerThread = 8;
    const std::size_t count = here.end - here.first;
    const std::size_t together =
        std::clamp<std::size_t>(count / (pool.size() * kTurnsPerThread), 1, kMostTogether);
    const auto next_leaf = [&](std::size_t k) {
      while (k > here.first && k < here.end && leaf_of(batch.asked[k]) == leaf_of(batch.asked[k - 1])) ++k;
      return std::min(k, here.end);
    };
    loop.run((count + together - 1) / together, count, [&](unsigned thread, std::size_t turn) {
      const std::size_t begin = here.first + turn * together;
      answer_leaves(slots[thread], batch, next_leaf(begin), next_leaf(begin + together));
    });
  }

  // Gives each thread single clients, or a few very short ones. REQUIRES: shared_leaves.find() was called.
  void share_clients(const BatchRequest& batch, AskedRange here) {
    constexpr double kTurnSeconds = 10e-6;
    constexpr std::size_t kTurnsPerThread = 8;
    const std::size_t count = here.end - here.first;
    if (adds) shared_leaves.begin(std::span(replies).subspan(here.first, count));
    counts_apart.resize(count);
    const std::size_t most = std::max<std::size_t>(1, count / (pool.size() * kTurnsPerThread));
    const auto together = static_cast<std::size_t>(
        std::clamp(kTurnSeconds / loop.seconds_each(), 1.0, static_cast<double>(most)));
    set_order(batch.asked, here, together == 1);
    loop.run((count + together - 1) / together, count, [&](unsigned thread, std::size_t turn) {
      for (std::size_t k = turn * together; k < std::min(count, (turn + 1) * together); ++k)
        answer_apart(slots[thread], batch, order[k].place, here);
    });
    for (std::size_t k = here.first; k < here.end; ++k) {
      ReplyCounts& sum = counts[count_of(batch.asked[k])];
      if (begins_count(batch.asked, k, here.first)) sum = {};
      sum.add(counts_apart[k - here.first]);
    }
    shared_leaves.end(pool.size());
  }

  // Puts long clients first, unless the replies that then wait for their turn could take too much memory.
  void set_order(std::span<const ClientId> asked, AskedRange here, bool longest_first) {
    constexpr std::size_t kWaitingBytes = std::size_t{256} << 20;
    order.clear();
    for (std::size_t k = here.first; k < here.end; ++k)
      order.push_back({longest_first ? functions->sample_count(asked[k]) : 0, k});
    if (longest_first && (!adds || order.size() * run_context->d * sizeof(Real) <= kWaitingBytes))
      std::ranges::stable_sort(order, std::greater{}, &OrderedClient::samples);
  }

  // Answers for the clients asked[begin, end), which are whole leaves as far as this process has them.
  void answer_leaves(WorkerSlot& slot, const BatchRequest& batch, std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k) {
      const ClientId client = batch.asked[k];
      if (k == begin || leaf_of(client) != leaf_of(batch.asked[k - 1])) slot.leaf.begin(adds);
      ReplyCounts& count = counts[count_of(client)];
      if (begins_count(batch.asked, k, begin)) count = {};
      answer(slot, batch, client, [&](const Uplink<Real>& up, bool is_usable) {
        if (is_usable) {
          count.add(counts_of<Real>(up.parts, up.grad_calls, traits));
        } else {
          slot.leaf.leave_out();
        }
        replies[k] = slot.leaf.keep(up, slot.arena);
      });
    }
  }

  // Answers for the client asked[k], while other threads answer for the others of its leaf.
  void answer_apart(WorkerSlot& slot, const BatchRequest& batch, std::size_t k, AskedRange here) {
    answer(slot, batch, batch.asked[k], [&](const Uplink<Real>& up, bool is_usable) {
      counts_apart[k - here.first] =
          is_usable ? counts_of<Real>(up.parts, up.grad_calls, traits) : ReplyCounts{};
      if (adds) {
        shared_leaves.keep(k - here.first, up, is_usable, slot.arena);
      } else {
        replies[k] = keep_reply(up, slot.arena);
      }
    });
  }

  // Lets the client answer, and calls take(answer, is_usable).
  void answer(WorkerSlot& slot, const BatchRequest& batch, ClientId client, const auto& take) {
    Request<Real> request = batch.request;
    request.committed = batch.committed[client];
    const auto check = [&](const Uplink<Real>& up) {
      const bool is_usable =
          up.status == ReplyStatus::kReply && up.round == request.body->round && batch.server.accepts(up);
      if (is_usable) {
        ++slot.good;
      } else {
        slot.others.emplace_back(client, up.status);
      }
      take(up, is_usable);
    };
    std::optional<Downlink<Real>> lacked;
    work(slot, client, request, [&](const Uplink<Real>& up) {
      if (up.status == ReplyStatus::kNeedsState || up.status == ReplyStatus::kNeedsBroadcast)
        lacked = restored(batch.server, client, up.status);
      if (!lacked) check(up);
    });
    if (!lacked) return;
    request.resync = &*lacked;
    work(slot, client, request, check);
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
  // Returns whether asked[k] is the first asked client from `begin` on whose counts are added up in its
  // place.
  bool begins_count(std::span<const ClientId> asked, std::size_t k, std::size_t begin) const {
    return k == begin || count_of(asked[k]) != count_of(asked[k - 1]);
  }

  // Frees the replies at a new request id, because answers to older ones are not read any more.
  void forget_replies(std::size_t size) {
    if (replies.capacity() > 4 * size + 1024) replies = {};
    replies.resize(size);
    others.clear();
    arrived.clear();
    delivered = 0;
    for (WorkerSlot& slot : slots) slot.arena.clear();
  }

  // Lets the client answer, and calls take(answer) while the views of the answer are valid.
  void work(WorkerSlot& slot, ClientId client, const Request<Real>& request, const auto& take) {
    const bool is_round = request.kind == RequestKind::kRound;
    KeptState<Real> state;
    const KeptState<Real>* kept = nullptr;
    std::uint64_t known_to = request.committed;  // 0 if the client has seen nothing or lost its state
    if (states.has_state() && is_round) {
      states.reserve(client);
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
  ClientLoop loop;
  std::vector<WorkerSlot> slots;
  IdleThreads<Real> idle;
  Evaluator<Real> evaluator;
  StateCache<Real> states;
  const AlgorithmTraits& traits;
  const bool whole_leaves, adds;

  std::uint64_t request_id = 0;           // id of the last request
  std::vector<UplinkView<Real>> replies;  // to the last ask()
  std::vector<ClientId> others;           // clients of the last ask() without a usable reply
  std::vector<ReplyCounts> counts;        // by count_of()
  // Memory of share_clients().
  SharedLeaves<Real> shared_leaves;
  std::vector<ReplyCounts> counts_apart;  // by asked client
  std::vector<OrderedClient> order;
  std::vector<std::pair<ClientId, ReplyStatus>>
      remote_answers;  // answers to the last ask(), if ranks share the clients
  const Parts<Real> no_parts = {
      Payload<Real>::nothing(run_context->d), Payload<Real>::nothing(run_context->d),
      Payload<Real>::nothing(run_context->d), Payload<Real>::nothing(run_context->d)};
  std::deque<Event<Real>> arrived;  // answers to send()
  std::size_t delivered = 0;        // prefix of `arrived`
  const Event<Real> nothing;
  double clock = 0;  // virtual: advances only if nothing is left to deliver
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
  impl_->idle.share_among(impl_->run_context->mine().size());
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

template class ParallelSimulation<float>;
template class ParallelSimulation<double>;

}  // namespace gradwire
