// A test of a server with a slow disk: it sends heartbeats, so that its clients stay connected.
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <sys/syscall.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include "fl_server/serve.h"
#include "tests/support/data_files.h"
#include "tests/support/fake_client.h"

namespace gradwire {
namespace {

constexpr const char* kFirstSnapshot = "ckpt-000000000000.bin.new";
enum class DiskIs { kGood, kSlow, kBroken };
std::atomic<DiskIs> disk_is{DiskIs::kGood};

}  // namespace
}  // namespace gradwire

namespace {

// Makes a file durable. For the first snapshot, it blocks while the disk is slow and fails if the disk is
// broken.
int make_durable(int fd, long call) {
  using gradwire::disk_is, gradwire::DiskIs;
  std::error_code ignored;
  const auto file = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), ignored);
  if (file.filename() != gradwire::kFirstSnapshot) return static_cast<int>(::syscall(call, fd));
  while (disk_is == DiskIs::kSlow) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (disk_is == DiskIs::kGood) return static_cast<int>(::syscall(call, fd));
  errno = EIO;
  return -1;
}

}  // namespace

// These replace functions of the C library in this program.
extern "C" int fdatasync(int fd) { return make_durable(fd, SYS_fdatasync); }
extern "C" int fsync(int fd) { return make_durable(fd, SYS_fsync); }

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

TEST(FirstSnapshot, SendsHeartbeatsWhileTheDiskIsSlow) {
  const TemporaryFolder folder;
  folder.write("run.toml", kOneClient);
  const auto state = folder.path() / "state";
  disk_is = DiskIs::kSlow;
  ServeOptions options;
  options.listen = "127.0.0.1:0";
  options.state = state;
  options.run_history = "none";
  options.handle_signals = false;
  std::string trouble;
  std::atomic<bool> over = false;
  std::thread server([&] {
    try {
      serve(options,
            load_experiment(folder.path() / "run.toml", std::vector<std::string>{"server.heartbeat_ms=500"}));
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
  disk_is = DiskIs::kBroken;
  server.join();
  disk_is = DiskIs::kGood;
  EXPECT_NE(trouble.find(std::string(kFirstSnapshot) + ": cannot be made durable"), std::string::npos)
      << "the snapshot was not delayed: " << trouble;
}

}  // namespace
}  // namespace gradwire
