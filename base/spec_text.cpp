#include "base/spec_text.h"

#include <algorithm>
#include <vector>

#include "base/config_error.h"
#include "base/suggest.h"

namespace gradwire {
namespace {

void read_setting(const std::string& path, const std::string& name, std::span<const Field> fields,
                  std::string_view item) {
  const std::size_t equals = item.find('=');
  const std::string_view key = item.substr(0, equals);
  const auto field = std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.key == key; });
  if (field == fields.end()) {
    std::vector<std::string> known;
    for (const Field& f : fields) known.emplace_back(f.key);
    throw ConfigError(path, name + " has no parameter " + quoted_spec(key) +
                                (known.empty() ? "; it takes none" : suggest(key, known)));
  }
  if (equals == std::string_view::npos)
    throw ConfigError(path,
                      name + ": " + quoted_spec(key) + " needs a value, as in " + std::string(key) + "=...");
  const std::string_view text = item.substr(equals + 1);
  try {
    field->from_text(path, field->has_text_codec() ? std::string(text) : canonical_text(text));
  } catch (const ConfigError& refused) {
    throw ConfigError(path, name + ": " + refused.what());
  }
}

}  // namespace

std::string quoted_spec(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  return "'" + std::string(text.substr(0, kLongest)) + (text.size() > kLongest ? "...'" : "'");
}

NamedSpec split_spec(const std::string& path, std::string_view spec) {
  const std::size_t colon = spec.find(':');
  if (colon == std::string_view::npos) return {spec, {}};
  if (colon + 1 == spec.size())
    throw ConfigError(path, quoted_spec(spec) + " ends with a colon; leave it out, or write NAME:KEY=VALUE");
  return {spec.substr(0, colon), spec.substr(colon + 1)};
}

void read_settings(const std::string& path, std::string_view thing, std::span<const Field> fields,
                   std::string_view settings) {
  const std::string name(thing);
  std::vector<std::string_view> given;
  while (!settings.empty()) {
    const std::size_t comma = settings.find(',');
    const std::string_view item = settings.substr(0, comma), key = item.substr(0, item.find('='));
    read_setting(path, name, fields, item);
    if (std::find(given.begin(), given.end(), key) != given.end())
      throw ConfigError(path, name + ": " + quoted_spec(key) + " is given twice");
    given.push_back(key);
    if (comma != std::string_view::npos && comma + 1 == settings.size())
      throw ConfigError(path, name + ": the list of parameters ends with a comma");
    settings = comma == std::string_view::npos ? std::string_view{} : settings.substr(comma + 1);
  }
}

std::string spec_text(std::string_view name, std::span<const Field> fields) {
  std::string text(name);
  char separator = ':';
  for (const Field& field : fields) {
    const std::string value = field.text();
    if (value.empty()) continue;
    text += separator + std::string(field.key) + "=" + value;
    separator = ',';
  }
  return text;
}

}  // namespace gradwire
