// A hash of samples. It shows whether a resumed run still has the same data. It protects against mistakes,
// not against attacks. Servers and checkpoints store it, so the hash of given samples never changes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "engine/data/client_dataset.h"

namespace gradwire {

class SampleHash {
 public:
  void add(std::uint64_t word) { hash_ = std::rotl((hash_ ^ word) * 0x9E3779B97F4A7C15u, 29); }
  template <class T>
  requires std::is_arithmetic_v<T>
  void add(std::span<const T> numbers) {
    add(numbers.size());
    for (const T number : numbers) {
      std::uint64_t word = 0;
      std::memcpy(&word, &number, sizeof number);
      add(word);
    }
  }
  void add_row(const Dataset& data, std::size_t row);
  void add_rows(const Dataset& data);
  // Adds the letters in the windows. Letters outside all windows, such as those of other clients, have no
  // effect.
  void add_windows(const Windows& text);
  std::uint64_t value() const;

 private:
  std::uint64_t hash_ = 0;
};

// Returns the hash of the samples of one client, in their order.
std::uint64_t hash_of_client_dataset(const ClientDataset& part);

// Returns the hash of the names and the number of a table's features, in their order.
std::uint64_t hash_of_columns(const TableEncoding& table);

}  // namespace gradwire
