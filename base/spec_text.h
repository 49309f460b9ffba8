// A spec: one string that names something and gives its settings, "NAME" or "NAME:KEY=VALUE,...", as in
// "topk:k=1%".
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/field.h"

namespace gradwire {

// Returns the text in quotes, shortened if it is long.
std::string quoted_spec(std::string_view text);

struct NamedSpec {
  std::string_view name, settings;  // `settings` is the text after the colon
};
// Splits a spec at its colon. Throws ConfigError(path) if nothing follows the colon.
NamedSpec split_spec(const std::string& path, std::string_view spec);

// Reads "KEY=VALUE,..." into the fields of the thing called `name`. Throws ConfigError(path); the error for
// an unknown key suggests the nearest known one.
void read_settings(const std::string& path, std::string_view name, std::span<const Field> fields,
                   std::string_view settings);

// Returns "NAME:KEY=VALUE,..." with all fields whose text is not empty.
std::string spec_text(std::string_view name, std::span<const Field> fields);

}  // namespace gradwire
