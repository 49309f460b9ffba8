#include "engine/data/shared_samples.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

namespace gradwire {
namespace {

std::vector<std::uint32_t> listed(const ClientRows& rows) {
  std::vector<std::uint32_t> list(rows.count);
  for (std::size_t j = 0; j < rows.count; ++j) list[j] = static_cast<std::uint32_t>(rows[j]);
  return list;
}

void append(Dataset& to, const Dataset& from) {
  const std::uint64_t before = to.column.size();
  to.columns = std::max(to.columns, from.columns);
  if (to.encoding == nullptr) to.encoding = from.encoding;
  for (std::size_t r = 0; r < from.rows(); ++r) to.row_start.push_back(before + from.row_start[r + 1]);
  to.column.insert(to.column.end(), from.column.begin(), from.column.end());
  to.value.insert(to.value.end(), from.value.begin(), from.value.end());
  to.label.insert(to.label.end(), from.label.begin(), from.label.end());
}

// Joins the letters of both texts in one array with one alphabet.
void append(Windows& to, const Windows& from) {
  if (from.letters == nullptr) return;
  if (to.letters == nullptr) {
    to = from;
    return;
  }
  if (to.start.empty())
    for (std::size_t s = 0; s < to.all; ++s) to.start.push_back(static_cast<std::uint32_t>(s));
  std::size_t offset = 0;
  if (to.letters != from.letters) {
    const std::string alphabet = unite_alphabets(to.alphabet(), from.alphabet());
    auto both = std::make_shared<Letters>(*with_alphabet(to, alphabet).letters);
    const Windows added = with_alphabet(from, alphabet);
    offset = both->tokens.size();
    both->tokens.insert(both->tokens.end(), added.letters->tokens.begin(), added.letters->tokens.end());
    if (both->tokens.size() > std::numeric_limits<std::uint32_t>::max())
      throw DataError("the texts of all clients together have more than 2^32-1 letters");
    to.letters = std::move(both);
  }
  for (std::size_t s = 0; s < from.size(); ++s)
    to.start.push_back(static_cast<std::uint32_t>(offset + from.begin(s)));
}

// Returns the rows of a client, and frees the others. A copy has no spare memory.
Dataset take_rows(Dataset& data, const ClientRows& rows) {
  const bool is_all = rows.list == nullptr && rows.first == 0 && rows.count == data.rows();
  const bool is_tight = data.value.size() >= data.value.capacity() / 8 * 7;
  Dataset taken = is_all && is_tight ? std::move(data) : select_rows(data, listed(rows));
  data = {};
  taken.warnings.clear();  // SharedSamples has them
  return taken;
}

ClientDataset part_of(const SharedSamples& samples, const ClientRows& train, const ClientRows& test) {
  ClientDataset part;
  part.warnings = samples.warnings;
  const std::vector<std::uint32_t> own = listed(train), held_out = listed(test);
  if (samples.train_text.letters != nullptr) {
    part.train_text = select_rows(samples.train_text, own);
    if (samples.test_text.letters != nullptr) part.test_text = select_rows(samples.test_text, held_out);
    return part;
  }
  part.train = select_rows(samples.train, own);
  part.test = select_rows(samples.test, held_out);
  return part;
}

void keep_rows(Dataset& data, Shares& shares, std::uint32_t first, std::uint32_t end) {
  if (shares.is_drawn()) return;
  std::vector<std::uint32_t> work, kept, start = {0};
  for (std::uint32_t i = 0; i < shares.clients(); ++i) {
    if (i >= first && i < end)
      for (const std::uint32_t row : listed(shares.rows(i, work))) kept.push_back(row);
    start.push_back(static_cast<std::uint32_t>(kept.size()));
  }
  data = select_rows(data, kept);
  shares = Shares::ranges(std::move(start));
}

}  // namespace

SharedSamples::SharedSamples(std::span<const ClientDataset> parts) {
  std::vector<std::uint32_t> train_start = {0}, test_start = {0};
  for (const ClientDataset& part : parts) {
    append(train, part.train);
    append(test, part.test);
    append(train_text, part.train_text);
    append(test_text, part.test_text);
    train_start.push_back(train_start.back() + static_cast<std::uint32_t>(part.train_count()));
    test_start.push_back(test_start.back() + static_cast<std::uint32_t>(part.test_count()));
  }
  train_shares = Shares::ranges(std::move(train_start));
  test_shares = Shares::ranges(std::move(test_start));
}

SharedSamples::SharedSamples(ClientDataset part)
    : train(std::move(part.train)),
      test(std::move(part.test)),
      train_text(std::move(part.train_text)),
      test_text(std::move(part.test_text)) {
  const auto whole = [](std::size_t count) { return Shares::ranges({0, static_cast<std::uint32_t>(count)}); };
  train_shares = whole(train.rows() + train_text.size());
  test_shares = whole(test.rows() + test_text.size());
}

void SharedSamples::keep_clients(std::uint32_t first, std::uint32_t end) {
  if (train.rows() > 0) keep_rows(train, train_shares, first, end);
  if (test.rows() > 0) keep_rows(test, test_shares, first, end);
}

ClientDataset SharedSamples::part(std::uint32_t client) const {
  if (made.part) return made.part(client);
  std::vector<std::uint32_t> train_work, test_work;
  return part_of(*this, train_shares.rows(client, train_work), test_shares.rows(client, test_work));
}

ClientDataset SharedSamples::take_part(std::uint32_t client) && {
  if (made.part || train_text.letters != nullptr) return part(client);
  std::vector<std::uint32_t> work;
  ClientDataset part;
  part.warnings = std::move(warnings);
  part.test = take_rows(test, test_shares.rows(client, work));
  part.train = take_rows(train, train_shares.rows(client, work));
  return part;
}

std::vector<ClientDataset> SharedSamples::parts(std::uint32_t first, std::uint32_t end) const {
  std::vector<ClientDataset> parts;
  parts.reserve(end - first);
  for (std::uint32_t i = first; i < end; ++i) parts.push_back(part(i));
  return parts;
}

}  // namespace gradwire
