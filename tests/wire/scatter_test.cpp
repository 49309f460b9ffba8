// Tests of scatter(), which copies the bytes of several segments to several targets.
#include "proto/wire/scatter.h"

#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

namespace gradwire {
namespace {

// Returns the text of the targets joined by '|', or "no" if the lengths differ.
std::string scattered(const std::vector<std::string_view>& texts, const std::vector<std::size_t>& sizes) {
  std::vector<std::span<const std::byte>> segments;
  for (const std::string_view text : texts) segments.push_back(std::as_bytes(std::span(text)));
  std::vector<std::string> filled;
  for (const std::size_t size : sizes) filled.emplace_back(size, '?');
  std::vector<std::span<std::byte>> targets;
  for (std::string& target : filled) targets.push_back(std::as_writable_bytes(std::span(target)));
  if (!scatter(segments, targets)) return "no";
  std::string all;
  for (const std::string& target : filled) all += target + "|";
  return all;
}

TEST(Scatter, FillsTargetsAcrossSegments) {
  EXPECT_EQ(scattered({"abc", "de", "f"}, {2, 3, 1}), "ab|cde|f|");
  EXPECT_EQ(scattered({"abcdef"}, {1, 5}), "a|bcdef|");
  EXPECT_EQ(scattered({"a", "b", "c"}, {3}), "abc|");
}

TEST(Scatter, SkipsEmptySegmentsAndTargets) {
  EXPECT_EQ(scattered({"", "ab", "", "c", ""}, {0, 3, 0}), "|abc||");
  EXPECT_EQ(scattered({}, {}), "");
  EXPECT_EQ(scattered({}, {0}), "|");
}

TEST(Scatter, RejectsOtherLengths) {
  EXPECT_EQ(scattered({"abc"}, {2}), "no") << "bytes are left";
  EXPECT_EQ(scattered({"abc", "d"}, {2, 3}), "no") << "bytes are missing";
  EXPECT_EQ(scattered({}, {1}), "no");
}

}  // namespace
}  // namespace gradwire
