// Conversion between a client's Join message and ClientInfo.
#pragma once

#include "base/result.h"
#include "fl_server/sessions/client_table.h"

namespace gradwire {

namespace wire {
class Join;
}

// Adds the contents of the message to `info`, or returns an error if they are invalid.
Result<ClientInfo> read_join(const wire::Join& join, ClientInfo info);
// Writes the message that read_join() reads.
void write_join(const ClientInfo& info, wire::Join& join);

}  // namespace gradwire
