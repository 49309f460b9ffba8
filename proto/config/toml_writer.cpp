#include <algorithm>

#include "proto/config/experiment.h"
#include "proto/config/experiment_fields.h"

namespace gradwire {
namespace {

bool is_bare_key(const std::string& key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

std::string line(const std::string& key, const TomlValue& value) {
  return (is_bare_key(key) ? key : toml_literal(key)) + " = " + toml_literal(value) + "\n";
}

bool is_written(const Field& field, const proto::Experiment& e, const TomlValue& value) {
  if (value == TomlValue("")) return false;
  const Field::OfKind* own = field.of_kind(e.problem().kind());
  if (!field.kinds.empty() && own == nullptr) return false;
  return value != (own != nullptr ? own->fallback : field.fallback) || field.matters == nullptr ||
         field.matters(e);
}

}  // namespace

std::string to_toml(const proto::Experiment& e) {
  std::string text, section;
  for (const Field& field : experiment_fields()) {
    const TomlValue value = field.get(e);
    if (!is_written(field, e, value)) continue;
    if (section != field.section) {
      section = field.section;
      text += "\n[" + section + "]\n";
    }
    text += line(std::string(field.key), value);
    // The parameters follow the last key of [algorithm].
    if (field.section == "algorithm" && field.key == "batch")
      for (const proto::Parameter& p : e.algorithm().parameters()) text += line(p.key(), value_of(p.value()));
  }
  return text;
}

}  // namespace gradwire
