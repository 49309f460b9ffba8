// gradwire evaluate: evaluates a model on the data of an experiment, or on other data.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "experiments/cli/run/model_data.h"
#include "rounds/round_loop.h"

namespace gradwire {

struct ModelEvaluation {
  RoundRecord record;                 // f, ||grad f||^2 and, if the problem has one, the accuracy
  std::optional<double> regularizer;  // its share of f; nullopt if the problem has none
  // The root of the mean squared error and the coefficient of determination of a least squares model. They
  // are those of the test samples if there are some.
  std::optional<double> rmse, r_squared;
};

// Throws UsageError, ExperimentError, DataError, std::runtime_error.
ModelEvaluation evaluate_model(const ModelRequest& request, const std::atomic<bool>& stop);

// Returns "loss 0.0488, |grad f|^2 0.00123, accuracy 98.1 %".
std::string evaluation_text(const ModelEvaluation& evaluation);
// Returns a JSON object with loss, grad_norm_sq and accuracy, data_loss and regularizer, rmse and r_squared.
std::string evaluation_json(const ModelEvaluation& evaluation);

}  // namespace gradwire
