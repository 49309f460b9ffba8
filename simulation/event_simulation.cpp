#include "simulation/event_simulation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/serialize.h"
#include "parallel/thread_pool.h"
#include "proto/wire/codec_context.h"
#include "simulation/broadcast_copy.h"
#include "simulation/evaluator.h"
#include "simulation/local_client.h"

namespace gradwire {

template <class Real>
struct EventSimulation<Real>::Impl {
  using Body = BroadcastCopy<Real>;

  enum class ClientStage : std::uint8_t { kIdle, kWorks, kComputed };
  struct Client {
    std::unique_ptr<LocalClient<Real>> local;  // null if it was never asked
    Request<Real> request;                     // the newest one; views body and resync
    Body* body = nullptr;
    std::unique_ptr<Body> resync;  // made when first needed, then kept
    InjectedFaults injected;
    ClientStage stage = ClientStage::kIdle;
    bool answered = false;  // in kComputed: whether a reply will arrive
    Event<Real> event;
    std::uint32_t requests = 0;
  };
  // Time at which a client finishes, or at which its reply arrives again.
  struct Completion {
    double at;
    std::uint64_t order;  // sequence number of the request
    std::uint64_t request_id;
    ClientId client;
    bool is_repetition;
    // Puts the earliest time on top of the heap, and the lowest client number among equal times. The
    // comparison is reversed, because a standard heap has its largest element on top.
    bool operator<(const Completion& o) const {
      if (at != o.at) return at > o.at;
      return client != o.client ? client > o.client : order > o.order;
    }
  };

  Impl(std::shared_ptr<const RunContext<Real>> s, std::shared_ptr<const ClientObjectives<Real>> f,
       const EventSimulationOptions& opt)
      : run_context(std::move(s)),
        functions(std::move(f)),
        options(opt),
        codec(codec_context(*run_context, zstd_of(options.zstd, options.encoded))),
        pool(std::max(1u, options.threads)),
        workers(make_workers(*functions, pool.size(), codec.context())),
        evaluator(run_context->mine(), pool, oracles_of(workers), 0),
        clients(run_context->n),
        keeps_state(traits_of(*run_context).client_state != ClientState::kNone) {
    if (functions->clients() != run_context->n)
      throw std::logic_error("EventSimulation: needs one function per client");
  }

  // ---- asking ----

  std::uint64_t send(ClientId c, const Request<Real>& request) {
    Client& to = clients.at(c);
    const bool is_shutdown = request.kind == RequestKind::kShutdown;
    if (is_shutdown && !to.local) return Codec<Real>::request_bytes(0, 0);
    Body* const body = request.body == nullptr ? nullptr : body_of(*request.body);
    const std::uint64_t resync_bytes = request.resync == nullptr ? 0 : codec.body_bytes(*request.resync);
    const std::uint64_t bytes = Codec<Real>::request_bytes(body == nullptr ? 0 : body->bytes, resync_bytes);
    // Do nothing if the client already works on this request.
    if (to.stage != ClientStage::kIdle && request.request_id == to.request.request_id &&
        request.resync == nullptr) {
      give_back(body);
      return bytes;
    }
    if (!to.local) to.local = std::make_unique<LocalClient<Real>>(run_context, c, *workers[0].oracle);
    finish(to, c);
    give_back(std::exchange(to.body, body));
    to.request = request;
    to.request.body = body == nullptr ? nullptr : &body->down();
    to.request.resync = nullptr;
    if (request.resync != nullptr) {
      if (!to.resync) to.resync = std::make_unique<Body>();
      to.resync->keep(*request.resync);
      if (options.encoded) to.resync->encoded = codec.encode_body(to.resync->down());
      to.request.resync = &to.resync->down();
    }
    to.injected = draw_faults(options.faults, false, run_context->seed, c, to.requests++);
    to.local->apply_faults(to.injected, run_context, c, *workers[0].oracle);
    to.stage = is_shutdown ? ClientStage::kIdle : ClientStage::kWorks;
    if (is_shutdown) {
      compute(to, c, workers[0]);
      to.stage = ClientStage::kIdle;
    } else if (!to.injected.request_lost) {
      add_done(c, request.request_id, false);
    } else {
      to.stage = ClientStage::kIdle;
    }
    return bytes;
  }

  void add_done(ClientId c, std::uint64_t request_id, bool is_repetition) {
    const double at = clock + options.seconds(c, request_id);
    if (std::isinf(at)) return;
    if (!(at >= clock))
      throw std::logic_error("EventSimulation: the seconds of a request are negative or NaN");
    heap.push_back({at, ++order, request_id, c, is_repetition});
    std::push_heap(heap.begin(), heap.end());
  }

  // Returns a copy of `down`. Successive requests with equal bodies share one copy.
  Body* body_of(const Downlink<Real>& down) {
    if (newest == nullptr || !newest->is(down)) {
      give_back(newest);
      if (free_bodies.empty()) {
        bodies.push_back(std::make_unique<Body>());
        free_bodies.push_back(bodies.back().get());
      }
      newest = free_bodies.back();
      free_bodies.pop_back();
      newest->keep(down);
      newest->bytes = codec.body_bytes(newest->down());
      if (options.encoded) newest->encoded = codec.encode_body(newest->down());
      newest->users = 1;
    }
    newest->users += 1;
    return newest;
  }
  void give_back(Body* body) {
    if (body != nullptr && --body->users == 0) free_bodies.push_back(body);
  }

  // ---- working ----

  // Computes the answer to the client's current request before the client gets another one, because its state
  // may depend on the answer.
  void finish(Client& client, ClientId c) {
    if (!keeps_state || client.stage != ClientStage::kWorks) return;
    compute(client, c, workers[0]);
    ++computed;
  }
  void compute(Client& client, ClientId c, LocalWorker<Real>& worker) {
    typename LocalClient<Real>::Bytes bytes;
    if (client.body != nullptr) bytes.body = client.body->encoded;
    if (client.request.resync != nullptr) bytes.resync = client.resync->encoded;
    client.event = {};
    client.answered = client.local->answer(c, client.request, options.encoded, bytes, client.injected, codec,
                                           worker, client.event);
    client.stage = ClientStage::kComputed;
  }

  // Returns true if the completion is still due. A repetition is always due, whatever its client does
  // meanwhile.
  bool is_current(const Completion& done) const {
    const Client& client = clients[done.client];
    return done.is_repetition ||
           (client.request.request_id == done.request_id && client.stage != ClientStage::kIdle);
  }

  // Computes the next answer. With several threads, also computes later answers, if that is expected to take
  // long enough.
  void compute_first() {
    const Completion first = heap.front();
    if (pool.size() == 1) {  // no need to measure the time
      compute(clients[first.client], first.client, workers[0]);
      ++computed;
      return;
    }
    const auto started = std::chrono::steady_clock::now();
    constexpr std::size_t kAhead = 4;  // answers per thread
    const std::size_t ahead = pool.size() * kAhead;
    std::size_t count = 1;
    if (seconds_each * static_cast<double>(ahead) < options.worth_threads_seconds) {
      compute(clients[first.client], first.client, workers[0]);
    } else {
      batch.clear();
      taken.clear();
      while (!heap.empty() && batch.size() < ahead && taken.size() < 4 * ahead) {
        std::pop_heap(heap.begin(), heap.end());
        taken.push_back(heap.back());
        heap.pop_back();
        const Completion& done = taken.back();
        if (!is_current(done)) {
          taken.pop_back();
        } else if (!done.is_repetition && clients[done.client].stage == ClientStage::kWorks) {
          batch.push_back(done.client);
        }
      }
      for (const Completion& done : taken) {
        heap.push_back(done);
        std::push_heap(heap.begin(), heap.end());
      }
      count = std::max<std::size_t>(1, batch.size());
      pool.for_each(batch.size(), [this](unsigned thread, std::size_t k) {
        compute(clients[batch[k]], batch[k], workers[thread]);
      });
    }
    computed += count;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
    seconds_each = took.count() * (count == 1 ? 1 : pool.size()) / static_cast<double>(count);
  }

  const Event<Real>& next(double deadline) {
    while (!heap.empty()) {
      const Completion done = heap.front();
      Client& client = clients[done.client];
      if (!is_current(done)) {
        pop();
        continue;
      }
      if (done.at > deadline) break;
      if (!done.is_repetition && client.stage == ClientStage::kWorks) {
        compute_first();
        continue;  // the order of the heap has not changed
      }
      pop();
      clock = std::max(clock, done.at);
      if (done.is_repetition) {
        repetition.kind = Event<Real>::Kind::kReply;
        repetition.up.client = done.client;
        repetition.up.request_id = done.request_id;
        repetition.repeated = true;
        return repetition;
      }
      client.stage = ClientStage::kIdle;
      if (!client.answered) continue;
      if (client.injected.repeated) add_done(done.client, done.request_id, true);
      return client.event;
    }
    clock = std::max(clock, deadline);
    return nothing;
  }
  void pop() {
    std::pop_heap(heap.begin(), heap.end());
    heap.pop_back();
  }

  // ---- snapshots ----

  // Content of the heap, for a snapshot.
  struct Times {
    std::vector<double> at;
    std::vector<std::uint64_t> order, request_id;
    std::vector<ClientId> client;
    std::vector<char> is_repetition;
    static void fields(auto& self, auto&& visit) {
      visit(self.at), visit(self.order), visit(self.request_id), visit(self.client),
          visit(self.is_repetition);
    }
  };

  std::string save(std::span<const std::uint64_t> committed) {
    Saver saver;
    saver(clock), saver(order);
    std::vector<const Body*> kept;  // without duplicates
    std::unordered_map<const Body*, std::uint64_t> numbers;
    for (const Client& client : clients)
      if (client.stage != ClientStage::kIdle && client.body != nullptr &&
          numbers.try_emplace(client.body, kept.size()).second)
        kept.push_back(client.body);
    saver(static_cast<std::uint64_t>(kept.size()));
    for (const Body* body : kept) body->save(saver);
    for (ClientId c = 0; c < clients.size(); ++c) {
      Client& client = clients[c];
      finish(client, c);
      saver(client.requests), saver(client.local != nullptr);
      if (!client.local) continue;
      client.local->save(committed[c], keeps_state && options.faults.crashes > 0, saver);
      saver(client.stage != ClientStage::kIdle);
      if (client.stage == ClientStage::kIdle) continue;
      const Request<Real>& at = client.request;
      saver(static_cast<std::uint8_t>(at.kind)), saver(at.request_id), saver(at.committed);
      saver(client.body == nullptr ? kNoBody : numbers.at(client.body)), saver(at.resync != nullptr);
      if (at.resync != nullptr) client.resync->save(saver);
      saver(client.injected.reply_lost), saver(client.injected.repeated);
    }
    Times times;
    for (const Completion& done : heap) {
      if (!is_current(done)) continue;
      times.at.push_back(done.at);
      times.order.push_back(done.order);
      times.request_id.push_back(done.request_id);
      times.client.push_back(done.client);
      times.is_repetition.push_back(done.is_repetition);
    }
    Times::fields(times, saver);
    return saver.take();
  }

  bool load(std::string_view bytes) {
    Loader loader(bytes);
    std::uint64_t count = 0;
    loader(clock), loader(order), loader(count);
    if (count > clients.size()) return false;
    for (std::uint64_t k = 0; k < count; ++k) {
      bodies.push_back(std::make_unique<Body>());
      if (!load_body(*bodies.back(), loader)) return false;
    }
    for (ClientId c = 0; c < clients.size(); ++c)
      if (!load_client(c, loader)) return false;
    for (const auto& body : bodies)
      if (body->users == 0) return false;
    Times times;
    Times::fields(times, loader);
    const std::size_t size = times.at.size();
    if (times.order.size() != size || times.request_id.size() != size || times.client.size() != size ||
        times.is_repetition.size() != size)
      return false;
    for (std::size_t k = 0; k < size; ++k) {
      if (times.client[k] >= clients.size() || !(times.at[k] >= clock)) return false;
      heap.push_back(
          {times.at[k], times.order[k], times.request_id[k], times.client[k], times.is_repetition[k] != 0});
      std::push_heap(heap.begin(), heap.end());
    }
    return loader.done();
  }
  bool load_body(Body& body, Loader& loader) {
    if (!body.load(loader)) return false;
    body.bytes = codec.body_bytes(body.down());
    if (options.encoded) body.encoded = codec.encode_body(body.down());
    return true;
  }
  bool load_client(ClientId c, Loader& loader) {
    Client& client = clients[c];
    std::uint8_t was_asked = 0, works = 0, has_resync = 0, reply_lost = 0, repeated = 0;
    loader(client.requests), loader(was_asked);
    if (was_asked == 0) return true;
    client.local = std::make_unique<LocalClient<Real>>(run_context, c, *workers[0].oracle);
    if (!client.local->load(loader)) return false;
    loader(works);
    if (works == 0) return true;
    Request<Real>& at = client.request;
    std::uint8_t kind = 0;
    std::uint64_t body = 0;
    loader(kind), loader(at.request_id), loader(at.committed), loader(body), loader(has_resync);
    if (kind > static_cast<std::uint8_t>(RequestKind::kMeasure) || (body >= bodies.size() && body != kNoBody))
      return false;
    at.kind = static_cast<RequestKind>(kind);
    if (body != kNoBody) {
      client.body = bodies[body].get();
      client.body->users += 1;
      at.body = &client.body->down();
    }
    if (has_resync != 0) {
      client.resync = std::make_unique<Body>();
      if (!load_body(*client.resync, loader)) return false;
      at.resync = &client.resync->down();
    }
    loader(reply_lost), loader(repeated);
    client.injected.reply_lost = reply_lost != 0;
    client.injected.repeated = repeated != 0;
    client.stage = ClientStage::kWorks;
    return true;
  }
  static constexpr std::uint64_t kNoBody = UINT64_MAX;

  std::shared_ptr<const RunContext<Real>> run_context;
  std::shared_ptr<const ClientObjectives<Real>> functions;
  EventSimulationOptions options;
  Codec<Real> codec;
  ThreadPool pool;
  std::vector<LocalWorker<Real>> workers;
  Evaluator<Real> evaluator;
  std::vector<Client> clients;
  const bool keeps_state;

  std::vector<std::unique_ptr<Body>> bodies;
  std::vector<Body*> free_bodies;
  Body* newest = nullptr;  // counts as one of its own users

  std::vector<Completion> heap;
  std::uint64_t order = 0, computed = 0;
  double clock = 0;
  double seconds_each = 0;  // wall time of one thread for one answer
  std::vector<Completion> taken;
  std::vector<ClientId> batch;
  Event<Real> repetition;
  const Event<Real> nothing;
};

template <class Real>
EventSimulation<Real>::EventSimulation(std::shared_ptr<const RunContext<Real>> run_context,
                                       std::shared_ptr<const ClientObjectives<Real>> functions,
                                       const EventSimulationOptions& options)
    : impl_(std::make_unique<Impl>(std::move(run_context), std::move(functions), options)) {}
template <class Real>
EventSimulation<Real>::~EventSimulation() = default;

template <class Real>
std::uint64_t EventSimulation<Real>::send(ClientId client, const Request<Real>& request) {
  return impl_->send(client, request);
}
template <class Real>
const Event<Real>& EventSimulation<Real>::next(double deadline) {
  return impl_->next(deadline);
}
template <class Real>
double EventSimulation<Real>::now() const {
  return impl_->clock;
}
template <class Real>
void EventSimulation<Real>::evaluate(View<Real> x, Evaluation<Real>& to) {
  impl_->evaluator.evaluate(x, to);
}
template <class Real>
std::uint64_t EventSimulation<Real>::computed() const {
  return impl_->computed;
}

template <class Real>
std::string EventSimulation<Real>::save_clients(std::span<const std::uint64_t> committed) {
  return impl_->save(committed);
}

template <class Real>
bool EventSimulation<Real>::load_clients(std::string_view bytes) {
  return impl_->load(bytes);
}

template class EventSimulation<float>;
template class EventSimulation<double>;

}  // namespace gradwire
