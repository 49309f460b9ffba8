#include "experiments/simulate/in_process.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>

#include "base/state.h"
#include "experiments/simulate/encoded_link.h"
#include "experiments/support/thread_pool.h"
#include "proto/wire/codec_context.h"

namespace gradwire {
namespace {

using Clock = std::chrono::steady_clock;

// The faults of one request, drawn from the seed.
struct Fate {
  bool crashes = false, wiped = false, request_lost = false, reply_lost = false, repeated = false;
  double delay = 0;  // place in the shuffled order
};

Fate draw_fate(const InProcessOptions& options, std::uint64_t seed, ClientId client, std::uint32_t request) {
  Fate fate;
  const Faults& faults = options.faults;
  if (!faults.any() && !options.draw_arrival) return fate;
  Stream stream({seed, client, request, Purpose::kFault});
  fate.crashes = stream.uniform() < faults.crashes;
  fate.wiped = stream.uniform() < faults.wiped;
  fate.request_lost = stream.uniform() < faults.lost_requests;
  fate.reply_lost = stream.uniform() < faults.lost_replies;
  fate.repeated = stream.uniform() < faults.duplicates;
  if (faults.shuffle || options.draw_arrival) fate.delay = stream.uniform();
  return fate;
}

}  // namespace

template <class Real>
struct InProcess<Real>::Impl {
  // What a client needs while it works.
  struct Seat {
    std::unique_ptr<ClientRuntime<Real>> runtime;
    std::unique_ptr<ClientRuntime<Real>> grave;  // a wiped one, kept while its reply may be in flight
    std::unique_ptr<EncodedLink<Real>> link;     // encoded only
  };
  struct Client {
    std::unique_ptr<Seat> seat;  // null: was never asked, or gave it back
    std::uint32_t requests = 0;
  };
  struct Work {
    ClientId client = 0;
    Envelope<Real> envelope;
    std::shared_ptr<const EncodedBody<Real>> body, resync;  // encoded only
    Fate fate;
    bool answered = false;
    Event<Real> event;
  };
  struct Worker {
    Scratch<Real> scratch;
    std::unique_ptr<Codec<Real>> codec;
  };

  Impl(std::shared_ptr<const Setup<Real>> s, std::vector<Oracle<Real>*> o, const InProcessOptions& opt)
      : setup(std::move(s)),
        oracles(std::move(o)),
        options(opt),
        context(codec_context(*setup, options.zstd)),
        codec(context),
        pool(std::max(1u, options.threads)),
        workers(pool.size()),
        clients(setup->n) {
    if (oracles.size() != setup->n) throw std::logic_error("InProcess needs one oracle per client");
    const Facts& facts = facts_of(*setup);
    const std::size_t vector_bytes = setup->n * setup->d * sizeof(Real);
    lends_seats = facts.client_state == ClientState::kNone && !facts.asynchronous && !options.faults.any() &&
                  3 * vector_bytes + setup->n * sizeof(ClientRuntime<Real>) > options.runtime_bytes;
    forgets = !options.faults.any() && 2 * vector_bytes > options.evaluation_bytes;
    for (auto& w : workers) w.codec = std::make_unique<Codec<Real>>(context);
  }

  Client& client(ClientId c) {
    Client& found = clients.at(c);
    if (found.seat) return found;
    if (spare.empty()) {
      found.seat = std::make_unique<Seat>();
      found.seat->runtime = std::make_unique<ClientRuntime<Real>>(setup, c, *oracles[c]);
    } else {
      found.seat = std::move(spare.back());
      spare.pop_back();
      found.seat->runtime->rebind(c, *oracles[c]);
    }
    if (lends_seats) seated.push_back(c);
    return found;
  }

  // A new ticket: nobody reads the answers to older tickets any more.
  void give_back() {
    if (queued > 0) return;
    for (const ClientId c : seated) spare.push_back(std::move(clients[c].seat));
    seated.clear();
    for (const ClientId c : evaluated) clients[c].seat->runtime->forget_evaluation();
    evaluated.clear();
  }

  std::uint64_t send(ClientId c, const Envelope<Real>& envelope) {
    if (envelope.ticket != body_ticket) give_back();
    if (envelope.request == Request::kGoodbye && !clients.at(c).seat && !options.faults.any())
      return Codec<Real>::envelope_bytes(0, 0);  // nothing to commit
    if (queued == queue.size()) queue.emplace_back();
    Work& work = queue[queued++];
    work.client = c;
    work.envelope = envelope;
    work.answered = false;
    if (forgets && !lends_seats && envelope.request == Request::kEvaluate) evaluated.push_back(c);
    // All clients that are asked with one ticket share the body.
    if (envelope.ticket != body_ticket || envelope.request != body_request) {
      body_ticket = envelope.ticket;
      body_request = envelope.request;
      body_bytes = envelope.body != nullptr ? codec.body_bytes(*envelope.body) : 0;
      body = options.encoded && envelope.body != nullptr ? codec.encode_body(*envelope.body) : nullptr;
    }
    work.body = body;
    work.resync =
        options.encoded && envelope.resync != nullptr ? codec.encode_body(*envelope.resync) : nullptr;
    return Codec<Real>::envelope_bytes(body_bytes,
                                       envelope.resync != nullptr ? codec.body_bytes(*envelope.resync) : 0);
  }

  // Lets every client with a request work, and puts the answers in the order of their arrival.
  void process() {
    for (std::size_t k = 0; k < queued; ++k) {
      Work& work = queue[k];
      Client& to = client(work.client);
      work.fate = draw_fate(options, setup->seed, work.client, to.requests++);
      if (work.fate.wiped) {
        to.seat->grave = std::move(to.seat->runtime);
        to.seat->runtime = std::make_unique<ClientRuntime<Real>>(setup, work.client, *oracles[work.client]);
      } else if (work.fate.crashes) {
        to.seat->runtime->drop_proposal();
      }
    }
    run_clients();
    deliver();
    queued = 0;
  }

  void run_clients() {
    const auto started = Clock::now();
    const auto one = [this](unsigned thread, std::size_t k) { answer(queue[k], workers[thread]); };
    // Waking threads costs more than a few tiny gradients; the bits do not depend on who computes them.
    constexpr double kWorthThreadsSeconds = 100e-6;
    if (last_batch_seconds * static_cast<double>(queued) < kWorthThreadsSeconds) {
      for (std::size_t k = 0; k < queued; ++k) one(0, k);
      last_batch_seconds =
          std::chrono::duration<double>(Clock::now() - started).count() / static_cast<double>(queued);
    } else {
      pool.for_each(queued, one);
    }
  }

  void answer(Work& work, Worker& worker) {
    if (work.fate.request_lost) return;
    Seat& to = *clients[work.client].seat;
    Envelope<Real> envelope = work.envelope;
    if (options.encoded) {
      if (!to.link) to.link = std::make_unique<EncodedLink<Real>>(context);
      envelope = to.link->down(codec.encode(work.envelope, work.body.get(), work.resync.get()));
    }
    const Uplink<Real>* reply = to.runtime->handle(envelope, worker.scratch);
    if (reply == nullptr || work.fate.reply_lost) return;
    work.answered = true;
    work.event.kind = Event<Real>::Kind::kReply;
    if (options.encoded) {
      const Encoded& bytes = worker.codec->encode(*reply);
      work.event.bytes = bytes.bytes;
      work.event.up = to.link->up(bytes, work.client, &worker.scratch.blocks);
    } else {
      // Nobody counts the bytes of an evaluation, and to count them the codec may have to compress it.
      const bool counted = work.envelope.request != Request::kEvaluate;
      work.event.bytes = counted ? worker.codec->encoded_bytes(*reply) : 0;
      work.event.up = *reply;
    }
  }

  void deliver() {
    arrived.clear();
    delivered = 0;
    arrived.insert(arrived.end(), late.begin(), late.end());  // duplicates from the batch before
    late.clear();
    const std::size_t first = arrived.size();
    order.clear();
    for (std::size_t k = 0; k < queued; ++k)
      if (queue[k].answered) order.push_back(k);
    if (options.faults.shuffle || options.draw_arrival)
      std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return queue[a].fate.delay < queue[b].fate.delay;
      });
    arrived.resize(first + order.size());
    for (std::size_t k = 0; k < order.size(); ++k) {
      arrived[first + k] = queue[order[k]].event;
      if (queue[order[k]].fate.repeated) late.push_back(queue[order[k]].event);
    }
  }

  const Event<Real>& next(double deadline) {
    if (queued > 0) {
      std::vector<Event<Real>> rest(arrived.begin() + static_cast<std::ptrdiff_t>(delivered), arrived.end());
      process();
      arrived.insert(arrived.begin(), rest.begin(), rest.end());
    }
    if (delivered < arrived.size()) return arrived[delivered++];
    clock = deadline;
    return nothing;
  }

  std::shared_ptr<const Setup<Real>> setup;
  std::vector<Oracle<Real>*> oracles;
  InProcessOptions options;
  CodecContext context;
  Codec<Real> codec;
  ThreadPool pool;
  std::vector<Worker> workers;
  std::vector<Client> clients;
  bool lends_seats = false, forgets = false;
  std::vector<ClientId> seated, evaluated;  // clients whose seat or evaluation give_back() frees
  std::vector<std::unique_ptr<Seat>> spare;

  std::vector<Work> queue;  // the first `queued` are to be done
  std::size_t queued = 0;
  std::uint64_t body_ticket = 0, body_bytes = 0;
  Request body_request = Request::kRound;
  std::shared_ptr<const EncodedBody<Real>> body;

  std::vector<std::size_t> order;
  std::vector<Event<Real>> arrived, late;
  std::size_t delivered = 0;
  const Event<Real> nothing;
  double clock = 0;               // virtual: moves only when nothing is left to deliver
  double last_batch_seconds = 0;  // per client, measured on one thread
};

template <class Real>
InProcess<Real>::InProcess(std::shared_ptr<const Setup<Real>> setup, std::vector<Oracle<Real>*> oracles,
                           const InProcessOptions& options)
    : impl_(std::make_unique<Impl>(std::move(setup), std::move(oracles), options)) {}
template <class Real>
InProcess<Real>::~InProcess() = default;

template <class Real>
std::uint64_t InProcess<Real>::send(ClientId client, const Envelope<Real>& envelope) {
  return impl_->send(client, envelope);
}
template <class Real>
const Event<Real>& InProcess<Real>::next(double deadline) {
  return impl_->next(deadline);
}
template <class Real>
double InProcess<Real>::now() const {
  return impl_->clock;
}
template <class Real>
ClientRuntime<Real>& InProcess<Real>::runtime(ClientId client) {
  return *impl_->client(client).seat->runtime;
}

template <class Real>
std::string InProcess<Real>::save_clients(std::span<const std::uint64_t> committed) {
  Impl& m = *impl_;
  Saver saver;
  for (ClientId c = 0; c < m.clients.size(); ++c) {
    const bool has_state = m.clients[c].seat && !m.lends_seats;
    saver(m.clients[c].requests);
    if (has_state) m.clients[c].seat->runtime->settle(committed[c]);
    const std::string state = has_state ? m.clients[c].seat->runtime->save() : "";
    saver(std::vector<char>(state.begin(), state.end()));
  }
  return saver.take();
}

template <class Real>
bool InProcess<Real>::load_clients(std::string_view bytes) {
  Impl& m = *impl_;
  Loader loader(bytes);
  std::vector<char> state;
  for (ClientId c = 0; c < m.clients.size(); ++c) {
    loader(m.clients[c].requests);
    loader(state);
    if (state.empty()) continue;
    if (!runtime(c).load({state.data(), state.size()})) return false;
  }
  return loader.done();
}

template class InProcess<float>;
template class InProcess<double>;

}  // namespace gradwire
