// A twin of an algorithm, in memory, where nothing is lost or late. It gets the clients whose replies each
// round used, and must reach the same state. Runs with a quorum are compared with the twin.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "algorithms/algorithms.h"
#include "config/experiment_spec.h"
#include "engine/problems/problem.h"
#include "rounds/round_loop.h"
#include "rounds/runtime.h"

namespace gradwire {

class TwinFederation {
 public:
  // Makes a twin for a problem without data.
  TwinFederation(const std::shared_ptr<const RunContext<double>>& run_context,
                 const ExperimentSpec& experiment, const DataSchema& schema)
      : server_(make_server<double>(run_context)), committed_(run_context->n), scratch_(run_context->n) {
    for (ClientId c = 0; c < run_context->n; ++c) {
      oracles_.push_back(make_oracle<double>(problem_spec(experiment), schema, {}, c));
      runtimes_.push_back(std::make_unique<ClientRuntime<double>>(run_context, c, *oracles_.back()));
    }
  }

  std::uint32_t rounds() const { return rounds_; }
  View<double> model() const { return server_->model(); }
  std::string state() const { return server_->save(); }

  void round(const std::vector<ClientId>& used) {
    const Downlink<double> body = server_->broadcast();
    Request<double> request;
    request.request_id = ++rounds_;
    request.body = &body;
    std::vector<UplinkView<double>> replies;
    for (const ClientId c : used) {
      request.committed = committed_[c];
      request.resync = nullptr;
      const Uplink<double>* up = runtimes_[c]->handle(request, scratch_[c]);
      std::optional<Downlink<double>> resync;
      if (up->status != ReplyStatus::kReply) {  // the client missed a round
        resync = server_->resync(c, up->status);
        if (!resync) throw std::runtime_error("the twin cannot restore a client");
        request.resync = &*resync;
        up = runtimes_[c]->handle(request, scratch_[c]);
      }
      replies.push_back(*up);
    }
    if (server_->apply(replies))
      for (const ClientId c : used) committed_[c] = rounds_;
  }
  template <class Replies>
  void round_of(const Replies& replies) {
    std::vector<ClientId> used;
    for (const auto& up : replies) used.push_back(up.client);
    round(used);
  }
  // Repeats a round from a journal. The round used the clients whose request ids changed.
  void round_between(const std::vector<std::uint64_t>& before, const std::vector<std::uint64_t>& after) {
    std::vector<ClientId> used;
    for (ClientId c = 0; c < after.size(); ++c)
      if (after[c] != (before.empty() ? 0 : before[c])) used.push_back(c);
    round(used);
  }

 private:
  std::unique_ptr<ServerAlgorithm<double>> server_;
  std::vector<std::unique_ptr<Oracle<double>>> oracles_;
  std::vector<std::unique_ptr<ClientRuntime<double>>> runtimes_;
  std::vector<std::uint64_t> committed_;
  std::vector<Scratch<double>> scratch_;
  std::uint32_t rounds_ = 0;
};

}  // namespace gradwire
