// Runs the built programs as a user would, from a folder of the test's own.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/wait.h>
#include <vector>

namespace gradwire {

inline std::string read_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct ProgramResult {
  int code = -1;
  std::string out, err;  // what went to stdout and stderr
};

inline std::filesystem::path program(const std::string& name) {
  return std::filesystem::path(GRADWIRE_BIN_DIR) / name;
}

// `folder` becomes the working directory.
inline ProgramResult run_gradwire(const std::filesystem::path& folder,
                                  const std::vector<std::string>& arguments) {
  const auto quote = [](const std::string& text) {
    std::string quoted = "'";
    for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
  };
  std::string command = "cd " + quote(folder.string()) + " && " + quote(program("gradwire").string());
  for (const std::string& argument : arguments) command += " " + quote(argument);
  const std::filesystem::path out = folder / ".stdout", err = folder / ".stderr";
  command += " > " + quote(out.string()) + " 2> " + quote(err.string()) + " < /dev/null";
  const int status = std::system(command.c_str());
  ProgramResult result{WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_file(out),
                       read_file(err)};
  std::filesystem::remove(out);
  std::filesystem::remove(err);
  return result;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// metrics.csv without the column `seconds`, the only one that may differ between equal runs.
inline std::string without_seconds(const std::string& metrics) {
  constexpr int kColumn = 10;
  std::string text;
  for (const std::string& line : lines_of(metrics)) {
    std::size_t begin = 0;
    for (int k = 0; k < kColumn && begin != std::string::npos; ++k) begin = line.find(',', begin + 1);
    const std::size_t end = begin == std::string::npos ? begin : line.find(',', begin + 1);
    text += line.substr(0, begin) + (end == std::string::npos ? "" : line.substr(end)) + "\n";
  }
  return text;
}

}  // namespace gradwire
