// A simulated network of byte streams. Connections break after any byte, fall silent, stall, and deliver late
// and in segments; readers are slow. It has one virtual clock, one seed, and no threads. The server's end is
// a SocketLayer; the clients' end is a Wire.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "fl_server/net/socket_layer.h"
#include "tests/storage/simulated_disk.h"

namespace gradwire {

// Probabilities are per write.
struct StreamFaults {
  double delay_seconds = 0.01;  // maximal delay of a segment
  double cut = 0;               // the connection is reset at both ends; some of the bytes arrive
  double silent = 0;            // nothing arrives any more in one or both directions, and neither end notices
  double stalled = 0;           // all bytes on their way are late by up to a minute
  std::size_t window_bytes = 1 << 16;  // limit of unread and unreceived bytes; more must wait
};

// Virtual time, and the jobs in it.
class SimulatedTime {
 public:
  double now() const { return now_; }
  void at(double seconds, std::function<void()> job) {
    jobs_.push_back({std::max(seconds, now_), ++order_, std::move(job)});
    std::push_heap(jobs_.begin(), jobs_.end());
  }
  void in(double seconds, std::function<void()> job) { at(now_ + seconds, std::move(job)); }
  // Runs the next job, or moves the clock to `deadline` and returns false if the job is later.
  bool step(double deadline) {
    if (jobs_.empty() || jobs_.front().time > deadline) {
      now_ = std::max(now_, deadline);
      return false;
    }
    std::pop_heap(jobs_.begin(), jobs_.end());
    const Job job = std::move(jobs_.back());
    jobs_.pop_back();
    now_ = job.time;
    job.run();
    return true;
  }

 private:
  struct Job {
    double time;
    std::uint64_t order;
    std::function<void()> run;
    bool operator<(const Job& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };
  std::vector<Job> jobs_;
  double now_ = 0;
  std::uint64_t order_ = 0;
};

// One connection. Both ends hold it; a closed end gets no more events.
class Wire : public std::enable_shared_from_this<Wire> {
 public:
  enum Side : std::uint8_t { kClient = 0, kServer = 1 };
  Wire(SimulatedTime& time, Random& random, const StreamFaults& link_faults)
      : time_(time), random_(random), link_faults_(link_faults) {}

  // Called if data, the end, or room to write has arrived.
  std::function<void()> told[2];

  // Takes as many bytes as fit.
  std::size_t write(Side from, std::string_view bytes) {
    Stream& s = streams_[from];
    const std::size_t used = s.on_its_way + s.arrived.size();
    const std::size_t n =
        std::min(bytes.size(), link_faults_.window_bytes - std::min(link_faults_.window_bytes, used));
    if (n == 0 || !open_[from]) return 0;
    double late = 0;
    if (random_.uniform() < link_faults_.silent) silent_[from] = silent_[random_.below(2)] = true;
    if (random_.uniform() < link_faults_.stalled) late = 60 * random_.uniform();
    const bool is_cut = random_.uniform() < link_faults_.cut;
    const std::size_t sent = is_cut ? random_.below(n + 1) : n;
    s.arrival = std::max(s.arrival, time_.now() + late + link_faults_.delay_seconds * random_.uniform());
    s.on_its_way += sent;
    time_.at(s.arrival, [self = shared_from_this(), from, text = std::string(bytes.substr(0, sent))] {
      self->arrive(from, text);
    });
    if (is_cut) time_.at(s.arrival, [self = shared_from_this()] { self->reset(); });
    return n;
  }
  // Reads what has arrived at `side`, at most `most` bytes.
  std::string read(Side side, std::size_t most) {
    Stream& s = streams_[1 - side];
    std::string bytes = s.arrived.substr(0, most);
    s.arrived.erase(0, bytes.size());
    if (!bytes.empty()) notify(static_cast<Side>(1 - side));
    return bytes;
  }
  bool has_bytes(Side side) const { return !streams_[1 - side].arrived.empty(); }
  bool was_reset() const { return reset_; }
  bool at_end(Side side) const { return streams_[1 - side].ended && streams_[1 - side].arrived.empty(); }
  bool has_room(Side side) const {
    return streams_[side].on_its_way + streams_[side].arrived.size() < link_faults_.window_bytes;
  }

  void end_writing(Side side) {
    Stream& s = streams_[side];
    s.arrival = std::max(s.arrival, time_.now());
    time_.at(s.arrival, [self = shared_from_this(), side] {
      if (self->silent_[side]) return;
      self->streams_[side].ended = true;
      self->notify(static_cast<Side>(1 - side));
    });
  }
  // Closes an end. The other end sees the end of the stream, unless the machine of this end is `gone`.
  void close(Side side, bool gone = false) {
    if (!std::exchange(open_[side], false)) return;
    told[side] = nullptr;
    if (!gone) end_writing(side);
  }

  // Notifies later, once for all events until then.
  void notify(Side side) {
    if (!open_[side] || std::exchange(notified_[side], true)) return;
    time_.in(0, [self = shared_from_this(), side] {
      self->notified_[side] = false;
      if (const auto tell = self->told[side]) tell();
    });
  }

 private:
  struct Stream {
    std::string arrived;
    std::size_t on_its_way = 0;
    double arrival = 0;  // when the last segment arrives
    bool ended = false;
  };

  void arrive(Side from, const std::string& bytes) {
    Stream& s = streams_[from];
    s.on_its_way -= bytes.size();
    if (silent_[from] || reset_) return;
    s.arrived += bytes;
    notify(static_cast<Side>(1 - from));
  }
  void reset() {
    if (silent_[kClient] || silent_[kServer]) {  // neither end notices; later bytes would leave a gap
      silent_[kClient] = silent_[kServer] = true;
      return;
    }
    reset_ = true;
    notify(kClient);
    notify(kServer);
  }
  SimulatedTime& time_;
  Random& random_;
  const StreamFaults& link_faults_;
  Stream streams_[2];  // by the writing side
  bool open_[2] = {true, true}, notified_[2] = {false, false};
  bool silent_[2] = {false, false};  // by the writing side
  bool reset_ = false;
};

class SimulatedSockets;

// The place where clients find the current server.
struct CurrentServer {
  SimulatedSockets* server = nullptr;
  bool machine_died = false;  // the server's machine; closing a socket then notifies no peer
};

// One end of a wire, as a Socket of a SocketLayer.
class SimulatedSocket final : public Socket {
 public:
  SimulatedSocket(std::shared_ptr<Wire> wire, Wire::Side side, Random& random,
                  const CurrentServer& current_server)
      : wire_(std::move(wire)), side_(side), random_(random), current_server_(current_server) {}
  ~SimulatedSocket() override { close(); }

  void start(SocketHandler& handler) override {
    wire_->told[side_] = [this, &handler] {
      if (wants_write_ && (wire_->has_room(side_) || wire_->was_reset())) {
        wants_write_ = false;
        handler.on_writable();
      }
      if (is_open_ && has_news()) handler.on_readable();
      if (is_open_ && has_news()) wire_->notify(side_);  // some data was not read
    };
  }
  Moved read(std::span<std::byte> to) override {
    if (wire_->was_reset()) return {Got::kFailed, 0};
    const std::string bytes = wire_->read(side_, 1 + random_.below(to.size()));
    std::copy_n(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size(), to.begin());
    if (!bytes.empty()) return {Got::kSome, bytes.size()};
    return {wire_->at_end(side_) ? Got::kEnd : Got::kNothing, 0};
  }
  Moved write(std::span<const std::span<const std::byte>> segments) override {
    if (wire_->was_reset()) return {Got::kFailed, 0};
    std::string bytes;
    for (const auto segment : segments)
      bytes.append(reinterpret_cast<const char*>(segment.data()), segment.size());
    const std::size_t taken = wire_->write(side_, bytes);
    return {taken > 0 ? Got::kSome : Got::kNothing, taken};
  }
  void pause_reading(bool pause) override {
    paused_ = pause;
    if (!pause && is_open_) wire_->notify(side_);
  }
  void want_write() override { wants_write_ = true; }
  std::string failure() const override { return "the connection was reset"; }
  void end_writing() override { wire_->end_writing(side_); }
  void close() override {
    if (std::exchange(is_open_, false)) wire_->close(side_, current_server_.machine_died);
  }
  bool is_open() const override { return is_open_; }
  const std::string& peer() const override { return peer_; }

 private:
  bool has_news() const {
    return !paused_ && (wire_->has_bytes(side_) || wire_->at_end(side_) || wire_->was_reset());
  }

  const std::shared_ptr<Wire> wire_;
  const Wire::Side side_;
  Random& random_;
  const CurrentServer& current_server_;
  const std::string peer_ = "simulated:2";
  bool is_open_ = true, wants_write_ = false, paused_ = false;
};

class SimulatedSockets final : public SocketLayer {
 public:
  SimulatedSockets(SimulatedTime& time, Random& random, const StreamFaults& link_faults,
                   CurrentServer& current_server)
      : time_(time), random_(random), link_faults_(link_faults), current_server_(current_server) {}
  ~SimulatedSockets() override {
    *alive_ = false;
    stop_accepting();
  }

  std::uint64_t events_left = UINT64_MAX;  // until the server dies
  CurrentServer* upstream = nullptr;       // set for a relay

  void connect(std::shared_ptr<Wire> wire) {
    handler_->on_accepted(
        std::make_unique<SimulatedSocket>(std::move(wire), Wire::kServer, random_, current_server_));
  }

  std::string address() const override { return "simulated:1"; }
  SteadyTime now() const override {
    return SteadyTime() +
           std::chrono::duration_cast<SteadyTime::duration>(std::chrono::duration<double>(time_.now()));
  }
  void start(SocketLayerHandler& handler, std::chrono::milliseconds tick, bool) override {
    handler_ = &handler;
    current_server_.server = this;
    tick_again(std::chrono::duration<double>(tick).count());
  }
  void stop_accepting() override {
    if (current_server_.server == this) current_server_.server = nullptr;
  }
  // Connects as a client of `upstream`.
  Result<std::unique_ptr<Socket>> connect(const std::string& address) override {
    if (upstream == nullptr || upstream->server == nullptr) return Error{address + ": no server listens"};
    auto wire = std::make_shared<Wire>(time_, random_, link_faults_);
    upstream->server->connect(wire);
    return std::unique_ptr<Socket>(
        std::make_unique<SimulatedSocket>(wire, Wire::kClient, random_, current_server_));
  }
  // Runs jobs in order, but other events may happen first.
  void post(std::function<void()> job) override {
    last_post_ = std::max(last_post_, time_.now() + 0.001 * random_.uniform());
    time_.at(last_post_, [job = std::move(job), alive = alive_] {
      if (*alive) job();
    });
  }
  void wait(SteadyTime deadline, const std::function<bool()>& done) override {
    const double until = std::chrono::duration<double>(deadline - SteadyTime()).count();
    for (;;) {
      if (done()) return;
      if (events_left-- == 0) throw SimulatedCrash{};
      if (!time_.step(until)) return;
    }
  }

 private:
  void tick_again(double seconds) {
    time_.in(seconds, [this, seconds, alive = alive_] {
      if (!*alive) return;
      handler_->on_tick();
      tick_again(seconds);
    });
  }

  SimulatedTime& time_;
  Random& random_;
  const StreamFaults& link_faults_;
  CurrentServer& current_server_;
  SocketLayerHandler* handler_ = nullptr;
  double last_post_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace gradwire
