// A model with the experiment that trained it, and the data to measure it on or to predict.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "config/experiment_file.h"
#include "engine/data/shared_samples.h"
#include "engine/problems/problem_type.h"

namespace gradwire {

struct ModelRequest {
  std::filesystem::path model;  // model.bin, its folder, or text with one number per line
  std::filesystem::path file;   // the experiment; empty for the config.toml next to the model
  std::string data;             // the source of the data; empty for those of the experiment
  std::vector<std::string> sets;
  unsigned threads = 0;  // 0 for one per processor
  Log log = {};          // takes warnings about the data; may be empty
};

// Returns the model.bin of a folder, and other files unchanged. Throws UsageError if the folder has none.
std::filesystem::path model_file(const std::filesystem::path& model);

struct ModelData {
  std::filesystem::path model;
  // The experiment with run.x0 = the model and without rounds. If `is_alone`, one client holds all samples of
  // the data, which are also the test data.
  LoadedExperiment loaded;
  bool is_alone = false;
  std::optional<DataSchema> trained_on;  // nullopt if the model's folder does not say
  Preprocessing preprocessing;           // steps that were applied to the training data
};

// Throws UsageError, ExperimentError, DataError.
ModelData load_model_data(const ModelRequest& request);

}  // namespace gradwire
