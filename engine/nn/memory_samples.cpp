#include "engine/nn/memory_samples.h"

#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/nn/network_ops.h"
#include "engine/nn/network_oracle.h"

namespace gradwire {
namespace {

// Checks the members of one NetworkSamples. Every error names the samples and the member.
class SampleCheck {
 public:
  SampleCheck(std::size_t count, const char* name) : count_(count), name_(name) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw DataError("the " + std::string(name_) + " samples: " + what);
  }

  // Checks for `width` numbers per sample, of which the network reads all, or none if `width` is 0.
  void length(const char* member, std::size_t given, std::size_t width) const {
    if (width == 0 && given > 0)
      fail(std::string(member) + " has " + numbers(given) + ", but the network reads none; leave it empty");
    if (given % count_ != 0 || given / count_ != width)
      fail(std::string(member) + " has " + numbers(given) + ", but the network reads " +
           std::to_string(width) + " for each of " + plural(count_, "sample"));
  }

  template <class Number>
  void below(const char* member, const std::vector<Number>& given, std::size_t end) const {
    for (std::size_t i = 0; i < given.size(); ++i)
      if (given[i] >= end)
        fail(std::string(member) + "[" + std::to_string(i) + "] is " + std::to_string(given[i]) +
             ", but the network knows 0 to " + std::to_string(end - 1));
  }

  template <class Real>
  void sparse(const NetworkSamples<Real>& s) const {
    if (s.row_start.size() != count_ + 1)
      fail("row_start has " + numbers(s.row_start.size()) + ", but needs " + std::to_string(count_ + 1) +
           " for " + plural(count_, "sample"));
    if (s.index.size() != s.value.size())
      fail("value has " + numbers(s.value.size()) + ", but index has " + std::to_string(s.index.size()));
    if (s.row_start.front() != 0 || s.row_start.back() != s.index.size())
      fail("row_start begins with " + std::to_string(s.row_start.front()) + " and ends with " +
           std::to_string(s.row_start.back()) + "; it must begin with 0 and end with the length of index, " +
           std::to_string(s.index.size()));
    for (std::size_t k = 0; k < count_; ++k)
      if (s.row_start[k] > s.row_start[k + 1])
        fail("row_start[" + std::to_string(k + 1) + "] is " + std::to_string(s.row_start[k + 1]) + " after " +
             std::to_string(s.row_start[k]) + "; it must not descend");
  }

 private:
  static std::string plural(std::size_t count, const char* what) {
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
  }
  static std::string numbers(std::size_t count) { return plural(count, "number"); }

  std::size_t count_;
  const char* name_;
};

// Numbers that the network reads from each sample.
struct Reads {
  std::size_t features = 0, tokens = 0;
  bool sparse = false;
};

}  // namespace

template <class Real>
MemorySamples<Real>::MemorySamples(const Network& network, NetworkSamples<Real> samples, const char* name)
    : samples_(std::move(samples)) {
  const NetworkSamples<Real>& s = samples_;
  const std::vector<NetworkOp> ops = ops_of_loss(network);
  const SampleCheck check(s.count, name);
  constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();  // a Batch has 32-bit numbers
  if (s.count == 0 || s.count > kMost)
    check.fail("count is " + std::to_string(s.count) + "; it must be 1 to " + std::to_string(kMost));
  const std::size_t positions = network.positions();
  const auto width = [&](std::uint32_t node) { return network.content().nodes[node].size(); };
  Reads reads;
  for (const NetworkOp& op : ops) {
    if (op.kind == OpKind::kFeatures) {
      check.length("features", s.features.size(), reads.features = positions * width(op.out));
    } else if (op.kind == OpKind::kEmbed) {
      check.length("tokens", s.tokens.size(), reads.tokens = positions * op.tokens);
      check.below("tokens", s.tokens, op.count[0] / (width(op.out) / op.tokens));
    } else if (op.kind == OpKind::kSparseFeatures) {
      reads.sparse = true;
      check.sparse(s);
      check.below("index", s.index, op.count[0] / width(op.out));
    }
  }
  if (reads.features == 0) check.length("features", s.features.size(), 0);
  if (reads.tokens == 0) check.length("tokens", s.tokens.size(), 0);
  if (!reads.sparse) {
    check.length("row_start", s.row_start.size(), 0);
    check.length("index", s.index.size(), 0);
    check.length("value", s.value.size(), 0);
  }
  const NetworkOp& loss = ops.back();
  const std::size_t channels = width(loss.in[0]);
  if (loss.kind == OpKind::kCrossEntropy || !s.labels.empty())
    check.length("labels", s.labels.size(), positions);
  if (loss.kind != OpKind::kCustomLoss) {
    check.below("labels", s.labels, channels);
    check.length("targets", s.targets.size(), loss.kind == OpKind::kSquaredError ? positions * channels : 0);
  } else if (s.targets.size() % s.count != 0 || s.targets.size() / s.count % positions != 0) {
    check.fail("targets has " + std::to_string(s.targets.size()) + " numbers, which do not divide among " +
               std::to_string(s.count) + " samples of " + std::to_string(positions) + " positions");
  }
}

template <class Real>
Example<Real> MemorySamples<Real>::operator[](std::size_t k) const {
  const auto part = [&](const auto& all) {
    const std::size_t each = all.size() / samples_.count;
    return std::span(all).subspan(k * each, each);
  };
  Example<Real> example;
  example.tokens = part(samples_.tokens);
  example.features = part(samples_.features);
  example.labels = part(samples_.labels);
  example.targets = part(samples_.targets);
  if (!samples_.row_start.empty()) {
    const std::size_t first = samples_.row_start[k], end = samples_.row_start[k + 1];
    example.index = std::span(samples_.index).subspan(first, end - first);
    example.value = std::span(samples_.value).subspan(first, end - first);
  }
  return example;
}

template <class Real>
std::unique_ptr<Oracle<Real>> network_oracle(const Network& network, NetworkSamples<Real> train,
                                             NetworkSamples<Real> test, double l2) {
  if (!(l2 >= 0) || !std::isfinite(l2))
    throw std::logic_error("network_oracle: l2 must be finite and not negative, not " + std::to_string(l2));
  auto trained = std::make_unique<const MemorySamples<Real>>(network, std::move(train), "training");
  std::unique_ptr<const MemorySamples<Real>> tested;
  if (test != NetworkSamples<Real>{}) {
    tested = std::make_unique<const MemorySamples<Real>>(network, std::move(test), "test");
    if ((*tested)[0].labels.empty())
      throw DataError("the test samples: labels is empty, but accuracy needs a label for each position");
  }
  return std::make_unique<NetworkOracle<Real>>(network, std::move(trained), std::move(tested),
                                               l2 > 0 ? Regularizer::kL2 : Regularizer::kNone, l2);
}

template class MemorySamples<float>;
template class MemorySamples<double>;
template std::unique_ptr<Oracle<float>> network_oracle(const Network&, NetworkSamples<float>,
                                                       NetworkSamples<float>, double);
template std::unique_ptr<Oracle<double>> network_oracle(const Network&, NetworkSamples<double>,
                                                        NetworkSamples<double>, double);

}  // namespace gradwire
