#include "fl_client/exception_type.h"

#include <algorithm>
#include <cstdlib>
#include <cxxabi.h>
#include <memory>
#include <string_view>
#include <typeinfo>

namespace gradwire {

std::string type_of_exception() {
  constexpr std::size_t kLongest = 200;
  const std::type_info* const type = abi::__cxa_current_exception_type();
  if (type == nullptr) return "unknown";
#ifdef GRADWIRE_SMALL  // without the code that reads such names
  const std::string_view name = type->name();
  if (name.starts_with("St"))
    return "std::" + std::string(name.substr(std::min(name.find_first_not_of("0123456789", 2), name.size())));
  return std::string(name.substr(0, kLongest));
#else
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(type->name(), nullptr, nullptr, &status), &std::free);
  return std::string(name != nullptr ? name.get() : type->name()).substr(0, kLongest);
#endif
}

}  // namespace gradwire
