// preprocessing.json: what a model's data went through before the model saw them. Other data of the same kind
// must go through the same: texts get the same numbers, and features the same map
// (docs/reference/results.md).
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "config/experiment_spec.h"
#include "engine/data/shared_samples.h"

namespace gradwire {

inline constexpr const char* kPreprocessingFile = "preprocessing.json";

// Returns the text of the file, or "" if the model needs none: its data have no texts, no missing values that
// means replace, and are not normalised.
std::string preprocessing_json(const ExperimentSpec& experiment, const Preprocessing& preprocessing);

// Reads the file in the folder of a model. Returns nullopt if there is none. Throws DataError if it is
// damaged.
std::optional<Preprocessing> preprocessing_in(const std::filesystem::path& folder);

}  // namespace gradwire
