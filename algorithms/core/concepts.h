// Requirements on the parts of an algorithm, checked at compile time. A hook that is missing, misspelt or has
// a wrong signature gives one compile error. Without the check, it would silently not be called: a client
// with a wrong adopt() would restart without its state.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "algorithms/core/context.h"
#include "algorithms/core/lyapunov.h"
#include "algorithms/core/message.h"
#include "algorithms/core/traits.h"

namespace gradwire {

// Returns whether the server can give a client its lost state back.
constexpr bool is_restorable(ClientState state) {
  return has(state, ClientState::kMirrored) || has(state, ClientState::kRecomputable) ||
         has(state, ClientState::kReplica);
}

// Optional members. They must have the right signature if they exist.
template <class Part>
concept HasAccepts = requires {
  &Part::accepts;
};
template <class Server>
concept HasCohort = requires {
  &Server::cohort;
};
template <class Server>
concept HasResync = requires {
  &Server::resync;
};
template <class Server>
concept HasSuperseded = requires {
  &Server::superseded;
};
template <class Server>
concept HasAllottedSeconds = requires {
  &Server::allotted_seconds;
};
template <class Server>
concept HasRests = requires {
  &Server::rests;
};
template <class Server>
concept HasWork = requires {
  &Server::work;
};
template <class Server>
concept HasLyapunovState = requires {
  &Server::lyapunov_state;
};
template <class Server>
concept HasMayRefuse = requires {
  &Server::may_refuse;
};
template <class Server>
concept HasRestored = requires {
  &Server::restored;
};
template <class Client>
concept HasAdopt = requires {
  &Client::adopt;
};

// A client whose commit() only needs the used reply.
template <class Client, class Real>
concept CommitsReplies = requires(Client client, const Uplink<Real>& used) {
  client.commit(used);
};

struct AnyVisitor {
  template <class T>
  void operator()(T&&) const {}
};

template <class Part, class Algorithm, class Real>
consteval bool is_algorithm_part() {
  static_assert(std::constructible_from<Part, const RunContext<Real>&, const typename Algorithm::Params&>,
                "a part lacks its constructor from (const RunContext<Real>&, const Params&)");
  static_assert(
      requires(Part & part, const Part& saved) {
        Part::fields(part, AnyVisitor{});
        Part::fields(saved, AnyVisitor{});
      },
      "a part lacks `static void fields(auto& self, auto&& visit)`, which visits its state");
  return true;
}

template <class Algorithm, class Real>
consteval bool is_client() {
  using Client = typename Algorithm::Client;
  constexpr ClientState state = Algorithm::Params::traits.client_state;
  static_assert(!Algorithm::Params::traits.asynchronous || state == ClientState::kNone,
                "traits.asynchronous is for algorithms whose clients keep no state: the server could not "
                "restore it when it gives a client new work");
  static_assert(
      requires(Client c, const Downlink<Real>& down, const ClientContext<Real>& context) {
        { c.reply(down, context) } -> std::same_as<Uplink<Real>>;
      },
      "Client lacks `Uplink<Real> reply(const Downlink<Real>&, const ClientContext<Real>&)`");
  static_assert(
      CommitsReplies<Client, Real> || requires(Client c) { c.commit(); },
      "Client lacks `void commit()` (or `void commit(const Uplink<Real>& used)`)");
  static_assert(!CommitsReplies<Client, Real> || state == ClientState::kMirrored,
                "commit(used) is for a client whose whole state follows from its used replies: "
                "traits.client_state is kMirrored alone; others have commit()");
  constexpr bool adopts =
      requires(Client c, const Downlink<Real>& resync, const ClientContext<Real>& context) {
    c.adopt(resync, context);
  };
  static_assert(adopts || !is_restorable(state),
                "traits.client_state says that a client's lost state can be restored: Client needs "
                "`void adopt(const Downlink<Real>& resync, const ClientContext<Real>&)`");
  static_assert(
      adopts || !HasAdopt<Client>,
      "Client::adopt() must be `void adopt(const Downlink<Real>& resync, const ClientContext<Real>&)`");
  static_assert(
      !HasAccepts<Client> ||
          requires(const Client c, const Downlink<Real>& down) {
            { c.accepts(down, true) } -> std::same_as<bool>;
          },
      "Client::accepts() must be `bool accepts(const Downlink<Real>&, bool is_resync) const`");
  return true;
}

template <class Algorithm, class Real>
consteval bool is_server() {
  using Server = typename Algorithm::Server;
  constexpr AlgorithmTraits traits = Algorithm::Params::traits;
  static_assert(
      requires(const Server s) {
        { s.broadcast() } -> std::same_as<Downlink<Real>>;
        { s.model() } -> std::convertible_to<View<Real>>;
      },
      "Server lacks `Downlink<Real> broadcast() const` or `View<Real> model() const`; ModelServer has both");
  static_assert(
      requires(Server s, Replies<Real> uplinks) { s.apply(uplinks); },
      "Server lacks `void apply(Replies<Real>)` (or bool: true if they were used)");
  static_assert(
      !HasCohort<Server> || requires(const Server s, std::vector<ClientId>& out) { s.cohort(out); },
      "Server::cohort() must be `void cohort(std::vector<ClientId>& out) const`");
  constexpr bool resyncs = requires(const Server s, ClientId client, ReplyStatus lacks) {
    { s.resync(client, lacks) } -> std::same_as<std::optional<Downlink<Real>>>;
  };
  static_assert(resyncs || !is_restorable(traits.client_state),
                "traits.client_state says that a client's lost state can be restored: Server needs "
                "`std::optional<Downlink<Real>> resync(ClientId, ReplyStatus) const`");
  static_assert(
      resyncs || !HasResync<Server>,
      "Server::resync() must be `std::optional<Downlink<Real>> resync(ClientId, ReplyStatus) const`");
  static_assert(traits.asynchronous || !(HasAllottedSeconds<Server> || HasRests<Server> || HasWork<Server>),
                "Server has allotted_seconds(), rests() or work(), but traits.asynchronous is false: they "
                "are never called");
  static_assert(!(HasWork<Server> && HasSuperseded<Server>),
                "Server has work() and superseded(): superseded() needs clients that all work at x");
  static_assert(
      !HasWork<Server> ||
          requires(const Server s, ClientId client) {
            { s.work(client) } -> std::same_as<Downlink<Real>>;
          },
      "Server::work() must be `Downlink<Real> work(ClientId client) const`");
  static_assert(
      !HasLyapunovState<Server> ||
          requires(const Server s) {
            { s.lyapunov_state() } -> std::same_as<LyapunovState<Real>>;
          },
      "Server::lyapunov_state() must be `LyapunovState<Real> lyapunov_state() const`");
  static_assert(
      !HasAllottedSeconds<Server> ||
          requires(const Server s, ClientId client) {
            { s.allotted_seconds(client) } -> std::same_as<double>;
          },
      "Server::allotted_seconds() must be `double allotted_seconds(ClientId client) const`");
  static_assert(
      !HasRests<Server> ||
          requires(const Server s, ClientId client) {
            { s.rests(client) } -> std::same_as<bool>;
          },
      "Server::rests() must be `bool rests(ClientId client) const`");
  static_assert(traits.asynchronous || !HasSuperseded<Server>,
                "Server has superseded(), but traits.asynchronous is false: it is never called");
  static_assert(
      !HasSuperseded<Server> ||
          requires(const Server s, std::uint32_t round) {
            { s.superseded(round) } -> std::same_as<bool>;
          },
      "Server::superseded() must be `bool superseded(std::uint32_t round) const`");
  static_assert(
      !HasAccepts<Server> ||
          requires(const Server s, const UplinkView<Real>& up) {
            { s.accepts(up) } -> std::same_as<bool>;
          },
      "Server::accepts() must be `bool accepts(const UplinkView<Real>&) const`");
  static_assert(
      !HasMayRefuse<Server> ||
          requires(const Server s) {
            { s.may_refuse() } -> std::same_as<bool>;
          },
      "Server::may_refuse() must be `bool may_refuse() const`");
  static_assert(
      !HasRestored<Server> || requires(Server s) { s.restored(); },
      "Server::restored() must be `void restored()`");
  return true;
}

template <class Algorithm, class Real>
consteval bool is_algorithm() {
  return is_algorithm_part<typename Algorithm::Client, Algorithm, Real>() &&
         is_algorithm_part<typename Algorithm::Server, Algorithm, Real>() && is_client<Algorithm, Real>() &&
         is_server<Algorithm, Real>();
}

}  // namespace gradwire
