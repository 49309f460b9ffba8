// gradwire predict: predicts the labels of rows with a model.
#pragma once

#include <string>

#include "experiments/cli/run/model_data.h"

namespace gradwire {

// Returns the text of predictions.csv: a header and a line for each row of the data, with its number from 1,
// and its class with the probability, or its value. Throws UsageError, ExperimentError, DataError.
std::string predictions_csv(const ModelRequest& request);

}  // namespace gradwire
