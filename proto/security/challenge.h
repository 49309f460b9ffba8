// The client's answer to the server's authentication challenge.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "proto/security/login.h"

namespace gradwire {

// Returns the frame of the Proof that answers a Challenge with this header. Fails if there are no
// credentials, or if they are for another server.
Result<std::string> answer_challenge(std::span<const std::byte> header,
                                     const std::optional<Credentials>& credentials);

}  // namespace gradwire
