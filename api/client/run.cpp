#include "api/client/run.h"

#include <mutex>

namespace gradwire {

void run_client_with(const ClientOptions& options, const std::function<void(ClientSettings&)>& complete) {
  std::mutex logging;
  Log log;
  if (options.log)
    log = [&](const LogLine& line) {
      const std::lock_guard lock(logging);
      options.log(line.text);
    };
  ClientSettings settings = settings_of(options, log);
  complete(settings);
  join_and_answer(settings);
}

}  // namespace gradwire
