#include "experiments/simulate/virtual_clients.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/state.h"
#include "experiments/simulate/evaluator.h"
#include "experiments/simulate/kept_replies.h"
#include "experiments/simulate/kept_states.h"
#include "experiments/simulate/local_client.h"
#include "experiments/support/thread_pool.h"
#include "proto/wire/codec_context.h"
#include "rounds/runtime.h"

namespace gradwire {

template <class Real>
struct VirtualClients<Real>::Impl {
  using Clock = std::chrono::steady_clock;

  struct Seat {
    LocalWorker<Real> worker;
    std::unique_ptr<ClientRuntime<Real>> runtime;
    Arena arena;  // of the replies that this seat has given
  };
  struct Asked {
    ClientId client;
    std::uint32_t envelope;  // in `envelopes`
    std::uint64_t committed;
    const KeptReply<Real>* reply;  // null: none
  };

  Impl(std::shared_ptr<const Setup<Real>> s, std::shared_ptr<const Population<Real>> f,
       const VirtualClientsOptions& options)
      : setup(std::move(s)),
        functions(std::move(f)),
        codec(codec_context(*setup, zstd_of({}, false))),
        pool(std::max(1u, options.threads)),
        seats(make_seats()),
        evaluator(*functions, pool, oracles(), options.evaluation_bytes),
        states(setup->n, *make_client<Real>(setup)) {
    if (functions->clients() != setup->n)
      throw std::logic_error("VirtualClients needs one function per client");
  }

  std::vector<Seat> make_seats() {
    std::vector<LocalWorker<Real>> workers = make_workers(*functions, pool.size(), codec.context());
    std::vector<Seat> made(workers.size());
    for (std::size_t k = 0; k < made.size(); ++k) {
      made[k].worker = std::move(workers[k]);
      made[k].runtime = std::make_unique<ClientRuntime<Real>>(setup, 0, *made[k].worker.oracle);
    }
    return made;
  }
  std::vector<MovableOracle<Real>*> oracles() const {
    std::vector<MovableOracle<Real>*> all;
    for (const Seat& seat : seats) all.push_back(seat.worker.oracle.get());
    return all;
  }

  std::uint64_t send(ClientId client, const Envelope<Real>& envelope) {
    if (client >= setup->n) throw std::logic_error("VirtualClients: there is no such client");
    if (envelope.request == Request::kGoodbye) return Codec<Real>::envelope_bytes(0, 0);
    if (first_new == asked.size() && envelope.ticket != last.ticket) forget_replies();
    const bool is_new = envelopes.empty() || envelope.ticket != last.ticket ||
                        envelope.request != last.request || envelope.body != last.body ||
                        envelope.resync != last.resync;
    if (is_new) {
      last = envelope;
      envelopes.push_back(envelope);
      body_bytes = envelope.body == nullptr ? 0 : codec.body_bytes(*envelope.body);
      resync_bytes = envelope.resync == nullptr ? 0 : codec.body_bytes(*envelope.resync);
    }
    if (states.has_state() && envelope.request == Request::kRound) states.reserve(client);
    asked.push_back({client, static_cast<std::uint32_t>(envelopes.size() - 1), envelope.committed, nullptr});
    return Codec<Real>::envelope_bytes(body_bytes, resync_bytes);
  }

  // A new ticket: nobody reads the answers to older tickets any more.
  void forget_replies() {
    const std::size_t count = asked.size();
    asked.clear();
    if (asked.capacity() > 4 * count + 1024) asked.shrink_to_fit();
    envelopes.clear();
    first_new = delivered = 0;
    for (Seat& seat : seats) seat.arena.clear();
  }

  // Lets all that were asked work.
  void process() {
    const std::size_t first = first_new, count = asked.size() - first_new;
    first_new = asked.size();
    const auto started = Clock::now();
    // Waking threads costs more than a few tiny gradients; the bits do not depend on who computes them.
    constexpr double kWorthThreadsSeconds = 100e-6;
    if (pool.size() == 1 || seconds_each * static_cast<double>(count) < kWorthThreadsSeconds) {
      for (std::size_t k = 0; k < count; ++k) work(seats[0], asked[first + k]);
      const std::chrono::duration<double> took = Clock::now() - started;
      seconds_each = took.count() / static_cast<double>(count);
      return;
    }
    // Neighbours together: their data and states lie side by side.
    constexpr std::size_t kMostTogether = 64, kTurnsPerThread = 8;
    const std::size_t together =
        std::clamp<std::size_t>(count / (pool.size() * kTurnsPerThread), 1, kMostTogether);
    pool.for_each((count + together - 1) / together, [&](unsigned thread, std::size_t turn) {
      const std::size_t end = std::min(count, (turn + 1) * together);
      for (std::size_t k = turn * together; k < end; ++k) work(seats[thread], asked[first + k]);
    });
  }

  void work(Seat& seat, Asked& one) {
    Envelope<Real> envelope = envelopes[one.envelope];
    envelope.committed = one.committed;
    const bool is_round = envelope.request == Request::kRound;
    KeptState<Real> state;
    const KeptState<Real>* kept = nullptr;
    if (states.has_state() && is_round) {
      if (one.committed == 0) states.begin(one.client);
      state = states.of(one.client);
      kept = &state;
    }
    ClientRuntime<Real>& runtime = *seat.runtime;
    seat.worker.oracle->move_to(one.client);
    runtime.swap_in(one.client, one.committed, *seat.worker.oracle, evaluator.known(one.client), kept);
    if (const Uplink<Real>* const up = runtime.handle(envelope, seat.worker.scratch)) {
      const std::uint64_t bytes = is_round ? seat.worker.codec->encoded_bytes(*up) : 0;
      one.reply = KeptReply<Real>::copy(*up, bytes, seat.arena);
      if (is_round && up->answer == Answer::kReply) runtime.settle(envelope.ticket);
    }
    runtime.swap_out(kept);
  }

  const Event<Real>& next(double deadline) {
    if (first_new < asked.size()) process();
    while (delivered < asked.size()) {
      const Asked& one = asked[delivered++];
      if (one.reply == nullptr) continue;
      event.kind = Event<Real>::Kind::kReply;
      event.bytes = one.reply->bytes();
      event.up = one.reply->reply(one.client, envelopes[one.envelope].ticket);
      return event;
    }
    clock = deadline;
    return nothing;
  }

  // What is at work at the seat, so that its half can save or load the state of a client.
  template <class Use>
  auto with_state(ClientId client, std::uint64_t committed, const Use& use) {
    const KeptState<Real> kept = states.of(client);
    ClientRuntime<Real>& runtime = *seats[0].runtime;
    runtime.swap_in(client, committed, *seats[0].worker.oracle, {}, &kept);
    const auto result = use(runtime);
    runtime.swap_out(&kept);
    return result;
  }

  std::shared_ptr<const Setup<Real>> setup;
  std::shared_ptr<const Population<Real>> functions;
  Codec<Real> codec;
  ThreadPool pool;
  std::vector<Seat> seats;
  Evaluator<Real> evaluator;
  KeptStates<Real> states;

  std::vector<Asked> asked;
  std::size_t first_new = 0, delivered = 0;  // in `asked`: not computed yet; not handed out yet
  std::vector<Envelope<Real>> envelopes;     // what is asked, without `committed`
  Envelope<Real> last;
  std::uint64_t body_bytes = 0, resync_bytes = 0;  // of `last`
  Event<Real> event;
  const Event<Real> nothing;
  double clock = 0;         // virtual: moves only when nothing is left to deliver
  double seconds_each = 0;  // of one thread for one answer
};

template <class Real>
VirtualClients<Real>::VirtualClients(std::shared_ptr<const Setup<Real>> setup,
                                     std::shared_ptr<const Population<Real>> functions,
                                     const VirtualClientsOptions& options)
    : impl_(std::make_unique<Impl>(std::move(setup), std::move(functions), options)) {}
template <class Real>
VirtualClients<Real>::~VirtualClients() = default;

template <class Real>
std::uint64_t VirtualClients<Real>::send(ClientId client, const Envelope<Real>& envelope) {
  return impl_->send(client, envelope);
}
template <class Real>
const Event<Real>& VirtualClients<Real>::next(double deadline) {
  return impl_->next(deadline);
}
template <class Real>
double VirtualClients<Real>::now() const {
  return impl_->clock;
}
template <class Real>
void VirtualClients<Real>::evaluate(View<Real> x, Evaluation<Real>& to) {
  impl_->evaluator.evaluate(x, to);
}

// In the form of InProcess, whose clients count their requests.
template <class Real>
std::string VirtualClients<Real>::save_clients(std::span<const std::uint64_t> committed) {
  Saver saver;
  for (ClientId c = 0; c < impl_->setup->n; ++c) {
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
bool VirtualClients<Real>::load_clients(std::string_view bytes) {
  Loader loader(bytes);
  std::uint32_t requests = 0;
  std::vector<char> state;
  for (ClientId c = 0; c < impl_->setup->n; ++c) {
    loader(requests);
    loader(state);
    if (state.empty() || !impl_->states.has_state()) continue;
    impl_->states.reserve(c);
    impl_->states.begin(c);
    const bool good = impl_->with_state(c, 0, [&state](ClientRuntime<Real>& runtime) {
      return runtime.load({state.data(), state.size()});
    });
    if (!good) return false;
  }
  return loader.done();
}

template class VirtualClients<float>;
template class VirtualClients<double>;

}  // namespace gradwire
