// A custom asynchronous algorithm in a program that uses gradwire as an installed package. The server applies
// each gradient as it arrives, with a smaller step if its point is older. The program runs on a virtual
// clock, on which the slowest of eight clients takes eight times as long as the fastest.
//
// An algorithm is asynchronous if its traits say so. Then apply() gets one reply at a time, and clients draw
// with ctx.draw instead of the round. If a Server has superseded(), it also selects clients whose work is
// stopped (algorithms/ringmaster.h).
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include "algorithms/core/algorithm_adapter.h"
#include "algorithms/support/gradients.h"
#include "algorithms/support/server_base.h"
#include "rounds/round_loop.h"
#include "simulation/event_simulation.h"

using namespace gradwire;

struct ImpatientParams {
  static constexpr AlgorithmTraits traits{.name = "impatient",
                                          .summary = "steps of gamma / (1 + delay)",
                                          .reference = "this file",
                                          .partial = false,
                                          .stochastic = true,
                                          .asynchronous = true};
  StepSize step_size;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "gamma for a gradient at the newest point");
  }
  void resolve(const Theory&, Warnings&) { step_size.resolve(0.2); }
};

template <class Real>
struct Impatient {
  using Params = ImpatientParams;

  struct Client {
    const RunContext<Real>& run_context;
    PayloadBuffer<Real> g;

    Client(const RunContext<Real>& s, const Params&) : run_context(s) {}
    static void fields(auto&, auto&&) {}  // no state

    Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      Vec<Real>& grad = ctx.scratch.vec(0, run_context.d);
      const double loss = gradient_at(run_context, ctx, ctx.draw, down.parts[0].values, grad);
      return reply_of(down, loss, g.whole(grad));
    }
    void commit() {}
  };

  struct Server : ModelServer<Real> {
    Real gamma;

    Server(const RunContext<Real>& s, const Params& p)
        : ModelServer<Real>(s), gamma(Real(*p.step_size.value)) {}
    void apply(Replies<Real> uplinks) {  // one reply
      const Real delay = Real(this->t - uplinks[0].round);
      add_decoded<Real>(uplinks[0].parts[0], -gamma / (1 + delay), this->x);
      ++this->t;
    }
  };
};

// f(x) = (x - 3)^2 / 2, the same for all clients.
class Distance final : public Oracle<double> {
 public:
  std::size_t dim() const override { return 1; }
  std::size_t sample_count() const override { return 1; }
  double loss_and_gradient(std::span<const double> x, Batch, std::span<double> gradient) override {
    gradient[0] = x[0] - 3;
    return gradient[0] * gradient[0] / 2;
  }
};

int main() {
  std::vector<Distance> clients(8);
  std::vector<Oracle<double>*> oracles;
  for (Distance& client : clients) oracles.push_back(&client);

  auto run_context = std::make_shared<RunContext<double>>();
  run_context->n = 8;
  run_context->d = 1;
  run_context->x0 = {0.0};
  run_context->custom_algorithm = custom_algorithm<Impatient<double>, double>();
  std::vector<std::string> warnings;
  run_context->algorithm = run_context->custom_algorithm->resolve(
      {.name = "impatient"}, {.n = run_context->n, .d = run_context->d}, warnings);

  EventSimulationOptions options;
  options.seconds = [](ClientId i, std::uint64_t) { return i + 1.0; };
  EventSimulation<double> transport(run_context, oracles, options);
  const auto server = make_server<double>(run_context);
  RunProgress progress;
  RoundLimits limits;
  limits.rounds = 400;
  LoopHooks<double> hooks;
  hooks.seconds = [&] { return transport.now(); };
  hooks.evaluate = [&](View<double> x, Evaluation<double>& to) { transport.evaluate(x, to); };
  run_rounds<double>(*server, traits_of(*run_context), *run_context, transport, progress, limits, hooks);
  std::printf("x = %.6f after %.0f virtual seconds (the minimum is at 3)\n", server->model()[0],
              progress.totals.seconds);
  return std::fabs(server->model()[0] - 3) < 1e-6 ? 0 : 1;
}
