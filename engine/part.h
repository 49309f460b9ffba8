#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/dataset.h"
#include "engine/text.h"

namespace gradwire {

// How samples become parts: in their order, shuffled, sorted by label, with shares of each label that are
// drawn from a Dirichlet distribution, or by the role of a play that says them.
enum class PartitionKind : std::uint8_t { kContiguous, kIid, kByLabel, kDirichlet, kByRole };

// The samples of one client: rows or windows of text, whichever the kind of problem reads. The other form
// stays empty.
struct Part {
  Dataset train;
  Dataset test;  // may be empty
  Windows train_text = {};
  Windows test_text = {};  // may be empty

  std::size_t train_count() const { return train.rows() + train_text.size(); }
  std::size_t test_count() const { return test.rows() + test_text.size(); }
};

}  // namespace gradwire
