#include "api/program_parts.h"

#include <cmath>
#include <exception>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/algorithms.h"
#include "api/reading.h"
#include "api/user_algorithm.h"
#include "api/user_compressor.h"
#include "base/value.h"
#include "engine/data/readers/source.h"
#include "engine/data/sample_hash.h"
#include "engine/first_gradient.h"
#include "report/results_dir.h"
#include "simulation/input_hash.h"

namespace gradwire {

ProgramParts::ProgramParts(const TrainOptions& options)
    : algorithm(options.algorithm), compressor(options.compressor), data(options.data), test(options.test) {}
ProgramParts::ProgramParts(const SweepOptions& options)
    : algorithm(options.algorithm), compressor(options.compressor), data(options.data), test(options.test) {}

KeyValues ProgramParts::keys() const {
  KeyValues keys;
  if (algorithm) keys.emplace_back("algorithm.name", kCustomName);
  if (compressor)
    keys.emplace_back("algorithm.compressor",
                      std::string(kCustomName) + ":" +
                          (compressor.fp64() ? compressor.fp64()->name() : compressor.fp32()->name()));
  if (data) keys.emplace_back("problem.data", kGivenSource);
  if (test) keys.emplace_back("problem.test", kGivenSource);
  return keys;
}

void ProgramParts::add_to(LoadedExperiment& loaded) const {
  AlgorithmSection& to = loaded.experiment.algorithm;
  if (to.name == kCustomName) {
    if (algorithm.fp32()) to.custom_fp32 = adapt(algorithm.fp32());
    if (algorithm.fp64()) to.custom_fp64 = adapt(algorithm.fp64());
  }
  if (!compressor || !to.compressor.starts_with(kCustomName)) return;
  const bool is_fp32 = loaded.experiment.precision == Precision::kFp32;
  if (is_fp32 ? !compressor.fp32() : !compressor.fp64())
    throw UsageError("algorithm.compressor: the run has precision = \"" +
                     std::string(is_fp32 ? "fp32" : "fp64") + "\", but the program's compressor is of " +
                     (is_fp32 ? "double" : "float"));
  to.custom_compressor = is_fp32 ? adapt(compressor.fp32()) : adapt(compressor.fp64());
}

Reading ProgramParts::reading() const { return reading_of(data, test); }

std::string ProgramParts::hash(const Functions& functions, const std::vector<double>& x0) const {
  const bool has_functions = functions.fp32 != nullptr || functions.fp64 != nullptr;
  if (!has_functions && !algorithm && !data && !test && x0.empty()) return {};
  SampleHash hash;
  if (algorithm) {  // the name of a compressor is in a key
    const std::string name = algorithm.fp64() ? algorithm.fp64()->name() : algorithm.fp32()->name();
    hash.add(std::span<const char>(name));
  }
  hash.add(std::span<const double>(x0));
  for (const std::optional<Data>& samples : {data, test}) {
    if (!samples) continue;
    hash.add_rows(samples->content().samples);
    hash.add(std::span<const char>(samples->content().text));
  }
  if (has_functions) {
    const std::size_t d =
        functions.fp64 != nullptr ? functions.fp64->oracle()->dim() : functions.fp32->oracle()->dim();
    try {
      add_functions(hash, functions, x0.size() == d ? x0 : std::vector<double>(d));
    } catch (const std::exception&) {  // which the runs will tell
    }
  }
  return std::to_string(hash.value());
}

void check_smoothness(const std::vector<double>& L_i, const Functions& functions,
                      const Experiment& experiment) {
  if (L_i.empty()) return;
  if (functions.fp32 == nullptr && functions.fp64 == nullptr)
    throw UsageError("smoothness: the kind '" + experiment.get("problem.kind") +
                     "' has constants of its own; leave it out");
  if (L_i.size() != experiment.clients())
    throw UsageError("smoothness: has " + std::to_string(L_i.size()) + " numbers; a run of " +
                     std::to_string(experiment.clients()) + " clients needs one for each");
  for (std::size_t i = 0; i < L_i.size(); ++i)
    if (!(L_i[i] > 0 && std::isfinite(L_i[i])))
      throw UsageError("smoothness: that of client " + std::to_string(i) + " is " + number_text(L_i[i]) +
                       "; it must be a number above 0");
}

Functions functions_of(const Oracles& oracles) {
  Functions functions;
  std::visit(
      [&]<class Real>(const std::vector<Oracle<Real>*>& all) {
        if (all.empty()) throw UsageError("oracles: none is given; a run needs those of at least one client");
        std::map<const Oracle<Real>*, std::size_t> first;
        for (std::size_t i = 0; i < all.size(); ++i) {
          const std::string client = "the oracle of client " + std::to_string(i);
          if (all[i] == nullptr) throw UsageError("oracles: " + client + " is null");
          if (all[i]->dim() == 0) throw UsageError("oracles: " + client + " has dimension 0");
          if (const auto [other, is_new] = first.emplace(all[i], i); !is_new)
            throw UsageError("oracles: " + client + " is also that of client " +
                             std::to_string(other->second) + ", but threads call them at once; make a copy");
        }
        std::vector<std::unique_ptr<Oracle<Real>>> checked;
        for (std::size_t i = 0; i < all.size(); ++i)
          checked.push_back(std::make_unique<FirstGradient<Real>>(
              std::shared_ptr<Oracle<Real>>(std::shared_ptr<void>(), all[i]),  // which the program owns
              "the function of client " + std::to_string(i)));
        functions.of<Real>() = std::make_shared<const OracleList<Real>>(std::move(checked));
      },
      oracles.all());
  return functions;
}

}  // namespace gradwire
