#include "report/json.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>
#include <string>

#include "base/printable.h"

namespace gradwire {
namespace {

TEST(Json, PrintsMembersIndentedInTheirOrder) {
  Json json = {{"name", "a"}, {"list", {18446744073709551615u, true, Json::object()}}};
  json["also"] = 1;
  EXPECT_EQ(json_text(json),
            "{\n  \"name\": \"a\",\n  \"list\": [\n    18446744073709551615,\n    true,\n    {}\n  ],\n  "
            "\"also\": 1\n}\n");
}

TEST(Json, RoundTripsNumbersAndWritesNonFiniteOnesAsNull) {
  for (const double x : {0.1, -1e-300, 1.7976931348623157e308, 5e-324, 3.0})
    EXPECT_EQ(std::strtod(json_line(x).c_str(), nullptr), x);
  EXPECT_EQ(json_line(std::numeric_limits<double>::quiet_NaN()), "null");
  EXPECT_EQ(json_line(-std::numeric_limits<double>::infinity()), "null");
}

TEST(Json, IsWrittenTheSameForTextWithoutTheLibrary) {
  // A NUL, every control character, quotes, backslashes, marks that turn the text around, and four lengths of
  // UTF-8.
  std::string text = "\"\\/\x7f\xC2\x85 \xC3\xA9 \xE2\x80\xA8\xE2\x80\xAE \xF0\x9F\x98\x80";
  for (char c = 0; c < 0x20; ++c) text += c;
  EXPECT_EQ(json_string(text), json_line(text));
  EXPECT_EQ(json_string(""), "\"\"");
  EXPECT_EQ(json_string("\xFFx\xE2\x88"), json_string("\xEF\xBF\xBDx\xEF\xBF\xBD\xEF\xBF\xBD"));
}

TEST(Json, EscapesForbiddenCharactersAndRepairsInvalidUtf8) {
  EXPECT_EQ(json_line("a\"b\\c\n\t\x01"), "\"a\\\"b\\\\c\\n\\t\\u0001\"");
  EXPECT_EQ(json_line("\xE2\x88\x87 f"), "\"\xE2\x88\x87 f\"");
  const std::string unknown = "\xEF\xBF\xBD";
  EXPECT_EQ(json_line("\xFFx"), "\"" + unknown + "x\"");
  for (const char* text : {"\xC0\x80", "\xED\xA0\x80", "\xE2\x88", "a\xF4"}) {  // overlong, a surrogate, cut
    const std::string repaired = json_line(text);
    EXPECT_NE(repaired.find(unknown), std::string::npos) << repaired;
    EXPECT_TRUE(Json::parse(repaired, nullptr, false).is_string()) << repaired;
  }
}

}  // namespace
}  // namespace gradwire
