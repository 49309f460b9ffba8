// gradwire evaluate: evaluates a model on the data of an experiment.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "base/log.h"
#include "rounds/round_loop.h"

namespace gradwire {

struct EvaluateRequest {
  std::filesystem::path model;  // model.bin, or text with one number per line
  std::filesystem::path file;   // the experiment
  std::vector<std::string> sets;
  unsigned threads = 0;  // 0 for one per processor
  Log log = {};          // takes warnings about the data; may be empty
};

// Returns f, ||grad f||^2 and, if the problem has one, the accuracy. Throws ExperimentError, DataError,
// std::runtime_error.
RoundRecord evaluate_model(const EvaluateRequest& request, const std::atomic<bool>& stop);

// Returns "loss 0.0488, |grad f|^2 0.00123, accuracy 98.1 %".
std::string evaluation_text(const RoundRecord& record);
// Returns a JSON object with loss, grad_norm_sq and accuracy.
std::string evaluation_json(const RoundRecord& record);

}  // namespace gradwire
