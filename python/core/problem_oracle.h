// The library's own function of one client of a gw.Problem.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include "gradwire/problem.h"

namespace gradwire::python {

class ProblemOracle {
 public:
  ProblemOracle(Problem problem, std::uint32_t client) : problem_(std::move(problem)), client_(client) {}

  // Returns another oracle of the same function, for a run.
  template <class Real>
  std::unique_ptr<Oracle<Real>> make() const {
    return problem_.oracle<Real>(client_);
  }
  // Calls f(oracle), one thread at a time.
  template <class Real, class F>
  auto with(F&& f) {
    const std::lock_guard lock(mutex_);
    auto& oracle = std::get<std::unique_ptr<Oracle<Real>>>(oracles_);
    if (oracle == nullptr) oracle = make<Real>();
    return f(*oracle);
  }

 private:
  const Problem problem_;
  const std::uint32_t client_;
  std::mutex mutex_;
  std::tuple<std::unique_ptr<Oracle<float>>, std::unique_ptr<Oracle<double>>>
      oracles_;  // null until first used
};

}  // namespace gradwire::python
