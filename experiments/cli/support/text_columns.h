#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace gradwire {

// Returns the rows as lines whose columns are aligned, with two spaces between them. The first `left` columns
// are flush left, the others flush right.
std::string text_columns(const std::vector<std::vector<std::string>>& rows, std::size_t left);

}  // namespace gradwire
