// The table of client names and numbers. Pure: no I/O.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/core/message.h"
#include "base/result.h"
#include "proto/wire/abilities.h"

namespace gradwire {

// A client's description of itself and its data, from its Join.
struct ClientInfo {
  std::string name;  // never empty
  std::string build;
  std::string kernels;  // the best kernels of its processor; may be empty
  Abilities abilities;
  std::uint64_t pid = 0;
  std::uint32_t columns = 0;  // largest feature index
  std::uint64_t sample_count = 0;
  std::uint64_t test_count = 0;
  std::vector<double> labels;                   // distinct, ascending
  std::string alphabet;                         // distinct letters of its text, ascending
  std::optional<double> smoothness;             // L_i
  std::optional<double> convexity;              // mu_i
  std::optional<double> sample_smoothness;      // L_s
  std::optional<double> sample_smoothness_max;  // L_sample_max
  std::optional<std::uint64_t> data_hash;       // hash of its samples; empty from earlier releases
  std::optional<std::uint64_t> table_hash;      // hash of the names of its columns; empty if it has no table

  // Returns true if a returning client has the same data as before, as far as both descriptions say.
  bool same_data(const ClientInfo& other) const {
    const bool same_hash = !data_hash || !other.data_hash || *data_hash == *other.data_hash;
    return same_hash && columns == other.columns && sample_count == other.sample_count &&
           test_count == other.test_count && labels == other.labels && alphabet == other.alphabet;
  }
};

// Maps names to client numbers. A client whose data is part i of n has number i. The name client-K, as
// gradwire-server init makes it, gets number K if that is free; any other name gets the first free number. A
// name keeps its number when it returns.
class ClientTable {
 public:
  // Returns true if the client of that name keeps its number when another name requests it.
  using Keeps = std::function<bool(const std::string& name)>;

  explicit ClientTable(std::uint32_t clients) : clients_(clients) {}

  std::uint32_t size() const { return static_cast<std::uint32_t>(clients_.size()); }

  // Assigns a number. A client with an empty `name` gets a name of its own. If `keeps` is empty, any client
  // may take over a number (names are not authenticated).
  Result<ClientId> assign(const std::string& name, std::optional<std::uint32_t> part_index,
                          std::optional<std::uint32_t> part_count, const Keeps& keeps = {});
  // Frees a number. REQUIRES: the run has not begun, or the client has not joined.
  void release(ClientId client);
  // Forgets the data of a client, but not its name: another process may bring other data. REQUIRES: the run
  // has not begun.
  void leave(ClientId client);

  // Records the data of a client. Returns an error if it joined before with other data.
  Status join(ClientId client, ClientInfo info);
  bool joined(ClientId client) const { return clients_[client].joined; }
  std::uint32_t joined_count() const { return joined_count_; }

  const ClientInfo& info(ClientId client) const { return clients_[client].info; }
  bool by_part(ClientId client) const { return clients_[client].by_part; }
  // Restores a client as info() and by_part() described it in an earlier process. REQUIRES: the number is
  // free.
  Status restore(ClientId client, ClientInfo info, bool by_part);

 private:
  struct Entry {
    bool taken = false;
    bool by_part = false;
    bool joined = false;
    ClientInfo info;
  };
  Result<ClientId> assign_part(std::uint32_t index, std::uint32_t count);
  Result<ClientId> take(ClientId client, const std::string& name, bool by_part);

  std::vector<Entry> clients_;
  std::map<std::string, ClientId> by_name_;
  std::uint32_t joined_count_ = 0;
};

}  // namespace gradwire
