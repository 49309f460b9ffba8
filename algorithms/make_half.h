// make_server and make_client for all algorithms of the list. Included once per half and Real (clients_*.cpp,
// servers_*.cpp): a program of clients alone links no server half.
#pragma once

#include <memory>

#include "algorithms/algorithms.h"
#include "algorithms/all.h"
#include "algorithms/core/erased.h"

namespace gradwire {

template <class Base, template <class, class> class Erased, class Real, template <class> class... M>
std::unique_ptr<Base> make_half(AlgorithmList<M...>, const std::shared_ptr<const Setup<Real>>& setup) {
  std::unique_ptr<Base> half;
  const auto try_one = [&]<template <class> class Algorithm>() {
    if (Algorithm<Real>::Params::facts.name == setup->algorithm.name)
      half = std::make_unique<Erased<Algorithm<Real>, Real>>(setup);
  };
  (try_one.template operator()<M>(), ...);
  if (!half) find_algorithm(setup->algorithm.name);  // throws
  return half;
}

template <class Real>
std::unique_ptr<ServerHalf<Real>> make_server(std::shared_ptr<const Setup<Real>> setup) {
  if (setup->custom_algorithm) return setup->custom_algorithm->make_server(setup);
  return make_half<ServerHalf<Real>, ErasedServer, Real>(AllAlgorithms{}, setup);
}
template <class Real>
std::unique_ptr<ClientHalf<Real>> make_client(std::shared_ptr<const Setup<Real>> setup) {
  if (setup->custom_algorithm) return setup->custom_algorithm->make_client(setup);
  return make_half<ClientHalf<Real>, ErasedClient, Real>(AllAlgorithms{}, setup);
}

}  // namespace gradwire
