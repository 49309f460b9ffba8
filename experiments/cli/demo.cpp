#include "experiments/cli/demo.h"

#include <cstdio>
#include <vector>

#include "config/experiment_file.h"
#include "config/shipped_experiments.h"
#include "experiments/cli/run/run.h"
#include "plotting/plot.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

struct DemoRow {
  std::string algorithm;
  RunReport report;
};

void print_table(const std::vector<DemoRow>& rows) {
  std::printf("\n%-28s %13s %8s %15s %16s %10s %9s\n", "algorithm", "test accuracy", "loss", "bits up/client",
              "bits down/client", "sent up", "rounds/s");
  for (const DemoRow& row : rows) {
    const RoundRecord& r = row.report.run.result.last;
    std::printf("%-28s %11.1f %% %8.3f %15s %16s %10s %9s\n", row.algorithm.c_str(),
                100 * r.accuracy.value_or(0), r.loss, bits_text(r.bits_up).c_str(),
                bits_text(r.bits_down).c_str(), bytes_text(static_cast<double>(r.bytes_up)).c_str(),
                rate_text(row.report.run.result.rounds / row.report.run.result.seconds).c_str());
  }
}

}  // namespace

int run_demo(const fs::path& results, Verbosity verbosity, Logger& logger, const std::atomic<bool>& stop) {
  std::vector<DemoRow> rows;
  std::vector<fs::path> folders;
  for (const char* name : {"demo_gd", "demo_ef21"}) {
    const LoadedExperiment loaded = parse_experiment(find_shipped(name)->toml, name);
    const ExperimentSpec& e = loaded.experiment;
    if (rows.empty()) {
      std::printf(
          "gradwire demo: %u clients, each with its own share of the handwritten digits, train one network\n",
          e.clients.count);
      std::fflush(stdout);
    }
    RunRequest request;
    request.out = results / e.name;
    request.verbosity = verbosity;
    request.checkpoint_seconds = 0;
    request.resume = Resume::kFresh;
    request.earlier = EarlierResults::kMoveAside;  // an earlier version may have other settings
    request.log = [&](const LogLine& line) { logger.log(line); };
    const std::string compressor = e.algorithm.compressor;
    std::string algorithm =
        e.algorithm.name + ", " + (compressor == "identity" ? "uncompressed" : compressor);
    rows.push_back({std::move(algorithm), run_experiment(loaded, request, stop)});
    folders.push_back(request.out);
    if (!rows.back().report.trouble.empty()) {
      logger.complain(rows.back().report.trouble);
      return kFailed;
    }
  }
  const fs::path svg = results / "demo.svg";
  plot_command({.folders = folders, .out = svg});
  print_table(rows);
  std::printf("\nplot: %s (open it in a browser)\nagain: gradwire plot %s %s --out %s\n",
              svg.string().c_str(), folders[0].string().c_str(), folders[1].string().c_str(),
              svg.string().c_str());
  return 0;
}

}  // namespace gradwire
