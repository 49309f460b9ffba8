#include "algorithms/optimizers/optimizer.h"

#include <utility>

#include "base/config_error.h"
#include "base/field.h"
#include "base/spec_text.h"
#include "base/suggest.h"

namespace gradwire {
namespace {

template <class F, class... R>
void each_rule(F&& f, const std::variant<R...>*) {
  (f(R{}), ...);
}
template <class F>
void each_rule(F&& f) {
  each_rule(std::forward<F>(f), static_cast<const OptimizerRule*>(nullptr));
}

void fit(const std::string& path, MicroAdam& rule, std::size_t d) {
  rule.k.resolve(d);
  if (rule.k.count > d)
    throw ConfigError(path, "microadam: k = " + std::to_string(rule.k.count) +
                                " is larger than the dimension " + std::to_string(d));
}
void fit(const std::string&, Sgd&, std::size_t) {}
void fit(const std::string&, Adam&, std::size_t) {}

template <class Rule>
std::string rule_text(Rule rule) {
  return spec_text(Rule::name, fields_of(rule));
}

}  // namespace

OptimizerRule parse_optimizer(const std::string& path, std::string_view spec, std::size_t d) {
  const NamedSpec thing = split_spec(path, spec);
  OptimizerRule result;
  bool found = false;
  std::vector<std::string> known;
  each_rule([&]<class Rule>(Rule rule) {
    known.emplace_back(Rule::name);
    if (thing.name != Rule::name) return;
    found = true;
    read_settings(path, Rule::name, fields_of(rule), thing.settings);
    if (d > 0) fit(path, rule, d);
    result = rule;
  });
  if (!found)
    throw ConfigError(path, "unknown optimizer " + quoted_spec(thing.name) + suggest(thing.name, known));
  return result;
}

std::string to_spec(const OptimizerRule& rule) {
  if (rule == OptimizerRule(Sgd{})) return std::string(Sgd::name);
  return std::visit([](const auto& r) { return rule_text(r); }, rule);
}

std::vector<OptimizerHelp> optimizer_help() {
  std::vector<OptimizerHelp> help;
  each_rule([&]<class Rule>(Rule rule) {
    const std::string spec = rule_text(rule);
    help.push_back({std::string(Rule::name), spec.substr(Rule::name.size() + 1), std::string(Rule::summary)});
  });
  return help;
}

void OptimizerSettings::check_rule(const std::string& path, const std::string& text) {
  parse_optimizer(path, text, 0);
}

bool OptimizerSettings::is_plain() const {
  return parse_optimizer(kKey, rule, 0) == OptimizerRule(Sgd{}) && weight_decay == 0 && clip_norm == 0;
}

void OptimizerSettings::resolve(std::size_t d) { rule = to_spec(parse_optimizer(kKey, rule, d)); }

LocalOptimizer::LocalOptimizer(const OptimizerSettings& settings, std::size_t d)
    : rule_(parse_optimizer(OptimizerSettings::kKey, settings.rule, d)),
      weight_decay_(settings.weight_decay),
      clip_norm_(settings.clip_norm) {}

}  // namespace gradwire
