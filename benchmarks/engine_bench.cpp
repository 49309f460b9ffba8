// Benchmarks of gradients alone, without rounds or messages.
#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>

#include "base/aligned.h"
#include "base/random.h"
#include "benchmarks/benchmarks.h"
#include "benchmarks/workloads.h"
#include "engine/nn/models/mlp.h"
#include "engine/nn/models/samples.h"
#include "engine/nn/network_oracle.h"
#include "engine/problems/problem.h"

namespace gradwire::bench {
namespace {

// Softmax classifier with one hidden tanh layer, written with plain loops that handle one sample after
// another. Parameters have the layout of engine/nn/models/mlp.h: weights (in, out) of the first layer and
// (out, in) of the second.
class BareMlp {
 public:
  static constexpr std::size_t kIn = 64, kHidden = 32, kOut = 10;
  static constexpr std::size_t kBias1 = kIn * kHidden, kWeights2 = kBias1 + kHidden,
                               kBias2 = kWeights2 + kHidden * kOut;
  static constexpr std::size_t kDim = kBias2 + kOut;

  explicit BareMlp(const Dataset& data)
      : input_(data.rows() * kIn), label_(data.label.begin(), data.label.end()) {
    for (std::size_t r = 0; r < data.rows(); ++r)
      for (std::size_t k = 0; k < data.row_columns(r).size(); ++k)
        input_[r * kIn + data.row_columns(r)[k]] = static_cast<float>(data.row_values(r)[k]);
  }

  double loss_and_gradient(const std::vector<float>& x, std::vector<float>& gradient) const {
    std::fill(gradient.begin(), gradient.end(), 0.0f);
    double loss = 0;
    for (std::size_t r = 0; r < label_.size(); ++r) loss += add_sample(r, x.data(), gradient.data());
    return loss / static_cast<double>(label_.size());
  }

 private:
  double add_sample(std::size_t r, const float* x, float* gradient) const {
    const float* in = input_.data() + r * kIn;
    float hidden[kHidden], out[kOut];
    std::copy_n(x + kBias1, kHidden, hidden);
    for (std::size_t i = 0; i < kIn; ++i)
      for (std::size_t j = 0; j < kHidden; ++j) hidden[j] += in[i] * x[i * kHidden + j];
    for (float& h : hidden) h = std::tanh(h);
    for (std::size_t j = 0; j < kOut; ++j) {
      out[j] = x[kBias2 + j];
      for (std::size_t i = 0; i < kHidden; ++i) out[j] += hidden[i] * x[kWeights2 + j * kHidden + i];
    }

    const float largest = *std::max_element(out, out + kOut);
    float sum = 0, slope[kOut];
    for (std::size_t j = 0; j < kOut; ++j) sum += slope[j] = std::exp(out[j] - largest);
    const double loss = std::log(sum) + largest - out[label_[r]];
    const float share = 1 / static_cast<float>(label_.size());
    for (std::size_t j = 0; j < kOut; ++j)
      slope[j] = (slope[j] / sum - (j == label_[r] ? 1.0f : 0.0f)) * share;

    float back[kHidden] = {};
    for (std::size_t j = 0; j < kOut; ++j)
      for (std::size_t i = 0; i < kHidden; ++i) {
        gradient[kWeights2 + j * kHidden + i] += hidden[i] * slope[j];
        back[i] += x[kWeights2 + j * kHidden + i] * slope[j];
      }
    for (std::size_t i = 0; i < kHidden; ++i) back[i] *= 1 - hidden[i] * hidden[i];
    for (std::size_t j = 0; j < kOut; ++j) gradient[kBias2 + j] += slope[j];
    for (std::size_t i = 0; i < kIn; ++i)
      for (std::size_t j = 0; j < kHidden; ++j) gradient[i * kHidden + j] += in[i] * back[j];
    for (std::size_t j = 0; j < kHidden; ++j) gradient[kBias1 + j] += back[j];
    return loss;
  }

  std::vector<float> input_;        // shape (rows, kIn)
  std::vector<std::size_t> label_;  // 0 .. 9
};

template <class Real>
void mlp_rows(Bench& bench, const std::string& name, const ClientDataset& part, const BareMlp& bare) {
  const DataSchema schema{part.train.columns, distinct_labels(part.train)};
  ProblemSpec spec;
  spec.problem.emplace<Mlp>().shape.hidden = {BareMlp::kHidden};
  const auto oracle = make_oracle<Real>(spec, schema, part, 0);
  const std::vector<double> start = model_start(spec, schema);
  const std::vector<Real> x(start.begin(), start.end());
  const std::vector<float> x_bare(start.begin(), start.end());
  if (x.size() != BareMlp::kDim) throw std::logic_error("the network and the bare loops differ in shape");
  std::vector<Real> gradient(x.size());
  std::vector<float> gradient_bare(x.size());
  double loss = 0, loss_bare = 0;
  const auto series = interleave(
      bench.repeats(15),
      {[&] { return seconds_of([&] { loss = oracle->loss_and_gradient(x, {}, gradient); }); },
       [&] { return seconds_of([&] { loss_bare = bare.loss_and_gradient(x_bare, gradient_bare); }); }});
  if (std::abs(loss - loss_bare) > 1e-4) throw std::logic_error("the network and the bare loops disagree");
  bench.keep(loss + loss_bare + static_cast<double>(gradient[5]) + gradient_bare[5]);
  const double to_us = 1e6 / static_cast<double>(part.train.rows());
  Row row;
  row.name = "engine/mlp 64-32-10 " + name;
  row.value = series[0].times(to_us);
  row.unit = "us/sample";
  row.versus = {"bare loops, fp32", series[1].times(to_us)};
  row.note = "digits, gradient of the mean; the bare loops take one sample after another";
  bench.row(row);
}

// Returns samples of `classes` classes with `in` features, each of which is nonzero with probability
// `density`.
Dataset random_samples(std::size_t count, std::size_t in, std::size_t classes, double density) {
  const std::vector<double> value = normal_vector<double>(count * in, 5);
  Random random(5, "density");
  Dataset data;
  data.columns = in;
  for (std::size_t r = 0; r < count; ++r) {
    for (std::uint32_t k = 0; k < in; ++k) {
      if (random.uniform() >= density) continue;
      data.column.push_back(k);
      data.value.push_back(value[r * in + k]);
    }
    data.row_start.push_back(data.column.size());
    data.label.push_back(static_cast<double>(r % classes));
  }
  return data;
}

}  // namespace

void engine_logistic(Bench& bench) {
  constexpr double kLambda = 0.1;
  const NamedData named = libsvm_or_like("a9a", bench.small());
  const Dataset& data = named.data;
  ClientDataset part;
  part.train = data;
  ProblemSpec spec;
  auto& logistic = spec.problem.emplace<Logistic>();
  logistic.regularizer = Regularizer::kNonconvex;
  logistic.lambda = kLambda;
  const DataSchema schema{data.columns, distinct_labels(data)};
  const auto oracle = make_oracle<double>(spec, schema, part, 0);
  const auto oracle32 = make_oracle<float>(spec, schema, part, 0);
  const std::vector<double> sign = bare_signs(data);
  const std::vector<double> x = normal_vector<double>(data.columns, 13);
  const std::vector<float> x32(x.begin(), x.end());
  std::vector<double> gradient(x.size());
  std::vector<float> gradient32(x.size());
  const std::uint32_t calls = bench.size(20u, 1u);
  const auto timed = [&](auto&& pass) {
    return [&, pass] {
      return seconds_of([&] {
        for (std::uint32_t k = 0; k < calls; ++k) bench.keep(pass());
      });
    };
  };
  const auto series = interleave(
      bench.repeats(15), {timed([&] { return oracle->loss_and_gradient(x, {}, gradient); }),
                          timed([&] { return oracle32->loss_and_gradient(x32, {}, gradient32); }),
                          timed([&] { return bare_logistic_pass(data, sign, kLambda, x, gradient); })});
  const double to_ns = 1e9 / calls / static_cast<double>(data.column.size());
  for (std::size_t k = 0; k < 2; ++k) {
    Row row;
    row.name = k == 0 ? "engine/logistic fp64" : "engine/logistic fp32";
    row.value = series[k].times(to_ns);
    row.unit = "ns/nonzero";
    row.versus = {"bare pass, libm, fp64", series[2].times(to_ns)};
    row.note = named.name;
    bench.row(row);
  }
}

void engine_first_layer(Bench& bench) {
  constexpr std::size_t kSamples = 60, kBatch = 20, kIn = 784;
  struct EngineCase {
    std::uint32_t out;
    double density, target_us;
  };
  const EngineCase cases[] = {{10, 1, 15}, {10, 0.19, 8}, {128, 1, 100}};
  std::vector<std::uint32_t> batch(kBatch);
  for (std::uint32_t k = 0; k < kBatch; ++k) batch[k] = k * kSamples / kBatch;
  std::vector<std::unique_ptr<NetworkOracle<float>>> oracles;
  std::vector<AlignedVector<float>> x, gradient;
  const std::uint32_t calls = bench.size(50u, 1u);
  std::vector<BenchBody> bodies;
  for (const EngineCase& c : cases) {
    std::vector<double> labels;
    for (std::uint32_t label = 0; label < c.out; ++label) labels.push_back(label);
    const Network network = mlp({kIn, {}, c.out});
    oracles.push_back(std::make_unique<NetworkOracle<float>>(
        network, std::make_unique<SparseSamples<float>>(random_samples(kSamples, kIn, c.out, c.density), kIn,
                                                        labels)));
    const std::vector<double> start = network.start(1);
    x.emplace_back(start.begin(), start.end());
    gradient.emplace_back(start.size());
    bodies.push_back([&, i = bodies.size()] {
      bench.keep(oracles[i]->loss_and_gradient(x[i], batch, gradient[i]));
      return seconds_of([&] {
        for (std::uint32_t k = 0; k < calls; ++k) oracles[i]->loss_and_gradient(x[i], batch, gradient[i]);
      });
    });
  }
  const auto series = interleave(bench.repeats(15), bodies);
  for (std::size_t i = 0; i < series.size(); ++i) {
    bench.keep_all<float>(gradient[i]);
    Row row;
    row.name = "engine/first_layer 784 x " + std::to_string(cases[i].out) +
               (cases[i].density < 1 ? ", 19 % nonzero" : ", dense");
    row.value = series[i].times(1e6 / calls);
    row.unit = "us/gradient";
    row.target = {Target::Of::kValue, cases[i].target_us};
    row.note = "softmax regression, batch of 20, fp32";
    bench.row(row);
  }
}

void engine_mlp(Bench& bench) {
  ClientDataset part;
  part.train = read_source("digits", {}, {});
  const BareMlp bare(part.train);
  mlp_rows<float>(bench, "fp32", part, bare);
  mlp_rows<double>(bench, "fp64", part, bare);
}

}  // namespace gradwire::bench
