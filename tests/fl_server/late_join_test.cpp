// Records of clients that join after the start.
#include <gtest/gtest.h>
#include <string>

#include "fl_server/run_metadata.h"

namespace gradwire {
namespace {

std::string record_of(ClientId client) {
  ClientInfo info;
  info.name = "late";
  info.kernels = "avx2";
  info.pid = 7;
  info.columns = 3;
  info.sample_count = 5;
  info.labels = {-1, 1};
  info.data_hash = 9;
  return write_late_join(client, info, /*by_part=*/true);
}

TEST(LateJoin, IsReadAsItWasWritten) {
  ClientTable table(4);
  ASSERT_TRUE(read_late_join(record_of(2), table));
  EXPECT_TRUE(table.joined(2));
  EXPECT_EQ(table.joined_count(), 1u);
  EXPECT_EQ(table.info(2).name, "late");
  EXPECT_EQ(table.info(2).sample_count, 5u);
  EXPECT_EQ(table.info(2).data_hash, 9u);
  EXPECT_TRUE(table.by_part(2));
  EXPECT_TRUE(read_late_join(record_of(2), table)) << "a snapshot may contain it already";
  EXPECT_EQ(table.joined_count(), 1u);
  EXPECT_FALSE(table.assign("other", 2, 4, [](const std::string&) { return true; })) << "it keeps its number";
}

TEST(LateJoin, IsRefusedIfItIsDamaged) {
  ClientTable table(4);
  EXPECT_FALSE(read_late_join(record_of(4), table)) << "there is no client 4";
  EXPECT_FALSE(read_late_join("", table));
  EXPECT_FALSE(read_late_join(write_late_join(1, ClientInfo{}, false), table)) << "it has no name";
  EXPECT_EQ(table.joined_count(), 0u);
  const auto expect_all_or_nothing = [](const std::string& record) {
    ClientTable changed(4);
    const bool is_read = read_late_join(record, changed);
    EXPECT_EQ(changed.joined_count(), is_read ? 1u : 0u);
  };
  const std::string record = record_of(1);
  for (std::size_t size = 0; size < record.size(); ++size) expect_all_or_nothing(record.substr(0, size));
  for (std::size_t at = 0; at < record.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = record;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      expect_all_or_nothing(damaged);
    }
}

}  // namespace
}  // namespace gradwire
