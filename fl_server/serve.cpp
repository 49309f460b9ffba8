#include "fl_server/serve.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "algorithms/core/sampling.h"
#include "base/log.h"
#include "base/value.h"
#include "config/experiment_file.h"
#include "config/idle_keys.h"
#include "config/settings.h"
#include "fl_server/access/server_identity.h"
#include "fl_server/fresh_start.h"
#include "fl_server/metrics/metrics_endpoint.h"
#include "fl_server/net/tcp_sockets.h"
#include "fl_server/plan_of_joins.h"
#include "fl_server/run_metadata.h"
#include "fl_server/server_run.h"
#include "fl_server/sessions/session_manager.h"
#include "proto/security/private_file.h"
#include "report/metrics_file.h"
#include "report/preprocessing_file.h"
#include "report/summary.h"
#include "storage/atomic_file.h"
#include "storage/folder_disk.h"
#include "storage/journal.h"

namespace gradwire {
namespace {

constexpr std::uint32_t kResumeRetryMs = 1000;  // retry time for clients of a run that will resume

// The times at which the log reports that rounds are being replayed, if that takes long.
constexpr std::chrono::seconds kSayAfter{2}, kSayAgainEvery{5};

// Limit of the time for the run history to record the rounds of the journal.
constexpr std::chrono::milliseconds kSettleTime{1000};

// Draws the id by which clients recognize the run. Results do not depend on it.
std::uint64_t draw_run() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

// Makes the folder. Throws if it belongs to another experiment. Returns false if its config.toml cannot be
// read but a journal, which contains the same settings, exists.
bool claim(const std::filesystem::path& state, const std::string& name) {
  const std::string option = "--state " + state.string() + ": ";
  if (!make_folder(state))
    throw ExperimentError(option + "is not a folder and cannot be created: " + std::strerror(errno));
  const std::filesystem::path config = state / "config.toml";
  if (!std::filesystem::exists(config)) return true;
  std::string other;
  try {
    other = load_experiment(config).experiment.name;
  } catch (const ExperimentError&) {
    FolderDisk disk(state);
    if (const auto journal = Journal(disk, Durability::kProcess).is_there(); journal && *journal)
      return false;
    throw ExperimentError(option +
                          "its config.toml does not belong to a run of gradwire; choose another folder");
  }
  if (other != name)
    throw ExperimentError(option + "holds results of '" + other + "', not of '" + name +
                          "'; choose another folder or remove this one");
  return true;
}

void describe(const RunPlan& plan, const Log& log) {
  for (const std::string& warning : plan.warnings) log(LogLine::warning(warning));
  const std::string step = plan.experiment.algorithm.step_size;
  if (!plan.needed.smoothness.empty() && plan.smoothness)
    log("step sizes from theory: L = " + std::to_string(plan.smoothness->L) +
        " is the mean of the clients' L_i, an upper bound; step_size = " + step);
  if (!plan.needed.convexity.empty() && plan.smoothness)
    log("from theory: mu = " + number_text(plan.smoothness->mu) +
        ", a lower bound from the regularizer and the clients' constants");
  log("the run begins: " + plan.experiment.algorithm.name + ", " + std::to_string(plan.n()) +
      " clients, d = " + std::to_string(plan.d) + ", " + std::to_string(plan.experiment.run.rounds) +
      " rounds");
}

// Checks that no other user can read the authority's key, if it is in this folder. With this key,
// certificates for other servers can be made.
void check_authority(const std::filesystem::path& identity) {
  const std::filesystem::path key = identity / "ca.key";
  if (!std::filesystem::exists(key)) return;
  if (const Status status = check_private(key); !status) throw std::invalid_argument(status.error().message);
}

// The run that the folder holds, or a new one.
class Serving {
 public:
  Serving(const ServeOptions& options, const LoadedExperiment& loaded)
      : options_(options),
        loaded_(loaded),
        told_(loaded.experiment),
        disk_(options.state),
        journal_(disk_, durability_of(loaded.experiment), options.log),
        background_(background_thread()) {
    make_paths_absolute(told_, loaded.folder());
  }

  // Recovers the run in the folder. Returns false if there is none.
  bool recover() {
    if (!options_.resume) {
      const auto kept = set_run_aside(options_.state, disk_, journal_);
      if (!kept) fail(kept.error());
      if (*kept) options_.log("starts again; moved the run in the folder to " + (*kept)->string());
    }
    const Result<bool> found =
        journal_.recover({.snapshot = [this](std::span<const Section> sections) { return load(sections); },
                          .record = [this](std::string_view record) { return replay(record); }});
    if (!found) fail(found.error());
    if (*found) compare_metrics();
    return *found;
  }
  void write_config() {
    write_whole(disk_, "config.toml", to_toml(plan_.experiment));
    Preprocessing done{.encoding = nullptr, .normalization = metadata_.normalization};
    if (normalize_of(told_) == Normalize::kUnitRows)
      done.normalization =
          std::make_shared<const Normalization>(Normalization{Normalize::kUnitRows, {}, {}, 0});
    const std::string text = preprocessing_json(plan_.experiment, done);
    if (text.empty()) {
      std::filesystem::remove(options_.state / kPreprocessingFile);
    } else {
      write_whole(disk_, kPreprocessingFile, text);
    }
  }

  // Returns the stage at which a recovered run continues.
  RunStage stage() const {
    const bool more_rounds = server_run_->progress().round < told_.run.rounds && grows_;
    return more_rounds ? RunStage::kRounds : server_run_->stage().stage;
  }

  Outcome outcome() const { return server_run_->stage().outcome; }  // for a run that is over
  // Returns the result of this process. beyond_norm_limit does not count the replies of earlier processes.
  Served result(std::optional<Outcome> outcome, bool was_over) const {
    Served served{outcome, was_over, 0, plan_, 0, 0};
    if (told_.server.norm_limit > 0)
      served.beyond_norm_limit = server_metrics_.rejections.value(Rejection::kNorm);
    if (!server_run_) return served;
    served.rounds = server_run_->progress().round;
    served.seconds = server_run_->progress().totals.seconds;
    return served;
  }

  // Tells clients that still wait that the run is over. REQUIRES: its results are written.
  void notify_clients() {
    auto sockets = listening();  // before the options, because it opens the identity
    SessionManager session_manager(session_manager_options(metadata_.table), std::move(sockets));
    options_.log("listening on " + session_manager.address() +
                 "; the run is over, telling clients that do not know it yet");
    server_run_->shut_down_clients(session_manager, metadata_.start, outcome());
    if (run_history_) run_history_->ended(outcome_name(outcome()));
  }

  std::optional<Outcome> serve(bool resumed) {
    asks_constants_ = resumed ? plan_.needed.any() : constants_to_ask(loaded_).any();
    if (!resumed) open_run_history(run_ = draw_run());
    try {
      const std::optional<Outcome> outcome = serve_run(resumed);
      if (run_history_) run_history_->ended(outcome ? outcome_name(*outcome) : "never_began");
      return outcome;
    } catch (const std::exception&) {
      if (run_history_) run_history_->ended("failed");
      throw;
    }
  }

 private:
  [[noreturn]] void fail(const Error& error) const {
    if (error.kind == ErrorKind::kSystem) throw std::runtime_error(error.message);
    throw ExperimentError(options_.state.string() + ": " + error.message);
  }

  std::optional<Outcome> serve_run(bool resumed) {
    const std::uint32_t clients = told_.clients.count;
    server_metrics_.clients.set(clients);
    auto sockets = listening();  // before the options, because it opens the identity
    SessionManager session_manager(session_manager_options(resumed ? metadata_.table : ClientTable(clients)),
                                   std::move(sockets));
    bool begun = resumed;
    try {
      if (resumed) {
        if (run_history_) {
          run_history_->resumed_after(server_run_->progress().round);
          run_history_->settle(kSettleTime);
        }
        write_config();
        options_.log("listening on " + session_manager.address() + "; the run resumes after round " +
                     std::to_string(server_run_->progress().round) + ", waiting for its " +
                     std::to_string(clients) + " clients to return; --fresh starts again");
      } else {
        const std::uint32_t needed = clients_to_start(clients);
        options_.log("listening on " + session_manager.address() + ", waiting for " +
                     (needed < clients ? std::to_string(needed) + " of " : "") + std::to_string(clients) +
                     " clients");
        if (!session_manager.gather(join_deadline(options_, told_))) {
          session_manager.abandon("the server was stopped before the run began", false, kResumeRetryMs);
          return std::nullopt;
        }
        begin(session_manager);
        begun = true;
      }
      // Saves the clients' descriptions again: a returning client may report more than the state folder has.
      server_run_->ask_metadata([this, &session_manager] {
        metadata_.table = session_manager.table();
        return save_metadata(metadata_);
      });
      const Outcome outcome = server_run_->go(session_manager, metadata_.start);
      if (outcome == Outcome::kStopped)
        session_manager.abandon("the server was stopped; the run resumes when the server returns", false,
                                kResumeRetryMs);
      return outcome;
    } catch (const BadInput& error) {
      // The refusal is fatal if the experiment is wrong. With other clients the same run may be valid.
      session_manager.abandon(std::string("the server ended the run: ") + error.what(), !begun,
                              kResumeRetryMs);
      throw;
    } catch (const std::exception& error) {
      session_manager.abandon(std::string("the server ended the run: ") + error.what(), false,
                              kResumeRetryMs);
      throw;
    }
  }

  SessionManagerOptions session_manager_options(const ClientTable& table) {
    SessionManagerOptions session_manager{
        table.size(),
        clients_to_start(table.size()),
        pack_experiment(told_),
        options_.times,
        options_.handle_signals,
        options_.log,
        table,
        run_history_.get(),
        asks_constants_,
        [this](const ClientInfo& info, const OtherClient& other) { return check_client(info, told_, other); },
        [this](ClientId client, const ClientInfo& info, bool by_part) {
          return server_run_ == nullptr ? Status(Unit{}) : server_run_->record_join(client, info, by_part);
        },
        [this](const Abilities& abilities) {
          return server_run_ == nullptr ? check_abilities(abilities, told_, false)
                                        : check_abilities(abilities, plan_.experiment, true);
        },
        bits_depend_on_kernels(told_),
        identity_ ? &identity_->authenticator() : nullptr,
        &server_metrics_};
    session_manager.lacks = [this](const ClientTable& joined) { return lacking_of_joins(told_, joined); };
    session_manager.stop = options_.stop;
    session_manager.abandon = options_.abandon;
    const ServerSection& limits = told_.server;
    session_manager.times.min_bytes_per_second = limits.min_bytes_per_second;
    session_manager.times.heartbeat = std::chrono::milliseconds(limits.heartbeat_ms);
    session_manager.bans.longest = std::chrono::seconds(limits.quarantine_s);
    session_manager.most_from_address = limits.connections_per_address;
    if (identity_) session_manager.handshakes = handshake_rates(table.size());
    session_manager.receive_budget_bytes = limits.staging_budget.bytes;
    session_manager.normalize = normalize_of(told_);
    session_manager.normalization = metadata_.normalization;
    return session_manager;
  }

  std::uint32_t clients_to_start(std::uint32_t clients) const {
    return std::max(1u, static_cast<std::uint32_t>(ceil_share(told_.server.start_share, clients)));
  }

  void open_run_history(std::uint64_t run) {
    if (options_.run_history == "none" || run_history_) return;
    run_history_ = std::make_unique<RunHistory>(
        options_.run_history.empty() ? options_.state / kRunHistoryName : options_.run_history,
        durability_of(told_),
        RunHistoryRun{run_history_id(run), told_.name, told_.algorithm.name, told_.clients.count,
                      run_history_folder(options_.state)},
        options_.log);
  }

  // Listens early: clients that connect from now on need not retry, because the kernel queues them.
  void listen() {
    if (sockets_) return;
    if (!metrics_endpoint_)
      metrics_endpoint_.emplace(server_metrics_, MetricsEndpoint::MetricsEndpointOptions{
                                                     options_.state, options_.metrics, options_.log});
    if (!options_.identity.empty()) {
      check_authority(options_.identity);
      identity_.emplace(options_.identity,
                        told_.server.tls_min == "TLS1.2" ? TlsVersion::k12 : TlsVersion::k13, options_.log);
    }
    if (!identity_ && told_.server.tls_min != "TLS1.3" && options_.log)
      options_.log(
          LogLine::warning("server.tls_min has no effect without --identity, because TLS is not used"));
    const bool zero_copy = told_.server.zerocopy;
    sockets_ =
        listen_on_tcp(options_.listen, {.keep_signals = options_.handle_signals, .zero_copy = zero_copy});
    if (zero_copy && options_.log && (identity_ || !sockets_->zero_copy()))
      options_.log(LogLine::warning(identity_
                                        ? "server.zerocopy has no effect: TLS copies all messages"
                                        : "server.zerocopy has no effect: this system copies all messages"));
    if (identity_) sockets_ = identity_->secure(std::move(sockets_));
    write_whole(disk_, "address", sockets_->address() + "\n");
    if (options_.on_listening) options_.on_listening(sockets_->address());
  }
  std::unique_ptr<SocketLayer> listening() {
    listen();
    return std::move(sockets_);
  }

  bool load(std::span<const Section> sections) {
    const auto said = snapshot_metadata(sections);
    if (!said) return false;
    Result<RunMetadata> metadata = load_metadata(said->metadata);
    if (!metadata) return false;
    const std::uint32_t rounds_before = metadata->resolved.run.rounds;
    take_settings(told_, *metadata, options_.state.string());
    metadata_ = std::move(*metadata);
    require_map(metadata_, options_.state.string());
    grows_ = told_.run.rounds > rounds_before;
    if (said->stage != RunStage::kOver || grows_) listen();
    plan_ = plan_of_snapshot(metadata_.asked, metadata_.resolved, metadata_.table);
    open_run_history(run_of(metadata_.start));
    make_run();
    return server_run_->load(sections);
  }

  bool replay(std::string_view record) {
    if (const auto join = peek_note(record)) return read_late_join(*join, metadata_.table);
    if (!server_run_->replay(record)) return false;
    const auto now = std::chrono::steady_clock::now();
    if (now < say_again_) return true;
    say_again_ = now + kSayAgainEvery;
    options_.log("replaying the rounds since the last snapshot, now at round " +
                 std::to_string(server_run_->progress().round) + "; clients wait");
    return true;
  }

  // Warns if metrics.csv has later rounds than the journal. The journal has then lost rounds, because a row
  // is written only after its rounds are in the journal.
  void compare_metrics() const {
    const std::optional<std::uint32_t> seen = last_round_of_metrics(options_.state / "metrics.csv");
    if (seen.value_or(0) <= server_run_->progress().round) return;
    options_.log(LogLine::warning(
        "metrics.csv has round " + std::to_string(*seen) + ", but the journal ends after round " +
        std::to_string(server_run_->progress().round) + "; the lost rounds are run again"));
  }

  void begin(const SessionManager& session_manager) {
    const ClientTable& table = session_manager.table();
    plan_ = plan_of_joins(loaded_, table);
    const std::shared_ptr<const Normalization> map = session_manager.normalization();
    if (std::string warning = map ? sparse_warning(*map) : ""; !warning.empty())
      plan_.warnings.push_back(std::move(warning));
    describe(plan_, options_.log);
    if (const std::uint32_t missing = table.size() - table.joined_count(); missing > 0)
      options_.log("not joined yet: " + std::to_string(missing) + " of " + std::to_string(table.size()) +
                   " clients; they may join later (server.start_share)");
    metadata_ = {told_, plan_.experiment, start_frame(plan_, run_), table, map};
    write_config();
    if (run_history_) run_history_->began(plan_.d);
    make_run();
  }

  void make_run() {
    server_run_ = make_server_run(options_, plan_, disk_, journal_, *background_, run_history_.get(),
                                  server_metrics_, save_metadata(metadata_));
    std::vector<double>().swap(plan_.x0);  // frees a vector of the length of the model
  }

  const ServeOptions& options_;
  const LoadedExperiment& loaded_;
  ExperimentSpec told_;
  FolderDisk disk_;
  Journal journal_;
  const std::unique_ptr<Background> background_;
  ServerMetrics server_metrics_;
  std::optional<MetricsEndpoint> metrics_endpoint_;
  RunMetadata metadata_;
  RunPlan plan_;
  bool grows_ = false;  // the experiment asks for more rounds than the run had
  bool asks_constants_ = false;
  std::uint64_t run_ = 0;                   // id of a new run for its clients
  std::optional<ServerIdentity> identity_;  // if empty, peers are not authenticated
  std::unique_ptr<SocketLayer> sockets_;    // until a session manager takes them
  std::chrono::steady_clock::time_point say_again_ = std::chrono::steady_clock::now() + kSayAfter;
  std::unique_ptr<RunHistory> run_history_;
  std::unique_ptr<ServerRun> server_run_;
};

}  // namespace

std::string trouble_of(const Served& served) {
  if (served.outcome != Outcome::kDiverged) return "";
  const std::uint64_t rejected = served.beyond_norm_limit;
  if (rejected == 0) return "the run diverged; try a smaller algorithm.step_size";
  return "the run diverged, and " + std::to_string(rejected) +
         (rejected == 1 ? " reply was" : " replies were") +
         " rejected because of server.norm_limit; try a larger server.norm_limit, or a smaller "
         "algorithm.step_size";
}

Served serve(const ServeOptions& given, const LoadedExperiment& loaded) {
  ServeOptions options = given;
  if (!options.log) options.log = [](const std::string&) {};
  if (loaded.experiment.run.monitor)
    throw locate(loaded, ConfigError("run.monitor",
                                     "a server has neither the clients' data nor f*; write "
                                     "monitor = false or simulate with gradwire run"));
  for (const std::string& warning : loaded.warnings) options.log(LogLine::warning(warning));
  for (const std::string& key : keys_of(RunIn::kMemory, loaded))
    options.log(
        LogLine::warning(key + " has no effect at a server; it is only for simulations with gradwire run"));
  const bool config_is_good = claim(options.state, loaded.experiment.name);
  const FolderLock lock(options.state);
  Serving serving(options, loaded);
  const bool resumed = serving.recover();
  if (!config_is_good && resumed) {
    options.log(LogLine::warning("config.toml in " + options.state.string() +
                                 " is damaged; rewriting it from the journal"));
    serving.write_config();
  }
  if (resumed && serving.stage() != RunStage::kRounds) {
    if (serving.stage() == RunStage::kNotifyingClients) serving.notify_clients();
    options.log("the run in " + options.state.string() +
                " is over; --fresh runs it again, a higher run.rounds continues it");
    return serving.result(serving.outcome(), true);
  }
  const std::optional<Outcome> outcome = serving.serve(resumed);
  return serving.result(outcome, false);
}

}  // namespace gradwire
