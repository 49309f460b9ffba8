// Benchmarks of writing numbers to files and reading them, without fsync (durability/commit measures fsync).
// Most of the time goes to the file system, which creates and renames the file. The reference therefore makes
// the same system calls.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <unistd.h>

#include "benchmarks/benchmarks.h"
#include "engine/files/number_file.h"

namespace gradwire::bench {
namespace {

namespace fs = std::filesystem;

// A folder inside `parent` for one benchmark. ScratchFolder has no parameter for the parent.
class FolderIn {
 public:
  explicit FolderIn(const fs::path& parent) {
    std::string name = (parent / "gradwire-bench-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      throw std::runtime_error(parent.string() + ": cannot make a folder in it");
    path_ = name;
  }
  ~FolderIn() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  FolderIn(const FolderIn&) = delete;
  FolderIn& operator=(const FolderIn&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

Status bare_save(const std::string& file, const std::string& draft, std::span<const std::byte> bytes) {
  const int fd = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0666);
  const bool written =
      fd >= 0 && ::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  if (fd >= 0) ::close(fd);
  if (!written || std::rename(draft.c_str(), file.c_str()) != 0) return Error{"the disk fails"};
  return Unit{};
}

Status bare_load(const std::string& file, std::span<std::byte> bytes) {
  const int fd = ::open(file.c_str(), O_RDONLY);
  const bool read = fd >= 0 && ::read(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  if (fd >= 0) ::close(fd);
  if (!read) return Error{"the disk fails"};
  return Unit{};
}

void rows_in(Bench& bench, const fs::path& parent) {
  constexpr std::uint32_t kCalls = 5000;
  const std::uint32_t calls = bench.size(kCalls, 50u);
  const FolderIn folder(parent);
  const fs::path file = folder.path() / "x.gwn";
  const std::string bare = (folder.path() / "bare").string(), draft = bare + ".new";
  std::array<double, 7> x = {1, 2, 3, 4, 5, 6, 7};
  std::array<std::byte, 120> bytes{};  // has the length of the file
  const auto each = [&](auto call) {
    return [&, call] {
      return seconds_of([&] {
        for (std::uint32_t k = 0; k < calls; ++k) throw_if_failed(call());
      });
    };
  };
  const auto series = interleave(bench.repeats(9), {each([&] { return save_numbers<double>(file, x); }),
                                                    each([&] { return bare_save(bare, draft, bytes); }),
                                                    each([&] { return load_numbers<double>(file, x); }),
                                                    each([&] { return bare_load(bare, bytes); })});
  for (const bool save : {true, false}) {
    Row row;
    row.name = std::string("engine/files ") + (save ? "save" : "load") + " in " + parent.string();
    row.value = series[save ? 0 : 2].times(static_cast<double>(kCalls) / calls);
    row.unit = "s";
    row.versus =
        Versus{"only the system calls", series[save ? 1 : 3].times(static_cast<double>(kCalls) / calls)};
    row.target = {Target::Of::kValue, save ? 0.05 : 0.03};
    row.note = "7 numbers, 5,000 times, with header and checksum, no fsync";
    bench.row(row);
  }
}

}  // namespace

void engine_files(Bench& bench) {
  rows_in(bench, fs::temp_directory_path());
  const fs::path memory = "/dev/shm";  // a file system in memory, on Linux
  if (fs::is_directory(memory)) rows_in(bench, memory);
}

}  // namespace gradwire::bench
