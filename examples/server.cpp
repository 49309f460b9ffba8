// A server in a program: waits for the 3 clients of examples/client.cpp, and fits a line to the data of all.
//   server 127.0.0.1:7000
#include <cstdio>
#include <gradwire/server.h>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto experiment = gradwire::Experiment::from({{"problem.kind", "custom"},
                                                      {"problem.dim", 2},
                                                      {"clients.count", 3},
                                                      {"algorithm.name", "ef21"},
                                                      {"algorithm.compressor", "topk:k=1"},
                                                      {"algorithm.step_size", 0.2},
                                                      {"run.rounds", 500},
                                                      {"run.evaluate_every", 100}});
  const auto show = [](const gradwire::MetricsRow& row) {
    std::printf("round %u: loss %.6f\n", row.round, row.loss);
    return true;  // false ends the run
  };
  gradwire::Server server(experiment, {.state = "line-state", .listen = argv[1], .on_row = show});
  std::printf("listening on %s\n", server.address().c_str());
  std::fflush(stdout);
  const gradwire::TrainResult result = server.wait();
  std::printf("y = %.3f x %+.3f\n", result.model()[0], result.model()[1]);
}
