#include "engine/data/table.h"

#include <algorithm>
#include <string_view>

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

}  // namespace gradwire
