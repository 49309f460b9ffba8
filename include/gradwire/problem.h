// The problem of an experiment: the library's own functions of its clients, their constants, and f*.
//
//   const gradwire::Problem problem(gradwire::Experiment::load("quadratics.toml"));
//   const auto f_0 = problem.oracle<double>(0);
//   const double step = 1 / problem.constants().L;
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "gradwire/data.h"
#include "gradwire/experiment.h"
#include "gradwire/oracle.h"

namespace gradwire {

// The smoothness of f = sum_i w_i f_i and of each f_i.
struct ProblemConstants {
  double L = 0;             // ||grad f(x) - grad f(y)|| <= L ||x - y||
  double mu = 0;            // strong convexity of f; 0 if unknown or none
  std::vector<double> L_i;  // shape (n)
  bool estimated = false;   // true if these are the largest curvatures that were found near the start
};

// Copies share the samples, which do not change.
class GRADWIRE_API Problem {
 public:
  // Reads the samples. `data` and `test` replace problem.data and problem.test, as in TrainOptions. Throws
  // BadInput (one line).
  explicit Problem(const Experiment& experiment, const std::optional<Data>& data = {},
                   const std::optional<Data>& test = {});

  std::size_t dim() const;                     // d
  std::uint32_t clients() const;               // n
  const std::vector<double>& weights() const;  // w_i, shape (n)
  const std::vector<double>& start() const;    // the point that run.x0 names, shape (d)

  // Returns the function of a client, with the bits of a run. Several oracles may compute at the same time,
  // but not two of the same client. Throws std::out_of_range.
  template <class Real>
  std::unique_ptr<Oracle<Real>> oracle(std::uint32_t client) const;

  // Returns f(x), and writes its gradient, shape (d).
  double loss_and_gradient(std::span<const double> x, std::span<double> gradient) const;

  // Returns the constants, in closed form if the kind has one; otherwise estimates them. Throws DataError.
  ProblemConstants constants() const;
  // Returns f*, or nullopt if f is not known to be convex or no minimum was found. Throws DataError.
  std::optional<double> f_star() const;

 private:
  struct Content;
  std::shared_ptr<const Content> content_;
};

}  // namespace gradwire
