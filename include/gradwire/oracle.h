// The local objective f_i : R^d -> R of one client. Users derive from Oracle.
//
// Every oracle implements loss_and_gradient(). The optional operations have defaults that use it; oracles
// override them if they can do better. docs/reference/oracle_operations.md has an example of each, with its
// cost.
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

#include "gradwire/coordinates.h"

namespace gradwire {

// Sample numbers in [0, sample_count()). Repeats are allowed. An empty batch means all samples.
using Batch = std::span<const std::uint32_t>;

// Returns the number of entries of the upper triangle of a d x d matrix, with the diagonal.
constexpr std::size_t upper_size(std::size_t d) { return d * (d + 1) / 2; }

// The numbers of a client's test samples: those that the model classifies correctly, and all.
struct Score {
  std::uint64_t correct = 0;
  std::uint64_t tested = 0;
};

// Randomised backpropagation (Oktay et al., arXiv:2007.10412). Keeps a random `share` of the paths, and
// divides each by its probability. The gradient is unbiased; `key` determines the paths.
struct RandomPaths {
  double share = 1;  // in (0, 1]; 1 for all paths
  std::uint64_t key = 0;
};

// Options of a gradient computation. Members may be combined.
struct GradientOptions {
  // The coordinates of the gradient that are needed; the others are unspecified afterwards.
  Coordinates wanted = {};
  // A flag that another thread may set to stop the call. That thread may then wait for the call to return.
  // The output of a stopped call is unspecified.
  const std::atomic<bool>* stop = nullptr;
  // Called by the computing thread with ranges whose wanted coordinates are final. Each wanted coordinate is
  // reported once. All are reported before the call returns, unless it was stopped.
  std::function<void(CoordinateRange)> finished = {};
  RandomPaths paths = {};
};

// Throws std::logic_error for coordinates outside R^d and for a share outside (0, 1].
inline void check_options(const GradientOptions& options, std::size_t d) {
  options.wanted.check(d);
  if (!(options.paths.share > 0 && options.paths.share <= 1))
    throw std::logic_error("the share of paths must be in (0, 1], not " +
                           std::to_string(options.paths.share));
}

inline bool stopped(const std::atomic<bool>* stop) {
  return stop != nullptr && stop->load(std::memory_order_relaxed);
}

// Threads of the caller for a computation. The engine itself has none.
// Calls body(item) once for each item in [0, items), on at most `threads` threads at a time, the caller's
// included. Returns when all calls have returned, and rethrows the first exception. It must not be called
// from within a body.
struct WorkSharing {
  unsigned threads = 1;
  std::function<void(std::size_t items, const std::function<void(std::size_t item)>& body)> for_each;
};

// The local training of a client in one round. fedavg, fedprox, fedbuff, fedadagrad, fedyogi and fedadam ask
// for it.
struct LocalTraining {
  std::uint32_t round = 0;
  std::uint32_t steps = 1;   // K; not read if epochs > 0
  std::uint32_t epochs = 0;  // passes over the samples, or 0 for K steps
  std::uint32_t batch = 0;   // samples of a step; 0 for all
  double step_size = 0;      // gamma_l of this round
  double proximal = 0;       // mu of fedprox: each gradient gets mu (y - x), where x is y at the start
  std::uint64_t seed = 0;    // for the random choices of this client in this round
};

template <class Real>
struct TwoLosses {
  Real x, y;
};

// The value of f_i and its derivative in a direction.
template <class Real>
struct Directional {
  Real loss, derivative;
};

// Called for sample k of a batch once its gradient is in the caller's buffer.
template <class Real>
using TakeSample = std::function<void(std::size_t k, Real loss)>;

template <class Real>
class Oracle {
 public:
  using Reals = std::span<const Real>;
  using RealsOut = std::span<Real>;

  virtual ~Oracle() = default;

  virtual std::size_t dim() const = 0;           // d
  virtual std::size_t sample_count() const = 0;  // m_i; 1 for functions that are not a mean over samples

  // Returns the mean loss over `batch` (plus the regularizer) at x, shape (d), and writes its gradient, shape
  // (d). Every user must implement this function. Equal arguments must give equal bits.
  virtual Real loss_and_gradient(Reals x, Batch batch, RealsOut gradient) = 0;

  // Writes the upper triangle of f_i's Hessian at x (with the regularizer) row by row: row a holds the
  // columns a .. d-1. Shape (upper_size(d)). Returns false and writes nothing if there is no closed form.
  virtual bool hessian(Reals /*x*/, RealsOut /*upper*/) { return false; }

  // Returns the accuracy on the client's test samples, or nullopt if accuracy is undefined.
  virtual std::optional<Score> score(Reals /*x*/) { return std::nullopt; }

  // ---- optional operations ----

  // Lets later calls use these threads, which changes no bit of a result. Returns false if this oracle always
  // computes on the caller's thread.
  virtual bool share_work(const WorkSharing& /*sharing*/) { return false; }

  // Works like loss_and_gradient() with options. Returns nullopt if it was stopped. If all paths are kept,
  // the wanted coordinates have the bits of loss_and_gradient().
  virtual std::optional<Real> compute(Reals x, Batch batch, RealsOut gradient,
                                      const GradientOptions& options) {
    check_options(options, dim());
    if (stopped(options.stop)) return std::nullopt;
    const Real loss = loss_and_gradient(x, batch, gradient);
    if (options.finished) options.finished({0, gradient.size()});
    return loss;
  }

  // Predicts the time of compute() for these coordinates as a share of the time of a full gradient, in (0,
  // 1].
  virtual double cost(const Coordinates& wanted) const {
    wanted.check(dim());
    return 1;
  }

  // Returns only the mean loss, with the bits of loss_and_gradient().
  virtual Real loss(Reals x, Batch batch) {
    std::vector<Real> gradient(dim());
    return loss_and_gradient(x, batch, gradient);
  }

  // Returns f_i(x) over `batch` and its derivative in the direction v. The shape of v is (d).
  virtual Directional<Real> directional(Reals x, Reals v, Batch batch) {
    check_vector(v.size());
    std::vector<Real> gradient(dim());
    const Real loss = loss_and_gradient(x, batch, gradient);
    double derivative = 0;
    for (std::size_t j = 0; j < v.size(); ++j)
      derivative += static_cast<double>(gradient[j]) * static_cast<double>(v[j]);
    return {loss, static_cast<Real>(derivative)};
  }

  // Computes the gradients at x and at y over one batch into different arrays, with the bits of two calls.
  virtual TwoLosses<Real> two_gradients(Reals x, Reals y, Batch batch, RealsOut at_x, RealsOut at_y) {
    const Real loss = loss_and_gradient(x, batch, at_x);
    return {loss, loss_and_gradient(y, batch, at_y)};
  }

  // Trains y, shape (d), in place on the client's samples, with an optimizer of its own. Returns the mean
  // loss at the first y. By default it returns nullopt and leaves y, and the algorithm takes its own steps.
  // Equal arguments must give equal bits.
  virtual std::optional<Real> train(RealsOut /*y*/, const LocalTraining& /*training*/) {
    return std::nullopt;
  }

  // Goes through the samples in the order of `batch`. For each it writes the gradient of the sample's loss
  // (plus the regularizer) to `buffer`, shape (d), and calls take(k, loss). The bits are those of a batch of
  // that sample.
  virtual void sample_gradients(Reals x, Batch batch, RealsOut buffer, const TakeSample<Real>& take) {
    for_samples(batch, [&](std::size_t k, Batch one) { take(k, loss_and_gradient(x, one, buffer)); });
  }

  // Writes the mean over `batch` of min(1, norm_bound / ||g_j||) g_j, where g_j is the gradient of sample j
  // from sample_gradients() (Abadi et al., arXiv:1607.00133). Returns the mean loss. A gradient that is not
  // finite stays not finite. REQUIRES: norm_bound > 0.
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
  // Returns min(1, norm_bound / sqrt(square)).
  static double clip_factor(double norm_bound, double square) {
    const double factor = norm_bound / std::sqrt(square);  // computed in both cases to avoid a branch
    return square <= norm_bound * norm_bound ? 1.0 : factor;
  }
  static void check_norm_bound(double norm_bound) {
    if (!(norm_bound > 0))
      throw std::logic_error("the norm bound of clipped gradients must be positive, not " +
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
