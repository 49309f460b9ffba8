// Samples drawn from a linear teacher: data = "synthetic".
#pragma once

#include "engine/data/source.h"
#include "engine/dataset.h"

namespace gradwire {

// At most so many numbers, spec.samples times spec.dim; they are stored densely.
inline constexpr std::size_t kMaxSyntheticValues = std::size_t{1} << 28;

// Features a_j ~ N(0, I_d). A teacher w ~ N(0, I_d) gives the labels:
//   classes = 0:  y = <w, a>/sqrt(d) + noise N(0, 1)
//   classes = 2:  sign <w, a>, as -1 and +1
//   classes > 2:  argmax_c <w_c, a>, as 0 .. classes-1
// A class label is replaced, with probability `noise`, by another class, all equally likely. Throws
// DataError.
Dataset make_synthetic(const SyntheticSpec& spec);

}  // namespace gradwire
