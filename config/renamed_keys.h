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

// Returns the paths of all renamed keys, as in "clients.copies" and "clients.replication". Includes
// parameters of algorithms.
const std::vector<Renamed>& renamed_keys();

// Return the path of a key in the spelling of today, and in that from before it was renamed.
std::string current_path(const std::string& path);
std::string old_path(const std::string& path);

// Returns the renamed word of a key, "clip" and "halve" of "server.norm_action". Returns nullopt if none was
// renamed.
std::optional<Renamed> renamed_word_of(std::string_view path);

// Replaces old names in a setting of a file, and returns the warnings about them, without a place: "KEY is
// now KEY; the old name works until version X".
std::vector<std::string> use_current_names(std::string& path, Value& value);

}  // namespace gradwire
