#include "gradwire/server.h"

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <utility>

#include "api/content.h"
#include "api/measured_run.h"
#include "fl_server/listen_rules.h"
#include "fl_server/serve.h"
#include "report/metrics_reader.h"
#include "storage/model_file.h"

namespace gradwire {
namespace {

// Applies the rules of the command line. Throws BadInput.
void check(const ServerOptions& options) {
  if (options.state.empty()) throw BadInput("--state is required: the folder of the run");
  ListenOptions rules;
  rules.listen = options.listen;
  rules.identity = options.identity;
  rules.metrics = options.metrics;
  rules.insecure = options.insecure;
  if (const std::string trouble = trouble_of(rules); !trouble.empty()) throw BadInput(trouble);
  if (options.log) warn_about(rules, [&](const LogLine& line) { options.log(line.text); });
}

// Returns the result of a run whose server has ended, from what it says and from its folder.
TrainResult result_of(const Experiment& experiment, const ServerOptions& options, const Served& served) {
  auto measured = std::make_shared<MeasuredRun>(experiment);
  const LoadedExperiment& loaded = experiment.content().loaded;
  measured->warnings = loaded.warnings;
  FinishedRun& run = measured->run;
  run.transport = options.identity.empty() ? TransportKind::kTcp : TransportKind::kTls;
  run.result.outcome = served.outcome.value_or(Outcome::kStopped);
  if (!served.outcome) {
    run.plan.asked = run.plan.experiment = loaded.experiment;
    measured->trouble = loaded.experiment.name + ": stopped before the run began";
    return TrainResult(std::move(measured));
  }
  run.plan = served.plan;
  run.result.rounds = served.rounds;
  run.result.seconds = served.seconds;
  run.result.model = read_model(options.state / "model.bin");
  set_records(*measured, read_metrics(options.state / "metrics.csv"));
  measured->warnings.insert(measured->warnings.end(), run.plan.warnings.begin(), run.plan.warnings.end());
  measured->trouble = trouble_of(run, options.state, /*can_resume=*/true);
  measured->summary = text_of(options.state / "summary.json");
  return TrainResult(std::move(measured));
}

// Returns what the folder of a running server has. It may have the summary of a server before it.
TrainResult result_so_far(const Experiment& experiment, const ServerOptions& options) {
  auto measured = std::make_shared<MeasuredRun>(experiment);
  FinishedRun& run = measured->run;
  run.plan.asked = run.plan.experiment = experiment.content().loaded.experiment;
  measured->warnings = experiment.content().loaded.warnings;
  const std::filesystem::path metrics = options.state / "metrics.csv";
  if (std::filesystem::exists(metrics)) set_records(*measured, read_metrics(metrics));
  run.transport = options.identity.empty() ? TransportKind::kTcp : TransportKind::kTls;
  run.result.rounds = run.last ? run.last->round : 0;
  run.result.seconds = run.last ? run.last->seconds : 0;
  measured->outcome = kRunning;
  return TrainResult(std::move(measured));
}

}  // namespace

class Server::Impl {
 public:
  Impl(const Experiment& experiment, const ServerOptions& options)
      : experiment_(experiment), options_(options) {
    check(options_);
    thread_ = std::thread([this] { run(); });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_listening_ || is_over_; });
    if (!trouble_) return;
    lock.unlock();
    thread_.join();
    std::rethrow_exception(trouble_);
  }
  ~Impl() {
    stop_.request_stop();
    abandon_.request_stop();
    if (thread_.joinable()) thread_.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  const std::string& address() const { return address_; }
  void stop() {
    if (!stop_.request_stop()) abandon_.request_stop();
  }

  TrainResult wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_over_; });
    if (trouble_) std::rethrow_exception(trouble_);
    return result_of(experiment_, options_, served_);
  }

  TrainResult result() {
    {
      const std::lock_guard lock(mutex_);
      if (trouble_) std::rethrow_exception(trouble_);
      if (is_over_) return result_of(experiment_, options_, served_);
    }
    return result_so_far(experiment_, options_);
  }

 private:
  ServeOptions serve_options() {
    ServeOptions serving;
    serving.listen = options_.listen;
    serving.state = options_.state;
    serving.identity = options_.identity;
    serving.metrics = options_.metrics;
    serving.handle_signals = false;
    serving.stop = stop_.get_token();
    serving.abandon = abandon_.get_token();
    serving.resume = !options_.fresh;
    if (options_.log)
      serving.log = [this](const LogLine& line) {
        const std::lock_guard lock(logging_);
        options_.log(line.text);
      };
    serving.on_listening = [this](const std::string& address) {
      const std::lock_guard lock(mutex_);
      address_ = address;
      is_listening_ = true;
      changed_.notify_all();
    };
    if (options_.on_row)
      serving.is_enough = [this](const RoundRecord& record) { return !options_.on_row(row_of(record)); };
    return serving;
  }

  // Runs on the thread of the server.
  void run() {
    Served served;
    std::exception_ptr trouble;
    try {
      served = with_errors_of_keys([&] { return serve(serve_options(), experiment_.content().loaded); });
    } catch (const std::invalid_argument& error) {
      trouble = std::make_exception_ptr(BadInput(error.what()));
    } catch (...) {
      trouble = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    served_ = std::move(served);
    trouble_ = trouble;
    is_over_ = true;
    changed_.notify_all();
  }

  const Experiment experiment_;
  const ServerOptions options_;
  std::stop_source stop_, abandon_;
  std::mutex logging_;  // held while a line is logged
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  bool is_listening_ = false, is_over_ = false;
  Served served_;
  std::exception_ptr trouble_;
  std::string address_;  // does not change once is_listening_ or is_over_ is true
  std::thread thread_;
};

Server::Server(const Experiment& experiment, const ServerOptions& options)
    : impl_(std::make_unique<Impl>(experiment, options)) {}
Server::~Server() = default;
const std::string& Server::address() const { return impl_->address(); }
TrainResult Server::wait() { return impl_->wait(); }
TrainResult Server::result() const { return impl_->result(); }
void Server::stop() { impl_->stop(); }

}  // namespace gradwire
