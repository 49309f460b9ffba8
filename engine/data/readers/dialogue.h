// A play as the text of its speakers: each speaker is a client that trains on what it says.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/text.h"

namespace gradwire {

// What each speaker says, the longest text first; of equal ones the speaker that speaks first. Role r says
// text[start[r], start[r + 1]), lines that each end with a line break; there are no empty lines.
struct Dialogue {
  std::string text;
  std::vector<std::size_t> start = {0};

  std::size_t size() const { return start.size() - 1; }
};

// A play is blocks of lines with empty lines between them. The first line of a speech is the speaker's name
// and a colon; a block without one goes on with the speech before. Carriage returns are skipped. `file` is
// for the errors' text. Throws DataError when no speaker is named.
Dialogue dialogue_of(std::string_view play, const std::string& file);

// The samples of all speakers, speaker by speaker as `speaker_start` says: lines as list_of_names() reads
// them, or windows of running text that lie within what one speaker says. Roles too short for a sample are
// left out. Throws DataError as those do.
Windows windows_of_speakers(std::string_view play, const std::string& file, TextForm form,
                            std::size_t context);

}  // namespace gradwire
