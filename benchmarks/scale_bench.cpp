// A million clients: whole runs of the program, each in its own process, and the serial share of a round.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "benchmarks/benchmarks.h"
#include "benchmarks/run_session.h"
#include "benchmarks/workloads.h"
#include "simulation/prepare.h"

namespace gradwire::bench {
namespace {

constexpr const char* kNoProgram = "gradwire is not in the folder of the programs";
constexpr std::size_t kScaleDim = 100;
constexpr double kQuadraticBytes = 2 * sizeof(double);  // data of one client

struct ScaleExperiment {
  std::string problem, algorithm;  // lines of [problem] and [algorithm]
  std::uint32_t clients = 0, asked = 0, rounds = 0, evaluate_every = 0;
  const char* precision = "fp64";

  std::string toml() const {
    return "name = \"bench\"\nprecision = \"" + std::string(precision) + "\"\n[problem]\n" + problem +
           "[clients]\ncount = " + std::to_string(clients) +
           "\nparticipation = " + std::to_string(static_cast<double>(asked) / clients) + "\n[algorithm]\n" +
           algorithm + "[run]\nrounds = " + std::to_string(rounds) +
           "\nevaluate_every = " + std::to_string(evaluate_every) + "\n";
  }
};

const std::string kQuadratic = "kind = \"quadratic\"\ndim = " + std::to_string(kScaleDim) + "\n";
const std::string kGd = "name = \"gd\"\nstep_size = 0.1\n";
const std::string kScaffold = "name = \"scaffold\"\nlocal_steps = 5\nlocal_step_size = 0.01\nstep_size = 1\n";

// Returns a problem with two samples of ten features for each client.
std::string two_samples_each(const char* kind, std::uint32_t clients) {
  return "kind = \"" + std::string(kind) +
         "\"\ndata = \"synthetic\"\ndim = 10\nsamples = " + std::to_string(std::uint64_t{2} * clients) + "\n";
}
ScaleExperiment softmax(std::uint32_t clients) {
  ScaleExperiment e{
      .problem = two_samples_each("mlp", clients), .algorithm = kGd, .clients = clients, .asked = 1};
  e.precision = "fp32";
  return e;
}

double megabytes(const RunFigures& figures) { return static_cast<double>(figures.peak_bytes) / 1e6; }

// Returns the number of clients: a million, or fewer for tiny sizes.
std::uint32_t million(const Bench& bench) { return bench.size(1000000u, 2000u); }

void add_row(Bench& bench, const std::string& name, const Series& value, const char* unit, double at_most,
             const std::string& note = {}) {
  Row row;
  row.name = name;
  row.value = value;
  row.unit = unit;
  row.target = {Target::Of::kValue, at_most};
  row.note = note;
  bench.row(row);
}

// Returns the expected number of clients that were asked at least once.
double ever_asked(const ScaleExperiment& e) {
  const double n = e.clients;
  return n * (1 - std::pow(1 - e.asked / n, e.rounds));
}

}  // namespace

void scale_start(Bench& bench) {
  const auto program = find_gradwire(bench.options().programs);
  if (program.empty()) return bench.skip("scale/start", kNoProgram);
  const std::uint32_t n = million(bench);
  const ScaleExperiment start = softmax(n);
  ScaleExperiment many{.problem = kQuadratic, .algorithm = kGd, .clients = n, .asked = 10, .rounds = 1};
  ScaleExperiment few = many;
  few.clients = n / 100;
  Series seconds, peak, idle;
  for (std::uint32_t r = 0; r < bench.repeats(5); ++r) {
    const RunFigures figures = run_alone(program, start.toml());
    seconds.add(figures.process_seconds);
    peak.add(megabytes(figures));
    const double more =
        1e6 * (megabytes(run_alone(program, many.toml())) - megabytes(run_alone(program, few.toml())));
    idle.add(more / (many.clients - few.clients) - kQuadraticBytes);
  }
  const std::string clients = std::to_string(n) + " clients";
  add_row(bench, "scale/start softmax", seconds, "s", 1.5,
          clients + " of 2 samples of 10 features, fp32; no rounds; from start to end of the program");
  add_row(bench, "scale/start softmax, peak memory", peak, "MB", 500);
  add_row(bench, "scale/start idle client", idle, "B", 24,
          "growth of the peak for one more client, without its data; gd on quadratics, 10 of " + clients +
              " asked once");
}

void scale_rounds(Bench& bench) {
  const auto program = find_gradwire(bench.options().programs);
  if (program.empty()) return bench.skip("scale/rounds", kNoProgram);
  const std::uint32_t n = million(bench), rounds = bench.size(1000u, 10u);
  const auto timed = [&](const std::string& algorithm, double target, const std::string& name,
                         Series* state) {
    ScaleExperiment all{.problem = kQuadratic, .algorithm = algorithm, .clients = n, .asked = n / 1000};
    all.rounds = rounds;
    ScaleExperiment first = all;
    first.rounds = 1;
    Series round;
    for (std::uint32_t r = 0; r < bench.repeats(3); ++r) {
      const RunFigures before = run_alone(program, first.toml()), after = run_alone(program, all.toml());
      round.add(1e3 * (after.seconds - before.seconds) / (rounds - 1));
      const double more = static_cast<double>(after.peak_bytes) - static_cast<double>(before.peak_bytes);
      if (state != nullptr)
        state->add(more / (ever_asked(all) - ever_asked(first)) - double{kScaleDim} * sizeof(double));
    }
    add_row(bench, "scale/rounds " + name, round, "ms/round", target,
            std::to_string(n / 1000) + " of " + std::to_string(n) + " quadratics, d = " +
                std::to_string(kScaleDim) + ", fp64, one thread, no evaluation; means of " +
                std::to_string(rounds - 1) + " rounds after the first");
  };
  Series state;
  timed(kGd, 1, "gd", nullptr);
  timed(kScaffold, 5, "scaffold K = 5", &state);
  add_row(bench, "scale/rounds state of a client", state, "B", 64,
          "growth of the peak of these runs of scaffold for one more asked client, without its vector");
}

void scale_ef21(Bench& bench) {
  const auto program = find_gradwire(bench.options().programs);
  if (program.empty()) return bench.skip("scale/ef21", kNoProgram);
  const std::uint32_t n = million(bench), rounds = 6;
  ScaleExperiment all{.problem = kQuadratic,
                      .algorithm = "name = \"ef21\"\ncompressor = \"topk:k=5\"\nstep_size = 0.1\n",
                      .clients = n,
                      .asked = n,
                      .rounds = rounds};
  ScaleExperiment first = all;
  first.rounds = 1;
  Series round, peak;
  for (std::uint32_t r = 0; r < bench.repeats(3); ++r) {
    const RunFigures before = run_alone(program, first.toml()), after = run_alone(program, all.toml());
    round.add((after.seconds - before.seconds) / (rounds - 1));
    peak.add(megabytes(after));
  }
  add_row(bench, "scale/ef21", round, "s/round", 0.5,
          "topk:k=5, all of " + std::to_string(n) + " quadratics, d = " + std::to_string(kScaleDim) +
              ", fp64, one thread, no evaluation; means of " + std::to_string(rounds - 1) +
              " rounds after the first");
  add_row(bench, "scale/ef21, peak memory", peak, "MB", 1100);
}

void scale_evaluation(Bench& bench) {
  const auto program = find_gradwire(bench.options().programs);
  if (program.empty()) return bench.skip("scale/evaluation", kNoProgram);
  const std::uint32_t n = million(bench), rounds = 5;
  const auto timed = [&](ScaleExperiment e, double target, const std::string& name) {
    e.rounds = rounds;
    e.evaluate_every = 1;
    Series each;
    for (std::uint32_t r = 0; r < bench.repeats(3); ++r)
      each.add(run_alone(program, e.toml()).seconds / (rounds + 1));
    add_row(bench, "scale/evaluation " + name, each, "s", target,
            std::to_string(n) + " clients, " + e.precision + ", one thread; means of " +
                std::to_string(rounds + 1) + " evaluations with a round of one client between two of them");
  };
  timed({.problem = kQuadratic, .algorithm = kGd, .clients = n, .asked = 1}, 0.15, "quadratic, d = 100");
  timed(softmax(n), 0.3, "softmax, 2 x 10");
}

void scale_serial(Bench& bench) {
  const std::uint32_t n = bench.size(1000000u, 20000u), rounds = bench.size(5u, 2u);
  const auto timed = [&](const std::string& algorithm, const std::string& name) {
    const ScaleExperiment e{.problem = kQuadratic, .algorithm = algorithm, .clients = n, .asked = n};
    Prepared plan = prepare(parse_experiment(e.toml(), "bench.toml"));
    const auto run_context = make_run_context<double>(plan, Role::kSimulation);
    double items_seconds = 0;  // time of the sums and commits that threads share
    run_context->items = [&](std::size_t size, const auto& body) {
      items_seconds += seconds_of([&] {
        for (std::size_t k = 0; k < size; ++k) body(k, k + 1);
      });
    };
    Simulation<double> simulation(
        run_context, std::shared_ptr<const ClientObjectives<double>>(
                         make_client_objectives<double>(plan.problem, plan.schema, std::move(plan.data))));
    simulation.run(2, 0);  // creates the clients' states, which happens at their first request
    Series serial;
    for (std::uint32_t r = 0; r < bench.repeats(5); ++r) {
      const double before = simulation.shared_seconds() + items_seconds;
      const double seconds = seconds_of([&] { simulation.run(rounds, 0); });
      serial.add(100 * (1 - (simulation.shared_seconds() + items_seconds - before) / seconds));
    }
    bench.keep_all(simulation.model());
    add_row(bench, "scale/serial " + name, serial, "%", 2,
            "share of the time on one thread that threads would not shorten; all of " + std::to_string(n) +
                " quadratics asked, d = " + std::to_string(kScaleDim) + ", no evaluation");
  };
  timed(kGd, "gd");
  timed("name = \"ef21\"\ncompressor = \"topk:k=5\"\nstep_size = 0.1\n", "ef21 topk:k=5");
}

}  // namespace gradwire::bench
