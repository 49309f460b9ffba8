// Four clients train a network of their own on points in memory: which of them are in a disc? EF21 with Top-K
// sends a tenth of each gradient.
#include <cstdio>
#include <gradwire/network.h>
#include <gradwire/train.h>
#include <memory>
#include <random>
#include <vector>

gradwire::Network classifier() {
  gradwire::Network net;
  const auto hidden = net.linear(2, 16), last = net.linear(16, 2);
  cross_entropy(affine(last, tanh(affine(hidden, net.features(2)))));
  return net;
}

gradwire::NetworkSamples<double> points(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> coordinate(-1, 1);
  gradwire::NetworkSamples<double> samples{.count = count};
  for (std::size_t j = 0; j < count; ++j) {
    const double a = coordinate(random), b = coordinate(random);
    samples.features.insert(samples.features.end(), {a, b});
    samples.labels.push_back(a * a + b * b < 0.64 ? 1 : 0);
  }
  return samples;
}

int main() {
  const gradwire::Network net = classifier();
  std::vector<std::unique_ptr<gradwire::Oracle<double>>> clients;
  for (unsigned i = 0; i < 4; ++i)
    clients.push_back(gradwire::network_oracle(net, points(250, i), points(250, 100 + i)));
  const auto result = gradwire::train(
      clients, {.algorithm = "ef21", .compressor = "topk:k=10%", .step_size = 1, .rounds = 1500},
      {.x0 = net.start(1)});
  const gradwire::MetricsRow& last = result.rows().back();
  std::printf("loss %.3f -> %.3f, accuracy %.3f\n", result.rows()[0].loss, last.loss, *last.accuracy);
  return last.loss < 0.2 && *last.accuracy > 0.95 ? 0 : 1;
}
