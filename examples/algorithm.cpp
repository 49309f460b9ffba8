// EF21 (arXiv:2106.05203, Algorithm 2) as an algorithm of this program, with the bits of the library's ef21.
#include <algorithm>
#include <cstdio>
#include <gradwire/train.h>

using State = gradwire::AlgorithmState<double>;

struct MyEf21 final : gradwire::UserAlgorithm<double> {
  State client_start(std::span<const double> x0) const override {
    return {std::vector<double>(x0.size())};  // g_i = 0
  }
  State server_start(std::span<const double> x0) const override {
    return {std::vector<double>(x0.size())};  // g = 0
  }
  // Sends c_i = C(grad f_i(x) - g_i), or all of it at first, and sets g_i += c_i.
  gradwire::Message<double> client(gradwire::ClientRound<double>& round, std::span<const double> x,
                                   State& state) const override {
    auto v = round.gradient(x);
    for (std::size_t j = 0; j < v.size(); ++j) v[j] -= state[0][j];
    const auto c_i = round.first() ? gradwire::Compressed<double>::whole(v) : round.compress(v);
    c_i.add_to(state[0]);
    return {c_i};
  }
  // Sets g += sum w_i c_i, and x -= gamma g.
  void server(gradwire::ServerRound<double>& round, std::vector<double>& x, State& state) const override {
    round.add_sum(state[0]);
    for (std::size_t j = 0; j < x.size(); ++j) x[j] -= round.step_size() * state[0][j];
  }
  bool asks_all(std::uint32_t t) const override { return t == 0; }  // the server needs each g_i once
};

int main() {
  const auto experiment =
      gradwire::Experiment::load("quadratics").with({{"algorithm.step_size", 0.01}, {"run.rounds", 200}});
  const auto mine = gradwire::train(experiment, {.algorithm = MyEf21()});
  const auto theirs = gradwire::train(experiment);
  const bool same = std::ranges::equal(mine.model(), theirs.model());
  std::printf("loss %.6f; the library's bits: %s\n", mine.rows().back().loss, same ? "yes" : "NO");
  return same ? 0 : 1;
}
