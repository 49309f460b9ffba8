// The requested coordinates of a vector: all, a range (which may wrap around), or a list.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

namespace gradwire {

struct CoordinateRange {
  std::size_t first = 0, end = 0;

  std::size_t size() const { return end - first; }
  bool empty() const { return first >= end; }
  bool operator==(const CoordinateRange&) const = default;
};

// A view: the caller owns the list.
class Coordinates {
 public:
  Coordinates() = default;  // all

  // Returns the `count` coordinates first, first + 1, ...
  static Coordinates range(std::size_t first, std::size_t count) {
    return ranges({first, first + count}, {});
  }
  // Returns the same coordinates modulo d, as RandSeqK draws them. REQUIRES: first < d, count <= d; otherwise
  // check() throws.
  static Coordinates cyclic(std::size_t first, std::size_t count, std::size_t d) {
    if (first >= d || first + count <= d || count > d) return range(first, count);
    return ranges({0, first + count - d}, {first, d});
  }
  // Returns the coordinates of a strictly ascending list.
  static Coordinates list(std::span<const std::uint32_t> ascending) {
    Coordinates result;
    result.kind_ = Kind::kList;
    result.list_ = ascending;
    return result;
  }

  bool all() const { return kind_ == Kind::kAll; }
  bool is_ranges() const { return kind_ == Kind::kRanges; }  // one, or two

  // Returns the number of coordinates in `within`.
  std::size_t count(CoordinateRange within) const {
    if (within.empty()) return 0;
    if (all()) return within.size();
    if (kind_ == Kind::kList) {
      const auto part = listed(within);
      return part.size();
    }
    return common(ranges_[0], within).size() + common(ranges_[1], within).size();
  }

  // Returns the smallest range that holds all coordinates in `within`. Empty if there are none.
  CoordinateRange hull(CoordinateRange within) const {
    if (all() || within.empty()) return within;
    if (kind_ == Kind::kList) {
      const auto part = listed(within);
      if (part.empty()) return {};
      return {part.front(), std::size_t{part.back()} + 1};
    }
    const CoordinateRange low = common(ranges_[0], within), high = common(ranges_[1], within);
    if (low.empty()) return high;
    return high.empty() ? low : CoordinateRange{low.first, high.end};
  }

  // Calls f(first, end) for runs that cover all coordinates, ascending. REQUIRES: check(d) passes.
  template <class F>
  void for_runs(std::size_t d, F&& f) const {
    if (all()) return f(std::size_t{0}, d);
    if (kind_ == Kind::kList) {
      for (const std::size_t j : list_) f(j, j + 1);
      return;
    }
    for (const CoordinateRange& r : ranges_)
      if (!r.empty()) f(r.first, r.end);
  }

  // Throws std::logic_error unless these are coordinates of R^d and a list ascends.
  void check(std::size_t d) const {
    if (all()) return;
    if (kind_ == Kind::kList) {
      for (std::size_t k = 1; k < list_.size(); ++k)
        if (list_[k] <= list_[k - 1])
          throw std::logic_error("a list of coordinates must ascend, but entry " + std::to_string(k) +
                                 " is " + std::to_string(list_[k]) + " after " +
                                 std::to_string(list_[k - 1]));
      if (!list_.empty()) check_end(std::size_t{list_.back()} + 1, d);
      return;
    }
    for (const CoordinateRange& r : ranges_) {
      if (r.first > r.end) throw std::logic_error("a range of coordinates ends before it begins");
      check_end(r.end, d);
    }
  }

 private:
  enum class Kind : std::uint8_t { kAll, kRanges, kList };

  static Coordinates ranges(CoordinateRange low, CoordinateRange high) {
    Coordinates result;
    result.kind_ = Kind::kRanges;
    result.ranges_[0] = low;
    result.ranges_[1] = high;
    return result;
  }
  static CoordinateRange common(CoordinateRange a, CoordinateRange b) {
    const CoordinateRange both{std::max(a.first, b.first), std::min(a.end, b.end)};
    return both.empty() ? CoordinateRange{} : both;
  }
  static void check_end(std::size_t end, std::size_t d) {
    if (end > d)
      throw std::logic_error("coordinate " + std::to_string(end - 1) + " is out of range: the dimension is " +
                             std::to_string(d));
  }
  std::span<const std::uint32_t> listed(CoordinateRange within) const {
    const auto low = std::lower_bound(list_.begin(), list_.end(), within.first);
    return {low, std::lower_bound(low, list_.end(), within.end)};
  }

  Kind kind_ = Kind::kAll;
  CoordinateRange ranges_[2];  // ascending; the second may be empty
  std::span<const std::uint32_t> list_;
};

}  // namespace gradwire
