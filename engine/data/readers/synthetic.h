// Samples drawn from a linear teacher: data = "synthetic".
#pragma once

#include "engine/data/dataset.h"
#include "engine/data/readers/source.h"

namespace gradwire {

// Beyond so many numbers, spec.samples times spec.dim, rows are not stored.
inline constexpr std::size_t kMaxSyntheticValues = std::size_t{1} << 28;

// Features a_j ~ N(0, I_d). A teacher w ~ N(0, I_d) gives the labels:
//   classes = 0:  y = <w, a>/sqrt(d) + noise N(0, 1)
//   classes = 2:  sign <w, a>, as -1 and +1
//   classes > 2:  argmax_c <w_c, a>, as 0 .. classes-1
// A class label is replaced, with probability `noise`, by another class, all equally likely. Throws
// DataError, also for more than kMaxSyntheticValues.
Dataset make_synthetic(const SyntheticSpec& spec, const KeepRow& keep = {});

bool is_too_large_to_store(const SyntheticSpec& spec);
// The same kind of samples, but each row is drawn from its own number whenever its client is asked for: other
// rows than those of make_synthetic(). Throws DataError where `split` would have to see all rows: partitions
// by label, held out rows.
SharedSamples draw_synthetic(const SyntheticSpec& spec, const SplitSpec& split);

}  // namespace gradwire
