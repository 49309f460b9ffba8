// The closed set of methods as the rest of the program sees it: facts, parameters, and the two halves erased
// behind one abstract class each, so that loops, transports and persistence are ordinary .cpp files.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/context.h"
#include "algorithms/facts.h"
#include "algorithms/message.h"
#include "algorithms/spec.h"
#include "algorithms/symmetric.h"

namespace gradwire {

// A client half. reply() makes a proposal and changes nothing permanent; commit() makes the last proposal,
// which is `used`, permanent.
template <class Real>
class ClientHalf {
 public:
  virtual ~ClientHalf() = default;
  // Whether a body (or a resync) has the parts that reply() (or adopt()) reads, of the right length: a peer
  // may send anything.
  virtual bool accepts(const Downlink<Real>& down, bool is_resync) const = 0;
  virtual Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& context) = 0;
  virtual void commit(const Uplink<Real>& used) = 0;
  // Whether commit() reads only `used` and the state: then the used replies of a client give its state.
  virtual bool follows_replies() const = 0;
  virtual void adopt(const Downlink<Real>& resync, const ClientContext<Real>& context) = 0;
  virtual std::string save() const = 0;
  virtual bool load(std::string_view bytes) = 0;  // false: not a saved state of this method
};

template <class Real>
class ServerHalf {
 public:
  virtual ~ServerHalf() = default;
  virtual void cohort(std::vector<ClientId>& out) const = 0;  // ascending, unique; pure in (seed, round)
  virtual Downlink<Real> broadcast() const = 0;               // the same when called twice
  // Whether a reply has the parts that apply() reads, of the right length: a peer may send anything.
  virtual bool accepts(const Uplink<Real>& uplink) const = 0;
  virtual bool apply(std::span<const Uplink<Real>> uplinks) = 0;  // ascending clients; false: not used
  virtual bool superseded(std::uint32_t round) const = 0;
  virtual std::optional<Downlink<Real>> resync(ClientId client, Answer lacks) const = 0;
  virtual View<Real> model() const = 0;
  virtual std::string save() const = 0;
  virtual bool load(std::string_view bytes) = 0;
};

struct ParameterHelp {
  std::string name, fallback, meaning;
};

struct MethodInfo {
  Facts facts;
  std::vector<ParameterHelp> parameters;  // with step_size first
};

// Length of the vectors that a method compresses, for models in R^d: d, or the entries of a triangle of a
// Hessian.
std::size_t compressed_dim(std::string_view method, std::size_t d);
// The compressor of a spec, in a run of n clients in R^d. Throws ConfigError.
Compressor uplink_compressor(const AlgorithmSpec& spec, std::size_t d, std::uint32_t n);
// The compressor of its parameter `compressor_down`; nothing for methods that broadcast whole vectors.
std::optional<Compressor> downlink_compressor(const AlgorithmSpec& spec, std::size_t d);

// All methods, in the order of the list.
std::span<const MethodInfo> methods();
// Throws ConfigError("algorithm.name") that names the nearest known method.
const MethodInfo& find_method(std::string_view name);

// Checks everything that can be checked without data: name, parameter names and values, the compressor's
// spelling, batch and participation. Throws ConfigError with the key at fault.
void check_algorithm(const AlgorithmSpec& spec);

// The constants that resolve() will read from theory.smoothness, in a run of n clients; needs no data.
NeededConstants needed_constants(const AlgorithmSpec& spec, std::uint32_t n);

// The spec with every number spelled out (17 digits): step sizes, the method's defaults, counts of the
// compressor. Adds a line to `warnings` for each assumption of the theorem that does not hold. Throws
// ConfigError. Idempotent.
AlgorithmSpec resolve(const AlgorithmSpec& spec, const Theory& theory, std::vector<std::string>& warnings);
// The same with this uplink compressor instead of spec.compressor: for a user's own compressor.
AlgorithmSpec resolve(const AlgorithmSpec& spec, const Compressor& compressor, const Theory& theory,
                      std::vector<std::string>& warnings);

// A method that is not one of methods(), but comes from a program outside this tree. user_method() of
// algorithms/erased.h makes it from a struct like those that all.h lists. It runs wherever the program itself
// has both ends.
template <class Real>
struct UserMethod {
  Facts facts;
  std::function<AlgorithmSpec(const AlgorithmSpec&, const Theory&, std::vector<std::string>& warnings)>
      resolve;
  std::function<std::unique_ptr<ServerHalf<Real>>(std::shared_ptr<const Setup<Real>>)> make_server;
  std::function<std::unique_ptr<ClientHalf<Real>>(std::shared_ptr<const Setup<Real>>)> make_client;
};

// The facts of the user's method, or of the method that setup.algorithm names.
template <class Real>
const Facts& facts_of(const Setup<Real>& setup) {
  return setup.user_method ? setup.user_method->facts : find_method(setup.algorithm.name).facts;
}

// Whether replies of a round may arrive as a sum: a server that weights clients, or keeps a copy of each
// client's state, needs them one by one.
template <class Real>
bool takes_sums(const Setup<Real>& setup) {
  const Facts& facts = facts_of(setup);
  const bool mirrors = setup.keep_mirrors && has(facts.client_state, ClientState::kMirrored);
  return facts.adds_replies && setup.weights.empty() && !mirrors;
}

// REQUIRES: setup->algorithm is resolved.
template <class Real>
std::unique_ptr<ServerHalf<Real>> make_server(std::shared_ptr<const Setup<Real>> setup);
template <class Real>
std::unique_ptr<ClientHalf<Real>> make_client(std::shared_ptr<const Setup<Real>> setup);

}  // namespace gradwire
