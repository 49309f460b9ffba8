// Text as samples. Letters are numbers in one array that all clients of a process share. Each sample is the
// position of its window. A letter takes 2 bytes and a sample 4, or 0 if all windows are used, for any
// context.
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

// The form in which a model reads text: running_text() or list_of_names().
enum class TextForm : std::uint8_t { kRunning, kNames };

struct TextReading {
  TextForm form;
  std::size_t context;      // the number of letters before the predicted one
  bool by_speaker = false;  // true for a play that is read by speaker: windows_of_speakers()
};

// The letters of a text. A letter is a byte. Letter k of the alphabet is token k, or k + 1 if token 0 is the
// end mark of names.
struct Letters {
  std::string alphabet;  // distinct bytes, ascending
  bool end_mark = false;
  std::vector<std::uint16_t> tokens;

  std::size_t vocabulary() const { return alphabet.size() + (end_mark ? 1 : 0); }
};

// Samples of text. Sample s reads the `context` tokens that start at begin(s), and predicts the token after
// them, or the token after each of them.
struct Windows {
  std::shared_ptr<const Letters> letters = nullptr;  // null if there are no samples
  std::vector<std::uint32_t> start = {};             // by sample; if empty, sample s begins at token s
  std::size_t all = 0;                               // number of samples if `start` is empty
  std::size_t context = 0;
  std::size_t targets = 1;                        // 1 or context
  std::vector<std::uint32_t> speaker_start = {};  // for a play: the first sample of each speaker, ascending

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
  // Empty if there are no samples.
  std::string_view alphabet() const { return letters != nullptr ? std::string_view(letters->alphabet) : ""; }
};

// Returns one sample for every window of context + 1 letters, with a target at each position. `file` is for
// errors. REQUIRES: context > 0. Throws DataError if the text is shorter.
Windows running_text(std::string_view text, const std::string& file, std::size_t context);

// Reads one name per line. A line ends with LF, CR LF or CR; empty lines are skipped. Returns one sample for
// each letter of a name and for its end. A sample reads the `context` tokens before its letter; those before
// the name are end marks. REQUIRES: context > 0. Throws DataError if there is no name, or if context and
// names need more than 2^32-1 tokens.
Windows list_of_names(std::string_view text, const std::string& file, std::size_t context);

// Returns the samples `rows`, in that order. The letters are shared.
Windows select_rows(const Windows& windows, std::span<const std::uint32_t> rows);

// Returns the bytes that are in `a` or `b`, ascending. REQUIRES: both ascend.
std::string unite_alphabets(std::string_view a, std::string_view b);

// Returns the same text in the numbers of another alphabet. Shares the letters if the alphabet is the same.
// Throws DataError if the alphabet lacks a letter.
Windows with_alphabet(const Windows& windows, std::string_view alphabet);

}  // namespace gradwire
