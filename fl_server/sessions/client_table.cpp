#include "fl_server/sessions/client_table.h"

#include <charconv>
#include <string_view>
#include <system_error>

#include "proto/wire/client_name.h"

namespace gradwire {
namespace {

// Returns K if the name is client-K.
std::optional<ClientId> number_in(std::string_view name) {
  constexpr std::string_view kBegin = "client-";
  if (!name.starts_with(kBegin)) return std::nullopt;
  const std::string_view digits = name.substr(kBegin.size());
  ClientId number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

}  // namespace

Result<ClientId> ClientTable::assign(const std::string& name, std::optional<std::uint32_t> part_index,
                                     std::optional<std::uint32_t> part_count, const Keeps& keeps) {
  if (const Status good = check_client_name(name); !name.empty() && !good)
    return Error{"invalid client name: " + good.error().message};
  if (part_index.has_value() != part_count.has_value())
    return Error{"a part of the data needs both its number and the number of parts"};
  const auto known = name.empty() ? by_name_.end() : by_name_.find(name);
  if (part_index) {
    const Result<ClientId> number = assign_part(*part_index, *part_count);
    if (!number) return number;
    if (known != by_name_.end() && known->second != *number) {
      return Error{"the name '" + name + "' belongs to client " + std::to_string(known->second) +
                   ", but the data is part " + std::to_string(*number) +
                   "; give each client its own name (--id or --identity)"};
    }
    if (const Entry& entry = clients_[*number];
        entry.taken && entry.info.name != name && keeps && keeps(entry.info.name)) {
      return Error{"part " + std::to_string(*number) + " of the data belongs to client '" + entry.info.name +
                   "': start '" + name + "' with another part, or revoke '" + entry.info.name + "' first"};
    }
    return take(*number, name, true);
  }
  if (known != by_name_.end()) return known->second;
  if (const auto number = number_in(name); number && *number < size() && !clients_[*number].taken)
    return take(*number, name, false);
  for (ClientId client = 0; client < size(); ++client)
    if (!clients_[client].taken) return take(client, name, false);
  return Error{"all " + std::to_string(size()) +
               " places of the run are taken; to replace a client, use its name (--id or --identity) or "
               "its part of the data"};
}

Result<ClientId> ClientTable::assign_part(std::uint32_t index, std::uint32_t count) {
  if (count != size()) {
    return Error{"the data is split into " + std::to_string(count) + " parts, but the experiment has " +
                 std::to_string(size()) + " clients"};
  }
  if (index >= count)
    return Error{"part " + std::to_string(index) + " of " + std::to_string(count) +
                 " does not exist: parts are numbered from 0"};
  const Entry& entry = clients_[index];
  if (entry.taken && !entry.by_part) {
    return Error{"number " + std::to_string(index) + " was given to client '" + entry.info.name +
                 "', which has no part number; give all clients a part number, or none"};
  }
  return index;
}

Result<ClientId> ClientTable::take(ClientId client, const std::string& name, bool by_part) {
  Entry& entry = clients_[client];
  const std::string used = name.empty() ? "client-" + std::to_string(client) : name;
  if (entry.taken && entry.info.name == used) return client;
  const auto other = by_name_.find(used);
  if (other != by_name_.end() && other->second != client)
    return Error{"the name '" + used + "' belongs to client " + std::to_string(other->second)};
  by_name_.erase(entry.info.name);
  by_name_[used] = client;
  entry.taken = true;
  entry.by_part = by_part;
  entry.info.name = used;
  return client;
}

void ClientTable::release(ClientId client) {
  Entry& entry = clients_[client];
  by_name_.erase(entry.info.name);
  joined_count_ -= entry.joined ? 1 : 0;
  entry = {};
}

void ClientTable::leave(ClientId client) {
  joined_count_ -= clients_[client].joined ? 1 : 0;
  clients_[client].joined = false;
}

Status ClientTable::restore(ClientId client, ClientInfo info, bool by_part) {
  if (const Result<ClientId> taken = take(client, info.name, by_part); !taken) return taken.error();
  return join(client, std::move(info));
}

Status ClientTable::join(ClientId client, ClientInfo info) {
  Entry& entry = clients_[client];
  if (entry.joined && !entry.info.same_data(info)) {
    return Error{"client " + std::to_string(client) + " ('" + entry.info.name +
                 "') returned with other data than before: restore its old data (--data), or start the run "
                 "from the beginning with --fresh at the server"};
  }
  info.name = entry.info.name;
  if (entry.joined && !info.data_hash) info.data_hash = entry.info.data_hash;
  joined_count_ += entry.joined ? 0 : 1;
  entry.joined = true;
  entry.info = std::move(info);
  return Unit{};
}

}  // namespace gradwire
