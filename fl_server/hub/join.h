// What a client says of its data when it joins, as a message and as what the server keeps.
#pragma once

#include "base/result.h"
#include "fl_server/hub/client_table.h"

namespace gradwire {

namespace wire {
class Join;
}

// Adds to `info` what the message says, or says what is wrong with it.
Result<ClientInfo> read_join(const wire::Join& join, ClientInfo info);
// The message that read_join() reads.
void write_join(const ClientInfo& info, wire::Join& join);

}  // namespace gradwire
