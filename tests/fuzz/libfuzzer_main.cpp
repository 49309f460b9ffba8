// The program of tools/fuzz, which runs libFuzzer on one target.
//
//   gradwire-fuzz --target=NAME [--seeds=DIR] [libFuzzer's arguments]
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/fuzz/fuzz.h"

namespace {

const gradwire::fuzz::Target* g_target = nullptr;

void write_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::size_t number = 0;
  for (const auto& seed : g_target->seeds()) {
    std::ofstream file(folder / ("seed-" + std::to_string(number++)), std::ios::binary);
    file.write(reinterpret_cast<const char*>(seed.data()), static_cast<std::streamsize>(seed.size()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  std::string_view seeds;
  for (int i = 1; i < *argc; ++i) {
    const std::string_view argument = (*argv)[i];
    if (argument.starts_with("--target="))
      for (const auto& target : gradwire::fuzz::targets())
        if (target.name == argument.substr(9)) g_target = &target;
    if (argument.starts_with("--seeds=")) seeds = argument.substr(8);
  }
  if (g_target == nullptr) {
    std::fputs("gradwire-fuzz: --target=NAME is required, with one of:", stderr);
    for (const auto& target : gradwire::fuzz::targets())
      std::fprintf(stderr, " %.*s", static_cast<int>(target.name.size()), target.name.data());
    std::fputs("\n", stderr);
    std::exit(2);
  }
  if (!seeds.empty()) write_seeds(seeds);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  g_target->run(std::as_bytes(std::span(data, size)));
  return 0;
}
