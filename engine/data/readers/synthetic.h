// Samples drawn from a linear teacher: data = "synthetic".
#pragma once

#include "engine/data/dataset.h"
#include "engine/data/readers/source.h"

namespace gradwire {

// The largest spec.samples * spec.dim for which rows are stored.
inline constexpr std::size_t kMaxSyntheticValues = std::size_t{1} << 28;

// Draws features a_j ~ N(0, I_d). A teacher w ~ N(0, I_d) gives the labels:
//   classes = 0:  y = <w, a>/sqrt(d) + noise N(0, 1)
//   classes = 2:  sign <w, a>, as -1 and +1
//   classes > 2:  argmax_c <w_c, a>, as 0 .. classes-1
// With probability `noise`, a class label is replaced by one of the other classes, all equally likely. Throws
// DataError, also for more than kMaxSyntheticValues numbers.
Dataset make_synthetic(const SyntheticSpec& spec, const KeepRow& keep = {});

bool is_too_large_to_store(const SyntheticSpec& spec);
// Returns samples of the same distribution that are not stored. Each row is drawn from its own number when
// its client needs it, so the rows differ from those of make_synthetic(). Throws DataError if `split` needs
// all rows, as for partitions by label or held-out rows.
SharedSamples draw_synthetic(const SyntheticSpec& spec, const SplitSpec& split);

}  // namespace gradwire
