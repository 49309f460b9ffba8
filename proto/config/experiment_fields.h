// The schema of the experiment file as a table: one Field per key. Reading, writing, checking, --help and
// docs/experiment_file.md all come from it.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proto/config/experiment.pb.h"
#include "proto/config/toml_value.h"

namespace gradwire {

enum class FieldType : std::uint8_t {
  kText,           // a string
  kWord,           // one of `words`
  kInteger,        // in [low, high]
  kNumber,         // in [low, high], see low_open and high_open; an integer is accepted
  kFlag,           // true or false
  kIntegers,       // a list of integers in [low, high], at most kMaxListLength
  kWordOrInteger,  // one of `words`, or an integer in [low, high]
  kWordOrFlag,     // one of `words`, or true or false
  kNumberOrText,   // kept as text
};

inline constexpr std::size_t kMaxListLength = 64;
inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

struct Field {
  // What a value must be.
  FieldType type = FieldType::kText;
  double low = 0, high = kNoLimit;
  bool low_open = false, high_open = false;
  std::vector<std::string> words = {};
  void (*check_text)(const Field&, const std::string& text) = nullptr;  // throws ConfigError

  // Where it is kept. set() takes what check_field() returned.
  TomlValue (*get)(const proto::Experiment&) = nullptr;
  void (*set)(proto::Experiment&, const TomlValue&) = nullptr;

  std::string_view section = {}, key = {};  // section is empty for the keys before the first one
  TomlValue fallback = {};
  // If only some kinds of problem have the key: these kinds, each with its default. For the other kinds the
  // value is `fallback`, which nothing reads.
  struct OfKind {
    std::string_view kind;
    TomlValue fallback;
  };
  std::vector<OfKind> kinds = {};
  std::string_view fallback_note = {};  // for people, when the default is no constant
  std::string_view meaning = {};
  bool (*matters)(const proto::Experiment&) = nullptr;  // written also when it has its default; null: always

  [[noreturn]] void fail(const std::string& message) const;  // throws ConfigError at path()
  std::string path() const;                                  // "problem.kind"
  const OfKind* of_kind(std::string_view kind) const;        // null: the kind does not have it
  std::string expected() const;                              // "an integer, 1 .. 1000000"
  std::string fallback_text() const;                         // "1"
};

// In the order in which to_toml() writes them: sections together.
std::span<const Field> experiment_fields();
const Field* find_field(std::string_view section, std::string_view key);  // null: no such key
std::vector<std::string> section_names();                                 // without the nameless one

// The value in the form in which `field` keeps it (an integer becomes a number where a number is wanted).
// Throws ConfigError.
TomlValue check_field(const Field& field, const TomlValue& value);

// Refuses line breaks, NUL and the like in a string: it goes into messages, logs and paths. Throws
// ConfigError(key).
void check_printable(const std::string& key, const TomlValue& value);

}  // namespace gradwire
