// A custom algorithm in a program that uses gradwire as an installed package. Each client sends its gradient
// rounded to a grid; the server takes the mean, and its step shrinks by `decay` every round.
//
// An algorithm consists of Params (traits, fields, resolve), a Client that proposes replies, and a Server
// that applies them.
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include "algorithms/core/algorithm_adapter.h"
#include "algorithms/support/gradients.h"
#include "algorithms/support/server_base.h"
#include "rounds/round_loop.h"
#include "simulation/fault_simulation.h"

using namespace gradwire;

// Rounds entries to multiples of `grid`. An algorithm may make its payloads in any way.
// custom_compressor.cpp has a compressor with constants, which every algorithm can use.
struct Rounded {
  double grid;
  template <class Real>
  const Payload<Real>& operator()(Vec<Real>& v, PayloadBuffer<Real>& to) const {
    for (Real& e : v) e = Real(grid * std::round(e / grid));
    return to.whole(v);
  }
};

struct DecayingParams {
  static constexpr AlgorithmTraits traits{
      .name = "decaying", .summary = "rounded gradients and a decaying step", .reference = "this file"};
  StepSize step_size;
  double decay = 0.97, grid = 1e-3;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "gamma of the first step");
    visit("decay", self.decay, "factor of the step per round");
    visit("grid", self.grid, "entries of gradients are rounded to multiples of it");
  }
  void resolve(const Theory&, Warnings&) { step_size.resolve(0.5); }
};

template <class Real>
struct Decaying {
  using Params = DecayingParams;

  struct Client {
    Rounded compressor;
    PayloadBuffer<Real> m_i;

    Client(const RunContext<Real>&, const Params& p) : compressor{p.grid} {}
    static void fields(auto&, auto&&) {}  // no state

    Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      const View<Real> x = down.parts[0].values;
      Vec<Real>& grad = ctx.scratch.vec(0, x.size());
      const double loss = ctx.oracle.loss_and_gradient(x, {}, grad);
      return reply_of(down, loss, compressor(grad, m_i));
    }
    void commit() {}
  };

  struct Server : ModelServer<Real> {
    Real gamma, decay;

    Server(const RunContext<Real>& s, const Params& p)
        : ModelServer<Real>(s), gamma(Real(*p.step_size.value)), decay(Real(p.decay)) {}
    static void fields(auto& self, auto&& visit) {
      ModelServer<Real>::fields(self, visit);
      visit(self.gamma);
    }
    void apply(Replies<Real> uplinks) {
      add_mean_of_replies<Real>(this->run_context, uplinks, 0, -gamma, this->x);
      gamma *= decay;
      ++this->t;
    }
  };
};

// f_i(x) = (x - a)^2 / 2 in one dimension.
class Distance final : public Oracle<double> {
 public:
  explicit Distance(double a) : a_(a) {}
  std::size_t dim() const override { return 1; }
  std::size_t sample_count() const override { return 1; }
  double loss_and_gradient(std::span<const double> x, Batch, std::span<double> gradient) override {
    gradient[0] = x[0] - a_;
    return gradient[0] * gradient[0] / 2;
  }

 private:
  double a_;
};

int main() {
  std::vector<Distance> clients = {Distance(1), Distance(2), Distance(6)};
  std::vector<Oracle<double>*> oracles;
  for (Distance& client : clients) oracles.push_back(&client);

  auto run_context = std::make_shared<RunContext<double>>();
  run_context->n = 3;
  run_context->d = 1;
  run_context->x0 = {0.0};
  run_context->custom_algorithm = custom_algorithm<Decaying<double>, double>();
  std::vector<std::string> warnings;
  run_context->algorithm =
      run_context->custom_algorithm->resolve({.name = "decaying", .parameters = {{"decay", "0.99"}}},
                                             {.n = run_context->n, .d = run_context->d}, warnings);

  const auto server = make_server<double>(run_context);
  FaultSimulation<double> transport(run_context, oracles, {});
  RunProgress progress;
  RoundLimits limits;
  limits.rounds = 200;
  run_rounds<double>(*server, traits_of(*run_context), *run_context, transport, progress, limits, {});
  std::printf("x = %.4f (the mean is 3)\n", server->model()[0]);
  return std::fabs(server->model()[0] - 3) < 2e-3 ? 0 : 1;
}
