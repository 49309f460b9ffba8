// A federation on a simulated network. The real round loop exchanges real bytes with real workers. The
// network loses, delays, repeats and reorders messages, and clients die and restart. It has one virtual
// clock, one seed, and no threads.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <queue>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/random.h"
#include "config/experiment_spec.h"
#include "engine/problems/problem.h"
#include "fl_client/client_journal.h"
#include "fl_client/worker.h"
#include "proto/wire/codec_context.h"
#include "proto/wire/scatter.h"
#include "rounds/transport.h"
#include "simulation/encoded_link.h"
#include "tests/storage/simulated_disk.h"

namespace gradwire {

// Probabilities, per message unless stated otherwise.
struct NetworkFaults {
  double lost = 0, repeated = 0;
  double delay_seconds = 0.01;   // maximal delay of most messages
  double slow = 0;               // delays a message by up to half a minute; it overtakes none
  double client_dies = 0;        // when a request reaches it, in the middle of its work
  double disk_lost = 0;          // when a client dies: it restarts with an empty disk
  bool clients_remember = true;  // clients have a journal on disk
  double cut_off = 0;            // cuts a client off for up to a minute, when a request is sent to it
};

// A whole message, as sent.
struct Packet {
  std::string head, payload;  // head: prefix and header
};

inline Packet packet_of(const Encoded& message) {
  Packet packet;
  packet.head.assign(reinterpret_cast<const char*>(message.prefix.data()), message.prefix.size());
  packet.head += message.header;
  for (const auto section : message.sections)
    packet.payload.append(reinterpret_cast<const char*>(section.data()), section.size());
  return packet;
}

// Copies a packet's payload to its places.
inline Status copy_payload(const Packet& packet, std::span<const std::span<std::byte>> places) {
  return scatter(std::as_bytes(std::span(packet.payload)), places) ? Status(Unit{})
                                                                   : Error{"the payload is too short"};
}

// One client, whose disk outlives its processes.
class SimulatedClient {
 public:
  SimulatedClient(const ExperimentSpec& experiment, ClientId number, bool remembers, std::uint64_t seed)
      : experiment_(experiment),
        number_(number),
        remembers_(remembers),
        seed_(seed),
        disk_(std::make_unique<SimulatedDisk>(seed)) {}

  // Answers a request. Throws SimulatedCrash if the process dies.
  bool answer(const Packet& request, Packet& reply) {
    if (!worker_) begin();
    const auto bytes = std::as_bytes(std::span(request.head));
    const auto prefix = read_prefix(bytes.first<kPrefixBytes>(), worker_->max_payload());
    if (!prefix) throw std::logic_error("client: " + prefix.error().message);
    const auto places = worker_->receive_head(*prefix, bytes.subspan(kPrefixBytes));
    if (!places) throw std::logic_error("client: " + places.error().message);
    throw_if_failed(copy_payload(request, *places));
    const auto received = worker_->receive_payload();
    if (!received) throw std::logic_error("client: " + received.error().message);
    if (*received == Worker::Received::kShutdown) return false;
    if (const Status status = worker_->take_up(false); !status)
      throw std::logic_error("client: " + status.error().message);
    worker_->compute();
    const Encoded* const answer = worker_->answer();
    if (answer != nullptr) {
      reply = packet_of(*answer);
      worker_->answer_sent();
    }
    worker_->put_away();
    return answer != nullptr;
  }
  // Makes the client die after this many calls of its disk.
  void die_in(std::uint64_t calls) { disk_->crash_at = disk_->calls() + calls; }
  std::size_t bytes_on_disk() const {
    std::size_t bytes = 0;
    const auto names = disk_->list();
    for (const std::string& name : *names) bytes += disk_->contents(name).size();
    return bytes;
  }
  bool is_to_die() const { return disk_->crash_at != UINT64_MAX; }
  void die(bool with_its_disk) {
    worker_.reset();
    journal_.reset();
    disk_->lose_process();
    if (with_its_disk) disk_ = std::make_unique<SimulatedDisk>(seed_ + 1);
  }

 private:
  void begin() {
    if (remembers_) journal_.emplace(*disk_, std::function<void(const std::string&)>());
    worker_ = make_worker(plan_of_start(experiment_, {}), {}, number_,
                          {.journal = journal_ ? &*journal_ : nullptr, .run = "run"});
  }

  const ExperimentSpec& experiment_;
  const ClientId number_;
  const bool remembers_;
  const std::uint64_t seed_;
  std::unique_ptr<SimulatedDisk> disk_;
  std::optional<ClientJournal> journal_;
  std::unique_ptr<Worker> worker_;
};

// Everything except the server: the clients and their connections. Servers come and go, and the clients stay.
class SimulatedWorld {
 public:
  SimulatedWorld(const ExperimentSpec& experiment, const NetworkFaults& link_faults, std::uint64_t seed)
      : link_faults_(link_faults), random_(seed, "world") {
    const std::uint32_t n = experiment.clients.count;
    for (ClientId c = 0; c < n; ++c)
      clients_.push_back(
          std::make_unique<SimulatedClient>(experiment, c, link_faults.clients_remember, seed * 64 + c));
    connected_.assign(n, true);
  }

  struct Arrival {
    enum class Kind : std::uint8_t { kReply, kJoined, kLeft } kind;
    ClientId client;
    Packet packet;
  };

  double now() const { return now_; }
  std::uint64_t deaths() const { return deaths_; }

  void send(ClientId client, Packet packet) {
    if (random_.uniform() < link_faults_.cut_off && connected_[client])
      disconnect(client, 60 * random_.uniform());
    if (!connected_[client]) return;
    post(To::kClient, client, std::move(packet));
  }
  // Starts a new server. Messages on their way are lost, and all clients connect again, one by one.
  void server_begins() {
    std::erase_if(later_, [](const Later& l) { return l.to != To::kConnect; });
    std::make_heap(later_.begin(), later_.end());
    for (ClientId c = 0; c < clients_.size(); ++c) {
      if (connected_[c]) disconnect(c, random_.uniform());
    }
    arrivals_.clear();
  }
  // Gets the next event for the server. Returns false if none comes until `deadline`.
  bool next(double deadline, Arrival& arrival) {
    while (arrivals_.empty()) {
      if (later_.empty() || later_.front().time > deadline) {
        now_ = std::max(now_, deadline);
        return false;
      }
      std::pop_heap(later_.begin(), later_.end());
      Later item = std::move(later_.back());
      later_.pop_back();
      now_ = item.time;
      happen(item);
    }
    arrival = std::move(arrivals_.front());
    arrivals_.erase(arrivals_.begin());
    return true;
  }

 private:
  enum class To : std::uint8_t { kClient, kServer, kConnect };
  struct Later {
    double time = 0;
    std::uint64_t order = 0;
    To to = To::kClient;
    ClientId client = 0;
    Packet packet;
    bool operator<(const Later& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  void push(double delay, To to, ClientId client, Packet packet) {
    later_.push_back({now_ + delay, ++order_, to, client, std::move(packet)});
    std::push_heap(later_.begin(), later_.end());
  }
  double delay() {
    const bool slow = random_.uniform() < link_faults_.slow;
    return (slow ? 30 : link_faults_.delay_seconds) * random_.uniform();
  }
  void post(To to, ClientId client, Packet packet) {
    if (random_.uniform() < link_faults_.repeated) push(delay(), to, client, packet);
    if (random_.uniform() >= link_faults_.lost) push(delay(), to, client, std::move(packet));
  }
  void disconnect(ClientId client, double seconds) {
    connected_[client] = false;
    push(seconds, To::kConnect, client, {});
    arrivals_.push_back({Arrival::Kind::kLeft, client, {}});
  }

  void happen(Later& item) {
    switch (item.to) {
      case To::kServer:
        arrivals_.push_back({Arrival::Kind::kReply, item.client, std::move(item.packet)});
        break;
      case To::kConnect:
        connected_[item.client] = true;
        arrivals_.push_back({Arrival::Kind::kJoined, item.client, {}});
        break;
      case To::kClient: reach_client(item.client, item.packet); break;
    }
  }
  void reach_client(ClientId client, const Packet& packet) {
    SimulatedClient& c = *clients_[client];
    const bool dies = random_.uniform() < link_faults_.client_dies;
    if (dies) c.die_in(random_.below(4));
    try {
      Packet reply;
      const bool replied = c.answer(packet, reply);
      if (replied && connected_[client]) post(To::kServer, client, std::move(reply));
      if (!dies) return;
    } catch (const SimulatedCrash&) {
    }
    ++deaths_;
    c.die(random_.uniform() < link_faults_.disk_lost);
    if (connected_[client]) disconnect(client, random_.uniform());
  }

  const NetworkFaults link_faults_;
  Random random_;
  std::vector<std::unique_ptr<SimulatedClient>> clients_;
  std::vector<bool> connected_;
  std::vector<Later> later_;
  std::vector<Arrival> arrivals_;
  double now_ = 0;
  std::uint64_t order_ = 0, deaths_ = 0;
};

// The world as one server process sees it.
template <class Real>
class SimulatedNetwork final : public Transport<Real> {
 public:
  SimulatedNetwork(SimulatedWorld& world, const CodecContext& context) : world_(world), codec_(context) {
    world_.server_begins();
    for (std::uint32_t c = 0; c < context.clients; ++c) {
      inboxes_.emplace_back();
      for (auto& slot : inboxes_.back().slots) slot = std::make_unique<UplinkSlot<Real>>(context);
    }
  }

  // The number of events until the server dies. It may also die in a call of its disk.
  std::uint64_t events_left = UINT64_MAX;

  std::uint64_t send(ClientId client, const Request<Real>& request) override {
    Inbox& inbox = inboxes_[client];
    if (request.request_id > inbox.asked) inbox.asked = request.request_id, inbox.viewed = -1;
    const auto body = request.body == nullptr ? nullptr : codec_.encode_body(*request.body);
    const auto resync = request.resync == nullptr ? nullptr : codec_.encode_body(*request.resync);
    const Encoded encoded = codec_.encode(request, body.get(), resync.get());
    world_.send(client, packet_of(encoded));
    return encoded.bytes;
  }

  const Event<Real>& next(double deadline) override {
    if (events_left-- == 0) throw SimulatedCrash{};
    Event<Real>& event = event_ = {};
    SimulatedWorld::Arrival arrival;
    if (!world_.next(deadline, arrival)) return event;
    using Kind = SimulatedWorld::Arrival::Kind;
    event.up.client = arrival.client;
    if (arrival.kind == Kind::kReply) {
      take(arrival, event);
    } else {
      event.kind = arrival.kind == Kind::kJoined ? Event<Real>::Kind::kJoined : Event<Real>::Kind::kLeft;
    }
    return event;
  }
  double now() const override { return world_.now(); }

  // Returns the clients whose replies to this request arrived, in order of arrival, including repetitions.
  const std::vector<ClientId>& arrived(std::uint64_t request_id) {
    if (request_id != arrived_request_id_) arrived_.clear();
    return arrived_;
  }

 private:
  // The reply slots of a client, as in TcpTransport.
  struct Inbox {
    std::unique_ptr<UplinkSlot<Real>> slots[2];
    int viewed = -1;
    std::uint64_t asked = 0;
  };

  void take(const SimulatedWorld::Arrival& arrival, Event<Real>& event) {
    Inbox& inbox = inboxes_[arrival.client];
    const int arriving = inbox.viewed == 0 ? 1 : 0;
    UplinkSlot<Real>& slot = *inbox.slots[arriving];
    const auto bytes = std::as_bytes(std::span(arrival.packet.head));
    const auto prefix =
        read_prefix(bytes.template first<kPrefixBytes>(), max_payload_bytes(codec_.context(), sizeof(Real)));
    if (!prefix) throw std::logic_error("server: " + prefix.error().message);
    const auto targets = slot.prepare(*prefix, bytes.subspan(kPrefixBytes));
    if (!targets) throw std::logic_error("server: " + targets.error().message);
    if (const Status status = copy_payload(arrival.packet, *targets); !status)
      throw std::logic_error("server: " + status.error().message);
    const auto uplink = slot.finish(arrival.client, &draws_);
    if (!uplink) throw std::logic_error("server: " + uplink.error().message);
    event.kind = Event<Real>::Kind::kReply;
    event.bytes = arrival.packet.head.size() + arrival.packet.payload.size();
    event.up = *uplink;
    if (uplink->request_id == inbox.asked && uplink->status == ReplyStatus::kReply) {
      if (uplink->request_id != arrived_request_id_) arrived_.clear();
      arrived_request_id_ = uplink->request_id;
      arrived_.push_back(arrival.client);
    }
    if (inbox.viewed < 0 && uplink->request_id == inbox.asked && uplink->status == ReplyStatus::kReply) {
      inbox.viewed = arriving;
    } else {
      event.up.parts = {};
    }
  }

  SimulatedWorld& world_;
  Codec<Real> codec_;
  std::vector<Inbox> inboxes_;
  BlockMemo draws_;
  Event<Real> event_;
  std::uint64_t arrived_request_id_ = 0;
  std::vector<ClientId> arrived_;
};

}  // namespace gradwire
