#include <utility>

#include "api/client/run.h"
#include "gradwire/client.h"
#include "samples/local_problem.h"

namespace gradwire {

void run_client(const ClientOptions& options) {
  run_client_with(options, [&](ClientSettings& settings) {
    DataChoice choice = parse_data_choice(options.data);
    choice.test = options.test;
    if (!choice.part) choice.part = settings.data.part;
    settings.data = client_data(std::move(choice));
  });
}

}  // namespace gradwire
