// Messages between server and clients. A Payload is a view; a PayloadBuffer owns the memory. The codec is
// lossless: only compressors round or drop values. So a payload in memory equals the payload after the
// network, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "base/rng_stream.h"

namespace gradwire {

template <class Real>
using Vec = std::vector<Real>;
template <class Real>
using View = std::span<const Real>;
template <class Real>
using Out = std::span<Real>;

inline constexpr std::uint32_t kMaxDim = 0xFFFFFFFE;  // indices are 32 bits wide

enum class Shape : std::uint8_t {
  kNothing = 0,
  kDense = 1,   // values of shape (dim)
  kSparse = 2,  // values at `indices`, strictly ascending
  kRange = 3,   // values at first, first+1, ... modulo dim
  // The matrix L R of shape (rows, dim / rows), row by row: values are those of L, shape (rows, k), then
  // those of R, shape (k, dim / rows).
  kLowRank = 4,
  // The upper triangle, row by row, of the symmetric matrix sum_l lambda_l u_l u_l^T of shape (m, m), dim =
  // m (m + 1) / 2: values are the lambda_l, then the u_l, each of length m.
  kSymmetric = 5,
};

// The form in which the codec may write the values; it never changes them. In all packings except kPlain each
// value is the product of `unit` and a member of a small set, rounded to Real. So the codec restores every
// bit.
enum class Packing : std::uint8_t {
  kPlain = 0,
  kNatural = 1,   // zeros and signed powers of two: sign and exponent; unit is the same for all vectors
  kTernary = 2,   // -1, 0, 1: five in a byte
  kLevels = 3,    // -levels .. levels: a sign and ceil(log2(levels + 1)) bits
  kSigns = 4,     // -1, 1: one bit
  kDithered = 5,  // 0 and signed 1, 1/2, ..., 2^(1-levels): a sign and ceil(log2(levels + 1)) bits
};

// A packing, as declared by a compressor that rounds values.
template <class Real>
struct Packed {
  Packing packing = Packing::kPlain;
  std::uint16_t levels = 0;  // for kLevels and kDithered
  Real unit = 1;
};

template <class Real>
struct Payload {
  Shape shape = Shape::kNothing;
  Packing packing = Packing::kPlain;
  std::uint16_t levels = 0;  // used by the packing
  std::uint32_t dim = 0;
  std::uint32_t first = 0;
  std::uint32_t rows = 0;  // for kLowRank
  Real unit = 1;           // used by the packing
  std::span<const std::uint32_t> indices;
  View<Real> values;
  // The key from which the support (`indices` or `first`) was drawn, so that the receiver can draw it again.
  // Null if the support was not drawn. `indices` or `first` is set in both cases.
  const RngKey* key = nullptr;
  const Payload* next = nullptr;  // a second summand of the same dim, which has no `next`

  static Payload nothing(std::size_t dim) {
    Payload p;
    p.dim = static_cast<std::uint32_t>(dim);
    return p;
  }
  static Payload dense(View<Real> v) {
    Payload p;
    p.shape = Shape::kDense;
    p.dim = static_cast<std::uint32_t>(v.size());
    p.values = v;
    return p;
  }
};

inline constexpr std::size_t kMaxLinks = 2;  // a payload and its `next`

// Returns the side m of the matrix whose triangle has `entries` = m (m + 1) / 2 entries, or 0 if there is no
// such m.
std::uint32_t triangle_side(std::uint64_t entries);

// Returns ceil(log2 d), the number of bits of an index below d.
std::uint32_t index_bits(std::uint64_t d);

// Returns the number of bits of one value. REQUIRES: all values of the packing have the same size, so it is
// not kPlain or kTernary.
std::uint32_t packed_bits(Packing packing, std::uint32_t levels, std::size_t real_bytes);
// Returns true if the values are sent with a unit that depends on the vector.
constexpr bool sends_unit(Packing packing) { return packing > Packing::kNatural; }

// Returns the size in bits by the definition of the compressor (docs/reference/compressors.md).
// The size depends only on the payload, so a peer cannot claim another one.
template <class Real>
double wire_bits(const Payload<Real>& p);
// Returns the size in bits as papers count it: 32 for a value in any precision, nothing for indices.
template <class Real>
double paper_bits(const Payload<Real>& p);

// Compute out[lo, hi) += scale * decode(p)[lo, hi), where out has shape (dim). Threads can share the work by
// ranges without changing the order of a sum. add_link() omits p.next.
template <class Real>
void add_link(const Payload<Real>& p, Real scale, Out<Real> out, std::size_t lo, std::size_t hi);
template <class Real>
void add_decoded(const Payload<Real>& p, Real scale, Out<Real> out, std::size_t lo, std::size_t hi);
template <class Real>
void add_decoded(const Payload<Real>& p, Real scale, Out<Real> out) {
  add_decoded(p, scale, out, 0, out.size());
}

// An integer type for the bits of |x|.
template <class Real>
using MagnitudeBits = std::conditional_t<sizeof(Real) == 4, std::int32_t, std::int64_t>;

// The coordinates of each client, for all clients at once (PermK). Kept until another key is requested.
struct BlockMemo {
  RngKey key;
  std::uint32_t n = 0, d = 0;  // clients, dimension; n is 0 if the memo is empty
  // indices[begin[i], begin[i+1]) are the coordinates of client i; owners is work space.
  std::vector<std::uint32_t> indices, begin, owners;
};

// The work vector of Scratch for the compressors; their callers use vectors with smaller numbers.
inline constexpr std::size_t kCompressorVec = 8;

// The work space of one thread. Results never depend on what an earlier call left in it.
template <class Real>
class Scratch {
 public:
  // Returns the k-th work vector, of size d, with undefined contents. A compressor may take its buffer and
  // leave another.
  Vec<Real>& vec(std::size_t k, std::size_t d) {
    if (vectors_.size() <= k) vectors_.resize(k + 1);
    if (vectors_[k].size() != d) vectors_[k].resize(d);
    return vectors_[k];
  }
  std::vector<std::uint32_t> order;  // for selection and sampling
  // For local optimizers, which select while `order` holds the batches of the client's steps.
  std::vector<std::uint32_t> order_of_optimizer, selected, places;
  std::vector<std::uint8_t> codes;
  std::vector<MagnitudeBits<Real>> magnitudes;
  std::vector<double> doubles, more_doubles;
  BlockMemo blocks;  // kept between calls, because all clients of a thread need the same blocks

 private:
  std::deque<Vec<Real>> vectors_;  // a deque, so references to its elements survive growth
};

// The owner of a message part that a client or server algorithm has proposed.
template <class Real>
class PayloadBuffer {
 public:
  PayloadBuffer() = default;
  PayloadBuffer(const PayloadBuffer&) = delete;  // not copyable: the view would point into the other buffer
  PayloadBuffer& operator=(const PayloadBuffer&) = delete;
  PayloadBuffer(PayloadBuffer&&) = default;
  PayloadBuffer& operator=(PayloadBuffer&&) = default;

  // Publishes v as a dense payload. Takes the buffer of v and leaves its own old one, with the size of v. So
  // it does not copy, and does not allocate after the first calls.
  const Payload<Real>& whole(Vec<Real>& v);
  // Return the indices and values to fill. One of the functions below then publishes them.
  std::vector<std::uint32_t>& indices() { return indices_; }
  Vec<Real>& values() { return values_; }
  const Payload<Real>& sparse(std::uint32_t dim);
  const Payload<Real>& range(std::uint32_t dim, std::uint32_t first);
  const Payload<Real>& low_rank(std::uint32_t dim, std::uint32_t rows);
  const Payload<Real>& symmetric(std::uint32_t dim);
  const Payload<Real>& nothing(std::uint32_t dim);
  // Sets the packing of the published payload.
  void set_packing(const Packed<Real>& packed) {
    view_.packing = packed.packing;
    view_.levels = packed.levels;
    view_.unit = packed.unit;
  }
  void set_seeded(const RngKey& key) {
    if (key_ == nullptr) key_ = std::make_unique<RngKey>();
    *key_ = key;
    view_.key = key_.get();
  }
  // Multiplies the published payload by c, within its packing.
  void rescale(Real c);
  // Returns the buffer of the second summand; chain() publishes that summand as `next`.
  PayloadBuffer& second();
  const Payload<Real>& chain();
  void clear() { view_ = {}; }
  const Payload<Real>& view() const { return view_; }

 private:
  std::vector<std::uint32_t> indices_;
  Vec<Real> values_;
  Payload<Real> view_;
  // Heap objects, so their addresses do not change when this object is moved.
  std::unique_ptr<RngKey> key_;
  std::unique_ptr<PayloadBuffer> second_;
};

}  // namespace gradwire
