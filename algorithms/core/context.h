// The inputs of both parts of an algorithm: the constants of one run, and everything that a client may
// access.
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
#include "gradwire/oracle.h"

namespace gradwire {

// Calls `body` for cache-sized ranges, one after another.
void for_ranges_serial(std::size_t size, const std::function<void(std::size_t, std::size_t)>& body);
inline constexpr std::size_t kRangeReals = 16 * 1024;

template <class Real>
struct CustomAlgorithm;  // client_server.h

// Constants of one run. Algorithms hold them by shared_ptr<const RunContext>.
template <class Real>
struct RunContext {
  std::uint64_t seed = 1;
  std::uint32_t n = 0;  // number of clients
  std::size_t d = 0;    // dimension
  Vec<Real> x0;  // shape (d); only for constructors of server algorithms, because it may be freed later
  AlgorithmSpec algorithm;                  // resolved
  Compressor compressor;                    // uplink compressor for dimension d
  std::vector<double> weights;              // weights in f, shape (n), sum 1; empty if all are 1/n
  DataReplication replication;              // replication of the data among clients
  bool counts_correct = true;               // true if evaluations count correctly classified test samples
  bool keep_client_state_replicas = false;  // true: the server keeps n vectors of length d to restore clients
  ForRanges ranges = for_ranges_serial;
  ForRanges items;  // like `ranges`, for items that take long, such as a thousand replies; empty if serial
  std::shared_ptr<Communicator<Real>> communicator;  // null if this process has all clients
  std::shared_ptr<const CustomAlgorithm<Real>>
      custom_algorithm;  // null if algorithm.name is in all_algorithms()

  Real weight(ClientId i) const { return weights.empty() ? Real(1) / Real(n) : Real(weights[i]); }
  // Returns the clients of this process.
  ClientRange mine() const { return communicator == nullptr ? ClientRange{0, n} : communicator->mine(); }
};

// The receiver of those values of a reply that are final while the rest is still being computed. They are
// only a forecast: the reply that is sent may differ, for example if a later value is not finite.
template <class Real>
class EarlyValues {
 public:
  virtual ~EarlyValues() = default;
  // Announces a reply with one part that consists of these plain values. None of them is valid yet. Their
  // address does not change until the reply is sent.
  virtual void begin(View<Real> values) = 0;
  // Reports that values[first, first + count) are final. Reports each value at most once.
  virtual void ready(std::size_t first, std::size_t count) = 0;
};

// Everything that a client algorithm may access.
template <class Real>
struct ClientContext {
  ClientId client = 0;
  std::uint64_t seed = 0;
  std::uint64_t request_id = 0;
  bool first = false;  // true if no reply of this client was ever used: it sends its initial message
  Oracle<Real>& oracle;
  const Compressor& compressor;
  Scratch<Real>& scratch;
  std::uint32_t draw = 0;  // draw_number() of the request; asynchronous algorithms use it in place of t
  EarlyValues<Real>* early = nullptr;  // null if no receiver exists

  // Returns the key of the random stream for part `part` of the message of round t.
  RngKey draw_key(std::uint32_t t, std::uint32_t part = 0) const {
    return {seed, client, t, RngDomain::kCompressor + part};
  }
};

}  // namespace gradwire
