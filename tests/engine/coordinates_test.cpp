#include "gradwire/coordinates.h"

#include <gtest/gtest.h>
#include <set>
#include <vector>

namespace gradwire {
namespace {

constexpr std::size_t kDim = 12;

struct Named {
  const char* name;
  Coordinates coordinates;
  std::set<std::size_t> members;
};

const std::vector<std::uint32_t> kList = {0, 3, 4, 11};

std::vector<Named> all_kinds() {
  std::set<std::size_t> everything;
  for (std::size_t j = 0; j < kDim; ++j) everything.insert(j);
  return {{"all", {}, everything},
          {"range", Coordinates::range(2, 5), {2, 3, 4, 5, 6}},
          {"empty range", Coordinates::range(4, 0), {}},
          {"around the end", Coordinates::cyclic(10, 4, kDim), {0, 1, 10, 11}},
          {"up to the end", Coordinates::cyclic(10, 2, kDim), {10, 11}},
          {"all, from the middle", Coordinates::cyclic(5, kDim, kDim), everything},
          {"list", Coordinates::list(kList), {0, 3, 4, 11}},
          {"empty list", Coordinates::list({}), {}}};
}

TEST(Coordinates, CountAndEncloseTheCoordinatesInEveryRange) {
  for (const Named& kind : all_kinds())
    for (std::size_t first = 0; first <= kDim; ++first)
      for (std::size_t end = first; end <= kDim; ++end) {
        std::set<std::size_t> inside;
        for (const std::size_t j : kind.members)
          if (j >= first && j < end) inside.insert(j);
        EXPECT_EQ(kind.coordinates.count({first, end}), inside.size()) << kind.name;
        const CoordinateRange hull = kind.coordinates.hull({first, end});
        if (inside.empty()) {
          EXPECT_TRUE(hull.empty()) << kind.name << ' ' << first << ' ' << end;
        } else {
          EXPECT_EQ(hull.first, *inside.begin()) << kind.name;
          EXPECT_EQ(hull.end, *inside.rbegin() + 1) << kind.name;
        }
      }
}

TEST(Coordinates, GiveRunsThatCoverAllCoordinatesAscending) {
  for (const Named& kind : all_kinds()) {
    std::vector<std::size_t> seen;
    kind.coordinates.for_runs(kDim, [&](std::size_t first, std::size_t end) {
      for (std::size_t j = first; j < end; ++j) seen.push_back(j);
    });
    EXPECT_EQ(seen, std::vector<std::size_t>(kind.members.begin(), kind.members.end())) << kind.name;
  }
}

TEST(Coordinates, RefuseAnotherDimensionOrOrder) {
  for (const Named& kind : all_kinds()) EXPECT_NO_THROW(kind.coordinates.check(kDim)) << kind.name;
  const std::vector<std::uint32_t> unsorted = {3, 2}, twice = {3, 3};
  EXPECT_THROW(Coordinates::list(unsorted).check(kDim), std::logic_error);
  EXPECT_THROW(Coordinates::list(twice).check(kDim), std::logic_error);
  EXPECT_THROW(Coordinates::list(kList).check(11), std::logic_error);
  EXPECT_THROW(Coordinates::range(8, 5).check(kDim), std::logic_error);
  EXPECT_THROW(Coordinates::cyclic(kDim, 1, kDim).check(kDim), std::logic_error);
  EXPECT_THROW(Coordinates::cyclic(1, kDim + 1, kDim).check(kDim), std::logic_error);
}

}  // namespace
}  // namespace gradwire
