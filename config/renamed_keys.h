// Keys and words of experiment files that were renamed. Their fields declare the old names
// (Constraints::old_key and renamed_word, base/field.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/suggest.h"
#include "base/value.h"

namespace gradwire {

// Returns the old and the current paths of all renamed keys, as in "clients.copies" and
// "clients.replication". Includes parameters of algorithms.
const std::vector<Renamed>& renamed_keys();

// Return the path of a key with its current name, and with its old name. A key that was not renamed keeps its
// path.
std::string current_path(const std::string& path);
std::string old_path(const std::string& path);

// Returns the renamed word of a key: "clip" and "halve" for "server.norm_action". Returns nullopt if none was
// renamed.
std::optional<Renamed> renamed_word_of(std::string_view path);

// Replaces old names in a setting of a file. Returns the warnings about them, without file and line: "OLD is
// now NEW; the old name works until version X".
std::vector<std::string> use_current_names(std::string& path, Value& value);

}  // namespace gradwire
