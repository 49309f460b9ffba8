#include "api/user_algorithm.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/algorithms.h"
#include "algorithms/core/sampling.h"
#include "algorithms/core/vector_ops.h"
#include "algorithms/support/gradients.h"
#include "base/serialize.h"
#include "compressors/compressed.h"

namespace gradwire {

namespace {

void check_length(const char* function, std::size_t length, std::size_t d) {
  if (length != d)
    throw std::logic_error(std::string(function) + " needs a vector of length " + std::to_string(d) +
                           ", not " + std::to_string(length));
}

// Throws unless every reply has this part.
template <class Real>
void check_part(Replies<Real> replies, const char* function, std::size_t part) {
  for (const UplinkView<Real>& up : replies)
    if (part >= up.parts.size())
      throw std::logic_error(std::string(function) + " of part " + std::to_string(part) +
                             ", but the reply of client " + std::to_string(up.client) + " has " +
                             std::to_string(up.parts.size()) + " parts");
}

template <class Real>
Message<Real> message_of(const auto& parts) {
  Message<Real> message;
  for (const Payload<Real>& part : parts) message.push_back(copy_of(part));
  return message;
}

// Returns views of the parts. Throws unless they can be sent. Indices that were drawn cost bits unless
// can_draw(key, k): the receiver of part k then draws them again.
template <class Real>
Parts<Real> parts_of(const Message<Real>& message, std::size_t d, auto&& can_draw) {
  if (message.size() > kMaxParts)
    throw std::logic_error("a message has " + std::to_string(message.size()) + " vectors, but at most " +
                           std::to_string(kMaxParts) + " fit in");
  Parts<Real> parts;
  for (const Compressed<Real>& part : message) {
    if (part.dim() != d)
      throw std::logic_error("a vector of a message has length " + std::to_string(part.dim()) + ", not " +
                             std::to_string(d));
    Payload<Real> payload = part.content().payload();
    if (payload.key != nullptr && !can_draw(*payload.key, static_cast<std::uint32_t>(parts.size())))
      payload.key = nullptr;
    parts.push_back(payload);
  }
  return parts;
}

}  // namespace

template <class Real>
struct ClientRoundContent {
  const RunContext<Real>& run_context;
  const ClientContext<Real>& context;
  const Downlink<Real>& down;
  std::uint32_t round = down.round;
  std::optional<double> loss = {};
};

template <class Real>
struct ServerRoundContent {
  const RunContext<Real>& run_context;
  std::uint32_t round;
  Replies<Real> replies = {};
  RngDomain domain = RngDomain::kCoin;
};

template <class Real>
std::uint32_t ClientRound<Real>::client() const {
  return content_.context.client;
}
template <class Real>
std::uint32_t ClientRound<Real>::clients() const {
  return content_.run_context.n;
}
template <class Real>
std::uint32_t ClientRound<Real>::round() const {
  return content_.round;
}
template <class Real>
double ClientRound<Real>::step_size() const {
  return std::stod(content_.run_context.algorithm.step_size);
}
template <class Real>
bool ClientRound<Real>::first() const {
  return content_.context.first;
}
template <class Real>
std::vector<Real> ClientRound<Real>::gradient(std::span<const Real> x) {
  check_length("gradient()", x.size(), content_.run_context.d);
  std::vector<Real> out;
  const double loss = gradient_at(content_.run_context, content_.context, content_.round, x, out);
  if (!content_.loss) content_.loss = loss;
  return out;
}
template <class Real>
Oracle<Real>& ClientRound<Real>::oracle() {
  return content_.context.oracle;
}
template <class Real>
Compressed<Real> ClientRound<Real>::compress(std::span<const Real> v, std::uint32_t part) {
  check_length("compress()", v.size(), content_.run_context.d);
  if (part >= kMaxParts)
    throw std::logic_error("compress() for part " + std::to_string(part) + ", but a message has at most " +
                           std::to_string(kMaxParts) + " parts");
  auto content = std::make_shared<CompressedContent<Real>>();
  std::vector<Real> work(v.begin(), v.end());
  gradwire::compress<Real>(content_.context.compressor, work, content_.context.draw_key(content_.round, part),
                           content_.context.scratch, content->buffer);
  return Compressed<Real>(std::move(content));
}
template <class Real>
Message<Real> ClientRound<Real>::received() const {
  return message_of<Real>(content_.down.parts);
}
template <class Real>
RandomStream ClientRound<Real>::random() const {
  return RngStream({content_.context.seed, content_.context.client, content_.round, RngDomain::kCoin});
}

template <class Real>
std::uint32_t ServerRound<Real>::clients() const {
  return content_.run_context.n;
}
template <class Real>
std::uint32_t ServerRound<Real>::round() const {
  return content_.round;
}
template <class Real>
double ServerRound<Real>::step_size() const {
  return std::stod(content_.run_context.algorithm.step_size);
}
template <class Real>
std::vector<std::uint32_t> ServerRound<Real>::replied() const {
  std::vector<std::uint32_t> clients;
  for (const UplinkView<Real>& up : content_.replies) clients.push_back(up.client);
  return clients;
}
template <class Real>
Message<Real> ServerRound<Real>::reply(std::size_t k) const {
  if (k >= content_.replies.size())
    throw std::logic_error("reply " + std::to_string(k) + " of a round with " +
                           std::to_string(content_.replies.size()) + " replies");
  return message_of<Real>(content_.replies[k].parts);
}
template <class Real>
void ServerRound<Real>::add_mean(std::vector<Real>& out, Real scale, std::size_t part) const {
  check_length("add_mean()", out.size(), content_.run_context.d);
  check_part<Real>(content_.replies, "add_mean()", part);
  add_mean_of_replies<Real>(content_.run_context, content_.replies, part, scale, out);
}
template <class Real>
void ServerRound<Real>::add_sum(std::vector<Real>& out, Real scale, std::size_t part) const {
  check_length("add_sum()", out.size(), content_.run_context.d);
  check_part<Real>(content_.replies, "add_sum()", part);
  add_weighted<Real>(content_.run_context, content_.replies, part, scale, out);
}
template <class Real>
RandomStream ServerRound<Real>::random() const {
  return RngStream({content_.run_context.seed, kServerClient, content_.round, content_.domain});
}

template class ClientRound<float>;
template class ClientRound<double>;
template class ServerRound<float>;
template class ServerRound<double>;

namespace {

template <class Real>
class UserClient final : public ClientAlgorithm<Real> {
 public:
  UserClient(std::shared_ptr<const UserAlgorithm<Real>> algorithm,
             std::shared_ptr<const RunContext<Real>> run_context)
      : algorithm_(std::move(algorithm)),
        run_context_(std::move(run_context)),
        state_(algorithm_->client_start(run_context_->x0)) {}

  bool accepts(const Downlink<Real>& down, bool is_resync) const override {
    const std::size_t count = down.parts.size();
    return (is_resync || count > 0) && all_of_length(down.parts, run_context_->d);
  }
  Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& context) override {
    ClientRoundContent<Real> content{*run_context_, context, down};
    ClientRound<Real> round(content);
    proposed_ = state_;
    message_ = algorithm_->client(round, point_of(down.parts[0]), proposed_);
    if (proposed_.size() != state_.size())
      throw std::logic_error("the state of client " + std::to_string(context.client) + " has " +
                             std::to_string(proposed_.size()) + " vectors, and client_start() made " +
                             std::to_string(state_.size()));
    const auto can_draw = [&](const RngKey& key, std::uint32_t k) {
      return key == context.draw_key(down.round, k);
    };
    return reply_of(down, content.loss.value_or(0), parts_of<Real>(message_, run_context_->d, can_draw));
  }
  void commit(const Uplink<Real>&) override { state_.swap(proposed_); }
  bool follows_replies() const override { return false; }
  void adopt(const Downlink<Real>&, const ClientContext<Real>&) override {}
  std::string save() const override {
    Saver saver;
    saver(state_);
    return saver.take();
  }
  bool load(std::string_view bytes) override {
    Loader loader(bytes);
    loader(state_);
    return loader.done();
  }
  StateShape state_shape() const override { return {.vectors = state_.size(), .number_bytes = 0}; }
  void swap_state(KeptState<Real> kept) override {
    for (std::size_t k = 0; k < state_.size(); ++k) state_[k].swap(kept.vectors[k]);
  }

 private:
  View<Real> point_of(const Payload<Real>& part) {
    if (part.shape == Shape::kDense) return part.values;
    x_.assign(part.dim, Real(0));
    add_decoded<Real>(part, Real(1), x_);
    return x_;
  }

  std::shared_ptr<const UserAlgorithm<Real>> algorithm_;
  std::shared_ptr<const RunContext<Real>> run_context_;
  AlgorithmState<Real> state_, proposed_;
  Vec<Real> x_;            // the first vector of a broadcast that is not dense
  Message<Real> message_;  // keeps the memory that the last reply views
};

template <class Real>
class UserServer final : public ServerAlgorithm<Real> {
 public:
  UserServer(std::shared_ptr<const UserAlgorithm<Real>> algorithm,
             std::shared_ptr<const RunContext<Real>> run_context)
      : algorithm_(std::move(algorithm)),
        run_context_(std::move(run_context)),
        x_(run_context_->x0),
        state_(algorithm_->server_start(x_)) {}

  void cohort(std::vector<ClientId>& out) const override {
    if (algorithm_->asks_all(t_)) return all_clients(run_context_->n, out);
    ServerRoundContent<Real> content{*run_context_, t_, {}, RngDomain::kCohort};
    if (auto chosen = algorithm_->cohort(ServerRound<Real>(content))) {
      out = *std::move(chosen);
      std::ranges::sort(out);
      if (std::ranges::adjacent_find(out) != out.end() || (!out.empty() && out.back() >= run_context_->n))
        throw std::logic_error("cohort() must return different clients below " +
                               std::to_string(run_context_->n));
      return;
    }
    sample_cohort(run_context_->seed, t_, run_context_->n, run_context_->algorithm.participation, out);
  }
  Downlink<Real> broadcast() const override {
    if (!sent_) {
      ServerRoundContent<Real> content{*run_context_, t_, {}, RngDomain::kCompressor};
      sent_ = algorithm_->broadcast(ServerRound<Real>(content), x_, state_);
    }
    if (sent_->empty()) return {t_, 0, {Payload<Real>::dense(x_)}};
    return {t_, 0,
            parts_of<Real>(*sent_, run_context_->d, [](const RngKey&, std::uint32_t) { return false; })};
  }
  bool accepts(const UplinkView<Real>& up) const override { return all_of_length(up.parts, run_context_->d); }
  bool apply(Replies<Real> uplinks) override {
    ServerRoundContent<Real> content{*run_context_, t_, uplinks};
    ServerRound<Real> round(content);
    algorithm_->server(round, x_, state_);
    if (x_.size() != run_context_->d)
      throw std::logic_error("the algorithm made a model of length " + std::to_string(x_.size()) + ", not " +
                             std::to_string(run_context_->d));
    ++t_;
    sent_.reset();
    return true;
  }
  bool may_refuse() const override { return false; }
  bool superseded(std::uint32_t) const override { return false; }
  double allotted_seconds(ClientId) const override { return std::numeric_limits<double>::infinity(); }
  bool rests(ClientId) const override { return false; }
  Downlink<Real> work(ClientId) const override { return broadcast(); }
  std::optional<Downlink<Real>> resync(ClientId, ReplyStatus lacks) const override {
    if (lacks == ReplyStatus::kNeedsState) return std::nullopt;  // only the client has its state
    return Downlink<Real>{};
  }
  View<Real> model() const override { return x_; }
  LyapunovState<Real> lyapunov_state() const override { return {}; }
  std::string save() const override {
    Saver saver;
    saver(x_), saver(t_), saver(state_);
    return saver.take();
  }
  bool load(std::string_view bytes) override {
    Loader loader(bytes);
    loader(x_), loader(t_), loader(state_);
    sent_.reset();
    return loader.done() && x_.size() == run_context_->d;
  }

 private:
  std::shared_ptr<const UserAlgorithm<Real>> algorithm_;
  std::shared_ptr<const RunContext<Real>> run_context_;
  std::vector<Real> x_;
  std::uint32_t t_ = 0;
  AlgorithmState<Real> state_;
  mutable std::optional<Message<Real>> sent_;  // what broadcast() returned for round t_
};

}  // namespace

template <class Real>
std::shared_ptr<const CustomAlgorithm<Real>> adapt(std::shared_ptr<const UserAlgorithm<Real>> algorithm) {
  auto adapted = std::make_shared<CustomAlgorithm<Real>>();
  adapted->traits = find_algorithm(kCustomName).traits;
  adapted->name = algorithm->name();
  adapted->make_server = [algorithm](std::shared_ptr<const RunContext<Real>> run_context) {
    return std::make_unique<UserServer<Real>>(algorithm, std::move(run_context));
  };
  adapted->make_client = [algorithm](std::shared_ptr<const RunContext<Real>> run_context) {
    return std::make_unique<UserClient<Real>>(algorithm, std::move(run_context));
  };
  return adapted;
}

template std::shared_ptr<const CustomAlgorithm<float>> adapt(std::shared_ptr<const UserAlgorithm<float>>);
template std::shared_ptr<const CustomAlgorithm<double>> adapt(std::shared_ptr<const UserAlgorithm<double>>);

}  // namespace gradwire
