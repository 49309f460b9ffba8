// The local objective f_i : R^d -> R of one client. An open set: users derive from Oracle.
//
// One function is to be written, loss_and_gradient(). The others, the "powers", have defaults made of it;
// oracles that can do better override them. docs/engine.md has an example of each, and what each costs.
#pragma once

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/coordinates.h"

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

// Randomised backpropagation (Oktay et al., arXiv:2007.10412): a random `share` of the paths, each divided
// by its probability. The gradient is unbiased; `key` decides which paths.
struct RandomPaths {
  double share = 1;  // in (0, 1]; 1: all
  std::uint64_t key = 0;
};

// How a gradient is to be computed. Members may be combined.
struct GradientOptions {
  // Only these coordinates of the gradient are needed; what the others hold afterwards is unspecified.
  Coordinates wanted = {};
  // Another thread may set it, and may wait for the call to return: what the call has written by then is
  // unspecified.
  const std::atomic<bool>* stop = nullptr;
  // Called by the computing thread with ranges whose wanted coordinates are final from then on. No wanted
  // coordinate comes twice, and all have come when the call returns, unless it was stopped.
  std::function<void(CoordinateRange)> finished = {};
  RandomPaths paths = {};
};

// Throws std::logic_error for coordinates that R^d does not have, and for a share outside (0, 1].
inline void check_options(const GradientOptions& options, std::size_t d) {
  options.wanted.check(d);
  if (!(options.paths.share > 0 && options.paths.share <= 1))
    throw std::logic_error("the share of paths must be in (0, 1], not " +
                           std::to_string(options.paths.share));
}

inline bool stopped(const std::atomic<bool>* stop) {
  return stop != nullptr && stop->load(std::memory_order_relaxed);
}

template <class Real>
struct TwoLosses {
  Real x, y;
};

// f_i and its derivative in a direction.
template <class Real>
struct Directional {
  Real loss, derivative;
};

// Told about sample k of a batch once its gradient is in the caller's buffer.
template <class Real>
using TakeSample = std::function<void(std::size_t k, Real loss)>;

template <class Real>
class Oracle {
 public:
  using Reals = std::span<const Real>;
  using RealsOut = std::span<Real>;

  virtual ~Oracle() = default;

  virtual std::size_t dim() const = 0;           // d
  virtual std::size_t sample_count() const = 0;  // m_i; 1 for functions that are no mean over samples

  // Returns the mean loss over `batch` (plus the regulariser) at x, shape (d); writes its gradient, shape
  // (d). The one function every user must write. Equal arguments give equal bits.
  virtual Real loss_and_gradient(Reals x, Batch batch, RealsOut gradient) = 0;

  // Writes the upper triangle of f_i's Hessian at x (regulariser included) row by row: row a holds the
  // columns a .. d-1. Shape (upper_size(d)). False, and nothing is written, where there is no closed form.
  virtual bool hessian(Reals /*x*/, RealsOut /*upper*/) { return false; }

  // Accuracy on the test samples this client holds; nothing where accuracy has no meaning.
  virtual std::optional<Score> score(Reals /*x*/) { return std::nullopt; }

  // ---- powers ----

  // loss_and_gradient() with options; nothing when it was stopped. Where all paths are kept, the wanted
  // coordinates have the bits of loss_and_gradient().
  virtual std::optional<Real> compute(Reals x, Batch batch, RealsOut gradient,
                                      const GradientOptions& options) {
    check_options(options, dim());
    if (stopped(options.stop)) return std::nullopt;
    const Real loss = loss_and_gradient(x, batch, gradient);
    if (options.finished) options.finished({0, gradient.size()});
    return loss;
  }

  // Predicts what compute() takes for these coordinates, as a share of a full gradient's time, in (0, 1].
  virtual double cost(const Coordinates& wanted) const {
    wanted.check(dim());
    return 1;
  }

  // The mean loss alone; the bits of loss_and_gradient().
  virtual Real loss(Reals x, Batch batch) {
    std::vector<Real> gradient(dim());
    return loss_and_gradient(x, batch, gradient);
  }

  // f_i over `batch`, and its derivative at x in the direction v, shape (d).
  virtual Directional<Real> directional(Reals x, Reals v, Batch batch) {
    check_vector(v.size());
    std::vector<Real> gradient(dim());
    const Real loss = loss_and_gradient(x, batch, gradient);
    double derivative = 0;
    for (std::size_t j = 0; j < v.size(); ++j)
      derivative += static_cast<double>(gradient[j]) * static_cast<double>(v[j]);
    return {loss, static_cast<Real>(derivative)};
  }

  // The gradients at x and at y over one batch, to different arrays; the bits of two calls.
  virtual TwoLosses<Real> two_gradients(Reals x, Reals y, Batch batch, RealsOut at_x, RealsOut at_y) {
    const Real loss = loss_and_gradient(x, batch, at_x);
    return {loss, loss_and_gradient(y, batch, at_y)};
  }

  // Sample by sample, in the order of `batch`: writes the gradient of a sample's loss (plus the regulariser)
  // to `buffer`, shape (d), and calls take(k, its loss). The bits of a batch of that sample alone.
  virtual void sample_gradients(Reals x, Batch batch, RealsOut buffer, const TakeSample<Real>& take) {
    for_samples(batch, [&](std::size_t k, Batch one) { take(k, loss_and_gradient(x, one, buffer)); });
  }

  // Writes the mean over `batch` of min(1, norm_bound / ||g_j||) g_j, where g_j is the gradient of sample j
  // as sample_gradients() has it (Abadi et al., arXiv:1607.00133); returns the mean loss. REQUIRES:
  // norm_bound > 0. A gradient that is not finite stays so.
  virtual Real clipped_gradient(Reals x, Batch batch, double norm_bound, RealsOut gradient) {
    check_norm_bound(norm_bound);
    check_vector(gradient.size());
    std::fill(gradient.begin(), gradient.end(), Real(0));
    std::vector<Real> buffer(dim());
    const double share = 1 / static_cast<double>(batch.empty() ? sample_count() : batch.size());
    double loss = 0;
    sample_gradients(x, batch, buffer, [&](std::size_t, Real sample_loss) {
      loss += static_cast<double>(sample_loss);
      double square = 0;
      for (const Real g : buffer) square += static_cast<double>(g) * static_cast<double>(g);
      const Real factor = static_cast<Real>(clip_factor(norm_bound, square) * share);
      for (std::size_t j = 0; j < buffer.size(); ++j) gradient[j] += factor * buffer[j];
    });
    return static_cast<Real>(loss * share);
  }

 protected:
  // min(1, norm_bound / sqrt(square))
  static double clip_factor(double norm_bound, double square) {
    const double factor = norm_bound / std::sqrt(square);  // also where it is not used: no branch to predict
    return square <= norm_bound * norm_bound ? 1.0 : factor;
  }
  static void check_norm_bound(double norm_bound) {
    if (!(norm_bound > 0))
      throw std::logic_error("gradients are clipped at a positive norm, not at " +
                             std::to_string(norm_bound));
  }
  // Calls f(k, batch of one) for each sample of `batch`.
  template <class F>
  void for_samples(Batch batch, F&& f) const {
    const std::size_t count = batch.empty() ? sample_count() : batch.size();
    for (std::size_t k = 0; k < count; ++k) {
      const std::uint32_t sample = batch.empty() ? static_cast<std::uint32_t>(k) : batch[k];
      f(k, Batch(&sample, 1));
    }
  }

 private:
  void check_vector(std::size_t length) const {
    if (length != dim())
      throw std::logic_error("an oracle of dimension " + std::to_string(dim()) +
                             " was given a vector of length " + std::to_string(length));
  }
};

}  // namespace gradwire
