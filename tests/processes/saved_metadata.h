// Changes the metadata in the folder of a stopped run, for example to the form of an earlier release.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "fl_server/run_metadata.h"
#include "storage/folder_disk.h"
#include "storage/journal.h"
#include "storage/run_store.h"

namespace gradwire {

inline void change_saved_metadata(const std::filesystem::path& state,
                                  const std::function<void(RunMetadata&)>& change) {
  FolderDisk disk(state);
  Journal journal(disk, Durability::kProcess);
  std::vector<std::pair<std::uint32_t, std::string>> saved;
  const auto found = journal.recover({.snapshot =
                                          [&](std::span<const Section> sections) {
                                            saved.clear();
                                            for (const Section& s : sections)
                                              saved.emplace_back(s.tag, s.bytes);
                                            return true;
                                          },
                                      .record = [](std::string_view) { return false; }});
  ASSERT_TRUE(found && *found);
  std::vector<Section> sections;
  for (const auto& [tag, bytes] : saved) sections.push_back({tag, bytes});
  const std::string old = snapshot_metadata(sections)->metadata;
  RunMetadata metadata = *load_metadata(old);
  change(metadata);
  const std::string now = save_metadata(metadata);
  EXPECT_LT(now.size(), old.size()) << "earlier releases stored less";
  for (Section& section : sections)
    if (section.bytes == old) section.bytes = now;
  ASSERT_TRUE(journal.snapshot(sections));
}

}  // namespace gradwire
