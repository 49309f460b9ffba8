// The state of a client's session. The handshake and the rounds are in files of their own.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "config/experiment_spec.h"
#include "fl_client/client_session.h"
#include "fl_client/outbox.h"
#include "fl_client/own_oracle.h"
#include "fl_client/worker.h"

namespace gradwire {

namespace wire {
class Join;
class Welcome;
}  // namespace wire

using std::chrono::milliseconds;

inline std::optional<ClientEnding> ending_of(const Status& status) {
  if (status) return std::nullopt;
  return ClientEnding{false, status.error().message};
}

class ClientSession::Impl {
 public:
  Impl(ClientIdentity identity, ClientJournal* journal) : identity_(std::move(identity)), journal_(journal) {}

  void begin_connection(std::function<void(const Pace&)> on_pace);
  void end_connection();
  std::optional<ClientEnding> take_head(const Prefix& prefix, std::span<const std::byte> header);
  std::span<std::byte> wanted() const {
    return place_ < places_.size() ? places_[place_].subspan(there_) : std::span<std::byte>();
  }
  std::optional<ClientEnding> arrived(std::size_t bytes);
  void left(std::size_t bytes);
  std::optional<ClientEnding> begin_answer();
  void compute() { worker_->compute(); }
  std::optional<ClientEnding> finish_answer(bool is_connected);
  void stop() {
    if (worker_) worker_->stop();
  }
  void stop_if_superseded() {
    if (asked_ && worker_ && worker_->is_superseded()) worker_->stop();
  }
  std::uint64_t max_payload() const { return stage_ == Stage::kRounds ? worker_->max_payload() : 0; }
  UploadChunks* chunks() { return worker_->chunks(); }
  bool asked() const { return asked_ && !has_answer_ && wanted().empty(); }
  bool welcome() const { return stage_ != Stage::kHello; }
  bool answered() const { return answered_; }
  std::uint64_t late() const { return late_; }
  std::uint64_t sent() const { return worker_ ? worker_->answered() : 0; }

  Outbox outbox;

 private:
  std::optional<ClientEnding> begin(std::span<const std::byte> header);
  Status welcomed(const wire::Welcome& welcome, milliseconds& heartbeat);
  void prove(std::span<const std::byte> header);
  Normalize asked_normalize() const;
  std::string normalize_key() const;
  wire::Join description();
  void prepare_join(const wire::Welcome& welcome);
  std::optional<ClientEnding> scaled(std::span<const std::byte> header);
  void send_join();
  void normalize_part();
  std::string join();
  Status start(std::span<const std::byte> header);
  std::optional<ClientEnding> round(const Prefix& prefix, std::span<const std::byte> header);
  std::optional<ClientEnding> took_round();
  void put_answer_away();
  Status received(std::span<const std::byte> header);
  ClientEnding told_error(std::span<const std::byte> header) const;
  const ClientDataset& part();
  ClientDataset take_part();
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
  bool has_answer_ = false;        // finished, and not put away yet
  std::uint32_t connections_ = 0;  // so far
  std::uint64_t late_ = 0;         // answers that came too late
  std::function<void(const Pace&)> on_pace_;
  // The payload of the arriving frame: its places, the number of the first place that is not full, and the
  // number of bytes that are in this place.
  std::span<const std::span<std::byte>> places_;
  std::size_t place_ = 0, there_ = 0;

  // From the Welcome.
  std::uint32_t number_ = 0;
  std::string told_;  // the experiment as the server sent it
  ExperimentSpec experiment_;
  std::optional<ClientDataset> part_;    // read when needed; the worker takes it
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

}  // namespace gradwire
