#include "engine/data/sample_hash.h"

#include <algorithm>
#include <bit>

#include "base/rng_stream.h"

namespace gradwire {
namespace {

// Returns the byte of a letter. For the end mark of names, returns a number that no byte has.
std::uint64_t letter_of(const Letters& letters, std::uint16_t token) {
  constexpr std::uint64_t kEndMark = 256;
  if (letters.end_mark && token == 0) return kEndMark;
  return static_cast<unsigned char>(letters.alphabet[token - (letters.end_mark ? 1u : 0u)]);
}

}  // namespace

std::uint64_t SampleHash::value() const { return mix64(hash_); }

void SampleHash::add_row(const Dataset& data, std::size_t row) {
  add(std::bit_cast<std::uint64_t>(data.label[row]));
  add(data.row_columns(row));
  add(data.row_values(row));
}

void SampleHash::add_rows(const Dataset& data) {
  add(data.rows());
  for (std::size_t row = 0; row < data.rows(); ++row) add_row(data, row);
}

// Adds only the letters that the previous window did not contain. Adds the start of a window unless it is one
// letter after the previous one.
void SampleHash::add_windows(const Windows& text) {
  constexpr std::uint64_t kBegin = std::uint64_t{1} << 32;  // larger than every letter
  add(text.size());
  std::uint64_t before = 1, known = 0;  // letters [before, known) were in the last window; initially none
  for (std::size_t s = 0; s < text.size(); ++s) {
    const std::uint64_t begin = text.begin(s), end = begin + text.context + 1;
    const bool overlaps = begin >= before && begin <= known;
    const std::uint64_t first = overlaps ? std::max(begin, std::min(known, end)) : begin;
    if (!overlaps || begin - before != 1) add(overlaps ? kBegin + (begin - before) : UINT64_MAX);
    for (std::uint64_t k = first; k < end; ++k) add(letter_of(*text.letters, text.letters->tokens[k]));
    before = begin;
    known = end;
  }
}

std::uint64_t hash_of_client_dataset(const ClientDataset& part) {
  SampleHash hash;
  hash.add_rows(part.train);
  hash.add_windows(part.train_text);
  hash.add_rows(part.test);
  hash.add_windows(part.test_text);
  return hash.value();
}

std::uint64_t hash_of_columns(const TableEncoding& table) {
  SampleHash hash;
  for (const TableEncoding::Column& column : table.features)
    hash.add(std::span<const char>(column.name.data(), column.name.size()));
  return hash.value();
}

}  // namespace gradwire
