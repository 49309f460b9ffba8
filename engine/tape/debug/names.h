// Names for the scalars of a tape, switched on or off at compile time:
//   DebugNames<kDebugNames> names;
//   names(loss, "loss");
//   std::cout << to_dot(graph_of(tape, names));
// If off, the object is empty, naming compiles to nothing, and a [[no_unique_address]] member takes no byte.
// On or off, the tape does not know the names. After tape.rewind(), the name of a place applies to the next
// scalar that is recorded there, until that scalar is named or clear() is called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>

#include "engine/tape/var.h"
#include "engine/tape/var_range.h"

namespace gradwire {

template <bool on>
class DebugNames {
 public:
  // Names a scalar; a second name replaces the first. Stores the value also, because a tape does not keep it.
  template <class Tape>
  void operator()(const Var<Tape>& x, std::string_view name) {
    named_[x.place().slot()] = {std::string(name), static_cast<double>(x.value()), true};
  }
  // Names the scalars name[0], name[1], ...
  template <class Tape>
  void operator()(const VarRange<Tape>& x, std::string_view name) {
    for (std::size_t i = 0; i < x.size(); ++i)
      (*this)(x[i], std::string(name) + "[" + std::to_string(i) + "]");
  }

  void clear() { named_.clear(); }

  struct Named {
    std::string name;
    double value = 0;
    bool there = false;
  };
  Named of(std::uint32_t slot) const {
    const auto at = named_.find(slot);
    return at == named_.end() ? Named() : at->second;
  }

 private:
  std::map<std::uint32_t, Named> named_;
};

template <>
class DebugNames<false> {
 public:
  template <class X>
  GRADWIRE_INLINE void operator()(const X&, std::string_view) const {}
  GRADWIRE_INLINE void clear() const {}

  struct Named {
    std::string_view name;
    double value = 0;
    bool there = false;
  };
  Named of(std::uint32_t) const { return {}; }
};
static_assert(std::is_empty_v<DebugNames<false>>);

}  // namespace gradwire
