// Tests the time that a client allows a message of its server.
#include <array>
#include <chrono>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "fl_client/connection.h"

namespace gradwire {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kPayload = 20'000, kPieceBytes = 250;
constexpr milliseconds kPause{500};  // between pieces: 500 bytes a second, 40 s for the message

// Sends one message to each of `clients` connections, piece by piece.
class SlowServer {
 public:
  explicit SlowServer(int clients) : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof where;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<const sockaddr*>(&where), size), 0);
    EXPECT_EQ(::listen(listener_, clients), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&where), &size), 0);
    port_ = ntohs(where.sin_port);
    thread_ = std::thread([this, clients] { serve(clients); });
  }
  ~SlowServer() {
    thread_.join();
    ::close(listener_);
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  void serve(int clients) const {
    std::vector<int> peers;
    const auto prefix = write_prefix(FrameType::kRound, {}, kPayload, 0);
    const std::array<char, kPieceBytes> piece{};
    for (int k = 0; k < clients; ++k) peers.push_back(::accept(listener_, nullptr, nullptr));
    for (const int peer : peers) (void)!::send(peer, prefix.data(), prefix.size(), MSG_NOSIGNAL);
    for (std::size_t sent = 0; sent < kPayload; sent += kPieceBytes) {
      std::this_thread::sleep_for(kPause);
      for (const int peer : peers) (void)!::send(peer, piece.data(), piece.size(), MSG_NOSIGNAL);
    }
    for (const int peer : peers) ::close(peer);
  }

  const int listener_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

Status read_message(const std::string& address, std::uint64_t bytes_per_second) {
  auto connection = ServerConnection::connect(address, milliseconds(5000), milliseconds(5000));
  if (!connection) return connection.error();
  if (bytes_per_second > 0) (*connection)->keep_pace({std::chrono::minutes(1), bytes_per_second});
  if (const auto head = (*connection)->read_head(kPayload); !head) return head.error();
  std::vector<std::byte> payload(kPayload);
  return (*connection)->read_payload(payload);
}

// 30 s and 20 KB at 4 KB/s are 35 s, which is too short for this message; 20 KB at 1 KB/s leave 50 s.
TEST(SlowServerTest, SlowMessagesMayTakeTheTimeThatTheServerAllowsItsClients) {
  const SlowServer server(2);
  Status patient{Unit{}}, impatient{Unit{}};
  std::thread other([&] { patient = read_message(server.address(), 1000); });
  impatient = read_message(server.address(), 0);
  other.join();
  EXPECT_TRUE(patient) << patient.error().message;
  ASSERT_FALSE(impatient);
  EXPECT_EQ(impatient.error().message,
            "the connection to the server is lost: a message took too long to arrive");
}

}  // namespace
}  // namespace gradwire
