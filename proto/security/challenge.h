// The answer to a server that wants to know who this is.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "proto/security/login.h"

namespace gradwire {

// From the header of a Challenge, a whole frame: the Proof. The error says why there is none: no credentials,
// or they are for another server.
Result<std::string> answer_challenge(std::span<const std::byte> header,
                                     const std::optional<Credentials>& credentials);

}  // namespace gradwire
