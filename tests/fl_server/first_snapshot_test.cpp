// A server whose disk takes long: its clients must not take it for dead.
#include <atomic>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <thread>

#include "fl_server/serve.h"
#include "tests/support/data_files.h"
#include "tests/support/fake_client.h"

namespace gradwire {
namespace {

constexpr const char* kOneClient = R"(name = "slow-disk"
[problem]
kind = "logistic"
data = "csv:points.csv"
[clients]
count = 1
[algorithm]
name = "gd"
step_size = 0.5
[run]
rounds = 3
)";

TEST(FirstSnapshot, LetsHeartbeatsThroughWhileTheDiskTakesLong) {
  const TemporaryFolder folder;
  folder.write("run.toml", kOneClient);
  const auto state = folder.path() / "state";
  std::filesystem::create_directory(state);
  // Writing into this file waits until it is opened once more.
  const auto slow = state / "ckpt-000000000000.bin.new";
  ASSERT_EQ(::mkfifo(slow.c_str(), 0600), 0);
  ServeOptions options;
  options.file = folder.path() / "run.toml";
  options.listen = "127.0.0.1:0";
  options.state = state;
  options.registry = "none";
  options.handle_signals = false;
  options.times.heartbeat = std::chrono::milliseconds(200);
  std::string trouble;
  std::atomic<bool> over = false;
  std::thread server([&] {
    try {
      serve(options);
    } catch (const std::exception& error) {
      trouble = error.what();
    }
    over = true;
  });
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); };
  std::string address;
  while (!over && !(std::ifstream(state / "address") >> address)) pause();
  if (!over) {
    FakeClient client(address, pause);
    EXPECT_TRUE(client.shake_hands("a"));
    for (int heartbeats = 0; heartbeats < 5;) {
      client.send(heartbeat_frame());
      const auto frame = client.read();
      if (!frame) {
        ADD_FAILURE() << "the server is silent after " << heartbeats << " heartbeats";
        break;
      }
      heartbeats += frame->prefix.type == FrameType::kHeartbeat ? 1 : 0;
    }
  }
  const int opened = ::open(slow.c_str(), O_RDWR);
  server.join();
  ::close(opened);
  EXPECT_NE(trouble.find(slow.filename().string() + ": cannot be made durable"), std::string::npos)
      << "the snapshot was not held up: " << trouble;
}

}  // namespace
}  // namespace gradwire
