// Values of replies that are reported while the gradient is still being computed.
#include <algorithm>
#include <array>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

#include "compressors/scaled_entries.h"
#include "engine/forwarding_oracle.h"
#include "rounds/memo_oracle.h"
#include "tests/algorithms/every_algorithm.h"

namespace gradwire {
namespace {

using namespace testing;  // NOLINT: helpers of algorithm tests

// An oracle that finishes gradients range by range, starting with the last coordinates. Unfinished
// coordinates are nan.
class Piecemeal final : public ForwardingOracle<double, Piecemeal> {
 public:
  explicit Piecemeal(Oracle<double>& inner) : inner_(&inner) {}
  Oracle<double>& inner() const { return *inner_; }
  std::optional<double> compute(Reals x, Batch batch, RealsOut gradient,
                                const GradientOptions& options) override {
    Vec<double> whole(gradient.size());
    const double loss = inner_->loss_and_gradient(x, batch, whole);
    std::fill(gradient.begin(), gradient.end(), std::numeric_limits<double>::quiet_NaN());
    for (std::size_t end = gradient.size(); end > 0;) {
      const std::size_t first = end > 5 ? end - 5 : 0;
      std::copy(whole.begin() + static_cast<std::ptrdiff_t>(first),
                whole.begin() + static_cast<std::ptrdiff_t>(end),
                gradient.begin() + static_cast<std::ptrdiff_t>(first));
      if (options.finished) options.finished({first, end});
      end = first;
    }
    return loss;
  }

 private:
  Oracle<double>* inner_;
};

class EarlyRecord final : public EarlyValues<double> {
 public:
  void begin(View<double> values) override {
    ++begins;
    values_ = values;
    told.assign(values.size(), 0);
    seen.assign(values.size(), 0);
  }
  void ready(std::size_t first, std::size_t count) override {
    ++calls;
    for (std::size_t j = first; j < first + count; ++j) {
      ++told.at(j);
      seen[j] = values_[j];
    }
  }
  std::size_t begins = 0, calls = 0;
  std::vector<int> told;
  Vec<double> seen;  // the values at the time of the report

 private:
  View<double> values_;
};

constexpr std::uint32_t kEarlyClients = 4, kEarlyRounds = 12;
constexpr std::size_t kEarlyDim = 23;

struct EarlyRun {
  Vec<double> model;
  std::size_t begins = 0, calls = 0;
};

EarlyRun early_run(const AlgorithmSpec& spec, bool tells) {
  const Federation<double> federation(kEarlyClients, kEarlyDim);
  const std::shared_ptr<const RunContext<double>> run_context = federation.run_context(spec);
  const auto server = make_server<double>(run_context);
  std::vector<std::unique_ptr<Piecemeal>> oracles;
  std::vector<std::unique_ptr<ClientAlgorithm<double>>> clients;
  for (std::uint32_t i = 0; i < kEarlyClients; ++i) {
    oracles.push_back(std::make_unique<Piecemeal>(*federation.oracles[i]));
    clients.push_back(make_client<double>(run_context));
  }
  EarlyRecord record;
  Scratch<double> scratch;
  for (std::uint32_t t = 0; t < kEarlyRounds; ++t) {
    const Downlink<double> down = server->broadcast();
    std::vector<Uplink<double>> uplinks;
    for (std::uint32_t i = 0; i < kEarlyClients; ++i) {
      const std::size_t begins = record.begins;
      uplinks.push_back(
          clients[i]->reply(down, {i, run_context->seed, t + 1, t == 0, *oracles[i], run_context->compressor,
                                   scratch, t, tells ? &record : nullptr}));
      uplinks.back().client = i;
      if (record.begins == begins) continue;
      const Payload<double>& sent = uplinks.back().parts[0];
      EXPECT_EQ(record.told, std::vector<int>(sent.values.size(), 1));
      EXPECT_EQ(std::memcmp(record.seen.data(), sent.values.data(), sent.values.size_bytes()), 0);
    }
    server->apply(std::vector<UplinkView<double>>(uplinks.begin(), uplinks.end()));
    for (std::uint32_t i = 0; i < kEarlyClients; ++i) clients[i]->commit(uplinks[i]);
  }
  return {{server->model().begin(), server->model().end()}, record.begins, record.calls};
}

// The algorithms whose clients send C(gradient), which GradientMessage computes.
constexpr std::array kEarlyAlgorithms = {"gd", "nesterov", "dcgd", "sgd_nice", "diana", "ef21_p"};

TEST(EarlyValues, EqualTheReplyAndArriveOneByOne) {
  for (const char* name : kEarlyAlgorithms)
    for (const char* compressor : {"identity", "randk:k=9", "randseqk:k=11", "permk"}) {
      if (find_algorithm(name).traits.compressor_class == CompressorClass::kIdentity &&
          compressor != std::string("identity"))
        continue;
      SCOPED_TRACE(std::string(name) + " " + compressor);
      const AlgorithmSpec spec = spec_of(name, compressor, {}, "0.05");
      const EarlyRun quiet = early_run(spec, false), told = early_run(spec, true);
      EXPECT_EQ(told.model, quiet.model);
      EXPECT_EQ(told.begins, kEarlyRounds * kEarlyClients);
      EXPECT_GT(told.calls, 2 * told.begins);
    }
}

TEST(EarlyValues, EqualTheReplyForPartialGradients) {
  for (const char* name : {"dcgd", "diana", "ef21_p"})
    for (const char* compressor : {"randk:k=9", "randseqk:k=11"}) {
      SCOPED_TRACE(std::string(name) + " " + compressor);
      const AlgorithmSpec spec = spec_of(name, compressor, {{"partial_gradient", "true"}}, "0.05");
      const EarlyRun quiet = early_run(spec, false), told = early_run(spec, true);
      EXPECT_EQ(told.model, quiet.model);
      EXPECT_EQ(told.begins, kEarlyRounds * kEarlyClients);
    }
}

TEST(EarlyValues, ComeFromAlgorithmsAndCompressorsWithTheTrait) {
  for (const AlgorithmInfo& algorithm : all_algorithms()) {
    const auto at = std::find(kEarlyAlgorithms.begin(), kEarlyAlgorithms.end(), algorithm.traits.name);
    EXPECT_EQ(algorithm.traits.shows_early, at != kEarlyAlgorithms.end()) << algorithm.traits.name;
  }
  for (const char* compressor : {"identity", "randk:k=9", "randseqk:k=11", "permk"})
    EXPECT_TRUE(sends_scaled_entries(parse_compressor(compressor, kEarlyDim, kEarlyClients))) << compressor;
  for (const char* compressor : {"natural", "topk:k=9", "natural(randk:k=9)"})
    EXPECT_FALSE(sends_scaled_entries(parse_compressor(compressor, kEarlyDim, kEarlyClients))) << compressor;
}

TEST(EarlyValues, AreMissingForCompressorsThatReadAllCoordinates) {
  const EarlyRun told = early_run(spec_of("dcgd", "natural", {}, "0.05"), true);
  EXPECT_EQ(told.begins, 0u);
}

TEST(EarlyValues, ArriveAtOnceIfAnEvaluationKnowsTheGradient) {
  const Federation<double> federation(1, kEarlyDim);
  const auto run_context = federation.run_context(spec_of("gd", "identity", {}, "0.05"));
  const auto server = make_server<double>(run_context);
  const auto client = make_client<double>(run_context);
  MemoOracle<double> memo(*federation.oracles[0]);
  memo.evaluate(server->model());
  EarlyRecord record;
  Scratch<double> scratch;
  (void)client->reply(server->broadcast(),
                      {0, run_context->seed, 1, true, memo, run_context->compressor, scratch, 0, &record});
  EXPECT_EQ(record.calls, 1u);
  EXPECT_EQ(record.told, std::vector<int>(kEarlyDim, 1));
}

}  // namespace
}  // namespace gradwire
