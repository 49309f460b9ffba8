// The abilities of a client. Its Hello has their names.
#pragma once

namespace gradwire {

namespace wire {
class Hello;
}

// The defaults are those of release 0.2, whose Hello has no names.
struct Abilities {
  bool zstd = true;  // reads sections that are compressed with zstd
  bool fp32 = true;  // computes in float
  bool fp64 = true;  // computes in double
  bool portable_kernels = false;
  bool custom_problems = false;  // knows problem.kind = "custom"
};

Abilities own_abilities();  // all that this build has

void write_abilities(const Abilities& abilities, wire::Hello& hello);
// Ignores names that this release does not know.
Abilities read_abilities(const wire::Hello& hello);

}  // namespace gradwire
