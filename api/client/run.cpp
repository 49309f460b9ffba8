#include "api/client/run.h"

#include <mutex>
#include <utility>

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

void refuse_sources(const ClientOptions& options, const std::string& reason) {
  for (const auto& [option, source] : {std::pair("--data", options.data), {"--test", options.test}})
    if (!source.empty())
      throw BadInput(std::string(option) + " '" + source + "': " + reason + "; leave it out");
}

}  // namespace gradwire
