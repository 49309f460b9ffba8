#include "fl_server/stall_report.h"

#include <algorithm>
#include <utility>

#include "report/quantities.h"

namespace gradwire {

std::string stall_text(std::uint64_t round, double waited_seconds, double left_seconds,
                       const std::vector<std::string>& named, std::size_t count) {
  std::string clients = count == 1 ? "client" : std::to_string(count) + " clients";
  const std::size_t shown = std::min({named.size(), count, kNamedInStall});
  for (std::size_t k = 0; k < shown; ++k) clients += (k == 0 ? (count == 1 ? " " : ": ") : ", ") + named[k];
  if (shown > 0 && shown < count) clients += " and " + std::to_string(count - shown) + " more";
  return "round " + std::to_string(round) + " has waited " + duration_text(waited_seconds) + " for " +
         clients + "; gives up in " + duration_text(left_seconds);
}

StallReport::StallReport(Peers peers, std::function<double()> now, ServerMetrics& metrics, Log log)
    : peers_(std::move(peers)), now_(std::move(now)), metrics_(metrics), log_(std::move(log)) {}

void StallReport::see(const StalledRound& wait) {
  std::vector<ClientId> lost, silent;
  for (const ClientId client : wait.missing) (peers_.connected(client) ? silent : lost).push_back(client);
  if (wait.needed == 0 || (!wait.past_deadline && silent.size() >= wait.needed)) return clear();
  metrics_.stalled_since.set(now_() - wait.waited_seconds);
  metrics_.gives_up_at.set(now_() + wait.left_seconds);
  metrics_.stalled_clients.set(wait.missing.size());
  if (!log_) return;
  lost.insert(lost.end(), silent.begin(), silent.end());
  std::vector<std::string> named;
  for (std::size_t k = 0; k < std::min(kNamedInStall, lost.size()); ++k)
    named.push_back(peers_.describe(lost[k]));
  log_(LogLine::warning(stall_text(wait.round, wait.waited_seconds, wait.left_seconds, named, lost.size()))
           .in_round(wait.round));
}

void StallReport::clear() {
  metrics_.stalled_since.set(0);
  metrics_.gives_up_at.set(0);
  metrics_.stalled_clients.set(0);
}

}  // namespace gradwire
