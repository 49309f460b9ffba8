// The names that experiments may have: the entries of `gradwire list`.
#pragma once

#include <string>
#include <vector>

#include "gradwire/version.h"

namespace gradwire {

// A key of an experiment, as "run.rounds", or a parameter of one algorithm, as "step_size".
struct KeyEntry {
  std::string name;
  std::string type;      // empty for parameters
  std::string fallback;  // the default, or a text that says when the key is required; may be empty
  std::string meaning;
};

struct AlgorithmEntry {
  std::string name, summary, reference;
  std::string compressors;  // those that its theory covers: "none", "unbiased", "contractive" or "all"
  bool participation = false, batch = false, asynchronous = false;  // true if it supports them
  std::vector<KeyEntry> parameters = {};                            // keys of [algorithm]
};

struct CompressorEntry {
  std::string name, parameters, summary, constants;
};

struct ProblemEntry {
  std::string name, summary;
  std::string reads;             // "samples", "text" or "nothing"
  bool exact_constants = false;  // true if its constants are exact, not estimated, for the steps of theory
};

// Return the entries in the order of the documents.
GRADWIRE_API std::vector<AlgorithmEntry> list_algorithms();
GRADWIRE_API std::vector<CompressorEntry> list_compressors();
GRADWIRE_API std::vector<ProblemEntry> list_problems();
// The keys of all problem kinds, without parameters of algorithms.
GRADWIRE_API std::vector<KeyEntry> list_keys();

}  // namespace gradwire
