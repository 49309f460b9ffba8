#include "fl_server/server_run.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <random>
#include <set>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

#include "algorithms/algorithms.h"
#include "config/experiment_file.h"
#include "config/start_point.h"
#include "fl_server/run_metadata.h"
#include "fl_server/sessions/tcp_transport.h"
#include "fl_server/stall_report.h"
#include "parallel/processors.h"
#include "parallel/range_threads.h"
#include "proto/wire/codec_context.h"
#include "report/clients_file.h"
#include "report/metrics_file.h"
#include "report/run_clock.h"
#include "report/summary.h"
#include "storage/atomic_file.h"
#include "storage/model_file.h"

namespace gradwire {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr std::chrono::milliseconds kShortestWait{1}, kLongestWait{64};
constexpr std::chrono::seconds kShutdownTime{10};  // time for clients to disconnect once the run is over

std::vector<ProcessInfo> processes(const ClientTable& table) {
  std::error_code error;
  std::vector<ProcessInfo> all = {{"server", static_cast<std::uint64_t>(::getpid()),
                                   std::filesystem::read_symlink("/proc/self/exe", error).string()}};
  for (ClientId client = 0; client < table.size(); ++client)
    if (table.joined(client)) all.push_back({"client " + std::to_string(client), table.info(client).pid, ""});
  return all;
}

DescribedClient described(const ClientTable& table, ClientId client) {
  return {table.info(client).name, table.info(client).sample_count};
}

// Returns the kernels of all clients, as in "avx2", or "avx2 and neon" if they differ.
std::string kernels(const ClientTable& table) {
  std::set<std::string> names;
  for (ClientId client = 0; client < table.size(); ++client) names.insert(table.info(client).kernels);
  names.erase("");
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " and ") + name;
  return text;
}

ZstdMode zstd_mode(const ExperimentSpec& e) {
  const Result<ZstdMode> zstd = parse_zstd_mode(e.server.zstd);
  if (!zstd) throw ExperimentError("server.zstd: " + zstd.error().message);
  return *zstd;
}

// Returns the number of threads for sums. More threads would not help, because the memory limits the speed.
unsigned threads_of_sums() { return std::min(8u, usable_processors()); }

// Runs `work` on a thread of its own while the session manager serves its connections, because silent servers
// lose their clients. Rethrows exceptions of `work`.
template <class Work>
void do_in_background(SessionManager& session_manager, const Work& work) {
  std::exception_ptr trouble;
  std::atomic<bool> done = false;
  std::thread thread;
  try {
    thread = std::thread([&] {
      try {
        work();
      } catch (...) {
        trouble = std::current_exception();
      }
      done = true;
    });
  } catch (const std::system_error&) {  // no thread could be started
    return work();
  }
  // Checks often at first, because most models are small.
  for (std::chrono::milliseconds wait = kShortestWait; !done; wait = std::min(2 * wait, kLongestWait))
    session_manager.wait(session_manager.now() + wait, [&] { return done.load(); });
  thread.join();
  if (trouble) std::rethrow_exception(trouble);
}

// A transport that counts unusable replies and measures the reply time of clients.
template <class Real>
class MeasuredTransport final : public TcpTransport<Real> {
 public:
  MeasuredTransport(SessionManager& session_manager, const CodecContext& context, const std::string& start,
                    bool takes_sums, RunHistory* run_history, ServerMetrics& server_metrics)
      : TcpTransport<Real>(session_manager, context, start, takes_sums),
        run_history_(run_history),
        server_metrics_(server_metrics),
        asked_(context.clients) {}

  std::uint64_t send(ClientId client, const Request<Real>& request) override {
    if (request.request_id != asked_[client].request_id) asked_[client] = {request.request_id, this->now()};
    return TcpTransport<Real>::send(client, request);
  }

  void acknowledge(ClientId client, std::uint64_t request_id, Ack ack) override {
    if (run_history_ != nullptr && ack == Ack::kLate) run_history_->reply_unused(client);
    if (ack == Ack::kLate) server_metrics_.reject(Rejection::kLate);
    if (ack == Ack::kRefused && std::pair(client, request_id) != reported_)
      server_metrics_.reject(Rejection::kNorm);
    TcpTransport<Real>::acknowledge(client, request_id, ack);
  }

  void report_misbehaviour(const Event<Real>& event) override {
    server_metrics_.reject(Rejection::kMalformed);
    reported_ = {event.up.client, event.up.request_id};
    TcpTransport<Real>::report_misbehaviour(event);
  }

  const Event<Real>& next(double deadline) override {
    const Event<Real>& event = TcpTransport<Real>::next(deadline);
    if (event.kind == Event<Real>::Kind::kReply) note(event);
    return event;
  }

 private:
  struct Asked {
    std::uint64_t request_id = 0;
    double at = 0;  // seconds, now()
  };

  void note(const Event<Real>& event) {
    if (event.repeated) return server_metrics_.reject(Rejection::kRepeated);
    const Asked& asked = asked_[event.up.client];
    if (event.up.request_id != asked.request_id) return;
    if (event.up.status == ReplyStatus::kNotFinite) server_metrics_.reject(Rejection::kNotFinite);
    server_metrics_.reply_time.observe(this->now() - asked.at);
    server_metrics_.bytes_staged.set(server_metrics_.bytes_staged.value() + event.bytes);
  }

  RunHistory* const run_history_;
  ServerMetrics& server_metrics_;
  std::vector<Asked> asked_;  // by client
  // The last reply that was reported. It is counted once, and refused afterwards.
  std::pair<ClientId, std::uint64_t> reported_{};
};

template <class Real>
class RealRun final : public ServerRun {
 public:
  RealRun(const ServeOptions& options, const RunPlan& plan, Disk& disk, Journal& journal,
          Background& background, RunHistory* run_history, ServerMetrics& server_metrics,
          std::string metadata)
      : options_(options),
        disk_(disk),
        run_history_(run_history),
        server_metrics_(server_metrics),
        plan_(plan),
        run_context_(make_run_context<Real>(plan, Role::kServer, ranges_of(plan.d, threads_of_sums()))),
        context_(codec_context(*run_context_, zstd_mode(plan.experiment))),
        server_(make_server<Real>(run_context_)),
        durable_(journal, background, context_, *server_, progress_, std::move(metadata), {}, options.log) {
    Vec<Real>().swap(run_context_->x0);  // the algorithm has copied it
  }

  bool load(std::span<const Section> sections) override { return durable_.load(sections); }
  bool replay(std::string_view record) override {
    const std::vector<std::uint64_t> before = progress_.committed;
    if (!durable_.replay(record)) return false;
    if (peek_end(record)) return true;
    used_.clear();
    for (ClientId client = 0; client < before.size(); ++client)
      if (progress_.committed[client] != before[client]) used_.push_back(client);
    if (run_history_ != nullptr) run_history_->round_done(progress_, used_);
    return true;
  }
  const RunProgress& progress() const override { return progress_; }
  RunEnd stage() const override { return durable_.stage(); }
  void ask_metadata(std::function<std::string()> metadata) override {
    durable_.ask_metadata(std::move(metadata));
  }

  Outcome go(SessionManager& session_manager, const std::string& start) override {
    const Durability durability = durability_of(plan_.experiment);
    const auto metrics =
        std::make_shared<MetricsFile>(options_.state / "metrics.csv", progress_.round, durability);
    if (!metrics->set_aside().empty() && options_.log)
      options_.log(
          LogLine::warning("metrics.csv has the columns of another version: its lines are copied, and the "
                           "old file is kept as " +
                           metrics->set_aside()));
    durable_.before_snapshots([metrics] { return metrics->sync(); });
    Summary summary;
    summary.experiment = &plan_.experiment;
    summary.schema = &plan_.schema;
    summary.theory = plan_.theory();
    summary.transport = options_.identity.empty() ? "tcp" : "tls";
    summary.warnings = plan_.warnings;
    LoopHooks<Real> hooks;
    hooks.on_note = options_.log;
    StallReport stalls(
        {[&](ClientId client) { return session_manager.connected(client); },
         [&](ClientId client) { return session_manager.standing(client); }},
        [] { return Seconds(std::chrono::system_clock::now().time_since_epoch()).count(); }, server_metrics_,
        options_.log);
    hooks.on_stall = [&](const StalledRound& wait) { stalls.see(wait); };
    hooks.is_connected = [&](ClientId client) { return session_manager.connected(client); };
    hooks.before_apply = [this] { durable_.before_apply(); };
    hooks.on_commit = [this](const RoundCommit<Real>& commit) {
      const auto began = std::chrono::steady_clock::now();
      durable_.commit(commit);
      server_metrics_.commit_time.observe(Seconds(std::chrono::steady_clock::now() - began).count());
      register_round(commit);
      measure_round(commit);
    };
    hooks.on_record = [&](const RoundRecord& record) {
      metrics->write(record);
      server_metrics_.loss.set(record.loss);
      if (record.accuracy) server_metrics_.accuracy.set(*record.accuracy);
      if (run_history_ != nullptr) run_history_->evaluated(record);
      if (options_.on_record) options_.on_record(record);
    };
    hooks.is_enough = options_.is_enough;
    ClientsFile clients(
        options_.state / kClientsFile, client_metrics(plan_.experiment), progress_.round,
        [&table = session_manager.table()](std::uint32_t client) { return described(table, client); });
    hooks.on_clients = clients.writer();
    RoundLimits limits = round_limits(plan_.experiment, /*over_network=*/true);
    limits.keep_clients = true;
    limits.plateau = metrics->plateau();
    limits.max_delay = theory_delay(plan_);
    if (plan_.experiment.evaluation.grad_norm == GradNorm::kAuto && limits.evaluate_every > 0 &&
        limits.grad_norm == GradNormRows::kFirstAndLast && options_.log)
      options_.log(
          "the gradient norm is in the first and the last line of metrics.csv only; evaluation.grad_norm = "
          "\"every\" adds it to each line, but then every client sends a whole gradient");
    if (durable_.recovered())
      limits.first_wait_seconds = Seconds(join_deadline(options_, plan_.experiment)).count();
    const bool sums =
        // A sum does not show which of its replies is too large.
        takes_sums(*run_context_) && !limits.norm.is_set();
    MeasuredTransport<Real> transport(session_manager, context_, start, sums, run_history_, server_metrics_);
    // The first snapshot of a large model takes a while. The clients already know that the run has begun.
    durable_.refresh_metadata();
    store(session_manager, [this] { durable_.begin(std::random_device{}()); });
    server_metrics_.rounds.set(plan_.experiment.run.rounds);
    measure_progress();
    round_began_ = std::chrono::steady_clock::now();
    const auto write_results = [&](Outcome outcome) {
      summary.outcome = outcome;
      summary.rounds = progress_.round;
      summary.loss_at_start = metrics->loss_at_start();
      summary.last = metrics->last();
      const std::string trouble =
          outcome == Outcome::kDiverged
              ? divergence(plan_.experiment, plan_.theory())
              : loss_rise(summary.loss_at_start, summary.last, plan_.experiment, plan_.theory());
      if (!trouble.empty() && options_.log) options_.log(LogLine::warning(trouble));
      const std::string reason = end_reason(plan_.experiment, outcome, summary.last);
      if (!reason.empty() && options_.log)
        options_.log("ended after round " + std::to_string(progress_.round) + ": " + reason);
      summary.seconds = hooks.seconds();
      summary.evaluation_seconds = progress_.totals.evaluation_seconds;
      const std::string share = evaluation_share(summary.evaluation_seconds, summary.seconds);
      if (!share.empty() && options_.log) options_.log(share);
      summary.kernels = plan_.experiment.run.kernels == KernelSet::kPortable
                            ? kernels_name(KernelSet::kPortable)
                            : kernels(session_manager.table());
      summary.processes = processes(session_manager.table());
      durable_.refresh_metadata();
      // The thread below reads a copy, because clients join meanwhile.
      clients.describe_by(
          [table = session_manager.table()](std::uint32_t client) { return described(table, client); });
      store(session_manager, [&] {
        write_model<Real>(disk_, "model.bin", server_->model());
        clients.finish();
        write_whole(disk_, "summary.json", summary_json(summary));
        durable_.end(outcome == Outcome::kStopped ? RunStage::kRounds : RunStage::kNotifyingClients, outcome);
      });
    };
    hooks.on_over = write_results;
    hooks.seconds = RunClock(progress_.totals.seconds);
    hooks.wall_seconds = hooks.seconds;
    const Outcome outcome =
        run_rounds(*server_, traits_of(*run_context_), *run_context_, transport, progress_, limits, hooks);
    if (outcome == Outcome::kStopped) {
      write_results(outcome);
    } else {
      if (session_manager.finish(kShutdownTime)) durable_.end(RunStage::kOver, outcome);
    }
    return outcome;
  }

  void shut_down_clients(SessionManager& session_manager, const std::string& start,
                         Outcome outcome) override {
    TcpTransport<Real> transport(session_manager, context_, start, takes_sums(*run_context_));
    RoundLimits limits;
    limits.rounds = progress_.round;
    limits.evaluate_every = 0;
    run_rounds(*server_, traits_of(*run_context_), *run_context_, transport, progress_, limits,
               LoopHooks<Real>{});
    if (session_manager.finish(kShutdownTime)) durable_.end(RunStage::kOver, outcome);
  }

  Status record_join(ClientId client, const ClientInfo& info, bool by_part) override {
    if (is_storing_) return Error{"the server is writing its state; try again"};
    return durable_.append_note(write_late_join(client, info, by_part));
  }

 private:
  // Works in the background on what the journal holds. Clients that join for the first time wait meanwhile.
  template <class Work>
  void store(SessionManager& session_manager, const Work& work) {
    is_storing_ = true;
    do_in_background(session_manager, work);
    is_storing_ = false;
  }

  void measure_progress() {
    server_metrics_.round.set(progress_.round);
    server_metrics_.bytes_up.set(progress_.totals.bytes_up);
    server_metrics_.bytes_down.set(progress_.totals.bytes_down);
  }

  void measure_round(const RoundCommit<Real>& commit) {
    const auto now = std::chrono::steady_clock::now();
    server_metrics_.round_time.observe(Seconds(now - std::exchange(round_began_, now)).count());
    server_metrics_.rounds_done.add();
    server_metrics_.bytes_staged.set(0);
    if (commit.used) {
      server_metrics_.replies_used.add(commit.replies.size());
    } else {
      server_metrics_.rejections.add(Rejection::kNotUsed, commit.replies.size());
    }
    measure_progress();
  }

  void register_round(const RoundCommit<Real>& commit) {
    if (run_history_ == nullptr) return;
    used_.clear();
    for (const UplinkView<Real>& up : commit.replies) {
      if (commit.used) {
        used_.push_back(up.client);
      } else {
        run_history_->reply_unused(up.client);
      }
    }
    run_history_->round_done(commit.progress, used_);
  }

  const ServeOptions& options_;
  Disk& disk_;
  RunHistory* const run_history_;
  ServerMetrics& server_metrics_;
  std::chrono::steady_clock::time_point round_began_;
  std::vector<ClientId> used_;  // in one round
  const RunPlan& plan_;
  const std::shared_ptr<RunContext<Real>> run_context_;
  const CodecContext context_;
  const std::unique_ptr<ServerAlgorithm<Real>> server_;
  RunProgress progress_;
  RunStore<Real> durable_;
  bool is_storing_ = false;
};

}  // namespace

Durability durability_of(const ExperimentSpec& experiment) {
  return survives_power(experiment) ? Durability::kPower : Durability::kProcess;
}

std::chrono::milliseconds join_deadline(const ServeOptions& options, const ExperimentSpec& experiment) {
  return options.join_deadline.value_or(std::chrono::milliseconds(experiment.server.join_deadline_ms));
}

std::unique_ptr<ServerRun> make_server_run(const ServeOptions& options, const RunPlan& plan, Disk& disk,
                                           Journal& journal, Background& background, RunHistory* run_history,
                                           ServerMetrics& server_metrics, std::string metadata) {
  if (plan.experiment.precision == Precision::kFp32)
    return std::make_unique<RealRun<float>>(options, plan, disk, journal, background, run_history,
                                            server_metrics, std::move(metadata));
  return std::make_unique<RealRun<double>>(options, plan, disk, journal, background, run_history,
                                           server_metrics, std::move(metadata));
}

}  // namespace gradwire
