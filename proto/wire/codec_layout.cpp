#include "proto/wire/codec_layout.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace gradwire {
namespace {

static_assert(static_cast<int>(Shape::kNothing) == wire::SHAPE_NOTHING);
static_assert(static_cast<int>(Shape::kDense) == wire::SHAPE_DENSE);
static_assert(static_cast<int>(Shape::kSparse) == wire::SHAPE_SPARSE);
static_assert(static_cast<int>(Shape::kRange) == wire::SHAPE_RANGE);
static_assert(static_cast<int>(Shape::kLowRank) == wire::SHAPE_LOW_RANK);
static_assert(static_cast<int>(Shape::kSymmetric) == wire::SHAPE_SYMMETRIC);

// Packing k is 2k - 1 on the wire, and 2k if its values are written plainly.
static_assert(2 * static_cast<int>(Packing::kNatural) == wire::PACKING_NATURAL_AS_PLAIN);
static_assert(2 * static_cast<int>(Packing::kTernary) == wire::PACKING_TERNARY_AS_PLAIN);
static_assert(2 * static_cast<int>(Packing::kLevels) == wire::PACKING_LEVELS_AS_PLAIN);
static_assert(2 * static_cast<int>(Packing::kSigns) == wire::PACKING_SIGNS_AS_PLAIN);
static_assert(2 * static_cast<int>(Packing::kDithered) == wire::PACKING_DITHERED_AS_PLAIN);

wire::Packing wire_packing(const Layout& layout) {
  const int k = static_cast<int>(layout.packing);
  return static_cast<wire::Packing>(k == 0 || layout.as_plain ? 2 * k : 2 * k - 1);
}

void set_section_sizes(Layout& layout, std::size_t real_bytes) {
  const bool has_indices = layout.shape == Shape::kSparse && !layout.seeded;
  layout.index_bytes = has_indices ? index_section_bytes(layout.dim, layout.count) : 0;
  layout.value_bytes = layout.is_packed()
                           ? value_section_bytes(layout.packing, layout.levels, layout.count, real_bytes)
                           : std::uint64_t{layout.count} * real_bytes;
}

// Returns whether `count` values can be the two factors of a matrix of `dim` entries in `rows` rows.
bool is_low_rank(std::uint64_t dim, std::uint64_t rows, std::uint64_t count) {
  if (rows == 0 || dim == 0 || dim % rows != 0) return false;
  const std::uint64_t cols = dim / rows;
  return count % (rows + cols) == 0 && count / (rows + cols) <= std::min(rows, cols);
}

// Returns whether `count` values can be some eigenvalues and their eigenvectors, of a symmetric matrix whose
// triangle has `dim` entries.
bool is_symmetric(std::uint64_t dim, std::uint64_t count) {
  const std::uint64_t m = triangle_side(dim);
  return m > 0 && count % (m + 1) == 0 && count / (m + 1) <= m;
}

template <class Real>
bool consistent(const Payload<Real>& p) {
  switch (p.shape) {
    case Shape::kNothing: return p.values.empty();
    case Shape::kDense: return p.values.size() == p.dim;
    case Shape::kSparse:
      return p.values.size() <= p.dim && p.indices.size() == p.values.size() &&
             (p.indices.empty() || p.indices.back() < p.dim);
    case Shape::kRange: return p.values.size() <= p.dim && (p.dim == 0 || p.first < p.dim);
    case Shape::kLowRank: return is_low_rank(p.dim, p.rows, p.values.size());
    case Shape::kSymmetric: return is_symmetric(p.dim, p.values.size());
  }
  return false;
}

// Accepts a compressed section only if the raw one has at least kZstdMinBytes and is larger.
bool good_zstd_size(std::uint64_t sent, std::uint64_t raw) {
  return raw >= kZstdMinBytes && sent > 0 && sent < raw;
}

}  // namespace

template <class Real>
Layout layout_of(const Payload<Real>& p, bool seeded) {
  if (!consistent(p))
    throw std::logic_error("codec: the payload's dim, indices and values do not fit together");
  Layout layout;
  layout.shape = p.shape;
  layout.seeded = seeded && (p.shape == Shape::kSparse || p.shape == Shape::kRange);
  layout.dim = p.dim;
  layout.count = static_cast<std::uint32_t>(p.values.size());
  layout.first = p.first;
  layout.rows = p.rows;
  layout.continued = p.next != nullptr;
  layout.packing = p.packing;
  layout.levels = p.levels;
  layout.unit = static_cast<double>(p.unit);
  layout.as_plain = p.packing != Packing::kPlain &&
                    !fits_packing<Real>(p.values, Packed<Real>{p.packing, p.levels, p.unit});
  set_section_sizes(layout, sizeof(Real));
  return layout;
}

void write_layout(const Layout& layout, wire::Part& to) {
  to.set_shape(static_cast<wire::Shape>(layout.shape));
  to.set_packing(wire_packing(layout));
  if (layout.seeded) to.set_seeded(true);
  to.set_dim(layout.dim);
  if (layout.has_count()) to.set_count(layout.count);
  if (layout.has_first()) to.set_first(layout.first);
  if (layout.has_unit()) to.set_unit(layout.unit);
  if (layout.has_levels()) to.set_levels(layout.levels);
  if (layout.rows != 0) to.set_rows(layout.rows);
  if (layout.continued) to.set_continued(true);
  if (layout.index_zstd != 0) to.set_index_zstd_bytes(layout.index_zstd);
  if (layout.value_zstd != 0) to.set_value_zstd_bytes(layout.value_zstd);
}

namespace {

constexpr std::uint32_t kMostLevels = 65535, kMostHalvings = 100;

// Reads unit, levels and rows. Each must be present exactly if packing or shape needs it.
Status read_packing(const wire::Part& from, std::size_t real_bytes, Layout& layout) {
  const auto packing = static_cast<std::uint32_t>(from.packing());
  layout.packing = static_cast<Packing>((packing + 1) / 2);
  layout.as_plain = packing > 0 && packing % 2 == 0;
  layout.levels = from.levels();
  const std::uint32_t most = layout.packing == Packing::kLevels ? kMostLevels : kMostHalvings;
  if (from.has_levels() != layout.has_levels() ||
      (layout.has_levels() && (layout.levels == 0 || layout.levels > most)))
    return Error{"levels do not belong to this packing, or are missing or too many"};
  layout.unit = from.has_unit() ? from.unit() : 1;
  if (from.has_unit() != layout.has_unit())
    return Error{"a unit does not belong to this packing, or is missing"};
  const double largest =
      real_bytes == 4 ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
  if (!(layout.unit >= 0 && layout.unit <= largest) || (layout.is_packed() && layout.unit == 0))
    return Error{"the unit of a packing is invalid"};
  layout.rows = from.rows();
  if (from.has_rows() != (layout.shape == Shape::kLowRank))
    return Error{"rows do not belong to this shape, or are missing"};
  return Unit{};
}

}  // namespace

Result<Layout> read_layout(const wire::Part& from, std::uint32_t max_dim, std::size_t real_bytes,
                           bool may_be_seeded) {
  if (!from.has_shape() || !from.has_packing() || !from.has_dim()) {
    return Error{"shape, packing or dim is missing or unknown"};
  }
  Layout layout;
  layout.shape = static_cast<Shape>(from.shape());
  if (Status s = read_packing(from, real_bytes, layout); !s) return s.error();
  layout.continued = from.continued();
  layout.seeded = from.seeded();
  layout.dim = from.dim();
  if (layout.dim > max_dim) return Error{"a vector is longer than the dimension of the run"};
  if (from.has_count() != layout.has_count())
    return Error{"count does not belong to this shape, or is missing"};
  if (layout.seeded && (!may_be_seeded || (layout.shape != Shape::kSparse && layout.shape != Shape::kRange)))
    return Error{"this part cannot be seeded"};
  if (from.has_first() != layout.has_first())
    return Error{"first does not belong to this shape, or is missing"};
  layout.count = layout.has_count() ? from.count() : layout.shape == Shape::kDense ? layout.dim : 0;
  if (layout.shape == Shape::kLowRank) {
    if (!is_low_rank(layout.dim, layout.rows, layout.count))
      return Error{"the factors of a low rank do not fit the vector"};
  } else if (layout.shape == Shape::kSymmetric) {
    if (!is_symmetric(layout.dim, layout.count))
      return Error{"eigenvalues and eigenvectors do not fit the triangle of a matrix"};
  } else if (layout.count > layout.dim) {
    return Error{"more values than coordinates"};
  }
  layout.first = from.first();
  if (layout.has_first() && layout.first >= layout.dim && layout.first != 0) {
    return Error{"the range begins outside the vector"};
  }
  set_section_sizes(layout, real_bytes);
  layout.index_zstd = from.index_zstd_bytes();
  layout.value_zstd = from.value_zstd_bytes();
  if ((from.has_index_zstd_bytes() && !good_zstd_size(layout.index_zstd, layout.index_bytes)) ||
      (from.has_value_zstd_bytes() && !good_zstd_size(layout.value_zstd, layout.value_bytes))) {
    return Error{"the size of a compressed section is invalid"};
  }
  return layout;
}

template Layout layout_of<float>(const Payload<float>&, bool);
template Layout layout_of<double>(const Payload<double>&, bool);

}  // namespace gradwire
