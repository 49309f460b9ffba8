// The folder of the public data sets for tests: $GRADWIRE_TEST_DATA, else the folder from the build options.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

namespace gradwire {

// The file or folder `name` ("a9a", "mnist"); nothing when it is absent: GTEST_SKIP() << "no a9a: set
// GRADWIRE_TEST_DATA".
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
