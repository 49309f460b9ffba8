#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "compressors/count.h"
#include "compressors/payload.h"
#include "gradwire/compressor.h"

namespace gradwire {

// PermK (arXiv:2110.03300): a random permutation in each round divides the coordinates among the n clients.
// If d >= n, every coordinate goes to one client, which sends n x_j. d mod n clients, drawn at random, get
// one coordinate more than the others. If d < n, every client gets one coordinate. A coordinate goes to
// floor(n/d) clients, which send d x_j, and n mod d random coordinates go to one client more. The division is
// drawn from the key with client kServerClient, so it is the same for all clients; the key's own client,
// modulo n, only selects the part.
struct PermK {
  static constexpr std::string_view name = "permk";
  static constexpr std::string_view summary =
      "the clients share out the coordinates by one random permutation a round; the receiver redraws it";
  static constexpr std::string_view constants_text =
      "unbiased, omega = n - 1, A = B = 1; n > d: omega = d - 1, A = B = (d-1)/(n-1) (n a multiple of d)";
  Clients n;
  bool operator==(const PermK&) const = default;
  static void fields(auto& self, auto&& visit) { visit("n", self.n, "clients"); }

  CompressorConstants constants(std::size_t d) const;
  CompressorConstants joint(std::size_t d, std::uint32_t) const { return constants(d); }
  // Returns the factor of the coordinates that are sent.
  template <class Real>
  Real factor(std::size_t d) const {
    return static_cast<Real>(std::min(n.count, static_cast<std::uint32_t>(d)));
  }

  template <class Real>
  const Payload<Real>& operator()(Vec<Real>& v, const RngKey& key, Scratch<Real>& scratch,
                                  PayloadBuffer<Real>& to) const;
  bool redraw(Shape shape, std::size_t count, std::uint32_t dim, const RngKey& key,
              std::vector<std::uint32_t>& indices, std::uint32_t& first, BlockMemo& memo) const;
};

// Returns the coordinates of one client, ascending. They are stored in `memo`, where those of all n clients
// are drawn once for each key.
std::span<const std::uint32_t> draw_block(const RngKey& key, std::uint32_t n, std::uint32_t d,
                                          BlockMemo& memo);

}  // namespace gradwire
