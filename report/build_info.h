// Version and build of this program. Equal build strings guarantee equal bits.
#pragma once

#include <string>
#include <string_view>

namespace gradwire {

std::string_view version();  // "0.2.0"

// Returns the version, the compiler, and the instruction set of the kernels: "0.2.0 gcc-12.2.0
// x86-64+avx2+fma".
std::string build_info();

}  // namespace gradwire
