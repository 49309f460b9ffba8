// Tests AlgorithmTraits::adds_replies for every algorithm: sums of replies give the same model as single
// replies.
#include <gtest/gtest.h>
#include <set>
#include <utility>
#include <vector>

#include "rounds/reply_sum.h"
#include "tests/algorithms/every_algorithm.h"

namespace gradwire::testing {
namespace {

// A transport to clients in memory that adds up the replies of each site. Client c belongs to site c % sites.
template <class Real>
class SiteTransport final : public Transport<Real> {
 public:
  SiteTransport(Transport<Real>& inner, std::uint32_t sites)
      : inner_(inner), sites_(sites), sums_(sites), added_(sites) {}

  std::uint64_t send(ClientId client, const Request<Real>& request) override {
    if (request.request_id > request_id_) {
      for (auto& site : waits_) site.clear();
      waits_.resize(sites_);
      asked_.assign(sites_, {});
      request_id_ = request.request_id;
      adds_ = request.kind == RequestKind::kRound;
    }
    asked_[client % sites_].insert(client);  // also if it is asked again because it lost its state
    return inner_.send(client, request);
  }
  const Event<Real>& next(double deadline) override {
    for (;;) {
      const Event<Real>& event = inner_.next(deadline);
      if (event.kind != Event<Real>::Kind::kReply || !adds_ || event.up.status != ReplyStatus::kReply)
        return event;
      const std::uint32_t site = event.up.client % sites_;
      auto& waits = waits_[site];
      waits.push_back(event);
      if (waits.size() == asked_[site].size())
        return waits.size() == 1 ? event : add(waits, sums_[site], added_[site]);
    }
  }
  double now() const override { return inner_.now(); }

  std::size_t sums = 0;  // number of sums so far

 private:
  const Event<Real>& add(std::vector<Event<Real>>& waits, ReplySum<Real>& sum, Uplink<Real>& added) {
    std::sort(waits.begin(), waits.end(),
              [](const auto& a, const auto& b) { return a.up.client < b.up.client; });
    sum.clear();
    for (const Event<Real>& event : waits) EXPECT_TRUE(sum.add(event.up));
    sum_ = waits.front();
    added = sum.sum();
    sum_.up = added;
    sum_.covers = sum.covers();
    ++sums;
    return sum_;
  }

  Transport<Real>& inner_;
  Event<Real> sum_;
  const std::uint32_t sites_;
  std::vector<std::vector<Event<Real>>> waits_;
  std::vector<std::set<ClientId>> asked_;
  std::vector<ReplySum<Real>> sums_;
  std::vector<Uplink<Real>> added_;  // by site; events view them
  std::uint64_t request_id_ = 0;
  bool adds_ = false;
};

struct End {
  Vec<double> model;
  std::vector<RoundRecord> records;
  std::size_t sums = 0;
};

End run_in_sites(const Federation<double>& federation, const std::shared_ptr<RunContext<double>>& run_context,
                 std::uint32_t sites, std::uint32_t rounds = 12) {
  FaultSimulation<double> clients(run_context, federation.oracle_pointers(), {});
  SiteTransport<double> transport(clients, sites);
  const auto server = make_server<double>(run_context);
  RunProgress progress;
  RoundLimits limits;
  limits.rounds = rounds;
  End end;
  LoopHooks<double> hooks;
  hooks.on_record = [&](const RoundRecord& record) { end.records.push_back(record); };
  run_rounds<double>(*server, traits_of(*run_context), *run_context, transport, progress, limits, hooks);
  end.model.assign(server->model().begin(), server->model().end());
  end.sums = transport.sums;
  return end;
}

void expect_close(const Vec<double>& a, const Vec<double>& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  double difference = 0, size = 0;
  for (std::size_t j = 0; j < a.size(); ++j) {
    difference = std::max(difference, std::abs(a[j] - b[j]));
    size = std::max(size, std::abs(b[j]));
  }
  EXPECT_LE(difference, 1e-12 * size) << what;
}

TEST(AddsReplies, SumsGiveTheModelOfSingleRepliesForEveryAlgorithmWithTheTrait) {
  const Federation<double> federation(7, 12);
  std::size_t claims = 0;
  for (const AlgorithmInfo& algorithm : testing::synchronous_algorithms()) {
    if (!algorithm.traits.adds_replies) continue;
    ++claims;
    const auto run_context = federation.run_context(spec_for(algorithm));
    const std::string name(algorithm.traits.name);
    ASSERT_TRUE(takes_sums(*run_context)) << name;
    const Trace<double> alone = run<double>(federation, run_context, 12);
    const End added = run_in_sites(federation, run_context, 2);
    EXPECT_GT(added.sums, 0u) << name;
    expect_close(added.model, alone.model, name);
    const RoundRecord &a = added.records.back(), &b = alone.records.back();
    EXPECT_EQ(a.grad_calls, b.grad_calls) << name;
    EXPECT_EQ(a.replies, b.replies) << name;
  }
  EXPECT_EQ(claims, 29u);
}

TEST(AddsReplies, GiveTheSameModelWithPartialParticipation) {
  const Federation<double> federation(9, 12);
  for (const AlgorithmInfo& algorithm : testing::synchronous_algorithms()) {
    if (!algorithm.traits.adds_replies || !algorithm.traits.partial) continue;
    AlgorithmSpec spec = spec_for(algorithm);
    spec.participation = 0.5;
    const auto run_context = federation.run_context(spec);
    SCOPED_TRACE(algorithm.traits.name);
    expect_close(run_in_sites(federation, run_context, 2).model,
                 run<double>(federation, run_context, 12).model, std::string(algorithm.traits.name));
  }
}

TEST(AddsReplies, ExcludesAlgorithmsThatNeedSingleReplies) {
  for (const char* name : {"ef21_w", "ef21_plus", "pp_marina", "cofig", "fednl"})
    EXPECT_FALSE(find_algorithm(name).traits.adds_replies) << name;
}

TEST(AddsReplies, TakesNoSumsWithWeightsOrReplicas) {
  const Federation<double> federation(4, 5);
  const auto run_context = federation.run_context(spec_of("ef21", "topk:k=2", {}, "0.1"));
  EXPECT_TRUE(takes_sums(*run_context));
  run_context->keep_client_state_replicas = true;
  EXPECT_FALSE(takes_sums(*run_context));
  const auto gd = federation.run_context(spec_of("gd", "identity", {}, "0.1"));
  gd->keep_client_state_replicas = true;  // no effect: clients of gd keep no state
  EXPECT_TRUE(takes_sums(*gd));
  gd->weights = {0.1, 0.2, 0.3, 0.4};
  EXPECT_FALSE(takes_sums(*gd));
}

TEST(AddsReplies, RefusesSumsThatTheServerDoesNotTake) {
  const Federation<double> federation(4, 5);
  const auto run_context = federation.run_context(spec_of("gd", "identity", {}, "0.1"));
  run_context->weights = {0.1, 0.2, 0.3, 0.4};
  FaultSimulation<double> clients(run_context, federation.oracle_pointers(), {});
  SiteTransport<double> transport(clients, 1);
  const auto server = make_server<double>(run_context);
  RunProgress progress;
  RoundLimits limits;
  limits.rounds = 1;
  limits.attempts = 1;
  EXPECT_THROW(
      run_rounds<double>(*server, traits_of(*run_context), *run_context, transport, progress, limits, {}),
      std::runtime_error);
  EXPECT_EQ(progress.totals.bytes_up, 0u);
}

}  // namespace
}  // namespace gradwire::testing
