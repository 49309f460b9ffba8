// Tests the problem type of huber.h as users do: reads it from a file, rejects wrong keys, writes
// config.toml, and runs it with the step size of theory.
#include <atomic>
#include <cstdio>
#include <string>
#include <vector>

#include "config/experiment_spec.h"
#include "simulation/simulate.h"

namespace {

constexpr const char* kExperiment = R"(
[problem]
kind = "huber"
data = "synthetic"
samples = 400
dim = 12
delta = 0.5
[clients]
count = 10
[algorithm]
name = "ef21"
compressor = "topk:k=25%"
[run]
rounds = 300
evaluate_every = 100
)";

int failures = 0;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::printf("FAILED: %s\n", what.c_str());
  ++failures;
}

std::string error_of(const std::vector<std::string>& overrides) {
  try {
    (void)gradwire::parse_experiment(kExperiment, "huber.toml", overrides);
  } catch (const gradwire::ExperimentError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

int main() {
  using namespace gradwire;
  expect(error_of({"problem.delta=0"}).find("delta must be a number above 0, not 0") != std::string::npos,
         error_of({"problem.delta=0"}));
  expect(error_of({"problem.delt=1"}).find("did you mean 'delta'") != std::string::npos,
         error_of({"problem.delt=1"}));

  const LoadedExperiment loaded = parse_experiment(kExperiment, "huber.toml");
  expect(to_toml(loaded.experiment).find("delta = 0.5") != std::string::npos, to_toml(loaded.experiment));

  const Prepared prepared = prepare(loaded);
  double first = 0, first_norm = 0;
  RunObserver observer;
  observer.on_record = [&](const RoundRecord& r) {
    if (r.round == 0) first = r.loss, first_norm = *r.grad_norm_sq;
  };
  const std::atomic<bool> stop{false};
  const RunResult result = simulate(prepared, true, 2, observer, stop);
  std::printf("loss %.4f -> %.4f, ||grad f||^2 %.1e -> %.1e\n", first, result.last.loss, first_norm,
              *result.last.grad_norm_sq);
  expect(result.outcome == Outcome::kFinished && result.last.loss < first, "the loss falls");
  expect(result.last.grad_norm_sq < 1e-2 * first_norm, "the gradient vanishes at the step of theory");
  return failures == 0 ? 0 : 1;
}
