#include "fl_server/net/filtered_sockets.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>
#include <vector>

#include "fl_server/net/handshake_worker.h"
#include "proto/wire/address.h"
#include "proto/wire/control_frame.h"
#include "proto/wire/frame.h"

namespace gradwire {
namespace {

constexpr std::size_t kArrivingBytes = 64 * 1024;       // per read from the socket below
constexpr std::size_t kRecordBytes = 16 * 1024;         // the largest piece that TLS encrypts at once
constexpr std::size_t kTakenBytes = 16 * kRecordBytes;  // per write
constexpr std::size_t kHandshakeBytes = kRecordBytes;   // bytes that may wait for the handshake thread
constexpr int kReadsWithoutPlain = 16;  // per read(): a peer may send bytes for the filter only

class FilteredSocket final : public Socket, private SocketHandler {
 public:
  // Runs the handshake on `worker`, or on this thread if that is null.
  FilteredSocket(SocketLayer& layer, std::vector<std::byte>& arriving, std::unique_ptr<Socket> below,
                 std::unique_ptr<StreamFilter> filter, bool accepted, HandshakeWorker* worker)
      : layer_(layer),
        arriving_(arriving),
        worker_(worker),
        below_(std::move(below)),
        filter_(std::move(filter)),
        fresh_(accepted) {}
  ~FilteredSocket() override { *alive_ = false; }

  void start(SocketHandler& handler) override {
    handler_ = &handler;
    below_->start(*this);
    flush();
  }

  Moved read(std::span<std::byte> to) override {
    std::size_t done = 0;
    for (int k = 0; !has_failed(); ++k) {
      if (is_away()) return some(done);
      const Result<std::size_t> got = filter_->read(to.subspan(done));
      if (!got) {
        refuse(got.error().message);
        break;
      }
      done += *got;
      if (done == to.size() || k == kReadsWithoutPlain) return some(done);
      const Moved moved =
          below_->read(std::span(arriving_).first(shakes_hands_apart() ? kHandshakeBytes : arriving_.size()));
      if (moved.got != Got::kSome) {
        if (done > 0) return some(done);
        if (moved.got == Got::kFailed) why_ = below_->failure();
        return moved;
      }
      take(std::span(arriving_).first(moved.bytes));
    }
    return done > 0 ? some(done) : Moved{failed_, 0};
  }

  void pause_reading(bool pause) override {
    paused_ = pause;
    below_->pause_reading(pause || is_away());
    read_again();
  }

  Moved write(std::span<const std::span<const std::byte>> segments) override {
    flush();
    if (has_failed()) return {failed_, 0};
    if (!is_ready() || !filter_->outgoing().empty()) return {Got::kNothing, 0};
    std::size_t taken = 0;
    record_.clear();
    for (std::span<const std::byte> segment : segments) {
      if (taken >= kTakenBytes) break;
      segment = segment.first(std::min(segment.size(), kTakenBytes - taken));
      taken += segment.size();
      // Small segments share a record. Large ones are encrypted in place, without a copy.
      if (const std::size_t room = kRecordBytes - record_.size();
          !record_.empty() || segment.size() < kRecordBytes) {
        const auto head = segment.first(std::min(segment.size(), room));
        record_.insert(record_.end(), head.begin(), head.end());
        segment = segment.subspan(head.size());
        if (record_.size() == kRecordBytes) put(std::exchange(record_, {}));
      }
      if (segment.size() >= kRecordBytes) {
        put(segment);
      } else {
        record_.insert(record_.end(), segment.begin(), segment.end());
      }
    }
    put(record_);
    if (record_.capacity() > kRecordBytes / 4) record_ = {};
    flush();
    return has_failed() ? Moved{failed_, 0} : some(taken);
  }

  void want_write() override {
    wants_write_ = true;
    if (is_ready()) arm();
  }
  std::string failure() const override { return why_; }
  void end_writing() override {
    if (!is_away()) filter_->end();
    ends_ = true;
    flush();
  }
  void close() override {
    if (!below_->is_open()) return;
    if (!ends_ && !has_failed()) end_writing();
    if (is_away()) *alive_ = false;  // the worker can skip the handshake
    below_->close();
  }
  bool is_open() const override { return below_->is_open(); }
  const std::string& peer() const override { return below_->peer(); }

 private:
  static Moved some(std::size_t bytes) { return {bytes > 0 ? Got::kSome : Got::kNothing, bytes}; }

  void on_readable() override {
    handler_->on_readable();
    read_again();
  }
  // Schedules another read: the socket below does not show bytes that the filter holds.
  void read_again() {
    if (!below_->is_open() || paused_ || again_ || is_away() || !filter_->has_plain()) return;
    again_ = true;
    layer_.post([this, alive = alive_] {
      if (!*alive) return;
      again_ = false;
      if (below_->is_open() && !paused_) on_readable();
    });
  }
  void on_writable() override {
    armed_ = false;
    flush();
    const bool free = has_failed() || (is_ready() && filter_->outgoing().empty());
    if (free && below_->is_open() && std::exchange(wants_write_, false)) handler_->on_writable();
  }
  void arm() {
    if (!std::exchange(armed_, true)) below_->want_write();
  }

  void take(std::span<const std::byte> arrived) {
    if (std::exchange(fresh_, false) && arrived.size() >= 4 && has_magic(arrived)) return tell_plain_peer();
    if (shakes_hands_apart()) return hand_over(arrived);
    was_fed(filter_->feed(arrived));
  }
  void was_fed(const Status& status) {
    flush();  // including the alert that tells the peer why
    if (!status) return refuse(status.error().message);
    if (filter_->ready() && wants_write_) arm();
  }

  // ---- handshake on the worker's thread; the worker has the filter meanwhile ----

  bool is_away() const { return filter_ == nullptr; }
  bool is_ready() const { return !is_away() && filter_->ready(); }
  bool shakes_hands_apart() const { return worker_ != nullptr && !filter_->ready(); }
  // Gives the filter to the worker. Pauses reading until take_back(): further bytes wait in the socket below.
  void hand_over(std::span<const std::byte> arrived) {
    HandshakeStep step{std::move(filter_), {arrived.begin(), arrived.end()}, alive_, {}};
    step.done = [this, &layer = layer_, alive = alive_](HandshakeStep done) {
      layer.post([this, alive, done = std::make_shared<HandshakeStep>(std::move(done))] {
        if (*alive) take_back(*done);
      });
    };
    if (worker_->submit(step)) return below_->pause_reading(true);
    filter_ = std::move(step.filter);
    refuse("too many handshakes wait for this process; retry later");
  }
  void take_back(HandshakeStep& step) {
    filter_ = std::move(step.filter);
    if (ends_) filter_->end();
    was_fed(step.status);
    below_->pause_reading(paused_);
    if (!paused_) on_readable();
  }

  // Sends an error in plain text to a peer without TLS.
  void tell_plain_peer() {
    const std::string frame = error_frame(
        "this server requires TLS: start the client with its --identity, and the first time also with the "
        "--token from the operator; start a relay with the --identity that gradwire-server enroll NAME "
        "--relay OUT made",
        true, 0);
    const std::span<const std::byte> segment = std::as_bytes(std::span(frame));
    below_->write(std::span(&segment, 1));
    refuse("it does not speak TLS; it was started without its --identity");
  }
  void put(std::span<const std::byte> plain) {
    if (has_failed() || plain.empty()) return;
    if (const Status status = filter_->write(plain); !status) refuse(status.error().message);
  }
  void flush() {
    if (!below_->is_open() || is_away()) return;
    for (auto bytes = filter_->outgoing(); !bytes.empty(); bytes = filter_->outgoing()) {
      const Moved moved = below_->write(std::span(&bytes, 1));
      if (moved.got == Got::kNothing) return arm();
      if (moved.got != Got::kSome) return fail(Got::kFailed, below_->failure());
      filter_->sent(moved.bytes);
    }
    if (ends_) below_->end_writing();
  }
  bool has_failed() const { return failed_ != Got::kSome; }
  void refuse(const std::string& why) { fail(Got::kRefused, why); }
  void fail(Got how, const std::string& why) {
    if (has_failed()) return;
    failed_ = how;
    why_ = why;
  }

  SocketLayer& layer_;
  std::vector<std::byte>& arriving_;  // shared by all sockets of the layer; used within one call
  HandshakeWorker* const worker_;     // may be null
  const std::unique_ptr<Socket> below_;
  std::unique_ptr<StreamFilter> filter_;  // null while the worker has it
  std::vector<std::byte> record_;         // small segments to be written together
  SocketHandler* handler_ = nullptr;
  std::string why_;
  bool fresh_;               // an accepted connection on which nothing has arrived
  Got failed_ = Got::kSome;  // kSome if it has not failed
  bool paused_ = false, again_ = false, wants_write_ = false, armed_ = false, ends_ = false;
  // Lets jobs that outlive this object know that it is gone.
  const std::shared_ptr<std::atomic<bool>> alive_ = std::make_shared<std::atomic<bool>>(true);
};

class FilteredSockets final : public SocketLayer, private SocketLayerHandler {
 public:
  FilteredSockets(std::unique_ptr<SocketLayer> below, Filters filters)
      : below_(std::move(below)), filters_(std::move(filters)) {
    if (filters_.handshakes_apart > 0) worker_ = std::make_unique<HandshakeWorker>(filters_.handshakes_apart);
  }

  std::string address() const override { return below_->address(); }
  SteadyTime now() const override { return below_->now(); }
  std::size_t most_sockets() const override { return below_->most_sockets(); }
  void start(SocketLayerHandler& handler, std::chrono::milliseconds tick, bool signals) override {
    handler_ = &handler;
    below_->start(*this, tick, signals);
  }
  void stop_accepting() override { below_->stop_accepting(); }
  Result<std::unique_ptr<Socket>> connect(const std::string& address) override {
    auto socket = below_->connect(address);
    if (!socket || !filters_.connect) return socket;
    const auto parsed = parse_address(address, AddressUse::kToConnect);
    return wrap(std::move(*socket), filters_.connect(parsed ? parsed->host : address), false);
  }
  void post(std::function<void()> job) override { below_->post(std::move(job)); }
  void wait(SteadyTime deadline, const std::function<bool()>& done) override { below_->wait(deadline, done); }

 private:
  std::unique_ptr<Socket> wrap(std::unique_ptr<Socket> socket, std::unique_ptr<StreamFilter> filter,
                               bool accepted) {
    return std::make_unique<FilteredSocket>(*below_, arriving_, std::move(socket), std::move(filter),
                                            accepted, accepted ? worker_.get() : nullptr);
  }
  void on_accepted(std::unique_ptr<Socket> socket) override {
    handler_->on_accepted(filters_.accept ? wrap(std::move(socket), filters_.accept(), true)
                                          : std::move(socket));
  }
  bool wants(const std::string& peer) override { return handler_->wants(peer); }
  void on_no_descriptors() override { handler_->on_no_descriptors(); }
  void on_tick() override {
    if (filters_.on_tick) filters_.on_tick();
    handler_->on_tick();
  }
  void on_stop() override { handler_->on_stop(); }

  const std::unique_ptr<SocketLayer> below_;
  const Filters filters_;
  std::vector<std::byte> arriving_ = std::vector<std::byte>(kArrivingBytes);
  SocketLayerHandler* handler_ = nullptr;
  std::unique_ptr<HandshakeWorker> worker_;  // may be null; destroyed before the sockets that it wakes
};

}  // namespace

std::unique_ptr<SocketLayer> filtered(std::unique_ptr<SocketLayer> sockets, Filters filters) {
  return std::make_unique<FilteredSockets>(std::move(sockets), std::move(filters));
}

}  // namespace gradwire
