#include "engine/data/readers/play.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/text_lines.h"

namespace gradwire {
namespace {

// What each role says, in the order in which they first speak.
std::vector<std::string> speeches_by_role(std::string_view play) {
  std::map<std::string, std::size_t> number_of;
  std::vector<std::string> says;
  std::string* speech = nullptr;
  bool block_begins = true;
  while (!play.empty()) {
    const std::string line(take_line(play));
    if (block_begins && line.ends_with(':')) {
      const auto [role, is_new] = number_of.emplace(line, says.size());
      if (is_new) says.emplace_back();
      speech = &says[role->second];
    } else if (speech != nullptr && !line.empty()) {
      *speech += line;
      *speech += '\n';
    }
    block_begins = line.empty();
  }
  return says;
}

}  // namespace

Roles roles_of(std::string_view play, const std::string& file) {
  const std::vector<std::string> says = speeches_by_role(play);
  std::vector<std::size_t> order(says.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return says[a].size() > says[b].size(); });
  Roles roles;
  for (const std::size_t role : order) {
    if (says[role].empty()) continue;
    roles.text += says[role];
    roles.start.push_back(roles.text.size());
  }
  if (roles.size() == 0)
    throw DataError(file +
                    ": no role speaks here; a speech is a line with a name and a colon, the lines that are "
                    "said, and an empty line");
  return roles;
}

Windows windows_of_roles(std::string_view play, const std::string& file, TextForm form, std::size_t context) {
  const Roles roles = roles_of(play, file);
  const bool lines = form == TextForm::kNames;
  // Each letter of a line, and its end, is a sample: as many as the text has bytes.
  Windows windows =
      lines ? list_of_names(roles.text, file, context) : running_text(roles.text, file, context);
  windows.role_start = {0};
  for (std::size_t r = 0; r < roles.size(); ++r) {
    if (lines) {
      windows.role_start.push_back(static_cast<std::uint32_t>(roles.start[r + 1]));
      continue;
    }
    for (std::size_t s = roles.start[r]; s + context < roles.start[r + 1]; ++s)
      windows.start.push_back(static_cast<std::uint32_t>(s));
    if (windows.start.size() > windows.role_start.back())
      windows.role_start.push_back(static_cast<std::uint32_t>(windows.start.size()));
  }
  if (windows.role_start.size() == 1)
    throw DataError(file + ": no role says more than problem.context = " + std::to_string(context) +
                    " letters; lower problem.context");
  return windows;
}

}  // namespace gradwire
