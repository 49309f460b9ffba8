#include "proto/wire/client_name.h"

#include <algorithm>
#include <string>

namespace gradwire {

Status check_client_name(std::string_view name) {
  const std::string rule = "a name is one word of at most " + std::to_string(kLongestClientName) +
                           " letters, digits and characters like - _ . (ASCII)";
  if (name.empty()) return Error{"it is empty; " + rule};
  if (name.size() > kLongestClientName)
    return Error{"it has " + std::to_string(name.size()) + " characters; " + rule};
  if (name.find(' ') != name.npos) return Error{"it has a space; " + rule};
  if (!std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 0x7f; }))
    return Error{"it has another character; " + rule};
  return Unit{};
}

}  // namespace gradwire
