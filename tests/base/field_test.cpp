#include "base/field.h"

#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "base/config_error.h"

namespace gradwire {
namespace {

enum class Colour : std::uint8_t { kRed, kGreen, kBlue };
std::span<const std::string_view> words_of(Colour) {
  static constexpr auto words = std::to_array<std::string_view>({"red", "green", "blue"});
  return words;
}

enum class ClientDataset : std::uint8_t { kFirst, kSecond };
std::span<const std::string_view> words_of(ClientDataset) {
  static constexpr auto words = std::to_array<std::string_view>({"1", "2"});
  return words;
}
struct Edition {
  ClientDataset part = ClientDataset::kFirst;
  static void fields(auto& self, auto&& visit) { visit("part", self.part); }
};

struct Thinned {
  double share = 0;
};

}  // namespace

template <>
struct TextCodec<Thinned> {
  static bool read(std::string_view text, Thinned& out) {
    if (!text.ends_with('%')) return false;
    out.share = std::stod(std::string(text.substr(0, text.size() - 1))) / 100;
    return true;
  }
  static std::string write(const Thinned& value) { return number_text(value.share * 100) + "%"; }
  static constexpr std::string_view expected = "a share like 5%";
};

namespace {

constexpr std::array<std::string_view, 1> kAll = {"all"};
constexpr std::array<std::string_view, 2> kAutoOff = {"auto", "off"};

void refuse_bad(const std::string& path, const std::string& text) {
  if (text == "bad") throw ConfigError(path, "that is bad");
}

struct Painting {
  bool framed = false;
  double width = 1.5;
  std::uint32_t layers = 3;
  std::uint64_t seed = 1;
  std::size_t size = 4;
  Colour colour = Colour::kGreen;
  std::uint32_t batch = 0;
  std::string level = "auto", step, title;
  std::vector<std::uint32_t> sizes = {7, 8};
  Thinned thinned = {};

  static void fields(auto& self, auto&& visit) {
    visit("framed", self.framed, "whether it has a frame");
    visit("width", self.width, "in metres", {.high = 2, .low_open = true});
    visit("layers", self.layers, "of paint", {.low = 1, .high = 9});
    visit("seed", self.seed, "of the brush");
    visit("size", self.size, "of a file");
    visit("colour", self.colour, "of the sky");
    visit("batch", self.batch, "of brushes", {.low = 1, .words = kAll, .or_integer = true});
    visit("level", self.level, "of varnish", {.low = 1, .high = 19, .words = kAutoOff, .or_integer = true});
    visit("step", self.step, "a number or a word", {.or_number = true});
    visit("title", self.title, "below it", {.check = refuse_bad});
    visit("sizes", self.sizes, "of the brushes", {.low = 1, .high = 100});
    visit("thinned", self.thinned, "with water", {.check = refuse_bad});
  }
};

const Field& field_of(const std::vector<Field>& fields, std::string_view key) {
  for (const Field& field : fields)
    if (field.key == key) return field;
  throw std::logic_error("no field " + std::string(key));
}

class Fields : public ::testing::Test {
 protected:
  // Returns the error for the user. Empty if the value is accepted.
  std::string error(std::string_view key, const Value& value) {
    try {
      field_of(fields, key).set("painting." + std::string(key), value);
    } catch (const ConfigError& e) {
      EXPECT_EQ(e.key(), "painting." + std::string(key));
      return e.what();
    }
    return "";
  }
  std::string text(std::string_view key) { return field_of(fields, key).text(); }

  Painting painting;
  std::vector<Field> fields = fields_of(painting);
};

TEST_F(Fields, AreTheMembersThemselves) {
  EXPECT_EQ(error("framed", true), "");
  EXPECT_EQ(error("width", std::int64_t{2}), "") << "an integer is a number";
  EXPECT_EQ(error("colour", std::string("blue")), "");
  EXPECT_EQ(error("sizes", std::vector<std::int64_t>{5}), "");
  EXPECT_TRUE(painting.framed);
  EXPECT_EQ(painting.width, 2);
  EXPECT_EQ(painting.colour, Colour::kBlue);
  EXPECT_EQ(painting.sizes, std::vector<std::uint32_t>{5});
  painting.layers = 8;
  EXPECT_EQ(field_of(fields, "layers").get(), Value(std::int64_t{8}));
}

TEST_F(Fields, RefuseValuesOutsideTheirConstraintsAndStayUnchanged) {
  EXPECT_EQ(error("framed", std::int64_t{1}), "framed must be true or false, not 1");
  EXPECT_EQ(error("width", 0.0), "width must be a number in (0, 2], not 0.0");
  EXPECT_EQ(error("width", std::nan("")), "width must be a number in (0, 2], not nan");
  EXPECT_EQ(error("layers", std::int64_t{10}), "layers must be an integer, 1 to 9, not 10");
  EXPECT_EQ(error("layers", 2.5), "layers must be an integer, 1 to 9, not 2.5");
  EXPECT_EQ(error("seed", std::int64_t{-1}), "seed must be an integer, 0 or more, not -1");
  EXPECT_EQ(error("colour", std::string("bleu")), "unknown colour 'bleu'; did you mean 'blue'?");
  EXPECT_EQ(error("colour", std::int64_t{1}), "colour must be \"red\", \"green\" or \"blue\", not 1");
  EXPECT_EQ(error("level", std::int64_t{20}),
            "level must be \"auto\", \"off\" or an integer, 1 to 19, not 20");
  EXPECT_EQ(error("title", std::string("bad")), "that is bad");
  EXPECT_EQ(error("title", std::string("a\nb")), "must not contain control characters: \"a\\nb\"");
  EXPECT_EQ(error("sizes", std::vector<std::int64_t>{5, 101}),
            "sizes must be a list of at most 64 integers, 1 to 100, not [5, 101]");
  EXPECT_EQ(error("sizes", std::vector<std::int64_t>(65, 1)).substr(0, 55),
            "sizes must be a list of at most 64 integers, 1 to 100, ");
  const Painting fresh;
  EXPECT_EQ(painting.framed, fresh.framed);
  EXPECT_EQ(painting.width, fresh.width);
  EXPECT_EQ(painting.layers, fresh.layers);
  EXPECT_EQ(painting.colour, fresh.colour);
  EXPECT_EQ(painting.level, fresh.level);
  EXPECT_EQ(painting.title, fresh.title);
  EXPECT_EQ(painting.sizes, fresh.sizes);
}

TEST_F(Fields, MayHaveWordsForTheFirstNumbers) {
  EXPECT_EQ(text("batch"), "all");
  EXPECT_EQ(error("batch", std::int64_t{32}), "");
  EXPECT_EQ(painting.batch, 32u);
  EXPECT_EQ(error("batch", std::string("all")), "");
  EXPECT_EQ(painting.batch, 0u);
  EXPECT_NE(error("batch", std::int64_t{0}), "") << "which is written all";
}

TEST_F(Fields, AcceptAQuotedFlagOrNumberThatFitsWithoutQuotes) {
  EXPECT_EQ(error("level", std::string("7")), "");
  EXPECT_EQ(painting.level, "7");
  EXPECT_NE(error("level", std::string("70")), "");
}

TEST_F(Fields, RoundTripAsTextBitForBit) {
  painting = {.framed = true,
              .width = 0.1 + 0.2,
              .layers = 9,
              .seed = 9'223'372'036'854'775'807u,
              .size = 0,
              .colour = Colour::kRed,
              .batch = 5,
              .level = "3",
              .step = "1e-07",
              .title = "12",
              .sizes = {},
              .thinned = {0.5}};
  Painting other;
  const std::vector<Field> to = fields_of(other);
  for (std::size_t k = 0; k < fields.size(); ++k) {
    to[k].from_text("painting", fields[k].text());
    EXPECT_EQ(to[k].get(), fields[k].get()) << fields[k].key;
  }
  EXPECT_EQ(other.width, 0.1 + 0.2);
  EXPECT_EQ(other.title, "12") << "a text stays a text";
}

TEST_F(Fields, RefuseTextThatIsNotAValue) {
  const auto refuses = [this](std::string_view key, std::string_view text) {
    EXPECT_THROW(field_of(fields, key).from_text("painting", text), ConfigError) << key << ": " << text;
  };
  for (const char* list : {" ", "1 ", " 1", "1  2", "1,2", "x", "0", "101", "-1", "99999999999999999999"})
    refuses("sizes", list);
  for (const char* number : {"", "x", "1x", "-1", "10", "1.5", "9223372036854775808"})
    refuses("layers", number);
  refuses("framed", "yes");
  refuses("width", "nan");
}

TEST_F(Fields, RefuseAnEnumOutsideItsValues) {
  painting.colour = static_cast<Colour>(9);
  const Field& colour = field_of(fields, "colour");
  EXPECT_THROW(colour.set("painting.colour", colour.get()), ConfigError);
}

TEST_F(Fields, SpellZeroInOneWay) {
  Painting thick;
  thick.width = 1;
  std::vector<Field> own = fields_of(thick);
  Constraints any;
  any.low = -1;
  const Field width("width", &thick.width, "", any);
  width.set("painting.width", -0.0);
  EXPECT_FALSE(std::signbit(thick.width));
}

TEST_F(Fields, UseTheTextCodecOfTheirType) {
  const Field& thinned = field_of(fields, "thinned");
  EXPECT_EQ(thinned.expected(), "a share like 5%");
  EXPECT_EQ(error("thinned", "25%"), "");
  EXPECT_EQ(painting.thinned.share, 0.25);
  EXPECT_EQ(text("thinned"), "25%");
  EXPECT_EQ(thinned.get(), Value("25%"));
  EXPECT_EQ(error("thinned", "a quarter"), "thinned must be a share like 5%, not \"a quarter\"");
  EXPECT_EQ(error("thinned", 25), "thinned must be a share like 5%, not 25");
  EXPECT_EQ(error("thinned", std::vector<std::int64_t>{1, 2}), "thinned must be a share like 5%, not [1, 2]");
  EXPECT_EQ(error("thinned", OtherValue{"a date"}), "thinned must be a share like 5%, not a date");
  EXPECT_EQ(error("thinned", "bad"), "that is bad") << "its constraints' own check is called";
  EXPECT_EQ(painting.thinned.share, 0.25) << "a refused value changes nothing";
}

TEST_F(Fields, KeepAWordThatLooksLikeANumber) {
  Edition edition;
  const std::vector<Field> of_edition = fields_of(edition);
  of_edition[0].from_text("edition", "2");
  EXPECT_EQ(edition.part, ClientDataset::kSecond);
  EXPECT_THROW(of_edition[0].from_text("edition", "3"), ConfigError);
}

}  // namespace
}  // namespace gradwire
