// Groups equal log lines about one peer, such as a client of another server that tries again and again.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "fl_server/net/socket_layer.h"

namespace gradwire {

class RepeatedLines {
 public:
  // Returns the text to log now: `text` if the peer's last line with this text is older than a minute, with
  // the number of lines left out since. Otherwise returns "", and counts the line.
  std::string see(const std::string& peer, const std::string& text, SteadyTime now) {
    if (lines_.size() >= kMostLines) lines_.clear();  // an attacker must not fill the memory
    const auto [line, is_new] = lines_.try_emplace({peer, text}, Line{now, 0});
    if (is_new) return text;
    Line& last = line->second;
    if (now - last.logged < kEvery) {
      ++last.left_out;
      return "";
    }
    last.logged = now;
    const std::uint64_t more = std::exchange(last.left_out, 0);
    return more == 0 ? text : text + " (" + std::to_string(more) + " times more since the last such line)";
  }

 private:
  static constexpr std::size_t kMostLines = 1000;
  static constexpr std::chrono::minutes kEvery{1};
  struct Line {
    SteadyTime logged;
    std::uint64_t left_out = 0;
  };

  std::map<std::pair<std::string, std::string>, Line> lines_;
};

}  // namespace gradwire
