// The keys that an experiment file may have, and the errors about other keys.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/toml_reader.h"

namespace gradwire {

// A key that a file may have, for some or all problem types.
struct KnownKey {
  std::string section, key;
  bool takes_any_text = false;
  std::vector<std::string> kinds = {};  // problem types that have it; empty for keys outside [problem]
};

// Returns the key, or null if no section has it. Parameters of algorithms are not known here.
const KnownKey* find_key(const std::string& section, const std::string& key);

// Returns "section.key". Either may be empty.
std::string path_of(const std::string& section, const std::string& key);

// Throws ConfigError if no experiment file may have the key of `entry`, whatever its problem type. The error
// suggests the key of that name in another section if there is one, else the nearest key of this section.
void check_known(const TomlEntry& entry);

// Returns the path of the key that a word of the command line means: a path, the last part of the only key
// that ends so ("rounds"), or a word of the table of synonyms ("lr"). Takes any case, and '-' for '_'.
// Parameters of algorithms are also keys, unless another key ends so ("lambda").
std::optional<std::string> key_of_word(std::string_view word);

}  // namespace gradwire
