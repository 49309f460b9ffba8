#include "experiments/cli/run/default_folder.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <string>
#include <string_view>

#include "base/fnv1a.h"
#include "config/settings.h"

namespace gradwire {
namespace {

// File names have at most 255 bytes, and a run adds to this one, as in ".NAME.unfinished-PID".
constexpr std::size_t kLongestName = 150;

// Returns the text with characters that a shell or a file system could misread replaced.
std::string as_file_name(std::string text) {
  const auto is_safe = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("._=:,%+-").find(c) != std::string_view::npos;
  };
  std::replace_if(text.begin(), text.end(), std::not_fn(is_safe), '_');
  return text;
}

}  // namespace

std::filesystem::path default_folder(const LoadedExperiment& loaded) {
  const std::filesystem::path results = "results";
  const std::string& name = loaded.experiment.name;
  const auto is_set = [&](const std::string& key) {
    const auto at = loaded.lines.find(key);
    return at != loaded.lines.end() && at->second == LoadedExperiment::kFromSet;
  };
  if (is_set("name")) return results / name;
  std::string changed;
  for (const auto& [key, text] : settings_of(loaded.experiment))
    if (is_set(key)) changed += "-" + key.substr(key.rfind('.') + 1) + "=" + as_file_name(text);
  if (name.size() + changed.size() > kLongestName) {
    Fnv1a hash;
    hash.add(changed);
    changed.resize(std::min(changed.size(), kLongestName - std::min(kLongestName, name.size())));
    changed += "-" + hash.text();
  }
  return results / (name + changed);
}

}  // namespace gradwire
