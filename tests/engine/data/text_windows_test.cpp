// From bytes to samples: windows and targets by hand, alphabets, partitions.
#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "engine/data/readers/bytes.h"
#include "engine/data/readers/source.h"
#include "engine/data/text.h"
#include "tests/support/data_files.h"
#include "tests/support/test_data.h"

namespace gradwire {
namespace {

using Tokens = std::vector<std::uint16_t>;

Tokens tokens_of(const Windows& w, std::size_t s) { return {w.tokens(s).begin(), w.tokens(s).end()}; }
Tokens labels_of(const Windows& w, std::size_t s) { return {w.labels(s).begin(), w.labels(s).end()}; }

// Returns a sample as text, '.' for the end mark: "abc>d".
std::string spelled(const Windows& w, std::size_t s) {
  std::string text;
  const auto add = [&](std::uint16_t token) {
    if (w.letters->end_mark) {
      text += token == 0 ? '.' : w.letters->alphabet[token - 1u];
    } else {
      text += w.letters->alphabet[token];
    }
  };
  for (const std::uint16_t token : w.tokens(s)) add(token);
  text += '>';
  for (const std::uint16_t token : w.labels(s)) add(token);
  return text;
}
std::vector<std::string> spelled(const Windows& w) {
  std::vector<std::string> all;
  for (std::size_t s = 0; s < w.size(); ++s) all.push_back(spelled(w, s));
  return all;
}

TEST(RunningText, HasASampleAtEveryStartWithTheNextLettersAsTargets) {
  const Windows w = running_text("banana!", "f", 3);
  EXPECT_EQ(w.alphabet(), "!abn");
  EXPECT_EQ(w.letters->vocabulary(), 4u);
  ASSERT_EQ(w.size(), 4u);
  EXPECT_EQ(tokens_of(w, 0), (Tokens{2, 1, 3}));
  EXPECT_EQ(labels_of(w, 0), (Tokens{1, 3, 1}));
  EXPECT_EQ(tokens_of(w, 3), (Tokens{1, 3, 1}));
  EXPECT_EQ(labels_of(w, 3), (Tokens{3, 1, 0}));
  EXPECT_EQ(spelled(w), (std::vector<std::string>{"ban>ana", "ana>nan", "nan>ana", "ana>na!"}));
}

TEST(RunningText, KeepsEveryByteAndOrdersThemAsNumbers) {
  std::string all;
  for (int byte = 255; byte >= 0; --byte) all += static_cast<char>(byte);
  const Windows w = running_text(all, "f", 1);
  ASSERT_EQ(w.letters->vocabulary(), 256u);
  EXPECT_EQ(tokens_of(w, 0), Tokens{255});
  EXPECT_EQ(labels_of(w, 254), Tokens{0});
  EXPECT_EQ(running_text("\r\n\r\n", "f", 2).alphabet(), "\n\r");
}

TEST(RunningText, AcceptsOneWindow) {
  EXPECT_EQ(spelled(running_text("abc", "f", 2)), (std::vector<std::string>{"ab>bc"}));
  EXPECT_EQ(data_error([] { running_text("abc", "f", 3); }),
            "f: holds 3 letters, but problem.context = 3 needs 4 or more; lower problem.context");
  EXPECT_NE(data_error([] { running_text("", "f", 1); }), "no error");
}

TEST(Names, PredictEachLetterAndTheEnd) {
  const Windows w = list_of_names("bo\na\n", "f", 3);
  EXPECT_EQ(w.alphabet(), "abo");
  EXPECT_EQ(w.letters->vocabulary(), 4u);
  EXPECT_EQ(spelled(w), (std::vector<std::string>{"...>b", "..b>o", ".bo>.", "...>a", "..a>."}));
  EXPECT_EQ(tokens_of(w, 2), (Tokens{0, 2, 3}));
  EXPECT_EQ(labels_of(w, 2), Tokens{0});
}

TEST(Names, SlideThroughTheContextIfTheyAreLonger) {
  EXPECT_EQ(spelled(list_of_names("abcd", "f", 2)),
            (std::vector<std::string>{"..>a", ".a>b", "ab>c", "bc>d", "cd>."}));
  EXPECT_EQ(spelled(list_of_names("ab\ncd", "f", 1)),
            (std::vector<std::string>{".>a", "a>b", "b>.", ".>c", "c>d", "d>."}));
}

TEST(Names, SkipEmptyLinesAndCarriageReturns) {
  const auto plain = spelled(list_of_names("bo\na", "f", 3));
  for (const char* text :
       {"bo\na\n", "\n\nbo\n\n\na\n\n", "bo\r\na\r\n", "\r\nbo\r\n\r\na", "bo\ra\r", "bo\r\ra"}) {
    const Windows w = list_of_names(text, "f", 3);
    EXPECT_EQ(spelled(w), plain) << text;
    EXPECT_EQ(w.alphabet(), "abo") << text;
  }
  for (const char* text : {"", "\n", "\r\n\r\n"})
    EXPECT_EQ(data_error([&] { list_of_names(text, "f", 3); }), "f: holds no names; write one name per line");
}

TEST(Names, TakeTwoBytesPerLetterAndPaddingPerName) {
  const Windows w = list_of_names("abc\nde\n", "f", 16);
  EXPECT_EQ(w.letters->tokens.size(), 5u + 2 * 16 + 1);
  EXPECT_EQ(w.letters->tokens.capacity(), w.letters->tokens.size());
}

TEST(Alphabets, AreUnitedInTheOrderOfBytes) {
  EXPECT_EQ(unite_alphabets("ace", "bc"), "abce");
  EXPECT_EQ(unite_alphabets("", "b"), "b");
  EXPECT_EQ(unite_alphabets("\x7f\xff", "a\x80"), "a\x7f\x80\xff");
}

TEST(Alphabets, ChangeTheNumbersButNotTheText) {
  for (const Windows& own : {running_text("decade", "f", 2), list_of_names("decade\nace", "f", 3)}) {
    const Windows wide = with_alphabet(own, "abcdez");
    EXPECT_EQ(spelled(wide), spelled(own));
    EXPECT_NE(tokens_of(wide, own.size() - 1), tokens_of(own, own.size() - 1));
    EXPECT_EQ(wide.letters->vocabulary(), own.letters->end_mark ? 7u : 6u);
    EXPECT_EQ(with_alphabet(own, own.alphabet()).letters, own.letters) << "equal alphabets are shared";
    EXPECT_EQ(data_error([&] { with_alphabet(own, "abcd"); }),
              "the text has the byte 101, which is not among the 4 letters that the clients agreed on");
  }
  EXPECT_EQ(with_alphabet(Windows{}, "abc").size(), 0u);
}

TEST(SelectRows, SharesTheLetters) {
  const Windows w = running_text("banana!", "f", 3);
  const std::vector<std::uint32_t> rows = {3, 0, 3};
  const Windows selected = select_rows(w, rows);
  EXPECT_EQ(spelled(selected), (std::vector<std::string>{"ana>na!", "ban>ana", "ana>na!"}));
  EXPECT_EQ(selected.letters, w.letters);
  EXPECT_THROW(select_rows(w, std::vector<std::uint32_t>{4}), std::logic_error);
}

// ---- partitions ----

std::string letters(std::size_t count) {
  std::string text;
  for (std::size_t k = 0; k < count; ++k) text += static_cast<char>('a' + (k * k + k / 7) % 26);
  return text;
}

TEST(TextParts, AreConsecutiveWindowsOfRunningTextThatShareTheLetters) {
  const Windows w = running_text(letters(107), "f", 5);
  const std::vector<ClientDataset> parts = share_samples(w, nullptr, {.clients = 4}).all_parts();
  ASSERT_EQ(parts.size(), 4u);
  std::uint32_t next = 0;
  for (std::uint32_t i = 0; i < 4; ++i) {
    ASSERT_EQ(parts[i].train_count(), i < 2 ? 26u : 25u);  // 102 = 4 * 25 + 2
    for (std::uint32_t k = 0; k < parts[i].train_count(); ++k)
      EXPECT_EQ(parts[i].train_text.begin(k), next++);
    EXPECT_EQ(parts[i].train_text.letters, w.letters);
    EXPECT_EQ(parts[i].test_count(), 0u);
    EXPECT_EQ(parts[i].train.rows(), 0u);
  }
}

TEST(TextParts, HoldOutTheEndOfRunningTextWithoutSharedLetters) {
  const Windows w = running_text(letters(107), "f", 5);
  for (const PartitionKind kind : {PartitionKind::kContiguous, PartitionKind::kIid}) {
    std::vector<std::uint32_t> train, test;
    for (const ClientDataset& part :
         share_samples(w, nullptr, {.partition = kind, .clients = 1, .test_share = 0.25}).all_parts()) {
      train.insert(train.end(), part.train_text.start.begin(), part.train_text.start.end());
      test.insert(test.end(), part.test_text.start.begin(), part.test_text.start.end());
    }
    ASSERT_EQ(test.size(), 26u);  // of 102
    EXPECT_EQ(test.front(), 76u);
    EXPECT_EQ(test.back(), 101u);
    EXPECT_EQ(train.size(), 71u);
    EXPECT_LT(*std::max_element(train.begin(), train.end()) + 5, test.front());
  }
}

TEST(TextParts, SplitNamesByTheirTargets) {
  std::string text;
  for (std::size_t k = 0; k < 60; ++k) text += letters(3 + k % 5).substr(k % 3) + "\n";
  const Windows w = list_of_names(text, "f", 4);
  const std::vector<ClientDataset> parts =
      share_samples(w, nullptr, {.partition = PartitionKind::kByLabel, .clients = 3, .test_share = 0.1})
          .all_parts();
  std::uint16_t last = 0;
  for (const ClientDataset& part : parts) {
    Tokens labels;
    for (std::size_t s = 0; s < part.train_count(); ++s) labels.push_back(part.train_text.labels(s)[0]);
    EXPECT_GE(*std::min_element(labels.begin(), labels.end()), last);
    last = *std::max_element(labels.begin(), labels.end());
    EXPECT_GT(part.test_count(), 0u);
  }
  EXPECT_GT(last, 0u);
  const SplitSpec split{
      .partition = PartitionKind::kDirichlet, .dirichlet_alpha = 0.1, .clients = 5, .seed = 3};
  const std::vector<ClientDataset> uneven = share_samples(w, nullptr, split).all_parts();
  std::size_t total = 0;
  for (const ClientDataset& part : uneven) total += part.train_count();
  EXPECT_EQ(total, w.size());
}

TEST(TextParts, RefuseRunningTextByLabel) {
  const Windows w = running_text(letters(50), "f", 5);
  for (const PartitionKind kind : {PartitionKind::kByLabel, PartitionKind::kDirichlet})
    EXPECT_EQ(
        data_error([&] { share_samples(w, nullptr, {.partition = kind, .clients = 2}).all_parts(); }),
        "clients.partition: a sample of running text has a label at each position; use contiguous or iid");
}

TEST(TextParts, ShareTheNumberingWithATestText) {
  const Windows train = running_text("abababab", "f", 2), test = running_text("babcaca", "g", 2);
  const std::vector<ClientDataset> parts =
      share_samples(train, &test, {.clients = 2, .test_share = 0.5}).all_parts();
  std::vector<std::string> trained, tested;
  for (const ClientDataset& part : parts) {
    EXPECT_EQ(part.train_text.alphabet(), "abc");
    EXPECT_EQ(part.test_text.alphabet(), "abc");
    EXPECT_EQ(part.train_text.letters, parts[0].train_text.letters);
    for (const std::string& sample : spelled(part.train_text)) trained.push_back(sample);
    for (const std::string& sample : spelled(part.test_text)) tested.push_back(sample);
  }
  EXPECT_EQ(trained, spelled(train));
  EXPECT_EQ(tested, spelled(test));
}

TEST(TextParts, RefuseMoreClientsThanSamples) {
  const Windows w = running_text("abcdefgh", "f", 3);
  EXPECT_EQ(share_samples(w, nullptr, {.clients = 5}).all_parts().size(), 5u);
  EXPECT_NE(data_error([&] {
              share_samples(w, nullptr, {.clients = 6}).all_parts();
            }).find("6 clients, 5 training samples"),
            std::string::npos);
  EXPECT_NE(data_error([&] {
              share_samples(w, nullptr, {.clients = 1, .test_share = 0.9}).all_parts();
            }).find("0 training samples"),
            std::string::npos);
}

// ---- the real files ----

TEST(NamesFile, HasTheSamplesOfTheTask) {
  const auto file = test_data("names.txt");
  if (!file) GTEST_SKIP() << "no names.txt: set GRADWIRE_TEST_DATA";
  const Windows w = read_text("text:" + file->string(), "", {TextForm::kNames, 16});
  EXPECT_EQ(w.size(), 228146u);
  EXPECT_EQ(w.letters->vocabulary(), 27u);
  EXPECT_EQ(w.alphabet(), "abcdefghijklmnopqrstuvwxyz");
  EXPECT_EQ(spelled(w, 0), "................>e");
  EXPECT_EQ(spelled(w, 4), "............emma>.");
}

TEST(ShakespeareFile, HasTheLettersOfTheTask) {
  const auto file = test_data("tinyshakespeare.txt");
  if (!file) GTEST_SKIP() << "no tinyshakespeare.txt: set GRADWIRE_TEST_DATA";
  const Windows w = read_text("text:" + file->string(), "", {TextForm::kRunning, 8});
  EXPECT_EQ(w.size(), 1115394u - 8);
  EXPECT_EQ(w.letters->vocabulary(), 65u);
  EXPECT_EQ(spelled(w, 0), "First Ci>irst Cit");
}

}  // namespace
}  // namespace gradwire
