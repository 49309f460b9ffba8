#include "base/printable.h"

#include <gtest/gtest.h>

namespace gradwire {
namespace {

TEST(Printable, KeepsTextOfAllLanguages) {
  for (const char* text : {"", "a b", "caf\xc3\xa9", "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d", "\xe6\x97\xa5",
                           "\xf0\x9f\x98\x80", "back\\slash"}) {
    EXPECT_EQ(printable(text), text);
    EXPECT_FALSE(has_control_characters(text)) << text;
  }
}

TEST(Printable, EscapesControlCharactersOfBothRanges) {
  EXPECT_EQ(printable("a\n\x1b[2J\x7f"), "a\\u000a\\u001b[2J\\u007f");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\u0000");
  EXPECT_EQ(printable("\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0"), "\\u0080\\u009b\\u009f\xc2\xa0");
  EXPECT_TRUE(has_control_characters("a\xc2\x9b"));
}

TEST(Printable, EscapesBidirectionalMarks) {
  EXPECT_EQ(printable("\xd8\x9c\xe2\x80\x8e\xe2\x80\x8f"), "\\u061c\\u200e\\u200f");
  EXPECT_EQ(printable("\xe2\x80\xaa\xe2\x80\xab\xe2\x80\xac\xe2\x80\xad\xe2\x80\xae"),
            "\\u202a\\u202b\\u202c\\u202d\\u202e");
  EXPECT_EQ(printable("\xe2\x81\xa6\xe2\x81\xa7\xe2\x81\xa8\xe2\x81\xa9"), "\\u2066\\u2067\\u2068\\u2069");
  EXPECT_EQ(printable("\xe2\x80\xa8\xe2\x80\xa9"), "\\u2028\\u2029") << "line separators";
  EXPECT_TRUE(has_control_characters("a\xe2\x80\xae"));
}

TEST(Printable, EscapesBytesThatAreNotUtf8) {
  EXPECT_EQ(printable("\xff\xc3(\x9b"), "\\xff\\xc3(\\x9b");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(printable("\xc0\x80"), "\\xc0\\x80") << "an overlong form";
  EXPECT_EQ(printable("\xe2\x80"), "\\xe2\\x80") << "cut off";
  EXPECT_FALSE(has_control_characters("\xff\x9b"));
}

TEST(Printable, CutsLongTextBetweenCharacters) {
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdef", 5), "abcde...");
  EXPECT_EQ(printable("abc\xc3\xa9", 4), "abc...");
  EXPECT_EQ(printable("abc\n", 4), "abc...") << "an escape is cut as a whole";
}

}  // namespace
}  // namespace gradwire
