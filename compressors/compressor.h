// Compressors. A compressor turns a vector into a payload. Both ends must know all compressors, so they are
// values in one variant. To add one, write a header with a struct like those included here, and add its name
// to the list below. A compressor that is defined outside this tree is not in the list (custom_compressor.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "compressors/bernoulli.h"
#include "compressors/composed.h"
#include "compressors/custom_compressor.h"
#include "compressors/dithering.h"
#include "compressors/identity.h"
#include "compressors/natural.h"
#include "compressors/payload.h"
#include "compressors/permk.h"
#include "compressors/randk.h"
#include "compressors/randseqk.h"
#include "compressors/rankk.h"
#include "compressors/rankr.h"
#include "compressors/sign.h"
#include "compressors/topk.h"
#include "compressors/toplek.h"
#include "gradwire/compressor.h"

namespace gradwire {

template <class... C>
struct CompressorList {
  using Variant = std::variant<C..., Composed, Scaled, Induced, CustomCompressor>;
};
using SimpleCompressors = CompressorList<Identity, TopK, TopLEK, RandK, RandSeqK, PermK, Bernoulli, Natural,
                                         NaturalDithering, Qsgd, TernGrad, Sign, RankK, RankR>;

// A compressor of the list, a composition (composed.h), or a custom one (custom_compressor.h).
class Compressor : public SimpleCompressors::Variant {
 public:
  using Variant = SimpleCompressors::Variant;
  Compressor() = default;
  template <class C>
  requires(!std::is_base_of_v<Variant, std::remove_cvref_t<C>>) Compressor(C&& c)
      : Variant(std::forward<C>(c)) {}

  template <class F>
  decltype(auto) visit(F&& f) const {
    return std::visit(std::forward<F>(f), static_cast<const Variant&>(*this));
  }
};

inline bool is_identity(const Compressor& c) { return std::holds_alternative<Identity>(c); }

// Reads "name", "name:key=value,..." or a composition, such as "natural(randk:k=1%)", "scaled(C)" or
// "induced(C1,C2)", for vectors of length d; d = 0 only checks the spelling. A count k is a number of
// coordinates, or a share of d ("1%", rounded, at least 1). n is the number of clients, for compressors whose
// clients share draws. Throws a ConfigError that suggests the nearest known word.
Compressor parse_compressor(std::string_view spec, std::size_t d, std::uint32_t n = 1);

// Returns the canonical spelling with counts resolved: parse_compressor(to_spec(c), d) == c. The spelling of
// a custom compressor cannot be read back.
std::string to_spec(const Compressor& c);

// Returns omega, alpha, A, B and the expected number of sent coordinates for vectors of length d and n
// clients.
CompressorConstants constants(const Compressor& c, std::size_t d, std::uint32_t n = 1);

// Compresses v, shape (d). Afterwards v has the same size, but undefined contents: a dense payload may take
// over its buffer. If an entry is not finite, the payload is the whole v, so that the receiver notices it.
template <class Real>
const Payload<Real>& compress(const Compressor& c, Vec<Real>& v, const RngKey& key, Scratch<Real>& scratch,
                              PayloadBuffer<Real>& to);

// Returns the compressor that makes the payload (link 0) or its `next` (link 1), or nullptr if c makes no
// such payload.
const Compressor* chain_link(const Compressor& c, std::size_t link);

// Redraws the support of a seeded payload, exactly as compress() did on the other end. Sets `indices`,
// strictly ascending, or `first`. Returns false if c never makes seeded payloads of that shape and count, as
// a hostile peer may claim them. `memo` keeps from call to call what the payloads of all clients share.
bool redraw_support(const Compressor& c, Shape shape, std::size_t count, std::uint32_t dim, const RngKey& key,
                    std::vector<std::uint32_t>& indices, std::uint32_t& first, BlockMemo& memo);
bool redraw_support(const Compressor& c, Shape shape, std::size_t count, std::uint32_t dim, const RngKey& key,
                    std::vector<std::uint32_t>& indices, std::uint32_t& first);

struct CompressorHelp {
  std::string name, parameters, summary, constants;
  bool composed = false;  // true if other compressors stand between parentheses after the name
};
std::vector<CompressorHelp> compressor_help();

}  // namespace gradwire
