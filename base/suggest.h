#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gradwire {

// "; did you mean 'WORD'?" for the known word nearest to `word`, or "; known: ..." when none is near.
std::string suggest(std::string_view word, const std::vector<std::string>& known);

}  // namespace gradwire
