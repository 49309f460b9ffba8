// The public data sets for tests, in $GRADWIRE_TEST_DATA, or else in the folder of the build option.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

namespace gradwire {

// Returns the file or folder `name` ("a9a", "mnist"), or nothing if it is missing. In that case,
// call GTEST_SKIP() << "no a9a: set GRADWIRE_TEST_DATA".
inline std::optional<std::filesystem::path> test_data(std::string_view name) {
  std::filesystem::path folder;
  if (const char* set = std::getenv("GRADWIRE_TEST_DATA"); set != nullptr) {
    folder = set;
  } else {
#ifdef GRADWIRE_TEST_DATA
    folder = GRADWIRE_TEST_DATA;
#endif
  }
  if (folder.empty()) return std::nullopt;
  std::error_code ignored;
  const std::filesystem::path path = folder / name;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  return path;
}

}  // namespace gradwire
