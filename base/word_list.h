// Lists of words in messages and settings.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gradwire {

// Returns "a, b, c".
inline std::string joined(const std::vector<std::string>& words, std::string_view separator = ", ") {
  std::string text;
  for (std::size_t k = 0; k < words.size(); ++k) {
    if (k > 0) text += separator;
    text += words[k];
  }
  return text;
}

// Returns "a, b, c and 5 more".
inline std::string some_of(const std::vector<std::string>& words, std::size_t at_most = 10) {
  const auto named = static_cast<std::ptrdiff_t>(std::min(words.size(), at_most));
  const std::string text = joined({words.begin(), words.begin() + named});
  return words.size() <= at_most ? text : text + " and " + std::to_string(words.size() - at_most) + " more";
}

}  // namespace gradwire
