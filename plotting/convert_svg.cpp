#include "plotting/convert_svg.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <optional>
#include <spawn.h>
#include <sstream>
#include <string_view>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include "report/results_dir.h"
#include "storage/atomic_file.h"

extern char** environ;

namespace gradwire {
namespace fs = std::filesystem;
namespace {

constexpr const char* kDotsPerInch = "300";

std::optional<fs::path> find_program(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path program = fs::path(folder.empty() ? "." : folder) / name;
    std::error_code error;
    if (fs::is_regular_file(program, error) && ::access(program.c_str(), X_OK) == 0) return program;
  }
  return std::nullopt;
}

// The program with its arguments.
std::vector<std::string> command_for(const fs::path& from, const fs::path& to, const std::string& format,
                                     const fs::path& file) {
  if (const auto rsvg = find_program("rsvg-convert"))
    return {rsvg->string(), "-f",         format, "-d",        kDotsPerInch,
            "-p",           kDotsPerInch, "-o",   to.string(), from.string()};
  if (const auto inkscape = find_program("inkscape"))
    return {inkscape->string(), "--export-type=" + format, std::string("--export-dpi=") + kDotsPerInch,
            "--export-filename=" + to.string(), from.string()};
  throw UsageError(
      file.string() +
      ": needs rsvg-convert or inkscape, and neither is in $PATH; install one (Debian and Ubuntu: "
      "apt install librsvg2-bin), or write .svg, .tex or .csv");
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Runs the program; its output goes to the file `log`. Returns the wait status. Throws std::system_error if
// it cannot be started.
int run_program(const std::vector<std::string>& command, const fs::path& log) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::system_error(error, std::generic_category(), "cannot start " + command[0]);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0)
    if (errno != EINTR)
      throw std::system_error(errno, std::generic_category(), "cannot wait for " + command[0]);
  return status;
}

// Returns the bytes with a note that gradwire wrote them: a comment after the end of a PDF, and a text chunk
// before the last chunk of a PNG. check_overwrite() in plot.cpp looks for it.
std::string with_note(std::string bytes, const std::string& format) {
  constexpr std::string_view kPdf = "%written by gradwire\n";
  constexpr std::string_view kPng(
      "\0\0\0\x11tEXtSoftware\0gradwire\xb7"
      "\x44\x5f\xac",
      29);  // length and CRC-32
  constexpr std::size_t kLastChunk = 12;
  if (format == "pdf") return bytes + (bytes.ends_with('\n') ? "" : "\n") + std::string(kPdf);
  if (bytes.size() > kLastChunk) bytes.insert(bytes.size() - kLastChunk, kPng);
  return bytes;
}

// A folder that is removed with its files.
class WorkFolder {
 public:
  WorkFolder() {
    std::string name = (fs::temp_directory_path() / "gradwire-figure-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw std::system_error(errno, std::generic_category(),
                              "cannot make a folder in " + fs::temp_directory_path().string());
    path_ = name;
  }
  ~WorkFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace

void convert_svg(const std::string& svg, const fs::path& file) {
  const std::string format = file.extension().string().substr(1);
  const WorkFolder folder;
  const fs::path from = folder.path() / "figure.svg", to = folder.path() / ("figure." + format),
                 log = folder.path() / "log";
  const std::vector<std::string> command = command_for(from, to, format, file);
  std::ofstream(from, std::ios::binary) << svg;
  const int status = run_program(command, log);
  const std::string bytes = text_of(to);
  if (status != 0 || bytes.empty()) {
    const std::string said = text_of(log);
    throw std::runtime_error(file.string() + ": " + command[0] + " could not convert the figure: " +
                             (said.empty() ? "it says nothing" : said.substr(0, said.find('\n'))));
  }
  write_whole(file, with_note(bytes, format));
}

}  // namespace gradwire
