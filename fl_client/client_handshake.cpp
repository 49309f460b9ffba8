// From the Hello of a client to the Start of its run.
#include <algorithm>
#include <cmath>
#include <unistd.h>
#include <utility>

#include "algorithms/algorithms.h"
#include "config/settings.h"
#include "engine/data/sample_hash.h"
#include "engine/kernels/select.h"
#include "fl_client/client.h"
#include "fl_client/client_session_impl.h"
#include "fl_client/client_texts.h"
#include "proto/security/challenge.h"
#include "proto/wire/abilities.h"
#include "proto/wire/control_frame.h"
#include "proto/wire/feature_messages.h"
#include "proto/wire/wire.pb.h"
#include "report/build_info.h"

namespace gradwire {
namespace {

constexpr std::size_t kMaxLabels = 8'000;  // as many as fit into the header of a Join

// Returns the schema without copying rows.
DataSchema schema_of_part(const ClientDataset& part, const ProblemSpec& spec) {
  const auto without_features = [&spec](const Dataset& rows) {
    Dataset labels;
    labels.columns = rows.columns;
    if (spec.info().has_classes) labels.label = distinct_labels(rows);
    labels.encoding = rows.encoding;
    return labels;
  };
  SharedSamples samples;
  samples.train = without_features(part.train);
  samples.test = without_features(part.test);
  samples.train_text = part.train_text;
  samples.test_text = part.test_text;
  return schema_of(samples, spec);
}

}  // namespace

void ClientSession::Impl::begin_connection(std::function<void(const Pace&)> on_pace) {
  end_connection();
  on_pace_ = std::move(on_pace);
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
  outbox.put(control_frame(FrameType::kHello, hello));
}

Status ClientSession::Impl::welcomed(const wire::Welcome& welcome, milliseconds& heartbeat) {
  if (!welcome.has_client() || !welcome.has_experiment() || !welcome.has_heartbeat_ms())
    return Error{"Welcome: client, experiment or heartbeat_ms is missing"};
  takes_chunks_ = welcome.pieces() && identity_.sends_chunks;
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
void ClientSession::Impl::prove(std::span<const std::byte> header) {
  const Result<std::string> proof = answer_challenge(header, identity_.credentials);
  if (!proof) throw ClientRefused(proof.error().message);
  outbox.put(*proof);
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

ClientDataset ClientSession::Impl::take_part() {
  (void)part();
  ClientDataset taken = std::move(*part_);
  part_.reset();
  return taken;
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

std::string ClientSession::Impl::normalize_key() const {
  return "problem.normalize = \"" + std::string(normalize_word(asked_normalize())) + "\"";
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
  const DataSchema own = schema_of_part(data, spec);
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
    const ClientSmoothness constants = client_smoothness(spec, schema_of_part(data, spec), data, number_);
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
    worker_ = make_worker(plan, take_part(), number_,
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
  started_ = told;
  log("client " + std::to_string(number_) + " of " + std::to_string(start.clients()) +
      " starts: " + plan.experiment.algorithm.name + ", d = " + std::to_string(start.dim()) +
      (worker_->shares_work() ? ", on " + std::to_string(identity_.sharing.threads) + " threads" : ""));
  return Unit{};
}

std::optional<ClientEnding> ClientSession::Impl::begin(std::span<const std::byte> header) {
  milliseconds heartbeat{0};
  wire::Welcome welcome;
  if (Status status = parse_control(header, welcome); !status) return ending_of(status);
  if (Status status = welcomed(welcome, heartbeat); !status) return ending_of(status);
  if (!std::exchange(accepted_, true) && identity_.on_accepted) identity_.on_accepted();
  if (on_pace_) on_pace_({heartbeat, experiment_.server.min_bytes_per_second});
  asked_normalize() == Normalize::kNone ? send_join() : prepare_join(welcome);
  return std::nullopt;
}

// Sends the sums of the features, if the server asks for them. In any case the map comes next.
void ClientSession::Impl::prepare_join(const wire::Welcome& welcome) {
  const std::string key = normalize_key();
  if (!welcome.has_asks_sums())
    throw ClientRefused("the server does not join the sums of all clients, which " + key +
                        " needs: install the same release on both");
  stage_ = Stage::kScaling;
  arriving_map_ = {};
  arriving_map_.kind = asked_normalize();
  if (!welcome.asks_sums()) return;
  if (std::exchange(map_, std::nullopt)) part_.reset();  // the server has lost the map
  join_.clear();
  const ClientSums sums = sums_of(part().train, asked_normalize());
  if (const Status good = check_sums(sums, asked_normalize()); !good)
    throw DataError(key + ": " + good.error().message);
  outbox.put(sums_frames(description(), sums), Outbox::Then::kSaySums);
}

std::optional<ClientEnding> ClientSession::Impl::scaled(std::span<const std::byte> header) {
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
  send_join();
  return std::nullopt;
}

void ClientSession::Impl::send_join() {
  stage_ = Stage::kJoin;
  if (join_.empty()) join_ = join();
  outbox.put(join_, Outbox::Then::kSayJoined);
}

}  // namespace gradwire
