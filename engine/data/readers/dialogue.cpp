#include "engine/data/readers/dialogue.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/text_lines.h"

namespace gradwire {
namespace {

// Returns the text of each speaker, in the order in which they first speak.
std::vector<std::string> speeches_by_speaker(std::string_view play) {
  std::map<std::string, std::size_t> number_of;
  std::vector<std::string> says;
  std::string* speech = nullptr;
  bool block_begins = true;
  while (!play.empty()) {
    const std::string line(take_line(play));
    if (block_begins && line.ends_with(':')) {
      const auto [speaker, is_new] = number_of.emplace(line, says.size());
      if (is_new) says.emplace_back();
      speech = &says[speaker->second];
    } else if (speech != nullptr && !line.empty()) {
      *speech += line;
      *speech += '\n';
    }
    block_begins = line.empty();
  }
  return says;
}

}  // namespace

Dialogue dialogue_of(std::string_view play, const std::string& file) {
  const std::vector<std::string> says = speeches_by_speaker(play);
  std::vector<std::size_t> order(says.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return says[a].size() > says[b].size(); });
  Dialogue speakers;
  for (const std::size_t speaker : order) {
    if (says[speaker].empty()) continue;
    speakers.text += says[speaker];
    speakers.start.push_back(speakers.text.size());
  }
  if (speakers.size() == 0)
    throw DataError(file +
                    ": no role speaks; a speech is a line with a name and a colon, the lines that are "
                    "said, and an empty line");
  return speakers;
}

Windows windows_of_speakers(std::string_view play, const std::string& file, TextForm form,
                            std::size_t context) {
  const Dialogue speakers = dialogue_of(play, file);
  const bool lines = form == TextForm::kNames;
  // Each letter of a line, and the end of a line, is a sample. So there are as many samples as bytes.
  Windows windows =
      lines ? list_of_names(speakers.text, file, context) : running_text(speakers.text, file, context);
  windows.speaker_start = {0};
  for (std::size_t r = 0; r < speakers.size(); ++r) {
    if (lines) {
      windows.speaker_start.push_back(static_cast<std::uint32_t>(speakers.start[r + 1]));
      continue;
    }
    for (std::size_t s = speakers.start[r]; s + context < speakers.start[r + 1]; ++s)
      windows.start.push_back(static_cast<std::uint32_t>(s));
    if (windows.start.size() > windows.speaker_start.back())
      windows.speaker_start.push_back(static_cast<std::uint32_t>(windows.start.size()));
  }
  if (windows.speaker_start.size() == 1)
    throw DataError(file + ": no role has more than problem.context = " + std::to_string(context) +
                    " letters; lower problem.context");
  return windows;
}

}  // namespace gradwire
