// How samples become clients. Row numbers of each client ascend, so that training rows keep the file's order.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <queue>
#include <span>
#include <string>
#include <utility>

#include "engine/data/source.h"
#include "engine/random.h"

namespace gradwire {
namespace {

using Rows = std::vector<std::uint32_t>;

// A Dirichlet split draws one number per (class, client); labels of a regression are all distinct.
constexpr std::size_t kMaxDirichletClasses = 10000;
constexpr double kMinAlpha = 1e-6;
constexpr double kMaxAlpha = 1e6;

void check(const Dataset& data, const SplitSpec& spec) {
  if (spec.clients == 0) throw DataError("clients.count must be at least 1");
  if (!(spec.test_share >= 0 && spec.test_share < 1)) throw DataError("test_share must be in [0, 1)");
  if (data.rows() > std::numeric_limits<std::uint32_t>::max()) throw DataError("more than 2^32-1 samples");
  if (spec.partition == PartitionKind::kDirichlet &&
      !(spec.dirichlet_alpha >= kMinAlpha && spec.dirichlet_alpha <= kMaxAlpha)) {
    throw DataError("clients.dirichlet_alpha must be between 1e-6 and 1e6");
  }
}

// Gives all of `rows` to n clients in order; sizes differ by at most one.
std::vector<Rows> share_out(std::span<const std::uint32_t> rows, std::uint32_t clients) {
  std::vector<Rows> shares;
  shares.reserve(clients);
  for (std::uint64_t i = 0; i < clients; ++i) {
    const auto first = rows.begin() + static_cast<std::ptrdiff_t>(i * rows.size() / clients);
    const auto last = rows.begin() + static_cast<std::ptrdiff_t>((i + 1) * rows.size() / clients);
    shares.emplace_back(first, last);
  }
  return shares;
}

// floor(N/n) consecutive entries of `rows` for each client; the remainder is dropped.
std::vector<Rows> equal_blocks(std::span<const std::uint32_t> rows, std::uint32_t clients) {
  const std::size_t size = rows.size() / clients;
  return share_out(rows.first(size * clients), clients);
}

// The logarithm of a Gamma(alpha, 1) variate, which itself underflows for small alpha.
// Marsaglia and Tsang, "A simple method for generating gamma variables", TOMS 2000; below 1 by its section 6.
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

// Dir(alpha, ..., alpha), shape (n).
std::vector<double> dirichlet(double alpha, std::uint32_t n, Random& random) {
  std::vector<double> share(n);
  for (double& s : share) s = log_gamma_variate(alpha, random);
  const double largest = *std::max_element(share.begin(), share.end());
  for (double& s : share) s = portable_exp(s - largest);
  const double sum = std::accumulate(share.begin(), share.end(), 0.0);
  for (double& s : share) s /= sum;
  return share;
}

// The rows of each class, classes ascending by label, rows in their order.
std::vector<Rows> rows_by_class(const Dataset& data, std::span<const std::uint32_t> rows) {
  const std::vector<double> labels = distinct_labels(data);
  if (labels.size() > kMaxDirichletClasses) {
    throw DataError("partition = dirichlet needs classes, but there are " + std::to_string(labels.size()) +
                    " distinct labels; use contiguous, iid or by_label");
  }
  std::vector<Rows> classes(labels.size());
  for (const std::uint32_t r : rows) {
    const auto at = std::lower_bound(labels.begin(), labels.end(), data.label[r]);
    classes[static_cast<std::size_t>(at - labels.begin())].push_back(r);
  }
  return classes;
}

// Clients that got nothing take one row each from the client that then has most (of equal ones the first).
// REQUIRES: at least as many rows as clients.
void fill_empty(std::vector<Rows>& clients) {
  using Entry = std::pair<std::size_t, std::size_t>;  // (rows, n - client)
  const std::size_t n = clients.size();
  std::priority_queue<Entry> largest;
  for (std::size_t i = 0; i < n; ++i) largest.emplace(clients[i].size(), n - i);
  for (Rows& empty : clients) {
    if (!empty.empty()) continue;
    const auto [rows, from_end] = largest.top();
    largest.pop();
    Rows& donor = clients[n - from_end];
    empty.push_back(donor.back());
    donor.pop_back();
    largest.emplace(rows - 1, from_end);
  }
}

std::vector<Rows> dirichlet_split(const Dataset& data, std::span<const std::uint32_t> rows,
                                  const SplitSpec& spec) {
  std::vector<Rows> clients(spec.clients);
  std::vector<std::uint32_t> order(spec.clients);
  std::iota(order.begin(), order.end(), 0);
  Random random(spec.seed, "partition dirichlet");
  for (Rows& members : rows_by_class(data, rows)) {
    random.shuffle(std::span(members));
    random.shuffle(std::span(order));  // so that rounding favours nobody
    const std::vector<double> share = dirichlet(spec.dirichlet_alpha, spec.clients, random);
    double cumulative = 0;
    std::size_t begin = 0;
    for (std::uint32_t i = 0; i < spec.clients; ++i) {
      cumulative += share[i];
      const auto cut = static_cast<std::size_t>(cumulative * static_cast<double>(members.size()) + 0.5);
      const std::size_t end = i + 1 == spec.clients ? members.size() : std::clamp(cut, begin, members.size());
      Rows& mine = clients[order[i]];
      mine.insert(mine.end(), members.begin() + static_cast<std::ptrdiff_t>(begin),
                  members.begin() + static_cast<std::ptrdiff_t>(end));
      begin = end;
    }
  }
  fill_empty(clients);
  return clients;
}

std::vector<Rows> split_train(const Dataset& data, Rows rows, const SplitSpec& spec) {
  switch (spec.partition) {
    case PartitionKind::kContiguous: break;
    case PartitionKind::kIid: Random(spec.seed, "partition iid").shuffle(std::span(rows)); break;
    case PartitionKind::kByLabel:
      std::stable_sort(rows.begin(), rows.end(),
                       [&data](std::uint32_t a, std::uint32_t b) { return data.label[a] < data.label[b]; });
      break;
    case PartitionKind::kDirichlet: return dirichlet_split(data, rows, spec);
  }
  return equal_blocks(rows, spec.clients);
}

}  // namespace

Split split_rows(const Dataset& data, const SplitSpec& spec) {
  check(data, spec);
  Rows order(data.rows());
  std::iota(order.begin(), order.end(), 0);
  const auto held_out = std::llround(spec.test_share * static_cast<double>(data.rows()));
  if (held_out > 0) Random(spec.seed, "test share").shuffle(std::span(order));
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(held_out);
  std::sort(order.begin(), middle);
  std::sort(middle, order.end());
  Rows train(middle, order.end());
  if (train.size() < spec.clients) {
    throw DataError("more clients than samples: " + std::to_string(spec.clients) + " clients, " +
                    std::to_string(train.size()) + " training samples; lower clients.count" +
                    (held_out > 0 ? " or problem.test_share" : ""));
  }
  Split split;
  split.train = split_train(data, std::move(train), spec);
  for (Rows& rows : split.train) std::sort(rows.begin(), rows.end());
  split.test = share_out(std::span(order).first(static_cast<std::size_t>(held_out)), spec.clients);
  return split;
}

std::vector<Part> make_parts(const Dataset& data, const Dataset* test, const SplitSpec& spec) {
  SplitSpec train_spec = spec;
  if (test != nullptr) train_spec.test_share = 0;
  Split split = split_rows(data, train_spec);
  if (test != nullptr) {
    if (test->columns > data.columns) {
      throw DataError("the test data has " + std::to_string(test->columns) + " features, the training data " +
                      std::to_string(data.columns) + "; set problem.dim = " + std::to_string(test->columns));
    }
    if (test->rows() > std::numeric_limits<std::uint32_t>::max())
      throw DataError("more than 2^32-1 test samples");
    Rows all(test->rows());
    std::iota(all.begin(), all.end(), 0);
    split.test = share_out(all, spec.clients);
  }
  std::vector<Part> parts(spec.clients);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].train = select_rows(data, split.train[i]);
    parts[i].test = select_rows(test != nullptr ? *test : data, split.test[i]);
    parts[i].test.columns = data.columns;  // a test file may lack the last features
  }
  return parts;
}

}  // namespace gradwire
