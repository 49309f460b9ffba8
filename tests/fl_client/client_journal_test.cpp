// The files that a client keeps on its disk.
#include "fl_client/client_journal.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/storage/simulated_disk.h"

namespace gradwire {
namespace {

// A client whose state is its number of answered requests. The test chooses the lengths of state and
// requests.
class Counting {
 public:
  Counting(Disk& disk, std::size_t state_bytes) : journal_(disk, {}), state_bytes_(state_bytes) {
    const Status status = journal_.begin("run", Durability::kProcess,
                                         {.load =
                                              [this](std::string_view state) {
                                                answered = std::stoull(std::string(state.substr(0, 20)));
                                                return true;
                                              },
                                          .recall =
                                              [this](std::string_view request) {
                                                read_again += request.size();
                                                ++answered;
                                                return true;
                                              }});
    EXPECT_TRUE(status) << status.error().message;
  }
  void answer(const std::string& request) {
    ASSERT_TRUE(journal_.remember(request));
    const std::string state = padded(std::to_string(answered), state_bytes_);
    ++answered;
    if (journal_.is_long()) {
      ASSERT_TRUE(journal_.shorten(state));
    }
  }
  static std::string padded(std::string text, std::size_t size) {
    text.resize(std::max(size, text.size()), ' ');
    return text;
  }

  std::uint64_t answered = 0, read_again = 0;

 private:
  ClientJournal journal_;
  const std::size_t state_bytes_;
};

std::size_t bytes_on(SimulatedDisk& disk) {
  std::size_t bytes = 0;
  const auto names = disk.list();
  for (const std::string& name : *names) bytes += disk.contents(name).size();
  return bytes;
}

TEST(ClientJournal, UsesBoundedSpaceForRequestsOfAnyLength) {
  for (const std::size_t size : {std::size_t{100}, std::size_t{20'000}, std::size_t{800'000}}) {
    SimulatedDisk disk;
    const std::string request(size, 'r');
    std::size_t most = 0;
    {
      Counting client(disk, size);
      for (int k = 0; k < 200; ++k) {
        client.answer(request);
        most = std::max(most, bytes_on(disk));
      }
    }
    const std::size_t snapshot = 2 * size, log = std::max<std::size_t>(1 << 20, 2 * snapshot) + size;
    EXPECT_LT(most, 4 * snapshot + 4 * log) << "docs/explanation/reliability.md promises this";
    Counting again(disk, size);
    EXPECT_EQ(again.answered, 200u);
    EXPECT_LE(again.read_again, log + size);
  }
}

TEST(ClientJournal, CountsItsLengthAgainAfterARestart) {
  SimulatedDisk disk;
  const std::string request(100'000, 'r');
  for (int life = 0; life < 40; ++life) {  // each life is too short to shorten the journal
    Counting client(disk, 100'000);
    for (int k = 0; k < 3; ++k) client.answer(request);
  }
  Counting client(disk, 100'000);
  EXPECT_EQ(client.answered, 120u);
  EXPECT_LE(client.read_again, std::uint64_t{1} << 21);
}

}  // namespace
}  // namespace gradwire
