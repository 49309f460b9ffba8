#include "experiments/cli/support/text_columns.h"

#include <algorithm>

namespace gradwire {

std::string text_columns(const std::vector<std::vector<std::string>>& rows, std::size_t left) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows)
    for (std::size_t k = 0; k < row.size(); ++k) {
      if (widths.size() <= k) widths.push_back(0);
      widths[k] = std::max(widths[k], row[k].size());
    }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t k = 0; k < row.size(); ++k) {
      const std::string fill(widths[k] - row[k].size(), ' ');
      line += (k == 0 ? "" : "  ") + (k < left ? row[k] + fill : fill + row[k]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace gradwire
