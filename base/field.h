// Settings. A struct of settings lists its fields once. This list is used for reading, checking, defaults,
// --set, `gradwire list`, the docs, the wire, config.toml and the check of a restart:
//
//   struct Text {
//     std::uint32_t context = 8;
//     static void fields(auto& self, auto&& visit) {
//       visit("context", self.context, "letters before the predicted one", {.low = 1, .high = 4096});
//     }
//   };
//
// The type and the default of a setting are those of the member. Constraints add what the type does not say.
// A member is a bool, an unsigned integer, a double, a std::string, a std::vector<std::uint32_t>, an enum
// with words_of(), or a type with a TextCodec.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/value.h"

namespace gradwire {

inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();
inline constexpr double kMaxU32 = 4294967295.0;
inline constexpr std::size_t kMaxListLength = 64;

// Returns `by` if the key is idle, else "". For Constraints::idle_by.
constexpr std::string_view idle_if(bool is_idle, std::string_view by) { return is_idle ? by : ""; }

// The runs in which a key has an effect: all, simulations, or runs whose clients are processes.
enum class RunIn : std::uint8_t { kAny, kMemory, kNetwork };

// The spelling of keys and words: the current one, or the one before they were renamed. The wire, state
// folders and checkpoints use the old spelling, so that programs of the previous version can read them.
enum class Names : std::uint8_t { kCurrent, kOld };

// The version that no longer reads old names in experiment files.
inline constexpr std::string_view kOldNamesEnd = "0.3";

// A word that was renamed. Empty if none was.
struct RenamedWord {
  std::string_view old_word, word;
};

struct Constraints {
  double low = 0, high = kNoLimit;
  bool low_open = false, high_open = false;
  // The allowed texts, in addition to those that the next members allow. For an unsigned integer the words
  // stand for 0, 1, ...
  std::span<const std::string_view> words = {};
  bool or_integer = false, or_flag = false;  // also allowed; a std::string stores them as text
  bool or_number = false;                    // allows any text, or a number, kept as text
  std::string_view required = {};            // set if there is no default: text after "required for kind 'K'"
  std::string_view note = {};                // the default for people to read, if it is not a constant
  bool quiet = false;                        // a written file leaves the key out if it has its default
  bool may_change = false;                   // may change from one process of a run to the next
  // The key is sent only if it differs from its default, because peers of earlier releases do not know it.
  bool sent_if_set = false;
  // The key whose value makes this key idle: a key of the same list, or one with its section
  // ("run.evaluate_every"). Empty if this key has an effect. A run warns about an idle key in its file.
  std::string_view idle_by = {};
  bool monitored = false;  // run.monitor reads it, so it is not idle if the monitor is on
  RunIn place = RunIn::kAny;
  void (*check)(const std::string& path, const std::string& text) = nullptr;  // throws ConfigError(path)
  // The former name of the key, and the former spelling of one of its words. A file may use them, with a
  // warning (config/renamed_keys.h).
  std::string_view old_key = {};
  RenamedWord renamed_word = {};
};

// An enum, or a type that converts to and from std::uint64_t. Its values 0, 1, ... are spelled
// words_of(E{})[0], [1], ...
template <class E>
concept Words = requires(E e) {
  { words_of(E{}) } -> std::convertible_to<std::span<const std::string_view>>;
  static_cast<E>(static_cast<std::uint64_t>(e));
};

// The text form of any other type of member:
//   static bool read(std::string_view text, T& out);       // returns false and keeps `out` if refused
//   static std::string write(const T& value);              // returns "" if not known yet
//   static constexpr std::string_view expected = "...";    // for errors: "a positive number or \"theory\""
template <class T>
struct TextCodec;
template <class T>
concept HasTextCodec = requires(T& out, const T& value, std::string_view text) {
  { TextCodec<T>::read(text, out) } -> std::same_as<bool>;
  { TextCodec<T>::write(value) } -> std::same_as<std::string>;
  { TextCodec<T>::expected } -> std::convertible_to<std::string_view>;
};

// A field of an object. The object must outlive the Field.
class Field {
 public:
  // An unsigned integer, or an enum as the number of its word.
  struct Whole {
    void* at;
    std::uint64_t (*get)(const void*);
    void (*set)(void*, std::uint64_t);
  };
  // A type with a TextCodec.
  struct Own {
    void* at;
    bool (*read)(std::string_view text, void*);
    std::string (*write)(const void*);
    std::string_view expected;
  };
  using Member = std::variant<bool*, double*, std::string*, std::vector<std::uint32_t>*, Whole, Own>;
  Field(std::string_view key, Member member, std::string_view meaning, const Constraints& constraints)
      : key(key), meaning(meaning), constraints(constraints), member_(member) {}

  Value get(Names names = Names::kCurrent) const;
  // Sets the member. Throws ConfigError(path) with the expected and the actual value; the member then keeps
  // its value.
  void set(const std::string& path, const Value& value) const;
  // Convert the value to and from text. from_text(text()) does not change a bit. from_text() reads a renamed
  // word in both spellings, and throws like set().
  std::string text(Names names = Names::kCurrent) const;
  void from_text(const std::string& path, std::string_view text) const;

  std::string expected() const;  // "an integer, 1 to 4096"
  bool takes_any_text() const;
  bool has_text_codec() const;  // TextCodec<T>

  std::string_view key, meaning;
  Constraints constraints;

 private:
  bool fits(const Value& value) const;
  bool fits_unquoted(const Value& value) const;
  [[noreturn]] void refuse(const std::string& path, const Value& value) const;
  void store(const Value& value) const;
  Member member_;
};

// Collects the fields of a struct.
class Collector {
 public:
  template <class T>
  void operator()(std::string_view key, T& member, std::string_view meaning = {},
                  Constraints constraints = {}) {
    constexpr bool whole = std::is_unsigned_v<T> && !std::is_same_v<T, bool>;
    if constexpr (Words<T>) constraints.words = words_of(T{});
    if (whole && sizeof(T) == 4 && constraints.high == kNoLimit) constraints.high = kMaxU32;
    if constexpr (Words<T> || whole) {
      const Field::Whole access{
          &member, [](const void* at) { return static_cast<std::uint64_t>(*static_cast<const T*>(at)); },
          [](void* at, std::uint64_t value) { *static_cast<T*>(at) = static_cast<T>(value); }};
      fields.emplace_back(key, access, meaning, constraints);
    } else if constexpr (HasTextCodec<T>) {
      const Field::Own access{
          &member,
          [](std::string_view text, void* at) { return TextCodec<T>::read(text, *static_cast<T*>(at)); },
          [](const void* at) { return TextCodec<T>::write(*static_cast<const T*>(at)); },
          TextCodec<T>::expected};
      fields.emplace_back(key, access, meaning, constraints);
    } else {
      fields.emplace_back(key, &member, meaning, constraints);
    }
  }
  std::vector<Field> fields;
};

template <class T>
std::vector<Field> fields_of(T& object) {
  Collector collect;
  T::fields(object, collect);
  return std::move(collect.fields);
}

// Throws ConfigError(path) if a string has line breaks, NUL or other control characters. The strings of
// settings are used in messages, logs and paths.
void check_printable(const std::string& path, const Value& value);

// Returns true if the value turns something off: "", "none", 0, [] or false.
bool is_nothing(const Value& value);

}  // namespace gradwire
