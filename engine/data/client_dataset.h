#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/data/text.h"

namespace gradwire {

// The rule that divides samples into parts: in their order, shuffled, sorted by label, by shares of each
// label drawn from a Dirichlet distribution, or by the speaker of a dialogue.
enum class PartitionKind : std::uint8_t { kContiguous, kIid, kByLabel, kDirichlet, kBySpeaker };

// The rule that says which parts of the data a client holds. There are n parts, and each is held by
// `count` of the n clients. kRing: `count` consecutive parts, from the client's own, with wrap-around.
// kGroups: all parts of its group of `count` clients.
enum class ReplicaPlacement : std::uint8_t { kRing, kGroups };
struct DataReplication {
  std::uint32_t count = 1;
  ReplicaPlacement placement = ReplicaPlacement::kRing;

  // Returns the k-th part of the client, k < count. REQUIRES: count divides n for kGroups.
  std::uint32_t part(std::uint32_t client, std::uint32_t k, std::uint32_t n) const {
    return placement == ReplicaPlacement::kRing ? (client + k) % n : client - client % count + k;
  }
};

// The samples of one client: rows or windows of text, whichever the problem type reads. The other form stays
// empty.
struct ClientDataset {
  Dataset train;
  Dataset test;  // may be empty
  Windows train_text = {};
  Windows test_text = {};                  // may be empty
  std::vector<std::string> warnings = {};  // notes about the samples for the user

  std::size_t train_count() const { return train.rows() + train_text.size(); }
  std::size_t test_count() const { return test.rows() + test_text.size(); }
};

}  // namespace gradwire
