// A program with the engine alone: a tape, a network on samples in memory, and a compressor.
#include <cmath>
#include <cstdio>
#include <gradwire/compressor.h>
#include <gradwire/network.h>
#include <gradwire/tape.h>

int main() {
  gradwire::Tape tape;
  const auto a = tape.variable(-4.0), b = tape.variable(2.0);
  auto c = a * b + pow3(b);
  tape.backward(c);
  gradwire::Network net;
  mean_squared_error(affine(net.linear(2, 1), net.features(2)));
  const auto oracle =
      gradwire::network_oracle<double>(net, {.count = 2, .features = {1, 0, 0, 1}, .targets = {2, -1}});
  std::vector<double> x(net.dim()), gradient(net.dim());
  const double loss = oracle->loss_and_gradient(x, {}, gradient);
  const auto sent = gradwire::NamedCompressor("topk:k=1", net.dim()).compress<double>(gradient);
  std::printf("da = %g, db = %g, loss = %g, sent = %g\n", a.grad(), b.grad(), loss, sent.values()[0]);
  return a.grad() == 2 && b.grad() == 8 && loss == 2.5 && sent.values()[0] == -2 ? 0 : 1;
}
