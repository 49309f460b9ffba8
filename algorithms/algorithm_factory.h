// make_server and make_client for all algorithms of the list. Clients and servers have separate source files
// for each Real (clients_*.cpp, servers_*.cpp), so a program that only has clients links no server algorithm.
#pragma once

#include <memory>

#include "algorithms/algorithms.h"
#include "algorithms/all.h"
#include "algorithms/core/algorithm_adapter.h"

namespace gradwire {

template <class Base, template <class, class> class Adapter, class Real, template <class> class... M>
std::unique_ptr<Base> make_algorithm(AlgorithmList<M...>,
                                     const std::shared_ptr<const RunContext<Real>>& run_context) {
  std::unique_ptr<Base> algorithm;
  const auto try_one = [&]<template <class> class Algorithm>() {
    if (Algorithm<Real>::Params::traits.name == run_context->algorithm.name)
      algorithm = std::make_unique<Adapter<Algorithm<Real>, Real>>(run_context);
  };
  (try_one.template operator()<M>(), ...);
  if (!algorithm) find_algorithm(run_context->algorithm.name);  // throws
  return algorithm;
}

template <class Real>
std::unique_ptr<ServerAlgorithm<Real>> make_server(std::shared_ptr<const RunContext<Real>> run_context) {
  if (run_context->custom_algorithm) return run_context->custom_algorithm->make_server(run_context);
  return make_algorithm<ServerAlgorithm<Real>, ServerAdapter, Real>(AllAlgorithms{}, run_context);
}
template <class Real>
std::unique_ptr<ClientAlgorithm<Real>> make_client(std::shared_ptr<const RunContext<Real>> run_context) {
  if (run_context->custom_algorithm) return run_context->custom_algorithm->make_client(run_context);
  return make_algorithm<ClientAlgorithm<Real>, ClientAdapter, Real>(AllAlgorithms{}, run_context);
}

}  // namespace gradwire
