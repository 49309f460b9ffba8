#include "fl_server/serve.h"

#include <fstream>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <sys/resource.h>
#include <system_error>
#include <unistd.h>

#include "algorithms/method.h"
#include "fl_server/agreed.h"
#include "fl_server/results.h"
#include "fl_server/start_point.h"
#include "fl_server/summary.h"
#include "fl_server/tcp_transport.h"
#include "proto/codec_context.h"

namespace gradwire {
namespace {

constexpr std::chrono::seconds kGoodbyeTime{10};  // for clients to hang up once the run is over

// Names the run for its clients; results do not depend on it.
std::uint64_t draw_run() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

// As many sockets as the system lets this process have.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// Readers see the old contents or the new ones, never a part.
void write_file(const std::filesystem::path& file, const std::string& text) {
  const std::filesystem::path draft = file.string() + ".new";
  std::ofstream out(draft, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw std::runtime_error(draft.string() + ": cannot be written");
  std::filesystem::rename(draft, file);
}

// Makes the folder, unless it is somebody else's.
void claim(const std::filesystem::path& state, const std::string& name) {
  const std::string option = "--state " + state.string() + ": ";
  std::error_code error;
  std::filesystem::create_directories(state, error);
  if (!std::filesystem::is_directory(state))
    throw ExperimentError(option + "is no folder and cannot be made one");
  const std::filesystem::path config = state / "config.toml";
  if (!std::filesystem::exists(config)) return;
  std::string other;
  try {
    other = load_experiment(config).experiment.name();
  } catch (const ExperimentError&) {
    throw ExperimentError(option + "its config.toml is not of a run of gradwire; choose another folder");
  }
  if (other != name)
    throw ExperimentError(option + "holds results of '" + other + "', not of '" + name +
                          "'; choose another folder or remove this one");
}

std::vector<ProcessInfo> processes(const ClientTable& table) {
  std::error_code error;
  std::vector<ProcessInfo> all = {{"server", static_cast<std::uint64_t>(::getpid()),
                                   std::filesystem::read_symlink("/proc/self/exe", error).string()}};
  for (ClientId client = 0; client < table.size(); ++client)
    all.push_back({"client " + std::to_string(client), table.info(client).pid, ""});
  return all;
}

// "avx2", or "avx2 and neon" where clients differ.
std::string kernels(const ClientTable& table) {
  std::set<std::string> names;
  for (ClientId client = 0; client < table.size(); ++client) names.insert(table.info(client).kernels);
  names.erase("");
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " and ") + name;
  return text;
}

template <class Real>
std::shared_ptr<const Setup<Real>> make_setup(const Agreed& agreed) {
  auto setup = std::make_shared<Setup<Real>>();
  setup->seed = agreed.experiment.seed();
  setup->n = agreed.experiment.clients().count();
  setup->d = agreed.d;
  setup->x0.assign(agreed.x0.begin(), agreed.x0.end());
  setup->algorithm = algorithm_spec(agreed.experiment);
  setup->compressor = uplink_compressor(setup->algorithm, agreed.d, setup->n);
  setup->weights = agreed.weights;
  setup->keep_mirrors = keep_mirrors(agreed.experiment, /*over_network=*/true);
  return setup;
}

template <class Real>
Outcome run(const ServeOptions& options, const Agreed& agreed, Hub& hub) {
  const proto::Experiment& e = agreed.experiment;
  const auto setup = make_setup<Real>(agreed);
  const Result<ZstdMode> zstd = parse_zstd_mode(e.server().zstd());
  if (!zstd) throw ExperimentError("server.zstd: " + zstd.error().message);
  const CodecContext context = codec_context(*setup, *zstd);
  Summary summary;
  summary.experiment = &e;
  summary.theory = agreed.theory();
  summary.transport = "tcp";
  summary.warnings = agreed.warnings;
  MetricsFile metrics(options.state / "metrics.csv");
  LoopHooks<Real> hooks;
  hooks.on_note = options.log;
  hooks.on_round = [&](std::uint32_t rounds) { summary.rounds = rounds; };
  hooks.on_record = [&](const RoundRecord& record) {
    metrics.write(record);
    summary.last = record;
    if (options.on_record) options.on_record(record);
  };
  const auto server = make_server<Real>(setup);
  TcpTransport<Real> transport(hub, context, start_frame(agreed, draw_run()));
  Ledger ledger;
  const double started = transport.now();
  summary.outcome = run_rounds(*server, facts_of(*setup), *setup, transport, ledger, round_limits(e), hooks);
  summary.seconds = transport.now() - started;
  summary.kernels = kernels(hub.table());
  summary.processes = processes(hub.table());
  write_model<Real>(options.state / "model.bin", server->model());
  write_file(options.state / "summary.json", summary_json(summary));
  return summary.outcome;
}

void describe(const Agreed& agreed, const std::function<void(const std::string&)>& log) {
  for (const std::string& warning : agreed.warnings) log("warning: " + warning);
  const std::string step = agreed.experiment.algorithm().step_size();
  if (agreed.smoothness)
    log("step sizes from theory: L = " + std::to_string(agreed.smoothness->L) +
        " is the mean of the clients' L_i, an upper bound; step_size = " + step);
  log("the run begins: " + agreed.experiment.algorithm().name() + ", " +
      std::to_string(agreed.experiment.clients().count()) + " clients, d = " + std::to_string(agreed.d) +
      ", " + std::to_string(agreed.experiment.run().rounds()) + " rounds");
}

}  // namespace

std::optional<Outcome> serve(const ServeOptions& given) {
  ServeOptions options = given;
  if (!options.log) options.log = [](const std::string&) {};
  const LoadedExperiment loaded = load_experiment(options.file, options.overrides);
  claim(options.state, loaded.experiment.name());
  raise_descriptor_limit();
  proto::Experiment told = loaded.experiment;
  make_paths_absolute(told, loaded.folder());
  const std::uint32_t clients = told.clients().count();
  Hub hub({options.listen, clients, told.SerializeAsString(), options.times, options.handle_signals,
           options.log});
  write_file(options.state / "address", hub.address() + "\n");
  options.log("listening on " + hub.address() + ", waiting for " + std::to_string(clients) + " clients");
  try {
    if (!hub.gather(options.join_deadline)) {
      hub.abandon("the server was stopped before the run began");
      return std::nullopt;
    }
    const Agreed agreed = agree(loaded, hub.table());
    describe(agreed, options.log);
    write_file(options.state / "config.toml", to_toml(agreed.experiment));
    const bool fp32 = agreed.experiment.precision() == "fp32";
    const Outcome outcome = fp32 ? run<float>(options, agreed, hub) : run<double>(options, agreed, hub);
    hub.finish(kGoodbyeTime);
    return outcome;
  } catch (const std::exception& error) {
    hub.abandon(std::string("the server ended the run: ") + error.what());
    throw;
  }
}

}  // namespace gradwire
