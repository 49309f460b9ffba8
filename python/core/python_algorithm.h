// Algorithms whose two parts are written in Python.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gradwire/algorithm.h"
#include "python/core/arrays.h"
#include "python/core/callbacks.h"
#include "python/core/python_oracle.h"

namespace gradwire::python {

// The functions of a gw.Algorithm of Python, for one run. Made and destroyed with the GIL.
struct AlgorithmParts {
  AlgorithmParts(const py::handle& algorithm, Callbacks& run);

  std::string name;
  py::object start, client, server;
  py::object asks_all, cohort, broadcast;  // None unless the class defines them
  py::object dumps, loads;                 // those of pickle
  Callbacks& callbacks;
  Arrays client_arrays, server_arrays;
  // The states before round 0, once start() was called, and its argument: the runs of a sweep may have
  // others.
  std::optional<std::vector<std::byte>> client_state, server_state;
  std::vector<std::byte> start_point;
};

// Several copies share `parts`, which must outlive them.
//
// A state is one vector of numbers, which holds any object of Python by value. None is empty. A vector in the
// precision of the run is copied, and all else becomes the bytes of pickle; the last number says which. So
// the library keeps, saves and drops it like any other state.
template <class Real>
class PythonAlgorithm : public UserAlgorithm<Real> {
 public:
  explicit PythonAlgorithm(AlgorithmParts& parts) : parts_(&parts) {}

  std::string name() const override { return parts_->name; }
  AlgorithmState<Real> client_start(std::span<const Real> x0) const override;
  AlgorithmState<Real> server_start(std::span<const Real> x0) const override;
  Message<Real> client(ClientRound<Real>& round, std::span<const Real> x,
                       AlgorithmState<Real>& state) const override;
  void server(ServerRound<Real>& round, std::vector<Real>& x, AlgorithmState<Real>& state) const override;
  bool asks_all(std::uint32_t t) const override;
  std::optional<std::vector<std::uint32_t>> cohort(const ServerRound<Real>& round) const override;
  Message<Real> broadcast(const ServerRound<Real>& round, std::span<const Real> x,
                          const AlgorithmState<Real>& state) const override;

 private:
  AlgorithmParts* parts_;
};

}  // namespace gradwire::python
