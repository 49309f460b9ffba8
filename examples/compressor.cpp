// A compressor of this program, in DIANA with the step of its theorem.
#include <cstdio>
#include <gradwire/train.h>
// Sends one of `blocks` equal blocks, drawn at random and scaled, so that the mean is the vector.
struct RandomBlock final : gradwire::UserCompressor<double> {
  std::uint32_t blocks = 5;
  std::string name() const override { return "random_block"; }
  gradwire::CompressorConstants constants(std::size_t d) const override {
    return gradwire::CompressorConstants::of_unbiased(blocks - 1, double(d) / blocks);  // omega, sent numbers
  }
  std::vector<std::uint32_t> block(std::size_t d, gradwire::RandomStream& random) const {
    std::vector<std::uint32_t> indices(d / blocks);
    const auto first = std::uint32_t(random.below(blocks) * indices.size());
    for (std::uint32_t j = 0; j < indices.size(); ++j) indices[j] = first + j;
    return indices;
  }
  gradwire::Compressed<double> compress(std::span<const double> v,
                                        gradwire::RandomStream& random) const override {
    const auto indices = block(v.size(), random);
    std::vector<double> values;
    for (const auto j : indices) values.push_back(blocks * v[j]);
    return gradwire::Compressed<double>::entries(v.size(), indices, values);
  }
  // The receiver draws the block again, so its place costs no bits.
  std::optional<std::vector<std::uint32_t>> drawn_indices(std::size_t d,
                                                          gradwire::RandomStream& random) const override {
    return block(d, random);
  }
};

int main() {
  const gradwire::KeyValues keys = {{"algorithm.name", "diana"},
                                    {"algorithm.compressor", "identity"},
                                    {"algorithm.step_size", "theory"},
                                    {"run.rounds", 500}};
  const auto result =
      gradwire::train(gradwire::Experiment::load("quadratics").with(keys), {.compressor = RandomBlock()});
  std::printf("loss %g after %.0f bits a client\n", result.rows().back().loss, result.rows().back().bits_up);
  return result.rows().back().loss < result.rows().front().loss ? 0 : 1;
}
