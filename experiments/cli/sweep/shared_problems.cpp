#include "experiments/cli/sweep/shared_problems.h"

#include <cstdint>
#include <optional>

namespace gradwire {
namespace {

template <class Files, class Read>
auto read_once(Files& files, const std::string& key, Read read) {
  const std::lock_guard lock(files.mutex);
  auto& kept = files.read[key];
  using T = std::remove_cvref_t<decltype(*kept)>;
  if (kept == nullptr) kept = std::make_shared<const T>(read());
  return *kept;
}

// The encoding of a training table is kept as long as the table, so its address is its name.
std::string key_of_table(const TableReading& table) {
  std::string texts;
  for (const std::string& text : table.options.labels) texts += text + ",";
  for (const auto& [column, of_column] : table.options.categories) {
    texts += "\n" + column + ":";
    for (const std::string& text : of_column) texts += text + "|";
  }
  return table.options.label + "\n" + table.options.columns + "\n" + texts + "\n" +
         std::to_string(static_cast<int>(table.options.missing)) + "\n" +
         std::to_string(reinterpret_cast<std::uintptr_t>(table.encoding));
}

}  // namespace

struct SharedProblems::SharedProblem {
  std::size_t runs_to_come = 0;  // guarded by SharedProblems::mutex_

  std::mutex mutex;  // guards the members below
  bool is_made = false;
  ProblemSpec spec;
  SharedSamples samples;
  Functions functions;
  std::optional<Smoothness> smoothness;
};

std::string SharedProblems::key_of(const Settings& run) {
  std::string key;
  for (const auto& [path, text] : run)
    if (path.starts_with("problem.") || path.starts_with("clients.") || path == "seed" || path == "precision")
      key += path + "=" + text + "\n";
  return key;
}

std::shared_ptr<SharedProblems::SharedProblem> SharedProblems::find(const Settings& run) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<SharedProblem>& problem = problems_[key_of(run)];
  if (problem == nullptr) problem = std::make_shared<SharedProblem>();
  return problem;
}

void SharedProblems::expect(const Settings& run) {
  const std::shared_ptr<SharedProblem> problem = find(run);
  const std::lock_guard lock(mutex_);
  ++problem->runs_to_come;
}

void SharedProblems::leave(const Settings& run) {
  const std::lock_guard lock(mutex_);
  const auto at = problems_.find(key_of(run));
  if (at != problems_.end() && --at->second->runs_to_come == 0) problems_.erase(at);
}

Reading SharedProblems::reading() {
  Reading reading;
  reading.rows = [this](std::string_view source, const std::filesystem::path& base,
                        const SyntheticSpec& synthetic, std::size_t dim, const KeepRow& keep, SampleUse use,
                        const TableReading& table) {
    if (source == "synthetic") return read_source(source, base, synthetic, dim, keep, use);
    const std::string key = std::string(source) + "\n" + base.string() + "\n" + std::to_string(dim) +
                            (use == SampleUse::kTest ? " for tests" : "") + "\n" + key_of_table(table);
    return read_once(rows_, key,
                     [&] { return brought_.reading.rows(source, base, synthetic, dim, {}, use, table); });
  };
  reading.text = [this](std::string_view source, const std::filesystem::path& base, const TextReading& how) {
    const std::string key = std::string(source) + "\n" + base.string() + "\n" +
                            std::to_string(static_cast<int>(how.form)) + " " + std::to_string(how.context) +
                            (how.by_speaker ? " by role" : "");
    return read_once(texts_, key, [&] { return read_text(source, base, how); });
  };
  return reading;
}

Prepared SharedProblems::prepare(const LoadedExperiment& loaded) {
  const bool has_functions = brought_.functions.fp32 != nullptr || brought_.functions.fp64 != nullptr;
  if (has_functions || info_of(loaded.experiment.problem).brings_functions)
    return gradwire::prepare(loaded, nullptr, nullptr, {}, brought_);
  const std::shared_ptr<SharedProblem> problem = find(settings_of(loaded.experiment));
  const std::lock_guard lock(problem->mutex);
  if (!problem->is_made) {
    problem->spec = problem_spec(loaded.experiment);
    problem->samples = load_samples(loaded.experiment, loaded.folder(), std::nullopt, reading());
    problem->is_made = true;
  }
  Prepared p;
  static_cast<RunPlan&>(p) =
      plan_on(loaded, problem->spec, problem->samples, problem->smoothness, brought_.x0);
  p.problem = problem->spec;
  p.preprocessing = problem->samples.preprocessing();
  p.seconds = client_latency(loaded);
  // Made after the plan, which checks that the samples fit the problem.
  if (p.experiment.precision == Precision::kFp32) {
    if (problem->functions.fp32 == nullptr)
      problem->functions.fp32 = make_client_objectives<float>(p.problem, p.schema, problem->samples);
  } else if (problem->functions.fp64 == nullptr) {
    problem->functions.fp64 = make_client_objectives<double>(p.problem, p.schema, problem->samples);
  }
  p.functions = problem->functions;
  return p;
}

}  // namespace gradwire
