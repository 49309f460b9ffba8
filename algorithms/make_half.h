// make_server and make_client for all methods of the list. Included once per half and Real (clients_*.cpp,
// servers_*.cpp): a program of clients alone links no server half.
#pragma once

#include <memory>

#include "algorithms/all.h"
#include "algorithms/core/erased.h"
#include "algorithms/methods.h"

namespace gradwire {

template <class Base, template <class, class> class Erased, class Real, template <class> class... M>
std::unique_ptr<Base> make_half(MethodList<M...>, const std::shared_ptr<const Setup<Real>>& setup) {
  std::unique_ptr<Base> half;
  const auto try_one = [&]<template <class> class Method>() {
    if (Method<Real>::Params::facts.name == setup->algorithm.name)
      half = std::make_unique<Erased<Method<Real>, Real>>(setup);
  };
  (try_one.template operator()<M>(), ...);
  if (!half) find_method(setup->algorithm.name);  // throws
  return half;
}

template <class Real>
std::unique_ptr<ServerHalf<Real>> make_server(std::shared_ptr<const Setup<Real>> setup) {
  if (setup->user_method) return setup->user_method->make_server(setup);
  return make_half<ServerHalf<Real>, ErasedServer, Real>(AllMethods{}, setup);
}
template <class Real>
std::unique_ptr<ClientHalf<Real>> make_client(std::shared_ptr<const Setup<Real>> setup) {
  if (setup->user_method) return setup->user_method->make_client(setup);
  return make_half<ClientHalf<Real>, ErasedClient, Real>(AllMethods{}, setup);
}

}  // namespace gradwire
