#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gradwire {

// Returns "; did you mean 'WORD'?" with the known word nearest to `word`, or "; known: ..." if none is near.
std::string suggest(std::string_view word, const std::vector<std::string>& known);

}  // namespace gradwire
