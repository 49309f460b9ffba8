// Tests that a reply that the round loop refuses does not block a good reply to the same request id.
#include <gtest/gtest.h>

#include "tests/algorithms/federation.h"

namespace gradwire {
namespace {

using testing::Federation;
using testing::spec_of;

// A transport to one client, whose first answer to each request id has the wrong shape. As over TCP, another
// answer is read only once the first is discarded.
class Impostor final : public Transport<double> {
 public:
  Impostor(const std::shared_ptr<const RunContext<double>>& run_context, const Federation<double>& federation)
      : clients_(run_context, federation.oracle_pointers(), {}) {}

  std::uint64_t send(ClientId client, const Request<double>& request) override {
    discarded_ = false;
    answers_ = 0;
    return clients_.send(client, request);
  }
  void discard(const Event<double>&) override { discarded_ = true; }
  const Event<double>& next(double deadline) override {
    if (answers_ == 0) good_ = clients_.next(deadline);
    if (good_.kind != Event<double>::Kind::kReply) return good_;
    Event<double>& event = event_ = good_;
    switch (answers_++) {
      case 0: event.up.parts = wrong_parts_; return event;
      case 1:
        event.repeated = !discarded_;
        if (event.repeated) event.up.parts = {};
        return event;
      default: answers_ = 0; return event = {};
    }
  }
  double now() const override { return clients_.now(); }

 private:
  FaultSimulation<double> clients_;
  Event<double> good_, event_;
  const Vec<double> wrong_ = Vec<double>(2);
  const Parts<double> wrong_parts_ = {Payload<double>::dense(View<double>(wrong_))};
  int answers_ = 0;
  bool discarded_ = false;
};

TEST(RefusedReply, LeavesItsPlaceToTheCorrectOneInRoundsAndEvaluations) {
  const Federation<double> federation(1, 5);
  const auto run_context = federation.run_context(spec_of("gd", "identity", {}, "0.1"));
  Impostor transport(run_context, federation);
  const auto server = make_server<double>(run_context);
  RunProgress progress;
  RoundLimits limits;
  limits.rounds = 4;
  limits.attempts = 2;
  std::size_t refused = 0;
  LoopHooks<double> hooks;
  hooks.on_note = [&](const LogLine& line) { refused += line.text.find("wrong shape") != std::string::npos; };
  EXPECT_EQ(
      run_rounds<double>(*server, traits_of(*run_context), *run_context, transport, progress, limits, hooks),
      Outcome::kFinished);
  EXPECT_EQ(refused, 9u) << "four rounds and five evaluations";
}

}  // namespace
}  // namespace gradwire
