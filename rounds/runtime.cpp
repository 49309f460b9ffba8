#include "rounds/runtime.h"

#include <stdexcept>

#include "base/serialize.h"
#include "rounds/evaluation.h"
#include "rounds/finite.h"

namespace gradwire {
template <class Real>
ClientRuntime<Real>::ClientRuntime(std::shared_ptr<const RunContext<Real>> run_context, ClientId client,
                                   Oracle<Real>& oracle)
    : run_context_(std::move(run_context)),
      client_(client),
      oracle_(oracle),
      algorithm_(make_client<Real>(run_context_)),
      stateless_(traits_of(*run_context_).client_state == ClientState::kNone),
      asynchronous_(traits_of(*run_context_).asynchronous) {}

template <class Real>
bool ClientRuntime<Real>::accepts(const Request<Real>& request) const {
  if (request.resync != nullptr && !algorithm_->accepts(*request.resync, true)) return false;
  switch (request.kind) {
    case RequestKind::kRound: return request.body != nullptr && algorithm_->accepts(*request.body, false);
    case RequestKind::kEvaluate:
    case RequestKind::kMeasure:
      return request.body != nullptr && request.body->parts.size() == 1 &&
             request.body->parts[0].shape == Shape::kDense && request.body->parts[0].dim == run_context_->d;
    case RequestKind::kShutdown: return true;
  }
  return false;
}

template <class Real>
const Uplink<Real>* ClientRuntime<Real>::handle(const Request<Real>& request, Scratch<Real>& scratch) {
  if (request.request_id < newest_) return nullptr;  // late
  newest_ = request.request_id;
  settle(request.committed);
  switch (request.kind) {
    case RequestKind::kRound: return reply(request, scratch);
    case RequestKind::kEvaluate:
    case RequestKind::kMeasure: return evaluate(request);
    case RequestKind::kShutdown: break;
  }
  return nullptr;
}

template <class Real>
const Uplink<Real>* ClientRuntime<Real>::reply(const Request<Real>& request, Scratch<Real>& scratch) {
  // The request is a repetition. Ignore its resync, which is for an earlier answer that crossed it on the
  // way.
  if (pending_ && request.request_id == last_.request_id && request.committed == committed_) return &last_;
  pending_ = false;  // an unused proposal is dropped: nothing to undo
  const ClientContext<Real> context{client_,
                                    run_context_->seed,
                                    request.request_id,
                                    request.committed == 0,
                                    oracle_,
                                    run_context_->compressor,
                                    scratch,
                                    draw_number(asynchronous_, request.body->round, request.request_id),
                                    early_};
  // An earlier process of this client may have asked for the resync, perhaps only for a broadcast. Such a
  // resync does not restore this process.
  const bool lacked_state =
      last_.request_id == request.request_id && last_.status == ReplyStatus::kNeedsState;
  if (request.resync != nullptr && (stateless_ || lacked_state || request.committed == committed_)) {
    // Keep nothing of a state that the server does not know, such as a replica of other broadcasts.
    if (!stateless_ && request.committed != committed_) algorithm_ = make_client<Real>(run_context_);
    algorithm_->adopt(*request.resync, context);
    committed_ = request.committed;
  }
  if (stateless_) committed_ = request.committed;
  if (request.committed == 0 && committed_ != 0) {
    // The server has used no answer of this client, so both restart from the initial state.
    algorithm_ = make_client<Real>(run_context_);
    committed_ = 0;
  }
  const std::uint64_t calls_before = oracle_.grad_calls();
  if (request.committed != committed_) {
    last_ = {};
    last_.round = request.body->round;
    last_.status = ReplyStatus::kNeedsState;
  } else {
    last_ = algorithm_->reply(*request.body, context);
    pending_ = last_.status == ReplyStatus::kReply;
  }
  if (pending_ && !is_finite(last_)) {
    last_.status = ReplyStatus::kNotFinite;
    last_.loss = 0;
    last_.parts = {};
    pending_ = false;
  }
  last_.request_id = request.request_id;
  last_.client = client_;
  last_.grad_calls += oracle_.grad_calls() - calls_before;
  return &last_;
}

template <class Real>
const Uplink<Real>* ClientRuntime<Real>::evaluate(const Request<Real>& request) {
  if (request.request_id == evaluation_.request_id) return &evaluation_;
  const View<Real> x = request.body->parts[0].values;
  evaluation_ = {};
  const bool sends_gradient = request.kind == RequestKind::kEvaluate;
  evaluation_.loss =
      sends_gradient || reuses_gradients(*run_context_) ? oracle_.evaluate(x) : oracle_.measure(x);
  if (sends_gradient) evaluation_.parts = {Payload<Real>::dense(oracle_.gradient())};
  if (!is_finite(evaluation_)) {
    evaluation_ = {};
    evaluation_.status = ReplyStatus::kNotFinite;
  } else if (const auto score = run_context_->counts_correct ? oracle_.score(x) : std::nullopt) {
    evaluation_.correct = score->correct;
    evaluation_.tested = score->tested;
  }
  evaluation_.request_id = request.request_id;
  evaluation_.round = request.body->round;
  evaluation_.client = client_;
  return &evaluation_;
}

template <class Real>
void ClientRuntime<Real>::settle(std::uint64_t request_id) {
  if (!pending_ || request_id != last_.request_id) return;
  algorithm_->commit(last_);
  committed_ = request_id;
  pending_ = false;
}

template <class Real>
void ClientRuntime<Real>::recall(std::uint64_t committed, const UplinkView<Real>& answered) {
  last_ = {answered, Parts<Real>(answered.parts)};
  pending_ = committed == committed_;
}

template <class Real>
void ClientRuntime<Real>::drop_proposal() {
  pending_ = false;
  last_ = {};
  evaluation_ = {};
  newest_ = 0;
}

template <class Real>
void ClientRuntime<Real>::forget_evaluation() {
  evaluation_ = {};
  oracle_.forget();
}

template <class Real>
void ClientRuntime<Real>::swap_in(ClientId client, std::uint64_t committed, Oracle<Real>& oracle,
                                  const Evaluated<Real>& known, const KeptState<Real>* kept) {
  client_ = client;
  committed_ = committed;
  bind(oracle, known);
  if (kept != nullptr) algorithm_->swap_state(*kept);
}

template <class Real>
void ClientRuntime<Real>::lacked_state(std::uint64_t request_id) {
  last_.request_id = request_id;
  last_.status = ReplyStatus::kNeedsState;
}

template <class Real>
void ClientRuntime<Real>::swap_out(const KeptState<Real>* kept) {
  if (kept != nullptr) algorithm_->swap_state(*kept);
  pending_ = false;
  last_.request_id = evaluation_.request_id = newest_ = 0;
  last_.status = ReplyStatus::kReply;
}

template <class Real>
void ClientRuntime<Real>::rebind(ClientId client, Oracle<Real>& oracle) {
  if (!stateless_) throw std::logic_error("a client algorithm with state belongs to one client");
  client_ = client;
  oracle_.bind(oracle);
  oracle_.remember({});
  drop_proposal();
  committed_ = 0;
}

template <class Real>
std::string ClientRuntime<Real>::save() const {
  Saver saver;
  saver(committed_);
  return saver.take() + algorithm_->save();
}

template <class Real>
bool ClientRuntime<Real>::load(std::string_view bytes) {
  if (bytes.size() < sizeof committed_ || !algorithm_->load(bytes.substr(sizeof committed_))) return false;
  Loader loader(bytes.substr(0, sizeof committed_));
  loader(committed_);
  drop_proposal();
  return loader.done();
}

template class ClientRuntime<float>;
template class ClientRuntime<double>;

}  // namespace gradwire
