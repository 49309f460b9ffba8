// Small experiments with all features, for each pair of an algorithm and a compressor, and for each kind of
// network.
#pragma once

#include <string>
#include <vector>

#include "algorithms/algorithms.h"
#include "base/value.h"
#include "config/experiment_file.h"
#include "simulation/prepare.h"
#include "tests/support/data_files.h"
#include "tests/support/local_optimizers.h"

namespace gradwire {

// A problem with test accuracy, clients of unequal sizes, and weights.
inline constexpr const char* kSmallProblem = R"(
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
  std::string algorithm, compressor;
  Options numbers;  // parameters in place of those of theory
};

inline std::string config(const Choice& choice, const std::string& precision) {
  std::string problem = kSmallProblem;
  if (find_algorithm(choice.algorithm).traits.asynchronous)
    problem.replace(problem.find("\"samples\""), 9, "\"equal\"");  // asynchronous algorithms require it
  std::string text = "name = \"same\"\nprecision = \"" + precision + "\"\n" + problem +
                     "\n[algorithm]\nname = \"" + choice.algorithm + "\"\ncompressor = \"" +
                     choice.compressor + "\"\n";
  for (const auto& [key, value] : choice.numbers) text += key + " = " + value + "\n";
  if (find_algorithm(choice.algorithm).traits.stochastic) text += "batch = 5\n";
  return text;
}

inline std::vector<std::string> compressor_specs() {
  std::vector<std::string> specs;
  for (const CompressorHelp& help : compressor_help())
    specs.push_back(help.parameters.find("k=") == std::string::npos ? help.name : help.name + ":k=3");
  return specs;
}

inline bool accepts(const Choice& choice) {
  try {
    prepare(parse_experiment(config(choice, "fp64"), "same.toml"));
    return true;
  } catch (const ExperimentError&) {
    return false;
  }
}

// Returns the algorithm with each compressor that it accepts. The parameters are those of theory if there is
// a theorem, and numbers otherwise.
inline std::vector<Choice> choices_of(const AlgorithmInfo& algorithm) {
  std::vector<Choice> all;
  for (const std::string& compressor : compressor_specs()) {
    Choice choice{std::string(algorithm.traits.name), compressor, {}};
    if (!accepts(choice)) {
      choice.numbers = {{"step_size", "0.25"}};
      for (const ParameterHelp& p : algorithm.parameters)
        if (p.name != "step_size" && (p.fallback.empty() || p.fallback == "theory"))
          choice.numbers.emplace_back(p.name, "0.25");
      if (!accepts(choice)) continue;
    }
    for (const ParameterHelp& p : algorithm.parameters)
      if (p.name == "buffer") choice.numbers.emplace_back("buffer", "2");  // the run has only 9 replies
    all.push_back(choice);
    for (const auto& [key, value] : testing::optimizer_for(algorithm.traits.name))
      choice.numbers.emplace_back(key, "\"" + value + "\"");
    if (choice.numbers.size() > all.back().numbers.size()) all.push_back(choice);
  }
  return all;
}

// An experiment with a network: the kind, its keys in [problem], and the rest of the file. data() is the data
// source.
struct Model {
  std::string name, problem, rest;
  std::string data() const { return problem.substr(8, problem.find('"', 8) - 8); }
};

inline const std::vector<Model>& models() {
  static const std::vector<Model> all = {
      {"gpt", "data = \"text:t\"\ncontext = 6\nwidth = 8\nlayers = 2\nheads = 2\ntest_share = 0.1\n",
       "[algorithm]\nname = \"fedavg\"\nbatch = 5\nlocal_steps = 2\nlocal_step_size = 0.2\n"},
      {"char_mlp", "data = \"text:names\"\ncontext = 4\nwidth = 5\nhidden = [7, 6]\ntest_share = 0.1\n",
       "[algorithm]\nname = \"ef21\"\ncompressor = \"topk:k=5%\"\nstep_size = 0.5\n"},
      {"cnn", "data = \"digits\"\nfilters = [3]\nhidden = [9]\ntest_share = 0.5\n",
       "[algorithm]\nname = \"fedavg\"\nbatch = 7\nlocal_step_size = 0.2\n"},
      {"mlp", "data = \"digits\"\nhidden = [9, 5]\nactivation = \"gelu\"\ntest_share = 0.5\n",
       "[algorithm]\nname = \"diana\"\ncompressor = \"randk:k=20\"\nstep_size = 0.1\n"},
      {"mlp", "data = \"digits\"\nhidden = [9, 60]\ntest_share = 0.5\n",
       "[algorithm]\nname = \"dcgd\"\ncompressor = \"randk:k=200\"\nbackprop_fraction = 0.5\nbatch = "
       "7\nstep_size = "
       "0.1\n"},
  };
  return all;
}

inline std::string model_config(const Model& model, const std::string& precision) {
  const std::string partition = model.name == "gpt" ? "iid" : "dirichlet";
  return "name = \"same\"\nprecision = \"" + precision + "\"\n[problem]\nkind = \"" + model.name + "\"\n" +
         model.problem + "[clients]\ncount = 4\npartition = \"" + partition + "\"\nweights = \"samples\"\n" +
         model.rest + "[run]\nrounds = 5\nevaluate_every = 2\n";
}

inline void write_texts(const TemporaryFolder& folder) {
  std::string text, names;
  for (int k = 0; k < 40; ++k) {
    text += "the " + std::string(1, static_cast<char>('a' + k * k % 26)) + "at sat on the mat. ";
    names += std::string(1, static_cast<char>('a' + k % 9)) +
             (k % 3 == 0   ? "nna"
              : k % 3 == 1 ? "bel"
                           : "lia") +
             "\n";
  }
  folder.write("t", text);
  folder.write("names", names);
}

}  // namespace gradwire
