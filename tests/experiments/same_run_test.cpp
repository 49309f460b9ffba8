// Thread count, transport and process boundaries change no bit of a result.
#include <gtest/gtest.h>
#include <set>

#include "algorithms/methods.h"
#include "base/value.h"
#include "proto/config/experiment_file.h"
#include "tests/experiments/trace.h"
#include "tests/support/data_files.h"
#include "tests/support/local_optimizers.h"
#include "tests/support/run_program.h"
#include "tests/support/sanitized.h"

namespace gradwire {
namespace {

// Small, but with all features: accuracy, unequal clients, weights.
constexpr const char* kProblem = R"(
[problem]
kind = "logistic"
data = "synthetic"
samples = 90
dim = 13
test_share = 0.2
regularizer = "nonconvex"
lambda = 0.05

[clients]
count = 4
partition = "dirichlet"
dirichlet_alpha = 1.0
weights = "samples"

[run]
rounds = 9
evaluate_every = 2
)";

struct Choice {
  std::string method, compressor;
  Options numbers;  // in place of what theory would say
};

std::string config(const Choice& choice, const std::string& precision) {
  std::string problem = kProblem;
  if (find_method(choice.method).facts.asynchronous)
    problem.replace(problem.find("\"samples\""), 9, "\"equal\"");  // each reply counts by itself
  std::string text = "name = \"same\"\nprecision = \"" + precision + "\"\n" + problem +
                     "\n[algorithm]\nname = \"" + choice.method + "\"\ncompressor = \"" + choice.compressor +
                     "\"\n";
  for (const auto& [key, value] : choice.numbers) text += key + " = " + value + "\n";
  if (find_method(choice.method).facts.stochastic) text += "batch = 5\n";
  return text;
}

std::vector<std::string> compressor_specs() {
  std::vector<std::string> specs;
  for (const CompressorHelp& help : compressor_help())
    specs.push_back(help.parameters.find("k=") == std::string::npos ? help.name : help.name + ":k=3");
  return specs;
}

bool accepts(const Choice& choice) {
  try {
    prepare(parse_experiment(config(choice, "fp64"), "same.toml"));
    return true;
  } catch (const ExperimentError&) {
    return false;
  }
}

// Every pair of a method and a compressor that goes together: by theory, or else with numbers for what theory
// would give.
std::vector<Choice> choices() {
  std::vector<Choice> all;
  for (const MethodInfo& method : methods()) {
    for (const std::string& compressor : compressor_specs()) {
      Choice choice{std::string(method.facts.name), compressor, {}};
      if (!accepts(choice)) {
        choice.numbers = {{"step_size", "0.25"}};
        for (const ParameterHelp& p : method.parameters)
          if (p.name != "step_size" && (p.fallback.empty() || p.fallback == "theory"))
            choice.numbers.emplace_back(p.name, "0.25");
        if (!accepts(choice)) continue;
      }
      for (const ParameterHelp& p : method.parameters)
        if (p.name == "buffer") choice.numbers.emplace_back("buffer", "2");  // the run has only 9 replies
      all.push_back(choice);
      for (const auto& [key, value] : testing::optimizer_for(method.facts.name))
        choice.numbers.emplace_back(key, "\"" + value + "\"");
      if (choice.numbers.size() > all.back().numbers.size()) all.push_back(choice);
    }
  }
  return all;
}

TEST(SameRun, EveryMethodTakesACompressor) {
  const std::vector<Choice> all = choices();
  std::set<std::string> covered;
  for (const Choice& choice : all) covered.insert(choice.method);
  EXPECT_EQ(covered.size(), methods().size());
  EXPECT_GT(all.size(), methods().size());
}

TEST(SameRun, OneThreadFourThreadsAndTheCodecGiveTheSameBits) {
  for (const Choice& choice : choices()) {
    for (const char* precision : {"fp64", "fp32"}) {
      if (kSanitized && precision == std::string("fp64")) continue;
      SCOPED_TRACE(choice.method + " " + choice.compressor + " " + precision);
      const Prepared prepared = prepare(parse_experiment(config(choice, precision), "same.toml"));
      const RunTrace one = trace(prepared, false, 1);
      EXPECT_EQ(lines_of(one.metrics).size(), 6u);  // rounds 0, 2, ..., 8 and 9
      EXPECT_NE(one.model, prepared.x0) << "nothing was learnt";
      EXPECT_EQ(one, trace(prepared, false, 4));
      EXPECT_EQ(one, trace(prepared, true, 1));
      EXPECT_EQ(one, trace(prepared, true, 4));
    }
  }
}

// What is measured may not change what is computed.
TEST(SameRun, EvaluationsOfAnyExtentLeaveTheModelAndTheColumnsThatTheyShareAsTheyAre) {
  for (const char* method : {"ef21", "fedavg", "ringmaster"}) {
    SCOPED_TRACE(method);
    Choice choice{method, "identity", {{"step_size", "0.25"}}};
    if (method == std::string("fedavg")) choice.numbers.emplace_back("local_step_size", "0.1");
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
    for (const char* grad_norm : {"ends", "none"}) {
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
          EXPECT_EQ(got[k].grad_norm_sq.has_value(), grad_norm == std::string("ends") && at_end);
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

TEST(SameRun, WithAPartOfTheClientsInEachRound) {
  const std::vector<std::string> sampled = {"clients.participation=0.6"};
  std::size_t tested = 0;
  for (const Choice& choice : choices()) {
    if (!find_method(choice.method).facts.partial) continue;
    SCOPED_TRACE(choice.method + " " + choice.compressor);
    const Prepared prepared = prepare(parse_experiment(config(choice, "fp64"), "same.toml", sampled));
    const RunTrace one = trace(prepared, false, 1);
    EXPECT_EQ(one, trace(prepared, false, 4));
    EXPECT_EQ(one, trace(prepared, true, 2));
    ++tested;
  }
  EXPECT_GT(tested, 0u);
}

TEST(SameRun, AnotherSeedGivesOtherBits) {
  const Choice choice = choices().back();
  const std::string text = config(choice, "fp64");
  const std::vector<std::string> other_seed = {"seed=2"};
  const RunTrace one = trace(prepare(parse_experiment(text, "same.toml")), false, 1);
  EXPECT_NE(one, trace(prepare(parse_experiment(text, "same.toml", other_seed)), false, 1));
}

// One compressor for each method, the last that it takes; both precisions. Not for those where the bits
// depend on who answers first.
std::vector<Choice> one_choice_each() {
  std::vector<Choice> each;
  for (const Choice& choice : choices()) {
    if (find_method(choice.method).facts.asynchronous) continue;
    if (!each.empty() && each.back().method == choice.method) each.pop_back();
    each.push_back(choice);
  }
  return each;
}

// What follows `"key": "` in each place of the text.
std::vector<std::string> members(const std::string& json, const std::string& key, const std::string& end) {
  std::vector<std::string> values;
  for (std::size_t at = 0; (at = json.find(key, at)) != std::string::npos;) {
    at += key.size();
    values.push_back(json.substr(at, json.find_first_of(end, at) - at));
  }
  return values;
}

void check_processes(const std::string& summary) {
  const auto executables = members(summary, "\"executable\": \"", "\"");
  const auto pids = members(summary, "\"pid\": ", ",\n");
  ASSERT_EQ(executables.size(), 5u);
  EXPECT_EQ(executables[0], std::filesystem::canonical(program("gradwire-server")).string());
  for (std::size_t k = 1; k < executables.size(); ++k)
    EXPECT_EQ(executables[k], std::filesystem::canonical(program("gradwire-client")).string());
  EXPECT_EQ(std::set<std::string>(pids.begin(), pids.end()).size(), 5u);
}

TEST(SameRun, RealProcessesOverTcpAndTlsGiveTheSameBits) {
  const TemporaryFolder folder;
  std::size_t number = 0;
  for (const Choice& choice : one_choice_each()) {
    const std::string precision = number++ % 2 == 0 ? "fp32" : "fp64";
    // With a sanitizer a process takes long to start: one of five methods, by turns over TCP and over TLS.
    if (kSanitized && number % 5 != 0) continue;
    SCOPED_TRACE(choice.method + " " + choice.compressor + " " + precision);
    const std::string file = folder.write("same.toml", config(choice, precision)).string();
    const auto memory = run_gradwire(folder.path(), {"run", file, "--quiet", "--out", "memory"});
    ASSERT_EQ(memory.code, 0) << memory.err;
    for (const std::string kind : {"tcp", "tls"}) {
      if (kSanitized && (kind == "tls") == (number % 10 == 0)) continue;
      SCOPED_TRACE(kind);
      const auto run =
          run_gradwire(folder.path(), {"run", file, "--quiet", "--out", kind, "--transport", kind});
      ASSERT_EQ(run.code, 0) << run.err;
      for (const std::string name : {"model.bin", "config.toml"})
        EXPECT_EQ(read_file(folder.path() / "memory" / name), read_file(folder.path() / kind / name)) << name;
      EXPECT_EQ(without_seconds(read_file(folder.path() / "memory/metrics.csv")),
                without_seconds(read_file(folder.path() / kind / "metrics.csv")));
      check_processes(read_file(folder.path() / kind / "summary.json"));
    }
  }
}

TEST(SameRun, WhatIsMeasuredAndCountedOverTcpIsWhatIsMeasuredInMemory) {
  const TemporaryFolder folder;
  const std::string file = folder.write("same.toml", config(choices().front(), "fp64")).string();
  for (const std::vector<std::string>& sets :
       {std::vector<std::string>{"evaluation.grad_norm=ends", "evaluation.clients=0.5"},
        {"evaluation.grad_norm=none", "evaluation.accuracy=false"}}) {
    std::string rows;
    for (const char* transport : {"memory", "tcp"}) {
      std::vector<std::string> arguments = {"run", file, "--quiet", "--transport", transport, "--out", "out"};
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

// Of four clients the first has labels, and so gradients, that are far larger than those of the others.
TEST(SameRun, RepliesBeyondTheNormLimitAreRejectedClippedOrUsedWithTheSameBits) {
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
      {"server.norm_limit=100", "server.norm_action=clip"},
      {"server.norm_limit=100", "server.norm_action=warn"},
      {"server.norm_limit=0"}};
  std::vector<std::string> models;
  for (const std::vector<std::string>& sets : settings) {
    SCOPED_TRACE(sets.back());
    std::string first;
    for (const char* transport : {"memory", "encoded", "tcp"}) {
      std::vector<std::string> arguments = {"run", file, "--quiet", "--transport", transport, "--out", "out"};
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

TEST(SameRun, AsynchronousMethodsRunOverTcpToo) {
  const TemporaryFolder folder;
  std::size_t tested = 0;
  std::set<std::string> methods_seen;
  for (const Choice& choice : choices()) {
    if (!find_method(choice.method).facts.asynchronous || choice.compressor.starts_with("topk")) continue;
    // With a sanitizer a process takes long to start: each method once.
    if (!methods_seen.insert(choice.method).second && kSanitized) continue;
    SCOPED_TRACE(choice.method + " " + choice.compressor);
    const std::string file = folder.write("async.toml", config(choice, "fp64")).string();
    const auto tcp =
        run_gradwire(folder.path(), {"run", file, "--quiet", "--out", "tcp", "--transport", "tcp", "--set",
                                     "run.rounds=60", "--set", "run.evaluate_every=20"});
    ASSERT_EQ(tcp.code, 0) << tcp.err;
    const auto rows = lines_of(read_file(folder.path() / "tcp/metrics.csv"));
    ASSERT_GE(rows.size(), 3u);
    EXPECT_TRUE(rows[1].starts_with("0,") && rows.back().starts_with("60,")) << rows.back();
    const auto loss = [](const std::string& row) { return std::stod(row.substr(row.find(',') + 1)); };
    // With so few replies a compressor that sends 3 of 13 numbers may still climb; ringleader makes no step
    // before it has heard from everybody.
    if (choice.compressor == "identity" && choice.method != "ringleader") {
      EXPECT_LT(loss(rows.back()), loss(rows[1]));
    }
    ++tested;
  }
  EXPECT_GT(tested, 4u);
}

TEST(SameRun, BothKindsOfMethodsHaveSimulatedSecondsOnTheVirtualClock) {
  const TemporaryFolder folder;
  folder.write("speeds.txt", "1\n2 4\n1\n3\n");
  for (const char* method : {"gd", "asgd"}) {
    SCOPED_TRACE(method);
    const std::string file = folder.write("same.toml", config({method, "identity", {}}, "fp64")).string();
    std::string out;
    const auto seconds = [&](const std::string& speeds) {
      out = method + std::to_string(speeds.size());
      std::vector<std::string> arguments = {
          "run", file, "--quiet", "--out", out, "--set", "algorithm.step_size=0.1"};
      if (!speeds.empty()) arguments.insert(arguments.end(), {"--set", "clients.seconds=" + speeds});
      const auto run = run_gradwire(folder.path(), arguments);
      EXPECT_EQ(run.code, 0) << run.err;
      const RoundRecord row =
          parse_metrics_line(lines_of(read_file(folder.path() / out / "metrics.csv")).back()).value();
      return row.sim_seconds ? number_text(*row.sim_seconds) : "";
    };
    const bool has_rounds = method == std::string("gd");
    EXPECT_EQ(seconds("sqrt"), has_rounds ? "18" : "4") << "nine rounds of sqrt(4), or nine replies";
    EXPECT_EQ(seconds("file:speeds.txt"), has_rounds ? "31" : "4");
    EXPECT_EQ(seconds(""), has_rounds ? "" : "3");
    const auto plot = run_gradwire(folder.path(), {"plot", out, "--x", "sim_seconds", "--out", "sim.svg"});
    EXPECT_EQ(plot.code, has_rounds ? 2 : 0) << plot.err;
  }
  const auto bad = run_gradwire(
      folder.path(), {"run", folder.write("same.toml", config({"gd", "identity", {}}, "fp64")).string(),
                      "--set", "clients.seconds=file:nowhere.txt"});
  EXPECT_EQ(bad.code, 2);
  EXPECT_NE(bad.err.find("--set clients.seconds: "), std::string::npos) << bad.err;
}

TEST(SameRun, TheLossAndTheBiasTravelToTheClients) {
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

}  // namespace
}  // namespace gradwire
