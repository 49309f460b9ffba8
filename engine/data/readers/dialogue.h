// A play as the text of its speakers. Each speaker is a client that trains on its own lines.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/text.h"

namespace gradwire {

// The text of each speaker, the longest text first. Among texts of equal length, the speaker that speaks
// first comes first. Speaker r has text[start[r], start[r + 1]): lines that each end with a line break. No
// line is empty.
struct Dialogue {
  std::string text;
  std::vector<std::size_t> start = {0};

  std::size_t size() const { return start.size() - 1; }
};

// Parses a play: blocks of lines with empty lines between them. The first line of a speech is the speaker's
// name and a colon. A block without such a line continues the speech before it. Carriage returns are skipped.
// `file` is for errors. Throws DataError if no speaker is named.
Dialogue dialogue_of(std::string_view play, const std::string& file);

// Returns the samples of all speakers in order, divided by `speaker_start`: lines as list_of_names() reads
// them, or windows of running text within one speaker's text. Omits speakers whose text is too short for a
// sample. Throws DataError like these functions.
Windows windows_of_speakers(std::string_view play, const std::string& file, TextForm form,
                            std::size_t context);

}  // namespace gradwire
