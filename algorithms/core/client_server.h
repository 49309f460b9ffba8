// The client and server part of an algorithm, erased behind one abstract class each, so that loops,
// transports and persistence are ordinary .cpp files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/core/context.h"
#include "algorithms/core/lyapunov.h"
#include "algorithms/core/message.h"
#include "algorithms/core/spec.h"
#include "algorithms/core/traits.h"
#include "base/byte_segments.h"

namespace gradwire {

// The permanent state of one client, apart from its algorithm: the vectors and the numbers that the
// algorithm's fields visit, in their order.
template <class Real>
struct KeptState {
  std::span<Vec<Real>> vectors;
  std::span<std::byte> numbers;
};
struct StateShape {
  std::size_t vectors = 0, number_bytes = 0;
};

// A client algorithm. reply() makes a proposal and changes nothing permanent; commit() makes the last
// proposal, which is `used`, permanent.
template <class Real>
class ClientAlgorithm {
 public:
  virtual ~ClientAlgorithm() = default;
  // Whether a body (or a resync) has the parts that reply() (or adopt()) reads, of the right length: a peer
  // may send anything.
  virtual bool accepts(const Downlink<Real>& down, bool is_resync) const = 0;
  virtual Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& context) = 0;
  virtual void commit(const Uplink<Real>& used) = 0;
  // Whether commit() reads only `used` and the state: then the used replies of a client give its state.
  virtual bool follows_replies() const = 0;
  virtual void adopt(const Downlink<Real>& resync, const ClientContext<Real>& context) = 0;
  virtual std::string save() const = 0;
  virtual bool load(std::string_view bytes) = 0;  // false: not a saved state of this algorithm
  // Exchanges the permanent state with `kept`, without copying vectors. An algorithm may so take the place of
  // another one between two calls of reply() whose proposals are settled.
  virtual StateShape state_shape() const = 0;
  virtual void swap_state(KeptState<Real> kept) = 0;  // REQUIRES: of state_shape()
};

template <class Real>
class ServerAlgorithm {
 public:
  virtual ~ServerAlgorithm() = default;
  virtual void cohort(std::vector<ClientId>& out) const = 0;  // ascending, unique; pure in (seed, round)
  virtual Downlink<Real> broadcast() const = 0;               // the same when called twice
  // Whether a reply has the parts that apply() reads, of the right length: a peer may send anything.
  virtual bool accepts(const UplinkView<Real>& uplink) const = 0;
  virtual bool apply(Replies<Real> uplinks) = 0;  // ascending clients; false: not used
  virtual bool may_refuse() const = 0;            // whether apply() ever returns false
  // Of asynchronous algorithms: whether work at x of `round` is of no use any more, so that it is stopped.
  virtual bool superseded(std::uint32_t round) const = 0;
  // The same: how long this client may compute before its work is cut, and apply() gets a reply with nothing
  // in it; infinity: as long as it takes. And whether there is no work for it until x moves on.
  virtual double allotted_seconds(ClientId client) const = 0;
  virtual bool rests(ClientId client) const = 0;
  // The same: what this client is given to work at, broadcast() or an older one of equal round and bits.
  virtual Downlink<Real> work(ClientId client) const = 0;
  virtual std::optional<Downlink<Real>> resync(ClientId client, ReplyStatus lacks) const = 0;
  virtual View<Real> model() const = 0;
  virtual LyapunovState<Real> lyapunov_state() const = 0;
  virtual std::string save() const = 0;
  // The bytes of save(), behind what `to` has; they view vectors of this algorithm, as broadcast() does.
  virtual void save_in_place(ByteSegments& to) const { to.copy(save()); }
  virtual bool load(std::string_view bytes) = 0;
};

// An algorithm that is not one of all_algorithms(), but comes from a program outside this tree.
// custom_algorithm() of algorithms/core/algorithm_adapter.h makes it from a struct like those that all.h
// lists. It runs wherever the program itself has both ends.
template <class Real>
struct CustomAlgorithm {
  AlgorithmTraits traits;
  std::function<AlgorithmSpec(const AlgorithmSpec&, const Theory&, std::vector<std::string>& warnings)>
      resolve;
  std::function<std::unique_ptr<ServerAlgorithm<Real>>(std::shared_ptr<const RunContext<Real>>)> make_server;
  std::function<std::unique_ptr<ClientAlgorithm<Real>>(std::shared_ptr<const RunContext<Real>>)> make_client;
};

}  // namespace gradwire
