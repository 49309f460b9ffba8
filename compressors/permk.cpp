#include "compressors/permk.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "compressors/gather.h"

namespace gradwire {
namespace {

// The offset of the RNG domain for draws that all clients share. Draws of one client use other streams.
constexpr std::uint32_t kSharedDraw = 0x800;

void shuffle(RngStream& stream, std::vector<std::uint32_t>& items) {
  for (std::size_t j = items.size(); j > 1; --j)
    std::swap(items[j - 1], items[stream.below(static_cast<std::uint32_t>(j))]);
}

// Fills memo.owners with `total` numbers below `kinds`, shuffled. Each number occurs equally often; if
// `total` is not a multiple of `kinds`, a random few occur once more.
void deal(RngStream& stream, std::uint32_t kinds, std::uint32_t total, BlockMemo& memo) {
  std::vector<std::uint32_t>& order = memo.indices;
  order.resize(kinds);
  for (std::uint32_t i = 0; i < kinds; ++i) order[i] = i;
  if (total % kinds != 0) shuffle(stream, order);
  memo.owners.resize(total);
  const std::uint32_t whole = total - total % kinds;
  for (std::uint32_t j = 0; j < whole; ++j) memo.owners[j] = j % kinds;
  for (std::uint32_t j = whole; j < total; ++j) memo.owners[j] = order[j - whole];
  shuffle(stream, memo.owners);
}

void draw_blocks(const RngKey& key, std::uint32_t n, std::uint32_t d, BlockMemo& memo) {
  RngStream stream(key);
  memo.begin.assign(std::size_t{n} + 1, 0);
  if (n > d) {
    deal(stream, d, n, memo);
    memo.indices = memo.owners;  // the one coordinate of each client
    for (std::uint32_t i = 0; i <= n; ++i) memo.begin[i] = i;
    return;
  }
  deal(stream, n, d, memo);
  // Counting sort by owner, so each client's coordinates ascend.
  for (const std::uint32_t owner : memo.owners) ++memo.begin[owner + 1];
  for (std::uint32_t i = 0; i < n; ++i) memo.begin[i + 1] += memo.begin[i];
  memo.indices.resize(d);
  for (std::uint32_t j = 0; j < d; ++j) memo.indices[memo.begin[memo.owners[j]]++] = j;
  for (std::uint32_t i = n; i > 0; --i) memo.begin[i] = memo.begin[i - 1];
  memo.begin[0] = 0;
}

}  // namespace

std::span<const std::uint32_t> draw_block(const RngKey& key, std::uint32_t n, std::uint32_t d,
                                          BlockMemo& memo) {
  if (n == 0 || d == 0) throw std::logic_error("draw_block: n and d must be positive");
  RngKey shared = key;
  shared.client = kServerClient;
  shared.domain = key.domain + kSharedDraw;
  if (memo.n != n || memo.d != d || memo.key != shared) {
    memo.n = 0;  // invalid while it changes
    draw_blocks(shared, n, d, memo);
    memo.key = shared;
    memo.d = d;
    memo.n = n;
  }
  const std::uint32_t i = key.client % n;
  return std::span(memo.indices).subspan(memo.begin[i], memo.begin[i + 1] - memo.begin[i]);
}

CompressorConstants PermK::constants(std::size_t dim) const {
  const double d = static_cast<double>(dim), clients = n.count;
  if (clients <= d) {
    CompressorConstants q = CompressorConstants::of_unbiased(clients - 1, d / clients);
    q.A = q.B = n.count == 1 ? 0 : 1;
    return q;
  }
  CompressorConstants q = CompressorConstants::of_unbiased(d - 1, 1);
  // Let s be the probability that two clients have the same coordinate. Then
  //   E ||mean C_i(a_i)||^2 = d (1-s)/n mean ||a_i||^2 + d s ||mean a_i||^2.
  // If n is a multiple of d, both A and B are (d-1)/(n-1).
  const double share = static_cast<double>(n.count / dim), extra = static_cast<double>(n.count % dim);
  const double s = share * (d * share + 2 * extra - d) / (clients * (clients - 1));
  q.A = extra == 0 ? (d - 1) / (clients - 1) : d * (1 - s) / clients;
  q.B = extra == 0 ? q.A : 1 - d * s;
  return q;
}

template <class Real>
const Payload<Real>& PermK::operator()(Vec<Real>& v, const RngKey& key, Scratch<Real>& scratch,
                                       PayloadBuffer<Real>& to) const {
  const auto d = static_cast<std::uint32_t>(v.size());
  const auto block = draw_block(key, n.count, d, scratch.blocks);
  const std::size_t most = std::size_t{d} / n.count + 1;  // another round may draw one more
  to.indices().reserve(most);
  to.values().reserve(most);
  to.indices().assign(block.begin(), block.end());
  gather<Real>(v, factor<Real>(d), to);
  to.set_seeded(key);
  return to.view();
}

bool PermK::redraw(Shape shape, std::size_t count, std::uint32_t dim, const RngKey& key,
                   std::vector<std::uint32_t>& indices, std::uint32_t&, BlockMemo& memo) const {
  const std::size_t least = std::max<std::size_t>(dim / n.count, 1);
  // Check before drawing: a peer must not cause O(d) work with a count that no client has.
  if (shape != Shape::kSparse || dim == 0 || (count != least && (n.count > dim || count != least + 1)))
    return false;
  const auto block = draw_block(key, n.count, dim, memo);
  if (block.size() != count) return false;
  indices.reserve(least + 1);
  indices.assign(block.begin(), block.end());
  return true;
}

template const Payload<float>& PermK::operator()(Vec<float>&, const RngKey&, Scratch<float>&,
                                                 PayloadBuffer<float>&) const;
template const Payload<double>& PermK::operator()(Vec<double>&, const RngKey&, Scratch<double>&,
                                                  PayloadBuffer<double>&) const;

}  // namespace gradwire
