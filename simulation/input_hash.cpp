#include "simulation/input_hash.h"

#include <cstring>
#include <span>
#include <vector>

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

namespace {

template <class Real>
void add_losses(SampleHash& hash, const ClientObjectives<Real>& all, const std::vector<double>& at) {
  constexpr std::uint32_t kClients = 8;
  const std::vector<Real> x(at.begin(), at.end());
  const auto oracle = all.oracle();
  const std::uint32_t step = std::max(1u, all.clients() / kClients);
  for (std::uint32_t i = 0; i < all.clients(); i += step) {
    oracle->bind(i);
    const Real loss = oracle->loss(x, {});
    hash.add(oracle->sample_count());
    hash.add(std::span<const Real>(&loss, 1));
  }
}

}  // namespace

void add_functions(SampleHash& hash, const Functions& functions, const std::vector<double>& x) {
  if (functions.fp32 != nullptr) add_losses(hash, *functions.fp32, x);
  if (functions.fp64 != nullptr) add_losses(hash, *functions.fp64, x);
}

std::uint64_t hash_of_program(const Prepared& prepared) {
  if (!prepared.has_parts_of_program) return 0;
  SampleHash hash;
  hash.add(std::span<const double>(prepared.x0));
  add_functions(hash, prepared.functions, prepared.x0);
  const AlgorithmSection& algorithm = prepared.experiment.algorithm;
  const std::string name = algorithm.custom_fp64 != nullptr   ? algorithm.custom_fp64->name
                           : algorithm.custom_fp32 != nullptr ? algorithm.custom_fp32->name
                                                              : "";
  hash.add(std::span<const char>(name));
  return hash.value();
}

}  // namespace gradwire
