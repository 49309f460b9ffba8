// The threads of a simulation that have no client of their own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "engine/client_objectives.h"
#include "parallel/shared_threads.h"

namespace gradwire {

// Gives idle threads to the oracles of the others, which divide large gradients among them. No bit changes.
template <class Real>
class IdleThreads {
 public:
  // `oracles` has one oracle for each thread. They must outlive this object.
  explicit IdleThreads(std::vector<RebindableOracle<Real>*> oracles) : oracles_(std::move(oracles)) {}

  // Divides all threads among `clients` oracles. Call it before each loop over that many clients.
  void share_among(std::size_t clients) {
    const std::size_t each = std::max<std::size_t>(1, oracles_.size() / std::max<std::size_t>(1, clients));
    if (each == each_) return;
    each_ = each;
    for (RebindableOracle<Real>* oracle : oracles_)
      oracle->share_work(shared_threads(static_cast<unsigned>(each)));
  }

 private:
  const std::vector<RebindableOracle<Real>*> oracles_;
  std::size_t each_ = 1;  // threads of each oracle
};

}  // namespace gradwire
