// Bans of repeated offenders; each ban is longer than the last. Pure: the caller passes the time, no I/O.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "fl_server/net/socket_layer.h"

namespace gradwire {

struct BanLimits {
  std::uint32_t allowed = 2;  // violations without a ban; each further one bans for twice as long
  SteadyTime::duration first = std::chrono::seconds(1);
  SteadyTime::duration longest = std::chrono::hours(1);      // 0 disables bans
  SteadyTime::duration forgives = std::chrono::minutes(10);  // time without a violation until one is forgiven
};

class BanList {
 public:
  static constexpr std::size_t kMost = 4096;  // largest number of offenders with recorded violations

  explicit BanList(const BanLimits& limits) : limits_(limits) {}

  // Records a violation of the offender. Returns the length of its ban, or 0 if it is not banned.
  SteadyTime::duration violation(const std::string& offender, SteadyTime now);
  // Returns the remaining time of the ban, or 0.
  SteadyTime::duration left(const std::string& offender, SteadyTime now) const;
  std::uint32_t violations(const std::string& offender, SteadyTime now) const;
  std::size_t size() const { return records_.size(); }

 private:
  struct Record {
    std::uint32_t violations = 0;
    SteadyTime since;  // time of the last violation or the end of its ban; forgiveness starts here
  };
  std::uint32_t remembered(const Record& record, SteadyTime now) const;
  void make_room(SteadyTime now);

  const BanLimits limits_;
  std::map<std::string, Record> records_;
};

}  // namespace gradwire
