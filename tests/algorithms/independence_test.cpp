// Independence of draws for different rounds, clients, message parts, local steps and purposes. Neighbouring
// draws of algorithms and compressors must agree as often as independent draws. All draws are seeded, so the
// tests are deterministic.
#include "tests/algorithms/independence.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/core/sampling.h"
#include "algorithms/support/replica.h"
#include "tests/algorithms/federation.h"

namespace gradwire {
namespace {

using namespace testing;  // NOLINT: helpers of algorithm tests

// The place of a draw. `index` is the message part, the local step or the epoch.
struct Place {
  std::uint64_t seed = 1;
  ClientId client = 0;
  std::uint32_t round = 0, index = 0;
};

// A kind of draw, reduced to one bit: two outcomes of equal probability, which its first number decides.
struct Draw {
  std::string name;
  std::string domain;  // kinds of one domain may share draws, because no algorithm uses two of them
  bool of_clients, indexed;
  std::function<bool(const Place&)> bit;
};

bool support_bit(const RngKey& key) {
  static const Compressor one_of_two = parse_compressor("randk:k=1", 2);
  Scratch<double> scratch;
  PayloadBuffer<double> buffer;
  Vec<double> v = {1, 1};
  return compress(one_of_two, v, key, scratch, buffer).indices[0] == 1;
}

// Returns the draws of all functions in sampling.h and of all keys of messages.
std::vector<Draw> all_draws() {
  const auto cohort_bit = [](const Place& at, RngDomain domain) {
    std::vector<ClientId> out;
    sample_cohort(at.seed, at.round, 2, 0.5, out, domain);
    return out[0] == 1;
  };
  const auto context_key = [](const Place& at) {
    static const Compressor none;
    static DiagonalQuadratic<double> oracle;
    Scratch<double> scratch;
    const ClientContext<double> ctx{at.client, at.seed, 1, false, oracle, none, scratch};
    return ctx.draw_key(at.round, at.index);
  };
  return {
      {"sample_cohort", "cohort", false, false,
       [=](const Place& at) { return cohort_bit(at, RngDomain::kCohort); }},
      {"draw_clients", "cohort", false, false,
       [](const Place& at) {
         std::vector<ClientDraws> out;
         draw_clients(at.seed, at.round, 2, 1, out);
         return out[0].client == 1;
       }},
      {"times_drawn", "cohort", false, false,
       [](const Place& at) { return times_drawn(at.seed, at.round, 2, 1, 1) == 1; }},
      {"sample_cohort of shifts", "shift cohort", false, false,
       [=](const Place& at) { return cohort_bit(at, RngDomain::kShiftCohort); }},
      {"add_spare_clients", "spare cohort", false, false,
       [](const Place& at) {
         std::vector<ClientId> cohort = {0};
         add_spare_clients(at.seed, at.round, 3, 1, cohort);
         return cohort[1] == 1;
       }},
      {"toss_cohort", "client's coin", true, false,
       [](const Place& at) {
         std::vector<ClientId> out;
         const std::vector<double> p(at.client + 2, 0.5);
         toss_cohort(at.seed, at.round, at.client + 2, p, out);
         return std::find(out.begin(), out.end(), at.client) != out.end();
       }},
      {"toss_cohort of one p", "cohort", true, false,
       [](const Place& at) {
         std::vector<ClientId> out;
         const double half = 0.5;
         toss_cohort(at.seed, at.round, at.client + 1, {&half, 1}, out);
         return !out.empty() && out.back() == at.client;
       }},
      {"shared_coin", "coin", false, false,
       [](const Place& at) { return shared_coin(at.seed, at.round, 0.5); }},
      {"shared_geometric", "coin", false, false,
       [](const Place& at) { return shared_geometric(at.seed, at.round, 0.5) == 1; }},
      {"draw_batch", "batch", true, true,
       [](const Place& at) {
         std::vector<std::uint32_t> work;
         return draw_batch(at.seed, at.client, at.round, at.index, 1, 2, work)[0] == 1;
       }},
      {"shuffle_samples", "batch", true, true,
       [](const Place& at) {
         std::vector<std::uint32_t> out;
         shuffle_samples(at.seed, at.client, at.round, at.index, 2, out);
         return out[0] == 1;
       }},
      {"draw_key", "message up", true, true, [=](const Place& at) { return support_bit(context_key(at)); }},
      {"downlink_key", "message down", false, true,
       [](const Place& at) { return support_bit(downlink_key(at.seed, at.round, at.index)); }},
  };
}

constexpr std::uint32_t kPlaces = 4000;
Place place(std::uint32_t k) { return {9, k % 7, k, k % 3}; }

// Expects that a and b agree as often as two independent fair coins.
void expect_independent(const std::function<bool(std::uint32_t)>& a,
                        const std::function<bool(std::uint32_t)>& b, const std::string& what) {
  int agree = 0;
  for (std::uint32_t k = 0; k < kPlaces; ++k) agree += a(k) == b(k);
  EXPECT_NEAR(agree / double{kPlaces}, 0.5, kSigmas * 0.5 / std::sqrt(kPlaces)) << what;
}

TEST(Independence, HoldsForNeighbouringRoundsClientsStepsAndSeeds) {
  for (const Draw& draw : all_draws()) {
    const auto here = [&](std::uint32_t k) { return draw.bit(place(k)); };
    const auto moved = [&](auto move) {
      return [&draw, move](std::uint32_t k) {
        Place at = place(k);
        move(at);
        return draw.bit(at);
      };
    };
    const auto expect = [&](const char* what, auto move) {
      expect_independent(here, moved(move), draw.name + ": " + what);
    };
    expect("one round on", [](Place& at) { ++at.round; });
    expect("two rounds on", [](Place& at) { at.round += 2; });
    expect("the next seed", [](Place& at) { ++at.seed; });
    expect("the next seed one round before", [](Place& at) { ++at.seed, --at.round; });
    expect("round and seed exchanged", [](Place& at) { at = {at.round + 5000ULL, at.client, 1, at.index}; });
    if (draw.of_clients) {
      expect("the next client", [](Place& at) { ++at.client; });
      expect("the next client of the seed before", [](Place& at) { ++at.client, --at.seed; });
      expect("the next client one round before", [](Place& at) { ++at.client, --at.round; });
      expect("the next client one round on", [](Place& at) { ++at.client, ++at.round; });
    }
    if (draw.indexed) {
      expect("the next part or step", [](Place& at) { ++at.index; });
      expect("the next part or step one round before", [](Place& at) { ++at.index, --at.round; });
    }
    if (draw.of_clients && draw.indexed)
      expect("the next part or step of the client before", [](Place& at) { at.client += 6, ++at.index; });
  }
}

TEST(Independence, HoldsForDifferentPurposes) {
  const std::vector<Draw> draws = all_draws();
  for (std::size_t a = 0; a < draws.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) {
      if (draws[a].domain == draws[b].domain) continue;
      const auto bit_of = [&](const Draw& draw) {
        return [&draw](std::uint32_t k) { return draw.bit(place(k)); };
      };
      expect_independent(bit_of(draws[a]), bit_of(draws[b]), draws[a].name + " and " + draws[b].name);
    }
}

// Returns all compressors of the list and compositions of them, except those without draws.
std::vector<std::string> random_compressors() {
  std::vector<std::string> specs = {"natural(randk:k=2)", "qsgd:s=2(topk:k=3)", "natural(permk)",
                                    "scaled(randk:k=2)", "induced(topk:k=2,randk:k=2)"};
  const std::set<std::string> certain = {"identity", "topk", "sign", "rankk", "rankr"};
  const std::map<std::string, std::string> parameters = {{"randk", ":k=2"},
                                                         {"randseqk", ":k=2"},
                                                         {"toplek", ":k=3"},
                                                         {"qsgd", ":s=2"},
                                                         {"natural_dithering", ":s=2"}};
  for (const CompressorHelp& help : compressor_help()) {
    if (help.composed || certain.contains(help.name)) continue;
    const auto own = parameters.find(help.name);
    specs.push_back(help.name + (own == parameters.end() ? "" : own->second));
  }
  return specs;
}

TEST(Independence, HoldsForRoundsClientsPartsAndSeedsOfCompressors) {
  constexpr std::uint32_t kClients = 3;
  const Vec<double> x = {1.1, 0.8, -0.7, 0.55, 0.3, -0.2};
  for (const std::string& spec : random_compressors()) {
    const Compressor c = parse_compressor(spec, x.size(), kClients);
    Scratch<double> scratch;
    const auto outcome = [&](const RngKey& key) {
      PayloadBuffer<double> buffer;
      Vec<double> v = x, out(x.size());
      add_decoded<double>(compress(c, v, key, scratch, buffer), 1, out);
      return out;
    };
    const auto expect = [&](const char* what, auto move) {
      std::vector<std::pair<Vec<double>, Vec<double>>> pairs;
      for (std::uint32_t k = 0; k < 2000; ++k) {
        RngKey key{1, k % kClients, k, RngDomain::kCompressor};
        const Vec<double> first = outcome(key);
        move(key);
        pairs.emplace_back(first, outcome(key));
      }
      const std::set<Vec<double>> seen = [&] {
        std::set<Vec<double>> all;
        for (const auto& pair : pairs) all.insert(pair.first);
        return all;
      }();
      EXPECT_GT(seen.size(), 1u) << spec << " draws nothing";
      expect_agreement_of_chance(pairs, spec + ": " + what);
    };
    expect("one round on", [](RngKey& key) { ++key.round; });
    expect("two rounds on", [](RngKey& key) { key.round += 2; });
    expect("the next part", [](RngKey& key) { key.domain = key.domain + 1; });
    expect("the next seed", [](RngKey& key) { ++key.seed; });
    if (spec.find("permk") == std::string::npos)  // permk's clients share a draw
      expect("the next client", [](RngKey& key) { ++key.client; });
  }
}

// The second draw of a composition must not repeat the first numbers of the first draw. Otherwise both draws
// would be equal.
TEST(Independence, HoldsForBothDrawsOfAComposition) {
  Scratch<double> scratch;
  const auto key = [](std::uint32_t k) { return RngKey{1, k % 5, k, RngDomain::kCompressor}; };
  for (const char* spec : {"natural(randk:k=1)", "natural(randseqk:k=1)", "natural(permk)"}) {
    const Compressor c = parse_compressor(spec, 2, 2);
    const auto sent = [&](std::uint32_t k, bool value) {
      PayloadBuffer<double> buffer;
      Vec<double> v = {1.5, 1.5};  // scaled to 3, which rounds to 2 or 4
      const auto& p = compress(c, v, key(k), scratch, buffer);
      return value ? p.values[0] == 4 : p.shape == Shape::kRange ? p.first == 1 : p.indices[0] == 1;
    };
    expect_independent([&](std::uint32_t k) { return sent(k, false); },
                       [&](std::uint32_t k) { return sent(k, true); }, spec);
  }
  const Compressor induced = parse_compressor("induced(randk:k=1,scaled=false,randk:k=1)", 2);
  const auto support = [&](std::uint32_t k, bool second) {
    PayloadBuffer<double> buffer;
    Vec<double> v = {1, 1};
    const auto& p = compress(induced, v, key(k), scratch, buffer);
    return (second ? *p.next : p).indices[0] == 1;
  };
  expect_independent([&](std::uint32_t k) { return support(k, false); },
                     [&](std::uint32_t k) { return support(k, true); }, "induced");
}

}  // namespace
}  // namespace gradwire
