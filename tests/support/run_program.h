// Functions that run the built programs like a user, from a folder of the test.
#pragma once

#include <algorithm>
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
  std::string out, err;  // output on stdout and stderr
};

// Returns the path of a built program. $GRADWIRE_CLIENT names another gradwire-client, such as that of a
// board.
inline std::filesystem::path program(const std::string& name) {
  if (const char* client = std::getenv("GRADWIRE_CLIENT"); client != nullptr && name == "gradwire-client")
    return client;
  return std::filesystem::path(GRADWIRE_BIN_DIR) / name;
}

// Runs a program with `folder` as the working directory.
inline ProgramResult run_program(const std::string& name, const std::filesystem::path& folder,
                                 const std::vector<std::string>& arguments) {
  const auto quote = [](const std::string& text) {
    std::string quoted = "'";
    for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
  };
  std::string command = "cd " + quote(folder.string()) + " && " + quote(program(name).string());
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

inline ProgramResult run_gradwire(const std::filesystem::path& folder,
                                  const std::vector<std::string>& arguments) {
  return run_program("gradwire", folder, arguments);
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

// Returns metrics.csv without `seconds` and `sim_seconds`. Only these columns differ between equal runs.
inline std::string without_seconds(const std::string& metrics) {
  constexpr int kSeconds = 10, kSimSeconds = 13;
  std::string text;
  for (const std::string& line : lines_of(metrics)) {
    int column = 0;
    for (std::size_t begin = 0; begin <= line.size(); ++column) {
      const std::size_t end = std::min(line.find(',', begin), line.size());
      if (column != kSeconds && column != kSimSeconds)
        text += (column > 0 ? "," : "") + line.substr(begin, end - begin);
      begin = end + 1;
    }
    text += "\n";
  }
  return text;
}

}  // namespace gradwire
