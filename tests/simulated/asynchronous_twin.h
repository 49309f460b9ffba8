// A twin of an asynchronous algorithm, in memory. It gets the client and the request id of each step. It
// computes that client's answer again, at the point sent with the request id, and must reach the same state.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "algorithms/algorithms.h"
#include "config/experiment_spec.h"
#include "engine/problems/problem.h"
#include "rounds/round_loop.h"
#include "rounds/runtime.h"
#include "simulation/broadcast_copy.h"

namespace gradwire {

class AsynchronousTwin {
 public:
  // Makes a twin for a problem without data.
  AsynchronousTwin(const std::shared_ptr<const RunContext<double>>& run_context,
                   const ExperimentSpec& experiment)
      : server_(make_server<double>(run_context)), committed_(run_context->n), owes_(run_context->n) {
    for (ClientId c = 0; c < run_context->n; ++c) {
      oracles_.push_back(make_oracle<double>(problem_spec(experiment), {}, {}, c));
      runtimes_.push_back(std::make_unique<ClientRuntime<double>>(run_context, c, *oracles_.back()));
    }
  }

  std::uint32_t steps() const { return steps_; }
  // Makes an evaluation by a working client an error until this step. REQUIRES: nothing is lost, and the
  // algorithm stops no client's work.
  void never_stops_before(std::uint32_t step) { never_stops_before_ = step; }

  void answered(ClientId client, std::uint64_t request_id) {
    if (owes_[client] == request_id) owes_[client] = 0;
  }
  void sent(ClientId client, const Request<double>& request) {
    if (request.kind == RequestKind::kEvaluate && owes_[client] != 0 && steps_ < never_stops_before_)
      throw std::runtime_error("an evaluation stops the work of client " + std::to_string(client));
    if (request.kind != RequestKind::kRound) return;
    owes_[client] = request.request_id;
    const auto [at, is_new] = sent_.try_emplace(request.request_id);
    if (is_new) {
      at->second.client = client;
      at->second.body.keep(*request.body);
    } else if (at->second.client != client || !at->second.body.is(*request.body)) {
      throw std::runtime_error("request id " + std::to_string(request.request_id) +
                               " is sent with another body");
    }
  }
  // Repeats a step with its one reply, and checks that the state is the same.
  void check(const ServerAlgorithm<double>& server, const RoundCommit<double>& commit) {
    const UplinkView<double>& up = commit.replies[0];
    if (commit.replies.size() != 1) throw std::runtime_error("a step used more than one reply");
    if (!used_.insert(up.request_id).second) throw std::runtime_error("a reply was used twice");
    const bool is_cut = up.parts[0].shape == Shape::kNothing;
    if ((is_cut ? cut(up) : step(up.client, up.request_id)) != commit.used)
      throw std::runtime_error("`used` differs");
    if (server.save() != server_->save())
      throw std::runtime_error("after step " + std::to_string(steps_) +
                               " the state is not that of the replies that were committed");
  }
  // Repeats the last step in the journal of a server that died. `state` is the state after this step. The
  // step used the client's answer, or its work was cut.
  void step_between(const std::vector<std::uint64_t>& before, const std::vector<std::uint64_t>& after,
                    const std::string& state) {
    for (ClientId c = 0; c < after.size(); ++c) {
      if (after[c] == (before.empty() ? 0 : before[c])) continue;
      used_.insert(after[c]);
      const std::string last = server_->save();
      step(c, after[c]);
      if (server_->save() == state) return;
      server_->load(last);
      --steps_;
      const Payload<double> nothing = Payload<double>::nothing(server_->model().size());
      UplinkView<double> up;
      up.request_id = after[c];
      up.client = c;
      up.round = sent_.at(after[c]).body.down().round;
      up.parts = std::span(&nothing, 1);
      cut(up);
      return;
    }
    ++steps_;  // its reply was not used
  }

 private:
  bool cut(const UplinkView<double>& up) {
    ++steps_;
    const auto found = sent_.find(up.request_id);
    if (found == sent_.end() || found->second.client != up.client ||
        found->second.body.down().round != up.round)
      throw std::runtime_error("work was cut that this client never got");
    const bool used = server_->apply(std::span(&up, 1));
    if (used) committed_[up.client] = up.request_id;
    return used;
  }
  bool step(ClientId client, std::uint64_t request_id) {
    ++steps_;
    const auto found = sent_.find(request_id);
    if (found == sent_.end() || found->second.client != client)
      throw std::runtime_error("a reply has a request id that this client never got");
    Request<double> request;
    request.request_id = request_id;
    request.committed = committed_[client];
    request.body = &found->second.body.down();
    const Uplink<double>* up = runtimes_[client]->handle(request, scratch_);
    if (up == nullptr || up->status != ReplyStatus::kReply)
      throw std::runtime_error("the twin cannot answer");
    const UplinkView<double> reply = *up;
    const bool used = server_->apply(std::span(&reply, 1));
    if (used) committed_[client] = request_id;
    return used;
  }

  struct Sent {
    ClientId client = 0;
    BroadcastCopy<double> body;
  };
  std::unique_ptr<ServerAlgorithm<double>> server_;
  std::vector<std::unique_ptr<Oracle<double>>> oracles_;
  std::vector<std::unique_ptr<ClientRuntime<double>>> runtimes_;
  std::vector<std::uint64_t> committed_;
  std::vector<std::uint64_t> owes_;  // by client: the request id of a gradient, or 0
  std::uint32_t never_stops_before_ = 0;
  Scratch<double> scratch_;
  std::map<std::uint64_t, Sent> sent_;
  std::set<std::uint64_t> used_;
  std::uint32_t steps_ = 0;
};

// A wrapper of a transport that reports sent requests and arrived replies to the twin.
class WitnessedTransport final : public Transport<double> {
 public:
  WitnessedTransport(Transport<double>& inner, AsynchronousTwin& twin) : inner_(inner), twin_(twin) {}
  std::uint64_t send(ClientId client, const Request<double>& request) override {
    twin_.sent(client, request);
    return inner_.send(client, request);
  }
  void acknowledge(ClientId client, std::uint64_t request_id, Ack ack) override {
    inner_.acknowledge(client, request_id, ack);
  }
  void discard(const Event<double>& event) override { inner_.discard(event); }
  void report_misbehaviour(const Event<double>& event) override { inner_.report_misbehaviour(event); }
  void settle() override { inner_.settle(); }
  const Event<double>& next(double deadline) override {
    const Event<double>& event = inner_.next(deadline);
    if (event.kind == Event<double>::Kind::kReply) twin_.answered(event.up.client, event.up.request_id);
    return event;
  }
  double now() const override { return inner_.now(); }

 private:
  Transport<double>& inner_;
  AsynchronousTwin& twin_;
};

}  // namespace gradwire
