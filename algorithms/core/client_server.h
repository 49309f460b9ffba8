// The interfaces ClientAlgorithm and ServerAlgorithm. They erase the type of an algorithm, so loops,
// transports and storage are ordinary .cpp files.
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

// The permanent state of one client, stored outside its algorithm object: the vectors and the numbers, each
// in the order in which the algorithm's fields() visits them.
template <class Real>
struct KeptState {
  std::span<Vec<Real>> vectors;
  std::span<std::byte> numbers;
};
struct StateShape {
  std::size_t vectors = 0, number_bytes = 0;
};

// The client part of an algorithm. reply() proposes a step and changes no permanent state. commit() makes the
// last proposal permanent; `used` is that reply.
template <class Real>
class ClientAlgorithm {
 public:
  virtual ~ClientAlgorithm() = default;
  // Returns whether a body (or a resync) has the parts that reply() (or adopt()) reads, with the right
  // lengths. A peer may send anything.
  virtual bool accepts(const Downlink<Real>& down, bool is_resync) const = 0;
  virtual Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& context) = 0;
  virtual void commit(const Uplink<Real>& used) = 0;
  // Returns whether commit() reads only `used` and the state. If so, a client's state follows from those of
  // its replies that were used.
  virtual bool follows_replies() const = 0;
  virtual void adopt(const Downlink<Real>& resync, const ClientContext<Real>& context) = 0;
  virtual std::string save() const = 0;
  virtual bool load(std::string_view bytes) = 0;  // false if the bytes are not a saved state
  // Returns the number of vectors and the size of the numbers in the permanent state.
  virtual StateShape state_shape() const = 0;
  // Exchanges the permanent state with `kept` without copying vectors. This lets one object serve several
  // clients, one after another. REQUIRES: no proposal is pending, and `kept` has the shape of state_shape().
  virtual void swap_state(KeptState<Real> kept) = 0;
};

template <class Real>
class ServerAlgorithm {
 public:
  virtual ~ServerAlgorithm() = default;
  virtual void cohort(std::vector<ClientId>& out) const = 0;  // ascending, unique; pure in (seed, round)
  virtual Downlink<Real> broadcast() const = 0;               // two calls give the same result
  // Returns whether a reply has the parts that apply() reads, with the right lengths. A peer may send
  // anything.
  virtual bool accepts(const UplinkView<Real>& uplink) const = 0;
  // Makes the step of a round, or of one reply. Returns false if it did not use the replies. REQUIRES:
  // clients ascend.
  virtual bool apply(Replies<Real> uplinks) = 0;
  virtual bool may_refuse() const = 0;  // true if apply() can return false
  // Asynchronous algorithms: returns true if the server no longer needs work at the x of `round`. The clients
  // then stop that work.
  virtual bool superseded(std::uint32_t round) const = 0;
  // Asynchronous algorithms: returns how long this client may compute; infinity means no limit. After that
  // time its work is cut, and apply() gets a reply with empty parts.
  virtual double allotted_seconds(ClientId client) const = 0;
  // Asynchronous algorithms: returns true if the client has no work until x changes.
  virtual bool rests(ClientId client) const = 0;
  // Asynchronous algorithms: returns the task of this client, which is broadcast() or an older broadcast.
  // REQUIRES: a task with the round of broadcast() equals broadcast().
  virtual Downlink<Real> work(ClientId client) const = 0;
  virtual std::optional<Downlink<Real>> resync(ClientId client, ReplyStatus lacks) const = 0;
  virtual View<Real> model() const = 0;
  virtual LyapunovState<Real> lyapunov_state() const = 0;
  virtual std::string save() const = 0;
  // Appends the bytes of save() to `to`. They view vectors of this algorithm, as broadcast() does.
  virtual void save_in_place(ByteSegments& to) const { to.copy(save()); }
  virtual bool load(std::string_view bytes) = 0;
};

// An algorithm that is not in all_algorithms(): a program brings it (gradwire/algorithm.h). It can only run
// in a program that has both the server and the clients.
template <class Real>
struct CustomAlgorithm {
  AlgorithmTraits traits;
  std::string name = {};  // tells two such algorithms apart, and those of other parameters
  std::function<std::unique_ptr<ServerAlgorithm<Real>>(std::shared_ptr<const RunContext<Real>>)> make_server;
  std::function<std::unique_ptr<ClientAlgorithm<Real>>(std::shared_ptr<const RunContext<Real>>)> make_client;
};

}  // namespace gradwire
