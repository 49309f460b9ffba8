#include "report/json.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>

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
