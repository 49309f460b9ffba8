#include "plotting/plot_curves.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "base/value.h"
#include "compressors/compressor.h"
#include "plotting/plot_names.h"

namespace gradwire {
namespace {

constexpr std::size_t kMostKeys = 3;    // in a label; if more keys differ, it has only the necessary ones
constexpr std::size_t kLongNumber = 8;  // length up to which a label shows a number in full

// Shortens "randk:k=10,scaled=true" to "randk:k=10". Omits parameters that have their default, except the
// first, the count.
std::string short_compressor(std::string spec) {
  for (const CompressorHelp& help : compressor_help()) {
    if (!spec.starts_with(help.name + ":")) continue;
    for (std::size_t at = help.parameters.find(','); at != std::string::npos;) {
      const std::size_t next = help.parameters.find(',', at + 1);
      const std::string parameter = help.parameters.substr(at, next - at);  // with its comma
      if (const std::size_t found = spec.find(parameter); found != std::string::npos)
        spec.erase(found, parameter.size());
      at = next;
    }
  }
  return spec;
}

std::string name_of(const RunKeys& keys) {
  const std::string compressor = value_of_key(keys, "algorithm.compressor");
  const std::string name = value_of_key(keys, "algorithm.name");
  const std::string title = algorithm_title(name);
  return compressor.empty() || compressor == "identity"
             ? title
             : title + ", " + compressor_title(short_compressor(compressor));
}

bool is_of_name(std::string_view key) { return key == "algorithm.name" || key == "algorithm.compressor"; }
// Returns true for keys about the length of a run, its measurements, and the work of its server outside the
// algorithm.
bool is_aside(std::string_view key) {
  return (key.starts_with("run.") && key != "run.x0") || key.starts_with("server.") ||
         key.starts_with("evaluation.");
}
bool is_of_algorithm(std::string_view key) { return key.starts_with("algorithm."); }

// Returns all keys except name and seed, as one text.
std::string without_seed(const RunKeys& keys) {
  std::string text;
  for (const auto& [key, value] : keys)
    if (key != "name" && key != "seed") text += key + "=" + value + "\n";
  return text;
}

// Shortens a number with many digits to four of them.
std::string short_number(const std::string& value) {
  double number = 0;
  const char* const end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || rest != end || value.size() <= kLongNumber) return value;
  return rounded_text(number, 4);
}

// Returns "count = 10" for "clients.count" and "10". Shortens paths to their last component.
std::string spell(const RunKeys& keys, const std::string& key, bool shorten) {
  const std::size_t dot = key.find('.');
  std::string value = value_of_key(keys, key);
  if (shorten) value = short_number(value);
  if (const std::size_t slash = value.rfind('/'); slash != std::string::npos && slash + 1 < value.size())
    value = value.substr(slash + 1);
  return (dot == std::string::npos ? key : key.substr(dot + 1)) + " = " + (value.empty() ? "none" : value);
}

// Differences among the curves of one algorithm, or among all curves, by key.
class Differences {
 public:
  Differences(std::span<const RunKeys> runs, const std::vector<PlotCurve*>& curves) {
    for (const PlotCurve* curve : curves) keys_.push_back(&runs[curve->runs.front()]);
  }

  // Returns the keys that differ, in the order of the files.
  std::vector<std::string> keys(bool of_algorithm) const {
    std::vector<std::string> differ;
    std::set<std::string> seen;
    for (const RunKeys* own : keys_)
      for (const auto& [key, value] : *own) {
        if (key == "name" || key == "seed" || is_of_name(key) || is_of_algorithm(key) != of_algorithm)
          continue;
        if (seen.insert(key).second && differs(key)) differ.push_back(key);
      }
    return differ;
  }

  // Returns a subset of `keys` that distinguishes as many curves. Each key was needed when it was added.
  std::vector<std::string> enough(const std::vector<std::string>& keys) const {
    std::vector<std::string> chosen;
    for (const std::string& key : keys) {
      std::vector<std::string> with = chosen;
      with.push_back(key);
      if (distinct(with) > distinct(chosen)) chosen = std::move(with);
    }
    return chosen;
  }

 private:
  bool differs(const std::string& key) const { return distinct({key}) > 1; }
  std::size_t distinct(const std::vector<std::string>& keys) const {
    std::set<std::string> texts;
    for (const RunKeys* own : keys_) {
      std::string text;
      for (const std::string& key : keys) text += value_of_key(*own, key) + "\n";
      texts.insert(text);
    }
    return texts.size();
  }

  std::vector<const RunKeys*> keys_;
};

// Returns the keys of each run except those in `aside`.
std::vector<RunKeys> keys_of(std::span<const PlotRun> runs, std::span<const std::string> aside) {
  std::vector<RunKeys> all;
  for (const PlotRun& run : runs) {
    all.push_back(run.keys);
    std::erase_if(all.back(), [&](const auto& key) {
      return std::find(aside.begin(), aside.end(), key.first) != aside.end();
    });
  }
  return all;
}

// Groups runs into curves. `keys` are those that distinguish curves.
std::vector<PlotCurve> group(std::span<const PlotRun> runs, std::span<const RunKeys> keys) {
  std::vector<PlotCurve> curves;
  // Maps a configuration, and the number of earlier runs with the same seed, to a curve. So repeats get
  // curves of their own.
  std::map<std::pair<std::string, int>, std::size_t> at;
  std::map<std::pair<std::string, std::string>, int> met;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const int repeat = met[{without_seed(runs[r].keys), value_of_key(runs[r].keys, "seed")}]++;
    const auto [found, is_new] = at.try_emplace({without_seed(keys[r]), repeat}, curves.size());
    if (is_new) curves.emplace_back();
    curves[found->second].runs.push_back(r);
  }
  return curves;
}

bool are_distinct(const std::vector<PlotCurve>& curves) {
  std::set<std::string> labels;
  for (const PlotCurve& curve : curves) labels.insert(curve.label);
  return labels.size() == curves.size();
}

// Adds "key = value" for each key. A multiple of theory's step needs no key, if only one step differs.
void add_words(std::string& label, const RunKeys& keys, const std::vector<std::string>& differ,
               bool shorten) {
  const auto is_step = [](const std::string& key) { return key.ends_with("step_size"); };
  const bool one_step = std::count_if(differ.begin(), differ.end(), is_step) == 1;
  for (const std::string& key : differ) {
    const std::string value = value_of_key(keys, key);
    const bool says_it = one_step && is_step(key) && value.starts_with("theory");
    label += (label.empty() ? "" : ", ") + (says_it ? value : spell(keys, key, shorten));
  }
}

// Labels the curves. With `all_keys`, also uses keys that change neither the algorithm nor the problem.
void name_by_keys(std::vector<PlotCurve>& curves, std::span<const RunKeys> runs, bool shorten,
                  bool all_keys) {
  std::map<std::string, std::vector<PlotCurve*>> by_name;
  std::vector<PlotCurve*> all;
  for (PlotCurve& curve : curves) {
    by_name[name_of(runs[curve.runs.front()])].push_back(&curve);
    all.push_back(&curve);
    curve.label.clear();
  }
  const auto few = [](const Differences& of, std::vector<std::string> keys) {
    return keys.size() <= kMostKeys ? keys : of.enough(keys);
  };
  // Compare keys of the problem and the clients among all curves, but parameters only among the curves of one
  // algorithm.
  const Differences whole(runs, all);
  std::vector<std::string> differ = whole.keys(false);
  if (!all_keys) std::erase_if(differ, is_aside);
  const std::vector<std::string> setting = few(whole, differ);
  for (const auto& [name, own] : by_name) {
    const Differences among(runs, own);
    const std::vector<std::string> parameters = few(among, among.keys(true));
    for (PlotCurve* curve : own) {
      const RunKeys& keys = runs[curve->runs.front()];
      add_words(curve->label, keys, parameters, shorten);
      add_words(curve->label, keys, setting, shorten);
      const bool says_it = by_name.size() == 1 && own.size() > 1 && !curve->label.empty();
      if (!says_it) curve->label = name + (curve->label.empty() ? "" : ", ") + curve->label;
    }
  }
}

}  // namespace

std::string spell_key(const RunKeys& keys, const std::string& key) { return spell(keys, key, true); }

std::vector<PlotCurve> make_curves(std::span<const PlotRun> runs, std::span<const std::string> aside) {
  const std::vector<RunKeys> keys = keys_of(runs, aside);
  std::vector<PlotCurve> curves = group(runs, keys);
  for (const auto& [shorten, all_keys] : {std::pair(true, false), {true, true}, {false, true}}) {
    name_by_keys(curves, keys, shorten, all_keys);
    // If the panels already show all differences, the legend needs no label.
    if (curves.size() == 1 && curves.front().label.empty()) curves.front().label = "runs";
    if (are_distinct(curves)) return curves;
  }
  for (PlotCurve& curve : curves) curve.label = value_of_key(runs[curve.runs.front()].keys, "name");
  if (are_distinct(curves)) return curves;
  for (PlotCurve& curve : curves) curve.label = runs[curve.runs.front()].folder.string();
  return curves;
}

}  // namespace gradwire
