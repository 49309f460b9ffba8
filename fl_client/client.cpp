#include "fl_client/client.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <unistd.h>
#include <utility>

#include "algorithms/method.h"
#include "engine/kernels/select.h"
#include "fl_client/back_off.h"
#include "fl_client/connection.h"
#include "fl_client/memory.h"
#include "fl_client/worker.h"
#include "proto/build_info.h"
#include "proto/control_frame.h"
#include "proto/experiment.h"
#include "proto/problem_spec.h"
#include "proto/wire.pb.h"

namespace gradwire {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxLabels = 8'000;               // what fits into the header of a Join
constexpr milliseconds kLongestHeartbeat{10 * 60'000};  // that a server may ask for
constexpr milliseconds kShortestHeartbeat{10};
constexpr milliseconds kLongestRetry{10 * 60'000};

// HOST-PID-RANDOM: also after a reconnect, the server knows who this is.
std::string draw_name() {
  std::array<char, 33> host{};
  ::gethostname(host.data(), host.size() - 1);
  for (char& c : host)
    if (c != '\0' && std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.') c = '-';
  std::array<char, 9> random{};
  std::snprintf(random.data(), random.size(), "%08x", std::random_device{}());
  return std::string(host.data()) + "-" + std::to_string(::getpid()) + "-" + random.data();
}

// How one connection ended.
struct Ending {
  bool goodbye = false;
  std::string why;  // else
  milliseconds retry_after{0};
};

class Client {
 public:
  explicit Client(const ClientOptions& options)
      : options_(options),
        back_off_(options.back_off_base, options.back_off_cap),
        last_contact_(Clock::now()) {
    if (!options.state.empty()) {
      folder_.emplace(options.state);
      memory_.emplace(folder_->disk(), options.log);
    }
    name_ = options.name.empty() ? draw_name() : options.name;
    if (memory_ && options.name.empty()) name_ = memory_->name(name_);
  }

  void run();

 private:
  Ending session(ServerConnection& connection);
  Ending rounds(ServerConnection& connection);
  std::string hello() const;
  Status welcomed(const ServerConnection::Frame& frame, milliseconds& heartbeat);
  std::string join();
  Status start(const ServerConnection::Frame& frame);
  Ending told_error(const ServerConnection::Frame& frame) const;
  const Part& part();
  void log(const std::string& line) const {
    if (options_.log) options_.log(line);
  }

  const ClientOptions& options_;
  std::optional<ClientFolder> folder_;
  std::optional<ClientMemory> memory_;
  std::string name_;
  BackOff back_off_;
  Clock::time_point last_contact_;

  // Of the Welcome.
  std::uint32_t number_ = 0;
  std::string told_;  // the experiment as the server sent it
  proto::Experiment experiment_;
  std::optional<Part> part_;  // read when it is needed, and given up once the worker has its own form of it
  std::string join_;          // the frame; empty: to be made

  // Of the Start.
  std::string started_;  // its header
  std::unique_ptr<Worker> worker_;
};

void Client::run() {
  for (;;) {
    auto connection =
        ServerConnection::connect(options_.server, options_.connect_timeout, options_.io_timeout);
    const Ending ending =
        connection ? session(**connection) : Ending{false, "no server at " + connection.error().message};
    if (ending.goodbye) return;
    const auto away = std::chrono::duration_cast<milliseconds>(Clock::now() - last_contact_);
    if (away > options_.give_up_after) {
      throw ClientError(
          ending.why + "; giving up after " + std::to_string(away.count()) +
          " ms without a server; check its address, or give it more time with --give-up-after-ms");
    }
    const milliseconds delay = back_off_.next(ending.retry_after);
    log(ending.why + "; trying again in " + std::to_string(delay.count()) + " ms");
    std::this_thread::sleep_for(delay);
  }
}

// ---- the handshake ----

std::string Client::hello() const {
  wire::Hello hello;
  hello.set_protocol(kWireVersion);
  hello.set_client_name(name_);
  hello.set_build(build_info());
  hello.set_pid(static_cast<std::uint64_t>(::getpid()));
  hello.set_kernels(kernels_name());
  if (options_.data.part) {
    hello.set_part_index(options_.data.part->index);
    hello.set_part_count(options_.data.part->count);
  }
  return control_frame(FrameType::kHello, hello);
}

Status Client::welcomed(const ServerConnection::Frame& frame, milliseconds& heartbeat) {
  wire::Welcome welcome;
  if (Status status = parse_control(frame.header, welcome); !status) return status;
  if (!welcome.has_client() || !welcome.has_experiment() || !welcome.has_heartbeat_ms())
    return Error{"Welcome: client, experiment or heartbeat_ms is missing"};
  heartbeat = std::clamp(milliseconds(welcome.heartbeat_ms()), kShortestHeartbeat, kLongestHeartbeat);
  last_contact_ = Clock::now();
  if (welcome.client() == number_ && welcome.experiment() == told_) return Unit{};
  proto::Experiment experiment;
  if (!experiment.ParseFromString(welcome.experiment())) return Error{"Welcome: the experiment is damaged"};
  try {
    check_experiment(experiment);
  } catch (const ConfigError& error) {
    return Error{"Welcome: " + error.key() + ": " + error.what()};
  }
  if (welcome.client() >= experiment.clients().count())
    return Error{"Welcome: the number of the client is too large"};
  const bool other_client = welcome.client() != number_;
  number_ = welcome.client();
  told_ = welcome.experiment();
  experiment_ = std::move(experiment);
  part_.reset();
  join_.clear();
  if (other_client) started_.clear();  // else the Start message says whether the run is another one
  return Unit{};
}

const Part& Client::part() {
  if (!part_) part_ = load_part(experiment_, options_.data, std::filesystem::current_path());
  return *part_;
}

std::string Client::join() {
  const ProblemSpec spec = problem_spec(experiment_);
  const Part& data = part();
  const Agreement own = agreement_of(std::span(&data, 1), spec);
  if (own.labels.size() > kMaxLabels) {
    throw DataError("the data has " + std::to_string(own.labels.size()) + " distinct labels, more than the " +
                    std::to_string(kMaxLabels) + " that can be agreed on; are they classes?");
  }
  wire::Join join;
  join.set_columns(static_cast<std::uint32_t>(own.columns));
  join.set_sample_count(data.train_count());
  join.set_test_count(data.test_count());
  join.mutable_labels()->Assign(own.labels.begin(), own.labels.end());
  if (!own.alphabet.empty()) join.set_alphabet(own.alphabet);
  if (needs_smoothness(algorithm_spec(experiment_)) && find_problem_kind(spec.kind).has_smoothness) {
    const ClientSmoothness constants = client_smoothness(spec, own, data, number_);
    join.set_smoothness(constants.L_i);
    join.set_convexity(constants.mu_i);
    join.set_sample_smoothness(constants.L_s);
    join.set_sample_smoothness_max(constants.L_sample_max);
  }
  return control_frame(FrameType::kJoin, join);
}

Status Client::start(const ServerConnection::Frame& frame) {
  const std::string header(reinterpret_cast<const char*>(frame.header.data()), frame.header.size());
  if (header == started_) {  // the same run: what this client remembers is still good
    part_.reset();
    return Unit{};
  }
  wire::Start start;
  if (Status status = parse_control(frame.header, start); !status) return status;
  proto::Experiment experiment;
  if (!start.has_dim() || !start.has_columns() || !start.has_clients() || !start.has_run() ||
      !experiment.ParseFromString(start.experiment()))
    return Error{"Start: a field is missing or damaged"};
  const Agreement agreement{
      start.columns(), {start.labels().begin(), start.labels().end()}, start.alphabet()};
  try {
    check_experiment(experiment);
    check_agreement(problem_spec(experiment), agreement);
    if (start.clients() != experiment.clients().count() || number_ >= start.clients() ||
        model_dim(problem_spec(experiment), agreement) != start.dim())
      return Error{"Start: the dimensions do not fit the experiment"};
    worker_.reset();  // it uses the memory that the new one is given
    worker_ = make_worker(experiment, agreement, part(), number_, memory_ ? &*memory_ : nullptr,
                          header + "#" + std::to_string(number_));
  } catch (const ConfigError& error) {
    return Error{"Start: " + error.key() + ": " + error.what()};
  }
  part_.reset();
  started_ = header;
  log("client " + std::to_string(number_) + " of " + std::to_string(start.clients()) +
      " starts: " + experiment.algorithm().name() + ", d = " + std::to_string(start.dim()));
  return Unit{};
}

Ending Client::told_error(const ServerConnection::Frame& frame) const {
  wire::ErrorMessage error;
  if (Status status = parse_control(frame.header, error); !status) return {false, status.error().message};
  const std::string message = "the server says: " + one_line(error.message());
  if (error.fatal()) throw ClientError(message);
  return {false, message, std::min(milliseconds(error.retry_after_ms()), kLongestRetry)};
}

Ending Client::session(ServerConnection& connection) {
  if (Status status = connection.write(hello()); !status) return {false, status.error().message};
  const auto frame = connection.read_head(0);
  if (!frame) return {false, frame.error().message};
  if (frame->prefix.type == FrameType::kError) return told_error(*frame);
  if (frame->prefix.type != FrameType::kWelcome) return {false, "the server did not answer with a Welcome"};
  milliseconds heartbeat{0};
  if (Status status = welcomed(*frame, heartbeat); !status) return {false, status.error().message};
  connection.start_heartbeats(heartbeat);
  try {
    if (join_.empty()) join_ = join();
    if (Status status = connection.write(join_); !status) return {false, status.error().message};
    const Ending ending = rounds(connection);
    last_contact_ = Clock::now();
    return ending;
  } catch (const DataError& error) {
    (void)connection.write(error_frame(error.what(), true, 0));  // best effort: this process ends
    throw;
  }
}

// ---- the rounds ----

Ending Client::rounds(ServerConnection& connection) {
  bool started = false, asked = false;
  for (;;) {
    const auto frame = connection.read_head(started ? worker_->max_payload() : 0);
    if (!frame) return {false, frame.error().message};
    const FrameType type = frame->prefix.type;
    if (type == FrameType::kError) return told_error(*frame);
    if (type == FrameType::kStart && !started) {
      if (Status status = start(*frame); !status) return {false, status.error().message};
      started = true;
    } else if (type == FrameType::kRound && started) {
      const auto received = worker_->receive(connection, frame->prefix, frame->header);
      if (!received) return {false, received.error().message};
      if (*received == Worker::Received::kGoodbye) {
        (void)connection.write(heartbeat_frame());  // it was heard; nobody waits for more
        return {true, ""};
      }
      asked = true;
    } else if (type != FrameType::kHeartbeat || frame->prefix.payload_len > 0) {
      return {false, "the server sent a message that is out of place"};
    }
    // When more has come already, this request may be superseded.
    if (!asked || connection.more_waiting()) continue;
    if (Status status = worker_->answer(connection); !status) return {false, status.error().message};
    asked = false;
    back_off_.reset();
  }
}

}  // namespace

void run_client(const ClientOptions& options) { Client(options).run(); }

}  // namespace gradwire
