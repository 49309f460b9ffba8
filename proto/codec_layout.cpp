#include "proto/codec_layout.h"

#include <stdexcept>

namespace gradwire {
namespace {

static_assert(static_cast<int>(Shape::kNothing) == wire::SHAPE_NOTHING);
static_assert(static_cast<int>(Shape::kDense) == wire::SHAPE_DENSE);
static_assert(static_cast<int>(Shape::kSparse) == wire::SHAPE_SPARSE);
static_assert(static_cast<int>(Shape::kRange) == wire::SHAPE_RANGE);

void set_section_sizes(Layout& layout, std::size_t real_bytes) {
  const bool has_indices = layout.shape == Shape::kSparse && !layout.seeded;
  layout.index_bytes = has_indices ? index_section_bytes(layout.dim, layout.count) : 0;
  layout.value_bytes =
      layout.packing == wire::PACKING_NATURAL
          ? packed_bytes(layout.count, real_bytes == 4 ? kNaturalBits<float> : kNaturalBits<double>)
          : std::uint64_t{layout.count} * real_bytes;
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
  }
  return false;
}

// A compressed section replaces a raw one that may be compressed at all, and is smaller.
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
  if (p.packing == Packing::kNatural) {
    layout.packing = is_natural<Real>(p.values) ? wire::PACKING_NATURAL : wire::PACKING_NATURAL_AS_PLAIN;
  }
  set_section_sizes(layout, sizeof(Real));
  return layout;
}

void write_layout(const Layout& layout, wire::Part& to) {
  to.set_shape(static_cast<wire::Shape>(layout.shape));
  to.set_packing(layout.packing);
  if (layout.seeded) to.set_seeded(true);
  to.set_dim(layout.dim);
  if (layout.has_count()) to.set_count(layout.count);
  if (layout.has_first()) to.set_first(layout.first);
  if (layout.index_zstd != 0) to.set_index_zstd_bytes(layout.index_zstd);
  if (layout.value_zstd != 0) to.set_value_zstd_bytes(layout.value_zstd);
}

Result<Layout> read_layout(const wire::Part& from, std::uint32_t max_dim, std::size_t real_bytes,
                           bool may_be_seeded) {
  if (!from.has_shape() || !from.has_packing() || !from.has_dim()) {
    return Error{"shape, packing or dim is missing or unknown"};
  }
  Layout layout;
  layout.shape = static_cast<Shape>(from.shape());
  layout.packing = from.packing();
  layout.seeded = from.seeded();
  layout.dim = from.dim();
  if (layout.dim > max_dim) return Error{"a vector is longer than the dimension of the run"};
  if (from.has_count() != layout.has_count())
    return Error{"count does not belong to this shape, or is missing"};
  if (layout.seeded && (!may_be_seeded || !layout.has_count())) return Error{"this part cannot be seeded"};
  if (from.has_first() != layout.has_first())
    return Error{"first does not belong to this shape, or is missing"};
  layout.count = layout.has_count() ? from.count() : layout.shape == Shape::kDense ? layout.dim : 0;
  if (layout.count > layout.dim) return Error{"more values than coordinates"};
  layout.first = from.first();
  if (layout.has_first() && layout.first >= layout.dim && layout.first != 0) {
    return Error{"the range begins outside of the vector"};
  }
  set_section_sizes(layout, real_bytes);
  layout.index_zstd = from.index_zstd_bytes();
  layout.value_zstd = from.value_zstd_bytes();
  if ((from.has_index_zstd_bytes() && !good_zstd_size(layout.index_zstd, layout.index_bytes)) ||
      (from.has_value_zstd_bytes() && !good_zstd_size(layout.value_zstd, layout.value_bytes))) {
    return Error{"the size of a compressed section makes no sense"};
  }
  return layout;
}

template Layout layout_of<float>(const Payload<float>&, bool);
template Layout layout_of<double>(const Payload<double>&, bool);

}  // namespace gradwire
