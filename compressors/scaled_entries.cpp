#include "compressors/scaled_entries.h"

namespace gradwire {

bool sends_scaled_entries(const Compressor& c) {
  const Compressor::Variant& kind = c;
  return std::holds_alternative<Identity>(kind) || std::holds_alternative<RandK>(kind) ||
         std::holds_alternative<RandSeqK>(kind) || std::holds_alternative<PermK>(kind);
}

template <class Real>
bool ScaledEntries<Real>::draw(const Compressor& c, const RngKey& key, std::size_t d, BlockMemo& memo) {
  const auto dim = static_cast<std::uint32_t>(d);
  const Compressor::Variant& kind = c;
  if (std::holds_alternative<Identity>(kind)) {
    kind_ = Kind::kAll;
  } else if (const auto* range = std::get_if<RandSeqK>(&kind)) {
    kind_ = Kind::kRange;
    factor_ = range->factor<Real>(d);
    first_ = RandSeqK::draw_first(key, dim);
    count_ = range->k.count;
  } else if (const auto* subset = std::get_if<RandK>(&kind)) {
    kind_ = Kind::kList;
    factor_ = subset->factor<Real>(d);
    draw_subset(key, subset->k.count, dim, indices_);
  } else if (const auto* block = std::get_if<PermK>(&kind)) {
    kind_ = Kind::kList;
    factor_ = block->factor<Real>(d);
    const auto own = draw_block(key, block->n.count, dim, memo);
    indices_.assign(own.begin(), own.end());
  } else {
    return false;
  }
  return true;
}

template class ScaledEntries<float>;
template class ScaledEntries<double>;

}  // namespace gradwire
