// Options of a run: what is measured, which replies count, and asynchronous runs, in one process and over
// TCP.
#include <gtest/gtest.h>
#include <set>

#include "tests/experiments/small_runs.h"
#include "tests/experiments/trace.h"
#include "tests/support/run_program.h"

namespace gradwire {
namespace {

// Measurements must not change the computation.
TEST(RunOptions, KeepModelAndSharedColumnsForAnyExtentOfEvaluations) {
  for (const char* algorithm : {"ef21", "fedavg", "ringmaster"}) {
    SCOPED_TRACE(algorithm);
    Choice choice{algorithm, "identity", {{"step_size", "0.25"}}};
    if (algorithm == std::string("fedavg")) choice.numbers.emplace_back("local_step_size", "0.1");
    const auto run = [&](const std::vector<std::string>& sets, bool encoded, unsigned threads) {
      return trace(prepare(parse_experiment(config(choice, "fp64"), "same.toml", sets)), encoded, threads);
    };
    const auto rows = [](const RunTrace& of) {
      std::vector<RoundRecord> records;
      for (const std::string& line : lines_of(of.metrics)) records.push_back(*parse_metrics_line(line));
      return records;
    };
    const RunTrace usual = run({}, false, 1);
    const std::vector<RoundRecord> want = rows(usual);
    for (const char* grad_norm : {"first_and_last", "none"}) {
      for (const char* clients : {"1.0", "0.5"}) {
        const std::vector<std::string> sets = {std::string("evaluation.grad_norm=") + grad_norm,
                                               std::string("evaluation.clients=") + clients};
        const RunTrace one = run(sets, false, 1);
        EXPECT_EQ(one.model, usual.model);
        EXPECT_EQ(one, run(sets, false, 3));
        EXPECT_EQ(one, run(sets, true, 1));
        const std::vector<RoundRecord> got = rows(one);
        ASSERT_EQ(got.size(), want.size());
        for (std::size_t k = 0; k < got.size(); ++k) {
          const bool at_end = k == 0 || k + 1 == got.size();
          EXPECT_EQ(got[k].grad_norm_sq.has_value(), grad_norm == std::string("first_and_last") && at_end);
          EXPECT_EQ(got[k].bytes_up, want[k].bytes_up);
          EXPECT_EQ(got[k].grad_calls, want[k].grad_calls);
          EXPECT_GT(got[k].evaluation_bytes_up, 0u);
          EXPECT_LE(got[k].evaluation_bytes_up, want[k].evaluation_bytes_up);
          if (clients != std::string("1.0")) {
            EXPECT_EQ(2 * got[k].evaluation_bytes_down, want[k].evaluation_bytes_down);
            continue;
          }
          EXPECT_EQ(got[k].loss, want[k].loss);
          EXPECT_EQ(got[k].accuracy, want[k].accuracy);
          EXPECT_EQ(got[k].evaluation_bytes_down, want[k].evaluation_bytes_down);
          if (got[k].grad_norm_sq) {
            EXPECT_EQ(got[k].grad_norm_sq, want[k].grad_norm_sq);
          }
        }
      }
    }
    for (const RoundRecord& row : rows(run({"evaluation.accuracy=false"}, true, 1)))
      EXPECT_EQ(row.accuracy, std::nullopt);
  }
}

TEST(RunOptions, GiveOtherBitsForAnotherSeed) {
  const std::string text = config({"ef21", "topk:k=3", {{"step_size", "0.25"}}}, "fp64");
  const RunTrace one = trace(prepare(parse_experiment(text, "same.toml")), false, 1);
  EXPECT_NE(
      one, trace(prepare(parse_experiment(text, "same.toml", std::vector<std::string>{"seed=2"})), false, 1));
}

TEST(RunOptions, GiveTheSameMeasurementsOverTcpAsInMemory) {
  const TemporaryFolder folder;
  const std::string file = folder.write("same.toml", config({"gd", "identity", {}}, "fp64")).string();
  for (const std::vector<std::string>& sets :
       {std::vector<std::string>{"evaluation.grad_norm=first_and_last", "evaluation.clients=0.5"},
        {"evaluation.grad_norm=none", "evaluation.accuracy=false"}}) {
    std::string rows;
    for (const char* transport : {"memory", "tcp"}) {
      std::vector<std::string> arguments = {"run",     file,    "--quiet", "--transport",
                                            transport, "--out", "out",     "--overwrite"};
      for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
      const auto r = run_gradwire(folder.path(), arguments);
      ASSERT_EQ(r.code, 0) << r.err;
      const std::string got = without_seconds(read_file(folder.path() / "out/metrics.csv"));
      if (!rows.empty()) {
        EXPECT_EQ(got, rows);
      }
      rows = got;
    }
  }
}

// The first of four clients has much larger labels, and so larger gradients, than the others.
TEST(RunOptions, RejectClipOrUseRepliesBeyondTheNormLimitWithTheSameBits) {
  const TemporaryFolder folder;
  folder.write("rows.txt", "1e4 1:1\n1e4 2:1\n1 1:1\n2 2:1\n1 1:2\n2 2:2\n3 1:1 2:1\n1 2:1\n");
  const std::string file = folder
                               .write("same.toml",
                                      "name = \"same\"\n[problem]\nkind = \"least_squares\"\ndata = "
                                      "\"libsvm:rows.txt\"\n[clients]\ncount = 4\n[algorithm]\nname = "
                                      "\"gd\"\nstep_size = 0.1\n[run]\nrounds = 9\n")
                               .string();
  const std::vector<std::vector<std::string>> settings = {
      {"server.norm_limit=100", "server.norm_action=reject", "server.quorum=0.75", "run.evaluate_every=0"},
      {"server.norm_limit=100", "server.norm_action=halve"},
      {"server.norm_limit=100", "server.norm_action=warn"},
      {"server.norm_limit=0"}};
  std::vector<std::string> models;
  for (const std::vector<std::string>& sets : settings) {
    SCOPED_TRACE(sets.back());
    std::string first;
    for (const char* transport : {"memory", "encoded", "tcp"}) {
      std::vector<std::string> arguments = {"run",     file,    "--quiet", "--transport",
                                            transport, "--out", "out",     "--overwrite"};
      for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
      const auto run = run_gradwire(folder.path(), arguments);
      ASSERT_EQ(run.code, 0) << run.err;
      const std::string model = read_file(folder.path() / "out/model.bin");
      const std::string got = model + without_seconds(read_file(folder.path() / "out/metrics.csv"));
      if (first.empty()) {
        first = got;
        models.push_back(model);
      }
      EXPECT_EQ(got, first) << transport;
    }
  }
  EXPECT_EQ(models[2], models[3]) << "a warning changes no bit";
  EXPECT_NE(models[0], models[3]);
  EXPECT_NE(models[1], models[3]);
  EXPECT_NE(models[0], models[1]);
}

TEST(RunOptions, RunAsynchronousAlgorithmsOverTcp) {
  const TemporaryFolder folder;
  std::size_t tested = 0;
  for (const AlgorithmInfo& algorithm : all_algorithms()) {
    if (!algorithm.traits.asynchronous) continue;
    const Choice choice = choices_of(algorithm).front();
    SCOPED_TRACE(choice.algorithm + " " + choice.compressor);
    const std::string file = folder.write("async.toml", config(choice, "fp64")).string();
    const auto tcp =
        run_gradwire(folder.path(), {"run", file, "--quiet", "--overwrite", "--out", "tcp", "--transport",
                                     "tcp", "--set", "run.rounds=60", "--set", "run.evaluate_every=20"});
    ASSERT_EQ(tcp.code, 0) << tcp.err;
    const auto rows = lines_of(read_file(folder.path() / "tcp/metrics.csv"));
    ASSERT_GE(rows.size(), 3u);
    EXPECT_TRUE(rows[1].starts_with("0,") && rows.back().starts_with("60,")) << rows.back();
    const auto loss = [](const std::string& row) { return std::stod(row.substr(row.find(',') + 1)); };
    // After so few replies, the loss may still be higher with a compressor that sends 3 of 13 numbers.
    // Ringleader makes no step until all clients have replied.
    if (choice.compressor == "identity" && choice.algorithm != "ringleader") {
      EXPECT_LT(loss(rows.back()), loss(rows[1]));
    }
    ++tested;
  }
  EXPECT_GT(tested, 4u);
}

TEST(RunOptions, GiveSimulatedSecondsForBothKindsOfAlgorithms) {
  const TemporaryFolder folder;
  folder.write("speeds.txt", "1\n2 4\n1\n3\n");
  for (const char* algorithm : {"gd", "asgd"}) {
    SCOPED_TRACE(algorithm);
    const std::string file = folder.write("same.toml", config({algorithm, "identity", {}}, "fp64")).string();
    std::string out;
    const auto seconds = [&](const std::string& speeds) {
      out = algorithm + std::to_string(speeds.size());
      std::vector<std::string> arguments = {
          "run", file, "--quiet", "--out", out, "--set", "algorithm.step_size=0.1"};
      if (!speeds.empty()) arguments.insert(arguments.end(), {"--set", "clients.latency=" + speeds});
      const auto run = run_gradwire(folder.path(), arguments);
      EXPECT_EQ(run.code, 0) << run.err;
      const RoundRecord row =
          parse_metrics_line(lines_of(read_file(folder.path() / out / "metrics.csv")).back()).value();
      return row.sim_seconds ? number_text(*row.sim_seconds) : "";
    };
    const bool has_rounds = algorithm == std::string("gd");
    EXPECT_EQ(seconds("sqrt"), has_rounds ? "18" : "4") << "nine rounds of sqrt(4), or nine replies";
    EXPECT_EQ(seconds("file:speeds.txt"), has_rounds ? "31" : "4");
    EXPECT_EQ(seconds(""), has_rounds ? "" : "3");
    const auto plot = run_gradwire(folder.path(), {"plot", out, "--x", "sim_seconds", "--out", "sim.svg"});
    EXPECT_EQ(plot.code, has_rounds ? 2 : 0) << plot.err;
  }
  const auto bad = run_gradwire(
      folder.path(), {"run", folder.write("same.toml", config({"gd", "identity", {}}, "fp64")).string(),
                      "--set", "clients.latency=file:nowhere.txt"});
  EXPECT_EQ(bad.code, 2);
  EXPECT_NE(bad.err.find("--set clients.latency: "), std::string::npos) << bad.err;
}

TEST(RunOptions, SendTheLossAndTheBiasToTheClients) {
  const TemporaryFolder folder;
  std::string text = config({"gd", "identity", {{"step_size", "0.5"}}}, "fp64");
  text.insert(text.find("dim = 13"), "loss = \"sigmoid_squared\"\nbias = true\n");
  const std::string file = folder.write("same.toml", text).string();
  for (const char* transport : {"memory", "tcp"}) {
    const auto run =
        run_gradwire(folder.path(), {"run", file, "--quiet", "--out", transport, "--transport", transport});
    ASSERT_EQ(run.code, 0) << run.err;
  }
  EXPECT_NE(read_file(folder.path() / "tcp/summary.json").find("\"d\": 14"), std::string::npos);
  EXPECT_EQ(without_seconds(read_file(folder.path() / "memory/metrics.csv")),
            without_seconds(read_file(folder.path() / "tcp/metrics.csv")));
  EXPECT_EQ(read_file(folder.path() / "memory/model.bin"), read_file(folder.path() / "tcp/model.bin"));
  const auto other = run_gradwire(
      folder.path(), {"run", file, "--quiet", "--out", "other", "--set", "problem.loss=logistic"});
  ASSERT_EQ(other.code, 0) << other.err;
  EXPECT_NE(read_file(folder.path() / "memory/model.bin"), read_file(folder.path() / "other/model.bin"));
}

// Returns the model of a run, and its metrics without seconds.
std::string outcome(const TemporaryFolder& folder, const std::string& run) {
  return read_file(folder.path() / run / "model.bin") +
         without_seconds(read_file(folder.path() / run / "metrics.csv"));
}

TEST(RunOptions, KeepTheBitsWithABudgetForActivations) {
  const TemporaryFolder folder;
  write_texts(folder);
  std::size_t number = 0;
  for (const Model& model : models()) {
    SCOPED_TRACE(model.name);
    const std::string precision = number++ % 2 == 0 ? "fp64" : "fp32";
    const std::string file = folder.write("same.toml", model_config(model, precision)).string();
    const auto run = [&](const std::string& out, const std::string& transport, const std::string& budget) {
      return run_gradwire(folder.path(), {"run", file, "--quiet", "--overwrite", "--out", out, "--transport",
                                          transport, "--set", "problem.activation_budget=" + budget});
    };
    const auto refused = run("small", "encoded", "1KB");
    ASSERT_EQ(refused.code, 2);
    const std::string start =
        "--set problem.activation_budget: activation_budget is too small for this model: it needs \"";
    const std::size_t at = refused.err.find(start);
    ASSERT_NE(at, std::string::npos) << refused.err;
    EXPECT_EQ(lines_of(refused.err).size(), 1u) << refused.err;
    const std::string least =
        refused.err.substr(at + start.size(), refused.err.rfind('"') - at - start.size());
    ASSERT_EQ(run("plain", "encoded", "none").code, 0);
    for (const std::string& budget : {std::string("sqrt"), least})
      for (const std::string transport : {"encoded", "tcp"}) {
        SCOPED_TRACE(budget + " " + transport);
        const auto result = run("fitted", transport, budget);
        ASSERT_EQ(result.code, 0) << result.err;
        EXPECT_EQ(outcome(folder, "fitted"), outcome(folder, "plain"));
        EXPECT_NE(read_file(folder.path() / "fitted/config.toml").find("activation_budget = \"" + budget),
                  std::string::npos);
        std::filesystem::remove_all(folder.path() / "fitted");
      }
    std::filesystem::remove_all(folder.path() / "plain");
  }
}

}  // namespace
}  // namespace gradwire
