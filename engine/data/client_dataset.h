#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/data/text.h"

namespace gradwire {

// How samples become parts: in their order, shuffled, sorted by label, with shares of each label that are
// drawn from a Dirichlet distribution, or by the speaker of a dialogue that says them.
enum class PartitionKind : std::uint8_t { kContiguous, kIid, kByLabel, kDirichlet, kBySpeaker };

// Which parts of the data a client holds, where each of n parts is held by `count` of n clients: as many that
// follow one another from its own on (and from the last to the first), or all those of its group of `count`.
enum class ReplicaPlacement : std::uint8_t { kRing, kGroups };
struct DataReplication {
  std::uint32_t count = 1;
  ReplicaPlacement placement = ReplicaPlacement::kRing;

  // Its k-th part, k < count. REQUIRES: groups: count divides n.
  std::uint32_t part(std::uint32_t client, std::uint32_t k, std::uint32_t n) const {
    return placement == ReplicaPlacement::kRing ? (client + k) % n : client - client % count + k;
  }
};

// The samples of one client: rows or windows of text, whichever the problem type reads. The other form
// stays empty.
struct ClientDataset {
  Dataset train;
  Dataset test;  // may be empty
  Windows train_text = {};
  Windows test_text = {};                  // may be empty
  std::vector<std::string> warnings = {};  // what the user should know about the samples

  std::size_t train_count() const { return train.rows() + train_text.size(); }
  std::size_t test_count() const { return test.rows() + test_text.size(); }
};

}  // namespace gradwire
