#pragma once

#include <string>
#include <utility>

#include "gradwire/bad_input.h"

namespace gradwire {

// An invalid value in the experiment file. `key` is its dotted path ("algorithm.compressor"). The code that
// knows the file adds FILE:LINE in front. what() is the message without the key.
class ConfigError : public BadInput {
 public:
  ConfigError(std::string key, const std::string& message) : BadInput(message), key_(std::move(key)) {}
  const std::string& key() const { return key_; }

 private:
  std::string key_;
};

}  // namespace gradwire
