#include "fl_client/exception_type.h"

#include <cstdlib>
#include <cxxabi.h>
#include <memory>
#include <typeinfo>

namespace gradwire {

std::string type_of_exception() {
  constexpr std::size_t kLongest = 200;
  const std::type_info* const type = abi::__cxa_current_exception_type();
  if (type == nullptr) return "unknown";
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(type->name(), nullptr, nullptr, &status), &std::free);
  return std::string(name != nullptr ? name.get() : type->name()).substr(0, kLongest);
}

}  // namespace gradwire
