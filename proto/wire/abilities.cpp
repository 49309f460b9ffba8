#include "proto/wire/abilities.h"

#include <string>
#include <string_view>

#include "proto/wire/wire.pb.h"

namespace gradwire {
namespace {

struct Ability {
  std::string_view name;
  bool Abilities::*has;
};
constexpr Ability kAll[] = {
    {"zstd", &Abilities::zstd},
    {"fp32", &Abilities::fp32},
    {"fp64", &Abilities::fp64},
    {"kernels:portable", &Abilities::portable_kernels},
    {"problem:custom", &Abilities::custom_problems},
};

}  // namespace

Abilities own_abilities() {
  return {.zstd = true, .fp32 = true, .fp64 = true, .portable_kernels = true, .custom_problems = true};
}

void write_abilities(const Abilities& abilities, wire::Hello& hello) {
  for (const Ability& ability : kAll)
    if (abilities.*ability.has) hello.add_abilities(std::string(ability.name));
}

Abilities read_abilities(const wire::Hello& hello) {
  if (hello.abilities().empty()) return {};
  Abilities abilities{.zstd = false, .fp32 = false, .fp64 = false};
  for (const auto& name : hello.abilities())
    for (const Ability& ability : kAll)
      if (name == ability.name) abilities.*ability.has = true;
  return abilities;
}

}  // namespace gradwire
