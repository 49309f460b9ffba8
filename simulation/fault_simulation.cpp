#include "simulation/fault_simulation.h"

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "base/serialize.h"
#include "parallel/thread_pool.h"
#include "proto/wire/codec_context.h"
#include "simulation/evaluator.h"
#include "simulation/idle_threads.h"
#include "simulation/local_client.h"

namespace gradwire {

template <class Real>
struct FaultSimulation<Real>::Impl {
  struct Client {
    // Null if the client was never asked, or if its runtime went to another client.
    std::unique_ptr<LocalClient<Real>> local;
    std::uint32_t requests = 0;
  };
  struct ClientWork {
    ClientId client = 0;
    Request<Real> request;
    typename LocalClient<Real>::Bytes bytes;
    InjectedFaults injected;
    bool answered = false;
    Event<Real> event;
  };
  Impl(std::shared_ptr<const RunContext<Real>> s, std::shared_ptr<const ClientObjectives<Real>> f,
       const FaultSimulationOptions& opt)
      : run_context(std::move(s)),
        functions(std::move(f)),
        options(opt),
        context(codec_context(*run_context, zstd_of(options.zstd, options.encoded))),
        codec(context),
        pool(std::max(1u, options.threads)),
        loop(pool, options.worth_threads_seconds, kUnknownSeconds),
        workers(make_workers(*functions, pool.size(), context)),
        idle(oracles_of(workers)),
        evaluator(run_context->mine(), pool, oracles_of(workers), options.evaluation_bytes),
        clients(run_context->n) {
    if (functions->clients() != run_context->n)
      throw std::logic_error("FaultSimulation: needs one function per client");
    const AlgorithmTraits& traits = traits_of(*run_context);
    const std::size_t vector_bytes = run_context->n * run_context->d * sizeof(Real);
    reuses_runtimes = traits.client_state == ClientState::kNone && !traits.asynchronous &&
                      !options.faults.any() &&
                      3 * vector_bytes + run_context->n * sizeof(ClientRuntime<Real>) > options.runtime_bytes;
    forgets = !traits.asynchronous && !options.faults.any() && 2 * vector_bytes > options.evaluation_bytes;
  }

  Client& client(ClientId c) {
    Client& found = clients.at(c);
    if (found.local) return found;
    if (spare.empty()) {
      found.local = std::make_unique<LocalClient<Real>>(run_context, c, *workers[0].oracle);
    } else {
      found.local = std::move(spare.back());
      spare.pop_back();
      found.local->runtime->rebind(c, *workers[0].oracle);
    }
    if (reuses_runtimes) holders.push_back(c);
    return found;
  }

  // Frees runtimes and evaluations at a new request id, because answers to older ones are not read any more.
  void give_back() {
    if (queued > 0) return;
    for (const ClientId c : holders) spare.push_back(std::move(clients[c].local));
    holders.clear();
    for (const ClientId c : evaluated) clients[c].local->runtime->forget_evaluation();
    evaluated.clear();
  }

  std::uint64_t send(ClientId c, const Request<Real>& request) {
    if (request.request_id != body_request_id) give_back();
    if (request.kind == RequestKind::kShutdown && !clients.at(c).local && !options.faults.any())
      return Codec<Real>::request_bytes(0, 0);  // nothing to commit
    if (queued == queue.size()) queue.emplace_back();
    ClientWork& work = queue[queued++];
    work.client = c;
    work.request = request;
    work.answered = false;
    if (forgets && !reuses_runtimes && is_evaluation(request.kind)) evaluated.push_back(c);
    // One body serves all clients that are asked with the same request id.
    if (request.request_id != body_request_id || request.kind != body_kind) {
      body_request_id = request.request_id;
      body_kind = request.kind;
      body_bytes = request.body != nullptr ? codec.body_bytes(*request.body) : 0;
      body = options.encoded && request.body != nullptr ? codec.encode_body(*request.body) : nullptr;
    }
    work.bytes.body = body;
    work.bytes.resync =
        options.encoded && request.resync != nullptr ? codec.encode_body(*request.resync) : nullptr;
    return Codec<Real>::request_bytes(body_bytes,
                                      request.resync != nullptr ? codec.body_bytes(*request.resync) : 0);
  }

  // Computes the answers of all queued requests, and puts them in the order of arrival.
  void process() {
    for (std::size_t k = 0; k < queued; ++k) {
      ClientWork& work = queue[k];
      Client& to = client(work.client);
      work.injected =
          draw_faults(options.faults, options.draw_arrival, run_context->seed, work.client, to.requests++);
      to.local->apply_faults(work.injected, run_context, work.client, *workers[0].oracle);
    }
    run_clients();
    deliver();
    queued = 0;
  }

  // Answers all queued requests, those of long clients first.
  void run_clients() {
    order.clear();
    for (std::size_t k = 0; k < queued; ++k) order.push_back(k);
    if (loop.uses_threads(queued))
      std::ranges::stable_sort(order, std::greater{},
                               [this](std::size_t k) { return functions->sample_count(queue[k].client); });
    idle.share_among(queued);
    loop.run(queued, queued,
             [this](unsigned thread, std::size_t k) { answer(queue[order[k]], workers[thread]); });
  }

  void answer(ClientWork& work, LocalWorker<Real>& worker) {
    work.answered = clients[work.client].local->answer(work.client, work.request, options.encoded, work.bytes,
                                                       work.injected, codec, worker, work.event,
                                                       evaluator.known(work.client));
  }

  void deliver() {
    arrived.clear();
    delivered = 0;
    arrived.insert(arrived.end(), late.begin(), late.end());  // duplicates of the previous batch
    late.clear();
    const std::size_t first = arrived.size();
    order.clear();
    for (std::size_t k = 0; k < queued; ++k)
      if (queue[k].answered) order.push_back(k);
    if (options.faults.shuffle || options.draw_arrival)
      std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return queue[a].injected.delay < queue[b].injected.delay;
      });
    arrived.resize(first + order.size());
    for (std::size_t k = 0; k < order.size(); ++k) {
      arrived[first + k] = queue[order[k]].event;
      if (queue[order[k]].injected.repeated) late.push_back(queue[order[k]].event);
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

  std::shared_ptr<const RunContext<Real>> run_context;
  std::shared_ptr<const ClientObjectives<Real>> functions;
  FaultSimulationOptions options;
  CodecContext context;
  Codec<Real> codec;
  ThreadPool pool;
  ClientLoop loop;
  std::vector<LocalWorker<Real>> workers;
  IdleThreads<Real> idle;
  Evaluator<Real> evaluator;
  std::vector<Client> clients;
  bool reuses_runtimes = false, forgets = false;
  std::vector<ClientId> holders, evaluated;  // clients whose slot or evaluation give_back() frees
  std::vector<std::unique_ptr<LocalClient<Real>>> spare;

  std::vector<ClientWork> queue;  // the first `queued` are pending
  std::size_t queued = 0;
  std::uint64_t body_request_id = 0, body_bytes = 0;
  RequestKind body_kind = RequestKind::kRound;
  std::shared_ptr<const EncodedBody<Real>> body;

  std::vector<std::size_t> order;
  std::vector<Event<Real>> arrived, late;
  std::size_t delivered = 0;
  const Event<Real> nothing;
  double clock = 0;  // virtual: advances only if nothing is left to deliver
};

template <class Real>
FaultSimulation<Real>::FaultSimulation(std::shared_ptr<const RunContext<Real>> run_context,
                                       std::shared_ptr<const ClientObjectives<Real>> functions,
                                       const FaultSimulationOptions& options)
    : impl_(std::make_unique<Impl>(std::move(run_context), std::move(functions), options)) {}
template <class Real>
FaultSimulation<Real>::~FaultSimulation() = default;

template <class Real>
std::uint64_t FaultSimulation<Real>::send(ClientId client, const Request<Real>& request) {
  return impl_->send(client, request);
}
template <class Real>
const Event<Real>& FaultSimulation<Real>::next(double deadline) {
  return impl_->next(deadline);
}
template <class Real>
double FaultSimulation<Real>::now() const {
  return impl_->clock;
}
template <class Real>
void FaultSimulation<Real>::evaluate(View<Real> x, Evaluation<Real>& to) {
  impl_->idle.share_among(impl_->run_context->mine().size());
  impl_->evaluator.evaluate(x, to);
}
template <class Real>
ClientRuntime<Real>& FaultSimulation<Real>::runtime(ClientId client) {
  return *impl_->client(client).local->runtime;
}

template <class Real>
std::string FaultSimulation<Real>::save_clients(std::span<const std::uint64_t> committed) {
  Impl& m = *impl_;
  Saver saver;
  for (ClientId c = 0; c < m.clients.size(); ++c) {
    const bool has_state = m.clients[c].local && !m.reuses_runtimes;
    saver(m.clients[c].requests);
    saver(static_cast<std::uint8_t>(has_state));
    if (has_state) m.clients[c].local->save(committed[c], m.options.faults.crashes > 0, saver);
  }
  return saver.take();
}

template <class Real>
bool FaultSimulation<Real>::load_clients(std::string_view bytes) {
  Impl& m = *impl_;
  Loader loader(bytes);
  for (ClientId c = 0; c < m.clients.size(); ++c) {
    std::uint8_t has_state = 0;
    loader(m.clients[c].requests);
    loader(has_state);
    if (has_state != 0 && !m.client(c).local->load(loader)) return false;
  }
  return loader.done();
}

template class FaultSimulation<float>;
template class FaultSimulation<double>;

}  // namespace gradwire
