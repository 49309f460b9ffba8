// The messages that a client's session sends, for tests.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "fl_client/client_session.h"

namespace gradwire {

// Lets all outgoing bytes leave, and adds a text for each message.
inline void send_outgoing(ClientSession& session, std::vector<std::string>& messages) {
  for (auto segments = session.outgoing(); !segments.empty(); segments = session.outgoing()) {
    std::string& message = messages.emplace_back();
    for (const auto segment : segments)
      message.append(reinterpret_cast<const char*>(segment.data()), segment.size());
    session.left(message.size());
  }
}

}  // namespace gradwire
