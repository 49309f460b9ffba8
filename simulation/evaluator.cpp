#include "simulation/evaluator.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <utility>

#include "compressors/norms.h"
#include "parallel/in_order.h"
#include "simulation/shared_leaves.h"

namespace gradwire {
namespace {

// A block is a subtree of the tree over the clients.
constexpr std::size_t kMostClientsOfBlock = 1024;
// With fewer blocks than half of this, threads share the clients of a block.
constexpr std::size_t kBlocksPerThread = 16;

}  // namespace

template <class Real>
Evaluator<Real>::Evaluator(ClientRange mine, ThreadPool& pool, std::vector<RebindableOracle<Real>*> oracles,
                           std::size_t memory_bytes, double seconds_each)
    : mine_(mine),
      d_(oracles.at(0)->dim()),
      loop_(pool, kWorthThreadsSeconds, seconds_each),
      all_threads_(pool.size()),
      remembers_(mine.size() * (d_ + 1) * sizeof(Real) <= memory_bytes) {
  for (RebindableOracle<Real>* oracle : oracles) workers_.push_back({oracle, {}});
}

template <class Real>
struct Evaluator<Real>::Blocks {
  struct Block {
    EvaluationSum<Real> sum;
    std::size_t begin = 0, end = 0;  // the places of its clients in `clients`; only set by by_clients()
    InOrder turns = {};              // of these clients
  };
  std::size_t first = 0, count = 0, block_clients = 0;
  std::deque<Block> list;  // the first `count` are in use
  InOrder turns;           // of the blocks

  // Returns the clients of a block that are in `mine`.
  ClientRange clients_of(std::size_t b, ClientRange mine) const {
    const std::size_t begin = (first + b) * block_clients;
    return {static_cast<ClientId>(std::max<std::size_t>(begin, mine.first)),
            static_cast<ClientId>(std::min<std::size_t>(begin + block_clients, mine.end))};
  }
  // Adds the sum of a complete block, after those of the blocks before it.
  void add_block(std::size_t b, Evaluation<Real>& to) {
    const auto add = [&](std::size_t k) { to.add(list[k].sum); };
    turns.finish(
        b, add, [] {}, add);
  }
};

template <class Real>
Uplink<Real> Evaluator<Real>::answer(ClientId client, View<Real> x, EvaluationWorker& worker,
                                     const Evaluation<Real>& to) {
  RebindableOracle<Real>& oracle = *worker.oracle;
  const Out<Real> gradient =
      x_.empty() ? Out<Real>(worker.gradient) : Out<Real>(gradients_).subspan(place(client) * d_, d_);
  oracle.bind(client);
  Uplink<Real> up;
  up.client = client;
  up.loss = gradient.empty() ? oracle.loss(x, {}) : oracle.loss_and_gradient(x, {}, gradient);
  if (to.has_gradient()) up.parts = {Payload<Real>::dense(gradient)};
  if (!std::isfinite(up.loss) || (to.has_gradient() && !all_finite<Real>(gradient))) {
    up.status = ReplyStatus::kNotFinite;
  } else if (const auto score = to.run_context().counts_correct ? oracle.score(x) : std::nullopt) {
    up.correct = score->correct;
    up.tested = score->tested;
  }
  if (!x_.empty() && up.status == ReplyStatus::kReply) losses_[place(client)] = static_cast<Real>(up.loss);
  return up;
}

// Returns the number of clients of a block, a power of two. With one thread, large blocks save additions.
template <class Real>
std::size_t Evaluator<Real>::clients_of_block() const {
  std::size_t clients = kMostClientsOfBlock;
  if (threads_ == 1) return clients;
  while (clients > kClientsOfLeaf && mine_.size() < clients * kBlocksPerThread * threads_) clients /= 2;
  return clients;
}

template <class Real>
std::size_t Evaluator<Real>::blocks_at_once(std::size_t block_clients) const {
  constexpr std::size_t kMostBytes = std::size_t{256} << 20;
  if (threads_ == 1) return 1;
  const std::size_t levels = std::bit_width(block_clients / kClientsOfLeaf);
  return std::clamp<std::size_t>(kMostBytes / (levels * d_ * sizeof(double)), 1, kBlocksPerThread * threads_);
}

template <class Real>
void Evaluator<Real>::evaluate(View<Real> x, Evaluation<Real>& to) {
  x_.clear();
  threads_ = loop_.uses_threads(mine_.size()) ? all_threads_ : 1;
  const bool has_gradients = wants_gradients(to);
  if (remembers_ && has_gradients) {
    x_.assign(x.begin(), x.end());
    gradients_.resize(mine_.size() * d_);
    losses_.assign(mine_.size(), std::numeric_limits<Real>::quiet_NaN());
  }
  for (EvaluationWorker& worker : workers_) worker.gradient.resize(has_gradients && x_.empty() ? d_ : 0);
  Blocks blocks;
  const std::size_t size = blocks.block_clients = clients_of_block();
  const std::size_t begin = mine_.first / size, end = (std::size_t{mine_.end} + size - 1) / size;
  const std::size_t at_once = std::min(end - begin, blocks_at_once(size));
  while (blocks.list.size() < at_once)
    blocks.list.emplace_back(EvaluationSum<Real>(to.run_context(), to.kind(), to.kept()));
  for (blocks.first = begin; blocks.first < end; blocks.first += at_once) {
    blocks.count = std::min(at_once, end - blocks.first);
    blocks.turns.begin(blocks.count);
    for (auto& block : blocks.list) block.sum.clear();
    if (threads_ == 1 || blocks.count >= kBlocksPerThread / 2 * threads_) {
      by_blocks(x, to, blocks);
    } else {
      by_clients(x, to, blocks);
    }
  }
}

// Gives threads one block after another.
template <class Real>
void Evaluator<Real>::by_blocks(View<Real> x, Evaluation<Real>& to, Blocks& blocks) {
  std::size_t clients = 0;
  for (std::size_t b = 0; b < blocks.count; ++b) clients += blocks.clients_of(b, mine_).size();
  loop_.run(blocks.count, clients, [&](unsigned thread, std::size_t b) {
    const ClientRange range = blocks.clients_of(b, mine_);
    for (ClientId client = range.first; client < range.end; ++client) {
      if (!to.asks(client)) continue;
      const Uplink<Real> up = answer(client, x, workers_[thread], to);
      if (up.status == ReplyStatus::kReply) blocks.list[b].sum.add(up);
    }
    blocks.add_block(b, to);
  });
}

// Gives threads one client after another. Each is added after the clients before it in its block.
template <class Real>
void Evaluator<Real>::by_clients(View<Real> x, Evaluation<Real>& to, Blocks& blocks) {
  std::vector<ClientId> clients;
  for (std::size_t b = 0; b < blocks.count; ++b) {
    auto& block = blocks.list[b];
    const ClientRange range = blocks.clients_of(b, mine_);
    block.begin = clients.size();
    for (ClientId client = range.first; client < range.end; ++client)
      if (to.asks(client)) clients.push_back(client);
    block.end = clients.size();
    block.turns.begin(block.end - block.begin);
    if (block.begin == block.end) blocks.add_block(b, to);
  }
  if (clients.empty()) return;
  WaitingReplies<Real> waiting;
  std::vector<std::unique_ptr<typename WaitingReplies<Real>::Reply>> kept(clients.size());
  loop_.run(clients.size(), clients.size(), [&](unsigned thread, std::size_t k) {
    const Uplink<Real> up = answer(clients[k], x, workers_[thread], to);
    const ClientRange range = blocks.clients_of(0, mine_);
    const std::size_t b = clients[k] / blocks.block_clients - range.first / blocks.block_clients;
    auto& block = blocks.list[b];
    const auto add = [&](std::size_t place, const Uplink<Real>& reply) {
      if (reply.status == ReplyStatus::kReply) block.sum.add(reply);
      if (block.begin + place + 1 == block.end) blocks.add_block(b, to);
    };
    block.turns.finish(
        k - block.begin, [&](std::size_t place) { add(place, up); }, [&] { kept[k] = waiting.copy(up); },
        [&](std::size_t place) {
          auto& reply = kept[block.begin + place];
          add(place, reply->up);
          waiting.give_back(std::move(reply));
        });
  });
}

template <class Real>
Evaluated<Real> Evaluator<Real>::known(ClientId client) const {
  if (x_.empty() || std::isnan(losses_[place(client)])) return {};
  return {x_, View<Real>(gradients_).subspan(place(client) * d_, d_), losses_[place(client)]};
}

template class Evaluator<float>;
template class Evaluator<double>;

}  // namespace gradwire
