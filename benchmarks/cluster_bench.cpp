// Benchmarks of work that MPI ranks share: `mpirun -n 2 gradwire bench cluster`.
#include <algorithm>

#include "algorithms/core/vector_ops.h"
#include "base/random.h"
#include "benchmarks/benchmarks.h"
#include "benchmarks/workloads.h"
#include "engine/data/readers/source.h"
#include "engine/problems/problem.h"
#include "mpi/one_rank.h"
#include "mpi/rank_communicator.h"

namespace gradwire::bench {
namespace {

// Returns the ranks of mpirun, or a single rank if mpirun did not start this process.
std::shared_ptr<Ranks> ranks_of(const Bench& bench) {
  if (bench.options().ranks != nullptr) return bench.options().ranks;
  return std::make_shared<OneRank>();
}

// Waits until all ranks have arrived.
void meet(Ranks& ranks) {
  const std::byte nothing{};
  RankBytes all;
  ranks.all_gather({&nothing, 1}, all);
}

// Measures the sum of n clients' replies: vectors of length d with `nonzeros` nonzero entries. The vectors
// are dense if `nonzeros` is d.
void sums_of(Bench& bench, std::uint32_t n, std::uint32_t d, std::uint32_t nonzeros, double target) {
  const std::shared_ptr<Ranks> ranks = ranks_of(bench);
  std::vector<std::vector<float>> values;
  std::vector<std::vector<std::uint32_t>> indices(n);
  std::vector<Uplink<float>> sent(n);
  for (std::uint32_t i = 0; i < n; ++i) values.push_back(normal_vector<float>(nonzeros, i + 1));
  for (std::uint32_t i = 0; i < n; ++i) {
    Payload<float> part = Payload<float>::dense(values[i]);
    if (nonzeros < d) {
      for (std::uint32_t k = 0; k < nonzeros; ++k)
        indices[i].push_back(k * (d / nonzeros) + i % (d / nonzeros));
      part.shape = Shape::kSparse;
      part.dim = d;
      part.indices = indices[i];
    }
    sent[i].client = i;
    sent[i].parts = {part};
  }
  RunContext<float> alone;
  alone.n = n;
  alone.d = d;
  RunContext<float> shared = alone;
  shared.communicator = std::make_shared<RankCommunicator<float>>(ranks, n);
  std::vector<UplinkView<float>> all(sent.begin(), sent.end()), mine = all;
  const Parts<float> nothing = {Payload<float>::nothing(d)};
  for (UplinkView<float>& reply : mine)
    if (!shared.mine().has(reply.client)) reply.parts = nothing;
  std::vector<float> out(d), expected(d);
  const auto series = interleave(
      bench.repeats(101), {[&] {
                             std::ranges::fill(out, 0.0f);
                             meet(*ranks);
                             return seconds_of([&] { add_weighted<float>(shared, mine, 0, 1.0f, out); });
                           },
                           [&] {
                             std::ranges::fill(expected, 0.0f);
                             meet(*ranks);
                             return seconds_of([&] { add_weighted<float>(alone, all, 0, 1.0f, expected); });
                           }});
  if (out != expected) throw std::logic_error("the sum over ranks differs from that of one rank");
  bench.keep_all<float>(out);
  Row row;
  row.name = "cluster/sums " + std::to_string(n) + " x " + std::to_string(d) +
             (nonzeros < d ? " sparse " + std::to_string(nonzeros) : " dense");
  row.value = series[0].times(1e3);
  row.unit = "ms";
  row.versus = {"one rank", series[1].times(1e3)};
  if (ranks->count() > 1) row.target = {Target::Of::kValue, target};
  row.note = std::to_string(ranks->count()) + " ranks";
  bench.row(row);
}

// Returns random images like those of MNIST: 784 features, of which 19 % are nonzero.
Dataset images(std::size_t rows) {
  Random random(1, "bench images");
  Dataset data;
  data.columns = 784;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::uint32_t c = 0; c < data.columns; ++c) {
      if (random.uniform() > 0.19) continue;
      data.column.push_back(c);
      data.value.push_back(random.uniform());
    }
    data.row_start.push_back(data.column.size());
    data.label.push_back(static_cast<double>(r % 10));
  }
  return data;
}

}  // namespace

void cluster_sums(Bench& bench) {
  sums_of(bench, bench.size(1000u, 40u), bench.size(7850u, 700u), bench.size(7850u, 700u), 2.5);
  sums_of(bench, bench.size(1000u, 40u), bench.size(7850u, 700u), bench.size(78u, 7u), 0.4);
}

void cluster_fedavg(Bench& bench) {
  const std::shared_ptr<Ranks> ranks = ranks_of(bench);
  const std::uint32_t n = bench.size(1000u, 20u), rounds = bench.size(20u, 2u);
  ProblemSpec spec;
  spec.problem = Mlp{};
  spec.clients = n;
  DataSchema schema;
  schema.columns = 784;
  for (int label = 0; label < 10; ++label) schema.labels.push_back(label);
  SplitSpec split;
  split.clients = n;
  const std::shared_ptr<const ClientObjectives<float>> functions =
      make_client_objectives<float>(spec, schema, share_samples(images(20 * n), nullptr, split));
  AlgorithmSpec algorithm;
  algorithm.name = "fedavg";
  algorithm.batch = 20;
  algorithm.parameters = {{"local_steps", "5"}, {"local_step_size", "0.01"}};
  const auto alone = make_run_context(algorithm, n, std::vector<float>(model_dim(spec, schema)));
  const auto shared = std::make_shared<RunContext<float>>(*alone);
  RankSignals signals;
  const RankBinding<float> binding = {std::make_shared<RankCommunicator<float>>(ranks, n), &signals};
  shared->communicator = binding.communicator;
  std::vector<float> models[2];
  const auto run = [&](const std::shared_ptr<const RunContext<float>>& run_context,
                       const RankBinding<float>& where, std::vector<float>& model) {
    Simulation<float> simulation(run_context, functions, 1, where);
    meet(*ranks);
    const double seconds = seconds_of([&] { simulation.run(rounds, 0); });
    model.assign(simulation.model().begin(), simulation.model().end());
    return seconds;
  };
  const auto series = interleave(bench.repeats(7),
                                 {[&] { return run(shared, binding, models[0]); },
                                  [&] {
                                    // Runs on one rank while the others wait.
                                    const bool first = ranks->rank() == 0;
                                    meet(*ranks);
                                    double seconds = 0;
                                    if (first) {
                                      Simulation<float> simulation(alone, functions);
                                      seconds = seconds_of([&] { simulation.run(rounds, 0); });
                                      models[1].assign(simulation.model().begin(), simulation.model().end());
                                    }
                                    meet(*ranks);
                                    return seconds;
                                  }});
  if (ranks->rank() == 0 && models[0] != models[1])
    throw std::logic_error("the model over ranks differs from that of one rank");
  bench.keep_all<float>(models[0]);
  Row row;
  row.name = "cluster/fedavg";
  row.value = series[0].times(1e3 / rounds);
  row.unit = "ms/round";
  row.versus = {"one rank", series[1].times(1e3 / rounds)};
  if (ranks->count() == 2) row.target = {Target::Of::kRatio, 0.55};
  row.note = std::to_string(ranks->count()) + " ranks of one thread; softmax 784 x 10, 5 steps of 20 samples";
  bench.row(row);
}

}  // namespace gradwire::bench
