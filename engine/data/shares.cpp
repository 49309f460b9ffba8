#include "engine/data/shares.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "base/rng_stream.h"

namespace gradwire {

Shares Shares::equal(std::uint32_t clients, std::size_t total) {
  Shares shares;
  shares.clients_ = clients;
  shares.total_ = total;
  return shares;
}

Shares Shares::ranges(std::vector<std::uint32_t> start) {
  Shares shares;
  shares.clients_ = static_cast<std::uint32_t>(start.size() - 1);
  shares.total_ = start.back();
  shares.start_ = std::move(start);
  return shares;
}

Shares Shares::copied(std::vector<std::uint32_t> start, DataReplication replication) {
  Shares shares = ranges(std::move(start));
  shares.replication_ = replication;
  return shares;
}

Shares Shares::drawn(std::uint32_t clients, std::size_t total, std::uint32_t each, std::uint64_t seed) {
  if (each > total) throw std::logic_error("Shares: a client cannot hold more distinct rows than exist");
  Shares shares = equal(clients, total);
  shares.each_ = each;
  shares.seed_ = seed;
  return shares;
}

std::size_t Shares::size(std::uint32_t client) const {
  if (client >= clients_) throw std::logic_error("Shares: the client number is out of range");
  if (each_ > 0) return each_;
  if (!start_.empty()) {
    std::size_t rows = 0;
    for (std::uint32_t k = 0; k < replication_.count; ++k) {
      const std::uint32_t part = replication_.part(client, k, clients_);
      rows += start_[part + 1] - start_[part];
    }
    return rows;
  }
  return total_ / clients_ + (client < total_ % clients_ ? 1 : 0);
}

ClientRows Shares::rows(std::uint32_t client, std::vector<std::uint32_t>& work) const {
  const std::size_t count = size(client);
  if (replication_.count > 1) {
    work.clear();
    for (std::uint32_t k = 0; k < replication_.count; ++k) {
      const std::uint32_t part = replication_.part(client, k, clients_);
      for (std::uint32_t row = start_[part]; row < start_[part + 1]; ++row) work.push_back(row);
    }
    return {.count = count, .list = work.data()};
  }
  if (each_ == 0) {
    const std::size_t first =
        start_.empty() ? client * (total_ / clients_) + std::min<std::size_t>(client, total_ % clients_)
                       : start_[client];
    return {.first = first, .count = count};
  }
  // Floyd's algorithm: each set of rows is equally likely (Bentley and Floyd, CACM 1987).
  RngStream stream({seed_, client, 0, RngDomain::kSamples});
  std::unordered_set<std::uint32_t> seen;
  work.clear();
  for (auto j = static_cast<std::uint32_t>(total_ - each_); j < total_; ++j) {
    const std::uint32_t row = stream.below(j + 1);
    work.push_back(seen.insert(row).second ? row : j);
    if (work.back() == j) seen.insert(j);
  }
  std::sort(work.begin(), work.end());
  return {.count = count, .list = work.data()};
}

ClientCursor::ClientCursor(Shares train, Shares test)
    : shares_(std::make_shared<const Both>(Both{std::move(train), std::move(test)})) {
  if (clients() > 0) bind(0);
}

void ClientCursor::bind(std::uint32_t client) {
  client_ = client;
  train_ = shares_->train.rows(client, train_work_);
  test_ = shares_->test.rows(client, test_work_);
}

}  // namespace gradwire
