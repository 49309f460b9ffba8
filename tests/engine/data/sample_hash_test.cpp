#include "engine/data/sample_hash.h"

#include <functional>
#include <gtest/gtest.h>
#include <set>

#include "engine/data/readers/source.h"

namespace gradwire {
namespace {

ClientDataset rows() {
  ClientDataset part;
  part.train.columns = 4;
  part.train.row_start = {0, 2, 3, 3};
  part.train.column = {0, 2, 1};
  part.train.value = {0.5, -1.25, 3};
  part.train.label = {-1, 1, 1};
  part.test.row_start = {0, 1};
  part.test.column = {3};
  part.test.value = {2};
  part.test.label = {1};
  return part;
}

TEST(SampleHash, DependsOnEachNumberAndTheirOrder) {
  const std::vector<std::function<void(ClientDataset&)>> changes = {
      [](ClientDataset&) {},
      [](ClientDataset& p) { p.train.value[1] = -1.5; },
      [](ClientDataset& p) { p.train.column[1] = 3; },
      [](ClientDataset& p) { p.train.label[2] = -1; },
      [](ClientDataset& p) { p.train.row_start[1] = 1; },
      [](ClientDataset& p) { p.test.value[0] = 1; },
      [](ClientDataset& p) { std::swap(p.train, p.test); },
      [](ClientDataset& p) {
        p.train = select_rows(p.train, std::vector<std::uint32_t>{2, 1, 0});
      },
      [](ClientDataset& p) {
        p.train = select_rows(p.train, std::vector<std::uint32_t>{0, 1});
      },
  };
  std::set<std::uint64_t> hashes;
  for (const auto& change : changes) {
    ClientDataset part = rows();
    change(part);
    hashes.insert(hash_of_client_dataset(part));
  }
  EXPECT_EQ(hashes.size(), changes.size());
}

// The state folders of servers hold these hashes, so they must not change.
TEST(SampleHash, NeverChangesForGivenSamples) {
  EXPECT_EQ(hash_of_client_dataset(rows()), 15617440849702942682u);
  ClientDataset text;
  text.train_text = running_text("to be or not to be", "t", 3);
  EXPECT_EQ(hash_of_client_dataset(text), 10445137772332431086u);
}

std::uint64_t hash_of_share(const std::string& text, std::uint32_t client, PartitionKind partition) {
  SplitSpec spec;
  spec.clients = 3;
  spec.partition = partition;
  return hash_of_client_dataset(share_samples(running_text(text, "t", 4), nullptr, spec).part(client));
}

TEST(SampleHash, DependsOnlyOnTheLettersOfTheClient) {
  std::string text, changed;
  for (int k = 0; k < 300; ++k) text += static_cast<char>('a' + k * 7 % 13);
  changed = text;
  changed[290] = changed[290] == 'a' ? 'b' : 'a';
  std::string other_letters = text;
  other_letters[290] = '-';  // all letters get other numbers
  for (const std::string& now : {changed, other_letters}) {
    EXPECT_EQ(hash_of_share(now, 0, PartitionKind::kContiguous),
              hash_of_share(text, 0, PartitionKind::kContiguous));
    EXPECT_EQ(hash_of_share(now, 1, PartitionKind::kContiguous),
              hash_of_share(text, 1, PartitionKind::kContiguous));
    EXPECT_NE(hash_of_share(now, 2, PartitionKind::kContiguous),
              hash_of_share(text, 2, PartitionKind::kContiguous));
  }
  EXPECT_NE(hash_of_share(text, 0, PartitionKind::kIid), hash_of_share(text, 1, PartitionKind::kIid));
}

TEST(SampleHash, DependsOnEachLetterOfNamesAndTheirEnds) {
  const auto hash = [](std::string_view names) {
    ClientDataset part;
    part.train_text = list_of_names(names, "t", 3);
    return hash_of_client_dataset(part);
  };
  const std::set<std::uint64_t> hashes = {hash("emma\nolivia\n"), hash("emma\nolivie\n"),
                                          hash("olivia\nemma\n"), hash("emmaolivia\n"),
                                          hash("emm\naolivia\n")};
  EXPECT_EQ(hashes.size(), 5u);
  EXPECT_EQ(hash("emma\nolivia\n"), hash("emma\r\nolivia"));
}

}  // namespace
}  // namespace gradwire
