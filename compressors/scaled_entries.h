// Compressors that send some entries of a vector, multiplied by a constant. The key alone determines which
// entries. So every value can be sent as soon as its entry is known.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "compressors/compressor.h"

namespace gradwire {

// Returns true for identity, randk, randseqk and permk.
bool sends_scaled_entries(const Compressor& c);

template <class Real>
class ScaledEntries {
 public:
  // Prepares for the call of compress() with this key, for a vector of length d. Returns false if `c` does
  // not send scaled entries.
  bool draw(const Compressor& c, const RngKey& key, std::size_t d, BlockMemo& memo);

  // Returns the memory that will hold all values of the payload for the vector v: v itself, or an array of
  // this object, which take() fills.
  View<Real> place(View<Real> v) {
    if (kind_ == Kind::kAll) return v;
    values_.resize(kind_ == Kind::kRange ? count_ : indices_.size());
    return values_;
  }
  // Writes the values of the entries v[first, end), which are now known. Calls ready(first, count) for the
  // values that are now present, at most twice.
  template <class Ready>
  void take(View<Real> v, std::size_t first, std::size_t end, Ready&& ready) {
    if (kind_ == Kind::kAll) return ready(first, end - first);
    if (kind_ == Kind::kList) return take_listed(v, first, end, ready);
    const std::size_t head = std::min(count_, v.size() - first_);  // before the wrap-around
    take_run(v, first, end, first_, head, 0, ready);
    take_run(v, first, end, 0, count_ - head, head, ready);
  }

 private:
  enum class Kind { kAll, kRange, kList };

  template <class Ready>
  void take_listed(View<Real> v, std::size_t first, std::size_t end, Ready&& ready) {
    const auto low = std::lower_bound(indices_.begin(), indices_.end(), first);
    const auto high = std::lower_bound(low, indices_.end(), end);
    if (low == high) return;
    const auto at = static_cast<std::size_t>(low - indices_.begin());
    for (auto j = low; j != high; ++j)
      values_[static_cast<std::size_t>(j - indices_.begin())] = factor_ * v[*j];
    ready(at, static_cast<std::size_t>(high - low));
  }
  // Takes the run of `count` entries that starts at `from`. Its values begin at values_[to].
  template <class Ready>
  void take_run(View<Real> v, std::size_t first, std::size_t end, std::size_t from, std::size_t count,
                std::size_t to, Ready&& ready) {
    const std::size_t low = std::max(first, from), high = std::min(end, from + count);
    if (low >= high) return;
    for (std::size_t j = low; j < high; ++j) values_[to + j - from] = factor_ * v[j];
    ready(to + low - from, high - low);
  }

  Kind kind_ = Kind::kAll;
  Real factor_ = 1;
  std::size_t first_ = 0, count_ = 0;   // for kRange: cyclic neighbours
  std::vector<std::uint32_t> indices_;  // for kList, ascending
  Vec<Real> values_;                    // unused for kAll
};

extern template class ScaledEntries<float>;
extern template class ScaledEntries<double>;

}  // namespace gradwire
