#include "base/byte_segments.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "base/serialize.h"

namespace gradwire {
namespace {

std::string all_of(ByteSegments& segments) {
  std::string all;
  for (const std::string_view segment : segments.views()) all += segment;
  return all;
}

TEST(ByteSegments, KeepTheOrderAndDoNotCopyLongParts) {
  const std::string head(10, 'h'), tail(ByteSegments::kLeastViewed - 1, 't');
  std::string body(ByteSegments::kLeastViewed, 'b');
  ByteSegments segments;
  for (int again = 0; again < 2; ++again) {
    segments.clear();
    segments.view(body);
    segments.copy(head);
    segments.view(body);
    segments.view(body);
    segments.view(tail);
    segments.put(std::uint32_t{7});
    EXPECT_EQ(all_of(segments), body + head + body + body + tail + std::string("\7\0\0\0", 4));
    EXPECT_EQ(segments.views().size(), 5u);
    EXPECT_EQ(segments.views()[2].data(), body.data());
  }
  segments.clear();
  EXPECT_TRUE(segments.views().empty());
}

struct SomeState {
  std::vector<double> x = std::vector<double>(2000, 0.5), g = {1, 2};
  std::vector<std::vector<float>> mirrors = {std::vector<float>(3000, 2), {}, {1}};
  std::uint32_t t = 9;
  static void fields(auto& self, auto&& visit) {
    visit(self.x), visit(self.t), visit(self.g), visit(self.mirrors);
  }
};

TEST(ByteSegments, HoldTheBytesOfASavedStateAndViewItsLongVectors) {
  const SomeState state;
  Saver saver;
  SomeState::fields(state, saver);
  ByteSegments segments;
  InPlaceSaver in_place(segments);
  SomeState::fields(state, in_place);
  EXPECT_EQ(all_of(segments), saver.take());
  EXPECT_EQ(static_cast<const void*>(segments.views()[1].data()), state.x.data());
}

}  // namespace
}  // namespace gradwire
