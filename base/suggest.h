#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gradwire {

// A known word that was renamed.
struct Renamed {
  std::string old_name, name;
};

// Returns "; did you mean 'NAME'?" with the known word that `word` stands for (base/synonyms.h), else with
// the nearest one. If an old name in `renamed` is nearest, NAME is its new name. Returns "" if none is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known,
                         const std::vector<Renamed>& renamed = {});
// Returns the same, or "; known: ..." if none is near.
std::string suggest(std::string_view word, const std::vector<std::string>& known,
                    const std::vector<Renamed>& renamed = {});

}  // namespace gradwire
