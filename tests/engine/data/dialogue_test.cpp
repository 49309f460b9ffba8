// A play read by speaker, and its speakers as clients.
#include "engine/data/readers/dialogue.h"

#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "engine/data/readers/source.h"
#include "tests/support/data_files.h"
#include "tests/support/test_data.h"

namespace gradwire {
namespace {

// A play with a heading before the first speech, a line that ends with a colon inside a speech, a speech of
// two paragraphs, carriage returns, and a speaker without words.
const std::string kPlay =
    "A PLAY\n\nAnn:\nI say:\nyes.\n\nBob:\r\nNo, no, no.\r\n\r\nAnn:\nBut\n\nyes!\n\nMute:\n\nCy:\nHm.\n";

// Returns the letters that the samples predict, in order, with '.' for the end of a line.
std::string predicted(const Windows& w) {
  std::string text;
  for (std::size_t s = 0; s < w.size(); ++s)
    for (const std::uint16_t token : w.labels(s))
      text += !w.letters->end_mark ? w.letters->alphabet[token]
              : token == 0         ? '/'
                                   : w.letters->alphabet[token - 1u];
  return text;
}

TEST(Play, GivesEachRoleItsLinesTheLongestTextFirst) {
  const Dialogue speakers = dialogue_of(kPlay, "f");
  ASSERT_EQ(speakers.size(), 3u);
  const auto says = [&](std::size_t r) {
    return speakers.text.substr(speakers.start[r], speakers.start[r + 1] - speakers.start[r]);
  };
  EXPECT_EQ(says(0), "I say:\nyes.\nBut\nyes!\n");
  EXPECT_EQ(says(1), "No, no, no.\n");
  EXPECT_EQ(says(2), "Hm.\n");
}

TEST(Play, OrdersRolesWithEqualTextsByTheirFirstSpeech) {
  const Dialogue speakers = dialogue_of("B:\nxy\n\nA:\nzw\n", "f");
  EXPECT_EQ(speakers.text, "xy\nzw\n");
}

TEST(Play, ExplainsTheFormatIfThereIsNoSpeech) {
  for (const std::string text : {"", "no colon\nhere\n", "Ann:\n\nBob:\n"})
    EXPECT_EQ(data_error([&] { dialogue_of(text, "f"); }),
              "f: no role speaks; a speech is a line with a name and a colon, the lines that are said, "
              "and an empty line");
}

TEST(Play, HasEachLetterAndLineEndOfARoleAsLines) {
  const Windows w = windows_of_speakers(kPlay, "f", TextForm::kNames, 3);
  EXPECT_EQ(w.speaker_start, (std::vector<std::uint32_t>{0, 21, 33, 37}));
  EXPECT_EQ(predicted(w), "I say:/yes./But/yes!/No, no, no./Hm./");
}

TEST(Play, HasTheWindowsWithinEachRoleAsRunningText) {
  const Windows w = windows_of_speakers(kPlay, "f", TextForm::kRunning, 3);
  EXPECT_EQ(w.speaker_start, (std::vector<std::uint32_t>{0, 21 - 3, 18 + 12 - 3, 27 + 4 - 3}));
  for (std::size_t s = 0; s < w.size(); ++s)
    EXPECT_NE(predicted(select_rows(w, std::vector<std::uint32_t>{static_cast<std::uint32_t>(s)})), "\nNo");
  EXPECT_EQ(w.letters->alphabet, running_text("I say:\nyes.But!No,nHm", "g", 1).letters->alphabet)
      << "the text has no names of roles";
}

TEST(Play, OmitsRolesThatAreTooShortForAWindow) {
  EXPECT_EQ(windows_of_speakers(kPlay, "f", TextForm::kRunning, 5).speaker_start.size(), 3u);
  EXPECT_EQ(data_error([] { windows_of_speakers("A:\nab\n\nB:\ncd\n", "f", TextForm::kRunning, 4); }),
            "f: no role has more than problem.context = 4 letters; lower problem.context");
}

TEST(Play, GivesClientIRoleIAndHoldsOutTheEndOfEach) {
  for (const TextForm form : {TextForm::kNames, TextForm::kRunning}) {
    const std::uint32_t context = 2, overlap = form == TextForm::kRunning ? context : 0;
    const Windows w = windows_of_speakers(kPlay, "f", form, context);
    const SplitSpec spec{.partition = PartitionKind::kBySpeaker, .clients = 2, .test_share = 0.25};
    const std::vector<ClientDataset> parts = share_samples(w, nullptr, spec).all_parts();
    ASSERT_EQ(parts.size(), 2u);
    for (std::uint32_t i = 0; i < 2; ++i) {
      const std::uint32_t count = w.speaker_start[i + 1] - w.speaker_start[i];
      const auto held_out = static_cast<std::uint32_t>(std::llround(0.25 * count));
      ASSERT_EQ(parts[i].test_count(), held_out);
      ASSERT_EQ(parts[i].train_count(), count - held_out - overlap);
      for (std::uint32_t k = 0; k < parts[i].train_count(); ++k)
        EXPECT_EQ(parts[i].train_text.begin(k), w.begin(w.speaker_start[i] + k));
      for (std::uint32_t k = 0; k < held_out; ++k)
        EXPECT_EQ(parts[i].test_text.begin(k), w.begin(w.speaker_start[i + 1] - held_out + k));
    }
  }
}

TEST(Play, RefusesMoreClientsThanRolesAndRolesWithoutTraining) {
  const Windows w = windows_of_speakers(kPlay, "f", TextForm::kNames, 2);
  EXPECT_EQ(
      data_error([&] { share_samples(w, nullptr, {.partition = PartitionKind::kBySpeaker, .clients = 4}); }),
      "clients.count = 4, but 3 roles have enough text for a sample; lower clients.count");
  EXPECT_EQ(data_error([&] {
              share_samples(w, nullptr,
                            {.partition = PartitionKind::kBySpeaker, .clients = 3, .test_share = 0.9});
            }),
            "problem.test_share leaves no training sample for role 3 by length; lower it, or clients.count");
}

TEST(Play, HasTheLongestRoleOfShakespeareFirst) {
  const auto file = test_data("tinyshakespeare.txt");
  if (!file) GTEST_SKIP() << "no tinyshakespeare.txt: set GRADWIRE_TEST_DATA";
  const Windows w = read_text("text:" + file->string(), "", {TextForm::kNames, 16, true});
  EXPECT_EQ(w.speaker_start.size(), 300u) << "299 roles with text";
  EXPECT_EQ(w.speaker_start[1], 37616u) << "the text of Gloucester";
  EXPECT_EQ(w.size(), 1027852u);
}

}  // namespace
}  // namespace gradwire
