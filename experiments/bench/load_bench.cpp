// What a server's thread does for each reply that it receives, beside a bare Asio program that moves the same
// bytes and makes the same checks.
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <ctime>
#include <memory>
#include <netinet/in.h>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#ifndef ASIO_STANDALONE
#define ASIO_STANDALONE
#endif
#include <asio/buffer.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>

#include "base/crc32c.h"
#include "experiments/bench/benchmarks.h"
#include "experiments/bench/workloads.h"
#include "fl_server/hub/tcp_transport.h"
#include "fl_server/net/tcp_sockets.h"
#include "proto/wire/control_frame.h"
#include "proto/wire/wire.pb.h"

namespace gradwire::bench {
namespace {

double thread_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Load {
  std::uint32_t clients = 0;
  std::uint32_t dim = 0;
  std::uint32_t rounds = 0;
  CodecContext context() const {
    CodecContext c;
    c.dim = dim;
    c.clients = clients;
    c.compressor = Identity{};
    c.zstd.kind = ZstdMode::Kind::kOff;
    return c;
  }
};

// One client on a blocking socket, in a thread of its own: it answers each request with a dense vector.
class LoadClient {
 public:
  LoadClient(std::uint16_t port, std::uint32_t number, const Load& load, bool shakes_hands)
      : number_(number), load_(load), fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd_ < 0 || ::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0)
      throw std::runtime_error("no connection to the server of this benchmark");
    thread_ = std::thread([this, shakes_hands] {
      if (shakes_hands) shake_hands();
      answer();
    });
  }
  ~LoadClient() {
    ::shutdown(fd_, SHUT_RDWR);
    thread_.join();
    ::close(fd_);
  }

 private:
  bool write(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
    return true;
  }
  bool write(const std::string& text) const { return write(std::as_bytes(std::span(text))); }
  bool read(std::span<std::byte> to) const {
    return to.empty() || ::recv(fd_, to.data(), to.size(), MSG_WAITALL) == static_cast<ssize_t>(to.size());
  }
  // The next frame, whose payload is empty.
  bool read_frame(Prefix& prefix, std::string& header) const {
    std::array<std::byte, kPrefixBytes> raw;
    if (!read(raw)) return false;
    const auto parsed = read_prefix(raw, 0);
    if (!parsed) return false;
    prefix = *parsed;
    header.resize(prefix.header_len);
    return read(std::as_writable_bytes(std::span(header)));
  }
  void shake_hands() {
    wire::Hello hello;
    hello.set_protocol(kWireVersion);
    hello.set_client_name("client-" + std::to_string(number_));
    wire::Join join;
    join.set_columns(1);
    join.set_sample_count(1);
    join.set_test_count(0);
    join.add_labels(-1);
    join.add_labels(1);
    Prefix prefix;
    std::string header;
    wire::Welcome welcome;
    if (!write(control_frame(FrameType::kHello, hello)) || !read_frame(prefix, header) ||
        !welcome.ParseFromString(header) || !write(control_frame(FrameType::kJoin, join)))
      return;
    number_ = welcome.client();
  }
  void answer() {
    Codec<float> codec(load_.context());
    const std::vector<float> gradient = normal_vector<float>(load_.dim, number_ + 1);
    Prefix prefix;
    std::string header;
    while (read_frame(prefix, header)) {
      wire::Round round;
      if (prefix.type != FrameType::kRound || !round.ParseFromString(header)) continue;
      Uplink<float> up;
      up.ticket = round.ticket();
      up.client = number_;
      up.loss = 0.5;
      up.parts = {Payload<float>::dense(gradient)};
      const Encoded& message = codec.encode(up);
      if (!write(message.prefix) || !write(message.header)) return;
      for (const auto section : message.sections)
        if (!write(section)) return;
    }
  }

  std::uint32_t number_;
  const Load load_;
  const int fd_;
  std::thread thread_;
};

Envelope<float> request(std::uint64_t ticket, const Downlink<float>& body) {
  Envelope<float> envelope;
  envelope.ticket = ticket;
  envelope.body = &body;
  return envelope;
}

// Seconds of the server's thread for all rounds.
double with_gradwire(const Load& load) {
  HubOptions options;
  options.clients = load.clients;
  Hub hub(options, listen_on_tcp("127.0.0.1:0"));
  const std::string address = hub.address();
  const auto port = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  std::vector<std::unique_ptr<LoadClient>> clients;
  for (std::uint32_t i = 0; i < load.clients; ++i)
    clients.push_back(std::make_unique<LoadClient>(port, i, load, true));
  hub.gather(std::chrono::seconds(10));
  wire::Start start;
  start.set_dim(load.dim);
  TcpTransport<float> transport(hub, load.context(), control_frame(FrameType::kStart, start));
  Downlink<float> body;
  body.parts = {Payload<float>::nothing(load.dim)};
  double begun = 0;
  for (std::uint32_t round = 0; round <= load.rounds; ++round) {
    if (round == 1) begun = thread_seconds();  // the first round allocates
    for (ClientId c = 0; c < load.clients; ++c) transport.send(c, request(round + 1, body));
    for (std::uint32_t got = 0; got < load.clients;) {
      const auto& event = transport.next(transport.now() + 10);
      if (event.kind == Event<float>::Kind::kTimeout) throw std::runtime_error("a client does not answer");
      got += event.kind == Event<float>::Kind::kReply ? 1 : 0;
    }
  }
  return thread_seconds() - begun;
}

// The same with Asio and nothing else: it knows how long each message is.
class BareServer {
 public:
  explicit BareServer(const Load& load) : load_(load), codec_(load.context()) {
    Uplink<float> up;
    up.parts = {Payload<float>::nothing(load.dim)};
    head_bytes_ = codec_.encode(up).bytes;
  }

  double seconds() {
    acceptor_.listen();
    std::vector<std::unique_ptr<LoadClient>> clients;
    for (std::uint32_t i = 0; i < load_.clients; ++i) {
      clients.push_back(std::make_unique<LoadClient>(acceptor_.local_endpoint().port(), i, load_, false));
      peers_.push_back(std::make_unique<Peer>(acceptor_.accept(), head_bytes_, load_.dim));
      peers_.back()->socket.set_option(asio::ip::tcp::no_delay(true));
    }
    Downlink<float> body;
    body.parts = {Payload<float>::nothing(load_.dim)};
    double begun = 0;
    for (std::uint32_t round = 0; round <= load_.rounds; ++round) {
      if (round == 1) begun = thread_seconds();
      got_ = 0;
      const auto encoded = codec_.encode_body(body);
      for (const auto& peer : peers_) {
        const Encoded message = codec_.encode(request(round + 1, body), encoded.get(), nullptr);
        asio::write(peer->socket, std::array<asio::const_buffer, 2>{
                                      asio::buffer(message.prefix.data(), message.prefix.size()),
                                      asio::buffer(message.header)});
        read(*peer);
      }
      while (got_ < load_.clients) io_.run_one();
    }
    const double seconds = thread_seconds() - begun;
    if (damaged_ > 0) throw std::runtime_error("a bare message is damaged");
    return seconds;
  }

 private:
  struct Peer {
    Peer(asio::ip::tcp::socket s, std::size_t head_bytes, std::size_t dim)
        : socket(std::move(s)), head(head_bytes), values(dim) {}
    asio::ip::tcp::socket socket;
    std::vector<std::byte> head;
    std::vector<float> values;
  };
  void read(Peer& peer) {
    asio::async_read(peer.socket, asio::buffer(peer.head), [&](const asio::error_code& error, std::size_t) {
      if (error) throw std::runtime_error("a bare client is gone");
      asio::async_read(peer.socket, asio::buffer(peer.values),
                       [&](const asio::error_code& failed, std::size_t) {
                         if (failed) throw std::runtime_error("a bare client is gone");
                         std::uint32_t crc = 0;
                         std::memcpy(&crc, &peer.head[24], sizeof crc);
                         const CheckedNumbers checked = check_numbers(View<float>(peer.values));
                         damaged_ += checked.crc == crc && checked.finite ? 0 : 1;
                         ++got_;
                       });
    });
  }

  const Load load_;
  Codec<float> codec_;
  std::size_t head_bytes_ = 0;
  std::uint32_t got_ = 0, damaged_ = 0;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  asio::ip::tcp::acceptor acceptor_{io_, {asio::ip::address_v4::loopback(), 0}};
  std::vector<std::unique_ptr<Peer>> peers_;
};

}  // namespace

void tcp_payloads(Bench& bench) {
  const Load load{4, bench.size(250'000u, 1000u), bench.size(200u, 3u)};
  const auto series = interleave(
      bench.repeats(7), {[&] { return with_gradwire(load); }, [&] { return BareServer(load).seconds(); }});
  const double to_us = 1e6 / (load.rounds * load.clients);
  Row row;
  row.name = "tcp/payloads 1 MB";
  row.value = series[0].times(to_us);
  row.unit = "us/reply";
  row.versus = {"bare Asio", series[1].times(to_us)};
  row.target = {Target::Of::kRatio, 1.15};
  row.note = "time of the server's thread for a dense reply of " + std::to_string(load.dim) +
             " fp32 from one of " + std::to_string(load.clients) +
             " clients, checksum and check for numbers that are not finite included";
  bench.row(row);
}

}  // namespace gradwire::bench
