// Runs an experiment file with two values of a key, and ends each run at a small gradient. Then tries several
// steps, and draws a figure.
#include <cstdio>
#include <gradwire/plot.h>
#include <gradwire/sweep.h>
#include <gradwire/train.h>

int main(int argc, char** argv) {
  try {
    const auto experiment = gradwire::Experiment::load(argc > 1 ? argv[1] : "quadratics");
    for (const char* compressor : {"topk:k=1", "topk:k=10"}) {
      const auto result = gradwire::train(
          experiment.with({{"algorithm.compressor", compressor}, {"run.rounds", 300}}),
          {.on_row = [](const gradwire::MetricsRow& row) { return row.grad_norm_sq.value_or(1) > 1e-3; },
           .threads = 2,
           .log = [](std::string_view line) { std::printf("%.*s\n", int(line.size()), line.data()); }});
      std::printf("%s: %s after %u rounds, loss %g\n", compressor, result.outcome().c_str(), result.rounds(),
                  result.rows().back().loss);
    }
    const auto sweep = gradwire::sweep(experiment.with("run.rounds", 100),
                                       {{"algorithm.step_size", {"theory", "theory*4", "theory*16"}}},
                                       {.out = "results/steps"});
    std::puts(sweep.table.c_str());
    gradwire::plot({sweep.runs.front().folder, sweep.runs.back().folder}, "steps.svg", {.x = "bits"});
    return sweep.failed.empty() ? 0 : 1;
  } catch (const gradwire::BadInput& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
