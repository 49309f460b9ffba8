#include "experiments/simulate/input_hash.h"

#include <bit>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "base/stream.h"
#include "experiments/simulate/rank_turns.h"

namespace gradwire {
namespace {

class Hash {
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
  std::uint64_t value() const { return mix64(hash_); }

 private:
  std::uint64_t hash_ = 0;
};

void add_row(Hash& hash, const Dataset& data, std::size_t row) {
  hash.add(std::bit_cast<std::uint64_t>(data.label[row]));
  hash.add(data.row_columns(row));
  hash.add(data.row_values(row));
}

void add_samples(Hash& hash, const Dataset& data, const Windows& text, const ClientRows& rows) {
  hash.add(rows.count);
  for (std::size_t j = 0; j < rows.count; ++j) {
    if (text.letters != nullptr) {
      hash.add(text.begin(rows[j]));
    } else if (rows[j] < data.rows()) {
      add_row(hash, data, rows[j]);
    }
  }
}

// Adds what every rank has: letters, and the rows that clients draw from.
void add_shared(Hash& hash, const Dataset& data, const Windows& text, const Shares& shares) {
  if (text.letters != nullptr) {
    for (const char letter : text.letters->alphabet) hash.add(static_cast<unsigned char>(letter));
    hash.add(std::span<const std::uint16_t>(text.letters->tokens));
  }
  for (std::size_t row = 0; shares.is_drawn() && row < data.rows(); ++row) add_row(hash, data, row);
}

}  // namespace

std::uint64_t hash_of_samples(const SharedSamples& samples, Ranks* ranks) {
  if (samples.made.part || samples.clients() == 0) return 0;
  const Turns mine = turns_of(ranks, samples.clients());
  std::uint64_t sum = 0;
  std::vector<std::uint32_t> work;
  for (std::uint32_t i = mine.first; i < mine.end && i < samples.clients(); ++i) {
    Hash of_client;
    of_client.add(i);
    if (!samples.train_shares.is_drawn())
      add_samples(of_client, samples.train, samples.train_text, samples.train_shares.rows(i, work));
    if (i < samples.test_shares.clients() && !samples.test_shares.is_drawn())
      add_samples(of_client, samples.test, samples.test_text, samples.test_shares.rows(i, work));
    sum += of_client.value();
  }
  if (ranks != nullptr) {
    RankBytes all;
    ranks->all_gather(std::as_bytes(std::span(&sum, 1)), all);
    sum = 0;
    for (unsigned r = 0; r < ranks->count(); ++r) {
      std::uint64_t part = 0;
      std::memcpy(&part, all.of(r).data(), sizeof part);
      sum += part;
    }
  }
  Hash whole;
  whole.add(sum);
  add_shared(whole, samples.train, samples.train_text, samples.train_shares);
  add_shared(whole, samples.test, samples.test_text, samples.test_shares);
  return whole.value();
}

std::uint64_t hash_of_traces(const ClientSeconds& seconds) {
  if (seconds.traces.empty()) return 0;
  Hash hash;
  for (const std::vector<double>& trace : seconds.traces) hash.add(std::span<const double>(trace));
  return hash.value();
}

}  // namespace gradwire
