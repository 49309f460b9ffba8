// Communication between the processes that share the clients of a run. Each process runs the loop and the
// server algorithm, and computes its own clients. It sees the replies of the others with empty parts. This
// interface provides the sums over those parts.
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

// All functions except mine() are collective: every process calls the same ones in the same order.
template <class Real>
class Communicator {
 public:
  // The summand weight * decode(part), without `next` of the part.
  struct Summand {
    ClientId client = 0;
    Real weight = 1;
    const Payload<Real>* part = nullptr;
  };

  virtual ~Communicator() = default;
  virtual ClientRange mine() const = 0;
  // Computes out += scale * (sum over the summands of all processes), in the order of add_parts_by()
  // (vector_ops.h). REQUIRES: clients ascend and are in mine().
  virtual void add(std::span<const Summand> summands, Real scale, const ForRanges& ranges,
                   Vec<Real>& out) = 0;
  // Returns the root of the tree whose nodes the processes hold, shape (length). Each process started `tree`
  // with its own clients (TreeSum::begin_part); all lengths are equal.
  virtual Vec<double> sum(TreeSum<double>& tree) = 0;
  // Returns the values of all processes, in the order of client numbers.
  virtual std::vector<double> gather(std::span<const double> mine) = 0;
};

}  // namespace gradwire
