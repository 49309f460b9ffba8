// Which samples of one array each client holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/data/client_dataset.h"

namespace gradwire {

// The samples of one client among those of all: its sample j is row (*this)[j].
struct ClientRows {
  std::size_t first = 0, count = 0;
  const std::uint32_t* list = nullptr;  // not null: `count` rows in any order; `first` is not used

  std::size_t operator[](std::size_t j) const { return list != nullptr ? list[j] : first + j; }
};

class Shares {
 public:
  Shares() = default;  // of nobody

  // In order; each of the first (total mod clients) clients holds one row more than the others.
  static Shares equal(std::uint32_t clients, std::size_t total);
  // Client i holds the rows [start[i], start[i + 1]). REQUIRES: not empty, ascending.
  static Shares ranges(std::vector<std::uint32_t> start);
  // There is a part for each client, as ranges() has them, and each client holds several parts, one after the
  // other. REQUIRES: also those of DataReplication.
  static Shares copied(std::vector<std::uint32_t> start, DataReplication replication);
  // Each client holds `each` different rows of `total`, drawn from (seed, client) whenever it is asked for.
  // REQUIRES: each <= total.
  static Shares drawn(std::uint32_t clients, std::size_t total, std::uint32_t each, std::uint64_t seed);

  std::uint32_t clients() const { return clients_; }
  bool is_drawn() const { return each_ > 0; }
  std::size_t size(std::uint32_t client) const;
  // Rows that are drawn (they ascend) or of several parts go to `work`, which must stay unchanged while the
  // result is used.
  ClientRows rows(std::uint32_t client, std::vector<std::uint32_t>& work) const;

 private:
  std::uint32_t clients_ = 0;
  std::size_t total_ = 0;
  std::vector<std::uint32_t> start_;  // of ranges() and copied(): one more than clients
  DataReplication replication_;       // of parts
  std::uint32_t each_ = 0;            // of drawn(); 0: not drawn
  std::uint64_t seed_ = 0;
};

// The samples of the client that an oracle is at. Copies share the shares.
class ClientCursor {
 public:
  // Starts at client 0, if there is one.
  ClientCursor(Shares train, Shares test);
  ClientCursor(const ClientCursor& other) : shares_(other.shares_) { bind(other.client_); }
  ClientCursor(ClientCursor&&) = default;
  ClientCursor& operator=(const ClientCursor&) = delete;
  ClientCursor& operator=(ClientCursor&&) = default;

  std::uint32_t clients() const { return shares_->train.clients(); }
  std::size_t train_count(std::uint32_t client) const { return shares_->train.size(client); }
  void bind(std::uint32_t client);
  const ClientRows& train() const { return train_; }
  const ClientRows& test() const { return test_; }

 private:
  struct Both {
    Shares train, test;
  };
  std::shared_ptr<const Both> shares_;
  std::uint32_t client_ = 0;
  std::vector<std::uint32_t> train_work_, test_work_;
  ClientRows train_, test_;  // view the two above
};

}  // namespace gradwire
