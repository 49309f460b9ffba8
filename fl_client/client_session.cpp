#include "fl_client/client_session.h"

#include <algorithm>
#include <cmath>
#include <unistd.h>
#include <utility>

#include "algorithms/algorithms.h"
#include "config/experiment_spec.h"
#include "config/settings.h"
#include "engine/data/sample_hash.h"
#include "engine/kernels/select.h"
#include "fl_client/client.h"
#include "fl_client/client_texts.h"
#include "fl_client/exception_type.h"
#include "fl_client/own_oracle.h"
#include "fl_client/stoppable_oracle.h"
#include "fl_client/upload_chunks.h"
#include "fl_client/worker.h"
#include "proto/security/challenge.h"
#include "proto/wire/abilities.h"
#include "proto/wire/control_frame.h"
#include "proto/wire/feature_messages.h"
#include "proto/wire/wire.pb.h"
#include "report/build_info.h"

namespace gradwire {

using std::chrono::milliseconds;

namespace {

constexpr std::size_t kMaxLabels = 8'000;  // as many as fit into the header of a Join
// The message to the server about unusable data. It gives no reason, because the reason may quote the data.
constexpr const char* kDataTrouble = "its data cannot be used; its own log says why";
constexpr milliseconds kLongestRetry{10 * 60'000};

std::optional<ClientEnding> ending_of(const Status& status) {
  if (status) return std::nullopt;
  return ClientEnding{false, status.error().message};
}

}  // namespace

class ClientSession::Impl {
 public:
  Impl(ClientIdentity identity, ClientJournal* journal) : identity_(std::move(identity)), journal_(journal) {}

  std::string hello();
  std::optional<ClientEnding> take(Link& link, const Prefix& prefix, std::span<const std::byte> header);
  std::optional<ClientEnding> begin_answer();
  void compute() { worker_->compute(); }
  std::optional<ClientEnding> finish_answer(Link* link);
  void stop() {
    if (worker_) worker_->stop();
  }
  void stop_if_superseded() {
    if (asked_ && worker_ && worker_->is_superseded()) worker_->stop();
  }
  std::uint64_t max_payload() const { return stage_ == Stage::kRounds ? worker_->max_payload() : 0; }
  UploadChunks* chunks() { return worker_->chunks(); }
  bool asked() const { return asked_; }
  bool welcome() const { return stage_ != Stage::kHello; }
  bool answered() const { return answered_; }

 private:
  std::optional<ClientEnding> begin(Link& link, std::span<const std::byte> header);
  Status welcomed(const wire::Welcome& welcome, milliseconds& heartbeat);
  Status prove_to(Link& link, std::span<const std::byte> header) const;
  Normalize asked_normalize() const;
  wire::Join description();
  std::optional<ClientEnding> prepare_join(Link& link, const wire::Welcome& welcome);
  std::optional<ClientEnding> scaled(Link& link, std::span<const std::byte> header);
  std::optional<ClientEnding> send_join(Link& link);
  void normalize_part();
  std::string join();
  Status start(std::span<const std::byte> header);
  std::optional<ClientEnding> round(Link& link, const Prefix& prefix, std::span<const std::byte> header);
  Status received(std::span<const std::byte> header) const;
  ClientEnding told_error(std::span<const std::byte> header) const;
  const ClientDataset& part();
  OwnOracle& own_oracle();
  void log(LogLine line) const {
    if (identity_.log) identity_.log(std::move(line).of_client(number_));
  }

  const ClientIdentity identity_;
  ClientJournal* const journal_;

  // The state of the connection: how far the handshake has come, and what follows.
  enum class Stage : std::uint8_t { kHello, kScaling, kJoin, kRounds } stage_ = Stage::kHello;
  bool asked_ = false, answered_ = false;
  bool accepted_ = false;          // on some connection
  bool enrolled_ = false;          // the log says so
  bool first_request_ = false;     // the next request is the first one of the connection
  bool takes_chunks_ = false;      // the server and all relays on the way take chunks
  std::uint32_t connections_ = 0;  // so far

  // From the Welcome.
  std::uint32_t number_ = 0;
  std::string told_;  // the experiment as the server sent it
  ExperimentSpec experiment_;
  std::optional<ClientDataset> part_;    // read when needed, freed once the worker has its own form of it
  std::optional<OwnOracle> own_oracle_;  // made when needed; the worker takes it
  // The hash in the Join. Empty if the problem has no samples, or if they were not read yet.
  std::optional<std::uint64_t> hash_;
  std::string join_;  // the frame; empty until it is made
  bool columns_logged_ = false;
  // The map of problem.normalize from the sums of all clients. Empty if there is none, or until it arrives.
  std::optional<Normalization> map_;
  Normalization arriving_map_;

  // From the Start.
  std::string started_;  // its header
  std::unique_ptr<Worker> worker_;
};

// ---- the handshake ----

std::string ClientSession::Impl::hello() {
  stage_ = Stage::kHello;
  asked_ = answered_ = false;
  wire::Hello hello;
  hello.set_protocol(kWireVersion);
  hello.set_client_name(identity_.name);
  hello.set_build(build_info());
  hello.set_pid(static_cast<std::uint64_t>(::getpid()));
  hello.set_kernels(kernels_name(KernelSet::kBest));
  write_abilities(own_abilities(), hello);
  hello.set_process(identity_.process);
  hello.set_connection(++connections_);
  if (identity_.credentials) {
    const PublicKey key = identity_.credentials->key.public_key();
    hello.set_public_key(key.bytes.data(), key.bytes.size());
  }
  if (identity_.data.part) {
    hello.set_part_index(identity_.data.part->index);
    hello.set_part_count(identity_.data.part->count);
  }
  return control_frame(FrameType::kHello, hello);
}

Status ClientSession::Impl::welcomed(const wire::Welcome& welcome, milliseconds& heartbeat) {
  if (!welcome.has_client() || !welcome.has_experiment() || !welcome.has_heartbeat_ms())
    return Error{"Welcome: client, experiment or heartbeat_ms is missing"};
  takes_chunks_ = welcome.pieces();
  heartbeat = milliseconds(limited_heartbeat_ms(welcome.heartbeat_ms()));
  if (welcome.client() == number_ && welcome.experiment() == told_) return Unit{};
  Result<ExperimentSpec> experiment = unpack_experiment(welcome.experiment());
  if (!experiment) return Error{"Welcome: " + experiment.error().message};
  if (welcome.client() >= experiment->clients.count)
    return Error{"Welcome: the number of the client is too large"};
  const bool other_client = welcome.client() != number_;
  number_ = welcome.client();
  told_ = welcome.experiment();
  experiment_ = std::move(*experiment);
  part_.reset();
  own_oracle_.reset();
  hash_.reset();
  join_.clear();
  map_.reset();
  if (other_client) started_.clear();  // otherwise the Start message says whether the run is a different one
  return Unit{};
}

// Signs the nonce of the server. Refuses a server that this client does not belong to.
Status ClientSession::Impl::prove_to(Link& link, std::span<const std::byte> header) const {
  const Result<std::string> proof = answer_challenge(header, identity_.credentials);
  if (!proof) throw ClientRefused(proof.error().message);
  return link.write(*proof);
}

const ClientDataset& ClientSession::Impl::part() {
  if (part_) return *part_;
  try {
    part_ = identity_.data.load ? identity_.data.load(experiment_, [this](const LogLine& line) { log(line); })
                                : ClientDataset{};
  } catch (const DataError& error) {
    throw DataError(with_place_of_keys(error.what()));
  }
  if (part_->train_count() + part_->test_count() == 0) return *part_;
  const std::uint64_t hash = hash_of_client_dataset(*part_);
  if (hash_.value_or(hash) != hash)
    throw DataError(
        "the samples have changed since this client joined with them; start the client again, and then the "
        "run from the beginning (--fresh at the server), or put the old ones back");
  hash_ = hash;
  if (map_) normalize_part();
  return *part_;
}

OwnOracle& ClientSession::Impl::own_oracle() {
  if (!own_oracle_)
    own_oracle_ = make_own_oracle(identity_.oracle ? &*identity_.oracle : nullptr, experiment_, number_);
  return *own_oracle_;
}

// Returns the kind of problem.normalize, if it needs the sums of all clients.
Normalize ClientSession::Impl::asked_normalize() const {
  const RowsData* const rows = rows_of(experiment_.problem);
  return rows != nullptr && needs_sums(rows->normalize) ? rows->normalize : Normalize::kNone;
}

void ClientSession::Impl::normalize_part() {
  normalize(part_->train, *map_);
  normalize(part_->test, *map_);
}

// Describes the samples in a Join, without constants.
wire::Join ClientSession::Impl::description() {
  const std::uint64_t own_samples = own_oracle().sample_count();
  const ProblemSpec spec = problem_spec(experiment_);
  const ClientDataset& data = part();
  const DataSchema own = schema_of(std::span(&data, 1), spec);
  if (own.labels.size() > kMaxLabels) {
    throw DataError("the data has " + std::to_string(own.labels.size()) + " distinct labels, more than the " +
                    std::to_string(kMaxLabels) + " that can be agreed on; are they classes?");
  }
  if (own.labels.size() > 2 && !std::all_of(own.labels.begin(), own.labels.end(),
                                            [](double label) { return label == std::trunc(label); }))
    throw DataError("the data has " + std::to_string(own.labels.size()) +
                    " distinct labels that are not all whole numbers, so they are not classes; the server "
                    "is not told them, and its problem '" +
                    std::string(spec.info().name) + "' needs classes");
  wire::Join join;
  join.set_columns(static_cast<std::uint32_t>(own.columns));
  join.set_sample_count(identity_.oracle ? own_samples : data.train_count());
  join.set_test_count(data.test_count());
  join.mutable_labels()->Assign(own.labels.begin(), own.labels.end());
  if (!own.alphabet.empty()) join.set_alphabet(own.alphabet);
  if (hash_) join.set_data_hash(*hash_);
  if (const TableEncoding* const table = data.train.encoding.get(); table != nullptr) {
    join.set_table_hash(hash_of_columns(*table));
    if (!std::exchange(columns_logged_, true)) log(columns_text(*table));
  }
  return join;
}

std::string ClientSession::Impl::join() {
  const ProblemSpec spec = problem_spec(experiment_);
  const ClientDataset& data = part();
  wire::Join join = description();
  if (needed_constants(algorithm_spec(experiment_)).any() && spec.info().has_smoothness) {
    const ClientSmoothness constants =
        client_smoothness(spec, schema_of(std::span(&data, 1), spec), data, number_);
    join.set_smoothness(constants.L_i);
    join.set_convexity(constants.mu_i);
    join.set_sample_smoothness(constants.L_s);
    join.set_sample_smoothness_max(constants.L_sample_max);
  }
  return control_frame(FrameType::kJoin, join);
}

Status ClientSession::Impl::start(std::span<const std::byte> header) {
  const std::string told(reinterpret_cast<const char*>(header.data()), header.size());
  first_request_ = true;
  if (told == started_) {  // the same run: the client's state is still valid
    part_.reset();
    worker_->begin_connection();
    return Unit{};
  }
  wire::Start start;
  if (Status status = parse_control(header, start); !status) return status;
  if (!start.has_dim() || !start.has_columns() || !start.has_clients() || !start.has_run() ||
      !start.has_experiment())
    return Error{"Start: a field is missing or damaged"};
  Result<ExperimentSpec> experiment = unpack_experiment(start.experiment());
  if (!experiment) return Error{"Start: " + experiment.error().message};
  RunPlan plan;
  try {
    plan = plan_of_start(std::move(*experiment),
                         {start.columns(), {start.labels().begin(), start.labels().end()}, start.alphabet()});
    if (start.clients() != plan.n() || number_ >= plan.n() || start.dim() != plan.d)
      return Error{"Start: the dimensions do not fit the experiment"};
    worker_.reset();  // frees the memory of the old worker before the new one is made
    worker_ = make_worker(plan, part(), number_,
                          {.journal = journal_,
                           .run = told + "#" + std::to_string(number_),
                           .sharing = identity_.sharing,
                           .oracle = std::move(own_oracle()),
                           .stop = identity_.stop});
    own_oracle_.reset();
    worker_->begin_connection();
  } catch (const ConfigError& error) {
    return Error{"Start: " + error.key() + ": " + error.what()};
  }
  part_.reset();
  started_ = told;
  log("client " + std::to_string(number_) + " of " + std::to_string(start.clients()) +
      " starts: " + plan.experiment.algorithm.name + ", d = " + std::to_string(start.dim()) +
      (worker_->shares_work() ? ", on " + std::to_string(identity_.sharing.threads) + " threads" : ""));
  return Unit{};
}

ClientEnding ClientSession::Impl::told_error(std::span<const std::byte> header) const {
  wire::ErrorMessage error;
  if (Status status = parse_control(header, error); !status) return {false, status.error().message};
  const std::string message = "the server says: " + one_line(error.message());
  // A server that only ends its run gives a retry time. Then it may help to start this client again.
  if (error.fatal() && error.retry_after_ms() == 0) throw ClientRefused(message);
  if (error.fatal()) throw ClientError(message);
  return {false, message, std::min(milliseconds(error.retry_after_ms()), kLongestRetry)};
}

std::optional<ClientEnding> ClientSession::Impl::begin(Link& link, std::span<const std::byte> header) {
  milliseconds heartbeat{0};
  wire::Welcome welcome;
  if (Status status = parse_control(header, welcome); !status) return ending_of(status);
  if (Status status = welcomed(welcome, heartbeat); !status) return ending_of(status);
  if (!std::exchange(accepted_, true) && identity_.on_accepted) identity_.on_accepted();
  link.expect_rate(experiment_.server.min_bytes_per_second);
  link.start_heartbeats(heartbeat);
  return asked_normalize() == Normalize::kNone ? send_join(link) : prepare_join(link, welcome);
}

// Sends the sums of the features, if the server asks for them. In any case the map comes next.
std::optional<ClientEnding> ClientSession::Impl::prepare_join(Link& link, const wire::Welcome& welcome) {
  const std::string key = "problem.normalize = \"" + std::string(normalize_word(asked_normalize())) + "\"";
  if (!welcome.has_asks_sums())
    throw ClientRefused("the server does not join the sums of all clients, which " + key +
                        " needs: install the same release on both");
  stage_ = Stage::kScaling;
  arriving_map_ = {};
  arriving_map_.kind = asked_normalize();
  if (!welcome.asks_sums()) return std::nullopt;
  if (std::exchange(map_, std::nullopt)) part_.reset();  // the server has lost the map
  join_.clear();
  const ClientSums sums = sums_of(part().train, asked_normalize());
  if (const Status good = check_sums(sums, asked_normalize()); !good)
    throw DataError(key + ": " + good.error().message);
  const Status sent = link.write(sums_frames(description(), sums));
  if (sent)
    log("sent the sums of its features, which " + key + " needs; waiting for those of the other clients");
  return ending_of(sent);
}

std::optional<ClientEnding> ClientSession::Impl::scaled(Link& link, std::span<const std::byte> header) {
  wire::Welcome welcome;
  if (Status status = parse_control(header, welcome); !status) return ending_of(status);
  if (!welcome.has_scaling()) return ClientEnding{false, "Welcome: the map of the features is missing"};
  const Result<bool> complete = take_scaling(welcome.scaling(), arriving_map_);
  if (!complete) return ClientEnding{false, "Welcome: " + complete.error().message};
  if (!*complete) return std::nullopt;
  Normalization map = std::exchange(arriving_map_, {});
  if (map_ != map) {
    if (std::exchange(map_, std::nullopt)) part_.reset();
    if (map.shift.size() < part().train.columns)
      return ClientEnding{false, "Welcome: the map of the features lacks features of the data"};
    map_ = std::move(map);
    normalize_part();
    join_.clear();
    started_.clear();
  }
  return send_join(link);
}

std::optional<ClientEnding> ClientSession::Impl::send_join(Link& link) {
  stage_ = Stage::kJoin;
  if (join_.empty()) join_ = join();
  const Status joined = link.write(join_);
  if (joined && identity_.credentials && identity_.credentials->token && !std::exchange(enrolled_, true))
    log("enrolled as '" + identity_.name + "'; later starts need no --token");
  if (joined)
    log("joined as client " + std::to_string(number_) + " of " + std::to_string(experiment_.clients.count) +
        "; the run begins or continues when " + (experiment_.server.start_share < 1 ? "enough" : "all") +
        " clients have joined");
  return ending_of(joined);
}

// ---- the rounds ----

std::optional<ClientEnding> ClientSession::Impl::round(Link& link, const Prefix& prefix,
                                                       std::span<const std::byte> header) {
  const auto received = worker_->receive(link, prefix, header);
  if (!received) return ClientEnding{false, received.error().message};
  asked_ = *received == Worker::Received::kRequest;
  // Sends the reason to the server and ends the connection, so that both logs have the line.
  if (std::exchange(first_request_, false) && worker_->finds_older_server()) {
    asked_ = false;
    const std::string why = "the server has forgotten rounds that client " + std::to_string(number_) +
                            " took part in: its --state was restored from an older copy, or its disk lost "
                            "them; the run continues from what the server has";
    (void)link.write(error_frame(why, false, 0));
    return ClientEnding{false, why};
  }
  if (asked_) return std::nullopt;
  wire::Received heard;
  heard.set_request_id(worker_->request_id());
  heard.set_receipt(wire::RECEIPT_ACCEPTED);
  (void)link.write(control_frame(FrameType::kReceived, heard));  // the last message
  if (const Worker::Sent sent = worker_->sent(); sent.in_chunks > 0)
    log(std::to_string(100 * sent.in_chunks / sent.bytes) +
        " % of the bytes of its answers were sent while they were computed");
  return ClientEnding{true, ""};
}

Status ClientSession::Impl::received(std::span<const std::byte> header) const {
  wire::Received message;
  if (Status status = parse_control(header, message); !status) return status;
  if (!message.has_request_id() || !message.has_receipt())
    return Error{"Received: request id or receipt is missing"};
  if (message.receipt() == wire::RECEIPT_LATE) log("the last answer came too late and was not used");
  if (message.receipt() == wire::RECEIPT_REFUSED)
    log(LogLine::warning("the server cannot use an answer of this shape; install the same release on both"));
  return Unit{};
}

std::optional<ClientEnding> ClientSession::Impl::take(Link& link, const Prefix& prefix,
                                                      std::span<const std::byte> header) {
  const FrameType type = prefix.type;
  if (type == FrameType::kError) return told_error(header);
  if (stage_ == Stage::kHello) {
    if (type == FrameType::kChallenge) return ending_of(prove_to(link, header));
    if (type != FrameType::kWelcome) return ClientEnding{false, "the server did not answer with a Welcome"};
    return begin(link, header);
  }
  if (type == FrameType::kWelcome && stage_ == Stage::kScaling) return scaled(link, header);
  if (type == FrameType::kStart && stage_ == Stage::kJoin) {
    const Status status = start(header);
    if (status) stage_ = Stage::kRounds;
    return ending_of(status);
  }
  if (type == FrameType::kRound && stage_ == Stage::kRounds) return round(link, prefix, header);
  if (prefix.payload_len == 0 && type == FrameType::kHeartbeat) return std::nullopt;
  if (prefix.payload_len == 0 && type == FrameType::kReceived) return ending_of(received(header));
  return ClientEnding{false, "the server sent a message that is out of place"};
}

std::optional<ClientEnding> ClientSession::Impl::begin_answer() {
  asked_ = false;
  return ending_of(worker_->take_up(takes_chunks_));
}

std::optional<ClientEnding> ClientSession::Impl::finish_answer(Link* link) {
  Status status = Unit{};
  if (UploadChunks* const chunks = worker_->chunks(); chunks != nullptr) {
    chunks->close();
    status = chunks->trouble();
  }
  if (status && !asked_ && link != nullptr) {
    status = worker_->send(*link);
    answered_ = answered_ || status;
  }
  worker_->put_away();
  return ending_of(status);
}

ClientSession::ClientSession(ClientIdentity identity, ClientJournal* journal)
    : impl_(std::make_unique<Impl>(std::move(identity), journal)) {}
ClientSession::~ClientSession() = default;
std::string ClientSession::hello() { return impl_->hello(); }
std::uint64_t ClientSession::max_payload() const { return impl_->max_payload(); }
std::optional<ClientEnding> ClientSession::take(Link& link, const Prefix& prefix,
                                                std::span<const std::byte> header) {
  try {
    return impl_->take(link, prefix, header);
  } catch (const DataError&) {
    (void)link.write(error_frame(kDataTrouble, true, 0));  // best effort: this client ends
    throw;
  } catch (const UnfitClient& error) {
    (void)link.write(error_frame(error.what(), true, 0));
    throw;
  } catch (const ClientRefused&) {  // by the server, like the next one
    throw;
  } catch (const ClientError&) {
    throw;
  } catch (const OracleStopped&) {
    throw;
  } catch (...) {
    tell_exception(link);
    throw;
  }
}
void ClientSession::tell_exception(Link& link) {
  (void)link.write(error_frame(
      "an exception of type " + type_of_exception() + " ended it; its own log says more", true, 0));
}
bool ClientSession::asked() const { return impl_->asked(); }
std::optional<ClientEnding> ClientSession::begin_answer() { return impl_->begin_answer(); }
void ClientSession::compute() { impl_->compute(); }
std::optional<ClientEnding> ClientSession::finish_answer(Link* link) { return impl_->finish_answer(link); }
UploadChunks* ClientSession::chunks() { return impl_->chunks(); }
void ClientSession::stop() { impl_->stop(); }
void ClientSession::stop_if_superseded() { impl_->stop_if_superseded(); }
bool ClientSession::welcome() const { return impl_->welcome(); }
bool ClientSession::answered() const { return impl_->answered(); }

}  // namespace gradwire
