#include "base/suggest.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace gradwire {
namespace {

const std::vector<std::string> kWords = {"identity", "topk", "randk", "randseqk", "natural"};

TEST(Suggest, NamesTheNearestWord) {
  EXPECT_EQ(suggest("topq", kWords), "; did you mean 'topk'?");
  EXPECT_EQ(suggest("tpk", kWords), "; did you mean 'topk'?");
  EXPECT_EQ(suggest("randsek", kWords), "; did you mean 'randseqk'?");
  EXPECT_EQ(suggest("rankd", kWords), "; did you mean 'randk'?");
  EXPECT_EQ(suggest("naturall", kWords), "; did you mean 'natural'?");
}

TEST(Suggest, TakesTheFirstOfEquallyNearWords) {
  EXPECT_EQ(suggest("ab", {"aa", "bb"}), "; did you mean 'aa'?");
  EXPECT_EQ(suggest("ab", {"bb", "aa"}), "; did you mean 'bb'?");
}

TEST(Suggest, ListsAllWordsIfNoneIsNear) {
  const std::string all = "; known: identity, topk, randk, randseqk, natural";
  EXPECT_EQ(suggest("", kWords), all);
  EXPECT_EQ(suggest("qsgd", kWords), all);
  EXPECT_EQ(suggest("a", {"xyz"}), "; known: xyz");
}

TEST(Suggest, IsEmptyForAnEmptyList) { EXPECT_EQ(suggest("topk", {}), ""); }

TEST(Suggest, IsFastForAVeryLongWord) {
  const std::string text = suggest(std::string(10'000'000, 't'), kWords);
  EXPECT_EQ(text, "; known: identity, topk, randk, randseqk, natural");
}

}  // namespace
}  // namespace gradwire
