// The types that parameters of compressors have; compressor.cpp reads, writes and checks each of them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gradwire {

// A number of coordinates, or a share of d ("1%") until d is known.
struct Count {
  std::uint32_t count = 1;
  double share = 0;  // > 0: `count` is round(share * d), at least 1, once resolved
  bool operator==(const Count&) const = default;
};

// The number of clients of the run; 0 until it is known.
struct Clients {
  std::uint32_t count = 0;
  bool operator==(const Clients&) const = default;
};

// s of a dithering, 1 .. most.
struct Levels {
  std::uint32_t count = 1, most = 65535;
  bool operator==(const Levels&) const = default;
};

// The p of a p-norm, 1 .. inf.
struct NormOrder {
  double p = 2;
  bool operator==(const NormOrder&) const = default;
};

// In (0, 1].
struct Probability {
  double value = 0.5;
  bool operator==(const Probability&) const = default;
};

// A matrix shape for vectors of length d; 0 until d is known: the largest divisor of d up to its root.
struct Rows {
  std::uint32_t count = 0;
  bool operator==(const Rows&) const = default;
};

// The rank of a matrix that has `Rows` rows.
struct Rank {
  std::uint32_t count = 1;
  bool operator==(const Rank&) const = default;
};

}  // namespace gradwire
