// Who misbehaved again and again is banned, each time for longer. Pure: fed with the time, no I/O.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "fl_server/net/socket_layer.h"

namespace gradwire {

struct BanLimits {
  std::uint32_t allowed = 2;  // violations; from the next one on each bans, for twice as long as the last
  SteadyTime::duration first = std::chrono::seconds(1);
  SteadyTime::duration longest = std::chrono::hours(1);      // 0: nobody is banned
  SteadyTime::duration forgives = std::chrono::minutes(10);  // without a violation, for each of them
};

class BanList {
 public:
  static constexpr std::size_t kMost = 4096;  // of whom it remembers violations

  explicit BanList(const BanLimits& limits) : limits_(limits) {}

  // For how long `who` is banned now; 0: not at all.
  SteadyTime::duration violation(const std::string& who, SteadyTime now);
  // For how long it still is.
  SteadyTime::duration left(const std::string& who, SteadyTime now) const;
  std::uint32_t violations(const std::string& who, SteadyTime now) const;
  std::size_t size() const { return records_.size(); }

 private:
  struct Record {
    std::uint32_t violations = 0;
    SteadyTime since;  // of the last one, or the end of what it cost: from then on time forgives
  };
  std::uint32_t remembered(const Record& record, SteadyTime now) const;
  void make_room(SteadyTime now);

  const BanLimits limits_;
  std::map<std::string, Record> records_;
};

}  // namespace gradwire
