// Communication between the processes that share the clients of a run. Each process runs the loop and the
// server algorithm, and computes its own clients. It sees the replies of all other clients with empty parts.
// This interface provides the sums that include those parts.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "algorithms/core/message.h"
#include "algorithms/core/tree_sum.h"
#include "compressors/payload.h"

namespace gradwire {

// A function that calls body(lo, hi) for ranges that together cover [0, size) once. It may use threads. No
// bit of a result may depend on the choice of ranges.
using ForRanges =
    std::function<void(std::size_t size, const std::function<void(std::size_t, std::size_t)>& body)>;

// All functions except mine() are collective: every process calls the same ones in the same order.
template <class Real>
class Communicator {
 public:
  // The summand weight * decode(part), which leaves out the part's `next`.
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
  // Returns the sum over the clients of all processes, shape (length). REQUIRES: each process started `tree`
  // with its own clients (TreeSum::begin_part), and all with the same length.
  virtual Vec<double> sum(TreeSum<double>& tree) = 0;
  // Returns the values of all processes, in the order of client numbers.
  virtual std::vector<double> gather(std::span<const double> mine) = 0;
};

}  // namespace gradwire
