#include "engine/data/text.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/text_lines.h"

namespace gradwire {
namespace {

constexpr std::size_t kBytes = 256;  // the number of values of a byte
constexpr std::size_t kMaxTokens = std::numeric_limits<std::uint32_t>::max();  // starts have 32 bits
constexpr std::uint16_t kEndMark = 0;
constexpr std::uint16_t kNoLetter = std::numeric_limits<std::uint16_t>::max();

bool precedes(char a, char b) { return static_cast<unsigned char>(a) < static_cast<unsigned char>(b); }

// Returns the token of each byte, kNoLetter for bytes outside the alphabet.
std::array<std::uint16_t, kBytes> token_of(std::string_view alphabet, bool end_mark) {
  std::array<std::uint16_t, kBytes> token;
  token.fill(kNoLetter);
  std::uint16_t next = end_mark ? kEndMark + 1 : 0;
  for (const char letter : alphabet) token[static_cast<unsigned char>(letter)] = next++;
  return token;
}

// Returns the distinct bytes of `text` that are not in `but`, ascending.
std::string alphabet_of(std::string_view text, std::string_view but) {
  std::array<bool, kBytes> seen{};
  for (const char c : text) seen[static_cast<unsigned char>(c)] = true;
  for (const char c : but) seen[static_cast<unsigned char>(c)] = false;
  std::string alphabet;
  for (std::size_t byte = 0; byte < kBytes; ++byte)
    if (seen[byte]) alphabet += static_cast<char>(byte);
  return alphabet;
}

void check_size(std::size_t tokens, const std::string& file) {
  if (tokens > kMaxTokens) {
    throw DataError(file + ": takes " + std::to_string(tokens) + " tokens, more than the limit of " +
                    std::to_string(kMaxTokens) + "; split it");
  }
}

}  // namespace

Windows running_text(std::string_view text, const std::string& file, std::size_t context) {
  if (text.size() <= context) {
    throw DataError(file + ": holds " + std::to_string(text.size()) +
                    " letters, but problem.context = " + std::to_string(context) + " needs " +
                    std::to_string(context + 1) + " or more; lower problem.context");
  }
  check_size(text.size(), file);
  auto letters = std::make_shared<Letters>();
  letters->alphabet = alphabet_of(text, "");
  const auto token = token_of(letters->alphabet, false);
  letters->tokens.reserve(text.size());
  for (const char c : text) letters->tokens.push_back(token[static_cast<unsigned char>(c)]);
  return {
      .letters = std::move(letters), .all = text.size() - context, .context = context, .targets = context};
}

Windows list_of_names(std::string_view text, const std::string& file, std::size_t context) {
  std::size_t names = 0, samples = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t count = take_line(rest).size();
    names += count > 0 ? 1 : 0;
    samples += count > 0 ? count + 1 : 0;
  }
  if (names == 0) throw DataError(file + ": holds no names; write one name per line");
  // Each name has its letters and, before them, `context` end marks. The first mark ends the previous name.
  const std::size_t tokens = samples - names + names * context + 1;
  check_size(tokens, file);
  auto letters = std::make_shared<Letters>();
  letters->alphabet = alphabet_of(text, "\r\n");
  letters->end_mark = true;
  const auto token = token_of(letters->alphabet, true);
  letters->tokens.reserve(tokens);
  Windows windows{.context = context};
  windows.start.reserve(samples);
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = take_line(rest);
    const std::size_t count = line.size(), first = letters->tokens.size();
    if (count == 0) continue;
    letters->tokens.insert(letters->tokens.end(), context, kEndMark);
    for (const char c : line) letters->tokens.push_back(token[static_cast<unsigned char>(c)]);
    for (std::size_t s = 0; s <= count; ++s) windows.start.push_back(static_cast<std::uint32_t>(first + s));
  }
  letters->tokens.push_back(kEndMark);
  windows.letters = std::move(letters);
  return windows;
}

Windows select_rows(const Windows& windows, std::span<const std::uint32_t> rows) {
  Windows selected{.letters = windows.letters, .context = windows.context, .targets = windows.targets};
  selected.start.reserve(rows.size());
  for (const std::uint32_t r : rows) {
    if (r >= windows.size())
      throw std::logic_error("select_rows: row " + std::to_string(r) + " is not in the text");
    selected.start.push_back(windows.begin(r));
  }
  return selected;
}

std::string unite_alphabets(std::string_view a, std::string_view b) {
  std::string both;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both), precedes);
  return both;
}

Windows with_alphabet(const Windows& windows, std::string_view alphabet) {
  if (windows.alphabet() == alphabet || windows.letters == nullptr) return windows;
  const Letters& old = *windows.letters;
  const auto token = token_of(alphabet, old.end_mark);
  std::vector<std::uint16_t> translation;  // by old token
  if (old.end_mark) translation.push_back(kEndMark);
  for (const char letter : old.alphabet) {
    translation.push_back(token[static_cast<unsigned char>(letter)]);
    if (translation.back() == kNoLetter) {
      throw DataError("the text has the byte " + std::to_string(static_cast<unsigned char>(letter)) +
                      ", which is not among the " + std::to_string(alphabet.size()) +
                      " letters that the clients agreed on");
    }
  }
  auto letters = std::make_shared<Letters>();
  letters->alphabet = alphabet;
  letters->end_mark = old.end_mark;
  letters->tokens.reserve(old.tokens.size());
  for (const std::uint16_t number : old.tokens) letters->tokens.push_back(translation[number]);
  Windows translated = windows;
  translated.letters = std::move(letters);
  return translated;
}

}  // namespace gradwire
