// A process with its state in a journal, for the tests of journals.
#pragma once

#include <cstdint>
#include <gtest/gtest.h>
#include <span>
#include <string>

#include "storage/journal.h"

namespace gradwire {

// A process whose state is a counter; every count is a record.
class Counter {
 public:
  Counter(Disk& disk, Durability durability)
      : journal_(disk, durability, [this](const std::string& line) { notes += line + "\n"; }) {}

  Result<bool> recover() {
    return journal_.recover({.snapshot =
                                 [this](std::span<const Section> sections) {
                                   if (sections.size() != 2 || sections[0].tag != 7) return false;
                                   count = std::stoull(std::string(sections[0].bytes));
                                   return true;
                                 },
                             .record =
                                 [this](std::string_view record) {
                                   const std::string want = "count " + std::to_string(count) + " of life ";
                                   if (!record.starts_with(want)) return false;
                                   const int life = std::stoi(std::string(record.substr(want.size())));
                                   went_back |= life < newest_life_;
                                   newest_life_ = life;
                                   ++count;
                                   return true;
                                 }});
  }
  Status snapshot() {
    const std::string text = std::to_string(count);
    const Section sections[] = {{7, text}, {8, padding}};
    return journal_.snapshot(sections);
  }
  Status add() {
    const std::string text = std::to_string(count), lives = std::to_string(life);
    const std::string_view segments[] = {"count ", text, " of life ", lives};
    Status status = journal_.append(segments);
    if (status) ++count;
    return status;
  }

  Journal& journal() { return journal_; }

  std::uint64_t count = 0;
  int life = 1;            // number of this process
  bool went_back = false;  // a record of an earlier process came after one of a later process
  std::string padding, notes;

 private:
  Journal journal_;
  int newest_life_ = 0;
};

// Counts to `end`, with a snapshot before every `every`th count.
inline void count_to(Counter& counter, std::uint64_t end, std::uint64_t every) {
  while (counter.count < end) {
    if (counter.count % every == 0) {
      ASSERT_TRUE(counter.snapshot());
    }
    ASSERT_TRUE(counter.add());
  }
}
inline std::uint64_t recovered(Disk& disk) {
  Counter counter(disk, Durability::kProcess);
  const Result<bool> found = counter.recover();
  EXPECT_TRUE(found) << (found ? "" : found.error().message);
  EXPECT_TRUE(found && *found);
  return counter.count;
}

}  // namespace gradwire
