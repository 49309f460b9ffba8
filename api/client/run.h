// A client of a program: its options checked as those of gradwire-client, and its errors as programs see
// them.
#pragma once

#include <functional>
#include <string>

#include "fl_client/client.h"

namespace gradwire {

// Runs a client with these options, to which `complete` adds the data or the oracle.
void run_client_with(const ClientOptions& options, const std::function<void(ClientSettings&)>& complete);

// Throws BadInput with the reason if the options name data.
void refuse_sources(const ClientOptions& options, const std::string& reason);

}  // namespace gradwire
