// Tests that portable kernels give the same bits on every architecture: the tests run on x86-64 and on ARM,
// and compare with constants.
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/kernels/select.h"
#include "engine/nn/models/gpt.h"
#include "engine/nn/models/lenet.h"
#include "engine/nn/models/mlp.h"
#include "engine/nn/network_oracle.h"
#include "engine/upper_triangle.h"
#include "tests/engine/nn/network_samples.h"
#include "tests/engine/nn/network_zoo.h"
#include "tests/engine/oracle_checks.h"
#include "tests/engine/problem_types.h"

namespace gradwire {
namespace {

// FNV-1a over the bytes of numbers.
class Hash {
 public:
  template <class Real>
  void add(std::span<const Real> numbers) {
    for (const std::byte byte : std::as_bytes(numbers))
      value_ = (value_ ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3u;
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

std::vector<NamedNetwork> networks() {
  std::vector<NamedNetwork> all = network_zoo();
  all.push_back({"gpt", gpt({.vocabulary = 9, .context = 20, .width = 24, .layers = 2, .heads = 2})});
  all.push_back({"lenet", lenet({.image = {1, 16, 16}, .filters = {3, 4}, .hidden = {20}, .classes = 4})});
  all.push_back({"mlp", mlp({50, {70, 33}, 5})});
  return all;
}

template <class Real>
std::uint64_t hash_of(const Network& network) {
  constexpr std::size_t kCount = 37;
  const auto oracle = [&] {
    return NetworkOracle<Real>(network, std::make_unique<DrawnExamples<Real>>(network, kCount),
                               Shares::equal(1, kCount), nullptr, Shares::equal(1, 0), KernelSet::kPortable);
  };
  NetworkOracle<Real> first = oracle();
  NetworkOracle<Real> copy(first);
  EXPECT_STREQ(copy.executor().kernels().name, "portable");
  const std::vector<double> start = random_parameters(network, 1);
  const std::vector<Real> x(start.begin(), start.end());
  std::vector<Real> gradient(x.size());
  Hash hash;
  const Real loss = copy.loss_and_gradient(x, {}, gradient);
  hash.add(std::span(&loss, 1));
  hash.add(std::span<const Real>(gradient));
  return hash.value();
}

// The upper triangle of a Hessian of dense rows.
template <class Real>
std::uint64_t hash_of_hessian() {
  ProblemSpec spec = spec_of_type("logistic");
  spec.kernels = KernelSet::kPortable;
  ClientDataset part;
  part.train = random_data(90, 21, 2, {0, 1});
  const auto oracle = make_oracle<Real>(spec, {.columns = 21, .labels = {0, 1}}, part, 0);
  const std::vector<double> point = random_point(oracle->dim(), 1);
  const std::vector<Real> x(point.begin(), point.end());
  std::vector<Real> upper(upper_size(x.size()));
  EXPECT_TRUE(oracle->hessian(x, upper));
  Hash hash;
  hash.add(std::span<const Real>(upper));
  return hash.value();
}

TEST(PortableKernels, AreOfferedEverywhere) {
  EXPECT_STREQ(kernels_name(KernelSet::kPortable), "portable");
  EXPECT_STREQ(available_kernels<float>().front()->name, "portable");
  EXPECT_STREQ(available_kernels<double>().front()->name, "portable");
}

TEST(PortableKernels, GiveTheseBitsOnEveryArchitecture) {
  std::uint64_t fp32 = hash_of_hessian<float>(), fp64 = hash_of_hessian<double>();
  std::string all = "hessian " + std::to_string(fp32) + " " + std::to_string(fp64) + "\n";
  for (const NamedNetwork& each : networks()) {
    const std::uint64_t a = hash_of<float>(each.network), b = hash_of<double>(each.network);
    fp32 = fp32 * 31 + a;
    fp64 = fp64 * 31 + b;
    all += each.name + " " + std::to_string(a) + " " + std::to_string(b) + "\n";
  }
  EXPECT_EQ(fp32, 15493740019777445872u) << all;
  EXPECT_EQ(fp64, 1902057600042733775u) << all;
}

}  // namespace
}  // namespace gradwire
