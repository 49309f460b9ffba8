#pragma once

#include <string>
#include <utility>

#include "base/bad_input.h"

namespace gradwire {

// A value of the experiment file that cannot be used. `key` is its dotted path ("algorithm.compressor");
// whoever knows the file puts FILE:LINE in front. what() is the message without the key.
class ConfigError : public BadInput {
 public:
  ConfigError(std::string key, const std::string& message) : BadInput(message), key_(std::move(key)) {}
  const std::string& key() const { return key_; }

 private:
  std::string key_;
};

}  // namespace gradwire
