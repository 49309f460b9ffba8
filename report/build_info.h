// The build of this program. Equal build strings guarantee equal bits.
#pragma once

#include <string>

namespace gradwire {

// Returns the version, the compiler, and the instruction set of the kernels: "0.2.0 gcc-12.2.0
// x86-64+avx2+fma".
std::string build_info();

}  // namespace gradwire
