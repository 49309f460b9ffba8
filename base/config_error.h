#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace gradwire {

// A value of the experiment file that cannot be used. `key` is its dotted path ("algorithm.compressor");
// whoever knows the file puts FILE:LINE in front. what() is the message without the key.
class ConfigError : public std::runtime_error {
 public:
  ConfigError(std::string key, const std::string& message)
      : std::runtime_error(message), key_(std::move(key)) {}
  const std::string& key() const { return key_; }

 private:
  std::string key_;
};

}  // namespace gradwire
