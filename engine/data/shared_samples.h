// The samples of all clients of a process: one copy, and the shares of each client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/data/client_dataset.h"
#include "engine/data/dataset.h"
#include "engine/data/normalize.h"
#include "engine/data/shares.h"
#include "engine/data/text.h"

namespace gradwire {

// The preparation of rows before the model sees them. Members are null if there is none.
struct Preprocessing {
  std::shared_ptr<const TableEncoding> encoding;
  std::shared_ptr<const Normalization> normalization;
};

struct SharedSamples {
  // Rows or windows of text, whichever the problem type reads. The other form stays empty.
  Dataset train;
  Dataset test;  // may be empty
  Windows train_text = {};
  Windows test_text = {};
  Shares train_shares, test_shares;  // for rows and windows
  // Rows that are made when their client needs them. If `part` is set, `train` has no rows, only the
  // number of columns.
  struct Made {
    std::function<ClientDataset(std::uint32_t client)> part;  // empty if the rows are stored
    std::vector<double> labels;                               // the distinct labels of classes, ascending
  } made = {};
  std::vector<std::string> warnings = {};                        // notes about the samples for the user
  std::shared_ptr<const Normalization> normalization = nullptr;  // the one of the rows; null if there is none

  SharedSamples() = default;  // for a problem type without data
  // Takes one part per client, in order.
  SharedSamples(std::span<const ClientDataset> parts);
  SharedSamples(const std::vector<ClientDataset>& parts) : SharedSamples(std::span(parts)) {}
  // Takes the samples of the only client.
  SharedSamples(ClientDataset part);

  std::uint32_t clients() const { return train_shares.clients(); }  // 0 if there are no data
  Preprocessing preprocessing() const { return {train.encoding, normalization}; }
  std::size_t train_count(std::uint32_t client) const { return train_shares.size(client); }
  // Frees the rows that no client in [first, end) holds; the other clients then have none. Keeps all rows
  // that clients draw, and the letters of a text.
  void keep_clients(std::uint32_t first, std::uint32_t end);
  // Returns a copy; text shares its letters.
  ClientDataset part(std::uint32_t client) const;
  // Returns the same, and frees the rows of all other clients. Rows are not copied if the client has all.
  ClientDataset take_part(std::uint32_t client) &&;
  std::vector<ClientDataset> parts(std::uint32_t first,
                                   std::uint32_t end) const;  // for the clients [first, end)
  std::vector<ClientDataset> all_parts() const { return parts(0, clients()); }
};

}  // namespace gradwire
