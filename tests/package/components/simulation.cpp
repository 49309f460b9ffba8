// A small experiment, simulated by a program without a server.
#include <atomic>
#include <cstdio>

#include "simulation/simulate.h"

int main() {
  const char* experiment = R"(
name = "inside another program"
[problem]
kind = "logistic"
data = "synthetic"
samples = 500
dim = 20
classes = 2
[clients]
count = 10
[algorithm]
name = "ef21"
compressor = "topk:k=5%"
[run]
rounds = 50
evaluate_every = 10
)";
  const auto prepared = gradwire::prepare(gradwire::parse_experiment(experiment, "inside.toml"));
  gradwire::RunObserver observer;
  double first = 0;
  observer.on_record = [&first](const gradwire::RoundRecord& r) {
    if (r.round == 0) first = r.loss;
    std::printf("round %u: loss %.4f, %.0f bits up\n", r.round, r.loss, r.bits_up);
  };
  const std::atomic<bool> stop{false};
  const gradwire::RunResult result = gradwire::simulate(prepared, false, 1, observer, stop);
  return result.outcome == gradwire::Outcome::kFinished && result.last.loss < first ? 0 : 1;
}
