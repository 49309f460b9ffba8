// Time of a server's thread for each received reply, compared with a bare Asio program that moves the same
// bytes and makes the same checks.
#include <array>
#include <chrono>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#ifndef ASIO_STANDALONE
#define ASIO_STANDALONE
#endif
#include <asio/buffer.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/ssl/context.hpp>
#include <asio/ssl/stream.hpp>
#include <asio/write.hpp>

#include "base/crc32c.h"
#include "benchmarks/benchmarks.h"
#include "benchmarks/load_clients.h"
#include "benchmarks/load_server.h"

namespace gradwire::bench {
namespace {

using Tcp = asio::ip::tcp::socket;
using Tls = asio::ssl::stream<asio::ip::tcp::socket>;

double thread_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// A server with its clients, which stay connected.
class ServedLoad {
 public:
  virtual ~ServedLoad() = default;
  // Returns the CPU seconds of this thread for `rounds` rounds, each of which asks every client.
  double seconds(std::uint32_t rounds) {
    const double begun = thread_seconds();
    for (std::uint32_t k = 0; k < rounds; ++k) round();
    return thread_seconds() - begun;
  }

 private:
  virtual void round() = 0;
};

class WithGradwire final : public ServedLoad {
 public:
  explicit WithGradwire(const Load& load) : server_(load) { server_.begin(); }

 private:
  void round() override { server_.round(); }
  LoadServer server_;
};

// The same work with only Asio. It knows the length of each message in advance.
template <class Stream>
class WithAsio final : public ServedLoad {
 public:
  explicit WithAsio(const Load& load) : load_(load), codec_(load.context()) {
    Uplink<float> up;
    up.parts = {Payload<float>::nothing(load.dim)};
    if (load.reply == LoadOptions::ReplyKind::kFloats) {
      values_.resize(load.dim);
      up.parts = {Payload<float>::dense(values_)};
    }
    const Encoded& reply = codec_.encode(up);
    head_bytes_ = kPrefixBytes + reply.header.size();
    acceptor_.listen();
    LoadOptions clients = load.clients_of("127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()));
    clients.greets = false;
    if constexpr (std::is_same_v<Stream, Tls>) {
      tls_.use_certificate_chain_file((load.certificates / "server.pem").string());
      tls_.use_private_key_file((load.certificates / "server.key").string(), asio::ssl::context::pem);
      SSL_CTX_set_ciphersuites(tls_.native_handle(), "TLS_AES_128_GCM_SHA256");
    }
    clients_.emplace(clients);
    for (std::uint32_t i = 0; i < load.clients; ++i) {
      peers_.push_back(
          std::make_unique<EchoPeer>(connection(acceptor_.accept()), head_bytes_, values_.size()));
      peers_.back()->stream.lowest_layer().set_option(asio::ip::tcp::no_delay(true));
      if constexpr (std::is_same_v<Stream, Tls>) peers_.back()->stream.handshake(Tls::server);
    }
  }

 private:
  struct EchoPeer {
    EchoPeer(Stream s, std::size_t head_bytes, std::size_t count)
        : stream(std::move(s)), head(head_bytes), values(count) {}
    Stream stream;
    std::vector<std::byte> head;
    std::vector<float> values;
  };
  Stream connection(Tcp socket) {
    if constexpr (std::is_same_v<Stream, Tls>) {
      return Stream(std::move(socket), tls_);
    } else {
      return socket;
    }
  }

  void round() override {
    Downlink<float> body;
    body.parts = {Payload<float>::nothing(load_.dim)};
    Request<float> request;
    request.request_id = ++request_id_;
    request.body = &body;
    const auto encoded = codec_.encode_body(body);
    const Encoded message = codec_.encode(request, encoded.get(), nullptr);
    got_ = 0;
    for (const auto& peer : peers_) {
      asio::write(peer->stream, std::array<asio::const_buffer, 2>{
                                    asio::buffer(message.prefix.data(), message.prefix.size()),
                                    asio::buffer(message.header)});
      read(*peer);
    }
    while (got_ < load_.clients) io_.run_one();
    if (damaged_ > 0) throw std::runtime_error("a message of bare Asio is damaged");
  }
  void read(EchoPeer& peer) {
    asio::async_read(peer.stream, asio::buffer(peer.head), [&](const asio::error_code& error, std::size_t) {
      if (error) throw std::runtime_error("a client of bare Asio disconnected");
      if (peer.values.empty()) return check(peer);
      asio::async_read(peer.stream, asio::buffer(peer.values),
                       [&](const asio::error_code& failed, std::size_t) {
                         if (failed) throw std::runtime_error("a client of bare Asio disconnected");
                         check(peer);
                       });
    });
  }
  void check(const EchoPeer& peer) {
    const std::span<const std::byte> head(peer.head);
    const Status status = check_header(head.first<kPrefixBytes>(), head.subspan(kPrefixBytes));
    std::uint32_t crc = 0;
    std::memcpy(&crc, &peer.head[24], sizeof crc);
    const CheckedNumbers checked = check_numbers(View<float>(peer.values));
    damaged_ += status && checked.crc == crc && checked.finite ? 0 : 1;
    ++got_;
  }

  const Load load_;
  Codec<float> codec_;
  std::vector<float> values_;
  std::size_t head_bytes_ = 0;
  std::uint64_t request_id_ = 0;
  std::uint32_t got_ = 0, damaged_ = 0;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  asio::ssl::context tls_{asio::ssl::context::tlsv13_server};
  asio::ip::tcp::acceptor acceptor_{io_, {asio::ip::address_v4::loopback(), 0}};
  std::optional<LoadProcess> clients_;
  std::vector<std::unique_ptr<EchoPeer>> peers_;
};

std::unique_ptr<ServedLoad> bare(const Load& load) {
  if (load.certificates.empty()) return std::make_unique<WithAsio<Tcp>>(load);
  return std::make_unique<WithAsio<Tls>>(load);
}

// Measures gradwire and bare Asio in turns, each with all its clients. The first rounds, in which both
// allocate memory, are the warm-up.
Row load_row(Bench& bench, const Load& load, std::uint32_t rounds, std::uint32_t repeats) {
  WithGradwire ours(load);
  const std::unique_ptr<ServedLoad> asio = bare(load);
  const auto series = interleave(
      bench.repeats(repeats), {[&] { return ours.seconds(rounds); }, [&] { return asio->seconds(rounds); }});
  const double to_us = 1e6 / (static_cast<double>(rounds) * load.clients);
  Row row;
  row.value = series[0].times(to_us);
  row.unit = "us/reply";
  row.versus = {load.certificates.empty() ? "bare Asio" : "bare Asio, TLS", series[1].times(to_us)};
  row.note = "time of the server's thread for a " +
             (load.reply == LoadOptions::ReplyKind::kNothing
                  ? "reply without a payload"
                  : "dense reply of " + std::to_string(load.dim) + " fp32") +
             " from one of " + std::to_string(load.clients) +
             " clients, including the request, the checksum and the check for numbers that are not finite";
  return row;
}

}  // namespace

void tcp_payloads(Bench& bench) {
  Load load;
  load.clients = 4;
  load.dim = bench.size(250'000u, 1000u);
  Row row = load_row(bench, load, bench.size(50u, 3u), 15);
  row.name = "tcp/payloads 1 MB";
  row.target = {Target::Of::kRatio, 1.15};
  bench.row(row);
}

void tcp_load(Bench& bench) {
  const Certificates certificates;
  Load load;
  load.clients = clients_up_to(bench.size(1000u, 20u), 2);
  load.dim = 1000;
  const std::uint32_t rounds = bench.size(10u, 2u);
  Row row = load_row(bench, load, rounds, 25);
  row.name = "tcp/load 4 KB";
  row.target = {Target::Of::kRatio, 1 / 0.65};
  bench.row(row);

  load.reply = LoadOptions::ReplyKind::kNothing;
  row = load_row(bench, load, rounds, 25);
  row.name = "tcp/load empty round";
  row.target = {Target::Of::kRatio, 1.5};
  bench.row(row);

  load.reply = LoadOptions::ReplyKind::kFloats;
  load.certificates = certificates.folder();
  row = load_row(bench, load, rounds, 25);
  row.name = "tcp/load 4 KB, TLS";
  row.target = {Target::Of::kRatio, 1 / 0.75};
  bench.row(row);
}

}  // namespace gradwire::bench
