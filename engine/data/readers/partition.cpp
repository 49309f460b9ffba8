// Division of samples among clients. The row numbers of each client ascend, so training rows keep the
// order of the file.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <queue>
#include <span>
#include <string>
#include <utility>

#include "base/random.h"
#include "engine/data/readers/source.h"

namespace gradwire {
namespace {

using RowNumbers = std::vector<std::uint32_t>;

// Limits of a Dirichlet split, which draws one number per (class, client). The labels of a regression are all
// distinct.
constexpr std::size_t kMaxDirichletClasses = 10000;
constexpr double kMinAlpha = 1e-6;
constexpr double kMaxAlpha = 1e6;

// The input of a split.
struct RowsAndLabels {
  std::size_t count = 0;
  std::span<const double> label;  // one each; may be empty for contiguous and iid
  std::size_t overlap = 0;        // a sample shares letters with this many samples after it
  std::span<const std::uint32_t> speaker_start = {};  // as in Windows
};

void check(const RowsAndLabels& samples, const SplitSpec& spec) {
  if (spec.clients == 0) throw DataError("clients.count must be at least 1");
  if (!(spec.test_share >= 0 && spec.test_share < 1)) throw DataError("test_share must be in [0, 1)");
  if (samples.count > std::numeric_limits<std::uint32_t>::max()) throw DataError("more than 2^32-1 samples");
  if (spec.partition == PartitionKind::kDirichlet &&
      !(spec.dirichlet_alpha >= kMinAlpha && spec.dirichlet_alpha <= kMaxAlpha)) {
    throw DataError("clients.dirichlet_alpha must be between 1e-6 and 1e6");
  }
  if (spec.replication.count > 1 &&
      (spec.partition == PartitionKind::kDirichlet || spec.samples_per_client > 0))
    throw DataError("clients.replication needs equal parts; use contiguous, iid or by_label");
}

// Gives all of `rows` to n clients in order. Sizes differ by at most one.
RowLists share_out(RowNumbers rows, std::uint32_t clients) {
  RowLists lists;
  lists.start.reserve(clients + std::size_t{1});
  for (std::uint64_t i = 1; i <= clients; ++i)
    lists.start.push_back(static_cast<std::uint32_t>(i * rows.size() / clients));
  lists.row = std::move(rows);
  return lists;
}

// Gives each client consecutive entries of `rows`; each of the first N mod n clients gets one more. Replicas
// need equal parts: with them, drops the last N mod n entries.
RowLists blocks(RowNumbers rows, const SplitSpec& spec) {
  const std::size_t each = rows.size() / spec.clients;
  const std::size_t longer = spec.replication.count > 1 ? 0 : rows.size() % spec.clients;
  RowLists lists;
  lists.start.reserve(spec.clients + std::size_t{1});
  for (std::size_t i = 0; i < spec.clients; ++i)
    lists.start.push_back(static_cast<std::uint32_t>(lists.start.back() + each + (i < longer ? 1 : 0)));
  rows.resize(lists.start.back());
  lists.row = std::move(rows);
  return lists;
}

// Draws the logarithm of a Gamma(alpha, 1) variate, which itself underflows for small alpha. Marsaglia and
// Tsang, "A simple method for generating gamma variables", TOMS 2000; section 6 for alpha below 1.
double log_gamma_variate(double alpha, Random& random) {
  double log_boost = 0;
  if (alpha < 1) {
    log_boost = portable_log(1 - random.uniform()) / alpha;
    alpha += 1;
  }
  const double d = alpha - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = random.normal();
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    const double log_u = portable_log(1 - random.uniform());
    const double log_v = portable_log(v);
    if (log_u < 0.5 * x * x + d - d * v + d * log_v) return portable_log(d) + log_v + log_boost;
  }
}

// Draws from Dir(alpha, ..., alpha), shape (n).
std::vector<double> dirichlet(double alpha, std::uint32_t n, Random& random) {
  std::vector<double> share(n);
  for (double& s : share) s = log_gamma_variate(alpha, random);
  const double largest = *std::max_element(share.begin(), share.end());
  for (double& s : share) s = portable_exp(s - largest);
  const double sum = std::accumulate(share.begin(), share.end(), 0.0);
  for (double& s : share) s /= sum;
  return share;
}

// Returns the rows of each class in order; classes ascend by label.
std::vector<RowNumbers> rows_by_class(std::span<const double> label, std::span<const std::uint32_t> rows) {
  const std::vector<double> labels = distinct_labels(label);
  if (labels.size() > kMaxDirichletClasses) {
    throw DataError("partition = dirichlet needs classes, but there are " + std::to_string(labels.size()) +
                    " distinct labels; use contiguous, iid or by_label");
  }
  std::vector<RowNumbers> classes(labels.size());
  for (const std::uint32_t r : rows) {
    const auto at = std::lower_bound(labels.begin(), labels.end(), label[r]);
    classes[static_cast<std::size_t>(at - labels.begin())].push_back(r);
  }
  return classes;
}

// Gives each client without rows one row from the client that then has the most (the first of equal ones).
// REQUIRES: at least as many rows as clients.
void fill_empty(std::vector<RowNumbers>& clients) {
  using Entry = std::pair<std::size_t, std::size_t>;  // (rows, n - client)
  const std::size_t n = clients.size();
  std::priority_queue<Entry> largest;
  for (std::size_t i = 0; i < n; ++i) largest.emplace(clients[i].size(), n - i);
  for (RowNumbers& empty : clients) {
    if (!empty.empty()) continue;
    const auto [rows, from_end] = largest.top();
    largest.pop();
    RowNumbers& donor = clients[n - from_end];
    empty.push_back(donor.back());
    donor.pop_back();
    largest.emplace(rows - 1, from_end);
  }
}

RowLists dirichlet_split(std::span<const double> label, std::span<const std::uint32_t> rows,
                         const SplitSpec& spec) {
  std::vector<RowNumbers> clients(spec.clients);
  std::vector<std::uint32_t> order(spec.clients);
  std::iota(order.begin(), order.end(), 0);
  Random random(spec.seed, "partition dirichlet");
  for (RowNumbers& members : rows_by_class(label, rows)) {
    random.shuffle(std::span(members));
    random.shuffle(std::span(order));  // so that rounding does not favour any client
    const std::vector<double> share = dirichlet(spec.dirichlet_alpha, spec.clients, random);
    double cumulative = 0;
    std::size_t begin = 0;
    for (std::uint32_t i = 0; i < spec.clients; ++i) {
      cumulative += share[i];
      const auto cut = static_cast<std::size_t>(cumulative * static_cast<double>(members.size()) + 0.5);
      const std::size_t end = i + 1 == spec.clients ? members.size() : std::clamp(cut, begin, members.size());
      RowNumbers& mine = clients[order[i]];
      mine.insert(mine.end(), members.begin() + static_cast<std::ptrdiff_t>(begin),
                  members.begin() + static_cast<std::ptrdiff_t>(end));
      begin = end;
    }
  }
  fill_empty(clients);
  RowLists lists;
  for (const RowNumbers& mine : clients) {
    lists.row.insert(lists.row.end(), mine.begin(), mine.end());
    lists.start.push_back(static_cast<std::uint32_t>(lists.row.size()));
  }
  return lists;
}

RowLists split_train(std::span<const double> label, RowNumbers rows, const SplitSpec& spec) {
  switch (spec.partition) {
    case PartitionKind::kContiguous: break;
    case PartitionKind::kIid: Random(spec.seed, "partition iid").shuffle(std::span(rows)); break;
    case PartitionKind::kByLabel:
      std::stable_sort(rows.begin(), rows.end(),
                       [label](std::uint32_t a, std::uint32_t b) { return label[a] < label[b]; });
      break;
    case PartitionKind::kDirichlet: return dirichlet_split(label, rows, spec);
    case PartitionKind::kBySpeaker: throw DataError("clients.partition: by_role only splits text");
  }
  return blocks(std::move(rows), spec);
}

RowNumbers numbered(std::size_t first, std::size_t last) {
  RowNumbers rows(last - first);
  std::iota(rows.begin(), rows.end(), static_cast<std::uint32_t>(first));
  return rows;
}

struct HeldOut {
  RowNumbers train, test;
};

// Holds out a random share of the samples. If samples overlap, it holds out the last ones, and drops the
// samples before them that share letters with them.
HeldOut hold_out(const RowsAndLabels& samples, const SplitSpec& spec) {
  const auto count =
      static_cast<std::size_t>(std::llround(spec.test_share * static_cast<double>(samples.count)));
  if (samples.overlap > 0) {
    const std::size_t first = samples.count - count;
    const std::size_t dropped = count > 0 ? std::min(first, samples.overlap) : 0;
    return {numbered(0, first - dropped), numbered(first, samples.count)};
  }
  RowNumbers order = numbered(0, samples.count);
  if (count > 0) Random(spec.seed, "test share").shuffle(std::span(order));
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(count);
  if (count > 0) {
    std::sort(order.begin(), middle);
    std::sort(middle, order.end());
  }
  return {RowNumbers(middle, order.end()), RowNumbers(order.begin(), middle)};
}

// Returns the training rows of each client, or one list of all of them if clients draw their samples.
RowLists train_lists(const RowsAndLabels& samples, RowNumbers rows, const SplitSpec& spec) {
  if (spec.samples_per_client == 0) return split_train(samples.label, std::move(rows), spec);
  if (spec.samples_per_client > rows.size()) {
    throw DataError("clients.samples_per_client = " + std::to_string(spec.samples_per_client) +
                    ", but there are " + std::to_string(rows.size()) + " training samples; lower it");
  }
  return share_out(std::move(rows), 1);
}

// Gives role i to client i. Holds out the end of each role's text, and drops samples that share letters with
// it.
Split split_by_speaker(const RowsAndLabels& samples, const SplitSpec& spec) {
  const std::span<const std::uint32_t> start = samples.speaker_start;
  if (start.size() < spec.clients + std::size_t{1})
    throw DataError("clients.count = " + std::to_string(spec.clients) + ", but " +
                    std::to_string(start.empty() ? 0 : start.size() - 1) +
                    " roles have enough text for a sample; lower clients.count");
  Split result;
  for (std::uint32_t i = 0; i < spec.clients; ++i) {
    const std::size_t count = start[i + 1] - start[i];
    const auto held_out =
        static_cast<std::size_t>(std::llround(spec.test_share * static_cast<double>(count)));
    const std::size_t dropped = held_out > 0 ? samples.overlap : 0;
    if (held_out + dropped >= count)
      throw DataError("problem.test_share leaves no training sample for role " + std::to_string(i + 1) +
                      " by length; lower it, or clients.count");
    const auto append = [](RowLists& to, std::size_t first, std::size_t last) {
      for (std::size_t row = first; row < last; ++row) to.row.push_back(static_cast<std::uint32_t>(row));
      to.start.push_back(static_cast<std::uint32_t>(to.row.size()));
    };
    append(result.train, start[i], start[i + 1] - held_out - dropped);
    append(result.test, start[i + 1] - held_out, start[i + 1]);
  }
  return result;
}

Split split(const RowsAndLabels& samples, const SplitSpec& spec) {
  check(samples, spec);
  if (spec.partition == PartitionKind::kBySpeaker && !samples.speaker_start.empty())
    return split_by_speaker(samples, spec);
  HeldOut parts = hold_out(samples, spec);
  if (spec.samples_per_client == 0 && parts.train.size() < spec.clients) {
    throw DataError("more clients than samples: " + std::to_string(spec.clients) + " clients, " +
                    std::to_string(parts.train.size()) + " training samples; lower clients.count" +
                    (parts.test.empty() ? "" : " or problem.test_share") +
                    ", or set clients.samples_per_client");
  }
  Split result;
  const std::size_t train_count = parts.train.size();
  result.train = train_lists(samples, std::move(parts.train), spec);
  result.left_out = train_count - result.train.row.size();
  if (!std::ranges::is_sorted(result.train.row))
    for (std::size_t i = 0; i < result.train.size(); ++i)
      std::sort(result.train.row.begin() + result.train.start[i],
                result.train.row.begin() + result.train.start[i + 1]);
  result.test = share_out(std::move(parts.test), spec.clients);
  return result;
}

RowsAndLabels samples_of(const Dataset& data) { return {data.rows(), data.label, 0}; }

// Fills `label` with the tokens of the predicted letters, if the split needs labels.
RowsAndLabels samples_of(const Windows& text, const SplitSpec& spec, std::vector<double>& label) {
  const bool by_label =
      spec.partition == PartitionKind::kByLabel || spec.partition == PartitionKind::kDirichlet;
  if (by_label && text.targets > 1) {
    throw DataError(
        "clients.partition: a sample of running text has a label at each position; use contiguous or iid");
  }
  if (by_label)
    for (std::size_t s = 0; s < text.size(); ++s) label.push_back(text.labels(s)[0]);
  return {text.size(), label, text.targets > 1 ? text.context : 0, text.speaker_start};
}

Split split_for(const RowsAndLabels& samples, std::size_t test_count, bool has_test, SplitSpec spec) {
  if (!has_test) return split(samples, spec);
  spec.test_share = 0;
  Split result = split(samples, spec);
  if (test_count > std::numeric_limits<std::uint32_t>::max())
    throw DataError("more than 2^32-1 test samples");
  result.test = share_out(numbered(0, test_count), spec.clients);
  return result;
}

// Returns true if the rows are 0, 1, 2, ...
bool counts_up(const RowNumbers& rows) {
  for (std::size_t k = 0; k < rows.size(); ++k)
    if (rows[k] != k) return false;
  return true;
}

// Returns true if the only client has all rows, in their order. Then no lists of rows are needed.
bool has_all_rows(const SplitSpec& spec) {
  return spec.clients == 1 && spec.test_share == 0 && spec.samples_per_client == 0 &&
         spec.partition == PartitionKind::kContiguous && spec.replication.count == 1;
}

void keep_first_rows(Dataset& data, std::size_t rows) {
  if (rows == data.rows()) return;
  data.label.resize(rows);
  data.row_start.resize(rows + 1);
  data.column.resize(data.row_start.back());
  data.value.resize(data.row_start.back());
}

void set_shares(SharedSamples& shared, Split rows, const SplitSpec& spec) {
  if (rows.left_out > 0)
    shared.warnings.push_back("clients.replication needs equal parts: " + std::to_string(rows.left_out) +
                              " of " + std::to_string(rows.left_out + rows.train.row.size()) +
                              " training samples are unused, as the number of samples is not a multiple of " +
                              std::to_string(spec.clients) + " clients");
  shared.train_shares =
      spec.samples_per_client > 0
          ? Shares::drawn(spec.clients, rows.train.row.size(), spec.samples_per_client, spec.seed)
          : Shares::copied(std::move(rows.train.start), spec.replication);
  shared.test_shares = Shares::ranges(std::move(rows.test.start));
}

}  // namespace

Split split_rows(const Dataset& data, const SplitSpec& spec) { return split(samples_of(data), spec); }

RowsOfClients rows_of_clients(const Dataset& data, const Dataset* test, const SplitSpec& spec,
                              std::uint32_t first, std::uint32_t end) {
  const Split rows = split_for(samples_of(data), test != nullptr ? test->rows() : 0, test != nullptr, spec);
  RowsOfClients of{std::vector<bool>(data.rows()), std::vector<bool>(test != nullptr ? test->rows() : 0)};
  std::vector<bool>& of_test = test != nullptr ? of.test : of.data;
  for (std::uint32_t i = first; i < end; ++i)
    for (const std::uint32_t row : rows.test[i]) of_test[row] = true;
  if (spec.samples_per_client > 0) {  // drawn: any client may hold any sample
    for (const std::uint32_t row : rows.train.row) of.data[row] = true;
    return of;
  }
  for (std::uint32_t i = first; i < end; ++i)
    for (std::uint32_t k = 0; k < spec.replication.count; ++k)
      for (const std::uint32_t row : rows.train[spec.replication.part(i, k, spec.clients)])
        of.data[row] = true;
  return of;
}

SharedSamples share_samples(Dataset data, const Dataset* test, const SplitSpec& spec) {
  if (test != nullptr && test->columns > data.columns) {
    throw DataError("the test data has " + std::to_string(test->columns) + " features, the training data " +
                    std::to_string(data.columns) + "; set problem.dim = " + std::to_string(test->columns));
  }
  SharedSamples shared;
  shared.warnings = data.warnings;
  if (test == nullptr && data.rows() > 0 && has_all_rows(spec)) {
    check(samples_of(data), spec);
    shared.train_shares = Shares::ranges({0, static_cast<std::uint32_t>(data.rows())});
    shared.test_shares = Shares::ranges({0, 0});
    shared.test = select_rows(data, {});
    shared.train = std::move(data);
    return shared;
  }
  Split rows = split_for(samples_of(data), test != nullptr ? test->rows() : 0, test != nullptr, spec);
  if (test != nullptr)
    shared.warnings.insert(shared.warnings.end(), test->warnings.begin(), test->warnings.end());
  shared.test = select_rows(test != nullptr ? *test : data, rows.test.row);
  shared.test.columns = data.columns;  // a test file may lack the last features
  if (counts_up(rows.train.row)) {
    keep_first_rows(data, rows.train.row.size());
    shared.train = std::move(data);
  } else {
    shared.train = select_rows(data, rows.train.row);
  }
  set_shares(shared, std::move(rows), spec);
  return shared;
}

SharedSamples share_samples(const Windows& text, const Windows* test, const SplitSpec& spec) {
  // All clients share one array of letters, so all texts need the same alphabet.
  const std::string alphabet = unite_alphabets(text.alphabet(), test != nullptr ? test->alphabet() : "");
  const Windows own = with_alphabet(text, alphabet);
  const Windows held_out = test != nullptr ? with_alphabet(*test, alphabet) : own;
  std::vector<double> label;
  const RowsAndLabels samples = samples_of(own, spec, label);
  Split rows = split_for(samples, held_out.size(), test != nullptr, spec);
  SharedSamples shared;
  shared.train_text = select_rows(own, rows.train.row);
  shared.test_text = select_rows(held_out, rows.test.row);
  set_shares(shared, std::move(rows), spec);
  return shared;
}

}  // namespace gradwire
