// The processes that share the clients of a run. Each runs the loop and the server algorithm, and lets its
// own clients work; of the others' replies it sees that they came, with empty parts. What those parts give is
// asked for here.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "algorithms/core/message.h"
#include "algorithms/core/tree_sum.h"
#include "compressors/payload.h"

namespace gradwire {

// Calls body(lo, hi) for ranges that cover [0, size) once; may use threads. The bits never depend on the
// split.
using ForRanges =
    std::function<void(std::size_t size, const std::function<void(std::size_t, std::size_t)>& body)>;

// All but mine() are collective: every process calls the same functions in the same order.
template <class Real>
class Communicator {
 public:
  // weight decode(part), part without its `next`.
  struct Summand {
    ClientId client = 0;
    Real weight = 1;
    const Payload<Real>* part = nullptr;
  };

  virtual ~Communicator() = default;
  virtual ClientRange mine() const = 0;
  // out += scale * the sum of the summands of all processes, in the order of add_parts_by() (vector_ops.h).
  // REQUIRES: ascending clients, all of them mine().
  virtual void add(std::span<const Summand> summands, Real scale, const ForRanges& ranges,
                   Vec<Real>& out) = 0;
  // The root of the tree whose nodes the processes hold: each began `tree` with its own clients
  // (TreeSum::begin_part), all of one length. Shape (length).
  virtual Vec<double> sum(TreeSum<double>& tree) = 0;
  // The values of all processes, those with smaller client numbers first.
  virtual std::vector<double> gather(std::span<const double> mine) = 0;
};

}  // namespace gradwire
