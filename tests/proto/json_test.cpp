#include "proto/report/json.h"

#include <gtest/gtest.h>
#include <limits>
#include <stdexcept>

namespace gradwire {
namespace {

TEST(Json, WritesNestedValuesIndented) {
  JsonWriter json;
  json.begin_object();
  json.member("name", "a");
  json.key("list");
  json.begin_array();
  json.value(std::uint64_t{18446744073709551615u});
  json.value(true);
  json.begin_object();
  json.end_object();
  json.end_array();
  json.member("none", std::numeric_limits<double>::quiet_NaN());
  json.end_object();
  EXPECT_EQ(json.take(),
            "{\n  \"name\": \"a\",\n  \"list\": [\n    18446744073709551615,\n    true,\n    {}\n  ],\n  "
            "\"none\": null\n}\n");
}

TEST(Json, NumbersReadBackToTheSameBits) {
  for (const double x : {0.1, -1e-300, 1.7976931348623157e308, 3.0}) {
    JsonWriter json;
    json.value(x);
    EXPECT_EQ(std::stod(json.take()), x);
  }
}

TEST(Json, EscapesWhatJsonForbidsAndRepairsWhatIsNotUtf8) {
  EXPECT_EQ(json_string("a\"b\\c\n\t\x01\x7f"), "\"a\\\"b\\\\c\\n\\t\\u0001\\u007f\"");
  EXPECT_EQ(json_string("\xE2\x88\x87 f"), "\"\xE2\x88\x87 f\"");
  const std::string unknown = "\xEF\xBF\xBD";
  EXPECT_EQ(json_string("\xFFx"), "\"" + unknown + "x\"");
  EXPECT_EQ(json_string("\xC0\x80"), "\"" + unknown + unknown + "\"") << "overlong";
  EXPECT_EQ(json_string("\xED\xA0\x80"), "\"" + unknown + unknown + unknown + "\"") << "a surrogate";
  EXPECT_EQ(json_string("\xE2\x88"), "\"" + unknown + unknown + "\"") << "cut";
}

TEST(Json, MisuseIsALogicError) {
  JsonWriter two;
  two.value(1.0);
  EXPECT_THROW(two.value(2.0), std::logic_error);
  JsonWriter nameless;
  nameless.begin_object();
  EXPECT_THROW(nameless.value(1.0), std::logic_error);
  EXPECT_THROW(nameless.take(), std::logic_error);
  EXPECT_THROW(nameless.end_array(), std::logic_error);
}

}  // namespace
}  // namespace gradwire
