// Who misbehaved again and again is kept out, each time for longer. Pure: fed with the time, no I/O.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "fl_server/net/socket_layer.h"

namespace gradwire {

struct QuarantineLimits {
  std::uint32_t allowed = 2;  // offences; from the next one on each keeps out, for twice as long as the last
  SteadyTime::duration first = std::chrono::seconds(1);
  SteadyTime::duration longest = std::chrono::hours(1);      // 0: nobody is kept out
  SteadyTime::duration forgives = std::chrono::minutes(10);  // without an offence, for each of them
};

class Quarantine {
 public:
  static constexpr std::size_t kMost = 4096;  // of whom it remembers offences

  explicit Quarantine(const QuarantineLimits& limits) : limits_(limits) {}

  // For how long `who` is kept out now; 0: not at all.
  SteadyTime::duration offence(const std::string& who, SteadyTime now);
  // For how long it still is.
  SteadyTime::duration left(const std::string& who, SteadyTime now) const;
  std::uint32_t offences(const std::string& who, SteadyTime now) const;
  std::size_t size() const { return records_.size(); }

 private:
  struct Record {
    std::uint32_t offences = 0;
    SteadyTime since;  // of the last one, or the end of what it cost: from then on time forgives
  };
  std::uint32_t remembered(const Record& record, SteadyTime now) const;
  void make_room(SteadyTime now);

  const QuarantineLimits limits_;
  std::map<std::string, Record> records_;
};

}  // namespace gradwire
