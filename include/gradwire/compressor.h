// Compressors: those of the library by their names, and those of a program.
//
//   const gradwire::NamedCompressor top("topk:k=1%", v.size());
//   const auto sent = top.compress<double>(v);
//   std::printf("%.0f bits\n", sent.bits());
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gradwire/bad_input.h"
#include "gradwire/random.h"
#include "gradwire/version.h"

namespace gradwire {

// The constants of a compressor on R^d that theory needs, also for n clients that use it.
struct CompressorConstants {
  bool unbiased = false;  // E C(x) = x
  double omega = 0;       // if unbiased: E ||C(x) - x||^2 <= omega ||x||^2
  double alpha = 0;       // E ||C(x) - x||^2 <= (1 - alpha) ||x||^2; 0 if the compressor is not contractive
  double zeta = 0;        // expected number of sent numbers (for toplek an upper bound)
  // For an unbiased compressor: E ||mean C_i(a_i) - mean a_i||^2 <= A mean ||a_i||^2 - B ||mean a_i||^2 over
  // the n clients (the AB inequality, arXiv:2110.03300). All means have the same weights w_i.
  double A = 0, B = 0;

  // Returns the constants of an unbiased compressor. With omega < 1 it is also contractive, without scaling.
  static CompressorConstants of_unbiased(double omega, double zeta) {
    return {true, omega, omega < 1 ? 1 - omega : 0, zeta, omega, 0};
  }
  static CompressorConstants of_contractive(double alpha, double zeta) {
    return {alpha == 1, 0, alpha, zeta, 0, 0};
  }
  // Returns the constants for n clients that draw independently.
  CompressorConstants independent(std::uint32_t n) const {
    CompressorConstants q = *this;
    q.A = unbiased ? omega / n : 0;
    return q;
  }
  // Returns the constants for any weights w_i from those for equal weights; skew is n max w_i. The errors of
  // the clients add up to at most A n sum w_i^2 ||a_i||^2, and B is unchanged.
  CompressorConstants weighted(double skew) const {
    CompressorConstants q = *this;
    q.A *= skew;
    return q;
  }
};

template <class Real>
struct CompressedContent;  // private

// A vector of R^d as it is sent. Copies share the content, which does not change. Real is float or double.
template <class Real>
class GRADWIRE_API Compressed {
 public:
  // All entries of a vector.
  static Compressed whole(std::vector<Real> values);
  // The entries values[k] at indices[k], which ascend and are below d; the others are 0. Throws
  // std::logic_error for other indices.
  static Compressed entries(std::size_t d, std::vector<std::uint32_t> indices, std::vector<Real> values);

  std::size_t dim() const;  // d
  // Returns the indices of the entries that are sent, ascending. Empty if all entries, a product of
  // matrices, or a sum of two vectors is sent.
  std::vector<std::uint32_t> indices() const;
  std::vector<Real> values() const;  // the numbers that are sent
  double bits() const;               // by the definition of the compressor (docs/reference/compressors.md)
  double paper_bits() const;         // as papers count: 32 for a number in any precision, nothing for indices

  std::vector<Real> to_vector() const;  // shape (d)
  // Computes out += scale C(v); out has shape (d). Throws std::logic_error for another shape.
  void add_to(std::span<Real> out, Real scale = 1) const;

  explicit Compressed(std::shared_ptr<const CompressedContent<Real>> content);  // for the library
  const CompressedContent<Real>& content() const { return *content_; }

 private:
  std::shared_ptr<const CompressedContent<Real>> content_;
};

// The numbers that determine what a random compressor draws. Equal draws give equal bits.
struct CompressorDraw {
  std::uint64_t seed = 1;
  std::uint32_t round = 0, client = 0;
  std::uint32_t part = 0;  // number of the message's part, below 4
};

struct NamedCompressorContent;  // private

// A compressor of the library, as `gradwire list compressors` names them: "topk:k=1%", "natural(randk:k=10)".
class GRADWIRE_API NamedCompressor {
 public:
  // For vectors of length d. `clients` is n, for compressors whose clients share draws (permk). Throws
  // BadInput that suggests the nearest known word.
  NamedCompressor(std::string_view spec, std::size_t d, std::uint32_t clients = 1);

  std::string spec() const;  // with counts in place of shares
  CompressorConstants constants() const;
  // Compresses v, shape (d). Throws std::logic_error for another shape. May be called by several threads. If
  // an entry is not finite, the whole v is sent, so that the receiver notices.
  template <class Real>
  Compressed<Real> compress(std::span<const Real> v, const CompressorDraw& draw = {}) const;

 private:
  std::shared_ptr<const NamedCompressorContent> content_;
};

// A compressor of a program, for TrainOptions::compressor. Its functions are called by several threads.
template <class Real>
class UserCompressor {
 public:
  virtual ~UserCompressor() = default;

  virtual std::string name() const = 0;
  // Returns the constants for one client; clients draw independently.
  virtual CompressorConstants constants(std::size_t d) const = 0;
  // Compresses v, shape (d). Equal arguments must give equal results.
  virtual Compressed<Real> compress(std::span<const Real> v, RandomStream& random) const = 0;
  // Returns the indices that compress() sends, if they depend only on d and on the same random numbers. The
  // receiver then draws them again, and they cost no bits.
  virtual std::optional<std::vector<std::uint32_t>> drawn_indices(std::size_t d, RandomStream& random) const {
    (void)d, (void)random;
    return std::nullopt;
  }
};

}  // namespace gradwire
