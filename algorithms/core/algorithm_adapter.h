// Adapters from the parts of an algorithm to ClientAlgorithm and ServerAlgorithm.
#pragma once

#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

#include "algorithms/core/client_server.h"
#include "algorithms/core/concepts.h"
#include "algorithms/core/options.h"
#include "algorithms/core/sampling.h"
#include "algorithms/core/vector_ops.h"
#include "base/serialize.h"

namespace gradwire {

template <class State>
std::string save_state(const State& state) {
  Sizer sizer;
  State::fields(state, sizer);
  Saver saver(sizer.bytes());  // reserves first: a large model must not be copied while the string grows
  State::fields(state, saver);
  return saver.take();
}
template <class State>
bool load_state(State& state, std::string_view bytes) {
  Loader loader(bytes);
  State::fields(state, loader);
  return loader.done();
}

// Field visitors for ClientAlgorithm::state_shape() and swap_state().
template <class Real>
class StateCounter {
 public:
  template <class T>
  void operator()(const T&) {
    if constexpr (std::is_arithmetic_v<T>) {
      shape_.number_bytes += sizeof(T);
    } else {
      shape_.vectors += 1;
    }
  }
  StateShape shape() const { return shape_; }

 private:
  StateShape shape_;
};
template <class Real>
class StateSwapper {
 public:
  explicit StateSwapper(KeptState<Real> kept) : kept_(kept) {}
  void operator()(Vec<Real>& v) { v.swap(next_vector()); }
  template <class T>
  void operator()(T& v) {
    if constexpr (std::is_arithmetic_v<T>) {
      T kept;
      std::memcpy(&kept, kept_.numbers.data(), sizeof kept);
      std::memcpy(kept_.numbers.data(), &v, sizeof v);
      kept_.numbers = kept_.numbers.subspan(sizeof v);
      v = kept;
    } else {
      swap_bytes(v);
    }
  }

 private:
  Vec<Real>& next_vector() {
    Vec<Real>& next = kept_.vectors.front();
    kept_.vectors = kept_.vectors.subspan(1);
    return next;
  }
  // Exchanges a value of any other type. The stored vector holds its saved bytes and, before them, their
  // number.
  template <class T>
  void swap_bytes(T& v) {
    Vec<Real>& kept = next_vector();
    Saver saver;
    saver(v);
    const std::string bytes = saver.take();
    std::uint64_t size = 0;
    T loaded{};
    if (!kept.empty()) {
      const char* const from = reinterpret_cast<const char*>(kept.data());
      std::memcpy(&size, from, sizeof size);
      Loader loader({from + sizeof size, size});
      loader(loaded);
    }
    size = bytes.size();
    kept.assign((sizeof size + size + sizeof(Real) - 1) / sizeof(Real), Real(0));
    std::memcpy(kept.data(), &size, sizeof size);
    std::memcpy(reinterpret_cast<char*>(kept.data()) + sizeof size, bytes.data(), size);
    v = std::move(loaded);
  }
  KeptState<Real> kept_;
};

// Returns the number of vectors of length d in a message: 1, unless the algorithm defines kPartsDown or
// kPartsUp. An algorithm with messages of another form defines accepts().
template <class Algorithm>
constexpr std::size_t parts_down() {
  if constexpr (requires { Algorithm::kPartsDown; }) return Algorithm::kPartsDown;
  return 1;
}
template <class Algorithm>
constexpr std::size_t parts_up() {
  if constexpr (requires { Algorithm::kPartsUp; }) return Algorithm::kPartsUp;
  return 1;
}

template <class Algorithm, class Real>
class ClientAdapter final : public ClientAlgorithm<Real> {
 public:
  explicit ClientAdapter(std::shared_ptr<const RunContext<Real>> run_context)
      : run_context_(std::move(run_context)),
        algorithm_(*run_context_, parse_params<typename Algorithm::Params>(run_context_->algorithm)) {}

  bool accepts(const Downlink<Real>& down, bool is_resync) const override {
    if constexpr (requires { algorithm_.accepts(down, is_resync); }) {
      return algorithm_.accepts(down, is_resync);
    } else {
      const std::size_t count = down.parts.size();
      return (is_resync ? count <= 1 : count == parts_down<Algorithm>()) &&
             all_dense(down.parts, run_context_->d);
    }
  }
  Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& context) override {
    return algorithm_.reply(down, context);
  }
  void commit(const Uplink<Real>& used) override {
    if constexpr (kFollowsReplies) {
      algorithm_.commit(used);
    } else {
      algorithm_.commit();
    }
  }
  bool follows_replies() const override { return kFollowsReplies; }
  void adopt(const Downlink<Real>& resync, const ClientContext<Real>& context) override {
    if constexpr (requires { algorithm_.adopt(resync, context); }) algorithm_.adopt(resync, context);
  }
  std::string save() const override { return save_state(algorithm_); }
  bool load(std::string_view bytes) override { return load_state(algorithm_, bytes); }
  StateShape state_shape() const override {
    StateCounter<Real> counter;
    Algorithm::Client::fields(algorithm_, counter);
    return counter.shape();
  }
  void swap_state(KeptState<Real> kept) override {
    StateSwapper<Real> swapper(kept);
    Algorithm::Client::fields(algorithm_, swapper);
  }

 private:
  static_assert(is_algorithm<Algorithm, Real>());
  static constexpr bool kFollowsReplies = CommitsReplies<typename Algorithm::Client, Real>;

  std::shared_ptr<const RunContext<Real>> run_context_;
  typename Algorithm::Client algorithm_;
};

template <class Algorithm, class Real>
class ServerAdapter final : public ServerAlgorithm<Real> {
 public:
  explicit ServerAdapter(std::shared_ptr<const RunContext<Real>> run_context)
      : run_context_(std::move(run_context)),
        algorithm_(*run_context_, parse_params<typename Algorithm::Params>(run_context_->algorithm)) {}

  void cohort(std::vector<ClientId>& out) const override {
    if constexpr (requires { algorithm_.cohort(out); }) {
      algorithm_.cohort(out);
    } else {
      all_clients(run_context_->n, out);
    }
  }
  Downlink<Real> broadcast() const override { return algorithm_.broadcast(); }
  bool accepts(const UplinkView<Real>& up) const override {
    if constexpr (requires { algorithm_.accepts(up); }) {
      return algorithm_.accepts(up);
    } else {
      return up.parts.size() == parts_up<Algorithm>() && all_of_length(up.parts, run_context_->d);
    }
  }
  bool apply(Replies<Real> uplinks) override {
    if constexpr (std::is_void_v<decltype(algorithm_.apply(uplinks))>) {
      algorithm_.apply(uplinks);
      return true;
    } else {
      return algorithm_.apply(uplinks);
    }
  }
  bool may_refuse() const override {
    if constexpr (HasMayRefuse<typename Algorithm::Server>) {
      return algorithm_.may_refuse();
    } else {
      return !std::is_void_v<decltype(std::declval<typename Algorithm::Server&>().apply(Replies<Real>()))>;
    }
  }
  bool superseded(std::uint32_t round) const override {
    if constexpr (requires { algorithm_.superseded(round); }) {
      return algorithm_.superseded(round);
    } else {
      return false;
    }
  }
  double allotted_seconds(ClientId client) const override {
    if constexpr (requires { algorithm_.allotted_seconds(client); }) {
      return algorithm_.allotted_seconds(client);
    } else {
      return std::numeric_limits<double>::infinity();
    }
  }
  bool rests(ClientId client) const override {
    if constexpr (requires { algorithm_.rests(client); }) {
      return algorithm_.rests(client);
    } else {
      return false;
    }
  }
  Downlink<Real> work(ClientId client) const override {
    if constexpr (requires { algorithm_.work(client); }) {
      return algorithm_.work(client);
    } else {
      return algorithm_.broadcast();
    }
  }
  std::optional<Downlink<Real>> resync(ClientId client, ReplyStatus lacks) const override {
    // Only the client has the private part of the lost state.
    if (lacks == ReplyStatus::kNeedsState &&
        has(Algorithm::Params::traits.client_state, ClientState::kPrivate))
      return std::nullopt;
    if constexpr (requires { algorithm_.resync(client, lacks); }) {
      return algorithm_.resync(client, lacks);
    } else {
      return Downlink<Real>{};  // the algorithm has no state to restore
    }
  }
  View<Real> model() const override { return algorithm_.model(); }
  LyapunovState<Real> lyapunov_state() const override {
    if constexpr (requires { algorithm_.lyapunov_state(); }) {
      return algorithm_.lyapunov_state();
    } else {
      return {};
    }
  }
  std::string save() const override { return save_state(algorithm_); }
  void save_in_place(ByteSegments& to) const override {
    InPlaceSaver saver(to);
    Algorithm::Server::fields(algorithm_, saver);
  }
  bool load(std::string_view bytes) override {
    if (!load_state(algorithm_, bytes)) return false;
    if constexpr (requires { algorithm_.restored(); }) algorithm_.restored();
    return true;
  }

 private:
  std::shared_ptr<const RunContext<Real>> run_context_;
  typename Algorithm::Server algorithm_;
};

}  // namespace gradwire
