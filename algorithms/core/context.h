// What the parts of an algorithm are given: the constants of one run, and for a client all that it may
// touch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "algorithms/core/communicator.h"
#include "algorithms/core/message.h"
#include "algorithms/core/spec.h"
#include "compressors/compressor.h"
#include "compressors/payload.h"
#include "engine/oracle.h"

namespace gradwire {

// Splits into cache-sized ranges, one after the other.
void for_ranges_serial(std::size_t size, const std::function<void(std::size_t, std::size_t)>& body);
inline constexpr std::size_t kRangeReals = 16 * 1024;

template <class Real>
struct CustomAlgorithm;  // client_server.h

// Constants of one run; algorithms hold it by shared_ptr<const RunContext>.
template <class Real>
struct RunContext {
  std::uint64_t seed = 1;
  std::uint32_t n = 0;      // clients
  std::size_t d = 0;        // dimension
  Vec<Real> x0;             // shape (d); for constructors of server algorithms only: it may be gone later
  AlgorithmSpec algorithm;  // resolved
  Compressor compressor;    // of the uplink, for dimension d
  std::vector<double>
      weights;  // of the clients in f and in the algorithm's means, shape (n), sum 1; empty: 1/n each
  DataReplication replication;  // of the parts of the data, as clients hold them
  bool counts_correct = true;   // evaluations count test samples that are classified correctly
  bool keep_mirrors = false;    // the server can restore any client's mirrored state (n vectors of length d)
  ForRanges ranges = for_ranges_serial;
  std::shared_ptr<Communicator<Real>> communicator;  // null: all clients answer to this process
  std::shared_ptr<const CustomAlgorithm<Real>>
      custom_algorithm;  // null: algorithm.name is one of all_algorithms()

  Real weight(ClientId i) const { return weights.empty() ? Real(1) / Real(n) : Real(weights[i]); }
  // The clients that answer to this process.
  ClientRange mine() const { return communicator == nullptr ? ClientRange{0, n} : communicator->mine(); }
};

// Is told which values of a reply are final while the rest is still computed. What it is told is a forecast:
// the reply may turn out another one, say where a later value is not finite.
template <class Real>
class EarlyValues {
 public:
  virtual ~EarlyValues() = default;
  // The reply will have one part with these values, plain, and nothing else in its payload. None of them is
  // there yet; they stay where they are until the reply was sent.
  virtual void begin(View<Real> values) = 0;
  // values[first, first + count) are final. No value comes twice.
  virtual void ready(std::size_t first, std::size_t count) = 0;
};

// All that a client algorithm may touch.
template <class Real>
struct ClientContext {
  ClientId client = 0;
  std::uint64_t seed = 0;
  std::uint64_t request_id = 0;
  bool first = false;  // no reply of this client was ever used: send the initial message
  Oracle<Real>& oracle;
  const Compressor& compressor;
  Scratch<Real>& scratch;
  std::uint32_t draw =
      0;  // draw_number() of the request: an asynchronous algorithm draws with it in place of t
  EarlyValues<Real>* early = nullptr;  // null: nobody wants to know

  // The key of the random stream for part `part` of the message of round t.
  RngKey draw_key(std::uint32_t t, std::uint32_t part = 0) const {
    return {seed, client, t, RngDomain::kCompressor + part};
  }
};

}  // namespace gradwire
