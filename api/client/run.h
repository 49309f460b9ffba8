// A client of a program: its options checked as those of gradwire-client, and its errors as programs see
// them.
#pragma once

#include <functional>

#include "fl_client/client.h"

namespace gradwire {

// Runs a client with these options, to which `complete` adds the data or the oracle.
void run_client_with(const ClientOptions& options, const std::function<void(ClientSettings&)>& complete);

}  // namespace gradwire
