// An experiment: the problem, the clients, the algorithm, and everything else that decides the bits of a run.
// An experiment file is its text (docs/reference/experiment_file.md).
//
//   const auto experiment = gradwire::Experiment::load("ef21.toml").with("run.rounds", 500);
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gradwire/bad_input.h"
#include "gradwire/version.h"

namespace gradwire {

struct ExperimentContent;  // private

// The value of a key: a number, true or false, or a text such as "theory*4". A list is a text as in a file,
// "[64, 32]".
class GRADWIRE_API KeyValue {
 public:
  KeyValue(const char* text) : text_(text) {}
  KeyValue(std::string text) : text_(std::move(text)) {}
  KeyValue(std::string_view text) : text_(text) {}
  template <std::integral Number>
  KeyValue(Number number) : text_(text_of(number)) {}
  KeyValue(double number);

  const std::string& text() const { return text_; }  // the shortest text that gives the same number

 private:
  static std::string text_of(bool flag) { return flag ? "true" : "false"; }
  static std::string text_of(std::integral auto number) { return std::to_string(number); }

  std::string text_;
};

// Keys with their values: {{"run.rounds", 500}, {"algorithm.step_size", "theory"}}.
using KeyValues = std::vector<std::pair<std::string, KeyValue>>;

// A checked experiment. Copies share its content, which does not change.
class GRADWIRE_API Experiment {
 public:
  // Read an experiment file, or the shipped experiment of that name if there is no such file; or the text of
  // a file. `name` stands for the file in errors, and is the default of the key `name`. Throw BadInput with
  // one line, FILE:LINE: MESSAGE.
  static Experiment load(const std::filesystem::path& file);
  static Experiment parse(std::string_view toml, const std::filesystem::path& name = "experiment.toml");
  // Makes an experiment from keys alone. Throws BadInput with one line, KEY: MESSAGE.
  static Experiment from(const KeyValues& keys);

  // Returns a copy with another value of a key. A key that is unique without its section may be written
  // without it. Throw BadInput with one line, KEY: MESSAGE.
  Experiment with(std::string_view key, const KeyValue& value) const;
  Experiment with(const KeyValues& keys) const;

  // Returns the value of a key, such as "run.rounds", as text. Throws std::out_of_range for an unknown key.
  std::string get(std::string_view key) const;
  KeyValues settings() const;  // every key with its value
  std::string name() const;
  std::uint32_t clients() const;  // n
  // Returns the text of a file with every key, which reads back to the same experiment.
  std::string toml() const;
  // Returns one line for each old name of a key.
  const std::vector<std::string>& warnings() const;

  explicit Experiment(std::shared_ptr<const ExperimentContent> content);  // for the library
  const ExperimentContent& content() const { return *content_; }

 private:
  std::shared_ptr<const ExperimentContent> content_;
};

}  // namespace gradwire
