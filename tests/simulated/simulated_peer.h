// A client process of a simulation: the real session, worker and journal on a simulated wire and disk. It
// dies, restarts, and retries like the real client.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "fl_client/client.h"
#include "fl_client/client_journal.h"
#include "fl_client/client_session.h"
#include "fl_client/upload_chunks.h"
#include "proto/wire/back_off.h"
#include "proto/wire/control_frame.h"
#include "tests/simulated/secure_world.h"
#include "tests/simulated/simulated_streams.h"

namespace gradwire {

// Probabilities are per request.
struct PeerHabits {
  bool remembers = true;  // has a journal on disk
  double dies = 0;        // in the middle of its work
  double disk_lost = 0;   // if it dies
  double compute_seconds = 0.1;
  double reading_seconds = 0;  // before it reads what has arrived: a slow reader
  // Gives the session at most so many bytes at a time, and takes at most so many from it; 0 for whole
  // messages.
  std::size_t bytes_at_once = 0;
};

class SimulatedPeer {
 public:
  // With `secure`, it uses TLS and authenticates; null disables both. It starts after so many seconds.
  SimulatedPeer(SimulatedTime& time, Random& random, const StreamFaults& link_faults,
                const PeerHabits& habits, CurrentServer& current_server, std::string name, std::uint64_t seed,
                SecureWorld* secure = nullptr, ClientData data = {}, double starts_after = 0)
      : time_(time),
        random_(random),
        link_faults_(link_faults),
        habits_(habits),
        current_server_(current_server),
        name_(std::move(name)),
        seed_(seed),
        secure_(secure),
        data_(std::move(data)),
        disk_(std::make_unique<SimulatedDisk>(seed)) {
    if (starts_after > 0)
      guarded(starts_after, [this] { begin(); });
    else
      begin();
  }
  ~SimulatedPeer() { hang_up(false); }

  const std::string& name() const { return name_; }
  bool announced_shutdown() const { return announced_shutdown_; }
  std::uint64_t deaths() const { return deaths_; }
  std::uint64_t bytes_written() const { return bytes_written_; }
  std::uint64_t chunks_sent() const { return chunks_sent_; }
  const std::string& trouble() const { return trouble_; }

 private:
  using Seconds = std::chrono::duration<double>;
  // The time in which the server must answer in the handshake, or read bytes.
  static constexpr double kAnswerSeconds = 60;

  // Begins a process.
  void begin() {
    if (habits_.remembers) journal_.emplace(*disk_, std::function<void(const std::string&)>());
    ClientIdentity identity{name_, seed_ * 1000 + deaths_, data_, {}};
    if (secure_ != nullptr) identity.credentials = secure_->credentials(name_);
    session_.emplace(std::move(identity), journal_ ? &*journal_ : nullptr);
    back_off_.emplace(std::chrono::milliseconds(100), std::chrono::seconds(60), seed_ + deaths_);
    connect_in(random_.uniform());
  }
  void die() {
    deaths_ += 1;
    hang_up(random_.below(2) == 0);
    session_.reset();
    journal_.reset();
    disk_->lose_process();
    if (random_.uniform() < habits_.disk_lost) disk_ = std::make_unique<SimulatedDisk>(seed_ + deaths_);
    guarded(2 * random_.uniform(), [this] { begin(); });
  }
  // Schedules a job that is dropped if this connection, or this pause between connections, ends.
  void guarded(double seconds, std::function<void()> job) {
    time_.in(seconds, [this, epoch = epoch_, job = std::move(job)] {
      if (epoch == epoch_) job();
    });
  }

  void connect_in(double seconds) {
    guarded(seconds, [this] { connect(); });
  }
  void connect() {
    if (current_server_.server == nullptr) return lost(ClientEnding{false, "no server"});
    epoch_ += 1;
    wire_ = std::make_shared<Wire>(time_, random_, link_faults_);
    wire_->told[Wire::kClient] = [this] {
      flush();
      if (wire_ == nullptr) return;
      if (wire_->was_reset() || wire_->at_end(Wire::kClient)) return look();
      look_in(habits_.reading_seconds * random_.uniform());
    };
    heard_ = time_.now();
    current_server_.server->connect(wire_);
    if (secure_ != nullptr) filter_ = secure_->connect();
    session_->begin_connection([this](const Pace& pace) { beat(Seconds(pace.heartbeat).count()); });
    flush();
    wait_for_answer();
  }
  void hang_up(bool silently) {
    epoch_ += 1;
    if (wire_) wire_->close(Wire::kClient, silently);
    wire_.reset();
    inbox_.clear();
    outbox_.clear();
    filter_.reset();
    computing_ = looks_soon_ = false;
    silence_seconds_ = kAnswerSeconds;
  }
  void lost(const ClientEnding& ending) {
    std::optional<ClientEnding> none;
    if (!ending.shutdown && !end_work(false, none)) return die();
    hang_up(false);
    try {
      session_->end_connection();
    } catch (const SimulatedCrash&) {
      return die();
    }
    if (ending.shutdown) {
      announced_shutdown_ = true;
      return;
    }
    if (session_->answered()) back_off_->reset();
    connect_in(Seconds(back_off_->next(ending.retry_after)).count());
  }

  // Gives up a server that is silent or reads nothing.
  void wait_for_answer() {
    guarded(silence_seconds_ / 4, [this] {
      if (time_.now() - heard_ > silence_seconds_) return lost({false, "the server is silent"});
      wait_for_answer();
    });
  }
  void beat(double interval) {
    silence_seconds_ = 3 * interval;
    guarded(interval, [this, interval] {
      if (outbox_.empty() && session_->outgoing().empty()) outbox_ = heartbeat_frame();
      if (flush()) beat(interval);
    });
  }

  // Returns whether bytes wait for the wire to take them.
  bool is_writing() const { return filter_ ? !filter_->outgoing().empty() : !outbox_.empty(); }
  // Moves bytes of the session to the outbox. Returns false if there are none.
  bool take_from_session() {
    const auto segments = session_->outgoing();
    if (segments.empty()) return false;
    std::size_t bytes = 0;
    for (const auto segment : segments) {
      const std::size_t count = habits_.bytes_at_once == 0
                                    ? segment.size()
                                    : std::min(segment.size(), habits_.bytes_at_once - bytes);
      outbox_.append(reinterpret_cast<const char*>(segment.data()), count);
      bytes += count;
      if (count < segment.size()) break;
    }
    session_->left(bytes);
    return true;
  }
  // Writes what the wire takes. Returns false if the process dies.
  bool flush() {
    constexpr std::size_t kOutboxBytes = 64 * 1024;  // each write may be the last one of a connection
    try {
      write_outbox();
      while (wire_ && (!filter_ || filter_->ready()) && !session_->outgoing().empty()) {
        if (habits_.bytes_at_once > 0 && is_writing()) break;
        while ((habits_.bytes_at_once == 0 || outbox_.size() < kOutboxBytes) && take_from_session()) {
        }
        write_outbox();
      }
    } catch (const SimulatedCrash&) {
      die();
      return false;
    }
    return true;
  }
  void write_outbox() {
    if (filter_ && filter_->ready() && !outbox_.empty()) {
      throw_if_failed(filter_->write(std::as_bytes(std::span(outbox_))));
      outbox_.clear();
    }
    while (wire_ && filter_ && is_writing()) {
      const auto bytes = filter_->outgoing();
      const std::size_t taken =
          wire_->write(Wire::kClient, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      if (taken == 0) return;
      bytes_written_ += taken;
      filter_->sent(taken);
    }
    while (wire_ && !filter_ && !outbox_.empty()) {
      const std::size_t taken = wire_->write(Wire::kClient, outbox_);
      if (taken == 0) return;
      bytes_written_ += taken;
      outbox_.erase(0, taken);
    }
  }
  void look_in(double seconds) {
    if (std::exchange(looks_soon_, true)) return;
    guarded(seconds, [this] {
      looks_soon_ = false;
      look();
    });
  }
  // Reads what has arrived, even during a computation, but not while it writes.
  void look() {
    if (wire_ == nullptr) return;
    if (wire_->was_reset()) return lost({false, "reset"});
    if (is_writing()) {
      if (wire_->at_end(Wire::kClient)) return lost({false, "the server closed the connection"});
      return look_in(0.05);
    }
    const std::string bytes = wire_->read(Wire::kClient, SIZE_MAX);
    if (!bytes.empty()) heard_ = time_.now();
    const std::uint64_t epoch = epoch_;
    if (!take_in(bytes)) return lost({false, "the filter failed"});
    if (epoch != epoch_) return;
    try {
      while (take_some()) {
        if (epoch != epoch_) return;
      }
    } catch (const SimulatedCrash&) {
      return die();
    } catch (const std::exception& error) {  // the client ends for good
      trouble_ = error.what();
      return hang_up(false);
    }
    if (epoch != epoch_) return;
    if (wire_->at_end(Wire::kClient)) return lost({false, "the server closed the connection"});
    if (session_->asked() && !computing_ && inbox_.empty()) compute();
  }
  bool take_in(const std::string& bytes) {
    if (!filter_) {
      inbox_ += bytes;
      return true;
    }
    if (!bytes.empty() && !filter_->feed(std::as_bytes(std::span(bytes)))) return false;
    if (!flush()) return true;
    std::array<std::byte, 4096> some;
    for (auto got = filter_->read(some); got && *got > 0; got = filter_->read(some))
      inbox_.append(reinterpret_cast<const char*>(some.data()), *got);
    return true;
  }
  // Takes the head of a message, or bytes of its payload, from the inbox. Returns false if it needs more.
  bool take_some() {
    const std::uint64_t epoch = epoch_;
    std::optional<ClientEnding> ending;
    if (const auto place = session_->wanted(); !place.empty()) {
      if (inbox_.empty()) return false;
      const std::size_t count = std::min(
          {place.size(), inbox_.size(), habits_.bytes_at_once == 0 ? SIZE_MAX : habits_.bytes_at_once});
      std::memcpy(place.data(), inbox_.data(), count);
      inbox_.erase(0, count);
      ending = session_->arrived(count);
    } else {
      const auto bytes = std::as_bytes(std::span(inbox_));
      if (bytes.size() < kPrefixBytes) return false;
      const auto prefix = read_prefix(bytes.first<kPrefixBytes>(), session_->max_payload());
      if (!prefix) throw std::logic_error("client: " + prefix.error().message);
      const std::size_t head = kPrefixBytes + prefix->header_len;
      if (inbox_.size() < head + (habits_.bytes_at_once == 0 ? prefix->payload_len : 0)) return false;
      if (prefix->type == FrameType::kRound && random_.uniform() < habits_.dies)
        disk_->crash_at = disk_->calls() + random_.below(3);
      const std::string taken = inbox_.substr(0, head);
      inbox_.erase(0, head);
      ending = session_->take_head(*prefix, std::as_bytes(std::span(taken)).subspan(kPrefixBytes));
    }
    if (!flush() || epoch != epoch_) return false;
    if (ending) lost(*ending);
    return true;
  }
  // Computes as if on a separate thread, which finishes soon or late.
  void compute() {
    if (const auto ending = session_->begin_answer()) return lost(*ending);
    computing_ = true;
    computed_ = false;
    if (random_.below(2) == 0 && !work()) return die();
    if (!send_chunks()) return;
    guarded(habits_.compute_seconds * random_.uniform(), [this] {
      std::optional<ClientEnding> ending;
      if (!send_chunks()) return;
      if (!end_work(true, ending)) return die();
      if (ending) return lost(*ending);
      if (flush()) look();
    });
  }
  // Sends some of the chunks that are ready before the answer. Returns false if the process dies.
  bool send_chunks() {
    UploadChunks* const chunks = session_->chunks();
    if (chunks == nullptr || !session_->outgoing().empty()) return true;
    const auto write = [this](const Encoded& message) -> Status {
      outbox_.append(reinterpret_cast<const char*>(message.prefix.data()), message.prefix.size());
      outbox_ += message.header;
      for (const auto s : message.sections) outbox_.append(reinterpret_cast<const char*>(s.data()), s.size());
      return Unit{};
    };
    while (random_.below(4) != 0) {
      const auto chunk = chunks->take();
      if (!chunk) break;
      chunks->send(write, *chunk);
      chunks_sent_ += 1;
    }
    return flush();
  }
  // Returns false if the process dies during the work.
  bool work() {
    if (std::exchange(computed_, true)) return true;
    try {
      if (disk_->crash_at != UINT64_MAX && random_.below(2) == 0) throw SimulatedCrash{};
      session_->compute();
    } catch (const SimulatedCrash&) {
      return false;
    }
    return true;
  }
  bool end_work(bool is_connected, std::optional<ClientEnding>& ending) {
    if (!std::exchange(computing_, false)) return true;
    try {
      if (!work()) return false;
      ending = session_->finish_answer(is_connected);
    } catch (const SimulatedCrash&) {
      return false;
    }
    return true;
  }

  SimulatedTime& time_;
  Random& random_;
  const StreamFaults& link_faults_;
  const PeerHabits& habits_;
  CurrentServer& current_server_;
  const std::string name_;
  const std::uint64_t seed_;
  SecureWorld* const secure_;
  const ClientData data_;
  std::unique_ptr<SimulatedDisk> disk_;
  std::optional<ClientJournal> journal_;
  std::optional<ClientSession> session_;
  std::optional<BackOff> back_off_;

  std::shared_ptr<Wire> wire_;
  std::unique_ptr<StreamFilter> filter_;
  std::string inbox_, outbox_;
  bool computing_ = false, computed_ = false, looks_soon_ = false, announced_shutdown_ = false;
  double heard_ = 0, silence_seconds_ = kAnswerSeconds;
  std::uint64_t epoch_ = 0;
  std::uint64_t deaths_ = 0, bytes_written_ = 0, chunks_sent_ = 0;
  std::string trouble_;
};

}  // namespace gradwire
