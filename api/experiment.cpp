#include "gradwire/experiment.h"

#include <memory>
#include <stdexcept>
#include <utility>

#include "api/content.h"
#include "base/suggest.h"
#include "base/value.h"
#include "config/experiment_file.h"
#include "config/settings.h"

namespace gradwire {
namespace {

Experiment read(std::string text, const std::filesystem::path& file, std::vector<std::string> overrides) {
  return with_errors_of_keys([&] {
    ExperimentContent content{parse_experiment(text, file, overrides), std::move(text), overrides};
    return Experiment(std::make_shared<const ExperimentContent>(std::move(content)));
  });
}

void add(std::vector<std::string>& overrides, const KeyValues& keys) {
  for (const auto& [key, value] : keys) overrides.push_back(key + "=" + value.text());
}

}  // namespace

KeyValue::KeyValue(double number) : text_(number_text(number)) {}

Experiment::Experiment(std::shared_ptr<const ExperimentContent> content) : content_(std::move(content)) {}

Experiment Experiment::load(const std::filesystem::path& file) {
  return read(read_experiment_text(file), file, {});
}
Experiment Experiment::parse(std::string_view toml, const std::filesystem::path& name) {
  return read(std::string(toml), name, {});
}
Experiment Experiment::from(const KeyValues& keys) {
  std::vector<std::string> overrides = {"name=experiment"};
  add(overrides, keys);
  return read("", "", std::move(overrides));
}

Experiment Experiment::with(std::string_view key, const KeyValue& value) const {
  return with({{std::string(key), value}});
}
Experiment Experiment::with(const KeyValues& keys) const {
  std::vector<std::string> overrides = content_->overrides;
  add(overrides, keys);
  return read(content_->text, content_->loaded.file, std::move(overrides));
}

std::string Experiment::get(std::string_view key) const {
  std::vector<std::string> known;
  for (const auto& [name, text] : settings_of(content_->loaded.experiment)) {
    if (name == key) return text;
    known.push_back(name);
  }
  throw std::out_of_range("an experiment has no key '" + std::string(key) + "'" + suggest(key, known));
}

KeyValues Experiment::settings() const {
  KeyValues all;
  for (auto& [key, text] : settings_of(content_->loaded.experiment)) all.emplace_back(key, std::move(text));
  return all;
}

std::string Experiment::name() const { return content_->loaded.experiment.name; }
std::uint32_t Experiment::clients() const { return content_->loaded.experiment.clients.count; }
std::string Experiment::toml() const { return to_toml(content_->loaded.experiment); }
const std::vector<std::string>& Experiment::warnings() const { return content_->loaded.warnings; }

}  // namespace gradwire
