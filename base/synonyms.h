// The only table of words that people use in place of names of gradwire: keys, algorithms, problem types,
// compressors, columns, topics.
//
// The command line takes such a word where it takes a key, a topic or a column. An experiment file has one
// spelling for each name; the error about any other spelling gives the name.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradwire {

struct Synonym {
  std::string_view word;       // in plain spelling
  std::string_view name;       // a key has its section: "run.rounds"
  std::string_view with = {};  // settings that `name` needs to mean `word`, as in `hidden = []`
};
std::span<const Synonym> synonyms();

// Returns the word in the spelling of names: in lower case, with '_' for '-' and blanks.
std::string plain_spelling(std::string_view word);

// A name that a word stands for, and the settings that it needs.
struct MeantName {
  std::string name;
  std::string_view with;
};
// Returns the name in `known` that differs from `word` only in case, '-' and '_', or that the table gives for
// it. A key of the table also matches without its section. Returns nullopt if there is none.
std::optional<MeantName> meant_name(std::string_view word, std::span<const std::string> known);

}  // namespace gradwire
