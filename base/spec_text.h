// How a file spells a thing with settings of its own in one string: "NAME" or "NAME:KEY=VALUE,...", as in
// "topk:k=1%".
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/field.h"

namespace gradwire {

// The text in quotes, shortened when it is long.
std::string quoted_spec(std::string_view text);

struct NamedSpec {
  std::string_view name, settings;  // of the spec; `settings` is what follows the colon
};
// Throws ConfigError(path) when nothing follows the colon.
NamedSpec split_spec(const std::string& path, std::string_view spec);

// Reads "KEY=VALUE,..." into the fields of the thing called `name`. Throws ConfigError(path) that names the
// nearest known key.
void read_settings(const std::string& path, std::string_view name, std::span<const Field> fields,
                   std::string_view settings);

// "NAME:KEY=VALUE,..." with all fields that have a text.
std::string spec_text(std::string_view name, std::span<const Field> fields);

}  // namespace gradwire
