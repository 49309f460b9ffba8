// make_server and make_client for all algorithms of the list. Included once per part and Real (clients_*.cpp,
// servers_*.cpp): a program of clients alone links no server algorithm.
#pragma once

#include <memory>

#include "algorithms/algorithms.h"
#include "algorithms/all.h"
#include "algorithms/core/algorithm_adapter.h"

namespace gradwire {

template <class Base, template <class, class> class Adapter, class Real, template <class> class... M>
std::unique_ptr<Base> make_algorithm(AlgorithmList<M...>, const std::shared_ptr<const Setup<Real>>& setup) {
  std::unique_ptr<Base> algorithm;
  const auto try_one = [&]<template <class> class Algorithm>() {
    if (Algorithm<Real>::Params::facts.name == setup->algorithm.name)
      algorithm = std::make_unique<Adapter<Algorithm<Real>, Real>>(setup);
  };
  (try_one.template operator()<M>(), ...);
  if (!algorithm) find_algorithm(setup->algorithm.name);  // throws
  return algorithm;
}

template <class Real>
std::unique_ptr<ServerAlgorithm<Real>> make_server(std::shared_ptr<const Setup<Real>> setup) {
  if (setup->custom_algorithm) return setup->custom_algorithm->make_server(setup);
  return make_algorithm<ServerAlgorithm<Real>, ServerAdapter, Real>(AllAlgorithms{}, setup);
}
template <class Real>
std::unique_ptr<ClientAlgorithm<Real>> make_client(std::shared_ptr<const Setup<Real>> setup) {
  if (setup->custom_algorithm) return setup->custom_algorithm->make_client(setup);
  return make_algorithm<ClientAlgorithm<Real>, ClientAdapter, Real>(AllAlgorithms{}, setup);
}

}  // namespace gradwire
