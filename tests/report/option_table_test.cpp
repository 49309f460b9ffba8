// The options of gradwire-client, which must read like those of the programs that use CLI11.
#include "report/option_table.h"

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "report/command_line.h"

namespace gradwire {
namespace {

struct ParsedOptions {
  std::string server, data, token, identity;
  bool json = false;
  bool operator==(const ParsedOptions&) const = default;
};

// The result of a command line.
struct ParseOutcome {
  std::optional<int> code;
  std::string out, err;
  ParsedOptions options;
};

template <class Parse>
ParseOutcome outcome_of(std::vector<std::string> words, const Parse& parse) {
  words.insert(words.begin(), "program");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  ParseOutcome outcome;
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  {
    Logger logger("program");
    outcome.code = parse(static_cast<int>(argv.size()), argv.data(), logger, outcome.options);
  }
  outcome.out = ::testing::internal::GetCapturedStdout();
  outcome.err = ::testing::internal::GetCapturedStderr();
  return outcome;
}

ParseOutcome by_table(const std::vector<std::string>& words) {
  return outcome_of(words, [](int argc, char** argv, Logger& logger, ParsedOptions& options) {
    const OptionTable table{"program",
                            "Does things.",
                            "1.2.3",
                            "\nThe end",
                            {{"--server", "HOST:PORT", "Address", store_in(options.server), true},
                             {"--data", "SOURCE=x", "Data of a long kind", store_in(options.data)},
                             {"--identity", "DIR", "Folder", store_in(options.identity)},
                             {"--token", "TOKEN", "A token", store_in(options.token), false, "--identity"},
                             {"--json", "", "JSON", set_flag(options.json)}}};
    return parse_options(table, argc, argv, logger);
  });
}

ParseOutcome by_cli11(const std::vector<std::string>& words) {
  return outcome_of(words, [](int argc, char** argv, Logger& logger, ParsedOptions& options) {
    CLI::App app{"Does things.", "program"};
    app.footer("\nThe end");
    app.set_version_flag("--version", "1.2.3");
    app.add_option("--server", options.server, "Address")->type_name("HOST:PORT")->required();
    app.add_option("--data", options.data, "Data of a long kind")->type_name("SOURCE")->default_str("x");
    app.add_option("--identity", options.identity, "Folder")->type_name("DIR");
    app.add_option("--token", options.token, "A token")->type_name("TOKEN")->needs("--identity");
    app.add_flag("--json", options.json, "JSON");
    return parse_command_line(app, argc, argv, logger);
  });
}

// Both list unexpected words, CLI11 from the last to the first.
bool lists_words(const ParseOutcome& outcome) {
  return outcome.err.find("not expected: ") != outcome.err.npos;
}

TEST(OptionTable, ReadsRandomCommandLinesLikeCli11) {
  const std::vector<std::string> words = {"--server",     "a:1",          "--server=b", "--data",
                                          "--data=x",     "--data=",      "x",          "--token",
                                          "--identity",   "--identity=d", "--json",     "--json=true",
                                          "--json=false", "--nope",       "--nope=3",   "-x",
                                          "-xh",          "-h",           "--help",     "--help=1",
                                          "--version",    "--",           "",           "-",
                                          "\xff"};
  std::mt19937 random(5);
  int valid = 0;
  for (int k = 0; k < 2'000; ++k) {
    std::vector<std::string> line;
    std::string text;
    for (unsigned left = random() % 7; left > 0; --left) line.push_back(words[random() % words.size()]);
    for (const std::string& word : line) text += " '" + word + "'";
    const ParseOutcome ours = by_table(line), theirs = by_cli11(line);
    ASSERT_EQ(ours.code, theirs.code) << text << "\n" << ours.err << theirs.err;
    ASSERT_EQ(ours.out, theirs.out) << text;
    ASSERT_EQ(lists_words(ours), lists_words(theirs)) << text << "\n" << ours.err << theirs.err;
    if (!lists_words(ours)) {
      ASSERT_EQ(ours.err, theirs.err) << text;
    }
    if (!ours.code) {
      ++valid;
      ASSERT_EQ(ours.options, theirs.options) << text;
    }
  }
  EXPECT_GT(valid, 40);
}

TEST(OptionTable, ListsUnexpectedWordsInTheirOrder) {
  EXPECT_EQ(by_table({"--server", "a", "b", "--json", "-x", "--", "c"}).err,
            "program: The following arguments were not expected: b -x -- c; see program --help\n");
}

TEST(OptionTable, RefusesAFlagThatIsNeitherTrueNorFalse) {
  EXPECT_EQ(by_table({"--server", "a", "--json=maybe"}).err,
            "program: --json: 'maybe' is neither true nor false; see program --help\n");
  EXPECT_FALSE(by_table({"--server", "a", "--json=off"}).options.json);
}

}  // namespace
}  // namespace gradwire
