#include "fl_server/sessions/client_table.h"

#include <gtest/gtest.h>

namespace gradwire {
namespace {

TEST(ClientTable, NumbersClientsInOrderOfJoiningAndReturnsOldNumbersToOldNames) {
  ClientTable table(3);
  EXPECT_EQ(table.assign("a", {}, {}).value(), 0u);
  EXPECT_EQ(table.assign("b", {}, {}).value(), 1u);
  EXPECT_EQ(table.assign("a", {}, {}).value(), 0u);
  EXPECT_EQ(table.assign("c", {}, {}).value(), 2u);
  EXPECT_FALSE(table.assign("d", {}, {}));
  EXPECT_EQ(table.assign("b", {}, {}).value(), 1u);
}

TEST(ClientTable, GivesTheNamesOfInitTheirNumbersInAnyOrder) {
  ClientTable table(3);
  EXPECT_EQ(table.assign("client-2", {}, {}).value(), 2u);
  EXPECT_EQ(table.assign("site", {}, {}).value(), 0u);
  EXPECT_EQ(table.assign("client-0", {}, {}).value(), 1u) << "its number is taken";
  EXPECT_EQ(table.assign("client-2", {}, {}).value(), 2u);
  table.release(0);
  EXPECT_EQ(table.assign("client-7", {}, {}).value(), 0u) << "there is no client 7";
  for (const char* name : {"client-", "client-0x", "client--1", "client-99999999999999999999"}) {
    ClientTable other(2);
    EXPECT_EQ(other.assign(name, {}, {}).value(), 0u) << name;
  }
}

TEST(ClientTable, UsesThePartOfTheDataAsNumber) {
  ClientTable table(3);
  EXPECT_EQ(table.assign("z", 2, 3).value(), 2u);
  EXPECT_EQ(table.assign("y", 0, 3).value(), 0u);
  EXPECT_EQ(table.assign("z", 2, 3).value(), 2u);
  EXPECT_EQ(table.assign("new", 2, 3).value(), 2u) << "another process for the same part";
  EXPECT_EQ(table.info(2).name, "new");
  EXPECT_EQ(table.assign("z", 1, 3).value(), 1u) << "its old name is free again";
}

TEST(ClientTable, KeepsANumberForItsOwnerWhileTheOwnerIsAccepted) {
  ClientTable table(2);
  bool keeps = true;
  const auto asked = [&](const std::string& name) { return name == "a" && keeps; };
  EXPECT_EQ(table.assign("a", 0, 2, asked).value(), 0u);
  const auto refused = table.assign("b", 0, 2, asked);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("belongs to client 'a'"), std::string::npos);
  EXPECT_EQ(table.info(0).name, "a");
  EXPECT_EQ(table.assign("a", 0, 2, asked).value(), 0u);
  EXPECT_EQ(table.assign("b", 1, 2, asked).value(), 1u);
  keeps = false;
  EXPECT_EQ(table.assign("c", 0, 2, asked).value(), 0u);
  EXPECT_EQ(table.info(0).name, "c");
}

TEST(ClientTable, RefusesContradictions) {
  ClientTable table(3);
  ASSERT_TRUE(table.assign("a", 1, 3));
  EXPECT_FALSE(table.assign("a", 2, 3)) << "one name, two parts";
  EXPECT_FALSE(table.assign("b", 0, 4));
  EXPECT_FALSE(table.assign("b", 3, 3));
  EXPECT_FALSE(table.assign("b", 0, {}));
  ASSERT_EQ(table.assign("whole", {}, {}).value(), 0u);
  EXPECT_FALSE(table.assign("c", 0, 3)) << "a client without a part has that number";
  EXPECT_FALSE(table.assign("new\nline", {}, {}));
}

TEST(ClientTable, NamesClientsWithoutNames) {
  ClientTable table(2);
  EXPECT_EQ(table.assign("", {}, {}).value(), 0u);
  EXPECT_EQ(table.info(0).name, "client-0");
  EXPECT_EQ(table.assign("", {}, {}).value(), 1u);
}

TEST(ClientTable, FreesAndForgetsAReleasedPlace) {
  ClientTable table(1);
  ASSERT_TRUE(table.assign("a", {}, {}));
  ClientInfo info;
  info.sample_count = 5;
  ASSERT_TRUE(table.join(0, info));
  EXPECT_EQ(table.joined_count(), 1u);
  table.release(0);
  EXPECT_EQ(table.joined_count(), 0u);
  EXPECT_EQ(table.assign("b", {}, {}).value(), 0u);
  info.sample_count = 6;
  EXPECT_TRUE(table.join(0, info));
}

TEST(ClientTable, RefusesOtherDataFromAReturningClient) {
  ClientTable table(1);
  ASSERT_TRUE(table.assign("a", {}, {}));
  ClientInfo info;
  info.columns = 3;
  info.pid = 1;
  ASSERT_TRUE(table.join(0, info));
  info.pid = 2;
  EXPECT_TRUE(table.join(0, info));
  EXPECT_EQ(table.info(0).pid, 2u);
  info.columns = 4;
  EXPECT_FALSE(table.join(0, info));
  EXPECT_EQ(table.info(0).columns, 3u);
}

TEST(ClientTable, RefusesDataOfTheSameShapeWithAnotherHash) {
  ClientTable table(2);
  ASSERT_TRUE(table.assign("a", {}, {}));
  ASSERT_TRUE(table.assign("b", {}, {}));
  ClientInfo info;
  info.data_hash = 1;
  ASSERT_TRUE(table.join(1, info));
  EXPECT_TRUE(table.join(1, info));
  info.data_hash = 2;
  const Status refused = table.join(1, info);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "client 1 ('b') returned with other data than before: restore its old data (--data), or start "
            "the run from the beginning with --fresh at the server");
  table.leave(1);
  EXPECT_TRUE(table.join(1, info)) << "before the run begins";
  EXPECT_EQ(table.info(1).data_hash, 2u);
}

TEST(ClientTable, AcceptsAnUnknownHashAndKeepsTheFirstKnownOne) {
  ClientTable table(1);
  ASSERT_TRUE(table.assign("a", {}, {}));
  ClientInfo unknown, first, second;
  first.data_hash = 1;
  second.data_hash = 2;
  ASSERT_TRUE(table.join(0, unknown));
  EXPECT_TRUE(table.join(0, first));
  EXPECT_FALSE(table.join(0, second));
  EXPECT_TRUE(table.join(0, unknown)) << "an earlier release";
  EXPECT_FALSE(table.join(0, second));
  EXPECT_EQ(table.info(0).data_hash, 1u);
}

}  // namespace
}  // namespace gradwire
