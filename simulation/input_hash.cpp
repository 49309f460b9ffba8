#include "simulation/input_hash.h"

#include <cstring>
#include <span>
#include <vector>

#include "engine/data/sample_hash.h"
#include "simulation/rank_scan.h"

namespace gradwire {
namespace {

void add_samples(SampleHash& hash, const Dataset& data, const Windows& text, const ClientRows& rows) {
  hash.add(rows.count);
  for (std::size_t j = 0; j < rows.count; ++j) {
    if (text.letters != nullptr) {
      hash.add(text.begin(rows[j]));
    } else if (rows[j] < data.rows()) {
      hash.add_row(data, rows[j]);
    }
  }
}

// Adds the data that every rank has: letters, and the rows that clients draw from.
void add_shared(SampleHash& hash, const Dataset& data, const Windows& text, const Shares& shares) {
  if (text.letters != nullptr) {
    for (const char letter : text.letters->alphabet) hash.add(static_cast<unsigned char>(letter));
    hash.add(std::span<const std::uint16_t>(text.letters->tokens));
  }
  for (std::size_t row = 0; shares.is_drawn() && row < data.rows(); ++row) hash.add_row(data, row);
}

}  // namespace

std::uint64_t hash_of_samples(const SharedSamples& samples, Ranks* ranks) {
  if (samples.made.part || samples.clients() == 0) return 0;
  const OrderedScan mine = ordered_scan_of(ranks, samples.clients());
  std::uint64_t sum = 0;
  std::vector<std::uint32_t> work;
  for (std::uint32_t i = mine.first; i < mine.end && i < samples.clients(); ++i) {
    SampleHash of_client;
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
  SampleHash whole;
  whole.add(sum);
  add_shared(whole, samples.train, samples.train_text, samples.train_shares);
  add_shared(whole, samples.test, samples.test_text, samples.test_shares);
  return whole.value();
}

std::uint64_t hash_of_traces(const ClientLatency& seconds) {
  if (seconds.traces.empty()) return 0;
  SampleHash hash;
  for (const std::vector<double>& trace : seconds.traces) hash.add(std::span<const double>(trace));
  return hash.value();
}

}  // namespace gradwire
