#include "engine/data/table.h"

#include <algorithm>
#include <string_view>

#include "base/value.h"

namespace gradwire {
namespace {

// Returns true if `text` is `word`, which has lower-case letters, in any case.
bool is_word(std::string_view text, std::string_view word) {
  return std::ranges::equal(text, word,
                            [](char c, char lower) { return c == lower || c + 'a' - 'A' == lower; });
}

}  // namespace

bool TableEncoding::Column::is_flag() const {
  return texts.size() == 2 && is_word(texts[0], "false") && is_word(texts[1], "true");
}

bool TableEncoding::has_texts() const {
  return !label.texts.empty() ||
         std::ranges::any_of(features, [](const Column& column) { return !column.texts.empty(); });
}

std::vector<std::string> TableEncoding::feature_names() const {
  std::vector<std::string> names;
  for (const Column& column : features) {
    if (column.name.empty()) return {};
    if (column.width() == 1) names.push_back(column.name);
    for (std::size_t k = 0; k < column.width() && column.width() > 1; ++k)
      names.push_back(column.name + "=" + column.texts[k]);
  }
  return names;
}

bool TableEncoding::has_own_texts() const {
  const auto is_own = [](const Column& column) { return !column.texts.empty() && !column.is_given; };
  return is_own(label) || std::ranges::any_of(features, is_own);
}

double number_of_label(std::size_t index, std::size_t texts) {
  return texts == 2 ? (index == 0 ? -1 : 1) : static_cast<double>(index);
}

std::string label_text(const TableEncoding* encoding, double number) {
  const std::size_t texts = encoding == nullptr ? 0 : encoding->label.texts.size();
  for (std::size_t k = 0; k < texts; ++k)
    if (number_of_label(k, texts) == number) return encoding->label.texts[k];
  return number_text(number);
}

}  // namespace gradwire
