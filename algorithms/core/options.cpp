#include "algorithms/core/options.h"

#include <algorithm>
#include <vector>

#include "base/config_error.h"
#include "base/suggest.h"
#include "base/value.h"

namespace gradwire {
namespace {

// The key of AlgorithmSpec::step_size, which is not in AlgorithmSpec::parameters.
constexpr std::string_view kStepSize = "step_size";

std::string path_of(std::string_view key) { return "algorithm." + std::string(key); }

void read(const Field& field, const std::string& text) {
  const bool verbatim = field.takes_any_text() || field.has_text_codec();
  field.from_text(path_of(field.key), verbatim ? text : canonical_text(text));  // "0.10" is 0.1
}

}  // namespace

void read_parameters(const AlgorithmSpec& spec, std::span<const Field> fields) {
  for (const Field& field : fields) {
    if (field.key == kStepSize) {
      if (!spec.step_size.empty()) read(field, spec.step_size);
      continue;
    }
    for (const auto& [key, text] : spec.parameters)
      if (key == field.key) read(field, text);
  }
  std::vector<std::string> known;
  std::vector<Renamed> renamed;
  for (const Field& field : fields) {
    known.emplace_back(field.key);
    if (const std::string_view old = field.constraints.old_key; !old.empty())
      renamed.push_back({std::string(old), std::string(field.key)});
  }
  known.insert(known.end(), {"name", "compressor", "batch"});
  for (const auto& [key, text] : spec.parameters)
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw ConfigError(path_of(key),
                        spec.name + " has no parameter '" + key + "'" + suggest(key, known, renamed));
}

void write_parameters(std::span<const Field> fields, AlgorithmSpec& spec) {
  spec.parameters.clear();
  for (const Field& field : fields) {
    if (field.key == kStepSize) {
      spec.step_size = field.text();
    } else {
      spec.parameters.emplace_back(field.key, field.text());
    }
  }
}

}  // namespace gradwire
