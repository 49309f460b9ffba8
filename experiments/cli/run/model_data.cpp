#include "experiments/cli/run/model_data.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "engine/data/readers/source.h"
#include "report/preprocessing_file.h"
#include "report/results_dir.h"
#include "report/summary.h"
#include "samples/local_problem.h"

namespace gradwire {
namespace fs = std::filesystem;

namespace {

// Returns the experiment file. Throws UsageError if the request names none and the model's folder has none.
fs::path experiment_of(const ModelRequest& request, const fs::path& model) {
  if (!request.file.empty()) {
    const std::string name = request.file.string();
    if (full_source(name) != name && fs::exists(request.file))
      throw UsageError(name + ": is data, not an experiment; name data with --data " + name);
    return request.file;
  }
  const fs::path next = model.parent_path() / "config.toml";
  if (fs::exists(next)) return next;
  throw UsageError(model.string() +
                   ": has no config.toml next to it, which says how it was trained; name the experiment "
                   "after the model");
}

bool sets_key(const std::vector<std::string>& sets, std::string_view key) {
  return std::ranges::any_of(sets, [&](const std::string& set) { return key_of_override(set) == key; });
}

// Returns false if `source` is a file that does not exist.
bool is_there(const std::string& source, const fs::path& base) {
  for (const std::string_view kind : {"libsvm:", "csv:", "npz:", "idx:", "text:"}) {
    if (!source.starts_with(kind)) continue;
    try {
      (void)find_data(source.substr(kind.size()), base);
    } catch (const DataError&) {
      return false;
    }
  }
  return source != kGivenSource;
}

// Returns the source with absolute paths, for files in the working directory.
std::string absolute_source(const std::string& source) {
  std::string absolute = source;
  for (std::size_t at = absolute.find(':'); at != absolute.npos; at = absolute.find(',', at + 1)) {
    const std::string path = absolute.substr(at + 1, absolute.find(',', at + 1) - at - 1);
    if (!path.empty() && fs::exists(path)) absolute.replace(at + 1, path.size(), fs::absolute(path).string());
    if (!source.starts_with("npy:")) break;
  }
  return absolute;
}

// Returns the data that the request means with --data, or with --set for one of problem.data and
// problem.test. Returns "" if it means those of the experiment.
std::string data_of(const ModelRequest& request, const LoadedExperiment& loaded, const SampleSource& source) {
  if (!request.data.empty()) return absolute_source(complete_source(request.data, source.data));
  const bool sets_data = sets_key(request.sets, "problem.data"),
             sets_test = sets_key(request.sets, "problem.test");
  if (sets_data != sets_test) return sets_data ? source.data : source.test;
  if (source.data == kGivenSource && source.test.empty())
    throw UsageError(loaded.file.string() + ": names no data; name them with --data FILE");
  if (source.test.empty() || is_there(source.data, loaded.folder())) return "";
  if (request.log)
    request.log(LogLine::warning("the training data are not here, so all numbers are of problem.test = \"" +
                                 source.test + "\""));
  return source.test;
}

// Makes an experiment in which one client holds all samples of `data`, and tests on them.
ExperimentSpec alone_with(const std::string& data, const ExperimentSpec& experiment) {
  ExperimentSpec alone;
  alone.name = experiment.name;
  alone.seed = experiment.seed;
  alone.precision = experiment.precision;
  alone.problem = experiment.problem;
  alone.run.x0 = experiment.run.x0;
  alone.run.rounds = 0;
  alone.clients.count = 1;
  alone.algorithm.name = "gd";
  alone.algorithm.step_size = "1";
  SampleSource& source = *sources_of(alone.problem);
  source.data = source.test = data;
  source.test_share = 0;
  return alone;
}

// Returns the preprocessing of the model's training data. Warns if the model's folder does not have one that
// the experiment needs, or has another one.
Preprocessing preprocessing_of(const ModelData& model, const Log& log) {
  const Preprocessing stored = preprocessing_in(model.model.parent_path()).value_or(Preprocessing());
  const RowsData* const rows = rows_of(model.loaded.experiment.problem);
  if (!log || rows == nullptr) return stored;
  const std::string put_there = ", because there is no " + std::string(kPreprocessingFile) +
                                " next to the model; put the one of its run there";
  if (rows->missing == MissingValues::kMean && rows->data.starts_with("csv:") && stored.encoding == nullptr)
    log(LogLine::warning(
        "problem.missing = \"mean\" takes the means of these data" +
        (stored.normalization == nullptr ? put_there : ": a server does not know those of its clients")));
  const Normalize used = stored.normalization == nullptr ? Normalize::kNone : stored.normalization->kind;
  if (used == rows->normalize) return stored;
  const auto word = [](Normalize kind) { return "\"" + std::string(normalize_word(kind)) + "\""; };
  if (used != Normalize::kNone)
    log(LogLine::warning("the model was trained with problem.normalize = " + word(used) +
                         ", which replaces " + word(rows->normalize) + " of the experiment"));
  else if (needs_sums(rows->normalize))
    log(LogLine::warning("problem.normalize = " + word(rows->normalize) + " is computed from these data" +
                         put_there));
  return stored;
}

}  // namespace

fs::path model_file(const fs::path& model) {
  if (!fs::is_directory(model)) return model;
  const fs::path file = model / "model.bin";
  if (fs::exists(file)) return file;
  throw UsageError(model.string() + ": has no model.bin; name the folder of a finished run, or a model");
}

ModelData load_model_data(const ModelRequest& request) {
  ModelData found;
  found.model = model_file(request.model);
  std::vector<std::string> sets = request.sets;
  sets.push_back("run.x0=file:" + fs::absolute(found.model).string());
  sets.emplace_back("run.rounds=0");
  sets.emplace_back("run.evaluate_every=1");
  sets.emplace_back("run.stop_at_grad_norm_sq=0");
  sets.emplace_back("clients.latency=");
  LoadedExperiment& loaded = found.loaded;
  loaded = load_experiment(experiment_of(request, found.model), sets);
  loaded.experiment.faults = {};
  if (request.log)
    for (const std::string& warning : loaded.warnings) request.log(LogLine::warning(warning));
  if (const SampleSource* const source = sources_of(loaded.experiment.problem)) {
    const std::string data = data_of(request, loaded, *source);
    found.is_alone = !data.empty();
    if (found.is_alone) loaded.experiment = alone_with(data, loaded.experiment);
  } else if (!request.data.empty()) {
    throw UsageError("--data: problem.kind = \"" + std::string(problem_type_name(loaded.experiment)) +
                     "\" has no data; leave it out");
  }
  found.trained_on = schema_in_summary(found.model.parent_path(), info_of(loaded.experiment.problem).name);
  found.preprocessing = preprocessing_of(found, request.log);
  return found;
}

}  // namespace gradwire
