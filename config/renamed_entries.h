// Old names in the entries of a TOML file (config/renamed_keys.h).
#pragma once

#include <string>
#include <vector>

#include "config/toml_reader.h"

namespace gradwire {

// Replaces old names in the entry, and adds warnings that begin with `place`, as in "FILE:LINE: ". Does not
// repeat a warning.
void use_current_names(TomlEntry& entry, const std::string& place, std::vector<std::string>& warnings);

// Replaces old names in all entries of a file. Throws ExperimentError if the file gives a key under both
// names.
void use_current_names_in(std::vector<TomlEntry>& entries, const std::string& file,
                          std::vector<std::string>& warnings);

}  // namespace gradwire
