// Runs the targets on the inputs that the fuzzer has found.
#include "tests/fuzz/fuzz.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "base/random.h"

namespace gradwire::fuzz {
namespace {

int digit_of(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

// Reads a corpus file with one input on each line.
std::vector<Bytes> read_corpus(const std::filesystem::path& file) {
  std::vector<Bytes> inputs;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    Bytes bytes;
    EXPECT_EQ(line.size() % 2, 0u) << file;
    for (std::size_t k = 0; k + 1 < line.size(); k += 2) {
      const int high = digit_of(line[k]), low = digit_of(line[k + 1]);
      EXPECT_TRUE(high >= 0 && low >= 0) << file;
      bytes.push_back(static_cast<std::byte>(high * 16 + low));
    }
    inputs.push_back(std::move(bytes));
  }
  return inputs;
}

std::string failure_of(const Target& target, Input input) {
  try {
    target.run(input);
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

class Fuzz : public ::testing::TestWithParam<Target> {};

TEST_P(Fuzz, TakesValidInputsAndAnyCutOrChangeOfThem) {
  Random random(5, GetParam().name);
  const auto seeds = GetParam().seeds();
  ASSERT_FALSE(seeds.empty());
  for (const Bytes& seed : seeds) {
    ASSERT_EQ(failure_of(GetParam(), seed), "");
    EXPECT_TRUE(GetParam().run(seed)) << "seed " << &seed - seeds.data() << " is refused";
    for (int trial = 0; trial < 50; ++trial) {
      Bytes changed = seed;
      if (trial % 5 == 0) changed.resize(random.below(static_cast<std::uint32_t>(seed.size()) + 1));
      for (int change = 0; change < 1 + trial % 4 && !changed.empty(); ++change)
        changed[random.below(static_cast<std::uint32_t>(changed.size()))] =
            static_cast<std::byte>(random.below(256));
      ASSERT_EQ(failure_of(GetParam(), changed), "");
    }
  }
}

TEST_P(Fuzz, FindsNoBugInItsCorpus) {
  const auto file = std::filesystem::path(GRADWIRE_SOURCE_DIR) / "tests/fuzz/corpus" /
                    (std::string(GetParam().name) + ".hex");
  const auto inputs = read_corpus(file);
  ASSERT_FALSE(inputs.empty()) << file;
  for (std::size_t k = 0; k < inputs.size(); ++k)
    ASSERT_EQ(failure_of(GetParam(), inputs[k]), "") << file << ", input " << k + 1;
}

INSTANTIATE_TEST_SUITE_P(Targets, Fuzz, ::testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace gradwire::fuzz
