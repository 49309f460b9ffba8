#pragma once

#include <string>
#include <string_view>

namespace gradwire {

// What can be written in an experiment file, from the tables that the program itself uses. `topic`:
// algorithms, compressors, optimizers, problems, keys, or empty for all. Throws UsageError.
std::string list_text(std::string_view topic);

}  // namespace gradwire
