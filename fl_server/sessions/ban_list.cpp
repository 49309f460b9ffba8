#include "fl_server/sessions/ban_list.h"

#include <algorithm>
#include <iterator>

namespace gradwire {

std::uint32_t BanList::remembered(const Record& record, SteadyTime now) const {
  if (now <= record.since) return record.violations;
  const auto forgiven = (now - record.since) / limits_.forgives;
  return record.violations - static_cast<std::uint32_t>(std::min<std::int64_t>(forgiven, record.violations));
}

SteadyTime::duration BanList::violation(const std::string& offender, SteadyTime now) {
  if (limits_.longest == SteadyTime::duration::zero()) return {};
  if (records_.size() >= kMost && !records_.contains(offender)) make_room(now);
  Record& record = records_[offender];
  record.violations = remembered(record, now) + 1;
  record.since = std::max(record.since, now);
  if (record.violations <= limits_.allowed) return {};
  SteadyTime::duration out = std::min(limits_.first, limits_.longest);
  for (std::uint32_t k = limits_.allowed + 1; k < record.violations && out < limits_.longest; ++k)
    out = std::min(2 * out, limits_.longest);
  record.since = std::max(record.since, now + out);
  return record.since - now;
}

SteadyTime::duration BanList::left(const std::string& offender, SteadyTime now) const {
  const auto found = records_.find(offender);
  if (found == records_.end() || found->second.since <= now) return {};
  return found->second.since - now;
}

std::uint32_t BanList::violations(const std::string& offender, SteadyTime now) const {
  const auto found = records_.find(offender);
  return found == records_.end() ? 0 : remembered(found->second, now);
}

// Removes all forgiven offenders. If there are none, removes the oldest of those with the fewest violations.
void BanList::make_room(SteadyTime now) {
  const std::size_t before = records_.size();
  std::erase_if(records_, [&](const auto& entry) { return remembered(entry.second, now) == 0; });
  if (records_.size() < before) return;
  const auto least = std::ranges::min_element(records_, {}, [&](const auto& entry) {
    return std::pair(remembered(entry.second, now), entry.second.since);
  });
  records_.erase(least);
}

}  // namespace gradwire
