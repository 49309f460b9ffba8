// The samples of each client in one shared array.
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
  const std::uint32_t* list = nullptr;  // if not null: `count` rows in any order; `first` is unused

  std::size_t operator[](std::size_t j) const { return list != nullptr ? list[j] : first + j; }
};

class Shares {
 public:
  Shares() = default;  // without clients

  // Divides rows in order. Each of the first (total mod clients) clients holds one row more.
  static Shares equal(std::uint32_t clients, std::size_t total);
  // Gives client i the rows [start[i], start[i + 1]). REQUIRES: not empty, ascending.
  static Shares ranges(std::vector<std::uint32_t> start);
  // Divides rows into one part per client, as ranges() does. Each client holds several parts, in order.
  // REQUIRES: the same as ranges() and DataReplication::part().
  static Shares copied(std::vector<std::uint32_t> start, DataReplication replication);
  // Gives each client `each` distinct rows of `total`, drawn from (seed, client) at each request. REQUIRES:
  // each <= total.
  static Shares drawn(std::uint32_t clients, std::size_t total, std::uint32_t each, std::uint64_t seed);

  std::uint32_t clients() const { return clients_; }
  bool is_drawn() const { return each_ > 0; }
  std::size_t size(std::uint32_t client) const;
  // Returns the rows of a client. Drawn rows (ascending) or rows of several parts are written to `work`,
  // which must not change while the result is used.
  ClientRows rows(std::uint32_t client, std::vector<std::uint32_t>& work) const;

 private:
  std::uint32_t clients_ = 0;
  std::size_t total_ = 0;
  std::vector<std::uint32_t> start_;  // for ranges() and copied(): one more than clients
  DataReplication replication_;       // among parts
  std::uint32_t each_ = 0;            // for drawn(); 0 if not drawn
  std::uint64_t seed_ = 0;
};

// The samples of the client to which an oracle is bound. Copies share the shares.
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
  ClientRows train_, test_;  // views of the two above
};

}  // namespace gradwire
