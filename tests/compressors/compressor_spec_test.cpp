// The spelling of compressors in a file: reading, writing, and the messages for mistakes.
#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <variant>

#include "base/config_error.h"
#include "compressors/compressor.h"

namespace gradwire {
namespace {

// Returns the message that refuses a spec. Empty if the spec is accepted.
std::string refusal(const std::string& spec, std::size_t d = 0) {
  try {
    parse_compressor(spec, d);
  } catch (const ConfigError& e) {
    EXPECT_EQ(e.key(), "algorithm.compressor");
    return e.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void expect_refused(const std::string& spec, const std::string& because, std::size_t d = 0) {
  const std::string message = refusal(spec, d);
  EXPECT_TRUE(contains(message, because)) << spec << " -> " << message;
  EXPECT_LT(message.size(), 300u);
}

TEST(CompressorSpec, IsRead) {
  EXPECT_EQ(parse_compressor("identity", 5), Compressor(Identity{}));
  EXPECT_EQ(parse_compressor("natural", 5), Compressor(Natural{}));
  EXPECT_EQ(parse_compressor("topk", 5), Compressor(TopK{{1}}));
  EXPECT_EQ(parse_compressor("topk:k=5", 5), Compressor(TopK{{5}}));
  EXPECT_EQ(parse_compressor("randk:k=3,scaled=false", 5), Compressor(RandK{{3}, false}));
  EXPECT_EQ(parse_compressor("randk:scaled=false,k=3", 5), Compressor(RandK{{3}, false}));
  EXPECT_EQ(parse_compressor("randseqk:k=2,scaled=true", 5), Compressor(RandSeqK{{2}, true}));
}

TEST(CompressorSpec, RoundsSharesToAtLeastOne) {
  const auto k = [](const char* spec, std::size_t d) { return std::get<TopK>(parse_compressor(spec, d)).k; };
  EXPECT_EQ(k("topk:k=1%", 1000), (Count{10}));
  EXPECT_EQ(k("topk:k=1%", 149), (Count{1}));
  EXPECT_EQ(k("topk:k=1%", 150), (Count{2}));
  EXPECT_EQ(k("topk:k=1%", 3), (Count{1}));
  EXPECT_EQ(k("topk:k=0.5%", 1000), (Count{5}));
  EXPECT_EQ(k("topk:k=1e1%", 1000), (Count{100}));
  EXPECT_EQ(k("topk:k=100%", 7), (Count{7}));
  EXPECT_EQ(k("topk:k=1e-300%", 7), (Count{1}));
  EXPECT_EQ(k("topk:k=29%", 100), (Count{29}));
  EXPECT_EQ(k("topk:k=100%", kMaxDim), (Count{kMaxDim}));
}

TEST(CompressorSpec, IsWrittenInOneForm) {
  EXPECT_EQ(to_spec(parse_compressor("topk", 5)), "topk:k=1");
  EXPECT_EQ(to_spec(parse_compressor("randk:scaled=false,k=40%", 5)), "randk:k=2,scaled=false");
  EXPECT_EQ(to_spec(Identity{}), "identity");
  // Without a dimension a share stays a share.
  for (const char* spec : {"topk:k=1%", "topk:k=29%", "topk:k=0.1%", "topk:k=100%"})
    EXPECT_EQ(to_spec(parse_compressor(spec, 0)), spec);
}

TEST(CompressorSpec, RoundTripsThroughText) {
  RngStream stream({.seed = 5});
  for (int i = 0; i < 3000; ++i) {
    TopK topk;
    const double percent = 100 * stream.uniform() * std::pow(10.0, -static_cast<double>(stream.below(12)));
    topk.k = {0, percent / 100};
    ASSERT_EQ(parse_compressor(to_spec(topk), 0), Compressor(topk)) << to_spec(topk);
    RandK randk{{1 + stream.below(1000)}, stream.below(2) == 0};
    ASSERT_EQ(parse_compressor(to_spec(randk), 1000), Compressor(randk));
  }
}

TEST(CompressorSpec, SuggestsTheNearestName) {
  for (const char* text : {"topk(k=2)", "topk k=2", "k=2"})
    EXPECT_NE(refusal(text).find("k=2'; write parameters as NAME:KEY=VALUE, as in topk:k=2"),
              std::string::npos)
        << text;
  EXPECT_EQ(refusal("topq"), "unknown compressor 'topq'; did you mean 'topk'?");
  EXPECT_EQ(refusal("ranseqk:k=1"), "unknown compressor 'ranseqk'; did you mean 'randseqk'?");
  expect_refused("zzzzzz",
                 "unknown compressor 'zzzzzz'; known: identity, topk, toplek, randk, randseqk, permk,");
  expect_refused("", "unknown compressor ''; known: identity");
  expect_refused(":k=1", "unknown compressor ''; known: identity");
  expect_refused("TopK", "unknown compressor 'TopK'");
  expect_refused(" topk", "did you mean 'topk'?");
  expect_refused("topk,k=1", "unknown compressor 'topk,k=1'");
}

TEST(CompressorSpec, SuggestsTheNearestParameter) {
  EXPECT_EQ(refusal("randk:scale=true"), "randk has no parameter 'scale'; did you mean 'scaled'?");
  EXPECT_EQ(refusal("identity:k=1"), "identity has no parameter 'k'; it takes none");
  expect_refused("topk:scaled=true", "topk has no parameter 'scaled'");
  expect_refused("topk:K=1", "topk has no parameter 'K'; did you mean 'k'?");
  expect_refused("topk:k =1", "topk has no parameter 'k '; did you mean 'k'?");
  expect_refused("topk:=1", "topk has no parameter ''");
  expect_refused("topk:,", "topk has no parameter ''");
  expect_refused("topk:k=1,,", "topk has no parameter ''");
  expect_refused("topk::k=1", "topk has no parameter ':k'");
}

TEST(CompressorSpec, RefusesInvalidCounts) {
  for (const char* k :
       {"0", "-1", "1.5", "+1", " 1", "1 ", "0x10", "1e3", "4294967296", "99999999999999999999", "one", ""})
    expect_refused(std::string("topk:k=") + k,
                   "topk: k must be a count of at least 1, or a share of d like 1%");
  EXPECT_EQ(
      refusal("topk:k=0"),
      "topk: k must be a count of at least 1, or a share of d like 1% (above 0%, at most 100%), not \"0\"");
}

TEST(CompressorSpec, RefusesInvalidShares) {
  for (const char* k :
       {"0%", "-1%", "1e400%", "100.001%", "nan%", "inf%", "%", "1%%", "1 %", "-0%", "1e-400%", "1e-323%"})
    expect_refused(std::string("topk:k=") + k, "1% (above 0%, at most 100%), not \"" + std::string(k) + '"');
}

TEST(CompressorSpec, ReportsSyntaxErrors) {
  expect_refused("topk:", "'topk:' ends with a colon");
  expect_refused("topk:k", "'k' needs a value, as in k=...");
  expect_refused("topk:k=1,", "ends with a comma");
  expect_refused("topk:k=1,k=2", "'k' is given twice");
  expect_refused("topk:k=1,k=1", "'k' is given twice");
  expect_refused("randk:k=3,scaled=maybe", "scaled must be true or false, not \"maybe\"");
  expect_refused("randk:k=3,scaled=", "scaled must be true or false, not \"\"");
  expect_refused("randk:k=3;scaled=true",
                 "share of d like 1% (above 0%, at most 100%), not \"3;scaled=true\"");
}

TEST(CompressorSpec, RefusesKAboveTheDimensionWithBothNumbers) {
  EXPECT_EQ(refusal("topk:k=8", 7), "topk: k = 8 is larger than the dimension 7");
  EXPECT_EQ(refusal("randseqk:k=4294967295", 123),
            "randseqk: k = 4294967295 is larger than the dimension 123");
  EXPECT_EQ(refusal("topk:k=7", 7), "");
  EXPECT_EQ(refusal("topk:k=4000000000", 0), "");
}

TEST(CompressorSpec, FillsInTheClientsOfTheRunAndAShape) {
  EXPECT_EQ(to_spec(parse_compressor("permk", 100, 20)), "permk:n=20");
  EXPECT_EQ(to_spec(parse_compressor("permk", 0, 20)), "permk");
  EXPECT_EQ(to_spec(parse_compressor("permk:n=20", 100)), "permk:n=20");
  EXPECT_EQ(to_spec(parse_compressor("rankk:k=2", 64)), "rankk:k=2,rows=8");
  EXPECT_EQ(to_spec(parse_compressor("rankk:rows=4,k=2", 64)), "rankk:k=2,rows=4");
  EXPECT_EQ(to_spec(parse_compressor("qsgd", 7)), "qsgd:s=4,p=2");
  EXPECT_EQ(to_spec(parse_compressor("qsgd:p=inf,s=1", 7)), "qsgd:s=1,p=inf");
  EXPECT_EQ(to_spec(parse_compressor("bernoulli:p=0.1", 7)), "bernoulli:p=0.1");
}

TEST(CompressorSpec, ReadsAndWritesCompositions) {
  const auto resolved = [](const char* spec) { return to_spec(parse_compressor(spec, 1000, 20)); };
  EXPECT_EQ(resolved("natural(randk:k=10)"), "natural(randk:k=10,scaled=true)");
  EXPECT_EQ(resolved("natural(topk:k=1%)"), "natural(topk:k=10)");
  EXPECT_EQ(resolved("qsgd:s=4(topk:k=1%)"), "qsgd:s=4,p=2(topk:k=10)");
  EXPECT_EQ(resolved("natural(permk)"), "natural(permk:n=20)");
  EXPECT_EQ(resolved("scaled(natural(randk:scaled=true,k=3))"), "scaled(natural(randk:k=3,scaled=true))");
  EXPECT_EQ(resolved("induced(randk:k=3,scaled=false,natural)"), "induced(randk:k=3,scaled=false,natural)");
  EXPECT_EQ(resolved("induced(topk:k=3,qsgd:s=2,p=1(randk:k=5))"),
            "induced(topk:k=3,qsgd:s=2,p=1(randk:k=5,scaled=true))");
  for (const char* spec : {"natural(topk:k=1%)", "induced(topk:k=1%,scaled(natural))"})
    EXPECT_EQ(to_spec(parse_compressor(spec, 0)), spec);
}

TEST(CompressorSpec, RefusesInvalidCompositions) {
  expect_refused("natural(topk", "the parentheses do not match");
  expect_refused("natural)", "the parentheses do not match");
  expect_refused("natural(topk)x", "the parentheses do not match");
  expect_refused("natural()", "unknown compressor ''");
  expect_refused("natural(topk,randk)", "'natural' takes one compressor");
  expect_refused("induced(topk)", "'induced' takes two compressors");
  expect_refused("scaled", "scaled needs inner compressors: write scaled(C)");
  expect_refused("topk:k=1(natural)", "only natural, qsgd, terngrad and natural_dithering can be the outer");
  expect_refused("natural(rankk)", "must send entries of the vector");
  for (const char* spec :
       {"natural(rankr)", "scaled(rankr)", "induced(rankr,natural)", "induced(topk,rankr)"})
    expect_refused(spec, "rankr cannot be part of another compressor");
  expect_refused("natural(scaled(natural))", "must send entries of the vector");
  expect_refused("scaled(topk:k=2)", "must be unbiased", 10);
  expect_refused("induced(randk:k=1,natural)", "the first must be contractive", 10);
  expect_refused("induced(topk:k=1,topk:k=1)", "the second must be unbiased", 10);
  expect_refused("induced(topk,induced(topk,natural))", "cannot contain another one");
  expect_refused("scaled(scaled(scaled(scaled(scaled(natural)))))", "nested too deeply");
  expect_refused("natural(topq)", "unknown compressor 'topq'; did you mean 'topk'?");
}

TEST(CompressorSpec, RefusesParametersOutOfRange) {
  expect_refused("qsgd:s=0", "qsgd: s must be an integer, 1 to 65535, not 0");
  expect_refused("natural_dithering:s=101", "s must be an integer, 1 to 100, not 101");
  for (const char* p : {"0.5", "nan", "-inf", ""})
    expect_refused(std::string("qsgd:p=") + p, "qsgd: p must be a number of at least 1, or inf, not");
  for (const char* p : {"0", "1.1", "-1", "nan", "1e-31"})
    expect_refused(std::string("bernoulli:p=") + p, "bernoulli: p must be a number in [1e-30, 1], not");
  expect_refused("permk:n=0", "permk: n must be the number of clients of the run, or omitted, not \"0\"");
  expect_refused("rankk:rows=0",
                 "rankk: rows must be a number of rows, or omitted for a nearly square matrix, not \"0\"");
  expect_refused("rankk:rows=5", "rankk: rows = 5 does not divide the dimension 64", 64);
  expect_refused("rankk:k=9", "larger than a side of the matrix", 64);
  expect_refused("rankr:r=0", "rankr: r must be an integer, 1 to 4294967295, not 0");
  expect_refused("rankr:r=5", "larger than the side of the matrix", 10);
  expect_refused("rankr", "not the triangle of one", 11);
  EXPECT_THROW(parse_compressor("permk:n=3", 10, 4), ConfigError);
}

TEST(CompressorSpec, RefusesVeryLongTextsQuicklyWithAShortMessage) {
  const std::string long_text(5'000'000, 'k');
  expect_refused(long_text, "unknown compressor 'kkk");
  expect_refused("topk:" + long_text, "topk has no parameter 'kkk");
  expect_refused("topk:k=" + long_text, "k must be a count");
  expect_refused("topk:k=" + long_text + "%", "k must be a count");
  expect_refused("topk:k=" + std::string(5'000'000, '9'), "k must be a count");
  expect_refused("topk:k=" + std::string(5'000'000, '9') + "%", "k must be a count");
  expect_refused("randk:scaled=" + long_text, "scaled must be true or false");
  std::string repeated = "topk:k=1";
  for (int i = 0; i < 500'000; ++i) repeated += ",k=1";
  expect_refused(repeated, "'k' is given twice");
  expect_refused(std::string(5'000'000, ':'), "unknown compressor ''");
  expect_refused(std::string(5'000'000, '('), "the parentheses do not match");
  expect_refused(std::string(2'000'000, '(') + std::string(2'000'000, ')'), "unknown compressor ''");
  expect_refused("natural(" + std::string(2'000'000, ',') + ")", "takes one compressor");
}

}  // namespace
}  // namespace gradwire
