#include "base/suggest.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "base/synonyms.h"

namespace gradwire {
namespace {

// Returns the Levenshtein distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known,
                         const std::vector<Renamed>& renamed) {
  constexpr std::size_t kLongestWord = 100;
  if (word.size() > kLongestWord) return "";
  if (const auto meant = meant_name(word, known))
    return "; did you mean '" + meant->name + "'" +
           (meant->with.empty() ? "" : " with " + std::string(meant->with)) + "?";
  const std::string plain = plain_spelling(word);
  const std::string* best = nullptr;
  std::size_t best_distance = word.size() / 3 + 2;
  const auto look_at = [&](const std::string& spelled, const std::string& name) {
    const std::size_t dist = distance(plain, spelled);
    if (dist >= best_distance) return;
    best_distance = dist;
    best = &name;
  };
  for (const std::string& k : known) look_at(k, k);
  for (const Renamed& r : renamed) look_at(r.old_name, r.name);
  return best == nullptr ? "" : "; did you mean '" + *best + "'?";
}

std::string suggest(std::string_view word, const std::vector<std::string>& known,
                    const std::vector<Renamed>& renamed) {
  std::string text = did_you_mean(word, known, renamed);
  if (!text.empty()) return text;
  for (const std::string& k : known) text += (text.empty() ? "; known: " : ", ") + k;
  return text;
}

}  // namespace gradwire
