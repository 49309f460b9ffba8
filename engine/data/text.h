// Text as samples: letters as numbers in one array that all clients of a process share, and for each sample
// where its window begins. A letter costs 2 bytes and a sample 4, or nothing when all are taken, however long
// the context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/dataset.h"

namespace gradwire {

// How a model reads text: running_text() or list_of_names().
enum class TextForm : std::uint8_t { kRunning, kNames };

struct TextReading {
  TextForm form;
  std::size_t context;      // letters that the next one is predicted from
  bool by_speaker = false;  // the text is a play, read speaker by speaker: windows_of_speakers()
};

// A letter is a byte. Letter k of the alphabet is token k, or k + 1 where token 0 is the end mark of names.
struct Letters {
  std::string alphabet;  // distinct bytes, ascending
  bool end_mark = false;
  std::vector<std::uint16_t> tokens;

  std::size_t vocabulary() const { return alphabet.size() + (end_mark ? 1 : 0); }
};

// Sample s reads the `context` tokens from begin(s) on and predicts the next one, or the next one at each of
// them.
struct Windows {
  std::shared_ptr<const Letters> letters = nullptr;  // null: no samples
  std::vector<std::uint32_t> start = {};             // by sample; empty: sample s begins at token s
  std::size_t all = 0;                               // number of samples when `start` is empty
  std::size_t context = 0;
  std::size_t targets = 1;  // 1 or context
  std::vector<std::uint32_t> speaker_start =
      {};  // of a play: speaker r has samples speaker_start[r] to before the next

  std::size_t size() const { return start.empty() ? all : start.size(); }
  std::uint32_t begin(std::size_t sample) const {
    return start.empty() ? static_cast<std::uint32_t>(sample) : start[sample];
  }
  std::span<const std::uint16_t> tokens(std::size_t sample) const {
    return std::span(letters->tokens).subspan(begin(sample), context);
  }
  std::span<const std::uint16_t> labels(std::size_t sample) const {
    return std::span(letters->tokens).subspan(begin(sample) + context + 1 - targets, targets);
  }
  // Empty when there are no samples.
  std::string_view alphabet() const { return letters != nullptr ? std::string_view(letters->alphabet) : ""; }
};

// One sample for every window of context + 1 letters, a target at each position. `file` is for the errors'
// text. REQUIRES: context > 0. Throws DataError when the text is shorter.
Windows running_text(std::string_view text, const std::string& file, std::size_t context);

// One name per line, whose end is LF, CR LF or CR; empty lines are skipped. One sample for each letter of a
// name and for its end, from the `context` tokens in front of it, which are end marks before the name.
// REQUIRES: context > 0. Throws DataError when there is no name, or context and names together take more than
// 2^32-1 tokens.
Windows list_of_names(std::string_view text, const std::string& file, std::size_t context);

// The samples `rows`, in that order; the letters are shared.
Windows select_rows(const Windows& windows, std::span<const std::uint32_t> rows);

// The bytes that are in either, ascending. REQUIRES: both ascend.
std::string unite_alphabets(std::string_view a, std::string_view b);

// The same text in the numbers of another alphabet; shares the letters when it is the same one. Throws
// DataError when a letter is not in it.
Windows with_alphabet(const Windows& windows, std::string_view alphabet);

}  // namespace gradwire
