// The local objective f_i : R^d -> R of one client. An open set: users derive from Oracle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace gradwire {

// Sample numbers in [0, sample_count()); repeats are allowed; empty means all samples.
using Batch = std::span<const std::uint32_t>;

// Entries of the upper triangle, diagonal included, of a d x d matrix.
constexpr std::size_t upper_size(std::size_t d) { return d * (d + 1) / 2; }

// How many of a client's test samples the model classifies correctly.
struct Score {
  std::uint64_t correct = 0;
  std::uint64_t tested = 0;
};

template <class Real>
class Oracle {
 public:
  virtual ~Oracle() = default;

  virtual std::size_t dim() const = 0;           // d
  virtual std::size_t sample_count() const = 0;  // m_i; 1 for functions that are no mean over samples

  // Returns the mean loss over `batch` (plus the regulariser) at x, shape (d); writes its gradient, shape
  // (d). The one function every user must write. Equal arguments give equal bits.
  virtual Real loss_and_gradient(std::span<const Real> x, Batch batch, std::span<Real> gradient) = 0;

  // Writes the upper triangle of f_i's Hessian at x (regulariser included) row by row: row a holds the
  // columns a .. d-1. Shape (upper_size(d)). False, and nothing is written, where there is no closed form.
  virtual bool hessian(std::span<const Real> /*x*/, std::span<Real> /*upper*/) { return false; }

  // Accuracy on the test samples this client holds; nothing where accuracy has no meaning.
  virtual std::optional<Score> score(std::span<const Real> /*x*/) { return std::nullopt; }
};

}  // namespace gradwire
