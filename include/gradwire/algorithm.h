// An algorithm of a program, for TrainOptions::algorithm: two pure functions, one for clients and one for the
// server. examples/algorithm.cpp has EF21 in twenty lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gradwire/compressor.h"
#include "gradwire/oracle.h"
#include "gradwire/random.h"
#include "gradwire/version.h"

namespace gradwire {

template <class Real>
struct ClientRoundContent;  // private
template <class Real>
struct ServerRoundContent;  // private

// The vectors that one part of an algorithm keeps from round to round. Their number does not change.
template <class Real>
using AlgorithmState = std::vector<std::vector<Real>>;

// A message: at most 4 vectors of R^d.
template <class Real>
using Message = std::vector<Compressed<Real>>;

// The inputs of the client part in one round.
template <class Real>
class GRADWIRE_API ClientRound {
 public:
  std::uint32_t client() const;   // i, in [0, n)
  std::uint32_t clients() const;  // n
  std::uint32_t round() const;    // t
  double step_size() const;       // algorithm.step_size
  bool first() const;             // true if no reply of this client was used before
  // Computes the gradient of f_i at x, shape (d): over all samples, or over a batch of algorithm.batch
  // samples that depends only on (seed, client, round). The loss at the first such x of a round is the one
  // that the reply reports.
  std::vector<Real> gradient(std::span<const Real> x);
  Oracle<Real>& oracle();  // f_i, for other computations
  // Compresses v, shape (d), with algorithm.compressor, for part `part` of the reply.
  Compressed<Real> compress(std::span<const Real> v, std::uint32_t part = 0);
  // Returns what the server sent: x^t, or the vectors of UserAlgorithm::broadcast().
  Message<Real> received() const;
  // Returns random numbers of (seed, client, round); the same at every call.
  RandomStream random() const;

  explicit ClientRound(ClientRoundContent<Real>& content) : content_(content) {}  // for the library

 private:
  ClientRoundContent<Real>& content_;
};

// The inputs of the server part in one round.
template <class Real>
class GRADWIRE_API ServerRound {
 public:
  std::uint32_t clients() const;  // n
  std::uint32_t round() const;    // t
  double step_size() const;       // algorithm.step_size
  // Returns the clients that replied, ascending, and the message of the k-th of them.
  std::vector<std::uint32_t> replied() const;
  Message<Real> reply(std::size_t k) const;
  // Compute out += scale * sum_i v_i m_i over the clients i that replied; m_i is part `part` of the reply,
  // and `out` has shape (d). Both have the bits of the library's algorithms. add_sum(): v_i = w_i, the weight
  // of the client in f (1/n if all are equal). Use it for estimates that keep earlier messages, such as
  // EF21's g. add_mean(): v_i = n w_i / (number of replies), which add up to about 1. Use it for messages of
  // this round alone, such as gradients.
  void add_sum(std::vector<Real>& out, Real scale = 1, std::size_t part = 0) const;
  void add_mean(std::vector<Real>& out, Real scale = 1, std::size_t part = 0) const;
  // Returns random numbers of (seed, round), others for each function of the algorithm; the same at every
  // call.
  RandomStream random() const;

  explicit ServerRound(ServerRoundContent<Real>& content) : content_(content) {}  // for the library

 private:
  ServerRoundContent<Real>& content_;
};

// Both parts of an algorithm. Several threads call the functions, so they change nothing but their arguments.
// Equal arguments must give equal results.
template <class Real>
class UserAlgorithm {
 public:
  virtual ~UserAlgorithm() = default;

  // Returns a name with the algorithm's parameters, as in "mine alpha=0.1". A folder of results resumes only
  // with the same name.
  virtual std::string name() const { return "custom"; }
  // Return the states of every client and of the server before round 0. `x0` is the start point, shape (d).
  virtual AlgorithmState<Real> client_start(std::span<const Real> x0) const {
    (void)x0;
    return {};
  }
  virtual AlgorithmState<Real> server_start(std::span<const Real> x0) const {
    (void)x0;
    return {};
  }
  // Makes the reply of a client to x^t, shape (d), and its next state. If the reply is not used, because it
  // is late or lost, the state is not used either.
  virtual Message<Real> client(ClientRound<Real>& round, std::span<const Real> x,
                               AlgorithmState<Real>& state) const = 0;
  // Makes x^{t+1} from x^t and the replies.
  virtual void server(ServerRound<Real>& round, std::vector<Real>& x, AlgorithmState<Real>& state) const = 0;
  // Returns true if round t asks all clients, whatever clients.participation is.
  virtual bool asks_all(std::uint32_t t) const {
    (void)t;
    return false;
  }
  // Returns the clients that the round asks, all different, or nullopt for a sample by clients.participation.
  // The round has no replies yet. Not called in rounds that ask all.
  virtual std::optional<std::vector<std::uint32_t>> cohort(const ServerRound<Real>& round) const {
    (void)round;
    return std::nullopt;
  }
  // Returns what the clients get in place of x^t: at most 4 vectors, or none for x^t itself. client() gets
  // the first one as x. A client may have missed earlier messages. The round has no replies yet.
  virtual Message<Real> broadcast(const ServerRound<Real>& round, std::span<const Real> x,
                                  const AlgorithmState<Real>& state) const {
    (void)round, (void)x, (void)state;
    return {};
  }
};

}  // namespace gradwire
