#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gradwire {

// A known word that was renamed.
struct Renamed {
  std::string old_name, name;
};

// Returns "; did you mean 'WORD'?" with the known word nearest to `word`, or "; known: ..." if none is near.
// If an old name in `renamed` is nearest, WORD is its new name.
std::string suggest(std::string_view word, const std::vector<std::string>& known,
                    const std::vector<Renamed>& renamed = {});

}  // namespace gradwire
