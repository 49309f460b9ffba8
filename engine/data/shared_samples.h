// The samples of all clients of a process: one copy, and who holds which.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/data/client_dataset.h"
#include "engine/data/dataset.h"
#include "engine/data/shares.h"
#include "engine/data/text.h"

namespace gradwire {

struct SharedSamples {
  // Rows or windows of text, whichever the problem type reads. The other form stays empty.
  Dataset train;
  Dataset test;  // may be empty
  Windows train_text = {};
  Windows test_text = {};
  Shares train_shares, test_shares;  // of rows and windows alike
  // Rows that are made when their client is asked for: not empty, `train` has none, and says how many columns
  // they have.
  struct Made {
    std::function<ClientDataset(std::uint32_t client)> part;  // empty: the rows are here
    std::vector<double> labels;                               // the different ones of classes, ascending
  } made = {};
  std::vector<std::string> warnings = {};  // what the user should know about the samples

  SharedSamples() = default;  // of a kind without data: nobody's
  // One part per client, one after the other.
  SharedSamples(std::span<const ClientDataset> parts);
  SharedSamples(const std::vector<ClientDataset>& parts) : SharedSamples(std::span(parts)) {}
  SharedSamples(const ClientDataset& part) : SharedSamples(std::span(&part, 1)) {}

  std::uint32_t clients() const { return train_shares.clients(); }  // 0: there are no data
  std::size_t train_count(std::uint32_t client) const { return train_shares.size(client); }
  // Gives back the memory of rows that no client in [first, end) holds; the other clients are left without
  // any. Drawn rows may be anybody's: all stay. So do the letters of a text.
  void keep_clients(std::uint32_t first, std::uint32_t end);
  // Copies; text shares its letters.
  ClientDataset part(std::uint32_t client) const;
  std::vector<ClientDataset> parts(std::uint32_t first,
                                   std::uint32_t end) const;  // of the clients [first, end)
  std::vector<ClientDataset> all_parts() const { return parts(0, clients()); }
};

}  // namespace gradwire
